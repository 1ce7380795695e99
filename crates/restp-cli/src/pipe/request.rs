//! What who connects says first.

use crate::transfer::{Capability, Inlet, Pieces};
use thiserror::Error;

const MAGIC: [u8; 4] = *b"RPP\0";
const VERSION: u8 = 3;
/// Most bytes of the name of a place.
const MAX_NAME_BYTES: usize = 300;

/// Names a TCP connection that waits at the server for who takes it.
pub type Token = [u8; 16];

/// What who connects says first.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Request {
    /// What its ticket gives.
    pub capability: Capability,
    /// What it wants.
    pub operation: Operation,
}

/// What can be asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Operation {
    /// The bytes of a TCP connection to the place of this name; empty: the first that is allowed.
    Connect(String),
    /// Whether that would be allowed.
    Check(String),
    /// A listener at the place of this name: whoever connects to it is announced with a token, as long as this connection lasts.
    Listen(String),
    /// The bytes of the connection announced so.
    Take(Token),
}

const CONNECT: u8 = 1;
const CHECK: u8 = 2;
const LISTEN: u8 = 3;
const TAKE: u8 = 4;

/// What is wrong with a request.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum RequestError {
    /// None came.
    #[error("the peer left without asking for anything")]
    Silent,
    /// Another protocol, or another version.
    #[error("this is no request of version {VERSION} of pipes; use the same release of restp on both sides")]
    Other,
    /// No name of a place, or no token.
    #[error("a place is named in UTF-8, with {MAX_NAME_BYTES} bytes at most")]
    Name,
}

impl Request {
    /// The bytes of the request. A name that is too long is cut, and refused.
    pub fn encode(&self) -> Vec<u8> {
        let (kind, body) = match &self.operation {
            Operation::Connect(name) => (CONNECT, name.as_bytes()),
            Operation::Check(name) => (CHECK, name.as_bytes()),
            Operation::Listen(name) => (LISTEN, name.as_bytes()),
            Operation::Take(token) => (TAKE, &token[..]),
        };
        let body = &body[..body.len().min(usize::from(u16::MAX))];
        let mut out = MAGIC.to_vec();
        out.push(VERSION);
        out.extend_from_slice(self.capability.bytes());
        out.push(kind);
        out.extend_from_slice(&(body.len() as u16).to_be_bytes());
        out.extend_from_slice(body);
        out
    }

    /// Reads one.
    ///
    /// # Errors
    /// When it is none.
    pub async fn read(inlet: &mut Inlet<'_, impl Pieces>) -> Result<Self, RequestError> {
        let [m0, m1, m2, m3, version] = inlet.array().await.ok_or(RequestError::Silent)?;
        if [m0, m1, m2, m3] != MAGIC || version != VERSION {
            return Err(RequestError::Other);
        }
        let capability = inlet
            .array::<{ Capability::BYTES }>()
            .await
            .ok_or(RequestError::Silent)?;
        let [kind, n1, n0] = inlet.array().await.ok_or(RequestError::Silent)?;
        let length = usize::from(u16::from_be_bytes([n1, n0]));
        if length > MAX_NAME_BYTES {
            return Err(RequestError::Name);
        }
        let body = inlet.bytes(length).await.ok_or(RequestError::Silent)?;
        Ok(Request {
            capability: Capability::from(capability),
            operation: Operation::of(kind, body)?,
        })
    }
}

impl Operation {
    fn of(kind: u8, body: Vec<u8>) -> Result<Self, RequestError> {
        if kind == TAKE {
            let token = body.try_into().map_err(|_| RequestError::Name)?;
            return Ok(Operation::Take(token));
        }
        let name = String::from_utf8(body).map_err(|_| RequestError::Name)?;
        match kind {
            CONNECT => Ok(Operation::Connect(name)),
            CHECK => Ok(Operation::Check(name)),
            LISTEN => Ok(Operation::Listen(name)),
            _ => Err(RequestError::Other),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_as_written_in_the_protocol() {
        let of = |operation| {
            let capability = Capability::from(*b"0123456789abcdef");
            Request {
                capability,
                operation,
            }
            .encode()
        };
        assert_eq!(
            of(Operation::Connect("tcp:a:1".into())),
            *b"RPP\0\x030123456789abcdef\x01\0\x07tcp:a:1"
        );
        assert_eq!(
            of(Operation::Take(*b"fedcba9876543210")),
            *b"RPP\0\x030123456789abcdef\x04\0\x10fedcba9876543210"
        );
    }

    #[test]
    fn bodies_that_are_none_are_refused() {
        assert_eq!(
            Operation::of(LISTEN, b"x".to_vec()),
            Ok(Operation::Listen("x".into()))
        );
        assert_eq!(Operation::of(TAKE, vec![0; 15]), Err(RequestError::Name));
        assert_eq!(Operation::of(CHECK, vec![0xff]), Err(RequestError::Name));
        assert_eq!(Operation::of(0, vec![]), Err(RequestError::Other));
    }
}
