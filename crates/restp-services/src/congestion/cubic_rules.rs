//! Which CUBIC: that of RFC 9438, or that of `tcp_cubic.c` where the two differ.

use super::window::Window;
use crate::view::PathView;
use restp_base::time::Duration;

/// A part of a whole.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Share {
    part: u64,
    whole: u64,
}

impl Share {
    pub const fn new(part: u64, whole: u64) -> Self {
        Share { part, whole }
    }

    const fn of(self, amount: u64) -> u64 {
        amount / self.whole * self.part + amount % self.whole * self.part / self.whole
    }

    /// The mean of this and one.
    const fn halfway(self) -> Share {
        Share::new(self.part + self.whole, 2 * self.whole)
    }
}

/// Which CUBIC.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CubicRules {
    /// RFC 9438 to the letter.
    Rfc9438,
    /// As Linux: until the first loss, or after a timeout, a window grows by a twentieth a round trip at least; Reno's α stays
    /// below one, and its window is a target like the curve, which looks ahead by the shortest round trip; HyStart may end each
    /// slow start; a reduction, for a timeout or a mark too, is of the window in whole segments and leaves two at least, a timer
    /// that runs out in recovery is part of it, and one that was for nothing gives only the window back; silence halves the window
    /// for each timeout, and the threshold becomes three quarters of it at least.
    Linux,
}

impl CubicRules {
    /// All with their names.
    pub const ALL: [(&'static str, CubicRules); 2] =
        [("rfc9438", CubicRules::Rfc9438), ("linux", CubicRules::Linux)];

    /// β, what a loss leaves (RFC 9438 §4.6; `beta` of Linux).
    pub(super) const fn beta(self) -> Share {
        match self {
            CubicRules::Rfc9438 => Share::new(700, 1000),
            CubicRules::Linux => Share::new(717, 1024),
        }
    }

    /// The window that is reduced, and what is left of it.
    pub(super) fn reduced(self, window: u64, in_flight: u64, kept: Share, segment: u64) -> (u64, u64) {
        match self {
            CubicRules::Rfc9438 => (window, kept.of(in_flight)),
            CubicRules::Linux => {
                let segments = window / segment;
                (segments * segment, kept.of(segments) * segment)
            }
        }
    }

    /// The maximum to come back to after a second reduction below the first one's (RFC 9438 §4.7).
    pub(super) fn converged(self, window: u64, kept: Share, segment: u64) -> u64 {
        match self {
            CubicRules::Rfc9438 => kept.halfway().of(window),
            CubicRules::Linux => kept.halfway().of(window / segment) * segment,
        }
    }

    /// Segments that marks leave at least.
    pub(super) const fn floor_of_marks(self) -> u64 {
        match self {
            CubicRules::Rfc9438 => 1,
            CubicRules::Linux => 2,
        }
    }

    /// The window that a round trip leads to at least from one of so many bytes, in the `first` stage or another.
    pub(super) const fn least_target(self, window: u64, first: bool) -> u64 {
        match self {
            CubicRules::Linux if first => window + window / 20,
            _ => window,
        }
    }

    /// Reno's α stays below one beyond the last maximum (RFC 9438 §4.3 says one there).
    pub(super) fn stays_slow(self) -> bool {
        self == CubicRules::Linux
    }

    /// How far ahead of now the curve is followed (RFC 9438 §4.4; `delay_min` of Linux).
    pub(super) fn look_ahead(self, view: &PathView<'_>) -> Duration {
        let trip = match self {
            CubicRules::Rfc9438 => view.smoothed_rtt,
            CubicRules::Linux => view.min_rtt,
        };
        trip.unwrap_or_default()
    }

    /// Where Reno would be further the window is there at once (RFC 9438 §4.3), not only on its way.
    pub(super) fn jumps_to_reno(self) -> bool {
        self == CubicRules::Rfc9438
    }

    /// Does the threshold change when the timer runs out, `repeated`ly or in `recovery` from what has been cut for already?
    pub(super) fn timeout_cuts(self, repeated: bool, recovery: bool) -> bool {
        !(repeated || recovery && self == CubicRules::Linux)
    }

    /// The application was silent for longer than a timeout (RFC 5681 §4.1; `tcp_cwnd_restart` of Linux, for each timeout).
    pub(super) fn rest(self, window: &mut Window, segment: u64) {
        match self {
            CubicRules::Rfc9438 => window.restart(segment),
            CubicRules::Linux => window.fade(segment),
        }
    }

    /// [`CubicRules::rest`] is for one timeout of silence.
    pub(super) fn fades(self) -> bool {
        self == CubicRules::Linux
    }

    /// HyStart judges slow starts behind a timeout as well, not only the first.
    pub(super) fn judges_every_slow_start(self) -> bool {
        self == CubicRules::Linux
    }

    /// A reduction for nothing is undone to the curve (RFC 9438 §4.9), not only to the window.
    pub(super) fn restores_the_curve(self) -> bool {
        self == CubicRules::Rfc9438
    }
}
