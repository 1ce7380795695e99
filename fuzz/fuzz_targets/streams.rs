//! libFuzzer drives `restp_fuzz::streams`.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| restp_fuzz::streams::run(bytes));
