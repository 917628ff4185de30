//! `outlive events`: what has happened to jobs, and what happens to them, one JSON object a line.

use std::collections::HashSet;
use std::io::{self, BufWriter, Write};
use std::time::Duration;

use clap::{ArgMatches, Command};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Resource, getrlimit};
use serde::Serialize;
use state_machine::id::JobId;
use state_machine::record::Line;

use super::arguments::{all, find_jobs, flag, jobs};
use super::scope::Scope;
use super::{Verb, exit};
use crate::error::{Error, Result};
use crate::store::{Job, Store, Tail};
use crate::watch::{Watch, Woken};

pub(super) const VERB: Verb = Verb {
    name: "events",
    aliases: &[],
    declare,
    run,
};

/// Of the descriptors that a process may have, this part keeps histories open while they are followed.
const KEPT_OPEN: u64 = 4;
/// The pauses between looks for what comes after what was told.
const FIRST_PAUSE: Duration = Duration::from_millis(1);
const LONGEST_PAUSE: Duration = Duration::from_secs(5);

fn declare(verb: Command) -> Command {
    verb.about("Print what happened to jobs, one JSON object a line")
        .long_about(
            "Print what happened to jobs, in the order of time, one JSON object a line. Without a name: of every job \
             of the project, or outside of any project of everyone's.",
        )
        .args([
            jobs(),
            flag(
                "follow",
                "Go on as more happens: until the named jobs have ended, or for ever",
            )
            .short('f'),
            all("Everyone's jobs").conflicts_with("job"),
        ])
}

fn run(matches: &ArgMatches) -> anyhow::Result<u8> {
    let store = Store::open_default()?;
    let scope = Scope::here(matches.get_flag("all"));
    let named = matches.get_many::<String>("job").is_some();
    match (named, matches.get_flag("follow")) {
        (true, false) => print_all(&find_jobs(&store, matches)?),
        (true, true) => follow_named(&store, find_jobs(&store, matches)?),
        (false, false) => print_scope(&store, &scope),
        (false, true) => follow_scope(&store, &scope),
    }
}

/// A line of a job's history, with the job.
#[derive(Debug, Serialize)]
struct Event {
    job: JobId,
    #[serde(flatten)]
    line: Line,
}

/// The events of several jobs, to be put in the order of time.
#[derive(Debug, Default)]
struct Batch(Vec<(u64, Event)>);

impl Batch {
    /// Add what happened to one job. Its own order stands, also where somebody has set the clock back meanwhile.
    fn add(&mut self, job: &JobId, lines: Vec<Line>) {
        let mut latest = 0;
        for line in lines {
            latest = line.at_ms.max(latest);
            let job = job.clone();
            self.0.push((latest, Event { job, line }));
        }
    }

    fn in_order(mut self) -> impl Iterator<Item = Event> {
        self.0.sort_by_key(|(at_ms, _)| *at_ms);
        self.0.into_iter().map(|(_, event)| event)
    }

    fn print(self) -> anyhow::Result<()> {
        let mut out = BufWriter::new(io::stdout().lock());
        for event in self.in_order() {
            let text = serde_json::to_string(&event)?;
            writeln!(out, "{text}")?;
        }
        out.flush()?;
        Ok(())
    }
}

fn print_all(jobs: &[Job]) -> anyhow::Result<u8> {
    let mut batch = Batch::default();
    for job in jobs {
        batch.add(job.id(), job.events()?);
    }
    batch.print()?;
    Ok(0)
}

fn print_scope(store: &Store, scope: &Scope) -> anyhow::Result<u8> {
    let listing = store.list_outlines()?;
    let mut damaged = listing.damaged;
    let mut batch = Batch::default();
    for view in listing.jobs.iter().filter(|view| scope.holds(view)) {
        let id = &view.descriptor.id;
        match store.job(id).events() {
            Ok(lines) => batch.add(id, lines),
            // Somebody has cleaned up meanwhile.
            Err(Error::Gone(_)) => {}
            Err(error) => damaged.push(error),
        }
    }
    batch.print()?;
    // What cannot be read hides nothing else, and is not passed over in silence.
    for error in &damaged {
        exit::say(&error.to_string());
    }
    Ok(u8::from(!damaged.is_empty()))
}

fn follow_named(store: &Store, jobs: Vec<Job>) -> anyhow::Result<u8> {
    let mut watch = None;
    let mut follow = Follow::new();
    for job in &jobs {
        follow.add(job.clone());
    }
    loop {
        follow.print_more()?;
        if follow.tails.iter().all(Tail::has_ended) {
            return Ok(follow.code);
        }
        if is_closed(&io::stdout()) {
            return Ok(0);
        }
        match &mut watch {
            Some(watch) => follow.sleep(store, watch)?,
            // Jobs that have ended need none; where it is needed, one looks again once it stands.
            None => watch = Some(store.watch_histories(&jobs)),
        }
    }
}

fn follow_scope(store: &Store, scope: &Scope) -> anyhow::Result<u8> {
    let mut watch = store.watch_histories(&[]);
    watch.add(&store.jobs_dir());
    let mut follow = Follow::new();
    let mut known = HashSet::new();
    loop {
        follow.add_new(store, scope, &mut known, &mut watch)?;
        follow.print_more()?;
        if is_closed(&io::stdout()) {
            return Ok(0);
        }
        follow.sleep(store, &mut watch)?;
    }
}

/// The jobs that are followed.
#[derive(Debug)]
struct Follow {
    tails: Vec<Tail>,
    /// How many histories may be kept open.
    open: usize,
    /// The exit code so far.
    code: u8,
    /// How long to wait for what is still to come of what was told.
    pause: Duration,
}

impl Follow {
    fn new() -> Follow {
        let descriptors = getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX);
        Follow {
            tails: Vec::new(),
            open: usize::try_from(descriptors / KEPT_OPEN).unwrap_or(usize::MAX),
            code: 0,
            pause: FIRST_PAUSE,
        }
    }

    /// Sleep until something may have happened. A supervisor tells of records, which are written before the history is, and of
    /// nothing that comes after the end of a job: what is still to come of what he told is looked for, soon and then later
    /// and later.
    fn sleep(&mut self, store: &Store, watch: &mut Watch) -> Result<()> {
        let pause = watch.is_told().then_some(self.pause);
        self.pause = match store.sleep(watch, pause)? {
            Woken::Changed => FIRST_PAUSE,
            Woken::TimedOut => self.pause.saturating_mul(4).min(LONGEST_PAUSE),
        };
        Ok(())
    }

    fn add(&mut self, job: Job) {
        let keep = self.tails.len() < self.open;
        self.tails.push(Tail::new(job, keep));
    }

    /// Follow the jobs that have appeared; forget the ids that have disappeared.
    fn add_new(
        &mut self,
        store: &Store,
        scope: &Scope,
        known: &mut HashSet<JobId>,
        watch: &mut Watch,
    ) -> Result<()> {
        let ids = store.ids()?;
        if known.len() > ids.len() {
            let there: HashSet<&JobId> = ids.iter().collect();
            known.retain(|id| there.contains(id));
        }
        for id in ids {
            if !known.insert(id.clone()) {
                continue;
            }
            let job = store.job(&id);
            match job.look() {
                Ok(view) if scope.holds(&view) => {
                    // Nothing is to come from one that has ended; it is read once.
                    if !view.state.is_terminal() {
                        watch.add(&job.dir());
                    }
                    self.add(job);
                }
                Ok(_) | Err(Error::Gone(_)) => {}
                Err(error) => self.complain(&error),
            }
        }
        Ok(())
    }

    /// Print what has come, and let go of the jobs of which nothing can come any more.
    fn print_more(&mut self) -> anyhow::Result<()> {
        let mut batch = Batch::default();
        let mut unreadable = Vec::new();
        self.tails.retain_mut(|tail| match tail.more() {
            Ok(lines) => {
                batch.add(tail.job().id(), lines);
                !tail.is_over()
            }
            Err(error) => {
                let lines = tail.readable();
                batch.add(tail.job().id(), lines);
                unreadable.push(error);
                false
            }
        });
        batch.print()?;
        for error in unreadable {
            self.complain(&error);
        }
        Ok(())
    }

    fn complain(&mut self, error: &Error) {
        exit::say(&error.to_string());
        self.code = exit::FAILED;
    }
}

/// Whether whoever read the output has gone away: it would be told only by the next write, which may never come.
fn is_closed(out: &io::Stdout) -> bool {
    let now = Timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    let mut fds = [PollFd::new(out, PollFlags::empty())];
    let polled = poll(&mut fds, Some(&now));
    polled.is_ok_and(|ready| ready > 0) && fds[0].revents().contains(PollFlags::ERR)
}

#[cfg(test)]
mod tests {
    use super::*;
    use state_machine::job::State;

    #[test]
    fn an_event_is_the_line_with_the_job_first() {
        let event = Event {
            job: JobId::new(5, "true", 1),
            line: Line::state(7, State::Running),
        };
        assert_eq!(
            serde_json::to_string(&event).unwrap(),
            r#"{"job":"5-true","at_ms":7,"event":"state","state":"running"}"#
        );
    }

    #[test]
    fn jobs_are_merged_by_time_and_each_keeps_its_own_order() {
        let (a, b) = (JobId::new(1, "a", 1), JobId::new(1, "b", 1));
        let mut batch = Batch::default();
        let line = Line::state;
        // The clock was set back between the first two.
        batch.add(
            &a,
            vec![
                line(5, State::Queued),
                line(2, State::Running),
                line(9, State::Done),
            ],
        );
        batch.add(&b, vec![line(3, State::Queued), line(5, State::Running)]);
        let order: Vec<(String, u64)> = batch
            .in_order()
            .map(|event| (event.job.to_string(), event.line.at_ms))
            .collect();
        let order: Vec<(&str, u64)> = order.iter().map(|(id, at)| (id.as_str(), *at)).collect();
        assert_eq!(
            order,
            [("1-b", 3), ("1-a", 5), ("1-a", 2), ("1-b", 5), ("1-a", 9)]
        );
    }
}
