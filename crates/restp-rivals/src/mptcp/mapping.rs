//! Which bytes of the connection the bytes of one subflow are (RFC 8684 §3.3.1). A mapping, once made, is never changed;
//! both ends keep those whose bytes are not done with yet.

use std::collections::BTreeMap;

/// Bytes of a subflow and the bytes of the connection they carry, by 64-bit unwrapped numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Mapping {
    /// First byte, in the subflow.
    pub(crate) subflow: u64,
    /// First byte, in the connection.
    pub(crate) data: u64,
    /// How many.
    pub(crate) bytes: u64,
}

impl Mapping {
    fn end(&self) -> u64 {
        self.subflow + self.bytes
    }
    /// By how much the two numbers differ: the same throughout a mapping.
    fn shift(&self) -> u64 {
        self.data.wrapping_sub(self.subflow)
    }
    /// Number in the connection of the subflow's `byte`.
    pub(crate) fn data_at(&self, byte: u64) -> u64 {
        self.data + (byte - self.subflow)
    }
}

/// The mappings of one direction of a subflow; they do not overlap.
#[derive(Debug, Default)]
pub(crate) struct Mappings(BTreeMap<u64, Mapping>);

/// A mapping gives bytes another meaning than an earlier one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Contradiction;

impl Mappings {
    /// How many there are.
    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }

    /// Adds a mapping of one byte or more. What overlaps earlier ones must say the same as they do.
    pub(crate) fn add(&mut self, new: Mapping) -> Result<(), Contradiction> {
        let before = self.0.range(..new.end()).rev();
        let overlapped: Vec<_> = before
            .map(|(_, old)| *old)
            .take_while(|old| old.end() > new.subflow)
            .collect();
        if overlapped.iter().any(|old| old.shift() != new.shift()) {
            return Err(Contradiction);
        }
        let start = overlapped
            .iter()
            .map(|old| old.subflow)
            .fold(new.subflow, u64::min);
        let end = overlapped.iter().map(Mapping::end).fold(new.end(), u64::max);
        for old in &overlapped {
            self.0.remove(&old.subflow);
        }
        let whole = Mapping {
            subflow: start,
            data: start.wrapping_add(new.shift()),
            bytes: end - start,
        };
        self.0.insert(start, whole);
        Ok(())
    }

    /// The mapping of the subflow's `byte`.
    pub(crate) fn of(&self, byte: u64) -> Option<Mapping> {
        let (_, mapping) = self.0.range(..=byte).next_back()?;
        (mapping.end() > byte).then_some(*mapping)
    }

    /// Does every byte from `start` to before `end` have a mapping?
    pub(crate) fn cover(&self, start: u64, end: u64) -> bool {
        let mut at = start;
        while at < end {
            match self.of(at) {
                Some(mapping) => at = mapping.end(),
                None => return false,
            }
        }
        true
    }

    /// The subflow's bytes below `byte` are done with.
    pub(crate) fn release_below(&mut self, byte: u64) {
        while let Some(first) = self.0.first_entry()
            && first.get().end() <= byte
        {
            first.remove();
        }
    }

    /// All of them, in the order of the subflow.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &Mapping> {
        self.0.values()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mapping(subflow: u64, data: u64, bytes: u64) -> Mapping {
        Mapping { subflow, data, bytes }
    }

    #[test]
    fn bytes_are_found_until_they_are_done_with() {
        let mut mappings = Mappings::default();
        mappings.add(mapping(1, 5001, 100)).unwrap();
        mappings.add(mapping(101, 9001, 100)).unwrap();
        assert_eq!(mappings.of(100).map(|found| found.data_at(100)), Some(5100));
        assert_eq!(mappings.of(101).map(|found| found.data_at(101)), Some(9001));
        assert_eq!(mappings.of(201), None);
        assert!(mappings.cover(50, 201) && !mappings.cover(50, 202) && !mappings.cover(0, 2));
        mappings.release_below(100);
        assert_eq!(mappings.len(), 2, "a byte of the first is still needed");
        mappings.release_below(101);
        assert_eq!(
            mappings.iter().copied().collect::<Vec<_>>(),
            [mapping(101, 9001, 100)]
        );
    }

    #[test]
    fn overlaps_must_agree() {
        let mut mappings = Mappings::default();
        mappings.add(mapping(1, 5001, 100)).unwrap();
        mappings.add(mapping(201, 5201, 100)).unwrap();
        for wrong in [
            mapping(1, 5002, 100),
            mapping(100, 5101, 1),
            mapping(300, 1, 5),
            mapping(0, 1, 400),
        ] {
            assert_eq!(mappings.add(wrong), Err(Contradiction), "{wrong:?}");
        }
        mappings.add(mapping(1, 5001, 100)).unwrap();
        mappings.add(mapping(51, 5051, 200)).unwrap();
        assert_eq!(
            mappings.iter().copied().collect::<Vec<_>>(),
            [mapping(1, 5001, 300)]
        );
    }
}
