//! Which path takes the next new data (ResTP §3.5.10), where all share one space of numbers and one [`Sender`]: each path is a lane of it. What was
//! lost leaves again by any lane with room, so that here is only what a scheduler decides.

use super::sender::PathAffinity;
use super::{Multipath, Path};
use crate::framing::SendQueue;
use crate::path_management::PathMode;
use crate::recovery::LaneId;
use crate::scheduling::{Candidate, Queue, Schedule, Scheduler, Scheduling};
use crate::sender::Sender;
use restp_base::machine::PathAddress;
use restp_base::time::{Duration, Time};
use smallvec::SmallVec;

/// What was written and not numbered.
#[derive(Debug)]
pub struct Written {
    /// The writes.
    pub queue: SendQueue,
    /// Paths that the application chose for some of them.
    affinity: PathAffinity,
    /// No more will be.
    pub ends: bool,
}

impl Written {
    /// Nothing.
    #[cfg(test)]
    pub(crate) fn nothing() -> Self {
        Written {
            queue: SendQueue::new(crate::framing::Framing::Fixed),
            affinity: PathAffinity::default(),
            ends: false,
        }
    }
}

impl<P: Path> Multipath<P> {
    /// The peer knows no further paths: its only one goes on by itself, with what was written so far, and `true` where no
    /// more will be.
    pub fn take_single(&mut self, ordinal: usize) -> (P, SendQueue, bool) {
        let Written { queue, ends, .. } = self.take_written();
        (self.paths.take(ordinal), queue, ends)
    }

    /// Moves out what was written so far: somebody else sends it.
    pub fn take_written(&mut self) -> Written {
        let (queue, affinity) = self.tx.take_queue();
        Written {
            queue,
            affinity,
            ends: self.release.is_wanted(),
        }
    }
}

/// A path that data may use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LanePath {
    /// Its ordinal.
    pub ordinal: usize,
    /// Its lane.
    pub lane: LaneId,
    /// Where it runs.
    pub address: PathAddress,
    /// Its place in the list of configured shares.
    pub share: usize,
}

/// The scheduler of lanes.
#[derive(Debug)]
pub struct LaneScheduler {
    mode: PathMode,
    scheduling: Option<Scheduling>,
    scheduler: Scheduler,
    /// The first number of all.
    first: u64,
    /// Payload bytes of a full segment.
    segment_bytes: u32,
    /// What is sent is of use for so long.
    deadline: Option<Duration>,
    /// Ordinals of the paths that the last choice left out for that.
    late: SmallVec<[usize; 8]>,
    affinity: PathAffinity,
    /// Bytes that waited at the last look, and were written since.
    queued: usize,
    /// The window was shut at the last look although data waits, and how often it came to that.
    stalled: bool,
    stalls: u64,
}

impl LaneScheduler {
    /// Round trip that is assumed of a path before it was measured.
    const UNMEASURED_RTT: Duration = Duration::from_millis(100);

    /// For numbers from `first` on, of which the first are of what was `written`, and all are of use until the `deadline`.
    pub fn new(
        mode: PathMode,
        scheduling: Option<Scheduling>,
        first: u64,
        segment_bytes: u32,
        deadline: Option<Duration>,
        written: &mut Written,
    ) -> Self {
        LaneScheduler {
            affinity: std::mem::take(&mut written.affinity),
            queued: written.queue.bytes(),
            mode,
            scheduler: Scheduler::new(mode, scheduling.as_ref()),
            scheduling,
            first,
            segment_bytes,
            deadline,
            late: SmallVec::new(),
            stalled: false,
            stalls: 0,
        }
    }

    /// From now on paths are chosen by `scheduling`.
    pub fn schedule_by(&mut self, scheduling: Option<Scheduling>) {
        if scheduling != self.scheduling {
            self.scheduler = Scheduler::new(self.mode, scheduling.as_ref());
            self.scheduling = scheduling;
        }
    }

    /// `size` bytes were written behind `queued` that waited, for `path` if the application chose one.
    pub fn on_write(&mut self, queued: usize, size: usize, path: Option<PathAddress>) {
        self.note_sent(queued);
        if let Some(path) = path {
            self.affinity.add(self.queued, size, path);
        }
        self.queued += size;
    }

    /// So many bytes wait now: the others have left.
    fn note_sent(&mut self, queued: usize) {
        self.affinity.take(self.queued.saturating_sub(queued));
        self.queued = queued;
    }

    /// The ordinal of the path by which new data, or the `fin`, leaves now.
    pub fn choose(&mut self, now: Time, sender: &mut Sender, paths: &[LanePath], fin: bool) -> Option<usize> {
        let first = paths.first()?;
        let waiting = sender.queued_bytes();
        self.note_sent(waiting);
        let (together, wanted) = self.affinity.next(waiting);
        sender.limit_new((together < waiting).then_some(together));
        let waits = fin || !sender.has_nothing_queued();
        let Some(bytes) = sender.on(first.lane, |lane| lane.next_new_bytes(fin)) else {
            self.stalls += u64::from(waits && !self.stalled);
            self.stalled = waits;
            return None;
        };
        self.stalled = false;
        let candidates = self.candidates(now, sender, paths, bytes);
        let queue = self.queue(now, sender, bytes);
        let chosen = match paths.iter().position(|path| Some(path.address) == wanted) {
            // However slow it is: the application knows what for.
            Some(place) => Some(&candidates[place])
                .filter(|wanted| wanted.has_room)
                .map(|wanted| wanted.path),
            None => {
                let timely = timely(self.deadline, &candidates);
                let is_late = |candidate: &&Candidate| !timely.contains(candidate);
                self.late = (candidates.iter().filter(is_late).map(|late| late.path)).collect();
                self.scheduler.choose(&timely, &queue).first().copied()
            }
        };
        for (path, candidate) in paths.iter().zip(&candidates) {
            // A path that gets nothing although it has room is not limited by its window.
            let passed_over = chosen.is_none() && candidate.has_room;
            sender.on(path.lane, |lane| lane.pass_over(passed_over));
        }
        chosen
    }

    /// The peer's window is shut although something waits, and nothing is outstanding whose acknowledgement could open it.
    pub fn is_shut(&self, sender: &Sender) -> bool {
        self.stalled && sender.is_drained()
    }

    fn candidates(
        &self,
        now: Time,
        sender: &mut Sender,
        paths: &[LanePath],
        bytes: u64,
    ) -> SmallVec<[Candidate; 8]> {
        let weight = |share| {
            self.scheduling
                .as_ref()
                .map_or(1, |scheduling| scheduling.weight(share))
        };
        let candidate = |path: &LanePath| {
            sender.on(path.lane, |lane| {
                let has_room = lane.takes_new(now, bytes);
                lane.candidate(path.ordinal, weight(path.share), has_room, Self::UNMEASURED_RTT)
            })
        };
        paths.iter().map(candidate).collect()
    }

    /// Ordinals of the paths that the last choice left out because a retransmission by them would be too late.
    pub fn take_late(&mut self) -> SmallVec<[usize; 8]> {
        std::mem::take(&mut self.late)
    }

    fn queue(&self, now: Time, sender: &Sender, bytes: u64) -> Queue {
        let (first, next) = (sender.first(), sender.next_number());
        Queue {
            segment_bytes: bytes,
            queued_bytes: sender.queued_bytes() as u64,
            window_segments: sender
                .binding_edge()
                .map_or(u64::MAX / 2, |edge| edge.saturating_sub(next)),
            outstanding_segments: next - first,
            acknowledged_bytes: (first - self.first) * u64::from(self.segment_bytes),
            stalls: self.stalls,
            now,
        }
    }
}

/// By a path on which no retransmission would be in time, a round trip and a half after what is lost, nothing leaves while there is
/// another one; where there is none, the same of what is not lost. The others are no candidates: a scheduler may wait for one.
fn timely(deadline: Option<Duration>, candidates: &[Candidate]) -> SmallVec<[Candidate; 8]> {
    let within = |halves| {
        let is_timely = move |candidate: &&Candidate| {
            deadline.is_none_or(|deadline| candidate.smoothed_rtt.scaled(halves, 2) <= deadline)
        };
        let timely: SmallVec<_> = candidates.iter().filter(is_timely).copied().collect();
        (!timely.is_empty()).then_some(timely)
    };
    within(3)
        .or_else(|| within(1))
        .unwrap_or_else(|| candidates.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn data_leaves_where_a_retransmission_is_in_time_else_where_it_is_itself() {
        for (rtts, expected) in [
            (&[133, 134][..], &[0][..]),
            (&[134, 133], &[1]),
            (&[1, 133, 10_000], &[0, 1]),
            (&[134, 400], &[0, 1]),
            (&[134, 401, 402], &[0]),
            (&[401, 402], &[0, 1]),
            (&[500], &[0]),
            (&[], &[]),
        ] {
            let candidates: Vec<_> = (0..rtts.len())
                .map(|path| crate::scheduling::candidate(path, rtts[path], true))
                .collect();
            let paths = |deadline| -> Vec<_> {
                let timely = timely(deadline, &candidates);
                timely.iter().map(|candidate| candidate.path).collect()
            };
            assert_eq!(paths(Some(Duration::from_millis(200))), expected, "{rtts:?}");
            assert_eq!(paths(None).len(), rtts.len());
        }
    }

    #[test]
    fn a_round_trip_without_end_is_late_and_no_overflow() {
        let endless = Candidate {
            smoothed_rtt: Duration::from_nanos(u64::MAX),
            ..crate::scheduling::candidate(0, 0, true)
        };
        let both = [endless, crate::scheduling::candidate(1, 300, true)];
        let timely = timely(Some(Duration::from_millis(200)), &both);
        assert_eq!(timely.iter().map(|late| late.path).collect::<Vec<_>>(), [1]);
    }
}
