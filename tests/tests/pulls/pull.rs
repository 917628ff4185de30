//! What the tests of pulls share: starting one, and what is left of it.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use outlive_tests::{Bench, Job, Ran, Served, Server, until};
use serde_json::Value;

/// A pull that is waited for.
pub(crate) fn pull(bench: &Bench, reference: &str, options: &[&str]) -> Ran {
    pull_with(bench, &[], reference, options)
}

/// The same, with this in its environment.
pub(crate) fn pull_with(
    bench: &Bench,
    environment: &[(&str, String)],
    reference: &str,
    options: &[&str],
) -> Ran {
    let mut command = bench.verb(["pull", reference, "--wait", "--backoff", "10ms"]);
    command.args(options).envs(environment.iter().cloned());
    bench.end(command)
}

/// A pull that goes on in the background.
pub(crate) fn begin<'a>(bench: &'a Bench, reference: &str, options: &[&str]) -> Job<'a> {
    begin_with(bench, &[], reference, options)
}

/// The same, with this in its environment.
pub(crate) fn begin_with<'a>(
    bench: &'a Bench,
    environment: &[(&str, String)],
    reference: &str,
    options: &[&str],
) -> Job<'a> {
    let mut command = bench.verb(["pull", reference, "--backoff", "10ms"]);
    command.args(options).envs(environment.iter().cloned());
    let id = bench.end(command).expect(0).text();
    bench.job(id.trim())
}

/// The only job there is.
pub(crate) fn only_job(bench: &Bench) -> Job<'_> {
    let mut jobs = bench.jobs();
    assert_eq!(jobs.len(), 1, "there is one job");
    jobs.remove(0)
}

/// Nothing of a transfer is left beside what it fetched.
#[track_caller]
pub(crate) fn nothing_is_left(dir: &Path) {
    let left: Vec<PathBuf> = fs::read_dir(dir)
        .into_iter()
        .flatten()
        .flatten()
        .map(|entry| entry.path())
        .filter(|path| path.to_string_lossy().contains("outlive-part"))
        .collect();
    assert_eq!(left, Vec::<PathBuf>::new());
}

/// The entries of a staging directory with this ending.
pub(crate) fn staged(dir: &Path, ending: &str) -> Vec<PathBuf> {
    fs::read_dir(dir)
        .into_iter()
        .flatten()
        .flatten()
        .map(|entry| entry.path())
        .filter(|path| path.to_string_lossy().ends_with(ending))
        .collect()
}

/// A number of the account of a job.
pub(crate) fn account(job: &Job<'_>, what: &str) -> u64 {
    job.shown()["account"][what].as_u64().unwrap_or(0)
}

/// The notes in a job's history.
pub(crate) fn notes(job: &Job<'_>) -> Vec<String> {
    job.events()
        .iter()
        .filter(|event| event["event"] == "status")
        .filter_map(|event| event["text"].as_str().map(str::to_owned))
        .collect()
}

/// The progress never went beyond what there is in all.
#[track_caller]
pub(crate) fn progress_is_whole(job: &Job<'_>, length: usize) {
    let progress: Value = job.shown()["progress"].clone();
    assert_eq!(progress["done_bytes"], length, "{progress}");
    assert_eq!(progress["total_bytes"], length, "{progress}");
}

/// A server that gives a third of its file and falls silent, until it is asked often enough.
pub(crate) fn halting(file: Served, silences: usize) -> Server {
    let third = file.bytes.len() as u64 / 3;
    Server::new(move |request, reply| {
        if request.nth < silences {
            file.serve_some(request, reply, third);
            reply.fall_silent();
        } else {
            file.serve(request, reply);
        }
    })
}

/// Follow a transfer to its end, and see that the whole never changes once it is known, and that nothing goes beyond it.
#[track_caller]
pub(crate) fn progress_is_sound(job: &Job<'_>, length: usize) {
    let mut last_done = 0;
    until("it has ended", || {
        let status = job.status().unwrap_or_default();
        let progress = &status["progress"];
        let done = progress["done_bytes"].as_u64().unwrap_or(0);
        let total = progress["total_bytes"].as_u64();
        assert!(
            total.is_none_or(|total| total == length as u64),
            "{progress}"
        );
        assert!(
            last_done <= done && done <= length as u64,
            "{last_done} then {progress}"
        );
        last_done = done;
        status["state"] == "done"
    });
    progress_is_whole(job, length);
}

/// A server that gives half of its file, and the other half when it is told to.
pub(crate) fn holding(file: Served) -> (Server, Arc<AtomicBool>) {
    let go = Arc::new(AtomicBool::new(false));
    let told = go.clone();
    let server = Server::new(move |request, reply| {
        let (status, headers, body) = file.honest(request);
        let length = body.len().to_string();
        let mut all = vec![("Content-Length", length.as_str())];
        all.extend(headers.iter().map(|it| (it.0.as_str(), it.1.as_str())));
        reply.head(status, &all);
        let (first, rest) = body.split_at(body.len() / 2);
        reply.body(first);
        until("the server may go on", || told.load(Ordering::Relaxed));
        reply.body(rest);
    });
    (server, go)
}

/// Wait until so much of `file.bin` has arrived.
pub(crate) fn until_arrived(bench: &Bench, bytes: u64) {
    until_arrived_in(&bench.work().join("file.bin.outlive-part"), bytes);
}

/// Wait until so much of a file has arrived in this staging directory.
pub(crate) fn until_arrived_in(staging: &Path, bytes: u64) {
    until("as much has arrived", || {
        let parts = staged(staging, ".part");
        parts
            .first()
            .is_some_and(|part| fs::metadata(part).is_ok_and(|found| found.len() == bytes))
    });
}
