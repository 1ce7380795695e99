//! INIT and INIT ACK (RFC 9260 §3.3.2, §3.3.3): tag, window, streams, first number, addresses and cookie.

use super::{ChunkError, padded, u16_at, u32_at};
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
/// Of a parameter that is not known: what follows it is looked at all the same.
const SKIPS: u16 = 0x8000;

/// An INIT or INIT ACK chunk.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Init {
    /// Initiate tag: what the peer is to write into the common header. Never 0.
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
        if init.tag == 0 || init.streams_out == 0 || init.streams_in == 0 {
            return Err(ChunkError::Zero);
        }
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
            let parameter = rest.slice(4..length);
            rest = rest.slice(padded(length).min(rest.len())..);
            if !init.take(kind, parameter)? {
                break;
            }
        }
        Ok(init)
    }

    /// Notes one parameter. False: nothing that follows is to be looked at (RFC 9260 §3.2.1).
    fn take(&mut self, kind: u16, parameter: Bytes) -> Result<bool, ChunkError> {
        let wrong = |_| ChunkError::Address(parameter.len());
        let address = match kind {
            COOKIE => {
                self.cookie = Some(parameter);
                return Ok(true);
            }
            IPV4 => <[u8; 4]>::try_from(&parameter[..]).map(|octets| Ipv4Addr::from(octets).into()),
            IPV6 => <[u8; 16]>::try_from(&parameter[..]).map(|octets| Ipv6Addr::from(octets).into()),
            // 9, 11 and 12 (cookie preservative, host name, address types) change nothing here.
            _ => return Ok(kind & SKIPS != 0 || kind < 16),
        };
        let address = address.map_err(wrong)?;
        if self.addresses.len() < MOST_ADDRESSES && !self.addresses.contains(&address) {
            self.addresses.push(address);
        }
        Ok(true)
    }

    pub(super) fn emit(&self, out: &mut Head) {
        out.extend_from_slice(&self.tag.to_be_bytes());
        out.extend_from_slice(&self.window.to_be_bytes());
        out.extend_from_slice(&self.streams_out.to_be_bytes());
        out.extend_from_slice(&self.streams_in.to_be_bytes());
        out.extend_from_slice(&self.first_tsn.to_be_bytes());
        for address in &self.addresses {
            match address {
                IpAddr::V4(v4) => parameter(IPV4, &v4.octets(), out),
                IpAddr::V6(v6) => parameter(IPV6, &v6.octets(), out),
            }
        }
        if let Some(cookie) = &self.cookie {
            parameter(COOKIE, cookie, out);
        }
    }
}

/// One parameter with its padding. That of the last one is the chunk's, which gives the same bytes.
fn parameter(kind: u16, value: &[u8], out: &mut Head) {
    let length = 4 + value.len();
    out.extend_from_slice(&kind.to_be_bytes());
    out.extend_from_slice(&(length as u16).to_be_bytes());
    out.extend_from_slice(value);
    out.resize(out.len() + padded(length) - length, 0);
}
