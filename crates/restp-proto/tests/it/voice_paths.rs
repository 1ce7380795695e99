//! Stories of telephony over two paths on which a retransmission comes too late: what one of them loses the other rebuilds, by the
//! sliding window code (RFC 8681).

use crate::common::call::{Call, FRAME};
use crate::common::lines::*;
use crate::common::*;
use restp_base::flow::{Flow, FlowStats, PathState};
use restp_base::machine::Event;
use restp_base::random::Stream;
use restp_base::time::{Duration, Time};
use restp_proto::wire::Fec;

const VOICE: &[(&str, &str)] = &[
    ("paths", "spreading"),
    ("numbering", "shared"),
    ("scheduling", "round-robin"),
    ("reliability", "partial+fec"),
    ("deadline", "200 ms"),
];
const DEADLINE: Duration = Duration::from_millis(200);
/// A round trip of 250 ms: a retransmission comes after 395 ms.
const FAR: Duration = Duration::from_millis(125);
const NEAR: Duration = Duration::from_millis(30);
/// By then it is known what is lost.
const KNOWN: u64 = 1000;

/// Each path loses `share` of the packets of side 0, in bursts of `burst` in the mean (Gilbert's channel), beside what dead ones drop.
fn losing(call: &mut Call, seed: u64, share: f64, burst: f64) {
    let mut draw = Stream::named(seed, "voice");
    let mut bad = [false; 2];
    let mut rule = std::mem::replace(&mut call.pair.rule, Box::new(|_| Verdict::Pass));
    call.pair.rule = Box::new(move |seen| {
        let verdict = rule(seen);
        if seen.from != 0 || verdict == Verdict::Drop {
            return verdict;
        }
        let bad = &mut bad[usize::from(seen.path.local == client(2))];
        let (ends, begins) = (1.0 / burst, share / (1.0 - share) / burst);
        *bad = draw.chance(if *bad { 1.0 - ends } else { begins });
        if *bad { Verdict::Drop } else { verdict }
    });
}

fn independent(call: &mut Call, seed: u64, share: f64) {
    losing(call, seed, share, 1.0 / (1.0 - share));
}

fn calling(set: &[(&str, &str)]) -> (Call, Dead) {
    Call::over_two(FAR, &[VOICE, set].concat())
}

/// Encoded packets that left by path `n` since `from`.
fn encoded(call: &Call, n: u8, from: Time) -> usize {
    let log = call.pair.log.iter();
    let of = |seen: &&Seen| seen.is_encoded() && seen.from == 0 && seen.at >= from;
    log.filter(of).filter(|seen| seen.path.local == client(n)).count()
}

fn stats(call: &Call, side: usize) -> FlowStats {
    let flow = [call.flow, call.accepted][side];
    call.pair.ends[side].stats(flow).expect("alive")
}

fn suspected(call: &Call) -> usize {
    let events = call.pair.events[0].iter();
    let is_suspect = |event: &&Event| matches!(event, Event::Path(_, _, PathState::Suspect));
    events.filter(is_suspect).count()
}

#[test]
fn what_a_path_loses_is_rebuilt_with_half_as_many_encoded_packets() {
    for seed in 0..3 {
        let (mut call, _) = calling(&[("fec-redundancy", "50")]);
        independent(&mut call, seed, 0.05);
        call.speak(3000);
        let in_time = call.in_time(0, DEADLINE);
        assert!(in_time >= 2985, "{in_time} of 3000 (99.5 %)");
        assert!(call.is_in_order());
        let each = [1, 2].map(|n| encoded(&call, n, Time::ZERO));
        assert!(each[0] + each[1] <= 1501, "{each:?}");
        assert!(each[0].abs_diff(each[1]) < 150, "{each:?}");
        let (speaker, listener) = (stats(&call, 0), stats(&call, 1));
        assert_eq!(speaker.retransmitted_packets, 0);
        assert_eq!(speaker.encoded_packets as usize, each[0] + each[1]);
        assert!(listener.repaired_packets > 100, "{}", listener.repaired_packets);
    }
}

#[test]
fn bursts_of_one_path_are_rebuilt_by_the_other() {
    for seed in 0..3 {
        let (mut call, _) = calling(&[]);
        losing(&mut call, seed, 0.05, 3.0);
        call.speak(6000);
        let in_time = call.in_time(KNOWN, DEADLINE);
        assert!(
            in_time >= 4975,
            "{in_time} of 5000 (99.5 %), {} {}",
            encoded(&call, 1, Time::ZERO),
            encoded(&call, 2, Time::ZERO)
        );
        assert!(
            suspected(&call) < 20,
            "{}: a burst may last for a timeout, and not more",
            suspected(&call)
        );
    }
}

/// The half that it would have carried until that shows, and not all of it.
#[test]
fn a_path_that_dies_takes_little_with_it_and_is_used_again() {
    for n in [1, 2] {
        let (mut call, dead) = calling(&[]);
        independent(&mut call, 1, 0.05);
        call.speak(KNOWN);
        kill(&dead, n);
        let died = call.pair.now;
        call.speak(500);
        heal(&dead);
        call.speak(1000);
        let from = call.pair.now;
        call.speak(100);
        let in_time = call.in_time(KNOWN, DEADLINE);
        assert!(in_time >= 1576, "{in_time} of 1600");
        let late = died + FAR * 5;
        assert!(
            carried(&call.pair, n, late) < carried(&call.pair, 3 - n, late),
            "path {n} is left"
        );
        assert!(carried(&call.pair, n, from) > 40 * 160, "path {n} is used again");
    }
}

/// The other path brings all that it carries, so that nothing is missing, and yet it is left as soon as one whose losses show.
#[test]
fn a_path_whose_losses_are_all_rebuilt_is_found_dead_all_the_same() {
    for (n, one_way) in [(1, true), (1, false), (2, true), (2, false)] {
        let (mut call, dead) = calling(&[]);
        losing(&mut call, 1, 0.1, 5.0);
        call.speak(KNOWN);
        call.pair.rule = Box::new({
            let dead = dead.clone();
            move |seen| {
                let end = [seen.path.local, seen.path.remote][seen.from];
                match dead.borrow().contains(&(end, seen.from)) {
                    true => Verdict::Drop,
                    false => Verdict::Pass,
                }
            }
        });
        call.speak(50);
        let (before, first) = (suspected(&call), call.heard.len());
        dead.borrow_mut().insert((client(n), 0));
        if !one_way {
            kill(&dead, n);
        }
        let died = call.pair.now;
        call.speak(100);
        assert!(
            call.heard.len() >= first + 99,
            "{} of 100",
            call.heard.len() - first
        );
        assert!(suspected(&call) > before, "path {n}");
        let left = carried(&call.pair, n, died + FAR * 2 * 2 + FRAME * 5);
        assert!(left <= 3 * 162, "{left} bytes went to path {n}");
    }
}

#[test]
fn nothing_is_encoded_where_a_retransmission_is_in_time() {
    let (mut call, _) = Call::over_two(NEAR, VOICE);
    independent(&mut call, 1, 0.05);
    call.speak(2000);
    assert_eq!(stats(&call, 0).encoded_packets, 0);
    assert!(call.in_time(0, DEADLINE) >= 1990);
}

#[test]
fn redundancy_leaves_by_the_path_that_carries_no_data() {
    let (mut call, _) = calling(&[("scheduling", "fastest-rtt")]);
    call.pair.delays.insert(client(2), FAR + MS * 5);
    call.speak(50);
    independent(&mut call, 1, 0.05);
    let from = call.pair.now;
    call.speak(2000);
    let (first, second) = (encoded(&call, 1, from), encoded(&call, 2, from));
    assert!(second > 900 && first < 20, "{first} {second}");
    assert!(call.in_time(0, DEADLINE) >= 2040);
}

#[test]
fn a_path_without_losses_is_found_so_and_nothing_is_encoded_any_more() {
    let (mut call, _) = calling(&[]);
    call.speak(5000);
    let from = call.pair.now;
    call.speak(500);
    assert_eq!((encoded(&call, 1, from), encoded(&call, 2, from)), (0, 0));
    assert_eq!(suspected(&call), 0);
}

/// What a peer says that it has rebuilt is no more than an acknowledgement of it.
#[test]
fn a_peer_that_lies_about_what_it_has_rebuilt_changes_nothing_for_others() {
    let (mut call, _) = calling(&[]);
    independent(&mut call, 1, 0.05);
    call.speak(200);
    for range in [0xFF_FFFF, 0x80_3FFF, 1 << 14, 0x3FFF, 0x7F_FFFF] {
        call.pair.forge(1, b"", |header| {
            header.fec = Some(Fec { kind: 3, range });
        });
        call.speak(20);
    }
    call.speak(500);
    let in_time = call.in_time(300, DEADLINE);
    assert!(in_time >= 495, "{in_time} of 500");
    assert!(stats(&call, 0).memory_bytes < 1 << 20);
}
