//! What must be seen at least once in a world: rules that are kept where nothing happens prove nothing.

use state_machine::disk::{Dir, Name, Read};
use state_machine::job::State as JobState;
use state_machine::record::{Failure, History, Pool};
use stateright::Property;

use crate::process::Process;
use crate::role::fetcher::final_place;
use crate::role::slot::Seen;
use crate::role::{Outcome, SUPERVISORS_CLOCK_MS, first_job, pool, second_job};
use crate::world::{State, World};

/// Something that must be seen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sight {
    /// A worker brought the job to its good end.
    Done,
    /// A worker honoured a cancel.
    CancelHonoured,
    /// A worker honoured a pause.
    PauseHonoured,
    /// A client settled its request itself.
    SettledByClient,
    /// A client left its request to a holder.
    LeftToHolder,
    /// A reader saw a running job.
    SawRunning,
    /// A reader saw an interrupted job.
    SawInterrupted,
    /// A reader saw that there is no job.
    SawGone,
    /// The job was swept.
    Swept,
    /// A sweep found the job held, or not ended.
    NotSwept,
    /// A start joined another.
    Joined,
    /// A job was made.
    Made,
    /// A directory was laid in.
    LaidIn,
    /// A directory that was laid in is a job's.
    SpareTaken,
    /// Somebody had a copy of a held job's lock for a moment.
    Peeked,
    /// Two jobs stand side by side.
    TwoJobs,
    /// A tree outlived its worker.
    Orphan,
    /// Every job has ended well, and there are so many.
    AllDone(u8),
    /// The second job has failed for what it comes after.
    Unmet,
    /// A supervisor has left.
    Retired,
    /// Somebody found that another supervises.
    LeftToSupervisor,
    /// A supervisor is dead, and another one is there while a command runs.
    Adopted,
    /// A job that lost its worker is run again.
    RunAgain,
    /// A cancel was settled by the supervisor, whose clock is another one than its client's.
    SettledBySupervisor,
    /// So many sessions were opened.
    Opened(u8),
    /// A session was closed.
    Closed,
    /// Who came to close a session found that it is over.
    NotOpen,
    /// Somebody found no slot.
    NoSlot,
    /// A job was run in a slot.
    RanInSlot,
    /// A slot was maintained.
    Maintained,
    /// Somebody found that another maintains the pool.
    LeftToMaintainer,
    /// A maintainer found nothing due.
    NotDue,
    /// A slot was taken out of the pool.
    Shed,
    /// Every slot was taken out of the pool.
    SlotGone,
    /// A slot was mended.
    Mended,
    /// A session was renewed.
    Renewed,
    /// Two commands work in one session.
    TwoWork,
    /// An open session was seen.
    SawSession,
    /// An idle slot was seen.
    SawIdle,
    /// A slot was seen that nobody gave back.
    SawLeft,
    /// A claimed slot was seen.
    SawClaimed,
    /// The pool has two slots and is paused.
    BothChanged,
    /// The command runs a second time, as it has failed once.
    SecondAttempt,
    /// A worker has tried as often as was promised.
    FailedAtLast,
    /// A worker that waits for its second attempt honours a cancel.
    CancelledWaiting,
    /// A worker that waits for its second attempt honours a pause.
    PausedWaiting,
    /// A worker is lost that waits for its second attempt.
    LostWaiting,
    /// So many have fetched everything and put it into place.
    Registered(u8),
    /// What was here of a file was not fetched again, and the file was put into place.
    Resumed,
    /// The same, after a loss of power.
    ResumedAfterBoot,
    /// What was here of a file was of no use, and it was put into place.
    Discarded,
    /// A file was refused.
    Refused,
    /// Somebody found that another fetches the same.
    LeftToFetcher,
    /// The disk was full, and what had arrived is kept.
    NoRoom,
    /// The second version of a file was put into place.
    SecondVersion,
    /// A file that was whole was discarded before it was put into place.
    TakenAway,
}

impl Sight {
    /// The property that it is seen.
    pub fn property(self) -> Property<World> {
        use Outcome::{
            Brought, Gone, Held, Joined, LeftToHolder, NothingToDo, Saw, Settled, Swept,
        };
        let (name, seen): (_, fn(&World, &State) -> bool) = match self {
            Sight::Done => ("done", |_, s| came_to(s, |o| o == Brought(JobState::Done))),
            Sight::CancelHonoured => ("a cancel is honoured", |_, s| {
                came_to(s, |o| o == Brought(JobState::Cancelled))
            }),
            Sight::PauseHonoured => ("a pause is honoured", |_, s| {
                came_to(s, |o| o == Brought(JobState::Paused))
            }),
            Sight::SettledByClient => ("the client settles", |_, s| came_to(s, |o| o == Settled)),
            Sight::LeftToHolder => ("the client leaves it to the holder", |_, s| {
                came_to(s, |o| o == LeftToHolder)
            }),
            Sight::SawRunning => ("running is seen", |_, s| {
                came_to(s, |o| o == Saw(JobState::Running))
            }),
            Sight::SawInterrupted => ("interrupted is seen", |_, s| {
                came_to(s, |o| o == Saw(JobState::Interrupted))
            }),
            Sight::SawGone => ("gone is seen", |_, s| came_to(s, |o| o == Gone)),
            Sight::Swept => ("swept", |_, s| came_to(s, |o| o == Swept)),
            Sight::NotSwept => ("not swept", |_, s| {
                came_to(s, |o| matches!(o, Held | NothingToDo(_)))
            }),
            Sight::Joined => ("joined", |_, s| came_to(s, |o| o == Joined)),
            Sight::Made => ("made", |_, s| came_to(s, |o| o == Outcome::Made)),
            Sight::LaidIn => ("laid in", |_, s| came_to(s, |o| o == Outcome::LaidIn)),
            Sight::SpareTaken => ("a spare is taken", |_, s| {
                let files = &s.machine.files;
                let spares = files.list(&Dir::Spares);
                !files.jobs().is_empty() && spares.is_some_and(|spares| spares.is_empty())
            }),
            Sight::Peeked => ("peeked", |_, s| came_to(s, |o| o == Outcome::Peeked)),
            Sight::TwoJobs => ("two jobs", |_, s| s.machine.files.jobs().len() > 1),
            Sight::Orphan => ("a tree outlives its worker", |_, s| {
                s.machine.trees().iter().any(|tree| {
                    let worker = s.processes.get(usize::from(tree.lane));
                    worker.is_none_or(|worker| worker.wants().is_none())
                })
            }),
            Sight::AllDone(1) => ("one job is done", |_, s| are_done(s, 1)),
            Sight::AllDone(_) => ("two jobs are done", |_, s| are_done(s, 2)),
            Sight::Unmet => ("a job fails for what it comes after", |_, s| {
                let status = s.machine.files.status_of(&second_job());
                status.is_some_and(|status| status.failure == Some(Failure::Dependency))
            }),
            Sight::Retired => ("a supervisor leaves", |_, s| {
                came_to(s, |o| o == Outcome::Retired)
            }),
            Sight::LeftToSupervisor => ("there is a supervisor already", |_, s| {
                came_to(s, |o| o == Outcome::LeftToSupervisor)
            }),
            Sight::Adopted => (
                "a command outlives its supervisor, and there is another",
                |w, s| {
                    let both = || w.parts.iter().zip(&s.processes);
                    let died =
                        both().any(|(part, process)| part.role.supervises() && process.is_dead());
                    died && both().any(|(_, process)| process.standing.supervises)
                        && !s.machine.trees().is_empty()
                },
            ),
            Sight::SettledBySupervisor => ("the supervisor settles", |_, s| {
                let status = s.machine.files.status_of(&first_job());
                status.is_some_and(|status| {
                    status.state == JobState::Cancelled
                        && status.ended_at_ms == Some(SUPERVISORS_CLOCK_MS)
                })
            }),
            Sight::RunAgain => ("a job that lost its worker is run again", |_, s| {
                let mut jobs = s.machine.files.jobs().into_iter();
                jobs.any(|id| {
                    let history = s.machine.files.history_of(&id);
                    let states = history.into_iter().flat_map(History::states);
                    states.filter(|&state| state == JobState::Running).count() > 1
                })
            }),
            Sight::Opened(1) => ("a session is opened", |_, s| {
                came_to(s, |o| o == Outcome::Opened)
            }),
            Sight::Opened(_) => ("two sessions are opened", |_, s| {
                let opened = |process: &&Process| process.outcome() == Some(Outcome::Opened);
                s.processes.iter().filter(opened).count() > 1
            }),
            Sight::Closed => ("a session is closed", |_, s| {
                came_to(s, |o| o == Outcome::Closed)
            }),
            Sight::NotOpen => ("a session is over already", |_, s| {
                came_to(s, |o| o == Outcome::NotOpen)
            }),
            Sight::NoSlot => ("no slot is idle", |_, s| {
                came_to(s, |o| o == Outcome::NoSlot)
            }),
            Sight::RanInSlot => ("a job runs in a slot", |_, s| {
                came_to(s, |o| o == Outcome::Ran)
            }),
            Sight::Maintained => ("a slot is maintained", |_, s| {
                came_to(s, |o| o == Outcome::Maintained)
            }),
            Sight::LeftToMaintainer => ("another maintains the pool", |_, s| {
                came_to(s, |o| o == Outcome::LeftToMaintainer)
            }),
            Sight::NotDue => ("no slot is due", |_, s| {
                came_to(s, |o| o == Outcome::NotDue)
            }),
            Sight::Shed => ("a slot is taken out", |_, s| {
                let slots = s.machine.files.list(&Dir::Slots(pool()));
                came_to(s, |o| o == Outcome::Shed) && slots.is_some_and(|slots| slots.len() == 1)
            }),
            Sight::SlotGone => ("the last slot is taken out", |_, s| {
                let slots = s.machine.files.list(&Dir::Slots(pool()));
                came_to(s, |o| o == Outcome::Shed) && slots.is_some_and(|slots| slots.is_empty())
            }),
            Sight::Renewed => ("a session is renewed", |_, s| {
                came_to(s, |o| o == Outcome::Renewed)
            }),
            Sight::Mended => ("a slot is mended", |_, s| {
                came_to(s, |o| o == Outcome::Mended)
            }),
            Sight::TwoWork => ("two commands work in a session", |_, s| {
                s.machine.trees().len() > 1
            }),
            Sight::SawSession => ("a session is seen", |_, s| saw(s, Seen::Session)),
            Sight::SawIdle => ("an idle slot is seen", |_, s| saw(s, Seen::Idle)),
            Sight::SawLeft => ("a slot is seen that was left", |_, s| saw(s, Seen::Left)),
            Sight::SawClaimed => ("a claimed slot is seen", |_, s| saw(s, Seen::Claimed)),
            Sight::BothChanged => ("two changes of a pool", |_, s| {
                let data = s.machine.files.data(&Dir::Pool(pool()).at(Name::Pool));
                let both = Pool {
                    slots: Some(2),
                    paused: true,
                    ..Pool::default()
                };
                data.is_some_and(|data| data.pool() == Read::Value(both))
            }),
            Sight::SecondAttempt => ("a second attempt runs", |_, s| {
                let runs = s.machine.trees().iter().any(|tree| tree.command);
                runs && attempt(s) == 2
            }),
            Sight::FailedAtLast => ("a second attempt fails", |_, s| {
                came_to(s, |o| o == Brought(JobState::Failed)) && attempt(s) == 2
            }),
            Sight::CancelledWaiting => ("a cancel is honoured between two attempts", |_, s| {
                was_asked_away(s, JobState::Cancelled)
            }),
            Sight::PausedWaiting => ("a pause is honoured between two attempts", |_, s| {
                was_asked_away(s, JobState::Paused)
            }),
            Sight::LostWaiting => ("a worker is lost between two attempts", |_, s| {
                let status = s.machine.files.status_of(&first_job());
                let waits = status.is_some_and(|status| status.next_attempt_at_ms.is_some());
                let held = s.processes.iter().any(|process| process.holds().is_some());
                waits && !held
            }),
            Sight::Registered(1) => ("everything is in place", |_, s| {
                came_to(s, |o| o == Outcome::Registered)
            }),
            Sight::Registered(_) => ("two put everything into place", |_, s| {
                let registered =
                    |process: &&Process| process.outcome() == Some(Outcome::Registered);
                s.processes.iter().filter(registered).count() > 1
            }),
            Sight::Resumed => ("what was here is not fetched again", |_, s| {
                s.processes.iter().any(has_resumed)
            }),
            Sight::ResumedAfterBoot => ("what was synced is not fetched again", |_, s| {
                s.machine.boot > 0 && s.processes.iter().any(has_resumed)
            }),
            Sight::Discarded => ("what was here is of no use", |_, s| {
                s.processes.iter().any(|process| {
                    let is_done = process.outcome() == Some(Outcome::Registered);
                    is_done && process.standing.fetching.discarded
                })
            }),
            Sight::Refused => ("a file is refused", |_, s| {
                came_to(s, |o| o == Outcome::Refused)
            }),
            Sight::LeftToFetcher => ("another fetches the same", |_, s| {
                came_to(s, |o| o == Outcome::LeftToFetcher)
            }),
            Sight::NoRoom => ("the disk is full", |_, s| {
                came_to(s, |o| o == Outcome::NoRoom)
            }),
            Sight::TakenAway => ("a whole file is taken away", |_, s| {
                came_to(s, |o| o == Outcome::TakenAway)
            }),
            Sight::SecondVersion => ("the second version is in place", |_, s| {
                let data = s.machine.files.data(&final_place(0));
                let blocks = data.and_then(|data| data.blocks());
                blocks.is_some_and(|blocks| blocks.first() == Some(&2))
            }),
        };
        Property::sometimes(name, seen)
    }
}

/// Whether a process has reused what was here of a file, and put it into place.
fn has_resumed(process: &Process) -> bool {
    process.standing.fetching.reused && process.outcome() == Some(Outcome::Registered)
}

fn saw(state: &State, seen: Seen) -> bool {
    came_to(state, |outcome| outcome == Outcome::SawSlot(seen))
}

/// The attempt that is recorded of the first job.
fn attempt(state: &State) -> u32 {
    let status = state.machine.files.status_of(&first_job());
    status.map_or(0, |status| status.attempt)
}

/// Whether a worker has brought the first job to this state while it waited for its second attempt.
fn was_asked_away(state: &State, to: JobState) -> bool {
    let status = state.machine.files.status_of(&first_job());
    let between = status.is_some_and(|status| {
        let message = status.message.as_deref();
        message.is_some_and(|message| message.ends_with("between two attempts"))
    });
    between && came_to(state, |outcome| outcome == Outcome::Brought(to))
}

fn are_done(state: &State, number: usize) -> bool {
    let files = &state.machine.files;
    let jobs = files.jobs();
    jobs.len() == number && jobs.iter().all(|id| files.recorded(id) == JobState::Done)
}

fn came_to(state: &State, is: impl Fn(Outcome) -> bool) -> bool {
    let mut outcomes = state
        .processes
        .iter()
        .filter_map(|process| process.outcome());
    outcomes.any(is)
}
