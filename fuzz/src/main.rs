//! Every target for a while, without libFuzzer: seeds under version control, changed by chance from a printed seed.
//! usage: restp-fuzz SECONDS [SEED [TARGET]]

#![allow(clippy::print_stdout, reason = "its output is its result")]

use restp::clock::Clock;
use restp_base::random::Stream;
use restp_fuzz::{TARGETS, Target};
use std::path::Path;
use std::process::ExitCode;

/// Longest input made here.
const MOST_BYTES: usize = 4096;

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let number =
        |index: usize, without: u64| words.get(index).map_or(Some(without), |word| word.parse().ok());
    let (Some(seconds), Some(seed)) = (number(0, 60), number(1, 1)) else {
        eprintln!("usage: restp-fuzz SECONDS [SEED [TARGET]]");
        return ExitCode::from(2);
    };
    let wanted = |name: &str| words.get(2).is_none_or(|only| only == name);
    let chosen: Vec<_> = TARGETS.iter().filter(|(name, _)| wanted(name)).collect();
    let share = seconds as f64 / chosen.len().max(1) as f64;
    for (name, target) in &chosen {
        let seeds = seeds(name);
        let mut dice = Stream::named(seed, name);
        let clock = Clock::start();
        let mut inputs = 0_u64;
        while inputs < seeds.len() as u64 || clock.now().as_secs_f64() < share {
            // Each seed as it is, and then whatever chance makes of them.
            let input = match seeds.get(inputs as usize) {
                Some(seed) => seed.clone(),
                None => changed(&seeds, &mut dice),
            };
            if let Err(place) = survives(*target, &input) {
                eprintln!("{name}: input {inputs} of seed {seed} fails; it is in {place}");
                return ExitCode::FAILURE;
            }
            inputs += 1;
        }
        println!(
            "{name}: {inputs} inputs, {:.1} s, seed {seed}: no finding",
            clock.now().as_secs_f64()
        );
    }
    if chosen.is_empty() {
        ExitCode::from(2)
    } else {
        ExitCode::SUCCESS
    }
}

/// Runs `target`; where it panics, keeps the input and says where.
fn survives(target: Target, input: &[u8]) -> Result<(), String> {
    let run = std::panic::catch_unwind(|| target(input));
    run.map_err(|_| {
        let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("artifacts/found");
        let written = std::fs::create_dir_all(file.parent().unwrap_or(&file))
            .and_then(|()| std::fs::write(&file, input));
        match written {
            Ok(()) => file.display().to_string(),
            Err(error) => format!("no file ({error}): {input:02x?}"),
        }
    })
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
