use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;

use super::*;
use crate::process::testing::until;
use crate::store::{Job, JobSpec};

struct Room {
    _dir: tempfile::TempDir,
    store: Store,
}

impl Room {
    fn new() -> Room {
        let dir = tempfile::tempdir().unwrap();
        let store = Store::open(dir.path().join("store")).unwrap();
        Room { _dir: dir, store }
    }

    /// A job that was stopped before it ran.
    fn ended(&self) -> Job {
        let job = self.store.create(JobSpec::command(["true"])).unwrap();
        job.stop(None).unwrap();
        job
    }

    fn findings(&self) -> Vec<(Severity, String)> {
        let findings = examine(&self.store).findings;
        findings
            .into_iter()
            .map(|finding| (finding.severity, finding.what))
            .collect()
    }

    /// That there is exactly one finding, as bad as this, that says this.
    fn says(&self, severity: Severity, part: &str) {
        let findings = self.findings();
        assert!(
            matches!(&findings[..], [(is, what)] if *is == severity && what.contains(part)),
            "{part}: {findings:?}"
        );
    }

    fn fix(&self) {
        mend(&self.store, examine(&self.store));
    }

    /// Everything that was set aside, by the path that it had in the store.
    fn set_aside(&self, path: &Path) -> Vec<PathBuf> {
        let inside = path.strip_prefix(self.store.root()).unwrap();
        let broken = self.store.root().join("broken");
        let runs = std::fs::read_dir(broken).into_iter().flatten();
        runs.map(|run| run.unwrap().path().join(inside))
            .filter(|path| path.symlink_metadata().is_ok())
            .collect()
    }
}

fn write(job: &Job, file: &str, text: &str) {
    let path = job.dir().join(file);
    std::fs::write(&path, text).unwrap();
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o600)).unwrap();
}

#[test]
fn a_sound_store_has_nothing_to_say() {
    let room = Room::new();
    room.ended();
    assert_eq!(room.findings(), []);
}

#[test]
fn a_job_with_a_record_that_cannot_be_read_is_set_aside_as_it_is() {
    for file in ["job.json", "status.json"] {
        let room = Room::new();
        let other = room.ended();
        let job = room.ended();
        write(&job, file, "\0\0\0");
        room.says(Severity::Problem, file);
        assert_eq!(std::fs::read(job.dir().join(file)).unwrap(), b"\0\0\0");
        room.fix();
        room.says(Severity::Note, "set aside");
        let moved = room.set_aside(&job.dir().join(file));
        assert_eq!(moved.len(), 1);
        assert_eq!(std::fs::read(&moved[0]).unwrap(), b"\0\0\0");
        assert!(!job.dir().exists() && other.look().is_ok());
    }
}

#[test]
fn a_job_that_is_held_is_not_set_aside() {
    let room = Room::new();
    let job = room.store.create(JobSpec::command(["true"])).unwrap();
    let held = job.hold().unwrap().unwrap();
    write(&job, "job.json", "{");
    room.fix();
    room.says(Severity::Problem, "job.json cannot be read");
    let advice = &examine(&room.store).findings[0].advice;
    assert!(advice.contains("once nobody holds it"), "{advice}");
    drop(held);
    // A child of another test may have the lock for a moment longer.
    until("it is set aside", || {
        room.fix();
        !job.dir().exists()
    });
    room.says(Severity::Note, "set aside");
}

#[test]
fn a_job_under_a_wrong_name_gets_its_own_back() {
    let room = Room::new();
    let job = room.ended();
    let other = job.dir().with_file_name("1-other");
    std::fs::rename(job.dir(), &other).unwrap();
    room.says(Severity::Problem, job.id().as_str());
    room.fix();
    assert_eq!(room.findings(), []);
    assert!(job.look().is_ok() && !other.exists());
}

#[test]
fn an_impossible_history_is_begun_anew_from_the_record() {
    let room = Room::new();
    let job = room.ended();
    let events = job.dir().join("events.jsonl");
    let line = "{\"at_ms\":9,\"event\":\"state\",\"state\":\"running\"}\n";
    let text = std::fs::read_to_string(&events).unwrap() + line;
    write(&job, "events.jsonl", &text);
    let findings = room.findings();
    assert!(
        findings.contains(&(
            Severity::Problem,
            "its history goes from cancelled to running, which no job can".into()
        )),
        "{findings:?}"
    );
    room.fix();
    room.says(Severity::Note, "set aside");
    let moved = room.set_aside(&events);
    assert_eq!(std::fs::read_to_string(&moved[0]).unwrap(), text);
    let history = job.raw_history().unwrap();
    let states: Vec<String> = history.states().map(|state| state.to_string()).collect();
    assert_eq!(states, ["queued", "cancelled"]);
}

#[test]
fn a_history_without_the_end_is_mended() {
    let room = Room::new();
    let job = room.ended();
    let text = std::fs::read_to_string(job.dir().join("events.jsonl")).unwrap();
    let first = text.lines().next().unwrap();
    write(&job, "events.jsonl", &format!("{first}\nrubbish\n{{\"at"));
    let findings = room.findings();
    assert!(findings.iter().all(|(is, _)| *is == Severity::Note) && findings.len() == 2);
    room.fix();
    // The rubbish stays, passed over.
    room.says(Severity::Note, "cannot be read");
}

#[test]
fn modes_are_mended_and_strange_files_are_named() {
    let room = Room::new();
    let job = room.ended();
    let open = |path: &std::path::Path| {
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o755)).unwrap();
    };
    open(&job.dir());
    open(&job.dir().join("job.json"));
    assert_eq!(room.findings().len(), 2);
    room.fix();
    assert_eq!(room.findings(), []);
    write(&job, "notes", "x");
    room.says(Severity::Note, "notes");
}

#[test]
fn what_crashes_left_is_collected() {
    let room = Room::new();
    let root = room.store.root().to_owned();
    std::fs::create_dir(root.join("staging/1-2-3")).unwrap();
    std::fs::create_dir(root.join("trash/4-5-6")).unwrap();
    std::fs::write(root.join("trash/4-5-6/log"), "x").unwrap();
    assert_eq!(room.findings().len(), 2);
    room.fix();
    assert_eq!(room.findings(), []);
    assert!(!root.join("staging/1-2-3").exists() && !root.join("trash/4-5-6").exists());
}

#[test]
fn a_request_that_nobody_answered_is_answered() {
    let room = Room::new();
    let job = room.store.create(JobSpec::command(["true"])).unwrap();
    write(&job, "control", "cancel\n");
    let findings = room.findings();
    assert!(
        findings
            .iter()
            .any(|(_, what)| what.contains("not answered"))
    );
    room.fix();
    assert_eq!(room.findings(), []);
    assert_eq!(
        job.look().unwrap().state,
        state_machine::job::State::Cancelled
    );
}

#[test]
fn a_process_without_anybody_responsible_is_a_problem() {
    let room = Room::new();
    let job = room.ended();
    let mut child = std::process::Command::new("sleep")
        .arg("600")
        .env("OUTLIVE_JOB_DIR", job.dir())
        .spawn()
        .unwrap();
    let deadline = std::time::Instant::now() + std::time::Duration::from_secs(20);
    // Just forked, it may still have the environment of this process.
    let found = loop {
        let findings = room.findings();
        if !findings.is_empty() || std::time::Instant::now() > deadline {
            break findings;
        }
    };
    child.kill().unwrap();
    child.wait().unwrap();
    assert!(
        matches!(&found[..], [(Severity::Problem, what)] if what.contains("sleep")),
        "{found:?}"
    );
}

#[test]
fn what_is_laid_in_is_known_and_what_is_put_there_is_not() {
    let room = Room::new();
    room.store.lay_in().unwrap();
    assert_eq!(room.findings(), []);
    let spares = room.store.root().join("spares");
    std::fs::create_dir(spares.join("notes")).unwrap();
    room.says(Severity::Note, "spares/notes is nothing of ours");
    std::fs::remove_dir(spares.join("notes")).unwrap();
    std::fs::write(spares.join("0/notes"), "").unwrap();
    room.says(Severity::Note, "spares/0: notes is no file of a job");
    std::fs::remove_file(spares.join("0/notes")).unwrap();
    let open = std::fs::Permissions::from_mode(0o644);
    std::fs::set_permissions(spares.join("0/job.json"), open).unwrap();
    room.says(Severity::Problem, "spares/0: job.json has mode 0644");
    room.fix();
    assert_eq!(room.findings(), []);
}

#[test]
fn what_could_not_be_mended_is_said_once_however_often_it_was_tried() {
    let room = Room::new();
    let job = room.store.create(JobSpec::command(["true"])).unwrap();
    let held = job.hold().unwrap().unwrap();
    write(&job, "job.json", "{");
    // Something else is mended, and so both are tried again.
    std::fs::remove_dir(room.store.root().join("trash")).unwrap();
    let mended = mend(&room.store, examine(&room.store));
    assert_eq!(mended.mended.len(), 1);
    let advice = &mended.left.findings[0].advice;
    assert_eq!(
        advice.matches("cannot be mended now").count(),
        1,
        "{advice}"
    );
    drop(held);
}

#[test]
fn a_part_that_cannot_be_looked_at_hides_nothing_of_the_others() {
    let room = Room::new();
    let inside = |path: &str| room.store.root().join(path);
    for pool in ["a", "b"] {
        let pool = inside(&format!("pools/{pool}"));
        std::fs::create_dir_all(&pool).unwrap();
        std::fs::set_permissions(&pool, std::fs::Permissions::from_mode(0o700)).unwrap();
        std::fs::write(pool.join("pool.json"), "rubbish").unwrap();
    }
    // Where this leads nobody knows, root neither.
    std::os::unix::fs::symlink("slots", inside("pools/a/slots")).unwrap();
    let garbage = inside("sessions/a-0123456789abcdef0123456789abcdef.json");
    std::fs::write(garbage, "rubbish").unwrap();
    let kinds_of = |prefix: &str| {
        let prefix = inside(prefix);
        let findings = examine(&room.store).findings.into_iter();
        let here = findings.filter(|finding| {
            let path = finding.path.as_ref();
            path.is_some_and(|path| path.starts_with(&prefix))
        });
        let mut kinds: Vec<_> = here.map(|finding| finding.kind.word).collect();
        kinds.sort_unstable();
        kinds
    };
    assert_eq!(kinds_of("pools/a"), ["mode", "pool-garbage", "unreadable"]);
    assert_eq!(kinds_of("pools/b"), ["mode", "pool-garbage"]);
    assert_eq!(kinds_of("sessions"), ["mode", "session-garbage"]);
    // Not even which jobs there are.
    std::fs::rename(inside("jobs"), inside("away")).unwrap();
    std::os::unix::fs::symlink("jobs", inside("jobs")).unwrap();
    assert_eq!(kinds_of("pools/b"), ["mode", "pool-garbage"]);
}
