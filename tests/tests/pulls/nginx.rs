//! nginx itself, where it is installed: ranges that it gives, refuses and passes over, versions as it names them, slow answers,
//! and encryption.

use std::fs;

use outlive_tests::{Bench, Job, Nginx, Served, bench, digest_of, until};

use super::pull::{account, begin, begin_with, notes, nothing_is_left, pull, pull_with, staged};

/// How long a file is, and how much of it comes in a second, in bytes.
const LENGTH: usize = 1_200_000;
const SLOWLY: &str = "limit_rate 400k;";

/// Begin a pull, and pause it when some of the file has come and not all.
fn paused<'a>(bench: &'a Bench, url: &str, options: &[&str]) -> Job<'a> {
    let job = begin(bench, url, options);
    let staging = bench.file("file.bin.outlive-part");
    until("some has arrived", || {
        let part = staged(&staging, ".part").pop();
        part.is_some_and(|part| fs::metadata(part).is_ok_and(|found| found.len() > 10_000))
    });
    bench.run(["pause", job.id()]).expect(0);
    assert_eq!(job.state(), "paused");
    job
}

/// Let it go on to its end, which is this file.
#[track_caller]
fn goes_on_to(bench: &Bench, job: &Job<'_>, bytes: &[u8]) {
    bench.run(["resume", job.id()]).expect(0);
    assert_eq!(job.wait(), 0);
    assert!(fs::read(bench.file("file.bin")).unwrap() == bytes);
    nothing_is_left(&bench.work());
    bench.audit();
}

/// What was answered, once it is in the log: the status, and whether a range was asked for.
fn answered(nginx: &Nginx, count: usize) -> Vec<(u64, bool)> {
    until("nginx has written down what it was asked", || {
        nginx.asked().len() == count
    });
    let asked = nginx.asked();
    asked
        .iter()
        .map(|it| (it["status"].as_u64().unwrap(), it["range"] != ""))
        .collect()
}

fn bytes(number: u64) -> Vec<u8> {
    Served::of_length(LENGTH, number).bytes.to_vec()
}

/// A slow server, a pause in the middle of it, and its own way of naming a version.
#[test]
fn what_is_missing_is_asked_for() {
    let Some(nginx) = Nginx::new(SLOWLY) else {
        return;
    };
    let bench = bench!();
    nginx.put("file.bin", &bytes(1));
    let job = paused(&bench, &nginx.url("/file.bin"), &[]);
    goes_on_to(&bench, &job, &bytes(1));
    assert_eq!(answered(&nginx, 2), [(200, false), (206, true)]);
    assert!(
        nginx.asked()[1]["if_range"]
            .as_str()
            .unwrap()
            .starts_with('"')
    );
    assert_eq!(account(&job, "discarded_bytes"), 0);
    assert!(account(&job, "reused_bytes") > 10_000);
}

/// Several connections to one file.
#[test]
fn a_large_file_comes_over_several_connections() {
    let Some(nginx) = Nginx::new("") else {
        return;
    };
    let bench = bench!();
    let large = Served::of_length(40_000_000, 2).bytes;
    nginx.put("file.bin", &large);
    pull(&bench, &nginx.url("/file.bin"), &[]).expect(0);
    assert!(fs::read(bench.file("file.bin")).unwrap() == *large);
    // The first answer is read as far as the first run goes. They are written down as they end.
    let mut answers = answered(&nginx, 2);
    answers.sort_unstable();
    assert_eq!(answers, [(200, false), (206, true)]);
    nothing_is_left(&bench.work());
    bench.audit();
}

/// P01: whoever says that he takes gzip gets the whole in place of a range, encoded. We do not say so.
#[test]
fn what_could_be_encoded_is_not() {
    let rules =
        format!("{SLOWLY} gzip on; gzip_types application/octet-stream; gzip_min_length 1;");
    let Some(nginx) = Nginx::new(&rules) else {
        return;
    };
    let bench = bench!();
    nginx.put("file.bin", &bytes(3));
    let job = paused(&bench, &nginx.url("/file.bin"), &[]);
    goes_on_to(&bench, &job, &bytes(3));
    assert_eq!(answered(&nginx, 2), [(200, false), (206, true)]);
    nginx.put("small", &[b'x'; 1000]);
    let trap = nginx.head_of("/small", "Range: bytes=500-\r\nAccept-Encoding: gzip\r\n");
    assert!(
        trap.starts_with("HTTP/1.1 200") && trap.contains("Content-Encoding: gzip"),
        "{trap}"
    );
}

/// P01: ranges are passed over.
#[test]
fn a_server_without_ranges_gives_the_whole() {
    let Some(nginx) = Nginx::new(&format!("{SLOWLY} max_ranges 0;")) else {
        return;
    };
    let bench = bench!();
    nginx.put("file.bin", &bytes(4));
    let job = paused(&bench, &nginx.url("/file.bin"), &[]);
    goes_on_to(&bench, &job, &bytes(4));
    assert_eq!(answered(&nginx, 2), [(200, false), (200, true)]);
    assert!(account(&job, "discarded_bytes") > 10_000);
    assert!(
        notes(&job)
            .iter()
            .any(|note| note.contains("sent the whole")),
        "{:?}",
        notes(&job)
    );
}

/// P49: a file that is replaced between two requests is fetched anew, whole, and the history says so.
#[test]
fn a_file_that_is_replaced_is_not_mixed() {
    let Some(nginx) = Nginx::new(SLOWLY) else {
        return;
    };
    let bench = bench!();
    nginx.put("file.bin", &bytes(5));
    let job = paused(&bench, &nginx.url("/file.bin"), &[]);
    // nginx makes its tag of the second and of the length.
    let other = [bytes(6), vec![7]].concat();
    nginx.put("file.bin", &other);
    goes_on_to(&bench, &job, &other);
    assert_eq!(answered(&nginx, 2), [(200, false), (200, true)]);
    assert!(account(&job, "discarded_bytes") > 10_000);
}

/// P49: a tag that is called strong is evidence and no proof: nginx gives the same one to a file of the same length and second. A
/// digest is proof, and what is mixed does not land.
#[test]
fn a_file_that_is_replaced_in_secret_is_found_by_its_digest() {
    let Some(nginx) = Nginx::new(SLOWLY) else {
        return;
    };
    let bench = bench!();
    nginx.put("file.bin", &bytes(7));
    let path = nginx.files().join("file.bin");
    let modified = fs::metadata(&path).unwrap().modified().unwrap();
    let wanted = digest_of(&bytes(8)).replace("sha256:", "");
    let job = paused(&bench, &nginx.url("/file.bin"), &["--sha256", &wanted]);
    nginx.put("file.bin", &bytes(8));
    let file = fs::File::options().write(true).open(&path).unwrap();
    file.set_modified(modified).unwrap();
    goes_on_to(&bench, &job, &bytes(8));
    assert_eq!(
        answered(&nginx, 3),
        [(200, false), (206, true), (200, false)]
    );
    assert_eq!(account(&job, "discarded_bytes"), LENGTH as u64);
}

/// P03: the part is longer than the file is by now, and its server's refusal is a page of text.
#[test]
fn a_file_that_got_shorter_is_begun_anew() {
    let Some(nginx) = Nginx::new(&format!("{SLOWLY} etag off;")) else {
        return;
    };
    let bench = bench!();
    let short = b"hello world";
    nginx.put("file.bin", &bytes(9));
    let wanted = digest_of(short).replace("sha256:", "");
    let job = paused(&bench, &nginx.url("/file.bin"), &["--sha256", &wanted]);
    nginx.put("file.bin", short);
    goes_on_to(&bench, &job, short);
    assert_eq!(
        answered(&nginx, 3),
        [(200, false), (416, true), (200, false)]
    );
}

/// Without a tag, and without a digest, nothing can be gone on with.
#[test]
fn without_a_tag_it_is_begun_anew() {
    let Some(nginx) = Nginx::new(&format!("{SLOWLY} etag off;")) else {
        return;
    };
    let bench = bench!();
    nginx.put("file.bin", &bytes(10));
    let job = paused(&bench, &nginx.url("/file.bin"), &[]);
    goes_on_to(&bench, &job, &bytes(10));
    assert_eq!(answered(&nginx, 2), [(200, false), (200, false)]);
}

/// P17: a server that says little, and a cancel in the middle of it.
#[test]
fn what_is_slow_is_cancelled_at_once() {
    let Some(nginx) = Nginx::new("limit_rate 1k;") else {
        return;
    };
    let bench = bench!();
    nginx.put("file.bin", &bytes(11));
    let job = begin(&bench, &nginx.url("/file.bin"), &[]);
    let staging = bench.file("file.bin.outlive-part");
    until("some has arrived", || {
        let part = staged(&staging, ".part").pop();
        part.is_some_and(|part| fs::metadata(part).is_ok_and(|found| found.len() > 0))
    });
    job.stop(0);
    assert_eq!(job.state(), "cancelled");
    until("its worker is gone", || job.worker().is_none());
    bench.run(["clean", job.id()]).expect(0);
    nothing_is_left(&bench.work());
    bench.audit();
}

fn trusting(nginx: &Nginx) -> [(&'static str, String); 1] {
    [("SSL_CERT_FILE", nginx.authority().display().to_string())]
}

/// Encrypted, by an authority that the user names; it goes on where it was.
#[test]
fn an_authority_that_is_named_is_trusted() {
    let Some(nginx) = Nginx::encrypted(SLOWLY) else {
        return;
    };
    let bench = bench!();
    nginx.put("file.bin", &bytes(12));
    let job = begin_with(&bench, &trusting(&nginx), &nginx.url("/file.bin"), &[]);
    let staging = bench.file("file.bin.outlive-part");
    until("some has arrived", || {
        let part = staged(&staging, ".part").pop();
        part.is_some_and(|part| fs::metadata(part).is_ok_and(|found| found.len() > 10_000))
    });
    bench.run(["pause", job.id()]).expect(0);
    goes_on_to(&bench, &job, &bytes(12));
    assert_eq!(answered(&nginx, 2), [(200, false), (206, true)]);
}

/// Nobody whom we know vouches for it: nothing is asked, and it is said at once what to do.
#[test]
fn an_authority_that_nobody_knows_is_not_trusted() {
    let Some(nginx) = Nginx::encrypted("") else {
        return;
    };
    let bench = bench!();
    nginx.put("file.bin", b"hello");
    let ran = pull(&bench, &nginx.url("/file.bin"), &[]).expect(1);
    let said = ran.errors();
    assert!(
        said.contains("cannot be trusted") && said.contains("SSL_CERT_FILE"),
        "{said}"
    );
    // It is another host by this name.
    let url = nginx.url("/file.bin").replace("localhost", "127.0.0.1");
    let ran = pull_with(&bench, &trusting(&nginx), &url, &[]).expect(1);
    let said = ran.errors();
    assert!(
        said.contains("cannot be trusted") && said.contains("not valid for name"),
        "{said}"
    );
    let missing = [("SSL_CERT_FILE", "/nowhere".to_owned())];
    let ran = pull_with(&bench, &missing, &nginx.url("/file.bin"), &[]).expect(1);
    assert!(
        ran.errors().contains("cannot read /nowhere"),
        "{}",
        ran.errors()
    );
    assert_eq!(nginx.asked().len(), 0);
    assert!(!bench.file("file.bin").exists());
    bench.audit();
}

/// From encrypted to plain is not followed; the other way round is.
#[test]
fn a_redirect_never_leads_out_of_encryption() {
    let Some(plain) = Nginx::new("") else {
        return;
    };
    plain.put("file.bin", b"hello");
    let rules = format!(
        "location = /down.bin {{ return 302 {}; }}",
        plain.url("/file.bin")
    );
    let Some(nginx) = Nginx::encrypted(&rules) else {
        return;
    };
    nginx.put("file.bin", b"secret");
    let bench = bench!();
    let ran = pull_with(&bench, &trusting(&nginx), &nginx.url("/down.bin"), &[]).expect(1);
    assert!(ran.errors().contains("not encrypted"), "{}", ran.errors());
    assert_eq!(plain.asked().len(), 0);
    let rules = format!(
        "location = /up.bin {{ return 302 {}; }}",
        nginx.url("/file.bin")
    );
    let Some(plain) = Nginx::new(&rules) else {
        return;
    };
    pull_with(&bench, &trusting(&nginx), &plain.url("/up.bin"), &[]).expect(0);
    assert_eq!(fs::read(bench.file("up.bin")).unwrap(), b"secret");
    bench.audit();
}
