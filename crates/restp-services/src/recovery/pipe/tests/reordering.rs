//! Segments that come late on a path of 100 ms, and what they are taken for (RFC 8985 §6.2).

use super::*;

const ADAPTIVE: PipeParameters = PipeParameters {
    holes: Holes::Overtaken,
    again: Again::Overtaken,
    single: None,
    reordering: Reordering::Adaptive,
    leaves_arrivals_out: false,
};

fn snack_parameters() -> PipeParameters {
    PipeParameters {
        reordering: Reordering::Adaptive,
        ..PipeParameters::new(Detail::Snack)
    }
}

/// 10 is taken for lost at 100 ms, leaves again, and turns out at 108 ms to have been late. At 200 ms 14 to 21 leave.
fn after_a_late_one(parameters: PipeParameters) -> (Scoreboard, Pipe, LossUpdate) {
    let (mut board, mut pipe) = sent_for(4, parameters);
    let missing: &[_] = if parameters.holes == Holes::Overtaken {
        &[]
    } else {
        &[10..11]
    };
    let began = |end| report(&mut board, &mut pipe, 100, &snack(10, &[11..end], missing)).began;
    assert_eq!([12, 13, 14].map(began), [false, false, true]);
    assert_eq!(retransmit_at(&mut board, &mut pipe, 100), Some(10));
    let late = report(&mut board, &mut pipe, 108, &AckReport::pointer(14));
    for _ in 0..8 {
        board.on_sent(at(200), 1000);
    }
    (board, pipe, late)
}

fn at(ms: u64) -> Time {
    Time::ZERO + Duration::from_millis(ms)
}

#[test]
fn an_episode_whose_only_loss_was_late_is_undone() {
    for parameters in [ADAPTIVE, snack_parameters()] {
        let (_, pipe, late) = after_a_late_one(parameters);
        assert_eq!((late.spurious, late.restored, late.ended), (1, true, true));
        assert!(!pipe.is_active());
        let threshold = PipeParameters {
            reordering: Reordering::Threshold,
            ..parameters
        };
        let (_, _, late) = after_a_late_one(threshold);
        assert_eq!((late.spurious, late.restored), (0, false), "nobody asked");
    }
}

#[test]
fn an_episode_with_a_true_loss_is_not_undone() {
    let (mut board, mut pipe) = sent_for(6, ADAPTIVE); // 10 is late, 11 is lost
    assert_eq!(
        report(&mut board, &mut pipe, 100, &snack(10, &[12..15], &[])).lost,
        2
    );
    while retransmit_at(&mut board, &mut pipe, 100).is_some() {}
    let late = report(&mut board, &mut pipe, 108, &snack(11, &[12..15], &[]));
    assert_eq!((late.spurious, late.restored), (1, false));
    let repaired = report(&mut board, &mut pipe, 200, &AckReport::pointer(16));
    assert_eq!(
        (repaired.spurious, repaired.restored, repaired.ended),
        (0, false, true)
    );
}

#[test]
fn what_is_overtaken_has_a_quarter_of_a_round_trip_to_come() {
    for parameters in [ADAPTIVE, snack_parameters()] {
        let missing: &[_] = if parameters.holes == Holes::Overtaken {
            &[]
        } else {
            &[14..15]
        };
        let (mut board, mut pipe, _) = after_a_late_one(parameters);
        for end in 16..20 {
            let overtaken = report(&mut board, &mut pipe, 300, &snack(14, &[15..end], missing));
            assert_eq!((overtaken.lost, overtaken.began), (0, false));
        }
        assert_eq!(pipe.deadline(), Some(at(325)));
        let come = report(&mut board, &mut pipe, 308, &AckReport::pointer(22));
        assert_eq!((come.lost, come.spurious, board.lost()), (0, 0, 0));

        let (mut board, mut pipe, _) = after_a_late_one(parameters);
        for end in 16..20 {
            report(&mut board, &mut pipe, 300, &snack(14, &[15..end], missing));
        }
        let mut rtt = RttEstimator::default();
        rtt.sample(Duration::from_millis(100));
        let due = pipe.on_deadline(&mut board, at(325), &rtt);
        assert_eq!((due.lost, due.began, due.urgent), (1, true, true));
        assert_eq!((pipe.deadline(), board.next_lost()), (None, Some(14)));
    }
}

/// 10 and 11 are lost, and the retransmission of 11, too, while the acknowledgement of that of 10 comes after the timeout.
#[test]
fn a_retransmission_that_a_needless_timeout_gives_back_is_judged_as_before() {
    let (mut board, mut pipe) = sent_for(6, ADAPTIVE);
    let found = report(&mut board, &mut pipe, 100, &snack(10, &[12..15], &[]));
    assert_eq!(found.lost, 2);
    for number in [10, 11] {
        assert_eq!(retransmit_at(&mut board, &mut pipe, 100), Some(number));
    }
    pipe.on_timeout(&board, true);
    board.mark_all_lost();
    assert_eq!(retransmit_at(&mut board, &mut pipe, 150), Some(10));
    assert!(report(&mut board, &mut pipe, 200, &snack(11, &[12..15], &[])).restored);
    assert_eq!(board.lost(), 0);
    (0..3).for_each(|_| {
        board.on_sent(at(200), 1000);
    });
    let found = report(&mut board, &mut pipe, 300, &snack(11, &[12..15, 16..19], &[]));
    assert_eq!((found.lost, board.next_lost()), (2, Some(11)), "11 and 15");
}

/// 10 and 11 are lost, and 11 has not left again when the timeout proves needless.
#[test]
fn a_loss_found_before_a_needless_timeout_is_found_again_and_answered() {
    let (mut board, mut pipe) = sent_for(6, ADAPTIVE);
    report(&mut board, &mut pipe, 100, &snack(10, &[12..15], &[]));
    assert_eq!(retransmit_at(&mut board, &mut pipe, 100), Some(10));
    pipe.on_timeout(&board, true);
    board.mark_all_lost();
    assert_eq!(retransmit_at(&mut board, &mut pipe, 150), Some(10));
    assert!(report(&mut board, &mut pipe, 200, &snack(11, &[12..15], &[])).restored);
    let found = report(&mut board, &mut pipe, 210, &snack(11, &[12..16], &[]));
    assert_eq!((found.lost, found.began), (1, true));
}

/// RFC 8985 §6.2, step 2: an answer sooner than any is one to the first transmission, which overtakes nothing.
#[test]
fn a_retransmission_that_is_answered_too_soon_overtakes_nothing() {
    let rack = PipeParameters {
        reordering: Reordering::Rack,
        ..ADAPTIVE
    };
    let (mut board, mut pipe) = sent_for(6, rack);
    report(&mut board, &mut pipe, 100, &snack(10, &[11..14], &[]));
    assert_eq!(retransmit_at(&mut board, &mut pipe, 100), Some(10));
    report(&mut board, &mut pipe, 108, &AckReport::pointer(14));
    assert_eq!(pipe.deadline(), None, "14 and 15 left after all that arrived");
}

/// Some of 10 to 15 come so late that their second transmissions are answered first.
fn late_and_repaired(parameters: PipeParameters, lost: &[u64]) -> (Scoreboard, Pipe) {
    let (mut board, mut pipe) = sent_for(6, parameters);
    board.expect_duplicates();
    let first = *lost.last().expect("some are lost");
    for end in first + 2..=first + 4 {
        report(&mut board, &mut pipe, 100, &snack(10, &[first + 1..end], &[]));
    }
    for number in lost {
        assert_eq!(retransmit_at(&mut board, &mut pipe, 100), Some(*number));
    }
    report(&mut board, &mut pipe, 210, &AckReport::pointer(16));
    (board, pipe)
}

/// A round trip later the peer names them as duplicates (RFC 2883, RFC 3708), and once more, which says nothing new.
fn named_as_duplicate(parameters: PipeParameters, lost: &[u64]) -> Vec<LossUpdate> {
    let (mut board, mut pipe) = late_and_repaired(parameters, lost);
    let named = |number: &u64| AckReport {
        duplicates: *number..number + 1,
        ..AckReport::pointer(16)
    };
    let both = lost.iter().chain(lost);
    both.map(|number| report(&mut board, &mut pipe, 230, &named(number)))
        .collect()
}

#[test]
fn an_episode_is_undone_when_all_that_left_again_is_named_as_a_duplicate() {
    let one = named_as_duplicate(ADAPTIVE, &[10]);
    let seen: Vec<_> = one.iter().map(|found| (found.spurious, found.restored)).collect();
    assert_eq!(seen, [(1, true), (0, false)], "once");
    let two = named_as_duplicate(ADAPTIVE, &[10, 11]);
    let seen: Vec<_> = two.iter().map(|found| (found.spurious, found.restored)).collect();
    assert_eq!(seen, [(1, false), (1, true), (0, false), (0, false)]);
    // In a report that a later one has overtaken it is told as well.
    let (mut board, mut pipe) = late_and_repaired(ADAPTIVE, &[10]);
    let old = AckReport {
        duplicates: 10..11,
        ..AckReport::pointer(14)
    };
    let found = report(&mut board, &mut pipe, 230, &old);
    assert_eq!((found.spurious, found.restored), (1, true));
    let threshold = PipeParameters {
        reordering: Reordering::Threshold,
        ..ADAPTIVE
    };
    let classic = named_as_duplicate(threshold, &[10]);
    assert!(classic.iter().all(|found| !found.restored && found.spurious == 0));
}

/// RFC 3708 §2: it takes the duplicates of all that the episode itself sent again. One of an episode before is no news of it.
#[test]
fn a_duplicate_of_an_earlier_episode_does_not_undo_this_one() {
    let (mut board, mut pipe) = late_and_repaired(ADAPTIVE, &[10]);
    for _ in 0..6 {
        board.on_sent(Time::ZERO + Duration::from_millis(220), 1000);
    }
    for end in [18, 19, 20] {
        report(&mut board, &mut pipe, 600, &snack(16, &[17..end], &[]));
    }
    assert_eq!(retransmit_at(&mut board, &mut pipe, 600), Some(16), "it is lost");
    let of_the_first = AckReport {
        duplicates: 10..11,
        ..AckReport::pointer(16)
    };
    let found = report(&mut board, &mut pipe, 610, &of_the_first);
    assert_eq!((found.spurious, found.restored), (1, false));
    // Nor one of what a timeout sent again: what that cost is not this episode's.
    let (mut board, mut pipe) = late_and_repaired(ADAPTIVE, &[10]);
    pipe.on_timeout(&board, true);
    assert!(!pipe.episode.acquit(&Feedback::default(), 1));
    let found = report(&mut board, &mut pipe, 230, &of_the_first);
    assert_eq!((found.spurious, found.restored), (1, false));
}
