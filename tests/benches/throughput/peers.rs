//! The other tools, each as its own documentation says how many jobs are run two at a time. What one starts in the background
//! is ended before it is left.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// How often one looks whether all is done, where a tool has nothing to wait with.
const LOOK: Duration = Duration::from_millis(5);
/// How long anything may take.
const LIMIT: Duration = Duration::from_secs(300);

/// Two queues, as one of `nq` runs one job at a time.
pub(crate) fn nq(dir: &Path, jobs: usize) -> Option<Duration> {
    is_installed("nq").then(|| {
        let lanes = ["a", "b"].map(|lane| dir.join(lane));
        let began = Instant::now();
        for job in 0..jobs {
            let queued = quiet("nq")
                .arg("true")
                .env("NQDIR", &lanes[job % 2])
                .status();
            assert!(queued.is_ok_and(|status| status.success()));
        }
        for lane in &lanes {
            let waited = quiet("nq").arg("-w").env("NQDIR", lane).status();
            assert!(waited.is_ok());
        }
        began.elapsed()
    })
}

/// One process that starts all, and notes each in a file.
pub(crate) fn parallel(dir: &Path, jobs: usize) -> Option<Duration> {
    is_installed("parallel").then(|| {
        let numbers = dir.join("numbers");
        fs::write(&numbers, "1\n".repeat(jobs)).expect("a file can be written");
        let began = Instant::now();
        let ran = quiet("parallel")
            .args(["-j2", "--will-cite", "-N0", "--joblog"])
            .arg(dir.join("log"))
            .arg("true")
            .arg("::::")
            .arg(&numbers)
            .env("HOME", dir)
            .status();
        assert!(ran.is_ok_and(|status| status.success()));
        began.elapsed()
    })
}

/// Its server is started by its first client, and keeps in memory what it knows.
pub(crate) fn task_spooler(dir: &Path, jobs: usize) -> Option<Duration> {
    is_installed("tsp").then(|| {
        let tsp = |arguments: &[&str]| {
            let mut command = quiet("tsp");
            command
                .args(arguments)
                .env("TS_SOCKET", dir.join("socket"))
                .env("TMPDIR", dir)
                .env("TS_MAXFINISHED", (2 * jobs).to_string());
            command
        };
        let is_done = |line: &str| line.contains(" finished ");
        ran(tsp(&["-S", "2"]));
        let began = Instant::now();
        for _ in 0..jobs {
            ran(tsp(&["true"]));
        }
        until(|| {
            let list = tsp(&["-l"]).stdout(Stdio::piped()).output();
            let list = list.expect("it lists").stdout;
            let list = String::from_utf8_lossy(&list);
            list.lines().filter(|line| is_done(line)).count() == jobs
        });
        let took = began.elapsed();
        ran(tsp(&["-K"]));
        took
    })
}

/// Its server is started here, and writes down what it knows each time that something changes.
pub(crate) fn pueue(dir: &Path, jobs: usize) -> Option<Duration> {
    (is_installed("pueue") && is_installed("pueued")).then(|| {
        let config = dir.join("pueue.yml");
        let shown = dir.display();
        let text = format!(
            "shared:\n  pueue_directory: {shown}/state\n  runtime_directory: {shown}/run\n  \
             use_unix_socket: true\nclient: {{}}\ndaemon: {{}}\n"
        );
        fs::write(&config, text).expect("a file can be written");
        for part in ["state", "run"] {
            fs::create_dir(dir.join(part)).expect("a directory can be made");
        }
        let pueue = |arguments: &[&str]| {
            let mut command = quiet("pueue");
            command.arg("-c").arg(&config).args(arguments);
            command.env("HOME", dir);
            command
        };
        let server = quiet("pueued")
            .arg("-c")
            .arg(&config)
            .env("HOME", dir)
            .spawn();
        let mut server = Server(server.expect("the server can be executed"));
        until(|| {
            pueue(&["status"])
                .status()
                .is_ok_and(|status| status.success())
        });
        ran(pueue(&["parallel", "2"]));
        let began = Instant::now();
        for _ in 0..jobs {
            ran(pueue(&["add", "--escape", "--", "true"]));
        }
        until(|| {
            let state = fs::read_to_string(dir.join("state/state.json"));
            state.is_ok_and(|state| state.matches(r#""Success""#).count() == jobs)
        });
        let took = began.elapsed();
        ran(pueue(&["shutdown"]));
        // It has been told to end.
        let _ = server.0.wait();
        took
    })
}

/// A server that does not outlive its run, whatever happens.
struct Server(Child);

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn ran(mut command: Command) {
    let status = command.status();
    assert!(status.is_ok_and(|status| status.success()), "{command:?}");
}

fn until(mut is_so: impl FnMut() -> bool) {
    let deadline = Instant::now() + LIMIT;
    while !is_so() {
        assert!(Instant::now() < deadline, "it is not done in time");
        std::thread::sleep(LOOK);
    }
}

fn quiet(program: &str) -> Command {
    let mut command = Command::new(program);
    command
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    command
}

fn is_installed(program: &str) -> bool {
    let path: PathBuf = std::env::var_os("PATH").unwrap_or_default().into();
    std::env::split_paths(&path).any(|dir| dir.join(program).is_file())
}
