//! `outlive check`: whether the file of a project says something, before anything is started.

use std::path::PathBuf;

use clap::{Arg, ArgMatches, Command, value_parser};

use super::arguments::json;
use super::scope::tasks_here;
use super::{Verb, print};
use crate::error::DiskError;
use crate::project::Tasks;

pub(super) const VERB: Verb = Verb {
    name: "check",
    aliases: &[],
    declare,
    run,
};

fn declare(verb: Command) -> Command {
    verb.about(
        "Check the file of a project, and print its tasks in the order in which they are started",
    )
    .args([
        Arg::new("file")
            .value_name("FILE")
            .value_parser(value_parser!(PathBuf))
            .help("The file [the outlive.toml of the project that this is in]"),
        json(),
    ])
}

fn run(matches: &ArgMatches) -> anyhow::Result<u8> {
    let tasks = match matches.get_one::<PathBuf>("file") {
        Some(file) => {
            let absolute =
                std::path::absolute(file).map_err(|error| DiskError::new("find", file, error))?;
            Tasks::read_file(&absolute)?
        }
        None => tasks_here()?,
    };
    let project = tasks.project();
    let order = project.in_order(project.tasks.keys().map(String::as_str));
    if matches.get_flag("json") {
        print::json(&order)?;
    } else {
        for name in order {
            print::line(&print::safe(name))?;
        }
    }
    Ok(0)
}
