//! A disk on which one effect fails, or everything from one effect on.

use std::path::Path;

use rustix::io::Errno;

use super::effect::{Kind, Wanted};
use super::errnos::{Outcome, errnos};
use super::{Meddler, Verdict, half};

/// How long the fault lasts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lasting {
    /// One effect fails, and nothing of it happens.
    Once,
    /// One effect fails when half of it has happened. Only a write, a fill and an append have halves.
    OnceHalfWay,
    /// Everything fails from then on that can fail so.
    ForEver,
}

/// Lets effects pass until the chosen one.
#[derive(Debug)]
pub struct Failing {
    /// Which effect fails first, from 0.
    pub at: usize,
    /// With which error.
    pub errno: Errno,
    /// For how long.
    pub lasting: Lasting,
    /// The kinds of the effects so far.
    pub seen: Vec<Kind>,
}

impl Failing {
    /// Fail at the effect number `at`, from 0.
    pub fn new(at: usize, errno: Errno, lasting: Lasting) -> Failing {
        Failing {
            at,
            errno,
            lasting,
            seen: Vec::new(),
        }
    }

    /// Never fail, only see what happens.
    pub fn never() -> Failing {
        Failing::new(usize::MAX, Errno::IO, Lasting::Once)
    }
}

impl Meddler for Failing {
    fn meddle(&mut self, root: &Path, wanted: &Wanted<'_>) -> Verdict {
        let nth = self.seen.len();
        self.seen.push(wanted.kind);
        let outcome = errnos(wanted.kind)
            .iter()
            .find(|(errno, _)| *errno == self.errno)
            .map(|&(_, outcome)| outcome);
        let fails = match self.lasting {
            Lasting::Once | Lasting::OnceHalfWay => nth == self.at,
            Lasting::ForEver => nth >= self.at,
        };
        match outcome {
            Some(outcome) if fails => {
                if self.lasting == Lasting::OnceHalfWay {
                    half(root, wanted);
                }
                match outcome {
                    Outcome::Fault => Verdict::Fail(self.errno),
                    Outcome::Denied => Verdict::Deny,
                }
            }
            _ => Verdict::Pass,
        }
    }
}
