//! `outlive list`: every job, and how it is.

use clap::{ArgMatches, Command};
use state_machine::protocol::look::View;

use super::arguments::{all, json};
use super::scope::Scope;
use super::waiting::Waiting;
use super::{Verb, exit, print};
use crate::clock;
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
    let scope = Scope::here(matches.get_flag("all"));
    let listing = store.list()?;
    let mut views = Vec::with_capacity(listing.jobs.len());
    for view in listing.jobs {
        if scope.holds(&view) {
            let job = store.job(&view.descriptor.id);
            views.push(job.tend_view(view)?);
        }
    }
    if matches.get_flag("json") {
        let reports: Vec<Report> = views
            .iter()
            .map(|view| Report::new(view, &store.job_dir(&view.descriptor.id)))
            .collect();
        print::json(&reports)?;
    } else {
        show(&store, &views, matches.get_flag("all"))?;
    }
    // What cannot be read hides nothing else, and is not passed over in silence.
    for damaged in &listing.damaged {
        exit::say(&damaged.to_string());
    }
    Ok(u8::from(!listing.damaged.is_empty()))
}

fn show(store: &Store, views: &[View], grouped: bool) -> std::io::Result<()> {
    let waiting = Waiting::new(store, views);
    if !grouped {
        return table(&waiting, views.iter());
    }
    let project = |view: &View| view.descriptor.project.clone();
    let mut projects: Vec<_> = views.iter().map(project).collect();
    projects.sort();
    projects.dedup();
    for wanted in projects {
        match &wanted {
            None => print::line("outside of any project:")?,
            Some(root) => {
                let path = std::path::PathBuf::from(crate::store::os_string(root));
                let gone = if path.is_dir() { "" } else { " (gone)" };
                print::line(&format!("{}{gone}:", print::safe(&root.lossy())))?;
            }
        }
        let inside = views.iter().filter(|view| project(view) == wanted);
        table(&waiting, inside)?;
    }
    Ok(())
}

fn table<'a>(waiting: &Waiting<'_>, views: impl Iterator<Item = &'a View>) -> std::io::Result<()> {
    let now_ms = clock::now_ms();
    let rows: Vec<[String; 4]> = views
        .map(|view| {
            let age = now_ms.saturating_sub(view.descriptor.created_at_ms);
            let title = match &view.descriptor.name {
                Some(name) => format!("{name}: {}", print::work(view)),
                None => print::work(view),
            };
            [
                view.descriptor.id.to_string(),
                waiting.condition(view),
                print::short(std::time::Duration::from_millis(age)),
                title,
            ]
        })
        .collect();
    print::columns(&["ID", "STATE", "AGE", "COMMAND"], &rows)
}
