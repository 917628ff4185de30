//! What a shell is told while somebody completes a command line: the jobs, the tasks and the pools that there are now.
//!
//! The shell runs this program with [`VARIABLE`] set, in place of what was typed. Nothing is made by that, not even a store, and what
//! cannot be read completes to nothing.

use std::ffi::{OsStr, OsString};
use std::io;

use clap::{Arg, Command};
use clap_complete::CompleteEnv;
use clap_complete::engine::{ArgValueCompleter, CompletionCandidate};
use clap_complete::env::Shells;

use super::scope::{Scope, tasks_here};
use super::{declare_visible, print};
use crate::store::Store;

/// The variable that says which shell asks.
const VARIABLE: &str = "OUTLIVE_COMPLETE";
/// So many jobs are offered, the newest first.
const MOST: usize = 200;

/// Answer a shell, where one asks; whether one did.
pub(super) fn answer(arguments: &[OsString]) -> bool {
    if std::env::var_os(VARIABLE).is_none() {
        return false;
    }
    let here = std::env::current_dir().ok();
    let asked = CompleteEnv::with_factory(declare)
        .var(VARIABLE)
        .try_complete(arguments, here.as_deref());
    // A shell that asks in a way that means nothing is answered nothing.
    asked.unwrap_or(true)
}

/// The shells that can ask.
pub(super) fn shells() -> impl Iterator<Item = &'static str> {
    let names: Vec<&str> = Shells::builtins().names().collect();
    names.into_iter()
}

/// What a shell must run to ask us.
pub(super) fn registration(shell: &str) -> io::Result<Vec<u8>> {
    let mut script = Vec::new();
    if let Some(shell) = Shells::builtins().completer(shell) {
        shell.write_registration(VARIABLE, "outlive", "outlive", "outlive", &mut script)?;
    }
    Ok(script)
}

/// The command line, with what completes its arguments.
fn declare() -> Command {
    completed(declare_visible())
}

fn completed(command: Command) -> Command {
    command
        .mut_args(|arg| match arg.get_id().as_str() {
            "job" | "after" => completed_by(arg, jobs_and_tasks),
            "task" => completed_by(arg, tasks),
            "pool" => completed_by(arg, pools),
            _ => arg,
        })
        .mut_subcommands(completed)
}

fn completed_by(arg: Arg, offer: fn() -> Vec<CompletionCandidate>) -> Arg {
    arg.add(ArgValueCompleter::new(move |typed: &OsStr| {
        let typed = typed.to_string_lossy().to_lowercase();
        let begins = |candidate: &CompletionCandidate| {
            let value = candidate.get_value().to_string_lossy().to_lowercase();
            value.starts_with(&typed)
        };
        let mut offered = offer();
        offered.retain(begins);
        offered
    }))
}

fn jobs_and_tasks() -> Vec<CompletionCandidate> {
    let mut offered = tasks();
    let tasks: Vec<OsString> = offered.iter().map(|task| task.get_value().into()).collect();
    // The job of a task has its name as a rule.
    let is_new = |job: &CompletionCandidate| tasks.iter().all(|task| task != job.get_value());
    offered.extend(jobs().into_iter().filter(is_new));
    offered
}

/// Of the jobs that are meant here the names of those that have one, and the ids of all, the newest first.
fn jobs() -> Vec<CompletionCandidate> {
    let Some(store) = Store::default_if_there() else {
        return Vec::new();
    };
    let scope = Scope::here(false);
    let shown = store.show_all(|view| {
        scope.holds(&view).then(|| {
            let how = format!("{}: {}", print::condition(&view), print::work(&view));
            let name = view.descriptor.name.as_ref().map(ToString::to_string);
            (
                view.descriptor.id.to_string(),
                name,
                print::safe(&how).into_owned(),
            )
        })
    });
    let Ok((jobs, _)) = shown else {
        return Vec::new();
    };
    let mut jobs: Vec<_> = jobs.into_iter().flatten().collect();
    jobs.reverse();
    jobs.truncate(MOST);
    let candidate = |value: String, how: &str| {
        CompletionCandidate::new(value).help(Some(how.to_owned().into()))
    };
    let mut names: Vec<String> = Vec::new();
    let mut offered = Vec::new();
    for (_, name, how) in &jobs {
        if let Some(name) = name
            && !names.contains(name)
        {
            names.push(name.clone());
            offered.push(candidate(name.clone(), how));
        }
    }
    offered.extend(jobs.into_iter().map(|(id, _, how)| candidate(id, &how)));
    offered
}

fn tasks() -> Vec<CompletionCandidate> {
    let Ok(tasks) = tasks_here() else {
        return Vec::new();
    };
    let names = tasks.project().tasks.keys();
    names
        .map(|name| CompletionCandidate::new(name).help(Some("task of this project".into())))
        .collect()
}

fn pools() -> Vec<CompletionCandidate> {
    let pools = Store::default_if_there().and_then(|store| store.pools().ok());
    let names = pools.unwrap_or_default().into_keys();
    names
        .map(|name| CompletionCandidate::new(name.as_str()))
        .collect()
}
