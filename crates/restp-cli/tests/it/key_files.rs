//! Files of keys as users find them after accidents: what is said names what happened, and the way out works.

#![allow(clippy::unwrap_used, reason = "in a test a failed unwrap is a failed test")]

use crate::common::{Ended, Receiver, Running, content, dies_after, emulate, restp, says, write};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// What `restp keygen FILE` printed.
fn keygen(path: &Path) -> String {
    let made = restp(&["keygen", "--json", path.to_str().unwrap()]);
    assert_eq!(made.code, Some(0), "{made:?}");
    made.json()["key"].as_str().unwrap().to_owned()
}

/// A send that ends before anything is sent.
fn send_with_key(path: &Path) -> Ended {
    let folder = tempfile::tempdir().unwrap();
    let file = write(folder.path(), "note.txt", b"between us");
    let file = file.to_str().unwrap();
    restp(&["send", file, "127.0.0.1:9", "--key", path.to_str().unwrap()])
}

#[test]
fn a_damaged_key_file_says_so_and_the_way_out_works() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("own.key");
    let name = path.to_str().unwrap();
    keygen(&path);
    let whole = fs::read(&path).unwrap();
    for (bytes, what) in [
        (&b""[..], "it is empty"),
        (&whole[..30], "damaged, or was cut"),
        (b"-----BEGIN OPENSSH PRIVATE KEY-----\n", "something else"),
        (b"\x7fELF\xff\xfe\0", "something else"),
    ] {
        fs::write(&path, bytes).unwrap();
        let sentence = [what, "move it away first", &format!("restp keygen {name}")];
        says(&send_with_key(&path), 2, &sentence);
        for again in [restp(&["keygen", name]), restp(&["keygen", "--show", name])] {
            says(&again, 2, &sentence);
            assert!(!again.stderr.contains("--show") && !again.stderr.contains("UTF-8"));
        }
        assert_eq!(fs::read(&path).unwrap(), bytes, "nothing was written");
    }
    fs::rename(&path, folder.path().join("old")).unwrap();
    keygen(&path);
    says(&restp(&["keygen", name]), 2, &["exists and stays", "--show"]);
}

#[test]
fn what_is_no_file_is_called_what_it_is() {
    let folder = tempfile::tempdir().unwrap();
    let directory = send_with_key(folder.path());
    says(&directory, 2, &["it is a directory"]);
    assert!(!directory.stderr.contains("chmod"), "{directory:?}");
    says(&send_with_key(Path::new("/dev/null")), 2, &["it is a device"]);
    let made = restp(&["keygen", folder.path().to_str().unwrap()]);
    says(&made, 2, &["is a directory", "name a file in it"]);
    let link = folder.path().join("link");
    std::os::unix::fs::symlink("nowhere", &link).unwrap();
    let made = restp(&["keygen", link.to_str().unwrap()]);
    says(&made, 2, &["link to nothing", "remove it first"]);
}

#[test]
fn a_key_that_belongs_to_somebody_else_is_refused() {
    if !nix::unistd::geteuid().is_root() {
        eprintln!("only root gives files away: not tried");
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("own.key");
    keygen(&path);
    std::os::unix::fs::chown(&path, Some(4_000_000), None).unwrap();
    says(
        &send_with_key(&path),
        2,
        &["belongs to user 4000000", "restp keygen"],
    );
}

#[test]
fn a_mistyped_key_says_what_is_wrong_with_it() {
    let folder = tempfile::tempdir().unwrap();
    let key = keygen(&folder.path().join("own.key"));
    says(
        &restp(&["recv", "--allow", &key[1..]]),
        2,
        &["51 characters where a key has 52"],
    );
    let wrong = format!("{}0{}", &key[..4], &key[5..]);
    says(&restp(&["recv", "--allow", &wrong]), 2, &["character 5, '0'"]);
    let list = write(folder.path(), "clients", format!("{key}\n{wrong}\n").as_bytes());
    says(
        &restp(&["recv", "--allow", list.to_str().unwrap()]),
        2,
        &["line 2", "character 5, '0'"],
    );
}

/// The file of known peers below the data directory `data`.
fn known_peers(data: &Path) -> PathBuf {
    data.join("restp").join("known_peers")
}

/// Begins to send `file` to a bare address, with keys and known hosts in `data`.
fn begin(data: &Path, file: &Path, to: &str) -> Running {
    Running::start_keeping(data, &["send", file.to_str().unwrap(), to])
}

#[test]
fn runs_at_the_same_time_remember_every_host_they_met() {
    let (data, folder) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let file = write(folder.path(), "note.txt", b"to all of them");
    let receivers: Vec<_> = (1..5)
        .map(|host| {
            let dir = folder.path().join(format!("to-{host}"));
            let dir = dir.to_str().unwrap();
            let listen = format!("127.0.0.{host}:0");
            let mut running =
                Running::start(&["recv", "--json", "--open", "--listen", &listen, "--dir", dir]);
            let address = running.json()["addresses"][0].as_str().unwrap().to_owned();
            (running, address)
        })
        .collect();
    let runs: Vec<_> = (receivers.iter())
        .map(|(_, address)| begin(data.path(), &file, address))
        .collect();
    for run in runs {
        let ended = run.end();
        assert_eq!(ended.code, Some(0), "{ended:?}");
        assert!(ended.stderr.contains("is remembered"), "{ended:?}");
    }
    let text = fs::read_to_string(known_peers(data.path())).unwrap();
    for host in 1..5 {
        assert!(text.contains(&format!("127.0.0.{host} ")), "{text}");
    }
}

/// It takes another port, and has the key that it had.
#[test]
fn a_receiver_that_starts_again_is_known() {
    let (data, folder) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let file = write(folder.path(), "note.txt", b"once more");
    for turn in 0..2 {
        let receiver = Receiver::start(&["--open"]);
        let ended = begin(data.path(), &file, &receiver.address).end();
        assert_eq!(ended.code, Some(0), "{ended:?}");
        assert_eq!(
            ended.stderr.contains("for the first time"),
            turn == 0,
            "{ended:?}"
        );
    }
    let other = folder.path().join("other.key");
    keygen(&other);
    let stranger = Receiver::start(&["--open", "--key", other.to_str().unwrap()]);
    let ended = begin(data.path(), &file, &stranger.address).end();
    says(&ended, 1, &["HAS CHANGED", "add a line with port"]);
    assert!(stranger.names().is_empty());
}

#[test]
fn without_a_place_to_remember_nobody_is_met_for_the_first_time() {
    let (folder, receiver) = (tempfile::tempdir().unwrap(), Receiver::start(&["--open"]));
    let file = write(folder.path(), "note.txt", b"to whom?");
    let run = |to: &str| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_restp"));
        command.args(["send", file.to_str().unwrap(), to]).env_clear();
        command.output().unwrap()
    };
    let refused = run(&receiver.address);
    let said = String::from_utf8(refused.stderr).unwrap();
    assert!(
        refused.status.code() == Some(2) && said.contains("XDG_DATA_HOME"),
        "{said}"
    );
    assert!(receiver.names().is_empty());
    assert!(run(&receiver.ticket).status.success(), "its ticket says all");
}

#[test]
fn another_key_that_another_run_met_meanwhile_is_loud_and_stays() {
    let (data, folder) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let other = keygen(&folder.path().join("other.key"));
    let receiver = Receiver::start(&["--open"]);
    let mut path = emulate(
        &receiver.address,
        &format!("rate = \"20 Mbit/s\"\n{}", dies_after(0)),
    );
    let file = write(folder.path(), "note.bin", &content(300_000));
    let run = begin(data.path(), &file, &path.address);
    path.await_loss();
    let line = format!("127.0.0.1 {other}\n");
    fs::write(known_peers(data.path()), &line).unwrap();
    path.heal();
    says(&run.end(), 1, &["IS IN DOUBT", "127.0.0.1", &other, "ticket"]);
    assert!(receiver.names().is_empty(), "nothing was said to either");
    assert_eq!(fs::read_to_string(known_peers(data.path())).unwrap(), line);
}

#[test]
fn a_memory_of_hosts_that_is_no_text_says_where_it_is_damaged() {
    let data = tempfile::tempdir().unwrap();
    let folder = tempfile::tempdir().unwrap();
    let path = known_peers(data.path());
    let address = Receiver::start(&["--open"]).address.clone();
    let file = write(folder.path(), "note.txt", b"between us");
    let send = || begin(data.path(), &file, &address).end();
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(&path, b"\x7fELF\xff\xfe\0\0").unwrap();
    let damaged = send();
    says(&damaged, 2, &["line 1", "damaged", "move the file away"]);
    assert!(!damaged.stderr.contains("readable"), "{damaged:?}");
    fs::remove_file(&path).unwrap();
    fs::create_dir(&path).unwrap();
    says(&send(), 2, &["it is a directory", "move it away"]);
}
