//! libFuzzer drives `restp_fuzz::sealed`.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| restp_fuzz::sealed::run(bytes));
