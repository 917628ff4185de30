//! The only unsafe code: the few calls that no safe binding covers, each behind a function that is
//! as safe as its comment says.
//!
//! Nothing here decides anything, and nothing here knows what a job is.

use std::ffi::{CString, OsStr};
use std::fs::{File, OpenOptions};
use std::io::{self, Read};
use std::os::fd::{AsRawFd, BorrowedFd, RawFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::sync::OnceLock;

use nix::libc;
use rustix::process::Pid;

/// Which side of a [`fork`] this is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Forked {
    /// The new process.
    Child,
    /// The process that called, and the pid of the new one.
    Parent(Pid),
}

/// Makes a copy of this process.
///
/// The caller must have one thread: the copy of a process with several has the locks that the
/// others held, and nobody to release them. That is verified here, at the price of one `stat`, so
/// that a thread started by a dependency one day is an error and not a job that hangs.
pub(crate) fn fork() -> io::Result<Forked> {
    let threads = thread_count()?;
    if threads != 1 {
        return Err(io::Error::other(format!(
            "cannot fork a process with {threads} threads"
        )));
    }
    // SAFETY: this is the only thread, so the child's copy of memory has no lock held by another.
    unsafe { fork_now() }
}

/// [`fork`] without its check, for the test harness, whose main thread only waits for this one.
#[cfg(test)]
pub(crate) fn fork_beside_idle_main_thread() -> io::Result<Forked> {
    // SAFETY: the other thread is blocked in a join or a receive and holds no lock.
    unsafe { fork_now() }
}

/// # Safety
///
/// No other thread of this process may hold a lock that the child will want.
unsafe fn fork_now() -> io::Result<Forked> {
    // SAFETY: passed on to the caller.
    let pid = unsafe { libc::fork() };
    match pid {
        -1 => Err(io::Error::last_os_error()),
        raw => Ok(Pid::from_raw(raw).map_or(Forked::Child, Forked::Parent)),
    }
}

/// Whether this process has one thread, and so may [`fork`].
pub(crate) fn has_one_thread() -> io::Result<bool> {
    Ok(thread_count()? == 1)
}

/// How many threads this process has: a directory's link count is two and one for each directory in
/// it, and `/proc/self/task` has one for each thread.
fn thread_count() -> io::Result<u64> {
    Ok(std::fs::metadata("/proc/self/task")?
        .nlink()
        .saturating_sub(2))
}

/// Ends this process at once: no destructor, no buffer flushed, nothing of a forked parent touched.
pub(crate) fn exit_now(code: i32) -> ! {
    // SAFETY: `_exit` has no precondition and does not return.
    unsafe { libc::_exit(code) }
}

/// Ends the process when dropped: held by a forked child so that a panic in it cannot unwind into
/// the parent's copy of the stack and carry on as a second parent.
pub(crate) struct NeverUnwind;

impl Drop for NeverUnwind {
    fn drop(&mut self) {
        exit_now(125);
    }
}

/// Sends `signal` (a number, real-time ones included; 0 only asks) to the process `pid`.
///
/// Only for a child that has not been reaped: any other number may be a stranger's by now (F39).
pub(crate) fn kill(pid: Pid, signal: i32) -> io::Result<()> {
    // SAFETY: two integers; a `Pid` is never 0 or negative, so no group is meant.
    check(unsafe { libc::kill(pid.as_raw_pid(), signal) }.into())
}

/// Sends `signal` (a number, real-time ones included; 0 only asks) to the process that `pidfd`
/// names. ESRCH once that process was reaped, whoever has its number since (F38).
pub(crate) fn pidfd_kill(pidfd: BorrowedFd<'_>, signal: i32) -> io::Result<()> {
    let info: *const libc::siginfo_t = std::ptr::null();
    // SAFETY: the descriptor is open while borrowed; a null siginfo means that of `kill`.
    check(unsafe {
        libc::syscall(
            libc::SYS_pidfd_send_signal,
            pidfd.as_raw_fd(),
            signal,
            info,
            0,
        )
    })
}

/// One child of this process that has died and is not reaped, leaving it so; none when all of them
/// live. ECHILD when it has no children at all.
///
/// The safe bindings keep the pid to themselves, or have no word for a death by real-time signal.
pub(crate) fn dead_child() -> io::Result<Option<Pid>> {
    let options = libc::WEXITED | libc::WNOHANG | libc::WNOWAIT;
    // SAFETY: all zeroes is a valid value of this plain structure.
    let mut info: libc::siginfo_t = unsafe { std::mem::zeroed() };
    // SAFETY: `info` is writable for the whole call.
    check(unsafe { libc::waitid(libc::P_ALL, 0, &raw mut info, options) }.into())?;
    // SAFETY: `waitid` has filled in a SIGCHLD's fields, or left them all zero.
    Ok(Pid::from_raw(unsafe { info.si_pid() }))
}

/// Writes `bytes` to the socket `fd` in one message; EPIPE when nobody is at the other end, and never
/// SIGPIPE, which a command line may have at its default.
pub(crate) fn send(fd: BorrowedFd<'_>, bytes: &[u8]) -> io::Result<()> {
    // SAFETY: the descriptor is open while borrowed, the bytes are readable for the whole call.
    let sent = unsafe {
        libc::send(
            fd.as_raw_fd(),
            bytes.as_ptr().cast(),
            bytes.len(),
            libc::MSG_NOSIGNAL,
        )
    };
    if sent == -1 {
        Err(io::Error::last_os_error())
    } else {
        Ok(())
    }
}

/// Has the kernel begin to write out what is in the file and not on its medium yet, without waiting for that.
///
/// A hint: it promises nothing, and a sync has less to wait for after it.
pub(crate) fn begin_writing_out(fd: BorrowedFd<'_>) {
    // SAFETY: the descriptor is open while borrowed; the rest are integers, and mean the whole file. Whether it fails is
    // found out by the sync.
    unsafe { libc::sync_file_range(fd.as_raw_fd(), 0, 0, libc::SYNC_FILE_RANGE_WRITE) };
}

/// Asks for `signal` to be queued to this process whenever a name appears in the directory, is
/// renamed within it or goes, until the descriptor is closed.
///
/// This is dnotify: it needs no inotify instance, of which a user has 128 by default (F52), so
/// thousands of workers can each watch their own directory. The caller has blocked `signal` and
/// reads it from a signalfd. A write to a file that exists says nothing, and a file created and then
/// written announces only its creation: a reader that finds it empty looks again soon.
///
/// [`io::ErrorKind::Unsupported`] where the kernel has no dnotify or it is switched off.
pub(crate) fn watch_directory(directory: BorrowedFd<'_>, signal: i32) -> io::Result<()> {
    // <linux/fcntl.h>: the same on every architecture, and in no binding.
    const F_SETSIG: libc::c_int = 10;
    const DN_CREATE: libc::c_ulong = 0x0000_0004;
    const DN_DELETE: libc::c_ulong = 0x0000_0008;
    const DN_RENAME: libc::c_ulong = 0x0000_0010;
    const DN_MULTISHOT: libc::c_ulong = 0x8000_0000;

    let fd = directory.as_raw_fd();
    // SAFETY: the descriptor is open while borrowed; the argument is an integer.
    check(unsafe { libc::fcntl(fd, F_SETSIG, signal) }.into())?;
    let events = DN_CREATE | DN_DELETE | DN_RENAME | DN_MULTISHOT;
    // SAFETY: as above.
    match check(unsafe { libc::fcntl(fd, libc::F_NOTIFY, events) }.into()) {
        Err(error) if matches!(error.raw_os_error(), Some(libc::EINVAL | libc::ENOSYS)) => {
            Err(io::ErrorKind::Unsupported.into())
        }
        outcome => outcome,
    }
}

/// Shows `title` as this process's command line and name, in place of the arguments it was started
/// with, so that what they hold (`--env TOKEN=…`) is no longer readable in `/proc/PID/cmdline`.
///
/// What does not fit is cut. An error means that the old arguments are still shown, and nothing
/// else. `std::env::args` must not be read afterwards.
pub(crate) fn set_title(title: &OsStr) -> io::Result<()> {
    /// Where the arguments are, once they were written to. A fork does not move them, and asking costs more than writing.
    static AREA: OnceLock<(u64, u64)> = OnceLock::new();
    set_name(title);
    let known = AREA.get().copied();
    let (start, end) = match known {
        Some(area) => area,
        None => argument_area()?,
    };
    let room = usize::try_from(end.saturating_sub(start)).map_err(io::Error::other)?;
    let Some(longest) = room.checked_sub(1) else {
        return Ok(());
    };
    // The last byte stays NUL: any other makes the kernel read on into the environment.
    let mut area = title.as_bytes().to_vec();
    area.truncate(longest);
    area.resize(room, 0);
    if known.is_some() {
        let to = std::ptr::with_exposed_provenance_mut::<u8>(start as usize);
        // SAFETY: these bytes are the kernel's copy of the arguments, on the first stack, and they were written to before: they
        // are there for as long as the process is. Nobody else has a reference to them (see above for `std::env::args`).
        unsafe { std::ptr::copy_nonoverlapping(area.as_ptr(), to, room) };
        return Ok(());
    }
    // Through a file and not through a pointer: an address that is not mapped is then an error.
    OpenOptions::new()
        .write(true)
        .open("/proc/self/mem")?
        .write_all_at(&area, start)?;
    let _ = AREA.set((start, end));
    Ok(())
}

/// Sets the short name that `ps` and `top` show: the first 15 bytes of `title`.
fn set_name(title: &OsStr) {
    let bytes: Vec<u8> = title
        .as_bytes()
        .iter()
        .copied()
        .filter(|&b| b != 0)
        .take(15)
        .collect();
    if let Ok(name) = CString::new(bytes) {
        // A name is for people; a kernel that refuses it costs nothing.
        let _ = nix::sys::prctl::set_name(&name);
    }
}

/// Where in memory this process's arguments are: fields 48 and 49 of its `stat`.
fn argument_area() -> io::Result<(u64, u64)> {
    let mut text = String::new();
    File::open("/proc/self/stat")?.read_to_string(&mut text)?;
    // The name may hold spaces and parentheses: fields count from the last one (F37).
    let mut fields = text
        .rsplit_once(')')
        .map_or("", |(_, rest)| rest)
        .split_ascii_whitespace();
    let mut field = |index: usize| fields.nth(index).and_then(|value| value.parse().ok());
    // The first after the name is field 3.
    match (field(48 - 3), field(0)) {
        (Some(start), Some(end)) if start != 0 => Ok((start, end)),
        _ => Err(io::ErrorKind::Unsupported.into()),
    }
}

/// Closes every descriptor from `first` up, but those in `except`.
///
/// Only for a process that has just been forked, or executed, and will use none of its parent's again: whatever
/// value still owns one of them must be forgotten, not dropped.
pub(crate) fn close_from(first: RawFd, except: &[RawFd]) {
    let mut kept: Vec<RawFd> = except.iter().copied().filter(|&fd| fd >= first).collect();
    kept.sort_unstable();
    let mut from = first;
    for fd in kept {
        close_between(from, fd - 1);
        from = fd + 1;
    }
    close_between(from, RawFd::MAX);
}

/// Closes the descriptors `from` to `to`, both included.
fn close_between(from: RawFd, to: RawFd) {
    if from > to {
        return;
    }
    // SAFETY: integers; see `close_from` for who may call.
    let closed = check(unsafe { libc::syscall(libc::SYS_close_range, from, to, 0) });
    if closed.is_ok() {
        return;
    }
    // Before Linux 5.9.
    close_one_by_one(from, to);
}

/// [`close_between`] from the list of those that are open.
fn close_one_by_one(from: RawFd, to: RawFd) {
    let Ok(entries) = std::fs::read_dir("/proc/self/fd") else {
        return;
    };
    let names = entries
        .flatten()
        .filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    let open: Vec<RawFd> = names.filter(|fd| (from..=to).contains(fd)).collect();
    for fd in open {
        // SAFETY: an integer; see `close_from` for who may call. The one that was the directory
        // itself is closed already, which is EBADF.
        unsafe { libc::close(fd) };
    }
}

/// Puts every signal back to its default and unblocks all of them, as a program expects to be
/// started: what is ignored or blocked would survive `execve`, SIGPIPE first among them. A handler does not.
pub(crate) fn reset_signals() -> io::Result<()> {
    /// In bytes, as the kernel counts.
    const SET_SIZE: libc::size_t = 8;
    // The kernel's own structure differs between architectures, is smaller than this on all of them,
    // and means the default with an empty mask when it is zero throughout.
    let default = [0_u64; 16];
    let none: *mut u64 = std::ptr::null_mut();
    for &signal in ignored_signals() {
        // Not through the C library, which refuses the two that it keeps to itself: those come
        // ignored from some programs, and would be passed on.
        // SAFETY: `default` outlives the call, and no old action is asked for. SIGKILL and SIGSTOP
        // are refused, which is fine.
        unsafe {
            libc::syscall(
                libc::SYS_rt_sigaction,
                signal,
                default.as_ptr(),
                none,
                SET_SIZE,
            );
        }
    }
    Ok(nix::sys::signal::SigSet::empty().thread_set_mask()?)
}

/// The signals that are ignored here, or may be. Asked once: nothing in this program ignores one after its first line, and a
/// process that is forked after that has what its parent has.
pub(crate) fn ignored_signals() -> &'static [libc::c_int] {
    const SIGNALS: libc::c_int = 64;
    static IGNORED: OnceLock<Vec<libc::c_int>> = OnceLock::new();
    IGNORED.get_or_init(|| {
        (1..=SIGNALS)
            .filter(|&signal| may_be_ignored(signal))
            .collect()
    })
}

/// Whether this signal is ignored. One that the C library does not tell of counts as so.
fn may_be_ignored(signal: libc::c_int) -> bool {
    // SAFETY: all zeroes is a valid value of this plain structure.
    let mut action: libc::sigaction = unsafe { std::mem::zeroed() };
    // SAFETY: `action` is writable for the whole call, and no action is set.
    let asked = unsafe { libc::sigaction(signal, std::ptr::null(), &raw mut action) };
    asked != 0 || action.sa_sigaction == libc::SIG_IGN
}

/// Puts SIGCHLD at its default action, told of deaths and not of stops.
///
/// A worker needs it: one that was started with SIGCHLD ignored would have its children reaped by
/// the kernel, exit status and all (F40).
pub(crate) fn hear_of_deaths() -> io::Result<()> {
    // SAFETY: all zeroes is SIG_DFL with no flags and an empty mask.
    let mut action: libc::sigaction = unsafe { std::mem::zeroed() };
    action.sa_flags = libc::SA_NOCLDSTOP;
    // SAFETY: `action` outlives the call, and no old action is asked for.
    check(unsafe { libc::sigaction(libc::SIGCHLD, &raw const action, std::ptr::null_mut()) }.into())
}

/// Gives memory that is free in the heap back to the system, where the C library can.
pub(crate) fn trim_heap() {
    #[cfg(target_env = "gnu")]
    // SAFETY: no precondition; only memory that nobody has is given back.
    unsafe {
        libc::malloc_trim(0);
    }
}

/// What a system call returned, as a result.
fn check(returned: libc::c_long) -> io::Result<()> {
    if returned == -1 {
        Err(io::Error::last_os_error())
    } else {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::os::fd::{AsFd, IntoRawFd};
    use std::time::{Duration, Instant};

    use nix::sys::signal::{SigSet, Signal};

    use super::*;
    use crate::process::testing::alone;

    #[test]
    fn a_process_with_threads_is_not_forked() {
        // The harness runs a test beside its main thread.
        assert!(thread_count().unwrap() > 1);
        assert!(fork().is_err());
    }

    #[test]
    fn the_title_replaces_the_arguments() {
        alone(|| {
            set_title(OsStr::new("outlive: 1-job")).unwrap();
            let shown = std::fs::read("/proc/self/cmdline").unwrap();
            let (title, rest) = shown.split_at("outlive: 1-job".len());
            assert_eq!(title, b"outlive: 1-job");
            assert!(rest.iter().all(|&byte| byte == 0), "{rest:?}");
            assert_eq!(
                std::fs::read("/proc/self/comm").unwrap(),
                b"outlive: 1-job\n"
            );

            let long = "x".repeat(100_000);
            set_title(OsStr::new(&long)).unwrap();
            let shown = std::fs::read("/proc/self/cmdline").unwrap();
            assert_eq!(
                shown.iter().rposition(|&byte| byte != 0),
                Some(shown.len() - 2)
            );
        });
    }

    #[test]
    fn names_that_appear_in_a_watched_directory_queue_the_signal() {
        alone(|| {
            let directory = tempfile::tempdir().unwrap();
            let handle = File::open(directory.path()).unwrap();
            let mut set = SigSet::empty();
            set.add(Signal::SIGIO);
            set.thread_block().unwrap();
            watch_directory(handle.as_fd(), libc::SIGIO).unwrap();
            // Twice, and by both ways: the watch is not used up.
            for round in 0..2 {
                let name = directory.path().join(format!("new{round}"));
                std::fs::write(&name, "").unwrap();
                assert_eq!(set.wait().unwrap(), Signal::SIGIO);
                std::fs::rename(&name, directory.path().join("control")).unwrap();
                assert_eq!(set.wait().unwrap(), Signal::SIGIO);
            }
            let file = File::open(directory.path().join("control")).unwrap();
            assert!(watch_directory(file.as_fd(), libc::SIGIO).is_err());
        });
    }

    #[test]
    fn closing_spares_what_is_excepted() {
        alone(|| {
            let open = |fd: RawFd| std::fs::symlink_metadata(format!("/proc/self/fd/{fd}")).is_ok();
            let six = || [(); 6].map(|()| File::open("/dev/null").unwrap().into_raw_fd());
            let fds = six();
            close_from(fds[1], &[fds[2], fds[4], 0]);
            assert_eq!(fds.map(open), [true, false, true, false, true, false]);
            let fds = six();
            close_one_by_one(fds[1], fds[4]);
            assert_eq!(fds.map(open), [true, false, false, false, false, true]);
        });
    }

    #[test]
    fn trimming_is_harmless() {
        let before = Instant::now();
        trim_heap();
        assert!(before.elapsed() < Duration::from_secs(5));
    }
}
