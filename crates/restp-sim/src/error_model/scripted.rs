//! Scripted losses: the packets of the list, counted from 1 in the order offered. No draws.

use crate::spec_error::SpecError;

/// Drops exactly these packets of one direction.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Scripted {
    /// Numbers of packets offered, the first being 1, in any order.
    pub drop: Vec<u64>,
}

impl Scripted {
    pub(super) fn check(&self) -> Result<(), SpecError> {
        if self.drop.contains(&0) {
            Err(SpecError::PacketZero)
        } else {
            Ok(())
        }
    }
}

#[derive(Clone, Debug)]
pub(super) struct Process {
    /// Numbers still to come, the next one last.
    to_come: Vec<u64>,
    offered: u64,
}

impl Process {
    pub(super) fn new(model: &Scripted) -> Self {
        let mut to_come = model.drop.clone();
        to_come.sort_unstable_by(|a, b| b.cmp(a));
        to_come.dedup();
        Process { to_come, offered: 0 }
    }

    pub(super) fn loses(&mut self) -> bool {
        self.offered += 1;
        self.to_come.pop_if(|next| *next == self.offered).is_some()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn drops_exactly_the_packets_of_the_list() {
        let mut process = Process::new(&Scripted { drop: vec![7, 1, 7] });
        let lost: Vec<u64> = (1..=20).filter(|_| process.loses()).collect();
        assert_eq!(lost, [1, 7]);
    }
}
