//! Numbers answered one by one (ITP, 2020, §IV): rules (a) and (b), one cut per window, samples on every answer.

use super::*;
use crate::congestion::{CongestionChoice, InterestWindowParams};
use crate::recovery::{Overtaking, ReceiverDriven, Recovery};

/// A consumer's sender, which keeps a chunk's worth of its window for each question.
fn consumer(overtaking: Option<Overtaking>) -> Sender {
    let parameters = SenderParameters {
        framing: Framing::Fixed,
        retransmits: false,
        pointer_only: false,
        ..Setup::segments().parameters
    };
    let controller = CongestionChoice::InterestWindow(InterestWindowParams::default()).build(SEGMENT as u64);
    let recovery = Recovery::ReceiverDriven(ReceiverDriven::new(overtaking));
    let rto = RtoParameters {
        attempts: 8,
        ..RtoParameters::default()
    };
    let mut sender = Sender::new(at(0), 0, 0, parameters, recovery, controller, rto);
    sender.bind_credit(false);
    sender.start_timer();
    sender
}

fn plain() -> Sender {
    consumer(Some(Overtaking { deviations: 0 }))
}

/// Asks as often as the window allows; the numbers that leave.
fn fill(sender: &mut Sender, now: Time) -> Vec<u64> {
    let mut left = Vec::new();
    while sender.may_leave(now, SEGMENT as u64) {
        assert!(sender.write(now, Bytes::from(vec![0; SEGMENT])));
        let Some(Transmission::Segment(segment)) = sender.next(now, false) else {
            panic!("it may leave")
        };
        left.push(segment.number.expect("numbered"));
    }
    left
}

/// A window of eight, all of whose questions left at 300 ms, after round trips of 100 ms.
fn eight() -> Sender {
    let mut sender = plain();
    assert_eq!(fill(&mut sender, at(0)), [0]);
    let mut open: Vec<u64> = vec![0];
    for round in 1..4 {
        let asked = std::mem::take(&mut open);
        for number in asked {
            assert_eq!(sender.on_answer(at(100 * round), number, true), Answer::Awaited);
            open.extend(fill(&mut sender, at(100 * round)));
        }
    }
    assert_eq!(open, (7..15).collect::<Vec<_>>());
    sender
}

#[test]
fn the_window_doubles_each_round_trip_from_one() {
    let sender = eight();
    assert_eq!(sender.window_bytes(), 8 * SEGMENT as u64);
    assert_eq!(sender.smoothed_rtt(), Some(ms(100)));
}

#[test]
fn an_answer_condemns_what_left_before_it_more_than_a_round_trip_ago() {
    let mut sender = eight();
    sender.on_answer(at(400), 8, true);
    assert_eq!(sender.take_lost(), None, "7 left no more than a round trip ago");
    assert_eq!(sender.on_answer(at(401), 9, true), Answer::Awaited);
    assert_eq!(sender.take_lost(), Some(7));
    assert_eq!(sender.take_lost(), None);
}

#[test]
fn a_window_is_cut_once_and_its_first_retransmission_leaves_at_once() {
    let mut sender = eight();
    sender.on_answer(at(401), 9, true);
    assert_eq!([sender.take_lost(), sender.take_lost()], [Some(7), Some(8)]);
    let window = sender.window_bytes();
    assert!(
        (4 * SEGMENT as u64..5 * SEGMENT as u64).contains(&window),
        "half, and growth goes on: {window}"
    );
    assert_eq!(
        fill(&mut sender, at(401)),
        [15],
        "five are in flight, more than the window"
    );
    sender.on_answer(at(402), 11, true);
    assert_eq!(sender.take_lost(), Some(10));
    assert!(sender.window_bytes() > window, "no second cut");
}

#[test]
fn every_answer_is_a_sample_and_a_late_one_too() {
    let mut sender = eight();
    sender.on_answer(at(401), 9, true);
    let before = sender.smoothed_rtt();
    assert_eq!(sender.on_answer(at(600), 7, true), Answer::Late);
    assert!(sender.smoothed_rtt() > before, "300 ms are a sample");
    assert_eq!(sender.on_answer(at(601), 7, true), Answer::Unknown, "once");
    assert_eq!(
        sender.on_answer(at(601), 99, true),
        Answer::Unknown,
        "it never left"
    );
}

#[test]
fn without_rule_b_only_the_timer_finds_losses_and_only_those_that_are_due() {
    let mut sender = consumer(None);
    fill(&mut sender, at(0));
    sender.on_answer(at(100), 0, true);
    assert_eq!(fill(&mut sender, at(100)), [1, 2]);
    sender.on_answer(at(200), 2, true);
    assert_eq!(fill(&mut sender, at(200)), [3, 4]);
    sender.on_answer(at(350), 4, true);
    assert_eq!(sender.take_lost(), None);
    let (due, why) = sender.deadline().expect("a timer");
    assert_eq!(
        (due, why),
        (at(100) + sender.timeout(), Wakeup::Retransmission),
        "that of 1"
    );
    assert_eq!(sender.on_deadline(due), TimeoutOutcome::Lost);
    assert_eq!([sender.take_lost(), sender.take_lost()], [Some(1), None], "not 3");
    assert_eq!(sender.window_bytes(), SEGMENT as u64);
}

#[test]
fn the_timer_doubles_once_per_window_and_eight_in_a_row_are_the_end() {
    let mut sender = plain();
    let mut waits = Vec::new();
    let mut now = at(0);
    loop {
        fill(&mut sender, now);
        let (due, _) = sender.deadline().expect("a timer");
        waits.push(due.since(now).as_millis());
        now = due;
        match sender.on_deadline(now) {
            TimeoutOutcome::GivesUp(silence) => {
                assert_eq!(silence, now.since(at(0)));
                break;
            }
            outcome => assert_eq!(outcome, TimeoutOutcome::Lost),
        }
    }
    assert_eq!(
        waits,
        [1000, 2000, 4000, 8000, 16_000, 32_000, 60_000, 60_000, 60_000]
    );
}

/// Karn: which transmission an answer is for may not be known, as with NDN.
#[test]
fn an_answer_that_is_no_sample_changes_no_estimate() {
    let mut sender = plain();
    fill(&mut sender, at(0));
    assert_eq!(sender.on_answer(at(100), 0, false), Answer::Awaited);
    assert_eq!(sender.smoothed_rtt(), None);
    assert_eq!(sender.window_bytes(), 2 * SEGMENT as u64);
}

/// What was lost is remembered for late answers, though not for ever.
#[test]
fn what_is_known_of_the_lost_is_bounded() {
    let mut sender = plain();
    for round in 0..12_000u64 {
        for number in fill(&mut sender, at(100 * round)).into_iter().skip(1) {
            sender.on_answer(at(100 * round + 99), number, true);
        }
        while sender.take_lost().is_some() {}
        sender.on_deadline(at(100 * round + 99));
    }
    assert!(sender.memory() < 1 << 20, "{} bytes", sender.memory());
}
