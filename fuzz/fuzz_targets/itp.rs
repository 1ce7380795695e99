//! libFuzzer drives `restp_fuzz::itp`.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| restp_fuzz::itp::run(bytes));
