//! What jobs say about themselves outside of the store: each appends a line when it begins and one when it ends, in one
//! write each, so that the order of the lines is the order of what happened. Read without any of the product's code.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, OpenOptions};
use std::io::Write;
use std::path::Path;

use crate::bench::Bench;

/// A script that marks its begin and its end, sleeps as long as `$1` says and exits with `$2`. Its name is `$0`.
pub const MARKING: &str =
    r#"echo "begin $0" >> marks; [ "$1" = 0 ] || sleep "$1"; echo "end $0" >> marks; exit "$2""#;

/// How often each job began and ended, and how many ran at once.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Marks {
    /// How often a job of this name began.
    pub begun: BTreeMap<String, u32>,
    /// How often a job of this name ended by itself.
    pub ended: BTreeMap<String, u32>,
    /// The most that certainly ran at one moment: one whose killing was announced counts no more.
    pub most_at_once: usize,
    /// What was never ended nor killed.
    pub open: BTreeSet<String>,
}

impl Marks {
    /// Read the marks of a bench.
    ///
    /// # Panics
    ///
    /// When there is a line that nobody writes.
    pub fn of(bench: &Bench) -> Marks {
        let text = fs::read_to_string(bench.file("marks")).unwrap_or_default();
        let mut marks = Marks::default();
        for line in text.lines() {
            let (word, name) = line.split_once(' ').unwrap_or((line, ""));
            let name = name.to_owned();
            match word {
                "begin" => {
                    *marks.begun.entry(name.clone()).or_default() += 1;
                    marks.open.insert(name);
                    marks.most_at_once = marks.most_at_once.max(marks.open.len());
                }
                "end" => {
                    marks.open.remove(&name);
                    *marks.ended.entry(name).or_default() += 1;
                }
                "kill" => {
                    marks.open.remove(&name);
                }
                _ => panic!("'{line}' is no mark"),
            }
        }
        marks
    }

    /// Say that the job of this name is about to be killed.
    pub fn announce_kill(bench: &Bench, name: &str) {
        append(&bench.file("marks"), &format!("kill {name}\n"));
    }
}

fn append(path: &Path, line: &str) {
    let file = OpenOptions::new().append(true).create(true).open(path);
    file.and_then(|mut file| file.write_all(line.as_bytes()))
        .expect("there is room for a mark");
}
