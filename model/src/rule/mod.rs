//! The rules of the design as the model checks them, under their numbers. Each is judged where it can be broken:
//! [`step`] when an effect is about to happen or has happened, [`power`] when power was lost, [`rest`] when nobody moves
//! any more. What is
//! broken is written into the state, and a property for each rule says that it is not there.
//!
//! Liveness is checked as safety: that somebody can always move, and that a fresh process heals what is left.

pub mod power;
pub mod pull;
pub mod queue;
pub mod rest;
mod sight;
pub mod slot;
pub mod step;

pub use sight::Sight;

use stateright::Property;

use crate::world::{State, World};

/// A rule.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Rule {
    /// One worker: whoever believes to hold a job has the lock that stands at its path, alone.
    R1,
    /// The holder writes.
    R2,
    /// No false death: a reader says interrupted only if that was true while it looked.
    R3,
    /// No false life: whatever else a reader says was true at some instant while it looked.
    R4,
    /// Readers never harm: whoever has only readers beside it is never told that somebody holds the job.
    R5,
    /// No request lost.
    R6,
    /// Legal histories, and terminal is final.
    R7,
    /// Whole or absent.
    R8,
    /// A sweep takes only the dead.
    R9,
    /// No resurrection.
    R10,
    /// No orphan beside a worker.
    R11,
    /// One start per key, and one who fetches a file.
    R12,
    /// Exit statuses survive.
    R13,
    /// One holder per slot.
    R14,
    /// One maintenance per pool, and no command while slots cannot be looked for.
    R15,
    /// Dead claims fall, and nobody calls a live one dead.
    R16,
    /// The attempt is recorded.
    R17,
    /// Progress: where nothing fails, whoever takes a job that waits runs it, and none is left to nobody.
    R18,
    /// What was acknowledged survives a loss of power, and no record is torn by one.
    R19,
    /// Adoption: one supervisor, no job started again, no more commands than slots.
    R20,
    /// Good is never replaced by empty.
    R21,
    /// Heals alone.
    R22,
    /// Fenced claims: an open session keeps its slot, whoever comes with an older token.
    R23,
    /// Registering is re-runnable: nothing unverified under a final name, and nothing is fetched twice.
    R24,
    /// Every operation comes to its end.
    Bounded,
    /// A protocol hands every handle back.
    Handles,
    /// While somebody has something to do, somebody can move.
    NotStuck,
    /// No assertion of the checked code fails.
    NoPanic,
}

/// A rule that was broken, and how.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Broken {
    /// The rule.
    pub rule: Rule,
    /// How, for people.
    pub how: String,
}

impl Rule {
    /// Every rule.
    pub const ALL: [Rule; 28] = [
        Rule::R1,
        Rule::R2,
        Rule::R3,
        Rule::R4,
        Rule::R5,
        Rule::R6,
        Rule::R7,
        Rule::R8,
        Rule::R9,
        Rule::R10,
        Rule::R11,
        Rule::R12,
        Rule::R13,
        Rule::R14,
        Rule::R15,
        Rule::R16,
        Rule::R17,
        Rule::R18,
        Rule::R19,
        Rule::R20,
        Rule::R21,
        Rule::R22,
        Rule::R23,
        Rule::R24,
        Rule::Bounded,
        Rule::Handles,
        Rule::NotStuck,
        Rule::NoPanic,
    ];

    /// The rule was broken like this.
    pub fn broken(self, how: impl Into<String>) -> Broken {
        Broken {
            rule: self,
            how: how.into(),
        }
    }
}

/// The property of every rule.
pub fn properties() -> Vec<Property<World>> {
    let always = |name, kept: fn(&World, &State) -> bool| Property::always(name, kept);
    vec![
        always("R1 one worker", |_, s| s.keeps(Rule::R1)),
        always("R2 the holder writes", |_, s| s.keeps(Rule::R2)),
        always("R3 no false death", |_, s| s.keeps(Rule::R3)),
        always("R4 no false life", |_, s| s.keeps(Rule::R4)),
        always("R5 readers never harm", |_, s| s.keeps(Rule::R5)),
        always("R6 no request lost", |_, s| s.keeps(Rule::R6)),
        always("R7 legal histories", |_, s| s.keeps(Rule::R7)),
        always("R8 whole or absent", |_, s| s.keeps(Rule::R8)),
        always("R9 sweep takes only the dead", |_, s| s.keeps(Rule::R9)),
        always("R10 no resurrection", |_, s| s.keeps(Rule::R10)),
        always("R11 no orphan beside a worker", |_, s| s.keeps(Rule::R11)),
        always("R12 one start per key", |_, s| s.keeps(Rule::R12)),
        always("R13 exit statuses survive", |_, s| s.keeps(Rule::R13)),
        always("R14 one holder per slot", |_, s| s.keeps(Rule::R14)),
        always("R15 one maintenance per pool", |_, s| s.keeps(Rule::R15)),
        always("R16 dead claims fall", |_, s| s.keeps(Rule::R16)),
        always("R17 the attempt is recorded", |_, s| s.keeps(Rule::R17)),
        always("R18 progress", |_, s| s.keeps(Rule::R18)),
        always("R19 power loss", |_, s| s.keeps(Rule::R19)),
        always("R20 adoption", |_, s| s.keeps(Rule::R20)),
        always("R21 good is never replaced by empty", |_, s| {
            s.keeps(Rule::R21)
        }),
        always("R22 heals alone", |_, s| s.keeps(Rule::R22)),
        always("R23 fenced claims", |_, s| s.keeps(Rule::R23)),
        always("R24 registering is re-runnable", |_, s| s.keeps(Rule::R24)),
        always("bounded work", |_, s| s.keeps(Rule::Bounded)),
        always("every handle is handed back", |_, s| s.keeps(Rule::Handles)),
        always("not stuck", |_, s| s.keeps(Rule::NotStuck)),
        always("no panic", |_, s| s.keeps(Rule::NoPanic)),
    ]
}
