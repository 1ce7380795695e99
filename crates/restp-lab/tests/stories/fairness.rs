//! What congestion controls do to each other, and how fast they are alone, against published formulas.

use crate::common::{file, lines, runs, with};
use restp_lab::checker::Verdict;
use restp_lab::{Line, Options, Scenario};

/// Verdicts of the claims of `scenario`; all of them hold.
#[track_caller]
fn all_hold(scenario: &Scenario) -> Vec<Verdict> {
    let all = lines(scenario, &Options::DEFAULT).into_iter();
    let verdicts: Vec<Verdict> = all
        .filter_map(|line| match line {
            Line::Verdict(verdict) => Some(verdict),
            _ => None,
        })
        .collect();
    let failed: Vec<&Verdict> = verdicts
        .iter()
        .filter(|verdict| verdict.held != Some(true))
        .collect();
    assert!(failed.is_empty(), "{failed:#?}");
    verdicts
}

/// TC §4.2.5: Jain's index of 0.99 at least, for every algorithm whose window losses alone decide.
#[test]
fn two_flows_of_one_algorithm_share_a_bottleneck_equally() {
    // One of the three starts in the file: the others tell no more and take as long.
    let scenario = file("fairness.toml")
        .with("flow.late.start", "1.7 s")
        .expect("allowed");
    assert_eq!(all_hold(&scenario).len(), 13);
}

/// At 10 Mbit/s half of the pipe is 42 segments, and the two windows swing on both sides of the 38 where HighSpeed's rules
/// take the place of Reno's: who is above stays there. Where both are above, the two share equally over drop-tail; where
/// drops strike at random, at 10 Mbit/s too.
#[test]
fn highspeed_shares_equally_above_its_low_window() {
    jain_is_high(&[("link.*.rate", "1 Gbit/s"), ("link.bottleneck.rate", "20 Mbit/s")]);
    let red = "{ red = { limit = \"bdp\", min = \"8 packets\", max = \"24 packets\" } }";
    jain_is_high(&[("link.bottleneck.queue", red)]);
}

/// Jain's index of two flows of HighSpeed, for the start that is worst over drop-tail at 10 Mbit/s.
#[track_caller]
fn jain_is_high(settings: &[(&str, &str)]) {
    let start = file("fairness.toml")
        .with("flow.*.transport", "[\"classic-tcp:highspeed\"]")
        .and_then(|scenario| scenario.with("flow.late.start", "0.5 s"));
    let scenario = settings.iter().fold(start, |scenario, (key, value)| {
        scenario.and_then(|scenario| scenario.with(key, value))
    });
    let shares: Vec<f64> = runs(&scenario.expect("allowed"))[0]
        .flows
        .iter()
        .map(|flow| flow.goodput_bps.expect("data"))
        .collect();
    let jain = (shares[0] + shares[1]).powi(2) / (2.0 * (shares[0].powi(2) + shares[1].powi(2)));
    assert!(jain >= 0.99, "{jain}: {shares:?}");
}

/// RFC 9438 §5.1 within 10 %.
#[test]
fn cubic_follows_its_response_function() {
    assert_eq!(all_hold(&file("response-cubic.toml")).len(), 1);
}

const BESIDE_CUBIC: &str = r#"
id = "beside-cubic"
duration = "40 s"
runs = 8

[[link]]
name = "path"
between = ["a", "b"]
rate = "20 Mbit/s"
delay = "25 ms"
queue = { drop_tail = "bdp" }

[[flow]]
name = "bbr"
from = "a"
to = "b"
transport = "restp:resilient"
traffic = { bulk = {} }
start_spread = "5 ms"

[[flow]]
name = "cubic"
from = "a"
to = "b"
transport = "restp:resilient"
set = { congestion = "cubic", loss = "congestion" }
traffic = { bulk = {} }
start_spread = "5 ms"
"#;

/// Mean share of the first flow.
fn share(text: &str, delay: &str) -> f64 {
    let runs = runs(&with(text, &[("link.path.delay", delay)]));
    let shares = runs.iter().map(|run| {
        let [bbr, cubic] = [0, 1].map(|flow| run.flows[flow].goodput_bps.expect("bulk"));
        bbr / (bbr + cubic)
    });
    shares.sum::<f64>() / runs.len() as f64
}

/// About half over 50 and 100 ms. Single runs lie apart, so these are means. Over 20 ms, where both windows are of some
/// thirty segments, BBR takes 0.63.
#[test]
fn bbr_leaves_cubic_its_share_and_less_on_short_round_trips() {
    for delay in ["25 ms", "50 ms"] {
        let half = share(BESIDE_CUBIC, delay);
        assert!((0.42..0.55).contains(&half), "{delay}: {half}");
    }
    let short = share(BESIDE_CUBIC, "10 ms");
    assert!((0.50..0.70).contains(&short), "{short}");
}

/// About half with queues of half to two bandwidth-delay products, 43 to 172 packets here. CUBIC fills a larger one, and BBR, which
/// leaves it alone, gets a third of the link beside four of them: not half, and not nothing.
#[test]
fn bbr_and_cubic_share_equally_over_small_queues_and_large_ones_are_cubics() {
    let share_over = |packets: &str| {
        let queue = BESIDE_CUBIC.replace("\"bdp\"", &format!("\"{packets} packets\""));
        assert_ne!(queue, BESIDE_CUBIC);
        share(&queue, "25 ms")
    };
    for packets in ["43", "172"] {
        let half = share_over(packets);
        assert!((0.42..0.55).contains(&half), "{packets}: {half}");
    }
    let third = share_over("344");
    assert!((0.25..0.42).contains(&third), "{third}");
}

/// A CUBIC that repairs one loss per round trip (no selective acknowledgements: every `classic-tcp:cubic`) is out of the race
/// after each overflow for as many round trips as it lost segments, and BBR takes what it leaves.
#[test]
fn cubic_without_selective_acknowledgements_gets_less_beside_bbr() {
    let set = "transport = \"restp:resilient\"\nset = { congestion = \"cubic\", loss = \"congestion\" }";
    let blind = BESIDE_CUBIC.replace(set, "transport = \"classic-tcp:cubic\"");
    assert_ne!(blind, BESIDE_CUBIC);
    let (blind, sighted) = (share(&blind, "25 ms"), share(BESIDE_CUBIC, "25 ms"));
    assert!(blind > sighted + 0.05, "{blind} and {sighted}");
}

/// ResTP §2.3.1: no more harm than one flow where all paths share a link, at least the best path where none does; where one
/// path is shared, off it while it is, back when it is free, and the nearer to Pareto's optimum the better.
#[test]
fn a_coupled_flow_of_two_paths_takes_one_share_and_never_less_than_its_better_path() {
    assert_eq!(all_hold(&file("coupled.toml")).len(), 8);
    assert_eq!(all_hold(&file("coupled-disjoint.toml")).len(), 9);
    assert_eq!(
        all_hold(&file("coupled-shared.toml")).len(),
        8 + 1 + 7 + 7 + 1 + 1
    );
}

const CODED: &str = r#"
id = "coded"
duration = "20 s"

[[link]]
name = "path"
between = ["a", "b"]
rate = "100 Mbit/s"
delay = "50 ms"

[[flow]]
name = "coded"
from = "a"
to = "b"
transport = "restp:3wh-harq"
set = { congestion = "none", flight-limit = "20 segments", recovery = "pipe", ack = "positive+sack" }
traffic = { bulk = {} }
"#;

/// RFC 9265 §4: encoded packets take the room of data on the path, so they take its place in the window. Of twenty segments
/// at least two are redundancy here: a group has sixteen packets at most.
#[test]
fn encoded_packets_take_the_place_of_data_in_the_window() {
    for code in ["basic", "interleaved"] {
        let run = &runs(&with(CODED, &[("flow.coded.set.fec", code)]))[0];
        let window_bps = 20.0 * 1400.0 * 8.0 / 0.1;
        let sent = run.flows[0].paths[0].bytes_sent as f64 * 8.0 / 20.0;
        let goodput = run.flows[0].goodput_bps.expect("bulk");
        assert!(
            sent < 1.05 * window_bps,
            "{code}: {sent} with headers, of {window_bps}"
        );
        assert!((0.7..0.95).contains(&(goodput / window_bps)), "{code}: {goodput}");
    }
}

const CODED_BESIDE_PLAIN: &str = r#"
id = "beside"
duration = "60 s"

[[link]]
name = "left-{i}"
count = 2
between = ["sender-{i}", "west"]
rate = "100 Mbit/s"
delay = "0.1 ms"

[[link]]
name = "bottleneck"
between = ["west", "east"]
rate = "10 Mbit/s"
delay = "10 ms"
queue = { drop_tail = "50 packets" }

[[link]]
name = "right-{i}"
count = 2
between = ["east", "receiver-{i}"]
rate = "100 Mbit/s"
delay = "0.1 ms"

[[flow]]
name = "harq"
from = "sender-1"
to = "receiver-1"
transport = "restp:3wh-harq"
set = { ack = "positive+sack", recovery = "pipe" }
traffic = { bulk = {} }

[[flow]]
name = "arq"
from = "sender-2"
to = "receiver-2"
transport = "restp:3wh-arq"
set = { ack = "positive+sack", recovery = "pipe" }
traffic = { bulk = {} }
"#;

/// RFC 9265 §4: a loss that an encoded packet repairs is a loss all the same. As published it costs nothing, and the flow with
/// encoding sends nearly twice as much as the one beside it.
#[test]
fn a_coded_flow_leaves_a_plain_one_its_share_if_repairs_count_as_congestion() {
    let load = |settings: &[(&str, &str)]| {
        let run = runs(&with(CODED_BESIDE_PLAIN, settings)).remove(0);
        [0, 1].map(|flow: usize| run.flows[flow].load_bps.expect("bulk") / 1e6)
    };
    let [harq, arq] = load(&[]);
    assert!(harq > 1.5 * arq, "{harq} and {arq}");
    let slow = [
        ("link.bottleneck.rate", "2 Mbit/s"),
        ("link.bottleneck.delay", "2 ms"),
    ];
    for (link, rate) in [(&[][..], 10.0), (&slow[..], 2.0)] {
        for code in ["basic", "interleaved"] {
            let counts = [
                ("flow.harq.set.fec-congestion", "on"),
                ("flow.harq.set.fec", code),
            ];
            let [harq, arq] = load(&[link, &counts].concat());
            assert!(
                (0.75..1.25).contains(&(harq / arq)),
                "{rate} Mbit/s, {code}: {harq} and {arq}"
            );
            assert!(
                harq + arq > 0.93 * rate,
                "{rate} Mbit/s, {code}: {harq} and {arq}"
            );
        }
    }
}
