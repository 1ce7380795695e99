//! Credit that counts what is in flight (RFC 9260 §6.2.1): the receiver says how many bytes of its buffer are free, and of these
//! the sender fills what it does not believe to be on its way already. Nothing numbers the bytes, so a report that was
//! overtaken by a later one has to be known by other signs.

/// What the peer's buffer still takes.
#[derive(Clone, Copy, Debug)]
pub struct Credit {
    /// The pointer of the last report, and the free bytes it named.
    last: (u64, u64),
    /// How many numbers beyond its pointer that report named.
    named: u64,
}

impl Credit {
    /// The set-up named `free` bytes for what begins at `first`.
    pub fn new(first: u64, free: u64) -> Self {
        Credit {
            last: (first, free),
            named: 0,
        }
    }

    /// Was this report, which names so many numbers beyond its pointer, overtaken? One with an earlier pointer was; so was one
    /// with the same pointer that had more room and less to name (CMT App. D, which goes by the room alone: there the
    /// application has always read what can be read).
    pub fn is_stale(&self, cumulative: u64, free: u64, named: u64) -> bool {
        let (last, room) = self.last;
        cumulative < last || cumulative == last && free > room && named < self.named
    }

    /// The last report named so many numbers.
    pub fn note_named(&mut self, named: u64) {
        self.named = named;
    }

    /// A report names `free` bytes. False: it has an earlier pointer, and nothing changes.
    pub fn update(&mut self, cumulative: u64, free: u64) -> bool {
        let is_news = cumulative >= self.last.0;
        if is_news {
            self.last = (cumulative, free);
        }
        is_news
    }

    /// Bytes that may leave while `in_flight` are on their way: what is retransmitted takes room again, what is taken for
    /// lost gives it back.
    pub fn room(&self, in_flight: u64) -> u64 {
        self.last.1.saturating_sub(in_flight)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_in_flight_takes_room_until_it_arrives_or_is_lost() {
        let mut credit = Credit::new(1, 10_000);
        assert_eq!(
            (credit.room(0), credit.room(4_000), credit.room(12_000)),
            (10_000, 6_000, 0)
        );
        assert!(credit.update(4, 9_000) && !credit.update(3, 50_000));
        assert_eq!(credit.room(1_000), 8_000);
    }

    /// The scenario of CMT App. D: the report that left first took the slower path.
    #[test]
    fn an_older_report_with_the_same_pointer_has_more_room_and_is_stale() {
        let mut credit = Credit::new(10, 65_536);
        assert!(!credit.is_stale(10, 65_536, 0) && !credit.is_stale(12, 65_536, 0));
        credit.update(12, 40_000);
        credit.note_named(20);
        assert!(credit.is_stale(12, 41_200, 19) && credit.is_stale(11, 1_000, 40));
        assert!(!credit.is_stale(12, 38_800, 21) && !credit.is_stale(13, 65_536, 0));
        assert!(
            !credit.is_stale(12, 65_536, 20),
            "the application has read meanwhile"
        );
        assert!(!credit.is_stale(12, 40_000, 19), "one was discarded for another");
    }
}
