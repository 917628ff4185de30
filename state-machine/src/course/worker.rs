//! The deeds of a worker, and what they come to. Whoever drives a course does them and decides nothing but when: how long
//! to sleep, which signal, how a command is executed.

use crate::disk::Disk;
use crate::protocol::book::Book;
use crate::protocol::create::Durable;
use crate::pull::word::{Cause, Word};
use crate::record::{Bytes, Descriptor, Exit, Failure, Status, Stopping, What};

/// A worker that holds a job.
///
/// Every deed tracks its caller, as every effect of a [`Disk`] does. A course hands every handle on or back.
pub trait Worker {
    /// The disk that its job is on.
    type Disk: Disk;
    /// What it cannot go on after: the kernel denies it what it lives on.
    type Fault;
    /// A command that is ready to run and waits for its record, with the tree lock.
    type Ready;
    /// The tree of a command that was let go.
    type Tree;
    /// The command that is told of the end.
    type Hook;

    /// The disk.
    fn disk(&mut self) -> &mut Self::Disk;

    /// What its job is to do.
    fn descriptor(&self) -> &Descriptor;

    /// The time for stamps, in ms since the epoch.
    fn now_ms(&self) -> u64;

    /// A number nobody can guess, for the jitter.
    fn random(&mut self) -> u64;

    /// The name of a signal, as people know it.
    fn signal_name(signal: u8) -> String;

    /// Go on after a fault of the disk; what it was, for people.
    fn survive(&mut self, fault: <Self::Disk as Disk>::Fault) -> Result<String, Self::Fault>;

    /// Its book: what it means to record, and whether that is written.
    fn book(&self) -> &Book<<Self::Disk as Disk>::Handle>;

    /// The status as it is meant to be: on disk, or about to be.
    fn status(&self) -> &Status {
        self.book().status()
    }

    /// Write this status and these notes. What the disk does not let it write it keeps, and goes on with at the next try.
    fn write(
        &mut self,
        status: Status,
        notes: Vec<What>,
        durable: Durable,
    ) -> Result<Written, Self::Fault>;

    /// Try to write what is unwritten, if it is time.
    fn try_if_due(&mut self) -> Result<Written, Self::Fault>;

    /// Sleep until it is time to try again. `false` when it was told to end.
    fn await_disk(&mut self) -> Result<bool, Self::Fault>;

    /// Put a line into the history that changes no state.
    fn note(&mut self, text: String) -> Result<(), Self::Fault>;

    /// Take in whether the control file is empty; whether it has been for so long that it is to be thrown away.
    fn stays_empty(&mut self, is_empty: bool) -> Result<bool, Self::Fault>;

    /// Whether it was told to end so far.
    fn is_told_to_end(&mut self) -> Result<bool, Self::Fault>;

    /// Whether the job cannot be seen yet. Nothing may be recorded then, and nothing may run.
    fn is_early(&self) -> bool {
        false
    }

    /// Wait until the job can be seen and survives a loss of power. `false` when its maker is gone or wants no worker.
    fn is_published(&mut self) -> Result<bool, Self::Fault> {
        Ok(true)
    }

    /// End what an earlier attempt has left, found so, and see it gone (R11). Where it cannot be ended: why.
    #[track_caller]
    fn end_leftovers(&mut self, search: Search) -> Result<Result<(), String>, Self::Fault>;

    /// Make the process that will be the command, and waits.
    fn prepare(
        &mut self,
        tree: <Self::Disk as Disk>::Handle,
    ) -> Result<Result<Self::Ready, Refused>, Self::Fault>;

    /// The number of that process, for display.
    fn pid(&self, ready: &Self::Ready) -> Option<u32>;

    /// The slot that the job runs in.
    fn slot(&self) -> Option<u32> {
        None
    }

    /// End that process: it is not to run.
    #[track_caller]
    fn dismiss(&mut self, ready: Self::Ready) -> Result<(), Self::Fault>;

    /// Let the command run, and say so as soon as that can be expected. From here on the tree alone has its lock.
    #[track_caller]
    fn release(&mut self, ready: Self::Ready) -> Result<Result<Self::Tree, Refused>, Self::Fault>;

    /// Sleep over the tree, go on with the stop that is under way, carry the output; until there is something to decide.
    #[track_caller]
    fn watch(&mut self, tree: &mut Self::Tree, until: Until) -> Result<Woke, Self::Fault>;

    /// Begin to end the tree. `false` where the command has ended by itself just now, and nobody knew it: then its own end
    /// is what happened, and nothing is stopped. A frozen tree is thawed by it.
    #[track_caller]
    fn stop(&mut self, tree: &mut Self::Tree) -> Result<bool, Self::Fault>;

    /// Stop every process of the tree where it stands; which of them do not stop yet, for people.
    fn freeze(&mut self, tree: &mut Self::Tree) -> Result<Option<String>, Self::Fault>;

    /// Let every process of the tree go on.
    fn thaw(&mut self, tree: &mut Self::Tree) -> Result<(), Self::Fault>;

    /// Let a transfer register what it has fetched and verified. No request is looked at until that is over.
    #[track_caller]
    fn let_register(&mut self, tree: &mut Self::Tree) -> Result<(), Self::Fault> {
        let _ = tree;
        Ok(())
    }

    /// How the command ended, and the stop that ended it or what it has left, if one did. With this that stop is over.
    fn end_of(&mut self, tree: &mut Self::Tree) -> Result<End, Self::Fault>;

    /// How many processes are left beside the command.
    #[track_caller]
    fn left(&mut self, tree: &mut Self::Tree) -> Result<u32, Self::Fault>;

    /// Whether nothing is left, by the kernel's word.
    #[track_caller]
    fn is_empty(&mut self, tree: &mut Self::Tree) -> Result<bool, Self::Fault>;

    /// Set the time of the next attempt, in so many ms from now.
    fn set_alarm(&mut self, delay_ms: u64);

    /// Sleep until that time, or until something may have been asked. Whether that time has come, or the command is to be run anew
    /// before it.
    #[track_caller]
    fn await_alarm(&mut self) -> Result<bool, Self::Fault>;

    /// Say that nothing of the command is left, and so that its slot is idle.
    fn vacate(&mut self) {}

    /// Say that the command runs, or that it will be tried again to run it.
    fn say_started(&mut self) {}

    /// Say how it is over, to whoever waits for that.
    fn say_over(&mut self) {}

    /// Say that the start cannot be recorded.
    fn say_unrecorded(&mut self) {}

    /// Start a command that is told of the end; or why it does not run.
    fn start_hook(&mut self, argv: &[Bytes]) -> Result<Result<Self::Hook, String>, Self::Fault>;

    /// Sleep over that command, and carry the output of what the job has left.
    #[track_caller]
    fn watch_hook(
        &mut self,
        hook: &mut Self::Hook,
        left_behind: Option<&mut Self::Tree>,
    ) -> Result<HookWoke, Self::Fault>;

    /// A stop does not wait for the command that is told of the end: kill it.
    fn cut_hook_short(&mut self, hook: &mut Self::Hook) -> Result<(), Self::Fault>;

    /// The command has ended, and this will be recorded of it. No deed, and of interest only to a checker (R13).
    fn concludes(&mut self, state: crate::job::State) {
        let _ = state;
    }

    /// An end or a pause is recorded. No deed, and of interest only to a checker (R19).
    fn recorded(&mut self) {}
}

/// What a try to record came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Written {
    /// It is recorded.
    Yes,
    /// The disk does not let us; it is tried again.
    NotYet,
    /// The job's directory is gone: there is nothing left to record in (R10).
    Gone,
}

/// How what an earlier attempt has left is looked for (R11).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Search {
    /// By the job's mark in the environment.
    Marked,
    /// By that, and by the tree lock among what is open: for when the lock says that somebody is there.
    Holding,
}

/// How long a tree is watched.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Until {
    /// Until its command has ended by itself, or a stop has left nothing.
    CommandEnds,
    /// Until nothing is left.
    Empty,
}

/// Why a tree is being ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Why {
    /// A cancel was asked for.
    Cancel,
    /// A pause was asked for, of a job whose pause ends the tree.
    Pause,
    /// The attempt ran too long.
    Timeout,
    /// The worker itself was told to end.
    Shutdown,
    /// The command has ended and left processes, which must go before it is run again (R11).
    NextAttempt,
    /// What the command is made of has changed: it is to be run anew.
    Renew,
}

/// Why the worker woke over a tree.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Woke {
    /// What it watches for has come.
    Over,
    /// Something may have been asked, or it is time for something.
    Look,
    /// It has run too long. Only where nothing is being ended.
    Late,
    /// The worker was told to end. Only where nothing is being ended.
    ToldToEnd,
    /// What the command is made of has changed, for this reason. Only where nothing is being ended.
    Renewed(String),
    /// This is worth a record.
    Show(Show),
}

/// What is worth a record while a tree is watched.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Show {
    /// A stop is under way.
    Stopping(Stopping),
    /// These processes do not end.
    Surviving(String),
    /// Output was lost to a limit, so many bytes.
    Dropped(u64),
    /// A transfer says this.
    Said(Word),
    /// The command says this of itself.
    Notified(Notice),
}

/// What a command says of itself.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Notice {
    /// Whether it says that it is ready.
    pub ready: bool,
    /// What it does, for people.
    pub status_line: Option<String>,
}

/// How a command ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct End {
    /// Its exit; `None` where the kernel does not tell.
    pub exit: Option<Exit>,
    /// The stop that ended it, or what it has left.
    pub stopping: Option<Stopping>,
    /// What the limits of all attempts have cost so far, in bytes.
    pub dropped_bytes: Option<u64>,
    /// How long ago it was started, in ms.
    pub ran_ms: u64,
    /// Why a transfer has not done its work, where it says so.
    pub cause: Option<Cause>,
}

/// Why a command does not run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refused {
    /// What kind of failure that is.
    pub failure: Failure,
    /// For people.
    pub message: String,
}

impl Refused {
    /// It cannot be started, for this reason.
    pub fn start(message: impl Into<String>) -> Refused {
        Refused {
            failure: Failure::Start,
            message: message.into(),
        }
    }
}

/// Why the worker woke over the command that is told of the end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum HookWoke {
    /// It is over, well or for this reason not.
    Over(Result<(), String>),
    /// Something may have been asked.
    Look,
    /// This is worth a record.
    Show(Show),
}
