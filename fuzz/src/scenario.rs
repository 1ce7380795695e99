//! Arbitrary text as a scenario file and as a case of chaos: refused with a sentence that names the place, or planned.

use restp_lab::Scenario;
use restp_lab::chaos::Case;

/// Longer files only repeat themselves.
const MOST_BYTES: usize = 8192;

/// One input.
pub fn run(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(&bytes[..bytes.len().min(MOST_BYTES)]) else {
        return;
    };
    match Scenario::parse(text) {
        Ok(scenario) => assert!(!scenario.points().is_empty()),
        Err(refused) => assert!(!refused.to_string().is_empty()),
    }
    match Case::read(text) {
        Ok(case) => assert_eq!(Case::read(&case.write()), Ok(case), "a case reads back"),
        Err(refused) => assert!(!refused.to_string().is_empty()),
    }
}
