//! Congestion marks, from the sender's end (RFC 3168 §6.1.2, OP-59): one reaction per window of data.

/// Which marks were answered.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct EcnResponse {
    /// The next reaction is to marks on what leaves after this segment, which tells the receiver of the last one.
    react_from: Option<u64>,
    /// The receiver has not heard of the last reaction.
    reduced: bool,
}

impl EcnResponse {
    /// A mark was echoed while numbers from `first` to below `next` are outstanding. True when it has not been answered: until the
    /// segment that says so is acknowledged, the echo is one of the same mark (Linux: `TCP_CA_CWR`). Several paths may share the
    /// numbers: the next one leaves perhaps by another.
    pub(super) fn reacts(&mut self, first: u64, next: u64) -> bool {
        let reacts = !self.reduced && self.react_from.is_none_or(|from| first > from);
        if reacts {
            (self.react_from, self.reduced) = (Some(next), true);
        }
        reacts
    }
    /// True once after each reaction: segment `number` tells of it.
    pub(super) fn takes_reduced(&mut self, number: u64) -> bool {
        let tells = std::mem::take(&mut self.reduced);
        if tells {
            self.react_from = self.react_from.max(Some(number));
        }
        tells
    }
}
