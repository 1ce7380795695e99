//! A host whose network comes after its programs: at boot, in a tunnel, with a modem that registers.

#![allow(clippy::unwrap_used, reason = "in a test a failed unwrap is a failed test")]

use crate::common::namespaces::{Namespaces, inside};
use crate::common::{Running, content, names, says, write};

const HERE: &str = "10.77.0.1";

/// A namespace without any network, and what brings it up. None where there are no namespaces.
fn without_network(test: &str) -> Option<(Namespaces, impl Fn())> {
    let namespaces = match Namespaces::create(test) {
        Ok(namespaces) => namespaces,
        Err(why) => {
            eprintln!("SKIPPED: {why}");
            return None;
        }
    };
    let name = namespaces.0[0].clone();
    let address = format!("{HERE}/24");
    let come = move || {
        inside(&name, &["ip", "address", "add", &address, "dev", "lo"]);
        inside(&name, &["ip", "link", "set", "lo", "up"]);
        assert!(inside(&name, &["ip", "address"]).contains(HERE), "no address");
    };
    Some((namespaces, come))
}

/// A receiver there, at every address and this port, and a file for it.
struct Transfer {
    receiver: Running,
    folder: tempfile::TempDir,
    inbox: tempfile::TempDir,
}

impl Transfer {
    fn prepare(place: &str, port: u16, more: &[&str]) -> Self {
        let (folder, inbox) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        write(folder.path(), "note.txt", b"late");
        let (listen, dir) = (format!("0.0.0.0:{port}"), inbox.path().to_str().unwrap());
        let receive = ["recv", "--open", "--listen", &listen, "--dir", dir, "--json"];
        let mut receiver = Running::start_inside(place, &[&receive, more].concat());
        receiver.json();
        Transfer {
            receiver,
            folder,
            inbox,
        }
    }

    fn file(&self) -> String {
        self.folder.path().join("note.txt").to_str().unwrap().to_owned()
    }
}

#[test]
fn a_transfer_waits_for_a_network() {
    let Some((namespaces, come)) = without_network("late") else {
        return;
    };
    let place = &namespaces.0[0];
    let transfer = Transfer::prepare(place, 7071, &["--once"]);
    let (file, to) = (transfer.file(), format!("{HERE}:7071"));
    let impatient = Running::start_inside(place, &["send", &file, &to, "--timeout", "1s"]);
    says(
        &impatient.end(),
        1,
        &["no network led to 10.77.0.1:7071", "links of this host"],
    );
    let mut sender = Running::start_inside(place, &["send", &file, &to, "--timeout", "60s"]);
    sender.overhear("no network leads to 10.77.0.1:7071 now");
    come();
    assert_eq!(sender.end().code, Some(0));
    assert_eq!(transfer.receiver.end().code, Some(0));
    assert_eq!(names(transfer.inbox.path()), ["note.txt"]);
}

/// One address that leads somewhere, where nobody is, keeps the other from no network that comes: not over one path, nor over all.
#[test]
fn an_address_where_nobody_answers_does_not_hide_that_another_has_no_network_yet() {
    for (test, set) in [("one", "paths=single"), ("all", "paths=spreading")] {
        let Some((namespaces, come)) = without_network(test) else {
            return;
        };
        let place = &namespaces.0[0];
        // Nobody reads what goes into it.
        inside(place, &["ip", "tuntap", "add", "quiet", "mode", "tun"]);
        inside(place, &["ip", "address", "add", "10.88.0.1/24", "dev", "quiet"]);
        inside(place, &["ip", "link", "set", "quiet", "up"]);
        assert!(inside(place, &["ip", "route", "get", "10.88.0.9"]).contains("quiet"));
        let transfer = Transfer::prepare(place, 7072, &[]);
        let file = transfer.file();
        let addresses = ["--address", "10.88.0.9:7072", "--address", "10.77.0.1:7072"];
        let send = ["send", &file, "10.77.0.1:7072", "--timeout", "60s", "--set", set];
        let mut sender = Running::start_inside(place, &[&send[..], &addresses].concat());
        sender.overhear("trying to reach 10.88.0.9:7072");
        come();
        let sent = sender.end();
        assert_eq!(sent.code, Some(0), "{test}: {sent:?}");
        assert_eq!(names(transfer.inbox.path()), ["note.txt"]);
    }
}

#[test]
fn what_is_published_is_fetched_once_there_is_a_network() {
    let Some((namespaces, come)) = without_network("fetch") else {
        return;
    };
    let place = &namespaces.0[0];
    let folder = tempfile::tempdir().unwrap();
    let inbox = tempfile::tempdir().unwrap();
    let file = write(folder.path(), "chart.bin", &content(100_000));
    let (file, dir) = (file.to_str().unwrap(), inbox.path().to_str().unwrap());
    let mut publisher =
        Running::start_inside(place, &["publish", file, "--listen", "0.0.0.0:7081", "--json"]);
    let ticket = publisher.json()["ticket"].as_str().unwrap().to_owned();
    let from = format!("{HERE}:7081");
    let fetch = [
        "fetch",
        &ticket,
        "--from",
        &from,
        "--dir",
        dir,
        "--timeout",
        "60s",
        "--json",
    ];
    let mut fetching = Running::start_inside(place, &fetch);
    fetching.overhear("no network leads to 10.77.0.1");
    come();
    assert_eq!(fetching.end().code, Some(0));
    assert_eq!(names(inbox.path()), ["chart.bin"]);
}
