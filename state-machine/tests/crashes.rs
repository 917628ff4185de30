//! What crashes, a loss of power and a clock that was set back leave behind, and what the next holder makes of it: one
//! test for each fault of that kind that the protocols once had.

// Only a part of it is needed here.
#[allow(dead_code)]
#[path = "support/fake.rs"]
mod fake;

use fake::{Fake, How, Image};
use state_machine::disk::{Dir, Disk, Mode, Name, Open, Place};
use state_machine::id::JobId;
use state_machine::job::State;
use state_machine::protocol::create::Durable;
use state_machine::protocol::hold::{Holder, newborn, record};
use state_machine::protocol::look::{Look, look};
use state_machine::protocol::recover::{Recovered, recover_job};
use state_machine::record::{Environment, History, Line, Status};

const POOLED: &[u8] = br#"{"id":"1-x","kind":{"command":{"argv":["true"],"cwd":"/","env":{}}},"display_name":"x","pool":"p","created_at_ms":100}"#;

fn id() -> JobId {
    JobId::parse("1-x").expect("it is an id")
}

fn file(name: Name) -> Place {
    Place::of_job(&id(), name)
}

/// A store with one job that nobody holds: its descriptor, its status as state, time and steps, its
/// history as states and times.
fn store(job: &[u8], status: Option<(State, u64, u32)>, history: &[(State, u64)]) -> Fake {
    let mut disk = Fake::on(Image::store());
    assert!(disk.mkdir(&Dir::Job(id())).is_ok());
    let image = disk.image_mut();
    image.put(&file(Name::Descriptor), job);
    image.put(&file(Name::Lock), b"");
    if let Some((state, at_ms, steps)) = status {
        let mut status = Status::queued(at_ms);
        status.state = state;
        status.steps = steps;
        image.put(&file(Name::Status), &status.encode());
    }
    let lines = history
        .iter()
        .flat_map(|&(state, at_ms)| Line::state(at_ms, state).encode());
    image.put(&file(Name::Events), &lines.collect::<Vec<u8>>());
    disk
}

fn recover(disk: &mut Fake, now_ms: u64) {
    let recovered = recover_job(disk, &id(), now_ms);
    assert!(matches!(recovered, Ok(Recovered::Quiet)), "{recovered:?}");
}

fn states(disk: &Fake) -> Vec<State> {
    let bytes = disk.image().bytes(&file(Name::Events));
    History::decode(bytes.unwrap_or_default())
        .states()
        .collect()
}

/// The status and the history agree (R7), and a reader is told the same.
fn assert_agreement(disk: &mut Fake) {
    let bytes = disk.image().bytes(&file(Name::Status));
    let recorded = bytes.map_or(State::Queued, |bytes| {
        Status::decode(bytes).expect("it decodes").state
    });
    let last = states(disk).last().copied();
    assert_eq!(last.unwrap_or(State::Queued), recorded, "R7");
    let Ok(Look::Job(view)) = look(disk, &id()) else {
        panic!("it is there");
    };
    assert_eq!(view.state, recorded);
}

#[test]
fn a_status_that_a_loss_of_power_made_older_is_written_anew() {
    let history = [
        (State::Queued, 100),
        (State::Running, 200),
        (State::Paused, 300),
    ];
    let mut disk = store(POOLED, Some((State::Running, 200, 2)), &history);
    recover(&mut disk, 400);
    assert_agreement(&mut disk);
}

#[test]
fn a_pause_that_was_honoured_stays_honoured_when_the_clock_was_set_back() {
    // The holder was killed between the status that says paused and the line that says so.
    let history = [(State::Queued, 90), (State::Running, 100)];
    let mut disk = store(POOLED, Some((State::Paused, 50, 3)), &history);
    recover(&mut disk, 60);
    assert_agreement(&mut disk);
    assert_eq!(states(&disk).last(), Some(&State::Paused), "R6");
}

#[test]
fn a_clock_that_was_set_back_changes_nothing() {
    // A worker was killed between its first status and its history, and the clock had been set back before.
    let mut disk = store(
        POOLED,
        Some((State::Running, 50, 2)),
        &[(State::Queued, 100)],
    );
    recover(&mut disk, 60);
    assert_agreement(&mut disk);
    assert_eq!(
        states(&disk),
        [State::Queued, State::Running, State::Interrupted]
    );
}

/// A holder of a job that was just made, with its lock.
fn made() -> (Fake, Holder<fake::Handle>) {
    let mut disk = store(POOLED, None, &[]);
    let Ok(Open::Opened(lock)) = disk.open(&file(Name::Lock), Mode::Exclusive) else {
        panic!("it can be opened");
    };
    assert_eq!(disk.lock(&lock, Mode::Exclusive), Ok(true));
    (disk, newborn(id(), lock, 100))
}

#[test]
fn a_history_that_lacks_everything_is_mended_like_any_other() {
    // A client that paused or cancelled a queued job was killed before its first append.
    for state in [State::Paused, State::Cancelled] {
        let mut disk = store(POOLED, Some((state, 200, 2)), &[]);
        recover(&mut disk, 300);
        assert_agreement(&mut disk);
    }
}

#[test]
fn what_is_recorded_again_after_a_torn_append_is_recorded_once() {
    let mut twice = Vec::new();
    for k in 0..4 {
        let (mut disk, mut holder) = made();
        let mut status = Status::queued(200);
        status.state = State::Running;
        disk.fail_at(k, How::Torn);
        let first = record(&mut disk, &mut holder, status.clone(), &[], Durable::No);
        if first.is_ok() {
            break;
        }
        let again = record(&mut disk, &mut holder, status, &[], Durable::No);
        assert!(again.is_ok(), "{again:?}");
        if states(&disk) != [State::Queued, State::Running] {
            twice.push((k, states(&disk)));
        }
        assert!(!holder.owes_history());
    }
    assert_eq!(twice, []);
}

#[test]
fn a_name_with_nul_in_an_environment_is_written_as_it_was_read() {
    // No process can have such a name; a file can.
    let json = r#"{"\u000000":"x"}"#;
    let first: Environment = serde_json::from_str(json).expect("it decodes");
    let written = serde_json::to_string(&first).expect("it is JSON");
    assert_eq!(
        serde_json::from_str::<Environment>(&written).ok(),
        Some(first)
    );
}

#[test]
fn a_record_is_an_object() {
    let array = br#"["running",[0,null,0,null],null,1,null,null,null,null,null,null,null,null,null,null,null,5]"#;
    assert!(Status::decode(array).is_err());
}
