//! `outlive pool close`: give a slot back.

use clap::{ArgMatches, Command};

use super::{Part, slots_of, token, token_of};
use crate::cli::arguments::flag;
use crate::cli::exit;
use crate::slots::Force;
use crate::store::Store;

pub(super) const PART: Part = Part { declare, run };

fn declare() -> Command {
    Command::new("close")
        .about("Close a session, and give its slot back")
        .long_about(
            "Close a session: its slot is reset and given back. Refused while a process works in it (your shell, if it \
             stands there), and where work would be lost that is landed nowhere.",
        )
        .args([
            token(),
            flag(
                "force",
                "End what works in it and discard what would be lost; say what that was",
            ),
        ])
}

pub(super) fn force(matches: &ArgMatches) -> Force {
    if matches.get_flag("force") {
        Force::Yes
    } else {
        Force::No
    }
}

fn run(store: &Store, matches: &ArgMatches) -> anyhow::Result<u8> {
    let closed = slots_of(store).close_session(&token_of(matches)?, force(matches))?;
    say_what_went(&closed.ended, &closed.discarded);
    if let Some(why) = &closed.broken {
        exit::say(&format!(
            "the session is closed, and its slot is broken: {why}"
        ));
        return Ok(exit::BROKEN);
    }
    Ok(0)
}

/// Say what was done by force.
pub(super) fn say_what_went(ended: &[String], discarded: &[String]) {
    for process in ended {
        exit::say(&format!("ended process {process}"));
    }
    for work in discarded {
        exit::say(&format!("discarded: {work}"));
    }
}
