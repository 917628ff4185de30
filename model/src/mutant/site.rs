//! The places in the shipped protocols, and in the shipped course of a worker, where an effect is asked for. They are read from the source, so that one that
//! no configuration reaches is known too, and so that each has a name that survives a change elsewhere in its file.

use std::fmt;
use std::sync::LazyLock;

use crate::replay::At;

/// The protocols, as they are compiled.
const SOURCES: [(&str, &str); 38] = [
    source(
        "take",
        include_str!("../../../state-machine/src/course/take.rs"),
    ),
    source(
        "keep",
        include_str!("../../../state-machine/src/course/keep.rs"),
    ),
    source(
        "attempt",
        include_str!("../../../state-machine/src/course/attempt.rs"),
    ),
    source(
        "oversee",
        include_str!("../../../state-machine/src/course/oversee.rs"),
    ),
    source(
        "end",
        include_str!("../../../state-machine/src/course/end.rs"),
    ),
    source(
        "batch",
        include_str!("../../../state-machine/src/protocol/batch.rs"),
    ),
    source(
        "book",
        include_str!("../../../state-machine/src/protocol/book.rs"),
    ),
    source(
        "claim",
        include_str!("../../../state-machine/src/protocol/claim.rs"),
    ),
    source(
        "create",
        include_str!("../../../state-machine/src/protocol/create.rs"),
    ),
    source(
        "forget",
        include_str!("../../../state-machine/src/protocol/forget.rs"),
    ),
    source(
        "hold",
        include_str!("../../../state-machine/src/protocol/hold.rs"),
    ),
    source(
        "lock",
        include_str!("../../../state-machine/src/protocol/lock.rs"),
    ),
    source(
        "look",
        include_str!("../../../state-machine/src/protocol/look.rs"),
    ),
    source(
        "pool",
        include_str!("../../../state-machine/src/protocol/pool.rs"),
    ),
    source(
        "pull/discard",
        include_str!("../../../state-machine/src/protocol/pull/discard.rs"),
    ),
    source(
        "pull/part",
        include_str!("../../../state-machine/src/protocol/pull/part.rs"),
    ),
    source(
        "pull/fetch",
        include_str!("../../../state-machine/src/protocol/pull/fetch.rs"),
    ),
    source(
        "pull/record",
        include_str!("../../../state-machine/src/protocol/pull/record.rs"),
    ),
    source(
        "pull/register",
        include_str!("../../../state-machine/src/protocol/pull/register.rs"),
    ),
    source(
        "pull/staging",
        include_str!("../../../state-machine/src/protocol/pull/staging.rs"),
    ),
    source(
        "recover",
        include_str!("../../../state-machine/src/protocol/recover.rs"),
    ),
    source(
        "request",
        include_str!("../../../state-machine/src/protocol/request.rs"),
    ),
    source(
        "spare",
        include_str!("../../../state-machine/src/protocol/spare.rs"),
    ),
    source(
        "settle",
        include_str!("../../../state-machine/src/protocol/settle.rs"),
    ),
    source(
        "slot/claim",
        include_str!("../../../state-machine/src/protocol/slot/claim.rs"),
    ),
    source(
        "slot/enter",
        include_str!("../../../state-machine/src/protocol/slot/enter.rs"),
    ),
    source(
        "slot/give_back",
        include_str!("../../../state-machine/src/protocol/slot/give_back.rs"),
    ),
    source(
        "slot/look",
        include_str!("../../../state-machine/src/protocol/slot/look.rs"),
    ),
    source(
        "slot/maintain",
        include_str!("../../../state-machine/src/protocol/slot/maintain.rs"),
    ),
    source(
        "slot/mend",
        include_str!("../../../state-machine/src/protocol/slot/mend.rs"),
    ),
    source(
        "slot/occupy",
        include_str!("../../../state-machine/src/protocol/slot/occupy.rs"),
    ),
    source(
        "slot/place",
        include_str!("../../../state-machine/src/protocol/slot/place.rs"),
    ),
    source(
        "slot/remove",
        include_str!("../../../state-machine/src/protocol/slot/remove.rs"),
    ),
    source(
        "slot/renew",
        include_str!("../../../state-machine/src/protocol/slot/renew.rs"),
    ),
    source(
        "slot/session",
        include_str!("../../../state-machine/src/protocol/slot/session.rs"),
    ),
    source(
        "slot/write",
        include_str!("../../../state-machine/src/protocol/slot/write.rs"),
    ),
    source(
        "start",
        include_str!("../../../state-machine/src/protocol/start.rs"),
    ),
    source(
        "supervise",
        include_str!("../../../state-machine/src/protocol/supervise.rs"),
    ),
];

const fn source(name: &'static str, text: &'static str) -> (&'static str, &'static str) {
    (name, text)
}

/// What stands before the name of an effect where a protocol asks for one.
const CALL: &str = "disk.";

/// What a protocol says to a disk that is no effect.
const SAYS_SO: &str = "begins";

/// What stands before the name of a deed in a course, or of one who fetches.
const DEED: [&str; 3] = ["worker.", "keeper.", "source."];

/// The deeds that are effects in the model.
const DEEDS: [&str; 12] = [
    "await_alarm",
    "dismiss",
    "empty",
    "end_leftovers",
    "is_empty",
    "is_wanted",
    "left",
    "length",
    "release",
    "stop",
    "verify",
    "watch",
];

/// A place where an effect is asked for.
#[derive(Debug, PartialEq, Eq, Hash)]
pub struct Site {
    /// The protocol's file, below the folder of protocols and without its ending.
    pub file: &'static str,
    /// The function in it.
    pub function: &'static str,
    /// The method of the disk.
    pub method: &'static str,
    /// Which of this method's calls in the function, from 1.
    pub nth: usize,
    line: u32,
    column: u32,
}

/// Every site, in the order of files and lines.
pub static SITES: LazyLock<Vec<Site>> = LazyLock::new(|| {
    SOURCES
        .iter()
        .flat_map(|&(file, text)| sites_of(file, text))
        .collect()
});

impl Site {
    /// Whether an effect that is asked for `at` is asked for here.
    pub fn is(&self, at: At) -> bool {
        self.line == at.line() && self.column == at.column() && stem(at.file()) == Some(self.file)
    }

    /// The number of the site where an effect is asked for; `None` for one that no protocol asks for.
    pub fn number(at: At) -> Option<usize> {
        SITES.iter().position(|site| site.is(at))
    }
}

impl fmt::Display for Site {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}.{}", self.file, self.function, self.method)?;
        if self.nth > 1 {
            write!(f, "#{}", self.nth)?;
        }
        Ok(())
    }
}

fn stem(path: &str) -> Option<&str> {
    let (dir, file) = path.strip_suffix(".rs")?.rsplit_once('/')?;
    let is_here = |folder: &str| dir == folder || dir.ends_with(&format!("/{folder}"));
    if is_here("protocol/slot") || is_here("protocol/pull") {
        return path.rsplit_once("/protocol/")?.1.strip_suffix(".rs");
    }
    (is_here("protocol") || is_here("course")).then_some(file)
}

fn sites_of(file: &'static str, text: &'static str) -> Vec<Site> {
    let mut sites: Vec<Site> = Vec::new();
    let mut function = "";
    for (number, line) in (1..).zip(text.lines()) {
        if line.starts_with("#[cfg(test)]") {
            break;
        }
        if line.trim_start().starts_with("//") {
            continue;
        }
        function = function_in(line).unwrap_or(function);
        for (begins, method) in asked_for(line) {
            let before = sites
                .iter()
                .filter(|site| site.function == function && site.method == method);
            sites.push(Site {
                file,
                function,
                method,
                nth: before.count() + 1,
                line: number,
                column: begins as u32 + 1,
            });
        }
    }
    sites
}

/// The effects that are asked for in this line: where the name of each begins, and the name.
fn asked_for(line: &'static str) -> impl Iterator<Item = (usize, &'static str)> {
    let after = move |before: &'static str| {
        line.match_indices(before).filter_map(move |(at, _)| {
            let begins = at + before.len();
            let (method, _) = line[begins..].split_once('(')?;
            Some((begins, method))
        })
    };
    let effects = after(CALL).filter(|(_, method)| *method != SAYS_SO);
    let deeds = DEED.into_iter().flat_map(after);
    let deeds = deeds.filter(|(_, method)| DEEDS.contains(method));
    effects.chain(deeds)
}

/// The name of the function that begins in this line.
fn function_in(line: &'static str) -> Option<&'static str> {
    let words = line.trim_start();
    let words = ["pub ", "pub(super) "]
        .iter()
        .find_map(|public| words.strip_prefix(public))
        .unwrap_or(words);
    let name = words.strip_prefix("fn ")?;
    let end = name.find(|c: char| !c.is_alphanumeric() && c != '_')?;
    Some(&name[..end])
}
