//! Stories of two plain endpoints; the attacker writes any field of a well-formed header (ResTP §3.5).

use crate::world::{self, End, Forge, Story};
use arbitrary::{Arbitrary, Unstructured};
use restp_base::flow::FlowId;
use restp_base::machine::Head;
use restp_base::time::Time;
use restp_proto::wire::{Blocks, Flags, Header, Tail};
use restp_proto::{Endpoint, EndpointConfig};

/// One input.
pub fn run(bytes: &[u8]) {
    if let Ok(story) = Story::<Forgery>::arbitrary_take_rest(Unstructured::new(bytes)) {
        world::run::<Endpoint, Forgery>(&story);
    }
}

impl End for Endpoint {
    fn new(config: EndpointConfig, _host: usize, _life: u8) -> Self {
        Endpoint::new(config)
    }
    fn inherit(&mut self, now: Time, before: &Self) {
        let cookies: Vec<_> = before.cookies(now).collect();
        cookies
            .into_iter()
            .for_each(|cookie| self.keep_cookie(now, cookie));
    }
    fn peer(&self, _flow: FlowId) -> Option<usize> {
        None // whoever knows the numbers is heard
    }
    fn check_sent(bytes: &[u8]) {
        assert!(Header::parse(bytes, bytes.len()).is_ok(), "what is sent parses");
    }
    fn check_bounds(&self) {}
}

/// Fields that are another's idea.
#[derive(Arbitrary, Debug)]
struct Forgery {
    flags: Option<u8>,
    sequence: i8,
    acknowledgement: i8,
    far: bool,
    window: Option<u16>,
    blocks: Option<Vec<(i8, i8)>>,
    payload: Option<u8>,
    address: bool,
}

impl Forge for Forgery {
    fn apply(&self, bytes: &[u8], _past: &[(usize, Vec<u8>)]) -> Option<Vec<u8>> {
        let (mut header, length) = Header::parse(bytes, bytes.len()).ok()?;
        let far = if self.far { 0x4000_0000 } else { 1 };
        let moved = |number: u32, by: i8| number.wrapping_add((i64::from(by) * far) as u32);
        if let Some(flags) = self.flags {
            header.flags = Flags::from_bits(flags);
        }
        header.sequence = header.sequence.map(|number| moved(number, self.sequence));
        header.acknowledgement = match (header.flags.has(Flags::ACK), header.sequence) {
            (true, Some(_)) => Some(moved(header.acknowledgement.unwrap_or(0), self.acknowledgement)),
            _ => None,
        };
        header.window = header.window.map(|window| self.window.unwrap_or(window));
        if let (Some(blocks), Some(pointer)) = (&self.blocks, header.acknowledgement) {
            let edges = blocks.iter().take(30);
            let blocks: Blocks = edges
                .map(|(l, r)| (moved(pointer, *l), moved(pointer, *r)))
                .collect();
            header.tail = Tail::Sack(blocks);
        }
        let payload = match self.payload {
            Some(size) => vec![7; size.into()],
            None => bytes[length..].to_vec(),
        };
        let mut head = Head::new();
        header.emit(&payload, &mut head).ok()?;
        Some([&head[..], &payload].concat())
    }

    fn is_misaddressed(&self) -> bool {
        self.address
    }
}
