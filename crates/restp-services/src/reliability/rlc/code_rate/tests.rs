use super::*;

fn ms(n: u64) -> Duration {
    Duration::from_millis(n)
}

const PATH: PathConditions = PathConditions {
    loss: 0.05,
    burst: 1.0 / 0.95,
    rtt: Duration::from_millis(250),
    share: 1.0,
};

/// G.711 in frames of 20 ms, 200 ms one way over a round trip of 250 ms.
const VOICE: Conditions<'static> = Conditions {
    paths: &[PATH],
    retransmits: true,
    deadline: Some(Duration::from_millis(200)),
    interval: Duration::from_millis(20),
    most_percent: 50,
};

/// Over one path.
fn over(path: PathConditions, conditions: Conditions<'_>) -> Option<Plan> {
    plan(&Conditions {
        paths: &[path],
        ..conditions
    })
}
/// Over two of equal shares.
fn over_both(first: PathConditions, second: PathConditions, conditions: Conditions<'_>) -> Option<Plan> {
    let half = |path| PathConditions { share: 0.5, ..path };
    plan(&Conditions {
        paths: &[half(first), half(second)],
        ..conditions
    })
}
fn losing(loss: f64, burst: f64) -> PathConditions {
    PathConditions { loss, burst, ..PATH }
}
fn far(rtt: u64) -> PathConditions {
    PathConditions { rtt: ms(rtt), ..PATH }
}
/// With up to 100 encoded packets for 100 segments.
const ALL: Conditions<'static> = Conditions {
    most_percent: 100,
    ..VOICE
};

#[test]
fn nothing_leaves_where_a_retransmission_is_in_time() {
    assert_eq!(over(far(120), VOICE), None, "3/2 of it and a frame are 200 ms");
    assert!(over(far(121), VOICE).is_some());
    let for_ever = Conditions {
        deadline: None,
        ..VOICE
    };
    assert_eq!(plan(&for_ever), None);
    let once = Conditions {
        retransmits: false,
        ..VOICE
    };
    assert!(over(far(120), once).is_some());
}

#[test]
fn nothing_leaves_where_nothing_is_lost_or_all_comes_too_late() {
    assert_eq!(over(losing(0.0, 1.0), VOICE), None);
    assert_eq!(over(losing(TARGET, 1.0), VOICE), None);
    assert_eq!(over(far(400), VOICE), None);
}

/// What one of two loses shows when its own next frame arrives, two after it, and leaves again by the faster one.
#[test]
fn over_two_paths_the_fastest_retransmits() {
    let both = |first, second| over_both(far(first), far(second), VOICE);
    assert_eq!(both(106, 106), None, "3/2 of it and two frames are 199 ms");
    assert!(both(107, 107).is_some());
    assert_eq!(both(40, 140), None);
    assert!(both(42, 140).is_some() && both(140, 42).is_some());
}

#[test]
fn what_leaves_by_two_paths_is_missing_where_both_lose_it() {
    let carriers = [losing(0.2, 2.0), losing(0.1, 2.0)].map(|path| PathConditions { share: 0.5, ..path });
    let (missing, _) = again(&carriers.map(|path| Carrier::new(&path)));
    assert!((missing - 0.02).abs() < 1e-12, "{missing}");
}

/// Three segments have one encoded packet among them at least, and at every second segment often two.
#[test]
fn where_a_window_has_a_part_of_an_encoded_packet_more_it_counts() {
    let (busy, free) = (losing(0.05, 1.053), losing(0.02, 1.02));
    let apart = Conditions {
        deadline: Some(Duration::from_millis(175)),
        paths: &[
            PathConditions { share: 1.0, ..busy },
            PathConditions { share: 0.0, ..free },
        ],
        ..ALL
    };
    assert_eq!(apart.window(), Some(3));
    assert_eq!(plan(&apart).map(|plan| plan.every), Some(2));
}

#[test]
fn encoded_packets_leave_by_the_paths_that_carried_least() {
    for (shares, window, repairs, expected) in [
        (&[1.0][..], 4, 2, &[6][..]),
        (&[0.5, 0.5], 4, 0, &[2, 2]),
        (&[0.5, 0.5], 4, 1, &[3, 2]),
        (&[0.5, 0.5], 4, 3, &[4, 3]),
        (&[0.5, 0.5], 3, 1, &[3, 2]), // one and a half of each
        (&[1.0, 0.0], 3, 2, &[3, 2]),
        (&[0.6, 0.4], 4, 2, &[3, 3]), // 0.8 segments more are as good as none
        (&[0.6, 0.4], 6, 2, &[4, 4]),
        (&[0.3, 0.3, 0.4], 3, 4, &[3, 3, 1]),
        (&[0.5, 0.5], 256, 256, &[256, 256]),
        (&[0.0, 0.0], 4, 3, &[2, 1]),
    ] {
        let carriers: Vec<_> = shares
            .iter()
            .map(|share| {
                Carrier::new(&PathConditions {
                    share: *share,
                    ..PATH
                })
            })
            .collect();
        assert_eq!(
            packets(&carriers, window, repairs),
            expected,
            "{shares:?} {window} {repairs}"
        );
    }
}

#[test]
fn one_for_thirty_two_segments_is_the_sparsest() {
    let rare = Conditions {
        interval: Duration::from_millis(1),
        deadline: Some(ms(300)),
        ..VOICE
    };
    let plan = over(losing(0.000_6, 1.0), rare);
    assert_eq!(plan.map(|plan| (plan.every, plan.reach.count)), Some((32, 176)));
}

#[test]
fn numbers_without_sense_do_no_harm() {
    let endless = Duration::from_nanos(u64::MAX);
    for (interval, deadline, rtt) in [
        (Duration::ZERO, ms(200), ms(250)),
        (Duration::ZERO, endless, endless),
        (endless, endless, endless),
        (endless, Duration::from_nanos(2), Duration::from_nanos(3)),
        (ms(20), endless, Duration::ZERO),
        (ms(20), Duration::ZERO, ms(250)),
    ] {
        for most_percent in [0, 20, u32::MAX] {
            let conditions = Conditions {
                retransmits: false,
                interval,
                deadline: Some(deadline),
                most_percent,
                ..VOICE
            };
            for (loss, burst) in [(0.01, 0.0), (1.0, f64::MAX), (f64::NAN, f64::NAN)] {
                let path = PathConditions {
                    rtt,
                    ..losing(loss, burst)
                };
                for plan in [
                    over(path, conditions),
                    plan(&Conditions {
                        paths: &[],
                        ..conditions
                    }),
                ] {
                    let count = plan.map_or(1, |plan| plan.reach.count);
                    assert!((1..=Combination::MOST).contains(&count));
                }
            }
        }
    }
}

#[test]
fn a_path_that_carries_nothing_makes_no_retransmission_late() {
    let beside = |share| {
        let spare = PathConditions { share, ..far(380) };
        let busy = PathConditions {
            share: 1.0 - share,
            ..far(60)
        };
        plan(&Conditions {
            paths: &[busy, spare],
            ..VOICE
        })
    };
    assert_eq!(beside(0.0), None);
    assert!(beside(0.1).is_some());
}

#[test]
fn voice_with_independent_losses_gets_dense_windows_of_the_frames_still_of_use() {
    let reach = Reach {
        back: 3,
        count: 4,
        stride: 1,
    };
    assert_eq!(plan(&VOICE), Some(Plan { every: 2, reach }));
    let rare = over(losing(0.005, 1.0 / 0.995), VOICE);
    assert_eq!(rare.map(|plan| plan.every), Some(4));
    assert_eq!(over_both(PATH, PATH, ALL), Some(Plan { every: 2, reach }));
}

#[test]
fn more_than_one_for_two_segments_leaves_only_where_many_would_be_missing() {
    let every = |loss| over(losing(loss, 1.0 / 0.95), ALL).map(|plan| plan.every);
    assert_eq!([0.05, 0.3].map(every), [Some(2), Some(1)]);
}

#[test]
fn voice_with_bursts_gets_frames_as_far_apart_as_may_be() {
    let bursts = losing(0.05, 2.2);
    let reach = Reach {
        back: 3,
        count: 2,
        stride: 3,
    };
    assert_eq!(over(bursts, VOICE), Some(Plan { every: 2, reach }));
    let reach = Reach {
        back: 3,
        count: 1,
        stride: 1,
    };
    assert_eq!(
        over(bursts, ALL),
        Some(Plan { every: 1, reach }),
        "each again, when a burst is over"
    );
}

/// A burst of one path leaves the other half of the packets, which bring what it took; where bursts are long each frame leaves by
/// both.
#[test]
fn over_two_paths_bursts_are_met_by_both() {
    let way = |burst| over_both(losing(0.05, burst), losing(0.05, burst), ALL);
    let counts = |plan: Option<Plan>| plan.map(|plan| (plan.every, plan.reach.count, plan.reach.back));
    assert_eq!(counts(way(1.3)), Some((2, 4, 3)));
    assert_eq!(counts(way(1.5)), Some((1, 4, 3)));
    assert_eq!(counts(way(3.0)), Some((1, 1, 0)));
    let every = |plan| counts(plan).map(|counts| counts.0);
    assert_eq!(every(way(2.0)), Some(1));
    let other_is_clean = over_both(losing(0.05, 2.0), losing(0.0, 1.0), ALL);
    assert_eq!(every(other_is_clean), Some(2), "half as much is lost");
}

/// A path that carries no segments takes the encoded packets.
#[test]
fn redundancy_by_a_path_of_its_own_meets_bursts_as_well() {
    let (busy, free) = (
        losing(0.05, 3.0),
        PathConditions {
            share: 0.0,
            ..losing(0.05, 3.0)
        },
    );
    let apart = plan(&Conditions {
        paths: &[busy, free],
        ..ALL
    });
    assert_eq!(apart.map(|plan| plan.every), Some(1));
}

/// 4 Mbit/s in packets of 1250 bytes, 250 ms one way over a round trip of 300 ms.
#[test]
fn video_needs_less_the_longer_its_window_is() {
    let path = PathConditions {
        rtt: ms(300),
        ..losing(0.02, 1.0 / 0.98)
    };
    let video = Conditions {
        deadline: Some(ms(250)),
        interval: Duration::from_micros(2500),
        most_percent: 15,
        ..VOICE
    };
    let window = |path, conditions| over(path, conditions).map(|plan| (plan.every, plan.reach.count));
    assert_eq!(
        window(path, video),
        Some((11, 41)),
        "three encoded packets, often four"
    );
    let longer = Conditions {
        deadline: Some(ms(350)),
        ..video
    };
    assert!(window(path, longer).is_some_and(|(every, _)| every > 12));
    let bursts = PathConditions { burst: 3.0, ..path };
    assert!(window(bursts, video).is_some_and(|(every, _)| every < 9));
}

#[test]
fn redundancy_stays_within_what_is_allowed() {
    for most_percent in [1, 5, 10, 34, 50, 100] {
        for (loss, burst) in [(0.001, 1.0), (0.05, 1.1), (0.3, 1.5), (0.9, 20.0), (1.0, 1e9)] {
            let conditions = Conditions {
                most_percent,
                ..VOICE
            };
            let path = losing(loss, burst);
            for plan in [over(path, conditions), over_both(path, PATH, conditions)] {
                let every = plan.map_or(u32::MAX, |plan| plan.every.into());
                assert!(
                    every >= 100u32.div_ceil(most_percent),
                    "{most_percent} {loss} {burst}"
                );
            }
        }
    }
}
