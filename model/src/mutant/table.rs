//! Every mutant: one effect of one shipped protocol that is wrong, or a whole protocol. Each is tried in the ordinary
//! worlds, smallest first, until a rule is found broken.
//!
//! Those that break nothing are listed with the reason. The list is part of the check: one that is caught after all
//! must leave it.

use std::fmt;
use std::sync::OnceLock;

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
const SMALL: usize = 100_000;

/// How a mutant was caught.
#[derive(Clone, Debug)]
pub struct Caught {
    /// In which world.
    pub world: &'static str,
    /// Which rules it broke; none where something that must be seen in the world never is.
    pub rules: Vec<Rule>,
    /// How many steps the shortest way there has.
    pub steps: usize,
    /// That way, one lane per process.
    pub lanes: String,
}

impl fmt::Display for Caught {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let rules: Vec<String> = self.rules.iter().map(|rule| format!("{rule:?}")).collect();
        if rules.is_empty() {
            write!(f, "{} in {}", self.lanes, self.world)
        } else {
            let (rules, steps, world) = (rules.join(" "), self.steps, self.world);
            write!(f, "{rules:<8} {steps:>3} steps in {world}")
        }
    }
}

/// A mutant that breaks nothing, and why that is so.
pub const HARMLESS: &[(&str, &str)] = &[
    (
        "slot/enter/enter.stands always yes",
        "the record that is read then is gone with the slot, or names another token",
    ),
    (
        "slot/enter/enter.close#3 skipped",
        "only where a hand spoils the record of a slot in which a session is open",
    ),
    ("slot/session/take_back.release skipped", "as above"),
    (
        "slot/remove/remove_slot.rename_new late",
        "what comes back half deleted is looked at before it is used",
    ),
    (
        "slot/session/end_session.unlink late",
        "a session that comes back is over all the same: its slot is not its own",
    ),
    (
        "slot/renew/replace.sync#2 skipped",
        "what a loss of power can take then is the later expiry, and not the session",
    ),
    ("slot/renew/replace.sync#2 late", "as above"),
    (
        "slot/enter/enter.open other mode",
        "only the notice of its close goes",
    ),
    (
        "slot/look/look_at_slot.open other mode",
        "its last close is then a notice, and who waits looks once more",
    ),
    (
        "slot/occupy/occupy.read_slot never there",
        "it spares a try of the lock; the record is read again under it",
    ),
    (
        "slot/occupy/occupy.release skipped",
        "only where a hand spoils the record between two reads",
    ),
    (
        "slot/place/make_room.mkdir#2 skipped",
        "only in a store that is older than pools",
    ),
    (
        "slot/remove/remove_slot.rename_new replacing",
        "no other process has the ticket",
    ),
    (
        "slot/remove/remove_slot.sync skipped",
        "what comes back half deleted is looked at before it is used",
    ),
    ("slot/remove/remove_slot.sync late", "as above"),
    ("slot/remove/remove_slot.sync#2 skipped", "as above"),
    ("slot/remove/remove_slot.sync#2 late", "as above"),
    (
        "slot/session/publish.rename_new replacing",
        "no other session has the token",
    ),
    (
        "slot/session/publish.mkdir skipped",
        "only in a store that is older than sessions",
    ),
    ("slot/session/publish.sync#3 skipped", "as above"),
    ("slot/session/publish.sync#3 late", "as above"),
    (
        "slot/session/publish.unlink skipped",
        "only where a session of this token is open already",
    ),
    ("slot/session/publish.unlink late", "as above"),
    (
        "slot/session/end_session.sync skipped",
        "a session that comes back is over all the same: its slot is not its own",
    ),
    ("slot/session/end_session.sync late", "as above"),
    (
        "slot/write/write.sync late",
        "all of them come before the record takes its place",
    ),
    (
        "take/take.read_status never there",
        "it spares a try of the lock; what it says is read again under it",
    ),
    (
        "attempt/dismiss.dismiss skipped",
        "only for a worker that is made before its job can be seen; tried in state-machine/tests/course/start.rs",
    ),
    (
        "attempt/take_tree.end_leftovers skipped",
        "whoever hands a job to a worker has ended them already, and so has a retry; it is looked once more",
    ),
    ("attempt/take_tree.end_leftovers#2 skipped", "as above"),
    (
        "attempt/back_off.await_alarm always over",
        "what is asked in the wait is looked for once more before the next attempt",
    ),
    (
        "oversee/end_if_let.stop always yes",
        "every tree of the model ends by itself; tried in state-machine/tests/course/ and tests/tests/stop.rs",
    ),
    (
        "end/conclude_ended.left always yes",
        "it waits for nothing, and then says that nothing is left",
    ),
    (
        "end/see_to_retry.is_empty always yes",
        "it ends nothing, and waits for nothing",
    ),
    (
        "keep/tend.release skipped",
        "only after 64 requests that each came just then",
    ),
    (
        "claim/probe.open other mode",
        "its last close is then a notice, and who waits looks once more",
    ),
    ("look/look_at.open other mode", "as above"),
    (
        "recover/collect_staged.open other mode",
        "it is locked with others; only the notice of its close goes",
    ),
    ("recover/collect_staged.open#2 other mode", "as above"),
    (
        "claim/claim_tree.lock#2 always yes",
        "leftovers are found all the same, after the further tries",
    ),
    (
        "batch/withdraw.rename_new skipped",
        "only where no id is free; tried in state-machine/tests/batch.rs",
    ),
    ("batch/withdraw.rename_new late", "as above"),
    ("batch/withdraw.rename_new replacing", "as above"),
    ("batch/withdraw.release skipped", "as above"),
    (
        "pool/change_pool.mkdir#2 skipped",
        "only in a store that is older than pools; tried in state-machine/tests/pools.rs",
    ),
    ("pool/change_pool.sync skipped", "as above"),
    ("pool/change_pool.sync late", "as above"),
    ("pool/change_pool.mkdir#3 skipped", "as above"),
    (
        "pool/change_locked.sync#2 late",
        "it is made before anybody is told that the pool is changed",
    ),
    (
        "pool/forget_pool.sync late",
        "it is made before anybody is told that the pool is forgotten",
    ),
    (
        "pull/discard/discard.sync late",
        "it comes before the part loses its name",
    ),
    (
        "pull/discard/discard.unlink late",
        "both are under the lock of the part, and who comes then finds the whole file or does not",
    ),
    (
        "pull/part/take_part.unlink late",
        "only where a third one puts the file into place in that moment",
    ),
    (
        "pull/part/take_part.exists#2 always no",
        "it says that somebody has it, and who waits looks again",
    ),
    (
        "pull/part/take_part.exists#3 always no",
        "it makes a part, and finds under its lock that there is no need",
    ),
    (
        "pull/part/has_others.exists always yes",
        "it makes a part, and removes it",
    ),
    (
        "pull/part/clear.unlink late",
        "the last of the three comes before whatever is next",
    ),
    ("pull/part/clear.unlink#2 late", "as above"),
    (
        "pull/fetch/fill.sync late",
        "it comes before the part has its whole name",
    ),
    (
        "pull/fetch/fill.sync#2 late",
        "only where another one makes a part between the two, and power is lost then",
    ),
    (
        "pull/fetch/fill.unlink late",
        "only where another one takes the part in that moment",
    ),
    (
        "pull/fetch/settle.sync late",
        "the record that is synced is removed after it",
    ),
    (
        "pull/record/keep_synced.sync late",
        "it comes before a record tells of what it syncs",
    ),
    (
        "pull/record/begin_anew.empty late",
        "nothing is written before it",
    ),
    (
        "pull/record/replace.rename late",
        "both changes come before the sync",
    ),
    (
        "pull/record/replace.sync late",
        "it comes before a block is written",
    ),
    (
        "pull/register/register.sync#2 late",
        "it comes before what makes the files known has its name",
    ),
    (
        "pull/staging/make_staging.sync late",
        "it comes before anything in there is synced",
    ),
    (
        "lock/lock_in_turn.stands always yes",
        "no file that is locked in turn is ever removed",
    ),
    ("lock/lock_in_turn.close skipped", "as above"),
    (
        "supervise/fail_unmet.release skipped",
        "only where a job that waited has run meanwhile; tried in state-machine/tests/supervision.rs",
    ),
    (
        "create/create_while.rename_new replacing",
        "a rename replaces only an empty directory, and no job's is ever empty",
    ),
    (
        "create/create_while.close skipped",
        "only after 64 ids that were all taken",
    ),
    (
        "create/describe.close skipped",
        "only where a hand has been in a spare; tried in tests/tests/spares.rs",
    ),
    ("create/discard.unlink late", "nobody else is in there"),
    (
        "create/discard.rmdir late",
        "it is the last effect but a close",
    ),
    (
        "forget/forget.exists always yes",
        "it only tells a job that is gone from one that has not ended",
    ),
    (
        "forget/forget.read_history never there",
        "it only tells what cannot be read from what has not ended",
    ),
    (
        "forget/forget.rename_new replacing",
        "no other process has the ticket",
    ),
    (
        "forget/make_final.sync skipped",
        "either sync brings the move, where a move is one change; both are made for where it is two",
    ),
    ("forget/make_final.sync late", "as above"),
    ("forget/make_final.sync#2 skipped", "as above"),
    ("forget/make_final.sync#2 late", "as above"),
    ("forget/purge.rmdir late", "it is the last effect"),
    (
        "hold/take_over.release#3 skipped",
        "only where a record of an end was taken back by hand",
    ),
    (
        "look/look.exists always no",
        "who looked before the job appeared may call it gone",
    ),
    (
        "look/look_at.exists always no",
        "only where the lock was removed by hand",
    ),
    (
        "recover/collect_staged.open never there",
        "it is opened again, as after a maker that has just made it",
    ),
    (
        "recover/collect_staged.unlink late",
        "nobody waits for it to go",
    ),
    (
        "recover/collect_staged.stands always yes",
        "what is not in staging any more is not found there to be moved",
    ),
    (
        "recover/trash.rename_new late",
        "the same collector goes through the trash afterwards",
    ),
    (
        "recover/trash.rename_new replacing",
        "no other process has the ticket",
    ),
    (
        "request/request.exists always yes",
        "placing it finds that the job is gone",
    ),
    (
        "request/request.unlink late",
        "the request has its place by then; the other name is nobody's",
    ),
    ("request/request.unlink#2 late", "it is the last effect"),
    ("request/request.give_way skipped", "it only tries sooner"),
    (
        "request/answered.rename_new skipped",
        "only where a hand made a directory of that name; tried in tests/tests/pause.rs",
    ),
    ("request/answered.rename_new late", "as above"),
    ("request/answered.rename_new replacing", "as above"),
    (
        "request/discard.read_control never there",
        "needs a client and a hand in one moment, and that space is too large to be searched",
    ),
    (
        "request/discard.rename late",
        "the word that it finds is honoured at the next look",
    ),
    ("request/discard.read_control#2 never there", "as above"),
    (
        "spare/lay_in.write late",
        "nobody else is in there until it is laid in",
    ),
    (
        "spare/lay_in.create always there",
        "a taker makes what is missing",
    ),
    (
        "spare/lay_in.sync late",
        "both syncs come before it is laid in",
    ),
    (
        "spare/lay_in.sync#2 late",
        "it comes before it is laid in all the same",
    ),
    (
        "spare/lay_in.rename_new replacing",
        "a rename replaces only an empty directory, and no spare is",
    ),
    (
        "spare/missing.mkdir skipped",
        "only in a store that is older than spares; tried in tests/tests/spares.rs",
    ),
    (
        "spare/take.rename_new replacing",
        "no other process has the ticket",
    ),
    (
        "spare/take.stands always yes",
        "what was taken away meanwhile is found empty by the next effect",
    ),
    (
        "settle/let_go.release#2 skipped",
        "only after four requests that each came in the moment of a close",
    ),
];

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
    /// Looked for when it is first asked for: it takes a search of the whole world.
    unreached: OnceLock<Vec<String>>,
}

impl Stage {
    fn reaches(&self, site: &str) -> bool {
        let unreached = self.unreached.get_or_init(|| {
            let coverage = self.world.coverage.clone();
            let searched = self.world.clone().checker().spawn_dfs().join();
            assert!(searched.is_done());
            let unreached = coverage.unreached();
            unreached.iter().map(ToString::to_string).collect()
        });
        !unreached.iter().any(|name| name == site)
    }
}

/// The ordinary worlds, smallest first; or the one of that name.
pub fn stages(only: Option<&str>) -> Vec<Stage> {
    let is_small = |world: &World| golden::states(world.name).is_some_and(|states| states < SMALL);
    let is_asked = |world: &World| only.is_none_or(|name| name == world.name);
    let worlds = config::all().into_iter().filter(is_small);
    let mut worlds: Vec<World> = worlds.filter(is_asked).collect();
    // A state of a world in which power is lost takes far longer to judge.
    worlds.sort_by_key(|world| (world.power != Power::Steady, golden::states(world.name)));
    let stage = |world| Stage {
        world,
        unreached: OnceLock::new(),
    };
    worlds.into_iter().map(stage).collect()
}

/// Try a mutant in every world that reaches its place, until it is caught.
pub fn catch(edit: Edit, stages: &[Stage]) -> Option<Caught> {
    let site = edit.site.to_string();
    stages
        .iter()
        .filter(|stage| stage.reaches(&site))
        .find_map(|stage| catch_in(stage.world.clone().edited(edit)))
}

/// Try a mutant in the world alone in which it is written down to be caught, and see that it is, just as that is written.
pub fn catch_as(written: &str, edit: Edit, stages: &[Stage]) -> Option<Caught> {
    let is_there = |stage: &&Stage| written.ends_with(&format!(" in {}", stage.world.name));
    let stage = stages.iter().find(is_there)?;
    catch_in(stage.world.clone().edited(edit)).filter(|caught| caught.to_string() == written)
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
    // Several may be found at once: of those the shortest, and of these the first by name, so that it is always the same.
    let mut found: Vec<_> = checker.discoveries().into_iter().collect();
    found.sort_by_key(|(name, path)| (path.clone().into_actions().len(), *name));
    let path = found.into_iter().map(|(_, path)| path).find(|path| {
        let broken = &path.last_state().broken;
        broken
            .iter()
            .any(|broken| world.breaks.is_none_or(|rule| rule == broken.rule))
    });
    let Some(path) = path else {
        return unseen(&checker);
    };
    let mut rules: Vec<Rule> = Vec::new();
    for broken in &path.last_state().broken {
        if !rules.contains(&broken.rule) {
            rules.push(broken.rule);
        }
    }
    Some(Caught {
        world: world.name,
        rules,
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
        rules: Vec::new(),
        steps: 0,
        lanes: format!("never seen: {}", missing.name),
    })
}
