//! What is wrong in a project file, and where: line and column, and the word that was probably meant.

use std::ops::Range;

use thiserror::Error;

use crate::nearest::nearest;

/// A project file that cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("line {line}, column {column}: {why}")]
pub struct BadProject {
    /// The line, from 1.
    pub line: usize,
    /// The column in characters, from 1.
    pub column: usize,
    /// What is wrong there, and what to do.
    pub why: String,
}

impl BadProject {
    /// What is wrong at these bytes of the file.
    pub(super) fn at(text: &str, span: Range<usize>, why: impl Into<String>) -> BadProject {
        // A span may end up behind the end, or within a character, where the file ends early.
        let mut start = span.start.min(text.len());
        while !text.is_char_boundary(start) {
            start -= 1;
        }
        let before = &text[..start];
        let line_start = before.rfind('\n').map_or(0, |newline| newline + 1);
        BadProject {
            line: before.matches('\n').count() + 1,
            column: before[line_start..].chars().count() + 1,
            why: why.into(),
        }
    }

    /// What the parser found wrong.
    pub(super) fn of_parsing(text: &str, error: &toml::de::Error) -> BadProject {
        let why = with_meant_word(error.message());
        BadProject::at(text, error.span().unwrap_or(0..0), why)
    }
}

/// A message about a value of another kind ends with the kind that is expected, as the language calls it that this is written in.
/// What stands before that may be the user's own words.
fn in_words(message: &str) -> String {
    const KINDS: [(&str, &str); 4] = [
        (", expected a sequence", ", expected a list, as [\"…\"]"),
        (", expected a map", ", expected a table, as { … }"),
        (", expected u32", ", expected a whole number"),
        (", expected a string", ", expected a text in quotes"),
    ];
    // It is one line, whatever is quoted in it.
    let line = message.replace('\n', "\\n");
    let mut kinds = KINDS.iter().filter(|_| line.starts_with("invalid "));
    let of_kind = kinds.find_map(|(kind, words)| Some((line.strip_suffix(kind)?, words)));
    of_kind.map_or_else(|| line.clone(), |(found, words)| format!("{found}{words}"))
}

/// A message about an unknown word names all that are known. Where one of them is near, that one is what was meant.
fn with_meant_word(message: &str) -> String {
    if !message.starts_with("unknown ") {
        return in_words(message);
    }
    let mut words = message.split('`').skip(1).step_by(2);
    let Some(wrong) = words.next() else {
        return message.to_owned();
    };
    let known: Vec<&str> = words.collect();
    match nearest(wrong, known.iter().copied()) {
        Some(meant) => format!("there is no '{wrong}' here; '{meant}' was meant?"),
        None => format!("there is no '{wrong}' here, but: {}", known.join(", ")),
    }
}
