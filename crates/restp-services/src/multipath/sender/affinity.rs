//! Which of what waits to be sent belongs on a path that the application chose: stretches of the queue, counted in bytes
//! since the connection began (ResTP §3.5.10).

use restp_base::machine::PathAddress;
use std::collections::VecDeque;
use std::ops::Range;

#[derive(Debug, Default)]
pub(in crate::multipath) struct PathAffinity {
    /// Bytes taken from the queue so far.
    taken: u64,
    list: VecDeque<(Range<u64>, PathAddress)>,
}

impl PathAffinity {
    /// `size` bytes are appended to `queued` that wait, for `path`.
    pub(in crate::multipath) fn add(&mut self, queued: usize, size: usize, path: PathAddress) {
        let start = self.taken + queued as u64;
        self.list.push_back((start..start + size as u64, path));
    }

    /// The application has chosen no path for anything that waits.
    pub(in crate::multipath) fn is_empty(&self) -> bool {
        self.list.is_empty()
    }

    /// How many of the next `most` bytes belong together, and on which path if on one.
    pub(in crate::multipath) fn next(&self, most: usize) -> (usize, Option<PathAddress>) {
        let Some((range, path)) = self.list.front() else {
            return (most, None);
        };
        let until = |end: u64| most.min((end - self.taken) as usize);
        if range.start > self.taken {
            (until(range.start), None)
        } else {
            (until(range.end), Some(*path))
        }
    }

    /// `size` bytes were taken.
    pub(in crate::multipath) fn take(&mut self, size: usize) {
        self.taken += size as u64;
        while self
            .list
            .front()
            .is_some_and(|(range, _)| range.end <= self.taken)
        {
            self.list.pop_front();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn segments_end_where_a_choice_begins_or_ends() {
        let at = |host: u8| std::net::SocketAddr::from(([10, 0, 0, host], 0));
        let path = PathAddress {
            local: at(1),
            remote: at(2),
        };
        let mut affinity = PathAffinity::default();
        assert_eq!(affinity.next(1400), (1400, None));
        affinity.add(2000, 1000, path);
        assert_eq!(affinity.next(1400), (1400, None));
        affinity.take(1400);
        assert_eq!(affinity.next(1400), (600, None));
        affinity.take(600);
        assert_eq!(affinity.next(700), (700, Some(path)));
        affinity.take(700);
        assert_eq!(affinity.next(700), (300, Some(path)));
        affinity.take(300);
        assert_eq!(affinity.next(700), (700, None));
    }
}
