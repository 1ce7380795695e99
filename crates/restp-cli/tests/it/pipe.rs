//! Pipes between processes, and real programs over them.

#![allow(clippy::unwrap_used, reason = "in a test a failed unwrap is a failed test")]

use crate::common::{FOR_EVER, Running, content, emulate, emulate_at, pause, restp, says, write};
use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener};
use std::os::unix::fs::PermissionsExt;
use std::process::{Command, Stdio};
use std::thread::JoinHandle;
use std::time::Duration;

/// A server of a target, and its ticket and address.
struct Server {
    _running: Running,
    ticket: String,
    address: String,
}

fn serve(target: &str, options: &[&str]) -> Server {
    let fixed = ["serve", "--json", "--listen", "127.0.0.1:0", "--allow", target];
    let mut running = Running::start(&[&fixed, options].concat());
    let invitation = running.json();
    let text = |value: &serde_json::Value| value.as_str().unwrap().to_owned();
    Server {
        ticket: text(&invitation["ticket"]),
        address: text(&invitation["addresses"][0]),
        _running: running,
    }
}

/// A target that takes one connection: its name, and what `act` makes of it.
fn target<T: Send + 'static>(
    act: impl FnOnce(std::net::TcpStream) -> T + Send + 'static,
) -> (String, JoinHandle<T>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let name = format!("tcp:{}", listener.local_addr().unwrap());
    (
        name,
        std::thread::spawn(move || act(listener.accept().unwrap().0)),
    )
}

#[test]
fn each_direction_ends_by_itself() {
    // The target answers when it has read the end, and its own end comes after that.
    let (name, seen) = target(|mut stream| {
        let mut read = Vec::new();
        stream.read_to_end(&mut read).unwrap();
        stream.write_all(&content(300_000)).unwrap();
        read
    });
    let server = serve(&name, &[]);
    let (pipe, mut input) = Running::start_listening(&["pipe", &server.ticket]);
    let mut output = pipe.output();
    input.write_all(&content(500_000)).unwrap();
    drop(input);
    let mut read = Vec::new();
    output.read_to_end(&mut read).unwrap();
    assert!(read == content(300_000) && seen.join().unwrap() == content(500_000));
    let ended = pipe.end();
    assert_eq!(ended.code, Some(0), "{ended:?}");

    // And the other way round: the target ends first.
    let (name, seen) = target(|mut stream| {
        stream.write_all(b"hello").unwrap();
        stream.shutdown(Shutdown::Write).unwrap();
        let mut read = Vec::new();
        stream.read_to_end(&mut read).unwrap();
        read
    });
    let server = serve(&name, &[]);
    let (pipe, mut input) = Running::start_listening(&["pipe", &server.ticket]);
    let mut read = Vec::new();
    pipe.output().read_to_end(&mut read).unwrap();
    input.write_all(b"still here").unwrap();
    drop(input);
    assert_eq!(
        (read.as_slice(), seen.join().unwrap().as_slice()),
        (&b"hello"[..], &b"still here"[..])
    );
    assert_eq!(pipe.end().code, Some(0));
}

/// Longer than the time that a server gives to who asks for nothing: pipes broke when it was over.
#[test]
#[ignore = "takes 35 s"]
fn a_pipe_that_is_silent_for_long_is_carried_on() {
    let (name, seen) = target(|mut stream| {
        let mut read = Vec::new();
        stream.read_to_end(&mut read).unwrap();
        read
    });
    let server = serve(&name, &[]);
    let (pipe, mut input) = Running::start_listening(&["pipe", &server.ticket]);
    input.write_all(b"before").unwrap();
    pause(Duration::from_secs(33));
    input.write_all(b" and after").unwrap();
    drop(input);
    assert_eq!(seen.join().unwrap(), b"before and after");
    let ended = pipe.end();
    assert_eq!(ended.code, Some(0), "{ended:?}");
}

/// The line dies in the middle, and the one that takes its place comes from another address.
#[test]
fn a_pipe_bears_an_outage_and_a_change_of_address() {
    let (name, seen) = target(|mut stream| {
        let mut read = vec![0; 1000];
        stream.read_exact(&mut read).unwrap();
        stream.write_all(&read).unwrap();
        stream.read_to_end(&mut read).unwrap();
        read
    });
    let server = serve(&name, &FOR_EVER);
    let line = emulate(&server.address, "rate = \"20 Mbit/s\"\n");
    let address = line.address.clone();
    let options = ["pipe", &server.ticket, "--address", &address];
    let (pipe, mut input) = Running::start_listening(&[&options[..], &FOR_EVER[..]].concat());
    let mut output = pipe.output();
    let all = content(400_000);
    let mut echo = vec![0; 1000];
    input.write_all(&all[..1000]).unwrap();
    output.read_exact(&mut echo).unwrap();
    assert!(echo == all[..1000]);
    drop(line);
    // It waits while there is no line.
    input.write_all(&all[1000..]).unwrap();
    drop(input);
    let _line = emulate_at(&address, &server.address, "rate = \"20 Mbit/s\"\n");
    assert!(seen.join().unwrap()[1000..] == all[1000..]);
    let ended = pipe.end();
    assert_eq!(ended.code, Some(0), "{ended:?}");
}

#[test]
fn what_is_not_allowed_is_refused() {
    let free = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let nobody = format!("tcp:{free}");
    let server = serve(&nobody, &[]);
    let pipe = |words: &[&str]| restp(&[&["pipe"], words].concat());
    says(
        &pipe(&[&server.ticket]),
        1,
        &["the server refused", &nobody, "refused"],
    );
    says(
        &pipe(&[&server.ticket, "--to", "tcp:127.0.0.1:1"]),
        1,
        &["127.0.0.1:1", "not allowed"],
    );
    // Nobody has to be reached to say so.
    for (to, way_out) in [
        ("22", "tcp:HOST:PORT"),
        ("tcp:*:22", "one place"),
        ("listen:a:22", "tcp:HOST:PORT"),
    ] {
        says(
            &pipe(&["127.0.0.1:1", "--timeout", "1", "--to", to]),
            2,
            &["--to", way_out],
        );
    }
    says(&pipe(&[&server.address]), 1, &["who have its ticket"]);
    says(&restp(&["serve"]), 2, &["--allow tcp:127.0.0.1:22"]);
    says(&restp(&["serve", "--allow", "tcp:22"]), 2, &["tcp:HOST:PORT"]);
}

/// A real program over it, with its own idea of when who has said enough.
#[test]
fn git_clones_over_a_pipe() {
    let folder = tempfile::tempdir().unwrap();
    let git = |place: &std::path::Path, words: &[&str]| {
        let fixed = ["-c", "user.name=a", "-c", "user.email=a@b"];
        let output = Command::new("git")
            .args(fixed)
            .args(words)
            .current_dir(place)
            .output();
        output.unwrap_or_else(|error| panic!("git: {error}"))
    };
    if Command::new("git").args(["daemon", "--help"]).output().is_err() {
        eprintln!("SKIPPED: there is no git");
        return;
    }
    let source = folder.path().join("source");
    std::fs::create_dir(&source).unwrap();
    git(&source, &["init", "-q"]);
    write(&source, "file", &content(200_000));
    git(&source, &["add", "."]);
    assert!(git(&source, &["commit", "-q", "-m", "one"]).status.success());
    let (name, daemon) = target(move |stream| {
        let end = |stream: &std::net::TcpStream| {
            Stdio::from(std::os::fd::OwnedFd::from(stream.try_clone().unwrap()))
        };
        let base = format!("--base-path={}", source.parent().unwrap().display());
        Command::new("git")
            .args(["daemon", "--inetd", "--export-all", &base])
            .stdin(end(&stream))
            .stdout(end(&stream))
            .stderr(Stdio::null())
            .status()
            .unwrap()
            .success()
    });
    let server = serve(&name, &[]);
    let script = write(
        folder.path(),
        "proxy",
        format!(
            "#!/bin/sh\nexec {} pipe {}\n",
            env!("CARGO_BIN_EXE_restp"),
            server.ticket
        )
        .as_bytes(),
    );
    std::fs::set_permissions(&script, PermissionsExt::from_mode(0o700)).unwrap();
    let proxy = format!("core.gitProxy={}", script.display());
    let cloned = git(
        folder.path(),
        &["-c", &proxy, "clone", "-q", "git://anything/source", "clone"],
    );
    assert!(cloned.status.success(), "{cloned:?}");
    assert!(daemon.join().unwrap());
    assert!(std::fs::read(folder.path().join("clone/file")).unwrap() == content(200_000));
}

/// What the programs of OpenSSH and rsync make of a pipe under them. The far end is a real `sshd` of this user, which
/// takes one connection from where `restp serve` puts it.
#[test]
fn ssh_scp_and_rsync_go_over_a_pipe() {
    const SSHD: &str = "/usr/sbin/sshd";
    let has = |program: &str| Command::new(program).arg("-V").output().is_ok();
    if !std::path::Path::new(SSHD).exists() || !has("ssh") || !has("scp") {
        eprintln!("SKIPPED, NOT TESTED: ssh over a pipe: there is no OpenSSH with its server");
        return;
    }
    if nix::unistd::geteuid().is_root() && !std::path::Path::new("/run/sshd").exists() {
        eprintln!("SKIPPED, NOT TESTED: ssh over a pipe: sshd of root wants /run/sshd");
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name).display().to_string();
    for key in ["host", "user"] {
        let made = Command::new("ssh-keygen")
            .args(["-q", "-t", "ed25519", "-N", "", "-f", &at(key)])
            .status();
        assert!(made.unwrap().success());
    }
    let daemon = format!(
        "HostKey {}\nAuthorizedKeysFile {}\nStrictModes no\nUsePAM no\nPidFile none\nSubsystem sftp internal-sftp\n",
        at("host"),
        at("user.pub")
    );
    write(folder.path(), "sshd_config", daemon.as_bytes());
    write(folder.path(), "file", &content(3_000_000));

    // Each program makes one connection.
    let over_pipe = |act: &dyn Fn(&str) -> std::process::Output| {
        let config = at("sshd_config");
        let (ends, has_ended) = std::sync::mpsc::channel();
        let (name, session) = target(move |stream| {
            let end = || Stdio::from(std::os::fd::OwnedFd::from(stream.try_clone().unwrap()));
            let (input, output) = (end(), end());
            let mut daemon = Command::new(SSHD);
            daemon
                .args(["-i", "-f", &config])
                .stdin(input)
                .stdout(output)
                .stderr(Stdio::null());
            daemon.status().unwrap();
            ends.send(()).unwrap();
        });
        let server = serve(&name, &[]);
        let client = format!(
            "ProxyCommand {} pipe {}\nIdentityFile {}\nIdentitiesOnly yes\nStrictHostKeyChecking no\nUserKnownHostsFile {}\n",
            env!("CARGO_BIN_EXE_restp"),
            server.ticket,
            at("user"),
            at("known")
        );
        write(folder.path(), "ssh_config", client.as_bytes());
        let output = act(&at("ssh_config"));
        // Without a word from the pipe it is ten minutes, the timeout of the server.
        let ended = has_ended.recv_timeout(std::time::Duration::from_secs(120));
        ended.expect("sshd still waits for a client that has left");
        session.join().unwrap();
        output
    };

    let said = over_pipe(&|config| {
        let ssh = Command::new("ssh")
            .args(["-F", config, "far", "cat; exit 7"])
            .stdin(Stdio::from(std::fs::File::open(at("file")).unwrap()))
            .output();
        ssh.unwrap()
    });
    assert!(
        said.stdout == content(3_000_000),
        "{}",
        String::from_utf8_lossy(&said.stderr)
    );
    assert_eq!(said.status.code(), Some(7), "the exit code of the far command");
    let complaints = String::from_utf8_lossy(&said.stderr);
    assert!(!complaints.contains("error"), "{complaints}");

    let copied = over_pipe(&|config| {
        let far = format!("far:{}", at("copy"));
        let scp = Command::new("scp")
            .args(["-q", "-F", config, &at("file"), &far])
            .output();
        scp.unwrap()
    });
    assert!(
        copied.status.success(),
        "{}",
        String::from_utf8_lossy(&copied.stderr)
    );
    assert!(std::fs::read(at("copy")).unwrap() == content(3_000_000));

    if !has("rsync") {
        eprintln!("SKIPPED, NOT TESTED: rsync over a pipe: there is no rsync");
        return;
    }
    let synchronised = over_pipe(&|config| {
        let (shell, far) = (format!("ssh -F {config}"), format!("far:{}", at("mirror")));
        let rsync = Command::new("rsync")
            .args(["-a", "-e", &shell, &at("file"), &far])
            .output();
        rsync.unwrap()
    });
    assert!(
        synchronised.status.success(),
        "{}",
        String::from_utf8_lossy(&synchronised.stderr)
    );
    assert!(std::fs::read(at("mirror")).unwrap() == content(3_000_000));
}
