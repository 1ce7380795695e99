//! Senders that nobody invited, with programs of their own (`docs/protocol/threats.md`).

#![allow(clippy::unwrap_used, reason = "in a test a failed unwrap is a failed test")]

use crate::common::{FOR_EVER, Receiver, TIMEOUT, restp, says, wait_until, write};
use crate::transfer::{SERVICE_PORT, answers, offer};
use bytes::Bytes;
use restp::{CloseReason, Composition, Connection, Endpoint, EndpointConfig, Trust};
use sha2::Digest;
use std::fs;
use std::time::Duration;
use tokio::time::timeout;

#[tokio::test]
async fn who_does_not_have_the_ticket_sends_nothing() {
    let receiver = Receiver::start(&[]);
    let mut guess = offer(4, b"a", b"");
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
    let mut head = Bytes::from(offer(4, b"drops", &[0; 1 << 20]));
    let content = head.split_off(29 + 34 + 5);
    connection.send(head).await.unwrap();
    assert!(connection.recv().await.is_some(), "the offer is accepted");
    drips(&connection, content.chunks(1)).await;
    wait_until("what had arrived is removed", || receiver.names().is_empty());
}

/// Until he is broken off.
async fn drips(connection: &Connection, drops: impl Iterator<Item = &[u8]>) {
    let dripping = async {
        for drop in drops {
            let _ = connection.send(Bytes::copy_from_slice(drop)).await;
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
    };
    tokio::select! {
        ended = timeout(TIMEOUT, connection.closed()) => assert_eq!(ended, Ok(CloseReason::Reset)),
        () = dripping => panic!("he is broken off before the end"),
    }
}

/// Records of nothing are no progress.
#[tokio::test]
async fn who_sends_empty_records_is_broken_off() {
    for kind in [1, 2, 4] {
        let receiver = Receiver::start(&["--open", "--timeout", "1 s"]);
        let connection = host([127, 0, 0, 2])
            .connect(receiver.address.parse().unwrap(), SERVICE_PORT)
            .await
            .unwrap();
        let mut head = offer(4, b"nothing", b"x");
        head.truncate(29 + 36);
        connection.send(head.into()).await.unwrap();
        assert!(connection.recv().await.is_some(), "the offer is accepted");
        let empty = [kind, 0, 0, 0, 0];
        drips(&connection, std::iter::repeat_n(&empty[..], 10_000)).await;
    }
}

/// Who has much that need not be sent is silent meanwhile, and no slower for it.
#[tokio::test]
async fn holes_are_progress() {
    const PART: u32 = 1 << 20;
    let receiver = Receiver::start(&["--open", "--timeout", "2 s"]);
    let connection = host([127, 0, 0, 2])
        .connect(receiver.address.parse().unwrap(), SERVICE_PORT)
        .await
        .unwrap();
    let content = [&vec![0; 20 * PART as usize][..], b"x"].concat();
    let mut head = offer(4, b"sparse", &content);
    head.truncate(29 + 35);
    connection.send(head.into()).await.unwrap();
    let hole = [&[2][..], &PART.to_be_bytes()].concat();
    // Longer than senders are judged over.
    for _ in 0..20 {
        connection.send(hole.clone().into()).await.unwrap();
        tokio::time::sleep(Duration::from_millis(250)).await;
    }
    let digest = sha2::Sha256::digest(&content);
    let end = [b"\x01\0\0\0\x01x\x03\0\0\0\0", &digest[..]].concat();
    connection.send(end.into()).await.unwrap();
    while connection.recv().await.is_some() {}
    assert_eq!(receiver.names(), ["sparse"]);
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
fn a_name_that_hides_is_refused() {
    let receiver = Receiver::start(&[]);
    let folder = tempfile::tempdir().unwrap();
    let file = write(folder.path(), ".bash_profile", b"echo here");
    says(
        &restp(&["send", file.to_str().unwrap(), &receiver.ticket]),
        1,
        &["begin with '.'", "--dotfiles"],
    );
    assert!(receiver.names().is_empty());
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
