//! The built command as a user starts it: processes on loopback, ended when they are dropped.

#![allow(
    dead_code,
    clippy::unwrap_used,
    clippy::disallowed_methods,
    reason = "every test file uses a part of it; tests may wait and measure real time"
)]

pub mod namespaces;
pub mod programs;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::Value;
use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStderr, ChildStdin, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

/// Until a process must have done what it was asked for, on a busy machine.
pub const TIMEOUT: Duration = Duration::from_secs(300);

/// For ends whose `--timeout` must not be what ends them: longer than a test waits.
pub const FOR_EVER: [&str; 2] = ["--timeout", "1 h"];

/// A running `restp`.
pub struct Running {
    child: Child,
    lines: BufReader<ChildStdout>,
    notes: BufReader<ChildStderr>,
}

/// A `restp` that has ended.
#[derive(Debug)]
pub struct Ended {
    pub code: Option<i32>,
    /// What it printed since the last line that was read; so with `stderr`.
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
            Stdio::null(),
        )
    }

    /// With the cache directory `cache`.
    pub fn start_caching(cache: &Path, arguments: &[&str]) -> Running {
        Self::spawn(
            Command::new(env!("CARGO_BIN_EXE_restp"))
                .args(arguments)
                .env("XDG_CACHE_HOME", cache),
            Stdio::null(),
        )
    }

    /// Inside a network namespace made by `ip netns add`.
    pub fn start_inside(namespace: &str, arguments: &[&str]) -> Running {
        Self::spawn(
            Command::new("ip")
                .args(["netns", "exec", namespace, env!("CARGO_BIN_EXE_restp")])
                .args(arguments),
            Stdio::null(),
        )
    }

    /// With these variables of the environment.
    pub fn start_with(variables: &[(&str, &Path)], arguments: &[&str]) -> Running {
        let mut command = Command::new(env!("CARGO_BIN_EXE_restp"));
        command.args(arguments).envs(variables.iter().copied());
        Self::spawn(&mut command, Stdio::null())
    }

    /// Inside a network namespace, with standard input to write to.
    pub fn start_listening_inside(namespace: &str, arguments: &[&str]) -> (Running, ChildStdin) {
        let mut command = Command::new("ip");
        command.args(["netns", "exec", namespace, env!("CARGO_BIN_EXE_restp")]);
        let mut running = Self::spawn(command.args(arguments), Stdio::piped());
        let stdin = running.child.stdin.take().unwrap();
        (running, stdin)
    }

    /// With the data directory `data`.
    pub fn start_keeping(data: &Path, arguments: &[&str]) -> Running {
        Self::spawn(
            Command::new(env!("CARGO_BIN_EXE_restp"))
                .args(arguments)
                .env("XDG_DATA_HOME", data),
            Stdio::null(),
        )
    }

    /// By the command `through`, whose standard input is `stdin`.
    pub fn start_through(through: &[&str], stdin: std::os::fd::OwnedFd, arguments: &[&str]) -> Running {
        Self::spawn(
            Command::new(through[0])
                .args(&through[1..])
                .arg(env!("CARGO_BIN_EXE_restp"))
                .args(arguments),
            stdin.into(),
        )
    }

    /// With standard input to write to.
    pub fn start_listening(arguments: &[&str]) -> (Running, ChildStdin) {
        let mut command = Command::new(env!("CARGO_BIN_EXE_restp"));
        let mut running = Self::spawn(command.args(arguments), Stdio::piped());
        let stdin = running.child.stdin.take().unwrap();
        (running, stdin)
    }

    /// The same with the data directory `data`.
    pub fn start_listening_keeping(data: &Path, arguments: &[&str]) -> (Running, ChildStdin) {
        let mut command = Command::new(env!("CARGO_BIN_EXE_restp"));
        command.env("XDG_DATA_HOME", data);
        let mut running = Self::spawn(command.args(arguments), Stdio::piped());
        let stdin = running.child.stdin.take().unwrap();
        (running, stdin)
    }

    fn spawn(command: &mut Command, stdin: Stdio) -> Running {
        // Keys of tests are not the user's.
        if !command.get_envs().any(|(name, _)| name == "XDG_DATA_HOME") {
            command.env("XDG_DATA_HOME", concat!(env!("CARGO_TARGET_TMPDIR"), "/data"));
        }
        if !command.get_envs().any(|(name, _)| name == "XDG_CONFIG_HOME") {
            command.env("XDG_CONFIG_HOME", concat!(env!("CARGO_TARGET_TMPDIR"), "/config"));
        }
        let command = command.stdin(stdin).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap());
        let notes = BufReader::new(child.stderr.take().unwrap());
        Running { child, lines, notes }
    }

    /// Its standard output from here on, as bytes.
    pub fn output(&self) -> std::fs::File {
        let stdout = std::os::fd::AsFd::as_fd(self.lines.get_ref());
        stdout.try_clone_to_owned().unwrap().into()
    }

    /// Nobody reads its standard output any more.
    pub fn stop_reading(&mut self) {
        let nothing = std::os::fd::OwnedFd::from(fs::File::open("/dev/null").unwrap());
        self.lines = BufReader::new(nothing.into());
    }

    /// The next line of standard output, which must be JSON.
    pub fn json(&mut self) -> Value {
        let mut line = String::new();
        self.lines.read_line(&mut line).unwrap();
        serde_json::from_str(&line).unwrap_or_else(|error| panic!("{line:?}: {error}"))
    }

    /// Waits until it has said `words` on standard error; what it has said there so far.
    pub fn overhear(&mut self, words: &str) -> String {
        let mut said = String::new();
        while !said.contains(words) {
            assert_ne!(self.notes.read_line(&mut said).unwrap(), 0, "{said}");
        }
        said
    }

    pub fn signal(&self, signal: Signal) {
        kill(Pid::from_raw(self.child.id() as i32), signal).unwrap();
    }

    pub fn is_running(&mut self) -> bool {
        self.child.try_wait().unwrap().is_none()
    }

    /// Waits for its end.
    pub fn end(self) -> Ended {
        self.end_within(TIMEOUT)
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
        self.notes.read_to_string(&mut stderr).unwrap();
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

/// Runs to the end, with the configuration in `config`.
pub fn with_config(config: &Path, arguments: &[&str]) -> Ended {
    let mut command = Command::new(env!("CARGO_BIN_EXE_restp"));
    let command = command.args(arguments).env("XDG_CONFIG_HOME", config);
    Running::spawn(command, Stdio::null()).end()
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

/// The names in a folder that are not hidden.
pub fn whole(folder: &Path) -> Vec<String> {
    let mut names = names(folder);
    names.retain(|name| !name.starts_with('.'));
    names
}

/// A running emulated path.
pub struct Line {
    pub running: Running,
    pub address: String,
    commands: ChildStdin,
}

/// An emulated path to `to`. `keys` are those of a path in `NET.toml`.
pub fn emulate(to: &str, keys: &str) -> Line {
    emulate_at("127.0.0.1:0", to, keys)
}

/// The same that listens at a certain address.
pub fn emulate_at(listen: &str, to: &str, keys: &str) -> Line {
    let folder = tempfile::tempdir().unwrap();
    let net = write(
        folder.path(),
        "net.toml",
        format!("[[path]]\nname = \"p\"\nlisten = \"{listen}\"\nto = \"{to}\"\n{keys}").as_bytes(),
    );
    let (mut running, commands) =
        Running::start_listening(&["emulate", "--json", "--control", net.to_str().unwrap()]);
    let ready = running.json();
    let address = ready["ready"][0]["listen"].as_str().unwrap().to_owned();
    Line {
        running,
        address,
        commands,
    }
}

/// Losses of a line that carries `packets` in each direction and then none: however fast the machine is, it dies in the middle
/// of a longer transfer.
pub fn dies_after(packets: u64) -> String {
    let numbers: Vec<_> = (packets + 1..packets + 50_000)
        .map(|number| number.to_string())
        .collect();
    format!(
        "loss = {{ drop = [{}], direction = \"both\" }}\n",
        numbers.join(",")
    )
}

impl Line {
    /// Carries everything from now on.
    pub fn heal(&mut self) {
        writeln!(self.commands, "set p loss=0 reverse_loss=0").unwrap();
    }

    /// Waits until it has lost a packet on the way forward.
    pub fn await_loss(&mut self) {
        wait_until("a packet is lost", || self.counted("dropped_error") > 0);
    }

    /// What it has counted on the way forward.
    pub fn counted(&mut self, counter: &str) -> u64 {
        writeln!(self.commands, "stats").unwrap();
        self.running.json()["paths"][0]["forward"][counter]
            .as_u64()
            .unwrap()
    }
}

pub fn wait_until(what: &str, mut holds: impl FnMut() -> bool) {
    let start = Instant::now();
    while !holds() {
        assert!(start.elapsed() < TIMEOUT, "{what}: not within {TIMEOUT:?}");
        pause(Duration::from_millis(10));
    }
}

pub fn pause(time: Duration) {
    std::thread::sleep(time);
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
