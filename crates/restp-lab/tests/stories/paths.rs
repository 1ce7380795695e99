//! Flows over several paths: where the bytes go, what the ends are told, and what is refused.

use crate::common::{runs, with};
use restp_lab::Scenario;

/// Two links of 10 Mbit/s, 10 and 20 ms long, between the same nodes.
const TWO: &str = r#"
id = "two"
duration = "20 s"

[[link]]
name = "a"
between = ["source", "sink"]
rate = "10 Mbit/s"
delay = "10 ms"

[[link]]
name = "b"
between = ["source", "sink"]
rate = "10 Mbit/s"
delay = "20 ms"

[[flow]]
name = "bulk"
from = "source"
to = "sink"
transport = "restp:geo-spread"
set = { ack = "positive+sack", recovery = "pipe", scheduling = "fastest-rtt", window = "1024 segments" }
paths = [["a"], ["b"]]
traffic = { bulk = {} }
"#;

#[test]
fn spreading_uses_both_links_and_every_byte_is_in_its_place() {
    let run = runs(&with(TWO, &[])).swap_remove(0);
    let flow = &run.flows[0];
    assert!(flow.goodput_bps > Some(15e6), "{:?}", flow.goodput_bps);
    assert_eq!(flow.wrong_bytes, Some(0));
    let [a, b] = &flow.paths[..] else {
        panic!("two paths: {:?}", flow.paths)
    };
    assert_eq!(
        (&a.links[..], &b.links[..]),
        (&["a".to_owned()][..], &["b".to_owned()][..])
    );
    assert!(
        a.bytes_sent > 10_000_000 && b.bytes_sent > 10_000_000,
        "{a:?} {b:?}"
    );
    assert!(a.srtt_ms < b.srtt_ms);
    let offered: u64 = run.links.iter().map(|link| link.packets).sum();
    assert!(offered >= flow.sent_packets, "nothing takes another way");
}

#[test]
fn a_named_path_is_taken_even_where_another_is_shorter() {
    let text = TWO
        .replace(", scheduling = \"fastest-rtt\"", "")
        .replace("restp:geo-spread", "restp:3wh-arq")
        .replace("[[\"a\"], [\"b\"]]", "[[\"b\"]]");
    let run = runs(&with(&text, &[])).swap_remove(0);
    assert_eq!((run.links[0].packets, run.flows[0].paths.len()), (0, 1));
    assert!(run.flows[0].goodput_bps > Some(5e6) && run.links[1].packets > 1000);
}

/// The second path joins after the first: with a notice the switch takes one delay of the other path; without one, two
/// round trips of silence more.
#[test]
fn a_notice_shortens_the_pause_of_hot_standby() {
    let text = TWO.replace("[[flow]]", "outage = [\"8 s..12 s\"]\n\n[[flow]]");
    let text = text.replacen("delay = \"10 ms\"", "delay = \"20 ms\"", 1);
    let text = text.replace("paths = [[\"a\"], [\"b\"]]", "paths = [[\"b\"], [\"a\"]]");
    let text = text
        .replace("restp:geo-spread", "restp:mp-opt")
        .replace(", scheduling = \"fastest-rtt\"", "");
    let pause = |notice: &str| {
        let settings = [
            ("flow.bulk.notice", notice),
            ("flow.bulk.set.connection", "three-way"),
        ];
        let flow = runs(&with(&text, &settings)).swap_remove(0).flows.swap_remove(0);
        assert_eq!((flow.outages.len(), flow.wrong_bytes), (1, Some(0)));
        (
            flow.outages[0].pause_s.expect("measured"),
            flow.paths[0].down_events,
        )
    };
    let ((with_notice, told), (without, _)) = (pause("true"), pause("false"));
    assert_eq!(told, 1);
    // Silence has to last two round trips first. A path that has been idle begins with ten segments in both cases.
    assert!(without > with_notice + 0.02, "{with_notice} {without}");
}

#[test]
fn paths_that_are_none_are_refused() {
    let refused = |from: &str, to: &str| {
        let text = TWO.replace(from, to);
        assert_ne!(text, TWO);
        Scenario::parse(&text).expect_err("refused").to_string()
    };
    let two = "paths = [[\"a\"], [\"b\"]]";
    assert!(refused(two, "paths = []").contains("a flow without a path"));
    assert!(refused(two, "paths = [[\"a\"], [\"c\"]]").contains("no link is called \"c\""));
    assert!(refused(two, "paths = [[\"a\", \"b\"]]").contains("lead to \"source\""));
    assert!(
        refused(two, "paths = [[\"a\"], [\"b\"]]\nbackups = 2").contains("2 of 2 paths cannot be backups")
    );
    assert!(refused(two, "backups = 1").contains("add paths"));
    let single = refused(
        "restp:geo-spread\"\nset = {",
        "classic-tcp:newreno\"\nset = { segment = \"1400 B\" } #",
    );
    assert!(single.contains("classic-tcp:newreno has one path"), "{single}");
}

/// The scheduler would take the shorter path, which has room for everything.
#[test]
fn traffic_that_names_a_path_is_carried_by_it() {
    let pinned = |path: &str| {
        let cbr = format!("{{ cbr = {{ bytes = 1000, interval = \"20 ms\", count = 100{path} }} }}");
        let text = TWO.replace("{ bulk = {} }", &cbr);
        let flow = runs(&with(&text, &[])).swap_remove(0).flows.swap_remove(0);
        assert_eq!(flow.delivered_messages, Some(100));
        [flow.paths[0].bytes_sent, flow.paths[1].bytes_sent]
    };
    let [a, b] = pinned("");
    assert!(a > 100_000 && b < 10_000, "{a} {b}");
    let [a, b] = pinned(", path = 2");
    // The first messages leave before the second path is up.
    assert!(a < 10_000 && b > 95_000, "{a} {b}");
}

#[test]
fn a_path_that_traffic_cannot_be_pinned_to_is_refused() {
    let refused = |transport: &str, path: &str| {
        let voip = format!("{{ voip = {{ path = {path} }} }}");
        let text = TWO.replace("{ bulk = {} }", &voip);
        let text = text.replace("restp:geo-spread\"\nset = {", transport);
        Scenario::parse(&text).expect_err("refused").to_string()
    };
    let restp = "restp:geo-spread\"\nset = {";
    for path in ["0", "3"] {
        let said = refused(restp, path);
        assert!(
            said.contains(&format!("path {path} is none of this flow, which has 2")),
            "{said}"
        );
    }
    assert!(refused(restp, "3").contains("line 24"), "{}", refused(restp, "3"));
    let said = refused("mptcp:lia\"\nset = { segment = \"1400 B\" } #", "2");
    assert!(said.contains("mptcp:lia chooses the path"), "{said}");
}

/// Messages over two links, each of which is filled for a while by a transfer of somebody else's: first the shorter one,
/// then the other.
const CROSS_TRAFFIC: &str = r#"
id = "redundant"
duration = "24 s"
runs = 5

[[link]]
name = "a"
between = ["source", "sink"]
rate = "10 Mbit/s"
delay = "10 ms"
queue = { drop_tail = "100 packets" }

[[link]]
name = "b"
between = ["source", "sink"]
rate = "10 Mbit/s"
delay = "12 ms"
queue = { drop_tail = "100 packets" }

[[flow]]
name = "messages"
from = "source"
to = "sink"
start = "2 s"
transport = "restp:multipath"
set = { scheduling = "redundant", ack-every = "1 packets" }
paths = [["a"], ["b"]]
traffic = { cbr = { bytes = 200, interval = "20 ms", count = 1000 } }

[[flow]]
name = "on-a"
from = "source"
to = "sink"
transport = "tcp:cubic"
paths = [["a"]]
start = "4 s"
start_spread = "1 s"
traffic = { file = { bytes = 8000000 } }

[[flow]]
name = "on-b"
from = "source"
to = "sink"
transport = "tcp:cubic"
paths = [["b"]]
start = "14 s"
start_spread = "1 s"
traffic = { file = { bytes = 8000000 } }
"#;

/// A queue of 100 packets is 120 ms long. A copy of each message leaves on the other link, where there is none: 99 of 100
/// messages take no longer than the longer link takes, and a millisecond.
#[test]
fn redundant_messages_wait_in_no_queue_that_others_fill() {
    let slowest = |text: &str| -> Vec<f64> {
        let each = runs(&with(text, &[])).into_iter();
        each.map(|run| run.flows[0].latency_p99_ms.expect("messages arrive"))
            .collect()
    };
    let redundant = slowest(CROSS_TRAFFIC);
    assert_eq!(redundant.len(), 5);
    assert!(redundant.iter().all(|ms| *ms <= 13.0), "{redundant:?}");
    let alone = slowest(&CROSS_TRAFFIC.replace("[[\"a\"], [\"b\"]]", "[[\"a\"]]"));
    assert!(
        alone.iter().all(|ms| *ms > 100.0),
        "queues have to hurt one path, or nothing is shown: {alone:?}"
    );
}

/// Acknowledgements had come by the shorter path, which died. The lane that is left took the longer way for a queue, and that for a
/// neighbour, and shared with him what it had alone: 2.4 of 5 Mbit/s.
#[test]
fn the_path_that_is_left_is_filled_although_its_acknowledgements_take_a_longer_way() {
    let settings = [
        ("link.a.rate", "5 Mbit/s"),
        ("link.b.rate", "5 Mbit/s"),
        ("link.a.delay", "15 ms"),
        ("link.b.delay", "25 ms"),
        ("link.b.loss", "{ rate = 0.01 }"),
        ("link.a.outage", "[[\"3 s..20 s\"]]"),
        ("flow.bulk.transport", "restp:default"),
        ("flow.bulk.set", "{ numbering = \"shared\" }"),
    ];
    // Which losses come differs by seed, and with them how long the windows take.
    let each = runs(&with(TWO, &[&settings[..], &[("runs", "9")]].concat())).into_iter();
    let mut goodputs: Vec<f64> = each.map(|run| run.flows[0].goodput_bps.expect("bulk")).collect();
    goodputs.sort_by(f64::total_cmp);
    // 3 s of both and 17 s of one, of which a tenth is headers and losses.
    let both = (3.0 * 2.0 + 17.0) * 5e6 / 20.0;
    assert_eq!(goodputs.len(), 9);
    assert!(goodputs[4] > 0.75 * both, "{goodputs:?} of {both}");
}

/// A path that stood still answers again: of all that was to leave anew nothing needs to, however much it is. It took a call of a
/// function within itself for each segment, and the stack for some thousands.
#[test]
fn a_path_that_stood_still_answers_for_all_its_segments_at_once() {
    let text = TWO
        .replace("20 s", "2 s")
        .replace("restp:geo-spread", "restp:multipath")
        .replace("set = {", "# {")
        .replacen(
            "rate = \"10 Mbit/s\"\ndelay = \"10 ms\"",
            "rate = { steps = [[\"0 s\", \"100 Mbit/s\"], [\"1 s\", \"0 bit/s\"], [\"1250 ms\", \"100 Mbit/s\"]] }\n\
             reverse_rate = \"100 Mbit/s\"\ndelay = \"50 ms\"\nqueue = { drop_tail = \"9000 packets\" }",
            1,
        );
    let run = std::thread::Builder::new()
        .stack_size(400_000)
        .spawn(move || runs(&with(&text, &[])).swap_remove(0))
        .expect("a thread")
        .join()
        .expect("it ends");
    assert!(
        run.flows[0].goodput_bps > Some(20e6),
        "{:?}",
        run.flows[0].goodput_bps
    );
}
