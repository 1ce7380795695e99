//! What a transfer looks like while it runs, by regular looks at its counters: progress for eyes, and outages of
//! the path.

use restp::clock::Clock;
use restp::{Connection, FlowStats, PathEvent, PathState, PathStats};
use restp_base::time::{Duration, Time};
use std::sync::atomic::{AtomicU64, Ordering};

/// Between two looks.
const INTERVAL: Duration = Duration::from_millis(200);

/// A path counts as down after this long without a packet from the peer although segments are outstanding: five
/// times the smallest retransmission timeout (OP-58), so that an unlucky loss is no outage.
const DOWN_AFTER: Duration = Duration::from_secs(1);

/// Counters that both a transfer and its observer use.
#[derive(Debug)]
pub struct Watch {
    bytes: AtomicU64,
    resumed: AtomicU64,
    down_events: AtomicU64,
    clock: Clock,
    /// When data last arrived, and the longest time between two arrivals, in nanoseconds; zero before there are any.
    arrived_at: AtomicU64,
    longest_stall: AtomicU64,
}

impl Default for Watch {
    fn default() -> Self {
        Watch {
            bytes: AtomicU64::new(0),
            resumed: AtomicU64::new(0),
            down_events: AtomicU64::new(0),
            clock: Clock::start(),
            arrived_at: AtomicU64::new(0),
            longest_stall: AtomicU64::new(0),
        }
    }
}

/// One look.
#[derive(Clone, Debug, PartialEq)]
pub struct Look {
    /// Data bytes handed to or taken from the connection.
    pub bytes: u64,
    /// The path is down since.
    pub down_for: Option<Duration>,
    /// Each path by itself, when there are several.
    pub paths: Vec<PathStats>,
}

/// What became of a path, and when since the transfer began.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct News {
    /// What.
    pub event: PathEvent,
    /// When.
    pub seconds: f64,
}

impl Watch {
    /// `bytes` more have been handed to the connection.
    pub fn add(&self, bytes: u64) {
        self.bytes.fetch_add(bytes, Ordering::Relaxed);
    }

    /// `bytes` of them were there already and have not been sent.
    pub fn resume(&self, bytes: u64) {
        self.resumed.fetch_add(bytes, Ordering::Relaxed);
    }

    /// Bytes so far that have not been sent.
    pub fn resumed_bytes(&self) -> u64 {
        self.resumed.load(Ordering::Relaxed)
    }

    /// `bytes` more have come out of the connection, just now.
    pub fn take_in(&self, bytes: u64) {
        self.add(bytes);
        let now = self.clock.now().since(Time::ZERO).as_nanos();
        match self.arrived_at.swap(now, Ordering::Relaxed) {
            0 => {}
            before => {
                self.longest_stall
                    .fetch_max(now.saturating_sub(before), Ordering::Relaxed);
            }
        }
    }

    /// The longest time between two arrivals; none where nothing arrives.
    pub fn longest_stall(&self) -> Option<Duration> {
        let stall = Duration::from_nanos(self.longest_stall.load(Ordering::Relaxed));
        (self.arrived_at.load(Ordering::Relaxed) > 0).then_some(stall)
    }

    /// Data bytes so far.
    pub fn bytes(&self) -> u64 {
        self.bytes.load(Ordering::Relaxed)
    }

    /// How often the path went down.
    pub fn down_events(&self) -> u64 {
        self.down_events.load(Ordering::Relaxed)
    }

    /// Looks until it is dropped; hears of paths as soon as there is news.
    pub async fn run(
        &self,
        connection: &Connection,
        each: impl Fn(Look),
        news: impl Fn(News),
    ) -> std::convert::Infallible {
        let mut ticks = tokio::time::interval(std::time::Duration::from_nanos(INTERVAL.as_nanos()));
        ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        let mut silence = Silence::default();
        loop {
            tokio::select! {
                Some(event) = connection.path_event() => news(News {
                    event,
                    seconds: self.clock.now().since(Time::ZERO).as_secs_f64(),
                }),
                _ = ticks.tick() => {
                    let stats = connection.stats();
                    let down_for = silence.look(&stats);
                    if down_for == Some(DOWN_AFTER) {
                        self.down_events.fetch_add(1, Ordering::Relaxed);
                    }
                    each(Look {
                        bytes: self.bytes(),
                        down_for,
                        paths: if stats.paths.len() > 1 { stats.paths } else { Vec::new() },
                    });
                }
            }
        }
    }
}

impl News {
    /// The state as results spell it.
    pub fn state(&self) -> &'static str {
        match self.event.state {
            PathState::Up => "up",
            PathState::Suspect => "suspect",
            PathState::Down => "down",
            PathState::Closed => "closed",
        }
    }
}

/// How long nothing has come back.
#[derive(Debug, Default)]
struct Silence {
    heard: u64,
    lasts: Duration,
}

impl Silence {
    /// Takes a look; how long the path has been down, if it is. Passes [`DOWN_AFTER`] once per outage.
    fn look(&mut self, stats: &FlowStats) -> Option<Duration> {
        let waits = stats.in_flight_segments > 0 && stats.received_packets == self.heard;
        self.heard = stats.received_packets;
        self.lasts = if waits {
            self.lasts + INTERVAL
        } else {
            Duration::ZERO
        };
        (self.lasts >= DOWN_AFTER).then_some(self.lasts)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stats(received_packets: u64, in_flight_segments: u64) -> FlowStats {
        FlowStats {
            received_packets,
            in_flight_segments,
            ..FlowStats::default()
        }
    }

    #[test]
    fn an_outage_is_silence_while_an_answer_is_due() {
        let mut silence = Silence::default();
        assert_eq!(silence.look(&stats(5, 3)), None);
        let looks: Vec<_> = (0..6).map(|_| silence.look(&stats(5, 3))).collect();
        assert_eq!(looks[..4], [None; 4]);
        assert_eq!(looks[4], Some(DOWN_AFTER));
        assert_eq!(looks[5], Some(Duration::from_millis(1200)));
        assert_eq!(silence.look(&stats(6, 3)), None);
    }

    #[test]
    fn an_idle_path_is_not_down() {
        let mut silence = Silence::default();
        assert!((0..20).all(|_| silence.look(&stats(5, 0)).is_none()));
    }
}
