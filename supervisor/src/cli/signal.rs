//! `outlive signal`: send a signal to the command of a job, or to all of its processes.

use clap::{Arg, ArgMatches, Command, value_parser};
use nix::sys::signal::Signal;
use state_machine::course::Search;
use state_machine::protocol::look::View;

use super::Verb;
use super::arguments::{find_job, flag, job};
use crate::error::{Error, Result};
use crate::process::{self, signal_everyone, signal_one};
use crate::store::{Job, Store, with_marks};

pub(super) const VERB: Verb = Verb {
    name: "signal",
    aliases: &[],
    declare,
    run,
};

/// The highest number of a signal on Linux.
const LAST: i32 = 64;

fn declare(verb: Command) -> Command {
    verb.about("Send a signal to the command of a job")
        .long_about(
            "Send a signal to the process that a job's command was started as, and to no other. To end a job use \
             'outlive stop', which leaves nothing of it behind and records the end as asked for.",
        )
        .args([
            job(),
            Arg::new("signal")
                .value_name("SIGNAL")
                .required(true)
                .value_parser(value_parser!(String))
                .help("A name, with or without SIG, or a number"),
            flag("tree", "Send it to every process of the job"),
        ])
}

fn run(matches: &ArgMatches) -> anyhow::Result<u8> {
    // Clap has seen to it that there is one.
    let word = matches
        .get_one::<String>("signal")
        .map_or("", String::as_str);
    let signal = parse_signal(word)?;
    let store = Store::open_default()?;
    let job = find_job(&store, matches)?;
    if matches.get_flag("tree") {
        send_to_tree(&job, signal)?;
    } else {
        send_to_command(&job, signal)?;
    }
    Ok(0)
}

/// The number of a signal: `HUP`, `SIGHUP`, `hup`, `1`.
fn parse_signal(word: &str) -> Result<i32> {
    if let Ok(number) = word.parse::<i32>() {
        return match number {
            1..=LAST => Ok(number),
            0 => Err(Error::Usage(
                "signal 0 is none; 'outlive status' tells whether a job runs".into(),
            )),
            _ => Err(Error::Usage(format!(
                "there is no signal {number}; name one from 1 to {LAST}"
            ))),
        };
    }
    let name = word.to_ascii_uppercase();
    let name = name.strip_prefix("SIG").unwrap_or(&name);
    format!("SIG{name}")
        .parse::<Signal>()
        .map(|signal| signal as i32)
        .map_err(|_| {
            Error::Usage(format!(
                "there is no signal '{word}'; name one such as HUP, USR1 or TERM, or a number"
            ))
        })
}

fn send_to_command(job: &Job, signal: i32) -> Result<()> {
    let view = held(job)?;
    let id = job.id();
    if view.state.is_terminal() {
        return Err(Error::NotNow(format!(
            "the command of {id} has ended ({}); --tree reaches what it left behind",
            view.state
        )));
    }
    let Some(pid) = view.status.pid else {
        return Err(Error::NotNow(if view.status.next_attempt_at_ms.is_some() {
            format!("{id} waits for its next attempt; try again when it runs")
        } else {
            format!("{id} has no process yet; try again when it runs")
        }));
    };
    if by_marks(job, |marked| signal_one(marked, pid, signal))? {
        Ok(())
    } else {
        Err(Error::NotNow(format!(
            "the process of {id} is not there any more; see 'outlive status {id}'"
        )))
    }
}

fn send_to_tree(job: &Job, signal: i32) -> Result<()> {
    held(job)?;
    if by_marks(job, |marked| signal_everyone(marked, signal))? > 0 {
        Ok(())
    } else {
        Err(Error::NotNow(format!(
            "no process of {0} is there; see 'outlive status {0}'",
            job.id()
        )))
    }
}

/// What is true about a job that somebody is responsible for.
fn held(job: &Job) -> Result<View> {
    let view = job.tend()?;
    let id = job.id();
    if view.held {
        Ok(view)
    } else if view.leftovers {
        Err(Error::NotNow(format!(
            "{id} is {} and has lost its worker, but not all of its processes; 'outlive stop {id}' ends them",
            view.state
        )))
    } else if view.state.is_terminal() {
        Err(Error::Ended {
            id: id.clone(),
            state: view.state,
        })
    } else {
        Err(Error::NotNow(format!(
            "{id} does not run (it is {}); 'outlive resume {id}' runs it",
            view.state
        )))
    }
}

/// Send by way of the marks that the job's processes carry.
fn by_marks<T>(job: &Job, send: impl FnOnce(&process::Job<'_>) -> std::io::Result<T>) -> Result<T> {
    with_marks(&job.dir(), Search::Holding, send).map_err(|error| {
        Error::NotNow(format!(
            "the processes of {} cannot be signalled: {error}",
            job.id()
        ))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn signals_are_named_as_people_name_them() {
        for word in ["HUP", "SIGHUP", "hup", "sighup", "1"] {
            assert_eq!(parse_signal(word).unwrap(), 1, "{word}");
        }
        assert_eq!(parse_signal("64").unwrap(), 64);
        for bad in ["0", "65", "-1", "", "SIG", "SIGSIGHUP", "NONE", "9x", "é"] {
            assert!(parse_signal(bad).is_err(), "{bad}");
        }
    }
}
