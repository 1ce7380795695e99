//! Stories of paths whose largest packet is not known (RFC 8899).

use crate::common::lines::{both_up, client, two_paths};
use crate::common::*;
use restp_base::flow::{Flow, FlowId};
use restp_base::machine::{Input, Machine};
use restp_base::time::{Duration, Time};
use restp_proto::wire::Header;
use std::cell::Cell;
use std::rc::Rc;

const DISCOVER: &[(&str, &str)] = &[("mtu-discovery", "on"), ("window", "40 segments")];
const MS: Duration = Duration::from_millis(1);

/// A network that drops what is longer than this and must not be cut.
fn narrow(pair: &mut Pair, bytes: usize) -> Rc<Cell<usize>> {
    let most = Rc::new(Cell::new(bytes));
    let limit = most.clone();
    pair.rule = Box::new(move |seen| {
        if seen.bytes().len() > limit.get() && !seen.may_fragment {
            Verdict::Drop
        } else {
            Verdict::Pass
        }
    });
    most
}

/// Moves data for `span`, byte for byte; the longest time 100 kB took.
fn stream(pair: &mut Pair, flows: (FlowId, FlowId), span: Duration) -> Duration {
    let (until, data) = (pair.now + span, noise(100_000));
    let mut longest = Duration::ZERO;
    while pair.now < until {
        let from = pair.now;
        assert!(pair.transfer(0, flows, &data, MS * 100_000));
        longest = longest.max(pair.now.since(from));
    }
    longest
}

/// The longest payload of the data that side 0 sent from `from` on.
fn longest(pair: &Pair, from: Time) -> usize {
    let data = pair
        .log
        .iter()
        .filter(|seen| seen.from == 0 && seen.is_data() && seen.at >= from);
    data.map(|seen| seen.payload.len()).max().expect("data")
}

fn questions(pair: &Pair) -> usize {
    let asked = pair.log.iter().filter(|seen| seen.from == 0 && seen.header.probe);
    asked.filter(|seen| seen.payload.len() > 2).count()
}

fn lost_data(pair: &Pair) -> usize {
    let data = pair.log.iter().filter(|seen| seen.is_data());
    data.filter(|seen| seen.verdict == Verdict::Drop).count()
}

#[test]
fn an_ordinary_path_is_asked_once_and_full_segments_follow() {
    let mut pair = Pair::new("default", DISCOVER);
    let flows = pair.connect();
    stream(&mut pair, flows, MS * 500);
    assert_eq!((longest(&pair, Time::ZERO), questions(&pair)), (1400, 1));
}

#[test]
fn a_path_of_1280_bytes_loses_questions_and_no_data() {
    let mut pair = Pair::new("default", DISCOVER);
    narrow(&mut pair, 1232);
    let flows = pair.connect();
    stream(&mut pair, flows, MS * 15_000);
    let found = longest(&pair, pair.now - MS * 500);
    let header = 12 + 4 + 8; // base, window, numbers
    assert!(found + header <= 1232 && 1232 - (found + header) < 14, "{found}");
    assert_eq!(lost_data(&pair), 0);
}

#[test]
fn without_discovery_the_segment_is_what_the_composition_says() {
    let mut pair = Pair::new("default", &[("mtu-discovery", "off")]);
    let flows = pair.connect();
    stream(&mut pair, flows, MS * 100);
    assert_eq!((longest(&pair, Time::ZERO), questions(&pair)), (1400, 0));
}

/// RFC 8899 §4.3. What is out there has its numbers and cannot be made smaller: it crosses in pieces.
#[test]
fn a_path_that_becomes_narrower_stalls_for_some_timers_and_not_for_ever() {
    for (preset, longest_pause) in [("default", 3000), ("resilient", 1500)] {
        let mut pair = Pair::new(preset, DISCOVER);
        let most = narrow(&mut pair, 1500);
        let flows = pair.connect();
        stream(&mut pair, flows, MS * 1000);
        most.set(1232);
        let pause = stream(&mut pair, flows, MS * 5000);
        assert!(pause <= MS * longest_pause, "{preset}: {pause:?}");
        let from = pair.now;
        let usual = stream(&mut pair, flows, MS * 1000);
        assert!(usual <= MS * 200, "{preset}: {usual:?}");
        assert!(longest(&pair, from) <= 1232, "{preset}");
    }
}

#[test]
fn a_path_that_is_down_for_a_minute_keeps_its_size() {
    let mut pair = Pair::new("resilient", DISCOVER);
    let most = narrow(&mut pair, 1500);
    let flows = pair.connect();
    stream(&mut pair, flows, MS * 1000);
    most.set(0);
    pair.write(0, flows.0, &noise(30_000));
    pair.run_for(MS * 60_000);
    most.set(1500);
    pair.run_for(MS * 2000);
    assert!(pair.read_all(1, flows.1).concat() == noise(30_000));
    let from = pair.now;
    stream(&mut pair, flows, MS * 1000);
    assert_eq!(longest(&pair, from), 1400);
}

#[test]
fn a_message_that_is_longer_than_the_path_is_known_to_carry_may_be_cut() {
    let mut pair = Pair::new("par-arq", DISCOVER);
    narrow(&mut pair, 1232);
    let flows = pair.connect();
    pair.write(0, flows.0, &noise(1400));
    pair.run_for(MS * 100);
    assert_eq!(pair.read_all(1, flows.1), [noise(1400)]);
    assert_eq!(lost_data(&pair), 0);
}

#[test]
fn the_narrowest_of_several_paths_rules_their_segments() {
    let (mut pair, flow, _) = two_paths("geo-spread", &[("mtu-discovery", "on")]);
    pair.rule = Box::new(|seen| {
        let limit = if seen.path.local == client(2) || seen.path.remote == client(2) {
            1300
        } else {
            1500
        };
        if seen.bytes().len() > limit {
            Verdict::Drop
        } else {
            Verdict::Pass
        }
    });
    let accepted = both_up(&mut pair);
    stream(&mut pair, (flow, accepted), MS * 15_000);
    let largest = longest(&pair, pair.now - MS * 500);
    assert!((1200..1280).contains(&largest), "{largest}");
    assert_eq!(lost_data(&pair), 0);
}

/// By its number a question or an answer repeats something; one that does not is a stranger's guess.
#[test]
fn forged_probes_are_rejected_and_counted() {
    let mut pair = Pair::new("default", DISCOVER);
    let flows = pair.connect();
    stream(&mut pair, flows, MS * 100);
    let sample = pair
        .log
        .iter()
        .rev()
        .find(|seen| seen.from == 0 && seen.is_data())
        .expect("data")
        .clone();
    let before = pair.ends[1].stats(flows.1).expect("there").rejected_packets;
    for (ahead, length) in [(0, 2), (0, 1400), (100, 2), (1 << 20, 700)] {
        let header = Header {
            probe: true,
            sequence: sample
                .header
                .sequence
                .map(|number| number.wrapping_add(2000 + ahead)),
            ..sample.header.clone()
        };
        let forged = Seen {
            header,
            payload: noise(length).into(),
            ..sample.clone()
        };
        let mut datagram = contiguous(pair.path(1), forged.bytes());
        pair.ends[1].handle(pair.now, Input::Datagram(&mut datagram));
    }
    let rejected = pair.ends[1].stats(flows.1).expect("there").rejected_packets;
    assert_eq!(rejected - before, 4);
    stream(&mut pair, flows, MS * 100);
}
