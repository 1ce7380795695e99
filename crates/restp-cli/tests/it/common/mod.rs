//! The built command as a user starts it: processes on loopback, ended when they are dropped.

#![allow(
    dead_code,
    clippy::unwrap_used,
    clippy::disallowed_methods,
    reason = "every test file uses a part of it; tests may wait and measure real time"
)]

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::Value;
use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

/// Until a process must have done what it was asked for, on a busy machine.
pub const PATIENCE: Duration = Duration::from_secs(60);

/// A running `restp`.
pub struct Running {
    child: Child,
    lines: BufReader<ChildStdout>,
}

/// A `restp` that has ended.
#[derive(Debug)]
pub struct Ended {
    pub code: Option<i32>,
    /// What it printed since the last line that was read.
    pub stdout: String,
    pub stderr: String,
    pub took: Duration,
}

impl Running {
    pub fn start(arguments: &[&str]) -> Running {
        Self::start_in(Path::new("."), arguments)
    }

    pub fn start_in(folder: &Path, arguments: &[&str]) -> Running {
        Self::spawn(
            Command::new(env!("CARGO_BIN_EXE_restp"))
                .args(arguments)
                .current_dir(folder),
        )
    }

    /// With the cache directory `cache`.
    pub fn start_caching(cache: &Path, arguments: &[&str]) -> Running {
        Self::spawn(
            Command::new(env!("CARGO_BIN_EXE_restp"))
                .args(arguments)
                .env("XDG_CACHE_HOME", cache),
        )
    }

    /// Inside a network namespace made by `ip netns add`.
    pub fn start_inside(namespace: &str, arguments: &[&str]) -> Running {
        Self::spawn(
            Command::new("ip")
                .args(["netns", "exec", namespace, env!("CARGO_BIN_EXE_restp")])
                .args(arguments),
        )
    }

    /// With the data directory `data`.
    pub fn start_keeping(data: &Path, arguments: &[&str]) -> Running {
        Self::spawn(
            Command::new(env!("CARGO_BIN_EXE_restp"))
                .args(arguments)
                .env("XDG_DATA_HOME", data),
        )
    }

    fn spawn(command: &mut Command) -> Running {
        // Keys of tests are not the user's.
        if !command.get_envs().any(|(name, _)| name == "XDG_DATA_HOME") {
            command.env("XDG_DATA_HOME", concat!(env!("CARGO_TARGET_TMPDIR"), "/data"));
        }
        let command = command
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap());
        Running { child, lines }
    }

    /// The next line of standard output, which must be JSON.
    pub fn json(&mut self) -> Value {
        let mut line = String::new();
        self.lines.read_line(&mut line).unwrap();
        serde_json::from_str(&line).unwrap_or_else(|error| panic!("{line:?}: {error}"))
    }

    pub fn signal(&self, signal: Signal) {
        kill(Pid::from_raw(self.child.id() as i32), signal).unwrap();
    }

    pub fn is_running(&mut self) -> bool {
        self.child.try_wait().unwrap().is_none()
    }

    /// Waits for its end.
    pub fn end(self) -> Ended {
        self.end_within(PATIENCE)
    }

    /// Waits for its end, which must come within `limit`.
    pub fn end_within(mut self, limit: Duration) -> Ended {
        let start = Instant::now();
        while self.is_running() {
            assert!(start.elapsed() < limit, "still running after {limit:?}");
            std::thread::sleep(Duration::from_millis(10));
        }
        let took = start.elapsed();
        let (mut stdout, mut stderr) = (String::new(), String::new());
        self.lines.read_to_string(&mut stdout).unwrap();
        self.child
            .stderr
            .take()
            .unwrap()
            .read_to_string(&mut stderr)
            .unwrap();
        let code = self.child.wait().unwrap().code();
        Ended {
            code,
            stdout,
            stderr,
            took,
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Ended {
    /// Its last line of standard output: the result, after news of paths if there were any.
    pub fn json(&self) -> Value {
        let last = self.stdout.lines().last().unwrap_or_default();
        serde_json::from_str(last).unwrap_or_else(|error| panic!("{error}: {self:?}"))
    }
}

/// One sentence with all of `words`, and this code.
pub fn says(ended: &Ended, code: i32, words: &[&str]) {
    assert_eq!(ended.code, Some(code), "{ended:?}");
    let error = ended.stderr.lines().find(|line| line.starts_with("error: "));
    let error = error.unwrap_or_else(|| panic!("no error: {ended:?}"));
    for word in words {
        assert!(error.contains(word), "{word:?} in {error}");
    }
}

/// Runs to the end.
pub fn restp(arguments: &[&str]) -> Ended {
    Running::start(arguments).end()
}

/// A receiver with a folder of its own.
pub struct Receiver {
    pub running: Running,
    pub ticket: String,
    pub address: String,
    pub folder: tempfile::TempDir,
}

impl Receiver {
    pub fn start(options: &[&str]) -> Receiver {
        Self::start_into(tempfile::tempdir().unwrap(), options)
    }

    pub fn start_into(folder: tempfile::TempDir, options: &[&str]) -> Receiver {
        let dir = folder.path().to_str().unwrap();
        let fixed = ["recv", "--json", "--listen", "127.0.0.1:0", "--dir", dir];
        let mut running = Running::start(&[&fixed, options].concat());
        let invitation = running.json();
        Receiver {
            running,
            ticket: invitation["ticket"].as_str().unwrap().into(),
            address: invitation["addresses"][0].as_str().unwrap().into(),
            folder,
        }
    }

    /// The names in its folder, temporary files included.
    pub fn names(&self) -> Vec<String> {
        names(self.folder.path())
    }
}

pub fn names(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).unwrap();
    let mut names: Vec<_> = entries
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    names
}

/// An emulated path to `to`; returns it with its address. `keys` are those of a path in `NET.toml`.
pub fn emulate(to: &str, keys: &str) -> (Running, String) {
    let folder = tempfile::tempdir().unwrap();
    let net = write(
        folder.path(),
        "net.toml",
        format!("[[path]]\nname = \"p\"\nlisten = \"127.0.0.1:0\"\nto = \"{to}\"\n{keys}").as_bytes(),
    );
    let mut running = Running::start(&["emulate", "--json", net.to_str().unwrap()]);
    let ready = running.json();
    let address = ready["ready"][0]["listen"].as_str().unwrap().to_owned();
    (running, address)
}

pub fn write(folder: &Path, name: &str, content: &[u8]) -> PathBuf {
    let path = folder.join(name);
    fs::write(&path, content).unwrap();
    path
}

/// Bytes that do not repeat in any short period.
pub fn content(bytes: usize) -> Vec<u8> {
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    let step = |_| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state as u8
    };
    (0..bytes).map(step).collect()
}
