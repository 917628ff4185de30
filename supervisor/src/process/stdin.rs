//! How a program that was executed to serve another one hears it: by a socket that is its standard input.

use std::fs::File;
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};

use rustix::net::{SocketType, sockopt};

use crate::sys;

/// The socket that this process was started with as its standard input, which is put out of the way. Everything else that it
/// was started with is closed, but its output: nothing of this process may own a descriptor yet.
///
/// # Errors
///
/// [`io::ErrorKind::InvalidInput`] when its standard input is no such socket.
pub(crate) fn socket_on_stdin() -> io::Result<OwnedFd> {
    let stdin = io::stdin();
    if !matches!(sockopt::socket_type(&stdin), Ok(SocketType::SEQPACKET)) {
        return Err(io::ErrorKind::InvalidInput.into());
    }
    let socket = rustix::io::fcntl_dupfd_cloexec(&stdin, 3)?;
    // Whatever the other program was started with and has passed on is nothing to this one, nor to what it starts.
    sys::close_from(3, &[socket.as_raw_fd()]);
    nix::unistd::dup2_stdin(File::open("/dev/null")?)?;
    Ok(socket)
}
