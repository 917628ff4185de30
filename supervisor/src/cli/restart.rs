//! `outlive restart`: run jobs again, each as a new job that names the one it reruns.

use clap::{ArgMatches, Command};
use rustix::fs::Mode;
use rustix::process::umask;
use state_machine::id::Name;
use state_machine::record::Descriptor;

use super::arguments::{find_jobs, jobs, json};
use super::hand_over::{hand_over, say_why_not};
use super::{Verb, exit, print};
use crate::error::{Error, Result};
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
             that has not ended is stopped first. What is recorded about the old jobs never changes.",
        )
        .args([jobs().required(true).num_args(1..), json()])
}

fn run(matches: &ArgMatches) -> anyhow::Result<u8> {
    let store = Store::open_default()?;
    let jobs = find_jobs(&store, matches)?;
    // What we make ourselves is for its owner's eyes only; a command has the mask that is in its descriptor.
    umask(Mode::from_raw_mode(0o077));
    let mut code = 0;
    for job in &jobs {
        let worse = match restart(&store, job) {
            Ok(new) => {
                announce(&new.job, matches.get_flag("json"))?;
                if new.runs { 0 } else { say_why_not(&new.job)? }
            }
            Err(error) => {
                exit::say(&error.to_string());
                error.exit_code()
            }
        };
        code = if code == 0 { worse } else { code };
    }
    Ok(code)
}

fn announce(job: &Job, json: bool) -> anyhow::Result<()> {
    if json {
        print::json(&job.report(&job.look()?))
    } else {
        Ok(print::line(job.id().as_str())?)
    }
}

/// A job that was made anew.
struct Restarted {
    job: Job,
    /// Whether its command runs, or a pool will see to that.
    runs: bool,
}

fn restart(store: &Store, old: &Job) -> Result<Restarted> {
    let mut descriptor = again(old.descriptor()?);
    end(old)?;
    match store.begin_described(&mut descriptor)? {
        // A pool admits its jobs itself.
        Begun::New(held) if !descriptor.starts_at_once() => {
            store.acknowledge()?;
            let job = store.job(held.holder.id());
            job.let_go(*held)?;
            Ok(Restarted { job, runs: true })
        }
        Begun::New(held) => {
            let handed = hand_over(store, *held)?;
            Ok(Restarted {
                job: handed.job,
                runs: handed.start == Start::Running,
            })
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

/// The descriptor of a new job that does what an old one did.
fn again(old: Descriptor) -> Descriptor {
    // The name of a numbered job of a task holds a dash, which no given name does; a new one is drawn.
    let is_drawn = |name: &Name| old.task.is_some() && Name::parse(name.as_str()).is_err();
    let name = old.name.clone().filter(|name| !is_drawn(name));
    Descriptor {
        name,
        created_at_ms: crate::clock::now_ms(),
        previous: Some(old.id.clone()),
        ..old
    }
}

/// See that the old job has ended and nothing of it is left.
fn end(old: &Job) -> Result<()> {
    let view = old.tend()?;
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
    use super::*;
    use crate::store::JobSpec;

    fn described(name: Option<Name>, task: Option<&str>) -> Descriptor {
        let mut spec = JobSpec::command(["true"]);
        spec.name = name;
        spec.task = task.map(str::to_owned);
        spec.into_descriptor(5)
    }

    #[test]
    fn a_given_name_is_kept_and_a_drawn_one_is_drawn_anew() {
        let given = Name::parse("web_1").unwrap();
        let drawn = Name::of_task("build", 3).unwrap();
        assert_eq!(
            again(described(Some(given.clone()), None)).name,
            Some(given.clone())
        );
        assert_eq!(
            again(described(Some(given.clone()), Some("build"))).name,
            Some(given)
        );
        assert_eq!(again(described(Some(drawn), Some("build"))).name, None);
    }

    #[test]
    fn the_new_job_names_the_old_one_and_is_as_it_was() {
        let old = described(None, None);
        let new = again(old.clone());
        assert_eq!(new.previous, Some(old.id.clone()));
        assert_eq!((new.kind, new.grace_ms), (old.kind, old.grace_ms));
    }
}
