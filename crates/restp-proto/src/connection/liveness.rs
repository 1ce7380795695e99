//! Is the peer there? A silent one is asked now and then (RFC 9293 §3.8.4), and answers are counted.

use restp_base::time::{Duration, Time};

/// What is known of it.
#[derive(Debug)]
pub(super) struct Liveness {
    /// When it was last heard.
    heard_at: Time,
    /// When a segment last left.
    sent_at: Time,
    /// When it is asked next, if that is not by its silence.
    ask_at: Option<Time>,
    /// A keep-alive is to leave.
    due: bool,
    /// When the last one left.
    last_asked_at: Time,
    /// One is out and nothing was heard since.
    asked_at: Option<Time>,
    /// Answers so far.
    answers: u64,
    /// The highest number that it has acknowledged.
    acknowledged: u32,
}

impl Liveness {
    pub(super) fn new(now: Time, first: u32) -> Self {
        Liveness {
            heard_at: now,
            sent_at: now,
            ask_at: None,
            due: false,
            last_asked_at: now,
            asked_at: None,
            answers: 0,
            acknowledged: first,
        }
    }

    /// Anything has come from it.
    pub(super) fn on_heard(&mut self, now: Time) {
        self.heard_at = now;
    }
    /// What has come may be the answer to a keep-alive. Returns when that left.
    pub(super) fn on_answer(&mut self) -> Option<Time> {
        let asked_at = self.asked_at.take();
        self.answers += u64::from(asked_at.is_some());
        asked_at
    }
    /// It acknowledges what is below `number`. Is that news?
    pub(super) fn on_acknowledged(&mut self, number: u32) -> bool {
        let is_news = (number.wrapping_sub(self.acknowledged) as i32) > 0;
        if is_news {
            self.acknowledged = number;
        }
        is_news
    }
    /// A segment leaves.
    pub(super) fn on_sent(&mut self, now: Time) {
        self.sent_at = now;
    }
    /// When a segment last came or left.
    pub(super) fn active_at(&self) -> Time {
        self.heard_at.max(self.sent_at)
    }
    pub(super) fn heard_at(&self) -> Time {
        self.heard_at
    }
    pub(super) fn answers(&self) -> u64 {
        self.answers
    }
    /// Since when a keep-alive is out.
    pub(super) fn asked_at(&self) -> Option<Time> {
        self.asked_at
    }

    /// A keep-alive is to leave now.
    pub(super) fn ask(&mut self) {
        self.due = true;
    }
    /// A keep-alive is to leave now, unless one, or a segment, has within `interval`.
    pub(super) fn ask_each(&mut self, now: Time, interval: Duration) {
        self.due |= now.since(self.last_asked_at.max(self.sent_at)) >= interval;
    }
    /// The next keep-alive is to leave at `at`, whatever is heard before.
    pub(super) fn ask_at(&mut self, at: Time) {
        self.ask_at = Some(at);
    }
    /// The next one waits for silence.
    pub(super) fn wait_for_silence(&mut self) {
        self.ask_at = None;
    }
    /// When the next one is due, after a silence of `interval`.
    pub(super) fn deadline(&self, interval: Duration) -> Time {
        self.ask_at.unwrap_or(self.heard_at + interval)
    }
    /// A keep-alive leaves now, if one is to.
    pub(super) fn take_due(&mut self, now: Time) -> bool {
        let due = std::mem::take(&mut self.due);
        if due {
            self.last_asked_at = now;
            self.asked_at.get_or_insert(now);
        }
        due
    }
}
