//! The window of a consumer that asks for its data (ITP, 2020, §V): how many Interests may be without an answer. Each counts as a
//! segment. Growth and halving are Reno's, with one difference: after a loss growth goes on with the next data, because who
//! asks knows what is missing, and nothing has to be inferred from a frozen window.

use super::window::{CommonParams, Growth, Window, segment_of};
use super::{Congestion, CongestionEvent, CongestionSnapshot};
use crate::view::PathView;
use restp_base::units::Rate;

/// What can be set of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InterestWindowParams {
    /// A second timeout of one window takes the window down to one Interest again (ITP OP-6). Default on.
    pub collapses_again: bool,
    /// A timeout halves the window instead of taking it down to one Interest. Default off.
    pub halves_on_timeout: bool,
}

impl Default for InterestWindowParams {
    fn default() -> Self {
        InterestWindowParams {
            collapses_again: true,
            halves_on_timeout: false,
        }
    }
}

/// The controller.
#[derive(Clone, Copy, Debug)]
pub struct InterestWindow {
    params: InterestWindowParams,
    window: Window,
    /// The window before the last reduction.
    before: Option<Window>,
}

impl InterestWindow {
    /// A window of one Interest for data of `segment_bytes`, in slow start without a threshold (ITP OP-14).
    pub fn new(params: &InterestWindowParams, segment_bytes: u64) -> Self {
        let common = CommonParams {
            initial_window_segments: 1,
            growth: Growth::Acks,
            ..CommonParams::default()
        };
        InterestWindow {
            params: *params,
            window: Window::new(&common, segment_bytes),
            before: None,
        }
    }

    /// One Interest more per data packet up to the threshold, one per round trip from there on.
    fn grow(&mut self, bytes: u64, segment: u64) {
        if self.window.slow_start(bytes, segment) > 0 {
            self.window.grow((segment * segment / self.window.bytes).max(1));
        }
    }

    fn halve(&mut self, segment: u64) {
        self.before = Some(self.window);
        self.window.bytes /= 2;
        self.window.threshold = self.window.bytes.max(2 * segment);
    }

    fn on_timeout(&mut self, repeated: bool, segment: u64) {
        match (repeated, self.params.halves_on_timeout) {
            (false, true) => self.halve(segment),
            (false, false) => {
                self.before = Some(self.window);
                self.window.collapse(Some(self.window.bytes / 2), segment);
            }
            (true, false) if self.params.collapses_again => self.window.collapse(None, segment),
            (true, _) => {}
        }
    }
}

impl Congestion for InterestWindow {
    fn on(&mut self, event: &CongestionEvent, view: &PathView<'_>) {
        let segment = segment_of(view);
        match *event {
            CongestionEvent::Acked { bytes, .. } => {
                if Window::may_grow(view) {
                    self.grow(bytes, segment);
                }
            }
            CongestionEvent::Lost { .. } | CongestionEvent::Marked { .. } => self.halve(segment),
            CongestionEvent::Timeout { repeated } => self.on_timeout(repeated, segment),
            CongestionEvent::Restored => {
                if let Some(before) = self.before.take() {
                    self.window.restore(&before);
                }
            }
            // A consumer that waits asks for nothing, and ITP has no rule for it.
            CongestionEvent::Idle { .. }
            | CongestionEvent::Sent { .. }
            | CongestionEvent::RouteChanged
            | CongestionEvent::Duplicate
            | CongestionEvent::SegmentLost(_)
            | CongestionEvent::Corrupted { .. }
            | CongestionEvent::RecoveryEnded => {}
        }
        self.window.settle(view);
    }

    fn window_bytes(&self) -> u64 {
        self.window.bytes
    }

    fn pacing(&self) -> Option<Rate> {
        self.window.pacing()
    }

    fn snapshot(&self) -> CongestionSnapshot {
        self.window.snapshot()
    }
}

#[cfg(test)]
mod tests {
    use super::super::conformance::{acked, path};
    use super::*;

    const CHUNK: u64 = 1500;
    const LOST: CongestionEvent = CongestionEvent::Lost { bytes: CHUNK };

    fn controller(params: InterestWindowParams) -> InterestWindow {
        InterestWindow::new(&params, CHUNK)
    }

    fn data(control: &mut InterestWindow, packets: u64) {
        (0..packets).for_each(|_| control.on(&acked(CHUNK), &path(CHUNK)));
    }

    #[test]
    fn it_begins_with_one_interest_and_adds_one_per_data_packet() {
        let mut control = controller(InterestWindowParams::default());
        assert_eq!(control.window_bytes(), CHUNK);
        data(&mut control, 19);
        assert_eq!(control.window_bytes(), 20 * CHUNK);
        assert_eq!(control.snapshot().threshold_bytes, None, "unlimited");
    }

    #[test]
    fn a_loss_halves_and_growth_goes_on_with_the_next_data() {
        let mut control = controller(InterestWindowParams::default());
        data(&mut control, 19);
        control.on(&LOST, &path(CHUNK));
        assert_eq!(control.window_bytes(), 10 * CHUNK);
        data(&mut control, 1);
        assert_eq!(control.window_bytes(), 10 * CHUNK + CHUNK / 10);
        data(&mut control, 10);
        let window = control.window_bytes();
        assert!(
            (11 * CHUNK..12 * CHUNK).contains(&window),
            "one more per round trip: {window}"
        );
    }

    #[test]
    fn halving_knows_fractions_and_the_threshold_stays_at_two() {
        let mut control = controller(InterestWindowParams::default());
        data(&mut control, 2);
        control.on(&LOST, &path(CHUNK));
        assert_eq!(control.window_bytes(), 3 * CHUNK / 2);
        assert_eq!(control.snapshot().threshold_bytes, Some(2 * CHUNK));
        control.on(&LOST, &path(CHUNK));
        assert_eq!(control.window_bytes(), CHUNK, "one Interest at least");
    }

    #[test]
    fn a_timeout_leaves_one_interest_and_the_threshold_is_cut_once() {
        let mut control = controller(InterestWindowParams::default());
        data(&mut control, 19);
        control.on(&CongestionEvent::Timeout { repeated: false }, &path(CHUNK));
        data(&mut control, 3);
        control.on(&CongestionEvent::Timeout { repeated: true }, &path(CHUNK));
        assert_eq!(control.window_bytes(), CHUNK);
        assert_eq!(control.snapshot().threshold_bytes, Some(10 * CHUNK));
    }

    #[test]
    fn what_a_timeout_costs_can_be_set() {
        let once = InterestWindowParams {
            collapses_again: false,
            ..InterestWindowParams::default()
        };
        let mut control = controller(once);
        data(&mut control, 19);
        control.on(&CongestionEvent::Timeout { repeated: false }, &path(CHUNK));
        data(&mut control, 3);
        control.on(&CongestionEvent::Timeout { repeated: true }, &path(CHUNK));
        assert_eq!(control.window_bytes(), 4 * CHUNK, "once per window");
        let half = InterestWindowParams {
            halves_on_timeout: true,
            ..once
        };
        let mut control = controller(half);
        data(&mut control, 19);
        control.on(&CongestionEvent::Timeout { repeated: false }, &path(CHUNK));
        assert_eq!(control.window_bytes(), 10 * CHUNK);
    }
}
