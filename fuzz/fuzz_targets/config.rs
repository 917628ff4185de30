//! See [`targets::config`].
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| targets::config(bytes));
