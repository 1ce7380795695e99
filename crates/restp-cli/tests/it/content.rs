//! Publish, fetch and cache, as processes on loopback.

#![allow(clippy::unwrap_used, reason = "in a test a failed unwrap is a failed test")]

use crate::common::{self, FOR_EVER, Running, content, emulate, names, restp, says, whole, write};
use nix::sys::signal::Signal;
use std::fs;
use std::net::{SocketAddr, UdpSocket};
use std::path::Path;

/// A publisher with its ticket.
pub(super) struct Publisher {
    running: Running,
    pub(super) ticket: String,
    pub(super) address: String,
}

impl Publisher {
    pub(super) fn start(paths: &[&Path]) -> Publisher {
        let paths: Vec<_> = paths.iter().map(|path| path.to_str().unwrap()).collect();
        let mut running =
            Running::start(&[&["publish", "--json", "--listen", "127.0.0.1:0"], &paths[..]].concat());
        let said = running.json();
        Publisher {
            running,
            ticket: said["ticket"].as_str().unwrap().into(),
            address: said["addresses"][0].as_str().unwrap().into(),
        }
    }

    /// How many chunks it has sent, when it is ended.
    fn end(self) -> u64 {
        self.running.signal(Signal::SIGINT);
        let ended = self.running.end();
        assert_eq!(ended.code, Some(0), "{ended:?}");
        ended.json()["chunks"].as_u64().unwrap()
    }
}

pub(super) fn cache(dir: &Path, upstream: &str) -> (Running, String) {
    let fixed = [
        "cache",
        "--json",
        "--listen",
        "127.0.0.1:0",
        "--dir",
        dir.to_str().unwrap(),
    ];
    let mut running = Running::start(&[&fixed[..], &["--upstream", upstream]].concat());
    let address = running.json()["addresses"][0].as_str().unwrap().into();
    (running, address)
}

pub(super) fn end_cache(running: Running) -> serde_json::Value {
    running.signal(Signal::SIGINT);
    let ended = running.end();
    assert_eq!(ended.code, Some(0), "{ended:?}");
    ended.json()
}

pub(super) fn fetch(ticket: &str, dir: &Path, options: &[&str]) -> common::Ended {
    let fixed = ["fetch", "--json", ticket, "--dir", dir.to_str().unwrap()];
    restp(&[&fixed[..], &FOR_EVER, options].concat())
}

/// Changes one byte of everything that comes from `to` and says that it is data.
fn liar(to: SocketAddr) -> SocketAddr {
    let here = UdpSocket::bind("127.0.0.1:0").unwrap();
    let address = here.local_addr().unwrap();
    std::thread::spawn(move || {
        let mut client = None;
        let mut bytes = [0; 65_536];
        while let Ok((length, from)) = here.recv_from(&mut bytes) {
            if from == to {
                if bytes[0] & 0xF == 4 && length > 30 {
                    bytes[25] ^= 1;
                }
                if let Some(client) = client {
                    let _ = here.send_to(&bytes[..length], client);
                }
            } else {
                client = Some(from);
                let _ = here.send_to(&bytes[..length], to);
            }
        }
    });
    address
}

#[test]
fn a_file_is_published_and_fetched_and_nothing_else_is_left() {
    let (here, there) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let data = content(3_000_017);
    let publisher = Publisher::start(&[&write(here.path(), "video.mkv", &data)]);
    let fetched = fetch(&publisher.ticket, there.path(), &[]);
    assert_eq!(fetched.code, Some(0), "{fetched:?}");
    let said = fetched.json();
    assert_eq!(
        (said["name"].as_str(), said["bytes"].as_u64()),
        (Some("video.mkv"), Some(3_000_017))
    );
    assert_eq!(
        (said["refused_chunks"].as_u64(), said["files"].as_u64()),
        (Some(0), Some(1))
    );
    assert_eq!(
        said["sources"][0]["address"].as_str(),
        Some(&publisher.address[..])
    );
    assert!(said["sources"][0]["bytes"].as_u64().unwrap() > 3_000_017);
    assert_eq!(names(there.path()), ["video.mkv"]);
    assert_eq!(fs::read(there.path().join("video.mkv")).unwrap(), data);

    says(
        &fetch(&publisher.ticket, there.path(), &[]),
        1,
        &["already", "--overwrite"],
    );
    let again = fetch(&publisher.ticket, there.path(), &["--overwrite"]);
    assert_eq!(again.code, Some(0), "{again:?}");
    assert_eq!(names(there.path()), ["video.mkv"]);
}

/// What is to be replaced has most of it: of three megabytes a chunk in the middle comes, and the last, which holds the list.
#[test]
fn of_a_file_that_is_replaced_only_what_is_another_comes() {
    let (here, there) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let data = content(3_000_017);
    let publisher = Publisher::start(&[&write(here.path(), "video.mkv", &data)]);
    let mut old = [&data[..], b"and more than there is now"].concat();
    old[1_500_000] ^= 1;
    write(there.path(), "video.mkv", &old);
    let fetched = fetch(&publisher.ticket, there.path(), &["--overwrite"]);
    assert_eq!(fetched.code, Some(0), "{fetched:?}");
    let came = fetched.json()["fetched_bytes"].as_u64().unwrap();
    assert!((1..100_000).contains(&came), "{came} bytes");
    assert_eq!(names(there.path()), ["video.mkv"]);
    assert!(fs::read(there.path().join("video.mkv")).unwrap() == data);
}

/// The first one is killed when it has a part. What it had not come to is in the file meanwhile.
#[test]
fn a_fetch_goes_on_with_what_it_has_and_with_what_the_file_has_that_it_replaces() {
    let (here, there) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let data = content(3_000_017);
    let file = write(here.path(), "video.mkv", &data);
    let options = ["--json", "--listen", "127.0.0.1:0", "--per-source", "2Mbit/s"];
    let mut publisher = Running::start(&[&["publish", file.to_str().unwrap()], &options[..]].concat());
    let said = publisher.json();
    let ticket = said["ticket"].as_str().unwrap();
    write(there.path(), "video.mkv", &data[..1_000_000]);
    let words = [
        "fetch",
        ticket,
        "--overwrite",
        "--dir",
        there.path().to_str().unwrap(),
    ];
    let first = Running::start(&words);
    let longest = || {
        let files = fs::read_dir(there.path()).unwrap();
        files
            .map(|file| file.unwrap().metadata().unwrap().len())
            .max()
            .unwrap()
    };
    while longest() <= 1_200_000 {
        common::pause(std::time::Duration::from_millis(20));
    }
    first.signal(Signal::SIGKILL);
    first.end();
    write(there.path(), "video.mkv", &data);
    let fetched = fetch(ticket, there.path(), &["--overwrite"]);
    assert_eq!(fetched.code, Some(0), "{fetched:?}");
    let came = fetched.json()["fetched_bytes"].as_u64().unwrap();
    assert!((1..100_000).contains(&came), "{came} bytes");
    assert_eq!(names(there.path()), ["video.mkv"]);
    assert!(fs::read(there.path().join("video.mkv")).unwrap() == data);
}

#[test]
fn folders_files_of_nothing_and_links_arrive_as_they_are() {
    let (here, there) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let tree = here.path().join("tree");
    fs::create_dir_all(tree.join("inner/deep")).unwrap();
    write(&tree, "a", &content(100_000));
    write(&tree, "empty", b"");
    write(&tree.join("inner/deep"), "b", &content(1));
    std::os::unix::fs::symlink("a", tree.join("link")).unwrap();
    let publisher = Publisher::start(&[&tree, &write(here.path(), "beside", b"me too")]);
    let fetched = fetch(&publisher.ticket, there.path(), &[]);
    assert_eq!(fetched.code, Some(0), "{fetched:?}");
    assert_eq!(names(there.path()), ["beside", "tree"]);
    let there = there.path().join("tree");
    assert_eq!(fs::read(there.join("a")).unwrap(), content(100_000));
    assert_eq!(fs::read(there.join("empty")).unwrap(), b"");
    assert_eq!(fs::read(there.join("inner/deep/b")).unwrap(), content(1));
    assert_eq!(fs::read_link(there.join("link")).unwrap(), Path::new("a"));
}

#[test]
fn two_publishers_of_the_same_are_two_sources_of_one_object() {
    let (here, there) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let file = write(here.path(), "a", &content(6 << 20));
    let (first, second) = (Publisher::start(&[&file]), Publisher::start(&[&file]));
    assert!(first.ticket != second.ticket, "other addresses");
    let paths =
        [&first.address, &second.address].map(|to| emulate(to, "rate = \"40 Mbit/s\"\ndelay = \"2 ms\"\n"));
    let from = ["--from", &paths[0].address, "--from", &paths[1].address];
    let fetched = fetch(&first.ticket, there.path(), &from);
    assert_eq!(fetched.code, Some(0), "{fetched:?}");
    assert_eq!(fs::read(there.path().join("a")).unwrap(), content(6 << 20));
    for source in fetched.json()["sources"].as_array().unwrap() {
        assert!(source["bytes"].as_u64().unwrap() > 1 << 20, "{source}");
    }
}

#[test]
fn when_one_of_two_sources_is_killed_the_other_goes_on() {
    let (here, there) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let file = write(here.path(), "a", &content(6 << 20));
    let (first, second) = (Publisher::start(&[&file]), Publisher::start(&[&file]));
    let paths =
        [&first.address, &second.address].map(|to| emulate(to, "rate = \"10 Mbit/s\"\ndelay = \"2 ms\"\n"));
    let dir = there.path().to_str().unwrap();
    let from = ["--from", &paths[0].address, "--from", &paths[1].address];
    let fixed = ["fetch", "--json", &first.ticket, "--dir", dir];
    let fetching = Running::start(&[&fixed[..], &FOR_EVER, &from].concat());
    let part = || {
        names(there.path())
            .iter()
            .map(|name| fs::metadata(there.path().join(name)).map_or(0, |found| found.len()))
            .max()
    };
    common::wait_until("some has come", || part() > Some(2 << 20));
    drop(second);
    let fetched = fetching.end();
    assert_eq!(fetched.code, Some(0), "{fetched:?}");
    assert_eq!(fs::read(there.path().join("a")).unwrap(), content(6 << 20));
}

#[test]
fn a_fetch_that_is_killed_goes_on_with_what_has_come() {
    let (here, there) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let data = content(8 << 20);
    let publisher = Publisher::start(&[&write(here.path(), "a", &data)]);
    let path = emulate(&publisher.address, "rate = \"20 Mbit/s\"\ndelay = \"2 ms\"\n");
    let fixed = [
        "fetch",
        "--json",
        &publisher.ticket,
        "--from",
        &path.address,
        "--dir",
        there.path().to_str().unwrap(),
    ];
    let fetching = Running::start(&fixed);
    let on_disk = || {
        let all = names(there.path());
        let sizes = all
            .iter()
            .map(|name| fs::metadata(there.path().join(name)).map_or(0, |found| found.len()));
        sizes.max().unwrap_or(0)
    };
    common::wait_until("half has come", || on_disk() > 4 << 20);
    fetching.signal(Signal::SIGKILL);
    fetching.end();
    assert!(whole(there.path()).is_empty(), "nothing has its name yet");
    let had = on_disk();
    let fetched = fetch(&publisher.ticket, there.path(), &[]);
    assert_eq!(fetched.code, Some(0), "{fetched:?}");
    let again = fetched.json()["fetched_bytes"].as_u64().unwrap();
    let missing = data.len() as u64 - had;
    assert!(
        again < missing + (512 << 10),
        "{again} bytes for {missing} that were missing"
    );
    assert_eq!(fs::read(there.path().join("a")).unwrap(), data);
    assert_eq!(names(there.path()), ["a"]);
}

#[test]
fn the_second_consumer_behind_a_cache_costs_the_publisher_nothing() {
    let (here, store) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let data = content(2 << 20);
    let publisher = Publisher::start(&[&write(here.path(), "a", &data)]);
    let (running, address) = cache(store.path(), &publisher.address);
    let chunks = |data: &[u8]| (data.len() as u64).div_ceil(1384);
    for _ in 0..2 {
        let there = tempfile::tempdir().unwrap();
        let fetched = fetch(&publisher.ticket, there.path(), &["--from", &address]);
        assert_eq!(fetched.code, Some(0), "{fetched:?}");
        assert_eq!(fs::read(there.path().join("a")).unwrap(), data);
    }
    let said = end_cache(running);
    // Interests that were only late are answered twice, but nothing is fetched twice.
    let (fetched, served) = (
        said["fetched_bytes"].as_u64().unwrap(),
        said["served_bytes"].as_u64().unwrap(),
    );
    assert!(
        served >= 2 * fetched && fetched < 103 * data.len() as u64 / 100,
        "{said}"
    );
    // After a restart it has everything still, and the publisher is gone.
    let ticket = publisher.ticket.clone();
    let sent = publisher.end();
    // A second copy would be twice as many.
    assert!(
        sent < chunks(&data) * 3 / 2,
        "{sent} answers for {} chunks",
        chunks(&data)
    );
    let (running, address) = cache(store.path(), "127.0.0.1:9");
    let there = tempfile::tempdir().unwrap();
    let fetched = fetch(&ticket, there.path(), &["--from", &address]);
    assert_eq!(fetched.code, Some(0), "{fetched:?}");
    assert_eq!(fs::read(there.path().join("a")).unwrap(), data);
    assert_eq!(end_cache(running)["misses"], 0);
}

#[test]
fn a_store_that_was_damaged_is_repaired_from_above() {
    let (here, store, there) = (
        tempfile::tempdir().unwrap(),
        tempfile::tempdir().unwrap(),
        tempfile::tempdir().unwrap(),
    );
    let data = content(1 << 20);
    let publisher = Publisher::start(&[&write(here.path(), "a", &data)]);
    let (running, address) = cache(store.path(), &publisher.address);
    assert_eq!(
        fetch(
            &publisher.ticket,
            tempfile::tempdir().unwrap().path(),
            &["--from", &address]
        )
        .code,
        Some(0)
    );
    end_cache(running);
    let pack = store.path().join("00000000.pack");
    let mut bytes = fs::read(&pack).unwrap();
    for at in (10_000..bytes.len()).step_by(100_000) {
        bytes[at] ^= 0x55;
    }
    fs::write(&pack, bytes).unwrap();
    let (running, address) = cache(store.path(), &publisher.address);
    let fetched = fetch(&publisher.ticket, there.path(), &["--from", &address]);
    assert_eq!(fetched.code, Some(0), "{fetched:?}");
    assert_eq!(
        fetched.json()["refused_chunks"],
        0,
        "nothing wrong comes out of it"
    );
    assert_eq!(fs::read(there.path().join("a")).unwrap(), data);
    let said = end_cache(running);
    let number = |name: &str| said[name].as_u64().unwrap();
    let (damaged, misses) = (number("damaged_chunks"), number("misses"));
    // An Interest that was only late may ask again for what has just come from above; what is whole is not asked for.
    let most = (data.len() / 1384) as u64 / 4; // chunks of that size
    assert!(
        damaged >= 10 && (damaged..most).contains(&misses),
        "{said}, {most} at most"
    );
}

#[test]
fn a_source_that_lies_is_named_and_its_chunks_come_from_another() {
    let (here, there) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let data = content(2 << 20);
    let publisher = Publisher::start(&[&write(here.path(), "a", &data)]);
    let liar = liar(publisher.address.parse().unwrap()).to_string();
    let fetched = fetch(
        &publisher.ticket,
        there.path(),
        &["--from", &liar, "--from", "ticket"],
    );
    assert_eq!(fetched.code, Some(0), "{fetched:?}");
    assert_eq!(fs::read(there.path().join("a")).unwrap(), data);
    let said = fetched.json();
    let source = said["sources"]
        .as_array()
        .unwrap()
        .iter()
        .find(|source| source["address"] == liar)
        .unwrap();
    assert!(
        source["refused_chunks"].as_u64().unwrap() >= 8 && source["bytes"] == 0,
        "{source}"
    );
    assert!(
        source["complaint"].as_str().unwrap().contains("other digests"),
        "{source}"
    );
    assert!(
        fetched.stderr.contains(&liar) && fetched.stderr.contains("refused"),
        "{fetched:?}"
    );

    // And when there is no other nothing appears.
    let alone = tempfile::tempdir().unwrap();
    let failed = fetch(&publisher.ticket, alone.path(), &["--from", &liar]);
    says(&failed, 1, &["no source is left", &liar, "other digests"]);
    assert!(whole(alone.path()).is_empty());
}

#[test]
fn a_ticket_of_another_publisher_gets_nothing() {
    let (here, there, keys) = (
        tempfile::tempdir().unwrap(),
        tempfile::tempdir().unwrap(),
        tempfile::tempdir().unwrap(),
    );
    let file = write(here.path(), "a", &content(10_000));
    let publisher = Publisher::start(&[&file]);
    let key = keys.path().join("key");
    assert_eq!(restp(&["keygen", key.to_str().unwrap()]).code, Some(0));
    let options = [
        "publish",
        "--json",
        "--listen",
        "127.0.0.1:0",
        "--key",
        key.to_str().unwrap(),
        file.to_str().unwrap(),
    ];
    let mut other = Running::start(&options);
    let said = other.json();
    assert_ne!(said["ticket"].as_str(), Some(&publisher.ticket[..]));
    let fixed = [
        "fetch",
        &publisher.ticket,
        "--from",
        said["addresses"][0].as_str().unwrap(),
        "--timeout",
        "2",
    ];
    let failed = restp(&[&fixed[..], &["--dir", there.path().to_str().unwrap()]].concat());
    says(&failed, 1, &["does not have the object"]);
    assert!(names(there.path()).is_empty());
}

#[test]
fn a_file_that_changes_is_served_no_more() {
    let (here, there) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let file = write(here.path(), "a", &content(1 << 20));
    let mut publisher = Publisher::start(&[&file]);
    write(here.path(), "a", &content(1000));
    let fixed = [
        "fetch",
        &publisher.ticket,
        "--dir",
        there.path().to_str().unwrap(),
        "--timeout",
        "2",
    ];
    let failed = restp(&fixed);
    says(&failed, 1, &["does not have the object"]);
    publisher.running.overhear("publish it again");
    assert!(whole(there.path()).is_empty());
}

#[test]
fn what_cannot_begin_says_so_with_a_way_out() {
    let there = tempfile::tempdir().unwrap();
    let dir = there.path().to_str().unwrap();
    says(&restp(&["publish", "/nowhere/at/all"]), 2, &["/nowhere/at/all"]);
    says(
        &restp(&["publish", dir, "--chunk", "10 B"]),
        2,
        &["--chunk", "256 B"],
    );
    says(&restp(&["fetch", "restp2-aeaq"]), 2, &["restp publish"]);
    says(
        &restp(&["cache", "--size", "1 MB", "--dir", dir]),
        2,
        &["--size", "4 MiB"],
    );
}
