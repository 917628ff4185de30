//! Redirects, and who is told who asks.

use std::fs;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use outlive_tests::{Served, Server, bench};

use super::pull::{account, notes, only_job, pull, pull_with};

/// P44: whoever a redirect leads to is not told; another name or another port of the same machine is another host.
#[test]
fn a_secret_goes_to_no_other_host() {
    let bench = bench!();
    let file = Served::of_length(1000, 40);
    let there = Arc::new(Server::new(move |request, reply| {
        file.serve(request, reply)
    }));
    let to = format!(
        "http://localhost:{}/file.bin?signature=secret",
        there.port()
    );
    let server =
        Server::new(move |_, reply| reply.answer(302, &[("Location", &to)], b"over there"));
    let url = format!("http://user:word@{}/file.bin", server.authority());
    pull(&bench, &url, &[]).expect(0);
    assert_eq!(
        server.asked()[0].header("authorization"),
        Some("Basic dXNlcjp3b3Jk")
    );
    assert_eq!(there.asked()[0].header("authorization"), None);
    assert_eq!(there.asked()[0].header("cookie"), None);
    // What is in a signed address is written down nowhere.
    let job = only_job(&bench);
    for name in ["status.json", "events.jsonl", "log"] {
        let text = String::from_utf8(fs::read(job.file(name)).unwrap_or_default()).unwrap();
        assert!(!text.contains("signature"), "{name}: {text}");
    }
    bench.audit();
}

#[test]
fn the_same_host_is_told_again() {
    let bench = bench!();
    let file = Served::of_length(1000, 41);
    let server = Server::new(move |request, reply| {
        if request.path == "/file.bin" {
            reply.answer(307, &[("Location", "/real")], b"");
        } else {
            file.serve(request, reply);
        }
    });
    let url = format!("http://user:word@{}/file.bin", server.authority());
    pull(&bench, &url, &[]).expect(0);
    assert!(server.asked()[1].header("authorization").is_some());
    bench.audit();
}

/// P45: a signed address expires in the middle; the origin is asked for another, and nothing is fetched twice.
#[test]
fn an_address_that_expires_is_asked_for_again() {
    let bench = bench!();
    let file = Served::of_length(300_000, 42);
    let bytes = file.bytes.clone();
    let there = Arc::new(Server::new(move |request, reply| match request.nth {
        0 => {
            file.serve_some(request, reply, 100_000);
        }
        1 => reply.answer(403, &[], b"expired"),
        _ => file.serve(request, reply),
    }));
    let (to, given) = (there.url("/signed"), Arc::new(AtomicUsize::new(0)));
    let counted = given.clone();
    let server = Server::new(move |_, reply| {
        let nth = counted.fetch_add(1, Ordering::Relaxed);
        reply.answer(302, &[("Location", &format!("{to}?{nth}"))], b"");
    });
    pull(&bench, &server.url("/file.bin"), &[]).expect(0);
    assert!(fs::read(bench.work().join("file.bin")).unwrap() == *bytes);
    assert_eq!(given.load(Ordering::Relaxed), 3);
    let job = only_job(&bench);
    assert_eq!(account(&job, "fetched_bytes"), 300_000);
    assert!(
        notes(&job).iter().any(|note| note.contains("expired")),
        "{:?}",
        notes(&job)
    );
    bench.audit();
}

#[test]
fn redirects_end() {
    let bench = bench!();
    let server = Server::new(|request, reply| {
        let to = format!("{}x", request.path);
        reply.answer(302, &[("Location", &to)], b"");
    });
    let ran = pull(&bench, &server.url("/file.bin"), &[]).expect(1);
    assert!(ran.errors().contains("too often"), "{}", ran.errors());
    assert_eq!(server.asked().len(), 11);
    let nowhere = Server::new(|_, reply| reply.answer(302, &[("Location", "ftp://a/b")], b""));
    let ran = pull(&bench, &nowhere.url("/file.bin"), &[]).expect(1);
    assert!(ran.errors().contains("ftp"), "{}", ran.errors());
    bench.audit();
}

/// Who asks is told to the server, and to nobody who looks at the job.
#[test]
fn a_password_in_an_address_is_not_shown() {
    let bench = bench!();
    let file = Served::of_length(1000, 43);
    let server = Server::new(move |request, reply| file.serve(request, reply));
    let url = format!("http://alice:s3cret@{}/", server.authority());
    pull(&bench, &url, &["--to", "file.bin"]).expect(0);
    let job = only_job(&bench);
    for verb in [
        vec!["list"],
        vec!["list", "--json"],
        vec!["status", job.id()],
        vec!["status", job.id(), "--json"],
    ] {
        let text = bench.run(verb).expect(0).text();
        assert!(text.contains(&server.authority()), "{text}");
        assert!(
            !text.contains("s3cret") && !text.contains("alice"),
            "{text}"
        );
    }
    assert!(!job.id().contains("s3cret"));
    bench.audit();
}

/// Whoever makes the transfer works elsewhere, and a file that its environment names is where it was for who asked.
#[test]
fn a_file_that_a_variable_names_is_found() {
    let bench = bench!();
    fs::write(bench.file("roots.pem"), "none").unwrap();
    let environment = [("SSL_CERT_FILE", "roots.pem".to_owned())];
    let ran = pull_with(&bench, &environment, "http://127.0.0.1:1/file.bin", &[]).expect(1);
    let path = bench.file("roots.pem");
    let why = format!("{} holds no certificate", path.display());
    assert!(ran.errors().contains(&why), "{}", ran.errors());
    bench.audit();
}
