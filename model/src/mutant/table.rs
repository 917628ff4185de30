//! Every mutant: one effect of one shipped protocol that is wrong, or a whole protocol. Each is tried in the ordinary
//! worlds, smallest first, until a rule is found broken.
//!
//! Those that break nothing are listed with the reason. The list is part of the check: one that is caught after all
//! must leave it.

use std::fmt;

use stateright::{Checker, Expectation, HasDiscoveries, Model};

use super::edit::{Edit, How};
use super::site::SITES;
use crate::rule::Rule;
use crate::world::{Power, World};
use crate::{config, golden, trace};

/// States after which a search for a mutant is given up: nothing ordinary is that big, and a mutant that goes round for
/// ever must not.
const STATES: usize = 200_000;

/// Worlds of fewer states than this are what mutants are tried in: a mutant that lives in all of them is searched for
/// to the end in each.
const SMALL: usize = 40_000;

/// How a mutant was caught.
#[derive(Clone, Debug)]
pub struct Caught {
    /// In which world.
    pub world: &'static str,
    /// Which rule it broke; `None` where none is broken, and something that must be seen in the world never is.
    pub rule: Option<Rule>,
    /// How many steps the shortest way there has.
    pub steps: usize,
    /// That way, one lane per process.
    pub lanes: String,
}

impl fmt::Display for Caught {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.rule {
            Some(rule) => write!(
                f,
                "{:<8} {:>3} steps in {}",
                format!("{rule:?}"),
                self.steps,
                self.world
            ),
            None => write!(f, "{} in {}", self.lanes, self.world),
        }
    }
}

/// A mutant that breaks nothing, and why that is so.
pub const HARMLESS: &[(&str, &str)] = &[];

/// Why the mutant of this name breaks nothing, if that is known.
pub fn why_harmless(name: &str) -> Option<&'static str> {
    let known = HARMLESS.iter().find(|(known, _)| *known == name);
    known.map(|&(_, why)| why)
}

/// Every way to get one effect wrong.
pub fn edits() -> Vec<Edit> {
    SITES
        .iter()
        .flat_map(|site| {
            How::of(site.method)
                .iter()
                .map(move |&how| Edit { site, how })
        })
        .collect()
}

/// A world in which mutants are tried, and which places in the protocols are reached in it.
#[derive(Debug)]
pub struct Stage {
    world: World,
    unreached: Vec<String>,
}

/// The ordinary worlds, smallest first.
pub fn stages() -> Vec<Stage> {
    let is_small = |world: &World| golden::states(world.name).is_some_and(|states| states < SMALL);
    let mut worlds: Vec<World> = config::all().into_iter().filter(is_small).collect();
    // A state of a world in which power is lost takes far longer to judge.
    worlds.sort_by_key(|world| (world.power != Power::Steady, golden::states(world.name)));
    worlds
        .into_iter()
        .map(|world| {
            let coverage = world.coverage.clone();
            let searched = world.clone().checker().spawn_dfs().join();
            assert!(searched.is_done());
            Stage {
                world,
                unreached: coverage
                    .unreached()
                    .iter()
                    .map(ToString::to_string)
                    .collect(),
            }
        })
        .collect()
}

/// Try a mutant in every world that reaches its place, until it is caught.
pub fn catch(edit: Edit, stages: &[Stage]) -> Option<Caught> {
    let site = edit.site.to_string();
    stages
        .iter()
        .filter(|stage| !stage.unreached.contains(&site))
        .find_map(|stage| catch_in(stage.world.clone().edited(edit)))
}

/// Search a world, breadth first with one thread, until a rule is broken: the way there is a shortest one.
pub fn catch_in(world: World) -> Option<Caught> {
    let checker = world
        .checker()
        .finish_when(HasDiscoveries::AnyFailures)
        .target_state_count(STATES)
        .spawn_bfs()
        .join();
    let world = checker.model();
    let path = checker.discoveries().into_values().find(|path| {
        let broken = &path.last_state().broken;
        broken
            .iter()
            .any(|broken| world.breaks.is_none_or(|rule| rule == broken.rule))
    });
    let Some(path) = path else {
        return unseen(&checker);
    };
    let first = path.last_state().broken.first()?.rule;
    Some(Caught {
        world: world.name,
        rule: Some(world.breaks.unwrap_or(first)),
        steps: path.clone().into_actions().len(),
        lanes: trace::lanes(world, path),
    })
}

/// Something that must be seen and never is. A search that was cut off has not seen everything, and says nothing.
fn unseen(checker: &impl Checker<World>) -> Option<Caught> {
    if checker.state_count() >= STATES {
        return None;
    }
    let world = checker.model();
    let seen = checker.discoveries();
    let missing = world.properties().into_iter().find(|property| {
        property.expectation == Expectation::Sometimes && !seen.contains_key(property.name)
    })?;
    Some(Caught {
        world: world.name,
        rule: None,
        steps: 0,
        lanes: format!("never seen: {}", missing.name),
    })
}
