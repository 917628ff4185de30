//! `outlive supervise`: be the supervisor of the store, in the foreground.

use std::io::Write;
use std::time::Duration;

use anyhow::Context;
use clap::builder::PossibleValuesParser;
use clap::{ArgMatches, Command};
use rustix::process::{WaitOptions, getpid, setsid, wait};
use sd_notify::NotifyState;
use tokio::signal::unix::{Signal, SignalKind, signal};

use super::Verb;
use super::arguments::{duration, flag, option};
use super::background::{READY, TAKEN};
use crate::error::{Error, Result};
use crate::process;
use crate::store::Store;
use crate::supervisor::{Config, Supervisor};
use crate::sys;
use crate::worker::Launcher;

/// How long what is under way at the end may take.
const PATIENCE: Duration = Duration::from_secs(2);

pub(super) const VERB: Verb = Verb {
    name: "supervise",
    aliases: &[],
    declare,
    run,
};

fn declare(verb: Command) -> Command {
    verb.about("Admit queued jobs to their pools, take over what runs, sweep what ended")
        .args([
            flag("foreground", "Stay in the foreground, which it always does"),
            duration("idle-exit", "End after so long with nothing to do"),
            option("log-format", "FORMAT", "How it tells what it does [pretty]")
                .value_parser(PossibleValuesParser::new(["pretty", "json"])),
            option("log-level", "LEVEL", "How much it tells [info]").value_parser(
                PossibleValuesParser::new(["error", "warn", "info", "debug", "trace"]),
            ),
            flag("detached", "As started by a client that waits for a word").hide(true),
        ])
}

fn run(matches: &ArgMatches) -> anyhow::Result<u8> {
    let detached = matches.get_flag("detached");
    if detached {
        // Whatever ends the session of the client that started it does not end it. Fails only where it leads one already.
        let _ = setsid();
        // Whoever waits for the end of a pipe of the client's, or for a lock in a file of it, is not to wait for this.
        // Nothing owns a descriptor yet: this was just executed.
        sys::close_from(3, &[]);
    }
    tell_by(matches);
    if detached {
        process::leave_jobs();
    }
    let store = Store::open_default()?;
    let idle_exit = matches.get_one::<Duration>("idle-exit").copied();
    let config = Config {
        // The very program that this is, whatever is at its path by now.
        launcher: Launcher::outlive_at("/proc/self/exe"),
        idle_exit,
    };
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .context("no signal can be heard")?;
    // They are heard before there is anything that they could interrupt.
    let signals = {
        let _within = runtime.enter();
        Signals::new().context("no signal can be heard")?
    };
    match Supervisor::start(store, config) {
        Ok(supervisor) => {
            let ended = runtime.block_on(stay(supervisor, signals, detached));
            runtime.shutdown_background();
            ended?;
            Ok(0)
        }
        Err(Error::Supervised { .. }) if detached => {
            say_to_client(TAKEN);
            Ok(0)
        }
        Err(error) => Err(error.into()),
    }
}

/// Tell what is done on standard error.
fn tell_by(matches: &ArgMatches) {
    let level = matches
        .get_one::<String>("log-level")
        .and_then(|level| level.parse().ok())
        .unwrap_or(tracing::Level::INFO);
    let told = tracing_subscriber::fmt()
        .with_max_level(level)
        .with_writer(std::io::stderr)
        .with_ansi(false)
        .with_target(false);
    // Nobody else has set one: this is the program.
    let _ = match matches.get_one::<String>("log-format").map(String::as_str) {
        Some("json") => told.json().try_init(),
        _ => told.try_init(),
    };
}

/// Stay until it is told to end or ends for want of work.
///
/// # Errors
///
/// When it was lost: whoever keeps it running starts another one.
async fn stay(mut supervisor: Supervisor, mut signals: Signals, detached: bool) -> Result<()> {
    loop {
        tokio::select! {
            () = supervisor.ready() => break,
            word = signals.next() => obey(word, &supervisor).await,
        }
    }
    if detached {
        say_to_client(READY);
    }
    notify(&[NotifyState::Ready]);
    let ended = loop {
        tokio::select! {
            ended = supervisor.ended() => break ended,
            word = signals.next() => {
                let reloads = matches!(word, Word::Reload);
                if reloads {
                    notify_of_reload();
                }
                obey(word, &supervisor).await;
                if reloads {
                    notify(&[NotifyState::Ready]);
                }
            }
        }
    };
    notify(&[NotifyState::Stopping]);
    // The lock is free. A sweep that is under way is seen through; what takes longer, as ending what a dead worker left
    // does, is nothing to wait for: the next supervisor goes on from what is on disk, as if this had been killed.
    let dropped = tokio::task::spawn_blocking(move || drop(supervisor));
    let _ = tokio::time::timeout(PATIENCE, dropped).await;
    ended
}

/// What a signal asks for.
enum Word {
    End,
    Reload,
    Reap,
}

async fn obey(word: Word, supervisor: &Supervisor) {
    match word {
        Word::End => {
            tracing::info!("told to end; jobs run on");
            supervisor.shutdown();
        }
        Word::Reload => {
            // What fails is in the log, and changes nothing.
            let _ = supervisor.reload().await;
        }
        Word::Reap => reap(),
    }
}

/// The signals that are heard.
struct Signals {
    term: Signal,
    int: Signal,
    hup: Signal,
    /// Heard by the first process of a container, to whom every orphan comes.
    child: Option<Signal>,
}

impl Signals {
    fn new() -> std::io::Result<Signals> {
        Ok(Signals {
            term: signal(SignalKind::terminate())?,
            int: signal(SignalKind::interrupt())?,
            hup: signal(SignalKind::hangup())?,
            child: if getpid().is_init() {
                Some(signal(SignalKind::child())?)
            } else {
                None
            },
        })
    }

    async fn next(&mut self) -> Word {
        let orphan = async {
            match &mut self.child {
                Some(child) => child.recv().await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            _ = self.term.recv() => Word::End,
            _ = self.int.recv() => Word::End,
            _ = self.hup.recv() => Word::Reload,
            _ = orphan => Word::Reap,
        }
    }
}

/// Let those go who have ended and have no other parent.
fn reap() {
    while let Ok(Some(_)) = wait(WaitOptions::NOHANG) {}
}

/// Tell a service manager, if there is one.
fn notify(state: &[NotifyState<'_>]) {
    if let Err(error) = sd_notify::notify(state) {
        tracing::debug!(%error, "the service manager is not told");
    }
}

/// Tell it that the configuration is read again, which takes until it is ready once more.
fn notify_of_reload() {
    match NotifyState::monotonic_usec_now() {
        Ok(now) => notify(&[NotifyState::Reloading, now]),
        Err(error) => tracing::debug!(%error, "the service manager is not told"),
    }
}

/// The one word that the client which started this waits for.
fn say_to_client(word: &str) {
    // It may have gone away.
    let _ = writeln!(std::io::stdout(), "{word}");
    if let Ok(null) = std::fs::OpenOptions::new().write(true).open("/dev/null") {
        let _ = nix::unistd::dup2_stdout(&null);
    }
}
