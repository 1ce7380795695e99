//! How transfers end before their end: interrupts, vanished peers, outages, files that fail.

#![allow(clippy::unwrap_used, reason = "in a test a failed unwrap is a failed test")]

use crate::common::{self, FOR_EVER, Line, Receiver, Running, content, dies_after, emulate, restp, write};
use nix::sys::signal::Signal;
use restp::{Acceptance, Composition, Endpoint, EndpointConfig, Trust};
use restp_cli::transfer::{UserTimeout, Watch, receive};
use std::time::Duration;

/// Slow enough that a transfer of [`LONG`] bytes is in the middle for more than a minute.
const SLOW: &str = "rate = \"2 Mbit/s\"\ndelay = \"2 ms\"\n";
const LONG: usize = 20 << 20;

/// A transfer in the middle, over an emulated path that ends with its value.
struct Transfer {
    receiver: Receiver,
    sender: Running,
    path: Line,
    _folder: tempfile::TempDir,
}

fn begin(recv: &[&str], send: &[&str], path: &str, bytes: usize) -> Transfer {
    let receiver = Receiver::start(&[&["--once"], recv].concat());
    let path = emulate(&receiver.address, path);
    let folder = tempfile::tempdir().unwrap();
    let file = write(folder.path(), "a", &content(bytes));
    let fixed = [
        "send",
        file.to_str().unwrap(),
        &receiver.ticket,
        "--address",
        &path.address,
    ];
    let sender = Running::start(&[&fixed, send].concat());
    common::wait_until("the transfer begins", || !receiver.names().is_empty());
    Transfer {
        receiver,
        sender,
        path,
        _folder: folder,
    }
}

/// What asks a program to end; SIGHUP where whoever runs these tests has not asked them to stay without a terminal.
fn requests_to_end() -> Vec<Signal> {
    let status = std::fs::read_to_string("/proc/self/status").expect("this is Linux");
    let ignored = status
        .lines()
        .find_map(|line| line.strip_prefix("SigIgn:"))
        .expect("it is told");
    let ignored = u64::from_str_radix(ignored.trim(), 16).expect("a mask");
    if ignored & 1 == 1 {
        eprintln!("skipped: SIGHUP is ignored here");
        return vec![Signal::SIGINT, Signal::SIGTERM];
    }
    vec![Signal::SIGINT, Signal::SIGTERM, Signal::SIGHUP]
}

/// `restp recv --json | head -1`. It ended with the first transfer, whose result it could not tell.
#[test]
fn a_receiver_outlives_who_reads_its_results() {
    let mut receiver = Receiver::start(&[]);
    receiver.running.stop_reading();
    let folder = tempfile::tempdir().unwrap();
    for name in ["a", "b"] {
        let file = write(folder.path(), name, &content(10_000));
        let sent = restp(&["send", file.to_str().unwrap(), &receiver.ticket]);
        assert_eq!(sent.code, Some(0), "{sent:?}");
    }
    assert_eq!(common::whole(receiver.folder.path()), ["a", "b"]);
    receiver.running.signal(Signal::SIGINT);
    let ended = receiver.running.end();
    assert_eq!(ended.code, Some(0), "{ended:?}");
}

#[test]
fn an_interrupted_sender_leaves_no_file_and_the_receiver_knows_at_once() {
    for signal in requests_to_end() {
        let transfer = begin(&FOR_EVER, &FOR_EVER, SLOW, LONG);
        transfer.sender.signal(signal);
        let Receiver { running, folder, .. } = transfer.receiver;
        let received = running.end();
        assert_eq!(received.code, Some(1), "{received:?}");
        assert!(received.stderr.contains("broke off"), "{received:?}");
        assert_eq!(transfer.sender.end().code, Some(1));
        assert!(common::whole(folder.path()).is_empty());
    }
}

#[test]
fn an_interrupted_receiver_leaves_no_file_and_the_sender_knows_at_once() {
    for signal in requests_to_end() {
        let transfer = begin(&FOR_EVER, &FOR_EVER, SLOW, LONG);
        transfer.receiver.running.signal(signal);
        let sent = transfer.sender.end();
        assert_eq!(sent.code, Some(1), "{sent:?}");
        assert!(sent.stderr.contains("broke the transfer off"), "{sent:?}");
        let Receiver { running, folder, .. } = transfer.receiver;
        assert_eq!(running.end().code, Some(1));
        assert!(common::whole(folder.path()).is_empty());
    }
}

#[test]
fn an_idle_receiver_may_be_ended_at_any_time() {
    let receiver = Receiver::start(&[]);
    receiver.running.signal(Signal::SIGINT);
    assert_eq!(receiver.running.end().code, Some(0));
}

#[test]
fn a_vanished_receiver_is_given_up_with_what_to_check() {
    // With `resilient` silence is taken for an outage, which is borne for a day unless `--timeout` says otherwise.
    for profile in ["default", "resilient"] {
        let options = ["--timeout", "2 s", "--profile", profile];
        let transfer = begin(&[], &options, SLOW, LONG);
        transfer.receiver.running.signal(Signal::SIGKILL);
        let sent = transfer.sender.end();
        assert_eq!(sent.code, Some(1), "{sent:?}");
        assert!(sent.stderr.contains("check"), "{sent:?}");
        assert!(silence(&sent.stderr) >= 2.0, "{sent:?}");
    }
}

/// Its disk is busy, say.
#[tokio::test]
async fn a_receiver_that_is_heard_and_takes_nothing_is_not_called_silent() {
    let mut composition = Composition::default();
    composition.set("window", "1024 segments").unwrap(); // less than the file
    let config = EndpointConfig::new(composition.check().unwrap());
    let config = config.listen(crate::transfer::SERVICE_PORT, Acceptance::Any);
    let receiver = Endpoint::bind("127.0.0.1:0".parse().unwrap(), config, Trust::Anybody).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let file = write(folder.path(), "a", &content(LONG));
    let address = receiver.local_addr().to_string();
    let words = ["send", file.to_str().unwrap(), &address, "--timeout", "2 s"];
    let sender = Running::start_keeping(folder.path(), &words);
    let unread = receiver.accept().await.unwrap();
    let accepted_nothing_there = [1, 0, 0, 5, 0, 4, 0, 0, 0, 1];
    unread.send(accepted_nothing_there.to_vec().into()).await.unwrap();
    let sent = tokio::task::spawn_blocking(|| sender.end()).await.unwrap();
    common::says(&sent, 1, &["is heard", "has taken nothing for"]);
}

/// The seconds after which a sender says that it has given up.
fn silence(stderr: &str) -> f64 {
    let (_, rest) = stderr.split_once("has not answered for ").unwrap();
    rest.split_once(" s;").unwrap().0.parse().unwrap()
}

/// It has the key and the port of the one that is gone, but knows nothing of the connection.
#[test]
fn a_receiver_that_starts_again_gets_what_it_does_not_have() {
    let keys = tempfile::tempdir().unwrap();
    let key = keys.path().join("own.key").to_str().unwrap().to_owned();
    assert_eq!(restp(&["keygen", &key]).code, Some(0));
    for profile in ["default", "resilient"] {
        let options = [&FOR_EVER[..], &["--profile", profile]].concat();
        let line = format!("rate = \"20 Mbit/s\"\n{}", dies_after(100));
        let mut transfer = begin(&["--key", &key], &options, &line, 1 << 20);
        transfer.path.await_loss(); // in the middle
        let Receiver { running, address, .. } = transfer.receiver;
        running.signal(Signal::SIGKILL);
        running.end();
        let dir = tempfile::tempdir().unwrap();
        let mut again = Running::start(&[
            "recv",
            "--json",
            "--once",
            "--listen",
            &address,
            "--dir",
            dir.path().to_str().unwrap(),
            "--key",
            &key,
        ]);
        again.json();
        transfer.path.heal();
        let sent = transfer.sender.end();
        assert_eq!(sent.code, Some(0), "{sent:?}");
        assert!(sent.stderr.contains("has started again"), "{sent:?}");
        assert_eq!(again.end().code, Some(0));
        assert_eq!(common::names(dir.path()).len(), 1);
    }
}

#[test]
fn a_vanished_sender_is_given_up_and_leaves_no_file() {
    let transfer = begin(&["--timeout", "2 s"], &[], SLOW, LONG);
    transfer.sender.signal(Signal::SIGKILL);
    let Receiver { running, folder, .. } = transfer.receiver;
    let received = running.end();
    assert_eq!(received.code, Some(1), "{received:?}");
    assert!(received.stderr.contains("did not answer"), "{received:?}");
    assert!(common::whole(folder.path()).is_empty());
}

#[test]
fn nobody_at_the_address_is_said_so() {
    let silent = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
    let folder = tempfile::tempdir().unwrap();
    let file = write(folder.path(), "a", b"a");
    let address = silent.local_addr().unwrap().to_string();
    let sent = restp(&["send", file.to_str().unwrap(), &address, "--timeout", "1 s"]);
    assert_eq!(sent.code, Some(1));
    assert!(
        sent.stderr.contains(&address) && sent.stderr.contains("restp recv"),
        "{sent:?}"
    );
    let trying = format!("trying to reach {address}");
    assert!(
        sent.stderr.contains(&trying),
        "it says so while it waits: {sent:?}"
    );
}

#[test]
fn an_outage_shorter_than_the_timeout_is_survived_and_counted() {
    let path = format!("rate = \"40 Mbit/s\"\ndelay = \"2 ms\"\n{}", dies_after(300));
    let json = [&FOR_EVER[..], &["--json"]].concat();
    let mut transfer = begin(&FOR_EVER, &json, &path, 2 << 20);
    transfer.path.await_loss();
    common::pause(Duration::from_secs(2)); // longer than the second from which on silence is an outage
    transfer.path.heal();
    let sent = transfer.sender.end();
    assert_eq!(sent.code, Some(0), "{sent:?}");
    // A machine that withholds the processor for a second makes one more.
    assert!(
        sent.json()["paths"][0]["down_events"].as_u64().unwrap() >= 1,
        "{sent:?}"
    );
    assert_eq!(transfer.receiver.running.json()["bytes"], 2 << 20);
    assert!(transfer.path.running.is_running());
}

/// The receiver gave it up after its own 30 s, whatever the sender had said.
#[tokio::test]
async fn an_outage_that_the_sender_bears_is_borne_by_a_receiver_that_says_nothing() {
    let mut composition = Composition::default();
    let own = restp_base::time::Duration::from_secs(1);
    (composition.idle_timeout, composition.progress_timeout) = (own, own);
    composition.outage_timeout = own;
    let config = EndpointConfig::new(composition.check().unwrap());
    let config = config.listen(crate::transfer::SERVICE_PORT, Acceptance::Any);
    let receiver = Endpoint::bind("127.0.0.1:0".parse().unwrap(), config, Trust::Anybody).unwrap();
    let line = format!("rate = \"40 Mbit/s\"\n{}", dies_after(300));
    let mut path = emulate(&receiver.local_addr().to_string(), &line);
    let folder = tempfile::tempdir().unwrap();
    let file = write(folder.path(), "a", &content(2 << 20));
    let words = [
        "send",
        file.to_str().unwrap(),
        &path.address,
        FOR_EVER[0],
        FOR_EVER[1],
    ];
    let sender = Running::start_keeping(folder.path(), &words);
    let inbox = tempfile::tempdir().unwrap();
    let into = restp_cli::transfer::Folder::open(inbox.path(), false, false).unwrap();
    let connection = receiver.accept().await.unwrap();
    let outage = tokio::task::spawn_blocking(move || {
        path.await_loss();
        common::pause(Duration::from_secs(5));
        path.heal();
        path
    });
    let (user_timeout, watch) = (UserTimeout { own, follows: true }, Watch::default());
    let received = receive(&connection, (&into, None), user_timeout, &watch, |_, _| {}).await;
    assert_eq!(received.unwrap().tally.files, 1);
    let sent = tokio::task::spawn_blocking(|| sender.end()).await.unwrap();
    assert_eq!(sent.code, Some(0), "{sent:?}");
    outage.await.unwrap();
}

/// A second sender that was done first ended the program, and with it the transfer that was under way.
#[test]
fn a_receiver_of_one_transfer_tells_a_second_sender_so_and_goes_on() {
    let line = format!("rate = \"40 Mbit/s\"\n{}", dies_after(300));
    let mut transfer = begin(&[], &FOR_EVER, &line, 2 << 20);
    transfer.path.await_loss(); // in the middle
    let folder = tempfile::tempdir().unwrap();
    let other = write(folder.path(), "b", b"b");
    let refused = restp(&["send", other.to_str().unwrap(), &transfer.receiver.ticket]);
    common::says(&refused, 1, &["refused", "takes one transfer (--once)"]);
    transfer.path.heal();
    assert_eq!(transfer.sender.end().code, Some(0));
    let received = transfer.receiver.running.end();
    assert_eq!(received.code, Some(0), "{received:?}");
    assert_eq!(common::names(transfer.receiver.folder.path()), ["a"]);
}

/// The first one's place was free as soon as its file was there, a round trip before it was reported.
#[test]
fn a_receiver_of_one_transfer_takes_no_second_one_while_it_says_goodbye_to_the_first() {
    let transfer = begin(&[], &FOR_EVER, "delay = \"500 ms\"\n", 1 << 10);
    let inbox = transfer.receiver.folder.path();
    common::wait_until("the first is there", || common::names(inbox) == ["a"]);
    let folder = tempfile::tempdir().unwrap();
    let other = write(folder.path(), "b", b"b");
    let refused = restp(&["send", other.to_str().unwrap(), &transfer.receiver.ticket]);
    assert_eq!(refused.code, Some(1), "{refused:?}");
    assert_eq!(transfer.sender.end().code, Some(0));
    let received = transfer.receiver.running.end();
    assert_eq!(
        (received.code, received.json()["bytes"].as_u64()),
        (Some(0), Some(1 << 10)),
        "{received:?}"
    );
    assert_eq!(common::names(transfer.receiver.folder.path()), ["a"]);
}

#[test]
fn files_that_cannot_be_read_are_named_before_anything_is_sent() {
    let folder = tempfile::tempdir().unwrap();
    let missing = folder.path().join("missing");
    for (file, why) in [
        (missing.to_str().unwrap(), "missing"),
        ("/dev/zero", "no regular file"),
    ] {
        let sent = restp(&["send", file, "127.0.0.1:1"]);
        assert_eq!(sent.code, Some(2), "{sent:?}");
        assert!(sent.stderr.contains(why), "{sent:?}");
    }
}

/// What it holds would arrive as an empty file.
#[cfg(target_os = "linux")]
#[test]
fn a_file_without_a_length_is_refused_beside_others_before_anything_is_sent() {
    let folder = tempfile::tempdir().unwrap();
    let other = write(folder.path(), "a", b"");
    let untold = "/proc/self/mountinfo";
    let sent = restp(&["send", other.to_str().unwrap(), untold, "127.0.0.1:1"]);
    common::says(&sent, 2, &[untold, "tells no length"]);
    let published = restp(&["publish", untold]);
    common::says(&published, 2, &[untold, "through a file"]);
}

#[test]
fn a_file_that_may_not_be_read_is_named() {
    use std::os::unix::fs::PermissionsExt;
    let folder = tempfile::tempdir().unwrap();
    let file = write(folder.path(), "secret", b"x");
    std::fs::set_permissions(&file, PermissionsExt::from_mode(0o000)).unwrap();
    if std::fs::read(&file).is_ok() {
        eprintln!("SKIPPED: this user reads every file");
        return;
    }
    let sent = restp(&["send", file.to_str().unwrap(), "127.0.0.1:1"]);
    assert_eq!(sent.code, Some(2), "{sent:?}");
    assert!(sent.stderr.contains("secret"), "{sent:?}");
}

#[test]
fn a_file_that_grows_while_it_is_sent_is_not_delivered() {
    let path = format!("rate = \"40 Mbit/s\"\ndelay = \"2 ms\"\n{}", dies_after(300));
    let mut transfer = begin(&FOR_EVER, &FOR_EVER, &path, 8 << 20);
    // Most of it cannot have left, so its end has not been read.
    let file = transfer._folder.path().join("a");
    let mut longer = std::fs::OpenOptions::new().append(true).open(file).unwrap();
    std::io::Write::write_all(&mut longer, b"more").unwrap();
    transfer.path.await_loss();
    transfer.path.heal();
    let sent = transfer.sender.end();
    assert_eq!(sent.code, Some(1), "{sent:?}");
    assert!(sent.stderr.contains("grew from"), "{sent:?}");
    let Receiver { running, folder, .. } = transfer.receiver;
    assert_eq!(running.end().code, Some(1));
    assert!(common::whole(folder.path()).is_empty());
}

#[test]
fn a_full_disk_is_said_on_both_sides_and_who_makes_room_goes_on() {
    use nix::mount::{MsFlags, mount, umount};
    let folder = tempfile::tempdir().unwrap();
    let place = folder.path().join("small");
    std::fs::create_dir(&place).unwrap();
    let mounted = mount(
        Some("tmpfs"),
        &place,
        Some("tmpfs"),
        MsFlags::empty(),
        Some("size=1m"),
    );
    if let Err(error) = mounted {
        eprintln!("SKIPPED: a file system of 1 MiB cannot be mounted here ({error})");
        return;
    }
    let words = [
        "recv",
        "--json",
        "--once",
        "--listen",
        "127.0.0.1:0",
        "--dir",
        place.to_str().unwrap(),
    ];
    let file = write(folder.path(), "a", &content(4 << 20));
    let once = |options: &[&str]| {
        let mut receiver = Running::start(&[&words[..], options].concat());
        let ticket = receiver.json()["ticket"].as_str().unwrap().to_owned();
        let sent = restp(&["send", "--json", file.to_str().unwrap(), &ticket]);
        (sent, receiver.end(), common::names(&place))
    };
    let (.., nothing) = once(&["--keep", "0"]);
    let (sent, received, left) = once(&[]);
    mount(
        None::<&str>,
        &place,
        None::<&str>,
        MsFlags::MS_REMOUNT,
        Some("size=8m"),
    )
    .unwrap();
    let (again, ..) = once(&[]);
    let whole = std::fs::read(place.join("a"));
    umount(&place).unwrap();
    assert_eq!(
        (sent.code, received.code),
        (Some(1), Some(1)),
        "{sent:?} {received:?}"
    );
    assert!(
        sent.stderr.contains("the receiver failed") && sent.stderr.contains("make room"),
        "{sent:?}"
    );
    assert!(received.stderr.contains("make room"), "{received:?}");
    let told = [".restp-", ".part", place.to_str().unwrap()];
    assert!(!told.iter().any(|path| sent.stderr.contains(path)), "{sent:?}");
    assert!(nothing.is_empty(), "{nothing:?}");
    assert!(
        !left.is_empty() && left.iter().all(|name| name.starts_with(".restp-")),
        "{left:?}"
    );
    assert!(whole.unwrap() == content(4 << 20));
    assert!(
        again.json()["resumed_bytes"].as_u64() > Some(500_000),
        "{again:?}"
    );
}

/// The system ends who writes more than `ulimit -f` allows by a signal, unless it is listened to.
#[test]
fn a_file_above_a_limit_of_the_receiver_is_said_on_both_sides() {
    let folder = tempfile::tempdir().unwrap();
    let dir = folder.path().join("inbox");
    let words = [
        "recv",
        "--json",
        "--once",
        "--listen",
        "127.0.0.1:0",
        "--dir",
        dir.to_str().unwrap(),
    ];
    let limited = ["sh", "-c", "ulimit -f 1024; exec \"$0\" \"$@\""];
    let no_input = std::fs::File::open("/dev/null").unwrap();
    let mut receiver = Running::start_through(&limited, no_input.into(), &words);
    let ticket = receiver.json()["ticket"].as_str().unwrap().to_owned();
    let file = write(folder.path(), "a", &content(4 << 20));
    let sent = restp(&["send", file.to_str().unwrap(), &ticket]);
    common::says(&sent, 1, &["the receiver failed", "a limit does not allow"]);
    common::says(&receiver.end(), 1, &["a limit does not allow"]);
    assert!(common::names(&dir).is_empty());
}

#[test]
fn an_address_of_one_link_without_its_interface_is_answered_with_the_way_out() {
    let file = tempfile::NamedTempFile::new().unwrap();
    let path = file.path().to_str().unwrap();
    let sent = restp(&["send", path, "[fe80::1]:7300", "--plain"]);
    common::says(
        &sent,
        2,
        &["[fe80::1]:7300 is an address of one link", "[fe80::1%eth0]:7300"],
    );
}
