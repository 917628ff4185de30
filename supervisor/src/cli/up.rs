//! `outlive up`: start a project and watch what it prints, until it has ended or somebody has seen enough.

use std::io::{self, IsTerminal, PipeReader, PipeWriter, Write};
use std::os::fd::AsFd;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use clap::{Arg, ArgMatches, Command};
use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::retry_on_intr;

use super::arguments::flag;
use super::log::has_ended;
use super::scope::tasks_here;
use super::start::{exit_code, own_mask, start_until, tell, wanted};
use super::stop::stop_rounds;
use super::{Verb, exit, print};
use crate::error::{DiskError, Result};
use crate::output::{self, Start};
use crate::process::Told;
use crate::project::{News, Tasks};
use crate::store::{Job, Store};

/// How much is shown of what a task printed that ran already.
const LINES_BEFORE: u64 = 10;
/// How long what is being started may take to be seen.
const BETWEEN_LOOKS: Duration = Duration::from_millis(100);
/// The colours of the names, as a terminal numbers them.
const COLOURS: [u8; 6] = [36, 33, 32, 35, 34, 31];

pub(super) const VERB: Verb = Verb {
    name: "up",
    aliases: &[],
    declare,
    run,
};

fn declare(verb: Command) -> Command {
    verb.about("Start the tasks of the project and show what they print, each line with its task")
        .long_about(
            "Start the tasks of the project, as 'outlive start' does, and show what they print, each line with its task, until all have \
             ended. Interrupted, it leaves them running; with --stop it stops them, too.",
        )
        .args([
            Arg::new("task")
                .value_name("TASK")
                .num_args(0..)
                .help("A task of outlive.toml"),
            flag("stop", "Stop the tasks when this is interrupted; twice: without waiting for that"),
        ])
}

fn run(matches: &ArgMatches) -> anyhow::Result<u8> {
    let tasks = tasks_here()?;
    let names: Vec<String> = wanted(&tasks, matches)?
        .into_iter()
        .map(str::to_owned)
        .collect();
    let store = Store::open_default()?;
    let cannot_hear = |error| DiskError::new("hear", Path::new("signals"), error);
    let mut told = Told::listen().map_err(cannot_hear)?;
    let (over, writer) = io::pipe().map_err(cannot_hear)?;
    let is_over = Arc::new(AtomicBool::new(false));
    let shown = show_in_background(&store, &tasks, names.clone(), is_over.clone(), writer);
    if wait(&told, &over).map_err(cannot_hear)? == Woken::Over {
        return match shown.join() {
            Ok(code) => Ok(code?),
            Err(panic) => std::panic::resume_unwind(panic),
        };
    }
    if matches.get_flag("stop") {
        let keys = told.let_keys_end().map_err(cannot_hear)?;
        exit::say(if keys {
            "stopping the tasks; Ctrl-C once more does not wait for that"
        } else {
            "stopping the tasks"
        });
        stop_what_is_there(&store, &tasks, &names, &is_over)?;
    } else {
        exit::say("the tasks run on; end them with: outlive stop");
    }
    told.obey().map_err(cannot_hear)?;
    Ok(0)
}

/// Stop the tasks until none is left: one that was being started may have come meanwhile.
fn stop_what_is_there(
    store: &Store,
    tasks: &Tasks,
    names: &[String],
    is_over: &AtomicBool,
) -> Result<()> {
    is_over.store(true, Ordering::Relaxed);
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let mut looks_left = 2;
    while looks_left > 0 {
        let views = store.list_outlines()?.jobs;
        let rounds = tasks.rounds(store, &views, &names, false);
        if rounds.is_empty() {
            looks_left -= 1;
            std::thread::sleep(BETWEEN_LOOKS);
        } else {
            stop_rounds(&rounds, None, false);
        }
    }
    Ok(())
}

/// What has ended the wait.
#[derive(PartialEq, Eq)]
enum Woken {
    /// A signal that asks to end.
    Told,
    /// Everything has ended.
    Over,
}

fn wait(told: &Told, over: &PipeReader) -> io::Result<Woken> {
    let told = told.as_fd();
    let mut fds = [
        PollFd::from_borrowed_fd(told, PollFlags::IN),
        PollFd::new(over, PollFlags::IN),
    ];
    retry_on_intr(|| poll(&mut fds, None))?;
    Ok(if fds[0].revents().is_empty() {
        Woken::Over
    } else {
        Woken::Told
    })
}

/// Start the tasks, and show what each prints until it has ended. The pipe is closed when that is over.
fn show_in_background(
    store: &Store,
    tasks: &Tasks,
    names: Vec<String>,
    is_over: Arc<AtomicBool>,
    over: PipeWriter,
) -> JoinHandle<Result<u8>> {
    let (store, tasks) = (store.clone(), tasks.clone());
    std::thread::spawn(move || {
        let _over = over;
        show(&store, &tasks, &names, &is_over)
    })
}

fn show(store: &Store, tasks: &Tasks, names: &[String], is_over: &AtomicBool) -> Result<u8> {
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let all = tasks.project().in_order(names.iter().copied());
    let prefixes = Prefixes::new(&all);
    let followers = Mutex::new(Vec::new());
    let outcomes = start_until(store, tasks, &names, own_mask(), is_over, &|name, news| {
        tell(name, news);
        if let News::Begun { job, joined } = news {
            let follower = follow(job.clone(), joined, prefixes.line(name));
            let mut followers = followers.lock().unwrap_or_else(PoisonError::into_inner);
            followers.push(follower);
        }
    })?;
    let mut code = exit_code(&outcomes);
    for follower in followers
        .into_inner()
        .unwrap_or_else(PoisonError::into_inner)
    {
        match follower.join() {
            Ok(ended_well) if ended_well => {}
            Ok(_) => code = code.max(exit::FAILED),
            Err(panic) => std::panic::resume_unwind(panic),
        }
    }
    Ok(code)
}

/// Show what a job prints until it has ended; whether it ended well.
fn follow(job: Job, joined: bool, prefix: Arc<[u8]>) -> JoinHandle<bool> {
    std::thread::spawn(move || {
        let from = if joined {
            Start::LastLines(LINES_BEFORE)
        } else {
            Start::Top
        };
        let mut lines = Lines {
            prefix,
            pending: Vec::new(),
        };
        let followed = output::follow(
            &job.dir(),
            output::LOG,
            from,
            &mut lines,
            &mut |_| {},
            &mut || has_ended(&job),
        );
        lines.finish();
        if let Err(error) = followed {
            exit::say(&format!("{}: {error}", job.id()));
        }
        match job.look().and_then(|view| job.confirmed(view)) {
            Ok(view) => {
                exit::say(&format!("{} is {}", job.id(), print::condition(&view)));
                // Who has seen enough of one that runs on is told nothing else of it.
                !view.state.is_terminal() || crate::store::exit_code(view.state, &view.status) == 0
            }
            Err(_) => false,
        }
    })
}

/// What stands before the lines of each task.
struct Prefixes<'a> {
    names: &'a [&'a str],
    width: usize,
    coloured: bool,
}

impl<'a> Prefixes<'a> {
    fn new(names: &'a [&'a str]) -> Prefixes<'a> {
        Prefixes {
            names,
            width: names
                .iter()
                .map(|name| name.chars().count())
                .max()
                .unwrap_or(0),
            coloured: io::stdout().is_terminal() && std::env::var_os("NO_COLOR").is_none(),
        }
    }

    fn line(&self, name: &str) -> Arc<[u8]> {
        let place = self.names.iter().position(|one| *one == name).unwrap_or(0);
        let text = format!("{:width$} | ", print::safe(name), width = self.width);
        let text = if self.coloured {
            format!("\x1b[{}m{text}\x1b[0m", COLOURS[place % COLOURS.len()])
        } else {
            text
        };
        text.into_bytes().into()
    }
}

/// Standard output, a whole line at a time, so that those of several tasks do not get mixed.
struct Lines {
    prefix: Arc<[u8]>,
    pending: Vec<u8>,
}

impl Lines {
    fn print(&self, lines: &[u8]) -> io::Result<()> {
        let mut out = io::stdout().lock();
        for line in lines.split_inclusive(|byte| *byte == b'\n') {
            out.write_all(&self.prefix)?;
            out.write_all(line)?;
        }
        out.flush()
    }

    /// Print what has no end yet.
    fn finish(&mut self) {
        if self.pending.is_empty() {
            return;
        }
        self.pending.push(b'\n');
        // A reader that has gone away is told nothing more.
        let _ = self.print(&self.pending);
        self.pending.clear();
    }
}

impl Write for Lines {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.pending.extend_from_slice(bytes);
        if let Some(end) = self.pending.iter().rposition(|byte| *byte == b'\n') {
            let rest = self.pending.split_off(end + 1);
            let lines = std::mem::replace(&mut self.pending, rest);
            self.print(&lines)?;
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
