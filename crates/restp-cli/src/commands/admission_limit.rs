//! The places of a receiver, shared out: while few are taken everybody gets one, then no sender gets more than his share.

use restp::{Connection, PublicKey};
use restp_base::sources::Sources;
use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr};

/// Transfers at once; further senders are told to come later.
pub const MAX_TRANSFERS: usize = 64;

/// This part of all places is for those of one address (IPv6: of one /64) and of one key, once half of all are taken.
const SHARE: usize = 8;

/// Who sends, as far as it counts. Nobody takes no place.
#[derive(Clone, Copy, Debug, Default)]
pub struct Visitor(Option<(IpAddr, Option<PublicKey>)>);

impl Visitor {
    /// Who is at the other end of `connection`.
    pub fn of(connection: &Connection) -> Self {
        let stats = connection.stats();
        let path = stats.path.or_else(|| stats.paths.first().map(|path| path.path));
        let at = path.map_or(IpAddr::V4(Ipv4Addr::UNSPECIFIED), |path| path.remote.ip());
        Visitor(Some((at, connection.peer_key())))
    }

    /// His key; none where no seal proves it.
    pub fn key(&self) -> Option<PublicKey> {
        self.0.and_then(|(_, key)| key)
    }

    /// Who is at `source`, whatever his key.
    #[cfg(test)]
    pub fn at(source: IpAddr) -> Self {
        Visitor(Some((source, None)))
    }
}

/// Who has a place, and how many there are.
pub struct AdmissionLimit {
    most: usize,
    taken: usize,
    sources: Sources,
    keys: BTreeMap<PublicKey, usize>,
}

impl Default for AdmissionLimit {
    fn default() -> Self {
        Self::at_most(MAX_TRANSFERS)
    }
}

impl AdmissionLimit {
    /// So many places.
    pub fn at_most(most: usize) -> Self {
        AdmissionLimit {
            most,
            taken: 0,
            sources: Sources::default(),
            keys: BTreeMap::new(),
        }
    }

    /// A place for `visitor`; false when there is none for him.
    pub fn take(&mut self, visitor: &Visitor) -> bool {
        let Some((source, key)) = visitor.0 else {
            return false;
        };
        let of_key = key.and_then(|key| self.keys.get(&key).copied()).unwrap_or(0);
        let scarce = self.taken >= self.most / 2;
        let has_share = of_key.max(self.sources.count(source)) >= (self.most / SHARE).max(1);
        if self.taken >= self.most || scarce && has_share {
            return false;
        }
        self.taken += 1;
        self.sources.enter(source);
        if let Some(key) = key {
            *self.keys.entry(key).or_default() += 1;
        }
        true
    }

    /// `visitor` gives his place back.
    pub fn leave(&mut self, visitor: &Visitor) {
        let Some((source, key)) = visitor.0 else {
            return;
        };
        self.taken -= 1;
        self.sources.leave(source);
        if let Some(count) = key.and_then(|key| self.keys.get_mut(&key)) {
            *count -= 1;
        }
        self.keys.retain(|_, count| *count > 0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn visitor(source: u8, key: u8) -> Visitor {
        Visitor(Some((
            IpAddr::from([10, 0, 0, source]),
            Some(PublicKey([key; 32])),
        )))
    }

    #[test]
    fn one_address_and_one_key_leave_places_to_others() {
        for (same_source, same_key) in [(true, true), (true, false), (false, true)] {
            let mut limit = AdmissionLimit::default();
            let of = |n: u8| visitor(if same_source { 1 } else { n }, if same_key { 1 } else { n });
            let taken = (2..200).filter(|n| limit.take(&of(*n))).count();
            assert_eq!(taken, MAX_TRANSFERS / 2);
            let others = (2..200).filter(|n| limit.take(&visitor(*n, *n))).count();
            assert_eq!(others, MAX_TRANSFERS / 2, "and all places are taken");
            (2..).take(taken).for_each(|n| limit.leave(&of(n)));
            assert!(limit.take(&of(7)), "what he gave back can be had again");
        }
        assert!(!AdmissionLimit::default().take(&Visitor::default()));
    }
}
