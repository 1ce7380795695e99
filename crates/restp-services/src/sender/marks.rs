//! Congestion marks, from the sender's end (RFC 3168 §6.1.2, OP-59): one reaction per window of data.

/// Which marks were answered.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Marks {
    /// The next reaction is to marks on segments from here on.
    react_from: u64,
    /// The receiver is to hear of a reaction.
    reduced: bool,
}

impl Marks {
    /// A mark was echoed while numbers from `first` to below `next` are outstanding. True when it has not been answered.
    pub(super) fn reacts(&mut self, first: u64, next: u64) -> bool {
        let reacts = first >= self.react_from;
        if reacts {
            (self.react_from, self.reduced) = (next, true);
        }
        reacts
    }
    /// True once after each reaction.
    pub(super) fn takes_reduced(&mut self) -> bool {
        std::mem::take(&mut self.reduced)
    }
}
