//! The verbs of the command line, one file each.

/// Print a line. Whoever reads may have read enough: a closed pipe is no error.
macro_rules! say {
    ($($words:tt)*) => {{
        use std::io::Write as _;
        let _ = writeln!(std::io::stdout(), $($words)*);
    }};
}

mod check;
mod explore;
mod mutants;

pub(crate) use check::check;
pub(crate) use explore::explore;
pub(crate) use mutants::mutants;

use std::process::ExitCode;

use outlive_model::config;

/// What was asked for on the command line.
pub(crate) struct Asked {
    pub(crate) config: Option<String>,
    pub(crate) show: Option<String>,
    /// Of mutants: those that must be caught.
    pub(crate) caught: bool,
    /// Of mutants: those that are said to break nothing.
    pub(crate) harmless: bool,
    pub(crate) all: bool,
    pub(crate) threads: usize,
    pub(crate) bless: bool,
    pub(crate) address: String,
}

pub(crate) fn unknown(name: &str) -> String {
    let names: Vec<_> = config::every().map(|world| world.name).collect();
    format!(
        "no such configuration: {name}; there are {}",
        names.join(", ")
    )
}

/// The profile in which a panic can be caught, and all else is as fast as in a release.
pub(crate) const UNWINDING: &str = "--profile model";

/// Say that this build cannot do what was asked for, and which one can.
pub(crate) fn must_unwind(what: &str, command: &str) -> ExitCode {
    eprintln!(
        "outlive-model: {what} needs a build in which a panic can be caught, and this one aborts on the first. Run\n    \
         cargo run {UNWINDING} -p outlive-model -- {command}"
    );
    ExitCode::from(2)
}
