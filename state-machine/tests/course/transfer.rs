//! A transfer: what it says is recorded, what it waits for is granted when everybody can see that, and how it ends decides what
//! follows.

use state_machine::control::Request;
use state_machine::course::{Parting, Worker, run};
use state_machine::job::State;
use state_machine::pull::word::{Cause, Word};
use state_machine::record::{
    Account, Bytes, Environment, Failure, Kind, PauseMode, Progress, Pull, REGISTERING,
};

use crate::worker::{Scripted, Then, after_start};

/// A worker of a transfer that says these words, and then ends for this reason.
fn transfer(script: &[Then], words: &[Word], cause: Option<Cause>) -> Scripted {
    let mut worker = Scripted::new(script).with_attempts(3);
    worker.descriptor.kind = Kind::Pull(Pull {
        provider: "web".into(),
        reference: "http://a/b".into(),
        destination: Bytes(b"/b".to_vec()),
        revision: None,
        digest: None,
        include: Vec::new(),
        exclude: Vec::new(),
        connections: None,
        idle_ms: None,
        umask: None,
        env: Environment::default(),
    });
    worker.descriptor.pause = PauseMode::Stop;
    worker.words = words.iter().cloned().collect();
    worker.cause = cause;
    worker
}

fn moved(done_bytes: u64, fetched_bytes: u64) -> Word {
    let progress = Progress {
        done_bytes,
        total_bytes: Some(100),
        ..Progress::default()
    };
    let account = Account {
        fetched_bytes,
        ..Account::default()
    };
    Word::Moved(progress, account)
}

fn later(after_ms: u64) -> Cause {
    Cause::Later {
        why: "503".into(),
        after_ms,
    }
}

#[test]
fn it_registers_once_that_is_recorded() {
    let mut worker = transfer(&[Then::Says, Then::Over(0)], &[Word::Register], None);
    let told = [
        "watch until CommandEnds",
        "record running 1",
        "let register",
        "watch until CommandEnds",
        "vacate",
        "record done 1 for good",
        "say over",
    ];
    worker.expect(Parting::Recorded, &after_start(&told));
    assert_eq!(worker.status().status_line, None);
}

/// What comes after it may register is too late, and is answered once it has.
#[test]
fn what_is_asked_after_that_is_too_late() {
    for request in [Request::Cancel, Request::Pause] {
        let script = [Then::Says, Then::Asked(request), Then::Over(0)];
        let mut worker = transfer(&script, &[Word::Register], None);
        let told = [
            "watch until CommandEnds",
            "record running 1",
            "let register",
            "watch until CommandEnds",
            "watch until CommandEnds",
            "vacate",
            "record done 1 for good",
            "say over",
        ];
        worker.expect(Parting::Recorded, &after_start(&told));
        assert!(worker.is_answered());
    }
}

/// What was asked before is honoured: it does not register.
#[test]
fn what_is_asked_before_that_is_honoured() {
    let script = [Then::Asked(Request::Cancel), Then::Says, Then::Over(143)];
    let mut worker = transfer(&script, &[Word::Register], None);
    let id = worker.id.clone();
    assert_eq!(run(&mut worker, &id), Ok(Parting::Recorded));
    assert!(
        !worker.told.contains(&"let register".to_owned()),
        "{:?}",
        worker.told
    );
    assert_eq!(worker.status().state, State::Cancelled);
}

#[test]
fn how_far_it_is_and_what_it_costs_is_recorded_over_all_attempts() {
    let script = [
        Then::Says,
        Then::Over(1),
        Then::Due,
        Then::Says,
        Then::Says,
        Then::Over(1),
        Then::Due,
        Then::Over(1),
        Then::Due,
        Then::Over(1),
    ];
    let words = [
        moved(40, 50),
        Word::Doing(Some("asking".into())),
        moved(70, 30),
    ];
    let mut worker = transfer(&script, &words, Some(later(0)));
    let id = worker.id.clone();
    assert_eq!(run(&mut worker, &id), Ok(Parting::Recorded));
    let status = worker.status().clone();
    assert_eq!(status.progress.done_bytes, 70);
    assert_eq!(status.account.map(|it| it.fetched_bytes), Some(80));
    // Two attempts got on; then two that did not were the last of three in a row.
    assert_eq!((status.state, status.attempt), (State::Failed, 4));
    assert_eq!(status.failure, Some(Failure::Transfer));
    assert_eq!(status.status_line, None);
}

#[test]
fn a_server_that_wants_to_be_left_alone_is() {
    let mut worker = transfer(&[Then::Over(1), Then::ToldToEnd], &[], Some(later(3_000)));
    worker.script.pop_back();
    worker
        .script
        .extend([Then::Due, Then::ToldToEnd, Then::Over(143)]);
    let id = worker.id.clone();
    let _ = run(&mut worker, &id);
    assert!(
        worker.told.contains(&"wait 3000 ms".to_owned()),
        "{:?}",
        worker.told
    );
}

#[test]
fn what_would_be_the_same_every_time_fails_at_once() {
    let never = Cause::Never { why: "404".into() };
    let mut worker = transfer(&[Then::Over(1)], &[], Some(never));
    let id = worker.id.clone();
    assert_eq!(run(&mut worker, &id), Ok(Parting::Recorded));
    let status = worker.status();
    assert_eq!(
        (status.state, status.failure),
        (State::Failed, Some(Failure::Transfer))
    );
    assert_eq!(status.message.as_deref(), Some("404"));
}

#[test]
fn without_room_it_is_paused_with_the_reason() {
    let full = Cause::NoRoom {
        why: "no space".into(),
    };
    let mut worker = transfer(&[Then::Over(1)], &[], Some(full));
    let id = worker.id.clone();
    assert_eq!(run(&mut worker, &id), Ok(Parting::Recorded));
    let status = worker.status();
    assert_eq!(
        (status.state, status.message.as_deref()),
        (State::Paused, Some("no space"))
    );
}

/// A job whose worker died while it registered reads as past stopping, and is not: nobody is there for whom it would be too late.
#[test]
fn past_stopping_is_only_who_is_there() {
    use state_machine::id::Ticket;
    use state_machine::protocol::hold::record;
    use state_machine::protocol::request::{Asked, request};
    let worker = transfer(&[], &[], None);
    let id = worker.id.clone();
    let mut disk = worker.disk;
    let mut holder = worker.book.into_holder();
    let mut status = holder.status().clone();
    status.state = State::Running;
    status.status_line = Some(REGISTERING.into());
    record(
        &mut disk,
        &mut holder,
        status,
        &[],
        state_machine::protocol::create::Durable::No,
    )
    .unwrap();
    let ticket = Ticket::parse("c").unwrap();
    assert_eq!(
        request(&mut disk, &id, Request::Cancel, &ticket),
        Ok(Asked::TooLate)
    );
    drop(holder);
    assert_eq!(
        request(&mut disk, &id, Request::Cancel, &ticket),
        Ok(Asked::Placed)
    );
}
