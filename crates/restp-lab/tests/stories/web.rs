//! Web pages against hand calculations.

use crate::common::{runs, with};

const PAGE: &str = r#"
id = "web"
duration = "1000 s"

[[link]]
name = "wire"
between = ["client", "server"]
rate = "5 Mbit/s"
delay = "100 ms"
queue = { drop_tail = "100 packets" }

[[flow]]
name = "page"
from = "client"
to = "server"
transport = "restp:3wh-arq"
set = { initial-window = "1 segment", ack-every = "1 packet" }
traffic = { web = { first = { main = 79453, embedded = [226], parse = "50 ms" } } }
"#;

/// One round trip for the set-up, six for 57 segments with an initial window of one (1, 2, 4, 8, 16, 26), one for the
/// embedded object (ResTP experiments, E2).
#[test]
fn the_published_page_takes_eight_round_trips() {
    for transport in ["restp:3wh-arq", "classic-tcp:newreno"] {
        let run = runs(&with(PAGE, &[("flow.page.transport", transport)])).swap_remove(0);
        let flow = &run.flows[0];
        let plt = flow.plt_first_s.expect("loaded");
        assert!(
            (8.0 * 0.2 + 0.05..8.0 * 0.2 + 0.15).contains(&plt),
            "{transport}: {plt}"
        );
        assert_eq!(flow.pages, Some(1));
        for of_one in [flow.plt_mean_s, flow.plt_median_s] {
            let of_one = of_one.expect("one page");
            assert!((of_one - plt).abs() < 1e-9, "{transport}: {of_one} is not {plt}");
        }
        assert_eq!(flow.delivered_bytes, 79_453 + 226, "what the browser read");
        assert!(run.sim_seconds < plt + 0.001, "the run ends with its last page");
        assert_eq!((flow.aborted, flow.completion_s), (false, None));
    }
}

#[test]
fn a_visit_reads_between_pages_and_keeps_its_connection() {
    let settings = [
        ("flow.page.traffic", "{ web = { pages = 5 } }"),
        ("flow.page.set.idle-timeout", "1000 s"),
        ("runs", "4"),
    ];
    let all = runs(&with(PAGE, &settings));
    for run in &all {
        let flow = &run.flows[0];
        assert_eq!(flow.pages, Some(5), "seed {}: {:?}", run.seed, flow.aborted);
        assert!(flow.handshake_s.is_some() && run.sim_seconds > 5.0);
    }
    assert_ne!(
        all[0].flows[0].delivered_bytes, all[1].flows[0].delivered_bytes,
        "another seed, other pages"
    );
}

/// Every transport asks for the same pages under one seed.
#[test]
fn pages_depend_on_the_seed_alone() {
    let bytes = |transport: &str| {
        let settings = [
            ("flow.page.transport", transport),
            ("flow.page.traffic", "{ web = {} }"),
            ("runs", "5"),
        ];
        let all = runs(&with(PAGE, &settings));
        all.iter()
            .map(|run| run.flows[0].delivered_bytes)
            .collect::<Vec<u64>>()
    };
    assert_eq!(bytes("restp:3wh-arq"), bytes("classic-tcp:newreno"));
}
