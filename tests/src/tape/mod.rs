//! Replaying tapes: every protocol that a tape says has begun is called again, with what it was given, on a disk that
//! answers from the tape. What it asks for must be what it asked for then, effect by effect and argument by argument.
//! What came out of it is not on the tape.
//!
//! Effects between two protocols, which the product asked for directly, prove nothing and are passed over.

mod perform;
mod player;

use std::collections::BTreeMap;
use std::fmt;
use std::fs;
use std::io::BufRead;
use std::path::{Path, PathBuf};

use state_machine::tape::Line;

use perform::perform;
use player::Player;

/// How much was replayed.
#[derive(Clone, Debug, Default)]
pub struct Played {
    /// How many tapes.
    pub tapes: usize,
    /// How often each protocol began, those called by another one included.
    pub calls: BTreeMap<&'static str, usize>,
    /// How many effects of protocols.
    pub effects: usize,
    /// How many effects were passed over.
    pub outside: usize,
}

/// A tape that cannot be replayed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refused {
    /// The tape.
    pub tape: PathBuf,
    /// The line, from 1.
    pub line: usize,
    /// What was asked now, and what the tape has.
    pub why: String,
}

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}: {}", self.tape.display(), self.line, self.why)
    }
}

impl Played {
    /// Replay every tape of a directory.
    ///
    /// # Errors
    ///
    /// The first that is refused.
    pub fn directory(dir: &Path) -> Result<Played, Refused> {
        let mut tapes: Vec<PathBuf> = fs::read_dir(dir)
            .into_iter()
            .flatten()
            .flatten()
            .map(|entry| entry.path())
            .collect();
        tapes.sort();
        let mut played = Played::default();
        for tape in tapes {
            played.file(&tape)?;
        }
        Ok(played)
    }

    /// Replay one tape more.
    ///
    /// # Errors
    ///
    /// In what it differs.
    pub fn file(&mut self, tape: &Path) -> Result<(), Refused> {
        let refused = |(line, why)| Refused {
            tape: tape.to_owned(),
            line,
            why,
        };
        let bytes = fs::read(tape).map_err(|error| refused((0, error.to_string())))?;
        self.bytes(&bytes).map_err(refused)
    }

    /// Replay what is in a tape.
    ///
    /// # Errors
    ///
    /// The line, from 1, and in what it differs.
    pub fn bytes(&mut self, tape: &[u8]) -> Result<(), (usize, String)> {
        let lines = whole_lines(tape);
        let mut at = 0;
        while let Some(line) = lines.get(at) {
            match Line::decode(line).map_err(|why| (at + 1, why.to_string()))? {
                Line::Effect(..) => {
                    at += 1;
                    self.outside += 1;
                }
                Line::Call(call) => {
                    let mut player = Player::of(&lines[at..], &mut self.calls, &mut self.effects);
                    perform(&mut player, call);
                    at += player.end().map_err(|(line, why)| (at + line, why))?;
                }
            }
        }
        self.tapes += 1;
        Ok(())
    }
}

impl fmt::Display for Played {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} tapes, {} calls, {} effects, and {} outside of protocols",
            self.tapes,
            self.calls.values().sum::<usize>(),
            self.effects,
            self.outside
        )
    }
}

/// The lines of a tape, with their newlines. A last one without its newline was being written when its process was killed.
fn whole_lines(mut tape: &[u8]) -> Vec<Vec<u8>> {
    let mut lines = Vec::new();
    loop {
        let mut line = Vec::new();
        // Reading from memory does not fail.
        let _ = tape.read_until(b'\n', &mut line);
        if !line.ends_with(b"\n") {
            return lines;
        }
        lines.push(line);
    }
}
