//! What a supervisor has around it beside files: workers that it has forked for jobs, and the moment in which it sleeps
//! until something has changed. No rule is in here, and nothing that it decides.

use state_machine::control::Control;
use state_machine::disk::{Name, Place};
use state_machine::id::JobId;
use state_machine::job::State;

use crate::effect::Handle;
use crate::filesystem::Filesystem;

/// A job for which a worker was forked.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Errand {
    /// The lane of the worker.
    pub lane: u8,
    /// The job.
    pub job: JobId,
    /// The lane of the supervisor that forked it, while that lives.
    pub by: Option<u8>,
}

/// All that a supervisor remembers when it wakes up: everything else is looked at again. A process that sleeps is nothing
/// but this, however it came there.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Memory<H> {
    /// The lock of the store's supervisor.
    pub lock: H,
    /// The jobs that it has admitted, each with the lane of its worker.
    pub admitted: Vec<(JobId, u8)>,
    /// The jobs that it saw ended, which they stay, each with its end. By id.
    pub ended: Vec<(JobId, State)>,
}

/// What can be seen of a job from outside; of one that cannot be read only that it is there.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Glimpse {
    /// The job.
    pub job: JobId,
    /// The state that is recorded, whether somebody holds it, and whether something is asked of it that is not held.
    pub seen: Option<(State, bool, bool)>,
}

impl Memory<Handle> {
    /// The same once those workers have left that are not on these errands.
    #[must_use]
    pub fn without_the_gone(&self, errands: &[Errand]) -> Memory<Handle> {
        let mut memory = self.clone();
        memory.admitted.retain(|(job, lane)| {
            let mut still = errands.iter();
            still.any(|errand| errand.lane == *lane && errand.job == *job)
        });
        memory
    }
}

impl Glimpse {
    /// What a job gives to see that is in this state, held and asked something.
    pub fn new(job: JobId, state: State, held: bool, asked: bool) -> Glimpse {
        // Nobody who looks asks whether an ended job is held.
        let held = held && !state.is_terminal();
        let asked = asked && !held && !state.is_terminal();
        Glimpse {
            job,
            seen: Some((state, held, asked)),
        }
    }

    /// What all jobs give to see now.
    pub fn all(files: &Filesystem) -> Vec<Glimpse> {
        files
            .jobs()
            .into_iter()
            .map(|job| glimpse(files, job))
            .collect()
    }
}

fn glimpse(files: &Filesystem, job: JobId) -> Glimpse {
    let unreadable = files
        .data(&Place::of_job(&job, Name::Status))
        .is_some_and(|data| data.is_garbage());
    if unreadable || files.descriptor_of(&job).is_none() {
        return Glimpse { job, seen: None };
    }
    let held = files
        .lockers(&Place::of_job(&job, Name::Lock))
        .next()
        .is_some();
    let asks = |name| !matches!(files.asked_of(&job, name), None | Some(Control::Empty));
    let asked = asks(Name::Control) || asks(Name::Taken);
    let state = files.recorded(&job);
    Glimpse::new(job, state, held, asked)
}
