//! Transfers between processes: sizes, refusals, many at once, compositions, hostile senders.

#![allow(clippy::unwrap_used, reason = "in a test a failed unwrap is a failed test")]

use crate::common::{Receiver, Running, TIMEOUT, content, emulate, names, restp, wait_until, write};
use bytes::Bytes;
use nix::sys::signal::Signal;
use restp::{CloseReason, Composition, Connection, Endpoint, EndpointConfig, Preset, Trust};
use serde_json::Value;
use sha2::{Digest, Sha256};
use std::fs;
use tokio::time::timeout;

/// As in docs/protocol/file-transfer.md.
pub const SERVICE_PORT: u16 = 7070;

/// The result of a sender, or of a receiver, which has `more`.
fn check_result(result: &Value, content: &[u8], more: &[&str]) {
    let keys: Vec<_> = result.as_object().unwrap().keys().map(String::as_str).collect();
    let both = [
        "bytes",
        "seconds",
        "goodput_bps",
        "sha256",
        "files",
        "skipped_files",
        "resumed_bytes",
        "composition",
        "handshake_ms",
        "early_packets",
        "longest_stall_ms",
        "paths",
        "found",
        "changes",
    ];
    assert_eq!(keys, [&both[..], more].concat());
    assert_eq!(result["bytes"], content.len());
    let digest: String = Sha256::digest(content)
        .iter()
        .map(|byte| format!("{byte:02x}"))
        .collect();
    assert_eq!(result["sha256"], digest);
    assert!(result["seconds"].as_f64().unwrap() > 0.0 && result["handshake_ms"].as_f64().unwrap() > 0.0);
    assert_eq!(result["composition"]["reliability"], "arq");
    let path = result["paths"][0].as_object().unwrap();
    let keys: Vec<_> = path.keys().map(String::as_str).collect();
    let expected = [
        "local",
        "remote",
        "bytes_sent",
        "packets_sent",
        "packets_lost",
        "srtt_ms",
        "down_events",
    ];
    assert_eq!(keys, expected);
    assert!(result["found"].is_array() && result["changes"].is_array());
    assert!(path["local"].is_string() && path["packets_sent"].as_u64().unwrap() > 0);
}

#[test]
fn files_of_all_sizes_arrive_through_a_path_that_loses_packets() {
    for bytes in [0, 1, 5 << 20] {
        let mut receiver = Receiver::start(&["--once"]);
        let keys = "rate = \"100 Mbit/s\"\ndelay = \"5 ms\"\nloss = { rate = 0.02, direction = \"both\" }\n";
        let path = emulate(&receiver.address, keys);
        let folder = tempfile::tempdir().unwrap();
        let content = content(bytes);
        let file = write(folder.path(), "Grüße 1.bin", &content);
        let sent = restp(&[
            "send",
            "--json",
            file.to_str().unwrap(),
            &receiver.ticket,
            "--address",
            &path.address,
        ]);
        assert_eq!(sent.code, Some(0), "{sent:?}");
        check_result(&sent.json(), &content, &[]);
        if bytes > 1 << 20 {
            let found = sent.json()["found"][0].as_str().unwrap().to_owned();
            assert!(found.contains(" % lost"), "{found}");
        }
        let result = receiver.running.json();
        check_result(&result, &content, &["peer", "key", "places"]);
        let place = receiver.folder.path().join("Grüße 1.bin");
        assert_eq!(result["places"], serde_json::json!([place]));
        assert_eq!(result["peer"], result["paths"][0]["remote"]);
        assert_eq!(result["key"].as_str().unwrap().len(), 52, "{result}");
        assert_eq!(receiver.names(), ["Grüße 1.bin"]);
        assert_eq!(
            fs::read(receiver.folder.path().join("Grüße 1.bin")).unwrap(),
            content
        );
        let received = receiver.running.end();
        assert_eq!(received.code, Some(0), "{received:?}");
    }
}

#[test]
fn what_exists_is_refused_with_the_way_out_and_replaced_on_request() {
    let folder = tempfile::tempdir().unwrap();
    let file = write(folder.path(), "a", b"new");
    let careful = Receiver::start(&["--once"]);
    write(careful.folder.path(), "a", b"old");
    let refused = restp(&["send", file.to_str().unwrap(), &careful.ticket]);
    assert_eq!(refused.code, Some(1));
    assert!(
        refused.stderr.contains("\"a\" already") && refused.stderr.contains("--overwrite"),
        "{refused:?}"
    );
    assert_eq!(fs::read(careful.folder.path().join("a")).unwrap(), b"old");

    let Receiver { folder: target, .. } = careful;
    let bold = Receiver::start_into(target, &["--once", "--overwrite"]);
    let sent = restp(&["send", file.to_str().unwrap(), &bold.ticket]);
    assert_eq!(sent.code, Some(0), "{sent:?}");
    assert_eq!(fs::read(bold.folder.path().join("a")).unwrap(), b"new");
    assert_eq!(bold.names(), ["a"]);
}

#[test]
fn many_senders_are_served_at_once() {
    let receiver = Receiver::start(&[]);
    let folder = tempfile::tempdir().unwrap();
    let content = content(300_000);
    let senders: Vec<Running> = (0..8)
        .map(|number| {
            let file = write(folder.path(), &format!("file {number}"), &content);
            Running::start(&["send", file.to_str().unwrap(), &receiver.ticket])
        })
        .collect();
    for sender in senders {
        let sent = sender.end();
        assert_eq!(sent.code, Some(0), "{sent:?}");
    }
    assert_eq!(receiver.names(), names(folder.path()));
}

#[test]
fn every_address_of_a_receiver_serves() {
    let mut receiver = Receiver::start(&["--listen", "127.0.0.2:0"]);
    let folder = tempfile::tempdir().unwrap();
    let file = write(folder.path(), "a", b"a");
    // The ticket's first address is that of nobody: the second one wins.
    let silent = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
    let dead = silent.local_addr().unwrap().to_string();
    let sent = restp(&["send", file.to_str().unwrap(), &dead, &receiver.ticket]);
    assert_eq!(sent.code, Some(0), "{sent:?}");
    assert!(receiver.running.is_running());
}

#[test]
fn profiles_and_settings_choose_what_the_connection_is_made_of() {
    let mut receiver = Receiver::start(&[]);
    let folder = tempfile::tempdir().unwrap();
    let file = write(folder.path(), "a", &content(100_000));
    let profile = write(
        folder.path(),
        "mine.toml",
        b"preset = \"3wh-arq\"\nack = \"positive+sack\"\nrecovery = \"pipe\"\n",
    );
    let (file, profile) = (file.to_str().unwrap(), profile.to_str().unwrap());
    let options = ["--profile", profile, "--set", "segment=1200 B", "--json"];
    let sent = restp(&[&["send", file, &receiver.ticket], &options[..]].concat());
    assert_eq!(sent.code, Some(0), "{sent:?}");
    assert_eq!(sent.json()["composition"]["congestion"], "newreno");
    assert_eq!(receiver.running.json()["composition"]["ack"], "positive+sack");

    for (option, value, word) in [
        ("--set", "congestion=cubik", "did you mean \"cubic\""),
        ("--set", "congestion", "KEY=VALUE"),
        ("--set", "ack=none", "choose"),
        ("--profile", "3wh-ark", "did you mean \"3wh-arq\""),
        ("--profile", "missing.toml", "missing.toml"),
        ("--profile", "unrel", "connection = connectionless"),
        ("--set", "framing=fixed", "in order; choose framing = coalesce"),
        ("--timeout", "5 x", "unknown unit"),
    ] {
        let refused = restp(&["send", file, &receiver.ticket, option, value]);
        assert_eq!(refused.code, Some(2), "{refused:?}");
        assert!(refused.stderr.contains(word), "{value}: {refused:?}");
    }
}

#[tokio::test]
async fn a_connection_that_could_lose_bytes_is_broken_off() {
    let receiver = Receiver::start(&["--open"]);
    let address = receiver.address.parse().unwrap();
    let knock = async |composition: Composition| {
        let config = EndpointConfig::new(composition.check().unwrap());
        let endpoint = Endpoint::bind("127.0.0.1:0".parse().unwrap(), config, Trust::Anybody).unwrap();
        let connection = endpoint.connect(address, SERVICE_PORT).await.unwrap();
        let _ = connection.send(Bytes::from(offer(4, b"a", b""))).await;
        connection
    };
    // Without connections there is no end that could be announced: the receiver forgets the sender.
    let _datagrams = knock(Preset::named("unrel").unwrap().composition()).await;
    let frames = Composition::from_pairs(Composition::default(), [("framing", "fixed")]).unwrap();
    let reason = timeout(TIMEOUT, knock(frames).await.closed()).await;
    assert_eq!(reason, Ok(CloseReason::Reset));
    assert!(receiver.names().is_empty());
    // Nothing of them is left: the receiver has no unfinished transfer to complain of.
    receiver.running.signal(Signal::SIGINT);
    let received = receiver.running.end();
    assert_eq!(received.code, Some(0), "{received:?}");
    for fault in ["connection = connectionless", "with framing = fixed"] {
        assert!(received.stderr.contains(fault), "{received:?}");
    }
}

/// What a sender says who wrote his own program: one file, without its end.
pub fn offer(version: u8, name: &[u8], content: &[u8]) -> Vec<u8> {
    let mut bytes = offer_of(version, &entry(name, 0, 1, &(content.len() as u64).to_be_bytes()));
    bytes.push(1);
    bytes.extend_from_slice(&(content.len() as u32).to_be_bytes());
    bytes.extend_from_slice(content);
    bytes
}

/// The same with its end.
fn whole(name: &[u8], content: &[u8], digest: &[u8]) -> Vec<u8> {
    [&offer(4, name, content), &[3, 0, 0, 0, 0][..], digest].concat()
}

fn offer_of(version: u8, manifest: &[u8]) -> Vec<u8> {
    let mut bytes = b"RFT\0".to_vec();
    bytes.push(version);
    bytes.extend_from_slice(&[0; 16]); // no ticket
    bytes.extend_from_slice(&30u32.to_be_bytes()); // its user timeout
    bytes.extend_from_slice(&(manifest.len() as u32).to_be_bytes());
    bytes.extend_from_slice(manifest);
    bytes
}

/// An entry in the folder that is entry `parent`, counted from 1. `kind`: 0 folder, 1 file, 2 link.
fn entry(name: &[u8], parent: u32, kind: u8, tail: &[u8]) -> Vec<u8> {
    let mut bytes = vec![kind];
    bytes.extend_from_slice(&parent.to_be_bytes());
    bytes.extend_from_slice(&[0o1, 0o244]); // 0o644
    bytes.extend_from_slice(&[0; 12]);
    bytes.extend_from_slice(&(name.len() as u16).to_be_bytes());
    bytes.extend_from_slice(name);
    bytes.extend_from_slice(tail);
    bytes
}

/// What a receiver answers to these bytes: kinds and bodies.
pub async fn answers(address: &str, bytes: Vec<u8>) -> Vec<(u8, Vec<u8>)> {
    let config = EndpointConfig::new(Composition::default().check().unwrap());
    let endpoint = Endpoint::bind("127.0.0.1:0".parse().unwrap(), config, Trust::Anybody).unwrap();
    let connection: Connection = endpoint
        .connect(address.parse().unwrap(), SERVICE_PORT)
        .await
        .unwrap();
    connection.send(Bytes::from(bytes)).await.unwrap();
    connection.finish();
    let mut said = Vec::new();
    while let Some(data) = connection.recv().await {
        said.extend_from_slice(&data);
    }
    let mut rest = &said[..];
    let mut answers = Vec::new();
    while let [kind, high, low, more @ ..] = rest {
        let (body, after) = more.split_at(usize::from(u16::from_be_bytes([*high, *low])));
        answers.push((*kind, body.to_vec()));
        rest = after;
    }
    answers
}

#[tokio::test]
async fn names_that_lead_out_of_the_folder_are_refused() {
    let outside = tempfile::tempdir().unwrap();
    let inside = tempfile::tempdir_in(outside.path()).unwrap();
    let mut receiver = Receiver::start_into(inside, &["--open"]);
    let long = "x".repeat(256);
    for name in [
        "../escaped",
        "..",
        ".",
        "/tmp/escaped",
        "a/b",
        "a\\b",
        "C:x",
        "",
        "a\0b",
        "NUL",
        &long,
        ".restp-x",
        ".bash_profile",
        "-rf",
        "report\u{202e}fdp.exe",
    ] {
        let inner = [entry(b"d", 0, 0, b""), entry(name.as_bytes(), 1, 0, b"")].concat();
        for hostile in [offer(4, name.as_bytes(), b""), offer_of(4, &inner)] {
            let answers = answers(&receiver.address, hostile).await;
            assert_eq!(answers.len(), 1, "{name:?}: {answers:?}");
            assert_eq!(answers[0].0, 2, "{name:?} is refused");
        }
    }
    assert_eq!(names(outside.path()).len(), 1, "only the receiver's folder");
    assert!(receiver.names().is_empty() && receiver.running.is_running());
}

#[tokio::test]
async fn links_in_the_folder_lead_nowhere() {
    let outside = tempfile::tempdir().unwrap();
    let receiver = Receiver::start(&["--open", "--overwrite"]);
    let victim = outside.path().join("victim");
    std::os::unix::fs::symlink(&victim, receiver.folder.path().join("a")).unwrap();
    let bytes = whole(b"a", b"x", &Sha256::digest(b"x"));
    assert_eq!(answers(&receiver.address, bytes).await.last().unwrap().0, 3);
    assert!(!victim.exists());
    assert_eq!(fs::read(receiver.folder.path().join("a")).unwrap(), b"x");
}

#[tokio::test]
async fn other_versions_protocols_and_digests_are_answered_with_a_sentence() {
    let receiver = Receiver::start(&["--open"]);
    let says = |answers: Vec<(u8, Vec<u8>)>| {
        let (kind, body) = answers.last().unwrap().clone();
        (kind, String::from_utf8(body).unwrap())
    };
    let (kind, why) = says(answers(&receiver.address, offer(9, b"a", b"")).await);
    assert!(kind == 2 && why.contains("version 9"), "{why}");
    let (kind, why) = says(answers(&receiver.address, b"GET / HTTP/1.1\r\n\r\n".to_vec()).await);
    assert!(kind == 2 && why.contains("no file transfer"), "{why}");
    let (kind, why) = says(answers(&receiver.address, offer(3, b"a", b"")).await);
    assert!(kind == 2 && why.contains("version 3"), "an older sender: {why}");
    let wrong = whole(b"a", b"content", &[0; 32]);
    let (kind, why) = says(answers(&receiver.address, wrong).await);
    assert!(kind == 4 && why.contains("SHA-256"), "{why}");
    let said = answers(&receiver.address, offer(4, b"a", b"")).await;
    // Accepted; and Nothing, where what is there is looked for before the end of the sender is seen.
    assert!(said.iter().all(|(kind, _)| [1, 5].contains(kind)), "{said:?}");
    // What was not confirmed goes when its sender has gone.
    wait_until("nothing is left", || receiver.names().is_empty());
}

#[tokio::test]
async fn a_forged_list_is_refused_and_nothing_is_made() {
    let outside = tempfile::tempdir().unwrap();
    let inside = tempfile::tempdir_in(outside.path()).unwrap();
    let receiver = Receiver::start_into(inside, &["--open"]);
    let size = 0u64.to_be_bytes();
    let link = |target: &[u8]| {
        let tail = [&(target.len() as u16).to_be_bytes(), target].concat();
        [entry(b"d", 0, 0, b""), entry(b"l", 1, 2, &tail)].concat()
    };
    let one = entry(b"a", 0, 1, &size);
    for (manifest, word) in [
        (vec![], "this one has 0"),
        (one[..one.len() - 1].to_vec(), "damaged"),
        (entry(b"a", 0, 7, b""), "unknown kind"),
        (entry(b"a", 1, 0, b""), "in no folder"),
        (entry(b"\xff\xfe", 0, 0, b""), "not UTF-8"),
        (entry(&[b'x'; 65_535], 0, 0, b""), "65535 bytes"),
        ([one.clone(), entry(b"A", 0, 0, b"")].concat(), "two of this name"),
        ([one.clone(), entry(b"b", 1, 1, &size)].concat(), "in no folder"),
        (link(b"../../escaped"), "out of what is sent"),
        (link(b"/etc/passwd"), "out of what is sent"),
        (link(b"x/../../../escaped"), "out of what is sent"),
    ] {
        let said = answers(&receiver.address, offer_of(4, &manifest)).await;
        let (kind, why) = said.last().unwrap();
        let why = String::from_utf8_lossy(why);
        assert!(*kind == 2 && why.contains(word), "{word}: {said:?} {why}");
    }
    // More or less of a file than the list says.
    let long = [offer(4, b"a", b"content"), vec![1, 0, 0, 0, 1, b'x']].concat();
    let short = [
        offer_of(4, &entry(b"a", 0, 1, &9u64.to_be_bytes())),
        vec![3, 0, 0, 0, 0],
        vec![0; 32],
    ]
    .concat();
    // A count on what is not there.
    let same = [
        offer_of(4, &entry(b"a", 0, 1, &9u64.to_be_bytes())),
        vec![4, 0, 0, 0, 9],
        vec![3, 0, 0, 0, 0],
        vec![0; 32],
    ]
    .concat();
    for (wrong, word) in [
        (long, "another length"),
        (short, "another length"),
        (same, "not told of"),
    ] {
        let said = answers(&receiver.address, wrong).await;
        let (kind, why) = said.last().unwrap();
        let why = String::from_utf8_lossy(why);
        assert!(*kind == 4 && why.contains(word), "{why}");
    }
    assert!(receiver.names().is_empty(), "{:?}", receiver.names());
    assert_eq!(names(outside.path()).len(), 1, "only the receiver's folder");
}

#[test]
fn a_port_alone_and_a_name_reach_this_host() {
    let receiver = Receiver::start(&["--open"]);
    let folder = tempfile::tempdir().unwrap();
    let port = receiver.address.rsplit_once(':').unwrap().1;
    for (name, to) in [
        ("a", port),
        ("b", &format!(":{port}")),
        ("c", &format!("localhost:{port}")),
    ] {
        let file = write(folder.path(), name, b"x");
        let sent = restp(&["send", file.to_str().unwrap(), to]);
        assert_eq!(sent.code, Some(0), "{to}: {sent:?}");
    }
    assert_eq!(receiver.names(), ["a", "b", "c"]);
}
