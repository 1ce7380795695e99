//! Arbitrary lines `key = value` as a composition, and as needs from which one is derived: refused with a sentence, or
//! checked; and what is checked can be written down and read again.

use restp_proto::Composition;
use restp_proto::composition::Needs;

/// One input.
pub fn run(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else {
        return;
    };
    let pairs = || text.lines().filter_map(|line| line.split_once('='));
    let trimmed = pairs().map(|(key, value)| (key.trim(), value));
    match Composition::from_pairs(Composition::default(), trimmed) {
        Ok(composition) => check(composition),
        Err(refused) => assert!(!refused.to_string().is_empty()),
    }
    let mut needs = Needs::default();
    for (name, value) in pairs() {
        if let Err(refused) = needs.set(name.trim(), value.trim()) {
            assert!(!refused.to_string().is_empty());
        }
    }
    match needs.composition() {
        Ok(composition) => check(composition),
        Err(refused) => assert!(!refused.to_string().is_empty()),
    }
}

fn check(composition: Composition) {
    let written: Vec<_> = composition
        .services()
        .into_iter()
        .chain(composition.numbers())
        .map(|(key, value, _)| (key, value))
        .collect();
    let pairs = written.iter().map(|(key, value)| (*key, value.as_str()));
    let again = Composition::from_pairs(Composition::default(), pairs);
    let again = again.unwrap_or_else(|refused| panic!("{refused}: it was written so"));
    match (composition.check(), again.check()) {
        (Ok(_), Ok(_)) => {}
        (Err(refused), Err(_)) => assert!(!refused.to_string().is_empty()),
        (first, second) => panic!("{first:?}, but written and read {second:?}"),
    }
}
