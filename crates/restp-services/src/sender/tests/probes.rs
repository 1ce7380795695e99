//! Encoded packets (ResTP §3.5.8) and questions about the largest segment (RFC 8899).

use super::*;
use crate::reliability::{Encoded, FecParameters};

/// Encoded packets follow 25 ms after the first segment: a quarter of a round trip.
fn encoding(setup: Setup) -> Story {
    let mut story = setup.established();
    story
        .sender
        .encode_by(FecEncoder::new(FecParameters::default(), None, true));
    story
}

fn encoded(story: &mut Story) -> Encoded {
    match story.sender.next(story.now, false) {
        Some(Transmission::Encoded(encoded)) => encoded,
        other => panic!("{other:?}"),
    }
}

#[test]
fn an_encoded_packet_leaves_at_a_deadline_of_its_own() {
    let mut story = encoding(Setup::segments());
    story.write(2).send();
    assert_eq!(story.sender.deadline(), Some((at(25), Wakeup::Encoding)));
    assert!(story.sender.encoder().is_some());
    let packet = encoded(story.at(25));
    assert_eq!((packet.first, packet.range, packet.payload.len()), (1, 2, 1002));
    assert_eq!(story.sender.next_number(), 3, "it takes no number");
}

#[test]
fn the_fin_closes_the_group() {
    let mut story = encoding(Setup::segments());
    story.write(1).send();
    assert_eq!(story.segment(true).unwrap().number, Some(2));
    assert_eq!(encoded(&mut story).range, 2);
}

#[test]
fn an_encoded_packet_takes_room_of_data() {
    let mut story = encoding(Setup::segments().with_window(4500));
    story.write(1).send();
    encoded(story.at(25));
    assert_eq!(story.write(4).send(), [2, 3], "4002 bytes");
}

#[test]
fn an_encoded_packet_takes_no_room_in_a_window_below_four_segments() {
    let mut story = encoding(Setup::segments().with_window(3500));
    story.write(1).send();
    encoded(story.at(25));
    assert_eq!(story.write(3).send(), [2, 3]);
}

/// However long the window stays small, and although something is always outstanding, no more is remembered than left within
/// a round trip.
#[test]
fn encoded_packets_are_forgotten_in_small_windows_too() {
    let mut story = encoding(Setup::segments().with_window(3500));
    for turn in 1..100 {
        story.at(50 * turn).write(1);
        let mut encoded = 0;
        while let Some(transmission) = story.sender.next(story.now, false) {
            encoded += u64::from(matches!(transmission, Transmission::Encoded(_)));
        }
        assert!(turn == 1 || encoded > 0, "at turn {turn}");
        story.ack(story.sender.next_number() - 1);
        assert!(story.sender.lane.redundancy.remembered() <= 4, "at turn {turn}");
    }
}

#[test]
fn encoded_packets_are_forgotten_with_the_last_segment() {
    let mut story = encoding(Setup::segments().with_window(4500));
    story.write(1).send();
    encoded(story.at(25));
    assert_eq!(story.ack(2).write(5).send(), [2, 3, 4, 5]);
}

#[test]
fn an_encoded_packet_is_paced() {
    let mut story = encoding(Setup::segments().with(|it| it.paces = true));
    story.set_rate(Rate::from_bps(8_000_000));
    story.write(10).send();
    let paced = |story: &mut Story, now| {
        story.at(now).write(16);
        let sent = story.sender.counters().sent_payload_bytes;
        while let Some(Transmission::Segment(_)) = story.sender.next(story.now, false) {}
        story.sender.counters().sent_payload_bytes - sent
    };
    encoded(story.at(25));
    assert_eq!(
        paced(&mut story, 25),
        9000,
        "11 000 less its 1002 bytes, in segments"
    );
}

#[test]
fn a_segment_that_may_be_repaired_is_judged_after_its_encoded_packet() {
    let lost_after = |repairs: bool| {
        let mut story = Setup::segments().opening();
        if repairs {
            story
                .sender
                .encode_by(FecEncoder::new(FecParameters::default(), None, true));
        }
        story.sender.establish(at(0), Some(ms(100)), false);
        story.write(5).send();
        story.ack(1).ack(1).ack(1);
        story.send()
    };
    assert_eq!(lost_after(false), [1]);
    assert_eq!(lost_after(true), []);
}

#[test]
fn who_stops_encodes_no_more() {
    let mut story = encoding(Setup::segments());
    story.write(2).send();
    story.sender.stop();
    assert_eq!(story.at(25).sender.next(at(25), false), None);
}

fn searching() -> Story {
    searching_by(Setup::segments())
}

fn searching_by(setup: Setup) -> Story {
    let mut setup = setup.with(|it| (it.segment_bytes, it.paces) = (1400, true));
    setup.parameters.send_buffer = SendBuffer::of_waiting(1_000_000);
    let mut story = setup.opening();
    story.sender.discover_mtu();
    story.sender.establish(at(0), Some(ms(100)), false);
    story
}

/// What is asked for now; the question leaves.
fn question(story: &mut Story) -> Option<u32> {
    let question = match story.sender.next(story.now, false) {
        Some(Transmission::MtuProbe(bytes)) => Some(bytes),
        _ => None,
    };
    if let Some(bytes) = question {
        story.sender.on_mtu_probe(story.now, bytes, u64::from(bytes));
    }
    question
}

#[test]
fn the_path_is_asked_for_the_size_that_is_wanted_and_carries_the_base_meanwhile() {
    let mut story = searching();
    assert_eq!(
        (
            story.sender.segment_bytes(),
            story.sender.expected_segment_bytes()
        ),
        (1100, 1400)
    );
    assert_eq!(question(&mut story), Some(1400));
    assert_eq!(
        story.sender.deadline(),
        Some((at(1000), Wakeup::Probe)),
        "RFC 8899 §5.1.1"
    );
    assert_eq!(question(&mut story), None);
    story.sender.on_mtu_answer(at(100), 1400);
    assert_eq!(
        (story.sender.segment_bytes(), story.sender.deadline()),
        (1400, None)
    );
}

#[test]
fn three_questions_without_an_answer_make_a_size_too_large() {
    let mut story = searching();
    for now in [0, 1000, 2000] {
        assert_eq!(question(story.at(now)), Some(1400));
    }
    assert_eq!(story.expire(), TimeoutOutcome::Nothing);
    assert_eq!(story.sender.expected_segment_bytes(), 1100);
    assert_eq!(question(&mut story), Some(1250));
}

#[test]
fn a_question_waits_as_long_as_the_retransmission_timer() {
    let mut story = searching();
    story.sender.establish(at(0), Some(Duration::from_secs(4)), false);
    question(&mut story);
    let lost_at = at(0) + story.sender.timeout();
    assert_eq!(story.sender.deadline(), Some((lost_at, Wakeup::Probe)));
}

#[test]
fn questions_are_paced() {
    let mut story = searching();
    story.set_rate(Rate::from_bps(8_000_000));
    story.sender.on_mtu_probe(at(0), 1400, 10_000_000);
    story.write(1);
    assert_eq!(story.segment(false), None);
    assert!(story.sender.pacing_deadline().is_some());
}

/// The path carried 1400 bytes, and one timeout after the other says that it does not any more (RFC 8899 §4.3).
fn narrowed(mut story: Story) -> Story {
    question(&mut story);
    story.sender.on_mtu_answer(at(0), 1400);
    story.write(7).send();
    story.expire();
    assert_eq!(question(&mut story), None, "one loss says nothing");
    story.expire();
    story
}

#[test]
fn repeated_timeouts_of_full_segments_ask_whether_small_ones_pass() {
    let mut story = narrowed(searching());
    assert_eq!(question(&mut story), Some(1100));
    let now = story.now + ms(50);
    story.now = now;
    story.sender.on_mtu_answer(now, 1100);
    assert_eq!(story.sender.segment_bytes(), 1100);
    assert_eq!(story.sender.timeouts_in_row(), 0, "the path works");
    assert_eq!(question(&mut story), Some(1250), "the search goes on below 1400");
    assert_eq!(story.retransmission_at(), Some(now + ms(300)));
}

#[test]
fn progress_takes_the_doubt_back() {
    let mut story = narrowed(searching());
    story.ack(2);
    assert_eq!(question(&mut story), None);
    assert_eq!(story.sender.segment_bytes(), 1400);
}

#[test]
fn probes_of_an_outage_that_stay_without_an_answer_raise_the_same_doubt() {
    let setup = Setup::segments().with(|it| it.loss_handling = LossHandling::Outage);
    let mut story = narrowed(searching_by(setup));
    assert_eq!(question(&mut story), Some(1100));
}

/// Duplicates that 2 to 5 cause say nothing, because they left before the encoded packet: the third later one does.
#[test]
fn what_left_after_the_encoded_packet_tells_of_a_segment_beyond_repair() {
    let mut story = Setup::segments().opening();
    story
        .sender
        .encode_by(FecEncoder::new(FecParameters::default(), None, true));
    story.sender.establish(at(0), Some(ms(100)), false);
    story.write(5).send();
    encoded(story.at(25));
    story.write(5).send();
    (0..6).for_each(|_| assert_eq!(story.ack(1).send(), []));
    assert_eq!(story.ack(1).send(), [1]);
}
