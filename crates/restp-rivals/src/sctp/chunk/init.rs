//! INIT and INIT ACK (RFC 9260 §3.3.2, §3.3.3): tag, window, streams, first number, addresses and cookie.

use super::{Cause, ChunkError, MOST_REPORTED_BYTES, padded, tlv, u16_at, u32_at};
use bytes::Bytes;
use restp_base::machine::Head;
use smallvec::SmallVec;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// Bytes before the parameters, without the chunk's own header.
const FIXED_BYTES: usize = 16;
/// Addresses that are taken of a peer at most: more are forgotten.
pub const MOST_ADDRESSES: usize = 16;

/// Parameter types (RFC 9260 §3.3.2.1, §3.3.3.1).
const IPV4: u16 = 5;
const IPV6: u16 = 6;
const COOKIE: u16 = 7;
const UNRECOGNIZED: u16 = 8;
const COOKIE_PRESERVATIVE: u16 = 9;
const HOST_NAME: u16 = 11;
const ADDRESS_TYPES: u16 = 12;
/// Of a parameter that is not known: what follows it is looked at all the same (RFC 9260 §3.2.1).
const SKIPS: u16 = 0x8000;
/// Of a parameter that is not known: who sent it is to hear that.
const REPORTS: u16 = 0x4000;
/// What a peer has to grant at least (RFC 9260 §3.3.2).
const LEAST_WINDOW: u32 = 1500;

/// An INIT or INIT ACK chunk.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Init {
    /// Initiate tag: what the peer is to write into the common header. 0 only in an INIT ACK that breaks the rules.
    pub tag: u32,
    /// Advertised receiver window credit in bytes.
    pub window: u32,
    /// Streams that the sender wants to send by.
    pub streams_out: u16,
    /// Streams that it takes at most.
    pub streams_in: u16,
    /// TSN of its first DATA chunk.
    pub first_tsn: u32,
    /// Its addresses beside the one that the packet came from.
    pub addresses: SmallVec<[IpAddr; 2]>,
    /// State cookie; INIT ACK has one.
    pub cookie: Option<Bytes>,
    /// Parameters that are not known here and want that said, whole, up to [`MOST_REPORTED_BYTES`].
    pub unrecognized: SmallVec<[Bytes; 1]>,
    /// Those of the INIT that this one answers.
    pub reported: SmallVec<[Bytes; 1]>,
    /// A parameter with a name in the place of an address, whole.
    pub host_name: Option<Bytes>,
}

impl Init {
    pub(super) fn parse(value: &Bytes) -> Result<Init, ChunkError> {
        let mut init = Init {
            tag: u32_at(value, 0)?,
            window: u32_at(value, 4)?,
            streams_out: u16_at(value, 8)?,
            streams_in: u16_at(value, 10)?,
            first_tsn: u32_at(value, 12)?,
            ..Init::default()
        };
        let mut rest = value.slice(FIXED_BYTES..);
        while !rest.is_empty() {
            let (kind, length) = (u16_at(&rest, 0)?, usize::from(u16_at(&rest, 2)?));
            if length < 4 || length > rest.len() {
                let found = rest.len();
                return Err(ChunkError::Short {
                    expected: length.max(4),
                    found,
                });
            }
            let parameter = rest.slice(..length);
            rest = rest.slice(padded(length).min(rest.len())..);
            if !init.take(kind, &parameter)? {
                break;
            }
        }
        Ok(init)
    }

    /// Why no association may come of it, whatever there is already (RFC 9260 §3.3.2, §3.3.3).
    pub fn refusal(&self) -> Option<Cause> {
        if let Some(name) = &self.host_name {
            return Some(Cause::unresolvable_address(name.clone()));
        }
        let is_possible =
            self.tag > 0 && self.streams_out > 0 && self.streams_in > 0 && self.window >= LEAST_WINDOW;
        (!is_possible).then(Cause::invalid_parameter)
    }

    /// INIT ACK has a cookie, or this is why it is none.
    pub fn without_cookie() -> Cause {
        Cause::missing_parameter(COOKIE)
    }

    /// Notes one parameter. False: nothing that follows is to be looked at (RFC 9260 §3.2.1).
    fn take(&mut self, kind: u16, parameter: &Bytes) -> Result<bool, ChunkError> {
        let value = parameter.slice(4..);
        let wrong = |_| ChunkError::Address(value.len());
        let address: IpAddr = match kind {
            IPV4 => <[u8; 4]>::try_from(&value[..])
                .map(Ipv4Addr::from)
                .map_err(wrong)?
                .into(),
            IPV6 => <[u8; 16]>::try_from(&value[..])
                .map(Ipv6Addr::from)
                .map_err(wrong)?
                .into(),
            _ => return Ok(self.take_other(kind, parameter, value)),
        };
        if self.addresses.len() < MOST_ADDRESSES && !self.addresses.contains(&address) {
            self.addresses.push(address);
        }
        Ok(true)
    }

    /// The same of what is no address.
    fn take_other(&mut self, kind: u16, parameter: &Bytes, value: Bytes) -> bool {
        match kind {
            COOKIE => self.cookie = Some(value),
            UNRECOGNIZED => note(&mut self.reported, &value),
            HOST_NAME => self.host_name = Some(parameter.slice(..parameter.len().min(MOST_REPORTED_BYTES))),
            COOKIE_PRESERVATIVE | ADDRESS_TYPES => {} // they change nothing here
            _ => {
                if kind & REPORTS != 0 {
                    note(&mut self.unrecognized, parameter);
                }
                return kind & SKIPS != 0;
            }
        }
        true
    }

    pub(super) fn emit(&self, out: &mut Head) {
        out.extend_from_slice(&self.tag.to_be_bytes());
        out.extend_from_slice(&self.window.to_be_bytes());
        out.extend_from_slice(&self.streams_out.to_be_bytes());
        out.extend_from_slice(&self.streams_in.to_be_bytes());
        out.extend_from_slice(&self.first_tsn.to_be_bytes());
        for one in &self.addresses {
            address(*one, |kind, octets| tlv(kind, octets, out));
        }
        if let Some(cookie) = &self.cookie {
            tlv(COOKIE, cookie, out);
        }
        for reported in &self.reported {
            tlv(UNRECOGNIZED, reported, out);
        }
        for whole in self.unrecognized.iter().chain(&self.host_name) {
            out.resize(padded(out.len()), 0);
            out.extend_from_slice(whole);
        }
    }
}

/// The parameter that names an address, to whoever writes it: type and value.
pub(super) fn address(address: IpAddr, mut write: impl FnMut(u16, &[u8])) {
    match address {
        IpAddr::V4(v4) => write(IPV4, &v4.octets()),
        IpAddr::V6(v6) => write(IPV6, &v6.octets()),
    }
}

/// Keeps what is to be told of, while there is room for it. It is copied, as the packet that it came in is larger.
fn note(reported: &mut SmallVec<[Bytes; 1]>, parameter: &Bytes) {
    let before: usize = reported.iter().map(|one| 4 + padded(one.len())).sum();
    if before + 4 + padded(parameter.len()) <= MOST_REPORTED_BYTES {
        reported.push(Bytes::copy_from_slice(parameter));
    }
}
