//! Paths with a rate and a queue: what the wires of the harness do not have by themselves.

use super::{PORT, Pair, Seen, Verdict};
use bytes::Bytes;
use restp_base::flow::{Flow, FlowId, Read};
use restp_base::machine::PathAddress;
use restp_base::random::Stream;
use restp_base::time::{Duration, Time};
use restp_base::units::Rate;
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::rc::Rc;

/// Bytes of a packet beside its payload: ResTP with sequence and mapping 36, UDP and IPv4 28.
pub const HEADERS: u64 = 64;
/// Payload of a full segment in these stories.
pub const SEGMENT: u64 = 1400;

/// One path, both ways alike; the queue is that of the direction from the opener.
#[derive(Clone, Copy, Debug)]
pub struct Link {
    pub rate: Rate,
    /// Round trip without a queue.
    pub rtt: Duration,
    /// What waits longer than this is dropped.
    pub queue: Duration,
    /// Of packets with data.
    pub loss: f64,
}

pub fn link(mbit: u64, rtt_ms: u64) -> Link {
    Link {
        rate: Rate::from_bps(mbit * 1_000_000),
        rtt: Duration::from_millis(rtt_ms),
        queue: Duration::from_millis(rtt_ms.max(50)),
        loss: 0.0,
    }
}

impl Link {
    pub fn losing(self, loss: f64) -> Self {
        Link { loss, ..self }
    }
    /// Payload per second when nothing is wasted.
    pub fn ceiling(&self) -> f64 {
        self.rate.as_bps() as f64 * SEGMENT as f64 / (SEGMENT + HEADERS) as f64
    }
}

/// Path `n` of the opener, from 1.
pub fn client(n: usize) -> SocketAddr {
    SocketAddr::from(([10, 0, n as u8, 1], 0))
}

/// A flow over `links`, each of which is a path; `set` changes the preset.
pub fn over(links: &[Link], preset: &str, set: &[(&str, &str)]) -> (Pair, FlowId) {
    let mut pair = Pair::new(preset, set);
    for (n, link) in (1..).zip(links) {
        pair.delays.insert(client(n), link.rtt / 2);
    }
    pair.rule = rule(links);
    let remote = pair.path(0).remote;
    let path = |n| PathAddress {
        local: client(n),
        remote,
    };
    let flow = pair.ends[0].open(pair.now, path(1), PORT).expect("a free port");
    for n in 2..=links.len() {
        pair.ends[0]
            .add_path(pair.now, flow, path(n), false)
            .expect("several paths");
    }
    (pair, flow)
}

fn rule(links: &[Link]) -> super::Rule {
    let links: BTreeMap<_, _> = (1..).map(client).zip(links.to_vec()).collect();
    let free: Rc<RefCell<BTreeMap<SocketAddr, Time>>> = Rc::default();
    let mut chance = Stream::named(1, "links");
    Box::new(move |seen: &Seen| {
        if seen.from != 0 || seen.payload.is_empty() {
            return Verdict::Pass; // acknowledgements are small, and the way back is empty
        }
        let end = seen.path.local;
        let link = links[&end];
        let lost = chance.chance(link.loss);
        let mut free = free.borrow_mut();
        let start = free.get(&end).copied().unwrap_or_default().max(seen.at);
        if lost || start.since(seen.at) > link.queue {
            return Verdict::Drop;
        }
        let done = start + link.rate.transmission_time(seen.payload.len() as u64 + HEADERS);
        free.insert(end, done);
        Verdict::Late(done.since(seen.at))
    })
}

/// Keeps the writer busy for `span` from the very start; bytes that came out in each of its slices of `bin`.
pub fn bulk(pair: &mut Pair, flow: FlowId, span: Duration, bin: Duration) -> Vec<u64> {
    let data = Bytes::from(super::noise(14_000));
    let begin = pair.now;
    let mut bins = vec![0; (span.as_nanos() / bin.as_nanos()) as usize];
    while pair.now < begin + span {
        while pair.ends[0].write(pair.now, flow, data.clone()).is_ok() {}
        pair.run_for(Duration::from_millis(1));
        let Some(accepted) = pair.accepted() else {
            continue;
        };
        let at = (pair.now.since(begin).as_nanos() - 1) / bin.as_nanos();
        while let Read::Data(data) = pair.ends[1].read(pair.now, accepted) {
            bins[at as usize] += data.len() as u64;
        }
        pair.log.clear();
    }
    bins
}

/// Mbit/s of a count of bytes over `span`.
pub fn mbit(bytes: u64, span: Duration) -> f64 {
    bytes as f64 * 8.0 / span.as_secs_f64() / 1e6
}
