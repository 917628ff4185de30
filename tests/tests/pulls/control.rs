//! Pausing, resuming and cancelling in every silence; and what is asked of a transfer that somebody makes already.

use std::fs;
use std::net::{TcpListener, TcpStream};

use outlive::JobSpec;
use outlive_tests::{Hub, Repo, Served, Server, bench, is_ignored, until};
use rustix::process::Signal;

use super::pull::{account, begin, begin_with, halting, nothing_is_left, pull, until_arrived};

#[test]
fn a_pause_in_silence_keeps_what_has_arrived() {
    let bench = bench!();
    let file = Served::of_length(300_000, 20);
    let bytes = file.bytes.clone();
    let server = halting(file, 1);
    let job = begin(&bench, &server.url("/file.bin"), &[]);
    until_arrived(&bench, 100_000);
    bench.run(["pause", job.id()]).expect(0);
    assert_eq!(job.state(), "paused");
    until("a pull that is paused has no worker", || {
        job.worker().is_none()
    });
    assert!(!bench.work().join("file.bin").exists());
    bench.run(["resume", job.id()]).expect(0);
    assert_eq!(job.wait(), 0);
    assert!(fs::read(bench.work().join("file.bin")).unwrap() == *bytes);
    assert!(server.asked()[1].range().is_some(), "it goes on");
    nothing_is_left(&bench.work());
    bench.audit();
}

/// P34, P37: a cancel is obeyed at once, is what is recorded, and nothing is asked after it. What has arrived is kept for whoever
/// asks for the same again.
#[test]
fn a_cancel_in_silence_is_final() {
    let bench = bench!();
    let file = Served::of_length(300_000, 21);
    let bytes = file.bytes.clone();
    let server = halting(file, 1);
    let job = begin(&bench, &server.url("/file.bin"), &[]);
    until_arrived(&bench, 100_000);
    job.stop(0);
    assert_eq!(job.state(), "cancelled");
    assert_eq!(server.asked().len(), 1);
    until_arrived(&bench, 100_000);
    pull(&bench, &server.url("/file.bin"), &[]).expect(0);
    assert!(fs::read(bench.work().join("file.bin")).unwrap() == *bytes);
    let again = bench.jobs().pop().unwrap();
    assert!(account(&again, "reused_bytes") > 0);
    nothing_is_left(&bench.work());
    bench.audit();
}

/// P37: before anything has come.
#[test]
fn a_cancel_while_nobody_answers_is_obeyed() {
    let bench = bench!();
    let server = Server::new(|_, reply| reply.fall_silent());
    let job = begin(&bench, &server.url("/file.bin"), &[]);
    until("it was asked", || server.asked().len() == 1);
    job.stop(0);
    assert_eq!(job.state(), "cancelled");
    bench.audit();
}

/// P37: before anybody has taken it.
#[test]
fn a_cancel_before_it_is_begun_is_obeyed() {
    let bench = bench!();
    let server = Server::new(|_, reply| reply.fall_silent());
    let spec = JobSpec::pull(&server.url("/file.bin"), bench.file("file.bin")).unwrap();
    let id = bench.store().create(spec).unwrap().id().to_string();
    let job = bench.job(&id);
    assert_eq!(job.state(), "queued");
    job.stop(0);
    assert_eq!(job.state(), "cancelled");
    assert_eq!(server.asked().len(), 0);
    bench.audit();
}

/// P37: while a connection is being made that does not come about.
#[test]
fn a_cancel_while_nobody_accepts_is_obeyed() {
    let bench = bench!();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    rustix::net::listen(&listener, 0).unwrap();
    // Whoever comes after this one waits, and is not told so.
    let _first = TcpStream::connect(address).unwrap();
    let job = begin(&bench, &format!("http://{address}/file.bin"), &[]);
    // SYN_SENT, in the words of the kernel.
    let waits = format!(":{:04X} 02 ", address.port());
    until("it connects", || {
        fs::read_to_string("/proc/net/tcp")
            .unwrap()
            .contains(&waits)
    });
    job.stop(0);
    assert_eq!(job.state(), "cancelled");
    bench.audit();
}

/// P37: between two files, while it waits to ask for the next.
#[test]
fn a_cancel_between_two_files_is_obeyed() {
    let bench = bench!();
    let mut repo = Repo::new("models/owner/name", &[("a", vec![1]), ("b", vec![2])]);
    let of_last = format!("/owner/name/resolve/{}/b", repo.commit);
    repo.refusals.push((of_last, 503, String::new()));
    let hub = Hub::new(repo);
    let environment = [("HF_ENDPOINT", hub.endpoint()), ("HF_TOKEN", "x".into())];
    let options = ["--connections", "1", "--retry", "1000"];
    let job = begin_with(&bench, &environment, "hf:owner/name", &options);
    until("it waits for the second file", || {
        account(&job, "retries") > 0
    });
    job.stop(0);
    assert_eq!(job.state(), "cancelled");
    let asked = hub.api.asked().len();
    assert!(
        !bench.file("name/a").exists(),
        "a part of them is not all of them"
    );
    until("its worker is gone", || bench.census().is_empty());
    assert_eq!(hub.api.asked().len(), asked);
    bench.audit();
}

/// P38: what a hook has left running keeps nobody from fetching the same again.
#[test]
fn what_a_hook_has_left_locks_nothing() {
    let bench = bench!();
    let server = halting(Served::of_length(1000, 27), 0);
    let url = server.url("/file.bin");
    for _ in 0..2 {
        pull(&bench, &url, &["--on-end", "setsid sleep 600 & true"]).expect(0);
    }
    assert_eq!(bench.jobs().len(), 2);
    // A worker has let its job go some time before it leaves.
    until("the workers are gone", || bench.workers().is_empty());
    for left in bench.census() {
        assert!(left.title.contains("sleep"), "{left:?}");
        left.kill();
    }
    bench.audit();
}

/// P08, P43: who asks for the same joins, who asks for something else to the same place is told so.
#[test]
fn the_same_is_joined_and_something_else_is_refused() {
    let bench = bench!();
    let server = halting(Served::of_length(300_000, 22), 1);
    let url = server.url("/file.bin");
    let job = begin(&bench, &url, &[]);
    until_arrived(&bench, 100_000);
    let joined = bench.run(["pull", &url]).expect(0);
    assert_eq!(joined.text().trim(), job.id());
    let refused = bench
        .run(["pull", &server.url("/other"), "--to", "file.bin"])
        .expect(6);
    assert!(refused.errors().contains(job.id()), "{}", refused.errors());
    bench.run(["pull", &url, "--if-running", "fail"]).expect(6);
    assert_eq!(bench.jobs().len(), 1);
    let replaced = bench
        .run(["pull", &url, "--if-running", "replace", "--wait"])
        .expect(0);
    assert_ne!(replaced.text().trim(), job.id());
    assert_eq!(job.state(), "cancelled");
    bench.audit();
}

/// P33, P36: every verb says the same of a worker that was killed, and the same pull again is all that is needed.
#[test]
fn a_killed_worker_needs_no_repair() {
    let bench = bench!();
    bench.crashes();
    let file = Served::of_length(300_000, 23);
    let bytes = file.bytes.clone();
    let server = halting(file, 1);
    let job = begin(&bench, &server.url("/file.bin"), &[]);
    until_arrived(&bench, 100_000);
    job.kill_worker();
    assert_eq!(job.state(), "interrupted");
    assert_eq!(bench.list()[0]["state"], "interrupted");
    assert_eq!(job.wait(), 75);
    let again = bench
        .run(["pull", &server.url("/file.bin"), "--wait"])
        .expect(0);
    assert_eq!(
        again.text().trim(),
        job.id(),
        "it is the same job that goes on"
    );
    assert!(fs::read(bench.work().join("file.bin")).unwrap() == *bytes);
    let interrupted = |states: &[String]| states.iter().filter(|it| *it == "interrupted").count();
    assert_eq!(interrupted(&job.states()), 1, "written down once");
    bench.audit();
}

/// P13: what a cancelled transfer has left is removed with it.
#[test]
fn what_is_cleaned_leaves_nothing() {
    let bench = bench!();
    let server = halting(Served::of_length(300_000, 24), 1);
    let job = begin(&bench, &server.url("/file.bin"), &[]);
    until_arrived(&bench, 100_000);
    job.stop(0);
    until("its worker is gone", || job.worker().is_none());
    bench.run(["clean", job.id()]).expect(0);
    assert_eq!(bench.jobs().len(), 0);
    nothing_is_left(&bench.work());
    bench.audit();
}

/// P13: nor where who cleaned was killed when the job was in the trash already.
#[test]
fn what_a_killed_cleaning_has_left_is_removed_by_the_next() {
    let bench = bench!();
    let server = halting(Served::of_length(300_000, 24), 1);
    let job = begin(&bench, &server.url("/file.bin"), &[]);
    until_arrived(&bench, 100_000);
    job.stop(0);
    until("its worker is gone", || job.worker().is_none());
    let trash = job.dir().parent().unwrap().with_file_name("trash");
    fs::rename(job.dir(), trash.join("t")).unwrap();
    bench.run(["clean"]).expect(0);
    nothing_is_left(&bench.work());
    bench.audit();
}

/// P53: an interrupt of whoever waits is none of the transfer.
#[test]
fn who_waits_can_leave() {
    let bench = bench!();
    let file = Served::of_length(300_000, 25);
    let bytes = file.bytes.clone();
    let server = halting(file, 1);
    let waiting = bench.background(bench.verb(["pull", &server.url("/file.bin"), "--wait"]));
    until_arrived(&bench, 100_000);
    let pid = rustix::process::Pid::from_raw(waiting.pid().cast_signed()).unwrap();
    // Started by a shell's `&` it would not hear an interrupt.
    let signal = if is_ignored(Signal::INT) {
        Signal::TERM
    } else {
        Signal::INT
    };
    rustix::process::kill_process(pid, signal).unwrap();
    waiting.end();
    let job = super::pull::only_job(&bench);
    assert_eq!(job.state(), "running");
    bench.run(["pause", job.id()]).expect(0);
    bench.run(["resume", job.id()]).expect(0);
    assert_eq!(job.wait(), 0);
    assert!(fs::read(bench.work().join("file.bin")).unwrap() == *bytes);
    bench.audit();
}

/// A job that is known by what it fetches.
#[test]
fn a_pull_is_found_by_its_reference() {
    let bench = bench!();
    let server = halting(Served::of_length(3, 26), 0);
    let url = server.url("/file.bin");
    pull(&bench, &url, &[]).expect(0);
    let shown = bench.run(["status", &url, "--json"]).expect(0).json();
    assert_eq!(shown["kind"], "pull");
    assert_eq!(shown["reference"], url.as_str());
    assert_eq!(shown["command"], serde_json::Value::Null);
    let again = bench.run(["restart", &url]).expect(0).text();
    assert_eq!(bench.job(again.trim()).wait(), 0);
    bench.audit();
}

/// What is here is told of before the first byte that comes, and after the last.
#[test]
fn a_resume_into_silence_loses_no_progress() {
    const THIRD: u64 = 100_000;
    let bench = bench!();
    let file = Served::of_length(3 * THIRD as usize, 27);
    let server = Server::new(move |request, reply| {
        // The second time it is silent from the first byte.
        if request.nth == 0 {
            file.serve_some(request, reply, THIRD);
        }
        reply.fall_silent();
    });
    let job = begin(&bench, &server.url("/file.bin"), &[]);
    until_arrived(&bench, THIRD);
    bench.run(["pause", job.id()]).expect(0);
    let done = || job.status().unwrap_or_default()["progress"]["done_bytes"].as_u64();
    assert_eq!(done(), Some(THIRD));
    bench.run(["resume", job.id()]).expect(0);
    until("it asks again", || {
        let done = done();
        assert!(done.is_some_and(|done| done >= THIRD), "{done:?}");
        server.asked().len() == 2
    });
    job.stop(0);
    assert_eq!(job.state(), "cancelled");
    let done = done();
    assert!(done.is_some_and(|done| done >= THIRD), "{done:?}");
    bench.audit();
}

/// What is interrupted is called so by whoever does not remove it.
#[test]
fn clean_says_what_list_says() {
    let bench = bench!();
    let server = halting(Served::of_length(300_000, 28), 1000);
    let job = begin(&bench, &server.url("/file.bin"), &[]);
    until_arrived(&bench, 100_000);
    job.kill_worker();
    until("it is interrupted", || job.state() == "interrupted");
    let ran = bench.run(["clean", job.id()]);
    assert!(
        ran.errors().contains("has not ended (interrupted)"),
        "{}",
        ran.errors()
    );
    job.stop(0);
    bench.audit();
}
