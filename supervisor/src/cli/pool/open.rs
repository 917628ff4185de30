//! `outlive pool open`: have a slot to work in.

use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::time::Duration;

use clap::{ArgMatches, Command};
use serde::Serialize;

use super::{Part, pool, pool_name, slots_of};
use crate::cli::arguments::{duration, json, option};
use crate::cli::print;
use crate::slots::{OpenSession, SessionSpec, any_path};
use crate::store::Store;

pub(super) const PART: Part = Part { declare, run };

fn declare() -> Command {
    Command::new("open")
        .about("Open a session in an idle slot; print its token and the path to work in")
        .long_about(
            "Open a session in an idle slot, and print its token, a tab, and the path to work in. The session \
             belongs to no process: it stays open until it is closed. Nobody is waited for; where no slot is idle, \
             it is said who has them, with exit code 7.",
        )
        .args([
            pool(),
            duration(
                "expires",
                "After how long anybody may close it if nothing would be lost [never]",
            ),
            option("note", "TEXT", "What others are to read of it"),
            json(),
        ])
}

fn run(store: &Store, matches: &ArgMatches) -> anyhow::Result<u8> {
    let spec = SessionSpec {
        expires: matches.get_one::<Duration>("expires").copied(),
        note: matches.get_one::<String>("note").cloned(),
    };
    let session = slots_of(store).open_session(&pool_name(matches)?, &spec)?;
    show(&session, matches.get_flag("json"))?;
    Ok(0)
}

/// A session as it is printed.
#[derive(Serialize)]
struct Report<'a> {
    token: &'a str,
    pool: &'a str,
    slot: u32,
    #[serde(serialize_with = "any_path")]
    path: &'a Path,
    expires_at_ms: Option<u64>,
    /// How long git and the pool's own commands took for it.
    work_ms: u64,
}

pub(super) fn show(session: &OpenSession, as_json: bool) -> anyhow::Result<()> {
    if as_json {
        return print::json(&Report {
            token: session.token.as_str(),
            pool: session.pool.as_str(),
            slot: session.slot,
            path: &session.path,
            expires_at_ms: session.expires_at_ms,
            work_ms: u64::try_from(session.work.as_millis()).unwrap_or(u64::MAX),
        });
    }
    // Byte for byte: it is there to be used.
    let mut line = format!("{}\t", session.token).into_bytes();
    line.extend(session.path.as_os_str().as_bytes());
    print::bytes(&line)?;
    Ok(())
}
