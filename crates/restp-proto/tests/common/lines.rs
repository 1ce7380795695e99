//! Two lines between one pair of hosts, each with a switch, and what a test asks of them.

use super::*;
use restp_base::flow::{Flow, FlowId, PathState, Read};
use restp_base::machine::{Event, PathAddress};
use restp_base::time::{Duration, Time};
use std::cell::RefCell;
use std::collections::BTreeSet;
use std::net::SocketAddr;
use std::rc::Rc;

pub const MS: Duration = Duration::from_millis(1);

pub fn secs(n: u64) -> Duration {
    Duration::from_secs(n)
}

/// Path `n` of the client: its own local address towards the one address of the server.
pub fn line(pair: &Pair, n: u8) -> PathAddress {
    PathAddress {
        local: client(n),
        remote: pair.path(0).remote,
    }
}

pub fn client(n: u8) -> SocketAddr {
    SocketAddr::from(([10, 0, n, 1], 0))
}

pub const SPREAD: &[(&str, &str)] = &[
    ("scheduling", "fastest-rtt"),
    ("ack", "positive+sack"),
    ("recovery", "pipe"),
    ("pacing", "on"),
    ("window", "256 segments"),
];

/// Which paths drop everything, each direction by itself: (client's address, from side).
pub type Dead = Rc<RefCell<BTreeSet<(SocketAddr, usize)>>>;

/// Two paths of 10 and 20 ms one way, and a switch for each direction of each.
pub fn two_paths(preset: &str, set: &[(&str, &str)]) -> (Pair, FlowId, Dead) {
    let mut pair = Pair::new(preset, set);
    pair.delays.insert(client(2), MS * 20);
    let dead = Dead::default();
    let rule = dead.clone();
    pair.rule = Box::new(move |seen| {
        let end = if seen.from == 0 {
            seen.path.local
        } else {
            seen.path.remote
        };
        if rule.borrow().contains(&(end, seen.from)) {
            Verdict::Drop
        } else {
            Verdict::Pass
        }
    });
    let (first, second) = (line(&pair, 1), line(&pair, 2));
    let flow = pair.ends[0].open(pair.now, first, PORT).expect("a free port");
    pair.ends[0]
        .add_path(pair.now, flow, second, false)
        .expect("several paths");
    (pair, flow, dead)
}

pub fn kill(dead: &Dead, n: u8) {
    dead.borrow_mut().extend([(client(n), 0), (client(n), 1)]);
}
pub fn heal(dead: &Dead) {
    dead.borrow_mut().clear();
}

/// Both paths are up, on both sides.
pub fn both_up(pair: &mut Pair) -> FlowId {
    pair.run_for(MS * 200);
    let up = |events: &[Event]| {
        events
            .iter()
            .filter(|event| matches!(event, Event::Path(_, _, PathState::Up)))
            .count()
    };
    assert_eq!(
        (up(&pair.events[0]), up(&pair.events[1])),
        (2, 2),
        "{:?}",
        pair.events
    );
    pair.accepted().expect("accepted")
}

/// What side 0 has sent on path `n` since `from`.
pub fn sent_on(pair: &Pair, n: u8, from: Time) -> impl Iterator<Item = &Seen> {
    let sent = pair
        .log
        .iter()
        .filter(move |seen| seen.from == 0 && seen.at >= from);
    sent.filter(move |seen| seen.path.local == client(n))
}

/// Bytes of its payload.
pub fn carried(pair: &Pair, n: u8, from: Time) -> usize {
    sent_on(pair, n, from).map(|seen| seen.payload.len()).sum()
}

/// Keeps the writer busy and the reader reading for `span`; the moments at which data came out, and its bytes.
pub fn stream(pair: &mut Pair, flows: (FlowId, FlowId), span: Duration) -> (Vec<Time>, Vec<u8>) {
    let until = pair.now + span;
    let (mut times, mut got) = (Vec::new(), Vec::new());
    let data = bytes::Bytes::from(noise(5600));
    while pair.now < until {
        while pair.ends[0].write(pair.now, flows.0, data.clone()).is_ok() {}
        pair.run_for(MS);
        while let Read::Data(data) = pair.ends[1].read(pair.now, flows.1) {
            times.push(pair.now);
            got.extend_from_slice(&data);
        }
    }
    (times, got)
}

/// How long after `from` path `n` first carried something that another path had carried before.
pub fn first_reinjection(pair: &Pair, n: u8, from: Time) -> Option<Duration> {
    let number = |seen: &Seen| {
        seen.header
            .dss
            .and_then(|dss| dss.mapping)
            .map(|mapping| mapping.dsn)
    };
    let data = || pair.log.iter().filter(|seen| seen.from == 0 && seen.is_data());
    let before: BTreeSet<_> = data()
        .filter(|seen| seen.path.local != client(n))
        .filter_map(number)
        .collect();
    let on_it = data().filter(|seen| seen.path.local == client(n) && seen.at >= from);
    let again = on_it.filter(|seen| number(seen).is_some_and(|number| before.contains(&number)));
    again.map(|seen| seen.at.since(from)).next()
}

/// The longest time without data for the reader from `from` on.
pub fn longest_gap(times: &[Time], from: Time) -> Duration {
    let later: Vec<_> = times.iter().filter(|at| **at >= from).collect();
    let first = later.first().map_or(secs(999), |at| at.since(from));
    later
        .windows(2)
        .map(|pair| pair[1].since(*pair[0]))
        .fold(first, Duration::max)
}
