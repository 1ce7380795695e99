//! Senders that nobody invited, with programs of their own (`docs/protocol/threats.md`).

#![allow(clippy::unwrap_used, reason = "in a test a failed unwrap is a failed test")]

use crate::common::{FOR_EVER, Receiver, TIMEOUT, restp, says, wait_until, write};
use crate::transfer::{SERVICE_PORT, answers, offer};
use bytes::Bytes;
use restp::{CloseReason, Composition, Endpoint, EndpointConfig, Trust};
use std::fs;
use std::time::Duration;
use tokio::time::timeout;

#[tokio::test]
async fn who_does_not_have_the_ticket_sends_nothing() {
    let receiver = Receiver::start(&[]);
    let mut guess = offer(3, b"a", b"");
    for byte in [0, 1, 0xff] {
        guess[5..21].fill(byte);
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

/// One host with one key, at this address.
fn host(at: [u8; 4]) -> Endpoint {
    let config = EndpointConfig::new(Composition::default().check().unwrap());
    Endpoint::bind((at, 0).into(), config, Trust::Anybody).unwrap()
}

/// He connects and says nothing, as often as he is let in: half of the places are his, and no more.
#[tokio::test]
async fn who_connects_again_and_again_leaves_places_to_others() {
    let receiver = Receiver::start(&[&["--open"], &FOR_EVER[..]].concat());
    let address = receiver.address.parse().unwrap();
    let greedy = host([127, 0, 0, 2]);
    let mut held = Vec::new();
    for _ in 0..32 {
        held.push(greedy.connect(address, SERVICE_PORT).await.unwrap());
    }
    // The receiver accepts them in their order.
    let one_more = greedy.connect(address, SERVICE_PORT).await.unwrap();
    let refused = timeout(TIMEOUT, one_more.recv())
        .await
        .unwrap()
        .expect("an answer");
    for connection in &held {
        let told = timeout(Duration::ZERO, connection.recv()).await;
        assert!(told.is_err(), "it has its place: {told:?}");
    }
    assert!(String::from_utf8_lossy(&refused).contains("busy"), "{refused:?}");
    let folder = tempfile::tempdir().unwrap();
    let file = write(folder.path(), "note.txt", b"between us");
    let sent = restp(&[&["send", file.to_str().unwrap(), &receiver.ticket], &FOR_EVER[..]].concat());
    assert_eq!(sent.code, Some(0), "{sent:?}");
    assert_eq!(receiver.names(), ["note.txt"]);
}

/// A byte now and then keeps a connection alive, and not its place. A slow machine only drips more slowly.
#[tokio::test]
async fn who_drips_is_broken_off_and_nothing_of_his_stays() {
    let receiver = Receiver::start(&["--open", "--timeout", "1 s"]);
    let connection = host([127, 0, 0, 2])
        .connect(receiver.address.parse().unwrap(), SERVICE_PORT)
        .await
        .unwrap();
    let mut head = Bytes::from(offer(3, b"drops", &[0; 1 << 20]));
    let content = head.split_off(25 + 34 + 5);
    connection.send(head).await.unwrap();
    assert!(connection.recv().await.is_some(), "the offer is accepted");
    let dripping = async {
        for drop in content.chunks(1) {
            let _ = connection.send(Bytes::copy_from_slice(drop)).await;
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
    };
    tokio::select! {
        ended = timeout(TIMEOUT, connection.closed()) => assert_eq!(ended, Ok(CloseReason::Reset)),
        () = dripping => panic!("he is broken off before the end"),
    }
    wait_until("what had arrived is removed", || receiver.names().is_empty());
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
