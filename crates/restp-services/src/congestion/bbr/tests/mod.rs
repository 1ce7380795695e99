//! The state machine against the draft's numbers, on a path of 8 Mbit/s and 50 ms: 50 segments of 1000 bytes.

mod bounds;
mod cycle;
mod draft;
mod startup;

use super::*;
use crate::congestion::conformance::path;

const SEGMENT: u64 = 1000;
const RTT: Duration = Duration::from_millis(50);
const BDP: u64 = 50 * SEGMENT;
const LINK: u64 = 8_000_000;
/// One acknowledgement in a round is aggregation of a whole one (§5.5.9).
const EXTRA: u64 = BDP;

/// A controller and what it was told last.
struct Life {
    bbr: Bbr,
    now: Time,
    rtt: Duration,
    delivered: u64,
    in_flight: u64,
    in_recovery: bool,
    application_limited: bool,
    /// Acknowledgements of a round.
    acks: u64,
}

impl Life {
    fn begin() -> Self {
        Life::with(BbrParams::default())
    }

    fn with(params: BbrParams) -> Self {
        Life {
            bbr: Bbr::new(&params, SEGMENT),
            now: Time::ZERO,
            rtt: RTT,
            delivered: 0,
            in_flight: 10 * SEGMENT,
            in_recovery: false,
            application_limited: false,
            acks: 1,
        }
    }

    /// In Cruise, with a bandwidth of [`LINK`].
    fn cruising() -> Self {
        Life::cruising_with(BbrParams::default())
    }

    fn cruising_with(params: BbrParams) -> Self {
        let mut life = Life::with(params);
        life.full();
        life.in_flight = BDP;
        life.round(LINK);
        life.round(LINK);
        life.round(LINK);
        assert_eq!(life.state(), "probe-bw-cruise");
        life
    }

    /// Rounds that double the rate up to [`LINK`], and three more that tell that the pipe is full.
    fn full(&mut self) {
        for speed in [1, 2, 4, 8, 8, 8, 8] {
            self.in_flight = 2 * BDP;
            self.round(speed * 1_000_000);
        }
        assert_eq!(self.state(), "drain");
    }

    fn probing(&mut self) {
        for _ in 0..70 {
            self.round(LINK);
            if self.state() == "probe-bw-up" {
                return;
            }
        }
        panic!("never in Up");
    }

    fn view(&self) -> PathView<'static> {
        PathView {
            now: self.now,
            in_flight_bytes: self.in_flight,
            smoothed_rtt: Some(self.rtt),
            in_recovery: self.in_recovery,
            application_limited: self.application_limited,
            ..path(SEGMENT)
        }
    }

    fn tell(&mut self, event: CongestionEvent) {
        let view = self.view();
        self.bbr.on(&event, &view);
    }

    /// A round trip whose acknowledgements show `speed`.
    fn round(&mut self, speed: u64) {
        (0..self.acks).for_each(|_| self.acknowledge(speed));
    }

    fn acknowledge(&mut self, speed: u64) {
        let round = Rate::from_bps(speed).bytes_in(self.rtt);
        let bytes = round / self.acks;
        self.now += self.rtt / self.acks;
        self.delivered += bytes;
        self.tell(CongestionEvent::Acked {
            bytes,
            rtt: Some(self.rtt),
            rate: Some(RateSample {
                delivered_bytes: round,
                interval: self.rtt,
                delivered_before: self.delivered.saturating_sub(round),
                delivered_total: self.delivered,
                lost_bytes: 0,
                sent_in_flight_bytes: self.in_flight,
                application_limited: self.application_limited,
            }),
        });
    }

    /// One segment of the first window is acknowledged, `apart` from the last.
    fn train(&mut self, apart: Duration) {
        self.now += apart;
        self.delivered += SEGMENT;
        self.tell(CongestionEvent::Acked {
            bytes: SEGMENT,
            rtt: Some(self.rtt),
            rate: Some(RateSample {
                delivered_bytes: self.delivered,
                interval: self.rtt,
                delivered_before: 0,
                delivered_total: self.delivered,
                lost_bytes: 0,
                sent_in_flight_bytes: self.in_flight,
                application_limited: false,
            }),
        });
    }

    /// `count` segments of those that left a round trip ago were lost.
    fn lose(&mut self, count: u64) {
        for lost in 1..=count {
            self.tell(CongestionEvent::SegmentLost(LostSegment {
                sent_at: Time::ZERO,
                bytes: SEGMENT,
                lost_bytes: lost * SEGMENT,
                sent_in_flight_bytes: self.in_flight,
                delivered_before: self.delivered,
                delivered_total: self.delivered,
                application_limited: false,
            }));
        }
    }

    /// A queue of half a round trip for as long as it takes to be seen.
    fn queue(&mut self) {
        self.rtt = RTT * 3 / 2;
        self.round(LINK);
        self.round(LINK);
    }

    fn state(&self) -> &'static str {
        self.bbr.snapshot().state
    }
    fn pacing(&self) -> u64 {
        self.bbr.pacing().map_or(0, |rate| rate.as_bps())
    }
    fn window(&self) -> u64 {
        self.bbr.window_bytes()
    }
    fn upper(&self) -> Option<u64> {
        self.bbr.snapshot().threshold_bytes
    }
}

/// `gain` thousandths of the link's rate: without a queue nothing is taken off (§5.6.2).
fn paced(gain: u64) -> u64 {
    LINK * gain / 1000
}
