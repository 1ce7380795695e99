//! What is remembered of one path (ResTP §3.3) until somebody touches it. A path that is left alone answers as before, but for what time
//! alone changes: then it has a deadline, or its sender says so.

use super::Path;
use crate::scheduling::Candidate;
use restp_base::machine::Wakeup;
use restp_base::time::Time;

/// What a scheduler saw of it.
#[derive(Debug)]
struct Seen {
    candidate: Candidate,
    /// For a segment of so many bytes.
    bytes: u64,
    /// Time alone changes it then.
    until: Time,
}

/// Answers of one path; none where it was touched since.
#[derive(Debug, Default)]
pub(super) struct Known {
    /// When it last had nothing to send.
    empty_at: Option<Time>,
    deadline: Option<Option<(Time, Wakeup)>>,
    /// For data, or for copies.
    rank: Option<(bool, Option<u8>)>,
    seen: Option<Seen>,
}

impl Known {
    /// The path is touched.
    pub(super) fn forget(&mut self) {
        *self = Known::default();
    }

    /// It had nothing to send at `now`.
    pub(super) fn ends_turn(&mut self, now: Time) {
        self.empty_at = Some(now);
    }
    /// It had nothing to send since it was touched.
    pub(super) fn had_turn(&self) -> bool {
        self.empty_at.is_some()
    }
    /// It may have something to send.
    pub(super) fn has_turn(&self, now: Time) -> bool {
        self.empty_at.is_none_or(|at| at != now && self.is_due(now))
    }
    /// Its deadline has come, or is not known.
    pub(super) fn is_due(&self, now: Time) -> bool {
        self.deadline
            .is_none_or(|deadline| deadline.is_some_and(|(at, _)| at <= now))
    }

    pub(super) fn deadline(&self) -> Option<Option<(Time, Wakeup)>> {
        self.deadline
    }
    /// Asks for the deadline once.
    pub(super) fn keep<P: Path>(&mut self, path: &P, judged: bool) -> Option<(Time, Wakeup)> {
        *self.deadline.get_or_insert_with(|| path.deadline(judged))
    }

    /// May data use it, or `copies`?
    pub(super) fn rank<P: Path>(&mut self, path: &P, copies: bool) -> Option<u8> {
        if let Some((of_copies, rank)) = self.rank
            && of_copies == copies
        {
            return rank;
        }
        let rank = path.rank(copies);
        self.rank = Some((copies, rank));
        rank
    }

    /// What a scheduler sees of it where it shall carry `bytes`; `ask` gets whether it has room.
    pub(super) fn candidate<P: Path>(
        &mut self,
        path: &mut P,
        now: Time,
        bytes: u64,
        ask: impl FnOnce(&P, bool) -> Candidate,
    ) -> Candidate {
        if let Some(seen) = &self.seen
            && seen.bytes == bytes
            && now < seen.until
        {
            return seen.candidate;
        }
        self.deadline = None; // one that lacks time says until when
        let has_room = path.takes(now, bytes);
        let candidate = ask(path, has_room);
        let until = if has_room {
            Time::MAX
        } else {
            path.sender().room_comes_at()
        };
        self.seen = Some(Seen {
            candidate,
            bytes,
            until,
        });
        candidate
    }
}
