//! Running one command to its end, with everything it says captured and a deadline on it.

use std::io::{Read, Write};
use std::os::unix::process::ExitStatusExt;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use serde_json::Value;

/// A command that has ended, and what it said.
#[derive(Debug)]
pub struct Ran {
    /// What was run, for messages.
    pub what: String,
    /// How it ended.
    pub status: ExitStatus,
    /// Its standard output.
    pub stdout: Vec<u8>,
    /// Its standard error.
    pub stderr: Vec<u8>,
}

impl Ran {
    /// Run `command` to its end with nothing on its standard input. It is killed when it takes longer than `limit`.
    ///
    /// # Panics
    ///
    /// When it cannot be started, or takes too long.
    #[track_caller]
    pub fn run(command: Command, limit: Duration) -> Ran {
        Ran::run_with_input(command, b"", limit)
    }

    /// As [`Ran::run`], with `input` on its standard input.
    ///
    /// # Panics
    ///
    /// As [`Ran::run`].
    #[track_caller]
    pub fn run_with_input(mut command: Command, input: &[u8], limit: Duration) -> Ran {
        let what = show(&command);
        command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        let mut child = command
            .spawn()
            .unwrap_or_else(|error| panic!("{what}: {error}"));
        let mut stdin = child.stdin.take().expect("it is piped");
        // Whoever reads nothing closes the pipe; that is its business.
        let _ = stdin.write_all(input);
        drop(stdin);
        Ran::end_of(child, what, limit)
    }

    /// The end of a child whose two streams are piped.
    ///
    /// # Panics
    ///
    /// When it takes longer than `limit`.
    #[track_caller]
    pub fn end_of(mut child: Child, what: String, limit: Duration) -> Ran {
        let stdout = collect(child.stdout.take());
        let stderr = collect(child.stderr.take());
        let deadline = Instant::now() + limit;
        let status = loop {
            if let Some(status) = child.try_wait().expect("a child can be waited for") {
                break status;
            }
            if Instant::now() > deadline {
                child.kill().expect("a child can be killed");
                child.wait().expect("a killed child ends");
                panic!("{what}: still running after {limit:?}");
            }
            std::thread::sleep(Duration::from_millis(1));
        };
        Ran {
            what,
            status,
            stdout: stdout.join().expect("the reader does not panic"),
            stderr: stderr.join().expect("the reader does not panic"),
        }
    }

    /// The exit code; 128 and the signal where one killed it.
    pub fn code(&self) -> i32 {
        self.status
            .code()
            .unwrap_or_else(|| 128 + self.status.signal().unwrap_or(127))
    }

    /// See that it ended with `code`.
    ///
    /// # Panics
    ///
    /// When it did not.
    #[track_caller]
    pub fn expect(self, code: i32) -> Ran {
        assert_eq!(
            self.code(),
            code,
            "{}\nstdout: {}\nstderr: {}",
            self.what,
            self.text(),
            self.errors()
        );
        self
    }

    /// Its standard output as text, without the last newline.
    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.stdout).trim_end().to_owned()
    }

    /// Its standard error as text.
    pub fn errors(&self) -> String {
        String::from_utf8_lossy(&self.stderr).into_owned()
    }

    /// Its standard output as JSON.
    ///
    /// # Panics
    ///
    /// When it is none.
    #[track_caller]
    pub fn json(&self) -> Value {
        serde_json::from_slice(&self.stdout)
            .unwrap_or_else(|error| panic!("{}: {error}: {}", self.what, self.text()))
    }
}

/// Read a stream to its end without keeping its writer waiting.
fn collect(stream: Option<impl Read + Send + 'static>) -> JoinHandle<Vec<u8>> {
    std::thread::spawn(move || {
        let mut bytes = Vec::new();
        if let Some(mut stream) = stream {
            // What cannot be read any more is not there.
            let _ = stream.read_to_end(&mut bytes);
        }
        bytes
    })
}

/// A command line for messages.
pub(crate) fn show(command: &Command) -> String {
    let words: Vec<String> = std::iter::once(command.get_program())
        .chain(command.get_args())
        .map(|word| word.to_string_lossy().chars().take(200).collect())
        .collect();
    words.join(" ")
}
