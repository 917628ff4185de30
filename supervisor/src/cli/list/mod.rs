//! `outlive list`: every job, and how it is. Each job is made into what is printed of it where it is looked at, and no more
//! of it is kept: ten thousand of them are listed as fast as they can be read.

mod filter;
pub(super) mod row;
pub(super) mod table;
mod watch;

use std::collections::BTreeSet;
use std::io::{self, Write};
use std::path::PathBuf;

use clap::{ArgMatches, Command};
use state_machine::protocol::look::View;
use state_machine::record::Bytes;

use self::filter::Filter;
use self::row::{Row, say_what_is_waited_for};
use self::table::{Cells, Look};
use super::arguments::{all, flag, json};
use super::scope::Scope;
use super::{Verb, exit, print, terminal};
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
            "List jobs, oldest first: inside a project those of the project, elsewhere everyone's. On a terminal the \
             table is as wide as that; elsewhere nothing of it is cut.",
        )
        .arg(all("Everyone's jobs, grouped by project"))
        .args(filter::arguments())
        .args([
            json(),
            flag(
                "watch",
                "Show it again whenever something changes, until you end it",
            )
            .conflicts_with("json"),
        ])
}

/// Which jobs are listed.
struct Chosen {
    scope: Scope,
    filter: Filter,
}

impl Chosen {
    fn holds(&self, view: &View) -> bool {
        self.scope.holds(view) && self.filter.holds(view)
    }
}

fn run(matches: &ArgMatches) -> anyhow::Result<u8> {
    let store = Store::open_default()?;
    let grouped = matches.get_flag("all");
    let chosen = Chosen {
        scope: Scope::here(grouped),
        filter: Filter::of(matches),
    };
    if matches.get_flag("watch") {
        return watch::watch(&store, &chosen, grouped);
    }
    let damaged = if matches.get_flag("json") {
        show_as_json(&store, &chosen)?
    } else {
        show_as_table(&store, &chosen, grouped)?
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
    chosen: &Chosen,
    show: impl Fn(View) -> T + Sync,
) -> Result<(Vec<T>, Vec<Error>)> {
    let (tended, mut damaged) = store.show_all(|view| {
        if !chosen.scope.holds(&view) {
            return Ok(None);
        }
        match store.job(&view.descriptor.id).tend_view(view) {
            Ok(view) => Ok(chosen.filter.holds(&view).then(|| show(view))),
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

fn show_as_json(store: &Store, chosen: &Chosen) -> anyhow::Result<Vec<Error>> {
    let (jobs, damaged) = shown(store, chosen, |view| {
        serde_json::to_string(&Report::new(&view, &store.job_dir(&view.descriptor.id)))
    })?;
    let jobs: Vec<String> = jobs.into_iter().collect::<serde_json::Result<_>>()?;
    print::line(&format!("[{}]", jobs.join(",")))?;
    Ok(damaged)
}

fn show_as_table(store: &Store, chosen: &Chosen, grouped: bool) -> anyhow::Result<Vec<Error>> {
    let now_ms = clock::now_ms();
    let (mut rows, damaged) = shown(store, chosen, |view| Row::new(&view, now_ms))?;
    say_what_is_waited_for(store, &mut rows);
    let look = Look {
        room: terminal::columns(),
        strict: false,
        coloured: terminal::has_colours(),
    };
    let mut out = io::BufWriter::with_capacity(1 << 16, io::stdout().lock());
    write_rows(&mut out, &rows, look, grouped)?;
    out.flush()?;
    Ok(damaged)
}

/// Write the table, or one for each project.
fn write_rows(out: &mut impl Write, rows: &[Row], look: Look, grouped: bool) -> io::Result<()> {
    if !grouped {
        return write_table(out, rows.iter(), look);
    }
    let projects: BTreeSet<Option<&Bytes>> = rows.iter().map(|row| row.project.as_ref()).collect();
    for project in projects {
        let heading = match project {
            None => "outside of any project:".to_owned(),
            Some(root) => {
                let path = PathBuf::from(crate::store::os_string(root));
                let missing = if path.is_dir() { "" } else { " [root missing]" };
                format!("{}{missing}:", print::safe(&root.lossy()))
            }
        };
        let room = look.room.filter(|_| look.strict);
        let heading = print::cut(&heading, room.unwrap_or(usize::MAX));
        writeln!(out, "{heading}")?;
        let of_project = rows.iter().filter(|row| row.project.as_ref() == project);
        write_table(out, of_project, look)?;
    }
    Ok(())
}

fn write_table<'a>(
    out: &mut impl Write,
    rows: impl Iterator<Item = &'a Row>,
    look: Look,
) -> io::Result<()> {
    let rows: Vec<&Row> = rows.collect();
    let cells: Vec<&Cells> = rows.iter().map(|row| &row.cells).collect();
    table::write(out, &cells, look, |number| rows[number].colour())
}
