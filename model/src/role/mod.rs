//! The roles of the checked world, one small file each: an ordinary function over a disk that is built from the
//! shipped protocols alone. What a role adds is only what its program would do with what they return.
//!
//! No effect is made here by hand, and no rule is checked here.

mod asker;
mod batcher;
mod changer;
mod client;
mod collector;
mod creator;
pub mod fetcher;
mod forked;
mod hand;
pub(crate) mod keeper;
mod layer;
mod numbered;
mod peeker;
mod queuer;
mod reader;
mod recoverer;
pub mod slot;
mod starter;
pub(crate) mod supervisor;
mod sweeper;
mod waiter;
pub(crate) mod worker;

use state_machine::control::Request;
use state_machine::id::{JobId, Key, Name, PoolName, Ticket};
use state_machine::job::State;
use state_machine::record::{
    After, AfterWhen, Bytes, Command, Descriptor, Environment, Kind, OnInterrupt, PauseMode,
};

use self::fetcher::Wish;
use self::slot::{Seen, Slots};
use crate::mutant::{Edit, Older};
use crate::stage::Stage;

/// What a process does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Role {
    /// Claims the job, runs its command, honours one request, records the end.
    Worker,
    /// Looks at the job.
    Reader,
    /// Tells that the job has ended, where it has.
    Waiter,
    /// Forgets the job if it has ended, and deletes it.
    Sweeper,
    /// Asks something of the job, and settles it where nobody holds the job.
    Client(Request),
    /// Writes a request with `echo`.
    Hand(Request),
    /// Puts the job in order after whatever was killed.
    Recoverer,
    /// Makes a job that waits for a worker.
    Creator,
    /// Starts a job under a key and runs it, unless one is under way.
    Starter,
    /// Makes the next numbered job of a task.
    Numbered,
    /// Clears `staging/` and `trash/`.
    Collector,
    /// Lays in a directory for a job to come.
    Layer,
    /// Has a copy of the job's lock for a moment.
    Peeker,
    /// Supervises the store: has those jobs run that wait, and leaves when nothing keeps it.
    Supervisor,
    /// Queues a job, and supervises the store if nobody does.
    Queuer,
    /// Asks whether the store has a supervisor.
    Asker,
    /// Is forked by a supervisor to run a job, again and again.
    Forked,
    /// Makes two jobs at once.
    Batcher,
    /// Changes what was made of a pool.
    Changer(Change),
    /// Does something about the slots of a pool.
    InSlots(Slots),
    /// Fetches files, and puts them into place.
    Fetcher,
    /// Removes what is left of files that somebody fetched, unless somebody does.
    Discarder,
    /// Does one of these in a way that is known to be wrong.
    Wrong(Older),
}

/// What is changed about a pool.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Change {
    /// It gets two slots.
    TwoSlots,
    /// It is paused.
    Pause,
    /// It is forgotten.
    Forget,
}

/// What is special about the job that a creator or a queuer makes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Special {
    /// Nothing.
    Nothing,
    /// It is tried a second time where it fails.
    Retries,
    /// It is run anew where what its command is made of changes.
    Renews,
    /// A pause freezes its tree, and does not end it.
    Freezes,
    /// It is run again when its worker was lost.
    Resumes,
    /// It is made already, and whoever would make it goes on from there.
    Made,
    /// It comes after the first job's success, and would go before it otherwise.
    After,
}

/// A role with what its process is given.
#[derive(Clone, Debug)]
pub struct Part {
    /// What it does.
    pub role: Role,
    /// The job that it does it to.
    pub job: JobId,
    /// A word that no other process uses.
    pub ticket: Ticket,
    /// The time on its clock, in ms. Clocks of different processes need not agree.
    pub now_ms: u64,
    /// Whether it begins only after the boot that follows a loss of power.
    pub after_boot: bool,
    /// Whether it begins only when those before it are over, be it well or not.
    pub after_others: bool,
    /// What is special about the job that it makes.
    pub special: Special,
    /// The token of the session that it closes, if it closes one that is not its own.
    pub closes: &'static str,
    /// How many slots the pool is to have.
    pub slots: u32,
    /// What is to be fetched.
    pub wish: Wish,
    /// Whether its syncs are effects.
    pub syncs: bool,
    /// What is wrong about the protocols that it runs.
    pub edit: Option<Edit>,
}

/// What a role came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Outcome {
    /// The job was brought to this state.
    Brought(State),
    /// The job is in a state in which there is nothing to do.
    NothingToDo(State),
    /// Somebody else is responsible.
    Held,
    /// There is no such job.
    Gone,
    /// A record cannot be read.
    Damaged,
    /// A tree of an earlier attempt is in the way.
    Leftovers,
    /// The job is in this state, as far as a reader can tell.
    Saw(State),
    /// The job was deleted.
    Swept,
    /// The request was placed, and somebody else will honour it.
    LeftToHolder,
    /// The request was placed, and settled by the client itself.
    Settled,
    /// The request was written by hand.
    Written,
    /// The request needs no answer: the same one stands, or it came too late.
    NeedsNone,
    /// Everything is in order.
    Quiet,
    /// A job was made.
    Made,
    /// The pool was changed.
    Changed,
    /// Somebody else supervises the store.
    LeftToSupervisor,
    /// It has left, as nothing was to be supervised.
    Retired,
    /// A directory was laid in.
    LaidIn,
    /// A session was opened.
    Opened,
    /// A session was closed.
    Closed,
    /// No such session is open.
    NotOpen,
    /// No slot can be had.
    NoSlot,
    /// A job was run in a slot.
    Ran,
    /// Somebody else maintains the pool.
    LeftToMaintainer,
    /// A slot was maintained.
    Maintained,
    /// None was due, or could be had.
    NotDue,
    /// A slot was taken out of the pool.
    Shed,
    /// A slot was mended.
    Mended,
    /// A session was renewed.
    Renewed,
    /// This is how the slot stands.
    SawSlot(Seen),
    /// The job under way was joined.
    Joined,
    /// Others were in the way all the time.
    Busy,
    /// The request found no place, as collectors took it away every time.
    Crowded,
    /// The command was not run, as it could not be recorded that it runs.
    NotRun,
    /// The job's lock was held, and it had a copy of it.
    Peeked,
    /// Every file is in place.
    Registered,
    /// A file is being fetched by somebody else.
    LeftToFetcher,
    /// A file is not all there, as the server did not send it.
    Cut,
    /// A file is not all there, as the disk is full.
    NoRoom,
    /// A file is not what is wanted.
    Refused,
    /// A file was taken away before it was put into place.
    TakenAway,
    /// What was left of files is removed.
    Discarded,
    /// It met an error that it does not live with, and said so.
    Failed,
}

/// When every job of the model is made, in ms.
pub const CREATED_AT_MS: u64 = 1;

impl Part {
    /// A part with nothing special about it.
    pub fn new(role: Role, job: JobId, ticket: &str, now_ms: u64) -> Part {
        Part {
            role,
            job,
            ticket: Ticket::parse(ticket).expect("a short word is a ticket"),
            now_ms,
            after_boot: false,
            after_others: false,
            special: Special::Nothing,
            closes: "t0",
            slots: 2,
            wish: Wish::default(),
            syncs: false,
            edit: None,
        }
    }

    /// Play the part.
    pub fn play<D: Stage>(&self, disk: &mut D) -> Result<Outcome, D::Fault> {
        match self.role {
            Role::Worker => worker::work(disk, self, keeper::Asks::Nobody),
            Role::Reader => reader::read(disk, &self.job),
            Role::Waiter => waiter::wait(disk, &self.job),
            Role::Sweeper => sweeper::sweep(disk, &self.job, &self.ticket),
            Role::Client(request) => client::ask(disk, self, request),
            Role::Hand(request) => hand::write(disk, self, request),
            Role::Numbered => numbered::queue(disk, self),
            Role::Recoverer => recoverer::recover(disk, &self.job, self.now_ms),
            Role::Creator => creator::queue(disk, self),
            Role::Supervisor => supervisor::supervise(disk, self, Default::default()),
            Role::Queuer => queuer::queue(disk, self),
            Role::Asker => asker::ask(disk),
            Role::Forked => forked::work(disk, self),
            Role::Batcher => batcher::queue(disk, self),
            Role::Changer(wish) => changer::change(disk, wish),
            Role::InSlots(slots) => slot::play(disk, self, slots),
            Role::Starter => starter::start_and_run(disk, self),
            Role::Layer => layer::lay(disk, &self.ticket),
            Role::Collector => collector::clear(disk, &self.ticket),
            Role::Peeker => peeker::peek(disk, &self.job),
            Role::Fetcher => fetcher::fetch_and_register(disk, self),
            Role::Discarder => fetcher::discard_all(disk, self),
            Role::Wrong(older) => older.play(disk, self),
        }
    }
}

impl Role {
    /// Whether it only looks, so that what it says is judged (R3, R4).
    pub fn is_reader(self) -> bool {
        matches!(self, Role::Reader | Role::Wrong(Older::StatusThenProbe))
    }

    /// Whether it only looks at a slot, so that what it says is judged (R16).
    pub fn is_onlooker(self) -> bool {
        self == Role::InSlots(Slots::Look)
    }

    /// Whether it is about slots.
    pub fn is_about_slots(self) -> bool {
        matches!(self, Role::InSlots(_))
    }

    /// Whether it is about files that are fetched.
    pub fn is_about_pulls(self) -> bool {
        matches!(self, Role::Fetcher | Role::Discarder)
    }

    /// Whether it makes a job.
    pub fn is_maker(self) -> bool {
        matches!(
            self,
            Role::Creator | Role::Starter | Role::Numbered | Role::Queuer | Role::Batcher
        )
    }

    /// Whether it writes a request by hand.
    pub fn is_hand(self) -> bool {
        matches!(self, Role::Hand(_))
    }

    /// Whether it waits to be forked, and is there again for the next job when it has ended.
    pub fn is_forked(self) -> bool {
        matches!(
            self,
            Role::Forked | Role::Wrong(Older::AskNobody | Older::RunUnclaimed)
        )
    }

    /// Whether it is or becomes a supervisor.
    pub fn supervises(self) -> bool {
        matches!(
            self,
            Role::Supervisor | Role::Queuer | Role::Wrong(Older::LeaveBlindly | Older::CountItsOwn)
        )
    }

    /// The word at the head of its lane.
    pub fn word(self) -> String {
        match self {
            Role::Client(request) => format!("client ({request})"),
            Role::Hand(request) => format!("hand ({request})"),
            Role::Changer(wish) => format!("changer ({wish:?})"),
            Role::InSlots(slots) => format!("{slots:?}").to_lowercase(),
            Role::Wrong(older) => format!("{older:?}"),
            other => format!("{other:?}").to_lowercase(),
        }
    }
}

/// The id of the first job that is made.
pub fn first_job() -> JobId {
    JobId::new(CREATED_AT_MS, "j", 1)
}

/// The id of the second one.
pub fn second_job() -> JobId {
    JobId::new(CREATED_AT_MS, "j", 2)
}

/// The pool in which all jobs wait.
pub fn pool() -> PoolName {
    PoolName::parse("p").expect("a letter is a name")
}

/// The time on the clock of a supervisor that is to be told from others, in ms.
pub const SUPERVISORS_CLOCK_MS: u64 = 20;

/// How many slots it has.
pub const SLOTS: u32 = 1;

/// The name under which starters start.
pub fn name() -> Option<Name> {
    Name::parse("web").ok()
}

/// The key of that name.
pub fn key() -> Key {
    Key::parse("web").expect("a word of three letters is a key")
}

impl Special {
    /// What such a job is to do.
    pub fn descriptor(self) -> Descriptor {
        let mut descriptor = descriptor();
        match self {
            Special::Nothing | Special::Made => {}
            Special::Retries => descriptor.retry.max_attempts = 2,
            Special::Renews => {
                descriptor.watch.push("src".into());
                descriptor.retry.in_a_row = true;
            }
            Special::Freezes => descriptor.pause = PauseMode::Freeze,
            Special::Resumes => descriptor.on_interrupt = OnInterrupt::Resume,
            Special::After => {
                descriptor.priority = 1;
                descriptor.after.push(After {
                    job: first_job(),
                    when: AfterWhen::Success,
                });
            }
        }
        descriptor
    }
}

/// What every job of the model is to do. It waits in a pool, so nobody who makes it has to run it.
pub fn descriptor() -> Descriptor {
    Descriptor {
        id: first_job(),
        kind: Kind::Command(Command {
            argv: Vec::new(),
            cwd: Bytes(Vec::new()),
            env: Environment::default(),
            umask: None,
        }),
        display_name: "j".into(),
        name: None,
        task: None,
        project: None,
        pool: Some("p".into()),
        priority: 0,
        after: Vec::new(),
        timeout_ms: None,
        retry: Default::default(),
        pause: PauseMode::Stop,
        grace_ms: 0,
        output: Default::default(),
        stdin: None,
        success_codes: vec![0],
        not_before_ms: None,
        delay_ms: None,
        on_interrupt: OnInterrupt::Leave,
        slots: 1,
        order: 0,
        on_end: None,
        on_failure: None,
        watch: Vec::new(),
        notify: false,
        limits: Default::default(),
        total_bytes: None,
        previous: None,
        created_at_ms: CREATED_AT_MS,
    }
}
