//! See [`targets::events`].
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| targets::events(bytes));
