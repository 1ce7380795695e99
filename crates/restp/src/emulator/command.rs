//! Commands to a running emulator, one a line: `down NAME`, `up NAME`, `set NAME loss=0.05`, `set NAME drop=1`, `stats`,
//! `quit`.

use super::report::Report;
use restp_sim::ErrorModel;
use restp_sim::error_model::{LossUnit, RateLoss, Scripted};
use std::io::{self, BufRead, Read, Write};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;
use std::sync::{Arc, mpsc};
use thiserror::Error;

/// What to do.
#[derive(Clone, Debug, PartialEq)]
pub enum Command {
    /// A black hole in both directions from now on.
    Down(String),
    /// The end of it.
    Up(String),
    /// Other losses, in place of all loss models of these directions. Scripted ones count packets from now on.
    SetLoss {
        /// The path.
        path: String,
        /// For packets forward, unless it stays.
        forward: Option<ErrorModel>,
        /// For packets back, unless it stays.
        reverse: Option<ErrorModel>,
    },
    /// The counters, please.
    Stats,
    /// Stop.
    Quit,
}

/// Why a command was not carried out.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum CommandError {
    /// Nobody knows it.
    #[error(
        "\"{0}\" is no command; write down NAME, up NAME, set NAME loss=0.05 (or drop=1, reverse_loss=, reverse_drop=), \
         stats or quit"
    )]
    Unknown(String),
    /// There is no such path.
    #[error("there is no path \"{name}\"; the paths are {known}")]
    NoPath {
        /// The name given.
        name: String,
        /// Those that exist.
        known: String,
    },
    /// A value is impossible.
    #[error("{0}")]
    Value(String),
    /// The emulator has ended.
    #[error("the emulator has ended")]
    Ended,
}

/// What a command brought.
#[derive(Clone, Debug, PartialEq)]
pub enum Answer {
    /// It was carried out, this many seconds after the start.
    Done(f64),
    /// The counters.
    Stats(Report),
}

impl std::str::FromStr for Command {
    type Err = CommandError;

    fn from_str(line: &str) -> Result<Self, CommandError> {
        let unknown = || CommandError::Unknown(line.trim().into());
        let words: Vec<&str> = line.split_whitespace().collect();
        match words[..] {
            ["down", name] => Ok(Command::Down(name.into())),
            ["up", name] => Ok(Command::Up(name.into())),
            ["stats"] => Ok(Command::Stats),
            ["quit"] => Ok(Command::Quit),
            ["set", name, ref settings @ ..] if !settings.is_empty() => {
                let (mut forward, mut reverse) = (None, None);
                for setting in settings {
                    match setting.split_once('=').ok_or_else(unknown)? {
                        ("loss", value) => forward = Some(rate(value)?),
                        ("drop", value) => forward = Some(script(value)?),
                        ("reverse_loss", value) => reverse = Some(rate(value)?),
                        ("reverse_drop", value) => reverse = Some(script(value)?),
                        _ => return Err(unknown()),
                    }
                }
                Ok(Command::SetLoss {
                    path: name.into(),
                    forward,
                    reverse,
                })
            }
            _ => Err(unknown()),
        }
    }
}

fn rate(text: &str) -> Result<ErrorModel, CommandError> {
    let value = text.parse().ok().filter(|value| (0.0..=1.0).contains(value));
    let probability = value.ok_or_else(|| {
        CommandError::Value(format!(
            "\"{text}\" is no probability; write 0 to 1 (1 % is 0.01)"
        ))
    })?;
    let unit = LossUnit::Packet;
    Ok(ErrorModel::Rate(RateLoss { probability, unit }))
}

fn script(text: &str) -> Result<ErrorModel, CommandError> {
    let numbers: Result<Vec<u64>, _> = text.split(',').map(str::parse).collect();
    match numbers {
        Ok(drop) if !drop.contains(&0) => Ok(ErrorModel::Scripted(Scripted { drop })),
        _ => Err(CommandError::Value(format!(
            "\"{text}\" are no packets; write their numbers, such as 1,3: 1 is the next packet"
        ))),
    }
}

/// A handle for commands; clones reach the same emulator.
#[derive(Clone, Debug)]
pub struct Control {
    requests: mpsc::Sender<Request>,
    bell: Arc<UnixStream>,
}

pub(super) struct Request {
    pub(super) command: Command,
    pub(super) answer: mpsc::Sender<Result<Answer, CommandError>>,
}

impl Control {
    /// Reads one command, has it carried out and waits for the answer.
    ///
    /// # Errors
    /// When it is no command, names no path, or the emulator has ended.
    pub fn execute(&self, line: &str) -> Result<Answer, CommandError> {
        self.request(line.parse()?)
    }

    /// Stops the emulator; without effect when it has ended.
    pub fn quit(&self) {
        // Not waiting: the engine drops the answer's receiver unread.
        let (answer, _) = mpsc::channel();
        let _ = self.requests.send(Request {
            command: Command::Quit,
            answer,
        });
        self.ring();
    }

    /// Carries out the commands of `lines` until they end or one was `quit`, and hands each answer to `answered`.
    /// Blocks; meant for a thread that reads standard input.
    pub fn serve(&self, lines: impl BufRead, mut answered: impl FnMut(Result<Answer, CommandError>)) {
        for line in lines
            .lines()
            .map_while(Result::ok)
            .filter(|line| !line.trim().is_empty())
        {
            let command = line.parse();
            let last = command == Ok(Command::Quit);
            answered(command.and_then(|command| self.request(command)));
            if last {
                return;
            }
        }
    }

    fn request(&self, command: Command) -> Result<Answer, CommandError> {
        let (answer, answered) = mpsc::channel();
        self.requests
            .send(Request { command, answer })
            .map_err(|_| CommandError::Ended)?;
        self.ring();
        answered.recv().unwrap_or(Err(CommandError::Ended))
    }

    fn ring(&self) {
        // A full pipe has rung already.
        let _ = (&*self.bell).write(&[0]);
    }
}

/// The engine's end.
pub(super) struct Requests {
    requests: mpsc::Receiver<Request>,
    bell: UnixStream,
}

impl Requests {
    pub(super) fn next(&mut self) -> Option<Request> {
        let mut rings = [0; 64];
        while matches!(self.bell.read(&mut rings), Ok(read) if read == rings.len()) {}
        self.requests.try_recv().ok()
    }
}

impl AsFd for Requests {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.bell.as_fd()
    }
}

pub(super) fn channel() -> io::Result<(Control, Requests)> {
    let (ours, theirs) = UnixStream::pair()?;
    ours.set_nonblocking(true)?;
    theirs.set_nonblocking(true)?;
    let (sender, receiver) = mpsc::channel();
    Ok((
        Control {
            requests: sender,
            bell: Arc::new(ours),
        },
        Requests {
            requests: receiver,
            bell: theirs,
        },
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_as_typed() {
        assert_eq!("down a".parse(), Ok(Command::Down("a".into())));
        assert_eq!(" stats ".parse(), Ok(Command::Stats));
        let both = Command::SetLoss {
            path: "a".into(),
            forward: Some(ErrorModel::Rate(RateLoss {
                probability: 0.05,
                unit: LossUnit::Packet,
            })),
            reverse: Some(ErrorModel::Scripted(Scripted { drop: vec![1, 3] })),
        };
        assert_eq!("set a loss=0.05 reverse_drop=1,3".parse(), Ok(both));
        for wrong in [
            "",
            "down",
            "set a",
            "set a rate=1",
            "fly a",
            "set a loss=2",
            "set a loss=x",
            "set a drop=0",
            "set a drop=1,",
        ] {
            let error = wrong.parse::<Command>().expect_err(wrong).to_string();
            assert!(error.contains("write"), "{error}");
        }
    }
}
