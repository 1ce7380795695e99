//! A transfer over two emulated links between network namespaces, as `make bench-multipath` has them. Needs root, /dev/net/tun
//! and the `ip` tool; where these are missing the test says so and shows nothing.
#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, reason = "in a test a failed unwrap is a failed test")]

use crate::common::namespaces::Namespaces;
use crate::common::{Running, content, write};
use std::fs;

#[test]
fn a_file_crosses_two_links_by_the_devices_it_was_bound_to() {
    let namespaces = match Namespaces::create("file") {
        Ok(namespaces) => namespaces,
        Err(reason) => {
            eprintln!(
                "SKIPPED: no TUN devices between namespaces here ({reason}); run as root to see this test"
            );
            return;
        }
    };
    let [left, right] = &namespaces.0;
    let folder = tempfile::tempdir().unwrap();
    let line = "rate = \"20 Mbit/s\"\ndelay = \"5 ms\"\n";
    let text = format!(
        "[tun]\nnamespaces = [\"{left}\", \"{right}\"]\n[[path]]\nname = \"A\"\n{line}[[path]]\nname = \"B\"\n{line}"
    );
    let network = write(folder.path(), "net.toml", text.as_bytes());
    let mut emulator = Running::start(&["emulate", "--tun", "--json", network.to_str().unwrap()]);
    assert_eq!(emulator.json()["ready"].as_array().unwrap().len(), 2);

    let inbox = tempfile::tempdir().unwrap();
    let receive = [
        "recv",
        "--json",
        "--once",
        "--dir",
        inbox.path().to_str().unwrap(),
    ];
    // The default addresses of the first two paths.
    let listen = ["--listen", "10.77.0.2:0", "--listen", "10.77.1.2:0"];
    let mut receiver = Running::start_inside(right, &[&receive[..], &listen].concat());
    let ticket = receiver.json()["ticket"].as_str().unwrap().to_owned();
    let file = content(4 << 20);
    let place = write(folder.path(), "a", &file);
    let send = ["send", "--json", place.to_str().unwrap(), &ticket];
    let bind = ["--bind", "tA", "--bind", "tB"];
    let sent = Running::start_inside(left, &[&send[..], &bind].concat()).end();
    let received = receiver.end();
    assert_eq!(
        (sent.code, received.code),
        (Some(0), Some(0)),
        "{sent:?} {received:?}"
    );
    assert!(fs::read(inbox.path().join("a")).unwrap() == file);
    let result = sent.json();
    for source in ["10.77.0.1:", "10.77.1.1:"] {
        let paths = result["paths"].as_array().unwrap().iter();
        let from = paths.filter(|path| path["local"].as_str().unwrap().starts_with(source));
        let bytes: u64 = from.map(|path| path["bytes_sent"].as_u64().unwrap()).sum();
        assert!(bytes > 500_000, "{source} {result}");
    }
}
