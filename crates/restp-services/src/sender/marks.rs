//! Congestion marks, from the sender's end (RFC 3168 §6.1.2, OP-59): one reaction per window of data.

/// Which marks were answered.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Marks {
    /// The next reaction is to marks on segments from here on: the first of them tells the receiver of the last one.
    react_from: Option<u64>,
    /// The receiver is to hear of a reaction.
    reduced: bool,
}

impl Marks {
    /// A mark was echoed while numbers from `first` to below `next` are outstanding. True when it has not been answered: until
    /// the segment that says so is acknowledged, the echo is one of the same mark (Linux: `TCP_CA_CWR`).
    pub(super) fn reacts(&mut self, first: u64, next: u64) -> bool {
        let reacts = self.react_from.is_none_or(|from| first > from);
        if reacts {
            (self.react_from, self.reduced) = (Some(next), true);
        }
        reacts
    }
    /// True once after each reaction.
    pub(super) fn takes_reduced(&mut self) -> bool {
        std::mem::take(&mut self.reduced)
    }
}
