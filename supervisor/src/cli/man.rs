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

/// Every page, with the name of its file: that of the whole, then one per verb, and after each those of the verbs below it.
fn pages() -> io::Result<Vec<(String, Vec<u8>)>> {
    // The pages say what its pages would.
    let mut whole = declare_visible().disable_help_subcommand(true);
    whole.build();
    let mut pages = vec![page(&whole, "")?];
    add_below(&whole, "", &mut pages)?;
    Ok(pages)
}

fn add_below(command: &Command, words: &str, pages: &mut Vec<(String, Vec<u8>)>) -> io::Result<()> {
    for verb in command.get_subcommands() {
        let words = format!("{words} {}", verb.get_name());
        let words = words.trim_start();
        pages.push(page(verb, words)?);
        add_below(verb, words, pages)?;
    }
    Ok(())
}

/// The page of the verb that is called by these words.
fn page(command: &Command, words: &str) -> io::Result<(String, Vec<u8>)> {
    let example = examples::of(words);
    let man = Man::new(command.clone())
        .manual("outlive")
        .source(concat!("outlive ", env!("CARGO_PKG_VERSION")));
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
        assert!(names.contains(&"outlive-run.1") && names.contains(&"outlive-pool-add.1"));
        for (name, text) in &pages {
            // What is referred to is there.
            let text = String::from_utf8_lossy(text).replace("\\-", "-");
            for (at, _) in text.match_indices("(1)") {
                let begins =
                    text[..at].rfind(|letter: char| !letter.is_alphanumeric() && letter != '-');
                let word = &text[begins.map_or(0, |before| before + 1)..at];
                let word = word
                    .strip_prefix("fB")
                    .or(word.strip_prefix("fR"))
                    .unwrap_or(word);
                assert!(
                    names.contains(&format!("{word}.1").as_str()),
                    "{name}: {word}"
                );
            }
        }
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
