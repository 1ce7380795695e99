//! libFuzzer drives `restp_fuzz::connection`.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| restp_fuzz::connection::run(bytes));
