//! What a job prints is kept byte for byte, can be followed from the top to the end, and never holds the job up.

use std::fs;
use std::os::unix::fs::MetadataExt;

use outlive_tests::{Background, Bench, Job, bench, is_blocked, until, until_some};
use rustix::process::Signal;

#[test]
fn output_is_kept_byte_for_byte() {
    let bench = bench!();
    fs::write(bench.file("bytes"), odd_bytes(1 << 20)).unwrap();
    for options in [&[][..], &["--log-max", "100M"]] {
        let job = bench.sh_with(options, "printf 'a\\377b\\n'; cat bytes; echo END");
        assert_eq!(job.wait(), 0);
        let mut expected = b"a\xffb\n".to_vec();
        expected.extend(odd_bytes(1 << 20));
        expected.extend(b"END\n");
        assert!(job.log() == expected, "with {options:?}");
        bench.run(["list"]).expect(0);
        bench.run(["status", job.id()]).expect(0);
        let followed = bench.run(["log", "-f", job.id()]).expect(0);
        assert!(followed.stdout == expected);
    }
    bench.audit();
}

/// Bytes of every value, with few newlines.
fn odd_bytes(count: usize) -> Vec<u8> {
    let mut x: u32 = 1;
    (0..count)
        .map(|_| {
            x = x.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            (x >> 24) as u8
        })
        .collect()
}

#[test]
fn a_line_of_a_hundred_megabytes_is_a_line() {
    let bench = bench!();
    let job = bench.sh("head -c 100M /dev/zero | tr '\\0' x");
    assert_eq!(job.wait(), 0);
    assert_eq!(fs::metadata(job.file("log")).unwrap().len(), 100 << 20);
    let ran = bench.run(["log", "-n", "1", job.id()]).expect(0);
    assert_eq!(ran.stdout.len(), 100 << 20);
    bench.audit();
}

#[test]
fn the_last_lines() {
    let bench = bench!();
    let job = bench.sh("seq 1 1000; printf unfinished");
    assert_eq!(job.wait(), 0);
    let last = |n: &str| bench.run(["log", "-n", n, job.id()]).expect(0).stdout;
    assert_eq!(last("3"), b"999\n1000\nunfinished");
    assert_eq!(last("1"), b"unfinished");
    assert_eq!(last("0"), b"");
    assert_eq!(last("100000"), job.log());
    bench.audit();
}

#[test]
fn following_goes_from_the_top_to_the_end_and_ends_with_the_job() {
    let bench = bench!();
    let job = bench.sh("for i in $(seq 50); do echo $i; sleep 0.01; done; while [ ! -e go ]; do sleep 0.02; done; echo last");
    job.until_printed("5\n");
    let mut follower = bench.background(bench.verb(["log", "-f", job.id()]));
    job.until_printed("50\n");
    assert!(follower.runs());
    fs::write(bench.file("go"), "").unwrap();
    let expected: String = (1..=50)
        .map(|number| format!("{number}\n"))
        .collect::<String>()
        + "last\n";
    assert_eq!(follower.end().expect(0).text() + "\n", expected);
    // Of a job that has ended, following is printing.
    assert_eq!(
        bench.run(["log", "-f", job.id()]).expect(0).text() + "\n",
        expected
    );
    bench.audit();
}

#[test]
fn run_with_follow_prints_the_output_and_gives_the_code() {
    let bench = bench!();
    let ran = bench
        .run([
            "run",
            "--follow",
            "--",
            "sh",
            "-c",
            "echo out; echo err >&2; exit 8",
        ])
        .expect(8);
    assert_eq!(ran.text(), "out\nerr");
    bench.job(ran.errors().trim());
    let ran = bench
        .run([
            "run",
            "--follow",
            "--split-output",
            "--",
            "sh",
            "-c",
            "echo out; echo err >&2; exit 8",
        ])
        .expect(8);
    assert_eq!(ran.text(), "out");
    assert!(ran.errors().contains("err\n"), "{ran:?}");
    bench.audit();
}

#[test]
fn whoever_interrupts_what_he_follows_is_told_that_it_runs_on() {
    let bench = bench!();
    let script = "echo here; exec sleep 600";
    for verb in ["run", "queue"] {
        for stay in ["--follow", "--wait"] {
            let staying = bench.background(bench.verb([verb, stay, "--", "sh", "-c", script]));
            let id = until_some("it runs", || {
                let running = bench
                    .list()
                    .into_iter()
                    .find(|job| job["state"] == "running")?;
                Some(running["id"].as_str()?.to_owned())
            });
            let job = bench.job(&id);
            job.until_printed("here");
            // Before that there is nothing to tell of.
            until("it stays", || is_blocked(staying.pid(), Signal::TERM));
            staying.signal(Signal::TERM);
            let interrupted = staying.end().expect(128 + 15);
            let end_it = format!("end it with: outlive stop {id}");
            assert!(interrupted.errors().contains(&end_it), "{interrupted:?}");
            assert_eq!(job.state(), "running");
            job.stop(0);
        }
    }
    bench.run(["supervisor", "stop"]).expect(0);
    bench.audit();
}

#[test]
fn streams_can_be_kept_apart() {
    let bench = bench!();
    let job = bench.sh_with(&["--split-output"], "echo out; echo err >&2");
    assert_eq!(job.wait(), 0);
    let stream = |option: &str| bench.run(["log", option, job.id()]).expect(0).text();
    assert_eq!(stream("--stdout"), "out");
    assert_eq!(stream("--stderr"), "err");
    let both = bench.run(["log", job.id()]).expect(0);
    assert_eq!(
        (both.text().as_str(), both.errors().as_str()),
        ("out", "err\n")
    );
    let shown = job.shown();
    assert!(shown["log"].as_str().unwrap().ends_with("/stdout.log"));
    // Where they are not split there is nothing to choose from.
    let plain = bench.sh("echo out");
    assert_eq!(plain.wait(), 0);
    bench.run(["log", "--stderr", plain.id()]).expect(6);
    bench.audit();
}

/// A job that prints numbers until it is told to stop printing.
fn chatty(bench: &Bench) -> Job<'_> {
    let job = bench.sh("i=0; while [ ! -e enough ]; do i=$((i+1)); echo $i; echo $i > at.new; mv at.new at; sleep 0.002; done; echo END");
    until("it prints", || at(bench) > 3);
    job
}

fn at(bench: &Bench) -> u32 {
    fs::read_to_string(bench.file("at"))
        .ok()
        .and_then(|text| text.trim().parse().ok())
        .unwrap_or(0)
}

fn goes_on(bench: &Bench) {
    let now = at(bench);
    until("the job goes on", || at(bench) > now + 3);
}

/// Wait until somebody who follows the log of a job has it open.
fn until_open(follower: &Background, job: &Job) {
    let open = format!("/proc/{}/fd", follower.pid());
    until("the follower has the log open", || {
        let open = fs::read_dir(&open).into_iter().flatten().flatten();
        open.filter_map(|entry| fs::read_link(entry.path()).ok())
            .any(|target| target == job.file("log"))
    });
}

#[test]
fn a_log_that_is_removed_moved_or_replaced_holds_nobody_up() {
    let bench = bench!();
    let job = chatty(&bench);
    let follower = bench.background(bench.verb(["log", "-f", job.id()]));
    until_open(&follower, &job);
    let log = job.file("log");
    fs::rename(&log, bench.file("moved")).unwrap();
    goes_on(&bench);
    fs::write(&log, "another\n").unwrap();
    goes_on(&bench);
    fs::remove_file(&log).unwrap();
    std::os::unix::fs::symlink("/etc/passwd", &log).unwrap();
    goes_on(&bench);
    fs::remove_file(&log).unwrap();
    fs::create_dir(&log).unwrap();
    goes_on(&bench);
    fs::remove_dir(&log).unwrap();
    fs::write(bench.file("enough"), "").unwrap();
    assert_eq!(job.wait(), 0);
    let followed = follower.end();
    assert!(
        followed.errors().contains("log"),
        "it says what happened: {followed:?}"
    );
    assert!(!followed.text().contains("root:"), "it follows no link");
    bench.audit();
}

#[test]
fn a_log_that_a_link_replaced_is_not_printed_through_it() {
    let bench = bench!();
    let job = bench.sh("echo mine");
    assert_eq!(job.wait(), 0);
    fs::remove_file(job.file("log")).unwrap();
    std::os::unix::fs::symlink("/etc/passwd", job.file("log")).unwrap();
    let ran = bench.run(["log", job.id()]);
    assert!(!ran.text().contains("root:"), "{ran:?}");
    fs::remove_file(job.file("log")).unwrap();
    let ran = bench.run(["log", job.id()]);
    assert!(matches!(ran.code(), 0 | 1), "{ran:?}");
    let ran = bench.run(["log", "-f", job.id()]);
    assert!(matches!(ran.code(), 0 | 1), "{ran:?}");
    bench.audit();
}

#[test]
fn a_log_that_is_truncated_is_followed_on_from_its_start() {
    let bench = bench!();
    let job = chatty(&bench);
    let follow = bench.verb_after("exec > followed 2> notices", ["log", "-f", job.id()]);
    let follower = bench.background(follow);
    let read = |name: &str| fs::read_to_string(bench.file(name)).unwrap_or_default();
    for round in 1..=3 {
        goes_on(&bench);
        // What has grown past the old place before the follower looks again is read on from there. So nothing is printed
        // between two looks of his.
        bench.run(["pause", job.id()]).expect(0);
        let log = fs::read_to_string(job.file("log")).unwrap();
        until("all of it was followed", || {
            read("followed").ends_with(&log)
        });
        fs::File::options()
            .write(true)
            .truncate(true)
            .open(job.file("log"))
            .unwrap();
        until("the follower has noticed", || {
            read("notices").matches("truncated").count() == round
        });
        bench.run(["resume", job.id()]).expect(0);
    }
    goes_on(&bench);
    fs::write(bench.file("enough"), "").unwrap();
    assert_eq!(job.wait(), 0);
    follower.end().expect(0);
    let text = read("followed");
    let numbers: Vec<u32> = text.lines().filter_map(|line| line.parse().ok()).collect();
    assert!(
        numbers.windows(2).all(|pair| pair[0] < pair[1]),
        "none is doubled: {numbers:?}"
    );
    assert!(text.ends_with("END\n"), "{text}");
    // Appending writers leave no hole behind.
    assert!(!fs::read(job.file("log")).unwrap().contains(&0));
    bench.audit();
}

#[test]
fn rotation_is_followed_without_a_gap() {
    let bench = bench!();
    let script = "i=0; while [ $i -lt 3000 ]; do i=$((i+1)); echo \"line $i\"; [ $((i % 20)) -ne 0 ] || sleep 0.002; done";
    let job = bench.sh_with(&["--log-max", "64K", "--log-keep", "15"], script);
    let followed = bench
        .background(bench.verb(["log", "-f", job.id()]))
        .end()
        .expect(0);
    assert_eq!(job.wait(), 0);
    let text = followed.text();
    let numbers: Vec<u32> = text
        .lines()
        .filter_map(|line| line.strip_prefix("line ")?.parse().ok())
        .collect();
    assert!(
        numbers.windows(2).all(|pair| pair[0] < pair[1]),
        "none is doubled"
    );
    if !followed.errors().contains("rotated faster") {
        assert_eq!(numbers, (1..=3000).collect::<Vec<_>>(), "none is missing");
    }
    // What is kept prints as one, oldest first, to the end.
    let kept = job.log_text();
    let lines: Vec<&str> = kept.lines().collect();
    assert_eq!(*lines.last().unwrap(), "line 3000");
    assert!(job.file("log.1").exists());
    let numbers: Vec<u32> = lines
        .iter()
        .skip(1)
        .map(|line| line.strip_prefix("line ").unwrap().parse().unwrap())
        .collect();
    assert!(
        numbers.windows(2).all(|pair| pair[0] + 1 == pair[1]),
        "what is kept has no gap"
    );
    bench.audit();
}

/// How many bytes the logs of a job take.
fn taken(job: &Job) -> u64 {
    fs::read_dir(job.dir())
        .into_iter()
        .flatten()
        .flatten()
        .filter(|entry| entry.file_name().to_string_lossy().contains("log"))
        .filter_map(|entry| entry.metadata().ok())
        .map(|metadata| metadata.len().max(metadata.blocks() * 512))
        .sum()
}

#[test]
fn a_limit_is_never_exceeded_by_more_than_a_chunk() {
    let bench = bench!();
    for (limit, options) in [
        (10 << 20, &["--log-max", "10M"][..]),
        (2 << 20, &["--log-max", "2M", "--log-keep", "3"]),
        (1 << 20, &["--log-max", "1M", "--log-keep", "0"]),
    ] {
        let job = bench.sh_with(options, "yes | head -c 300M; echo $? >&2");
        let mut most = 0;
        while job.recorded() != "done" {
            most = most.max(taken(&job));
            assert!(most <= limit + (64 << 10), "{most} of {limit}");
            assert_ne!(job.recorded(), "failed", "{}", job.shown());
        }
        assert_eq!(job.wait(), 0);
        most = most.max(taken(&job));
        assert!(most <= limit + (64 << 10), "{most} of {limit}");
        assert!(
            job.shown()["dropped_bytes"]
                .as_u64()
                .is_some_and(|lost| lost > 250 << 20),
            "{}",
            job.shown()
        );
        let printed = bench.run(["log", job.id()]).expect(0);
        assert!(
            printed.errors().contains("bytes were dropped"),
            "{printed:?}"
        );
    }
    bench.audit();
}

#[test]
fn a_limit_counts_for_both_streams_together() {
    let bench = bench!();
    let job = bench.sh_with(
        &["--split-output", "--log-max", "1M"],
        "yes out | head -c 8M; yes err | head -c 8M >&2",
    );
    assert_eq!(job.wait(), 0);
    assert!(taken(&job) <= (1 << 20) + (64 << 10), "{}", taken(&job));
    assert!(job.file("stdout.log").exists() && job.file("stderr.log").exists());
    bench.audit();
}

#[test]
fn a_reader_that_goes_away_is_no_error() {
    let bench = bench!();
    let job = bench.sh("seq 1 200000");
    assert_eq!(job.wait(), 0);
    for verb in ["log", "log -f", "list", "status"] {
        let mut shell = bench.program("bash");
        let pipe = format!("set -o pipefail; \"$0\" {verb} \"$1\" | head -c 1");
        let pipe = if verb == "list" {
            pipe.replace("\"$1\"", "")
        } else {
            pipe
        };
        shell.args(["-c", &pipe]).arg(bench.binary()).arg(job.id());
        let ran = bench.end(shell);
        assert!(matches!(ran.code(), 0 | 141), "{verb}: {ran:?}");
        assert!(ran.stderr.is_empty(), "{verb}: {ran:?}");
    }
    bench.audit();
}

#[test]
fn what_a_job_says_is_escaped_in_listings() {
    let bench = bench!();
    let job = bench.start(["--", "sh", "-c", "exit 0", "\u{1b}[31mred\u{7}"]);
    assert_eq!(job.wait(), 0);
    for verb in [&["list"][..], &["status", job.id()]] {
        let text = bench.run(verb).expect(0).stdout;
        assert!(
            !text.contains(&0x1b) && !text.contains(&7),
            "{:?}",
            String::from_utf8_lossy(&text)
        );
    }
    bench.audit();
}

#[test]
fn the_log_of_a_job_that_has_not_run_is_empty() {
    let bench = bench!();
    let job = bench.queue(&["true"]);
    let ran = bench.run(["log", job.id()]);
    assert_eq!((ran.code(), ran.stdout.len()), (0, 0), "{ran:?}");
    let follower = bench.background(bench.verb(["log", "-f", job.id()]));
    bench.run(["resume", job.id()]).expect(0);
    follower.end().expect(0);
    assert_eq!(job.wait(), 0);
    bench.audit();
}

#[test]
fn the_last_words_of_what_is_ended_before_the_next_attempt_are_kept() {
    let bench = bench!();
    let script = "(trap 'echo last words; exit 0' TERM; echo > up; while :; do sleep 0.02; done) & \
                  until [ -e up ]; do sleep 0.01; done; rm up; exit 1";
    let job = bench.sh_with(
        &["--log-max", "1M", "--retry", "1", "--backoff", "1ms"],
        script,
    );
    // The shell may say beside it that its `sleep` was terminated.
    let said = || job.log_text().matches("last words\n").count();
    assert_eq!(job.wait(), 1);
    assert_eq!(job.retries().len(), 1);
    assert_eq!(said(), 1, "{}", job.log_text());
    job.stop(0);
    assert_eq!(said(), 2, "{}", job.log_text());
    bench.audit();
}

#[test]
fn a_limit_that_is_too_small_to_be_kept_is_refused_at_once() {
    let bench = bench!();
    let limited = |limit: &str| {
        bench.run([
            "run",
            "--wait",
            "--log-max",
            limit,
            "--",
            "seq",
            "1",
            "100000",
        ])
    };
    for limit in ["1", "100", "63K"] {
        let ran = limited(limit).expect(2);
        assert!(ran.errors().contains("--log-max"), "{ran:?}");
    }
    assert!(bench.jobs().is_empty());
    let smallest = bench.job(&limited("64K").expect(0).text());
    assert!(taken(&smallest) <= 128 << 10, "{}", taken(&smallest));
    // None at all, whatever the configuration says.
    let all = bench.job(&limited("0").expect(0).text());
    assert_eq!(all.log().len(), 588_895);
    bench.audit();
}
