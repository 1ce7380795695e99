//! Requests per source (ITP OP-20): each is answered with a manifest, which is larger, and nothing proves that it came from where it says.
//! Whoever asks for chunks of the answer has shown that; requests that nothing follows are bounded.

use restp_base::time::{Duration, Time};
use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

/// Requests of one source that nothing has followed, at most, and as many in each second after: 64 full manifests are 0.8 Mbit/s.
const BURST: u64 = 64;
const EACH: Duration = Duration::from_micros(1_000_000 / BURST);
/// Sources at most; then the one that has asked for least is forgotten.
const MOST: usize = 4_096;

/// How much each source has asked for.
#[derive(Debug, Default)]
pub(super) struct Sources {
    /// When its requests are paid for, each with [`EACH`].
    paid_at: BTreeMap<IpAddr, Time>,
    by_time: BTreeSet<(Time, IpAddr)>,
}

impl Sources {
    /// May this request be answered?
    pub fn admits(&mut self, now: Time, source: IpAddr) -> bool {
        while let Some((at, paid)) = self.by_time.first().copied()
            && at <= now
        {
            self.set(paid, None);
        }
        let owed_until = self.paid_at.get(&source).copied().unwrap_or(now);
        if owed_until.since(now) > EACH * (BURST - 1) {
            return false;
        }
        if self.paid_at.len() >= MOST
            && !self.paid_at.contains_key(&source)
            && let Some((_, least)) = self.by_time.first().copied()
        {
            self.set(least, None);
        }
        self.set(source, Some(owed_until + EACH));
        true
    }

    /// What was sent to this source has arrived there.
    pub fn on_proof(&mut self, source: IpAddr) {
        if let Some(at) = self.paid_at.get(&source).copied() {
            self.set(
                source,
                Some(Time::from_nanos(at.as_nanos().saturating_sub(EACH.as_nanos()))),
            );
        }
    }

    fn set(&mut self, source: IpAddr, at: Option<Time>) {
        let was = match at {
            Some(at) => self.paid_at.insert(source, at),
            None => self.paid_at.remove(&source),
        };
        if let Some(was) = was {
            self.by_time.remove(&(was, source));
        }
        self.by_time.extend(at.map(|at| (at, source)));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(ms: u64) -> Time {
        Time::ZERO + Duration::from_millis(ms)
    }

    fn source(number: u32) -> IpAddr {
        IpAddr::from(number.to_be_bytes())
    }

    #[test]
    fn a_source_that_proves_nothing_gets_a_burst_and_then_so_many_in_a_second() {
        let mut sources = Sources::default();
        let mut admitted = |ms, tries| (0..tries).filter(|_| sources.admits(at(ms), source(1))).count();
        assert_eq!(admitted(0, 100), 64);
        assert_eq!(admitted(500, 100), 32);
        assert_eq!(admitted(10_000, 100), 64, "no more is saved up than a burst");
        assert!(sources.admits(at(10_000), source(2)), "another source");
    }

    #[test]
    fn a_source_that_takes_what_it_asked_for_may_go_on() {
        let mut sources = Sources::default();
        for _ in 0..1000 {
            assert!(sources.admits(at(5), source(1)));
            sources.on_proof(source(1));
        }
        sources.on_proof(source(9)); // nobody has heard of it
        assert_eq!((sources.paid_at.len(), sources.by_time.len()), (1, 1));
    }

    #[test]
    fn so_many_sources_are_known_and_the_one_that_owes_least_is_forgotten() {
        let mut sources = Sources::default();
        (0..10).for_each(|_| assert!(sources.admits(at(0), source(0))));
        (1..MOST as u32 + 100).for_each(|number| assert!(sources.admits(at(0), source(number))));
        assert_eq!((sources.paid_at.len(), sources.by_time.len()), (MOST, MOST));
        assert!(sources.paid_at.contains_key(&source(0)));
        assert!(sources.admits(at(2000), source(1)));
        assert_eq!(sources.paid_at.len(), 1, "what is paid for is forgotten");
    }
}
