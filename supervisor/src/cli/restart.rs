//! `outlive restart`: run jobs again, each as a new job that names the one it reruns; or as its task says, where it is one of a task
//! of the project.

use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use clap::{ArgMatches, Command};
use state_machine::id::Name;
use state_machine::protocol::look::View;
use state_machine::record::{Descriptor, Failure};

use super::arguments::{jobs, json, resolve};
use super::background::ensure_supervised;
use super::hand_over::{hand_over, say_why_not};
use super::scope::Scope;
use super::start::{exit_code, own_mask, start, tell};
use super::stop::stop_rounds;
use super::{Verb, exit, print};
use crate::error::{Error, Result};
use crate::project::Tasks;
use crate::store::{Begun, Job, Store};
use crate::worker::Start;

pub(super) const VERB: Verb = Verb {
    name: "restart",
    aliases: &[],
    declare,
    run,
};

fn declare(verb: Command) -> Command {
    verb.about("Run jobs again as new jobs, and print the new ids")
        .long_about(
            "Run jobs again: each becomes a new job with the same command, directory, environment and settings. A job \
             that has not ended is stopped first. What is recorded about the old jobs never changes. A task of the project, or its \
             job, is started again as outlive.toml says now.",
        )
        .args([jobs().required(true).num_args(1..), json()])
}

fn run(matches: &ArgMatches) -> anyhow::Result<u8> {
    let store = Store::open_default()?;
    let words: Vec<&str> = matches
        .get_many::<String>("job")
        .unwrap_or_default()
        .map(String::as_str)
        .collect();
    let Meant { jobs, tasks } = meant(&store, &words)?;
    // What we make ourselves is for its owner's eyes only; a command has the mask that is in its descriptor.
    let mask = own_mask();
    let mut code = 0;
    let mut is_queued = false;
    for job in &jobs {
        let worse = match restart(&store, job) {
            Ok((new, outcome)) => {
                announce(&new, matches.get_flag("json"))?;
                is_queued |= outcome == Outcome::Queued;
                match outcome {
                    Outcome::Runs | Outcome::Queued => 0,
                    Outcome::Over => say_why_not(&new)?,
                }
            }
            Err(error) => {
                exit::say(&error.to_string());
                error.exit_code()
            }
        };
        code = if code == 0 { worse } else { code };
    }
    if is_queued {
        ensure_supervised(&store)?;
    }
    // Last, as tasks are started by threads, and workers are forked by a process that has one.
    for (project, name) in &tasks {
        let worse = restart_task(&store, project, name, mask, matches.get_flag("json"))?;
        code = if code == 0 { worse } else { code };
    }
    Ok(code)
}

/// What is to be run again.
#[derive(Default)]
struct Meant {
    jobs: Vec<Job>,
    tasks: Vec<(Tasks, String)>,
}

/// What the words name, each once.
fn meant(store: &Store, words: &[&str]) -> Result<Meant> {
    let mut meant = Meant::default();
    let here = match Scope::here(false) {
        Scope::Project(root) => Some(root),
        Scope::All => None,
    };
    for word in words {
        let task = match &here {
            Some(root) => task_of(store, root, word)?,
            None => None,
        };
        match task {
            Some((tasks, name)) => {
                if !meant.tasks.iter().any(|(_, known)| *known == name) {
                    meant.tasks.push((tasks, name));
                }
            }
            None => {
                let job = resolve(store, word)?;
                if !meant.jobs.iter().any(|known| known.id() == job.id()) {
                    meant.jobs.push(job);
                }
            }
        }
    }
    Ok(meant)
}

/// The task that a word means: one of that name, or the one that the job of that name runs.
fn task_of(store: &Store, root: &Path, word: &str) -> Result<Option<(Tasks, String)>> {
    let tasks = match Tasks::read(root) {
        Ok(tasks) => tasks,
        Err(error) => {
            exit::say(&format!("{error}; only jobs are looked for"));
            return Ok(None);
        }
    };
    if tasks.find(word).is_ok() {
        return Ok(Some((tasks, word.to_owned())));
    }
    let descriptor = resolve(store, word)?.look()?.descriptor;
    let is_ours = descriptor
        .project
        .as_ref()
        .is_some_and(|project| project.0 == root.as_os_str().as_bytes());
    let Some(name) = descriptor.task.filter(|_| is_ours) else {
        if is_ours {
            let id = &descriptor.id;
            exit::say(&format!("{id} is of no task; it is run again as it was"));
        }
        return Ok(None);
    };
    match tasks.find(&name) {
        Ok((_, task)) if descriptor.name.as_ref() == Some(&task.job) => Ok(Some((tasks, name))),
        Ok(_) => Ok(None),
        Err(error) => {
            exit::say(&format!(
                "{error}; {} is run again as it was",
                descriptor.id
            ));
            Ok(None)
        }
    }
}

/// Stop the job of a task, and start the task.
fn restart_task(
    store: &Store,
    tasks: &Tasks,
    name: &str,
    mask: u32,
    json: bool,
) -> anyhow::Result<u8> {
    let views = store.list_outlines()?.jobs;
    let stopped = stop_rounds(&tasks.rounds(store, &views, &[name], true), None, false);
    let outcomes = start(store, tasks, &[name], mask, &|name, news| tell(name, news))?;
    if let Some(job) = outcomes.get(name).and_then(|outcome| outcome.job()) {
        announce(job, json)?;
    }
    Ok(stopped.max(exit_code(&outcomes)))
}

fn announce(job: &Job, json: bool) -> anyhow::Result<()> {
    if json {
        print::json(&job.report(&job.look()?))
    } else {
        Ok(print::line(job.id().as_str())?)
    }
}

/// What became of a job that was made anew.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Outcome {
    /// Its command runs.
    Runs,
    /// Its pool admits it.
    Queued,
    /// It could not be started.
    Over,
}

fn restart(store: &Store, old: &Job) -> Result<(Job, Outcome)> {
    let view = old.tend()?;
    let mut descriptor = again(&view);
    if !descriptor.starts_at_once() {
        // Before the old one is stopped for nothing.
        store.see_that_it_can_be_admitted(descriptor.pool.as_deref(), descriptor.slots)?;
    }
    end(old, &view)?;
    match store.begin_described(&mut descriptor)? {
        Begun::New(made) if !descriptor.starts_at_once() => {
            Ok((store.leave_to_pool(*made)?, Outcome::Queued))
        }
        Begun::New(made) => {
            let handed = hand_over(store, *made)?;
            let outcome = match handed.start {
                Start::Running => Outcome::Runs,
                Start::Over => Outcome::Over,
            };
            Ok((handed.job, outcome))
        }
        Begun::UnderWay(view) => {
            let name = view.descriptor.name.as_ref().map_or("", Name::as_str);
            Err(Error::NotNow(format!(
                "'{name}' is {} already, as {}; stop that first",
                view.state, view.descriptor.id
            )))
        }
    }
}

/// The descriptor of a new job that does what an old one did. What that one has waited for is not waited for again: not
/// once it has run, and not where it never ran for how another ended.
fn again(old: &View) -> Descriptor {
    let has_waited = old.status.attempt > 0 || old.status.failure == Some(Failure::Dependency);
    let old = old.descriptor.clone();
    // The name of a numbered job of a task holds a dash, which no given name does; a new one is drawn.
    let is_drawn = |name: &Name| old.task.is_some() && Name::parse(name.as_str()).is_err();
    let name = old.name.clone().filter(|name| !is_drawn(name));
    let (after, not_before_ms, delay_ms) = if has_waited {
        (Vec::new(), None, None)
    } else {
        (old.after.clone(), old.not_before_ms, old.delay_ms)
    };
    Descriptor {
        name,
        after,
        not_before_ms,
        delay_ms,
        order: 0,
        created_at_ms: crate::clock::now_ms(),
        previous: Some(old.id.clone()),
        ..old
    }
}

/// See that the old job has ended and nothing of it is left.
fn end(old: &Job, view: &View) -> Result<()> {
    if view.state.is_terminal() && !view.leftovers {
        return Ok(());
    }
    exit::say(&format!("stopping {}", old.id()));
    match old.stop(None) {
        Ok(stopped) if stopped.forced => {
            exit::say(&format!("{} ended only by SIGKILL", old.id()));
            Ok(())
        }
        Ok(_) | Err(Error::Gone(_)) => Ok(()),
        Err(error) => Err(error),
    }
}

#[cfg(test)]
mod tests {
    use state_machine::id::JobId;
    use state_machine::job::State;
    use state_machine::record::{After, AfterWhen, Status};

    use super::*;
    use crate::store::JobSpec;

    fn described(name: Option<Name>, task: Option<&str>) -> View {
        let mut spec = JobSpec::command(["true"]);
        spec.name = name;
        spec.task = task.map(str::to_owned);
        let descriptor = spec.into_descriptor(5);
        View {
            state: State::Queued,
            status: Status::queued(5),
            held: false,
            leftovers: false,
            descriptor,
        }
    }

    #[test]
    fn a_given_name_is_kept_and_a_drawn_one_is_drawn_anew() {
        let given = Name::parse("web_1").unwrap();
        let drawn = Name::of_task("build", 3).unwrap();
        let named = |name: &Name, task| again(&described(Some(name.clone()), task)).name;
        assert_eq!(named(&given, None), Some(given.clone()));
        assert_eq!(named(&given, Some("build")), Some(given.clone()));
        assert_eq!(named(&drawn, Some("build")), None);
    }

    #[test]
    fn the_new_job_names_the_old_one_and_is_as_it_was() {
        let old = described(None, None);
        let new = again(&old);
        assert_eq!(new.previous, Some(old.descriptor.id.clone()));
        assert_eq!(new.kind, old.descriptor.kind);
        assert_eq!(new.grace_ms, old.descriptor.grace_ms);
    }

    #[test]
    fn what_was_waited_for_is_not_waited_for_again() {
        let mut old = described(None, None);
        old.descriptor.after = vec![After {
            job: JobId::new(1, "a", 1),
            when: AfterWhen::Success,
        }];
        old.descriptor.not_before_ms = Some(9);
        let kept = again(&old);
        assert_eq!((kept.after.len(), kept.not_before_ms), (1, Some(9)));
        old.status.attempt = 1;
        let free = again(&old);
        assert_eq!((free.after.len(), free.not_before_ms), (0, None));
        old.status.attempt = 0;
        old.status.failure = Some(Failure::Dependency);
        assert!(again(&old).after.is_empty());
    }
}
