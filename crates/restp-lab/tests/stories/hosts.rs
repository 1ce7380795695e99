//! One machine for many flows: a server of several clients, a source of several sinks.

use crate::common::{runs, with};
use restp_lab::run::RunResult;
use restp_lab::{Options, Scenario, run};
use std::collections::BTreeSet;
use std::ops::ControlFlow;
use std::sync::{Arc, Mutex};

const STAR: &str = r#"
id = "star"
duration = "60 s"

[[link]]
name = "access-{i}"
count = 4
between = ["c{i}", "router"]
rate = "10 Mbit/s"
delay = "5 ms"

[[link]]
name = "server"
between = ["router", "s"]
rate = "20 Mbit/s"
delay = "5 ms"
loss = { rate = 0.01, unit = "packet", direction = "both" }

[[host]]
name = "server"
node = "s"
transport = "restp:default"

[[flow]]
name = "f{i}"
count = 4
from = "c{i}"
to = "server"
start_spread = "100 ms"
traffic = { file = { bytes = 300000 } }
"#;

#[track_caller]
fn is_whole(run: &RunResult, bytes: u64, what: &str) {
    for flow in &run.flows {
        assert_eq!(
            (flow.wrong_bytes, flow.delivered_bytes, flow.aborted),
            (Some(0), bytes, false),
            "{what}, {}: {flow:?}",
            flow.name
        );
        assert!(flow.completion_s.is_some(), "{what}, {}", flow.name);
    }
}

#[test]
fn one_machine_serves_many_clients_of_every_protocol() {
    let all = [
        "restp:default",
        "restp:opt-arq",
        "tcp:cubic",
        "classic-tcp:newreno",
        "mptcp",
        "sctp",
        "itp",
    ];
    for transport in all {
        let run = &runs(&with(STAR, &[("host.server.transport", transport)]))[0];
        is_whole(run, 300_000, transport);
        let [server] = &run.hosts[..] else {
            panic!("{transport}: one host, not {:?}", run.hosts)
        };
        let link = run
            .links
            .iter()
            .find(|link| link.name == "server")
            .expect("its link");
        // What it sends and what it gets is what its link carries, less what that has lost, and what is on its way at the end.
        let packets = server.sent_packets + server.received_packets;
        let arrived = link.packets - link.dropped_error - link.dropped_queue;
        assert!(
            (arrived - 20..=link.packets).contains(&packets),
            "{transport}: {server:?} {link:?}"
        );
        assert!(
            server.received_bytes > 1_200_000 && server.hits.is_none(),
            "{server:?}"
        );
        let serial = serde_json::to_value(run).expect("JSON");
        assert!(serial["hosts"][0]["hit_share"].is_null());
    }
}

/// Its clients may differ in what they set, and in nothing but that.
#[test]
fn clients_of_one_server_choose_their_own_parameters() {
    for (transport, own) in [
        (
            "restp:default",
            "transport = \"restp:cubic\"\nset = { congestion = \"newreno\" }",
        ),
        ("tcp:cubic", "transport = \"classic-tcp:sack\""),
    ] {
        let text = STAR
            .replace("restp:default", transport)
            .replace("from = \"c{i}\"", &format!("from = \"c{{i}}\"\n{own}"));
        is_whole(
            &runs(&with(&text, &[("host.server.transport", transport)]))[0],
            300_000,
            transport,
        );
    }
}

#[test]
fn one_machine_opens_flows_to_many_sinks() {
    for transport in ["restp:default", "restp:opt-arq", "tcp:bbr3", "udp", "sctp", "itp"] {
        let text = STAR
            .replace(
                "from = \"c{i}\"\nto = \"server\"",
                "from = \"server\"\nto = \"c{i}\"",
            )
            .replace("loss =", "#");
        let text = if transport == "udp" {
            text.replace(
                "file = { bytes = 300000 }",
                "cbr = { rate = \"1 Mbit/s\", bytes = 1000, count = 300 }",
            )
        } else {
            text
        };
        let run = &runs(&with(&text, &[("host.server.transport", transport)]))[0];
        if transport == "udp" {
            let counts: Vec<_> = run.flows.iter().map(|flow| flow.delivered_messages).collect();
            assert_eq!(counts, [Some(300); 4]);
        } else {
            is_whole(run, 300_000, transport);
        }
        let server = &run.hosts[0];
        assert!(server.sent_payload_bytes >= 1_200_000, "{transport}: {server:?}");
    }
}

/// Everybody finds the server at one address, and the server's packets find everybody.
#[test]
fn a_host_has_one_address_for_all_its_flows() {
    let scenario = Scenario::parse(STAR).expect("a scenario");
    let seen: Arc<Mutex<BTreeSet<[u8; 8]>>> = Arc::default();
    let taken = seen.clone();
    let capture = move |_| -> Option<restp_lab::run::FrameSink> {
        let seen = taken.clone();
        Some(Box::new(move |frame: &restp_lab::run::Frame<'_>| {
            let addresses = frame.packet[12..20].try_into().expect("two addresses");
            seen.lock().expect("nobody panics").insert(addresses);
        }))
    };
    let options = Options {
        capture: Some(&capture),
        ..Options::DEFAULT
    };
    run(&scenario, &options, |_| ControlFlow::Continue(())).expect("it runs");
    let seen = seen.lock().expect("nobody panics");
    let ends: BTreeSet<&[u8]> = seen.iter().flat_map(|pair| [&pair[..4], &pair[4..]]).collect();
    assert_eq!((seen.len(), ends.len()), (8, 5), "{seen:?}");
    assert!(
        seen.iter()
            .all(|pair| [&pair[..4], &pair[4..]].contains(&&[10, 0, 0, 1][..]))
    );
}

const TWO_WAYS: &str = r#"
id = "two-ways"
duration = "60 s"

[[link]]
name = "a{i}"
count = 2
between = ["c{i}", "s"]
rate = "4 Mbit/s"
delay = "10 ms"

[[link]]
name = "b{i}"
count = 2
between = ["c{i}", "s"]
rate = "4 Mbit/s"
delay = "20 ms"

[[host]]
name = "s"
transport = "restp:geo-spread"

[[flow]]
name = "f{i}"
count = 2
from = "c{i}"
to = "s"
paths = [["a{i}"], ["b{i}"]]
traffic = { file = { bytes = 2000000 } }
"#;

#[test]
fn flows_over_several_paths_share_a_host_with_an_address_for_each() {
    for transport in ["restp:geo-spread", "mptcp:lia", "cmt:cwnd"] {
        let run = &runs(&with(TWO_WAYS, &[("host.s.transport", transport)]))[0];
        is_whole(run, 2_000_000, transport);
        for flow in &run.flows {
            let sent: Vec<u64> = flow.paths.iter().map(|path| path.bytes_sent).collect();
            assert!(
                sent.len() == 2 && sent.iter().all(|bytes| *bytes > 200_000),
                "{transport}: {sent:?}"
            );
        }
    }
}

#[track_caller]
fn refused(text: &str, parts: &[&str]) {
    let error = Scenario::parse(text)
        .map(|_| ())
        .expect_err("refused")
        .to_string();
    for part in parts {
        assert!(error.contains(part), "no {part:?} in: {error}");
    }
}

#[test]
fn what_is_no_host_is_refused_with_line_key_and_way_out() {
    let host = |with: &str| STAR.replace("node = \"s\"\ntransport = \"restp:default\"", with);
    let flow = |with: &str| STAR.replace("to = \"server\"", with);
    refused(
        &host("node = \"t\"\ntransport = \"udp\""),
        &["line 21", "host.server.node", "no node \"t\"", "stations"],
    );
    refused(
        &host("node = \"s\""),
        &["host.server.name", "restp:default", "role = \"cache\""],
    );
    refused(
        &host("node = \"s\"\ntransport = \"quic:quinn\""),
        &["host.server.transport", "one connection"],
    );
    refused(
        &host("node = \"s\"\nrole = \"relay\""),
        &["host.server.role", "endpoint, cache"],
    );
    refused(
        &host("node = \"s\"\ntransport = \"udp\"\nsize = \"1 MiB\""),
        &["host.server.size", "only a cache"],
    );
    refused(
        &host("node = \"s\"\ntransport = \"tcp:cubic\"\nset = { windo = 1 }"),
        &["host.server.set.windo"],
    );
    refused(
        &host("node = \"s\"\nrole = \"cache\""),
        &["flow.f{i}.to", "is a cache", "name the node"],
    );
    refused(
        &STAR.replace(
            "name = \"server\"\nnode = \"s\"",
            "name = \"router\"\nnode = \"s\"",
        ),
        &["host.router.name", "is a node"],
    );
    refused(
        &flow("to = \"serverr\""),
        &["flow.f{i}.to", "did you mean \"server\"?"],
    );
    refused(&flow("to = \"s\""), &["missing field \"transport\"", "[[host]]"]);
    refused(
        &flow("to = \"server\"\ntransport = \"tcp:cubic\""),
        &["flow.f{i}.transport", "serves \"restp:default\"", "same protocol"],
    );
    refused(
        &flow("to = \"server\"\nset = { congestion = \"bic\" }"),
        &["flow.f{i}.set.congestion", "transport = "],
    );
    refused(
        &flow("to = \"server\"\nseal = true"),
        &["not sealed", "leave seal out"],
    );
    let opens = STAR.replace(
        "from = \"c{i}\"\nto = \"server\"",
        "from = \"server\"\nto = \"c{i}\"",
    );
    refused(
        &opens.replace("start_spread", "transport = \"udp\"\nstart_spread"),
        &["flow.f{i}.transport", "host.server.transport"],
    );
    refused(
        &opens.replace("start_spread", "set = { congestion = \"bic\" }\nstart_spread"),
        &["flow.f{i}.set.congestion", "host.server.set.congestion"],
    );
    let two = STAR.replace("from = \"c{i}\"", "from = \"client\"")
        + "\n[[host]]\nname = \"client\"\nnode = \"c1\"\ntransport = \"restp:default\"\n";
    refused(&two, &["flow.f{i}.name", "\"client\"", "already"]);
    let cache = "\n[[host]]\nname = \"cache\"\nnode = \"c1\"\nrole = \"cache\"\n";
    refused(
        &(STAR.to_owned() + cache),
        &["host.cache.node", "no flow leads through \"c1\""],
    );
    refused(
        &(STAR.to_owned() + &cache.replace("\"c1\"\n", "\"router\"\ntransport = \"itp\"\n")),
        &["host.cache.transport", "leave transport out"],
    );
}
