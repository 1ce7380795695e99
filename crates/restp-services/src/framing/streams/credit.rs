//! What the peer may send (RFC 9000 §4.1): of one stream, or of all, counted from the beginning.

use super::frame::Violation;

/// An account of one kind of bytes, or of streams.
#[derive(Debug)]
pub(super) struct Credit {
    /// What the peer has without being told.
    initial: u64,
    granted: u64,
    /// How much was used when that was granted.
    granted_at: u64,
    used: u64,
    consumed: u64,
    /// A frame that grants more waits to leave.
    is_due: bool,
}

impl Credit {
    /// The peer has `initial` without being told.
    pub(super) fn new(initial: u64) -> Self {
        Credit {
            initial,
            granted: initial,
            granted_at: 0,
            used: 0,
            consumed: 0,
            is_due: false,
        }
    }
    pub(super) fn used(&self) -> u64 {
        self.used
    }
    pub(super) fn consumed(&self) -> u64 {
        self.consumed
    }
    /// What came and was not consumed.
    pub(super) fn held(&self) -> u64 {
        // After a breach the reader may be ahead.
        self.used.saturating_sub(self.consumed)
    }

    /// The peer has used what is below `end`.
    pub(super) fn use_up_to(&mut self, end: u64) -> Result<(), Violation> {
        if end > self.granted {
            return Err(Violation("more comes than is taken"));
        }
        self.used = self.used.max(end);
        Ok(())
    }

    /// What is below `end` makes room again.
    pub(super) fn consume_up_to(&mut self, end: u64) {
        self.consumed = self.consumed.max(end);
    }

    /// There is more to grant where `window` may be outstanding, sent and not consumed, and the peer has used a quarter of what it
    /// had when it was told last: news then arrive before it has used the rest, where the window has four times what is in flight
    /// or more.
    fn is_owed(&self, window: u64) -> bool {
        let had = self.granted - self.granted_at;
        self.consumed + window > self.granted && (self.used - self.granted_at) * 4 >= had
    }

    /// True when a frame has to say so; then not again until it has left.
    pub(super) fn falls_due(&mut self, window: u64) -> bool {
        let falls = !self.is_due && self.is_owed(window);
        self.is_due |= falls;
        falls
    }

    /// True once, when the peer knows of no more than what it has without being told, and there is more.
    pub(super) fn first_falls_due(&mut self, window: u64) -> bool {
        let falls = !self.is_due && self.granted == self.initial && self.consumed + window > self.granted;
        self.is_due |= falls;
        falls
    }

    /// Grants what there is. What was granted stays, also where the window is smaller now.
    pub(super) fn grant(&mut self, window: u64) -> u64 {
        self.is_due = false;
        self.granted = self.granted.max(self.consumed + window);
        self.granted_at = self.used;
        self.granted
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_quarter_used_is_news() {
        let mut credit = Credit::new(100);
        assert!(!credit.is_owed(1000));
        credit.use_up_to(24).unwrap();
        assert!(!credit.is_owed(1000));
        credit.use_up_to(25).unwrap();
        assert!(credit.is_owed(1000));
        assert_eq!(credit.grant(1000), 1000);
        credit.use_up_to(600).unwrap();
        assert!(!credit.is_owed(1000), "nothing was consumed");
        credit.consume_up_to(300);
        assert!(credit.is_owed(1000));
        assert_eq!((credit.grant(1000), credit.is_owed(1000)), (1300, false));
    }

    #[test]
    fn one_frame_at_a_time_falls_due() {
        let mut credit = Credit::new(100);
        credit.use_up_to(50).unwrap();
        assert!(credit.falls_due(1000) && !credit.falls_due(1000));
        assert_eq!(credit.grant(1000), 1000);
        credit.use_up_to(600).unwrap();
        credit.consume_up_to(600);
        assert!(credit.falls_due(1000) && !credit.falls_due(1000));
    }

    #[test]
    fn what_there_is_beyond_the_beginning_falls_due_once() {
        let mut credit = Credit::new(100);
        assert!(credit.first_falls_due(1000) && !credit.first_falls_due(1000) && !credit.falls_due(1000));
        assert_eq!(credit.grant(1000), 1000);
        assert!(!credit.first_falls_due(2000), "a larger window is no first word");
        credit.use_up_to(600).unwrap();
        credit.consume_up_to(600);
        assert!(credit.falls_due(1000));
        credit.grant(1000);
        credit.consume_up_to(700);
        assert!(!credit.first_falls_due(1000), "it has been told");
        assert!(!Credit::new(100).first_falls_due(100));
    }

    #[test]
    fn what_is_held_is_what_came_and_was_not_consumed() {
        let mut credit = Credit::new(100);
        credit.use_up_to(60).unwrap();
        credit.consume_up_to(20);
        assert_eq!(credit.held(), 40);
        credit.consume_up_to(70);
        assert_eq!(credit.held(), 0, "after a breach");
    }

    #[test]
    fn what_is_not_granted_is_not_taken() {
        let mut credit = Credit::new(100);
        assert!(credit.use_up_to(101).is_err());
        assert_eq!(credit.used(), 0);
        credit.use_up_to(100).unwrap();
        credit.use_up_to(50).unwrap();
        assert_eq!(credit.used(), 100);
    }

    #[test]
    fn a_window_below_the_first_grant_takes_nothing_back() {
        let mut credit = Credit::new(100);
        credit.use_up_to(100).unwrap();
        credit.consume_up_to(95);
        assert!(credit.is_owed(10));
        assert_eq!(credit.grant(10), 105);
    }
}
