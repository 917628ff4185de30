//! What a role has beside the disk: it can start a tree of processes, sleep until something happens, end trees,
//! and say what it has come to believe, which the rules are about.
//!
//! What a role says is computed anew in every replay; it never reaches another process.

use state_machine::control::Request;
use state_machine::disk::{Disk, Place};
use state_machine::id::{JobId, Token};
use state_machine::job::State;

use crate::effect::{Handle, Known, Search, Stopping, Until, Wake};
use crate::errand::{Glimpse, Memory};

/// The world around a role.
pub trait Stage: Disk<Handle = Handle> {
    /// Say what the role believes from here on. No effect.
    fn tell(&mut self, news: News);

    /// Start the job's command: a tree that has the lock open too, as this process still has (F3).
    #[track_caller]
    fn spawn(&mut self, id: &JobId, tree: &Self::Handle) -> Result<(), Self::Fault>;

    /// Sleep until the command or the tree that this process started has ended, or something was asked.
    #[track_caller]
    fn wake(&mut self, id: &JobId, until: Until, stopping: Stopping) -> Result<Wake, Self::Fault>;

    /// Begin to end the tree that this process started. `false` where its command has ended by itself and that was not
    /// known.
    #[track_caller]
    fn stop(&mut self, known: Known) -> Result<bool, Self::Fault>;

    /// Sleep for as long as the next attempt is to wait, which is no time and all time, or until a control file is there.
    #[track_caller]
    fn back_off(&mut self, id: &JobId) -> Result<Wake, Self::Fault>;

    /// Whether something is left of the tree that this process started.
    #[track_caller]
    fn has_left(&mut self) -> Result<bool, Self::Fault>;

    /// End the processes of the job's trees that are found so, and see them gone.
    #[track_caller]
    fn end_trees(&mut self, id: &JobId, search: Search) -> Result<(), Self::Fault>;

    /// Whether something works in the slot of this number, as one sees who looks at what processes have open.
    fn works_in(&mut self, number: u32) -> Result<bool, Self::Fault>;

    /// Have, for a moment, the description through which somebody has locked the file exclusively (F55). `None` where
    /// nobody has.
    fn peek(&mut self, place: &Place) -> Result<Option<Self::Handle>, Self::Fault>;

    /// Open the file as a shell's `>` does: made where it is missing, emptied where it is there. `None` where its
    /// directory is gone.
    fn hand_open(&mut self, place: &Place) -> Result<Option<Self::Handle>, Self::Fault>;

    /// Write a request into what is open, wherever that stands by now.
    fn hand_write(&mut self, file: &Self::Handle, request: Request) -> Result<(), Self::Fault>;

    /// Wait until no hand is between its two steps: a person's shell takes no longer than the wait of whoever throws an
    /// empty file away.
    fn wait_for_hands(&mut self) -> Result<(), Self::Fault>;

    /// Wait until a supervisor forks this worker; the job that it is forked for.
    fn await_errand(&mut self) -> Result<JobId, Self::Fault>;

    /// Whether the supervisor that has forked this worker lives.
    #[track_caller]
    fn is_wanted(&mut self) -> Result<bool, Self::Fault>;

    /// Fork a worker for a job. Says which one.
    fn fork(&mut self, id: &JobId) -> Result<u8, Self::Fault>;

    /// Sleep until something else can be seen of the jobs than was `saw`, or a worker of those that were admitted has left;
    /// where nothing is said to have been seen, not at all. Whoever wakes up knows only what it remembers: it begins from its
    /// beginning, and finds that in [`Stage::memory`].
    fn sleep(
        &mut self,
        memory: Memory<Self::Handle>,
        saw: Option<Vec<Glimpse>>,
    ) -> Result<Memory<Self::Handle>, Self::Fault>;

    /// Which boot this is.
    fn boot(&mut self) -> Result<usize, Self::Fault>;

    /// How long an unfinished file is, in blocks.
    #[track_caller]
    fn length(&mut self, part: &Self::Handle) -> Result<usize, Self::Fault>;

    /// Cut an unfinished file after so many blocks.
    #[track_caller]
    fn shorten(&mut self, part: &Self::Handle, count: usize) -> Result<(), Self::Fault>;

    /// Ask the server for a file. The version that it sends, `None` where nobody answers.
    fn ask(&mut self, file: u8) -> Result<Option<u8>, Self::Fault>;

    /// Have the next block of an answer, and write it. Whether one came.
    fn pour(
        &mut self,
        part: &Self::Handle,
        file: u8,
        at: usize,
        version: u8,
    ) -> Result<bool, Self::Fault>;

    /// Whether an unfinished file is as long as this, where that is known, and of this version throughout, unless it is 0.
    #[track_caller]
    fn verify(
        &mut self,
        part: &Self::Handle,
        length: Option<usize>,
        version: u8,
    ) -> Result<bool, Self::Fault>;

    /// Wait for the exclusive lock of what is open, for as long as another one has it.
    fn in_turn(&mut self, file: &Self::Handle) -> Result<(), Self::Fault>;

    /// The blocks of a file that stands under a final name; `None` where there is none.
    fn peruse(&mut self, place: &Place) -> Result<Option<Vec<u8>>, Self::Fault>;

    /// What this process remembers from before it slept. No effect.
    fn memory(&self) -> Option<Memory<Self::Handle>>;

    /// Go on after a fault. Errors are the faults after which nothing goes on: a replay that has come to its end.
    fn survive(&mut self, fault: Self::Fault) -> Result<(), Self::Fault>;
}

/// What a role has come to believe.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum News {
    /// The job is mine by this lock (R1). Told for whoever begins a protocol as the holder of a job; who makes one says so
    /// himself.
    Holds(JobId, Handle),
    /// What is open under this number is given up, or will be from the next effect on, and the job with it whose lock that is.
    Closes(Handle),
    /// The request to the job was accepted, as its client was told (R6).
    Accepted(JobId, Request),
    /// The job was acknowledged: whoever made it was told that it will survive a loss of power (R19).
    Acknowledged(JobId),
    /// The command of the job has ended with this state (R13).
    Ended(JobId, State),
    /// This state of the job is recorded, and whoever waits for it was told so (R19).
    Recorded(JobId, State),
    /// The slot of this number is mine, under this token (R14).
    Has(u32, Token),
    /// It is not any more, or will not be from the next effect on.
    HasNot,
    /// The session of this token is open in the slot of this number, as its holder was told.
    Opened(u32, Token),
    /// The session of this token is to be over.
    EndsSession(Token),
    /// I am the one who maintains the pool, or am so no more (R15).
    Maintains(bool),
    /// I am the supervisor of the store.
    Supervises,
    /// I am it no more, or will not be from the next effect on.
    Retires,
    /// So many blocks of this file are recorded; none where they were discarded.
    Kept(u8, Blocks),
    /// So many of them are recorded as synced.
    Synced(u8, Blocks),
    /// This file is whole, verified and synced.
    Whole(u8),
    /// Everything is in place, as whoever waits for it was told.
    Registered,
    /// What was here already is not fetched again.
    Reuses,
    /// What was here is of no use.
    Discards,
}

/// How much of a file is recorded.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Blocks {
    /// Of which version.
    pub version: u8,
    /// How many blocks.
    pub count: u8,
}

/// What a process believes about the files that it fetches.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Fetching {
    /// What it was told to be synced, by file. It stays.
    pub synced: [Blocks; 2],
    /// What it was told to be recorded, by file. It stays, but for a loss of power.
    pub kept: [Blocks; 2],
    /// Which files it was told to be whole. It stays.
    pub whole: [bool; 2],
    /// Whether it was told that everything is in place. It stays.
    pub registered: bool,
    /// Whether it has reused something.
    pub reused: bool,
    /// Whether it has discarded something.
    pub discarded: bool,
}

/// What a process believes.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Standing {
    /// The job that it believes to hold, and by which lock.
    pub holds: Option<(JobId, Handle)>,
    /// The request that it was told to be accepted. It stays when the process ends or dies.
    pub accepted: Option<(JobId, Request)>,
    /// The jobs that it was told to be acknowledged. They stay, too.
    pub acknowledged: Vec<JobId>,
    /// Whether it believes to be the supervisor.
    pub supervises: bool,
    /// The slot that it believes to have, and its token.
    pub has: Option<(u32, Token)>,
    /// The session that it was told to be open. It stays.
    pub opened: Option<(u32, Token)>,
    /// The session that it has closed, or tried to. It stays.
    pub closed: Option<Token>,
    /// Whether it believes to be the one who maintains the pool.
    pub maintains: bool,
    /// The job whose command it saw end, and how that is to be recorded.
    pub ended: Option<(JobId, State)>,
    /// The state of the job of which it has told that it is recorded. It stays.
    pub recorded: Option<(JobId, State)>,
    /// What it believes about the files that it fetches.
    pub fetching: Fetching,
}

impl Standing {
    /// Take news in.
    pub fn hear(&mut self, news: News) {
        match news {
            News::Holds(id, lock) => self.holds = Some((id, lock)),
            News::Closes(handle) => {
                self.holds.take_if(|(_, lock)| *lock == handle);
            }
            News::Accepted(id, request) => self.accepted = Some((id, request)),
            News::Acknowledged(id) => self.acknowledged.push(id),
            News::Ended(id, state) => self.ended = Some((id, state)),
            News::Recorded(id, state) => self.recorded = Some((id, state)),
            News::Has(number, token) => self.has = Some((number, token)),
            News::HasNot => self.has = None,
            News::Opened(number, token) => self.opened = Some((number, token)),
            News::EndsSession(token) => self.closed = Some(token),
            News::Maintains(maintains) => self.maintains = maintains,
            News::Supervises => self.supervises = true,
            News::Retires => self.supervises = false,
            News::Kept(file, kept) => self.fetching.kept[usize::from(file)] = kept,
            News::Synced(file, synced) => self.fetching.synced[usize::from(file)] = synced,
            News::Whole(file) => self.fetching.whole[usize::from(file)] = true,
            News::Registered => self.fetching.registered = true,
            News::Reuses => self.fetching.reused = true,
            News::Discards => self.fetching.discarded = true,
        }
    }
}
