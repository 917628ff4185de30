//! A supervisor of a bench's store, ended with the test whatever happens, and a client of its socket that shares no code with
//! the product: it knows what docs/socket.md says.

use std::io::{BufRead, BufReader, ErrorKind, Read, Write};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

use crate::bench::Bench;
use crate::until::{DEADLINE, until, until_some};

/// A supervisor that runs in the foreground of a test.
#[derive(Debug)]
pub struct Supervised {
    child: Child,
    root: std::path::PathBuf,
}

impl Supervised {
    /// Start one for the store of the bench, with these options, and wait until it is ready.
    pub fn start(bench: &Bench, options: &[&str]) -> Supervised {
        let arguments = ["supervise", "--foreground"].iter().chain(options);
        Supervised::run(bench.verb(arguments), &bench.root())
    }

    /// One that is started so, for the store at `root`.
    ///
    /// # Panics
    ///
    /// When it cannot be started, or is not ready in time.
    pub fn run(mut command: Command, root: &Path) -> Supervised {
        let child = command
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .expect("a process can be started");
        let supervised = Supervised {
            child,
            root: root.to_owned(),
        };
        until("the supervisor is ready", || {
            let status = supervised
                .try_connect()
                .and_then(|mut client| client.ask_unless_it_goes(r#"{"op":"status"}"#));
            status.is_some_and(|answer| {
                answer["ok"]["ready"] == true && answer["ok"]["pid"] == supervised.pid()
            })
        });
        supervised
    }

    /// Its number.
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    fn try_connect(&self) -> Option<Client> {
        // In a root whose path is too long for an address, from within.
        let dir = std::fs::File::open(&self.root).ok()?;
        let fd = std::os::fd::AsRawFd::as_raw_fd(&dir);
        let stream = UnixStream::connect(format!("/proc/self/fd/{fd}/supervisor.sock")).ok()?;
        Some(Client::new(stream))
    }

    /// A client of it.
    pub fn connect(&self) -> Client {
        until_some("the supervisor takes a connection", || self.try_connect())
    }

    /// Send it a signal.
    ///
    /// # Panics
    ///
    /// When that is not possible.
    pub fn signal(&self, signal: Signal) {
        let pid = Pid::from_child(&self.child);
        kill_process(pid, signal).expect("a child can be signalled");
    }

    /// Wait until it has ended by itself; its exit code.
    pub fn end(mut self) -> Option<i32> {
        let ended = until_some("the supervisor ends", || self.child.try_wait().ok()?);
        ended.code()
    }

    /// Kill it, now.
    pub fn kill(self) {
        drop(self);
    }
}

impl Drop for Supervised {
    fn drop(&mut self) {
        // One that has ended already needs no killing.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A client of a supervisor's socket.
#[derive(Debug)]
pub struct Client(BufReader<UnixStream>);

impl Client {
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

    fn ask_unless_it_goes(&mut self, line: &str) -> Option<Value> {
        self.send(format!("{line}\n").as_bytes());
        self.hear()
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
