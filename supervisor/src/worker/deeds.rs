//! What the deeds of a [`Worker`] are on this machine. When which of them is done, and what is recorded before and after it,
//! is decided in the course and not here.

use std::os::fd::BorrowedFd;
use std::time::Duration;

use state_machine::course::{End, HookWoke, Refused, Search, Until, Woke, Worker, Written};
use state_machine::disk::Dir;
use state_machine::protocol::book::Book;
use state_machine::protocol::create::Durable;
use state_machine::pull::word::Cause;
use state_machine::record::{Bytes, Descriptor, Status, What};

use super::attempt::{self, Ready};
use super::driver::Driver;
use super::fetcher::Fetcher;
use super::hook::Hook;
use super::notices::Notices;
use super::sources::Sources;
use super::tree::Tree;
use crate::disk::{FsDisk, LockFile};
use crate::error::DiskError;
use crate::slots::Lodging;
use crate::store::{end_leftovers, exit_code};
use crate::{clock, process, sys};

/// A control file that stays empty so long is thrown away.
const EMPTY_LIMIT: Duration = Duration::from_secs(1);

impl Worker for Driver<'_> {
    type Disk = FsDisk;
    type Fault = std::io::Error;
    type Ready = Ready;
    type Tree = Tree;
    type Hook = Hook;

    fn disk(&mut self) -> &mut FsDisk {
        self.book.disk()
    }

    fn descriptor(&self) -> &Descriptor {
        &self.descriptor
    }

    fn now_ms(&self) -> u64 {
        clock::now_ms()
    }

    fn random(&mut self) -> u64 {
        use rustix::rand::{GetRandomFlags, getrandom};
        // From the kernel: what a process keeps to draw from is the same in all that were forked from it.
        let mut drawn = [0; 8];
        match getrandom(&mut drawn[..], GetRandomFlags::empty()) {
            Ok(_) => u64::from_ne_bytes(drawn),
            Err(_) => u64::from(std::process::id()).wrapping_mul(clock::now_ms()),
        }
    }

    fn signal_name(signal: u8) -> String {
        match nix::sys::signal::Signal::try_from(i32::from(signal)) {
            Ok(signal) => signal.as_str().to_owned(),
            Err(_) => format!("signal {signal}"),
        }
    }

    fn survive(&mut self, fault: DiskError) -> std::io::Result<String> {
        Ok(fault.to_string())
    }

    fn book(&self) -> &Book<LockFile> {
        self.book.inner()
    }

    fn write(
        &mut self,
        status: Status,
        notes: Vec<What>,
        durable: Durable,
    ) -> std::io::Result<Written> {
        Ok(self.book.write(status, notes, durable))
    }

    fn try_if_due(&mut self) -> std::io::Result<Written> {
        Ok(self.book.try_if_due())
    }

    fn await_disk(&mut self) -> std::io::Result<bool> {
        if self.told_to_end {
            return Ok(false);
        }
        let woken = self.wake.sleep(self.book.next_try(), &[])?;
        self.note_waking(woken);
        Ok(true)
    }

    fn note(&mut self, text: String) -> std::io::Result<()> {
        self.book.note(text);
        Ok(())
    }

    fn stays_empty(&mut self, is_empty: bool) -> std::io::Result<bool> {
        if !is_empty {
            self.empty_since = None;
            return Ok(false);
        }
        let since = *self.empty_since.get_or_insert_with(clock::since_boot);
        let is_late = clock::since_boot() >= since + EMPTY_LIMIT;
        if is_late {
            self.empty_since = None;
        }
        Ok(is_late)
    }

    fn is_told_to_end(&mut self) -> std::io::Result<bool> {
        let woken = self.wake.heard()?;
        self.note_waking(woken);
        Ok(self.told_to_end)
    }

    fn is_early(&self) -> bool {
        self.unpublished
    }

    fn is_published(&mut self) -> std::io::Result<bool> {
        if !self.report.hears_of_publication() {
            return Ok(false);
        }
        // The directory is in its place now, and must not be kept from being unmounted by us.
        *self.book.disk() = self.job.store().disk();
        self.unpublished = false;
        rustix::process::chdir("/")?;
        Ok(true)
    }

    fn end_leftovers(&mut self, search: Search) -> std::io::Result<Result<(), String>> {
        let ended = end_leftovers(&self.dir, search, self.grace);
        Ok(ended.map(drop).map_err(|error| error.to_string()))
    }

    fn prepare(&mut self, tree: LockFile) -> std::io::Result<Result<Ready, Refused>> {
        if self.descriptor.notify && self.notices.is_none() {
            match Notices::new(self.id.as_str()) {
                Ok(notices) => self.notices = Some(notices),
                Err(error) => {
                    let why = format!("there is no socket that the command could tell: {error}");
                    return Ok(Err(Refused::start(why)));
                }
            }
        }
        let now_at = self.book.disk().dir(&Dir::Job(self.id.clone()));
        let tree = tree.into();
        let lodging = self.terms.lodging.as_ref();
        let ready = attempt::prepare(
            &self.descriptor,
            &self.dir,
            &now_at,
            tree,
            lodging,
            self.notices.as_ref(),
        );
        if let Some(unheld) = ready.as_ref().ok().and_then(Ready::unheld) {
            self.note_unheld(unheld);
        }
        Ok(ready)
    }

    fn pid(&self, ready: &Ready) -> Option<u32> {
        Some(ready.pid())
    }

    fn slot(&self) -> Option<u32> {
        let lodging = self.terms.lodging.as_ref();
        lodging.map(Lodging::number).or(self.terms.slot)
    }

    fn dismiss(&mut self, ready: Ready) -> std::io::Result<()> {
        drop(ready);
        Ok(())
    }

    fn release(&mut self, ready: Ready) -> std::io::Result<Result<Tree, Refused>> {
        self.look_at_sources();
        self.notices.as_ref().inspect(|notices| notices.forget());
        let timeout = self.descriptor.timeout_ms.map(Duration::from_millis);
        Ok(ready.release(timeout, || self.report.started()))
    }

    fn watch(&mut self, tree: &mut Tree, until: Until) -> std::io::Result<Woke> {
        self.watch_tree(tree, until)
    }

    fn stop(&mut self, tree: &mut Tree) -> std::io::Result<bool> {
        self.begin_stop(tree)
    }

    fn freeze(&mut self, tree: &mut Tree) -> std::io::Result<Option<String>> {
        let frozen = tree.freeze(clock::since_boot())?;
        Ok((!frozen.is_whole()).then(|| process::name_all(&frozen.running)))
    }

    fn thaw(&mut self, tree: &mut Tree) -> std::io::Result<()> {
        tree.thaw(clock::since_boot())
    }

    fn let_register(&mut self, tree: &mut Tree) -> std::io::Result<()> {
        tree.fetcher.as_ref().map_or(Ok(()), Fetcher::let_register)
    }

    fn end_of(&mut self, tree: &mut Tree) -> std::io::Result<End> {
        tree.drain();
        self.count_dropped(tree);
        let ran = clock::since_boot().saturating_sub(tree.started);
        Ok(End {
            exit: tree.exit,
            stopping: tree.stop.take().map(|stop| stop.shown()),
            dropped_bytes: self.dropped(),
            ran_ms: u64::try_from(ran.as_millis()).unwrap_or(u64::MAX),
            cause: cause_of(tree),
        })
    }

    fn left(&mut self, tree: &mut Tree) -> std::io::Result<u32> {
        Ok(u32::try_from(tree.others()?).unwrap_or(u32::MAX))
    }

    fn is_empty(&mut self, tree: &mut Tree) -> std::io::Result<bool> {
        tree.is_empty()
    }

    fn set_alarm(&mut self, delay_ms: u64) {
        self.alarm = clock::since_boot() + Duration::from_millis(delay_ms);
    }

    fn await_alarm(&mut self) -> std::io::Result<bool> {
        let is_renewed = self.sources.as_mut().is_some_and(|it| it.take().is_some());
        if is_renewed || clock::since_boot() >= self.alarm {
            return Ok(true);
        }
        let change = self.sources.as_ref().and_then(Sources::due);
        let deadline = [
            Some(self.alarm),
            self.book.next_try(),
            self.empty_look(),
            change,
        ];
        let sources: Vec<BorrowedFd<'_>> = self.sources.iter().map(Sources::fd).collect();
        let woken = self
            .wake
            .sleep(deadline.into_iter().flatten().min(), &sources)?;
        self.note_waking(woken);
        Ok(false)
    }

    fn vacate(&mut self) {
        self.terms.vacate(&self.id);
    }

    fn say_started(&mut self) {
        self.report.started();
        // What was recorded just now is a notice like any other. Taken in before anybody's request is looked for, it is none to
        // wake for. A kernel that has no more to say is found out by the sleep.
        if let Ok(woken) = self.wake.heard() {
            self.note_waking(woken);
        }
        // From here on there may be nothing to do for days; what is not needed is given back.
        sys::trim_heap();
    }

    /// With this word the exit status is known even where the job is forgotten at once.
    fn say_over(&mut self) {
        let status = self.status();
        let code = exit_code(status.state, status);
        let word = if self.report.has_said_started() && status.state.is_terminal() {
            "ended"
        } else {
            "over"
        };
        let said = format!("{word} {code}");
        if self.terms.lodging.is_some() {
            self.report.ended(&said);
        } else {
            self.report.close(&said);
        }
    }

    fn say_unrecorded(&mut self) {
        let word = "the start cannot be recorded, so the command was not run";
        self.report.close(word);
    }

    fn start_hook(&mut self, argv: &[Bytes]) -> std::io::Result<Result<Hook, String>> {
        Ok(self.begin_hook(argv))
    }

    fn watch_hook(
        &mut self,
        hook: &mut Hook,
        left_behind: Option<&mut Tree>,
    ) -> std::io::Result<HookWoke> {
        self.see_hook_through(hook, left_behind)
    }

    fn cut_hook_short(&mut self, hook: &mut Hook) -> std::io::Result<()> {
        hook.cut_short()
    }
}

/// Why the attempt failed, where more is known of it than how the command ended.
fn cause_of(tree: &mut Tree) -> Option<Cause> {
    let of_transfer = tree.fetcher.as_mut().and_then(Fetcher::take_cause);
    of_transfer.or_else(|| {
        let why = tree.out_of_memory()?;
        Some(Cause::Later { why, after_ms: 0 })
    })
}
