//! The `outlive` command as the tests run it: the very same entry, built by this package so that `cargo test` always
//! has a fresh one.
//!
//! It keeps tapes where there is a directory for them: in that of `OUTLIVE_TAPE` (in none where that is empty), or in
//! `tape` beside the store. That it needs no variable is for the tests that look at a job's environment.

use std::process::ExitCode;

use outlive_tests::TAPES;

fn main() -> ExitCode {
    outlive::worker_if_asked();
    let tapes = std::env::var_os("OUTLIVE_TAPE").unwrap_or_else(|| TAPES.into());
    if !tapes.is_empty() {
        outlive::disk::record_in(tapes.into());
    }
    outlive::cli::main()
}
