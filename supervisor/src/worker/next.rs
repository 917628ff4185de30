//! A worker that goes on to another job: where jobs follow each other at once, making a process for each costs as much as all else
//! that is done for one. It says so where it says that a slot is idle, with the end of a channel at which it can be asked; whoever
//! has that either asks or closes it. What must never be here: anything of the job that it had.

use std::io::{IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::net::{UnixDatagram, UnixStream};

use nix::sys::signal::{SigSet, Signal};
use rustix::io::Errno;
use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags, recvmsg, sendmsg,
};
use state_machine::id::JobId;

use super::launch::Asked;
use crate::{process, sys};

/// What is said to a worker that waits, in bytes. An id has a bound far below that.
const LONGEST: usize = 512;

/// Say that `done` is over and that this process can have another job, and wait for that. `None` where it should end: nobody wants
/// it, or it is not as it was before it had a job.
// On its own, so that a worker that sleeps over a job has no stack for this.
#[inline(never)]
pub(super) fn wait(vacates: &UnixDatagram, done: &JobId) -> Option<Asked> {
    // What its command has left, if anything, has nobody else to look after it.
    if !process::is_empty().unwrap_or(false) {
        return None;
    }
    let (ours, theirs) = UnixStream::pair().ok()?;
    let _ = sys::set_title("outlive worker, without a job".as_ref());
    give(vacates.as_fd(), done.as_str().as_bytes(), theirs.as_fd()).ok()?;
    drop(theirs);
    // It has nothing that it could not be ended over, and a signal that was meant for it must not hit its next job.
    let mut end = SigSet::empty();
    end.add(Signal::SIGTERM);
    end.thread_unblock().ok()?;
    let asked = hear(ours);
    end.thread_block().ok()?;
    asked
}

fn hear(channel: UnixStream) -> Option<Asked> {
    let mut buffer = [0_u8; LONGEST];
    let (length, asked_by) = take(channel.as_fd(), &mut buffer, RecvFlags::empty()).ok()?;
    let ask = std::str::from_utf8(&buffer[..length]).ok()?;
    let (job, slot) = ask.split_once(' ')?;
    Some(Asked {
        job: JobId::parse(job).ok()?,
        slot: slot.parse().ok(),
        channel,
        asked_by: asked_by?,
    })
}

/// Ask one that waits at the other end of `channel` for a job.
pub(crate) fn ask(
    channel: &UnixStream,
    job: &JobId,
    slot: Option<u32>,
    asked_by: BorrowedFd<'_>,
) -> std::io::Result<()> {
    let slot = slot.map_or("-".to_owned(), |slot| slot.to_string());
    let ask = format!("{job} {slot}");
    Ok(give(channel.as_fd(), ask.as_bytes(), asked_by)?)
}

/// Send a message with a descriptor.
fn give(socket: BorrowedFd<'_>, message: &[u8], fd: BorrowedFd<'_>) -> Result<(), Errno> {
    let mut room = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut ancillary = SendAncillaryBuffer::new(&mut room);
    let fds = [fd];
    ancillary.push(SendAncillaryMessage::ScmRights(&fds));
    sendmsg(
        socket,
        &[IoSlice::new(message)],
        &mut ancillary,
        SendFlags::NOSIGNAL,
    )?;
    Ok(())
}

/// Receive a message, and the descriptor that came with it.
pub(crate) fn take(
    socket: BorrowedFd<'_>,
    buffer: &mut [u8],
    flags: RecvFlags,
) -> Result<(usize, Option<OwnedFd>), Errno> {
    let mut room = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut ancillary = RecvAncillaryBuffer::new(&mut room);
    let flags = flags | RecvFlags::CMSG_CLOEXEC;
    let received = loop {
        let mut into = [IoSliceMut::new(buffer)];
        match recvmsg(socket, &mut into, &mut ancillary, flags) {
            Err(Errno::INTR) => {}
            received => break received?,
        }
    };
    let mut fds = ancillary.drain().flat_map(|message| match message {
        RecvAncillaryMessage::ScmRights(fds) => fds.collect::<Vec<_>>(),
        _ => Vec::new(),
    });
    let fd = fds.next();
    drop(fds);
    Ok((received.bytes, fd))
}
