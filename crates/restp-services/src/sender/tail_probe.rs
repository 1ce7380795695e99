//! Tail loss probes (RFC 8985 §7): when nothing comes back for two round trips, the last segment, or a new one, leaves
//! once more, so that its acknowledgement shows what is missing. A lost tail costs two round trips then, and no timeout.

use restp_base::time::{Duration, Time};
use std::ops::Range;

/// What the peer may keep an acknowledgement for when one segment is out (WCDelAckT; Linux adds its least timeout).
const DELAYED: Duration = Duration::from_millis(200);
/// What timers and ends add otherwise (Linux: TCP_TIMEOUT_MIN).
const SLACK: Duration = Duration::from_millis(2);

/// The probe of one path.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct TailProbe {
    /// When one is due, unless something comes back.
    at: Option<Time>,
    /// One leaves as soon as it may.
    due: bool,
    asked: Option<Asked>,
}

/// A probe that is out.
#[derive(Clone, Copy, Debug)]
struct Asked {
    /// Everything below this number had been sent then (TLP.end_seq).
    end: u64,
    /// It was a segment that had been sent before.
    again: bool,
}

impl TailProbe {
    /// Something left, or came back, and `segments` are in flight: one is due two round trips from now, and not after
    /// `timeout_at` (RFC 8985 §7.2).
    pub(super) fn arm(
        &mut self,
        now: Time,
        smoothed_rtt: Option<Duration>,
        segments: u64,
        timeout_at: Option<Time>,
    ) {
        self.disarm();
        if self.asked.is_some() || segments == 0 {
            return;
        }
        let wait = match smoothed_rtt {
            Some(rtt) => rtt.scaled(2, 1) + if segments == 1 { DELAYED } else { SLACK },
            None => Duration::from_secs(1),
        };
        let at = now + wait;
        self.at = Some(timeout_at.map_or(at, |timeout| timeout.min(at)));
    }

    /// There is nothing to ask about, or it is being repaired. A probe that has not left yet need not leave.
    pub(super) fn disarm(&mut self) {
        (self.at, self.due) = (None, false);
    }
    /// What was asked is answered otherwise: by a loss episode or a timeout.
    pub(super) fn forget(&mut self) {
        *self = TailProbe::default();
    }
    pub(super) fn deadline(&self) -> Option<Time> {
        self.at
    }

    /// True when a probe has to leave now.
    pub(super) fn falls_due(&mut self, now: Time) -> bool {
        let due = self.at.take_if(|at| *at <= now).is_some();
        self.due |= due;
        due
    }
    pub(super) fn take_due(&mut self) -> bool {
        std::mem::take(&mut self.due)
    }

    /// It left: a segment sent `again`, or a new one. Everything below `end` has been sent.
    pub(super) fn on_sent(&mut self, end: u64, again: bool) {
        self.asked = Some(Asked { end, again });
    }

    /// The peer names these segments as arrived twice. If that asked with is one of them, nothing was lost (RFC 8985 §7.4.2,
    /// case 1), and reports need not repeat the pointer to tell.
    pub(super) fn on_duplicates(&mut self, numbers: &Range<u64>) {
        let was_needless = |asked: &mut Asked| asked.again && numbers.contains(&(asked.end - 1));
        self.asked.take_if(was_needless);
    }

    /// The peer's pointer is `pointer`, and the report is a `bare_duplicate` of an earlier one. True when it shows that the
    /// segment asked with was lost and repaired by the probe (RFC 8985 §7.4.2): a loss that nobody has answered. When it had
    /// arrived, the probe's acknowledgement repeats the pointer.
    pub(super) fn repaired(&mut self, pointer: u64, bare_duplicate: bool) -> bool {
        let Some(asked) = self.asked.filter(|asked| pointer >= asked.end) else {
            return false;
        };
        let both_arrived = pointer == asked.end && bare_duplicate;
        if asked.again && pointer == asked.end && !both_arrived {
            return false; // the next report tells
        }
        self.asked = None;
        asked.again && !both_arrived
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ms(n: u64) -> Time {
        Time::ZERO + Duration::from_millis(n)
    }
    const RTT: Option<Duration> = Some(Duration::from_millis(100));

    #[test]
    fn it_waits_two_round_trips_and_for_a_late_acknowledgement_of_one_segment() {
        let at = |rtt, segments, timeout| {
            let mut probe = TailProbe::default();
            probe.arm(ms(0), rtt, segments, timeout);
            probe.deadline()
        };
        assert_eq!(at(RTT, 2, None), Some(ms(202)));
        assert_eq!(at(RTT, 1, None), Some(ms(400)));
        assert_eq!(at(None, 1, None), Some(ms(1000)));
        assert_eq!(at(RTT, 1, Some(ms(300))), Some(ms(300)), "not after the timeout");
        assert_eq!(at(RTT, 0, None), None);
    }

    #[test]
    fn one_probe_is_out_at_a_time() {
        let mut probe = TailProbe::default();
        probe.arm(ms(0), RTT, 2, None);
        assert!(!probe.falls_due(ms(201)));
        assert!(probe.falls_due(ms(202)) && probe.take_due() && !probe.take_due());
        probe.on_sent(10, true);
        probe.arm(ms(210), RTT, 2, None);
        assert_eq!(probe.deadline(), None);
        assert!(probe.repaired(11, false));
        probe.arm(ms(220), RTT, 2, None);
        assert!(probe.deadline().is_some());
    }

    #[test]
    fn a_probe_that_repaired_a_loss_is_told_from_one_that_was_needless() {
        let asked = |again| {
            let mut probe = TailProbe::default();
            probe.on_sent(10, again);
            probe
        };
        let mut lost = asked(true);
        assert!(!lost.repaired(9, true) && !lost.repaired(10, false));
        assert!(lost.repaired(12, false), "no second acknowledgement of 10 came");
        let mut arrived = asked(true);
        assert!(!arrived.repaired(10, false));
        assert!(!arrived.repaired(10, true) && !arrived.repaired(12, false));
        let mut named = asked(true);
        named.on_duplicates(&(8..10));
        assert!(!named.repaired(10, false) && !named.repaired(12, false));
        let mut other = asked(true);
        other.on_duplicates(&(7..9));
        assert!(other.repaired(12, false), "another one had arrived");
        let mut new = asked(false);
        assert!(!new.repaired(10, false) && !new.repaired(12, false));
    }
}
