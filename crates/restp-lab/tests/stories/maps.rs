//! Nodes with places: how long links are, which paths keep apart, and what a disc takes down.

use crate::common::{file, lines, runs, with};
use restp_lab::{Line, Options, Scenario};

const MAP: &str = r#"
id = "map"
duration = "10 s"
node = [
  { name = "s", latitude = 0, longitude = 0 },
  { name = "m", latitude = 0, longitude = 5 },
  { name = "n", latitude = 1, longitude = 5 },
  { name = "t", latitude = 0, longitude = 10 },
]
challenge = [{ during = "5 s..6 s", centre = [-1, 5], radius_km = 150 }]

[[link]]
name = "sm"
between = ["s", "m"]
rate = "1 Mbit/s"

[[link]]
name = "mt"
between = ["m", "t"]
rate = "1 Mbit/s"

[[link]]
name = "sn"
between = ["s", "n"]
rate = "1 Mbit/s"

[[link]]
name = "nt"
between = ["n", "t"]
rate = "1 Mbit/s"

[[flow]]
name = "a"
from = "s"
to = "t"
transport = "restp:geo-spread"
disjoint = 2
traffic = { bulk = {} }
"#;

/// The southern path lies 111 km from the disc's centre, the northern one 222 km.
#[test]
fn a_disc_takes_down_the_path_it_touches() {
    let run = runs(&with(MAP, &[])).remove(0);
    let flow = &run.flows[0];
    assert_eq!(
        [&flow.paths[0].links, &flow.paths[1].links],
        [&["sm", "mt"], &["sn", "nt"]]
    );
    assert_eq!(flow.outages.len(), 1);
    assert_eq!((flow.outages[0].start_s, flow.outages[0].end_s), (5.0, 6.0));
    let dropped: Vec<bool> = run.links.iter().map(|link| link.dropped_outage > 0).collect();
    assert!(!dropped[2] && !dropped[3], "{dropped:?}");
    assert!(
        flow.outages[0].pause_s.is_some_and(|pause| pause < 0.9),
        "the other path carries on"
    );
}

#[test]
fn what_the_map_cannot_give_is_refused() {
    let refused = |settings: &[(&str, &str)]| {
        let mut scenario = Scenario::parse(MAP).expect("a scenario");
        for (key, value) in settings {
            match scenario.with(key, value) {
                Ok(changed) => scenario = changed,
                Err(error) => return error.to_string(),
            }
        }
        panic!("{settings:?} was taken");
    };
    let message = refused(&[("flow.a.disjoint", "3")]);
    assert!(
        message.contains("3 disjoint paths") && message.contains("write 1 to 2"),
        "{message}"
    );
    let message = refused(&[("flow.a.geodiverse", "{ paths = 2, separation_km = 100 }")]);
    assert!(message.contains("exclude each other"), "{message}");
    let apart = MAP.replace("disjoint = 2", "geodiverse = { failures = 1, radius_km = 60 }");
    let message = Scenario::parse(&apart)
        .err()
        .map_or_else(String::new, |error| error.to_string());
    assert!(message.contains("keep 120 km apart"), "{message}");
    let off = MAP.replace("{ name = \"n\", latitude = 1, longitude = 5 },", "");
    let message = Scenario::parse(&off)
        .err()
        .map_or_else(String::new, |error| error.to_string());
    assert!(
        message.contains("missing field \"delay\"") && message.contains("[[node]]"),
        "{message}"
    );
}

/// ResTP §4.6: ratios of 1 and 2, and nothing against something.
#[test]
fn geodiverse_paths_outlive_disjoint_ones() {
    let scenario = file("e6-backbone.toml")
        .with("link.*.rate", "2 Mbit/s")
        .expect("allowed");
    let held = lines(&scenario, &Options::DEFAULT)
        .into_iter()
        .filter_map(|line| match line {
            Line::Verdict(verdict) if verdict.check != "E6-large-geodiverse" => {
                Some((verdict.check, verdict.held))
            }
            _ => None,
        });
    let failed: Vec<_> = held.filter(|(_, held)| *held != Some(true)).collect();
    assert!(failed.is_empty(), "{failed:?}");
}
