//! Which packets are lost, and how do we know (ResTP §3.5.8)? A connection records every transmission on the
//! [`Scoreboard`], applies each acknowledgement to it, and then asks its [`Recovery`] what was lost. What to do
//! about the window is a question for others.

mod amfr;
mod arrivals;
mod delivery_rate;
mod duplicate_ack;
mod encodings;
mod feedback;
mod missing_reports;
mod pipe;
mod receiver_driven;
mod reordering;
mod reported;
mod rto;
mod rtt;
mod scoreboard;
mod spurious;

pub use amfr::LateThreshold;
pub use delivery_rate::{LostSegment, RateSample};
pub use duplicate_ack::{DuplicateAck, FastRecovery};
pub use feedback::{FalseReport, Feedback};
pub use missing_reports::MissingReports;
pub use pipe::{Again, Holes, LostRetransmissions, Pipe, PipeParameters};
pub use receiver_driven::{Overtaking, ReceiverDriven};
pub use reordering::Reordering;
pub use reported::Reported;
pub use rto::{RtoParameters, RtoTimer};
pub use rtt::RttEstimator;
pub use scoreboard::{Lane, LaneId, LaneNews, Scoreboard};

use crate::ack::AckReport;
use restp_base::time::Time;

/// Duplicates, or later segments reported, before a segment counts as lost (ResTP §3.5.8, RFC 5681 §3.2).
pub const DUPLICATE_THRESHOLD: u64 = 3;

/// Recovery service.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RecoveryChoice {
    /// From the retransmission timer, and from what the receiver reports as beyond repair.
    Timer,
    /// Third duplicate acknowledgement; what follows is the congestion algorithm's [`FastRecovery`].
    DuplicateAck,
    /// Selective evidence, pipe rule (RFC 6675).
    Pipe,
}

impl RecoveryChoice {
    /// Every service with its name in compositions.
    pub const ALL: [(&'static str, RecoveryChoice); 3] = [
        ("timer", RecoveryChoice::Timer),
        ("duplicate-ack", RecoveryChoice::DuplicateAck),
        ("pipe", RecoveryChoice::Pipe),
    ];
}

/// One acknowledgement after it was applied to the board.
#[derive(Clone, Copy, Debug)]
pub struct Evidence<'a> {
    /// When it came.
    pub now: Time,
    /// What it said.
    pub report: &'a AckReport,
    /// What that changed.
    pub feedback: &'a Feedback,
    /// The round trip as known before it.
    pub rtt: &'a RttEstimator,
}

/// What feedback revealed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LossUpdate {
    /// Segments newly declared lost.
    pub lost: u64,
    /// Segments newly taken for late on their path: a copy leaves by another, and no window is cut.
    pub late: u64,
    /// A loss episode began: react once, however many segments it holds.
    pub began: bool,
    /// The episode's losses are repaired.
    pub ended: bool,
    /// The lowest of them leaves at once, whatever the window says (RFC 5681 §3.2 (2), RFC 6675 §5 (4.3)).
    pub urgent: bool,
    /// The lowest number outstanding is not lost: the timer that watches it goes on (RFC 9260 §7.2.4, 4).
    pub spares_head: bool,
    /// Segments declared lost before that had only been late, where [`Reordering::Adaptive`] looks for them.
    pub spurious: u64,
    /// They were all that the last episode had declared lost: the reduction for it is to be undone.
    pub restored: bool,
}

/// One window's worth of losses is one episode: it lasts until everything sent before it began is
/// acknowledged (RFC 6582 §3.2, RFC 6675 §5).
#[derive(Clone, Copy, Debug, Default)]
struct Episode {
    active: bool,
    /// First number sent after the episode, or after the last timeout, began.
    recover: u64,
    /// Transmissions before it began.
    after: u64,
    /// First number whose loss is its own: those below left again in an earlier episode, or for a timeout.
    from: u64,
    /// What it declared lost and has not proved late.
    suspects: u64,
}

impl Episode {
    /// A loss was found; `head` is the lowest number of the window of data. True when it begins an episode: none is going on, and
    /// (when `careful`) the loss was not already answered by the last episode or timeout.
    fn begin(&mut self, board: &Scoreboard, head: u64, careful: bool) -> bool {
        if self.active || (careful && head < self.recover) {
            return false;
        }
        *self = Episode {
            active: true,
            recover: board.next(),
            after: board.transmissions(),
            from: head,
            suspects: 0,
        };
        true
    }
    /// Feedback moved the pointer to `head`. True when that ends the episode.
    fn end(&mut self, head: u64) -> bool {
        let ended = self.active && head >= self.recover;
        self.active &= !ended;
        ended
    }
    /// Feedback moved the pointer to `head`, and that is enough (RFC 5681 §3.2 (6)). What is still missing is the next episode's.
    /// True when an episode was going on.
    fn end_at_once(&mut self, head: u64) -> bool {
        let ended = std::mem::take(&mut self.active);
        if ended {
            self.recover = head;
        }
        ended
    }
    /// Some of what the episode declared lost had only been late; `lost` are added. True when none is left. Duplicates of what
    /// left again before it began say nothing of its losses (RFC 3708 §2; Linux: undo_marker).
    fn acquit(&mut self, feedback: &Feedback, lost: u64) -> bool {
        let is_earlier = feedback.lowest_duplicate.is_some_and(|lowest| lowest < self.from);
        let late = if is_earlier { 0 } else { feedback.late };
        let open = self.suspects.saturating_sub(late);
        let acquitted = self.suspects > 0 && open == 0 && lost == 0;
        self.suspects = open + lost;
        acquitted
    }
    /// Everything outstanding leaves again: what follows is slow start, and losses below here are answered.
    fn start_over(&mut self, board: &Scoreboard) {
        *self = Episode {
            active: false,
            recover: board.next(),
            after: board.transmissions(),
            from: board.next(),
            suspects: 0,
        };
    }
}

/// The recovery algorithm of one direction.
#[derive(Debug)]
pub enum Recovery {
    /// Only the timer and the receiver's reports find losses.
    Timer(Reported),
    /// RFC 5681 §3.2, RFC 6582.
    DuplicateAck(DuplicateAck),
    /// RFC 6675.
    Pipe(Pipe),
    /// RFC 9260 §7.2.4.
    MissingReports(MissingReports),
    /// ITP §IV.
    ReceiverDriven(ReceiverDriven),
}

impl Recovery {
    /// The algorithm a composition names. `fast`: what follows a third duplicate. `careful`: a loss episode costs some
    /// of the window. `pipe`: what the peer reports, for the pipe rule.
    pub fn new(choice: RecoveryChoice, fast: FastRecovery, careful: bool, pipe: PipeParameters) -> Self {
        match choice {
            RecoveryChoice::Timer => Recovery::Timer(Reported::default()),
            RecoveryChoice::DuplicateAck => Recovery::DuplicateAck(DuplicateAck::new(fast, careful)),
            RecoveryChoice::Pipe => Recovery::Pipe(Pipe::new(pipe)),
        }
    }

    /// Judges the board after an acknowledgement was applied to it.
    pub fn on_feedback(&mut self, board: &mut Scoreboard, evidence: &Evidence<'_>) -> LossUpdate {
        match self {
            Recovery::Timer(algorithm) => algorithm.on_feedback(board, evidence.feedback),
            Recovery::DuplicateAck(algorithm) => algorithm.on_feedback(board, evidence.feedback),
            Recovery::Pipe(algorithm) => algorithm.on_feedback(board, evidence),
            Recovery::MissingReports(algorithm) => algorithm.on_feedback(board, evidence),
            Recovery::ReceiverDriven(algorithm) => algorithm.on_feedback(board, evidence),
        }
    }

    /// From now on so many reports of other paths make a segment late ([`LateThreshold`]).
    pub fn expect_late_after(&mut self, reports: u64) {
        if let Recovery::MissingReports(algorithm) = self {
            algorithm.expect_late_after(reports);
        }
    }

    /// The lost segment `number` left again as transmission `order` of the board.
    pub fn on_retransmitted(&mut self, now: Time, order: u64, number: u64) {
        if let Recovery::Pipe(algorithm) = self {
            algorithm.on_retransmitted(now, order, number);
        }
    }

    /// When overtaken segments that were given time to come count as lost ([`Reordering::Adaptive`]).
    pub fn deadline(&self) -> Option<Time> {
        match self {
            Recovery::Timer(_)
            | Recovery::DuplicateAck(_)
            | Recovery::MissingReports(_)
            | Recovery::ReceiverDriven(_) => None,
            Recovery::Pipe(algorithm) => algorithm.deadline(),
        }
    }

    /// The deadline has come.
    pub fn on_deadline(&mut self, board: &mut Scoreboard, now: Time, rtt: &RttEstimator) -> LossUpdate {
        match self {
            Recovery::Timer(_)
            | Recovery::DuplicateAck(_)
            | Recovery::MissingReports(_)
            | Recovery::ReceiverDriven(_) => LossUpdate::default(),
            Recovery::Pipe(algorithm) => algorithm.on_deadline(board, now, rtt),
        }
    }

    /// The retransmission timer ran out: everything outstanding and not selectively acknowledged is lost.
    /// `cuts_window`: the controller hears of it, and of the undo, should it prove needless. What left at `spared_from` or later is on
    /// its way. Returns how many segments are lost.
    pub fn on_timeout(
        &mut self,
        board: &mut Scoreboard,
        cuts_window: bool,
        spared_from: Option<Time>,
    ) -> u64 {
        match self {
            Recovery::Timer(algorithm) => algorithm.on_timeout(board),
            Recovery::DuplicateAck(algorithm) => algorithm.on_timeout(board),
            Recovery::Pipe(algorithm) => algorithm.on_timeout(board, cuts_window),
            Recovery::MissingReports(algorithm) => algorithm.on_timeout(),
            Recovery::ReceiverDriven(algorithm) => algorithm.on_timeout(board),
        }
        match spared_from {
            None => board.mark_all_lost(),
            Some(from) => board.mark_lost_before(from),
        }
    }

    /// True during a loss episode.
    pub fn is_active(&self) -> bool {
        match self {
            Recovery::Timer(algorithm) => algorithm.is_active(),
            Recovery::DuplicateAck(algorithm) => algorithm.is_active(),
            Recovery::Pipe(algorithm) => algorithm.is_active(),
            Recovery::MissingReports(algorithm) => algorithm.is_active(),
            Recovery::ReceiverDriven(_) => false, // a window is cut, and nothing is frozen meanwhile
        }
    }

    /// A retransmission that is lost is found within a round trip, as long as anything is reported: no timer has to.
    pub(crate) fn finds_lost_retransmissions_in_time(&self) -> bool {
        matches!(self, Recovery::Pipe(pipe) if pipe.finds_lost_retransmissions_in_time())
    }

    /// A retransmission that is lost is found by the timer alone, which nothing else may set back (RFC 9260 §7.2.4).
    pub(crate) fn leaves_lost_retransmissions_to_timer(&self) -> bool {
        matches!(self, Recovery::MissingReports(_))
    }

    /// The rules for a sender whose every segment has a timer and a number of its own, retransmissions included.
    pub(crate) fn receiver_driven(&mut self) -> Option<&mut ReceiverDriven> {
        match self {
            Recovery::ReceiverDriven(algorithm) => Some(algorithm),
            _ => None,
        }
    }
}
