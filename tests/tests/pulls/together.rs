//! Several who want the same at once: it is fetched once where that can be told, and never by two into one file.

use std::fs;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use outlive_tests::{Bench, Hub, Repo, Served, Server, bench, digest_of, until};

use super::pull::{account, begin, begin_with, nothing_is_left, pull};

const LENGTH: usize = 3_000_000;

/// A server that answers nobody before it is told to.
fn waiting(file: Served) -> (Server, Arc<AtomicBool>) {
    let go = Arc::new(AtomicBool::new(false));
    let told = go.clone();
    let server = Server::new(move |request, reply| {
        until("the server may answer", || told.load(Ordering::Relaxed));
        file.serve(request, reply);
    });
    (server, go)
}

/// P08: asked for by many in the same moment it is one job, and after a failure the next is not kept from starting.
#[test]
fn asked_for_at_once_it_is_fetched_once() {
    let bench = bench!();
    let file = Served::of_length(LENGTH, 70);
    let bytes = file.bytes.clone();
    let (server, go) = waiting(file);
    let url = server.url("/file.bin");
    let all: Vec<_> = (0..6)
        .map(|_| bench.background(bench.verb(["pull", &url])))
        .collect();
    let ids: Vec<String> = all
        .into_iter()
        .map(|it| it.end().expect(0).text())
        .collect();
    assert!(ids.iter().all(|id| *id == ids[0]), "{ids:?}");
    assert_eq!(bench.jobs().len(), 1);
    go.store(true, Ordering::Relaxed);
    assert_eq!(bench.job(&ids[0]).wait(), 0);
    assert!(fs::read(bench.file("file.bin")).unwrap() == *bytes);
    // It counts what it has sent a little later than that arrives.
    until("the server has counted it", || {
        server.sent() == LENGTH as u64
    });
    nothing_is_left(&bench.work());
    bench.audit();
}

/// P08: after a failure the next start is not kept out.
#[test]
fn a_failure_keeps_nobody_out() {
    let bench = bench!();
    let file = Served::of_length(1000, 71);
    let server = Server::new(move |request, reply| match request.nth {
        0 => reply.answer(404, &[], b"no"),
        _ => file.serve(request, reply),
    });
    pull(&bench, &server.url("/file.bin"), &[]).expect(1);
    pull(&bench, &server.url("/file.bin"), &[]).expect(0);
    assert_eq!(bench.jobs().len(), 2);
    bench.audit();
}

/// P10: two stores know nothing of each other. One of their workers waits for the other; what has a digest is then there already,
/// and what has none is fetched anew.
#[test]
fn two_stores_do_not_write_into_one_file() {
    for has_digest in [true, false] {
        let (one, other): (Bench, Bench) = (bench!(), bench!());
        let file = Served::of_length(LENGTH, 72);
        let bytes = file.bytes.clone();
        let digest = digest_of(&bytes).replace("sha256:", "");
        let (server, go) = waiting(file);
        let url = server.url("/file.bin");
        let to = one.file("file.bin");
        let mut options = vec!["--to", to.to_str().unwrap()];
        if has_digest {
            options.extend(["--sha256", &digest]);
        }
        let first = begin(&one, &url, &options);
        until("it was asked for", || server.asked().len() == 1);
        let second = begin(&other, &url, &options);
        until("the other waits", || {
            let status = second.status().unwrap_or_default();
            let line = status["status_line"].as_str().unwrap_or_default();
            line.contains("another transfer")
        });
        go.store(true, Ordering::Relaxed);
        assert_eq!((first.wait(), second.wait()), (0, 0));
        assert!(fs::read(&to).unwrap() == *bytes);
        let times = if has_digest { 1 } else { 2 };
        assert_eq!(server.asked().len(), times);
        let reused = if has_digest { LENGTH as u64 } else { 0 };
        assert_eq!(account(&second, "reused_bytes"), reused);
        nothing_is_left(&one.work());
        one.audit();
        other.audit();
    }
}

/// P43: the same repository with other patterns is something else, and nobody is given the wrong job.
#[test]
fn other_patterns_are_not_joined() {
    let bench = bench!();
    let bytes = |number| Served::of_length(5_000, number).bytes.to_vec();
    let mut repo = Repo::new(
        "models/owner/name",
        &[("a.txt", bytes(1)), ("b.txt", bytes(2))],
    );
    let of_files = format!("/owner/name/resolve/{}/", repo.commit);
    repo.refusals.push((of_files, 503, String::new()));
    let hub = Hub::new(repo);
    let environment = [("HF_ENDPOINT", hub.endpoint()), ("HF_TOKEN", "x".into())];
    let ask = |pattern: &str| {
        let mut command = bench.verb(["pull", "hf:owner/name", "--include", pattern]);
        command.envs(environment.iter().cloned());
        bench.end(command)
    };
    let options = ["--include", "a*", "--retry", "50"];
    let job = begin_with(&bench, &environment, "hf:owner/name", &options);
    until("it was asked for", || {
        hub.api
            .asked()
            .iter()
            .any(|it| it.path.contains("/resolve/"))
    });
    let refused = ask("b*").expect(6);
    assert!(refused.errors().contains(job.id()), "{}", refused.errors());
    assert_eq!(ask("a*").expect(0).text(), job.id());
    assert_eq!(bench.jobs().len(), 1);
    hub.repo().refusals.clear();
    assert_eq!(job.wait(), 0);
    assert!(bench.file("name/a.txt").exists() && !bench.file("name/b.txt").exists());
    bench.audit();
}
