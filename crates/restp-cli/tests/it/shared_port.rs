//! Receivers and servers that publish and cache at their own port.

#![allow(clippy::unwrap_used, reason = "in a test a failed unwrap is a failed test")]

#[cfg(target_os = "linux")]
use crate::common::namespaces::{Namespaces, inside};
use crate::common::programs::{echo, exchange, forward, rule, target, tcp};
use crate::common::{FOR_EVER, Running, content, names, restp, says, whole, write};
use nix::sys::signal::Signal;
use serde_json::Value;
use std::fs;
use std::net::{TcpStream, UdpSocket};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

fn word(path: &Path) -> &str {
    path.to_str().unwrap()
}

fn text<'a>(value: &'a Value, key: &str) -> &'a str {
    value[key].as_str().unwrap()
}

/// A program that listens at a free port of this host, and what it says first.
fn start(words: &[&str]) -> (Running, Value) {
    let mut running = Running::start(&[words, &["--json", "--listen", "127.0.0.1:0"]].concat());
    let invitation = running.json();
    (running, invitation)
}

/// Ends it; what it says on standard error at the end.
fn end(running: Running) -> String {
    running.signal(Signal::SIGINT);
    let ended = running.end();
    assert_eq!(ended.code, Some(0), "{ended:?}");
    ended.stderr
}

/// Interests of a stranger until it is dropped: more than a home's link would bring, and fewer than an unoptimised build beside other
/// load can read. Beyond that the system drops what is for this socket, whoever sent it.
struct Flood(Arc<AtomicBool>);

impl Flood {
    fn start(to: &str) -> Flood {
        let (goes_on, to) = (Arc::new(AtomicBool::new(true)), to.to_owned());
        let flood = Flood(goes_on.clone());
        std::thread::spawn(move || {
            let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
            // A header of five words, and a digest: each is answered with a cookie.
            let interest = [&[0x13, 0x80, 5, 0][..], &[7; 16 + 32]].concat();
            while goes_on.load(Ordering::Relaxed) {
                for _ in 0..10 {
                    let _ = socket.send_to(&interest, &to);
                }
                crate::common::pause(Duration::from_millis(1));
            }
        });
        flood
    }
}

impl Drop for Flood {
    fn drop(&mut self) {
        self.0.store(false, Ordering::Relaxed);
    }
}

#[test]
fn a_receiver_publishes_at_its_port_and_both_go_on_at_once_in_a_flood_of_interests() {
    let (here, inbox, there) = (
        tempfile::tempdir().unwrap(),
        tempfile::tempdir().unwrap(),
        tempfile::tempdir().unwrap(),
    );
    let (film, letter) = (content(6 << 20), content((5 << 20) + 17));
    let (film_at, letter_at) = (
        write(here.path(), "film", &film),
        write(here.path(), "letter", &letter),
    );
    let (receiving, said) = start(&[
        "recv",
        "--dir",
        word(inbox.path()),
        "--publish",
        word(&film_at),
        "--publish",
        word(&letter_at),
    ]);
    assert_eq!(said["content"]["addresses"], said["addresses"], "one port");
    let flood = Flood::start(said["addresses"][0].as_str().unwrap());
    let content_ticket = text(&said["content"], "ticket");
    let fetching = ["fetch", "--json", content_ticket, "--dir", word(there.path())];
    let fetching = Running::start(&[&fetching[..], &FOR_EVER].concat());
    let sending = ["send", "--json", word(&letter_at), text(&said, "ticket")];
    let sent = restp(&[&sending[..], &FOR_EVER].concat());
    assert_eq!(sent.code, Some(0), "{sent:?}");
    let fetched = fetching.end();
    assert_eq!(fetched.code, Some(0), "{fetched:?}");
    drop(flood);
    assert!(fs::read(inbox.path().join("letter")).unwrap() == letter);
    assert_eq!(names(there.path()), ["film", "letter"]);
    assert!(fs::read(there.path().join("film")).unwrap() == film);
    assert!(fs::read(there.path().join("letter")).unwrap() == letter);
    let said = end(receiving);
    assert!(said.contains("served ") && said.contains(" answers"), "{said}");
}

#[test]
fn a_server_publishes_and_caches_as_its_file_says() {
    let (here, above, there) = (
        tempfile::tempdir().unwrap(),
        tempfile::tempdir().unwrap(),
        tempfile::tempdir().unwrap(),
    );
    let elsewhere = write(above.path(), "elsewhere", &content(700_000));
    let (publishing, published) = start(&["publish", word(&elsewhere)]);
    write(here.path(), "manual", &content(900_000));
    let target = target(echo);
    let upstream = published["addresses"][0].as_str().unwrap();
    let file = format!(
        "allow = [\"{}\"]\npublish = [\"manual\"]\ncache = \"store\"\ncache-size = \"8 MiB\"\nupstream = [\"{upstream}\"]\n",
        tcp(target)
    );
    let file = write(here.path(), "serve.toml", file.as_bytes());
    let (serving, said) = start(&["serve", "--config", word(&file)]);

    let fetched = restp(&[
        "fetch",
        text(&said["content"], "ticket"),
        "--dir",
        word(there.path()),
    ]);
    assert_eq!(fetched.code, Some(0), "{fetched:?}");
    let from = said["addresses"][0].as_str().unwrap();
    let words = [
        "fetch",
        text(&published, "ticket"),
        "--from",
        from,
        "--dir",
        word(there.path()),
    ];
    let fetched = restp(&words);
    assert_eq!(fetched.code, Some(0), "{fetched:?}");
    end(publishing);
    fs::remove_file(there.path().join("elsewhere")).unwrap();
    let fetched = restp(&words);
    assert_eq!(fetched.code, Some(0), "from the store: {fetched:?}");
    assert_eq!(names(there.path()), ["elsewhere", "manual"]);
    assert!(fs::read(there.path().join("elsewhere")).unwrap() == content(700_000));
    assert!(fs::read(there.path().join("manual")).unwrap() == content(900_000));

    let forwarding = forward(text(&said, "ticket"), &["-L", &rule("0", target)]);
    let stream = TcpStream::connect(forwarding.listens[0]).unwrap();
    assert!(exchange(stream, content(100_000)) == content(100_000));
    let said = end(serving);
    assert!(said.contains("had to be fetched"), "{said}");
    assert!(here.path().join("store").is_dir(), "beside the file");
}

#[test]
fn nothing_is_published_unless_it_is_asked_for_and_what_is_wrong_is_said() {
    let inbox = tempfile::tempdir().unwrap();
    let (receiving, said) = start(&["recv", "--dir", word(inbox.path())]);
    assert!(said.get("content").is_none(), "{said}");
    end(receiving);
    let dir = ["recv", "--dir", word(inbox.path())];
    says(
        &restp(&[&dir[..], &["--publish", "/nowhere/at/all"]].concat()),
        2,
        &["/nowhere/at/all"],
    );
    says(
        &restp(&[&dir[..], &["--upstream", "127.0.0.1"]].concat()),
        2,
        &["--upstream", "--cache DIR"],
    );
    let ticket = "restpc2-ASTAAAIHUNhY";
    says(
        &restp(&[&dir[..], &["--cache", "store", "--upstream", ticket]].concat()),
        2,
        &["--upstream", ticket, "this is a ticket", "HOST:PORT"],
    );
    let store = inbox.path().join("store");
    let words = ["--cache", word(&store), "--cache-size", "1 MiB"];
    says(
        &restp(&[&dir[..], &words].concat()),
        2,
        &["--cache-size", "4 MiB"],
    );
    assert_eq!(whole(inbox.path()), Vec::<String>::new());
}

/// A cache alone, and one at the port of a receiver. Needs root and the `ip` tool; where these are missing the test says so and shows
/// nothing.
#[cfg(target_os = "linux")]
#[test]
fn a_cache_goes_on_when_the_address_of_its_host_changes() {
    let namespaces = match Namespaces::create("cache") {
        Ok(namespaces) => namespaces,
        Err(reason) => {
            return eprintln!("SKIPPED: no namespaces here ({reason}); run as root to see this test");
        }
    };
    let namespace = &namespaces.0[0];
    let ip = |words: &[&str]| _ = inside(namespace, &[&["ip"], words].concat());
    let is_at = |address: &str| {
        ip(&["address", "add", &format!("{address}/32"), "dev", "lo"]);
        let route = [
            "route", "replace", "local", "10.9.0.1", "dev", "lo", "table", "local", "src", address,
        ];
        ip(&route);
    };
    ip(&["link", "set", "lo", "up"]);
    ip(&["address", "add", "10.9.0.1/32", "dev", "lo"]);
    is_at("10.9.0.2");
    let folder = tempfile::tempdir().unwrap();
    let publish = |name: &str| {
        let file = write(folder.path(), name, &content(100_000));
        let words = ["publish", "--json", "--listen", "10.9.0.1:0", word(&file)];
        let mut running = Running::start_inside(namespace, &words);
        let said = running.json();
        (
            running,
            text(&said, "ticket").to_owned(),
            said["addresses"][0].clone(),
        )
    };
    let (_before, before, first) = publish("before");
    let (_after, after, second) = publish("after");
    let above = [
        "--upstream",
        first.as_str().unwrap(),
        "--upstream",
        second.as_str().unwrap(),
    ];
    let (own, shared) = (folder.path().join("own"), folder.path().join("shared"));
    let (inbox, there) = (folder.path().join("inbox"), folder.path().join("there"));
    let alone = ["cache", "--json", "--listen", "0.0.0.0:5000", "--dir", word(&own)];
    let beside = [
        "recv",
        "--json",
        "--listen",
        "0.0.0.0:5001",
        "--dir",
        word(&inbox),
        "--cache",
        word(&shared),
    ];
    let mut caches =
        [&alone[..], &beside].map(|words| Running::start_inside(namespace, &[words, &above].concat()));
    let _ = caches.each_mut().map(Running::json);
    let fetch = |ticket: &str| {
        for cache in ["127.0.0.1:5000", "127.0.0.1:5001"] {
            let words = [
                "fetch",
                ticket,
                "--from",
                cache,
                "--overwrite",
                "--dir",
                word(&there),
            ];
            let ended = Running::start_inside(namespace, &words).end();
            assert_eq!(ended.code, Some(0), "{cache}: {ended:?}");
        }
    };
    fetch(&before);
    ip(&["address", "delete", "10.9.0.2/32", "dev", "lo"]);
    is_at("10.9.0.3");
    fetch(&after);
}
