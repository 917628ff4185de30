//! `outlive top`: jobs and slots as they are, for as long as one looks, with keys to pause, resume, stop and restart them. It sleeps
//! until a key is pressed or something has changed, and draws only then, and only what is another picture.
//!
//! ```text
//! keys ──▶ app (pure) ──▶ deeds: verbs, each a process
//!            ▲  │
//!  live ─────┘  └──▶ draw (pure) ──▶ screen
//! ```

mod app;
mod deeds;
mod draw;
mod keys;
mod screen;
mod tail;
#[cfg(test)]
mod tests;
mod words;

use std::collections::HashMap;
use std::io::{self, IsTerminal, stdin, stdout};
use std::os::fd::AsFd;

use clap::{ArgMatches, Command};
use nix::sys::signal::Signal;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use state_machine::id::JobId;
use state_machine::protocol::look::View;

use self::app::{App, Do, Panel};
use self::deeds::Deeds;
use self::draw::{Heights, Words};
use self::keys::Decoder;
use self::screen::Screen;
use super::arguments::all;
use super::scope::Scope;
use super::terminal::{self, Signals};
use super::waiting::{Waiting, waits};
use super::{Verb, exit, print};
use crate::clock;
use crate::live::{Changes, Live};
use crate::store::Store;
use crate::sys;

pub(super) const VERB: Verb = Verb {
    name: "top",
    aliases: &[],
    declare,
    run,
};

/// What is heard of, and done before the terminal is somebody else's.
const SIGNALS: [Signal; 6] = [
    Signal::SIGWINCH,
    Signal::SIGTERM,
    Signal::SIGINT,
    Signal::SIGHUP,
    Signal::SIGQUIT,
    Signal::SIGTSTP,
];
/// How long the rest of what a key sends may take.
const REST_OF_KEY: Timespec = Timespec {
    tv_sec: 0,
    tv_nsec: 50_000_000,
};

fn declare(verb: Command) -> Command {
    verb.about("Show jobs and slots as they are, and what jobs print, until you quit")
        .long_about(
            "Show jobs and slots as they are, and what jobs print: inside a project those of the project, elsewhere everyone's. \
             Keys pause, resume, stop and restart them; the last line says which.",
        )
        .arg(all("Everyone's jobs"))
}

fn run(matches: &ArgMatches) -> anyhow::Result<u8> {
    if !stdout().is_terminal() || !stdin().is_terminal() {
        exit::say(
            "top needs a terminal; for a program there is: outlive list --json, outlive list --watch",
        );
        return Ok(exit::USAGE);
    }
    let store = Store::open_default()?;
    let signals = Signals::hear(SIGNALS)?;
    let live = Live::open(&store)?;
    let app = App::new(Scope::here(false), matches.get_flag("all"));
    let left = {
        let mut top = Top {
            live,
            app,
            deeds: Deeds::default(),
            decoder: Decoder::default(),
            followed: None,
            screen: Screen::enter()?,
        };
        top.screen.leave_on_panic();
        top.show_until_left(&signals)
        // The terminal is as it was from here on.
    };
    match left? {
        Left::Quit => Ok(0),
        Left::Told(signal) => {
            signals.obey(signal)?;
            Ok(exit::FAILED)
        }
    }
}

/// Why it is over.
enum Left {
    Quit,
    /// A signal says so.
    Told(Signal),
}

struct Top {
    live: Live,
    app: App,
    deeds: Deeds,
    decoder: Decoder,
    /// The job whose output is heard of.
    followed: Option<JobId>,
    screen: Screen,
}

/// What there is to see to.
#[derive(Default)]
struct Woken {
    /// No more comes of a key that has begun.
    key_is_over: bool,
    keys: bool,
    heard: bool,
    told: bool,
    done: bool,
}

impl Top {
    fn show_until_left(&mut self, signals: &Signals) -> anyhow::Result<Left> {
        self.see_jobs();
        self.see_pools();
        let (mut is_old, mut failed) = (true, false);
        loop {
            if is_old {
                self.draw()?;
            }
            is_old = false;
            let woken = self.wait(signals)?;
            if woken.told {
                while let Some(signal) = signals.next() {
                    match signal {
                        Signal::SIGWINCH => is_old = true,
                        Signal::SIGTSTP => is_old |= self.suspend()?,
                        signal => return Ok(Left::Told(signal)),
                    }
                }
            }
            if woken.heard {
                match self.live.update() {
                    Ok(changes) => {
                        is_old |= self.see(&changes, std::mem::take(&mut failed));
                    }
                    // What is shown is what was so; it is tried again as long as it takes.
                    Err(error) => {
                        is_old |= self.say_unreadable(error.to_string());
                        failed = true;
                    }
                }
            }
            if woken.done {
                while let Some(said) = self.deeds.end_one() {
                    self.app.said = Some(said);
                    is_old = true;
                }
            }
            if woken.keys && !self.read_keys()? {
                return Ok(Left::Quit);
            }
            while let Some(key) = self.decoder.next(woken.key_is_over) {
                is_old = true;
                match self.app.press(key) {
                    None => {}
                    Some(Do::Quit) => return Ok(Left::Quit),
                    Some(Do::Suspend) => {
                        self.suspend()?;
                    }
                    Some(Do::Choose) => self.see_jobs(),
                    Some(Do::Ask(ask, id)) => {
                        let begun = self.deeds.begin(ask, &id);
                        let verb = ask.verb();
                        self.app.said = Some(match begun {
                            Ok(()) => format!("{verb} {id}: asked"),
                            Err(error) => format!("{verb} {id}: {error}"),
                        });
                    }
                }
            }
        }
    }

    /// Sleep until there is something to see to.
    fn wait(&self, signals: &Signals) -> io::Result<Woken> {
        let keys = stdin();
        let fixed = [keys.as_fd(), self.live.as_fd(), signals.as_fd()];
        let all = fixed.into_iter().chain(self.deeds.fds());
        let mut fds: Vec<PollFd<'_>> = all
            .map(|fd| PollFd::from_borrowed_fd(fd, PollFlags::IN))
            .collect();
        let timeout = self.decoder.waits().then_some(&REST_OF_KEY);
        match poll(&mut fds, timeout) {
            Ok(0) => {
                return Ok(Woken {
                    key_is_over: true,
                    ..Woken::default()
                });
            }
            Ok(_) | Err(Errno::INTR) => {}
            Err(errno) => return Err(errno.into()),
        }
        let is = |fd: &PollFd<'_>| !fd.revents().is_empty();
        Ok(Woken {
            key_is_over: false,
            keys: is(&fds[0]),
            heard: is(&fds[1]),
            told: is(&fds[2]),
            done: fds[3..].iter().any(is),
        })
    }

    /// Take what was typed. Whether there is still a terminal.
    fn read_keys(&mut self) -> io::Result<bool> {
        let mut buffer = [0; 1024];
        match rustix::io::read(stdin(), &mut buffer) {
            Ok(0) | Err(Errno::IO) => Ok(false),
            Ok(length) => {
                self.decoder.push(&buffer[..length]);
                Ok(true)
            }
            Err(Errno::INTR | Errno::AGAIN) => Ok(true),
            Err(errno) => Err(errno.into()),
        }
    }

    /// Whether what is shown is old with these changes, or because it could not be seen to before.
    fn see(&mut self, changes: &Changes, failed: bool) -> bool {
        if failed || !changes.jobs.is_empty() {
            self.see_jobs();
        }
        if failed || changes.pools || !changes.jobs.is_empty() || changes.damaged {
            self.see_pools();
        }
        failed || !changes.is_nothing()
    }

    /// Whether it is not said already.
    fn say_unreadable(&mut self, why: String) -> bool {
        let is_new = self.app.damaged.first() != Some(&why);
        self.app.damaged = vec![why];
        is_new
    }

    fn see_jobs(&mut self) {
        self.app.see(self.live.jobs());
    }

    fn see_pools(&mut self) {
        self.app.pools = self.live.pools();
        self.app.slots = self.live.slots().to_vec();
        self.app.damaged = self.live.damaged().map(str::to_owned).collect();
    }

    fn draw(&mut self) -> io::Result<()> {
        let size = self.screen.canvas.size()?;
        let heights = Heights::of(size.height);
        self.app.have_rows(usize::from(heights.jobs));
        self.read_output(usize::from(heights.panel));
        let conditions = self.conditions();
        let condition = |view: &View| {
            let known = conditions.get(&view.descriptor.id);
            known.cloned().unwrap_or_else(|| print::condition(view))
        };
        let now_ms = clock::now_ms();
        let words = Words {
            condition: &condition,
            instant: &|at_ms| instant(at_ms, now_ms),
            coloured: terminal::has_colours(),
        };
        let app = &self.app;
        self.screen
            .canvas
            .draw(|frame| draw::draw(frame, app, &words))?;
        Ok(())
    }

    /// Hear of what the chosen job prints, and read the end of it.
    fn read_output(&mut self, lines: usize) {
        let wanted = self.app.chosen.clone();
        let wanted = wanted.filter(|_| lines > 0 && self.app.panel == Panel::Output);
        if wanted != self.followed {
            if let Some(before) = self.followed.take() {
                self.live.unfollow(&before);
            }
            if let Some(id) = &wanted {
                self.live.follow(id);
            }
            self.followed = wanted;
        }
        self.app.output = match self.app.job() {
            Some(view) if self.followed.is_some() => {
                let name = match (view.descriptor.output.split, self.app.errors) {
                    (false, _) => "log",
                    (true, false) => "stdout.log",
                    (true, true) => "stderr.log",
                };
                let dir = self.live.store().job_dir(&view.descriptor.id);
                tail::tail(&dir, name, lines)
            }
            _ => Vec::new(),
        };
    }

    /// What those jobs wait for that are seen and wait.
    fn conditions(&self) -> HashMap<JobId, String> {
        let waiting: Vec<&View> = self
            .app
            .seen()
            .iter()
            .map(AsRef::as_ref)
            .filter(|view| waits(view))
            .collect();
        if waiting.is_empty() {
            return HashMap::new();
        }
        let before = waiting.iter().flat_map(|view| &view.descriptor.after);
        let states = before
            .filter_map(|after| Some((after.job.clone(), self.live.job(&after.job)?.state)))
            .collect();
        let store = self.live.store();
        let words = Waiting::new(store, states);
        let condition = |view: &View| (view.descriptor.id.clone(), words.condition(view));
        waiting.into_iter().map(condition).collect()
    }

    /// Let the shell have the terminal, until it is ours again.
    fn suspend(&mut self) -> anyhow::Result<bool> {
        self.screen.give_back();
        sys::kill(rustix::process::getpid(), Signal::SIGSTOP as i32)?;
        self.screen.take_again()?;
        Ok(true)
    }
}

/// When something was: the time of a day, where it is today's.
fn instant(at_ms: u64, now_ms: u64) -> String {
    let (at, now) = (print::instant(at_ms), print::instant(now_ms));
    match (at.split_once(' '), now.split_once(' ')) {
        (Some((day, time)), Some((today, _))) if day == today => time.to_owned(),
        _ => at,
    }
}
