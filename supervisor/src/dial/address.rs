//! The socket `supervisor.sock` in the root of a store: binding it, reaching it, removing it.
//!
//! The address of a socket holds 107 bytes of a path, and a root may be longer. Then the directory is opened, and the socket
//! named through `/proc/self/fd`.

use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};

use rustix::fs::{CWD, Mode, OFlags, fchmod, openat};
use rustix::io::Errno;
use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType, bind, socket_with};

/// The name of the socket.
const NAME: &str = "supervisor.sock";
/// Its name until it can be connected to.
const NEW: &str = "supervisor.sock.new";
/// How many clients may wait to be heard.
const BACKLOG: i32 = 1024;

/// Bind the socket. Whoever does holds the lock of the supervisor: a socket that is there already is a dead one's, and is
/// replaced, so that no client ever finds none. It does not block.
pub(crate) fn listen(root: &Path) -> io::Result<UnixListener> {
    let new = root.join(NEW);
    match std::fs::remove_file(&new) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    let socket = stream_socket()?;
    // What is bound has the mode of the socket, less the mask; never more, not even for a moment.
    fchmod(&socket, Mode::RUSR | Mode::WUSR)?;
    at(&new, |address| bind(&socket, address))?;
    rustix::net::listen(&socket, BACKLOG)?;
    std::fs::rename(&new, root.join(NAME))?;
    Ok(UnixListener::from(socket))
}

/// Connect to the socket. Does not wait: where nobody takes the connection now, that is an error. Nor does what is read and
/// written then.
pub(super) fn connect(root: &Path) -> io::Result<UnixStream> {
    reach(&root.join(NAME))
}

/// As [`connect`], to a socket that may have been moved.
pub(crate) fn reach(socket: &Path) -> io::Result<UnixStream> {
    let stream = stream_socket()?;
    at(socket, |address| rustix::net::connect(&stream, address))?;
    Ok(UnixStream::from(stream))
}

/// Remove the socket. Whoever does still holds the lock of the supervisor.
pub(crate) fn withdraw(root: &Path) -> io::Result<()> {
    match std::fs::remove_file(root.join(NAME)) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

fn stream_socket() -> io::Result<OwnedFd> {
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    Ok(socket_with(
        AddressFamily::UNIX,
        SocketType::STREAM,
        flags,
        None,
    )?)
}

/// Do something with the address of a path, however long that is.
fn at(path: &Path, work: impl FnOnce(&SocketAddrUnix) -> Result<(), Errno>) -> io::Result<()> {
    if let Ok(address) = SocketAddrUnix::new(path) {
        return Ok(work(&address)?);
    }
    let (Some(dir), Some(name)) = (path.parent(), path.file_name()) else {
        return Err(io::ErrorKind::InvalidInput.into());
    };
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let dir = openat(CWD, dir, flags, Mode::empty())?;
    let near = PathBuf::from(format!("/proc/self/fd/{}", dir.as_raw_fd())).join(name);
    Ok(work(&SocketAddrUnix::new(near)?)?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    /// Directories within `dir` until the path is at least so long.
    fn deep(dir: &Path, length: usize) -> PathBuf {
        let mut path = dir.to_owned();
        while path.as_os_str().len() < length {
            path.push("d".repeat(200.min(length - path.as_os_str().len()).max(1)));
        }
        std::fs::create_dir_all(&path).unwrap();
        path
    }

    #[test]
    fn a_root_may_be_as_long_as_a_path_may_be() {
        let dir = tempfile::tempdir().unwrap();
        for length in [60, 90, 91, 92, 93, 94, 150, 250, 3000] {
            let root = deep(&dir.path().join(length.to_string()), length);
            let listener = listen(&root).unwrap();
            let mode = std::fs::metadata(root.join(NAME)).unwrap().permissions();
            assert_eq!(mode.mode() & 0o7777, 0o600);
            connect(&root).unwrap();
            listener.accept().unwrap();
        }
    }

    #[test]
    fn a_dead_socket_is_replaced_and_a_withdrawn_one_is_gone() {
        let dir = tempfile::tempdir().unwrap();
        drop(listen(dir.path()).unwrap());
        std::fs::write(dir.path().join(NEW), b"half way").unwrap();
        let refused = connect(dir.path()).unwrap_err();
        assert_eq!(refused.kind(), io::ErrorKind::ConnectionRefused);
        let _listener = listen(dir.path()).unwrap();
        connect(dir.path()).unwrap();
        withdraw(dir.path()).unwrap();
        withdraw(dir.path()).unwrap();
        let absent = connect(dir.path()).unwrap_err();
        assert_eq!(absent.kind(), io::ErrorKind::NotFound);
        assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 0);
    }
}
