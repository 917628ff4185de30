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

use outlive_model::config;

/// What was asked for on the command line.
pub(crate) struct Asked {
    pub(crate) config: Option<String>,
    pub(crate) show: Option<String>,
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
