//! The `outlive` command as the tests run it: the very same entry, built by this package so that `cargo test` always
//! has a fresh one.

use std::process::ExitCode;

fn main() -> ExitCode {
    outlive::cli::main()
}
