//! Stories of paths that share one space of numbers (`numbering = shared`): no packet has a mapping, acknowledgements return by any
//! path, and each path answers for its own losses.

use crate::common::lines::*;
use crate::common::*;
use restp_base::flow::{CloseReason, Flow, FlowId, FlowStats, PathState, Read};
use restp_base::machine::{Event, Input, Machine};
use restp_base::time::Time;
use restp_proto::wire::Flags;
use std::collections::BTreeSet;
use std::net::SocketAddr;

pub(super) const SHARED: &[(&str, &str)] = &[
    ("numbering", "shared"),
    ("scheduling", "fastest-rtt"),
    ("ack", "positive+sack"),
    ("recovery", "pipe"),
    ("pacing", "on"),
    ("window", "256 segments"),
];

pub(super) fn shared() -> (Pair, FlowId, Dead) {
    two_paths("geo-spread", SHARED)
}

/// The bit of the header that asks for shared numbers, counted from the first.
pub(super) const BIT: usize = 2 * 8 + 6;

fn numbers_on(pair: &Pair, n: u8) -> BTreeSet<u32> {
    let of_path = |seen: &&Seen| seen.from == 0 && seen.is_data() && seen.path.local == client(n);
    let sent = pair.log.iter().filter(of_path);
    sent.filter_map(|seen| seen.header.sequence).collect()
}

fn stats(pair: &Pair, side: usize, flow: FlowId) -> FlowStats {
    pair.ends[side].stats(flow).expect("alive")
}

/// How long after `from` path `n` first carried a number that another path had carried before.
fn first_retransmission(pair: &Pair, n: u8, from: Time) -> Option<restp_base::time::Duration> {
    let data = || pair.log.iter().filter(|seen| seen.from == 0 && seen.is_data());
    let elsewhere: BTreeSet<_> = data()
        .filter(|seen| seen.path.local != client(n))
        .map(|seen| seen.header.sequence)
        .collect();
    data()
        .filter(|seen| seen.path.local == client(n) && seen.at >= from)
        .find(|seen| elsewhere.contains(&seen.header.sequence))
        .map(|seen| seen.at.since(from))
}

#[test]
fn both_paths_carry_numbers_of_one_space_and_nothing_is_mapped() {
    let (mut pair, flow, _) = shared();
    let accepted = both_up(&mut pair);
    assert!(pair.transfer(0, (flow, accepted), &noise(600_000), secs(20)));
    let (first, second) = (numbers_on(&pair, 1), numbers_on(&pair, 2));
    assert!(
        first.len() > 50 && second.len() > 50,
        "{} and {}",
        first.len(),
        second.len()
    );
    assert!(first.is_disjoint(&second), "each number leaves by one path");
    assert!(pair.log.iter().all(|seen| seen.header.dss.is_none()));
    assert!(pair.log.iter().all(|seen| seen.header.services.shared_numbers));
    assert!(pair.transfer(1, (flow, accepted), &noise(100_000), secs(20)));
    for (side, flow) in [(0, flow), (1, accepted)] {
        let stats = stats(&pair, side, flow);
        assert_eq!(
            (stats.lost_packets, stats.timeouts, stats.rejected_packets),
            (0, 0, 0)
        );
        assert_eq!(stats.paths.len(), 2);
    }
}

#[test]
fn the_association_ends_with_the_stream_on_every_path() {
    let (mut pair, flow, _) = shared();
    let accepted = both_up(&mut pair);
    pair.write(0, flow, &noise(30_000));
    let now = pair.now;
    pair.ends[0].finish(now, flow);
    pair.run_for(secs(1));
    assert_eq!(pair.read_all(1, accepted).concat(), noise(30_000));
    assert_eq!(pair.ends[1].read(pair.now, accepted), Read::End);
    let now = pair.now;
    pair.ends[1].finish(now, accepted);
    pair.run_for(secs(1));
    let finished = Some(&CloseReason::Finished);
    assert_eq!((pair.closed(0), pair.closed(1)), (finished, finished));
    let fins = pair.log.iter().filter(|seen| seen.header.flags.has(Flags::FIN));
    assert_eq!(fins.count(), 2, "one of each side");
    let now = pair.now;
    pair.ends[0].release(now, flow);
    pair.ends[1].release(now, accepted);
    pair.run_for(secs(200));
    let left = (pair.ends[0].connections(), pair.ends[1].connections());
    assert_eq!(left, (0, 0), "nothing lingers for ever");
}

/// The last acknowledgement is lost with the way back of one path, and the other one, which carries nothing, is dead just then.
#[test]
fn who_has_ended_answers_questions_by_the_path_that_they_come_by() {
    let set = [SHARED, &[("loss", "outage")]].concat();
    let (mut pair, flow, dead) = two_paths("geo-spread", &set);
    let accepted = both_up(&mut pair);
    let now = pair.now;
    pair.ends[1].finish(now, accepted);
    kill(&dead, 2);
    pair.run_for(secs(8));
    dead.borrow_mut().insert((client(1), 1));
    let now = pair.now;
    pair.ends[0].finish(now, flow);
    pair.run_for(secs(2));
    let finished = Some(&CloseReason::Finished);
    assert_eq!((pair.closed(0), pair.closed(1)), (None, finished));
    dead.borrow_mut().retain(|(local, _)| *local == client(1));
    pair.run_for(secs(20));
    assert_eq!(pair.closed(0), finished);
}

#[test]
fn random_losses_on_both_paths_lose_nothing() {
    let mut chance = restp_base::random::Stream::named(3, "losses");
    let (mut pair, flow, _) = shared();
    let accepted = both_up(&mut pair);
    pair.rule = Box::new(move |_| {
        if chance.chance(0.05) {
            Verdict::Drop
        } else {
            Verdict::Pass
        }
    });
    assert!(pair.transfer(0, (flow, accepted), &noise(600_000), secs(60)));
    assert!(pair.transfer(1, (flow, accepted), &noise(300_000), secs(60)));
}

#[test]
fn what_another_path_overtakes_is_not_lost() {
    let (mut pair, flow, _) = shared();
    pair.delays.insert(client(2), MS * 100);
    pair.run_for(secs(1));
    let accepted = pair.accepted().expect("accepted");
    let (_, got) = stream(&mut pair, (flow, accepted), secs(5));
    let stats = stats(&pair, 0, flow);
    assert!(got.len() > 1_000_000, "{}", got.len());
    assert_eq!((stats.lost_packets, stats.retransmitted_packets), (0, 0));
    assert!(numbers_on(&pair, 2).len() > 100);
}

/// Each path loses some of its own, and only its window is cut.
#[test]
fn a_path_answers_for_its_own_losses() {
    let set = [SHARED, &[("scheduling", "round-robin")]].concat();
    let (mut pair, flow, _) = two_paths("geo-spread", &set);
    let accepted = both_up(&mut pair);
    let mut count = 0;
    pair.rule = Box::new(move |seen| {
        let on_second = seen.from == 0 && seen.is_data() && seen.path.local == client(2);
        count += u64::from(on_second);
        if on_second && count.is_multiple_of(50) {
            Verdict::Drop
        } else {
            Verdict::Pass
        }
    });
    stream(&mut pair, (flow, accepted), secs(5));
    let stats = stats(&pair, 0, flow);
    let lost = |n: u8| {
        stats
            .paths
            .iter()
            .find(|path| path.path.local == client(n))
            .map(|path| path.lost_packets)
    };
    assert_eq!(lost(1), Some(0));
    assert!(lost(2) > Some(3), "{stats:?}");
    assert_eq!(stats.timeouts, 0);
}

/// By whichever path a number came last, several in a row took the slower one, and what the faster one had brought was missed.
#[test]
fn acknowledgements_take_turns_where_numbers_come_by_several_paths() {
    let (mut pair, flow, _) = shared();
    let accepted = both_up(&mut pair);
    let before = pair.log.len();
    stream(&mut pair, (flow, accepted), secs(2));
    let log = &pair.log[before..];
    let came: Vec<_> = (log.iter())
        .filter(|seen| seen.from == 0 && seen.is_data())
        .map(|seen| match seen.path.local == client(1) {
            true => (1, seen.at + MS * 10),
            false => (2, seen.at + MS * 20),
        })
        .collect();
    let answers: Vec<_> = (log.iter())
        .filter(|seen| seen.from == 1 && !seen.is_data())
        .map(|seen| (if seen.path.remote == client(1) { 1 } else { 2 }, seen.at))
        .collect();
    let mut since = [Time::ZERO; 2];
    for three in answers.windows(3) {
        let [(path, first), (second, at), (third, _)] = *three else {
            unreachable!()
        };
        since[path - 1] = first;
        if (second, third) == (path, path) {
            let waits = |(by, came): &(usize, Time)| *by != path && since[2 - path] < *came && *came < at;
            assert_eq!(
                came.iter().find(|came| waits(came)),
                None,
                "three by path {path} from {first:?}"
            );
        }
    }
    for n in [1, 2] {
        assert!(
            answers.iter().filter(|(by, _)| *by == n).count() > 100,
            "path {n}"
        );
    }
}

#[test]
fn acknowledgements_return_by_the_other_path_where_one_is_dead() {
    let (mut pair, flow, dead) = shared();
    let accepted = both_up(&mut pair);
    stream(&mut pair, (flow, accepted), secs(1));
    dead.borrow_mut().insert((client(1), 1)); // its way back
    let cut = pair.now;
    let (times, _) = stream(&mut pair, (flow, accepted), secs(3));
    assert!(
        longest_gap(&times, cut) < MS * 200,
        "{:?}",
        longest_gap(&times, cut)
    );
}

#[test]
fn a_path_that_dies_without_notice_is_survived_within_the_bound() {
    let set = [SHARED, &[("scheduling", "round-robin")]].concat();
    for n in [1, 2] {
        let (mut pair, flow, dead) = two_paths("geo-spread", &set);
        let accepted = both_up(&mut pair);
        stream(&mut pair, (flow, accepted), secs(1));
        kill(&dead, n);
        let cut = pair.now;
        let (times, _) = stream(&mut pair, (flow, accepted), secs(5));
        assert!(first_retransmission(&pair, 3 - n, cut).expect("taken over") < MS * 100);
        assert!(
            longest_gap(&times, cut) < MS * 150,
            "path {n}: {:?}",
            longest_gap(&times, cut)
        );
        let states: Vec<_> = pair.events[0]
            .iter()
            .filter_map(|event| match event {
                Event::Path(_, path, state) if path.local == client(n) => Some(*state),
                _ => None,
            })
            .collect();
        // What had arrived before is acknowledged by the other path, and may clear it of the first suspicion.
        assert_eq!(
            states[states.len() - 2..],
            [PathState::Suspect, PathState::Down],
            "{states:?}"
        );
        assert_eq!(
            states.iter().filter(|state| **state == PathState::Down).count(),
            1
        );
        heal(&dead);
        stream(&mut pair, (flow, accepted), secs(2));
        let from = pair.now;
        stream(&mut pair, (flow, accepted), secs(1));
        assert!(carried(&pair, n, from) > 100_000, "path {n} is used again");
    }
}

#[test]
fn a_notice_moves_the_data_at_once() {
    let (mut pair, flow, dead) = shared();
    let accepted = both_up(&mut pair);
    stream(&mut pair, (flow, accepted), secs(1));
    kill(&dead, 1);
    let cut = pair.now;
    let local: SocketAddr = client(1);
    pair.ends[0].handle(cut, Input::PathNotice { local, up: false });
    stream(&mut pair, (flow, accepted), secs(1));
    assert!(first_retransmission(&pair, 2, cut).expect("taken over") <= MS * 25);
}

#[test]
fn an_outage_of_all_paths_is_survived() {
    let (mut pair, flow, dead) = shared();
    let accepted = both_up(&mut pair);
    let (_, before) = stream(&mut pair, (flow, accepted), secs(1));
    kill(&dead, 1);
    kill(&dead, 2);
    let (_, during) = stream(&mut pair, (flow, accepted), secs(10));
    heal(&dead);
    let (_, after) = stream(&mut pair, (flow, accepted), secs(10));
    assert!(after.len() > 1_000_000, "{}", after.len());
    let all = [before, during, after].concat();
    let expected = noise(5600).into_iter().cycle();
    assert!(
        all.iter().copied().eq(expected.take(all.len())),
        "in order and once"
    );
}

#[test]
fn a_flow_whose_paths_are_all_dead_is_given_up() {
    let set = [SHARED, &[("progress-timeout", "2 s")]].concat();
    let (mut pair, flow, dead) = two_paths("geo-spread", &set);
    both_up(&mut pair);
    kill(&dead, 1);
    kill(&dead, 2);
    pair.write(0, flow, &noise(100_000));
    pair.run_for(secs(6));
    assert!(
        matches!(pair.closed(0), Some(CloseReason::TimedOut(_))),
        "{:?}",
        pair.events[0]
    );
    pair.run_for(secs(600));
    assert!(
        pair.closed(1).is_some(),
        "the other end as well: {:?}",
        pair.events[1]
    );
}

#[test]
fn a_path_that_is_removed_is_used_no_more_and_may_be_added_again() {
    let (mut pair, flow, _) = shared();
    let accepted = both_up(&mut pair);
    stream(&mut pair, (flow, accepted), secs(1));
    for _ in 0..3 {
        let now = pair.now;
        let first = line(&pair, 1);
        pair.ends[0].remove_path(now, flow, first).expect("another works");
        let (times, _) = stream(&mut pair, (flow, accepted), secs(1));
        assert!(
            longest_gap(&times, now) < MS * 150,
            "{:?}",
            longest_gap(&times, now)
        );
        assert_eq!(carried(&pair, 1, now + MS), 0);
        let now = pair.now;
        pair.ends[0].add_path(now, flow, first, false).expect("one more");
        stream(&mut pair, (flow, accepted), secs(1));
        let from = pair.now;
        stream(&mut pair, (flow, accepted), secs(1));
        assert!(carried(&pair, 1, from) > 100_000);
    }
    assert_eq!(stats(&pair, 0, flow).timeouts, 0);
}

#[test]
fn a_backup_carries_only_when_no_other_works() {
    let mut pair = Pair::new("geo-spread", SHARED);
    let flow = pair.ends[0]
        .open(pair.now, line(&pair, 1), PORT)
        .expect("a free port");
    let backup = line(&pair, 2);
    pair.ends[0]
        .add_path(pair.now, flow, backup, true)
        .expect("several paths");
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
    let accepted = both_up(&mut pair);
    let from = pair.now;
    stream(&mut pair, (flow, accepted), secs(1));
    assert_eq!(carried(&pair, 2, from), 0);
    kill(&dead, 1);
    stream(&mut pair, (flow, accepted), secs(1));
    let from = pair.now;
    stream(&mut pair, (flow, accepted), secs(1));
    assert!(carried(&pair, 2, from) > 100_000);
}

#[test]
fn a_reader_that_stops_shuts_the_window_and_says_nothing_about_the_paths() {
    let (mut pair, flow, _) = shared();
    let accepted = both_up(&mut pair);
    let data = bytes::Bytes::from(noise(5600));
    for _ in 0..60 {
        while pair.ends[0].write(pair.now, flow, data.clone()).is_ok() {}
        pair.run_for(secs(1));
    }
    let stopped = stats(&pair, 0, flow);
    assert_eq!((stopped.timeouts, stopped.lost_packets), (0, 0));
    let doubt = |event: &&Event| matches!(event, Event::Path(_, _, PathState::Suspect | PathState::Down));
    assert_eq!(pair.events[0].iter().find(doubt), None);
    let (_, got) = stream(&mut pair, (flow, accepted), secs(2));
    assert!(got.len() > 500_000, "{}", got.len());
}

#[test]
fn every_scheduler_carries_everything_by_lanes() {
    for scheduling in ["round-robin", "fastest-rtt", "weighted", "blest", "ecf", "guard"] {
        for congestion in ["newreno", "bbr", "lia"] {
            let set = [SHARED, &[("scheduling", scheduling), ("congestion", congestion)]].concat();
            let (mut pair, flow, _) = two_paths("geo-spread", &set);
            let accepted = both_up(&mut pair);
            assert!(
                pair.transfer(0, (flow, accepted), &noise(400_000), secs(20)),
                "{scheduling} {congestion}"
            );
        }
    }
}

#[test]
fn hot_standby_uses_the_first_path_until_it_fails() {
    let set = [SHARED, &[("paths", "hot-standby"), ("scheduling", "none")]].concat();
    let (mut pair, flow, dead) = two_paths("geo-spread", &set);
    let accepted = both_up(&mut pair);
    let from = pair.now;
    stream(&mut pair, (flow, accepted), secs(1));
    assert_eq!(carried(&pair, 2, from), 0);
    kill(&dead, 1);
    stream(&mut pair, (flow, accepted), secs(1));
    let from = pair.now;
    stream(&mut pair, (flow, accepted), secs(1));
    assert!(carried(&pair, 2, from) > 100_000);
}

#[test]
fn a_dead_first_path_delays_the_set_up_by_no_more_than_its_head_start() {
    let (mut pair, flow, dead) = shared();
    kill(&dead, 1);
    pair.run_for(MS * 100);
    assert!(pair.events[0].contains(&Event::Connected(flow)));
    heal(&dead);
    pair.run_for(secs(3));
    let accepted = pair.accepted().expect("accepted");
    let from = pair.now;
    stream(&mut pair, (flow, accepted), secs(1));
    assert!(carried(&pair, 1, from) > 100_000, "it has joined");
}

#[test]
fn a_mark_slows_the_path_that_it_came_by() {
    let set = [SHARED, &[("ecn", "on")]].concat();
    let (mut pair, flow, _) = two_paths("geo-spread", &set);
    let accepted = both_up(&mut pair);
    stream(&mut pair, (flow, accepted), secs(1));
    pair.mark_next = 20;
    stream(&mut pair, (flow, accepted), secs(2));
    assert_eq!(stats(&pair, 0, flow).lost_packets, 0);
    let cwr = pair
        .log
        .iter()
        .filter(|seen| seen.from == 0 && seen.header.flags.has(Flags::CWR));
    let paths: BTreeSet<_> = cwr.map(|seen| seen.path.local).collect();
    assert!(!paths.is_empty(), "the receiver hears of it");
    let echoes = |seen: &&Seen| seen.from == 1 && seen.header.flags.has(Flags::ECE);
    let last = pair.log.iter().rfind(echoes).map(|seen| seen.at);
    assert!(
        last.is_some_and(|last| pair.now.since(last) > secs(1)),
        "and stops saying so"
    );
}
