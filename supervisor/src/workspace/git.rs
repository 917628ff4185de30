//! One call of git: found in `PATH`, with nothing inherited that is about another repository, with nobody to ask, within the time
//! of the operation that it is part of.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::{Read, Seek, Write};
use std::os::fd::AsFd;
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rustix::fs::{MemfdFlags, memfd_create};
use state_machine::record::Exit;

use super::{Chore, Hands, Trouble, Workspace};
use crate::clock::since_boot;
use crate::error::DiskError;
use crate::process::{self, Outcome, Ran, Work};

/// What holds for every call. Nothing is started that outlives it, and nothing of the repository's owner runs that could ask,
/// write elsewhere or take as long as it likes: what is to happen at a cut or a reset is said by the pool.
const SETTINGS: [&str; 8] = [
    "gc.auto=0",
    "maintenance.auto=false",
    "core.fsmonitor=false",
    "core.hooksPath=/dev/null",
    "advice.detachedHead=false",
    "submodule.recurse=false",
    "status.renames=false",
    "core.quotePath=false",
];

/// The variable that names directories which git does not go up into when it looks for a repository.
pub(crate) const CEILING: &str = "GIT_CEILING_DIRECTORIES";

/// What a worktree is written with, whoever has it written: a worker, whose own files are for its own eyes only, or a person. Who
/// may come so far at all is settled by the directories above it.
const UMASK: u32 = 0o022;

/// The environment for commands of a pool's owner in a workspace: without what git passes on to hooks, and with git's own
/// maintenance off, which would otherwise go on in the background when the command is done.
pub(crate) fn environment() -> Vec<(OsString, OsString)> {
    process::environment(&[
        ("GIT_CONFIG_COUNT", "4"),
        ("GIT_CONFIG_KEY_0", "gc.auto"),
        ("GIT_CONFIG_VALUE_0", "0"),
        ("GIT_CONFIG_KEY_1", "maintenance.auto"),
        ("GIT_CONFIG_VALUE_1", "false"),
        ("GIT_CONFIG_KEY_2", "gc.autoDetach"),
        ("GIT_CONFIG_VALUE_2", "false"),
        ("GIT_CONFIG_KEY_3", "maintenance.autoDetach"),
        ("GIT_CONFIG_VALUE_3", "false"),
        ("GIT_TERMINAL_PROMPT", "0"),
    ])
}

/// Whether a call only looks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Does {
    /// It takes no lock that it could leave behind.
    Look,
    /// It changes something.
    Change,
}

/// What git said.
#[derive(Debug)]
pub(super) struct Said {
    /// None when a signal ended it.
    pub(super) code: Option<u8>,
    pub(super) output: Vec<u8>,
    pub(super) complaints: String,
}

impl Said {
    pub(super) fn succeeded(&self) -> bool {
        self.code == Some(0)
    }
}

/// The calls of git of one operation.
pub(super) struct Git<'h, 'a> {
    hands: &'h mut Hands<'a>,
    /// When all of them must be done, in time since boot.
    until: Duration,
    /// A directory that git does not look for a repository in, coming from below.
    ceiling: PathBuf,
}

impl Workspace {
    /// The calls of git of one operation on this workspace. Should its `.git` be gone by then, a repository that it happens to be
    /// in is not taken for it.
    pub(super) fn git<'h, 'a>(&self, hands: &'h mut Hands<'a>) -> Git<'h, 'a> {
        let real = self.real_dir();
        Git::new(hands, real.parent().unwrap_or(Path::new("/")))
    }
}

impl<'h, 'a> Git<'h, 'a> {
    pub(super) fn new(hands: &'h mut Hands<'a>, ceiling: &Path) -> Git<'h, 'a> {
        let until = since_boot() + hands.within;
        let ceiling = ceiling.to_owned();
        Git {
            hands,
            until,
            ceiling,
        }
    }

    /// What git prints, run in `dir` with these arguments.
    pub(super) fn read<A: AsRef<OsStr>>(
        &mut self,
        dir: &Path,
        arguments: &[A],
    ) -> Result<Vec<u8>, Trouble> {
        self.checked(dir, Does::Look, arguments, None)
    }

    /// Have git change something.
    pub(super) fn change<A: AsRef<OsStr>>(
        &mut self,
        dir: &Path,
        arguments: &[A],
    ) -> Result<(), Trouble> {
        self.checked(dir, Does::Change, arguments, None).map(drop)
    }

    /// Have git change something with what it reads.
    pub(super) fn change_with<A: AsRef<OsStr>>(
        &mut self,
        dir: &Path,
        arguments: &[A],
        input: &[u8],
    ) -> Result<(), Trouble> {
        self.checked(dir, Does::Change, arguments, Some(input))
            .map(drop)
    }

    fn checked<A: AsRef<OsStr>>(
        &mut self,
        dir: &Path,
        does: Does,
        arguments: &[A],
        input: Option<&[u8]>,
    ) -> Result<Vec<u8>, Trouble> {
        let said = self.call(dir, does, arguments, input, &[])?;
        if said.succeeded() {
            return Ok(said.output);
        }
        Err(Trouble::Git {
            what: verb(arguments),
            said: said.complaints,
        })
    }

    /// Run git, whatever it says.
    pub(super) fn call<A: AsRef<OsStr>>(
        &mut self,
        dir: &Path,
        does: Does,
        arguments: &[A],
        input: Option<&[u8]>,
        variables: &[(&str, &OsStr)],
    ) -> Result<Said, Trouble> {
        let what = || format!("git {}", verb(arguments));
        let mut argv: Vec<OsString> = vec!["git".into()];
        for setting in SETTINGS {
            argv.extend(["-c".into(), setting.into()]);
        }
        argv.extend(arguments.iter().map(|it| it.as_ref().to_owned()));
        let locks = if does == Does::Look { "0" } else { "1" };
        let mut env = process::environment(&[
            ("LC_ALL", "C"),
            ("GIT_TERMINAL_PROMPT", "0"),
            ("GIT_OPTIONAL_LOCKS", locks),
            ("GIT_LITERAL_PATHSPECS", "1"),
            ("GIT_EDITOR", "false"),
        ]);
        env.push((CEILING.into(), (&self.ceiling).into()));
        if does == Does::Look {
            // Of a repository that has only a part of its objects, what is missing is not fetched to look at something.
            env.push(("GIT_NO_LAZY_FETCH".into(), "1".into()));
        }
        for (name, value) in variables {
            env.push((name.into(), value.into()));
        }
        let (mut output, mut complaints) = (scratch(&[])?, scratch(&[])?);
        let input = input.map(scratch).transpose()?;
        let ran = self.run(
            &what(),
            &Work {
                argv: &argv,
                env: &env,
                cwd: dir,
                umask: Some(UMASK),
                stdin: input.as_ref().map(AsFd::as_fd),
                stdout: output.as_fd(),
                stderr: complaints.as_fd(),
                held: self.hands.held,
                timeout: self.until.saturating_sub(since_boot()),
                grace: self.hands.grace,
            },
        )?;
        let (output, complaints) = (contents(&mut output)?, contents(&mut complaints)?);
        let code = match ran.outcome {
            Outcome::Succeeded => Some(0),
            Outcome::Failed { exit } => match (exit, ran.cannot_start) {
                (_, Some(why)) => return Err(Trouble::Lost { what: what(), why }),
                (Some(Exit::Code(code)), None) => Some(code),
                _ => None,
            },
            Outcome::TimedOut => {
                return Err(Trouble::TimedOut {
                    what: what(),
                    limit: self.hands.within,
                });
            }
            Outcome::Stopped => return Err(Trouble::Stopped { what: what() }),
        };
        Ok(Said {
            code,
            output,
            complaints: gist(&complaints, code),
        })
    }

    /// Run a command of the pool in `dir`; its time is its own.
    pub(super) fn chore(
        &mut self,
        what: &'static str,
        dir: &Path,
        chore: &Chore<'_>,
    ) -> Result<Ran, Trouble> {
        let begun = since_boot();
        let (name, value) = chore.mark;
        let mut env = environment();
        env.retain(|(known, _)| known != name);
        env.push((name.into(), value.to_owned()));
        env.push((CEILING.into(), (&self.ceiling).into()));
        let work = Work {
            argv: chore.argv,
            env: &env,
            cwd: dir,
            umask: Some(UMASK),
            stdin: None,
            stdout: chore.log,
            stderr: chore.log,
            held: self.hands.held,
            timeout: chore.timeout,
            grace: self.hands.grace,
        };
        let ran = self.run(what, &work)?;
        self.until += since_boot().saturating_sub(begun);
        if ran.succeeded() {
            Ok(ran)
        } else {
            Err(Trouble::Chore { what, ran })
        }
    }

    fn run(&mut self, what: &str, work: &Work<'_>) -> Result<Ran, Trouble> {
        let ran = self.hands.minder.run(work, self.hands.stop);
        ran.map_err(|error| Trouble::Lost {
            what: what.to_owned(),
            why: error.to_string(),
        })
    }
}

/// The first argument that is no option: `worktree add` says more than `worktree`.
fn verb<A: AsRef<OsStr>>(arguments: &[A]) -> String {
    let mut words = arguments
        .iter()
        .map(|it| it.as_ref().to_string_lossy())
        .filter(|word| !word.starts_with('-'));
    let first = words.next().unwrap_or_default().into_owned();
    match (first.as_str(), words.next()) {
        ("worktree" | "sparse-checkout" | "submodule", Some(second)) => format!("{first} {second}"),
        _ => first,
    }
}

/// The line of its complaints that says what is wrong.
fn gist(complaints: &[u8], code: Option<u8>) -> String {
    let text = String::from_utf8_lossy(complaints);
    let lines = || text.lines().map(str::trim).filter(|line| !line.is_empty());
    let told = ["fatal: ", "error: ", "warning: failed "]
        .iter()
        .find_map(|grave| lines().find(|line| line.starts_with(grave)));
    match (told.or(lines().next()), code) {
        (Some(line), _) => line
            .trim_start_matches("fatal: ")
            .trim_start_matches("error: ")
            .to_owned(),
        (None, Some(code)) => format!("it exited with {code}"),
        (None, None) => "a signal ended it".to_owned(),
    }
}

/// A file without a name that holds `text`, at its beginning.
fn scratch(text: &[u8]) -> Result<File, Trouble> {
    let made = || {
        let mut file = File::from(memfd_create("outlive-git", MemfdFlags::CLOEXEC)?);
        file.write_all(text)?;
        file.rewind()?;
        Ok::<File, std::io::Error>(file)
    };
    made().map_err(|error| DiskError::new("make", Path::new("memfd"), error).into())
}

fn contents(file: &mut File) -> Result<Vec<u8>, Trouble> {
    let mut text = Vec::new();
    let mut read = || {
        file.rewind()?;
        file.read_to_end(&mut text)
    };
    read().map_err(|error| DiskError::new("read", Path::new("memfd"), error))?;
    Ok(text)
}

/// A path as git printed it.
pub(super) fn path_of(bytes: &[u8]) -> PathBuf {
    OsString::from_vec(bytes.to_vec()).into()
}
