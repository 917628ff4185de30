//! See [`targets::pointer`].
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| targets::pointer(bytes));
