//! Several connections for one file, and servers that allow fewer.

use std::fs;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use outlive_tests::{Served, Server, bench, until};

use super::pull::{account, notes, nothing_is_left, only_job, progress_is_whole, pull};

/// Three runs.
const LENGTH: usize = 48 << 20;

/// Whoever is served at a time, until this is dropped.
struct Served1(Arc<AtomicUsize>);

impl Drop for Served1 {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::SeqCst);
    }
}

/// A server that allows one connection refuses the others, whatever it says: the one that works fetches all of it, in one attempt.
#[test]
fn a_refused_connection_is_done_without() {
    for (status, headers) in [
        (429, vec![("Retry-After", "3600")]),
        (503, vec![("Retry-After", "3600")]),
        (503, vec![]),
        (403, vec![]),
        (404, vec![]),
    ] {
        let bench = bench!();
        let file = Served::of_length(LENGTH, 300);
        let bytes = file.bytes.clone();
        let (active, refused) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
        let counted = refused.clone();
        let server = Server::new(move |request, reply| {
            let others = active.fetch_add(1, Ordering::SeqCst);
            let _served = Served1(active.clone());
            if others > 0 {
                counted.fetch_add(1, Ordering::SeqCst);
                return reply.answer(status, &headers, b"one at a time");
            }
            if request.nth > 0 {
                file.serve(request, reply);
                return;
            }
            let (_, said, body) = file.honest(request);
            let length = body.len().to_string();
            let mut all = vec![("Content-Length", length.as_str())];
            all.extend(said.iter().map(|it| (it.0.as_str(), it.1.as_str())));
            reply.head(200, &all);
            reply.body(&body[..1 << 20]);
            until("the others are refused", || {
                counted.load(Ordering::SeqCst) >= 2
            });
            for chunk in body[1 << 20..].chunks(1 << 16) {
                if !reply.body(chunk) {
                    return;
                }
            }
        });
        pull(&bench, &server.url("/file.bin"), &[]).expect(0);
        assert!(
            fs::read(bench.file("file.bin")).unwrap() == *bytes,
            "{status}"
        );
        assert!(refused.load(Ordering::SeqCst) >= 2);
        let job = only_job(&bench);
        assert_eq!(job.retries().len(), 0, "{status}: it is one attempt");
        assert_eq!(account(&job, "discarded_bytes"), 0, "{status}");
        progress_is_whole(&job, LENGTH);
        nothing_is_left(&bench.work());
        bench.audit();
    }
}

/// What the last connection is told counts.
#[test]
fn the_last_connection_that_is_refused_ends_it() {
    let bench = bench!();
    let file = Served::of_length(LENGTH, 301);
    let server = Server::new(move |request, reply| {
        if request.nth > 0 {
            return reply.answer(403, &[], b"no more");
        }
        file.serve_some(request, reply, 4 << 20);
    });
    let ran = pull(&bench, &server.url("/file.bin"), &[]).expect(1);
    assert!(ran.errors().contains("403"), "{}", ran.errors());
    bench.audit();
}

/// No more are made than are asked for, also where an earlier attempt had more.
#[test]
fn no_more_connections_are_made_than_are_allowed() {
    let bench = bench!();
    let file = Served::of_length(LENGTH, 302);
    let bytes = file.bytes.clone();
    let (active, most) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
    let seen = most.clone();
    let server = Server::new(move |request, reply| {
        let now = active.fetch_add(1, Ordering::SeqCst) + 1;
        let _served = Served1(active.clone());
        seen.fetch_max(now, Ordering::SeqCst);
        file.serve(request, reply);
    });
    pull(&bench, &server.url("/file.bin"), &["--connections", "1"]).expect(0);
    assert!(fs::read(bench.file("file.bin")).unwrap() == *bytes);
    assert_eq!((most.load(Ordering::SeqCst), server.asked().len()), (1, 1));
    bench.audit();
}

/// Some servers name the version of a whole and not of a range of it. Without a digest nothing tells then that the ranges are of
/// one version, so it is fetched over one connection.
#[test]
fn a_range_without_a_version_is_not_asked_for_twice() {
    let bench = bench!();
    let file = Served::of_length(LENGTH, 303);
    let bytes = file.bytes.clone();
    let server = Server::new(move |request, reply| {
        let (status, mut headers, body) = file.honest(request);
        if status == 206 {
            headers.retain(|(name, _)| name != "ETag");
        }
        let headers: Vec<_> = headers
            .iter()
            .map(|it| (it.0.as_str(), it.1.as_str()))
            .collect();
        reply.answer(status, &headers, body);
    });
    pull(&bench, &server.url("/file.bin"), &[]).expect(0);
    assert!(fs::read(bench.file("file.bin")).unwrap() == *bytes);
    let job = only_job(&bench);
    assert_eq!(job.retries().len(), 0, "it is one attempt");
    let begun = notes(&job)
        .iter()
        .filter(|it| it.contains("begun anew"))
        .count();
    assert!(begun <= 1, "{:?}", notes(&job));
    nothing_is_left(&bench.work());
    bench.audit();
}

/// Each run is written where it belongs, whichever connection is the first to come to it.
#[test]
fn what_comes_over_several_connections_is_right_every_time() {
    let bench = bench!();
    let file = Served::of_length(LENGTH, 304);
    let bytes = file.bytes.clone();
    let server = Server::new(move |request, reply| file.serve(request, reply));
    for nth in 0..12 {
        pull(&bench, &server.url("/file.bin"), &[]).expect(0);
        assert!(fs::read(bench.file("file.bin")).unwrap() == *bytes, "{nth}");
    }
    assert!(server.asked().len() > 12, "it was split");
    bench.audit();
}
