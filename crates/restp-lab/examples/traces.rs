//! Fingerprints of packet traces: `cargo run --release --example traces -- [FOLDER|FILE]…`. Each committed scenario runs
//! at every point with its first seed, and every step of every packet is hashed. One line per scenario: file, points,
//! packets, hash. A change that is meant to change no behaviour leaves `snapshots/traces.txt` as it is (`make traces`).

use rayon::prelude::*;
use restp_lab::Scenario;
use restp_lab::run::traced;
use siphasher::sip128::{Hasher128, SipHasher13};
use std::error::Error;
use std::fmt::Write;
use std::hash::Hasher;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

fn main() -> Result<(), Box<dyn Error>> {
    let named: Vec<PathBuf> = std::env::args_os().skip(1).map(PathBuf::from).collect();
    let roots = if named.is_empty() {
        vec![PathBuf::from("scenarios")]
    } else {
        named
    };
    let mut files = Vec::new();
    for root in &roots {
        collect(root, &mut files)?;
    }
    files.sort();
    for file in files {
        // Other files here are read by others, such as cases of chaos.
        if let Ok(scenario) = Scenario::read(&file) {
            #[expect(clippy::print_stdout, reason = "the lines are the result")]
            {
                println!("{} {}", file.display(), fingerprint(&scenario)?);
            }
        }
    }
    Ok(())
}

/// Scenario files at or below `root`.
fn collect(root: &Path, files: &mut Vec<PathBuf>) -> std::io::Result<()> {
    if root.is_dir() {
        for entry in std::fs::read_dir(root)? {
            collect(&entry?.path(), files)?;
        }
    } else if root.extension().is_some_and(|extension| extension == "toml") {
        files.push(root.to_owned());
    }
    Ok(())
}

fn fingerprint(scenario: &Scenario) -> Result<String, Box<dyn Error>> {
    let points: Vec<(u64, u128)> = scenario
        .points()
        .par_iter()
        .map(|point| {
            let hasher = Arc::new(Mutex::new((SipHasher13::new(), String::new())));
            let sink = Arc::clone(&hasher);
            let result = traced(point, point.plan.seed, move |event| {
                let mut held = sink.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
                let (hasher, line) = &mut *held;
                line.clear();
                let _ = writeln!(line, "{event}");
                hasher.write(line.as_bytes());
            });
            let held = hasher.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
            result
                .map(|result| (result.packets, held.0.finish128().as_u128()))
                .map_err(|error| error.to_string())
        })
        .collect::<Result<_, String>>()?;
    let mut whole = SipHasher13::new();
    points.iter().for_each(|(_, hash)| whole.write_u128(*hash));
    let packets: u64 = points.iter().map(|(packets, _)| packets).sum();
    Ok(format!(
        "{} {packets} {:032x}",
        points.len(),
        whole.finish128().as_u128()
    ))
}
