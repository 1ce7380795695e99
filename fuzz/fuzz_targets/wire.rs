//! libFuzzer drives `restp_fuzz::wire`.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| restp_fuzz::wire::run(bytes));
