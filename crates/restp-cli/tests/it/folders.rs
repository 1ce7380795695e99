//! Folders between processes: what travels, and what does not.

#![allow(clippy::unwrap_used, reason = "in a test a failed unwrap is a failed test")]

use crate::common::{Receiver, content, restp, write};
use sha2::{Digest, Sha256};
use std::fs;

/// A folder with everything in it that travels.
pub fn tree(folder: &std::path::Path) -> std::path::PathBuf {
    use std::os::unix::fs::{PermissionsExt, symlink};
    let top = folder.join("photos");
    fs::create_dir_all(top.join("summer/empty")).unwrap();
    write(&top, "a.jpg", &content(300_000));
    write(&top.join("summer"), "run.sh", b"#!/bin/sh\n");
    write(&top.join("summer"), "nothing", b"");
    symlink("../a.jpg", top.join("summer/best.jpg")).unwrap();
    let sparse = fs::File::create(top.join("disk.img")).unwrap();
    sparse.set_len(64 << 20).unwrap();
    std::os::unix::fs::FileExt::write_all_at(&sparse, b"middle", 32 << 20).unwrap();
    let mode =
        |path: &str, mode| fs::set_permissions(top.join(path), PermissionsExt::from_mode(mode)).unwrap();
    mode("summer/run.sh", 0o750);
    mode("summer/empty", 0o700);
    let early =
        std::time::SystemTime::UNIX_EPOCH + std::time::Duration::from_nanos(1_234_567_890_123_456_789);
    for path in ["a.jpg", "summer/empty", "summer"] {
        fs::File::open(top.join(path))
            .unwrap()
            .set_modified(early)
            .unwrap();
    }
    top
}

/// Path, kind and permissions, time, and content or target of everything below `folder`.
pub fn listing(folder: &std::path::Path) -> Vec<(String, u32, i64, i64, Vec<u8>)> {
    use std::os::unix::fs::MetadataExt;
    let mut all = Vec::new();
    let mut open = vec![folder.to_owned()];
    while let Some(path) = open.pop() {
        let found = fs::symlink_metadata(&path).unwrap();
        let content = if found.is_symlink() {
            fs::read_link(&path)
                .unwrap()
                .into_os_string()
                .into_encoded_bytes()
        } else if found.is_dir() {
            open.extend(fs::read_dir(&path).unwrap().map(|entry| entry.unwrap().path()));
            Vec::new()
        } else {
            Sha256::digest(fs::read(&path).unwrap()).to_vec()
        };
        let name = path.strip_prefix(folder).unwrap().to_str().unwrap().to_owned();
        all.push((name, found.mode(), found.mtime(), found.mtime_nsec(), content));
    }
    all.sort();
    all
}

#[test]
fn a_folder_and_a_file_arrive_with_modes_times_links_and_holes() {
    use std::os::unix::fs::MetadataExt;
    let folder = tempfile::tempdir().unwrap();
    let top = tree(folder.path());
    let note = write(folder.path(), "note.txt", b"between us");
    let mut receiver = Receiver::start(&["--once"]);
    let words = ["send", "--json", top.to_str().unwrap(), note.to_str().unwrap()];
    let sent = restp(&[&words, &[&receiver.ticket[..]][..]].concat());
    assert_eq!(sent.code, Some(0), "{sent:?}");
    assert_eq!(receiver.names(), ["note.txt", "photos"]);
    let arrived = receiver.folder.path().join("photos");
    assert_eq!(listing(&arrived), listing(&top));
    assert!(
        fs::metadata(arrived.join("disk.img")).unwrap().blocks() * 512 < 1 << 20,
        "holes are kept"
    );
    let (sent, received) = (sent.json(), receiver.running.json());
    assert_eq!((&sent["files"], &received["files"]), (&5.into(), &5.into()));
    let lines: String = [
        "photos/a.jpg",
        "photos/disk.img",
        "photos/summer/nothing",
        "photos/summer/run.sh",
        "note.txt",
    ]
    .map(|path| {
        let digest = Sha256::digest(fs::read(folder.path().join(path)).unwrap());
        format!("{}  {path}\n", data_encoding::HEXLOWER.encode(&digest))
    })
    .concat();
    let digest = data_encoding::HEXLOWER.encode(&Sha256::digest(lines));
    assert_eq!(
        (&sent["sha256"], &received["sha256"]),
        (&digest.clone().into(), &digest.into())
    );
}

/// What cannot be sent is named before anything is sent.
#[test]
fn a_folder_with_what_no_receiver_takes_is_not_sent() {
    use std::os::unix::fs::symlink;
    type Make = fn(&std::path::Path);
    let cases: [(Make, &str); 4] = [
        (
            |top| symlink("../../etc", top.join("l")).unwrap(),
            "out of what is sent",
        ),
        (
            |top| nix::unistd::mkfifo(&top.join("p"), nix::sys::stat::Mode::S_IRUSR).unwrap(),
            "no regular file",
        ),
        (
            |top| _ = (write(top, "A", b""), write(top, "a", b"")),
            "two of this name",
        ),
        (
            |top| {
                use std::os::unix::ffi::OsStrExt;
                fs::write(top.join(std::ffi::OsStr::from_bytes(b"\xff")), "").unwrap();
            },
            "not UTF-8",
        ),
    ];
    for (make, word) in cases {
        let folder = tempfile::tempdir().unwrap();
        let top = folder.path().join("top");
        fs::create_dir(&top).unwrap();
        make(&top);
        let refused = restp(&["send", top.to_str().unwrap(), "127.0.0.1:1"]);
        crate::common::says(&refused, 2, &["top", word, "--skip"]);
    }
    let folder = tempfile::tempdir().unwrap();
    let top = folder.path().join("top");
    fs::create_dir(&top).unwrap();
    write(&top, "b", b"good");
    cases.iter().for_each(|(make, _)| make(&top));
    let receiver = Receiver::start(&["--once"]);
    let sent = restp(&[
        "send",
        "--json",
        "--skip",
        top.to_str().unwrap(),
        &receiver.ticket,
    ]);
    assert_eq!(sent.code, Some(0), "{sent:?}");
    for (_, word) in cases {
        let told = |line: &str| line.starts_with("left out: ") && line.contains(word);
        assert!(sent.stderr.lines().any(told), "{word}: {sent:?}");
    }
    let left_out = sent.json()["left_out"].as_array().unwrap().len();
    assert_eq!(left_out, 4, "{sent:?}");
    let arrived = crate::common::names(&receiver.folder.path().join("top"));
    assert_eq!(arrived, ["A", "b"]);
}

#[test]
fn what_is_excluded_stays_here_with_all_that_is_in_it() {
    let folder = tempfile::tempdir().unwrap();
    let top = folder.path().join("top");
    for path in [
        ".git/config",
        "a.tmp",
        "b",
        "in/c.tmp",
        "in/d",
        "in/deep/d",
        "in/deep2/d",
    ] {
        fs::create_dir_all(top.join(path).parent().unwrap()).unwrap();
        write(&top, path, b"x");
    }
    nix::unistd::mkfifo(&top.join("p.tmp"), nix::sys::stat::Mode::S_IRUSR).unwrap();
    let receiver = Receiver::start(&["--once"]);
    let top = top.to_str().unwrap();
    let excluded = [
        "--exclude",
        ".*",
        "--exclude",
        "*.tmp",
        "--exclude",
        "/in/d",
        "--exclude",
        "deep2/",
    ];
    let sent = restp(&[&["send", top, &receiver.ticket], &excluded[..]].concat());
    assert_eq!(sent.code, Some(0), "{sent:?}");
    let arrived = receiver.folder.path().join("top");
    assert_eq!(crate::common::names(&arrived), ["b", "in"]);
    assert_eq!(crate::common::names(&arrived.join("in")), ["deep"]);
    assert_eq!(crate::common::names(&arrived.join("in/deep")), ["d"]);
    for wrong in ["a[", "", "./", "/"] {
        let refused = restp(&["send", top, "127.0.0.1:1", "--exclude", wrong, "--timeout", "1"]);
        crate::common::says(&refused, 2, &["--exclude", wrong]);
    }
}

/// Any of them ended the transfer of the whole folder.
#[test]
fn files_that_vanish_or_change_on_the_way_are_left_out_where_that_is_asked() {
    use crate::common::{FOR_EVER, Running, content, dies_after, emulate, names, wait_until};
    for skip in [true, false] {
        let folder = tempfile::tempdir().unwrap();
        let top = folder.path().join("top");
        fs::create_dir(&top).unwrap();
        let cut = write(&top, "a", &content(16 << 20));
        let gone = write(&top, "b", b"gone");
        write(&top, "c", b"written");
        write(&top, "d", b"good");
        let receiver = Receiver::start(&["--once"]);
        let line = format!("rate = \"40 Mbit/s\"\n{}", dies_after(300));
        let mut path = emulate(&receiver.address, &line);
        let words = [
            "send",
            "--json",
            top.to_str().unwrap(),
            &receiver.ticket,
            "--address",
            &path.address,
        ];
        let skips: &[&str] = if skip { &["--skip"] } else { &[] };
        let sender = Running::start(&[&words, &FOR_EVER[..], skips].concat());
        wait_until("the transfer begins", || !receiver.names().is_empty());
        path.await_loss(); // in the middle of the first
        fs::OpenOptions::new()
            .write(true)
            .open(&cut)
            .unwrap()
            .set_len(1)
            .unwrap();
        fs::remove_file(&gone).unwrap();
        write(&top, "c", b"written to");
        path.heal();
        let sent = sender.end();
        if !skip {
            crate::common::says(&sent, 1, &["shrank from"]);
            continue;
        }
        assert_eq!(sent.code, Some(0), "{sent:?}");
        let of_sender = sent.json();
        assert_eq!(of_sender["left_out"].as_array().unwrap().len(), 3, "{sent:?}");
        assert!(
            sent.stderr.contains("shrank from") && sent.stderr.contains("grew from"),
            "{sent:?}"
        );
        let of_receiver = receiver.running.end().json();
        for (field, value) in [
            ("files", 1),
            ("skipped_files", 0),
            ("bytes", 4),
            ("resumed_bytes", 0),
        ] {
            assert_eq!(
                (&of_sender[field], &of_receiver[field]),
                (&value.into(), &value.into()),
                "{field}"
            );
        }
        assert_eq!(
            of_receiver["left_out"],
            serde_json::json!(["top/a", "top/b", "top/c"])
        );
        assert_eq!(names(&receiver.folder.path().join("top")), ["d"]);
        assert_eq!(names(receiver.folder.path()), ["top"], "and no parts");
    }
}

/// Who wants hidden files says so; parts of transfers are no files.
#[test]
fn names_that_begin_with_a_dot_are_for_who_takes_them() {
    let folder = tempfile::tempdir().unwrap();
    let top = folder.path().join("project");
    fs::create_dir_all(top.join(".git")).unwrap();
    write(&top.join(".git"), "config", b"[core]\n");
    let careful = Receiver::start(&[]);
    let send = |ticket: &str| restp(&["send", top.to_str().unwrap(), ticket]);
    crate::common::says(&send(&careful.ticket), 1, &["\"project/.git\"", "--dotfiles"]);
    assert!(careful.names().is_empty());
    let taking = Receiver::start(&["--dotfiles"]);
    assert_eq!(send(&taking.ticket).code, Some(0));
    assert_eq!(listing(&taking.folder.path().join("project")), listing(&top));
    write(&top, ".restp-0.part", b"");
    crate::common::says(&send(&taking.ticket), 2, &["reserved"]);
}

#[test]
fn a_receiver_names_each_thing_that_has_come() {
    let folder = tempfile::tempdir().unwrap();
    let files = ["a", "b"].map(|name| write(folder.path(), name, b"x"));
    let receiver = Receiver::start(&["--once"]);
    let [a, b] = files.each_ref().map(|file| file.to_str().unwrap());
    let sent = restp(&["send", a, b, &receiver.ticket]);
    assert_eq!(sent.code, Some(0), "{sent:?}");
    let received = receiver.running.end();
    for name in ["a", "b"] {
        let place = receiver.folder.path().canonicalize().unwrap().join(name);
        let line = format!(": {}\n", place.display());
        assert!(received.stderr.contains(&line), "{line}: {received:?}");
    }
}
