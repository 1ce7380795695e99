//! Causes of ERROR and ABORT (RFC 9260 §3.3.10): what was wrong with something that came.

use super::{padded, tlv, u16_at};
use bytes::{BufMut, Bytes, BytesMut};
use restp_base::machine::Head;
use smallvec::SmallVec;
use std::net::IpAddr;

/// Bytes of the peer's chunks and parameters that go back to it at most. An INIT ACK that names them stays within 1500 bytes beside the
/// largest cookie, and so does an ERROR.
pub const MOST_REPORTED_BYTES: usize = 1024;
/// Causes that are taken of one chunk: one of each kind. More are forgotten.
pub const MOST_CAUSES: usize = 13;

/// What one chunk says was wrong.
pub type Causes = SmallVec<[Cause; 1]>;

/// One thing that was wrong.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cause {
    /// Which kind it is of.
    pub code: u16,
    /// What it says beside.
    pub value: Bytes,
}

impl Cause {
    /// DATA named a stream that was not agreed on.
    pub const INVALID_STREAM: u16 = 1;
    /// INIT or INIT ACK lacks a parameter that it must have.
    pub const MISSING_PARAMETER: u16 = 2;
    /// The cookie came too late.
    pub const STALE_COOKIE: u16 = 3;
    /// An address that cannot be understood.
    pub const UNRESOLVABLE_ADDRESS: u16 = 5;
    /// A chunk that is not known, and wants that said.
    pub const UNRECOGNIZED_CHUNK: u16 = 6;
    /// INIT or INIT ACK says what cannot be.
    pub const INVALID_PARAMETER: u16 = 7;
    /// The same of parameters.
    pub const UNRECOGNIZED_PARAMETERS: u16 = 8;
    /// DATA without data.
    pub const NO_USER_DATA: u16 = 9;
    /// Whoever wants to open again has to wait for the end.
    pub const COOKIE_IN_SHUTDOWN: u16 = 10;
    /// Whoever opens again names addresses that it did not have.
    pub const NEW_ADDRESSES: u16 = 11;
    /// A rule was broken that no other cause speaks of.
    pub const PROTOCOL_VIOLATION: u16 = 13;

    fn of(code: u16, value: impl Into<Bytes>) -> Cause {
        let value = value.into();
        Cause { code, value }
    }

    /// See [`Cause::INVALID_STREAM`].
    pub fn invalid_stream(stream: u16) -> Cause {
        let [a, b] = stream.to_be_bytes();
        Cause::of(Cause::INVALID_STREAM, vec![a, b, 0, 0])
    }

    /// The parameter of this type is missing.
    pub fn missing_parameter(kind: u16) -> Cause {
        let [a, b] = kind.to_be_bytes();
        Cause::of(Cause::MISSING_PARAMETER, vec![0, 0, 0, 1, a, b])
    }

    /// The cookie is `late_us` microseconds beyond its life.
    pub fn stale_cookie(late_us: u32) -> Cause {
        Cause::of(Cause::STALE_COOKIE, late_us.to_be_bytes().to_vec())
    }

    /// See [`Cause::UNRESOLVABLE_ADDRESS`]; the whole parameter.
    pub fn unresolvable_address(parameter: Bytes) -> Cause {
        Cause::of(Cause::UNRESOLVABLE_ADDRESS, parameter)
    }

    /// See [`Cause::UNRECOGNIZED_CHUNK`]; of the chunk as much as [`MOST_REPORTED_BYTES`].
    pub fn unrecognized_chunk(chunk: &Bytes) -> Cause {
        let reported = chunk.len().min(MOST_REPORTED_BYTES);
        Cause::of(
            Cause::UNRECOGNIZED_CHUNK,
            Bytes::copy_from_slice(&chunk[..reported]),
        )
    }

    /// See [`Cause::UNRECOGNIZED_PARAMETERS`]; whole parameters.
    pub fn unrecognized_parameters(parameters: &[Bytes]) -> Cause {
        let mut value = BytesMut::new();
        for parameter in parameters {
            value.resize(padded(value.len()), 0);
            value.extend_from_slice(parameter);
        }
        Cause::of(Cause::UNRECOGNIZED_PARAMETERS, value)
    }

    /// See [`Cause::INVALID_PARAMETER`].
    pub fn invalid_parameter() -> Cause {
        Cause::of(Cause::INVALID_PARAMETER, Bytes::new())
    }

    /// The DATA chunk of this number has no data.
    pub fn no_user_data(tsn: u32) -> Cause {
        Cause::of(Cause::NO_USER_DATA, tsn.to_be_bytes().to_vec())
    }

    /// See [`Cause::COOKIE_IN_SHUTDOWN`].
    pub fn cookie_in_shutdown() -> Cause {
        Cause::of(Cause::COOKIE_IN_SHUTDOWN, Bytes::new())
    }

    /// See [`Cause::NEW_ADDRESSES`].
    pub fn new_addresses(addresses: &[IpAddr]) -> Cause {
        let mut value = BytesMut::new();
        for address in addresses {
            super::init::address(*address, |kind, octets| {
                value.put_u16(kind);
                value.put_u16(4 + octets.len() as u16);
                value.extend_from_slice(octets);
            });
        }
        Cause::of(Cause::NEW_ADDRESSES, value)
    }

    /// See [`Cause::PROTOCOL_VIOLATION`]; what it was, in words.
    pub fn protocol_violation(what: &str) -> Cause {
        Cause::of(Cause::PROTOCOL_VIOLATION, Bytes::copy_from_slice(what.as_bytes()))
    }

    /// What a chunk says that ends with causes. One that is not whole ends them: nothing hangs on it, and an ABORT counts all the same.
    pub(super) fn parse_all(value: &Bytes) -> Causes {
        let mut causes = Causes::new();
        let mut rest = value.clone();
        while causes.len() < MOST_CAUSES
            && let (Ok(code), Ok(length)) = (u16_at(&rest, 0), u16_at(&rest, 2))
            && (4..=rest.len()).contains(&usize::from(length))
        {
            let length = usize::from(length);
            causes.push(Cause::of(code, rest.slice(4..length)));
            rest = rest.slice(padded(length).min(rest.len())..);
        }
        causes
    }

    pub(super) fn emit(&self, out: &mut Head) {
        tlv(self.code, &self.value, out);
    }
}
