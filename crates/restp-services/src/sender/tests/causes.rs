//! Each loss has the cause that the path shows (ResTP §3.6; `docs/services/adaptation.md`).

use super::*;
use restp_base::machine::PathAddress;
use restp_base::observe::{Cause, Loss};
use std::net::SocketAddr;

/// The path carries `count` segments, one at a time, through a queue of so many ms.
fn carry(story: &mut Story, count: u64, queue: u64) {
    for _ in 0..count {
        story.write(1).send();
        story.now += ms(100 + queue);
        let next = story.sender.next_number();
        story.ack(next);
    }
}

/// A path of 100 ms that has carried 20 segments through an empty queue and five through one of 100 ms, these last if it is
/// `full`. The next segment has the number 26, and it is 3.5 s.
fn experienced(full: bool) -> Story {
    let mut setup = Setup::segments().judging(Reordering::Adaptive);
    setup.recovery = RecoveryChoice::Pipe;
    let mut story = setup
        .with(|it| (it.loss_handling, it.pointer_only) = (LossHandling::Adaptive, false))
        .established();
    story.at(500);
    let later = if full { 0 } else { 10 };
    carry(&mut story, 20 - later, 0);
    carry(&mut story, 5, 100);
    carry(&mut story, later, 0);
    assert_eq!(story.now, at(3500));
    let events = story.heard().len();
    assert_eq!(events, 25, "nothing but that they were acknowledged");
    story
}

/// Of twelve segments that leave at 3.5 s the first four are lost, because one proves nothing; those after them have waited `queue`
/// ms.
fn loses_four(queue: u64) -> Story {
    let mut story = experienced(queue > 0);
    story.write(12).send();
    story.at(3600 + queue).sack(26, 30..33);
    story
}

fn cuts(heard: &[Heard]) -> usize {
    let lost = |heard: &&Heard| matches!(heard.event, CongestionEvent::Lost { .. });
    heard.iter().filter(lost).count()
}

fn corruptions(heard: &[Heard]) -> usize {
    let corrupted = |heard: &&Heard| matches!(heard.event, CongestionEvent::Corrupted { .. });
    heard.iter().filter(corrupted).count()
}

#[test]
fn where_the_queue_is_empty_it_is_corruption_which_leaves_again_and_costs_nothing() {
    let mut story = loses_four(0);
    assert_eq!(story.send(), [26, 27, 28, 29]);
    let heard = story.heard();
    assert_eq!((cuts(&heard), corruptions(&heard)), (0, 1));
    assert!(heard.iter().all(|heard| !heard.in_recovery));
    let lost: Vec<_> = heard
        .iter()
        .filter(|heard| heard.event == CongestionEvent::Corrupted { bytes: 4000 })
        .collect();
    assert_eq!(lost[0].in_flight_bytes, 9000, "all but the three that arrived");
}

#[test]
fn corruption_is_told_once_per_window_of_data() {
    let mut story = experienced(false);
    story.write(8).send();
    story.at(3600).sack(26, 27..30);
    story.send();
    story.sack(26, 31..34); // 30 is lost, too
    assert_eq!(corruptions(&story.heard()), 1);
    story.send();
    story.at(3700).ack(34).write(8).send();
    story.at(3800).sack(34, 35..38);
    assert_eq!(corruptions(&story.heard()), 1, "the next window");
}

#[test]
fn where_the_queue_is_full_it_is_congestion_which_cuts_once_per_window_of_data() {
    let mut story = loses_four(100);
    story.send();
    story.sack(26, 34..37); // 33 is lost, too
    let heard = story.heard();
    assert_eq!((cuts(&heard), corruptions(&heard)), (1, 0));
    assert!(heard.last().unwrap().in_recovery, "until it is repaired");
    story.send();
    story.at(3900).ack(38).write(12).send();
    assert!(!story.heard().last().unwrap().in_recovery);
    story.at(4100).sack(38, 42..45);
    assert_eq!(cuts(&story.heard()), 1, "the next window");
}

#[test]
fn a_cut_for_what_was_only_late_is_taken_back_and_no_other() {
    let restored = |queue| {
        let mut story = loses_four(queue);
        story.at(3601 + queue).ack(38); // before it could have left again
        let heard = story.heard();
        let events: Vec<_> = heard.iter().map(|heard| heard.event).collect();
        events.contains(&CongestionEvent::Restored)
    };
    assert!(restored(100));
    assert!(!restored(0), "nothing was cut");
}

#[test]
fn a_cut_of_an_earlier_episode_is_not_taken_back_for_a_later_one() {
    let mut story = loses_four(100);
    story.send();
    story.at(3900).ack(38);
    carry(&mut story, 5, 0);
    story.heard();
    story.write(12).send();
    story.now += ms(100);
    story.sack(43, 47..50);
    story.now += ms(1);
    story.ack(55);
    let events: Vec<_> = story.heard().iter().map(|heard| heard.event).collect();
    assert!(!events.contains(&CongestionEvent::Restored), "{events:?}");
}

/// What the sender says of its losses to whoever observes.
fn observed(story: &mut Story) -> Vec<(u64, Cause)> {
    let nowhere: SocketAddr = "10.0.0.1:1".parse().unwrap();
    let path = PathAddress {
        local: nowhere,
        remote: nowhere,
    };
    let mut losses: Vec<Loss> = Vec::new();
    story.sender.take_losses(|_| path, &mut losses);
    losses
        .iter()
        .map(|loss| (loss.segment.number, loss.cause))
        .collect()
}

#[test]
fn who_observes_hears_the_cause_of_each() {
    for (queue, cause) in [(0, Cause::Corruption), (100, Cause::Congestion)] {
        let mut story = experienced(queue > 0);
        assert_eq!(observed(&mut story), []);
        story.write(12).send();
        story.at(3600 + queue).sack(26, 30..33);
        assert_eq!(
            observed(&mut story),
            [26, 27, 28, 29].map(|number| (number, cause))
        );
    }
}

#[test]
fn what_left_in_a_silence_met_an_outage_and_the_window_stays() {
    let mut story = experienced(false);
    observed(&mut story);
    story.write(3).send();
    assert_eq!(story.expire(), TimeoutOutcome::Nothing);
    assert!(story.sender.is_in_outage());
    story.send();
    let answer = story.now + ms(5000);
    story.now = answer;
    assert_eq!(story.ack(26).send(), [26, 27, 28]);
    let outage = [26, 27, 28].map(|number| (number, Cause::Outage));
    assert_eq!(observed(&mut story), outage);
    let events: Vec<_> = story.heard().iter().map(|heard| heard.event).collect();
    assert_eq!(events, [CongestionEvent::Duplicate], "the window is kept");
    story.now += ms(200);
    story.ack(29).write(8).send();
    story.now += ms(100);
    story.sack(29, 30..33);
    assert_eq!(observed(&mut story), [(29, Cause::Corruption)], "it is over");
}

#[test]
fn a_silence_that_was_a_long_round_trip_is_no_outage() {
    let mut story = experienced(false);
    observed(&mut story);
    story.write(3).send();
    story.expire();
    story.send();
    story.now += ms(50);
    story.ack(27).send();
    story.now += ms(1);
    story.ack(28);
    assert!(!story.sender.is_in_outage());
    story.now += ms(300);
    story.ack(29).write(8).send();
    story.now += ms(100);
    story.sack(29, 30..33);
    assert_eq!(observed(&mut story), [(29, Cause::Corruption)]);
}

fn adaptive() -> Setup {
    Setup::segments().with(|it| it.loss_handling = LossHandling::Adaptive)
}

fn is_timeout(heard: &Heard) -> bool {
    heard.event == CongestionEvent::Timeout { repeated: false }
}

/// Three segments are out, nothing comes back for a timeout, and then an answer says that all of them are missing.
fn after_an_outage() -> Story {
    let mut story = adaptive().established();
    story.write(3).send();
    story.expire();
    story.send();
    assert_eq!(story.at(400).ack(1).send(), [1, 2, 3]);
    assert!(!story.heard().iter().any(is_timeout), "the window is kept");
    story
}

/// Silence once more, and its end: does the window shrink as by a timeout?
fn is_cut_by_silence(story: &mut Story, pointer: u64) -> bool {
    story.expire();
    story.send();
    story.now += ms(100);
    story.ack(pointer);
    assert!(!story.sender.is_in_outage());
    story.heard().iter().any(is_timeout)
}

#[test]
fn silence_before_what_an_outage_cost_has_arrived_is_congestion() {
    let mut story = after_an_outage();
    assert!(is_cut_by_silence(&mut story, 1));
    assert!(is_cut_by_silence(&mut story, 1), "each time");
}

#[test]
fn a_second_outage_after_the_first_was_repaired_keeps_the_window() {
    let mut story = after_an_outage();
    story.at(500).ack(4);
    story.heard();
    story.write(3).send();
    assert!(!is_cut_by_silence(&mut story, 4));
}

/// Cuts for a mark that comes while a hole below three arrivals is repaired.
fn marks_heard_in_repair(handling: LossHandling) -> usize {
    let setup = Setup::segments().with(|it| it.loss_handling = handling);
    let mut story = setup.established();
    story.write(8).send();
    for _ in 0..4 {
        story.ack(2);
    }
    story
        .on_report(&AckReport::pointer(2), |peer| peer.echoes_mark = true)
        .unwrap();
    let heard = story.heard().into_iter();
    heard
        .filter(|heard| matches!(heard.event, CongestionEvent::Marked { .. }))
        .count()
}

#[test]
fn a_mark_counts_while_losses_are_repaired_that_cut_nothing() {
    assert_eq!(marks_heard_in_repair(LossHandling::Adaptive), 1);
    assert_eq!(marks_heard_in_repair(LossHandling::Corruption), 1);
    assert_eq!(marks_heard_in_repair(LossHandling::Congestion), 0, "the loss has");
}

/// Of a full queue while a loss is repaired that cut, and that a controller which starts has borne.
#[test]
fn a_mark_counts_beside_a_loss_that_a_start_has_borne() {
    let marks = |starts_for| {
        let mut story = loses_four(100);
        story.script.lock().unwrap().starts_for = starts_for;
        story
            .on_report(&AckReport::pointer(26), |peer| peer.echoes_mark = true)
            .unwrap();
        let heard = story.heard().into_iter();
        heard
            .filter(|heard| matches!(heard.event, CongestionEvent::Marked { .. }))
            .count()
    };
    assert_eq!([0, 1000].map(marks), [0, 1]);
}

/// One loss proves nothing, unless it left while the queue was filled on purpose; and then the end of the start has answered it, however late it
/// is found: 200 Mbit/s over 60 ms with room for 40 packets had 164 Mbit/s for 187, because what left again last made a neighbour.
#[test]
fn what_left_before_the_end_of_a_start_is_congestion_that_its_end_has_answered() {
    let cut = |starts_for| {
        let mut story = experienced(true);
        story.write(8).send();
        story.script.lock().unwrap().starts_for = starts_for;
        story.at(3700).ack(27);
        story.sack(27, 28..31);
        let heard = story.heard();
        (cuts(&heard), corruptions(&heard))
    };
    assert_eq!([0, 1].map(cut), [(0, 1), (0, 0)]);
}

#[test]
fn what_is_rebuilt_costs_of_the_window_where_causes_are_inferred_too() {
    let mut story = adaptive().with(|it| it.repairs_cost = true).established();
    story.write(8).send();
    for pointer in [2, 3] {
        let report = AckReport::pointer(pointer);
        story
            .on_report(&report, |peer| peer.repaired = pointer as u8 - 1)
            .unwrap();
    }
    let heard = story.heard().into_iter();
    let cuts = heard.filter(|heard| matches!(heard.event, CongestionEvent::Lost { .. }));
    assert_eq!(cuts.count(), 1, "once per window of data");
}
