//! The `outlive` command.

use std::process::ExitCode;

fn main() -> ExitCode {
    outlive::cli::main()
}
