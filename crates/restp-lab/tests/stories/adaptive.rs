//! The default on paths that it knows nothing of: what `docs/services/adaptation.md` promises, on paths of its own.

use crate::common::{runs, with};
use restp_lab::run::RunResult;

/// 12 Mbit/s over 70 ms; the queue holds a round trip.
const PATH: &str = r#"
id = "adaptive"
duration = "25 s"

[[link]]
name = "left-{i}"
count = 2
between = ["sender-{i}", "west"]
rate = "1 Gbit/s"
delay = "0.1 ms"

[[link]]
name = "wire"
between = ["west", "east"]
rate = "12 Mbit/s"
delay = "35 ms"
queue = { drop_tail = "70 packets" }

[[flow]]
name = "one"
from = "sender-1"
to = "east"
transport = "restp:default"
traffic = { bulk = {} }
"#;

const OTHER: &str = r#"
[[flow]]
name = "other"
from = "sender-2"
to = "east"
transport = "tcp:cubic"
traffic = { bulk = {} }
"#;

/// 1400 of 1456 bytes on the wire are payload.
const MOST: f64 = 12e6 * 1400.0 / 1456.0;

fn run(text: &str, settings: &[(&str, &str)]) -> RunResult {
    runs(&with(text, settings)).remove(0)
}

/// Goodput of flow `index` as a share of what the link carries.
fn share(run: &RunResult, index: usize) -> f64 {
    run.flows[index].goodput_bps.expect("bulk") / MOST
}

fn queue_ms(run: &RunResult) -> f64 {
    let wire = run.links.iter().find(|link| link.name == "wire");
    wire.expect("the link").queue_mean_ms
}

#[test]
fn alone_it_fills_the_path_and_not_the_queue() {
    for queue in ["8 packets", "70 packets", "1000 packets"] {
        let queue = format!("{{ drop_tail = \"{queue}\" }}");
        let run = run(PATH, &[("link.wire.queue", &queue)]);
        assert!(share(&run, 0) > 0.85, "{queue}: {}", share(&run, 0));
        assert!(queue_ms(&run) < 7.0, "{queue}: {} ms", queue_ms(&run));
    }
}

#[test]
fn damage_costs_no_more_than_what_is_damaged() {
    for (loss, least) in [("0.005", 0.85), ("0.02", 0.85), ("0.07", 0.8)] {
        for seed in ["1", "2", "3"] {
            let loss = format!("{{ rate = {loss} }}");
            let run = run(PATH, &[("link.wire.loss", &loss), ("seed", seed)]);
            assert!(share(&run, 0) > least, "{loss}, seed {seed}: {}", share(&run, 0));
        }
    }
}

/// What a clean path had shown of full queues was held against it: six seconds of sharing with nobody.
#[test]
fn damage_that_begins_costs_no_more_than_what_is_damaged() {
    for seed in ["1", "2", "3"] {
        let loss = "{ rate = 0.03, during = [\"20 s..30 s\"] }";
        let settings = [("link.wire.loss", loss), ("seed", seed), ("duration", "30 s")];
        let measure = "[measure]\nfrom = \"20 s\"\n\n";
        let path = PATH.replacen("[[link]]", &format!("{measure}[[link]]"), 1);
        let run = run(&path, &settings);
        assert!(share(&run, 0) > 0.85, "seed {seed}: {}", share(&run, 0));
    }
}

/// It was taken for a queue, and a fifth of the path left unused.
#[test]
fn what_a_link_holds_back_for_changing_times_is_no_queue() {
    for seed in ["1", "2", "3"] {
        let jitter = "{ delay = \"20 ms\", reorder = true }";
        let run = run(PATH, &[("link.wire.jitter", jitter), ("seed", seed)]);
        assert!(share(&run, 0) > 0.9, "seed {seed}: {}", share(&run, 0));
    }
}

#[test]
fn lateness_costs_nothing() {
    let late = ("link.wire.reorder", "{ rate = 0.05, delay = \"12 ms\" }");
    let run = run(PATH, &[late]);
    assert!(share(&run, 0) > 0.9, "{}", share(&run, 0));
}

#[test]
fn after_an_outage_it_goes_on_at_the_rate_it_had() {
    let outage = ("link.wire.outage", "[[\"10 s..15 s\"]]");
    let run = run(PATH, &[outage]);
    assert!(share(&run, 0) > 0.9 * 20.0 / 25.0, "{}", share(&run, 0));
}

/// Two loss-based flows share a path by their phase, which one path alone repeats whatever its seed: over paths of 60 to 80 ms
/// two CUBICs have 0.36 to 0.64 of it.
#[test]
fn beside_a_cubic_flow_it_is_one_more() {
    let both = [PATH, OTHER].concat();
    let (mut with, mut without) = (Vec::new(), Vec::new());
    for delay in 30..42 {
        let delay = format!("{delay} ms");
        let settings = [("duration", "60 s"), ("link.wire.delay", delay.as_str())];
        let beside_default = run(&both, &settings);
        assert!(
            share(&beside_default, 0) > 0.25,
            "{delay}: {}",
            share(&beside_default, 0)
        );
        with.push(share(&beside_default, 1));
        let cubic = [settings[0], settings[1], ("flow.one.transport", "tcp:cubic")];
        without.push(share(&run(&both, &cubic), 1));
    }
    let mean = |shares: &[f64]| shares.iter().sum::<f64>() / shares.len() as f64;
    let expected = mean(&without);
    assert!(mean(&with) > 0.9 * expected, "{with:?} and {without:?}");
    assert!(
        with.iter().all(|share| *share > 0.65 * expected),
        "{with:?} and {without:?}"
    );
}

/// They took each other for loss-based neighbours, and filled whatever queue there was for good.
#[test]
fn two_of_them_leave_the_queue_short_and_share_the_path() {
    let second = OTHER.replace("tcp:cubic", "restp:default");
    let both = [PATH, &second, "start = \"500 ms\"\n"].concat();
    for (rate, delay) in [
        ("12 Mbit/s", "8 ms"),
        ("40 Mbit/s", "15 ms"),
        ("150 Mbit/s", "10 ms"),
    ] {
        let path = [("link.wire.rate", rate), ("link.wire.delay", delay)];
        let deep = [
            ("link.wire.queue", "{ drop_tail = \"500 packets\" }"),
            ("duration", "60 s"),
        ];
        let run = run(&both, &[&path[..], &deep].concat());
        let rates = [0, 1].map(|flow| run.flows[flow].goodput_bps.expect("bulk"));
        let (share, queue) = (rates[0] / (rates[0] + rates[1]), queue_ms(&run));
        assert!((0.4..0.6).contains(&share), "{rate}, {delay}: {share}");
        assert!(queue < 20.0, "{rate}, {delay}: {queue} ms");
    }
}

/// Drops of random early detection look like damage: the other one had a sixth of the path. Runs differ by half of it, so the mean counts.
#[test]
fn where_drops_look_like_damage_it_is_one_more_too() {
    let early = ("link.wire.queue", "{ red = { ecn = false } }");
    let both = [PATH, OTHER].concat();
    let other = |seed: u32| {
        let seed = seed.to_string();
        share(&run(&both, &[("duration", "60 s"), early, ("seed", &seed)]), 1)
    };
    let shares: Vec<f64> = (1..=6).map(other).collect();
    assert!(shares.iter().sum::<f64>() / 6.0 > 0.33, "{shares:?}");
}

/// Every segment that the simulator lost, by its true cause and by what the sender took it for.
#[test]
fn most_losses_are_taken_for_what_they_were() {
    let damaged = run(PATH, &[("link.wire.loss", "{ rate = 0.02 }")]);
    let corruption = damaged.flows[0].loss_causes.expect("it tells").corruption;
    let all = corruption.congestion + corruption.corruption + corruption.outage;
    assert!(
        all > 200 && corruption.corruption * 100 > all * 95,
        "{corruption:?}"
    );
    let beside = (30..42).map(|delay| {
        let delay = format!("{delay} ms");
        let settings = [("duration", "60 s"), ("link.wire.delay", delay.as_str())];
        let beside = run(&[PATH, OTHER].concat(), &settings);
        beside.flows[0].loss_causes.expect("it tells").congestion
    });
    let (right, all) = beside.fold((0, 0), |(right, all), told| {
        let lost = told.congestion + told.corruption + told.outage;
        (right + told.congestion, all + lost)
    });
    assert!(all > 200 && right * 100 > all * 75, "{right} of {all}");
}

/// Each change begins where the one before it has led; a protocol whose services stay has none.
#[test]
fn what_the_controller_finds_is_told_in_the_order_of_time() {
    let adaptive = run(PATH, &[]);
    let changes = &adaptive.flows[0].changes;
    assert!(!changes.is_empty());
    for change in changes {
        assert_eq!((change.key, change.why), ("mode", "path"));
        assert!(change.from != change.to && change.at_s <= adaptive.sim_seconds);
    }
    for pair in changes.windows(2) {
        assert!(
            pair[0].to == pair[1].from && pair[0].at_s <= pair[1].at_s,
            "{pair:?}"
        );
    }
    let steady = run(PATH, &[("flow.one.transport", "\"restp:cubic\"")]);
    assert_eq!(steady.flows[0].changes, []);
}
