//! A terminal for a test: one that tmux keeps, with a shell in it. Keys are sent to it, and what it shows is read back.

use std::ffi::OsStr;
use std::fs;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};

use crate::bench::Bench;
use crate::until::{until, until_some};

/// What the shell shows when it waits for a command.
const PROMPT: &str = "ready>";

/// A terminal. Its server is told to end when it is dropped.
#[derive(Debug)]
pub struct Terminal<'a> {
    bench: &'a Bench,
    socket: String,
    settings: String,
}

impl<'a> Terminal<'a> {
    /// A terminal of this size, with a shell that waits for a command. `None`, with the reason printed, where there is no tmux.
    ///
    /// # Panics
    ///
    /// When tmux is there and does not do what it is told.
    pub fn open(bench: &'a Bench, columns: usize, rows: usize) -> Option<Terminal<'a>> {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let there = Command::new("tmux")
            .arg("-V")
            .stdout(Stdio::null())
            .status();
        if there.is_err() {
            println!("left out: there is no tmux");
            return None;
        }
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let mut terminal = Terminal {
            bench,
            socket: format!("outlive-test-{}-{number}", std::process::id()),
            settings: String::new(),
        };
        let (columns, rows) = (columns.to_string(), rows.to_string());
        let shell = format!("PS1='{PROMPT} ' TERM=screen-256color exec sh -i");
        terminal.tmux(&[
            "new-session",
            "-d",
            "-x",
            &columns,
            "-y",
            &rows,
            "-s",
            "main",
            &shell,
        ]);
        terminal.until("the shell waits", |screen| screen.contains(PROMPT));
        terminal.settings = terminal.settings("before");
        Some(terminal)
    }

    /// Give the shell a command. It is not waited for.
    pub fn type_line(&self, line: &str) {
        self.tmux(&["send-keys", "-t", "main", "-l", line]);
        self.press(&["Enter"]);
    }

    /// Run a verb of the command line, and do not wait for it.
    pub fn run(&self, arguments: &str) {
        self.type_line(&format!(
            "clear; '{}' {arguments}",
            self.bench.binary().display()
        ));
    }

    /// Press keys, as tmux names them (`Down`, `C-c`, `q`).
    pub fn press(&self, keys: &[&str]) {
        let words: Vec<&str> = [&["send-keys", "-t", "main"], keys].concat();
        self.tmux(&words);
    }

    /// Make it as large as this.
    pub fn resize(&self, columns: usize, rows: usize) {
        let (columns, rows) = (columns.to_string(), rows.to_string());
        self.tmux(&["resize-window", "-t", "main", "-x", &columns, "-y", &rows]);
    }

    /// What it shows: its lines, without what is blank at their ends.
    pub fn screen(&self) -> String {
        self.tmux(&["capture-pane", "-p", "-t", "main"])
    }

    /// The same, with the colours.
    pub fn coloured_screen(&self) -> String {
        self.tmux(&["capture-pane", "-p", "-e", "-t", "main"])
    }

    /// What tmux knows of it (`#{cursor_flag}`, `#{alternate_on}`).
    pub fn is(&self, format: &str) -> String {
        let said = self.tmux(&["display-message", "-p", "-t", "main", format]);
        said.trim_end().to_owned()
    }

    /// Wait until what it shows is as `look` wants it.
    ///
    /// # Panics
    ///
    /// When it does not come to be so.
    #[track_caller]
    pub fn until(&self, what: &str, look: impl Fn(&str) -> bool) -> String {
        let mut last = String::new();
        let seen = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            until_some(what, || {
                last = self.screen();
                look(&last).then(|| last.clone())
            })
        }));
        seen.unwrap_or_else(|panic| {
            eprintln!("it shows:\n{last}");
            std::panic::resume_unwind(panic)
        })
    }

    /// Wait until the shell waits for a command, and see that the terminal is what it was.
    ///
    /// # Panics
    ///
    /// When it is not.
    #[track_caller]
    pub fn until_intact(&self) {
        self.until("the shell waits", |screen| {
            let last = screen.trim_end().lines().last().unwrap_or_default();
            last.trim_end().ends_with(PROMPT)
        });
        assert_eq!(
            self.is("#{alternate_on} #{cursor_flag} #{mouse_any_flag}"),
            "0 1 0"
        );
        assert_eq!(self.settings("after"), self.settings);
    }

    /// How the terminal treats what is typed and printed.
    fn settings(&self, when: &str) -> String {
        let file = self.bench.dir().join(format!("{}.{when}", self.socket));
        self.type_line(&format!(
            "stty -g > '{0}.new'; mv '{0}.new' '{0}'",
            file.display()
        ));
        let told = until_some("stty has told", || fs::read_to_string(&file).ok());
        fs::remove_file(&file).expect("it was there");
        told
    }

    fn tmux<S: AsRef<OsStr>>(&self, words: &[S]) -> String {
        let mut command = self.bench.program("tmux");
        command
            .env_remove("TMUX")
            .env("LC_ALL", "C.UTF-8")
            .env_remove("NO_COLOR")
            .env_remove("COLUMNS")
            .args(["-L", &self.socket, "-f", "/dev/null"])
            .args(words)
            .stdin(Stdio::null());
        let ended = command.output().expect("tmux is there");
        assert!(
            ended.status.success(),
            "{command:?}: {}",
            String::from_utf8_lossy(&ended.stderr)
        );
        String::from_utf8_lossy(&ended.stdout).into_owned()
    }
}

impl Drop for Terminal<'_> {
    fn drop(&mut self) {
        let mut command = self.bench.program("tmux");
        command
            .env_remove("TMUX")
            .args(["-L", &self.socket, "kill-server"])
            .stdin(Stdio::null())
            .stderr(Stdio::null());
        // One that is gone already needs no killing.
        let _ = command.status();
        if !std::thread::panicking() {
            // It is in the bench's census until it has gone.
            until("tmux is gone", || {
                let ours = self.bench.census();
                !ours
                    .iter()
                    .any(|process| process.title.contains(&self.socket))
            });
        }
    }
}
