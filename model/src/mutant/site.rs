//! The places in the shipped protocols where an effect is asked for. They are read from the source, so that one that
//! no configuration reaches is known too, and so that each has a name that survives a change elsewhere in its file.

use std::fmt;
use std::sync::LazyLock;

use crate::replay::At;

/// The protocols, as they are compiled.
const SOURCES: [(&str, &str); 26] = [
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

/// What stands before the name of an effect where one is asked for.
const CALL: &str = "disk.";

/// What a protocol says to a disk that is no effect.
const SAYS_SO: &str = "begins";

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
    let (_, file) = path.rsplit_once("/protocol/")?;
    file.strip_suffix(".rs")
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
        for (at, _) in line.match_indices(CALL) {
            let begins = at + CALL.len();
            let Some((method, _)) = line[begins..].split_once('(') else {
                continue;
            };
            if method == SAYS_SO {
                continue;
            }
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
