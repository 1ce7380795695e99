//! SOCKS as its clients speak it: version 5 without authentication (RFC 1928), and version 4 with names (SOCKS 4A). CONNECT only.
//!
//! A client is believed nothing: a request has 263 bytes at most in version 5, strings of version 4 end within 255, and whoever
//! calls bounds the time.

use std::io;
use std::net::{Ipv4Addr, Ipv6Addr};
use thiserror::Error;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};

const CONNECT: u8 = 1;
const NO_AUTHENTICATION: u8 = 0;
const NO_METHOD: u8 = 0xff;
/// Address types (RFC 1928 §4).
const IPV4: u8 = 1;
const NAME: u8 = 3;
const IPV6: u8 = 4;
/// Answers of version 4.
const GRANTED: u8 = 90;
const REJECTED: u8 = 91;
/// Most bytes of a string of version 4, which has no length of its own: what a name has in version 5.
const MAX_STRING_BYTES: usize = 255;

/// Which version a client speaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Version {
    Four,
    Five,
}

/// Where a client wants to be connected to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Request {
    version: Version,
    /// A name or an address, IPv6 in brackets.
    pub host: String,
    /// Its port.
    pub port: u16,
}

/// What a client is answered (RFC 1928 §6). The numbers are the protocol's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reply {
    /// Bytes go both ways from here on.
    Succeeded = 0,
    /// Any other reason.
    Failed = 1,
    /// By the rules of the server.
    NotAllowed = 2,
    /// No way to the server that connects.
    NetworkUnreachable = 3,
    /// No way from there to the target, or no such name.
    HostUnreachable = 4,
    /// Nobody listens at the target.
    ConnectionRefused = 5,
    /// Only CONNECT is supported.
    CommandNotSupported = 7,
    /// Neither IPv4, IPv6 nor a name.
    AddressNotSupported = 8,
}

/// Why a client gets no connection.
#[derive(Debug, Error)]
pub enum Wrong {
    /// It left, or the system broke it off.
    #[error("{0}")]
    Gone(#[from] io::Error),
    /// It is no client of SOCKS.
    #[error(
        "who connected does not speak SOCKS 4 or 5 (first byte {0:#04x}); set this port as SOCKS proxy, not as HTTP proxy"
    )]
    OtherProtocol(u8),
    /// It offers none of the methods that are supported.
    #[error("who connected wants to authenticate; set no user and password for this proxy")]
    Authentication,
    /// It asks for BIND or UDP ASSOCIATE.
    #[error("who connected asks for command {0}; only CONNECT is supported")]
    Command(u8),
    /// It names its target in an unknown way.
    #[error("who connected names its target in an unknown way (address type {0})")]
    AddressType(u8),
    /// The name is none.
    #[error("who connected names a target that is no name")]
    Name,
}

impl Request {
    /// Reads a request byte by byte where needed: what comes behind it is the connection's. What is wrong has been answered.
    ///
    /// # Errors
    /// When it is none, or one that is not supported.
    pub async fn read(stream: &mut (impl AsyncRead + AsyncWrite + Unpin)) -> Result<Self, Wrong> {
        match stream.read_u8().await? {
            4 => Self::read_4(stream).await,
            5 => Self::read_5(stream).await,
            other => Err(Wrong::OtherProtocol(other)),
        }
    }

    /// RFC 1928 §3, §4, from behind the first byte.
    async fn read_5(stream: &mut (impl AsyncRead + AsyncWrite + Unpin)) -> Result<Self, Wrong> {
        let number = stream.read_u8().await?;
        let mut methods = vec![0; usize::from(number)];
        stream.read_exact(&mut methods).await?;
        if !methods.contains(&NO_AUTHENTICATION) {
            stream.write_all(&[5, NO_METHOD]).await?;
            return Err(Wrong::Authentication);
        }
        stream.write_all(&[5, NO_AUTHENTICATION]).await?;
        let mut head = [0; 4];
        stream.read_exact(&mut head).await?;
        let [version, command, _, address_type] = head;
        if version != 5 {
            return Err(Wrong::OtherProtocol(version));
        }
        let host = match address_type {
            IPV4 => Some(Ipv4Addr::from(stream.read_u32().await?).to_string()),
            IPV6 => Some(in_brackets(Ipv6Addr::from(stream.read_u128().await?))),
            NAME => {
                let length = stream.read_u8().await?;
                let mut name = vec![0; usize::from(length)];
                stream.read_exact(&mut name).await?;
                named(name)
            }
            other => {
                Version::Five.reply(stream, Reply::AddressNotSupported).await?;
                return Err(Wrong::AddressType(other));
            }
        };
        let port = stream.read_u16().await?;
        Self::checked(stream, Version::Five, command, host, port).await
    }

    /// The same of version 4, with a name where the address is 0.0.0.x.
    async fn read_4(stream: &mut (impl AsyncRead + AsyncWrite + Unpin)) -> Result<Self, Wrong> {
        let command = stream.read_u8().await?;
        let port = stream.read_u16().await?;
        let address = Ipv4Addr::from(stream.read_u32().await?);
        string(stream).await?; // the user's name, which nobody asks for
        let host = match address.octets() {
            [0, 0, 0, last] if last != 0 => named(string(stream).await?),
            _ => Some(address.to_string()),
        };
        Self::checked(stream, Version::Four, command, host, port).await
    }

    async fn checked(
        stream: &mut (impl AsyncWrite + Unpin),
        version: Version,
        command: u8,
        host: Option<String>,
        port: u16,
    ) -> Result<Self, Wrong> {
        if command != CONNECT {
            version.reply(stream, Reply::CommandNotSupported).await?;
            return Err(Wrong::Command(command));
        }
        let Some(host) = host else {
            version.reply(stream, Reply::HostUnreachable).await?;
            return Err(Wrong::Name);
        };
        Ok(Request { version, host, port })
    }

    /// Answers the client.
    ///
    /// # Errors
    /// When it has left.
    pub async fn reply(&self, stream: &mut (impl AsyncWrite + Unpin), reply: Reply) -> io::Result<()> {
        self.version.reply(stream, reply).await
    }
}

impl Version {
    /// The address that is bound for the client (RFC 1928 §6) is another host's: zeros say that it is of no use.
    async fn reply(self, stream: &mut (impl AsyncWrite + Unpin), reply: Reply) -> io::Result<()> {
        match self {
            Version::Five => {
                stream
                    .write_all(&[5, reply as u8, 0, IPV4, 0, 0, 0, 0, 0, 0])
                    .await
            }
            Version::Four => {
                let code = if reply == Reply::Succeeded {
                    GRANTED
                } else {
                    REJECTED
                };
                stream.write_all(&[0, code, 0, 0, 0, 0, 0, 0]).await
            }
        }
    }
}

/// A name as it was sent; some clients send addresses as names.
fn named(bytes: Vec<u8>) -> Option<String> {
    let name = String::from_utf8(bytes).ok()?;
    match name.parse::<Ipv6Addr>() {
        Ok(address) => Some(in_brackets(address)),
        Err(_) => Some(name).filter(|name| !name.is_empty()),
    }
}

fn in_brackets(address: Ipv6Addr) -> String {
    format!("[{address}]")
}

/// Bytes up to a zero, which is read as well.
async fn string(stream: &mut (impl AsyncRead + Unpin)) -> Result<Vec<u8>, Wrong> {
    let mut bytes = Vec::new();
    loop {
        match stream.read_u8().await? {
            0 => return Ok(bytes),
            _ if bytes.len() == MAX_STRING_BYTES => return Err(Wrong::Name),
            byte => bytes.push(byte),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use tokio::io::join;

    /// What is read of `bytes`, what is answered meanwhile, and what is left of them.
    fn read(bytes: &[u8]) -> (Result<Request, Wrong>, Vec<u8>, Vec<u8>) {
        let runtime = tokio::runtime::Builder::new_current_thread().build();
        runtime.expect("a runtime").block_on(async {
            let mut stream = join(bytes, Vec::new());
            let request = Request::read(&mut stream).await;
            let (left, answered) = stream.into_inner();
            (request, answered, left.to_vec())
        })
    }

    #[test]
    fn targets_are_addresses_or_names() {
        let v6 = "2001:db8::7".parse::<Ipv6Addr>().expect("an address");
        let v6 = [&[5, 1, 0, 5, 1, 0, IPV6][..], &v6.octets(), &[0, 80]].concat();
        for (bytes, host, port) in [
            (
                &[5, 1, 0, 5, 1, 0, IPV4, 192, 0, 2, 7, 1, 187][..],
                "192.0.2.7",
                443,
            ),
            (&v6, "[2001:db8::7]", 80),
            (
                b"\x05\x02\x02\x00\x05\x01\x00\x03\x0bexample.org\x00\x50",
                "example.org",
                80,
            ),
            (b"\x05\x01\x00\x05\x01\x00\x03\x03::1\x00\x50", "[::1]", 80),
            (b"\x04\x01\x00\x50\xc0\x00\x02\x07me\x00", "192.0.2.7", 80),
            (
                b"\x04\x01\x00\x50\x00\x00\x00\x01\x00example.org\x00",
                "example.org",
                80,
            ),
        ] {
            let (request, answered, left) = read(&[bytes, b"early"].concat());
            let request = request.expect(host);
            assert_eq!((&request.host[..], request.port), (host, port));
            let expected: &[u8] = if bytes[0] == 5 { &[5, 0] } else { &[] };
            assert_eq!(answered, expected, "{host}");
            assert_eq!(left, b"early", "what comes behind is the connection's");
        }
    }

    #[test]
    fn what_is_not_supported_is_answered_with_the_code_for_it() {
        let after_method = |reply: &[u8]| [&[5, 0], reply].concat();
        for (bytes, answer) in [
            (&[5, 1, 2][..], vec![5, 0xff]),
            (&[5, 0], vec![5, 0xff]),
            (
                &[5, 1, 0, 5, 2, 0, IPV4, 1, 2, 3, 4, 0, 80],
                after_method(&[5, 7, 0, 1, 0, 0, 0, 0, 0, 0]),
            ),
            (
                &[5, 1, 0, 5, 3, 0, IPV4, 0, 0, 0, 0, 0, 0],
                after_method(&[5, 7, 0, 1, 0, 0, 0, 0, 0, 0]),
            ),
            (
                &[5, 1, 0, 5, 1, 0, 9],
                after_method(&[5, 8, 0, 1, 0, 0, 0, 0, 0, 0]),
            ),
            (
                &[5, 1, 0, 5, 1, 0, NAME, 0, 0, 80],
                after_method(&[5, 4, 0, 1, 0, 0, 0, 0, 0, 0]),
            ),
            (
                &[5, 1, 0, 5, 1, 0, NAME, 1, 0xff, 0, 80],
                after_method(&[5, 4, 0, 1, 0, 0, 0, 0, 0, 0]),
            ),
            (&[4, 2, 0, 80, 1, 2, 3, 4, 0], vec![0, 91, 0, 0, 0, 0, 0, 0]),
            (b"GET / HTTP/1.1\r\n", vec![]),
            (&[5, 1, 0, 4], after_method(&[])),
        ] {
            let (request, answered, _) = read(bytes);
            assert!(request.is_err(), "{bytes:?}");
            assert_eq!(answered, answer, "{bytes:?}");
        }
        let endless = [&[4, 1, 0, 80, 1, 2, 3, 4][..], &[b'x'; 100_000]].concat();
        let (request, _, left) = read(&endless);
        assert!(matches!(request, Err(Wrong::Name)));
        assert_eq!(left.len(), 100_000 - MAX_STRING_BYTES - 1, "no more is read");
    }

    proptest! {
        #[test]
        fn whatever_comes_is_read_within_bounds(mut bytes in proptest::collection::vec(any::<u8>(), 0..700), version in 4_u8..6) {
            if let Some(first) = bytes.first_mut() {
                *first = version;
            }
            let (_, answered, left) = read(&bytes);
            prop_assert!(answered.len() <= 12);
            prop_assert!(bytes.len() - left.len() <= 2 + 255 + 263 + 2 * 256);
        }
    }
}
