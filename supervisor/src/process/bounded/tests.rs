use std::fs::{File, OpenOptions};
use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;

use super::*;
use crate::process::testing::{alone, alone_with, fork_off, until, words};

/// A directory with an artifact, and what a command is run with.
struct Scene {
    dir: tempfile::TempDir,
    env: Vec<(OsString, OsString)>,
    timeout: Duration,
    grace: Duration,
}

impl Scene {
    fn new() -> Scene {
        let dir = tempfile::tempdir().unwrap();
        let mark = dir.path().display().to_string();
        Scene {
            env: environment(&[("OUTLIVE_TEST_MARK", &mark)]),
            dir,
            timeout: Duration::from_secs(60),
            grace: Duration::from_secs(60),
        }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    fn artifact(&self) -> File {
        let mut options = OpenOptions::new();
        let options = options.create(true).append(true);
        options.open(self.path("artifact")).unwrap()
    }

    fn written(&self) -> String {
        std::fs::read_to_string(self.path("artifact")).unwrap()
    }

    /// Whether a process lives that was started with the mark of this scene.
    fn has_processes(&self) -> bool {
        let mark = format!("OUTLIVE_TEST_MARK={}", self.dir.path().display());
        crate::process::proc::all()
            .into_iter()
            .any(|pid| crate::process::proc::has_in_environment(pid, mark.as_bytes()) == Some(true))
    }

    fn run(&self, argv: &[&str]) -> io::Result<Ran> {
        self.run_until(argv, None, None)
    }

    fn shell(&self, script: &str) -> Ran {
        self.run(&["sh", "-c", script]).unwrap()
    }

    fn run_until(
        &self,
        argv: &[&str],
        stop: Option<BorrowedFd<'_>>,
        held: Option<&File>,
    ) -> io::Result<Ran> {
        let mut minder = Minder::fork()?;
        self.run_by(&mut minder, argv, stop, held)
    }

    fn run_by(
        &self,
        minder: &mut Minder,
        argv: &[&str],
        stop: Option<BorrowedFd<'_>>,
        held: Option<&File>,
    ) -> io::Result<Ran> {
        let artifact = self.artifact();
        let work = Work {
            argv: &words(argv),
            env: &self.env,
            cwd: self.dir.path(),
            umask: None,
            stdin: None,
            stdout: artifact.as_fd(),
            stderr: artifact.as_fd(),
            held: held.map(AsFd::as_fd),
            timeout: self.timeout,
            grace: self.grace,
        };
        minder.run(&work, stop)
    }
}

#[test]
fn both_streams_are_kept_as_they_came() {
    alone(|| {
        let scene = Scene::new();
        let ran = scene.shell("pwd; echo complaint >&2; echo more; cat");
        assert!(ran.succeeded());
        assert_eq!((ran.leftovers, ran.cannot_start), (None, None));
        let expected = format!("{}\ncomplaint\nmore\n", scene.dir.path().display());
        assert_eq!(scene.written(), expected);
    });
}

#[test]
fn a_minder_runs_one_command_after_the_other() {
    alone(|| {
        let scene = Scene::new();
        let mut minder = Minder::fork().unwrap();
        for (script, exit) in [
            ("exit 3", Some(Exit::Code(3))),
            ("kill -9 $$", Some(Exit::Signal(9))),
            ("exit 255", Some(Exit::Code(255))),
        ] {
            let ran = scene.run_by(&mut minder, &["sh", "-c", script], None, None);
            assert_eq!(ran.unwrap().outcome, Outcome::Failed { exit });
        }
    });
}

/// Arguments, variables and descriptors arrive byte for byte, however large they are.
#[test]
fn a_large_command_arrives_whole() {
    alone(|| {
        let mut scene = Scene::new();
        scene.env.push(("EMPTY".into(), "".into()));
        scene
            .env
            .push(("LONG".into(), "x=y\n".repeat(20_000).into()));
        let long = "a\nb ".repeat(25_000);
        let script = r#"printf '%s:%s:%s:%s' "${#1}" "$2" "${#LONG}" "${EMPTY-unset}""#;
        let ran = scene.run(&["sh", "-c", script, "sh", &long, "\u{fffd} \t"]);
        assert_eq!(ran.unwrap().outcome, Outcome::Succeeded);
        assert_eq!(scene.written(), "100000:\u{fffd} \t:80000:");
        assert!(scene.run(&["echo", "a\0b"]).is_err());
    });
}

/// S21: what is left in the background is no reason to wait, and is not left either.
#[test]
fn what_a_command_leaves_behind_is_ended_and_noted() {
    alone(|| {
        let scene = Scene::new();
        let ran = scene.shell("sleep 600 & setsid sleep 600 & echo written; exit 0");
        assert_eq!(ran.outcome, Outcome::Succeeded);
        assert!(ran.leftovers.is_some());
        assert_eq!(scene.written(), "written\n");
        assert!(!scene.has_processes());
    });
}

/// S23: the whole tree goes, whatever it does about SIGTERM and whichever session its members moved to.
#[test]
fn a_command_that_takes_too_long_leaves_nothing() {
    alone(|| {
        let mut scene = Scene::new();
        scene.timeout = Duration::from_secs(2);
        scene.grace = Duration::from_millis(200);
        let ran = scene.shell(
            "trap '' TERM; echo begun; (sleep 600 & setsid sh -c 'sleep 600 & sleep 600' & sleep 600); wait",
        );
        assert_eq!(ran.outcome, Outcome::TimedOut);
        assert!(ran.duration_ms >= 2000);
        // The shell may still say that a child was killed before it is killed itself.
        assert!(scene.written().starts_with("begun\n"));
        assert!(!scene.has_processes());
    });
}

/// The grace is there for a handler to use.
#[test]
fn a_command_may_clean_up_after_its_time() {
    alone(|| {
        let mut scene = Scene::new();
        scene.timeout = Duration::from_secs(2);
        let ran = scene.shell("trap 'echo cleaned; exit 0' TERM; sleep 600 & wait");
        assert_eq!(ran.outcome, Outcome::TimedOut);
        assert_eq!(scene.written(), "cleaned\n");
    });
}

#[test]
fn one_that_cannot_be_started_has_failed_and_its_artifact_says_why() {
    alone(|| {
        let mut scene = Scene::new();
        let ran = scene.run(&["outlive-no-such-program"]).unwrap();
        assert_eq!(ran.outcome, Outcome::Failed { exit: None });
        let why = "command not found: outlive-no-such-program";
        assert_eq!(ran.cannot_start.as_deref(), Some(why));
        assert_eq!(scene.written(), format!("outlive: {why}\n"));
        scene.dir = tempfile::tempdir().unwrap();
        let ran = scene.run(&[]).unwrap();
        assert_eq!(ran.outcome, Outcome::Failed { exit: None });
        assert_eq!(scene.written(), "outlive: the command is empty\n");
    });
}

/// S49: whoever is told to stop ends the tree and returns.
#[test]
fn a_stop_ends_the_tree() {
    alone(|| {
        let scene = Scene::new();
        let (told, tell) = UnixStreamPair::new();
        let started = scene.path("started");
        // Told once the command is known to run.
        let teller = fork_off(|| {
            until("it runs", || started.exists());
            tell.say();
        });
        let argv = ["sh", "-c", "setsid sleep 600 & touch started; wait"];
        let ran = scene.run_until(&argv, Some(told.as_fd()), None).unwrap();
        assert_eq!(ran.outcome, Outcome::Stopped);
        assert!(!scene.has_processes());
        rustix::process::waitpid(Some(teller), WaitOptions::empty()).unwrap();
    });
}

/// What tells a caller to stop.
struct UnixStreamPair(std::os::unix::net::UnixStream);

impl UnixStreamPair {
    fn new() -> (std::os::unix::net::UnixStream, UnixStreamPair) {
        let (told, tell) = std::os::unix::net::UnixStream::pair().unwrap();
        (told, UnixStreamPair(tell))
    }

    fn say(&self) {
        sys::send(self.0.as_fd(), b"s").unwrap();
    }
}

fn lock(path: &Path) -> File {
    let options = OpenOptions::new().create(true).append(true).open(path);
    let file = options.unwrap();
    file.try_lock().unwrap();
    file
}

fn is_free(path: &Path) -> bool {
    File::open(path).unwrap().try_lock().is_ok()
}

/// S23, S49: a caller that is killed leaves nothing running, and what it held is free only after that.
#[test]
fn a_killed_caller_leaves_nothing() {
    alone(|| {
        let scene = Scene::new();
        let held = scene.path("held");
        let caller = fork_off(|| {
            let lock = lock(&held);
            // The one that closes all it inherits is the one that goes last.
            let script = "exec 100>&- 20>&-; trap 'sleep 0.2; touch gone; exit' TERM; sleep 600 & touch started; wait; wait";
            let _ = scene.run_until(&["bash", "-c", script], None, Some(&lock));
        });
        until("it runs", || scene.path("started").exists());
        assert!(!is_free(&held));
        sys::kill(caller, nix::libc::SIGKILL).unwrap();
        rustix::process::waitpid(Some(caller), WaitOptions::empty()).unwrap();
        until("the lock is free", || is_free(&held));
        assert!(scene.path("gone").exists());
        assert!(!scene.has_processes());
    });
}

#[test]
fn what_is_held_is_inherited_and_is_free_afterwards() {
    alone(|| {
        let scene = Scene::new();
        let path = scene.path("held");
        let lock = lock(&path);
        let inode = lock.metadata().unwrap().ino();
        let script = format!("stat -Lc %i /proc/self/fd/* | grep -x {inode}");
        let ran = scene.run_until(&["sh", "-c", &script], None, Some(&lock));
        assert_eq!(
            ran.unwrap().outcome,
            Outcome::Succeeded,
            "{}",
            scene.written()
        );
        drop(lock);
        assert!(is_free(&path));
    });
}

/// S15: what a hook of git leaves in the environment is not passed on.
#[test]
fn what_git_leaves_in_the_environment_is_not_passed_on() {
    let env = [
        ("GIT_DIR", "/elsewhere"),
        ("GIT_INDEX_FILE", "/elsewhere"),
        ("GIT_CONFIG_COUNT", "0"),
        ("KEPT", "1"),
        ("REPLACED", "old"),
    ];
    alone_with(&env, || {
        let mut scene = Scene::new();
        scene.env = environment(&[("REPLACED", "new"), ("GIT_TERMINAL_PROMPT", "0")]);
        scene.shell("env | grep -E '^(GIT_|KEPT|REPLACED)' | sort");
        assert_eq!(
            scene.written(),
            "GIT_TERMINAL_PROMPT=0\nKEPT=1\nREPLACED=new\n"
        );
    });
}

#[test]
fn a_minder_that_is_told_to_end_ends_what_it_minds() {
    alone(|| {
        let scene = Scene::new();
        // The minder is the parent of its command.
        let ran = scene.shell("kill -TERM $PPID; sleep 600");
        assert_eq!(ran.outcome, Outcome::Stopped);
        assert!(!scene.has_processes());
    });
}

#[test]
fn a_minder_that_is_lost_is_an_error_and_the_command_goes_with_it() {
    alone(|| {
        let scene = Scene::new();
        let ran = scene.run(&["sh", "-c", "kill -KILL $PPID; exec sleep 600"]);
        assert_eq!(
            ran.unwrap_err().to_string(),
            "what ran the command was lost"
        );
        until("the command is gone", || !scene.has_processes());
    });
}

const BE_A_MINDER: &str = "OUTLIVE_TEST_MINDER";

/// No test, but the program that is executed by the one below: what a test binary executes of itself has threads, and
/// a fork of it has none.
#[test]
fn is_a_minder_if_asked() {
    if std::env::var_os(BE_A_MINDER).is_none() {
        return;
    }
    match sys::fork_beside_idle_main_thread().unwrap() {
        Forked::Child => {
            let _guard = sys::NeverUnwind;
            sys::exit_now(i32::from(serve_on_stdin().is_err()))
        }
        Forked::Parent(pid) => {
            let _ = waitpid(Some(pid), WaitOptions::empty());
        }
    }
}

#[test]
fn a_program_with_threads_executes_a_minder() {
    let mut program = std::process::Command::new(std::env::current_exe().unwrap());
    let name = "process::bounded::tests::is_a_minder_if_asked";
    program.args(["--exact", name]).env(BE_A_MINDER, "1");
    let mut minder = Minder::execute(program).unwrap();
    let scene = Scene::new();
    let argv = ["sh", "-c", "sleep 600 & setsid sleep 600 & echo done"];
    let ran = scene.run_by(&mut minder, &argv, None, None).unwrap();
    assert_eq!(ran.outcome, Outcome::Succeeded);
    assert!(ran.leftovers.is_some());
    assert_eq!(scene.written(), "done\n");
    assert!(!scene.has_processes());
    drop(minder);
}
