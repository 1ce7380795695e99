//! Flows by their number: so many at once, each until nothing has passed for a while.

use std::collections::BTreeMap;
use std::time::Duration;
use tokio::time::Instant;

/// A flow ends after this long without a datagram (RFC 4787 REQ-5 for a NAT).
pub const IDLE: Duration = Duration::from_secs(300);

/// Flows of one listener at once; a new one takes the place of the one that has been idle for longest.
pub const MOST: usize = 256;

/// What is known of each flow, and when it was last used.
pub struct Flows<T> {
    by_number: BTreeMap<u16, (T, Instant)>,
    most: usize,
}

impl<T> Flows<T> {
    /// At most so many.
    pub fn at_most(most: usize) -> Self {
        Flows {
            by_number: BTreeMap::new(),
            most,
        }
    }

    /// The flow of this number, which is used now.
    pub fn used(&mut self, number: u16, now: Instant) -> Option<&mut T> {
        let (flow, used) = self.by_number.get_mut(&number)?;
        *used = now;
        Some(flow)
    }

    /// One more; the number and flow that had to leave for it.
    pub fn insert(&mut self, number: u16, flow: T, now: Instant) -> Option<(u16, T)> {
        let full = self.by_number.len() >= self.most && !self.by_number.contains_key(&number);
        let oldest = self.by_number.iter().min_by_key(|(_, (_, used))| *used);
        let oldest = oldest.filter(|_| full).map(|(number, _)| *number);
        let left = oldest.and_then(|oldest| Some((oldest, self.remove(oldest)?)));
        self.by_number.insert(number, (flow, now));
        left
    }

    /// The flow of this number is over.
    pub fn remove(&mut self, number: u16) -> Option<T> {
        self.by_number.remove(&number).map(|(flow, _)| flow)
    }

    /// Ends those that are idle.
    pub fn expire(&mut self, now: Instant) -> Vec<(u16, T)> {
        let idle = self.by_number.iter().filter(|(_, (_, used))| now - *used >= IDLE);
        let idle: Vec<u16> = idle.map(|(number, _)| *number).collect();
        let over = idle
            .into_iter()
            .filter_map(|number| Some((number, self.remove(number)?)));
        over.collect()
    }

    /// A number that none has, the next one from `from` on.
    pub fn free(&self, from: u16) -> u16 {
        let mut number = from;
        while self.by_number.contains_key(&number) {
            number = number.wrapping_add(1); // there are fewer flows than numbers
        }
        number
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_one_idle_for_longest_leaves_for_a_new_one() {
        let start = Instant::now();
        let at = |seconds| start + Duration::from_secs(seconds);
        let mut flows = Flows::at_most(2);
        assert_eq!(flows.insert(1, "a", at(0)), None);
        assert_eq!(flows.insert(2, "b", at(1)), None);
        assert!(flows.used(1, at(2)).is_some());
        assert_eq!(flows.insert(3, "c", at(3)), Some((2, "b")));
        assert_eq!(flows.insert(3, "d", at(3)), None, "no further one");
        assert_eq!(flows.free(1), 2);
        assert_eq!(flows.expire(at(301)), []);
        assert_eq!(flows.expire(at(302)), [(1, "a")]);
        assert_eq!(flows.remove(3), Some("d"));
    }
}
