//! What the congestion window, pacing and recovery let out (RFC 5681 §3, RFC 6298 §5).

use super::*;
use crate::ack::AckRatio;
use crate::recovery::Reordering;

#[test]
fn the_window_is_filled_to_the_byte_and_no_further() {
    let mut story = Setup::segments().with_window(3000).established();
    assert_eq!(story.write(5).send(), [1, 2, 3]);
    assert_eq!(story.ack(2).send(), [4]);
    story.set_window(3999);
    assert_eq!(story.send(), []);
    assert_eq!((story.sender.in_flight(), story.sender.window_bytes()), (3, 3999));
}

#[test]
fn one_segment_leaves_however_small_the_window() {
    let mut story = Setup::segments().with_window(10).established();
    assert_eq!(story.write(2).send(), [1]);
}

#[test]
fn data_leaves_room_for_what_an_encoded_packet_adds() {
    let setup = Setup::segments().with(|it| it.reserved_bytes = 2);
    let segment = setup.established().write(2).segment(false).unwrap();
    assert_eq!(segment.payload.map(|data| data.len()), Some(998));
}

#[test]
fn each_of_two_duplicates_lets_one_new_segment_out() {
    let mut story = Setup::segments().with_window(4000).established();
    story.write(10).send();
    assert_eq!(story.ack(1).send(), [5], "limited transmit, RFC 3042");
    assert_eq!(story.ack(1).send(), [6]);
    assert_eq!(story.heard().len(), 2);
}

#[test]
fn a_flight_limit_counts_all_that_is_not_acknowledged() {
    let mut setup = Setup::segments().with_window(4000);
    setup.parameters.limits_outstanding = true;
    let mut story = setup.established();
    assert_eq!(story.write(10).send(), [1, 2, 3, 4]);
    assert_eq!(story.ack(1).ack(1).send(), [], "OP-50");
    story.set_window(4999);
    assert_eq!(story.send(), []);
    story.set_window(5000);
    assert_eq!(story.send(), [5]);
    story.set_window(10);
    assert_eq!(story.ack(6).send(), [6], "nothing is outstanding");
}

#[test]
fn the_third_duplicate_sends_one_segment_whatever_the_window_says() {
    let mut story = Setup::segments().with_window(8000).established();
    story.write(8).send();
    story.ack(1).ack(1);
    story.heard();
    story.set_window(2000);
    assert_eq!(story.at(100).ack(1).send(), [1], "RFC 5681 §3.2 (2)");
    let heard = story.heard();
    let events: Vec<_> = heard.iter().map(|heard| heard.event).collect();
    assert!(matches!(events[0], CongestionEvent::SegmentLost(_)));
    assert_eq!(
        events[1..],
        [CongestionEvent::Duplicate, CongestionEvent::Lost { bytes: 1000 }]
    );
    assert_eq!(heard[2].in_flight_bytes, 6000, "before it was taken for lost");
    assert!(heard[2].in_recovery);
    story.set_window(1000);
    story.sender.retransmit_all();
    assert_eq!(story.send(), [1], "once");
}

#[test]
fn a_report_that_is_no_bare_duplicate_is_no_duplicate() {
    let mut story = Setup::segments().established();
    story.write(5).send();
    for _ in 0..5 {
        story
            .on_report(&AckReport::pointer(1), |peer| peer.is_bare_duplicate = false)
            .unwrap();
    }
    assert_eq!((story.send(), story.heard()), (vec![], vec![]));
}

#[test]
fn a_silence_longer_than_a_timeout_is_reported_once_before_the_next_segment() {
    let idle = |gap_over: u64| {
        let mut story = Setup::segments().established();
        story.write(1).send();
        story.at(100).ack(2);
        story.heard();
        let timeout = story.sender.timeout();
        assert_eq!(timeout, ms(250), "100 + 4 · 37.5");
        story.at(100 + 250 + gap_over).write(2).send();
        story.heard()
    };
    assert_eq!(idle(0), []);
    let heard = idle(1);
    assert_eq!(heard.len(), 1);
    assert_eq!(heard[0].event, CongestionEvent::Idle { gap: ms(251) });
    assert_eq!(heard[0].in_flight_bytes, 0, "RFC 5681 §4.1");
}

/// The acknowledgement of one segment, while `write` and the window say what might have been in flight.
fn limited(setup: Setup, write: usize, backlog: bool) -> bool {
    let mut story = setup.established();
    story.write(write).send();
    story.sender.set_backlog(backlog);
    story.at(100).ack(2);
    let heard = story.heard();
    assert!(matches!(
        heard[0].event,
        CongestionEvent::Acked { bytes: 1000, .. }
    ));
    assert!(!heard[0].in_recovery);
    heard[0].application_limited
}

#[test]
fn the_application_is_the_limit_when_a_segment_more_had_fitted() {
    let window = |bytes| Setup::segments().with_window(bytes);
    assert!(limited(window(2000), 1, false), "RFC 7661 §4");
    assert!(!limited(window(1999), 1, false), "the window was in use");
    assert!(!limited(window(2000), 3, false), "it has more to send");
    assert!(!limited(window(3000), 1, true), "there is more in a queue above");
    let shut = Setup::segments().with_window(9000).with_credit(1);
    assert!(limited(shut, 5, false), "the peer takes no more");
}

#[test]
fn what_waits_to_leave_again_uses_the_window() {
    let mut story = Setup::segments().established();
    story.write(3).send();
    story.sender.retransmit_all();
    story.ack(2);
    assert!(!story.heard()[0].application_limited);
}

/// A rate of a segment each millisecond, and ten of them at once (RFC 9002 §7.7).
#[test]
fn a_paced_sender_leaves_in_a_burst_and_then_at_its_rate() {
    let mut story = Setup::segments().with(|it| it.paces = true).established();
    story.set_rate(Rate::from_bps(8_000_000));
    assert_eq!(story.write(14).send().len(), 11);
    assert_eq!(story.sender.deadline(), Some((at(1), Wakeup::Pacing)));
    assert_eq!(story.sender.pacing_deadline(), Some(at(1)));
    assert_eq!(story.at(1).send(), [12]);
    assert_eq!(story.at(3).send(), [13, 14]);
    assert_eq!(story.sender.pacing_deadline(), None, "nothing waits");
}

#[test]
fn who_stops_waits_for_no_pacing() {
    let mut story = Setup::segments().with(|it| it.paces = true).established();
    story.set_rate(Rate::from_bps(8_000_000));
    story.write(14).send();
    story.sender.stop();
    assert_eq!(story.sender.pacing_deadline(), None);
}

#[test]
fn a_sender_that_does_not_pace_asks_no_rate() {
    let mut story = Setup::segments().established();
    story.set_rate(Rate::from_bps(8));
    assert_eq!(story.write(14).send().len(), 14);
}

#[test]
fn marks_are_answered_once_per_window_of_data() {
    let mut story = Setup::segments().established();
    let mark = |story: &mut Story, pointer| {
        story
            .on_report(&AckReport::pointer(pointer), |peer| peer.echoes_mark = true)
            .unwrap();
        let marked = CongestionEvent::Marked { bytes: 1000 };
        let heard = story.heard();
        let heard: Vec<_> = heard.iter().filter(|heard| heard.event == marked).collect();
        heard.first().map(|heard| heard.in_flight_bytes)
    };
    story.write(4).send();
    assert_eq!(
        mark(&mut story, 2),
        Some(4000),
        "before anything was acknowledged"
    );
    assert!(story.sender.takes_window_reduced(5), "RFC 3168 §6.1.3");
    assert!(!story.sender.takes_window_reduced(6), "CWR once");
    assert_eq!(story.write(3).send(), [5, 6, 7]);
    assert_eq!(mark(&mut story, 4), None);
    assert!(!story.sender.takes_window_reduced(8));
    assert_eq!(mark(&mut story, 5), None, "5 says that the window was reduced");
    assert_eq!(mark(&mut story, 6), Some(3000), "a window later");
    assert!(story.sender.takes_window_reduced(8));
}

#[test]
fn a_mark_during_recovery_is_part_of_the_same_congestion() {
    let mut story = Setup::segments().established();
    story.write(8).send();
    story.ack(1).ack(1).ack(1);
    story.heard();
    story
        .on_report(&AckReport::pointer(1), |peer| peer.echoes_mark = true)
        .unwrap();
    let heard = story.heard();
    assert!(
        heard
            .iter()
            .all(|heard| heard.event == CongestionEvent::Duplicate)
    );
    assert!(
        story.sender.takes_window_reduced(9),
        "the receiver is told all the same"
    );
}

#[test]
fn a_false_report_changes_nothing() {
    let mut story = Setup::segments().established();
    story.write(2).send();
    let refused = story.on_report(&AckReport::pointer(4), |peer| {
        (peer.grant, peer.echoes_mark) = (Some(Grant { at: 4, units: 0 }), true);
    });
    assert_eq!(refused, Err(FalseReport::Unsent { reported: 3, next: 3 }));
    assert_eq!((story.sender.first(), story.sender.credit_edge()), (1, 1001));
    assert!(!story.sender.takes_window_reduced(3));
}

#[test]
fn an_echo_of_the_clock_measures_where_the_pointer_moves() {
    let mut story = Setup::segments().established();
    story.write(2).send();
    let echo = |story: &mut Story, pointer| {
        story
            .on_report(&AckReport::pointer(pointer), |peer| {
                peer.echoed_rtt = Some(ms(60))
            })
            .unwrap();
        story.sender.minimum_rtt().unwrap()
    };
    assert_eq!(echo(story.at(100), 1), ms(100), "a duplicate");
    assert_eq!(echo(&mut story, 2), ms(60), "RFC 7323 §4.1");
}

/// The retransmission is overtaken by its own late original, so later segments are given a quarter of a round trip more.
#[test]
fn what_may_only_be_late_is_lost_at_a_deadline_of_its_own() {
    let mut setup = Setup::segments();
    setup.recovery = RecoveryChoice::Pipe;
    let pipe = PipeParameters {
        reordering: Reordering::Adaptive,
        ..PipeParameters::new(Detail::Sack { max_blocks: 4 })
    };
    let mut story = setup.opening();
    story.sender.agree(
        SEGMENT as u32,
        Recovery::new(RecoveryChoice::Pipe, FastRecovery::NewReno, true, pipe),
    );
    story.sender.establish(at(0), Some(ms(100)), false);
    story.write(5).send();
    assert_eq!(story.at(100).sack(1, 2..5).send(), [1]);
    story.at(105).ack(6);
    assert_eq!(story.at(200).write(5).send(), [6, 7, 8, 9, 10]);
    story.heard();
    assert_eq!(story.at(300).sack(6, 7..10).send(), []);
    let (ripe_at, why) = story.sender.deadline().unwrap();
    assert_eq!((ripe_at, why), (at(325), Wakeup::Retransmission));
    story.heard();
    assert_eq!(story.expire(), TimeoutOutcome::Nothing);
    assert_eq!(story.send(), [6]);
    let heard = story.heard();
    assert!(matches!(heard[0].event, CongestionEvent::SegmentLost(_)));
    assert_eq!(heard[1].event, CongestionEvent::Lost { bytes: 1000 });
    assert_eq!((heard.len(), heard[1].in_flight_bytes), (2, 2000));
    assert_eq!(story.sender.counters().lost_packets, 2);
}

#[test]
fn what_waits_although_the_window_has_room_is_no_limit_of_the_application() {
    let mut story = Setup::segments().with_window(2000).established();
    story.write(3).send();
    story.set_window(9000);
    story.ack(2);
    assert!(!story.heard()[0].application_limited);
}

#[test]
fn a_rate_measured_after_the_application_was_the_limit_says_so() {
    let rate_is_limited = |backlog| {
        let mut story = Setup::segments().established();
        story.sender.set_backlog(backlog);
        story.write(1).send();
        story.at(100).ack(2).write(1).send();
        story.heard();
        story.at(200).ack(3);
        let heard = story.heard();
        let CongestionEvent::Acked { rate: Some(rate), .. } = heard[0].event else {
            panic!("{heard:?}");
        };
        rate.application_limited
    };
    assert!(rate_is_limited(false) && !rate_is_limited(true));
}

#[test]
fn what_is_lost_stays_lost_where_nothing_is_retransmitted() {
    let mut story = Setup::segments().with(|it| it.retransmits = false).established();
    story.write(5).send();
    assert_eq!(story.ack(1).ack(1).ack(1).send(), []);
    assert_eq!(story.sender.counters().lost_packets, 1);
    assert!(story.sender.takes(at(0), 1000), "no repair comes first");
}

#[test]
fn a_retransmission_that_is_overtaken_leaves_once_more() {
    let mut setup = Setup::segments();
    setup.recovery = RecoveryChoice::Pipe;
    let mut story = setup.established();
    story.write(5).send();
    assert_eq!(story.at(100).sack(1, 2..5).send(), [1]);
    assert_eq!(story.write(4).send(), [6, 7, 8, 9]);
    assert_eq!(story.at(200).sack(1, 5..9).send(), [1]);
}

#[test]
fn who_waits_for_pacing_does_not_wait_for_the_peer() {
    let mut story = Setup::segments().with(|it| it.paces = true).established();
    story.set_rate(Rate::from_bps(8_000_000));
    assert_eq!(story.write(14).send().len(), 11);
    assert_eq!(story.ack(12).send(), []);
    assert!(!story.sender.waits_for_peer());
}

#[test]
fn a_fin_after_a_silence_begins_the_wait_for_progress() {
    let mut story = Setup::segments().established();
    story.write(1).send();
    story.at(100).ack(2);
    assert!(story.at(5000).segment(true).is_some());
    assert_eq!(story.sender.progress_at(), at(5000));
}

/// Of each segment that leaves now, after how many an acknowledgement is wanted.
fn ratios(story: &mut Story) -> Vec<u32> {
    std::iter::from_fn(|| story.segment(false))
        .map(|segment| segment.ack_ratio.segments())
        .collect()
}

#[test]
fn segments_ask_for_fewer_acknowledgements_while_much_is_in_flight_and_more_follows() {
    let thinned = |window| {
        let setup = Setup::segments().with_window(window);
        let mut story = setup.with(|it| it.thins_acks = true).established();
        ratios(story.write(80))
    };
    assert_eq!(thinned(31_000), [1; 31]);
    assert_eq!(thinned(65_000)[31..], [&[4; 32][..], &[8, 1]].concat());
    assert_eq!(
        thinned(100_000)[78..],
        [8, 1],
        "nothing waits behind the last one"
    );
    let mut story = Setup::segments().established();
    assert_eq!(ratios(story.write(80)), [1; 80], "unless nobody wants fewer");
}

#[test]
fn the_segment_that_fills_the_window_waits_for_no_ratio_while_the_next_answer_is_far() {
    let thinned = || {
        let setup = Setup::segments().with_window(40_000);
        setup.with(|it| it.thins_acks = true).established()
    };
    assert_eq!(ratios(thinned().write(100))[32..], [4, 4, 4, 4, 4, 4, 4, 1]);
    let after = |answered| {
        let mut story = thinned();
        story.write(100).send();
        ratios(story.at(answered).ack(2))
    };
    // The second segment left with the first: of a round trip of 97.5 ms the rest is more than an eighth, or it is over.
    assert_eq!((after(80), after(100)), (vec![1], vec![4]));
}

/// On a path of 100 ms, and on one of 70 ms.
#[test]
fn nothing_hurries_on_a_long_path_but_the_last_segment() {
    let asked = |rtt: u64| {
        let setup = Setup::segments().with_window(3_000);
        let mut story = setup.with(|it| it.thins_acks = true).established();
        story.write(1).send();
        story.at(rtt).ack(2);
        story.sender.lane.rtt.restart(ms(rtt));
        let mut ask = |segments| {
            story.write(segments);
            let left = std::iter::from_fn(|| story.segment(false));
            left.map(|segment| segment.ack_ratio == AckRatio::UNHURRIED)
                .collect::<Vec<_>>()
        };
        (ask(2), ask(4))
    };
    assert_eq!(
        asked(100),
        (vec![true, false], vec![true]),
        "the window is full, and more waits"
    );
    assert_eq!(asked(70), (vec![false, false], vec![false]));
}

#[test]
fn a_segment_behind_which_data_waits_above_is_not_the_last() {
    let last = |backlog| {
        let mut story = Setup::segments().with(|it| it.thins_acks = true).established();
        story.write(40).sender.set_backlog(backlog);
        ratios(&mut story).pop()
    };
    assert_eq!((last(true), last(false)), (Some(4), Some(1)));
}

#[test]
fn what_the_peer_rebuilds_costs_of_the_window_what_a_retransmission_would_if_it_is_to() {
    let heard = |repairs_cost| {
        let setup = Setup::segments().with(|it| it.repairs_cost = repairs_cost);
        let mut story = setup.established();
        story.write(8).send();
        story.heard();
        for pointer in [2, 3] {
            let report = AckReport::pointer(pointer);
            story
                .on_report(&report, |peer| peer.repaired = pointer as u8 - 1)
                .expect("possible");
        }
        let heard = story.heard().into_iter();
        let acked = |heard: &Heard| matches!(heard.event, CongestionEvent::Acked { .. });
        heard.filter(|heard| !acked(heard)).collect::<Vec<_>>()
    };
    assert_eq!(heard(false), []);
    let events: Vec<_> = heard(true).iter().map(|heard| heard.event).collect();
    assert_eq!(
        events,
        [
            CongestionEvent::Lost { bytes: 1000 },
            CongestionEvent::RecoveryEnded
        ],
        "once per window of data"
    );
    assert_eq!(heard(true)[0].in_flight_bytes, 8000, "before the report");
}

#[test]
fn a_loss_beside_a_repair_of_the_same_window_costs_nothing_more() {
    let mut story = Setup::segments().with(|it| it.repairs_cost = true).established();
    story.write(8).send();
    story
        .on_report(&AckReport::pointer(2), |peer| peer.repaired = 1)
        .expect("possible");
    story.heard();
    for _ in 0..3 {
        story
            .on_report(&AckReport::pointer(2), |peer| peer.repaired = 1)
            .expect("possible");
    }
    assert_eq!(story.send().first(), Some(&2), "it leaves again");
    let is_cut = |heard: &Heard| matches!(heard.event, CongestionEvent::Lost { .. });
    assert!(!story.heard().iter().any(is_cut));
}
