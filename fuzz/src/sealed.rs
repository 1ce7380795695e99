//! Stories of two sealed endpoints and a stranger with keys of its own; the attacker writes any field that is not
//! encrypted, and puts parts of different datagrams together (docs/protocol/sealed.md).

use crate::world::{self, End, Forge, Story};
use arbitrary::{Arbitrary, Unstructured};
use restp_proto::wire::bare_request;
use restp_proto::{Endpoint, EndpointConfig};
use restp_seal::packet::{CID_BYTES, Packet};
use restp_seal::{SealConfig, Sealed, SecretKey};

/// One input.
pub fn run(bytes: &[u8]) {
    if let Ok(story) = Story::<Splice>::arbitrary_take_rest(Unstructured::new(bytes)) {
        world::run::<Sealed<Endpoint>, Splice>(&story);
    }
}

const HALF_OPEN: usize = 6;
const SESSIONS: usize = 8;

impl End for Sealed<Endpoint> {
    fn new(config: EndpointConfig, host: usize) -> Self {
        let own = [host as u8 + 1; 32];
        let seal = SealConfig {
            max_half_open: HALF_OPEN,
            max_sessions: SESSIONS,
            ..SealConfig::new(SecretKey::from_chance(own), own, bare_request)
        };
        let mut end = Sealed::new(Endpoint::new(config), seal);
        if host == 2 {
            let second = SecretKey::from_chance([2; 32]).public();
            end.expect("10.0.0.2:0".parse().expect("an address"), second);
        }
        end
    }
    fn check_sent(bytes: &[u8]) {
        assert!(
            Packet::parse(bytes).is_some(),
            "what is sent parses, and is sealed"
        );
    }
    fn check_bounds(&self) {
        assert!(self.half_open() <= HALF_OPEN, "{} half open", self.half_open());
        assert!(
            self.sessions() <= SESSIONS + HALF_OPEN,
            "{} sessions",
            self.sessions()
        );
    }
}

/// What is written on the envelope, and parts of other datagrams.
#[derive(Arbitrary, Debug)]
struct Splice {
    kind: Option<u8>,
    /// Takes the connection id of that packet.
    id_of: Option<u16>,
    number: Option<u64>,
    /// Takes all after the connection id from that packet.
    rest_of: Option<u16>,
    /// A second datagram behind the first.
    behind: Option<u16>,
    cut: Option<u16>,
    address: bool,
}

impl Forge for Splice {
    fn apply(&self, bytes: &[u8], past: &[(usize, Vec<u8>)]) -> Option<Vec<u8>> {
        let other = |index: u16| &past[usize::from(index) % past.len()].1;
        let mut forged = bytes.to_vec();
        if let Some(kind) = self.kind {
            forged[0] = kind;
        }
        if let Some(index) = self.id_of {
            forged[1..1 + CID_BYTES].copy_from_slice(&other(index)[1..1 + CID_BYTES]);
        }
        if let (Some(number), Some(place)) = (self.number, forged.get_mut(1 + CID_BYTES..7 + CID_BYTES)) {
            place.copy_from_slice(&number.to_be_bytes()[2..]);
        }
        if let Some(index) = self.rest_of {
            forged.truncate(1 + CID_BYTES);
            forged.extend_from_slice(&other(index)[1 + CID_BYTES..]);
        }
        if let Some(index) = self.behind {
            forged.extend_from_slice(other(index));
        }
        if let Some(length) = self.cut {
            forged.truncate(length.into());
        }
        Some(forged)
    }

    fn is_misaddressed(&self) -> bool {
        self.address
    }
}
