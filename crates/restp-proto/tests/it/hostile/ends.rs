//! Beginnings and ends that go wrong: peers that vanish, answers that are lost, resets that are guessed.

use crate::common::*;
use restp_base::flow::{CloseReason, Flow, Read};
use restp_base::machine::Event;
use restp_base::time::Duration;
use restp_proto::wire::{Flags, Services};

fn secs(n: u64) -> Duration {
    Duration::from_secs(n)
}

/// Opens, writes both ways, finishes on both sides; everything after the first `heard` packets is lost.
fn vanish(preset: &str, set: &[(&str, &str)], heard: usize) -> usize {
    let mut pair = Pair::new(preset, set);
    let mut count = 0;
    pair.rule = Box::new(move |_| {
        count += 1;
        if count > heard {
            Verdict::Drop
        } else {
            Verdict::Pass
        }
    });
    let flow = pair.open();
    pair.run_for(Duration::from_millis(100));
    let _ = pair.ends[0].write(pair.now, flow, vec![1; 1000].into());
    pair.run_for(Duration::from_millis(100));
    let accepted = pair.accepted();
    if let Some(accepted) = accepted {
        pair.write(1, accepted, &[2; 1000]);
        pair.ends[1].finish(pair.now, accepted);
    }
    pair.run_for(Duration::from_millis(100));
    pair.ends[0].finish(pair.now, flow);
    let sent = pair.log.len();
    pair.run_for(secs(3_600));
    assert!(
        pair.closed(0).is_some(),
        "{preset}: the opener ends after {heard} packets"
    );
    pair.ends[0].release(pair.now, flow);
    if let Some(accepted) = accepted {
        assert!(
            pair.closed(1).is_some(),
            "{preset}: the acceptor ends after {heard} packets"
        );
        pair.ends[1].release(pair.now, accepted);
    }
    pair.run_for(secs(130));
    let held = pair.ends.each_ref().map(|end| end.connections());
    assert_eq!(held, [0, 0], "{preset}: nothing is kept after {heard} packets");
    assert!(
        pair.log.len() < 500,
        "{preset}: {} packets to nobody",
        pair.log.len()
    );
    sent
}

#[test]
fn a_peer_that_vanishes_at_any_packet_is_given_up_and_forgotten() {
    let three_way = &[("connection", "three-way")][..];
    for (preset, set) in [
        ("3wh-arq", &[][..]),
        ("cubic", &[]),
        ("default", &[("outage-timeout", "15 s")]),
        ("unrel", &[]),
        ("unrel", three_way),
    ] {
        let all = vanish(preset, set, usize::MAX);
        for heard in 0..=all + 4 {
            vanish(preset, set, heard);
        }
    }
}

#[test]
fn a_lingering_end_answers_data_whose_acknowledgement_was_lost() {
    let mut pair = Pair::new("3wh-arq", &[]);
    let (flow, accepted) = pair.connect();
    pair.ends[1].finish(pair.now, accepted);
    pair.run_for(secs(1));
    // The last data and the FIN arrive; every answer to them is lost for a while.
    pair.rule = silent(1);
    pair.write(0, flow, b"last");
    pair.ends[0].finish(pair.now, flow);
    pair.run_for(secs(2));
    assert_eq!(pair.closed(1), Some(&CloseReason::Finished));
    pair.rule = Box::new(|_| Verdict::Pass);
    pair.run_for(secs(10));
    assert_eq!(pair.closed(0), Some(&CloseReason::Finished));
}

#[test]
fn without_numbers_both_sides_learn_of_the_end_at_once() {
    let mut pair = Pair::new("unrel", &[("connection", "three-way")]);
    let (flow, accepted) = pair.connect();
    pair.ends[0].finish(pair.now, flow);
    pair.run_for(secs(1));
    assert!(pair.events[1].contains(&Event::Readable(accepted)));
    assert_eq!(pair.ends[1].read(pair.now, accepted), Read::End);
    let late = pair.log.last().unwrap().header.clone();
    pair.forge(0, b"overtaken by the FIN", |header| {
        header.flags = Flags::NONE;
        header.source = late.source;
    });
    assert_eq!(
        pair.ends[1].read(pair.now, accepted),
        Read::End,
        "no data after the end"
    );
    pair.ends[1].finish(pair.now, accepted);
    pair.run_for(secs(1));
    assert_eq!(pair.closed(0), Some(&CloseReason::Finished));
    assert_eq!(pair.closed(1), Some(&CloseReason::Finished));
}

#[test]
fn without_retransmissions_a_lost_fin_is_waited_for_as_long_as_any_silence() {
    for set in [&[("connection", "three-way")][..], &[]] {
        let mut pair = Pair::new("unrel", set);
        let flow = pair.open();
        pair.run_for(secs(1));
        pair.write(0, flow, b"x");
        pair.run_for(secs(300)); // a side that only sends may hear nothing for long
        assert_eq!(pair.closed(0), None);
        pair.rule = Box::new(|seen| {
            if seen.is(Flags::FIN) {
                Verdict::Drop
            } else {
                Verdict::Pass
            }
        });
        pair.ends[0].finish(pair.now, flow);
        pair.run_for(secs(59));
        assert_eq!(pair.closed(0), None, "an answer may still come");
        pair.run_for(secs(2));
        assert_eq!(pair.closed(0), Some(&CloseReason::Finished));
    }
}

#[test]
fn without_feedback_who_was_asked_for_a_flow_is_idle_only_when_it_sends_no_more() {
    let mut pair = Pair::new("unrel", &[("connection", "three-way")]);
    let (flow, accepted) = pair.connect();
    for _ in 0..60 {
        pair.write(1, accepted, b"on");
        pair.run_for(secs(5));
    }
    assert_eq!(pair.read_all(0, flow).len(), 60);
    assert_eq!(pair.closed(1), None, "five minutes, in which it heard nothing");
    pair.run_for(secs(56));
    assert!(
        matches!(pair.closed(1), Some(CloseReason::TimedOut(_))),
        "a minute idle (OP-35)"
    );
}

#[test]
fn two_ends_that_lost_each_others_fin_do_not_keep_each_other_alive() {
    let mut pair = Pair::new(
        "unrel",
        &[
            ("connection", "three-way"),
            ("congestion", "newreno"),
            ("ack", "positive"),
        ],
    );
    let (flow, accepted) = pair.connect();
    pair.rule = Box::new(|seen| {
        if seen.header.flags.has(Flags::FIN) {
            Verdict::Drop
        } else {
            Verdict::Pass
        }
    });
    pair.ends[0].finish(pair.now, flow);
    pair.ends[1].finish(pair.now, accepted);
    pair.run_for(secs(120));
    assert_eq!(pair.closed(0), Some(&CloseReason::Finished));
    assert_eq!(pair.closed(1), Some(&CloseReason::Finished));
}

#[test]
fn without_retransmissions_many_lost_segments_are_not_many_attempts() {
    let mut pair = Pair::new(
        "unrel",
        &[
            ("connection", "three-way"),
            ("congestion", "newreno"),
            ("ack", "positive"),
            ("rto-ceiling", "2 s"),
        ],
    );
    let (flow, accepted) = pair.connect();
    pair.rule = lose_all_data();
    for _ in 0..50 {
        pair.write(0, flow, b"lost");
        pair.run_for(secs(2));
        pair.forge(1, b"", |_| {}); // the peer is there
    }
    assert_eq!(pair.closed(0), None);
    pair.rule = Box::new(|_| Verdict::Pass);
    pair.write(0, flow, b"found");
    pair.run_for(secs(10));
    assert_eq!(pair.read_all(1, accepted), [&b"found"[..]]);
}

#[test]
fn resets_count_only_with_the_right_numbers() {
    let mut pair = Pair::new("3wh-arq", &[]);
    let (flow, accepted) = pair.connect();
    pair.write(0, flow, b"x");
    pair.run_for(secs(1));
    let before = pair.ends[1].stats(accepted).unwrap().rejected_packets;
    let guesses = [1 << 16, 1 << 20, 1 << 31, u32::MAX, 0x8000_0001];
    for wrong in guesses {
        for both in [false, true] {
            pair.forge(0, b"", |header| {
                header.flags = Flags::RST | Flags::ACK;
                let place = if both {
                    &mut header.acknowledgement
                } else {
                    &mut header.sequence
                };
                *place = place.map(|number| number.wrapping_add(wrong));
            });
        }
    }
    pair.forge(0, b"", |header| {
        (header.flags, header.acknowledgement) = (Flags::RST, None);
    });
    let after = pair.ends[1].stats(accepted).unwrap().rejected_packets;
    assert_eq!(after - before, 2 * guesses.len() as u64 + 1);
    assert_eq!(pair.closed(1), None);
    pair.forge(0, b"", |header| header.flags = Flags::RST | Flags::ACK);
    assert_eq!(pair.closed(1), Some(&CloseReason::Reset));
}

/// RFC 9293 §3.10.7.4: in SYN-RECEIVED a reset is judged by its number alone, as its sender has heard none of ours.
#[test]
fn a_reset_from_syn_sent_ends_the_half_open_connection_and_a_guessed_one_does_not() {
    let nothing_arrives_at_the_client = || -> Rule {
        Box::new(|seen| match seen.from {
            0 => Verdict::Pass,
            _ => Verdict::Drop,
        })
    };
    for preset in ["3wh-arq", "default", "opt-arq", "geo-spread"] {
        let mut pair = Pair::new(preset, &[]);
        pair.rule = nothing_arrives_at_the_client();
        let flow = pair.open();
        pair.run_for(secs(1));
        assert_eq!(pair.ends[1].connections(), 1, "{preset}");
        let syn = pair.log[0].header.clone();
        for wrong in [1 << 5, 1 << 16, 1 << 31, u32::MAX - 1] {
            pair.forge(0, b"", |header| {
                (header.flags, header.mp) = (Flags::RST, None);
                header.sequence = syn.sequence.map(|number| number.wrapping_add(wrong));
            });
        }
        assert_eq!(pair.ends[1].connections(), 1, "{preset}: guessed");
        pair.ends[0].abort(pair.now, flow);
        pair.run_for(secs(1));
        assert_eq!(pair.ends[1].connections(), 0, "{preset}: the peer's own");
        let reset = pair.log.iter().rfind(|seen| seen.is(Flags::RST)).unwrap();
        assert_eq!(
            reset.header.acknowledgement, None,
            "there is nothing to acknowledge"
        );
    }
}

#[test]
fn an_answer_to_a_syn_that_acknowledges_something_else_is_refused() {
    let mut pair = Pair::new("3wh-arq", &[]);
    pair.rule = silent(1);
    pair.open();
    pair.run_for(secs(1));
    for flags in [Flags::SYN | Flags::ACK, Flags::RST | Flags::ACK] {
        pair.forge(1, b"", |header| {
            header.flags = flags;
            header.acknowledgement = header.acknowledgement.map(|number| number.wrapping_add(1));
        });
    }
    assert_eq!(pair.events[0], []);
    pair.forge(1, b"", |header| header.flags = Flags::RST | Flags::ACK);
    assert_eq!(pair.closed(0), Some(&CloseReason::Refused));
}

#[test]
fn both_ends_may_open_towards_each_other_at_once() {
    let both = || config("3wh-arq", &[]).listen(PORT, restp_proto::Acceptance::Any);
    let mut pair = Pair::of(both(), both());
    let path = [pair.path(0), pair.path(1)];
    let opened = [0, 1].map(|side| pair.ends[side].open(pair.now, path[side], PORT).unwrap());
    pair.run_for(secs(1));
    for (side, opened) in opened.into_iter().enumerate() {
        let events = &pair.events[side];
        assert!(events.contains(&Event::Connected(opened)), "{events:?}");
        assert!(
            events.iter().any(|event| matches!(event, Event::Accepted(_))),
            "{events:?}"
        );
        assert_eq!(pair.ends[side].connections(), 2);
    }
}

#[test]
fn the_ports_of_a_lingering_connection_are_not_taken_again_before_its_time() {
    let mut pair = Pair::new("3wh-arq", &[]);
    let (flow, accepted) = pair.connect();
    let syn = pair.log[0].bytes();
    pair.ends[1].finish(pair.now, accepted); // the acceptor finishes first, so it lingers
    pair.run_for(secs(1));
    pair.ends[0].finish(pair.now, flow);
    pair.run_for(secs(1));
    pair.ends[1].release(pair.now, accepted);
    pair.ends[0].release(pair.now, flow);
    pair.run_for(secs(1));
    let events = pair.events[1].len();
    pair.inject(1, &syn);
    pair.run_for(secs(1));
    assert_eq!((pair.ends[1].connections(), pair.events[1].len()), (1, events));
    pair.run_for(secs(60));
    assert_eq!(pair.ends[1].connections(), 0);
    pair.inject(1, &syn);
    assert_eq!(
        pair.ends[1].connections(),
        1,
        "after two segment lifetimes they are free"
    );
}

#[test]
fn a_request_for_other_services_between_known_ports_is_corrected_seldom_and_ends_nothing() {
    let other = Services::of(&composition("3wh-arq", &[]).check().unwrap());
    let mut pair = Pair::new("default", &[]);
    let (flow, accepted) = pair.connect();
    pair.write(0, flow, b"x");
    pair.run_for(secs(1));
    assert_eq!(pair.read_all(1, accepted), [&b"x"[..]]);
    let before = pair.log.len();
    for _ in 0..100 {
        pair.forge(0, b"", |header| {
            (header.services, header.flags, header.acknowledgement) = (other, Flags::SYN, None);
        });
        pair.run_for(Duration::from_millis(10));
    }
    let answers = pair.log[before..].iter().filter(|seen| seen.from == 1).count();
    assert!((4..=6).contains(&answers), "in a second: {answers}");
    assert!(pair.transfer(0, (flow, accepted), &[7; 20_000], secs(5)));
    assert_eq!((pair.closed(0), pair.closed(1)), (None, None));
}
