//! `outlive status`: everything about one job.

use std::collections::HashMap;

use clap::{ArgMatches, Command};
use state_machine::protocol::look::View;
use state_machine::record::{AfterWhen, Kind};

use super::arguments::{find_job, job, json};
use super::waiting::Waiting;
use super::{Verb, print, progress};
use crate::store::{Job, Store};

pub(super) const VERB: Verb = Verb {
    name: "status",
    aliases: &[],
    declare,
    run,
};

fn declare(verb: Command) -> Command {
    verb.about("Show everything about a job")
        .args([job(), json()])
}

fn run(matches: &ArgMatches) -> anyhow::Result<u8> {
    let store = Store::open_default()?;
    let job = find_job(&store, matches)?;
    let view = job.tend()?;
    if matches.get_flag("json") {
        print::json(&job.report(&view))?;
    } else {
        show(&job, &view)?;
    }
    Ok(0)
}

fn show(job: &Job, view: &View) -> std::io::Result<()> {
    let (descriptor, status) = (&view.descriptor, &view.status);
    let stamp = |at_ms: Option<u64>| at_ms.map(print::instant);
    let lines = [
        ("id", Some(descriptor.id.to_string())),
        ("name", descriptor.name.as_ref().map(ToString::to_string)),
        ("task", descriptor.task.clone()),
        (
            "state",
            Some(Waiting::new(job.store(), HashMap::new()).condition(view)),
        ),
        ("message", status.message.clone()),
        ("doing", status.status_line.clone()),
        ("command", Some(print::work(view))),
        ("to", destination(view)),
        ("progress", progress::line(&status.progress)),
        ("account", status.account.as_deref().map(progress::account)),
        ("pool", pool(view)),
        ("comes after", after(view)),
        ("not before", stamp(descriptor.not_before_ms)),
        (
            "attempt",
            (status.attempt > 1).then(|| status.attempt.to_string()),
        ),
        (
            "pid",
            status.pid.filter(|_| view.held).map(|pid| pid.to_string()),
        ),
        ("created", Some(print::instant(descriptor.created_at_ms))),
        ("started", stamp(status.started_at_ms)),
        ("ended", stamp(status.ended_at_ms)),
        ("next try", stamp(status.next_attempt_at_ms)),
        (
            "log lost",
            status.dropped_bytes.map(|bytes| format!("{bytes} bytes")),
        ),
        (
            "reruns",
            descriptor.previous.as_ref().map(ToString::to_string),
        ),
        ("directory", Some(job.dir().display().to_string())),
    ];
    for (name, value) in lines {
        if let Some(value) = value {
            print::line(&format!("{name:<11} {}", print::safe(&value)))?;
        }
    }
    Ok(())
}

/// Where a pull puts what it fetches.
fn destination(view: &View) -> Option<String> {
    match &view.descriptor.kind {
        Kind::Pull(pull) => Some(pull.destination.lossy().into_owned()),
        Kind::Command(_) => None,
    }
}

/// The pool that a job is queued in, and what it takes of it.
fn pool(view: &View) -> Option<String> {
    let descriptor = &view.descriptor;
    let mut words = descriptor.pool.clone()?;
    if let Some(slot) = view.status.slot.filter(|_| view.held) {
        words.push_str(&format!(", slot {slot}"));
    }
    if descriptor.slots > 1 {
        words.push_str(&format!(", takes {} slots", descriptor.slots));
    }
    if descriptor.priority != 0 {
        words.push_str(&format!(", priority {}", descriptor.priority));
    }
    Some(words)
}

/// The jobs that a job comes after.
fn after(view: &View) -> Option<String> {
    let all: Vec<String> = view
        .descriptor
        .after
        .iter()
        .map(|after| match after.when {
            AfterWhen::Success => after.job.to_string(),
            AfterWhen::Failure => format!("{}:failure", after.job),
            AfterWhen::End => format!("{}:end", after.job),
        })
        .collect();
    (!all.is_empty()).then(|| all.join(", "))
}
