//! `outlive supervisor`: ask the supervisor of the store how it is, and tell it to drain, to reload, to end.

use std::io;
use std::time::Duration;

use clap::{ArgMatches, Command};
use serde_json::Value;
use state_machine::wire::Ask;

use super::arguments::{duration, flag, json};
use super::{Verb, exit, print};
use crate::clock;
use crate::dial::{Conversation, Reply};
use crate::error::{Error, Result};
use crate::store::Store;
use crate::supervisor::{StatusReport, holder};

pub(super) const VERB: Verb = Verb {
    name: "supervisor",
    aliases: &[],
    declare,
    run,
};

/// How long it may take to answer, and to end where nothing has to be waited for.
const PATIENCE: Duration = Duration::from_secs(10);
/// The pauses between two tries: they double.
const FIRST_PAUSE: Duration = Duration::from_millis(2);
const LONGEST_PAUSE: Duration = Duration::from_millis(250);

fn declare(verb: Command) -> Command {
    let timeout = || duration("timeout", "Wait no longer than this [10s]");
    verb.about("Ask the supervisor of the store how it is, or tell it to drain, to reload, to end")
        .subcommand_required(true)
        .arg_required_else_help(true)
        .subcommands([
            Command::new("status")
                .about("How it is; exit 3 where there is none")
                .args([json(), timeout()]),
            Command::new("drain")
                .about("Admit no job any more, and end once nothing runs in any pool")
                .args([
                    flag("wait", "Wait until it has ended"),
                    duration(
                        "timeout",
                        "Wait no longer than this [10s for the answer; with --wait, for ever]",
                    ),
                ]),
            Command::new("reload")
                .about("Read the configuration again; one that cannot be read changes nothing")
                .arg(timeout()),
            Command::new("stop")
                .about("End it, and wait until it has ended; jobs run on")
                .arg(timeout()),
        ])
}

fn run(matches: &ArgMatches) -> anyhow::Result<u8> {
    let store = Store::open_default()?;
    let Some((what, matches)) = matches.subcommand() else {
        return Ok(exit::USAGE);
    };
    let timeout = matches.get_one::<Duration>("timeout").copied();
    let deadline = clock::since_boot() + timeout.unwrap_or(PATIENCE);
    match what {
        "status" => {
            let (_, status) = status(&store, deadline)?;
            if matches.get_flag("json") {
                print::json(&status)?;
            } else {
                show(&status)?;
            }
        }
        "drain" if matches.get_flag("wait") => {
            let (mut talk, status) = status(&store, deadline)?;
            ask(&store, &mut talk, &Ask::Drain, deadline)?;
            see_it_end(&store, &mut talk, &status, timeout.map(|_| deadline))?;
        }
        "drain" => {
            begin(&store, &Ask::Drain, deadline)?;
        }
        "reload" => {
            begin(&store, &Ask::Reload, deadline)?;
        }
        _ => {
            let (mut talk, status) = status(&store, deadline)?;
            ask(&store, &mut talk, &Ask::Shutdown, deadline)?;
            see_it_end(&store, &mut talk, &status, Some(deadline))?;
        }
    }
    Ok(0)
}

fn show(status: &StatusReport) -> io::Result<()> {
    let mode = match (status.ready, status.draining) {
        (_, true) => "draining",
        (true, false) => "ready",
        (false, false) => "starting",
    };
    print::line(&format!("process {}, {mode}", status.pid))?;
    print::line(&format!(
        "{} queued, {} running, {} paused, {} interrupted",
        status.queued, status.running, status.paused, status.interrupted
    ))?;
    for pool in &status.pools {
        let paused = if pool.paused { ", paused" } else { "" };
        print::line(&print::safe(&format!(
            "pool {}: {} of {} slots taken, {} waiting{paused}",
            pool.name, pool.taken, pool.slots, pool.waiting
        )))?;
    }
    if let Some(trouble) = &status.trouble {
        print::line(&print::safe(&format!("trouble: {trouble}")))?;
    }
    Ok(())
}

/// How the supervisor is, and the connection over which it said so.
fn status(store: &Store, deadline: Duration) -> Result<(Conversation, StatusReport)> {
    let (talk, status) = begin(store, &Ask::Status, deadline)?;
    match serde_json::from_value(status) {
        Ok(status) => Ok((talk, status)),
        Err(error) => Err(Error::Worker(format!(
            "the supervisor is of another version: {error}"
        ))),
    }
}

/// Connect to the supervisor and ask it something. One that has the lock and does not answer yet may be just about to.
fn begin(store: &Store, asked: &Ask, deadline: Duration) -> Result<(Conversation, Value)> {
    let mut pause = FIRST_PAUSE;
    loop {
        if !store.is_supervised()? {
            return Err(Error::Unsupervised);
        }
        let begun = Conversation::begin(store.root()).and_then(|mut talk| {
            let reply = talk.ask(asked, deadline)?;
            Ok((talk, reply))
        });
        match begun {
            Ok((talk, reply)) => return Ok((talk, answer(reply)?)),
            Err(error) if error.kind() == io::ErrorKind::InvalidData => {
                return Err(not_understood(&error));
            }
            Err(_) if clock::since_boot() >= deadline => return Err(silent(store)),
            Err(_) => {}
        }
        std::thread::sleep(pause);
        pause = (2 * pause).min(LONGEST_PAUSE);
    }
}

/// Ask one more thing over a connection.
fn ask(store: &Store, talk: &mut Conversation, asked: &Ask, deadline: Duration) -> Result<Value> {
    match talk.ask(asked, deadline) {
        Ok(reply) => answer(reply),
        Err(error) => match error.kind() {
            io::ErrorKind::InvalidData => Err(not_understood(&error)),
            io::ErrorKind::TimedOut => Err(silent(store)),
            _ => Err(Error::Unsupervised),
        },
    }
}

fn answer(reply: Reply) -> Result<Value> {
    match reply {
        Reply::Ok(value) => Ok(value),
        Reply::Refused(why) => Err(Error::Worker(why)),
    }
}

fn not_understood(error: &io::Error) -> Error {
    Error::Worker(format!("the supervisor is not understood: {error}"))
}

/// It lives, as its lock is held, and says nothing.
fn silent(store: &Store) -> Error {
    let (name, end) = match holder(store) {
        Some(pid) => (
            format!("the supervisor (process {pid})"),
            format!("'kill {pid}; kill -CONT {pid}' ends it"),
        ),
        None => (
            "the supervisor".to_owned(),
            "a SIGTERM and a SIGCONT end it".to_owned(),
        ),
    };
    Error::TimedOut(format!(
        "{name} holds the store's lock and does not answer: it is stopped, very busy, or of a version without a socket; \
         {end}, and its jobs run on"
    ))
}

/// Wait until the supervisor that said so of itself is gone. Another one may have taken its place by then.
fn see_it_end(
    store: &Store,
    talk: &mut Conversation,
    it: &StatusReport,
    deadline: Option<Duration>,
) -> Result<()> {
    let too_late = || {
        Error::TimedOut(format!(
            "the supervisor (process {}) has not ended yet",
            it.pid
        ))
    };
    talk.see_it_end(deadline).map_err(|_| too_late())?;
    let mut pause = FIRST_PAUSE;
    while store.is_supervised()? {
        if let Some(pid) = who_answers(store)
            && pid != it.pid
        {
            exit::say(&format!(
                "process {} has ended, and process {pid} is the supervisor now",
                it.pid
            ));
            return Ok(());
        }
        if deadline.is_some_and(|deadline| clock::since_boot() >= deadline) {
            return Err(too_late());
        }
        std::thread::sleep(pause);
        pause = (2 * pause).min(LONGEST_PAUSE);
    }
    Ok(())
}

fn who_answers(store: &Store) -> Option<u32> {
    let mut talk = Conversation::begin(store.root()).ok()?;
    let deadline = clock::since_boot() + LONGEST_PAUSE;
    match talk.ask(&Ask::Status, deadline).ok()? {
        Reply::Ok(status) => u32::try_from(status.get("pid")?.as_u64()?).ok(),
        Reply::Refused(_) => None,
    }
}
