//! Claims of scenarios, true ones and false ones.

use crate::common::{file, lines};
use restp_lab::checker::Verdict;
use restp_lab::{Line, Options, Scenario};

pub(super) fn verdicts(scenario: &Scenario) -> Vec<Verdict> {
    let all = lines(scenario, &Options::DEFAULT).into_iter();
    all.filter_map(|line| {
        if let Line::Verdict(verdict) = line {
            Some(verdict)
        } else {
            None
        }
    })
    .collect()
}

#[track_caller]
pub(super) fn held(scenario: &Scenario) -> Vec<Option<bool>> {
    verdicts(scenario).iter().map(|verdict| verdict.held).collect()
}

/// Of a scenario file made small by `settings`: every claim but those of `except` holds, and there are `count` verdicts.
#[track_caller]
fn small(name: &str, settings: &[(&str, &str)], except: &[&str], count: usize) {
    let scenario = settings.iter().fold(file(name), |scenario, (key, value)| {
        scenario
            .with(key, value)
            .unwrap_or_else(|error| panic!("{error}"))
    });
    let all = verdicts(&scenario);
    let judged = || {
        all.iter()
            .filter(|verdict| !except.contains(&verdict.check.as_str()))
    };
    let failed: Vec<&Verdict> = judged().filter(|verdict| verdict.held != Some(true)).collect();
    assert!(failed.is_empty(), "{failed:#?}");
    assert_eq!(judged().count(), count);
}

/// E1 with one file over one link. What HARQ gains at an error rate of 0.1 it gains under both profiles; the claim at
/// 0.01 needs all seeds.
#[test]
fn forward_error_correction_finishes_a_file_earlier_where_losses_are_frequent() {
    let settings = [
        ("profile", "published-like"),
        ("link.bottleneck.rate", "10 Mbit/s"),
        ("flow.file.traffic.file.bytes", "500000"),
        ("link.bottleneck.loss.rate", "0.1"),
        ("runs", "5"),
    ];
    small("e1.toml", &settings, &["E1.2", "E1.arq", "E1.falls"], 1);
}

/// E2 whole: one page, no randomness.
#[test]
fn opportunistic_set_up_saves_a_round_trip_and_every_set_up_timer() {
    small("e2.toml", &[], &[], 620);
}

#[test]
fn any_page_saves_one_round_trip() {
    let few = ("runs", "10");
    let plain = ("flow.page.seal", "false");
    let sealed = ["E2.random-seal", "E2.random-rtt-sealed", "E2.random-tfo-sealed"];
    small("e2-random.toml", &[few, plain], &sealed, 18);
    let short = ("link.path.delay", "[\"20 ms\", \"100 ms\"]");
    small("e2-random.toml", &[few, short], &[], 42);
}

/// E4 without random errors in one profile.
#[test]
fn probing_survives_outages_that_backing_off_does_not() {
    let settings = [
        ("profile", "published-like"),
        ("link.orbit.loss.rate", "0"),
        ("runs", "1"),
    ];
    small("e4.toml", &settings, &[], 29);
}

/// E5 with three seeds: the published order, with the published timer and rule.
#[test]
fn partial_reliability_misses_the_fewest_frames() {
    let settings = [
        ("profile", "published-like"),
        ("link.bottleneck.loss.direction", "forward"),
        ("runs", "3"),
    ];
    small("e5.toml", &settings, &["E5.3-sane"], 23);
}

#[test]
fn a_hole_is_worth_waiting_for_as_long_as_a_retransmission_takes() {
    let settings = [("link.bottleneck.loss.direction", "forward"), ("runs", "2")];
    small("e5-hold.toml", &settings, &[], 7);
}

/// E7 at three of its ten error rates: within 1 % of 1.12 · (1 - PER) Mbit/s, and no difference to UDP in any run.
#[test]
fn opportunistic_set_up_saves_a_round_trip_over_several_paths_too() {
    small("e3.toml", &[("link.*.delay", "[\"20 ms\", \"100 ms\"]")], &[], 30);
}

#[test]
fn a_path_that_dies_is_left_within_the_bound() {
    small("e6-switch.toml", &[("runs", "10"), ("duration", "12 s")], &[], 11);
}

#[test]
fn ten_seconds_over_two_paths_carry_what_both_have() {
    small("multipath-figures.toml", &[("runs", "2")], &[], 12);
}

/// SMT E4 with one seed. SMOS, which knows the rates of its paths, is ahead, and its page says why.
#[test]
#[ignore = "takes longer"]
fn mfr_uses_more_of_any_paths_than_cmt() {
    let settings = [("runs", "1"), ("duration", "41 s")];
    small("../smt/smt-e4.toml", &settings, &["E4.1.smos", "E4.3.three"], 20);
}

/// SMT E2 where the receive buffer is short.
#[test]
#[ignore = "takes longer"]
fn few_reports_carry_most_where_the_receive_buffer_is_short() {
    let settings = [
        ("runs", "1"),
        ("duration", "100 s"),
        ("flow.f.set.receive-buffer", "24 KiB"),
        ("flow.f.set.late-pivot", "[\"20 %\", \"40 %\"]"),
    ];
    small("../smt/smt-e2.toml", &settings, &["E2.1", "E2.2", "E2.3"], 7);
}

/// SMT E1 to E3 with one seed.
#[test]
fn each_scheme_takes_for_lost_what_the_study_says_on_a_slow_and_a_fast_path() {
    small("../smt/smt-e1.toml", &[("runs", "1")], &["E1.1.nmt"], 37);
}

/// SMT E5 and E6 for a minute: what is not within the ranges of the pages needs all seeds.
#[test]
#[ignore = "takes longer"]
fn mfr_is_ahead_of_cmt_over_disparate_paths() {
    let settings = [("runs", "1"), ("duration", "60 s")];
    let others = [
        "E5.2",
        "E5.3",
        "E5.4.disparity",
        "E5.4.buffer",
        "E5.4.best",
        "E5.4.best.range",
        "E5.5.amfr-cmt",
        "E5.5.amfr-mfr",
        "E5.5.amfr-mfr.range",
        "E6.1.falls",
        "E6.2.better",
        "E6.2.better.range",
        "E6.4.order",
        "E6.4.amfr-cmt",
        "E6.4.amfr-mfr",
        "E6.4.amfr-mfr.range",
    ];
    small("../smt/smt-e5.toml", &settings, &others, 24);
}

/// CMT V1 and V2 with one seed.
#[test]
fn cmt_carries_more_than_each_path_alone_whatever_one_loses() {
    small("../cmt/cmt-v1.toml", &[("runs", "1")], &[], 34);
    small(
        "../cmt/cmt-v2.toml",
        &[("runs", "1")],
        &["V2.1.low", "V2.policies"],
        28,
    );
}

/// CMT F1 for two minutes, and F2 with one seed.
#[test]
#[ignore = "takes longer"]
fn sctp_and_tcp_share_a_link_and_whoever_joins_gets_its_part() {
    let short = [("runs", "1"), ("measure.to", "120 s"), ("duration", "120 s")];
    small("../cmt/cmt-f1.toml", &short, &["F1.2.fair", "F1.2.useful"], 30);
    let halves = [
        "F2.1.half.tcps",
        "F2.1.fair.tcps",
        "F2.1.half.tcpnr",
        "F2.1.fair.tcpnr",
    ];
    small("../cmt/cmt-f2.toml", &[("runs", "1")], &halves, 26);
}

/// CMT G2 beside eight flows.
#[test]
#[ignore = "takes longer"]
fn a_slower_red_leaves_cmt_less_behind() {
    let few = [
        ("runs", "1"),
        ("measure.from", "40 s"),
        ("duration", "80 s"),
        ("flow.crowd-{i}.count", "[8]"),
    ];
    small("../cmt/cmt-g2.toml", &few, &["G2.1", "G2.2.below", "G2.3"], 1);
}

/// SMT E8 where few packets are missing.
#[test]
#[ignore = "takes longer"]
fn the_model_and_packets_agree_where_few_are_missing() {
    let settings = [
        ("runs", "2"),
        ("duration", "100 s"),
        ("link.path.loss.rate", "[0, 0.02]"),
    ];
    small("../smt/smt-e8.toml", &settings, &["E8.2"], 8);
}

/// CMT F3 and, beside eight flows, G1.
#[test]
#[ignore = "takes longer"]
fn sctp_and_cmt_give_and_take_and_nobody_starves() {
    let settings = [("runs", "1"), ("duration", "160 s")];
    small("../cmt/cmt-f3.toml", &settings, &["F3.1.tcp"], 16);
    let few = [
        ("runs", "1"),
        ("measure.from", "40 s"),
        ("duration", "80 s"),
        ("flow.crowd-{i}.count", "[8]"),
    ];
    let others = [
        "G1.1.equal",
        "G1.2.alike",
        "G1.2.ideal.16",
        "G1.2.ideal.32",
        "G1.2.ideal.48",
        "G1.2.ideal.64",
        "G1.3.alike",
        "G1.5.many",
        "G1.7",
    ];
    small("../cmt/cmt-g1.toml", &few, &others, 11);
}

#[test]
fn unreliable_restp_delivers_what_udp_delivers() {
    small(
        "e7.toml",
        &[("link.bottleneck.loss.rate", "[0, 0.1, 0.5]")],
        &[],
        3 * 2 + 3,
    );
}

/// E9 at three of its seven delays.
#[test]
fn a_lost_syn_costs_the_opportunistic_set_up_nothing() {
    let settings = [("link.bottleneck.delay", "[\"10 ms\", \"100 ms\", \"300 ms\"]")];
    small("e9.toml", &settings, &[], 27);
}
