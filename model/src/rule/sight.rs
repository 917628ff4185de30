//! What must be seen at least once in a world: rules that are kept where nothing happens prove nothing.

use state_machine::disk::Dir;
use state_machine::job::State as JobState;
use stateright::Property;

use crate::role::Outcome;
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
        };
        Property::sometimes(name, seen)
    }
}

fn came_to(state: &State, is: impl Fn(Outcome) -> bool) -> bool {
    let mut outcomes = state
        .processes
        .iter()
        .filter_map(|process| process.outcome());
    outcomes.any(is)
}
