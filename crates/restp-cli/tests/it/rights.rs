//! What a receiver may not read or write, and what it says of that.

#![allow(clippy::unwrap_used, reason = "in a test a failed unwrap is a failed test")]

use crate::common::{Ended, Running, restp, says, write};
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

/// What takes from root the right to read and write everything; to other users it gives nothing either.
const WITHOUT: [&str; 3] = [
    "setpriv",
    "--inh-caps=-dac_override,-dac_read_search",
    "--bounding-set=-dac_override,-dac_read_search",
];

/// What starts a program that may do no more than permissions say.
fn through() -> &'static [&'static str] {
    match nix::unistd::geteuid().is_root() {
        true => &WITHOUT,
        false => &["env"],
    }
}

/// Can root be bound like other users here?
fn is_bound() -> bool {
    let through = through();
    let tried = std::process::Command::new(through[0])
        .args(&through[1..])
        .args(["cat", "/dev/null"])
        .status();
    let is_bound = tried.is_ok_and(|status| status.success());
    if !is_bound {
        eprintln!("SKIPPED: this user writes everywhere");
    }
    is_bound
}

fn mode(path: &Path, mode: u32) {
    fs::set_permissions(path, PermissionsExt::from_mode(mode)).unwrap();
}

/// Sends `top` to a receiver into `inbox` that may do no more there than permissions say.
fn send(top: &Path, inbox: &Path, options: &[&str]) -> Ended {
    let dir = inbox.to_str().unwrap();
    let fixed = ["recv", "--json", "--listen", "127.0.0.1:0", "--dir", dir];
    let no_input = fs::File::open("/dev/null").unwrap();
    let mut receiver = Running::start_through(through(), no_input.into(), &[&fixed, options].concat());
    let ticket = receiver.json()["ticket"].as_str().unwrap().to_owned();
    restp(&["send", top.to_str().unwrap(), &ticket])
}

/// A folder `d` with a file that is sent, and an inbox with one of the same name.
fn places() -> (tempfile::TempDir, std::path::PathBuf, std::path::PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let (top, inbox) = (folder.path().join("d"), folder.path().join("inbox"));
    fs::create_dir(&top).unwrap();
    fs::create_dir_all(inbox.join("d")).unwrap();
    write(&top, "f", b"new");
    (folder, top, inbox)
}

#[test]
fn a_read_only_folder_is_named_with_the_way_out() {
    if !is_bound() {
        return;
    }
    let (_folder, top, inbox) = places();
    let there = inbox.join("d");
    mode(&there, 0o555);
    says(
        &send(&top, &inbox, &[]),
        1,
        &["may not write to its folder \"d\"", "permissions"],
    );
    // One that is sent read-only can be opened.
    mode(&top, 0o555);
    says(
        &send(&top, &inbox, &[]),
        1,
        &["folder \"d\" is read-only", "--overwrite"],
    );
    let sent = send(&top, &inbox, &["--overwrite"]);
    assert_eq!(sent.code, Some(0), "{sent:?}");
    assert_eq!(fs::read(there.join("f")).unwrap(), b"new");
    mode(&top, 0o755);
    mode(&there, 0o755);
}

#[test]
fn a_folder_that_cannot_be_looked_into_is_named() {
    if !is_bound() {
        return;
    }
    let (_folder, top, inbox) = places();
    let there = inbox.join("d");
    for closed in [0o000, 0o444] {
        mode(&there, closed);
        let sent = send(&top, &inbox, &["--overwrite"]);
        mode(&there, 0o755);
        says(
            &sent,
            1,
            &["its folder \"d\", or not look into it", "permissions"],
        );
    }
}

#[test]
fn a_file_that_cannot_be_compared_is_named_and_can_be_replaced() {
    if !is_bound() {
        return;
    }
    let (_folder, top, inbox) = places();
    let there = write(&inbox.join("d"), "f", b"old");
    mode(&there, 0o000);
    says(
        &send(&top, &inbox, &[]),
        1,
        &["cannot read what it has of \"d/f\"", "--overwrite"],
    );
    let sent = send(&top, &inbox, &["--overwrite"]);
    assert_eq!(sent.code, Some(0), "{sent:?}");
    assert_eq!(fs::read(&there).unwrap(), b"new");
}
