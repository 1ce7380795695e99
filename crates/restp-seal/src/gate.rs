//! How much is done for strangers: handshakes computed for addresses that prove nothing, and handshakes that one source may
//! leave unfinished (RFC 9000 §8.1.2, §21.2). What is beyond is answered from nothing but a keyed hash, or not at all.

use restp_base::time::Time;
use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv6Addr};

const SECOND: u64 = 1_000_000_000;

/// So many at once, and so many in every second (ITU-T I.371, 2004, §A.1: virtual scheduling).
#[derive(Debug, Default)]
pub(crate) struct Budget {
    /// When the next would come if all came evenly, in nanoseconds.
    next: u64,
}

impl Budget {
    /// One more at `now`? False when it would be more than `per_second`.
    pub(crate) fn take(&mut self, now: Time, per_second: u32) -> bool {
        let Some(interval) = SECOND.checked_div(per_second.into()) else {
            return false;
        };
        let now = now.as_nanos() + SECOND; // the first second lies before zero
        let after = self.next.max(now - SECOND) + interval;
        let fits = after <= now;
        if fits {
            self.next = after;
        }
        fits
    }
}

/// Unfinished handshakes of each source, as many entries as there are such handshakes at most.
#[derive(Debug, Default)]
pub(crate) struct Sources(BTreeMap<IpAddr, usize>);

impl Sources {
    /// Of the source that `address` belongs to.
    pub(crate) fn count(&self, address: IpAddr) -> usize {
        self.0.get(&source(address)).copied().unwrap_or(0)
    }

    pub(crate) fn enter(&mut self, address: IpAddr) {
        *self.0.entry(source(address)).or_default() += 1;
    }

    pub(crate) fn leave(&mut self, address: IpAddr) {
        let source = source(address);
        match self.0.get_mut(&source) {
            Some(count) if *count > 1 => *count -= 1,
            _ => drop(self.0.remove(&source)),
        }
    }
}

/// Who has one IPv6 address has its /64 (RFC 4291 §2.5.4).
fn source(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V4(address) => address.into(),
        IpAddr::V6(address) => Ipv6Addr::from_bits(address.to_bits() >> 64 << 64).into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_budget_is_a_second_ahead_at_most_and_fills_evenly() {
        let mut budget = Budget::default();
        let at = |ms: u64| Time::from_nanos(ms * 1_000_000);
        let taken = |budget: &mut Budget, ms| (0..1000).filter(|_| budget.take(at(ms), 100)).count();
        assert_eq!(taken(&mut budget, 0), 100);
        assert_eq!(taken(&mut budget, 9), 0);
        assert_eq!(taken(&mut budget, 50), 5);
        assert_eq!(taken(&mut budget, 60_000), 100, "what was not used is gone");
        assert!(!Budget::default().take(at(0), 0));
    }

    #[test]
    fn sources_are_counted_by_prefix_and_forgotten() {
        let mut sources = Sources::default();
        let address = |text: &str| text.parse::<IpAddr>().unwrap();
        for text in ["2001:db8::1", "2001:db8::2", "192.0.2.1", "::ffff:192.0.2.1"] {
            sources.enter(address(text));
        }
        assert_eq!(sources.count(address("2001:db8::3")), 2);
        assert_eq!(sources.count(address("192.0.2.1")), 2);
        assert_eq!(sources.count(address("2001:db8:0:1::1")), 0);
        for text in [
            "2001:db8::9",
            "2001:db8::8",
            "192.0.2.1",
            "192.0.2.1",
            "192.0.2.1",
        ] {
            sources.leave(address(text));
        }
        assert!(sources.0.is_empty());
    }
}
