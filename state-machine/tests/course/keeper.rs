//! A keeper of one job that writes down what it is told to do.

use state_machine::control::{Control, Request};
use state_machine::course::Search;
use state_machine::course::keep::{HolderOf, Keeper};
use state_machine::disk::{Dir, Disk, Mode, Name, Open, Place, Read};
use state_machine::id::JobId;
use state_machine::job::State;
use state_machine::record::{Descriptor, Line, Status};

use crate::fake::{Fake, Fault, Handle, Image};
use crate::worker::DESCRIPTOR;

/// A keeper, and its job's disk.
pub(super) struct Keeping {
    pub(super) disk: Fake,
    pub(super) told: Vec<String>,
    /// Whether what is left can be ended.
    pub(super) mortal: bool,
    /// Whether whoever asked it to run the job is still there.
    pub(super) wanted: bool,
    /// What is asked of the job while leftovers are ended, one after the other.
    pub(super) asked_meanwhile: Vec<Request>,
    /// The lock of the job's tree, which goes when that is ended.
    tree: Option<Handle>,
}

pub(super) fn id() -> JobId {
    JobId::parse("1-x").expect("it is an id")
}

pub(super) fn file(name: Name) -> Place {
    Place::of_job(&id(), name)
}

impl Keeping {
    /// One of a job that is recorded to be in this state, after so many attempts.
    pub(super) fn of(state: State, attempt: u32) -> Keeping {
        let mut disk = Fake::on(Image::store());
        assert!(disk.mkdir(&Dir::Job(id())).is_ok());
        let image = disk.image_mut();
        image.put(&file(Name::Descriptor), DESCRIPTOR);
        image.put(&file(Name::Lock), b"");
        image.put(&file(Name::Tree), b"");
        if (state, attempt) != (State::Queued, 0) {
            let mut status = Status::queued(200);
            status.state = state;
            status.steps = 2;
            status.attempt = attempt;
            status.ended_at_ms = state.is_terminal().then_some(200);
            image.put(&file(Name::Status), &status.encode());
            let lines = [State::Queued, state].map(|state| Line::state(200, state).encode());
            image.put(&file(Name::Events), &lines.concat());
        }
        Keeping {
            disk,
            told: Vec::new(),
            mortal: true,
            wanted: true,
            asked_meanwhile: Vec::new(),
            tree: None,
        }
    }

    /// Something of an earlier attempt has the tree lock.
    pub(super) fn with_a_tree(mut self) -> Keeping {
        self.tree = Some(self.locked(Name::Tree));
        self
    }

    /// Something is asked of the job.
    pub(super) fn asked(mut self, request: Request) -> Keeping {
        self.ask(request);
        self
    }

    pub(super) fn ask(&mut self, request: Request) {
        let word = Control::encode(request);
        self.disk.image_mut().put(&file(Name::Control), &word);
    }

    /// Somebody has this lock alone.
    pub(super) fn locked(&mut self, name: Name) -> Handle {
        let Ok(Open::Opened(lock)) = self.disk.open(&file(name), Mode::Exclusive) else {
            panic!("it stands");
        };
        assert_eq!(self.disk.lock(&lock, Mode::Exclusive), Ok(true));
        lock
    }

    pub(super) fn recorded(&mut self) -> State {
        match self.disk.read_status(&Dir::Job(id())) {
            Ok(Read::Value(status)) => status.state,
            Ok(Read::Absent) => State::Queued,
            other => panic!("{other:?}"),
        }
    }

    /// Whether anything that was asked waits to be answered.
    pub(super) fn is_asked(&self) -> bool {
        let image = self.disk.image();
        [Name::Control, Name::Taken]
            .iter()
            .any(|name| image.bytes(&file(name.clone())).is_some())
    }

    /// Whether nobody has the job's lock, or anything else open but what is left of its tree.
    pub(super) fn is_free(&self) -> bool {
        self.disk.open_handles() == usize::from(self.tree.is_some())
    }
}

impl Keeper for Keeping {
    type Disk = Fake;
    type Fault = Fault;

    fn disk(&mut self) -> &mut Fake {
        &mut self.disk
    }

    fn now_ms(&self) -> u64 {
        300
    }

    fn end_leftovers(
        &mut self,
        descriptor: &Descriptor,
        holder: &HolderOf<Self>,
        search: Search,
    ) -> Result<Result<(), String>, Fault> {
        assert_eq!((descriptor.created_at_ms, holder.id()), (100, &id()));
        self.told.push(format!("end what is {search:?}"));
        if let Some(request) = self.asked_meanwhile.pop() {
            self.ask(request);
        }
        if !self.mortal {
            return Ok(Err("7 (x) lives".into()));
        }
        self.tree = None;
        Ok(Ok(()))
    }

    fn is_wanted(&mut self) -> Result<bool, Fault> {
        self.told.push("is it wanted".into());
        Ok(self.wanted)
    }
}
