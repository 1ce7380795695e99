//! Standard input, and limits to the rate.

#![allow(clippy::unwrap_used, reason = "in a test a failed unwrap is a failed test")]

use crate::common::{FOR_EVER, Receiver, Running, content, restp, says, wait_until, write};
use nix::sys::signal::Signal;
use restp::{Acceptance, Composition, Endpoint, EndpointConfig, Trust};
use sha2::{Digest, Sha256};
use std::fs;
use std::io::Write;
use std::time::Duration;

#[test]
fn standard_input_arrives_whole_and_goes_on_where_it_was() {
    let mut receiver = Receiver::start(&FOR_EVER);
    let content = content(4 << 20);
    let words = ["send", "--json", "-", "--name", "all.tar", &receiver.ticket];
    let command = [&words[..], &FOR_EVER[..]].concat();
    let (sender, mut input) = Running::start_listening(&command);
    input.write_all(&content[..3 << 20]).unwrap();
    let part = || {
        let name = receiver.names().pop()?;
        Some(fs::metadata(receiver.folder.path().join(name)).ok()?.len())
    };
    wait_until("what was written has arrived", || part() == Some(3 << 20));
    sender.signal(Signal::SIGKILL);
    sender.end();
    let (sender, mut input) = Running::start_listening(&command);
    input.write_all(&content).unwrap();
    drop(input);
    let sent = sender.end();
    assert_eq!(sent.code, Some(0), "{sent:?}");
    for result in [sent.json(), receiver.running.json()] {
        assert_eq!(
            (&result["bytes"], &result["resumed_bytes"]),
            (&(4 << 20).into(), &(3 << 20).into())
        );
    }
    assert_eq!(receiver.names(), ["all.tar"]);
    assert!(fs::read(receiver.folder.path().join("all.tar")).unwrap() == content);
}

#[test]
fn standard_input_is_read_once_and_has_a_name_that_is_one() {
    says(&restp(&["send", "-", "-", "127.0.0.1:1"]), 2, &["read once"]);
    says(
        &restp(&["send", "-", "--name", "../x", "127.0.0.1:1"]),
        2,
        &["holds a path"],
    );
}

#[test]
fn a_limit_is_kept() {
    let receiver = Receiver::start(&[]);
    let folder = tempfile::tempdir().unwrap();
    let file = write(folder.path(), "a", &content(300_000));
    let file = file.to_str().unwrap();
    let sent = restp(&["send", "--json", file, &receiver.ticket, "--limit", "2Mbit/s"]);
    assert_eq!(sent.code, Some(0), "{sent:?}");
    assert!(sent.json()["seconds"].as_f64().unwrap() > 1.0, "{sent:?}");
    for (limit, word) in [
        ("20", "no unit"),
        ("1 bit/s", "at least 8 bit/s"),
        ("5 s", "another kind"),
    ] {
        says(
            &restp(&["send", file, "1", "--limit", limit]),
            2,
            &["--limit", word],
        );
    }
}

/// The last record is on its way before the thread that reads has said so: a receiver is done as soon as it has it.
#[tokio::test]
async fn a_verdict_may_be_there_before_the_sender_has_read_to_the_end() {
    let config = EndpointConfig::new(Composition::default().check().unwrap());
    let config = config.listen(crate::transfer::SERVICE_PORT, Acceptance::Any);
    let endpoint = Endpoint::bind("127.0.0.1:0".parse().unwrap(), config, Trust::Nobody).unwrap();
    let address = endpoint.local_addr().to_string();
    let keys = tempfile::tempdir().unwrap();
    let (sender, mut input) = Running::start_listening_keeping(keys.path(), &["send", "-", &address]);
    let connection = endpoint.accept().await.unwrap();
    connection.recv().await.unwrap();
    let verdict = [&[3, 0, 40][..], &Sha256::digest(b"content"), &[0; 8]].concat();
    let nothing = [5, 0, 4, 0, 0, 0, 1];
    connection
        .send([&[1, 0, 0][..], &nothing, &verdict].concat().into())
        .await
        .unwrap();
    connection.finish();
    tokio::time::sleep(Duration::from_millis(300)).await;
    input.write_all(b"content").unwrap();
    drop(input);
    let ended = tokio::task::spawn_blocking(|| sender.end());
    while connection.recv().await.is_some() {}
    let sent = ended.await.unwrap();
    assert_eq!(sent.code, Some(0), "{sent:?}");
}
