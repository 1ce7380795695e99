//! Publish, fetch and cache where a disk is full or a name is taken.

#![allow(clippy::unwrap_used, reason = "in a test a failed unwrap is a failed test")]

use super::content::{Publisher, cache, end_cache, fetch};
use crate::common::{self, content, names, says, whole, write};
use nix::mount::{MntFlags, MsFlags, mount, umount2};
use std::fs;
use std::path::Path;

/// A file system of `megabytes` at `place`, where this may be made.
struct Small<'a>(&'a Path);

impl<'a> Small<'a> {
    fn mount(place: &'a Path, megabytes: u32) -> Option<Self> {
        fs::create_dir(place).unwrap();
        let size = format!("size={megabytes}m");
        let mounted = mount(
            Some("tmpfs"),
            place,
            Some("tmpfs"),
            MsFlags::empty(),
            Some(&size[..]),
        );
        if let Err(error) = mounted {
            eprintln!("SKIPPED: a file system of {megabytes} MiB cannot be mounted here ({error})");
            return None;
        }
        Some(Small(place))
    }

    fn resize(&self, megabytes: u32) {
        let size = format!("size={megabytes}m");
        let flags = MsFlags::MS_REMOUNT;
        mount(None::<&str>, self.0, None::<&str>, flags, Some(&size[..])).unwrap();
    }
}

impl Drop for Small<'_> {
    fn drop(&mut self) {
        let _ = umount2(self.0, MntFlags::MNT_DETACH);
    }
}

#[test]
fn a_full_disk_is_said_and_the_same_command_goes_on() {
    let (here, there) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let place = there.path().join("small");
    let Some(disk) = Small::mount(&place, 2) else {
        return;
    };
    let publisher = Publisher::start(&[&write(here.path(), "a", &content(4 << 20))]);
    says(&fetch(&publisher.ticket, &place, &[]), 1, &["make room"]);
    assert!(whole(&place).is_empty());
    disk.resize(16);
    let fetched = fetch(&publisher.ticket, &place, &[]);
    assert_eq!(fetched.code, Some(0), "{fetched:?}");
    assert!(
        fetched.json()["fetched_bytes"].as_u64().unwrap() < 4 << 20,
        "{fetched:?}"
    );
    assert!(fs::read(place.join("a")).unwrap() == content(4 << 20));
}

/// All of it was fetched, and removed.
#[test]
fn what_cannot_get_its_name_is_kept_and_the_same_command_places_it() {
    let (here, there) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let data = content(1_000_003);
    let publisher = Publisher::start(&[&write(here.path(), "disk.img", &data)]);
    let in_the_way = there.path().join("disk.img");
    fs::create_dir(&in_the_way).unwrap();
    says(&fetch(&publisher.ticket, there.path(), &["--overwrite"]), 1, &[]);
    fs::remove_dir(&in_the_way).unwrap();
    let again = fetch(&publisher.ticket, there.path(), &["--overwrite"]);
    assert_eq!(again.code, Some(0), "{again:?}");
    // The list behind the file was cut off before it should get its name.
    assert!(
        again.json()["fetched_bytes"].as_u64().unwrap() < 2_000,
        "{again:?}"
    );
    assert_eq!(names(there.path()), ["disk.img"]);
    assert!(fs::read(&in_the_way).unwrap() == data);
}

/// Folders are copied out of what was fetched. What stops in the midst of that goes on without a source.
#[test]
fn a_disk_that_is_full_when_files_get_their_names_costs_nothing_that_has_come() {
    let (here, there) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let place = there.path().join("small");
    let Some(disk) = Small::mount(&place, 6) else {
        return;
    };
    let tree = here.path().join("tree");
    fs::create_dir(&tree).unwrap();
    let names = ["a", "b", "c"];
    for (index, name) in names.iter().enumerate() {
        write(&tree, name, &content((1 << 20) + index));
    }
    let publisher = Publisher::start(&[&tree]);
    says(&fetch(&publisher.ticket, &place, &[]), 1, &[]);
    disk.resize(16);
    let fetched = fetch(&publisher.ticket, &place, &[]);
    assert_eq!(fetched.code, Some(0), "{fetched:?}");
    assert_eq!(fetched.json()["fetched_bytes"], 0, "{fetched:?}");
    for (index, name) in names.iter().enumerate() {
        let read = fs::read(place.join("tree").join(name)).unwrap();
        assert!(read == content((1 << 20) + index), "{name}");
    }
    assert_eq!(common::names(&place), ["tree"]);
}

#[test]
fn a_cache_whose_disk_is_full_says_so_and_hands_on() {
    let (here, there, store) = (
        tempfile::tempdir().unwrap(),
        tempfile::tempdir().unwrap(),
        tempfile::tempdir().unwrap(),
    );
    let place = store.path().join("small");
    let Some(_disk) = Small::mount(&place, 2) else {
        return;
    };
    let publisher = Publisher::start(&[&write(here.path(), "a", &content(4 << 20))]);
    let (mut running, address) = cache(&place, &publisher.address);
    let fetched = fetch(&publisher.ticket, there.path(), &["--from", &address]);
    assert_eq!(fetched.code, Some(0), "{fetched:?}");
    assert_eq!(fetched.json()["refused_chunks"], 0);
    assert!(fs::read(there.path().join("a")).unwrap() == content(4 << 20));
    running.overhear("only handed on");
    assert!(end_cache(running)["failed_chunks"].as_u64().unwrap() > 0);
}
