//! `outlive pool renew`: give a session more time.

use std::time::Duration;

use clap::{ArgMatches, Command};

use super::{Part, open, slots_of, token, token_of};
use crate::cli::arguments::{duration, flag, json};
use crate::store::Store;

pub(super) const PART: Part = Part { declare, run };

fn declare() -> Command {
    Command::new("renew")
        .about("Let a session expire later, or never")
        .args([
            token(),
            duration("expires", "After how long from now it expires")
                .required_unless_present("never"),
            flag("never", "It does not expire").conflicts_with("expires"),
            json(),
        ])
}

fn run(store: &Store, matches: &ArgMatches) -> anyhow::Result<u8> {
    let expires = matches.get_one::<Duration>("expires").copied();
    let session = slots_of(store).renew(&token_of(matches)?, expires)?;
    open::show(&session, matches.get_flag("json"))?;
    Ok(0)
}
