//! Every target for a while, without libFuzzer: seeds under version control, changed by chance from a printed seed.
//! usage: restp-fuzz SECONDS [SEED [TARGET]]

#![allow(clippy::print_stdout, reason = "its output is its result")]

use restp::clock::Clock;
use restp_fuzz::inputs::Inputs;
use restp_fuzz::{TARGETS, Target};
use std::path::Path;
use std::process::ExitCode;

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
        let mut inputs = Inputs::of(name, seed);
        let clock = Clock::start();
        let mut number = 0;
        while number < inputs.seeds() || clock.now().as_secs_f64() < share {
            let input = inputs.next().unwrap_or_default();
            if let Err(place) = survives(*target, &input) {
                eprintln!("{name}: input {number} of seed {seed} fails; it is in {place}");
                return ExitCode::FAILURE;
            }
            number += 1;
        }
        if *name == "sealed" {
            println!("sealed: {:02x?}", restp_fuzz::sealed::coverage());
        }
        println!(
            "{name}: {number} inputs, {:.1} s, seed {seed}: no finding",
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
