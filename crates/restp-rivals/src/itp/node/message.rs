//! Messages in plain UDP datagrams, and what hosts on real networks put into their payloads (`docs/protocol/itp.md`).

use super::guard::{COOKIE_BYTES, Cookie};
use crate::itp::manifest::{DIGEST_BYTES, Digest};
use crate::itp::trust::{KEY_BYTES, PublisherKey};
use crate::itp::wire::{HEADER_BYTES, Header, Kind, Pointer, Refusal};
use bytes::Bytes;
use restp_base::machine::{Datagram, Ecn, Head, PathAddress};
use std::ops::RangeInclusive;

/// What a request asks for: the root manifest with this digest, signed by this publisher.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Wanted {
    /// Of its core.
    pub root: Digest,
    /// Who vouches for it.
    pub publisher: PublisherKey,
}

impl Wanted {
    /// The Object ID.
    pub fn object(&self) -> u64 {
        self.root
            .first_chunk()
            .map_or(0, |first| u64::from_be_bytes(*first))
    }

    /// The payload of a request.
    pub(super) fn emit(&self, cookie: Option<&Cookie>) -> Bytes {
        let cookie = cookie.map_or(&[][..], |cookie| &cookie[..]);
        [&self.root[..], &self.publisher.0, cookie].concat().into()
    }

    /// What the payload of a request asks for, and the cookie it shows.
    pub(super) fn parse(payload: &[u8]) -> Option<(Self, Option<&Cookie>)> {
        let (root, rest) = payload.split_first_chunk::<DIGEST_BYTES>()?;
        let (key, rest) = rest.split_first_chunk::<KEY_BYTES>()?;
        let wanted = Wanted {
            root: *root,
            publisher: PublisherKey(*key),
        };
        Some((wanted, cookie_in(rest)?))
    }
}

/// The payload of an Interest: the digest of what is wanted, and the cookie that proves where from.
pub(super) fn interest(digest: &[u8], cookie: Option<&Cookie>) -> Bytes {
    let cookie = cookie.map_or(&[][..], |cookie| &cookie[..]);
    [digest, cookie].concat().into()
}

/// What the payload of an Interest holds.
pub(super) fn parse_interest(payload: &[u8]) -> Option<(Digest, Option<&Cookie>)> {
    let (digest, rest) = payload.split_first_chunk::<DIGEST_BYTES>()?;
    Some((*digest, cookie_in(rest)?))
}

/// None at all, or one.
fn cookie_in(rest: &[u8]) -> Option<Option<&Cookie>> {
    match rest.len() {
        0 => Some(None),
        COOKIE_BYTES => Some(rest.first_chunk()),
        _ => None,
    }
}

/// The datagram that carries a message along `path`.
pub(super) fn datagram(path: PathAddress, header: &Header, payload: Bytes) -> Datagram {
    Datagram {
        path,
        ecn: Ecn::NotEct,
        // Chunks are as large as the publisher made them: where a path takes less, pieces are better than nothing.
        may_fragment: true,
        peer: 0,
        segment: None,
        head: header.emit(),
        body: payload,
    }
}

/// A refusal of what `pointer` asked for.
pub(super) fn refusal(pointer: Pointer, flags: u8, code: Refusal) -> Header {
    Header {
        kind: Kind::Nack {
            code,
            retry_after_ms: 0,
        },
        flags,
        pointer,
    }
}

/// The message in `datagram`, in either of its two forms.
pub(super) fn take_apart(datagram: &mut Datagram) -> Option<(Header, Bytes)> {
    let mut whole = if datagram.head.is_empty() {
        std::mem::take(&mut datagram.body)
    } else {
        datagram.to_vec().into()
    };
    datagram.head = Head::new();
    let (header, length) = Header::parse(&whole).ok()?;
    Some((header, whole.split_off(length)))
}

/// What datagrams of ITP begin with: the version, and a type in the lower half. Nothing else of a ResTP host begins so
/// (docs/protocol/first-bytes.md), and one port can serve both.
pub const FIRST_BYTES: RangeInclusive<u8> = 0x10..=0x1F;

/// Bytes on the wire of an answer with so much payload.
pub(super) fn answer_bytes(payload: usize) -> u64 {
    (HEADER_BYTES + payload) as u64
}
