//! Chains: stations that do not hear each other, and how much gets through.

use super::*;

fn along(spec: &MediumSpec, hops: usize) -> Vec<u32> {
    (0..hops).map(|n| hop(spec, n, n + 1)).collect()
}

/// CMT §4.3: a hop bears another one at the same time from the fourth station on, so a chain of four hops or more
/// carries at most a quarter of what one hop does, whatever is put in.
#[test]
fn no_chain_carries_more_than_a_quarter_of_one_hop() {
    let end = seconds(60);
    let mut carried = Vec::new();
    for hops in [4, 5, 6, 8, 16] {
        let spec = chain(hops);
        for seed in 1..=3 {
            let tally = &saturate(&spec, &[along(&spec, hops)], (2, end), seed)[0];
            let measured = mbps(tally, end);
            assert!(measured < 1.415 / 4.0, "{hops} hops, seed {seed}: {measured}");
            assert!(measured > 0.1, "{hops} hops, seed {seed}: {measured}");
            carried.push(measured);
        }
    }
}

/// Two hops cannot be used at once, nor three.
#[test]
fn short_chains_carry_their_share() {
    let end = seconds(60);
    for hops in [2, 3] {
        let spec = chain(hops);
        let measured = mbps(&saturate(&spec, &[along(&spec, hops)], (2, end), 1)[0], end);
        // Backoffs of neighbours run at the same time: 310 µs of 5654 can be saved.
        let bound = 1.415 / hops as f64 * 1.058;
        assert!(
            (bound * 0.6..bound).contains(&measured),
            "{hops} hops: {measured}"
        );
    }
}

/// CMT §4.2: of two senders 600 m apart neither senses the other, and the station between them hears both. RTS and CTS
/// leave both their share; without them whole data frames meet.
#[test]
fn rts_and_cts_help_senders_that_do_not_hear_each_other() {
    let mut spec = chain(2);
    let flows = [vec![hop(&spec, 0, 1)], vec![hop(&spec, 2, 1)]];
    let end = seconds(60);
    let sum = |spec: &MediumSpec| -> f64 {
        let tallies = saturate(spec, &flows, (2, end), 1);
        tallies.iter().map(|tally| mbps(tally, end)).sum()
    };
    let protected = sum(&spec);
    spec.rts_threshold = 3000;
    let open = sum(&spec);
    assert!(protected > 1.1, "{protected}");
    assert!(open < 0.75 * protected, "{open} against {protected}");
}

/// CMT §4.2: chains 450 m apart sense each other, at 812 m and more they do not even interfere.
#[test]
fn parallel_chains_share_the_channel_and_far_ones_do_not() {
    let two = |apart: f64| {
        let mut spec = chain(4);
        for n in 0..=4 {
            spec.stations.push(Station::new(
                &format!("m{n}"),
                Place::new(300.0 * f64::from(n), apart),
            ));
        }
        let flow = |first: usize| (0..4).map(|n| hop(&spec, first + n, first + n + 1)).collect();
        let end = seconds(60);
        let tallies = saturate(&spec, &[flow(0), flow(5)], (2, end), 1);
        tallies.iter().map(|tally| mbps(tally, end)).sum::<f64>()
    };
    let alone = {
        let spec = chain(4);
        mbps(
            &saturate(&spec, &[along(&spec, 4)], (2, seconds(60)), 1)[0],
            seconds(60),
        )
    };
    let (beside, apart) = (two(450.0), two(813.0));
    assert!(beside < 1.2 * alone, "{beside} of {alone}");
    assert!((apart / alone / 2.0 - 1.0).abs() < 0.05, "{apart} of {alone}");
}

/// What a station lets wait, and gives up, is told by its cause.
#[test]
fn losses_in_a_chain_have_their_causes() {
    let spec = chain(8);
    let tally = &saturate(&spec, &[along(&spec, 8)], (40, seconds(120)), 1)[0];
    assert!(tally.drops(DropReason::Collision) > 0, "{tally:?}");
    assert_eq!(tally.drops(DropReason::Error), 0);
    assert_eq!(tally.drops(DropReason::Outage), 0);
}
