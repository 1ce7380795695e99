//! Silence taken for an outage (ResTP §3.6, OP-51): one probe per timeout until something is answered.

use super::*;

fn outage() -> Setup {
    Setup::segments().with(|it| it.loss_handling = LossHandling::Outage)
}

/// Three segments are out, and nothing has come back for a timeout: the first probe leaves at 300 ms.
fn silent() -> Story {
    let mut story = outage().established();
    story.write(3).send();
    assert_eq!(story.expire(), TimeoutOutcome::Nothing);
    story
}

#[test]
fn the_last_segment_asks_once_per_timeout_and_nothing_else_leaves() {
    let mut story = silent();
    story.write(1);
    for expiry in [600, 900, 1200] {
        assert!(story.sender.is_in_outage());
        let probe = story.segment(false).unwrap();
        assert_eq!((probe.number, probe.is_new), (Some(3), false));
        assert_eq!(probe.payload.unwrap(), vec![3; SEGMENT]);
        assert_eq!(story.segment(false), None);
        assert_eq!(
            story.retransmission_at(),
            Some(at(expiry)),
            "it does not back off"
        );
        assert_eq!(story.expire(), TimeoutOutcome::Nothing);
    }
    assert_eq!(story.heard(), [], "the window is kept");
    assert_eq!(story.sender.timeouts_in_row(), u32::MAX);
    let counters = story.sender.counters();
    assert_eq!((counters.timeouts, counters.lost_packets), (4, 0));
    assert_eq!(
        (counters.retransmitted_packets, counters.sent_payload_bytes),
        (3, 6000)
    );
}

/// Outage after outage ends with a report that has nothing new to say, `bare` or with data of the peer: how long the timer is after
/// each, and the time after the last.
fn ended_in_vain(story: &mut Story, bare: bool) -> ([u64; 3], u64) {
    let mut now = 400;
    let timers = [(); 3].map(|()| {
        let report = AckReport::pointer(1);
        let heard = story
            .at(now)
            .on_report(&report, |peer| peer.is_bare_duplicate = bare);
        heard.expect("it is true");
        story.send();
        assert!(!story.sender.is_in_outage());
        let at = story.retransmission_at().expect("it runs");
        story.expire();
        assert!(story.sender.is_in_outage());
        story.send();
        let timer = at.since(Time::ZERO).as_millis() - now;
        now += timer + 150;
        timer
    });
    (timers, now)
}

/// A queue of its own questions answered each of them late, and the segment that was missing found it full for ever.
#[test]
fn the_timer_is_doubled_where_outage_after_outage_ends_with_nothing_new() {
    let mut story = silent();
    story.send();
    let (timers, now) = ended_in_vain(&mut story, true);
    assert_eq!(timers, [300, 600, 1200]);
    story.at(now).ack(2).send();
    story.at(now + 10).ack(3).send();
    assert!(!story.sender.is_in_outage());
    assert_eq!(story.retransmission_at(), Some(at(now + 10 + 300)), "progress");
}

/// The way to the peer is down, and the peer goes on sending: as soon as it is back the next probe leaves.
#[test]
fn data_of_the_peer_does_not_double_the_timer_and_a_link_that_is_up_forgets_it() {
    let mut story = silent();
    story.send();
    assert_eq!(ended_in_vain(&mut story, false).0, [300; 3]);
    let mut story = silent();
    story.send();
    let (_, now) = ended_in_vain(&mut story, true);
    story.at(now).sender.on_link_up(at(now));
    assert_eq!(story.retransmission_at(), Some(at(now + 300)));
}

#[test]
fn an_answer_with_nothing_new_ends_it_and_all_leaves_again_under_the_window_as_it_was() {
    let mut story = silent();
    story.send();
    assert_eq!(story.at(399).ack(1).send(), [], "sooner than any round trip");
    assert_eq!(story.at(400).ack(1).send(), [1, 2, 3]);
    assert!(!story.sender.is_in_outage());
    assert_eq!(story.retransmission_at(), Some(at(700)));
    assert_eq!(story.sender.counters().lost_packets, 3);
    assert_eq!(
        story.sender.smoothed_rtt(),
        Some(ms(100)),
        "the silence is no round trip"
    );
}

#[test]
fn what_arrived_before_the_outage_measures_nothing() {
    let mut story = silent();
    story.send();
    story.at(5000).ack(2);
    assert!(!story.sender.is_in_outage());
    assert_eq!(story.sender.smoothed_rtt(), Some(ms(100)));
    assert_eq!(story.send(), [2, 3]);
}

#[test]
fn earlier_segments_that_go_on_arriving_show_that_nothing_was_lost() {
    let mut story = silent();
    story.send();
    assert_eq!(story.at(310).ack(2).send(), [3], "one more probe");
    assert!(story.sender.is_in_outage());
    story.at(320).ack(3);
    assert!(!story.sender.is_in_outage());
    assert_eq!((story.send(), story.sender.counters().lost_packets), (vec![], 0));
    assert_eq!(story.retransmission_at(), Some(at(320) + story.sender.timeout()));
}

#[test]
fn duplicates_that_answer_probes_are_no_sign_of_loss() {
    let mut story = silent();
    story.send();
    story.at(310).ack(2).send();
    story.at(320).ack(3).ack(4);
    assert_eq!(story.write(6).send(), [4, 5, 6, 7, 8, 9]);
    for _ in 0..4 {
        assert_eq!(story.ack(4).send(), [], "two answer probes, two tell of segments");
    }
    assert_eq!(story.ack(4).send(), [4]);
}

#[test]
fn duplicates_after_an_outage_are_not_excused_by_probes_that_were_lost() {
    let mut story = silent();
    story.send();
    story.expire();
    story.send();
    assert_eq!(story.at(700).ack(1).send(), [1, 2, 3]);
    story.at(800).ack(4);
    assert_eq!(story.write(5).send(), [4, 5, 6, 7, 8]);
    assert_eq!(story.ack(4).ack(4).ack(4).send(), [4]);
}

#[test]
fn a_link_that_is_down_is_worth_no_packet_and_the_timer_asks() {
    let mut story = outage().established();
    story.write(2).send();
    story.at(100).sender.on_link_down(at(100));
    story.write(1);
    assert!(story.sender.is_in_outage());
    assert_eq!(story.send(), []);
    assert_eq!(story.retransmission_at(), Some(at(300)));
    let before = story.sender.reports();
    story.at(150).ack(2);
    assert_eq!(
        story.sender.reports(),
        before,
        "it was on its way, and proves nothing"
    );
    assert!(story.sender.is_in_outage());
    story.expire();
    assert_eq!(story.segment(false).unwrap().number, Some(2));
}

#[test]
fn a_link_down_with_nothing_outstanding_is_asked_by_the_next_segment() {
    let mut story = outage().established();
    story.sender.on_link_down(at(0));
    assert!(!story.sender.takes(at(0), 1000));
    assert_eq!(story.write(1).send(), []);
    assert_eq!(story.expire(), TimeoutOutcome::Nothing);
    assert_eq!(story.sender.deadline(), None);
    assert_eq!(story.send(), [1]);
}

#[test]
fn a_link_down_whose_data_is_all_acknowledged_is_asked_by_the_next_segment() {
    let mut story = outage().established();
    story.write(1).send();
    story.sender.on_link_down(at(0));
    story.at(50).write(1).ack(2);
    assert_eq!(story.send(), [2]);
}

#[test]
fn a_link_that_is_back_is_probed_at_once() {
    let mut story = outage().established();
    story.write(3).send();
    story.sender.on_link_down(at(0));
    story.at(200).sender.on_link_up(at(200));
    assert_eq!(story.send(), [3]);
    assert_eq!(story.retransmission_at(), Some(at(500)));
    let mut story = outage().established();
    story.sender.on_link_down(at(0));
    story.sender.on_link_up(at(10));
    assert_eq!(story.sender.deadline(), None);
    assert_eq!(story.write(1).send(), [1], "nothing was outstanding");
}

#[test]
fn links_down_are_nothing_to_a_sender_that_takes_losses_for_congestion() {
    let mut story = Setup::segments().established();
    story.sender.on_link_down(at(0));
    assert_eq!(story.sender.deadline(), None);
    assert_eq!(story.write(1).send(), [1]);
}

#[test]
fn a_path_taken_for_dead_gives_back_what_was_assigned_and_probes_without_back_off() {
    let mut story = Setup::segments().established();
    story.write(2).send();
    story.expire();
    story.send();
    story.sender.assign(at(300), Bytes::from_static(b"x"));
    story.at(310).sender.probe_only(at(310));
    assert!(story.sender.is_in_outage() && story.sender.has_nothing_queued());
    for expiry in [610, 910, 1210] {
        assert_eq!(story.send(), []);
        assert_eq!(story.retransmission_at(), Some(at(expiry)));
        assert_eq!(story.expire(), TimeoutOutcome::Nothing);
        assert_eq!(story.segment(false).unwrap().number, Some(2));
    }
    story.sender.probe_only(at(1215));
    assert_eq!(story.retransmission_at(), Some(at(1510)), "it does already");
}

#[test]
fn a_probed_segment_measures_no_round_trip() {
    let mut story = silent();
    story.send();
    story.at(310).ack(2).send();
    story.at(320).ack(3);
    story.at(330).ack(4);
    assert_eq!(story.sender.smoothed_rtt(), Some(ms(100)));
}

#[test]
fn a_block_that_ends_the_silence_leaves_a_whole_timer() {
    let mut story = outage().established();
    story.write(4).send();
    story.expire();
    story.send();
    story.at(310).ack(2).send();
    story.at(320).sack(2, 3..4);
    assert!(!story.sender.is_in_outage());
    assert_eq!(story.retransmission_at(), Some(at(320) + story.sender.timeout()));
}

#[test]
fn probes_explain_duplicates_of_their_own_pointer_only() {
    let mut story = silent();
    story.send();
    story.at(310).ack(2).send();
    story.at(320).ack(3);
    assert_eq!(story.write(4).send(), [4, 5, 6, 7]);
    assert_eq!(story.ack(3).ack(3).ack(3).send(), [3]);
}

#[test]
fn each_outage_counts_its_own_probes() {
    let mut story = outage().established();
    for first in [1, 4] {
        assert_eq!(story.write(3).send(), [first, first + 1, first + 2]);
        story.expire();
        story.send();
        story.ack(first + 1).send();
        story.ack(first + 2).ack(first + 3);
        assert!(!story.sender.is_in_outage());
    }
    assert_eq!(story.write(6).send(), [7, 8, 9, 10, 11, 12]);
    (0..4).for_each(|_| assert_eq!(story.ack(7).send(), []));
    assert_eq!(story.ack(7).send(), [7], "two duplicates answer probes");
}

/// The end of an outage costs no window, so what was only late gives none back: perhaps the last loss was a true one.
#[test]
fn what_an_outage_had_only_held_up_undoes_no_reduction() {
    let mut setup = outage().judging(Reordering::Adaptive);
    setup.recovery = RecoveryChoice::Pipe;
    let mut story = setup.established();
    story.write(3).send();
    story.expire();
    story.send();
    assert_eq!(story.at(400).ack(1).send(), [1, 2, 3]);
    story.at(410).ack(2);
    let restored = |heard: &Heard| heard.event == CongestionEvent::Restored;
    assert!(!story.heard().iter().any(restored));
}

/// What a lane carried is lost, so that nothing of it is in flight, and a report without news of it may have come by another.
#[test]
fn a_lane_goes_on_asking_when_a_report_brings_no_news_of_it() {
    let (mut story, ..) = lanes::two_lanes([100 * SEGMENT as u64; 2]);
    story.write(2);
    assert_eq!(story.send(), [1, 2]);
    assert_eq!(story.expire(), TimeoutOutcome::Lost);
    story.sender.probe_lane_only(story.now);
    for _ in 0..3 {
        story.expire();
        assert_eq!(story.send(), [2]);
        story.ack(1);
    }
    story.sack(1, 2..3);
    assert_eq!(story.send(), [1]);
}
