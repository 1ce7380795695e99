//! What a connection has taken and not sent: nothing is dropped there for its age, nor overtaken, so little is to wait there.

use restp::FlowStats;
use std::time::Duration;

/// Until one looks again whether the connection has sent what it holds.
pub const LOOK: Duration = Duration::from_millis(2);
/// So many segments have room at any rate: a path that has just begun is not to wait for a look.
const LEAST_SEGMENTS: u64 = 8;

/// What one connection has taken.
#[derive(Default)]
pub struct Backlog {
    /// Bytes, so far.
    taken: u64,
    /// Bytes that may be taken until one looks again.
    room: u64,
}

impl Backlog {
    /// Of a connection with these counters, which has sent all that it has taken.
    pub fn of(stats: &FlowStats) -> Self {
        Backlog {
            taken: sent_once(stats),
            room: 0,
        }
    }

    /// The connection has taken so many bytes more.
    pub fn take(&mut self, bytes: usize) {
        self.taken += bytes as u64;
        self.room = self.room.saturating_sub(bytes as u64);
    }

    /// Does the connection hold more that it has not sent than leaves within `span`? `segment` is the most bytes of one.
    pub fn is_enough(&mut self, stats: impl FnOnce() -> FlowStats, span: Duration, segment: usize) -> bool {
        if self.room == 0 {
            let stats = stats();
            let most = leaves_within(&stats, span).max(LEAST_SEGMENTS * segment as u64);
            let unsent = self.taken.saturating_sub(sent_once(&stats));
            self.room = most.saturating_sub(unsent);
        }
        self.room == 0
    }
}

/// Bytes that have left, each counted once.
fn sent_once(stats: &FlowStats) -> u64 {
    stats
        .sent_payload_bytes
        .saturating_sub(stats.repeated_payload_bytes)
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
    fn it_is_enough_when_what_was_taken_and_has_not_left_takes_longer_than_the_span() {
        let mut backlog = Backlog::of(&sent(5000));
        let span = Duration::from_millis(10);
        assert!(!backlog.is_enough(|| sent(5000), span, 1000));
        for _ in 0..19 {
            backlog.take(1000);
            assert!(!backlog.is_enough(|| panic!("there was room"), span, 1000));
        }
        backlog.take(1000);
        assert!(backlog.is_enough(|| sent(5000), span, 1000));
        assert!(!backlog.is_enough(|| sent(6000), span, 1000));
        backlog.take(1000);
        assert!(backlog.is_enough(|| sent(6000), span, 1000));
    }

    #[test]
    fn eight_segments_have_room_at_any_rate() {
        let mut backlog = Backlog::default();
        backlog.take(7999);
        assert!(!backlog.is_enough(|| sent(0), Duration::ZERO, 1000));
        backlog.take(1);
        assert!(backlog.is_enough(|| sent(0), Duration::ZERO, 1000));
    }

    #[test]
    fn what_leaves_is_the_sum_of_what_the_paths_take() {
        let mut stats = FlowStats {
            congestion_window_bytes: 100_000,
            ..FlowStats::default()
        };
        let within = |stats: &FlowStats| leaves_within(stats, Duration::from_millis(10));
        assert_eq!(within(&stats), u64::MAX);
        stats.srtt = Some(Span::from_millis(50));
        assert_eq!(within(&stats), 20_000);
    }

    #[test]
    fn what_was_sent_again_left_once() {
        let stats = FlowStats {
            sent_payload_bytes: 1200,
            repeated_payload_bytes: 200,
            ..FlowStats::default()
        };
        assert_eq!(sent_once(&stats), 1000);
    }
}
