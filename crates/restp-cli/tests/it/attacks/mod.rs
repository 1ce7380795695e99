//! Senders that nobody invited, with programs of their own (`docs/protocol/threats.md`).

use crate::common::{FOR_EVER, Receiver, restp, says, write};
use crate::transfer::{answers, offer};
use std::fs;

#[tokio::test]
async fn who_does_not_have_the_ticket_sends_nothing() {
    let receiver = Receiver::start(&[]);
    let mut guess = offer(2, b"a", b"");
    let place = guess.len() - 16;
    for byte in [0, 1, 0xff] {
        guess[place..].fill(byte);
        let said = answers(&receiver.address, guess.clone()).await;
        let (kind, why) = said.first().expect("an answer");
        let why = String::from_utf8_lossy(why);
        assert!(
            *kind == 2 && why.contains("ticket") && why.contains("--open"),
            "{why}"
        );
    }
    let folder = tempfile::tempdir().unwrap();
    let file = write(folder.path(), "note.txt", b"between us");
    let send = |to: &[&str]| restp(&[&["send", file.to_str().unwrap()], &FOR_EVER[..], to].concat());
    says(&send(&[&receiver.address]), 1, &["those who have its ticket"]);
    assert!(receiver.names().is_empty());
    let invited = send(&[&receiver.ticket, "--address", &receiver.address]);
    assert_eq!(invited.code, Some(0), "{invited:?}");
    assert_eq!(receiver.names(), ["note.txt"]);
}

#[test]
fn a_receiver_for_everybody_is_warned_of() {
    let mut open = Receiver::start(&["--open"]);
    let said = open.running.overhear("receiving into");
    assert!(said.contains("warning: --open"), "{said}");
    let mut invited = Receiver::start(&[]);
    assert!(!invited.running.overhear("receiving into").contains("warning"));
    let folder = tempfile::tempdir().unwrap();
    let file = write(folder.path(), "note.txt", b"between us");
    let sent = restp(&[&["send", file.to_str().unwrap(), &open.address], &FOR_EVER[..]].concat());
    assert_eq!(sent.code, Some(0), "{sent:?}");
}

#[test]
fn a_name_that_hides_is_said_before_anything_is_sent() {
    let receiver = Receiver::start(&[]);
    let folder = tempfile::tempdir().unwrap();
    let file = write(folder.path(), ".bash_profile", b"echo here");
    says(
        &restp(&["send", file.to_str().unwrap(), &receiver.ticket]),
        2,
        &["begins with '.'", "rename"],
    );
}

#[cfg(target_os = "linux")]
#[test]
fn a_file_that_says_to_be_empty_is_sent_whole() {
    let receiver = Receiver::start(&[]);
    let sent = restp(&[&["send", "/proc/version", &receiver.ticket], &FOR_EVER[..]].concat());
    assert_eq!(sent.code, Some(0), "{sent:?}");
    let arrived = fs::read(receiver.folder.path().join("version")).unwrap();
    assert!(!arrived.is_empty() && arrived == fs::read("/proc/version").unwrap());
}
