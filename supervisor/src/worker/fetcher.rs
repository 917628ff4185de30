//! The worker's side of a transfer: the program that makes it, and what that says. The fetcher is a command like any other, so
//! that whatever ends a command ends it too, in any silence; it has a socket for its standard input, and one packet is a word.

use std::ffi::OsString;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};

use rustix::io::Errno;
use rustix::net::{AddressFamily, RecvFlags, SocketFlags, SocketType, recv, socketpair};
use state_machine::course::Refused;
use state_machine::pull::word::{Cause, Word};

use super::launcher::{MARK, Role, THIS_PROGRAM, asks};
use crate::sys;

/// The longest word that is heard, in bytes. What is longer is cut, says nothing, and is passed over.
const LONGEST: usize = 64 << 10;

/// What a fetcher that may register is told.
pub(crate) const GO: &[u8] = b"go";

/// The command line and the mark of a fetcher for the job in `dir`.
pub(super) fn command(dir: &Path) -> Result<(Vec<OsString>, (OsString, OsString)), Refused> {
    if !asks() {
        return Err(Refused::start(
            "this program does not call outlive::worker_if_asked(), so it cannot fetch anything",
        ));
    }
    let argv = vec![
        THIS_PROGRAM.into(),
        Role::Fetcher.argument().into(),
        dir.into(),
    ];
    Ok((argv, (MARK.into(), Role::Fetcher.word().into())))
}

/// Where a fetcher works: nowhere in particular, as what it is asked for names everything by whole paths.
pub(super) fn cwd() -> PathBuf {
    PathBuf::from("/")
}

/// The socket to a fetcher, and the end that is its standard input.
pub(super) fn socket() -> Result<(Fetcher, OwnedFd), Refused> {
    let flags = SocketFlags::CLOEXEC;
    let pair = socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, flags, None);
    let (socket, theirs) =
        pair.map_err(|error| Refused::start(format!("no socket can be made: {error}")))?;
    let fetcher = Fetcher {
        socket,
        is_over: false,
        cause: None,
    };
    Ok((fetcher, theirs))
}

/// A fetcher, and what it has said that belongs to its end.
pub(super) struct Fetcher {
    socket: OwnedFd,
    is_over: bool,
    cause: Option<Cause>,
}

impl Fetcher {
    /// The next word that is to be recorded, where one has come.
    pub(super) fn hear(&mut self) -> Option<Word> {
        while !self.is_over {
            let mut packet = vec![0; LONGEST];
            let length = match recv(&self.socket, &mut packet[..], RecvFlags::DONTWAIT) {
                Ok((length, _)) if length > 0 => length,
                Err(Errno::INTR) => continue,
                Err(Errno::AGAIN) => return None,
                // It has ended. How is told by its exit, and by what it said before.
                Ok(_) | Err(_) => {
                    self.is_over = true;
                    return None;
                }
            };
            match Word::decode(&packet[..length]) {
                Some(Word::Cause(cause)) => self.cause = Some(cause),
                Some(word) => return Some(word),
                // A newer program may say more than we know.
                None => {}
            }
        }
        None
    }

    /// Let it register.
    pub(super) fn let_register(&self) -> io::Result<()> {
        match sys::send(self.socket.as_fd(), GO) {
            // It is gone: that is seen by its exit.
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
            sent => sent,
        }
    }

    /// Why it has not done its work, where it said so.
    pub(super) fn take_cause(&mut self) -> Option<Cause> {
        self.cause.take()
    }

    /// What to watch for a word; nothing once nothing more can come.
    pub(super) fn fd(&self) -> Option<BorrowedFd<'_>> {
        (!self.is_over).then(|| self.socket.as_fd())
    }
}
