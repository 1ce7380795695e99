//! Traces: what stands in them is what the results say, for simulated connections and for real ones.

#![allow(clippy::unwrap_used, reason = "in a test a failed unwrap is a failed test")]

use crate::common::{Receiver, content, names, restp, write};
use serde_json::Value;
use std::path::Path;

const TWO_PATHS: &str = r#"
id = "two"
duration = "5 s"
seed = 3
[[link]]
name = "x"
between = ["source", "sink"]
rate = "5 Mbit/s"
delay = "10 ms"
loss = { rate = 0.02, unit = "packet" }
[[link]]
name = "y"
between = ["source", "sink"]
rate = "2 Mbit/s"
delay = "20 ms"
[[flow]]
name = "a"
from = "source"
to = "sink"
transport = "restp:multipath"
paths = [["x"], ["y"]]
traffic = { bulk = {} }
"#;

/// The records of one trace: RFC 7464 text sequences.
fn records(file: &Path) -> Vec<Value> {
    let text = std::fs::read_to_string(file).unwrap();
    assert!(text.starts_with('\u{1e}') && text.ends_with('\n'));
    let records = text.split('\u{1e}').skip(1);
    records
        .map(|record| serde_json::from_str(record).unwrap())
        .collect()
}

fn of<'a>(records: &'a [Value], name: &'a str) -> impl Iterator<Item = &'a Value> {
    records.iter().filter(move |record| record["name"] == name)
}

/// Packets of one name on one tuple: how many, and their bytes.
fn packets(records: &[Value], name: &str, tuple: &str) -> (u64, u64) {
    let bytes = of(records, name)
        .filter(|event| event["tuple"] == tuple)
        .map(|event| event["data"]["raw"]["length"].as_u64().unwrap());
    bytes.fold((0, 0), |(count, sum), bytes| (count + 1, sum + bytes))
}

/// Length of each block of a capture, by kind (draft-ietf-opsawg-pcapng §3).
fn blocks(file: &[u8]) -> Vec<(u32, &[u8])> {
    let word = |at: usize| u32::from_le_bytes(file[at..at + 4].try_into().unwrap());
    let (mut at, mut blocks) = (0, Vec::new());
    while at < file.len() {
        let length = word(at + 4) as usize;
        blocks.push((word(at), &file[at + 8..at + length - 4]));
        at += length;
    }
    blocks
}

#[test]
fn a_capture_holds_every_packet_of_every_link_once() {
    let folder = tempfile::tempdir().unwrap();
    let scenario = write(folder.path(), "two.toml", TWO_PATHS.as_bytes());
    let capture = folder.path().join("two.pcapng");
    let [scenario, into] = [&scenario, &capture].map(|path| path.to_str().unwrap());
    let [plain, ended] = [&[][..], &["--pcap", into]].map(|more| {
        let arguments = ["sim", scenario, "--json", "--runs", "1"];
        restp(&[&arguments[..], more].concat())
    });
    assert_eq!((ended.code, plain.code), (Some(0), Some(0)), "{}", ended.stderr);
    let [plain, run]: [Value; 2] =
        [&plain, &ended].map(|ended| serde_json::from_str(ended.stdout.lines().next().unwrap()).unwrap());
    assert_eq!(plain["flows"], run["flows"], "a capture changes nothing");
    let file = std::fs::read(&capture).unwrap();
    let blocks = blocks(&file);
    let word = |body: &[u8], at: usize| u32::from_le_bytes(body[at..at + 4].try_into().unwrap());
    assert_eq!(
        blocks.iter().filter(|(kind, _)| *kind == 1).count(),
        2,
        "interfaces"
    );
    let packets: Vec<&[u8]> = blocks
        .iter()
        .filter(|(kind, _)| *kind == 6)
        .map(|(_, body)| *body)
        .collect();
    for link in 0..2 {
        let own = packets.iter().filter(|body| word(body, 0) as usize == link);
        let bytes: u64 = own.clone().map(|body| u64::from(word(body, 12))).sum();
        assert_eq!(run["links"][link]["packets"], own.count(), "{link}");
        assert_eq!(run["links"][link]["bytes"], bytes, "{link}");
    }
    let times: Vec<(u32, u32)> = packets
        .iter()
        .map(|body| (word(body, 4), word(body, 8)))
        .collect();
    assert!(times.is_sorted());
    let lost = packets
        .iter()
        .filter(|body| body.windows(14).any(|part| part == b"dropped: error"));
    assert_eq!(run["links"][0]["dropped_error"], lost.count());
    // Version 4, 5 words, protocol 253, from 10.0.0.1 to 10.0.0.2.
    let first = &packets[0][20..40];
    assert_eq!((first[0], first[9]), (0x45, 253));
    assert_eq!(first[12..], [10, 0, 0, 1, 10, 0, 0, 2]);
}

/// The first packets of the set-up: what the pipe of a test holds.
#[test]
fn what_is_captured_can_be_decoded() {
    let folder = tempfile::tempdir().unwrap();
    let scenario = write(folder.path(), "two.toml", TWO_PATHS.as_bytes());
    let capture = folder.path().join("two.pcapng");
    let [scenario, into] = [&scenario, &capture].map(|path| path.to_str().unwrap());
    let short = ["--set", "duration=18 ms", "--runs", "1", "--pcap", into];
    assert_eq!(restp(&[&["sim", scenario][..], &short].concat()).code, Some(0));
    let file = std::fs::read(&capture).unwrap();
    let packets = blocks(&file).iter().filter(|(kind, _)| *kind == 6).count();
    let read = restp(&["decode", into, "--json"]);
    assert!(packets > 0 && read.code == Some(0), "{read:?}");
    assert_eq!(read.stdout.lines().count(), packets);
    for line in read.stdout.lines() {
        let pdu: Value = serde_json::from_str(line).unwrap();
        assert_eq!(
            (&pdu["error"], &pdu["payload_bytes"]),
            (&Value::Null, &Value::from(0))
        );
    }
}

#[test]
fn a_capture_is_of_one_run() {
    let folder = tempfile::tempdir().unwrap();
    let scenario = write(folder.path(), "two.toml", TWO_PATHS.as_bytes());
    let scenario = scenario.to_str().unwrap();
    let many = restp(&["sim", scenario, "--runs", "2", "--pcap", "never"]);
    assert_eq!(many.code, Some(2));
    assert!(many.stderr.contains("--runs 1"), "{}", many.stderr);
    let swept = restp(&[
        "sim",
        scenario,
        "--set",
        "link.x.rate=[\"1 Mbit/s\", \"2 Mbit/s\"]",
        "--pcap",
        "never",
    ]);
    assert_eq!(swept.code, Some(2));
    assert!(swept.stderr.contains("2 points"), "{}", swept.stderr);
    let nowhere = restp(&["sim", scenario, "--runs", "1", "--pcap", "/does/not/exist"]);
    assert_eq!(nowhere.code, Some(2));
    assert!(
        nowhere.stderr.contains("/does/not/exist: cannot be written"),
        "{}",
        nowhere.stderr
    );
}

#[test]
fn a_simulated_trace_counts_what_the_result_counts() {
    let folder = tempfile::tempdir().unwrap();
    let scenario = write(folder.path(), "two.toml", TWO_PATHS.as_bytes());
    let traces = folder.path().join("traces");
    let [scenario, into] = [&scenario, &traces].map(|path| path.to_str().unwrap());
    let ended = restp(&["sim", scenario, "--json", "--qlog", into]);
    assert_eq!(ended.code, Some(0), "{ended:?}");
    let result: Value = serde_json::from_str(ended.stdout.lines().next().unwrap()).unwrap();
    assert_eq!(
        names(&traces),
        ["two-0-3-a.client.sqlog", "two-0-3-a.server.sqlog"]
    );

    let client = records(&traces.join("two-0-3-a.client.sqlog"));
    assert_eq!(client[0]["trace"]["vantage_point"]["type"], "client");
    let flow = &result["flows"][0];
    let paths = flow["paths"].as_array().unwrap();
    assert_eq!(of(&client, "quic:tuple_assigned").count(), paths.len());
    for (tuple, path) in ["0", "1"].iter().zip(paths) {
        let (count, bytes) = packets(&client, "quic:packet_sent", tuple);
        assert_eq!(path["packets_sent"], count, "{tuple}");
        assert_eq!(path["bytes_sent"], bytes, "{tuple}");
    }
    assert_eq!(flow["lost_packets"], of(&client, "quic:packet_lost").count());
    let server = records(&traces.join("two-0-3-a.server.sqlog"));
    let both = |name| of(&client, name).count() + of(&server, name).count();
    assert_eq!(result["packets"], both("quic:packet_received"));

    let times: Vec<f64> = client[1..]
        .iter()
        .map(|event| event["time"].as_f64().unwrap())
        .collect();
    assert!(times.is_sorted(), "in the order of time");
    let windows = of(&client, "quic:recovery_metrics_updated")
        .filter_map(|event| event["data"]["congestion_window"].as_u64());
    assert!(windows.max() > Some(14_000), "the window has grown");
}

#[test]
fn tracing_changes_no_result() {
    let folder = tempfile::tempdir().unwrap();
    let scenario = write(folder.path(), "two.toml", TWO_PATHS.as_bytes());
    let scenario = scenario.to_str().unwrap();
    let traces = folder.path().join("traces");
    let result = |arguments: &[&str]| {
        let ended = restp(&[&["sim", scenario, "--json"], arguments].concat());
        let mut result: Value = serde_json::from_str(ended.stdout.lines().next().unwrap()).unwrap();
        result["wall_seconds"] = Value::Null;
        result
    };
    let traced = result(&["--qlog", traces.to_str().unwrap(), "--qlog-schema", "0.3"]);
    assert_eq!(traced, result(&[]));
    let trace = records(&traces.join("two-0-3-a.client.sqlog"));
    assert_eq!(
        (
            trace[0]["qlog_version"].as_str(),
            trace[0]["qlog_format"].as_str()
        ),
        (Some("0.3"), Some("JSON-SEQ"))
    );
    assert!(of(&trace, "transport:packet_sent").count() > 100);
}

#[test]
fn a_real_transfer_is_traced() {
    let folder = tempfile::tempdir().unwrap();
    let file = write(folder.path(), "letter", &content(200_000));
    let traces = folder.path().join("traces");
    let receiver = Receiver::start(&["--once"]);
    let [file, into] = [&file, &traces].map(|path| path.to_str().unwrap());
    let ended = restp(&["send", file, &receiver.ticket, "--json", "--qlog", into]);
    assert_eq!(ended.code, Some(0), "{ended:?}");
    let trace = records(&traces.join("letter.client.sqlog"));
    let sent: u64 = of(&trace, "quic:packet_sent")
        .map(|event| event["data"]["raw"]["length"].as_u64().unwrap())
        .sum();
    assert!(sent > 200_000, "{sent}");
    assert!(of(&trace, "quic:packet_received").count() > 10);
    assert!(of(&trace, "quic:recovery_metrics_updated").any(|event| event["data"]["smoothed_rtt"].is_f64()));
}

#[test]
fn a_folder_that_cannot_be_written_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let scenario = write(folder.path(), "two.toml", TWO_PATHS.as_bytes());
    let taken = write(folder.path(), "taken", b"");
    let ended = restp(&[
        "sim",
        scenario.to_str().unwrap(),
        "--qlog",
        taken.to_str().unwrap(),
    ]);
    assert_eq!(ended.code, Some(2), "{ended:?}");
    assert!(
        ended.stderr.contains("taken") && ended.stderr.contains("--qlog"),
        "{ended:?}"
    );
}
