//! Hosts that are known, learnt and forgotten, and files that are damaged.

use super::*;
use crate::Identity;
use std::fs;
use std::os::unix::fs::PermissionsExt;

fn address(host: u8, port: u16) -> SocketAddr {
    SocketAddr::from(([10, 0, 0, host], port))
}

fn key() -> PublicKey {
    Identity::fresh().unwrap().secret.public()
}

fn file() -> (tempfile::TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("restp").join("known_peers");
    (folder, path)
}

fn load(path: &Path) -> KnownHosts {
    KnownHosts::load(path).unwrap()
}

#[test]
fn a_known_host_stays_known_whatever_its_port_and_in_a_file_of_its_owner() {
    let (_folder, path) = file();
    let (hosts, key) = (load(&path), key());
    assert_eq!(hosts.key_of(address(1, 1)), None);
    hosts.learn(address(1, 1), key).unwrap();
    hosts.learn(address(1, 1), key).unwrap();
    for hosts in [hosts.clone(), load(&path)] {
        assert_eq!(hosts.key_of(address(1, 1)), Some(key));
        assert_eq!(hosts.key_of(address(1, 2)), Some(key), "as it starts again");
        assert_eq!(hosts.key_of(address(2, 1)), None);
    }
    assert_eq!(hosts.take_met().len(), 2);
    assert_eq!(hosts.take_met(), []);
    assert_eq!(fs::read_to_string(&path).unwrap(), format!("10.0.0.1 {key}\n"));
    let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!((mode(&path), mode(path.parent().unwrap())), (0o600, 0o700));
}

#[test]
fn a_line_of_one_port_comes_before_that_of_the_host() {
    let (host, port) = (key(), key());
    let text = format!("10.0.0.1 {host}\n10.0.0.1:9 {port}\n2001:db8::1 {host}\n[2001:db8::1]:9 {port}\n");
    let hosts = KnownHosts::parse("known_peers".into(), text.as_bytes()).unwrap();
    for ip in ["10.0.0.1", "::ffff:10.0.0.1", "2001:db8::1"] {
        let of = |port| hosts.key_of(SocketAddr::new(ip.parse().unwrap(), port));
        assert_eq!((of(8), of(9)), (Some(host), Some(port)), "{ip}");
    }
}

#[test]
fn a_line_counts_in_whatever_form_its_address_is_written() {
    let key = key();
    for (line, is_met) in [
        ("2001:DB8:0::1", "[2001:db8::1]:7"),
        ("[2001:0db8::0:1]:7", "[2001:db8::1]:7"),
        ("::ffff:10.0.0.1", "10.0.0.1:7"),
        ("[::ffff:10.0.0.1]:7", "10.0.0.1:7"),
    ] {
        let hosts = KnownHosts::parse("known_peers".into(), format!("{line} {key}\n").as_bytes()).unwrap();
        assert_eq!(hosts.key_of(is_met.parse().unwrap()), Some(key), "{line}");
    }
}

#[test]
fn hosts_that_nobody_asks_for_are_bounded() {
    let (_folder, path) = file();
    let (hosts, key) = (load(&path), key());
    let name = |host: usize| (IpAddr::from((host as u32).to_be_bytes()), None);
    hosts.state().met = (1..=MAX_HOSTS).map(|host| (name(host), key)).collect();
    hosts.learn(address(1, 1), key).unwrap();
    let met = hosts.take_met();
    let (first, last) = (&met[0].0, &met[met.len() - 1].0);
    assert_eq!(
        (met.len(), &first[..], &last[..]),
        (MAX_HOSTS, "0.0.0.2", "10.0.0.1")
    );
}

#[test]
fn processes_that_began_together_keep_what_each_other_learnt() {
    let (_folder, path) = file();
    let key = key();
    std::thread::scope(|scope| {
        for thread in 0..8 {
            let hosts = load(&path);
            scope.spawn(move || {
                for host in 0..8 {
                    hosts.learn(address(thread * 8 + host, 1), key).unwrap();
                }
            });
        }
    });
    let after = load(&path);
    assert!((0..64).all(|host| after.key_of(address(host, 1)) == Some(key)));
    let entries = fs::read_dir(path.parent().unwrap()).unwrap();
    assert_eq!(
        entries.count(),
        2,
        "it and its lock: nothing half written is left"
    );
}

#[test]
fn a_line_that_the_user_removes_meanwhile_stays_removed() {
    let (_folder, path) = file();
    let hosts = load(&path);
    hosts.learn(address(1, 1), key()).unwrap();
    fs::write(&path, "").unwrap();
    hosts.learn(address(2, 1), key()).unwrap();
    assert_eq!(load(&path).key_of(address(1, 1)), None);
}

#[test]
fn another_key_that_another_process_met_meanwhile_is_not_overwritten() {
    let (_folder, path) = file();
    let (first, second) = (load(&path), load(&path));
    let (one, two) = (key(), key());
    first.learn(address(1, 1), one).unwrap();
    let conflict = second.learn(address(1, 2), two).unwrap_err();
    let sentence = conflict.to_string();
    assert!(sentence.contains("IS IN DOUBT") && sentence.contains(&one.to_string()));
    assert!(sentence.contains(&two.to_string()) && second.take_met().is_empty());
    assert_eq!(load(&path).key_of(address(1, 1)), Some(one));
    fs::write(&path, "rubbish\n").unwrap();
    let damaged = second.learn(address(2, 1), two).unwrap_err();
    assert!(damaged.to_string().contains("line 1"), "{damaged}");
    assert_eq!(fs::read_to_string(&path).unwrap(), "rubbish\n");
}

#[test]
fn a_place_that_cannot_be_written_is_an_error_with_the_key() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("restp"), "a file").unwrap();
    let (path, key) = (folder.path().join("restp").join("known_peers"), key());
    let hosts = KnownHosts::parse(path, &[]).unwrap();
    let sentence = hosts.learn(address(1, 1), key).unwrap_err().to_string();
    assert!(sentence.contains(&key.to_string()) && sentence.contains("cannot be remembered"));
    assert_eq!(hosts.key_of(address(1, 1)), None);
    let full = KnownHostsError::Unwritable {
        path: "known_peers".into(),
        name: "10.0.0.1".into(),
        key,
        source: ErrorKind::StorageFull.into(),
    };
    let sentence = full.to_string();
    assert!(
        sentence.contains("make room there") && sentence.contains("ticket"),
        "{sentence}"
    );
}

#[test]
fn the_hosts_met_first_are_forgotten_first() {
    let (_folder, path) = file();
    let key = key();
    let many = (1..).take(MAX_HOSTS);
    let text: String = many.map(|port| format!("{} {key}\n", address(1, port))).collect();
    fs::create_dir(path.parent().unwrap()).unwrap();
    fs::write(&path, text).unwrap();
    load(&path).learn(address(2, 1), key).unwrap();
    let after = load(&path);
    assert_eq!(
        (after.key_of(address(1, 1)), after.state().lines.len()),
        (None, MAX_HOSTS)
    );
    assert_eq!(after.key_of(address(2, 1)), Some(key));
}

#[test]
fn damage_is_an_error_at_a_line() {
    let (one, two) = (key(), key());
    let good = format!("10.0.0.1:1 {one}\n");
    let cases: [(Vec<u8>, &str); 12] = [
        (b"\xff\xfe\x00".to_vec(), "the file is damaged there"),
        (b"10.0.0.1:2 \0\0\0\n".to_vec(), "move the file away"),
        (
            format!("10.0.0.2 {one}\r\n{one}").into_bytes(),
            "not an address and a key",
        ),
        (b"\n".to_vec(), "not an address and a key"),
        // Each would never be found, and its host be believed on first use.
        (
            format!("example.com {one}").into_bytes(),
            "not an address and a key",
        ),
        (
            format!("[2001:db8::1] {one}").into_bytes(),
            "not an address and a key",
        ),
        (format!("[::ffff:10.0.0.1]:1 {two}").into_bytes(), "another key"),
        (format!(" {one}").into_bytes(), "not an address and a key"),
        (
            format!("10.0.0.2  {one}").into_bytes(),
            "not an address and a key",
        ),
        (
            format!("10.0.0.2 {one} {one}").into_bytes(),
            "not an address and a key",
        ),
        (
            format!("{} {one}", "a".repeat(300)).into_bytes(),
            "not an address and a key",
        ),
        (format!("10.0.0.1:1 {two}").into_bytes(), "another key"),
    ];
    for (damage, what) in cases {
        let bytes = [good.as_bytes(), &damage].concat();
        let sentence = KnownHosts::parse("known_peers".into(), &bytes)
            .unwrap_err()
            .to_string();
        assert!(sentence.starts_with("known_peers, line "), "{sentence}");
        assert!(
            sentence.contains(what) && !sentence.contains("readable"),
            "{sentence}"
        );
    }
    let (_folder, path) = file();
    fs::create_dir_all(&path).unwrap();
    let sentence = KnownHosts::load(&path).unwrap_err().to_string();
    assert!(sentence.contains("it is a directory; move it away"), "{sentence}");
}
