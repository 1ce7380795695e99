//! Standard input, and limits to the rate.

#![allow(clippy::unwrap_used, reason = "in a test a failed unwrap is a failed test")]

use crate::common::{FOR_EVER, Receiver, Running, content, restp, says, wait_until, write};
use nix::sys::signal::Signal;
use std::fs;
use std::io::Write;

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
