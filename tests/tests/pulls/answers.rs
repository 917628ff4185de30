//! Every row of the table of answers: what is appended, what is begun anew, what is final.

use std::fs;

use outlive_tests::{Bench, Reply, Request, Served, Server, bench};

use super::pull::{
    account, begin, notes, nothing_is_left, only_job, progress_is_whole, pull, until_arrived,
};

const LENGTH: usize = 300_000;
const CUT: u64 = 100_000;

/// Pull a file whose first answer is cut, and whose later ones are given by `then`. It must be right in the end.
fn comes_right(
    then: impl Fn(&Served, &Request, &mut Reply) + Send + Sync + 'static,
) -> (Bench, Server) {
    let bench = bench!();
    let file = Served::of_length(LENGTH, 1);
    let bytes = file.bytes.clone();
    let server = Server::new(move |request, reply| {
        if request.nth == 0 {
            file.serve_some(request, reply, CUT);
        } else {
            then(&file, request, reply);
        }
    });
    pull(&bench, &server.url("/file.bin"), &[]).expect(0);
    assert!(
        fs::read(bench.work().join("file.bin")).unwrap() == *bytes,
        "the file is right"
    );
    nothing_is_left(&bench.work());
    progress_is_whole(&only_job(&bench), LENGTH);
    bench.audit();
    (bench, server)
}

#[test]
fn a_range_that_agrees_goes_on_where_it_was() {
    let (bench, server) = comes_right(Served::serve);
    let asked = server.asked();
    assert_eq!(asked.len(), 2);
    assert_eq!(asked[0].range(), None);
    assert_eq!(asked[1].range(), Some((CUT, None)));
    assert_eq!(asked[1].header("if-range"), Some("\"v1\""));
    assert_eq!(asked[1].header("accept-encoding"), Some("identity"));
    let job = only_job(&bench);
    assert_eq!(account(&job, "fetched_bytes"), LENGTH as u64);
    assert_eq!(account(&job, "discarded_bytes"), 0);
    assert_eq!(account(&job, "retries"), 1);
}

#[test]
fn a_range_that_begins_elsewhere_is_not_written() {
    let (bench, _server) = comes_right(|file, request, reply| {
        if request.range().is_none() {
            return file.serve(request, reply);
        }
        let range = format!("bytes 0-{}/{LENGTH}", LENGTH - 1);
        reply.answer(
            206,
            &[("Content-Range", &range), ("ETag", "\"v1\"")],
            &file.bytes,
        );
    });
    let job = only_job(&bench);
    assert_eq!(account(&job, "discarded_bytes"), CUT);
    assert!(
        notes(&job).iter().any(|note| note.contains("other bytes")),
        "{:?}",
        notes(&job)
    );
}

#[test]
fn a_range_of_a_file_of_another_length_is_not_written() {
    let (bench, _server) = comes_right(|file, request, reply| {
        let Some((from, _)) = request.range() else {
            return file.serve(request, reply);
        };
        let range = format!("bytes {from}-{}/{}", LENGTH - 1, LENGTH + 1);
        reply.answer(
            206,
            &[("Content-Range", &range), ("ETag", "\"v1\"")],
            &file.bytes[from as usize..],
        );
    });
    assert_eq!(account(&only_job(&bench), "discarded_bytes"), CUT);
}

#[test]
fn a_range_that_does_not_say_which_is_dropped() {
    let (_bench, server) = comes_right(|file, request, reply| {
        let Some((from, _)) = request.range() else {
            return file.serve(request, reply);
        };
        reply.answer(206, &[("ETag", "\"v1\"")], &file.bytes[from as usize..]);
    });
    assert_eq!(server.asked().last().unwrap().range(), None);
}

/// P49: a server that ignores If-Range, and whose file has changed.
#[test]
fn a_range_of_another_version_is_not_mixed_in() {
    let bench = bench!();
    let (old, new) = (Served::of_length(LENGTH, 1), Served::of_length(LENGTH, 2));
    let bytes = new.bytes.clone();
    let server = Server::new(move |request, reply| {
        if request.nth == 0 {
            old.serve_some(request, reply, CUT);
            return;
        }
        let mut request = request.clone();
        request.headers.remove("if-range");
        new.serve(&request, reply);
    });
    pull(&bench, &server.url("/file.bin"), &[]).expect(0);
    assert!(fs::read(bench.work().join("file.bin")).unwrap() == *bytes);
    let job = only_job(&bench);
    assert_eq!(account(&job, "discarded_bytes"), CUT);
    assert!(
        notes(&job).iter().any(|note| note.contains("has changed")),
        "{:?}",
        notes(&job)
    );
    bench.audit();
}

/// The file has another length now, and no tag ever named its version.
#[test]
fn without_a_version_nothing_is_gone_on_with() {
    let bench = bench!();
    let mut file = Served::of_length(LENGTH, 1);
    file.etag = Some("W/\"weak\"".into());
    let bytes = file.bytes.clone();
    let server = Server::new(move |request, reply| {
        file.serve_some(
            request,
            reply,
            if request.nth == 0 { CUT } else { u64::MAX },
        );
    });
    pull(&bench, &server.url("/file.bin"), &[]).expect(0);
    assert!(fs::read(bench.work().join("file.bin")).unwrap() == *bytes);
    // P49: a weak tag is never sent.
    assert!(
        server
            .asked()
            .iter()
            .all(|it| it.header("if-range").is_none())
    );
    assert_eq!(server.asked().last().unwrap().range(), None);
    bench.audit();
}

/// P01: Range is ignored, or If-Range says that the file has changed.
#[test]
fn the_whole_in_place_of_a_range_is_not_appended() {
    let (bench, server) = comes_right(|file, _, reply| {
        reply.answer(200, &[("ETag", "\"v1\"")], &file.bytes);
    });
    assert_eq!(server.asked().len(), 2);
    let job = only_job(&bench);
    assert_eq!(account(&job, "discarded_bytes"), CUT);
    assert_eq!(account(&job, "fetched_bytes"), LENGTH as u64 + CUT);
}

/// P02: 200, and a range all the same.
#[test]
fn a_range_that_is_called_the_whole_is_dropped() {
    let (_bench, server) = comes_right(|file, request, reply| {
        let Some((from, _)) = request.range() else {
            return file.serve(request, reply);
        };
        let range = format!("bytes {from}-{}/{LENGTH}", LENGTH - 1);
        reply.answer(
            200,
            &[("Content-Range", &range)],
            &file.bytes[from as usize..],
        );
    });
    let asked = server.asked();
    assert_eq!(asked.len(), 3);
    assert_eq!(asked[2].range(), None);
}

#[test]
fn several_ranges_in_one_answer_are_dropped() {
    comes_right(|file, request, reply| {
        if request.range().is_none() {
            return file.serve(request, reply);
        }
        let several = [("Content-Type", "multipart/byteranges; boundary=x")];
        reply.answer(206, &several, b"--x\r\n\r\nabc\r\n--x--\r\n");
    });
}

/// P03: the text of an error is never written.
#[test]
fn a_refused_range_begins_anew() {
    let (bench, _server) = comes_right(|file, request, reply| {
        if request.range().is_none() {
            return file.serve(request, reply);
        }
        let total = format!("bytes */{}", LENGTH - 1);
        reply.answer(416, &[("Content-Range", &total)], b"Range not satisfiable");
    });
    assert_eq!(account(&only_job(&bench), "discarded_bytes"), CUT);
}

/// P04: what is complete and was not known to be needs no byte more; the server's refusal says so.
#[test]
fn a_refused_range_of_nothing_means_that_all_is_there() {
    let bench = bench!();
    let file = Served::of_length(LENGTH, 1);
    let bytes = file.bytes.clone();
    let server = Server::new(move |request, reply| {
        if request.nth == 0 {
            // Its length is never said, and its end does not come.
            let headers = [("Transfer-Encoding", "chunked"), ("ETag", "\"v1\"")];
            reply.head(200, &headers);
            reply.body(format!("{LENGTH:x}\r\n").as_bytes());
            reply.body(&file.bytes);
            reply.body(b"\r\n");
            reply.fall_silent();
        } else {
            file.serve(request, reply);
        }
    });
    let job = begin(&bench, &server.url("/file.bin"), &[]);
    until_arrived(&bench, LENGTH as u64);
    bench.run(["pause", job.id()]).expect(0);
    bench.run(["resume", job.id()]).expect(0);
    assert_eq!(job.wait(), 0);
    assert!(fs::read(bench.work().join("file.bin")).unwrap() == *bytes);
    let asked = server.asked();
    assert_eq!(asked.len(), 2);
    assert_eq!(asked[1].range(), Some((LENGTH as u64, None)));
    assert_eq!(account(&job, "fetched_bytes"), LENGTH as u64);
    assert_eq!(account(&job, "discarded_bytes"), 0);
    nothing_is_left(&bench.work());
    bench.audit();
}

/// A registry announces the whole blob as the length of its refusal, and sends a line: nobody waits for the rest.
#[test]
fn the_body_of_a_refusal_is_not_waited_for() {
    comes_right(|file, request, reply| {
        if request.range().is_none() {
            return file.serve(request, reply);
        }
        let length = LENGTH.to_string();
        reply.head(
            416,
            &[("Content-Range", "bytes */1"), ("Content-Length", &length)],
        );
        reply.body(b"range not satisfiable");
        reply.fall_silent();
    });
}

/// An encoded answer cannot be cut out of a file that is not.
#[test]
fn an_encoded_range_is_dropped() {
    comes_right(|file, request, reply| {
        let Some((from, _)) = request.range() else {
            return file.serve(request, reply);
        };
        let range = format!("bytes {from}-{}/{LENGTH}", LENGTH - 1);
        let headers = [
            ("Content-Range", range.as_str()),
            ("Content-Encoding", "gzip"),
        ];
        reply.answer(206, &headers, &file.bytes[from as usize..]);
    });
}

#[test]
fn what_may_pass_is_asked_again() {
    for status in [408, 429, 500, 502, 503, 504] {
        let (bench, server) = comes_right(move |file, request, reply| {
            if request.nth == 1 {
                reply.answer(status, &[], b"not now");
            } else {
                file.serve(request, reply);
            }
        });
        assert_eq!(server.asked().len(), 3, "{status}");
        assert_eq!(account(&only_job(&bench), "discarded_bytes"), 0, "{status}");
    }
}

#[test]
fn what_is_final_is_said_and_the_part_is_kept() {
    for status in [401, 403, 404, 410, 451, 300, 304, 306] {
        let bench = bench!();
        let file = Served::of_length(LENGTH, 1);
        let server = Server::new(move |request, reply| {
            if request.nth == 0 {
                file.serve_some(request, reply, CUT);
            } else {
                reply.answer(status, &[], b"no");
            }
        });
        let ran = pull(&bench, &server.url("/file.bin"), &[]).expect(1);
        assert!(
            ran.errors().contains(&status.to_string()),
            "{}",
            ran.errors()
        );
        assert!(!bench.work().join("file.bin").exists());
        assert_eq!(server.asked().len(), 2, "{status} is not asked again");
        let parts = super::pull::staged(&bench.work().join("file.bin.outlive-part"), ".part");
        assert_eq!(fs::metadata(&parts[0]).unwrap().len(), CUT);
        let job = only_job(&bench);
        assert_eq!(job.state(), "failed");
        assert_eq!(job.shown()["failure"], "transfer");
        bench.audit();
    }
}

/// P11: a length that is missing is not a length of zero.
#[test]
fn a_file_whose_length_nobody_says_is_fetched_to_its_end() {
    let bench = bench!();
    let server = Server::new(|_, reply| {
        reply.head(200, &[("Transfer-Encoding", "chunked")]);
        reply.body(b"5\r\nhello\r\n6\r\n world\r\n0\r\n\r\n");
    });
    pull(&bench, &server.url("/file.bin"), &[]).expect(0);
    assert_eq!(
        fs::read(bench.work().join("file.bin")).unwrap(),
        b"hello world"
    );
    bench.audit();
}

#[test]
fn an_end_that_could_be_a_cut_needs_a_digest() {
    let bench = bench!();
    let server = Server::new(|_, reply| {
        reply.head(200, &[]);
        reply.body(b"hello world");
    });
    let ran = pull(&bench, &server.url("/file.bin"), &[]).expect(1);
    assert!(ran.errors().contains("--sha256"), "{}", ran.errors());
    let sha256 = "b94d27b9934d3e08a52e52d7da7dabfac484efe37a5380ee9088f7ace2efcde9";
    pull(&bench, &server.url("/file.bin"), &["--sha256", sha256]).expect(0);
    assert_eq!(
        fs::read(bench.work().join("file.bin")).unwrap(),
        b"hello world"
    );
    bench.audit();
}

#[test]
fn an_empty_file_is_one() {
    let bench = bench!();
    let server = Server::new(|_, reply| reply.answer(200, &[("ETag", "\"x\"")], b""));
    pull(&bench, &server.url("/file.bin"), &[]).expect(0);
    assert_eq!(fs::read(bench.work().join("file.bin")).unwrap(), b"");
    nothing_is_left(&bench.work());
    bench.audit();
}

/// What a server said of a version of which nothing came is not taken for what it says of the next.
#[test]
fn a_file_that_grows_before_its_first_byte_is_fetched_whole() {
    let bench = bench!();
    let file = Served::of_length(LENGTH, 2);
    let bytes = file.bytes.clone();
    let server = Server::new(move |request, reply| {
        if request.nth == 0 {
            reply.head(200, &[("Content-Length", "100"), ("ETag", "\"v1\"")]);
        } else {
            file.serve(request, reply);
        }
    });
    pull(&bench, &server.url("/file.bin"), &[]).expect(0);
    assert!(fs::read(bench.work().join("file.bin")).unwrap() == *bytes);
    progress_is_whole(&only_job(&bench), LENGTH);
    nothing_is_left(&bench.work());
    bench.audit();
}

/// How its bytes are told to have come changes what they are, or where they end: nothing of that lands unseen.
#[test]
fn no_end_is_taken_from_a_coding_that_has_none() {
    const ALL: usize = 65_536;
    let cases: [(&str, &str, &str); 6] = [
        ("HTTP/1.1", "Transfer-Encoding: identity\r\n", "--sha256"),
        ("HTTP/1.1", "Transfer-Encoding: \r\n", "--sha256"),
        (
            "HTTP/1.1",
            "Transfer-Encoding: gzip\r\n",
            "Transfer-Encoding: gzip",
        ),
        (
            "HTTP/1.1",
            "Transfer-Encoding: gzip, chunked\r\n",
            "Transfer-Encoding: gzip, chunked",
        ),
        ("HTTP/1.0", "Transfer-Encoding: chunked\r\n", "HTTP/1.0"),
        (
            "HTTP/1.1",
            "Content-Encoding: identity\r\nContent-Encoding: gzip\r\nContent-Length: 65536\r\n",
            "gzip-encoded",
        ),
    ];
    for (version, headers, why) in cases {
        let bench = bench!();
        let file = Served::of_length(ALL, 1);
        let server = Server::new(move |_, reply| {
            reply
                .body(format!("{version} 200 OK\r\nConnection: close\r\n{headers}\r\n").as_bytes());
            let is_chunked = headers.contains("chunked");
            if is_chunked {
                reply.body(b"10000\r\n");
            }
            reply.body(&file.bytes);
            if is_chunked {
                reply.body(b"\r\n0\r\n\r\n");
            }
        });
        let errors = pull(&bench, &server.url("/file.bin"), &[])
            .expect(1)
            .errors();
        assert!(errors.contains(why), "{headers}: {errors}");
        assert!(!bench.work().join("file.bin").exists(), "{headers}");
        bench.audit();
    }
}

/// RFC 9112, section 6.3: of chunks and a length the chunks count.
#[test]
fn chunks_count_more_than_a_length() {
    let bench = bench!();
    let file = Served::of_length(LENGTH, 1);
    let bytes = file.bytes.clone();
    let server = Server::new(move |_, reply| {
        reply.head(
            200,
            &[("Transfer-Encoding", "chunked"), ("Content-Length", "10")],
        );
        for chunk in file.bytes.chunks(40_000) {
            reply.body(format!("{:x}\r\n", chunk.len()).as_bytes());
            reply.body(chunk);
            reply.body(b"\r\n");
        }
        reply.body(b"0\r\n\r\n");
    });
    pull(&bench, &server.url("/file.bin"), &[]).expect(0);
    assert!(fs::read(bench.work().join("file.bin")).unwrap() == *bytes);
    progress_is_whole(&only_job(&bench), LENGTH);
    bench.audit();
}

/// What comes before an answer does not make it too long.
#[test]
fn an_early_hint_is_passed_over() {
    let bench = bench!();
    let file = Served::of_length(LENGTH, 1);
    let bytes = file.bytes.clone();
    let server = Server::new(move |_, reply| {
        let mut all = b"HTTP/1.1 103 Early Hints\r\nLink: </x>\r\n\r\n".to_vec();
        all.extend(
            format!("HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: {LENGTH}\r\n\r\n")
                .bytes(),
        );
        all.extend(&*file.bytes);
        reply.body(&all);
    });
    pull(&bench, &server.url("/file.bin"), &[]).expect(0);
    assert!(fs::read(bench.work().join("file.bin")).unwrap() == *bytes);
    assert_eq!(server.asked().len(), 1);
    bench.audit();
}

/// What no file can be is final, and not a lack of room.
#[test]
fn a_length_that_no_file_has_is_final() {
    let bench = bench!();
    let server = Server::new(|_, reply| {
        reply.head(200, &[("Content-Length", "18446744073709551615")]);
    });
    let ran = pull(&bench, &server.url("/file.bin"), &[]).expect(1);
    assert!(
        ran.errors().contains("18446744073709551615"),
        "{}",
        ran.errors()
    );
    assert_eq!(only_job(&bench).state(), "failed");
    bench.audit();
}

/// A reason of any length arrives, and what is final stays so.
#[test]
fn a_long_reason_is_told() {
    let bench = bench!();
    let server = Server::new(|_, reply| reply.answer(404, &[], b"no"));
    for (length, times) in [(50_000, 1), (100_000, 0)] {
        let asked = server.asked().len();
        let url = server.url(&format!("/{}", "x".repeat(length)));
        let ran = pull(&bench, &url, &["--to", "file.bin"]).expect(1);
        assert!(ran.errors().contains("xxxx"), "{}", ran.errors());
        assert_eq!(server.asked().len() - asked, times);
        let job = bench.jobs().pop().unwrap();
        assert_eq!(job.retries().len(), 0, "it is final");
    }
    let server = Server::new(|request, reply| {
        if request.path.len() < 50_000 {
            let to = format!("/{}", "z".repeat(50_000));
            reply.answer(302, &[("Location", &to)], b"");
        } else {
            reply.answer(410, &[], b"gone");
        }
    });
    pull(&bench, &server.url("/file.bin"), &[]).expect(1);
    assert_eq!(server.asked().len(), 2, "it is final");
    bench.audit();
}
