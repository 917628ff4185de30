//! See [`targets::slot`].
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| targets::slot(bytes));
