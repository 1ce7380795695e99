//! `restp tunnel` over two emulated links between network namespaces. Needs root, /dev/net/tun and the `ip` tool; where these are
//! missing the tests say so and show nothing.
#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, reason = "in a test a failed unwrap is a failed test")]

use crate::common::namespaces::{Namespaces, inside};
use crate::common::{FOR_EVER, Running, restp, says, wait_until, write};
use nix::sys::signal::Signal;
use std::process::Command;

const LINE: &str = "rate = \"20 Mbit/s\"\ndelay = \"5 ms\"\n";

/// Two hosts, two links between them, a server on the right one, and its ticket.
struct Net {
    namespaces: Namespaces,
    emulator: Running,
    server: Option<Running>,
    ticket: String,
    folder: tempfile::TempDir,
}

impl Net {
    /// None where there are no namespaces.
    fn new(name: &str, allow: &[&str]) -> Option<Net> {
        let namespaces = Namespaces::create(name).map_err(|reason| {
            eprintln!(
                "SKIPPED: no TUN devices between namespaces here ({reason}); run as root to see this test"
            );
        });
        let namespaces = namespaces.ok()?;
        let [left, right] = &namespaces.0;
        let folder = tempfile::tempdir().unwrap();
        let text = format!(
            "[tun]\nnamespaces = [\"{left}\", \"{right}\"]\n[[path]]\nname = \"A\"\n{LINE}[[path]]\nname = \"B\"\n{LINE}"
        );
        let network = write(folder.path(), "net.toml", text.as_bytes());
        let mut emulator = Running::start(&["emulate", "--tun", "--json", network.to_str().unwrap()]);
        assert_eq!(emulator.json()["ready"].as_array().unwrap().len(), 2);
        let mut net = Net {
            namespaces,
            emulator,
            server: None,
            ticket: String::new(),
            folder,
        };
        net.serve(allow);
        Some(net)
    }

    /// A server with the first two paths' addresses.
    fn serve(&mut self, allow: &[&str]) {
        self.server = None;
        let words = [
            "serve",
            "--json",
            "--listen",
            "10.77.0.2:7070",
            "--listen",
            "10.77.1.2:7070",
        ];
        let allow = allow.iter().flat_map(|word| ["--allow", word]);
        let words: Vec<&str> = words.into_iter().chain(allow).chain(FOR_EVER).collect();
        let mut server = Running::start_inside(&self.namespaces.0[1], &words);
        self.ticket = server.json()["ticket"].as_str().unwrap().to_owned();
        self.server = Some(server);
    }

    fn tunnel(&self, words: &[&str]) -> Running {
        let fixed = ["tunnel", "--json", &self.ticket, "--bind", "tA", "--bind", "tB"];
        Running::start_inside(&self.namespaces.0[0], &[&fixed[..], words].concat())
    }

    fn left(&self, words: &[&str]) -> String {
        inside(&self.namespaces.0[0], words)
    }

    fn right(&self, words: &[&str]) -> String {
        inside(&self.namespaces.0[1], words)
    }

    /// Does an echo of `size` bytes come back from `address`, in one packet?
    fn reaches(&self, address: &str, size: &str) -> bool {
        let host = &self.namespaces.0[0];
        let words = ["netns", "exec", host, "python3", "-c", ECHO, address, size];
        Command::new("ip").args(words).output().unwrap().status.success()
    }
}

/// What `ping` does, which not every machine has: one echo (RFC 792) that may not be fragmented.
const ECHO: &str = "
import os, socket, struct, sys
host, size, mark = sys.argv[1], int(sys.argv[2]), os.getpid() & 0xffff
line = socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_ICMP)
line.setsockopt(socket.IPPROTO_IP, 10, 2)  # IP_MTU_DISCOVER, IP_PMTUDISC_DO
line.settimeout(2)
total = 0x0800 + mark + 1
while total > 0xffff:
    total = (total & 0xffff) + (total >> 16)
line.sendto(struct.pack('!BBHHH', 8, 0, ~total & 0xffff, mark, 1) + bytes(size), (host, 0))
answer = bytes(28)
while (answer[20], answer[24:26]) != (0, struct.pack('!H', mark)):
    answer = line.recv(65535)
";

#[test]
fn hosts_and_networks_are_reached_through_the_tunnel_and_nothing_is_left_of_it() {
    let Some(net) = Net::new("tunnel", &["tunnel:10.9.0.1/30"]) else {
        return;
    };
    net.right(&["ip", "link", "set", "lo", "up"]);
    net.right(&["ip", "address", "add", "192.168.7.1/32", "dev", "lo"]);
    let before = (net.left(&["ip", "route"]), net.left(&["ip", "-o", "link"]));
    let mut tunnel = net.tunnel(&[
        "--route",
        "192.168.7.0/24",
        "--device",
        "restp7",
        "--timeout",
        "1 h",
    ]);
    let up = tunnel.json();
    assert_eq!(
        (&up["device"], &up["address"]),
        (&"restp7".into(), &"10.9.0.2/30".into())
    );
    assert_eq!(
        (&up["peer"], &up["routes"][0]),
        (&"10.9.0.1/30".into(), &"192.168.7.0/24".into())
    );
    let mtu = up["mtu"].as_u64().unwrap();
    assert!(
        net.left(&["ip", "link", "show", "restp7"])
            .contains(&format!("mtu {mtu}"))
    );
    // Less the headers of IP and ICMP: the largest packet goes whole.
    for address in ["10.9.0.1", "192.168.7.1"] {
        wait_until("an echo comes back", || net.reaches(address, "56"));
        wait_until("a large echo comes back", || {
            net.reaches(address, &(mtu - 28).to_string())
        });
    }
    assert!(
        !net.reaches("10.9.0.1", &(mtu - 27).to_string()),
        "the device says what is too large"
    );
    tunnel.signal(Signal::SIGTERM);
    assert_eq!(tunnel.end().code, Some(0));
    assert_eq!(
        (net.left(&["ip", "route"]), net.left(&["ip", "-o", "link"])),
        before
    );
    wait_until("the server's device is gone", || {
        !net.right(&["ip", "route"]).contains("10.9.0.0")
    });
}

#[test]
fn a_tunnel_stands_while_its_server_starts_again_and_ends_with_its_device() {
    let allow = ["tunnel:10.9.0.1/30"];
    let Some(mut net) = Net::new("again", &allow) else {
        return;
    };
    let mut tunnel = net.tunnel(&["--address", "10.9.0.2/30", "--timeout", "1 h"]);
    let device = tunnel.json()["device"].as_str().unwrap().to_owned();
    wait_until("an echo comes back", || net.reaches("10.9.0.1", "56"));
    net.serve(&allow);
    wait_until("an echo comes back from the next server", || {
        net.reaches("10.9.0.1", "56")
    });
    net.left(&["ip", "link", "delete", &device]);
    says(&tunnel.end(), 1, &[&device, "has vanished", "start again"]);
}

/// The first network is free when it comes back, and its device has an address of the second.
#[test]
fn a_tunnel_that_comes_back_has_the_network_that_it_had() {
    let allow = ["tunnel:10.9.0.1/30", "tunnel:10.9.1.1/30"];
    let Some(mut net) = Net::new("own", &allow) else {
        return;
    };
    let key = |name: &str| net.folder.path().join(name).to_str().unwrap().to_owned();
    let keys = [key("first"), key("second")];
    for key in &keys {
        assert_eq!(restp(&["keygen", key]).code, Some(0));
    }
    let [mut first, mut second] =
        [&keys[0], &keys[1]].map(|key| net.tunnel(&["--key", key, "--timeout", "1 h"]));
    let peers = [first.json()["peer"].clone(), second.json()["peer"].clone()];
    let [his, its] = peers.map(|peer| peer.as_str().unwrap().split('/').next().unwrap().to_owned());
    assert_ne!(his, its);
    let (gone, stays, address) = if his == "10.9.0.1" {
        (first, second, its)
    } else {
        (second, first, his)
    };
    gone.signal(Signal::SIGTERM);
    assert_eq!(gone.end().code, Some(0));
    wait_until("an echo comes back", || net.reaches(&address, "56"));
    net.serve(&allow);
    wait_until("an echo comes back from the next server", || {
        net.reaches(&address, "56")
    });
    stays.signal(Signal::SIGTERM);
    assert_eq!(stays.end().code, Some(0));
}

/// Everything goes through the tunnel but its own packets; a link that dies is not missed.
#[test]
fn everything_may_go_through_a_tunnel_of_named_links() {
    let Some(net) = Net::new("all", &["tunnel:10.9.0.1/30"]) else {
        return;
    };
    net.right(&["ip", "link", "set", "lo", "up"]);
    net.right(&["ip", "address", "add", "203.0.113.9/32", "dev", "lo"]);
    let unnamed = ["tunnel", &net.ticket, "--route", "0.0.0.0/0"];
    let unnamed = Running::start_inside(&net.namespaces.0[0], &unnamed).end();
    says(&unnamed, 2, &["--route 0.0.0.0/0", "10.77.0.2", "--bind wlan0"]);
    let every = ["tunnel", &net.ticket, "--bind", "all"];
    says(
        &Running::start_inside(&net.namespaces.0[0], &every).end(),
        2,
        &["--bind all", "--bind wlan0"],
    );
    let mut tunnel = net.tunnel(&["--route", "0.0.0.0/0", "--timeout", "1 h"]);
    tunnel.json();
    wait_until("an echo comes back", || net.reaches("203.0.113.9", "56"));
    net.left(&["ip", "link", "set", "tA", "down"]);
    wait_until("an echo comes back over the other link", || {
        net.reaches("203.0.113.9", "56")
    });
    drop(tunnel);
    wait_until("the routes are gone", || {
        !net.left(&["ip", "route"]).contains("128.0.0.0/1")
    });
}

/// What carries packets fills both links, also where one loses: in virtual time, where no machine is too slow.
#[test]
fn both_links_are_filled() {
    let folder = tempfile::tempdir().unwrap();
    for loss in ["0", "0.01"] {
        let scenario = format!(
            "id = \"tunnel\"\ntitle = \"Tunnel\"\nduration = \"12 s\"\nseed = 7\n[measure]\nfrom = \"2 s\"\nto = \"11 s\"\n\
             [[link]]\nname = \"A\"\nbetween = [\"a\", \"b\"]\nrate = \"50 Mbit/s\"\ndelay = \"10 ms\"\n\
             [[link]]\nname = \"B\"\nbetween = [\"a\", \"b\"]\nrate = \"20 Mbit/s\"\ndelay = \"30 ms\"\n\
             loss = {{ rate = {loss}, direction = \"forward\" }}\n\
             [[flow]]\nname = \"packets\"\nfrom = \"a\"\nto = \"b\"\ntransport = \"restp:multipath\"\npaths = [[\"A\"], [\"B\"]]\n\
             set = {{ framing = \"fixed\", segment = \"1340 B\" }}\ntraffic = {{ bulk = {{}} }}\n"
        );
        let file = write(folder.path(), "tunnel.toml", scenario.as_bytes());
        let run = restp(&["sim", "--json", file.to_str().unwrap()]);
        let result: serde_json::Value = serde_json::from_str(run.stdout.lines().next().unwrap()).unwrap();
        let packets = result["flows"][0]["goodput_bps"].as_f64().unwrap();
        // Of each packet 52 bytes are headers of IP and TCP inside.
        let inside = packets * (1340.0 - 52.0) / 1340.0;
        assert!(inside >= 0.9 * 70e6, "{loss}: {inside}");
    }
}

#[test]
fn what_cannot_be_a_tunnel_is_said_at_once() {
    let Some(net) = Net::new("refused", &["tcp:127.0.0.1:1"]) else {
        return;
    };
    says(
        &net.tunnel(&[]).end(),
        1,
        &["the server refused", "--allow tunnel:10.9.0.1/30"],
    );
    assert_eq!(net.tunnel(&["--route", "10.9.0.1"]).end().code, Some(2));
    let mut net = net;
    net.serve(&["tunnel:10.9.0.1/24"]);
    says(&net.tunnel(&[]).end(), 2, &["10.9.0.1/24", "--address"]);
    let stream = net.tunnel(&["--profile", "voice"]).end();
    says(&stream, 2, &["carries no tunnel"]);
    assert!(net.emulator.is_running() && net.folder.path().exists());
}
