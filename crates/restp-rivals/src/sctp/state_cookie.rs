//! The state cookie (RFC 9260 §5.1.3): all that a server knows of an association before its peer has shown that it receives at
//! its address. Nothing is kept until it comes back.

use super::chunk::MOST_ADDRESSES;
use bytes::Bytes;
use restp_base::time::{Duration, Time};
use restp_services::connection_management::{CookieMint, Ports};
use smallvec::SmallVec;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// Valid.Cookie.Life (RFC 9260 §16).
pub(super) const LIFE: Duration = Duration::from_secs(60);
/// What stands before the addresses.
const FIXED_BYTES: usize = 8 + 4 * 5 + 2 * 3 + 2;
const CODE_BYTES: usize = 16;
/// Beside the streams: tags follow.
const TIED: u8 = 0x80;

/// What a server promised, and to whom.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct StateCookie {
    pub made_at: Time,
    pub local_tag: u32,
    pub peer_tag: u32,
    pub local_tsn: u32,
    pub peer_tsn: u32,
    /// What the peer grants.
    pub peer_window: u32,
    pub ports: Ports,
    /// Streams that the peer takes.
    pub streams: u16,
    /// Streams that it may send by.
    pub streams_in: u8,
    /// Our tag and the peer's of the association that there was when it was made (RFC 9260 §5.2.2).
    pub tie_tags: Option<TieTags>,
    /// Of the peer, the one that the INIT came from first.
    pub addresses: SmallVec<[IpAddr; 2]>,
}

/// The tags of an association that its peer, or both ends, may be about to open once more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct TieTags {
    pub local: u32,
    pub peer: u32,
}

/// Why a cookie does not open an association.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Refusal {
    /// It is not one of ours.
    Forged,
    /// It expired so long ago, and is whole otherwise.
    Stale(StateCookie, Duration),
}

impl StateCookie {
    pub fn seal(&self, mint: &CookieMint) -> Bytes {
        let mut bytes = Vec::with_capacity(FIXED_BYTES + 8 + 17 * self.addresses.len() + CODE_BYTES);
        bytes.extend(self.made_at.as_nanos().to_be_bytes());
        for number in [
            self.local_tag,
            self.peer_tag,
            self.local_tsn,
            self.peer_tsn,
            self.peer_window,
        ] {
            bytes.extend(number.to_be_bytes());
        }
        for number in [self.ports.local, self.ports.remote, self.streams] {
            bytes.extend(number.to_be_bytes());
        }
        let tied = if self.tie_tags.is_some() { TIED } else { 0 };
        bytes.extend([tied | self.streams_in, self.addresses.len() as u8]);
        for tag in self.tie_tags.iter().flat_map(|tags| [tags.local, tags.peer]) {
            bytes.extend(tag.to_be_bytes());
        }
        for address in &self.addresses {
            match address {
                IpAddr::V4(v4) => bytes.extend([&[4][..], &v4.octets()].concat()),
                IpAddr::V6(v6) => bytes.extend([&[6][..], &v6.octets()].concat()),
            }
        }
        let code = mint.seal(&bytes);
        bytes.extend(code);
        bytes.into()
    }

    pub fn open(mint: &CookieMint, now: Time, sealed: &[u8]) -> Result<StateCookie, Refusal> {
        let at = sealed.len().checked_sub(CODE_BYTES).ok_or(Refusal::Forged)?;
        let (state, code) = sealed.split_at(at);
        if !mint.verify_seal(state, code) {
            return Err(Refusal::Forged);
        }
        let cookie = StateCookie::read(state).ok_or(Refusal::Forged)?;
        let late = now
            .since(cookie.made_at)
            .as_nanos()
            .saturating_sub(LIFE.as_nanos());
        if late > 0 {
            return Err(Refusal::Stale(cookie, Duration::from_nanos(late)));
        }
        Ok(cookie)
    }

    fn read(state: &[u8]) -> Option<StateCookie> {
        let (fixed, mut rest) = state.split_at_checked(FIXED_BYTES)?;
        let long = |at: usize| Some(u64::from_be_bytes(fixed.get(at..at + 8)?.try_into().ok()?));
        let word = |at: usize| Some(u32::from_be_bytes(fixed.get(at..at + 4)?.try_into().ok()?));
        let short = |at: usize| Some(u16::from_be_bytes(fixed.get(at..at + 2)?.try_into().ok()?));
        let flags = *fixed.get(34)?;
        let mut tie_tags = None;
        if flags & TIED != 0 {
            let (tags, further) = rest.split_at_checked(8)?;
            let (local, peer) = tags.split_at(4);
            tie_tags = Some(TieTags {
                local: u32::from_be_bytes(local.try_into().ok()?),
                peer: u32::from_be_bytes(peer.try_into().ok()?),
            });
            rest = further;
        }
        let mut addresses = SmallVec::new();
        while let Some((kind, bytes)) = rest.split_first() {
            let length = if *kind == 4 { 4 } else { 16 };
            let (octets, further) = bytes.split_at_checked(length)?;
            addresses.push(match <[u8; 4]>::try_from(octets) {
                Ok(v4) => IpAddr::V4(Ipv4Addr::from(v4)),
                Err(_) => IpAddr::V6(Ipv6Addr::from(<[u8; 16]>::try_from(octets).ok()?)),
            });
            rest = further;
        }
        if addresses.is_empty() || addresses.len() > MOST_ADDRESSES + 1 {
            return None;
        }
        Some(StateCookie {
            made_at: Time::from_nanos(long(0)?),
            local_tag: word(8)?,
            peer_tag: word(12)?,
            local_tsn: word(16)?,
            peer_tsn: word(20)?,
            peer_window: word(24)?,
            ports: Ports {
                local: short(28)?,
                remote: short(30)?,
            },
            streams: short(32)?,
            streams_in: flags & !TIED,
            tie_tags,
            addresses,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use restp_services::connection_management::CookieParameters;
    use smallvec::smallvec;

    fn mint() -> CookieMint {
        CookieMint::new(CookieParameters::default())
    }

    fn cookie() -> StateCookie {
        StateCookie {
            made_at: Time::ZERO + Duration::from_secs(5),
            local_tag: 1,
            peer_tag: 2,
            local_tsn: 3,
            peer_tsn: 4,
            peer_window: 5,
            ports: Ports { local: 6, remote: 7 },
            streams: 8,
            streams_in: 9,
            tie_tags: None,
            addresses: smallvec![IpAddr::from([10, 0, 0, 1]), Ipv6Addr::LOCALHOST.into()],
        }
    }

    #[test]
    fn it_comes_back_as_it_left_and_for_a_minute() {
        let sealed = cookie().seal(&mint());
        let after = |seconds| StateCookie::open(&mint(), Time::ZERO + Duration::from_secs(seconds), &sealed);
        assert_eq!(after(65), Ok(cookie()));
        let second = Duration::from_secs(1);
        assert_eq!(after(66), Err(Refusal::Stale(cookie(), second)));
    }

    #[test]
    fn it_has_the_tags_of_the_association_before_where_there_was_one() {
        let tied = StateCookie {
            tie_tags: Some(TieTags { local: 10, peer: 11 }),
            ..cookie()
        };
        let sealed = tied.seal(&mint());
        assert_eq!(StateCookie::open(&mint(), Time::ZERO, &sealed), Ok(tied));
        assert_eq!(sealed.len(), cookie().seal(&mint()).len() + 8);
    }

    #[test]
    fn what_was_changed_cut_or_made_by_others_is_refused() {
        let sealed = cookie().seal(&mint());
        for at in 0..sealed.len() {
            let mut changed = sealed.to_vec();
            changed[at] ^= 1;
            assert_eq!(
                StateCookie::open(&mint(), Time::ZERO, &changed),
                Err(Refusal::Forged)
            );
            assert_eq!(
                StateCookie::open(&mint(), Time::ZERO, &sealed[..at]),
                Err(Refusal::Forged)
            );
        }
    }
}
