//! `outlive list`: every job, and how it is. Each job is made into what is printed of it where it is looked at, and no more
//! of it is kept: ten thousand of them are listed as fast as they can be read.

use std::collections::BTreeSet;
use std::path::PathBuf;

use clap::{ArgMatches, Command};
use state_machine::id::JobId;
use state_machine::job::State;
use state_machine::protocol::look::View;
use state_machine::record::Bytes;

use super::arguments::{all, json};
use super::scope::Scope;
use super::waiting::{Waiting, waits};
use super::{Verb, exit, print};
use crate::clock;
use crate::error::{Error, Result};
use crate::store::{Report, Store};

pub(super) const VERB: Verb = Verb {
    name: "list",
    aliases: &["ls"],
    declare,
    run,
};

fn declare(verb: Command) -> Command {
    verb.about("List jobs, oldest first")
        .long_about(
            "List jobs, oldest first: inside a project those of the project, elsewhere everyone's.",
        )
        .args([all("Everyone's jobs, grouped by project"), json()])
}

fn run(matches: &ArgMatches) -> anyhow::Result<u8> {
    let store = Store::open_default()?;
    let grouped = matches.get_flag("all");
    let scope = Scope::here(grouped);
    let damaged = if matches.get_flag("json") {
        show_as_json(&store, &scope)?
    } else {
        show_as_table(&store, &scope, grouped)?
    };
    // What cannot be read hides nothing else, and is not passed over in silence.
    for damaged in &damaged {
        exit::say(&damaged.to_string());
    }
    Ok(u8::from(!damaged.is_empty()))
}

/// What `show` makes of every job that is meant, and what cannot be read.
fn shown<T: Send>(
    store: &Store,
    scope: &Scope,
    show: impl Fn(View) -> T + Sync,
) -> Result<(Vec<T>, Vec<Error>)> {
    let (tended, mut damaged) = store.show_all(|view| {
        if !scope.holds(&view) {
            return Ok(None);
        }
        match store.job(&view.descriptor.id).tend_view(view) {
            Ok(view) => Ok(Some(show(view))),
            // Somebody has cleaned up meanwhile.
            Err(Error::Gone(_)) => Ok(None),
            Err(error) => Err(error),
        }
    })?;
    let mut shown = Vec::with_capacity(tended.len());
    for job in tended {
        match job {
            Ok(job) => shown.extend(job),
            Err(error) => damaged.push(error),
        }
    }
    Ok((shown, damaged))
}

fn show_as_json(store: &Store, scope: &Scope) -> anyhow::Result<Vec<Error>> {
    let (jobs, damaged) = shown(store, scope, |view| {
        serde_json::to_string(&Report::new(&view, &store.job_dir(&view.descriptor.id)))
    })?;
    let jobs: Vec<String> = jobs.into_iter().collect::<serde_json::Result<_>>()?;
    print::line(&format!("[{}]", jobs.join(",")))?;
    Ok(damaged)
}

/// A line of the table.
struct Row {
    id: JobId,
    state: State,
    project: Option<Bytes>,
    cells: [String; 4],
    /// The job, where there is more to say of how it is.
    waiting: Option<Box<View>>,
}

/// The column that says how a job is.
const CONDITION: usize = 1;

impl Row {
    fn new(view: View, now_ms: u64) -> Row {
        let age = now_ms.saturating_sub(view.descriptor.created_at_ms);
        let title = match &view.descriptor.name {
            Some(name) => format!("{name}: {}", print::work(&view)),
            None => print::work(&view),
        };
        Row {
            id: view.descriptor.id.clone(),
            state: view.state,
            project: view.descriptor.project.clone(),
            cells: [
                view.descriptor.id.to_string(),
                print::condition(&view),
                print::short(std::time::Duration::from_millis(age)),
                title,
            ],
            waiting: waits(&view).then(|| Box::new(view)),
        }
    }
}

fn show_as_table(store: &Store, scope: &Scope, grouped: bool) -> anyhow::Result<Vec<Error>> {
    let now_ms = clock::now_ms();
    let (mut rows, damaged) = shown(store, scope, |view| Row::new(view, now_ms))?;
    say_what_is_waited_for(store, &mut rows);
    if grouped {
        show_by_project(&rows)?;
    } else {
        table(rows.iter())?;
    }
    Ok(damaged)
}

/// Complete the condition of those that are queued.
fn say_what_is_waited_for(store: &Store, rows: &mut [Row]) {
    if rows.iter().all(|row| row.waiting.is_none()) {
        return;
    }
    let states = rows.iter().map(|row| (row.id.clone(), row.state)).collect();
    let waiting = Waiting::new(store, states);
    for row in rows {
        if let Some(view) = &row.waiting {
            row.cells[CONDITION] = waiting.condition(view);
        }
    }
}

fn show_by_project(rows: &[Row]) -> std::io::Result<()> {
    let projects: BTreeSet<Option<&Bytes>> = rows.iter().map(|row| row.project.as_ref()).collect();
    for project in projects {
        match project {
            None => print::line("outside of any project:")?,
            Some(root) => {
                let path = PathBuf::from(crate::store::os_string(root));
                let gone = if path.is_dir() { "" } else { " (gone)" };
                print::line(&format!("{}{gone}:", print::safe(&root.lossy())))?;
            }
        }
        table(rows.iter().filter(|row| row.project.as_ref() == project))?;
    }
    Ok(())
}

fn table<'a>(rows: impl Iterator<Item = &'a Row>) -> std::io::Result<()> {
    let cells: Vec<&[String; 4]> = rows.map(|row| &row.cells).collect();
    print::columns(&["ID", "STATE", "AGE", "COMMAND"], &cells)
}
