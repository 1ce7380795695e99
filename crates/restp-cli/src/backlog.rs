//! What a connection has taken and not sent: nothing is dropped there for its age, nor overtaken, so little is to wait there.

use restp::FlowStats;
use std::collections::VecDeque;
use std::time::Duration;
use tokio::time::Instant;

/// Until one looks again whether the connection has sent what it holds.
pub const LOOK: Duration = Duration::from_millis(2);
/// So many segments have room at any rate: a path that has just begun is not to wait for a look. And so many are taken until one
/// looks again at least.
const LEAST_SEGMENTS: u64 = 8;

/// What one connection has taken.
#[derive(Default)]
pub struct Backlog {
    /// Bytes, so far.
    taken: u64,
    /// How many bytes those were up to each message that has not left, and when that was taken.
    unsent: VecDeque<(u64, Instant)>,
    /// Bytes that may be taken until one looks again.
    room: u64,
}

impl Backlog {
    /// Of a connection with these counters, which has sent all that it has taken.
    pub fn of(stats: &FlowStats) -> Self {
        Backlog {
            taken: sent_once(stats),
            ..Backlog::default()
        }
    }

    /// The connection has taken so many bytes more.
    pub fn take(&mut self, bytes: usize, now: Instant) {
        self.taken += bytes as u64;
        self.unsent.push_back((self.taken, now));
        self.room = self.room.saturating_sub(bytes as u64);
    }

    /// How many messages the connection, which has these counters, has taken and not sent.
    pub fn unsent(&mut self, stats: &FlowStats) -> usize {
        let sent = sent_once(stats);
        while self.unsent.pop_front_if(|(up_to, _)| *up_to <= sent).is_some() {}
        self.unsent.len()
    }

    /// Does the connection hold more that it has not sent than its windows let go within `span`, or something that it has held for
    /// longer? A path that has died has a window still, which the second shows. `segment` is the most bytes of one.
    pub fn is_enough(
        &mut self,
        stats: impl FnOnce() -> FlowStats,
        now: Instant,
        span: Duration,
        segment: usize,
    ) -> bool {
        if self.room == 0 {
            let stats = stats();
            let sent = sent_once(&stats);
            self.unsent(&stats);
            let is_old = self.unsent.front().is_some_and(|(_, since)| now - *since > span);
            let least = LEAST_SEGMENTS * segment as u64;
            let most = if is_old {
                least
            } else {
                leaves_within(&stats, span).max(least)
            };
            self.room = most.saturating_sub(self.taken.saturating_sub(sent)).min(least);
        }
        self.room == 0
    }
}

/// Bytes that have left, each counted once.
fn sent_once(stats: &FlowStats) -> u64 {
    stats
        .sent_payload_bytes
        .saturating_sub(stats.retransmitted_payload_bytes)
}

/// Bytes for which there is room in the windows of all paths within `span`; without end before a round trip is known.
fn leaves_within(stats: &FlowStats, span: Duration) -> u64 {
    let one = [(Some(stats.congestion_window_bytes), stats.srtt)];
    let paths = stats
        .paths
        .iter()
        .map(|path| (path.congestion_window_bytes, path.srtt));
    let rates = paths.chain(one.into_iter().filter(|_| stats.paths.is_empty()));
    let measured = rates.filter_map(|(window, rtt)| Some((window?, rtt?)));
    let bytes = measured
        .map(|(window, rtt)| u128::from(window) * span.as_nanos() / u128::from(rtt.as_nanos().max(1)))
        .reduce(|all, path| all + path);
    bytes.map_or(u64::MAX, |bytes| u64::try_from(bytes).unwrap_or(u64::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;
    use restp_base::time::Duration as Span;

    const SPAN: Duration = Duration::from_millis(10);

    /// A window of 100 000 bytes and a round trip of 50 ms: 20 000 bytes leave within 10 ms.
    fn sent(bytes: u64) -> FlowStats {
        FlowStats {
            congestion_window_bytes: 100_000,
            srtt: Some(Span::from_millis(50)),
            sent_payload_bytes: bytes,
            ..FlowStats::default()
        }
    }

    #[test]
    fn it_is_enough_when_what_has_not_left_takes_longer_than_the_span() {
        let now = Instant::now();
        let mut backlog = Backlog::of(&sent(5000));
        for taken in 0..20 {
            assert!(!backlog.is_enough(|| sent(5000), now, SPAN, 1000), "{taken}");
            backlog.take(1000, now);
        }
        assert!(backlog.is_enough(|| sent(5000), now, SPAN, 1000));
        assert!(!backlog.is_enough(|| sent(6000), now, SPAN, 1000));
        backlog.take(1000, now);
        assert!(backlog.is_enough(|| sent(6000), now, SPAN, 1000));
    }

    #[test]
    fn it_is_enough_when_the_first_of_it_has_waited_for_longer() {
        let start = Instant::now();
        let mut backlog = Backlog::of(&sent(500));
        (0..12).for_each(|number| backlog.take(1000, start + Duration::from_millis(number)));
        let mut is_enough = |bytes, ms| {
            backlog.room = 0;
            backlog.is_enough(|| sent(bytes), start + Duration::from_millis(ms), SPAN, 1000)
        };
        assert!(!is_enough(500, 10));
        assert!(is_enough(500, 11));
        assert!(!is_enough(1500, 11), "the next was taken a millisecond later");
        assert!(is_enough(1500, 12));
        assert!(!is_enough(12_500, 99));
    }

    #[test]
    fn eight_segments_have_room_at_any_rate() {
        let now = Instant::now();
        let mut backlog = Backlog::default();
        backlog.take(7999, now);
        assert!(!backlog.is_enough(|| sent(0), now + SPAN * 2, SPAN, 1000));
        backlog.take(1, now);
        assert!(backlog.is_enough(|| sent(0), now + SPAN * 2, Duration::ZERO, 1000));
    }

    #[test]
    fn one_looks_again_after_eight_segments() {
        let now = Instant::now();
        let mut backlog = Backlog::default();
        assert!(!backlog.is_enough(|| sent(0), now, SPAN, 1000));
        for _ in 0..7 {
            backlog.take(1000, now);
            assert!(!backlog.is_enough(|| panic!("there was room"), now, SPAN, 1000));
        }
        backlog.take(1000, now);
        let mut looked = false;
        backlog.is_enough(
            || {
                looked = true;
                sent(0)
            },
            now,
            SPAN,
            1000,
        );
        assert!(looked);
    }

    #[test]
    fn what_leaves_is_what_the_windows_let_go() {
        let mut stats = sent(0);
        assert_eq!(leaves_within(&stats, SPAN), 20_000);
        stats.srtt = None;
        assert_eq!(leaves_within(&stats, SPAN), u64::MAX);
    }

    #[test]
    fn what_was_sent_again_left_once() {
        let stats = FlowStats {
            sent_payload_bytes: 1200,
            retransmitted_payload_bytes: 200,
            ..FlowStats::default()
        };
        assert_eq!(sent_once(&stats), 1000);
    }
}
