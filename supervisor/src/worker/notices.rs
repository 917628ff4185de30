//! What a command says of itself, by the protocol of sd_notify(3): one packet, one assignment a line. Only `READY=1` and `STATUS=…`
//! mean something here.
//!
//! The socket has a name of its own outside of the file system, so that no path is too long for it and nothing is left of it. Everybody on
//! the machine may send to it; only what comes from the same user, or from root, is heard.

use std::io::{IoSliceMut, Result};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixDatagram};

use rustix::net::{RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, recvmsg, sockopt};
use state_machine::course::Notice;

/// The variable by which a command finds the socket.
pub(super) const VARIABLE: &str = "NOTIFY_SOCKET";
/// The longest packet that is heard, in bytes. What is longer is cut.
const LONGEST: usize = 4 << 10;
/// The longest line about what a command does, in characters.
const LONGEST_LINE: usize = 200;

/// The socket that a command tells.
pub(super) struct Notices {
    socket: UnixDatagram,
    /// As the variable says it.
    name: String,
}

impl Notices {
    /// A socket under a name that nobody else has.
    pub(super) fn new(job: &str) -> Result<Notices> {
        // Two stores may have a job of the same id, and a worker that died leaves its name free.
        let name = format!("outlive/{job}/{}", std::process::id());
        let socket = UnixDatagram::bind_addr(&SocketAddr::from_abstract_name(&name)?)?;
        socket.set_nonblocking(true)?;
        sockopt::set_socket_passcred(&socket, true)?;
        Ok(Notices {
            socket,
            name: format!("@{name}"),
        })
    }

    /// What the variable is to be.
    pub(super) fn name(&self) -> &str {
        &self.name
    }

    /// What wakes who sleeps, where something is said.
    pub(super) fn fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }

    /// The next that was said and means something.
    pub(super) fn hear(&self) -> Option<Notice> {
        loop {
            let mut packet = [0; LONGEST];
            // Room for who sends it. Descriptors that come with it are closed.
            let mut space =
                [std::mem::MaybeUninit::uninit(); rustix::cmsg_space!(ScmCredentials(1))];
            let mut beside = RecvAncillaryBuffer::new(&mut space);
            let mut parts = [IoSliceMut::new(&mut packet)];
            let flags = RecvFlags::DONTWAIT | RecvFlags::CMSG_CLOEXEC;
            let received = match recvmsg(&self.socket, &mut parts, &mut beside, flags) {
                Ok(received) => received.bytes,
                Err(rustix::io::Errno::INTR) => continue,
                // There is nothing, or it is nothing that can be received.
                Err(_) => return None,
            };
            let own = rustix::process::getuid();
            let is_ours = beside.drain().any(|message| match message {
                RecvAncillaryMessage::ScmCredentials(sender) => {
                    sender.uid == own || sender.uid.is_root()
                }
                _ => false,
            });
            let notice = read(&packet[..received]);
            if is_ours && notice != Notice::default() {
                return Some(notice);
            }
        }
    }

    /// Nothing that was said so far is about what is started now.
    pub(super) fn forget(&self) {
        while self.hear().is_some() {}
    }
}

fn read(packet: &[u8]) -> Notice {
    let mut notice = Notice::default();
    for line in String::from_utf8_lossy(packet).lines() {
        match line.split_once('=') {
            Some(("READY", "1")) => notice.ready = true,
            Some(("STATUS", text)) => {
                notice.status_line = Some(text.chars().take(LONGEST_LINE).collect());
            }
            _ => {}
        }
    }
    notice
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(notices: &Notices, packet: &[u8]) -> Option<Notice> {
        let name = notices.name().strip_prefix('@').unwrap();
        let to = SocketAddr::from_abstract_name(name).unwrap();
        let sender = UnixDatagram::unbound().unwrap();
        sender.send_to_addr(packet, &to).unwrap();
        notices.hear()
    }

    #[test]
    fn what_means_something_is_heard_and_the_rest_passed_over() {
        let notices = Notices::new("1-test").unwrap();
        assert_eq!(notices.hear(), None);
        let ready = said(&notices, b"MAINPID=7\nREADY=1\nSTATUS=it serves");
        let expected = Notice {
            ready: true,
            status_line: Some("it serves".into()),
        };
        assert_eq!(ready, Some(expected));
        for nothing in [
            &b""[..],
            b"READY=0",
            b"WATCHDOG=1",
            b"\xff\0",
            &[b'x'; 9000],
        ] {
            assert_eq!(said(&notices, nothing), None);
        }
        let long = [b"STATUS=".as_slice(), &[b'x'; 9000]].concat();
        let line = said(&notices, &long).unwrap().status_line.unwrap();
        assert_eq!(line.len(), LONGEST_LINE);
    }

    #[test]
    fn what_was_said_before_a_start_is_forgotten() {
        let notices = Notices::new("2-test").unwrap();
        let other = Notices::new("3-test").unwrap();
        assert_ne!(notices.name(), other.name());
        let to = SocketAddr::from_abstract_name(&notices.name()[1..]).unwrap();
        UnixDatagram::unbound()
            .unwrap()
            .send_to_addr(b"READY=1", &to)
            .unwrap();
        notices.forget();
        assert_eq!(notices.hear(), None);
    }
}
