//! What must be found: every protocol that is known to be wrong, and every fault that the protocols still have.
//! A world in which these pass is too kind to prove anything.

use outlive_model::rule::Rule;
use outlive_model::world::World;
use outlive_model::{config, trace};
use stateright::{Checker, HasDiscoveries, Model};

/// The trace of a shortest way to break the rule that the world is known to break.
fn caught(world: World) -> Option<String> {
    let rule = world.breaks?;
    let checker = world
        .checker()
        .finish_when(HasDiscoveries::AnyFailures)
        .spawn_bfs()
        .join();
    let path = checker.discoveries().into_values().find(|path| {
        let broken = &path.last_state().broken;
        broken.iter().any(|broken| broken.rule == rule)
    })?;
    Some(trace::lanes(checker.model(), path))
}

#[test]
fn every_mutant_is_caught() {
    for world in config::mutants() {
        let name = world.name;
        assert!(caught(world).is_some(), "{name} survives");
    }
}

/// Once this fails, a protocol was mended: move its configuration from the findings to the others, write its
/// number down and give it a test.
#[test]
fn every_finding_is_still_there() {
    for world in config::findings().into_iter().filter(|world| !world.large) {
        let name = world.name;
        assert!(caught(world).is_some(), "{name} holds now");
    }
}

#[test]
fn a_trace_has_a_lane_for_each_process() {
    let world = config::named("lock-without-look").expect("there is such a mutant");
    assert_eq!(world.breaks, Some(Rule::R1));
    let text = caught(world).expect("it is caught");
    let head = text.lines().next().unwrap_or_default();
    assert!(
        head.contains("0 LockWithoutLook") && head.contains("1 sweeper"),
        "{text}"
    );
    assert!(text.contains("rename-new jobs/1-j trash/"), "{text}");
    assert!(
        text.trim_end().ends_with("one on a file that is gone"),
        "{text}"
    );
}
