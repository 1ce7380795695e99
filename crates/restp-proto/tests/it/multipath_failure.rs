//! Stories of paths that fail, are refused, return, or are given up (ResTP §3.4; OP-54).

use crate::common::lines::*;
use crate::common::*;
use restp_base::flow::{CloseReason, Flow, FlowId, PathState, Read};
use restp_base::machine::{Event, Input, Machine, PathAddress};
use restp_base::time::{Duration, Time};
use restp_proto::wire::Flags;
use std::cell::Cell;
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::rc::Rc;

/// The bound of docs/services/path-management.md: max(2 RTT, 30 ms) from the first unanswered packet, and one delay of the
/// surviving path. Segments leave in bursts, a round trip apart: the cut comes at any moment between two of them.
#[test]
fn a_path_that_dies_without_notice_is_survived_within_the_bound() {
    let phases = (0..20).step_by(4);
    for (ways, phase) in [&[0usize, 1][..], &[0], &[1]]
        .into_iter()
        .flat_map(|ways| phases.clone().map(move |phase| (ways, phase)))
    {
        let (mut pair, flow, dead) = two_paths("geo-spread", SPREAD);
        let accepted = both_up(&mut pair);
        let (_, before) = stream(&mut pair, (flow, accepted), secs(2) + MS * phase);
        dead.borrow_mut()
            .extend(ways.iter().map(|from| (client(1), *from)));
        let cut = pair.now;
        let (times, after) = stream(&mut pair, (flow, accepted), secs(2));
        // What left up to a delay of 10 ms before the cut arrives, and its answer does not if answers are lost.
        let from = if ways.contains(&1) { cut - MS * 10 } else { cut };
        let is_lost = |seen: &&Seen| seen.verdict == Verdict::Drop || ways.contains(&1);
        let unanswered = sent_on(&pair, 1, from)
            .filter(is_lost)
            .find(|seen| seen.is_data())
            .expect("the sender does not stop by itself");
        assert!(unanswered.at <= cut + MS * 20, "within a round trip");
        // RTT 20 ms: 40 ms from the first packet without an answer, then 20 ms on the other path.
        // Where only its answer was lost the data was there: what then waits is the shared window, for an answer to the
        // retransmission and one more delay.
        let arrived = unanswered.verdict == Verdict::Pass;
        let window = if arrived { 20 + 20 } else { 0 };
        let gap = longest_gap(&times, unanswered.at);
        assert!(
            gap <= MS * (40 + 20 + window + 2),
            "{gap:?} with {ways:?} dead, {phase} ms"
        );
        let all = [before, after].concat();
        let expected: Vec<u8> = noise(5600).into_iter().cycle().take(all.len()).collect();
        assert!(all == expected, "nothing lost, nothing twice");
        assert!(
            pair.events[0]
                .iter()
                .any(|event| matches!(event, Event::Path(_, _, PathState::Suspect)))
        );
    }
}

#[test]
fn a_pair_of_addresses_that_the_lower_layer_refuses_is_left_at_once_and_no_other() {
    let (mut pair, flow, dead) = two_paths("geo-spread", SPREAD);
    let accepted = both_up(&mut pair);
    stream(&mut pair, (flow, accepted), secs(1));
    kill(&dead, 1);
    let cut = pair.now;
    let refused = line(&pair, 1);
    for _ in 0..3 {
        pair.ends[0].handle(cut, Input::Refused(refused));
    }
    stream(&mut pair, (flow, accepted), secs(1));
    assert!(first_reinjection(&pair, 2, cut).expect("taken over") <= MS);
    let down: Vec<_> = pair.events[0]
        .iter()
        .filter_map(|event| match event {
            Event::Path(_, path, PathState::Down) => Some(*path),
            _ => None,
        })
        .collect();
    assert_eq!(down, [refused], "said once, of that path");
}

#[test]
fn a_refusal_on_the_only_path_that_works_is_left_to_its_timer() {
    let (mut pair, flow, dead) = two_paths("geo-spread", SPREAD);
    let accepted = both_up(&mut pair);
    kill(&dead, 2);
    stream(&mut pair, (flow, accepted), secs(5));
    let refused = line(&pair, 1);
    pair.ends[0].handle(pair.now, Input::Refused(refused));
    let from = pair.now;
    stream(&mut pair, (flow, accepted), secs(1));
    assert!(carried(&pair, 1, from) > 100_000, "it goes on");
}

#[test]
fn an_association_ends_when_its_last_path_is_given_up_while_others_are_still_dialled() {
    let (mut pair, flow, dead) = two_paths("geo-spread", &[SPREAD, &[("progress-timeout", "2 s")]].concat());
    kill(&dead, 2); // it never joins, and is dialled for ever
    pair.run_for(secs(1));
    assert!(pair.events[0].contains(&Event::Connected(flow)));
    kill(&dead, 1);
    pair.write(0, flow, &noise(100_000));
    pair.run_for(secs(4));
    assert!(
        matches!(pair.closed(0), Some(CloseReason::TimedOut(_))),
        "{:?}",
        pair.closed(0)
    );
}

const ALL: &[(u8, u8)] = &[(1, 2), (2, 1), (2, 2)];

/// Two addresses at both ends, a path between the first ones and for each of `others`, and a switch for the link of the client's first.
/// One path was never measured by the server: data completed its set-up, later by as much as nobody knows.
fn crossed(
    others: &[(u8, u8)],
    numbering: &str,
    scheduling: &str,
) -> (Pair, (FlowId, FlowId), Rc<Cell<bool>>) {
    let set = [
        ("numbering", numbering),
        ("paths", "spreading"),
        ("scheduling", scheduling),
    ];
    let mut pair = Pair::new("default", &set);
    let to = |local, last| PathAddress {
        local: client(local),
        remote: SocketAddr::from(([10, 9, 0, last], 0)),
    };
    let dead = Rc::new(Cell::new(false));
    let dies = dead.clone();
    pair.rule = Box::new(move |seen| {
        let ends = [seen.path.local, seen.path.remote];
        let is_confirmation = !seen.is_data() && !seen.header.flags.has(Flags::SYN);
        let is_early = seen.at < Time::ZERO + MS * 200 && ends[1] != to(1, 1).remote;
        if dies.get() && ends.contains(&client(1)) || seen.from == 0 && is_early && is_confirmation {
            Verdict::Drop
        } else {
            Verdict::Pass
        }
    });
    pair.delays.insert(client(2), MS * 20);
    let flow = pair.ends[0].open(pair.now, to(1, 1), PORT).expect("a free port");
    for (local, last) in others {
        pair.ends[0]
            .add_path(pair.now, flow, to(*local, *last), false)
            .expect("several paths");
    }
    pair.write(0, flow, &noise(100_000));
    pair.run_for(MS * 300);
    let accepted = pair.accepted().expect("accepted");
    (pair, (flow, accepted), dead)
}

/// The server sends a little for `span`, which never fills its fastest path: the longest time in which the client read nothing.
fn longest_silence(pair: &mut Pair, (flow, accepted): (FlowId, FlowId), span: Duration) -> Duration {
    let until = pair.now + span;
    let (mut longest, mut last) = (Duration::ZERO, pair.now);
    while pair.now < until {
        pair.write(1, accepted, &noise(1000));
        pair.run_for(MS * 5);
        longest = longest.max(pair.now.since(last));
        while let Read::Data(_) = pair.ends[0].read(pair.now, flow) {
            last = pair.now;
        }
    }
    longest
}

/// A link dies, and with it two paths. The one that carried nothing was never measured, so its timer began with three seconds: what it
/// took over from the other waited for that. What leaves again by others does not wait for a timer either, which takes 200 ms at least.
#[test]
fn what_shares_an_address_with_a_silent_path_is_asked_before_it_takes_over() {
    for numbering in ["per-path", "shared"] {
        // All of it by the fastest path, or some by each.
        for (scheduling, others) in [
            ("fastest-rtt", ALL),
            ("round-robin", ALL),
            ("round-robin", &[(1, 2), (2, 2)]),
        ] {
            let (mut pair, flows, dead) = crossed(others, numbering, scheduling);
            longest_silence(&mut pair, flows, secs(1));
            dead.set(true);
            let gap = longest_silence(&mut pair, flows, secs(2));
            assert!(gap < MS * 100, "{numbering}, {scheduling}, {others:?}: {gap:?}");
        }
    }
}

#[test]
fn a_path_that_is_doubted_for_another_is_told_so_and_is_up_again_once_it_answers() {
    let (mut pair, flows, dead) = crossed(ALL, "per-path", "fastest-rtt");
    longest_silence(&mut pair, flows, secs(1));
    pair.events[1].clear();
    dead.set(true);
    longest_silence(&mut pair, flows, MS * 100);
    dead.set(false);
    longest_silence(&mut pair, flows, secs(2));
    let mut told: BTreeMap<_, Vec<_>> = BTreeMap::new();
    for event in &pair.events[1] {
        if let Event::Path(_, path, state) = event {
            told.entry(*path).or_default().push(*state);
        }
    }
    assert!(told.len() >= 2, "{told:?}");
    for states in told.values() {
        assert_eq!(
            (states.first(), states.last()),
            (Some(&PathState::Suspect), Some(&PathState::Up))
        );
    }
}

#[test]
fn a_notice_moves_the_data_within_one_delay() {
    let (mut pair, flow, dead) = two_paths("geo-spread", SPREAD);
    let accepted = both_up(&mut pair);
    stream(&mut pair, (flow, accepted), secs(1));
    kill(&dead, 1);
    let cut = pair.now;
    pair.ends[0].handle(
        cut,
        Input::PathNotice {
            local: client(1),
            up: false,
        },
    );
    stream(&mut pair, (flow, accepted), secs(1));
    assert!(
        first_reinjection(&pair, 2, cut).expect("taken over") <= MS,
        "one delay later it is there"
    );
    assert!(
        pair.events[0]
            .iter()
            .any(|event| matches!(event, Event::Path(_, _, PathState::Down)))
    );
}

/// The variation of its round trips comes to nothing, and a lone packet is answered 5 ms later than one of two.
#[test]
fn a_steady_path_as_long_as_the_shortest_timer_is_not_suspected() {
    let (mut pair, flow, _) = two_paths("geo-spread", SPREAD);
    pair.delays = [(client(1), MS * 101), (client(2), MS * 200)].into();
    pair.run_for(secs(2));
    let accepted = pair.accepted().expect("accepted");
    for message in 0..100 {
        pair.write(0, flow, &noise(100));
        if message % 10 < 9 {
            pair.write(0, flow, &noise(1400)); // mostly two at once, at times one
        }
        pair.run_for(MS * 300);
        pair.read_all(1, accepted);
    }
    let suspect = |event: &&Event| matches!(event, Event::Path(_, _, PathState::Suspect));
    assert_eq!(pair.events[0].iter().find(suspect), None);
    assert_eq!(pair.ends[0].stats(flow).expect("alive").timeouts, 0);
}

#[test]
fn a_path_that_returns_is_used_again() {
    for notice in [false, true] {
        let (mut pair, flow, dead) = two_paths("geo-spread", SPREAD);
        let accepted = both_up(&mut pair);
        stream(&mut pair, (flow, accepted), secs(1));
        kill(&dead, 1);
        stream(&mut pair, (flow, accepted), secs(20));
        heal(&dead);
        let now = pair.now;
        if notice {
            pair.ends[0].handle(
                now,
                Input::PathNotice {
                    local: client(1),
                    up: true,
                },
            );
        }
        stream(&mut pair, (flow, accepted), secs(2));
        let from = pair.now;
        stream(&mut pair, (flow, accepted), secs(1));
        assert!(carried(&pair, 1, from) > 100_000, "notice {notice}");
        let states: Vec<_> = pair.events[0]
            .iter()
            .filter_map(|event| match event {
                Event::Path(_, path, state) if path.local == client(1) => Some(*state),
                _ => None,
            })
            .collect();
        assert_eq!(
            states,
            [PathState::Up, PathState::Suspect, PathState::Down, PathState::Up]
        );
    }
}

#[test]
fn a_wrong_notice_about_the_only_path_costs_a_few_timeouts() {
    let mut pair = Pair::new("geo-spread", SPREAD);
    let (flow, accepted) = pair.connect();
    pair.run_for(secs(1)); // nothing is outstanding that could ask
    let local = pair.path(0).local;
    let now = pair.now;
    pair.ends[0].handle(now, Input::PathNotice { local, up: false });
    assert!(pair.transfer(0, (flow, accepted), b"it works all the same", secs(2)));
}

#[test]
fn the_end_is_said_on_a_path_that_was_reported_down_when_there_is_no_other() {
    let mut pair = Pair::new("geo-spread", SPREAD);
    let (flow, accepted) = pair.connect();
    pair.ends[0].finish(pair.now, flow);
    pair.run_for(secs(1));
    let local = pair.path(0).local;
    let now = pair.now;
    pair.ends[0].handle(now, Input::PathNotice { local, up: false });
    pair.ends[1].finish(now, accepted);
    pair.run_for(secs(60));
    let finished = Some(&CloseReason::Finished);
    assert_eq!((pair.closed(0), pair.closed(1)), (finished, finished));
}

#[test]
fn a_path_that_carries_one_direction_only_does_not_say_its_end_for_ever() {
    let outage = [SPREAD, &[("loss", "outage")]].concat();
    let (mut pair, flow, dead) = two_paths("geo-spread", &outage);
    let accepted = both_up(&mut pair);
    stream(&mut pair, (flow, accepted), secs(1));
    dead.borrow_mut().insert((client(2), 1)); // its answers are lost, and it is not known yet
    let now = pair.now;
    pair.ends[0].finish(now, flow);
    pair.ends[1].finish(now, accepted);
    pair.run_for(secs(10));
    pair.ends[0].release(pair.now, flow);
    pair.ends[1].release(pair.now, accepted);
    pair.run_for(secs(120));
    assert_eq!((pair.ends[0].connections(), pair.ends[1].connections()), (0, 0));
}

#[test]
fn what_a_path_carried_that_was_given_up_is_placed_on_the_one_that_comes_back() {
    let (mut pair, flow, dead) = two_paths("geo-spread", SPREAD);
    let accepted = both_up(&mut pair);
    kill(&dead, 1);
    kill(&dead, 2);
    pair.write(0, flow, &noise(5_000));
    pair.run_for(secs(20));
    heal(&dead);
    kill(&dead, 1);
    pair.run_for(secs(20));
    assert_eq!(pair.read_all(1, accepted).concat(), noise(5_000));
}

/// The attempt that lost the race of the first paths sends resets while the same addresses already carry the join.
#[test]
fn the_loser_of_the_race_can_be_removed_as_soon_as_it_has_joined() {
    let (mut pair, flow, _) = two_paths("geo-spread", SPREAD);
    pair.delays.insert(client(1), MS * 60); // slower than the head start: the second wins after 65 ms
    pair.run_for(MS * 250);
    let accepted = pair.accepted().expect("over the second path");
    let resets = |seen: &&Seen| seen.path.local == client(1) && seen.header.flags.has(Flags::RST);
    assert_eq!(pair.log.iter().filter(resets).count(), 2, "the third is due");
    let (first, second) = (line(&pair, 1), line(&pair, 2));
    let now = pair.now;
    pair.ends[0]
        .remove_path(now, flow, first)
        .expect("the second works");
    assert!(
        pair.ends[0].remove_path(now, flow, second).is_err(),
        "it is the last"
    );
    let from = now + MS * 500; // the last resets have left
    stream(&mut pair, (flow, accepted), secs(2));
    assert_eq!(carried(&pair, 1, from), 0);
    assert!(carried(&pair, 2, from) > 100_000);
    let up = |event: &&Event| matches!(event, Event::Path(_, _, PathState::Up));
    assert_eq!(pair.events[0].iter().filter(up).count(), 2, "no third path");
}

/// It took the flow along that went by a path which the lower layer had called down, wrongly.
#[test]
fn a_path_that_does_not_work_can_be_removed_while_another_may_come_back() {
    let (mut pair, flow, _) = two_paths("geo-spread", SPREAD);
    let accepted = both_up(&mut pair);
    let (first, second) = (line(&pair, 1), line(&pair, 2));
    let now = pair.now;
    for path in [first, second] {
        let notice = Input::PathNotice {
            local: path.local,
            up: false,
        };
        pair.ends[0].handle(now, notice);
    }
    pair.ends[0]
        .remove_path(now, flow, first)
        .expect("the second may come back");
    assert!(
        pair.ends[0].remove_path(now, flow, second).is_err(),
        "it is the last"
    );
    pair.write(0, flow, b"by the second");
    pair.run_for(secs(5));
    assert_eq!(pair.read_all(1, accepted).concat(), b"by the second");
}

#[test]
fn a_path_that_the_application_removes_is_used_no_more_and_may_be_added_again() {
    let (mut pair, flow, _) = two_paths("geo-spread", SPREAD);
    let accepted = both_up(&mut pair);
    stream(&mut pair, (flow, accepted), secs(1));
    let (first, second) = (line(&pair, 1), line(&pair, 2));
    pair.ends[0]
        .remove_path(pair.now, flow, first)
        .expect("the second works");
    let from = pair.now + MS * 500; // the last resets have left
    stream(&mut pair, (flow, accepted), secs(2));
    assert_eq!(carried(&pair, 1, from), 0);
    assert!(carried(&pair, 2, from) > 100_000);
    let now = pair.now;
    assert!(
        pair.ends[0].remove_path(now, flow, first).is_err(),
        "it is none any more"
    );
    assert!(
        pair.ends[0].remove_path(now, flow, second).is_err(),
        "it is the last"
    );
    pair.ends[0]
        .add_path(now, flow, first, false)
        .expect("several paths");
    stream(&mut pair, (flow, accepted), secs(1));
    let from = pair.now;
    stream(&mut pair, (flow, accepted), secs(1));
    assert!(carried(&pair, 1, from) > 50_000);
}
