//! A datagram and the path it takes.

use crate::time::Time;
use bytes::Bytes;
use smallvec::SmallVec;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};

/// Two lower-layer addresses: where datagrams leave and where they go.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PathAddress {
    /// This host's address.
    pub local: SocketAddr,
    /// The peer's address.
    pub remote: SocketAddr,
}

impl PathAddress {
    /// The same path seen from the other end.
    pub const fn reversed(self) -> Self {
        PathAddress {
            local: self.remote,
            remote: self.local,
        }
    }
    /// A path from nowhere to nowhere, for buffers that are filled later.
    pub const UNSET: PathAddress = PathAddress {
        local: SocketAddr::new(IpAddr::V4(Ipv4Addr::UNSPECIFIED), 0),
        remote: SocketAddr::new(IpAddr::V4(Ipv4Addr::UNSPECIFIED), 0),
    };
}

/// Explicit congestion notification of the lower layer (RFC 3168 §5), by its two bits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(u8)]
pub enum Ecn {
    /// The sender does not take part.
    #[default]
    NotEct = 0b00,
    /// Capable, code 1.
    Ect1 = 0b01,
    /// Capable, code 0: what we send.
    Ect0 = 0b10,
    /// Congestion experienced: a queue marked the datagram instead of dropping it.
    Ce = 0b11,
}

/// Header bytes; those of common headers live inside the value.
pub type Head = SmallVec<[u8; 64]>;

/// One datagram. The bytes on the wire are `head` followed by `body`.
///
/// A sender puts headers into `head` and shares the payload's buffer as `body`; a driver that received one
/// contiguous buffer leaves `head` empty. Both forms mean the same bytes, and a receiver must take either.
#[derive(Clone, Debug)]
pub struct Datagram {
    /// From `local` to `remote` when sent; a receiver sees its own address as `local`.
    pub path: PathAddress,
    /// Congestion mark of the lower layer.
    pub ecn: Ecn,
    /// As sent: the lower layer may cut it into pieces rather than drop it, should it be too large for the path.
    pub may_fragment: bool,
    /// Who sent it, where a layer below knows: nobody else has the same number. 0 where nobody can tell.
    pub peer: u128,
    /// The segment that it carries, for whoever observes; it does not travel.
    pub segment: Option<Transmitted>,
    /// First part of the bytes.
    pub head: Head,
    /// The rest of the bytes.
    pub body: Bytes,
}

/// What a datagram asks for that does no harm when it is handed on twice: a retransmission of itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Request {
    /// A flow.
    Flow,
    /// A further path of a flow there is.
    Path,
}

impl Datagram {
    /// A datagram without bytes.
    pub fn empty() -> Self {
        Datagram {
            path: PathAddress::UNSET,
            ecn: Ecn::NotEct,
            may_fragment: false,
            peer: 0,
            segment: None,
            head: Head::new(),
            body: Bytes::new(),
        }
    }
    /// Bytes on the wire.
    pub fn len(&self) -> usize {
        self.head.len() + self.body.len()
    }
    /// True when there are no bytes.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
    /// All bytes in one buffer.
    pub fn to_vec(&self) -> Vec<u8> {
        [&self.head[..], &self.body[..]].concat()
    }
}

/// A segment and the transmission of it that is meant: the pair names one datagram of its path.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Transmitted {
    /// The segment, by the sender's own count.
    pub number: u64,
    /// When the sender let it out.
    pub at: Time,
}
