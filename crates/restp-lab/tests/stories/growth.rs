//! Events of the network per data packet: each costs a turn of a whole machine, so a timer or a packet more per segment is
//! seen here before anybody measures. None grows with the window, with flows, or with paths. `make bench-cost` counts
//! instructions.

use crate::common::{runs, with};

/// What a packet may cost at most, as a multiple of what it costs in the smallest network.
const MOST_GROWTH: f64 = 1.3;

/// One line; links and a flow are appended.
fn line(name: &str, rate: &str, delay: &str, loss: &str) -> String {
    format!(
        "[[link]]\nname = \"{name}\"\nbetween = [\"source\", \"sink\"]\nrate = \"{rate}\"\ndelay = \"{delay}\"\n{loss}\n"
    )
}

fn events_per_packet(duration: &str, links: &str, transport: &str, further: &str) -> f64 {
    let text = format!(
        "id = \"growth\"\nduration = \"{duration}\"\n{links}[[flow]]\nname = \"bulk-{{i}}\"\nfrom = \"source\"\n\
         to = \"sink\"\ntransport = \"{transport}\"\ntraffic = {{ bulk = {{}} }}\n{further}\n"
    );
    let run = runs(&with(&text, &[])).swap_remove(0);
    let sent: u64 = run.flows.iter().map(|flow| flow.sent_packets).sum();
    assert!(sent > 1_000, "{sent} packets: too few to tell");
    run.events as f64 / sent as f64
}

fn assert_steady(what: &str, small: f64, large: f64) {
    assert!(
        large <= MOST_GROWTH * small,
        "{what}: {large:.2} events per data packet, {small:.2} in the smallest network"
    );
}

/// 20 and 1,700 segments in flight, most of them behind a hole.
#[test]
fn events_per_packet_do_not_grow_with_the_window() {
    let loss = "loss = { rate = 0.001, direction = \"forward\" }";
    let of = |rate, delay| {
        let links = line("line", rate, delay, loss);
        events_per_packet("4 s", &links, "restp:resilient", "count = 1")
    };
    assert_steady("window", of("10 Mbit/s", "10 ms"), of("200 Mbit/s", "50 ms"));
}

#[test]
fn events_per_packet_do_not_grow_with_flows() {
    let of = |flows: u64, duration| {
        let links = line("line", &format!("{flows} Mbit/s"), "20 ms", "");
        let further = format!("count = {flows}\nstart_spread = \"0.5 s\"");
        events_per_packet(duration, &links, "restp:3wh-arq", &further)
    };
    assert_steady("flows", of(1, "20 s"), of(64, "4 s"));
}

#[test]
fn events_per_packet_do_not_grow_with_paths() {
    let of = |paths: usize, duration| {
        let names: Vec<String> = (0..paths).map(|path| format!("path-{path}")).collect();
        let links: String = names
            .iter()
            .map(|name| line(name, "10 Mbit/s", "20 ms", ""))
            .collect();
        let alone: Vec<[&String; 1]> = names.iter().map(|name| [name]).collect();
        let further = format!("count = 1\npaths = {alone:?}");
        events_per_packet(duration, &links, "restp:multipath", &further)
    };
    assert_steady("paths", of(1, "8 s"), of(8, "3 s"));
}
