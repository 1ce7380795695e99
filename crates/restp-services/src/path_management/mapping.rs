//! Connection number and path number of the same segment (ResTP §3.1.13): one path sends its own numbers in order,
//! each standing for some number of the connection.

use std::collections::VecDeque;

/// Which connection number each outstanding number of one path carries.
#[derive(Debug)]
pub struct Mapping {
    first: u64,
    carried: VecDeque<Option<u64>>,
}

impl Mapping {
    /// The next number of the path will be `first`.
    pub fn new(first: u64) -> Self {
        Mapping {
            first,
            carried: VecDeque::new(),
        }
    }

    /// The path's next number carries `number` of the connection, or nothing of it (a FIN of the path).
    pub fn push(&mut self, number: Option<u64>) {
        self.carried.push_back(number);
    }

    /// What the path's `number` carries, while it is outstanding.
    pub fn carried_by(&self, number: u64) -> Option<u64> {
        let index = number.checked_sub(self.first)?;
        *self.carried.get(usize::try_from(index).ok()?)?
    }

    /// The path's pointer has moved to `next`.
    pub fn release_below(&mut self, next: u64) {
        while self.first < next && self.carried.pop_front().is_some() {
            self.first += 1;
        }
        if self.carried.is_empty() && self.carried.capacity() > 64 {
            self.carried = VecDeque::new();
        }
    }

    /// Everything outstanding: path number and connection number.
    pub fn outstanding(&self) -> impl Iterator<Item = (u64, u64)> + '_ {
        let numbered = self.carried.iter().zip(self.first..);
        numbered.filter_map(|(carried, number)| Some((number, (*carried)?)))
    }

    /// Bytes of memory the record takes.
    pub fn memory(&self) -> usize {
        self.carried.capacity() * size_of::<Option<u64>>()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_mapped_until_the_path_has_acknowledged_them() {
        let mut mapping = Mapping::new(5);
        for number in [Some(1000), Some(1003), None, Some(1001)] {
            mapping.push(number);
        }
        assert_eq!(
            (
                mapping.carried_by(4),
                mapping.carried_by(5),
                mapping.carried_by(7)
            ),
            (None, Some(1000), None)
        );
        mapping.release_below(6);
        assert_eq!((mapping.carried_by(5), mapping.carried_by(6)), (None, Some(1003)));
        assert_eq!(mapping.outstanding().collect::<Vec<_>>(), [(6, 1003), (8, 1001)]);
        mapping.release_below(100);
        assert_eq!(mapping.outstanding().count(), 0);
        mapping.push(Some(1004));
        assert_eq!(mapping.carried_by(9), Some(1004), "numbers go on");
    }
}
