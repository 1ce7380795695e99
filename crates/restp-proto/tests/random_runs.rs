//! Random compositions, networks and applications from one seed; laws checked from what was written, read and sent,
//! never by asking the engine. `RESTP_RUNS=20000` runs more seeds, `RESTP_SEED=7` that one alone.

mod common;
mod random;

use random::Run;

#[test]
fn laws_hold_for_random_compositions_networks_and_applications() {
    let number = |name: &str| std::env::var(name).ok().and_then(|text| text.parse().ok());
    let seeds = match number("RESTP_SEED") {
        Some(seed) => seed..seed + 1,
        None => 0..number("RESTP_RUNS").unwrap_or(300),
    };
    let mut broken = Vec::new();
    for seed in seeds {
        let run = std::panic::catch_unwind(|| Run::new(seed).play());
        if run.is_err() {
            broken.push(seed);
        }
    }
    assert!(
        broken.is_empty(),
        "seeds {broken:?} broke a law; RESTP_SEED=<seed> runs one alone"
    );
}
