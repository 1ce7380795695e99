//! Several paths of one association through one queue are one flow to their neighbours: each grows by its part of what one CUBIC
//! flow would, and what costs one of them segments cuts all of them, once per round trip. So their sum is the window of one flow,
//! split, whether the queue drops from all of them at once or from one (the goals of RFC 6356 §1, with the window of CUBIC).

use super::super::CongestionEvent;
use crate::view::Sibling;
use restp_base::time::{Duration, Time};

/// Cuts of this path and of those beside it.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Joint {
    cut_at: Option<Time>,
    /// It was one of another path, or answered damage: what congestion has cost of the same window of data may be found after it.
    is_ahead: bool,
}

/// Does the `event` cut the window, once per window of data?
pub(super) fn cuts(event: &CongestionEvent) -> bool {
    matches!(
        event,
        CongestionEvent::Lost { .. } | CongestionEvent::Marked { .. }
    )
}

impl Joint {
    /// Of so many parts is the flow that waits in the queue of this path.
    pub fn parts(&self, siblings: &[Sibling]) -> u32 {
        1 + sharing(siblings).count() as u32
    }

    /// The window has been cut before for what costs this path segments now.
    pub fn is_answered(&self, now: Time, rtt: Duration) -> bool {
        self.is_ahead && self.cut_at.is_some_and(|at| now.since(at) < rtt)
    }

    /// This path is cut.
    pub fn on_cut(&mut self, now: Time) {
        (self.cut_at, self.is_ahead) = (Some(now), false);
    }

    /// The cut just made answers damage.
    pub fn on_damage(&mut self) {
        self.is_ahead = true;
    }

    /// Another path through the same queue was cut after this one was, and not for the same reason: this one is cut as well.
    pub fn follows(&mut self, now: Time, rtt: Duration, siblings: &[Sibling]) -> bool {
        let Some(theirs) = sharing(siblings).filter_map(|sibling| sibling.cut_at).max() else {
            return false;
        };
        let is_known = self.cut_at.is_some_and(|own| theirs.since(own) < rtt);
        if is_known || now.since(theirs) > rtt {
            return false;
        }
        (self.cut_at, self.is_ahead) = (Some(theirs), true);
        true
    }

    /// When the window was last cut.
    pub fn cut_at(&self) -> Option<Time> {
        self.cut_at
    }
}

fn sharing(siblings: &[Sibling]) -> impl Iterator<Item = &Sibling> {
    siblings.iter().filter(|sibling| sibling.shares_queue)
}

#[cfg(test)]
mod tests {
    use super::*;

    const RTT: Duration = Duration::from_millis(50);

    fn at(millis: u64) -> Time {
        Time::ZERO + Duration::from_millis(millis)
    }
    fn sibling(shares_queue: bool, cut_at: Option<u64>) -> Sibling {
        Sibling {
            shares_queue,
            cut_at: cut_at.map(at),
            ..Sibling::default()
        }
    }

    #[test]
    fn a_flow_has_as_many_parts_as_paths_wait_in_its_queue() {
        let joint = Joint::default();
        assert_eq!(joint.parts(&[]), 1);
        assert_eq!(
            joint.parts(&[sibling(true, None), sibling(false, None), sibling(true, None)]),
            3
        );
    }

    #[test]
    fn a_cut_is_followed_once_by_those_in_the_same_queue_and_not_answered_again() {
        let mut joint = Joint::default();
        assert!(
            !joint.follows(at(100), RTT, &[sibling(false, Some(100))]),
            "another queue"
        );
        assert!(joint.follows(at(110), RTT, &[sibling(true, Some(100))]));
        assert!(!joint.follows(at(120), RTT, &[sibling(true, Some(100))]), "once");
        assert!(joint.is_answered(at(130), RTT));
        assert!(
            !joint.is_answered(at(160), RTT),
            "a round trip later it is another loss"
        );
    }

    #[test]
    fn who_was_cut_for_the_same_reason_is_not_cut_again() {
        let mut joint = Joint::default();
        joint.on_cut(at(90));
        assert!(
            !joint.is_answered(at(95), RTT),
            "its own losses count once per window elsewhere"
        );
        assert!(!joint.follows(at(110), RTT, &[sibling(true, Some(100))]));
        assert!(joint.follows(at(200), RTT, &[sibling(true, Some(190))]));
    }

    #[test]
    fn what_happened_before_they_met_is_over() {
        let mut joint = Joint::default();
        assert!(!joint.follows(at(1_000), RTT, &[sibling(true, Some(100))]));
    }
}
