//! Inputs without a fuzzer: seeds under version control, and what chance makes of them. One seed of chance, one sequence.

use restp_base::random::Stream;
use std::path::Path;

/// Longest input made here.
const MOST_BYTES: usize = 4096;

/// Inputs of one target without end: each seed as it is, then changed ones.
pub struct Inputs {
    seeds: Vec<Vec<u8>>,
    given: usize,
    dice: Stream,
}

impl Inputs {
    /// For the target of this name.
    pub fn of(target: &str, seed: u64) -> Self {
        Inputs {
            seeds: seeds(target),
            given: 0,
            dice: Stream::named(seed, target),
        }
    }

    /// How many of them are seeds.
    pub fn seeds(&self) -> usize {
        self.seeds.len()
    }
}

impl Iterator for Inputs {
    type Item = Vec<u8>;

    fn next(&mut self) -> Option<Vec<u8>> {
        let seed = self.seeds.get(self.given).cloned();
        self.given += 1;
        Some(seed.unwrap_or_else(|| changed(&self.seeds, &mut self.dice)))
    }
}

/// Files under version control that are inputs of `target`.
fn seeds(target: &str) -> Vec<Vec<u8>> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut folders = vec![root.join("corpus").join(target)];
    if target == "scenario" {
        folders.extend(["restp", "chaos"].map(|folder| root.join("../scenarios").join(folder)));
    }
    let mut files: Vec<_> = folders
        .iter()
        .flat_map(|folder| std::fs::read_dir(folder).into_iter().flatten())
        .flatten()
        .map(|entry| entry.path())
        .collect();
    files.sort();
    files.iter().filter_map(|file| std::fs::read(file).ok()).collect()
}

/// One of the seeds with some changes, or something new.
fn changed(seeds: &[Vec<u8>], dice: &mut Stream) -> Vec<u8> {
    let pick = |dice: &mut Stream| match seeds.len() {
        0 => Vec::new(),
        count => seeds[dice.below(count as u64) as usize].clone(),
    };
    let mut input = if dice.below(4) == 0 {
        (0..dice.below(600)).map(|_| dice.bits() as u8).collect()
    } else {
        pick(dice)
    };
    for _ in 0..=dice.below(8) {
        let at = dice.below(input.len() as u64 + 1) as usize;
        match dice.below(7) {
            0 if at < input.len() => input[at] ^= 1 << dice.below(8),
            1 if at < input.len() => input[at] = dice.bits() as u8,
            2 => input.truncate(at),
            3 => {
                let end = (at + dice.below(16) as usize).min(input.len());
                drop(input.drain(at..end));
            }
            4 => {
                let new: Vec<u8> = (0..dice.below(40)).map(|_| dice.bits() as u8).collect();
                drop(input.splice(at..at, new));
            }
            5 => {
                // Numbers that are at some edge.
                let edge = [0, 1, 0x7F, 0x80, 0xFF][dice.below(5) as usize];
                let end = (at + 1 + dice.below(8) as usize).min(input.len());
                input[at..end].fill(edge);
            }
            _ => {
                let other = pick(dice);
                let from = dice.below(other.len() as u64 + 1) as usize;
                let to = (from + dice.below(80) as usize).min(other.len());
                drop(input.splice(at..at, other[from..to].iter().copied()));
            }
        }
    }
    input.truncate(MOST_BYTES);
    input
}
