//! The root among its actors, within this process.

use super::*;
use std::time::SystemTime;

use state_machine::control::Request;

use crate::process::testing::until;
use crate::store::{JobSpec, StartTime};
use crate::supervisor::{Config as Started, Supervisor};

/// What nobody says but a test.
#[derive(Message)]
#[rtype(result = "()")]
struct Panic;

impl Handler<Panic> for Root {
    type Result = ();

    fn handle(&mut self, _: Panic, _: &mut Context<Root>) {
        panic!("as asked");
    }
}

/// Leave now, as if there had been nothing to do for long enough.
#[derive(Message)]
#[rtype(result = "()")]
struct Leave;

impl Handler<Leave> for Root {
    type Result = ();

    fn handle(&mut self, _: Leave, ctx: &mut Context<Root>) {
        self.leave(ctx);
    }
}

/// A store, and a supervisor of it that has nobody to start anything with.
fn supervised() -> (tempfile::TempDir, Store, Supervisor) {
    let dir = tempfile::tempdir().expect("a scratch directory");
    let store = Store::open(dir.path().join("store")).expect("a store");
    let started = Started {
        launcher: Launcher::outlive_at("/bin/true"),
        idle_exit: None,
    };
    let supervisor = Supervisor::start(store.clone(), started).expect("it starts");
    (dir, store, supervisor)
}

/// Wait until the store has no supervisor: a child of another test may have its lock for a moment longer.
fn until_left(store: &Store) {
    until("the store is left", || {
        !store.is_supervised().expect("it can be asked")
    });
}

fn block_on<T>(future: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .expect("a runtime");
    let timely = async { tokio::time::timeout(Duration::from_secs(20), future).await };
    runtime.block_on(timely).expect("it is done in time")
}

#[test]
fn an_actor_that_panics_ends_the_supervisor_and_whoever_waits_is_told() {
    let (_dir, store, mut supervisor) = supervised();
    block_on(async {
        supervisor.ready().await;
        assert!(store.is_supervised().expect("it can be asked"));
        supervisor.root().do_send(Panic);
        // However often one asks. The command line exits with its code, and says it.
        for _ in 0..2 {
            let error = supervisor.ended().await.expect_err("it is lost");
            assert_eq!(error.exit_code(), 1);
            let said = error.to_string();
            assert!(said.contains("lost to a fault of its own"), "{said}");
            assert!(said.contains("its jobs run on"), "{said}");
        }
    });
    drop(supervisor);
    until_left(&store);
}

/// Which socket it is; a supervisor that took the lock again has made another.
fn socket_of(store: &Store) -> SystemTime {
    let socket = std::fs::metadata(store.root().join("supervisor.sock"));
    socket
        .and_then(|socket| socket.modified())
        .expect("it listens")
}

#[test]
fn a_job_that_comes_while_it_leaves_keeps_it() {
    let (_dir, store, mut supervisor) = supervised();
    let mut spec = JobSpec::command(["true"]);
    spec.start = StartTime::In(Duration::from_secs(3600));
    let (job, _) = store.queue(spec).expect("it can be queued");
    block_on(async {
        supervisor.ready().await;
        let before = socket_of(&store);
        supervisor.root().do_send(Leave);
        // Answered by whoever has the lock again, and has looked.
        while supervisor.status().await.expect("it is there").queued == 0 {
            tokio::task::yield_now().await;
        }
        assert!(store.is_supervised().expect("it can be asked"));
        assert_ne!(socket_of(&store), before, "the socket is served anew");
        // It hears of what happens now as before.
        job.request(Request::Cancel).expect("it can be cancelled");
        while supervisor.status().await.expect("it is there").queued > 0 {
            tokio::task::yield_now().await;
        }
        // And with nothing to do it goes.
        supervisor.root().do_send(Leave);
        supervisor.ended().await.expect("it was not lost");
        until_left(&store);
    });
}
