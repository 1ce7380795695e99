//! libFuzzer drives `restp_fuzz::packet`.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| restp_fuzz::packet::run(bytes));
