//! Messages between a relay and those who use it (docs/protocol/relay.md). Their first byte tells them from sealed datagrams, whose
//! high bit is set, and from PDUs, whose high four bits are zero. No answer is longer than what it answers.

use std::net::{IpAddr, SocketAddr};
use std::ops::RangeInclusive;

/// The first byte of every message but for its low four bits.
const MARK: u8 = 0x40;

/// The first bytes of messages (docs/protocol/first-bytes.md).
pub const FIRST_BYTES: RangeInclusive<u8> = MARK..=MARK | 0x0F;

/// Names a registration; chosen at random by the host, told to nobody but the relay.
pub type RegistrationId = [u8; 16];

/// Proves an address to the relay.
pub type AddressToken = [u8; 16];

/// Bytes 1 to 8 of a datagram that its sender let out: who was not on its way does not know them.
pub type Echo = [u8; 8];

/// Bytes of a [`Message::Register`], so that everything said to an address that proved nothing is shorter.
const REGISTER_BYTES: usize = 64;

const IPV4: u8 = 4;
const IPV6: u8 = 6;

/// One message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Message {
    /// Host to relay: register this host, or keep it registered.
    Register {
        /// The same in every one of them.
        id: RegistrationId,
        /// Zeros before there is one.
        token: AddressToken,
    },
    /// Relay to host: say it again with this token.
    Prove {
        /// Of the registration.
        id: RegistrationId,
        /// For this address.
        token: AddressToken,
    },
    /// Relay to host: it is registered.
    Registered {
        /// Of the registration.
        id: RegistrationId,
        /// Where the relay sees the host.
        seen: SocketAddr,
        /// The relay's port for those who want to reach it.
        port: u16,
    },
    /// Relay to host: no place, or not for this host.
    Full {
        /// Of the registration.
        id: RegistrationId,
    },
    /// Host to relay: register it no longer.
    Release {
        /// Of the registration.
        id: RegistrationId,
    },
    /// Relay to host: somebody who reaches it through the relay is seen there.
    Peer {
        /// Of the registration.
        id: RegistrationId,
        /// Where.
        at: SocketAddr,
    },
    /// Relay to who reaches a host: the host is seen there.
    Elsewhere {
        /// Of the datagram that it answers.
        echo: Echo,
        /// Where.
        at: SocketAddr,
    },
    /// Host to peer: opens the translator on the way; nobody reads it.
    Punch,
    /// Relay to host: somebody who reaches it through the relay has this port of the relay.
    Open {
        /// Of the registration.
        id: RegistrationId,
        /// The port, which the host has to speak to first: its translator lets nothing in from elsewhere.
        port: u16,
    },
    /// Host to that port: here it is.
    Bind {
        /// Of the registration.
        id: RegistrationId,
    },
    /// Host to that port: the peer has proved who it is.
    Keep {
        /// Of the registration.
        id: RegistrationId,
    },
}

/// Is this a message of a relay, or for one?
pub fn is_message(first: u8) -> bool {
    FIRST_BYTES.contains(&first)
}

impl Message {
    /// Its bytes.
    pub fn emit(&self) -> Vec<u8> {
        let mut out = vec![MARK | self.code()];
        match self {
            Message::Register { id, token } => {
                out.extend_from_slice(id);
                out.extend_from_slice(token);
                out.resize(REGISTER_BYTES, 0);
            }
            Message::Prove { id, token } => {
                out.extend_from_slice(id);
                out.extend_from_slice(token);
            }
            Message::Registered { id, seen, port } => {
                out.extend_from_slice(id);
                out.extend_from_slice(&port.to_be_bytes());
                put(&mut out, *seen);
            }
            Message::Full { id } | Message::Release { id } | Message::Bind { id } | Message::Keep { id } => {
                out.extend_from_slice(id)
            }
            Message::Open { id, port } => {
                out.extend_from_slice(id);
                out.extend_from_slice(&port.to_be_bytes());
            }
            Message::Peer { id, at } => {
                out.extend_from_slice(id);
                put(&mut out, *at);
            }
            Message::Elsewhere { echo, at } => {
                out.extend_from_slice(echo);
                put(&mut out, *at);
            }
            Message::Punch => {}
        }
        out
    }

    /// What `bytes` say; `None` where they are no message.
    pub fn parse(bytes: &[u8]) -> Option<Self> {
        let (&first, content) = bytes.split_first()?;
        if !is_message(first) {
            return None;
        }
        let mut rest = Rest(content);
        let message = match first & !MARK {
            0 => {
                let (id, token) = (rest.take()?, rest.take()?);
                // Whoever asks for much has sent much.
                let padding = rest.0;
                (bytes.len() == REGISTER_BYTES && padding.iter().all(|byte| *byte == 0)).then_some(())?;
                rest.0 = &[];
                Message::Register { id, token }
            }
            1 => Message::Prove {
                id: rest.take()?,
                token: rest.take()?,
            },
            2 => {
                let id = rest.take()?;
                let port = u16::from_be_bytes(rest.take()?);
                let seen = rest.address()?;
                (port != 0).then_some(Message::Registered { id, seen, port })?
            }
            3 => Message::Full { id: rest.take()? },
            4 => Message::Release { id: rest.take()? },
            5 => Message::Peer {
                id: rest.take()?,
                at: rest.address()?,
            },
            6 => Message::Elsewhere {
                echo: rest.take()?,
                at: rest.address()?,
            },
            7 => Message::Punch,
            8 => {
                let id = rest.take()?;
                let port = u16::from_be_bytes(rest.take()?);
                (port != 0).then_some(Message::Open { id, port })?
            }
            9 => Message::Bind { id: rest.take()? },
            10 => Message::Keep { id: rest.take()? },
            _ => return None,
        };
        rest.0.is_empty().then_some(message)
    }

    fn code(&self) -> u8 {
        match self {
            Message::Register { .. } => 0,
            Message::Prove { .. } => 1,
            Message::Registered { .. } => 2,
            Message::Full { .. } => 3,
            Message::Release { .. } => 4,
            Message::Peer { .. } => 5,
            Message::Elsewhere { .. } => 6,
            Message::Punch => 7,
            Message::Open { .. } => 8,
            Message::Bind { .. } => 9,
            Message::Keep { .. } => 10,
        }
    }
}

/// What names a datagram of a peer: bytes 1 to 8, which are a connection id in all that is sealed.
pub fn echo_of(datagram: &[u8]) -> Option<Echo> {
    datagram.get(1..9)?.try_into().ok()
}

fn put(out: &mut Vec<u8>, address: SocketAddr) {
    match address.ip().to_canonical() {
        IpAddr::V4(ip) => {
            out.push(IPV4);
            out.extend_from_slice(&ip.octets());
        }
        IpAddr::V6(ip) => {
            out.push(IPV6);
            out.extend_from_slice(&ip.octets());
        }
    }
    out.extend_from_slice(&address.port().to_be_bytes());
}

/// What is left to read.
struct Rest<'a>(&'a [u8]);

impl Rest<'_> {
    fn take<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (first, rest) = self.0.split_first_chunk()?;
        self.0 = rest;
        Some(*first)
    }

    /// One that a datagram can be sent to.
    fn address(&mut self) -> Option<SocketAddr> {
        let ip = match self.take::<1>()? {
            [IPV4] => IpAddr::from(self.take::<4>()?),
            [IPV6] => IpAddr::from(self.take::<16>()?),
            _ => return None,
        };
        let port = u16::from_be_bytes(self.take()?);
        // One that IPv6 maps has another form, and could be any of these in disguise.
        let is_host = !ip.is_unspecified() && !ip.is_multicast() && ip == ip.to_canonical();
        (port != 0 && is_host).then(|| SocketAddr::new(ip, port))
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "in a test a failed unwrap is a failed test")]

    use super::*;
    use proptest::prelude::*;

    fn all() -> Vec<Message> {
        let (id, token) = ([7; 16], [9; 16]);
        let at = |text: &str| text.parse().unwrap();
        vec![
            Message::Register { id, token },
            Message::Prove { id, token },
            Message::Registered {
                id,
                seen: at("192.0.2.1:9"),
                port: 7,
            },
            Message::Full { id },
            Message::Release { id },
            Message::Peer {
                id,
                at: at("[2001:db8::1]:65535"),
            },
            Message::Elsewhere {
                echo: [3; 8],
                at: at("198.51.100.7:1"),
            },
            Message::Punch,
            Message::Open { id, port: 9 },
            Message::Bind { id },
            Message::Keep { id },
        ]
    }

    #[test]
    fn every_message_is_read_as_it_was_written() {
        for message in all() {
            let bytes = message.emit();
            assert_eq!(Message::parse(&bytes), Some(message));
            assert!(is_message(bytes[0]));
            for end in 0..bytes.len() {
                assert_eq!(Message::parse(&bytes[..end]), None, "{message:?} cut at {end}");
            }
            assert_eq!(
                Message::parse(&[&bytes[..], &[0]].concat()),
                None,
                "{message:?} and more"
            );
        }
    }

    #[test]
    fn nothing_that_answers_a_request_is_longer_than_it() {
        let longest = all().iter().map(|message| message.emit().len()).max();
        assert_eq!(longest, Some(REGISTER_BYTES));
    }

    #[test]
    fn what_is_sealed_or_plain_is_no_message() {
        for first in [0x00, 0x0F, 0x80, 0x87, 0xC0, 0xEF, 0x30, 0x50] {
            assert!(!is_message(first), "{first:x}");
        }
    }

    #[test]
    fn an_address_that_is_no_host_is_not_taken() {
        for text in ["0.0.0.0:9", "224.0.0.1:9", "192.0.2.1:0", "[ff02::1]:9"] {
            let at = text.parse().unwrap();
            let bytes = Message::Peer { id: [1; 16], at }.emit();
            assert_eq!(Message::parse(&bytes), None, "{text}");
        }
    }

    #[test]
    fn an_ipv4_address_comes_in_one_form() {
        for ip in [[224, 0, 0, 1], [0, 0, 0, 0], [192, 0, 2, 1]] {
            let mapped = std::net::Ipv4Addr::from(ip).to_ipv6_mapped();
            let bytes = [&[MARK | 5][..], &[1; 16], &[IPV6], &mapped.octets(), &[0, 9]].concat();
            assert_eq!(Message::parse(&bytes), None, "{mapped}");
        }
    }

    #[test]
    fn nobody_is_reached_at_port_zero() {
        let (id, seen) = ([1; 16], "192.0.2.1:9".parse().unwrap());
        for message in [
            Message::Open { id, port: 0 },
            Message::Registered { id, seen, port: 0 },
        ] {
            assert_eq!(Message::parse(&message.emit()), None);
        }
    }

    proptest! {
        #[test]
        fn anything_may_arrive(bytes in proptest::collection::vec(any::<u8>(), 0..80)) {
            if let Some(message) = Message::parse(&bytes) {
                prop_assert_eq!(message.emit(), bytes);
            }
        }
    }
}
