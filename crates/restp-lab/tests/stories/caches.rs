//! A cache on the way of many consumers, and what many objects of different popularity make of it.

use crate::common::{runs, with};
use restp_lab::Scenario;
use restp_lab::model::lru_hit_share;
use restp_lab::traffic::Popularity;

const BEHIND: &str = r#"
id = "behind"
duration = "100 s"

[[link]]
name = "access-{i}"
count = 12
between = ["c{i}", "edge"]
rate = "20 Mbit/s"
delay = "1 ms"

[[link]]
name = "core"
between = ["edge", "p"]
rate = "20 Mbit/s"
delay = "10 ms"
queue = { drop_tail = "300 packets" }

[[host]]
name = "producer"
node = "p"
transport = "itp"

[[host]]
name = "cache"
node = "edge"
role = "cache"

[[flow]]
name = "f{i}"
count = 12
from = "c{i}"
to = "producer"
traffic = { zipf = { objects = 1, bytes = 300000 } }
"#;

#[test]
fn consumers_at_once_cost_the_producer_one_copy_and_without_a_cache_one_each() {
    for (settings, least, most) in [
        (&[][..], 1.0, 1.02),
        (&[("host.producer.set.naming", "hash")], 1.0, 1.04),
        (&[("host.cache.size", "0 B")], 12.0, f64::INFINITY),
        (&[("host.producer.transport", "tcp:cubic")], 12.0, f64::INFINITY),
        (
            &[("host.producer.transport", "restp:default")],
            12.0,
            f64::INFINITY,
        ),
        (&[("host.producer.transport", "sctp")], 12.0, f64::INFINITY),
    ] {
        let run = &runs(&with(BEHIND, settings))[0];
        for flow in &run.flows {
            assert_eq!(
                (flow.delivered_bytes, flow.wrong_bytes, flow.sent_messages),
                (300_000, Some(0), Some(1)),
                "{settings:?}: {flow:?}"
            );
            assert!(
                flow.completion_s.is_some() && !flow.aborted,
                "{settings:?}: {flow:?}"
            );
        }
        let [producer, cache] = &run.hosts[..] else {
            panic!("two hosts")
        };
        let sent = producer.sent_payload_bytes as f64 / 300_000.0;
        assert!((least..=most).contains(&sent), "{settings:?}: {sent} copies");
        assert_eq!(
            cache.hits.is_some(),
            settings != [("host.cache.size", "0 B")],
            "{cache:?}"
        );
    }
}

/// What is lost on either side of the cache is asked for again, by one for all where it never came.
#[test]
fn losses_beside_a_cache_cost_what_was_lost() {
    for lossy in ["link.core.loss", "link.access-{i}.loss"] {
        let loss = "{ rate = 0.02, unit = \"packet\", direction = \"both\" }";
        let run = &runs(&with(BEHIND, &[(lossy, loss)]))[0];
        for flow in &run.flows {
            assert_eq!(
                (flow.delivered_bytes, flow.wrong_bytes),
                (300_000, Some(0)),
                "{lossy}"
            );
        }
        let sent = run.hosts[0].sent_payload_bytes as f64 / 300_000.0;
        assert!((1.0..1.1).contains(&sent), "{lossy}: {sent} copies");
    }
}

const POPULAR: &str = r#"
id = "popular"
duration = "300 s"

[[link]]
name = "access-{i}"
count = 4
between = ["c{i}", "edge"]
rate = "100 Mbit/s"
delay = "500 us"

[[link]]
name = "core"
between = ["edge", "p"]
rate = "100 Mbit/s"
delay = "2 ms"

[[host]]
name = "producer"
node = "p"
transport = "itp"

[[host]]
name = "cache"
node = "edge"
role = "cache"
size = "20 kB"

[[flow]]
name = "f{i}"
count = 4
from = "c{i}"
to = "producer"
traffic = { zipf = { objects = 200, exponent = 0.8, requests = 3000, bytes = 1000 } }

[measure]
from = "10 s"
"#;

#[test]
fn a_cache_answers_as_often_as_the_model_says() {
    let run = &runs(&with(POPULAR, &[]))[0];
    let cache = &run.hosts[1];
    let expected = lru_hit_share(&Popularity::zipf(200, 0.8), 20.0);
    let found = cache.hit_share.expect("it was asked");
    // 7,000 requests of a share near a third: five deviations are 3 points.
    assert!((found - expected).abs() < 0.03, "{found} {expected}: {cache:?}");
    assert!(
        run.flows.iter().all(|flow| flow.wrong_bytes == Some(0)),
        "objects are not mixed up"
    );
    assert!(run.flows[0].completion_s.is_some());
}

/// One connection for all requests, where there are connections.
#[test]
fn a_catalogue_is_read_over_connections_too() {
    for transport in [
        "tcp:cubic",
        "restp:default",
        "restp:opt-arq",
        "mptcp",
        "sctp",
        "ndn",
    ] {
        let run = &runs(&with(
            POPULAR,
            &[
                ("host.producer.transport", transport),
                ("flow.f{i}.traffic.zipf.requests", "50"),
                ("flow.f{i}.traffic.zipf.pause", "20 ms"),
                ("measure.from", "0 s"),
            ],
        ))[0];
        for flow in &run.flows {
            assert_eq!(
                (flow.delivered_bytes, flow.wrong_bytes, flow.sent_messages),
                (50_000, Some(0), Some(50)),
                "{transport}: {flow:?}"
            );
            // 49 pauses of 20 ms in the mean.
            assert!(
                flow.completion_s.is_some_and(|span| span > 0.5),
                "{transport}: {flow:?}"
            );
            assert!(flow.sent_packets >= 50, "{transport}: {flow:?}");
        }
    }
}

#[test]
fn what_is_no_catalogue_is_refused_with_the_way_out() {
    for (from, to, parts) in [
        (
            "objects = 200",
            "objects = 0",
            &["traffic.zipf.objects", "1 to 1000000"][..],
        ),
        (
            "exponent = 0.8",
            "exponent = -1.0",
            &["traffic.zipf.exponent", "0 (all alike) to 10"],
        ),
        (
            "requests = 3000",
            "requests = 0",
            &["traffic.zipf.requests", "write 1 to"],
        ),
        (
            "bytes = 1000 }",
            "bytes = \"1 GiB\" }",
            &["traffic.zipf.bytes", "too large"],
        ),
        (
            "transport = \"itp\"",
            "transport = \"udp\"",
            &["traffic", "udp loses requests"],
        ),
        (
            "transport = \"itp\"",
            "transport = \"restp:unrel\"",
            &["traffic", "repeats them"],
        ),
    ] {
        assert!(POPULAR.contains(from));
        let error = Scenario::parse(&POPULAR.replacen(from, to, 1));
        let error = error.map(|_| ()).expect_err("refused").to_string();
        for part in parts {
            assert!(error.contains(part), "no {part:?} in: {error}");
        }
    }
}
