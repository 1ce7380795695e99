//! Every target survives its seeds and the first inputs that chance makes of them. How many does not depend on the machine's
//! speed; `make fuzz-smoke` goes on for a minute.

use restp_fuzz::inputs::Inputs;
use restp_fuzz::{TARGETS, Target, sealed};

const SEED: u64 = 1;
const CHANGED: usize = 40_000;

/// A panic is a finding; this says in which input.
struct Current(&'static str, usize);

impl Drop for Current {
    fn drop(&mut self) {
        if std::thread::panicking() {
            let Current(name, number) = self;
            eprintln!(
                "{name}: input {number} of seed {SEED} fails; `cargo run -p restp-fuzz -- 60 {SEED} {name}` keeps it"
            );
        }
    }
}

#[test]
fn every_target_survives_its_seeds_and_what_chance_makes_of_them() {
    std::thread::scope(|scope| {
        for (name, target) in TARGETS {
            scope.spawn(move || survives(name, target));
        }
    });
}

fn survives(name: &'static str, target: Target) {
    let inputs = Inputs::of(name, SEED);
    let many = inputs.seeds() + CHANGED;
    for (number, input) in inputs.take(many).enumerate() {
        let _current = Current(name, number);
        target(&input);
    }
    if name == "sealed" {
        reaches_all(&sealed::coverage());
    }
}

/// Stories that never come to a session show nothing of one: most open packets, and together they have all that a seal can say.
#[expect(clippy::print_stdout, reason = "the coverage is shown")]
fn reaches_all(coverage: &sealed::Coverage) {
    println!("{coverage:02x?}");
    assert!(10 * coverage.opened >= 6 * coverage.stories, "{coverage:?}");
    for kind in [0x80, 0x81, 0x82, 0x83, 0x84, 0x85, 0x86, 0x87, 0xC0, 0xE0] {
        assert!(
            coverage.kinds.contains_key(&kind),
            "nothing of kind {kind:02x}: {coverage:02x?}"
        );
    }
    assert!(!coverage.done.contains(&0), "{coverage:?}");
}
