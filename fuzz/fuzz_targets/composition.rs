//! libFuzzer drives `restp_fuzz::composition`.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| restp_fuzz::composition::run(bytes));
