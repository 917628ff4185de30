//! `outlive man`: the manual, made from the declarations of the verbs.

use std::io::{self, Write};
use std::path::{Path, PathBuf};

use clap::{ArgMatches, Command, value_parser};
use clap_mangen::Man;

use super::arguments::option;
use super::{Verb, declare_visible, examples};
use crate::error::DiskError;

pub(super) const VERB: Verb = Verb {
    name: "man",
    aliases: &[],
    declare,
    run,
};

fn declare(verb: Command) -> Command {
    verb.about("Print the manual page, or write a page for every verb")
        .arg(
            option(
                "out",
                "DIR",
                "Write outlive.1 and one page per verb into this directory",
            )
            .value_parser(value_parser!(PathBuf)),
        )
}

fn run(matches: &ArgMatches) -> anyhow::Result<u8> {
    let pages = pages()?;
    match matches.get_one::<PathBuf>("out") {
        Some(dir) => write_into(dir, &pages)?,
        None => {
            // The first is that of the whole.
            let text = pages.first().map_or(&[][..], |(_, text)| text);
            io::stdout().lock().write_all(text)?;
        }
    }
    Ok(0)
}

/// Every page, with the name of its file: that of the whole, then one per verb.
fn pages() -> io::Result<Vec<(String, Vec<u8>)>> {
    let mut whole = declare_visible();
    whole.build();
    let verbs: Vec<Command> = whole.get_subcommands().cloned().collect();
    std::iter::once(whole).chain(verbs).map(page).collect()
}

fn page(command: Command) -> io::Result<(String, Vec<u8>)> {
    let example = examples::of(command.get_name());
    let man = Man::new(command).manual("outlive");
    let mut text = Vec::new();
    man.render(&mut text)?;
    if let Some(example) = example {
        writeln!(
            text,
            ".SH EXAMPLE\n.nf\n{}\n.fi",
            example.replace('-', "\\-")
        )?;
    }
    Ok((man.get_filename(), text))
}

fn write_into(dir: &Path, pages: &[(String, Vec<u8>)]) -> Result<(), DiskError> {
    std::fs::create_dir_all(dir)
        .map_err(|error| DiskError::new("make the directory", dir, error))?;
    for (name, text) in pages {
        let path = dir.join(name);
        std::fs::write(&path, text).map_err(|error| DiskError::new("write", &path, error))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn there_is_a_page_for_the_whole_and_for_every_verb_but_the_hidden() {
        let pages = pages().unwrap();
        let names: Vec<&str> = pages.iter().map(|(name, _)| name.as_str()).collect();
        assert_eq!(names[0], "outlive.1");
        assert!(names.contains(&"outlive-run.1") && names.contains(&"outlive-man.1"));
        assert!(!names.iter().any(|name| name.contains("worker")));
        for (name, text) in &pages {
            assert!(text.starts_with(b".ie"), "{name}");
            assert!(
                !String::from_utf8_lossy(text).contains("outlive\\-worker"),
                "{name}"
            );
        }
    }
}
