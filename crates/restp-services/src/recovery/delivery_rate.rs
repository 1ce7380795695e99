//! How fast the network delivers: draft-cheng-iccrg-delivery-rate-estimation, with what its §3 calls C. and P. state.
//!
//! The draft stores five numbers with every packet. They change only when an acknowledgement comes or a flight begins,
//! so here one [`Snapshot`] serves all transmissions between two such moments, and a transmission finds its own by its
//! order. Outstanding segments cost nothing more, and an acknowledgement costs one search.

use restp_base::time::{Duration, Time};
use std::collections::VecDeque;

/// What one acknowledgement says about the rate of delivery.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RateSample {
    /// Bytes delivered since the newest segment acknowledged here was sent.
    pub delivered_bytes: u64,
    /// The longer of the time in which they were sent and the time in which they were acknowledged.
    pub interval: Duration,
    /// Bytes delivered in all when that segment was sent.
    pub delivered_before: u64,
    /// Bytes delivered in all now.
    pub delivered_total: u64,
    /// Bytes declared lost since that segment was sent.
    pub lost_bytes: u64,
    /// Bytes in flight just after it was sent.
    pub sent_in_flight_bytes: u64,
    /// The application did not fill the path then, so the rate may be its own.
    pub application_limited: bool,
}

/// A segment found lost by feedback.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LostSegment {
    /// When it left last.
    pub sent_at: Time,
    /// Its payload.
    pub bytes: u64,
    /// Bytes declared lost since it was sent, its own included.
    pub lost_bytes: u64,
    /// Bytes in flight just after it was sent.
    pub sent_in_flight_bytes: u64,
    /// Bytes delivered in all when it was sent.
    pub delivered_before: u64,
    /// Bytes delivered in all now.
    pub delivered_total: u64,
    /// See [`RateSample::application_limited`].
    pub application_limited: bool,
}

/// One transmission, as the scoreboard knows it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Transmission {
    /// Its position among all.
    pub order: u64,
    pub sent_at: Time,
    pub bytes: u64,
}

/// The state of the connection as transmissions from `from_order` on found it.
#[derive(Clone, Copy, Debug)]
struct Snapshot {
    from_order: u64,
    delivered: u64,
    delivered_at: Time,
    first_sent_at: Time,
    lost: u64,
    in_flight: u64,
    application_limited: bool,
}

/// Snapshots that are no matter, and whose memory an idle sender keeps.
const KEPT_CAPACITY: usize = 16;

/// The sampler of one lane.
#[derive(Clone, Debug)]
pub(super) struct DeliveryRate {
    /// Bytes delivered and declared lost so far; when the last were delivered (C.delivered, C.lost, C.delivered_time).
    delivered: u64,
    lost: u64,
    delivered_at: Time,
    /// When the newest delivered segment was sent, or the flight began (C.first_sent_time).
    first_sent_at: Time,
    /// While fewer bytes than this are delivered, samples may show the application (C.app_limited).
    application_limited_until: u64,
    snapshots: VecDeque<Snapshot>,
    /// The state changed after the last snapshot.
    changed: bool,
    /// The newest transmission that the acknowledgement at hand reports, while its snapshot is of use.
    newest: Option<Transmission>,
}

impl DeliveryRate {
    pub(super) fn new() -> Self {
        DeliveryRate {
            delivered: 0,
            lost: 0,
            delivered_at: Time::ZERO,
            first_sent_at: Time::ZERO,
            application_limited_until: 0,
            snapshots: VecDeque::new(),
            changed: true,
            newest: None,
        }
    }

    /// Transmission `order` leaves while `in_flight` bytes are out (draft §3.2).
    pub(super) fn on_sent(&mut self, now: Time, order: u64, in_flight: u64) {
        if in_flight == 0 {
            (self.first_sent_at, self.delivered_at, self.changed) = (now, now, true);
        }
        if self.changed {
            self.changed = false;
            self.snapshots.push_back(Snapshot {
                from_order: order,
                delivered: self.delivered,
                delivered_at: self.delivered_at,
                first_sent_at: self.first_sent_at,
                lost: self.lost,
                in_flight,
                application_limited: self.application_limited_until > 0,
            });
        }
    }

    /// Nothing but the application limits what is in flight now (draft §3.4).
    pub(super) fn on_application_limited(&mut self, in_flight: u64) {
        self.application_limited_until = (self.delivered + in_flight).max(1);
        self.changed = true;
    }

    /// `bytes` were delivered, by a transmission whose fate was open or by one unknown.
    pub(super) fn on_delivered(&mut self, bytes: u64, transmission: Option<Transmission>) {
        self.delivered += bytes;
        if let Some(one) = transmission
            && self.newest.is_none_or(|newest| newest.order < one.order)
        {
            self.newest = Some(one);
        }
    }

    /// An acknowledgement was booked; `oldest` is a bound of the orders still outstanding (draft §3.3).
    pub(super) fn sample(&mut self, now: Time, oldest: Option<u64>) -> Option<RateSample> {
        self.changed = true;
        let newest = self.newest.take();
        let sample = newest.and_then(|newest| {
            let found = *self.found_by(newest.order)?;
            self.delivered_at = now;
            self.first_sent_at = newest.sent_at;
            let sending = newest.sent_at.since(found.first_sent_at);
            Some(RateSample {
                delivered_bytes: self.delivered - found.delivered,
                interval: sending.max(now.since(found.delivered_at)),
                delivered_before: found.delivered,
                delivered_total: self.delivered,
                lost_bytes: self.lost - found.lost,
                sent_in_flight_bytes: found.in_flight_after(newest),
                application_limited: found.application_limited,
            })
        });
        if self.delivered > self.application_limited_until {
            self.application_limited_until = 0;
        }
        match oldest {
            Some(oldest) => {
                let of_use = |next: &Snapshot| next.from_order <= oldest;
                while self.snapshots.get(1).is_some_and(of_use) {
                    self.snapshots.pop_front();
                }
            }
            None if self.snapshots.capacity() > KEPT_CAPACITY => self.snapshots = VecDeque::new(),
            None => self.snapshots.clear(),
        }
        sample
    }

    /// A transmission was declared lost.
    pub(super) fn on_lost(&mut self, lost: Transmission) -> Option<LostSegment> {
        self.lost += lost.bytes;
        self.changed = true;
        let found = self.found_by(lost.order)?;
        Some(LostSegment {
            sent_at: lost.sent_at,
            bytes: lost.bytes,
            lost_bytes: self.lost - found.lost,
            sent_in_flight_bytes: found.in_flight_after(lost),
            delivered_before: found.delivered,
            delivered_total: self.delivered,
            application_limited: found.application_limited,
        })
    }

    /// True when most snapshots can serve none of `outstanding` segments: a segment that leaves again and again keeps
    /// what others found before it.
    pub(super) fn is_crowded(&self, outstanding: usize) -> bool {
        self.snapshots.len() > 2 * outstanding + KEPT_CAPACITY
    }

    /// Keeps what the transmissions of `orders` found, and no other snapshot.
    pub(super) fn keep_only(&mut self, orders: impl Iterator<Item = u64>) {
        let after = |order| self.snapshots.partition_point(|one| one.from_order <= order);
        let mut of_use: Vec<usize> = orders.filter_map(|order| after(order).checked_sub(1)).collect();
        of_use.sort_unstable();
        of_use.dedup();
        self.snapshots = of_use.into_iter().map(|index| self.snapshots[index]).collect();
    }

    /// Bytes of memory it takes.
    pub(super) fn memory(&self) -> usize {
        self.snapshots.capacity() * size_of::<Snapshot>()
    }

    /// What transmission `order` found.
    fn found_by(&self, order: u64) -> Option<&Snapshot> {
        let after = self.snapshots.partition_point(|one| one.from_order <= order);
        self.snapshots.get(after.checked_sub(1)?)
    }
}

impl Snapshot {
    /// Bytes in flight just after `one` left: what the first of this snapshot found, and everything since, taken to be
    /// as large as `one`.
    fn in_flight_after(&self, one: Transmission) -> u64 {
        self.in_flight
            .saturating_add((one.order + 1 - self.from_order).saturating_mul(one.bytes))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ack::AckReport;
    use crate::recovery::Scoreboard;

    fn at(ms: u64) -> Time {
        Time::ZERO + Duration::from_millis(ms)
    }
    fn pointer(board: &mut Scoreboard, ms: u64, number: u64) -> RateSample {
        let feedback = board.acknowledge(at(ms), &AckReport::pointer(number)).unwrap();
        feedback.rate.expect("a sample")
    }

    /// Ten segments of 1000 bytes, one per millisecond; the bottleneck lets one pass every two.
    #[test]
    fn the_slower_of_sending_and_acknowledging_is_the_rate() {
        let mut board = Scoreboard::new(0);
        for ms in 0..10 {
            board.on_sent(at(ms), 1000);
        }
        let first = pointer(&mut board, 100, 1);
        assert_eq!(
            (first.delivered_bytes, first.interval, first.sent_in_flight_bytes),
            (1000, Duration::from_millis(100), 1000)
        );
        for number in 2..=10 {
            pointer(&mut board, 98 + 2 * number, number);
        }
        // The next flight: its snapshot is of 118 ms, when all ten were delivered.
        for ms in 120..130 {
            board.on_sent(at(ms), 1000);
        }
        let mut last = first;
        for number in 11..=20 {
            last = pointer(&mut board, 200 + 2 * number, number);
        }
        assert_eq!((last.delivered_before, last.delivered_total), (10_000, 20_000));
        assert_eq!(
            (last.delivered_bytes, last.interval),
            (10_000, Duration::from_millis(120)),
            "an empty path begins to count when its first segment leaves, at 120"
        );
        assert_eq!(last.sent_in_flight_bytes, 10_000);
    }

    /// Acknowledgements that pile up and come at once show no more than what was sent in the time.
    #[test]
    fn compressed_acknowledgements_do_not_make_the_path_faster() {
        let mut board = Scoreboard::new(0);
        board.on_sent(at(0), 1000);
        pointer(&mut board, 10, 1);
        for ms in 0..40 {
            board.on_sent(at(20 + ms), 1000);
        }
        let half = pointer(&mut board, 61, 21);
        assert_eq!(
            (half.delivered_bytes, half.interval),
            (20_000, Duration::from_millis(41))
        );
        for ms in 0..20 {
            board.on_sent(at(61 + ms), 1000);
        }
        let rest = pointer(&mut board, 82, 61);
        assert_eq!(
            (rest.delivered_bytes, rest.interval),
            (40_000, Duration::from_millis(41)),
            "forty in the time from 39, when the newest known at 61 had left, to 80"
        );
    }

    #[test]
    fn what_is_sent_after_the_application_paused_is_marked_until_it_is_delivered() {
        let mut board = Scoreboard::new(0);
        board.on_sent(at(0), 1000);
        board.application_limits();
        board.on_sent(at(5), 1000);
        assert!(!pointer(&mut board, 50, 1).application_limited, "it left before");
        board.on_sent(at(50), 1000);
        assert!(pointer(&mut board, 55, 2).application_limited);
        board.on_sent(at(56), 1000);
        assert!(pointer(&mut board, 100, 3).application_limited);
        assert!(
            !pointer(&mut board, 106, 4).application_limited,
            "1000 bytes were out at the pause"
        );
    }

    #[test]
    fn a_lost_segment_says_what_was_in_flight_and_lost_with_it() {
        let mut board = Scoreboard::new(0);
        for _ in 0..8 {
            board.on_sent(at(0), 1000);
        }
        board.mark_lost(2);
        board.mark_lost(5);
        let said = |lost: &LostSegment| (lost.bytes, lost.lost_bytes, lost.sent_in_flight_bytes);
        let losses: Vec<_> = board.losses().iter().map(said).collect();
        assert_eq!(losses, [(1000, 1000, 3000), (1000, 2000, 6000)]);
        board.acknowledge(at(50), &AckReport::pointer(1)).unwrap();
        assert!(board.losses().is_empty(), "told once");
        board.on_retransmitted(at(60), 2);
        let sample = pointer(&mut board, 110, 3);
        assert_eq!(
            (sample.lost_bytes, sample.sent_in_flight_bytes),
            (0, 6000),
            "both were known to be lost when 2 left again"
        );
    }

    #[test]
    fn snapshots_live_as_long_as_what_they_describe() {
        let mut board = Scoreboard::new(0);
        for ms in 0..1000 {
            board.on_sent(at(ms), 1000);
            if ms >= 10 {
                pointer(&mut board, ms, ms - 9);
            }
        }
        let snapshots = board.memory();
        assert!(
            snapshots < 64 * size_of::<Snapshot>(),
            "{snapshots} bytes for ten segments"
        );
        pointer(&mut board, 1000, 1000);
        assert!(board.is_empty());
    }

    /// The first of two segments leaves again and again while the second changes: most of what was found is of no use.
    #[test]
    fn snapshots_are_bounded_by_what_is_outstanding() {
        let mut board = Scoreboard::new(0);
        board.on_sent(at(0), 1000);
        board.on_sent(at(0), 1000);
        for ms in 1..10_000 {
            board.mark_all_lost();
            board.on_retransmitted(at(ms), 0);
            let second = AckReport {
                received: std::iter::once(1..2).collect(),
                ..AckReport::pointer(0)
            };
            board.acknowledge(at(ms), &second).unwrap();
        }
        assert!(board.memory() < 64 * 100, "{} bytes", board.memory());
        let last = pointer(&mut board, 10_049, 2);
        assert_eq!((last.delivered_bytes, last.sent_in_flight_bytes), (1000, 1000));
        assert_eq!(
            last.interval,
            Duration::from_millis(50),
            "since its own transmission"
        );
    }
}
