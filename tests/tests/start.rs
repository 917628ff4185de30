//! What a command is given at its start, byte for byte, and what becomes of one that cannot be started.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};

use outlive::worker::Launcher;
use outlive_tests::{Bench, Job, MARKER, bench};

/// A command that cannot be started: `run` says so at once, and the job has failed with a message that says which.
#[track_caller]
fn refused(bench: &Bench, arguments: &[&str], code: i32, words: &[&str]) {
    let ran = bench.run([&["run"], arguments].concat()).expect(code);
    let job = bench.job(&ran.text());
    let shown = job.shown();
    assert_eq!(shown["state"], "failed", "{shown}");
    assert!(shown["exit"].is_null(), "{shown}");
    let message = shown["message"].as_str().unwrap();
    for word in words {
        assert!(message.contains(word), "'{word}' is not in: {message}");
        assert!(
            ran.errors().contains(word),
            "'{word}' is not in: {}",
            ran.errors()
        );
    }
    assert_eq!(job.wait(), code);
    job.expect_states(&["queued", "running", "failed"]);
}

#[test]
fn a_program_that_is_missing_is_named() {
    let bench = bench!();
    refused(
        &bench,
        &["--", "/no/such/program"],
        127,
        &["/no/such/program"],
    );
    refused(
        &bench,
        &["--", "no-such-program-at-all"],
        127,
        &["no-such-program-at-all"],
    );
    refused(&bench, &["--", ""], 127, &[]);
    refused(
        &bench,
        &["--wait", "--", "/no/such/program"],
        127,
        &["/no/such/program"],
    );
    bench.audit();
}

#[test]
fn a_program_that_cannot_be_executed_is_named() {
    let bench = bench!();
    let plain = bench.file("plain");
    std::fs::write(&plain, "text").unwrap();
    refused(&bench, &["--", plain.to_str().unwrap()], 126, &["plain"]);
    refused(&bench, &["--", "/"], 126, &["/"]);
    bench.audit();
}

#[test]
fn a_directory_that_is_gone_is_named() {
    let bench = bench!();
    refused(
        &bench,
        &["--cwd", "/no/such/dir", "--", "true"],
        126,
        &["/no/such/dir"],
    );
    // Removed between the making of the job and its start.
    let dir = bench.file("dir");
    std::fs::create_dir(&dir).unwrap();
    let mut spec = bench.spec(&["true"]);
    spec.cwd = dir.clone();
    let job = bench.store().create(spec).unwrap();
    std::fs::remove_dir(&dir).unwrap();
    // It is queued, and admitted as any other.
    bench.run(["resume", job.id().as_str()]).expect(0);
    let job = bench.job(job.id().as_str());
    assert_eq!(job.wait(), 126);
    assert!(job.shown()["message"].as_str().unwrap().contains("dir"));
    bench.audit();
}

#[test]
fn an_input_that_is_missing_is_named() {
    let bench = bench!();
    refused(
        &bench,
        &["--stdin", "/no/such/file", "--", "cat"],
        126,
        &["/no/such/file"],
    );
    bench.audit();
}

fn launch<'a>(bench: &'a Bench, spec: outlive::JobSpec) -> Job<'a> {
    let launcher = Launcher::program(bench.binary(), &["worker"]);
    let (job, _) = bench.store().start(spec, &launcher).unwrap();
    bench.job(job.id().as_str())
}

#[test]
fn arguments_are_taken_as_long_as_the_kernel_takes_them() {
    let bench = bench!();
    let long = "x".repeat(127 << 10);
    let job = bench.start(["--", "sh", "-c", "printf %s \"$1\" | wc -c", "sh", &long]);
    assert_eq!(job.wait(), 0);
    assert_eq!(job.log_text().trim(), (127 << 10).to_string());
    // No command line could bring us what follows; an embedding program can.
    for (argument, value, ending) in [(200 << 10, 1, 0), (1, 100 << 10, 30)] {
        let argument = "x".repeat(argument);
        let mut spec = bench.spec(&["true", &argument]);
        for number in 0..ending {
            let name = format!("BIG{number}");
            spec.env.set(name.as_bytes(), &vec![b'y'; value]);
        }
        let job = launch(&bench, spec);
        assert_eq!(job.wait(), 126);
        let shown = job.shown();
        assert_eq!(shown["state"], "failed");
        assert_eq!(shown["failure"], "too_long");
        assert!(
            shown["message"].as_str().unwrap().contains("too long"),
            "{}",
            shown["message"]
        );
    }
    bench.audit();
}

/// The words of a list that ends each with a zero.
fn zeros(bytes: &[u8]) -> Vec<Vec<u8>> {
    let mut words: Vec<Vec<u8>> = bytes.split(|&byte| byte == 0).map(<[u8]>::to_vec).collect();
    assert_eq!(words.pop(), Some(vec![]));
    words
}

#[test]
fn arguments_arrive_byte_for_byte() {
    let bench = bench!();
    let odd: Vec<&[u8]> = vec![
        b"",
        b"a  b",
        b"it's",
        b"$HOME",
        b"*",
        b";true",
        b"new\nline",
        b"\xff\xfe",
        b"--wait",
        b"-e",
        b"%H %s",
        b"\\n",
        b"\x1b[31m",
        b"--",
        b"\"",
        b"{}",
        b"",
    ];
    let mut arguments: Vec<OsString> = ["--", "sh", "-c", "cat /proc/$$/cmdline", "sh"]
        .map(OsString::from)
        .into();
    arguments.extend(odd.iter().map(|word| OsStr::from_bytes(word).to_owned()));
    let job = bench.start(arguments);
    assert_eq!(job.wait(), 0);
    let words = zeros(&job.log());
    assert_eq!(words[4..], odd);
    bench.audit();
}

#[test]
fn arguments_are_not_read_by_a_shell() {
    let bench = bench!();
    let job = bench.start([
        "--", "printf", "<%s>\n", "a  b", "", "it's", "$HOME", "*", ";true",
    ]);
    assert_eq!(job.wait(), 0);
    assert_eq!(
        job.log_text(),
        "<a  b>\n<>\n<it's>\n<$HOME>\n<*>\n<;true>\n"
    );
    bench.audit();
}

/// The environment that the job printed with `env -0`, without what the worker adds.
fn printed(job: &Job) -> Vec<Vec<u8>> {
    assert_eq!(job.wait(), 0);
    let mut words = zeros(&job.log());
    let mut added = 0;
    words.retain(|word| {
        let ours = [
            &b"OUTLIVE_JOB="[..],
            b"OUTLIVE_JOB_DIR=",
            b"PYTHONUNBUFFERED=1",
        ];
        let adds = ours.iter().any(|prefix| word.starts_with(prefix));
        added += usize::from(adds);
        !adds
    });
    assert_eq!(added, 3, "what the worker adds: {words:?}");
    words.sort();
    words
}

#[test]
fn the_environment_arrives_byte_for_byte() {
    let bench = bench!();
    let marker = bench
        .spec(&["true"])
        .env
        .get(MARKER.as_bytes())
        .unwrap()
        .to_vec();
    let odd: Vec<(&[u8], Vec<u8>)> = vec![
        (b"PERCENT", b"%H %n 100%".to_vec()),
        (b"A-B", b"dash".to_vec()),
        (b"QUOTES", b"'\"`".to_vec()),
        (b"LINE", b"one\ntwo".to_vec()),
        (b"EQUALS", b"a=b=c".to_vec()),
        (b"EMPTY", b"".to_vec()),
        (b"BYTES", b"\xff\xc3(".to_vec()),
        (b"N\xffME", b"x".to_vec()),
        (b"LONG", vec![b'l'; 100 << 10]),
    ];
    let mut verb = bench.verb(["run", "--", "/usr/bin/env", "-0"]);
    // No HOME and no PATH.
    verb.env_clear()
        .env("OUTLIVE_ROOT", bench.root())
        .env(MARKER, OsString::from_vec(marker.clone()));
    for (name, value) in &odd {
        verb.env(OsStr::from_bytes(name), OsStr::from_bytes(value));
    }
    let job = bench.job(&bench.end(verb).expect(0).text());
    let mut expected: Vec<Vec<u8>> = odd
        .iter()
        .map(|(name, value)| [name, b"=".as_slice(), value].concat())
        .collect();
    expected.push([b"OUTLIVE_ROOT=", bench.root().as_os_str().as_bytes()].concat());
    expected.push([MARKER.as_bytes(), b"=", &marker].concat());
    expected.sort();
    assert_eq!(printed(&job), expected);
    bench.audit();
}

#[test]
fn a_clean_environment_holds_what_was_set_and_nothing_else() {
    let bench = bench!();
    let mut verb = bench.verb([
        "run",
        "--clean-env",
        "-e",
        "A=1",
        "--env",
        "B=x=y",
        "-e",
        "KEPT",
        "-e",
        "GONE",
    ]);
    verb.env("KEPT", "as it was")
        .env("OTHER", "no")
        .env_remove("GONE");
    verb.arg("-e")
        .arg(OsStr::from_bytes(b"C=\xff"))
        .arg("-e")
        .arg("A=2")
        .args(["--", "/usr/bin/env", "-0"]);
    let job = bench.job(&bench.end(verb).expect(0).text());
    let expected: [&[u8]; 4] = [b"A=2", b"B=x=y", b"C=\xff", b"KEPT=as it was"];
    assert_eq!(printed(&job), expected);
    bench.audit();
}

#[test]
fn the_command_knows_its_job() {
    let bench = bench!();
    let job = bench.sh("echo $OUTLIVE_JOB; echo $OUTLIVE_JOB_DIR");
    assert_eq!(job.wait(), 0);
    assert_eq!(
        job.log_text(),
        format!(
            "{}\n{}\n",
            job.id(),
            job.dir().canonicalize().unwrap().display()
        )
    );
    let python = bench.sh_with(&["-e", "PYTHONUNBUFFERED="], "echo \"<$PYTHONUNBUFFERED>\"");
    assert_eq!(python.wait(), 0);
    assert_eq!(python.log_text(), "<>\n");
    bench.audit();
}

#[test]
fn the_directory_is_the_submitters_or_the_one_that_was_named() {
    let bench = bench!();
    let odd = bench.work().join(OsStr::from_bytes(b"a b\xff"));
    std::fs::create_dir(&odd).unwrap();
    let here = bench.sh("pwd -P");
    assert_eq!(here.wait(), 0);
    assert_eq!(
        here.log_text().trim_end(),
        bench.work().canonicalize().unwrap().to_str().unwrap()
    );
    let mut verb = bench.verb(["run", "--cwd"]);
    verb.arg("a b\u{0}".trim_end_matches('\0'))
        .args(["--", "true"]);
    bench.end(verb).expect(126);
    let mut verb = bench.verb(["run", "--cwd"]);
    verb.arg(OsStr::from_bytes(b"a b\xff"))
        .args(["--", "pwd", "-P"]);
    let relative = bench.job(&bench.end(verb).expect(0).text());
    assert_eq!(relative.wait(), 0);
    assert!(relative.log().ends_with(b"/a b\xff\n"));
    bench.audit();
}

#[test]
fn the_mask_is_the_submitters() {
    let bench = bench!();
    for mask in ["0022", "0027", "0000", "0077"] {
        let verb = bench.verb_after(&format!("umask {mask}"), ["run", "--", "sh", "-c", "umask"]);
        let job = bench.job(&bench.end(verb).expect(0).text());
        assert_eq!(job.wait(), 0);
        assert_eq!(job.log_text().trim(), mask);
    }
    bench.audit();
}

#[test]
fn standard_input_is_nothing_or_the_file_that_was_named() {
    let bench = bench!();
    let nothing = bench.verb(["run", "--wait", "--", "cat"]);
    let ran =
        outlive_tests::Ran::run_with_input(nothing, b"not for the job", outlive_tests::DEADLINE)
            .expect(0);
    assert_eq!(bench.job(&ran.text()).log(), b"");
    std::fs::write(bench.file("input"), b"\x00\xffbytes\n").unwrap();
    let job = bench.start(["--stdin", "input", "--", "cat"]);
    assert_eq!(job.wait(), 0);
    assert_eq!(job.log(), b"\x00\xffbytes\n");
    // A name of what this process has open means that file, and not what the worker has open.
    for own in ["/dev/stdin", "/dev/fd/0", "/proc/self/fd/0"] {
        let words = ["run", "--wait", "--stdin", own, "--", "cat"];
        let verb = bench.verb_after("exec < input", words);
        let job = bench.job(&bench.end(verb).expect(0).text());
        assert_eq!(job.log(), b"\x00\xffbytes\n");
        let piped = bench.verb(words);
        let limit = outlive_tests::DEADLINE;
        let refused = outlive_tests::Ran::run_with_input(piped, b"lost", limit).expect(2);
        assert!(refused.errors().contains(own), "{refused:?}");
    }
    bench.audit();
}

#[test]
fn a_loop_that_reads_its_own_input_keeps_it() {
    let bench = bench!();
    let script =
        "printf '1\\n2\\n3\\n' | while read x; do \"$0\" run --wait -- cat >&2; echo $x; done";
    let mut shell = bench.program("sh");
    shell.args(["-c", script]).arg(bench.binary());
    let ran = bench.end(shell).expect(0);
    assert_eq!(ran.text(), "1\n2\n3");
    assert_eq!(bench.jobs().len(), 3);
    bench.audit();
}

#[test]
fn nothing_of_the_submitter_is_inherited_by_accident() {
    let bench = bench!();
    let script = "ls /proc/self/fd | wc -l; ls -l /proc/$$/fd | grep -c -e /lock -e leak; \
                  cut -d' ' -f1,6 /proc/$$/stat; cat /proc/$$/stat | cut -d' ' -f7; \
                  exec grep -e SigBlk -e SigIgn /proc/self/status";
    let leak = "exec 7>leak 8</dev/null; trap '' INT TERM HUP PIPE CHLD";
    let verb = bench.verb_after(leak, ["run", "--", "sh", "-c", script]);
    let job = bench.job(&bench.end(verb).expect(0).text());
    assert_eq!(job.wait(), 0);
    let log = job.log_text();
    let lines: Vec<&str> = log.lines().collect();
    // Three streams, the tree lock, and what ls opens to look.
    assert_eq!(lines[0].trim(), "5", "{log}");
    assert_eq!(lines[1].trim(), "0", "{log}");
    let (pid, session) = lines[2].split_once(' ').unwrap();
    assert_eq!(pid, session, "it leads a session: {log}");
    assert_eq!(lines[3], "0", "it has no terminal: {log}");
    assert!(lines[4].ends_with("\t0000000000000000"), "{log}");
    assert!(lines[5].ends_with("\t0000000000000000"), "{log}");
    bench.audit();
}

#[test]
fn an_input_that_could_hold_up_its_opener_is_refused_at_once() {
    let bench = bench!();
    let mut fifo = bench.program("mkfifo");
    fifo.arg("fifo");
    bench.end(fifo).expect(0);
    std::fs::create_dir(bench.file("directory")).unwrap();
    for input in ["fifo", "directory"] {
        for wait in [
            &[][..],
            &["--wait"],
            &["--timeout", "1h"],
            &["--retry", "0"],
        ] {
            let arguments = [&["run", "--stdin", input], wait, &["--", "cat"]].concat();
            let ran = bench.run(&arguments).expect(126);
            assert!(ran.errors().contains(input), "{ran:?}");
            let shown = bench.job(&ran.text()).shown();
            assert_eq!(shown["state"], "failed", "{shown}");
            assert!(
                shown["message"].as_str().unwrap().contains(input),
                "{shown}"
            );
        }
    }
    bench.audit();
}

#[test]
fn a_submitter_without_streams_is_as_good_as_any() {
    let bench = bench!();
    let script = "echo out; echo err >&2; readlink /proc/self/fd/0; exit 5";
    let verb = bench.verb_after("exec <&- >&- 2>&-", ["run", "--", "sh", "-c", script]);
    bench.end(verb);
    let jobs = bench.jobs();
    assert_eq!(jobs.len(), 1);
    assert_eq!(jobs[0].wait(), 5);
    assert_eq!(jobs[0].log_text(), "out\nerr\n/dev/null\n");
    bench.audit();
}

#[test]
fn a_submitter_whose_directory_is_gone_is_told_so_or_names_another() {
    let bench = bench!();
    let gone = bench.file("gone");
    std::fs::create_dir(&gone).unwrap();
    let mut verb = bench.verb_after("rmdir ../gone", ["run", "--", "true"]);
    verb.current_dir(&gone);
    let ran = bench.end(verb);
    assert_ne!(ran.code(), 0, "{ran:?}");
    assert_eq!(ran.errors().lines().count(), 1, "{ran:?}");
    std::fs::create_dir(&gone).unwrap();
    let mut verb = bench.verb_after(
        "rmdir ../gone",
        [
            "run",
            "--wait",
            "--cwd",
            "/",
            "--",
            "sh",
            "-c",
            "pwd; exit 5",
        ],
    );
    verb.current_dir(&gone);
    bench.end(verb).expect(5);
    bench.audit();
}

#[test]
fn times_without_end_are_times() {
    let bench = bench!();
    let job = bench.start([
        "--timeout",
        "1e19",
        "--grace",
        "1e19",
        "--",
        "sh",
        "-c",
        "exit 5",
    ]);
    bench.run(["wait", "--timeout", "1e19", job.id()]).expect(5);
    bench
        .run(["wait", "--any", "--timeout", "1e19", job.id()])
        .expect(5);
    let sleeper = bench.start(["--grace", "1e19", "--", "sleep", "600"]);
    bench
        .run(["stop", "--timeout", "1e19", sleeper.id()])
        .expect(0);
    bench
        .run(["run", "--wait", "--timeout", "1ms", "--", "sleep", "600"])
        .expect(124);
    // None at all, whatever the configuration says.
    bench
        .run([
            "run",
            "--wait",
            "--timeout",
            "0",
            "--",
            "sh",
            "-c",
            "exit 5",
        ])
        .expect(5);
    let stubborn = bench.sh_with(
        &["--grace", "0"],
        "trap '' TERM; echo ready; while :; do sleep 0.02; done",
    );
    stubborn.until_printed("ready");
    stubborn.stop(1);
    bench.audit();
}
