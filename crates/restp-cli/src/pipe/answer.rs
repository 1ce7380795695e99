//! What is answered to a request.

use crate::transfer::{Inlet, Pieces, printable};
use std::fmt;
use std::io::{self, ErrorKind};

/// Most bytes of a sentence.
const MAX_TEXT_BYTES: usize = 1000;

/// The answer to a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Answer {
    /// It is done. To who asked for a listener: where it listens; nothing otherwise.
    Accepted(String),
    /// It is not.
    Refused(Refusal),
}

/// Why a request is refused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal {
    /// For programs.
    pub reason: Reason,
    /// For people.
    pub sentence: String,
}

/// Why a request is refused, as far as programs ask. The numbers are the protocol's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reason {
    /// Anything else.
    Other = 1,
    /// The server does not allow it.
    NotAllowed = 2,
    /// There is no such host, no way to it, or no answer from it.
    Unreachable = 3,
    /// Nobody listens there.
    ConnectionRefused = 4,
}

const ACCEPTED: u8 = 0;

impl Answer {
    /// The bytes of the answer; a long sentence is cut.
    pub fn encode(&self) -> Vec<u8> {
        let (kind, text) = match self {
            Answer::Accepted(text) => (ACCEPTED, text),
            Answer::Refused(refusal) => (refusal.reason as u8, &refusal.sentence),
        };
        let text = &text.as_bytes()[..text.floor_char_boundary(MAX_TEXT_BYTES)];
        let mut out = vec![kind];
        out.extend_from_slice(&(text.len() as u16).to_be_bytes());
        out.extend_from_slice(text);
        out
    }

    /// Reads one; none: the connection is over, or what came is no answer.
    pub async fn read(inlet: &mut Inlet<'_, impl Pieces>) -> Option<Self> {
        let [kind, n1, n0] = inlet.array().await?;
        let length = usize::from(u16::from_be_bytes([n1, n0]));
        if length > MAX_TEXT_BYTES {
            return None;
        }
        Self::of(kind, &inlet.bytes(length).await?)
    }

    /// The one that is all of `bytes`.
    pub fn decode(bytes: &[u8]) -> Option<Self> {
        let ([kind, n1, n0], text) = bytes.split_first_chunk()?;
        let whole = text.len() <= MAX_TEXT_BYTES && text.len() == usize::from(u16::from_be_bytes([*n1, *n0]));
        whole.then(|| Self::of(*kind, text))?
    }

    /// What a peer says is shown to people: control characters do not reach the terminal.
    fn of(kind: u8, text: &[u8]) -> Option<Self> {
        let text = printable(text);
        let reason = match kind {
            ACCEPTED => return Some(Answer::Accepted(text)),
            2 => Reason::NotAllowed,
            3 => Reason::Unreachable,
            4 => Reason::ConnectionRefused,
            _ => Reason::Other,
        };
        Some(Answer::Refused(Refusal {
            reason,
            sentence: text,
        }))
    }
}

impl Refusal {
    /// For another reason than those that programs ask for.
    pub fn other(sentence: impl fmt::Display) -> Self {
        Refusal {
            reason: Reason::Other,
            sentence: sentence.to_string(),
        }
    }

    /// `what` is not on the server's list.
    ///
    /// What a peer named is shown to people here as well.
    pub fn not_allowed(what: &str) -> Self {
        let what = printable(what.as_bytes());
        Refusal {
            reason: Reason::NotAllowed,
            sentence: format!("{what} is not allowed there; `restp serve --allow {what}` allows it"),
        }
    }

    /// What the system says of `place`.
    pub fn of(place: &str, error: &io::Error) -> Self {
        let reason = match error.kind() {
            ErrorKind::ConnectionRefused => Reason::ConnectionRefused,
            ErrorKind::HostUnreachable
            | ErrorKind::NetworkUnreachable
            | ErrorKind::NetworkDown
            | ErrorKind::AddrNotAvailable
            | ErrorKind::TimedOut
            | ErrorKind::NotFound => Reason::Unreachable,
            _ => Reason::Other,
        };
        Refusal {
            reason,
            sentence: format!("{place}: {error}"),
        }
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.sentence)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_peer_names_does_not_reach_the_terminal_as_it_is() {
        let refusal = Refusal::not_allowed("tcp:a\u{1b}]0;owned\u{7}\n:1\u{9b}2J");
        assert!(!refusal.sentence.contains(char::is_control), "{refusal:?}");
        assert!(refusal.sentence.contains("owned"));
    }
}
