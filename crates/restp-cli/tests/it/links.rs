//! `restp paths`, and links chosen by name.

#![allow(clippy::unwrap_used, reason = "in a test a failed unwrap is a failed test")]

use crate::common::{Receiver, restp, says, with_config, write};
use std::fs;

#[test]
fn links_are_listed_with_what_the_users_file_makes_of_them() {
    let config = tempfile::tempdir().unwrap();
    let listed = with_config(config.path(), &["paths", "--json"]);
    assert_eq!(listed.code, Some(0), "{listed:?}");
    let links = listed
        .stdout
        .lines()
        .map(|line| serde_json::from_str(line).unwrap());
    let links: Vec<serde_json::Value> = links.collect();
    let link = links.iter().find(|link| link["name"] == "lo").unwrap();
    assert_eq!(
        (&link["state"], &link["used_by"]),
        (&"loopback".into(), &serde_json::json!([]))
    );
    fs::create_dir(config.path().join("restp")).unwrap();
    fs::write(
        config.path().join("restp/paths.toml"),
        "[pipe]\nuse = [\"usb7\", \"lo\"]\n",
    )
    .unwrap();
    let listed = with_config(config.path(), &["paths"]);
    let row = listed
        .stdout
        .lines()
        .find(|line| line.starts_with("lo "))
        .unwrap();
    assert!(row.contains("127.0.0.1") && row.ends_with("pipe"), "{row}");
    let rest = listed.stdout.lines().last().unwrap();
    assert!(
        rest.starts_with("forward, send, tunnel: the routing table"),
        "{rest}"
    );
    fs::write(
        config.path().join("restp/paths.toml"),
        "[pipe]\nuse = [\"usb7\"]\n",
    )
    .unwrap();
    let listed = with_config(config.path(), &["paths"]).stdout;
    assert!(listed.contains("\npipe: no link that "), "{listed}");
}

#[test]
fn a_file_is_sent_over_the_link_that_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let file = write(folder.path(), "note.txt", b"over loopback");
    let receiver = Receiver::start(&["--once"]);
    let sent = restp(&[
        "send",
        file.to_str().unwrap(),
        &receiver.ticket,
        "--use",
        "lo",
        "--paths",
        "1",
        "--json",
    ]);
    assert_eq!(sent.code, Some(0), "{sent:?}");
    let unknown = restp(&[
        "send",
        file.to_str().unwrap(),
        "127.0.0.1:9",
        "--use",
        "lo,nolink0",
    ]);
    says(&unknown, 2, &["--use nolink0", "restp paths"]);
    let both = restp(&[
        "send",
        file.to_str().unwrap(),
        "127.0.0.1:9",
        "--use",
        "lo",
        "--bind",
        "127.0.0.1",
    ]);
    says(&both, 2, &["cannot be used with"]);
}

#[test]
fn a_wrong_file_is_named_before_anything_is_sent() {
    let config = tempfile::tempdir().unwrap();
    let file = write(config.path(), "note.txt", b"never sent");
    fs::create_dir(config.path().join("restp")).unwrap();
    fs::write(config.path().join("restp/paths.toml"), "paths = 0\n").unwrap();
    let sent = with_config(config.path(), &["send", file.to_str().unwrap(), "127.0.0.1:9"]);
    says(&sent, 2, &["paths.toml", "line 1", "[forward]"]);
}

/// A user's links lead to other hosts: with them a transfer to this one found no way.
#[test]
fn the_users_file_does_not_keep_a_transfer_from_this_host() {
    let config = tempfile::tempdir().unwrap();
    let file = write(config.path(), "note.txt", b"next door");
    fs::create_dir(config.path().join("restp")).unwrap();
    fs::write(config.path().join("restp/paths.toml"), "paths = 1\n").unwrap();
    let receiver = Receiver::start(&["--once"]);
    let sent = with_config(config.path(), &["send", file.to_str().unwrap(), &receiver.ticket]);
    assert_eq!(sent.code, Some(0), "{sent:?}");
    assert!(!sent.stderr.contains("paths.toml"), "{sent:?}");
}
