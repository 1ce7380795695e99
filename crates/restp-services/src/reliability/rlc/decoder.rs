//! The receiver of the sliding window code (RFC 8681): each encoded packet is an equation whose unknowns are the segments
//! that have not arrived, and what arrives takes an unknown out of all of them. Equations are kept reduced (Gauss-Jordan): each
//! is solved for one unknown that no other one has, and one with no other unknown is that segment.
//!
//! Memory and work are bounded whatever a peer sends: what lies [`SPAN`] numbers back is forgotten, and so is the oldest of more
//! than [`MOST_EQUATIONS`]. So an equation has at most one unknown more than [`SPAN`], and a packet is added to each at most twice.

use super::combination::{Combination, SPAN};
use crate::reliability::encoded::Rebuilt;
use crate::reliability::gf256;
use crate::reliability::sum::{LENGTH_BYTES, Sum};
use bytes::Bytes;
use std::collections::BTreeMap;

const MOST_EQUATIONS: usize = 64;
/// Bytes of memory that an unknown takes.
const UNKNOWN_BYTES: usize = 16;

#[derive(Debug)]
struct Equation {
    /// Unknown segments with their coefficients, none of them 0, in the order of their numbers: equations are added all the time.
    unknown: Vec<(u64, u8)>,
    /// What they come to.
    sum: Sum,
}

impl Equation {
    fn place(&self, number: u64) -> Result<usize, usize> {
        self.unknown.binary_search_by_key(&number, |(number, _)| *number)
    }

    /// The coefficient of `number`, if it is unknown.
    fn coefficient(&self, number: u64) -> Option<u8> {
        self.place(number).ok().map(|place| self.unknown[place].1)
    }

    /// The first unknown.
    fn first(&self) -> Option<(u64, u8)> {
        self.unknown.first().copied()
    }

    /// Adds `factor` times `other`.
    fn add(&mut self, factor: u8, other: &Equation) {
        let mut own = self.unknown.iter().copied().peekable();
        let mut sum = Vec::with_capacity(self.unknown.len() + other.unknown.len());
        for &(number, coefficient) in &other.unknown {
            sum.extend(std::iter::from_fn(|| own.next_if(|(own, _)| *own < number)));
            let before = own.next_if(|(own, _)| *own == number);
            let coefficient = before.map_or(0, |(_, own)| own) ^ gf256::multiply(factor, coefficient);
            sum.extend((coefficient != 0).then_some((number, coefficient)));
        }
        sum.extend(own);
        self.unknown = sum;
        self.sum.add_sum(factor, &other.sum);
    }

    /// The segment `number` is this.
    fn substitute(&mut self, number: u64, payload: &[u8]) {
        if let Ok(place) = self.place(number) {
            let (_, coefficient) = self.unknown.remove(place);
            self.sum.add(coefficient, payload);
        }
    }

    fn scale(&mut self, factor: u8) {
        for (_, coefficient) in &mut self.unknown {
            *coefficient = gf256::multiply(factor, *coefficient);
        }
        self.sum.scale(factor);
    }
}

/// Keeps what arrived and what is known of the rest.
#[derive(Debug, Default)]
pub(crate) struct RlcDecoder {
    /// The highest number that arrived, or that anything combined: it says what is remembered.
    newest: u64,
    known: BTreeMap<u64, Bytes>,
    /// Bytes of their payloads.
    known_bytes: usize,
    /// Each under the unknown that it is solved for, with the coefficient 1.
    equations: BTreeMap<u64, Equation>,
    rebuilt: Vec<Rebuilt>,
}

impl RlcDecoder {
    /// The segment `number` was received. Its payload is copied: kept for so long, it would keep the whole buffer alive in which
    /// it was received.
    pub(crate) fn on_received(&mut self, number: u64, payload: &[u8]) {
        if self.known.contains_key(&number) {
            return;
        }
        self.learn(number, Bytes::copy_from_slice(payload));
        if let Some(mut equation) = self.equations.remove(&number) {
            equation.substitute(number, payload);
            self.take(equation);
        } else {
            let equations = self.equations.values_mut();
            equations.for_each(|equation| equation.substitute(number, payload));
        }
        self.solve();
        self.forget_before_span(number);
    }

    /// Takes the encoded packet of `range` whose first segment is `first`. False: it is none.
    pub(crate) fn decode(&mut self, first: u64, range: u32, payload: &[u8]) -> bool {
        let combination = Combination::from_range(range);
        let (Some(sum), true) = (Sum::received(payload), combination.is_within_span()) else {
            return false;
        };
        let numbers =
            (0..combination.count()).map(|index| first.saturating_add(index * combination.stride()));
        let mut unknown: Vec<_> = numbers.zip(combination.coefficients()).collect();
        unknown.dedup_by_key(|(number, _)| *number);
        let mut equation = Equation { unknown, sum };
        let last = equation.unknown.last().map_or(first, |(number, _)| *number);
        self.forget_before_span(last);
        if first < self.oldest() {
            return true; // too late: some of it is forgotten
        }
        for (number, payload) in self.known.range(first..=last) {
            if equation.coefficient(*number).is_some() && payload.len() + LENGTH_BYTES > equation.sum.len() {
                return false; // nothing that was combined is longer than the sum
            }
            equation.substitute(*number, payload);
        }
        self.take(equation) && self.solve()
    }

    /// What was rebuilt since the last call.
    pub(crate) fn take_rebuilt(&mut self) -> Vec<Rebuilt> {
        std::mem::take(&mut self.rebuilt)
    }

    /// Bytes of memory it takes.
    pub(crate) fn bytes(&self) -> usize {
        let equations = self.equations.values();
        let size = |equation: &Equation| equation.sum.len() + UNKNOWN_BYTES * equation.unknown.len();
        self.known_bytes + equations.map(size).sum::<usize>()
    }

    /// Keeps an equation, unless the others say the same. False: it contradicts them.
    fn take(&mut self, mut new: Equation) -> bool {
        let solved = |(number, coefficient): &(u64, u8)| Some((self.equations.get(number)?, *coefficient));
        let others: Vec<_> = new.unknown.iter().filter_map(solved).collect();
        others
            .into_iter()
            .for_each(|(other, factor)| new.add(factor, other));
        let Some((number, coefficient)) = new.first() else {
            return new.sum.is_zero();
        };
        new.scale(gf256::inverse(coefficient));
        for other in self.equations.values_mut() {
            if let Some(factor) = other.coefficient(number) {
                other.add(factor, &new);
            }
        }
        self.equations.insert(number, new);
        if self.equations.len() > MOST_EQUATIONS {
            self.equations.pop_first();
        }
        true
    }

    /// Moves what has one unknown left to what is known. False: some of it is no segment.
    fn solve(&mut self) -> bool {
        let mut is_sound = true;
        let is_solved = |_: &u64, equation: &mut Equation| equation.unknown.len() == 1;
        let solved: Vec<_> = self.equations.extract_if(.., is_solved).collect();
        for (number, equation) in solved {
            match equation.sum.into_remaining() {
                Some(payload) => {
                    self.learn(number, payload.clone());
                    self.rebuilt
                        .push((number, Some(payload).filter(|payload| !payload.is_empty())));
                }
                None => is_sound = false,
            }
        }
        is_sound
    }

    fn learn(&mut self, number: u64, payload: Bytes) {
        self.known_bytes += payload.len();
        self.known.insert(number, payload);
    }

    /// The oldest number that is remembered.
    fn oldest(&self) -> u64 {
        self.newest.saturating_sub(SPAN)
    }

    /// `number` is the newest, unless something newer was known.
    fn forget_before_span(&mut self, number: u64) {
        self.newest = self.newest.max(number);
        let oldest = self.oldest();
        while let Some((_, payload)) = self
            .known
            .first_entry()
            .filter(|e| *e.key() < oldest)
            .map(|e| e.remove_entry())
        {
            self.known_bytes -= payload.len();
        }
        self.equations
            .retain(|_, equation| equation.first().is_some_and(|(number, _)| number >= oldest));
    }
}
