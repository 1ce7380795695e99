//! Which bytes of the connection the bytes of one path are (RFC 8684 §3.3.1). A mapping, once made, is never changed;
//! both ends keep those whose bytes are not done with yet.

use std::collections::BTreeMap;

/// Bytes of a subflow and the bytes of the connection they carry, by 64-bit unwrapped numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ByteMapping {
    /// First byte, in the subflow.
    pub subflow: u64,
    /// First byte, in the connection.
    pub data: u64,
    /// How many.
    pub bytes: u64,
}

impl ByteMapping {
    fn end(&self) -> u64 {
        self.subflow + self.bytes
    }
    /// By how much the two numbers differ: the same throughout a mapping.
    fn shift(&self) -> u64 {
        self.data.wrapping_sub(self.subflow)
    }
    /// Number in the connection of the subflow's `byte`.
    pub fn data_at(&self, byte: u64) -> u64 {
        self.data + (byte - self.subflow)
    }
}

/// The mappings of one direction of a subflow; they do not overlap.
#[derive(Debug, Default)]
pub struct ByteMappings(BTreeMap<u64, ByteMapping>);

/// A mapping gives bytes another meaning than an earlier one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Contradiction;

impl ByteMappings {
    /// How many there are.
    pub fn count(&self) -> usize {
        self.0.len()
    }

    /// Adds a mapping of one byte or more. What overlaps earlier ones must say the same as they do.
    pub fn add(&mut self, new: ByteMapping) -> Result<(), Contradiction> {
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
        let end = overlapped.iter().map(ByteMapping::end).fold(new.end(), u64::max);
        for old in &overlapped {
            self.0.remove(&old.subflow);
        }
        let whole = ByteMapping {
            subflow: start,
            data: start.wrapping_add(new.shift()),
            bytes: end - start,
        };
        self.0.insert(start, whole);
        Ok(())
    }

    /// The mapping of the subflow's `byte`.
    pub fn of(&self, byte: u64) -> Option<ByteMapping> {
        let (_, mapping) = self.0.range(..=byte).next_back()?;
        (mapping.end() > byte).then_some(*mapping)
    }

    /// Does every byte from `start` to before `end` have a mapping?
    pub fn cover(&self, start: u64, end: u64) -> bool {
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
    pub fn release_below(&mut self, byte: u64) {
        while let Some(first) = self.0.first_entry()
            && first.get().end() <= byte
        {
            first.remove();
        }
    }

    /// All of them, in the order of the subflow.
    pub fn iter(&self) -> impl Iterator<Item = &ByteMapping> {
        self.0.values()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mapping(subflow: u64, data: u64, bytes: u64) -> ByteMapping {
        ByteMapping { subflow, data, bytes }
    }

    #[test]
    fn bytes_are_found_until_they_are_done_with() {
        let mut mappings = ByteMappings::default();
        mappings.add(mapping(1, 5001, 100)).unwrap();
        mappings.add(mapping(101, 9001, 100)).unwrap();
        assert_eq!(mappings.of(100).map(|found| found.data_at(100)), Some(5100));
        assert_eq!(mappings.of(101).map(|found| found.data_at(101)), Some(9001));
        assert_eq!(mappings.of(201), None);
        assert!(mappings.cover(50, 201) && !mappings.cover(50, 202) && !mappings.cover(0, 2));
        mappings.release_below(100);
        assert_eq!(mappings.count(), 2, "a byte of the first is still needed");
        mappings.release_below(101);
        assert_eq!(
            mappings.iter().copied().collect::<Vec<_>>(),
            [mapping(101, 9001, 100)]
        );
    }

    #[test]
    fn overlaps_must_agree() {
        let mut mappings = ByteMappings::default();
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
