//! libFuzzer drives `restp_fuzz::scenario`.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| restp_fuzz::scenario::run(bytes));
