//! The exit codes, and how an error becomes one.

use std::io::Write;
use std::process::ExitCode;

use clap::error::ErrorKind;

use super::print;
use crate::error::Error;

/// The thing asked about failed.
pub(super) const FAILED: u8 = 1;
/// What was given makes no sense.
pub(super) const USAGE: u8 = 2;
/// It is refused as things are.
pub(super) const REFUSED: u8 = 6;

/// A slot is broken.
pub(super) const BROKEN: u8 = 8;

/// The table, as the help shows it.
pub(super) const TABLE: &str = "\
Exit codes:
  0 done as asked   1 what was asked about failed   2 usage   3 no such job
  4 ambiguous       5 timed out                     6 refused (not ended, held, not now)
  7 no slot is idle 8 a slot is broken, or kept for what would be lost
  wait and run --wait give the job's own status: its code, 128+signal (143 when cancelled),
  75 interrupted, 124 its timeout, 126 or 127 it could not be started";

/// Say what is wrong with the arguments, or print the help that was asked for.
pub(super) fn of_parsing(error: &clap::Error) -> ExitCode {
    let is_help = matches!(
        error.kind(),
        ErrorKind::DisplayHelp
            | ErrorKind::DisplayVersion
            | ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand
    );
    if is_help {
        // Nothing better can be done where even this cannot be printed.
        let _ = error.print();
    } else {
        let text = error.to_string();
        let mut parts = text.split("\n\n").map(one_line);
        let what = parts.next().unwrap_or_default();
        let tip = parts.find_map(|part| part.strip_prefix("tip: ").map(str::to_owned));
        let what = what.strip_prefix("error: ").unwrap_or(&what);
        match tip {
            Some(tip) => say(&format!("{what}; {tip}")),
            None => say(&format!("{what}; see --help")),
        }
    }
    ExitCode::from(if error.use_stderr() { USAGE } else { 0 })
}

fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Say what went wrong, in one line, and give its code. A reader that has gone away is no error.
pub(super) fn of(error: &anyhow::Error) -> ExitCode {
    if let Some(error) = error.downcast_ref::<std::io::Error>()
        && error.kind() == std::io::ErrorKind::BrokenPipe
    {
        return ExitCode::SUCCESS;
    }
    say(&error.to_string());
    ExitCode::from(
        error
            .downcast_ref::<Error>()
            .map_or(FAILED, Error::exit_code),
    )
}

/// One line on standard error, safe for a terminal.
pub(super) fn say(message: &str) {
    // In one piece: others write to the same terminal.
    let line = format!("outlive: {}\n", print::safe(message));
    // Whoever closed standard error does not want to know.
    let _ = std::io::stderr().write_all(line.as_bytes());
}
