//! Hosts that reach each other through `restp relay`, and leave it when a direct path works.

#![allow(clippy::unwrap_used, reason = "in a test a failed unwrap is a failed test")]

use crate::common::{self, Ended, FOR_EVER, Running, content, restp, says};
use nix::sys::signal::Signal;
use serde_json::Value;
use std::io::{BufRead, Write};
use std::path::Path;
use std::process::{ChildStdin, Command};

/// Where a command of the test runs: here, or in a namespace.
#[derive(Clone, Copy)]
struct At<'a>(Option<&'a str>);

impl At<'_> {
    fn start(self, arguments: &[&str]) -> Running {
        match self.0 {
            None => Running::start(arguments),
            Some(namespace) => Running::start_inside(namespace, arguments),
        }
    }

    fn start_listening(self, arguments: &[&str]) -> (Running, ChildStdin) {
        match self.0 {
            None => Running::start_listening(arguments),
            Some(namespace) => Running::start_listening_inside(namespace, arguments),
        }
    }
}

fn relay(at: At<'_>, listen: &str, options: &[&str]) -> (Running, String) {
    let mut relay = at.start(&[&["relay", "--json", "--listen", listen], options].concat());
    let address = relay.json()["listen"].as_str().unwrap().to_owned();
    (relay, address)
}

#[test]
fn a_relay_has_room_for_more_ports_than_one_source_takes() {
    let listen = "127.0.0.1:0";
    let words = [
        "-c",
        "ulimit -S -n 256; exec \"$0\" \"$@\"",
        env!("CARGO_BIN_EXE_restp"),
    ];
    let mut relay = Command::new("sh")
        .args(words)
        .args(["relay", "--json", "--listen", listen])
        .stdout(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    let mut line = String::new();
    std::io::BufReader::new(relay.stdout.take().unwrap())
        .read_line(&mut line)
        .unwrap();
    let limits = std::fs::read_to_string(format!("/proc/{}/limits", relay.id())).unwrap();
    relay.kill().unwrap();
    relay.wait().unwrap();
    let files = limits
        .lines()
        .find(|line| line.starts_with("Max open files"))
        .unwrap();
    let numbers: Vec<_> = files.split_whitespace().skip(3).take(2).collect();
    assert_eq!(numbers[0], numbers[1], "{files}");
}

/// A receiver of one transfer, its ticket and its addresses, the relay's last.
fn recv(at: At<'_>, listen: &str, relay: &str, dir: &Path) -> (Running, String, Vec<String>) {
    let words = ["recv", "--json", "--once", "--listen", listen, "--relay", relay];
    let dir = ["--dir", dir.to_str().unwrap()];
    let mut receiver = at.start(&[&words[..], &dir, &FOR_EVER].concat());
    let told = receiver.json();
    let addresses = told["addresses"].as_array().unwrap().iter();
    let addresses = addresses.map(|address| address.as_str().unwrap().to_owned());
    (
        receiver,
        told["ticket"].as_str().unwrap().to_owned(),
        addresses.collect(),
    )
}

/// Waits until the path to somewhere that fits is in `state`; its address.
fn path(running: &mut Running, state: &str, fits: impl Fn(&str) -> bool) -> String {
    loop {
        let news = running.json();
        let remote = news["remote"].as_str().unwrap_or_default().to_owned();
        if news["event"] == "path" && news["state"] == state && fits(&remote) {
            return remote;
        }
    }
}

fn bytes_to(result: &Value, remote: &str) -> u64 {
    let paths = result["paths"].as_array().unwrap().iter();
    let found = paths.filter(|path| path["remote"] == remote);
    found.map(|path| path["bytes_sent"].as_u64().unwrap()).sum()
}

fn end_well(sent: &Ended, received: &Ended) {
    assert_eq!(
        (sent.code, received.code),
        (Some(0), Some(0)),
        "{sent:?} {received:?}"
    );
}

/// Sends over the relay alone at first; when the direct path is there the relay may die.
fn crosses(hosts: [At<'_>; 2], (relay, through): (Running, &str), listen: &str) {
    let inbox = tempfile::tempdir().unwrap();
    let (receiver, ticket, addresses) = recv(hosts[1], listen, through, inbox.path());
    let relayed = addresses.last().unwrap();
    let send = ["send", "-", "--json", &ticket, "--address", relayed];
    let (mut sender, mut input) = hosts[0].start_listening(&[&send[..], &FOR_EVER].concat());
    let file = content(600_000);
    input.write_all(&file[..300_000]).unwrap();
    let direct = path(&mut sender, "up", |remote| remote != relayed);
    relay.signal(Signal::SIGKILL);
    relay.end();
    input.write_all(&file[300_000..]).unwrap();
    drop(input);
    let (sent, received) = (sender.end(), receiver.end());
    end_well(&sent, &received);
    assert!(std::fs::read(inbox.path().join("stdin")).unwrap() == file);
    assert!(bytes_to(&sent.json(), &direct) > 290_000, "{sent:?}");
}

#[test]
fn a_connection_leaves_the_relay_for_a_direct_path_and_does_not_notice_its_end() {
    let here = At(None);
    let (relay, address) = relay(here, "127.0.0.1:0", &[]);
    crosses([here; 2], (relay, &address), "127.0.0.1:0");
}

#[test]
fn a_host_registers_by_both_families_with_a_relay_that_has_both() {
    if std::net::UdpSocket::bind("[::1]:0").is_err() {
        return println!("SKIPPED: no IPv6 here");
    }
    let (_relay, address) = relay(At(None), "0", &[]);
    let port = address.rsplit_once(':').unwrap().1;
    let inbox = tempfile::tempdir().unwrap();
    let (_receiver, _, addresses) = recv(At(None), "0", port, inbox.path());
    for family in ["127.0.0.1:", "[::1]:"] {
        let relayed = addresses.iter().filter(|address| address.starts_with(family));
        assert!(relayed.count() >= 1, "{family} is missing in {addresses:?}");
    }
}

/// Tickets of before led nowhere.
#[test]
fn a_relay_that_starts_again_gives_hosts_the_ports_that_they_had() {
    let (before, address) = relay(At(None), "127.0.0.1:0", &["--ports", "18000-18999"]);
    let inbox = tempfile::tempdir().unwrap();
    let (receiver, ticket, addresses) = recv(At(None), "127.0.0.1:0", &address, inbox.path());
    let relayed = addresses.last().unwrap();
    let port: u16 = relayed.rsplit_once(':').unwrap().1.parse().unwrap();
    assert!((18_000..19_000).contains(&port), "{relayed}");
    before.signal(Signal::SIGKILL);
    before.end();
    let _again = relay(At(None), &address, &["--ports", "18000-18999"]);
    let folder = tempfile::tempdir().unwrap();
    let file = common::write(folder.path(), "a", b"a");
    let words = ["send", file.to_str().unwrap(), &ticket, "--address", relayed];
    let sent = restp(&[&words[..], &FOR_EVER].concat());
    assert_eq!(sent.code, Some(0), "{sent:?}");
    assert_eq!(receiver.end().code, Some(0));
}

#[test]
fn ports_of_a_relay_are_a_range() {
    for wrong in ["7", "0-9", "9-8", "1-70000", "a-b"] {
        let refused = restp(&["relay", "--listen", "127.0.0.1:0", "--ports", wrong]);
        says(&refused, 2, &[wrong, "50000-50999"]);
    }
}

#[test]
fn a_relay_without_places_says_so() {
    let (_relay, address) = relay(At(None), "127.0.0.1:0", &["--max-hosts", "1"]);
    let inbox = tempfile::tempdir().unwrap();
    let (_first, ..) = recv(At(None), "127.0.0.1:0", &address, inbox.path());
    let dir = inbox.path().to_str().unwrap();
    let second = restp(&[
        "recv",
        "--listen",
        "127.0.0.1:0",
        "--dir",
        dir,
        "--relay",
        &address,
    ]);
    says(&second, 1, &[&address, "no place"]);
}

#[test]
fn what_is_no_relay_is_named() {
    let dir = tempfile::tempdir().unwrap();
    let recv = |relay| {
        let dir = dir.path().to_str().unwrap();
        restp(&["recv", "--listen", "127.0.0.1:0", "--dir", dir, "--relay", relay])
    };
    let nobody = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
    let address = nobody.local_addr().unwrap().to_string();
    says(&recv(&address), 1, &[&address, "does not answer", "restp relay"]);
    says(&recv("no address"), 2, &["--relay", "no address"]);
    says(&restp(&["relay", "--limit", "fast"]), 2, &["--limit", "fast"]);
    says(
        &restp(&["relay", "--listen", "192.0.2.1:1"]),
        2,
        &["--listen", "192.0.2.1:1"],
    );
}

/// Two hosts behind a translator each, and a relay between: left - 10.1.0.0/24 - nat - 10.9.0.0/24 (relay) - nat - 10.2.0.0/24 - right.
struct Internet(Vec<String>);

impl Internet {
    /// `masquerade`: how each translator chooses ports.
    fn create(masquerade: [&str; 2]) -> Result<Self, String> {
        let name = |part: &str| {
            format!(
                "restp-{}-{part}-{}",
                std::process::id(),
                masquerade[0].len() + masquerade[1].len()
            )
        };
        let internet = Internet(["wan", "left", "lnat", "right", "rnat"].map(name).to_vec());
        let [wan, left, lnat, right, rnat] = &internet.0[..] else {
            return Err("five namespaces".into());
        };
        for namespace in &internet.0 {
            run("ip", &["netns", "add", namespace])?;
            run("ip", &["-n", namespace, "link", "set", "lo", "up"])?;
        }
        run("ip", &["-n", wan, "link", "add", "hub", "type", "bridge"])?;
        run("ip", &["-n", wan, "addr", "add", "10.9.0.1/24", "dev", "hub"])?;
        run("ip", &["-n", wan, "link", "set", "hub", "up"])?;
        for (number, host, nat, how) in [(1, left, lnat, masquerade[0]), (2, right, rnat, masquerade[1])] {
            let (port, inside, outside) = (
                format!("p{number}"),
                format!("10.{number}.0"),
                format!("10.9.0.{}", number + 1),
            );
            run(
                "ip",
                &[
                    "-n", wan, "link", "add", &port, "type", "veth", "peer", "name", "out", "netns", nat,
                ],
            )?;
            run("ip", &["-n", wan, "link", "set", &port, "master", "hub", "up"])?;
            run(
                "ip",
                &["-n", nat, "addr", "add", &format!("{outside}/24"), "dev", "out"],
            )?;
            run("ip", &["-n", nat, "link", "set", "out", "up"])?;
            run(
                "ip",
                &[
                    "-n", nat, "link", "add", "in", "type", "veth", "peer", "name", "eth", "netns", host,
                ],
            )?;
            run(
                "ip",
                &["-n", nat, "addr", "add", &format!("{inside}.1/24"), "dev", "in"],
            )?;
            run("ip", &["-n", nat, "link", "set", "in", "up"])?;
            run(
                "ip",
                &["-n", host, "addr", "add", &format!("{inside}.2/24"), "dev", "eth"],
            )?;
            run("ip", &["-n", host, "link", "set", "eth", "up"])?;
            run(
                "ip",
                &[
                    "-n",
                    host,
                    "route",
                    "add",
                    "default",
                    "via",
                    &format!("{inside}.1"),
                ],
            )?;
            let inside_nat = |words: &[&str]| run("ip", &[&["netns", "exec", nat], words].concat());
            inside_nat(&["sh", "-c", "echo 1 > /proc/sys/net/ipv4/ip_forward"])?;
            inside_nat(&["nft", "add table ip nat"])?;
            inside_nat(&[
                "nft",
                "add chain ip nat post { type nat hook postrouting priority 100 ; }",
            ])?;
            inside_nat(&[
                "nft",
                &format!("add rule ip nat post oifname out masquerade {how}"),
            ])?;
            // What nobody asked for stays outside.
            inside_nat(&["nft", "add table ip guard"])?;
            inside_nat(&[
                "nft",
                "add chain ip guard in { type filter hook forward priority 0 ; }",
            ])?;
            inside_nat(&["nft", "add rule ip guard in iifname out ct state new drop"])?;
            inside_nat(&[
                "nft",
                "add chain ip guard own { type filter hook input priority 0 ; }",
            ])?;
            inside_nat(&["nft", "add rule ip guard own iifname out ct state new drop"])?;
        }
        Ok(internet)
    }
}

impl Drop for Internet {
    fn drop(&mut self) {
        for namespace in &self.0 {
            let _ = run("ip", &["netns", "delete", namespace]);
        }
    }
}

fn run(program: &str, arguments: &[&str]) -> Result<(), String> {
    let output = Command::new(program).args(arguments).output();
    let output = output.map_err(|error| format!("{program}: {error}"))?;
    if output.status.success() {
        return Ok(());
    }
    let said = String::from_utf8_lossy(&output.stderr);
    Err(format!("{program} {}: {}", arguments.join(" "), said.trim()))
}

/// Runs `story` between the relay's host and two hosts behind translators of these kinds, where such can be made.
fn behind_translators(masquerade: [&str; 2], story: impl FnOnce([At<'_>; 3])) {
    match Internet::create(masquerade) {
        Ok(internet) => {
            let [wan, left, _, right, _] = &internet.0[..] else {
                panic!("five namespaces");
            };
            story([wan, left, right].map(|namespace| At(Some(namespace))));
        }
        Err(reason) => eprintln!(
            "SKIPPED: no translators between namespaces here ({reason}); run as root with nftables to see this test"
        ),
    }
}

#[test]
fn two_hosts_behind_translators_that_keep_ports_meet_directly() {
    behind_translators(["", ""], |[wan, left, right]| {
        let (relay, address) = relay(wan, "10.9.0.1:7071", &[]);
        crosses([left, right], (relay, &address), "10.2.0.2:0");
    });
}

/// Both choose another port for each destination: what one of them sends never reaches what the other one has opened.
#[test]
fn where_no_direct_path_can_be_the_relay_carries_everything() {
    behind_translators(["fully-random", "fully-random"], |[wan, left, right]| {
        let (_relay, address) = relay(wan, "10.9.0.1:7071", &["--limit", "1Gbit/s"]);
        let (outbox, inbox) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let (receiver, ticket, addresses) = recv(right, "10.2.0.2:0", &address, inbox.path());
        let file = common::write(outbox.path(), "sent", &content(400_000));
        let send = ["send", file.to_str().unwrap(), "--json", &ticket];
        let sent = left.start(&[&send[..], &FOR_EVER].concat()).end();
        end_well(&sent, &receiver.end());
        assert!(
            bytes_to(&sent.json(), addresses.last().unwrap()) > 400_000,
            "{sent:?}"
        );
    });
}

/// Nothing but the relay carries, and it starts again in the middle.
#[test]
fn what_a_relay_carried_goes_on_when_it_has_started_again() {
    behind_translators(["fully-random", "fully-random"], |[wan, left, right]| {
        let (before, address) = relay(wan, "10.9.0.1:7071", &[]);
        let inbox = tempfile::tempdir().unwrap();
        let (receiver, ticket, _) = recv(right, "10.2.0.2:0", &address, inbox.path());
        let send = ["send", "-", "--json", &ticket];
        let (sender, mut input) = left.start_listening(&[&send[..], &FOR_EVER].concat());
        let file = content(600_000);
        input.write_all(&file[..300_000]).unwrap();
        common::wait_until("it has begun", || !common::names(inbox.path()).is_empty());
        before.signal(Signal::SIGKILL);
        before.end();
        input.write_all(&file[300_000..]).unwrap();
        drop(input);
        let _again = relay(wan, &address, &[]);
        end_well(&sender.end(), &receiver.end());
        assert!(std::fs::read(inbox.path().join("stdin")).unwrap() == file);
    });
}
