//! Everything that descends from this process: listing it, signalling it, stopping it, ending it,
//! and proving that nothing of it is left.
//!
//! For a worker: one thread, SIGCHLD not ignored, subreaper of all below it (F47), so that whatever
//! loses its parent becomes our child, whichever session or group it moved to. Two facts carry the
//! rest. A child of ours keeps its number until we reap it, so a plain `kill` cannot reach a stranger.
//! Anything deeper may end and be replaced at any moment, and is only signalled through a pidfd, after
//! it was found to be ours with the pidfd open (F38, F39). No group is ever signalled: groups hold the
//! cooperative only (F45).

use std::collections::HashSet;
use std::io;
use std::os::fd::AsFd;
use std::time::{Duration, Instant};

use nix::libc::{ECHILD, SIGCONT, SIGKILL, SIGSTOP};
use rustix::io::{Errno, retry_on_intr};
use rustix::process::{Pid, PidfdFlags, WaitOptions, pidfd_open, set_child_subreaper, waitpid};

use super::Leader;
use super::proc::{OwnChildren, Process, children_of, own_pid, thread_states};
use crate::sys;

/// Passes of one [`kill_round`]: enough to catch the living end of a chain that forks as fast as it
/// can, few enough to take milliseconds.
const KILL_PASSES: usize = 256;

/// How long [`freeze`] tries.
const FREEZE_LIMIT: Duration = Duration::from_secs(2);

/// How long [`signal_at_once`] tries to stop the tree first. A tree that forks faster than that gets the signal as far
/// as it is found.
const AT_ONCE_LIMIT: Duration = Duration::from_millis(50);

/// Passes of [`thaw`]: a program that stops itself again is left at that.
const THAW_PASSES: usize = 8;

/// Longest chain of parents that is followed.
const DEEPEST: usize = 10_000;

/// Makes this process the parent of every orphan below it (F47).
pub(crate) fn become_subreaper() -> io::Result<()> {
    Ok(set_child_subreaper(Some(own_pid()))?)
}

/// The children of this process, oldest first, zombies included.
pub(crate) fn children() -> io::Result<Vec<Pid>> {
    OwnChildren::open().read()
}

/// Children other than the leader, zombies included: none is what a finished tree looks like, and
/// [`is_empty_after_reaping`] is what proves it.
pub(crate) fn others(leader: impl Into<Option<Pid>>) -> io::Result<Vec<Pid>> {
    let leader = leader.into();
    Ok(children()?
        .into_iter()
        .filter(|&pid| Some(pid) != leader)
        .collect())
}

/// Everything below this process, parents before their children, zombies included.
pub(crate) fn descendants() -> io::Result<Vec<Process>> {
    let mut found = Vec::new();
    walk(|process| found.push(process.clone()))?;
    Ok(found)
}

/// What of the tree still lives; for a message, [`name_all`] of it.
pub(crate) fn survivors() -> io::Result<Vec<Process>> {
    let mut found = descendants()?;
    found.retain(|process| !process.is_dead());
    Ok(found)
}

/// Names processes in a message: the first five, and how many more.
pub(crate) fn name_all(processes: &[Process]) -> String {
    const NAMED: usize = 5;
    let names: Vec<String> = processes
        .iter()
        .take(NAMED)
        .map(Process::to_string)
        .collect();
    match processes.len().saturating_sub(NAMED) {
        0 => names.join(", "),
        more => format!("{} and {more} more", names.join(", ")),
    }
}

/// Sends `signal` once to every living descendant there is now; says to how many.
///
/// A snapshot on purpose: what a handler of this very signal starts, to clean up say, is not hit by it.
/// What cannot be signalled (another user's, set-user-id) is passed over.
pub(crate) fn signal_all(signal: i32) -> io::Result<usize> {
    let living = survivors()?;
    Ok(living
        .iter()
        .filter(|process| send(process, signal) == Sent::Delivered)
        .count())
}

/// Sends `signal` once to every descendant at one instant: all are stopped, signalled, and let go, stopped before or
/// not.
///
/// A process that forks while signals go round has a child that no list had: it would never hear of the signal, and its
/// parent might wait for it. What a handler of the signal starts, to clean up say, is not hit by it.
pub(crate) fn signal_at_once(leader: impl Into<Option<Pid>>, signal: i32) -> io::Result<usize> {
    freeze_within(leader.into(), AT_ONCE_LIMIT)?;
    let hit = signal_all(signal)?;
    thaw()?;
    Ok(hit)
}

/// Sends `signal` to the leader alone, if it is all there is of the tree and the signal ends it; says whether it did.
///
/// This is [`signal_at_once`] for the commonest tree, without stopping it first. A child that it was forking just then is
/// ours once the leader is dead, and has not had the signal.
pub(crate) fn signal_lone(leader: Pid, signal: i32) -> io::Result<bool> {
    let living = survivors()?;
    let [only] = living.as_slice() else {
        return Ok(false);
    };
    let runs = matches!(only.state, b'R' | b'S' | b'D');
    if only.pid != leader || only.threads > 1 || !runs || !only.dies_of(signal) {
        return Ok(false);
    }
    Ok(send(only, signal) == Sent::Delivered)
}

/// Sends SIGKILL to every descendant, pass after pass until one finds nothing that was not hit
/// before, and reaps what has died, but never the leader. Says how many were hit.
///
/// One round is not the end: what was hit takes a moment to die, and may leave orphans to us when it
/// does. Call again on every SIGCHLD and on a short timer until nothing is left.
pub(crate) fn kill_round(leader: impl Into<Option<Pid>>) -> io::Result<usize> {
    let leader = leader.into();
    let mut list = OwnChildren::open();
    let mut hit_children = HashSet::new();
    let mut hit_deeper = HashSet::new();
    let mut hits = 0;
    for _ in 0..KILL_PASSES {
        let mut new = kill_children(&mut list, leader, &mut hit_children)?;
        if new == 0 {
            // Only then, because it is slow: orphans come to us, so children alone would do, but
            // not while one that cannot be killed sits between.
            new = kill_deeper(&mut hit_deeper)?;
        }
        if new == 0 {
            break;
        }
        hits += new;
    }
    Ok(hits)
}

/// One fast pass over our own children; says how many were hit for the first time.
fn kill_children(
    list: &mut OwnChildren,
    leader: Option<Pid>,
    hit: &mut HashSet<Pid>,
) -> io::Result<usize> {
    let mut new = 0;
    for pid in list.read()? {
        if Some(pid) != leader && reap(pid) {
            // Its number may come back as another child of ours.
            hit.remove(&pid);
            continue;
        }
        // The zombie of the leader takes it without effect; another user's process refuses, and
        // shows among the survivors.
        let _ = sys::kill(pid, SIGKILL);
        new += usize::from(hit.insert(pid));
    }
    Ok(new)
}

/// One pass over what is below our children; says how many were hit for the first time.
fn kill_deeper(hit: &mut HashSet<(Pid, u64)>) -> io::Result<usize> {
    let me = own_pid();
    let mut new = 0;
    walk(|process| {
        let deeper = process.parent != Some(me) && !process.is_dead();
        if deeper && send(process, SIGKILL) == Sent::Delivered {
            new += usize::from(hit.insert((process.pid, process.start)));
        }
    })?;
    Ok(new)
}

/// How far a [`freeze`] got.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Frozen {
    /// How many living processes the tree has.
    pub(crate) processes: usize,
    /// Those that were not found stopped when time was up. None: the whole tree stands.
    pub(crate) running: Vec<Process>,
}

impl Frozen {
    /// Whether every process stands.
    pub(crate) fn is_whole(&self) -> bool {
        self.running.is_empty()
    }
}

/// Stops every descendant, pass after pass, until two passes in a row find all of them stopped and
/// nobody newly dead; or for two seconds, and then says which were not. Reaps what dies meanwhile,
/// but never the leader.
///
/// Parents stop before their children, so that a shell does not see a child stop and take it for a
/// suspended job.
pub(crate) fn freeze(leader: impl Into<Option<Pid>>) -> io::Result<Frozen> {
    freeze_within(leader.into(), FREEZE_LIMIT)
}

fn freeze_within(leader: Option<Pid>, limit: Duration) -> io::Result<Frozen> {
    let give_up = Instant::now() + limit;
    let mut known = Known::default();
    let mut pause = Duration::from_micros(50);
    let mut quiet = 0;
    loop {
        reap_adopted(leader)?;
        let pass = stop_pass(&mut known)?;
        let stands = pass.frozen.is_whole();
        // Once is not enough: a child may be missed while a sibling ends.
        quiet = if stands && !pass.disturbed {
            quiet + 1
        } else {
            0
        };
        let hopeless = !stands && pass.refused == pass.frozen.running.len();
        if quiet == 2 || hopeless || Instant::now() >= give_up {
            return Ok(pass.frozen);
        }
        if !stands && !pass.disturbed && pass.new == 0 {
            // All were asked, and need the processor more than another reminder.
            std::thread::sleep(pause);
            pause = (pause * 2).min(Duration::from_millis(5));
        }
    }
}

/// What a freeze has learnt in earlier passes, by pid and start time.
#[derive(Default)]
struct Known {
    asked: HashSet<(Pid, u64)>,
    dead: HashSet<(Pid, u64)>,
}

/// What one pass of a freeze found.
struct StopPass {
    frozen: Frozen,
    /// Of those running, how many were asked for the first time.
    new: usize,
    /// Of those running, how many are not ours to signal.
    refused: usize,
    /// Whether one had died since the pass before, or while this one looked for it: it may have left
    /// a child to us after ours were listed.
    disturbed: bool,
}

fn stop_pass(known: &mut Known) -> io::Result<StopPass> {
    let frozen = Frozen {
        processes: 0,
        running: Vec::new(),
    };
    let mut pass = StopPass {
        frozen,
        new: 0,
        refused: 0,
        disturbed: false,
    };
    // The walk lists the children of a process after this has seen it: found stopped, it has no
    // others.
    let lost = walk(|process| {
        let identity = (process.pid, process.start);
        if process.is_dead() {
            pass.disturbed |= known.dead.insert(identity);
            return;
        }
        pass.frozen.processes += 1;
        if is_stopped(process, known.asked.contains(&identity)) {
            return;
        }
        pass.refused += usize::from(send(process, SIGSTOP) == Sent::Refused);
        pass.new += usize::from(known.asked.insert(identity));
        pass.frozen.running.push(process.clone());
    })?;
    pass.disturbed |= lost > 0;
    Ok(pass)
}

/// Whether no thread of `process` can run a program's code.
///
/// One in uninterruptible sleep that was `asked` to stop counts: it stops before it runs again. A
/// parent in `vfork` whose child was stopped first would otherwise never be done.
fn is_stopped(process: &Process, asked: bool) -> bool {
    let stands = |state: &u8| match state {
        b'T' | b't' | b'Z' | b'X' | b'x' => true,
        b'D' => asked,
        _ => false,
    };
    match process.threads {
        0 | 1 => stands(&process.state),
        _ => thread_states(process.pid).iter().all(stands),
    }
}

/// Lets every descendant run again; says how many were told to.
///
/// Children before their parents, for the reason given at [`freeze`]. One that stops itself again
/// (a job suspended by its own shell) is told a few times and then left.
pub(crate) fn thaw() -> io::Result<usize> {
    let mut told = HashSet::new();
    for _ in 0..THAW_PASSES {
        let mut sent = 0;
        for process in survivors()?.iter().rev() {
            let new = told.insert((process.pid, process.start));
            if new || process.state == b'T' {
                sent += usize::from(send(process, SIGCONT) == Sent::Delivered);
            }
        }
        if sent == 0 {
            break;
        }
    }
    Ok(told.len())
}

/// Reaps every dead child but the leader, whose zombie is never touched; says how many.
pub(crate) fn reap_adopted(leader: impl Into<Option<Pid>>) -> io::Result<usize> {
    let leader = leader.into();
    let mut reaped = 0;
    loop {
        match any_dead_child()? {
            Dead::Child(pid) if Some(pid) != leader => reaped += usize::from(reap(pid)),
            // The leader is in front of whatever else is dead: look at each child.
            Dead::Child(_) => {
                let others = others(leader)?;
                return Ok(reaped + others.into_iter().filter(|&pid| reap(pid)).count());
            }
            Dead::None | Dead::NoChildren => return Ok(reaped),
        }
    }
}

/// Reaps the leader, which must have ended, and whatever else is dead, and says whether no descendant
/// is left: the kernel's own word, since every orphan below a subreaper is its child (F47).
pub(crate) fn is_empty_after_reaping(leader: Leader) -> io::Result<bool> {
    if leader.peek()?.is_none() {
        return Err(io::Error::other(format!(
            "process {} has not ended",
            leader.pid()
        )));
    }
    leader.reap()?;
    is_empty()
}

/// Reaps all that is dead and says whether no descendant is left. Only once the leader is reaped.
pub(crate) fn is_empty() -> io::Result<bool> {
    loop {
        match any_dead_child()? {
            Dead::Child(pid) => {
                reap(pid);
            }
            Dead::None => return Ok(false),
            Dead::NoChildren => return Ok(true),
        }
    }
}

/// What the kernel says when asked for a dead child.
enum Dead {
    /// This one, still to be reaped.
    Child(Pid),
    /// There are children, and all of them live.
    None,
    /// There are none at all.
    NoChildren,
}

fn any_dead_child() -> io::Result<Dead> {
    loop {
        match sys::dead_child() {
            Ok(Some(pid)) => return Ok(Dead::Child(pid)),
            Ok(None) => return Ok(Dead::None),
            Err(error) if error.raw_os_error() == Some(ECHILD) => return Ok(Dead::NoChildren),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
}

/// Reaps `pid` if it is a dead child of ours; says whether it was.
fn reap(pid: Pid) -> bool {
    matches!(
        retry_on_intr(|| waitpid(Some(pid), WaitOptions::NOHANG)),
        Ok(Some(_))
    )
}

/// Shows `visit` every process below this one, each before its children are looked up; says how many
/// were gone before they could be shown.
fn walk(mut visit: impl FnMut(&Process)) -> io::Result<usize> {
    let me = own_pid();
    let mut queue = children()?;
    let mut known: HashSet<Pid> = queue.iter().copied().collect();
    let mut next = 0;
    let mut lost = 0;
    while let Some(&pid) = queue.get(next) {
        next += 1;
        // By now its parent may have died, and then it is ours or a nearer subreaper's; any other
        // parent means that the number is somebody else's.
        let is_below = |parent| parent == me || known.contains(&parent);
        let Some(process) = Process::read(pid).filter(|it| it.parent.is_some_and(is_below)) else {
            lost += 1;
            continue;
        };
        visit(&process);
        if !process.is_dead() {
            queue.extend(
                children_of(pid)
                    .into_iter()
                    .filter(|&child| known.insert(child)),
            );
        }
    }
    Ok(lost)
}

/// What became of a signal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Sent {
    /// It was taken.
    Delivered,
    /// The process is gone, or was never ours.
    Gone,
    /// We may not signal it.
    Refused,
}

/// Signals a process just found below us, and never anybody else.
fn send(process: &Process, signal: i32) -> Sent {
    let outcome = if process.parent == Some(own_pid()) {
        // Our child, not reaped since it was read: its number is its own.
        sys::kill(process.pid, signal)
    } else {
        send_deeper(process, signal)
    };
    match outcome {
        Ok(()) => Sent::Delivered,
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => Sent::Refused,
        Err(_) => Sent::Gone,
    }
}

/// The pidfd first, the question after: if the process read then is ours, so is the one that the
/// pidfd names, or that one is dead and the signal goes nowhere.
fn send_deeper(process: &Process, signal: i32) -> io::Result<()> {
    let pidfd = pidfd_open(process.pid, PidfdFlags::empty())?;
    if !is_still_ours(process) {
        return Err(Errno::SRCH.into());
    }
    sys::pidfd_kill(pidfd.as_fd(), signal)
}

/// Whether `process` is still the one that was read, and still below us.
fn is_still_ours(process: &Process) -> bool {
    if !Process::read(process.pid).is_some_and(|now| now.is_same(process)) {
        return false;
    }
    // Twice the same: nobody on the way up died and was replaced while we climbed, because a child
    // that has lost its parent never gets the same one again.
    let once = lineage(process.pid);
    once.is_some() && once == lineage(process.pid)
}

/// The parents of `pid` up to this process; none when they do not lead here.
fn lineage(pid: Pid) -> Option<Vec<Pid>> {
    let me = own_pid();
    let mut parents = Vec::new();
    let mut at = pid;
    while parents.len() < DEEPEST {
        at = Process::read(at)?.parent?;
        if at == me {
            return Some(parents);
        }
        parents.push(at);
    }
    None
}

#[cfg(test)]
mod tests;
