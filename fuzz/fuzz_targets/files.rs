//! libFuzzer drives `restp_fuzz::files`.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| restp_fuzz::files::run(bytes));
