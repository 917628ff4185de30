//! See [`targets::descriptor`].
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| targets::descriptor(bytes));
