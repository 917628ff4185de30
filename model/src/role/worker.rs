//! A worker: take the job, run it, let it go. All of that is the course that ships ([`state_machine::course`]); here is
//! only what its deeds are on the modelled machine. What it records goes through the shipped book, which keeps what the
//! disk does not let it write (R13).

use state_machine::course::take::{By, Taken, take};
use state_machine::course::{
    self, End, HookWoke, Parting, Refused, Search, Until, Woke, Worker, Written,
};
use state_machine::id::JobId;
use state_machine::job::State;
use state_machine::protocol::book::Book;
use state_machine::protocol::create::Durable;
use state_machine::protocol::hold::{Holder, Recorded};
use state_machine::record::{Bytes, Descriptor, Exit, Status, Stopping, What};

use super::keeper::{Asks, Keeping, let_go};
use super::{Outcome, Part};
use crate::effect::{self, Known, Wake};
use crate::stage::{News, Stage};

/// Run the job, if it waits to be run and nobody else does.
pub(crate) fn work<D: Stage>(disk: &mut D, part: &Part, asks: Asks) -> Result<Outcome, D::Fault> {
    let mut keeping = Keeping {
        disk,
        now_ms: part.now_ms,
        asks,
    };
    let (holder, descriptor) = match take(&mut keeping, &part.job, By::Queue)? {
        Taken::Ours(holder, descriptor) => (holder, descriptor),
        Taken::Owned => return Ok(Outcome::Held),
        Taken::Gone => return Ok(Outcome::Gone),
        Taken::Damaged { .. } => return Ok(Outcome::Damaged),
        Taken::NotInState(state) => return Ok(Outcome::NothingToDo(state)),
        Taken::Unwanted => return Ok(Outcome::NotRun),
        Taken::Stuck(_) => return Ok(Outcome::Leftovers),
    };
    run(disk, part, &descriptor, holder)
}

/// Run a job that is held, and let it go.
pub(super) fn run<D: Stage>(
    disk: &mut D,
    part: &Part,
    descriptor: &Descriptor,
    holder: Holder<D::Handle>,
) -> Result<Outcome, D::Fault> {
    let id = holder.id().clone();
    let mut driver = Driver {
        disk,
        part,
        descriptor,
        id: id.clone(),
        book: Book::new(holder),
    };
    let outcome = match course::run(&mut driver, &id)? {
        Parting::Recorded => Outcome::Brought(driver.book.status().state),
        Parting::Unrecorded => Outcome::NotRun,
    };
    let holder = driver.book.into_holder();
    let_go(disk, descriptor, holder, part.now_ms)?;
    Ok(outcome)
}

/// The driver of a course on the modelled machine.
struct Driver<'a, D: Stage> {
    disk: &'a mut D,
    part: &'a Part,
    descriptor: &'a Descriptor,
    id: JobId,
    book: Book<D::Handle>,
}

/// A tree that the driver has started, as far as it knows.
struct Tree {
    /// How its command ended, once that was seen.
    exit: Option<Exit>,
    /// Whether it is being ended.
    stopping: bool,
}

impl<D: Stage> Driver<'_, D> {
    fn try_to_write(&mut self) -> Result<Written, D::Fault> {
        match self.book.write(self.disk) {
            Ok(Recorded::Done) => Ok(Written::Yes),
            Ok(Recorded::Gone) => Ok(Written::Gone),
            Err(fault) => {
                self.disk.survive(fault)?;
                Ok(Written::NotYet)
            }
        }
    }
}

impl<D: Stage> Worker for Driver<'_, D> {
    type Disk = D;
    type Fault = D::Fault;
    type Ready = D::Handle;
    type Tree = Tree;
    type Hook = ();

    fn disk(&mut self) -> &mut D {
        self.disk
    }

    fn descriptor(&self) -> &Descriptor {
        self.descriptor
    }

    fn now_ms(&self) -> u64 {
        self.part.now_ms
    }

    fn random(&mut self) -> u64 {
        0
    }

    fn signal_name(signal: u8) -> String {
        format!("signal {signal}")
    }

    fn survive(&mut self, fault: D::Fault) -> Result<String, D::Fault> {
        self.disk.survive(fault)?;
        Ok("a fault".into())
    }

    fn book(&self) -> &Book<D::Handle> {
        &self.book
    }

    fn write(
        &mut self,
        status: Status,
        notes: Vec<What>,
        durable: Durable,
    ) -> Result<Written, D::Fault> {
        self.book.mean(status, notes, durable);
        self.try_to_write()
    }

    fn try_if_due(&mut self) -> Result<Written, D::Fault> {
        self.try_to_write()
    }

    fn await_disk(&mut self) -> Result<bool, D::Fault> {
        Ok(true)
    }

    fn note(&mut self, text: String) -> Result<(), D::Fault> {
        let what = What::Status { text };
        match self.book.note(self.disk, what, self.part.now_ms) {
            Ok(_) => Ok(()),
            Err(fault) => self.disk.survive(fault),
        }
    }

    fn stays_empty(&mut self, is_empty: bool) -> Result<bool, D::Fault> {
        if is_empty {
            // For as long as any hand may take.
            self.disk.wait_for_hands()?;
        }
        Ok(is_empty)
    }

    fn is_told_to_end(&mut self) -> Result<bool, D::Fault> {
        Ok(false)
    }

    #[track_caller]
    fn end_leftovers(&mut self, search: Search) -> Result<Result<(), String>, D::Fault> {
        self.disk.end_trees(&self.id, search)?;
        Ok(Ok(()))
    }

    fn prepare(&mut self, tree: D::Handle) -> Result<Result<D::Handle, Refused>, D::Fault> {
        Ok(Ok(tree))
    }

    fn pid(&self, _: &D::Handle) -> Option<u32> {
        None
    }

    #[track_caller]
    fn dismiss(&mut self, ready: D::Handle) -> Result<(), D::Fault> {
        self.disk.close(ready)
    }

    #[track_caller]
    fn release(&mut self, ready: D::Handle) -> Result<Result<Tree, Refused>, D::Fault> {
        self.disk.spawn(&self.id, &ready)?;
        self.disk.close(ready)?;
        Ok(Ok(Tree {
            exit: None,
            stopping: false,
        }))
    }

    #[track_caller]
    fn watch(&mut self, tree: &mut Tree, until: Until) -> Result<Woke, D::Fault> {
        let (until, stopping) = if tree.stopping {
            (Until::Empty, effect::Stopping::Yes)
        } else {
            (until, effect::Stopping::No)
        };
        let exit = match self.disk.wake(&self.id, until, stopping)? {
            Wake::Asked => return Ok(Woke::Look),
            Wake::Renewed => return Ok(Woke::Renewed("changed".into())),
            Wake::Ended => Exit::Code(0),
            Wake::Failed => Exit::Code(1),
        };
        tree.exit.get_or_insert(exit);
        Ok(Woke::Over)
    }

    #[track_caller]
    fn stop(&mut self, tree: &mut Tree) -> Result<bool, D::Fault> {
        let known = match tree.exit {
            Some(_) => Known::Ended,
            None => Known::Running,
        };
        tree.stopping = self.disk.stop(known)?;
        Ok(tree.stopping)
    }

    fn freeze(&mut self, _: &mut Tree) -> Result<Option<String>, D::Fault> {
        Ok(None)
    }

    fn thaw(&mut self, _: &mut Tree) -> Result<(), D::Fault> {
        Ok(())
    }

    fn end_of(&mut self, tree: &mut Tree) -> Result<End, D::Fault> {
        let stopped = std::mem::take(&mut tree.stopping);
        Ok(End {
            exit: tree.exit,
            stopping: stopped.then_some(Stopping {
                since_ms: self.part.now_ms,
                signal: 15,
                forced: false,
            }),
            dropped_bytes: None,
            ran_ms: 0,
            cause: None,
        })
    }

    #[track_caller]
    fn left(&mut self, _: &mut Tree) -> Result<u32, D::Fault> {
        Ok(u32::from(self.disk.has_left()?))
    }

    #[track_caller]
    fn is_empty(&mut self, _: &mut Tree) -> Result<bool, D::Fault> {
        Ok(!self.disk.has_left()?)
    }

    fn set_alarm(&mut self, _: u64) {}

    #[track_caller]
    fn await_alarm(&mut self) -> Result<bool, D::Fault> {
        Ok(self.disk.back_off(&self.id)? == Wake::Ended)
    }

    fn start_hook(&mut self, _: &[Bytes]) -> Result<Result<(), String>, D::Fault> {
        Ok(Ok(()))
    }

    fn watch_hook(&mut self, (): &mut (), _: Option<&mut Tree>) -> Result<HookWoke, D::Fault> {
        Ok(HookWoke::Over(Ok(())))
    }

    fn cut_hook_short(&mut self, (): &mut ()) -> Result<(), D::Fault> {
        Ok(())
    }

    fn concludes(&mut self, state: State) {
        self.disk.tell(News::Ended(self.id.clone(), state));
    }

    fn recorded(&mut self) {
        let state = self.book.status().state;
        self.disk.tell(News::Recorded(self.id.clone(), state));
    }
}
