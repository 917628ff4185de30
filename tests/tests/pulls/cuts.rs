//! Connections that are cut or fall silent, workers that are killed, waits that a server asks for: nothing is fetched twice that
//! need not be, and nothing is left.

use std::fs;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use outlive_tests::{Served, Server, bench, until};

use super::pull::{
    account, begin, notes, nothing_is_left, only_job, progress_is_sound, pull, staged,
};

/// What a killed fetcher may have to fetch again of one file, in bytes.
const KEPT_EACH: u64 = 4 << 20;

/// P07, P19: what was fetched before a cut is not fetched again, and is counted once.
#[test]
fn cuts_cost_nothing_but_a_request() {
    let bench = bench!();
    let file = Served::of_length(3_000_000, 7);
    let bytes = file.bytes.clone();
    let server = Server::new(move |request, reply| {
        file.serve_some(request, reply, 300_000);
    });
    let job = begin(&bench, &server.url("/file.bin"), &[]);
    progress_is_sound(&job, 3_000_000);
    assert_eq!(job.wait(), 0);
    assert!(fs::read(bench.work().join("file.bin")).unwrap() == *bytes);
    assert_eq!(account(&job, "fetched_bytes"), 3_000_000);
    // The server counts what it has sent a little later than that arrives.
    until("the server has counted as much", || {
        server.sent() == 3_000_000
    });
    assert_eq!(account(&job, "retries"), 9);
    assert_eq!(
        job.shown()["attempt"],
        1,
        "a transfer that gets on is one attempt"
    );
    nothing_is_left(&bench.work());
    bench.audit();
}

/// Several connections to one file, each of which is cut; and what each of them has is kept.
#[test]
fn several_connections_are_cut_and_go_on() {
    let bench = bench!();
    let length = 80_000_000;
    let file = Served::of_length(length, 8);
    let bytes = file.bytes.clone();
    let server = Server::new(move |request, reply| {
        file.serve_some(request, reply, 7_000_000);
    });
    pull(&bench, &server.url("/file.bin"), &["--connections", "4"]).expect(0);
    assert!(fs::read(bench.work().join("file.bin")).unwrap() == *bytes);
    let begins: Vec<u64> = server
        .asked()
        .iter()
        .filter_map(|it| it.range())
        .map(|it| it.0)
        .collect();
    assert!(
        begins.iter().any(|from| *from > length as u64 / 2),
        "{begins:?}"
    );
    let job = only_job(&bench);
    // The first answer is read as far as the first run goes.
    assert_eq!(account(&job, "fetched_bytes"), length as u64);
    assert_eq!(account(&job, "discarded_bytes"), 0);
    nothing_is_left(&bench.work());
    bench.audit();
}

/// P06: a killed worker costs what came since the record was last written.
#[test]
fn a_killed_worker_goes_on_where_it_was() {
    let bench = bench!();
    bench.crashes();
    let length = 30_000_000_u64;
    let file = Served::of_length(length as usize, 9);
    let bytes = file.bytes.clone();
    let sent = Arc::new(AtomicU64::new(0));
    let counted = sent.clone();
    let server = Server::new(move |request, reply| {
        if file.serve_some(request, reply, 12_000_000)
            && counted.fetch_add(1, Ordering::Relaxed) < 2
        {
            reply.fall_silent();
        }
    });
    let job = begin(&bench, &server.url("/file.bin"), &["--connections", "1"]);
    let staging = bench.work().join("file.bin.outlive-part");
    for nth in 1..=2 {
        until("as much has arrived as was sent", || {
            let asked = server.asked();
            let from = asked.last().and_then(|it| it.range()).map_or(0, |it| it.0);
            let parts = staged(&staging, ".part");
            asked.len() == nth
                && parts.first().is_some_and(|part| {
                    fs::metadata(part).is_ok_and(|found| found.len() == from + 12_000_000)
                })
        });
        job.kill_worker();
        assert_eq!(job.state(), "interrupted");
        bench.run(["resume", job.id()]).expect(0);
    }
    assert_eq!(job.wait(), 0);
    assert!(fs::read(bench.work().join("file.bin")).unwrap() == *bytes);
    until("the server has counted all of it", || {
        server.sent() >= length
    });
    let again = server.sent() - length;
    // And what came while it was being written.
    assert!(
        again <= 2 * (KEPT_EACH + (1 << 20)),
        "{again} bytes were fetched again"
    );
    assert!(server.asked().iter().skip(1).all(|it| it.range().is_some()));
    nothing_is_left(&bench.work());
    bench.audit();
}

/// P15, P17: silence, before the first byte and after some of them, is noticed.
#[test]
fn silence_is_a_failure_that_passes() {
    let bench = bench!();
    let file = Served::of_length(200_000, 10);
    let bytes = file.bytes.clone();
    let server = Server::new(move |request, reply| match request.nth {
        0 => reply.fall_silent(),
        1 => {
            let headers = [("Content-Length", "200000"), ("ETag", "\"v10\"")];
            reply.head(200, &headers);
            reply.fall_silent();
        }
        2 => {
            file.serve_some(request, reply, 100_000);
            reply.fall_silent();
        }
        _ => file.serve(request, reply),
    });
    pull(&bench, &server.url("/file.bin"), &["--idle-timeout", "1s"]).expect(0);
    assert!(fs::read(bench.work().join("file.bin")).unwrap() == *bytes);
    assert_eq!(account(&only_job(&bench), "retries"), 3);
    bench.audit();
}

/// A server that is not there is asked again by the worker, and recorded each time.
#[test]
fn what_gets_nowhere_is_left_to_longer_waits() {
    let bench = bench!();
    let file = Served::of_length(1000, 11);
    let server = Server::new(move |request, reply| {
        if request.nth < 12 {
            reply.answer(503, &[], b"");
        } else {
            file.serve(request, reply);
        }
    });
    pull(&bench, &server.url("/file.bin"), &[]).expect(0);
    let job = only_job(&bench);
    assert_eq!(job.retries().len(), 2, "five tries again each");
    assert!(job.retries()[0]["reason"].as_str().unwrap().contains("503"));
    bench.audit();
}

/// And it is not asked for ever.
#[test]
fn what_never_comes_fails() {
    let bench = bench!();
    let server = Server::new(|_, reply| reply.answer(503, &[], b""));
    let ran = pull(
        &bench,
        &server.url("/file.bin"),
        &["--retry", "1", "--backoff-max", "10ms"],
    )
    .expect(1);
    assert!(ran.errors().contains("503"), "{}", ran.errors());
    assert_eq!(only_job(&bench).retries().len(), 1);
    assert!(!bench.work().join("file.bin").exists());
    bench.audit();
}

/// P22: a server that wants to be left alone is, the wait can be seen, and a cancel does not wait for its end.
#[test]
fn a_wait_that_a_server_asks_for_is_kept() {
    let bench = bench!();
    let server = Server::new(|_, reply| reply.answer(429, &[("Retry-After", "100000")], b""));
    let job = begin(&bench, &server.url("/file.bin"), &[]);
    until("the wait is recorded", || job.retries().len() == 1);
    let delay = job.retries()[0]["delay_ms"].as_u64().unwrap();
    assert!(
        (3_599_000..=3_600_000).contains(&delay),
        "capped at an hour: {delay}"
    );
    let next = job.shown()["next_attempt_at_ms"].as_u64().unwrap();
    assert!(next > job.shown()["updated_at_ms"].as_u64().unwrap() + 3_000_000);
    job.stop(0);
    assert_eq!(job.state(), "cancelled");
    assert_eq!(server.asked().len(), 1);
    bench.audit();
}

#[test]
fn a_short_wait_that_a_server_asks_for_is_waited() {
    let bench = bench!();
    let file = Served::of_length(1000, 12);
    let times = Arc::new(std::sync::Mutex::new(Vec::new()));
    let kept = times.clone();
    let server = Server::new(move |request, reply| {
        kept.lock().unwrap().push(std::time::Instant::now());
        if request.nth == 0 {
            reply.answer(429, &[("Retry-After", "2")], b"");
        } else {
            file.serve(request, reply);
        }
    });
    pull(&bench, &server.url("/file.bin"), &[]).expect(0);
    let times = times.lock().unwrap();
    assert!(times[1].duration_since(times[0]) >= Duration::from_secs(2));
    bench.audit();
}

/// A body that does not end is not written beyond what was announced, and one that is short is not taken for the whole.
#[test]
fn a_short_body_is_a_cut_and_a_long_one_is_cut_off() {
    let bench = bench!();
    let file = Served::of_length(100_000, 13);
    let bytes = file.bytes.clone();
    let server = Server::new(move |request, reply| {
        let range = "bytes 50000-99999/100000";
        match request.nth {
            0 => {
                reply.head(200, &[("Content-Length", "100000"), ("ETag", "\"v13\"")]);
                reply.body(&file.bytes[..50_000]);
            }
            _ => {
                // It says nothing of a length, and goes on.
                reply.head(206, &[("Content-Range", range), ("ETag", "\"v13\"")]);
                reply.body(&file.bytes[50_000..]);
                while reply.body(&[0; 4096]) {}
            }
        }
    });
    pull(&bench, &server.url("/file.bin"), &[]).expect(0);
    assert!(fs::read(bench.work().join("file.bin")).unwrap() == *bytes);
    assert!(
        notes(&only_job(&bench))
            .iter()
            .any(|note| note.contains("cut"))
    );
    bench.audit();
}
