//! A client of a supervisor's socket that shares no code with the product: it knows what docs/socket.md says.

use std::fs::File;
use std::io::{BufRead, BufReader, ErrorKind, Read, Write};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};
use std::os::unix::net::UnixStream;
use std::path::Path;

use serde_json::Value;

use crate::until::DEADLINE;

/// A client of a supervisor's socket.
#[derive(Debug)]
pub struct Client(BufReader<UnixStream>);

impl Client {
    /// Of the supervisor of the store at `root`, where one takes connections.
    pub fn of(root: &Path) -> Option<Client> {
        // In a root whose path is too long for an address, from within.
        let dir = File::open(root).ok()?;
        let fd = dir.as_raw_fd();
        let stream = UnixStream::connect(format!("/proc/self/fd/{fd}/supervisor.sock")).ok()?;
        Some(Client::new(stream))
    }

    /// Over this connection.
    ///
    /// # Panics
    ///
    /// When it cannot be given a deadline.
    pub fn new(stream: UnixStream) -> Client {
        let deadline = Some(DEADLINE);
        stream.set_read_timeout(deadline).expect("a deadline");
        stream.set_write_timeout(deadline).expect("a deadline");
        Client(BufReader::new(stream))
    }

    /// Send bytes. Says whether they were taken.
    pub fn send(&mut self, bytes: &[u8]) -> bool {
        self.0.get_mut().write_all(bytes).is_ok()
    }

    /// The next line; `None` when the supervisor has closed the connection.
    ///
    /// # Panics
    ///
    /// When nothing comes, or no JSON.
    #[track_caller]
    pub fn hear(&mut self) -> Option<Value> {
        let mut line = Vec::new();
        match self.0.read_until(b'\n', &mut line) {
            Ok(0) => None,
            Ok(_) => Some(serde_json::from_slice(&line).expect("it says JSON")),
            Err(error) if error.kind() == ErrorKind::ConnectionReset => None,
            Err(error) => panic!("nothing is heard: {error}"),
        }
    }

    /// Ask, and hear the answer.
    #[track_caller]
    pub fn ask(&mut self, line: &str) -> Value {
        assert!(self.send(format!("{line}\n").as_bytes()), "{line}");
        self.hear().expect("there is an answer")
    }

    /// Whether the supervisor has closed the connection, with nothing more to be read.
    pub fn is_closed(&mut self) -> bool {
        let stream = self.0.get_mut();
        stream.set_nonblocking(true).expect("a socket obeys");
        let read = stream.read(&mut [0; 64]);
        stream.set_nonblocking(false).expect("a socket obeys");
        match read {
            Ok(length) => length == 0,
            Err(error) => error.kind() != ErrorKind::WouldBlock,
        }
    }
}

impl AsFd for Client {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.get_ref().as_fd()
    }
}
