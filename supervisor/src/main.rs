//! The `outlive` command.

use std::process::ExitCode;

fn main() -> ExitCode {
    outlive::worker_if_asked();
    outlive::cli::main()
}
