//! May a segment leave now (ResTP §3.5.4, §3.5.6)? The peer's credit, the caution after a timeout, and pacing. The congestion
//! window itself is the controller's.

use super::Grant;
use crate::ack::AckReport;
use crate::congestion::Congestion;
use crate::flow_control::{Credit, SendWindow};
use restp_base::time::Time;

use super::Sender;

/// Encoded packets take the place of data in windows of at least this many segments: so much anybody may put into the network
/// at once (RFC 3390), and in a smaller window one encoded packet would displace most of the data that it protects.
const LEAST_CHARGED: u64 = 4;

/// What the peer's window counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CreditUnit {
    /// Segments: a number is a unit (ResTP §3.1.3).
    Segments,
    /// Bytes: a segment takes as many units, and the FIN one (RFC 9293 §3.4).
    Bytes,
    /// Free bytes of the peer's buffer, of which what is in flight takes some (RFC 9260 §6.2.1).
    InFlight,
}

/// How far a congestion window is filled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Filling {
    /// With segments that fit as a whole.
    Whole,
    /// As long as it is not full, so that the last segment may overshoot, and by at most so many segments after each report
    /// (RFC 9260 §6.1, Max.Burst).
    Overshoot {
        /// Segments.
        burst: u64,
    },
}

impl CreditUnit {
    /// Units that a segment of `bytes` takes; the FIN has none of payload.
    pub(super) fn taken_by(self, bytes: u64) -> u64 {
        match self {
            CreditUnit::Segments => 1,
            CreditUnit::Bytes | CreditUnit::InFlight => bytes.max(1),
        }
    }
}

/// How much the peer takes.
#[derive(Debug)]
pub(super) struct Admission {
    unit: CreditUnit,
    credit: SendWindow,
    /// The same, where it counts what is in flight.
    free: Credit,
    /// Credit is this sender's question. It is not where paths share it, where nobody gives any, and until the peer is heard.
    credit_binds: bool,
    /// The first unit of the next new segment.
    next_unit: u64,
}

impl Admission {
    pub(super) fn new(first_unit: u64, unit: CreditUnit) -> Self {
        Admission {
            unit,
            credit: SendWindow::initial(first_unit, 0),
            free: Credit::new(first_unit, 0),
            credit_binds: true,
            next_unit: first_unit,
        }
    }

    /// Does the peer's credit cover a new segment of `bytes` while so many are `in_flight`? What does not fit waits instead of being cut (RFC 9293
    /// §3.8.6.2.1, silly windows).
    pub(super) fn covers(&self, bytes: u64, in_flight: u64) -> bool {
        let taken = self.unit.taken_by(bytes);
        match self.unit {
            _ if !self.credit_binds => true,
            CreditUnit::InFlight => self.free.room(in_flight) >= taken,
            CreditUnit::Segments | CreditUnit::Bytes => self.credit.allows(self.next_unit + taken - 1),
        }
    }
    /// Does it cover the segment `number`, which has been sent? Early data may turn out to be more than the peer takes
    /// (RFC 9293 §3.8.6); bytes once granted stay granted.
    pub(super) fn still_covers(&self, number: u64) -> bool {
        !self.credit_binds || self.unit != CreditUnit::Segments || self.credit.allows(number)
    }
    /// True when the unit `at` is within the credit.
    pub(super) fn allows(&self, at: u64) -> bool {
        match self.unit {
            CreditUnit::InFlight => self.free.room(0) > 0,
            CreditUnit::Segments | CreditUnit::Bytes => self.credit.allows(at),
        }
    }
    /// Free bytes of the peer's buffer as it said last.
    pub(super) fn free_credit(&self) -> u64 {
        self.free.room(0)
    }
    /// Was a `report` with this grant overtaken by a later one, as far as that tells?
    pub(super) fn is_stale(&self, grant: Grant, report: &AckReport) -> bool {
        let (at, units) = (grant.at, grant.units);
        self.unit == CreditUnit::InFlight && self.free.is_stale(at, units, report.named())
    }
    /// The report that granted last.
    pub(super) fn note_named(&mut self, report: &AckReport) {
        if self.unit == CreditUnit::InFlight {
            self.free.note_named(report.named());
        }
    }
    /// First unit that the peer does not take, as it said last.
    pub(super) fn edge(&self) -> u64 {
        self.credit.edge()
    }
    pub(super) fn credit_binds(&self) -> bool {
        self.credit_binds
    }
    pub(super) fn bind_credit(&mut self, binds: bool) {
        self.credit_binds = binds;
    }
    /// The peer takes `units` from `at` on. False: it said so before it said something newer.
    pub(super) fn grant(&mut self, at: u64, units: u64) -> bool {
        match self.unit {
            CreditUnit::InFlight => self.free.update(at, units),
            CreditUnit::Segments | CreditUnit::Bytes => self.credit.update(at, units),
        }
    }
    /// Forgets what was granted: from `at` on the peer takes `units`.
    pub(super) fn grant_afresh(&mut self, at: u64, units: u64) {
        self.credit = SendWindow::initial(at, units);
        self.free = Credit::new(at, units);
    }

    /// A new segment of `bytes` leaves.
    pub(super) fn on_sent(&mut self, bytes: u64) {
        self.next_unit += self.unit.taken_by(bytes);
    }
}

impl Sender {
    /// The peer takes `units` of credit from `at` on.
    pub fn grant(&mut self, at: u64, units: u64) {
        self.admission.grant(at, units);
    }
    /// Does the peer's credit hold back new data here? Not where paths share it, and not where nobody gives any.
    pub fn bind_credit(&mut self, binds: bool) {
        self.admission.bind_credit(binds);
    }
    /// Whatever was granted, from `at` on the peer takes `units`.
    pub fn grant_afresh(&mut self, at: u64, units: u64) {
        self.lateness.begin(units);
        self.admission.grant_afresh(at, units);
    }

    /// Do window, pacing and the caution after a timeout allow `bytes` more?
    pub fn has_room(&mut self, now: Time, bytes: u64) -> bool {
        let window = self.lane.controller.window_bytes();
        let window = self.lane.reduction.window(window);
        let before = self.board.in_flight_bytes();
        let in_flight = before + bytes;
        let fits = match self.parameters.filling {
            Filling::Whole => {
                in_flight <= window && in_flight + self.charged_redundancy(now, window) <= window
            }
            Filling::Overshoot { .. } => before < self.lane.gate.within_burst(window),
        };
        if self.board.in_flight() > 0 && (self.lane.gate.is_cautious() || !fits) {
            self.lane.pacer.release();
            return false;
        }
        if !self.parameters.paces || self.lane.pacer.allows(now) {
            return true;
        }
        if let Some(rate) = self.lane.controller.pacing() {
            let segment = u64::from(self.parameters.segment_bytes);
            let rtt = self.lane.rtt.smoothed().unwrap_or_default();
            self.lane.pacer.catch_up(now, segment, rate, rtt);
        }
        self.lane.pacer.hold();
        self.lane.gate.pace_until(self.lane.pacer.next_at());
        false
    }

    /// A report has come, or a timeout: so much may leave until the next one.
    pub(super) fn limit_burst(&mut self) {
        if let Filling::Overshoot { burst } = self.parameters.filling {
            let segment = u64::from(self.lane.mtu.segment_bytes());
            let edge = self.board.in_flight_bytes() + burst * segment;
            self.lane.gate.set_burst_edge(edge);
        }
    }

    /// Does the peer's credit cover a new segment of `bytes`?
    pub(super) fn has_credit(&self, bytes: u64) -> bool {
        self.admission.covers(bytes, self.board.total_in_flight_bytes())
    }

    /// When [`has_room`](Sender::has_room), which said no, may say yes although nothing has happened since: pacing waits for
    /// time only, and encoded packets leave the network at any time.
    pub fn room_comes_at(&self) -> Time {
        if self.encoder.is_some() {
            return Time::ZERO;
        }
        self.pacing_deadline().unwrap_or(Time::MAX)
    }

    /// Bytes of encoded packets in the network that take the place of data in the `window`. While losses are repaired none
    /// do: that window has been cut, and what leaves under it brings the acknowledgements that repair needs.
    fn charged_redundancy(&mut self, now: Time, window: u64) -> u64 {
        // Asked in any case: what has left the network is forgotten then.
        let in_flight = self
            .lane
            .redundancy
            .in_flight_bytes(now, self.lane.rtt.smoothed());
        let least = LEAST_CHARGED * u64::from(self.parameters.segment_bytes);
        if window < least || self.lane.recovery.is_active() {
            0
        } else {
            in_flight
        }
    }

    /// Is the flight limit kept? Without congestion control nothing shrinks the flight when losses pile up faster
    /// than one repair per round trip, so duplicates do not make room for new data: everything not acknowledged
    /// counts (OP-50). Blocks say exactly what has left; then the pipe counts, which has its own test.
    pub(super) fn keeps_flight_limit(&self, bytes: u64) -> bool {
        if !self.parameters.limits_outstanding {
            return true;
        }
        let outstanding = self.board.outstanding_bytes();
        outstanding == 0 || outstanding + bytes <= self.lane.controller.window_bytes()
    }

    /// The window is not in use, because nobody writes or the peer takes no more (RFC 7661 §4).
    pub(super) fn leaves_window_unused(&self, in_flight_bytes: u64) -> bool {
        if self.parameters.filling != Filling::Whole {
            return in_flight_bytes < self.lane.controller.window_bytes();
        }
        let segment = u64::from(self.lane.mtu.segment_bytes());
        let starves = self.lane.gate.is_passed_over()
            || self.queue.is_empty()
            || self.holds_new()
            || !self.has_credit(self.next_bytes());
        in_flight_bytes + segment <= self.lane.controller.window_bytes()
            && self.board.lost() == 0
            && starves
            && !self.lane.gate.has_backlog()
    }
}
