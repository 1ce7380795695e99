//! Why segments were taken for lost: what the network did to them, beside what the sender concluded.

use crate::common::{runs, with};
use restp_lab::metrics::{Inferred, LossCauses};
use restp_lab::run::RunResult;

const LINE: &str = r#"
id = "causes"
duration = "20 s"

[[link]]
name = "wire"
between = ["a", "b"]
rate = "10 Mbit/s"
delay = "20 ms"
queue = { drop_tail = "1000 packets" }

[[flow]]
name = "a"
from = "a"
to = "b"
transport = "classic-tcp:cubic"
traffic = { bulk = {} }
"#;

fn run(settings: &[(&str, &str)]) -> (RunResult, LossCauses) {
    let run = runs(&with(LINE, settings)).remove(0);
    let causes = run.flows[0].loss_causes.expect("it tells");
    (run, causes)
}

fn all(inferred: Inferred) -> u64 {
    inferred.congestion + inferred.corruption + inferred.outage + inferred.late
}

/// The rows of the table: congestion, corruption, outage, late.
fn rows(causes: LossCauses) -> [u64; 4] {
    [causes.congestion, causes.corruption, causes.outage, causes.late].map(all)
}

/// Losses go forward, so all hit segments that the sender misses before the file is over, but perhaps the very last.
#[test]
fn each_cause_is_known_by_what_the_network_did() {
    let small = ("link.wire.queue", "{ drop_tail = \"20 packets\" }");
    let policed = ("link.wire.police", "{ rate = \"5 Mbit/s\", burst = \"20 kB\" }");
    let lossy = ("link.wire.loss", "{ rate = 0.01 }");
    for (setting, row) in [(small, 0), (policed, 0), (lossy, 1)] {
        for transport in ["classic-tcp:cubic", "tcp:cubic", "restp:cubic", "restp:3wh-arq"] {
            let whole = ("flow.a.traffic", "{ file = { bytes = 6000000 } }");
            let (run, causes) = run(&[
                setting,
                whole,
                ("duration", "120 s"),
                ("flow.a.transport", transport),
            ]);
            assert!(run.flows[0].completion_s.is_some(), "{transport}, {setting:?}");
            let (flow, link, rows) = (&run.flows[0], &run.links[0], rows(causes));
            let dropped = link.dropped_queue + link.dropped_police + link.dropped_error;
            assert!(dropped > 20, "{transport}, {setting:?}: {link:?}");
            let missed = dropped - rows[row];
            assert!(
                missed <= 2,
                "{transport}, {setting:?}: {missed} of {dropped} unmissed, {rows:?}"
            );
            assert_eq!(
                rows[row] + rows[3],
                rows.iter().sum::<u64>(),
                "{transport}, {setting:?}: {rows:?}"
            );
            assert!(
                rows.iter().sum::<u64>() <= flow.lost_packets,
                "{transport}, {setting:?}: {rows:?}"
            );
        }
    }
    let (_, causes) = run(&[("link.wire.corrupt", "{ rate = 0.01 }")]);
    assert!(rows(causes)[1] > 20 && rows(causes)[0] == 0, "{causes:?}");
}

#[test]
fn an_outage_is_one_and_the_sender_may_know() {
    let outage = ("link.wire.outage", "[[\"5 s..6 s\"]]");
    for (loss, inferred) in [("outage", 2), ("congestion", 0)] {
        let (_, causes) = run(&[
            outage,
            ("flow.a.transport", "restp:cubic"),
            ("flow.a.set.loss", loss),
        ]);
        let Inferred {
            congestion,
            corruption,
            outage,
            late,
        } = causes.outage;
        let table = [congestion, corruption, outage, late];
        assert!(table[inferred] > 0, "{loss}: {causes:?}");
        assert_eq!(table[inferred], all(causes.outage), "{loss}: {causes:?}");
        assert_eq!(rows(causes)[1], 0, "{loss}: {causes:?}");
    }
}

/// Three later arrivals are a loss to a TCP of old, and one in twenty packets is 10 ms late here.
#[test]
fn what_was_overtaken_was_late() {
    let (run, causes) = run(&[("link.wire.reorder", "{ rate = 0.05, delay = \"10 ms\" }")]);
    assert!(causes.late.congestion > 20, "{causes:?}");
    assert_eq!(rows(causes), [0, 0, 0, causes.late.congestion]);
    assert!(causes.late.congestion <= run.flows[0].lost_packets);
}

/// The seal hides numbers from the wire, and several paths have numbers of their own: the table is the same.
#[test]
fn sealed_flows_and_several_paths_tell_as_well() {
    let lossy = ("link.*.loss", "{ rate = 0.01 }");
    let other = "[[link]]\nname = \"other\"\nbetween = [\"a\", \"b\"]\nrate = \"5 Mbit/s\"\ndelay = \"30 ms\"\n\
                 queue = { drop_tail = \"1000 packets\" }\n\n[[flow]]";
    let two = LINE.replacen("[[flow]]", other, 1);
    let sealed = ("flow.a.seal", "true");
    let paths = ("flow.a.paths", "[[[\"wire\"], [\"other\"]]]");
    for settings in [
        &[lossy, ("flow.a.transport", "restp:cubic"), sealed][..],
        &[lossy, ("flow.a.transport", "restp:multipath"), paths],
        &[lossy, ("flow.a.transport", "restp:multipath"), paths, sealed],
        &[lossy, ("flow.a.transport", "mptcp"), paths],
    ] {
        let flow = runs(&with(&two, settings)).remove(0).flows.remove(0);
        let causes = flow.loss_causes.expect("it tells");
        assert!(causes.corruption.congestion > 20, "{settings:?}: {causes:?}");
        assert_eq!(rows(causes)[0], 0, "{settings:?}: {causes:?}");
        assert!(
            causes.corruption.congestion * 10 > flow.lost_packets * 7,
            "{settings:?}: {causes:?} of {}",
            flow.lost_packets
        );
    }
}

#[test]
fn who_does_not_tell_has_no_table() {
    let flood = "{ transport = \"udp\", traffic = { cbr = { bytes = 1000, rate = \"1 Mbit/s\" } } }";
    for transport in [("flow.a.transport", "quic:quinn"), ("flow.a", flood)] {
        let run = &runs(&with(LINE, &[transport, ("duration", "1 s")]))[0];
        assert_eq!(run.flows[0].loss_causes, None, "{transport:?}");
    }
}
