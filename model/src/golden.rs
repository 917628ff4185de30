//! What is written down about the model: how many states each configuration has, and how each mutant is caught. A
//! changed line is a changed protocol or a changed world: look why before writing it down with `--bless`.

use std::io;

/// A golden file: a name, two blanks and what is known of it on each line, sorted.
#[derive(Debug)]
pub struct Golden {
    text: &'static str,
    path: &'static str,
}

/// How many states each configuration has.
pub const STATES: Golden = Golden {
    text: include_str!("../states.golden"),
    path: concat!(env!("CARGO_MANIFEST_DIR"), "/states.golden"),
};

/// How each mutant is caught.
pub const MUTANTS: Golden = Golden {
    text: include_str!("../mutants.golden"),
    path: concat!(env!("CARGO_MANIFEST_DIR"), "/mutants.golden"),
};

/// What stands between a name and what is known of it.
const BETWEEN: &str = "  ";

impl Golden {
    /// What is written down under a name.
    pub fn get(&self, name: &str) -> Option<&'static str> {
        let mut lines = self
            .text
            .lines()
            .filter_map(|line| line.split_once(BETWEEN));
        lines
            .find(|(known, _)| *known == name)
            .map(|(_, known)| known)
    }

    /// Every name under which something is written down.
    pub fn names(&self) -> impl Iterator<Item = &'static str> + use<> {
        let lines = self.text.lines();
        lines.filter_map(|line| line.split_once(BETWEEN).map(|(name, _)| name))
    }

    /// Write something down under a name. Errors are those of reading and writing the file.
    pub fn write(&self, name: &str, known: &str) -> io::Result<()> {
        let old = std::fs::read_to_string(self.path)?;
        let is_other = |line: &&str| {
            let known = line.split_once(BETWEEN).map(|(known, _)| known);
            known.is_some_and(|known| known != name)
        };
        let mut lines: Vec<String> = old.lines().filter(is_other).map(str::to_owned).collect();
        lines.push(format!("{name}{BETWEEN}{known}"));
        lines.sort();
        std::fs::write(self.path, lines.join("\n") + "\n")
    }
}

/// The number of states that is written down for a configuration.
pub fn states(name: &str) -> Option<usize> {
    STATES.get(name)?.trim().parse().ok()
}
