//! ProbeRTT (draft-ietf-ccwg-bbr §5.3.4): when no short round trip was seen for long, the queue is emptied to see one.

use super::{Bbr, ONE, State};
use crate::view::PathView;
use restp_base::time::{Duration, Time};

/// How long little is in flight (ProbeRTTDuration), and how much, in thousandths of what the path holds.
const DURATION: Duration = Duration::from_millis(200);
const SHARE: u64 = 500;

/// A probe under way.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Probe {
    /// Once little is in flight.
    until: Option<Time>,
    round_done: bool,
    window_before: u64,
}

impl Bbr {
    pub(super) fn probe_rtt_window(&self) -> u64 {
        self.in_flight_at(SHARE).max(self.least_window())
    }

    pub(super) fn check_probe_rtt(&mut self, view: &PathView<'_>) {
        if self.state != State::ProbeRtt && self.round_trip.stale && !self.restarting {
            self.state = State::ProbeRtt;
            self.probe_rtt = Probe {
                window_before: self.window,
                ..Probe::default()
            };
            self.stop_probing();
            self.rounds.restart(self.delivered);
        }
        if self.state != State::ProbeRtt {
            return;
        }
        if self.probe_rtt.until.is_some() {
            self.probe_rtt.round_done |= self.rounds.started;
            if self.probe_rtt.round_done {
                self.check_probe_rtt_done(view.now);
            }
        } else if view.in_flight_bytes <= self.probe_rtt_window() {
            self.probe_rtt.until = Some(view.now + DURATION);
            self.rounds.restart(self.delivered);
        }
    }

    pub(super) fn check_probe_rtt_done(&mut self, now: Time) {
        if self.probe_rtt.until.is_none_or(|until| now <= until) {
            return;
        }
        self.round_trip.probed(now);
        self.window = self.window.max(self.probe_rtt.window_before);
        self.lower.lift();
        if self.pipe.was_full {
            self.start_down(now);
            self.start_cruise();
        } else {
            self.state = State::Startup;
        }
    }
}

const _: () = assert!(SHARE < ONE, "a probe has to empty the queue");
