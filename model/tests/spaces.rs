//! The configurations that fit into an ordinary test run, each to its end: every rule holds, everything was
//! seen, and the space is exactly as big as written down.

use outlive_model::{config, golden, trace};
use stateright::{Checker, Expectation, Model};

fn check(name: &str) {
    let world = config::named(name).expect("there is such a configuration");
    let checker = world.checker().threads(2).spawn_dfs().join();
    let mut found = checker.discoveries();
    for property in checker.model().properties() {
        match (property.expectation, found.remove(property.name)) {
            (Expectation::Always, Some(path)) => {
                panic!("{}\n{}", property.name, trace::lanes(checker.model(), path));
            }
            (Expectation::Sometimes, None) => panic!("never seen: {}", property.name),
            _ => {}
        }
    }
    assert_eq!(Some(checker.unique_state_count()), golden::states(name));
}

macro_rules! hold {
    ($($test:ident $name:literal)*) => {
        $(#[test] fn $test() { check($name); })*

        /// Nothing is left out.
        #[test]
        fn every_small_configuration_has_a_test() {
            let tested = [$($name),*];
            for world in config::all().iter().filter(|world| !world.large) {
                assert!(tested.contains(&world.name), "{}", world.name);
            }
        }
    };
}

hold! {
    worker_reader "worker-reader"
    worker_readers "worker-readers"
    two_workers "two-workers"
    worker_client "worker-client"
    heals_everywhere "heals-everywhere"
    abandoned "abandoned"
    sweep "sweep"
    sweep_request "sweep-request"
    create_collect "create-collect"
    two_creators "two-creators"
    two_takers "two-takers"
    spare_collect "spare-collect"
    lay_in "lay-in"
    layers "layers"
    starters "starters"
    pause_two_deaths "pause-two-deaths"
    orphan_client "orphan-client"
    resume "resume"
    recover_two_deaths "recover-two-deaths"
    peeked "peeked"
    peeked_worker "peeked-worker"
    sweep_of_the_living "sweep-of-the-living"
    collector_client "collector-client"
    freeze_death "freeze-death"
    retry "retry"
    retry_cancel "retry-cancel"
    retry_death "retry-death"
    retry_pause "retry-pause"
    retry_two_workers "retry-two-workers"
    retry_lingering "retry-lingering"
    retry_reader "retry-reader"
    retry_failing "retry-failing"
    retry_power "retry-power"
    renew "renew"
    renew_cancel "renew-cancel"
    renew_pause "renew-pause"
    lingering "lingering"
    lingering_death "lingering-death"
    lingering_sweep "lingering-sweep"
    closing_trees "closing-trees"
    bare_trees "bare-trees"
    garbage_status "garbage-status"
    garbage_status_2 "garbage-status-2"
    garbage_descriptor "garbage-descriptor"
    garbage_pointer "garbage-pointer"
    litter "litter"
    two_collectors "two-collectors"
    hand "hand"
    emptied "emptied"
    emptied_end "emptied-end"
    two_clients "two-clients"
    cancel_pause "cancel-pause"
    garbage_numbered "garbage-numbered"
    starters_power "starters-power"
    collector_request "collector-request"
    spare_starter "spare-starter"
    lay_then_create_power "lay-then-create-power"
    spare_starters_power "spare-starters-power"
    numbered "numbered"
    numbered_starter "numbered-starter"
    worker_failing "worker-failing"
    worker_failing_death "worker-failing-death"
    client_failing "client-failing"
    creator_failing "creator-failing"
    sweep_failing "sweep-failing"
    recover_failing "recover-failing"
    create_power "create-power"
    lay_in_power "lay-in-power"
    spare_create_power "spare-create-power"
    create_collect_power "create-collect-power"
    worker_power "worker-power"
    wait_power "wait-power"
    starter_power "starter-power"
    sweep_power "sweep-power"
    client_power "client-power"
    recover_power "recover-power"
    queue_alone "queue-alone"
    two_queuers "two-queuers"
    supervisor_asked "supervisor-asked"
    retiring "retiring"
    two_supervisors "two-supervisors"
    queue_cancel "queue-cancel"
    unwanted "unwanted"
    dependent "dependent"
    unmet "unmet"
    forked_dies "forked-dies"
    forked_dies_left "forked-dies-left"
    supervisor_settles "supervisor-settles"
    unmet_death "unmet-death"
    batch "batch"
    batch_taken "batch-taken"
    batch_creator "batch-creator"
    batch_power "batch-power"
    batch_failing "batch-failing"
    pool "pool"
    pool_forget "pool-forget"
    pool_power "pool-power"
    pool_forgotten "pool-forgotten"
    batch_taken_power "batch-taken-power"
    garbage_pool "garbage-pool"
    two_openers "two-openers"
    openers_two_slots "openers-two-slots"
    opener_worker "opener-worker"
    session_dies "session-dies"
    late_close "late-close"
    two_enter "two-enter"
    enter_close_open "enter-close-open"
    enter_close_dies "enter-close-dies"
    enter_close_shed "enter-close-shed"
    renew_close "renew-close"
    renew_power "renew-power"
    renew_failing "renew-failing"
    open_looked_at "open-looked-at"
    mend_open "mend-open"
    menders "menders"
    mend_failing "mend-failing"
    garbage_mend "garbage-mend"
    expired "expired"
    session_looked_at "session-looked-at"
    tenants "tenants"
    tenant_opener "tenant-opener"
    tenant_looked_at "tenant-looked-at"
    tenant_closes "tenant-closes"
    maintainers "maintainers"
    maintain_open "maintain-open"
    maintain_open_dies "maintain-open-dies"
    maintain_tenant "maintain-tenant"
    maintain_looked_at "maintain-looked-at"
    shed_open "shed-open"
    open_power "open-power"
    work_power "work-power"
    tenant_power "tenant-power"
    maintain_power "maintain-power"
    open_failing "open-failing"
    maintain_failing "maintain-failing"
    garbage_slot "garbage-slot"
    fetch "fetch"
    fetch_again "fetch-again"
    fetch_untagged "fetch-untagged"
    fetch_digest "fetch-digest"
    fetch_two "fetch-two"
    fetch_joined "fetch-joined"
    fetch_discard "fetch-discard"
    fetch_then_discard "fetch-then-discard"
    fetch_failing "fetch-failing"
    fetch_power "fetch-power"
    fetch_again_power "fetch-again-power"
    fetch_discard_power "fetch-discard-power"
    fetch_digest_power "fetch-digest-power"
    fetch_two_power "fetch-two-power"
}

/// A configuration of which no number is written down has never been run to its end.
#[test]
fn every_configuration_is_written_down() {
    for world in config::all() {
        assert!(golden::states(world.name).is_some(), "{}", world.name);
    }
}
