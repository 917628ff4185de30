//! The page for browsers and the metrics, through `outlive serve`: what is told, to whom, and what nobody can make it do.

mod browser;
mod client;
mod metrics;

use std::collections::BTreeMap;
use std::fs;
use std::io::{Read, Write};
use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt;
use std::time::Instant;

use outlive_tests::{Bench, bench, until};
use rustix::process::Signal;
use serde_json::{Value, json};

use browser::Browser;
use client::{Page, answer_to};

#[test]
fn what_is_asked_for_is_answered_as_the_verbs_say_it() {
    let bench = bench!();
    let ended = bench.sh("echo out; echo err >&2; exit 3");
    ended.until_recorded("failed");
    let split = bench.sh_with(
        &["--split-output", "--task", "a\"b\\c"],
        "echo out; echo err >&2",
    );
    split.until_recorded("done");
    bench.run(["pool", "add", "web", "--slots", "3"]).expect(0);
    let queued = bench.queued(&["--pool", "web", "--no-supervisor"], "true");
    let page = Page::of(&bench, &[]);

    let jobs = page.get("/api/jobs").expect(200);
    assert_eq!(jobs.header("content-type"), Some("application/json"));
    // A worker may have its job for a moment after it has recorded the end.
    until("it says what a list says", || {
        page.get("/api/jobs").json() == Value::Array(bench.list())
    });
    let one = page.get(&format!("/api/jobs/{}", queued.id())).expect(200);
    assert_eq!(
        one.json(),
        bench.run(["status", "--json", queued.id()]).json()
    );
    let pools = page.get("/api/pools").expect(200).json();
    assert_eq!(pools, bench.run(["pool", "list", "--json"]).json());
    let slots = page.get("/api/slots").expect(200).json();
    assert_eq!(slots, bench.run(["pool", "status", "--json"]).json());

    let log = |id: &str, query: &str| page.get(&format!("/api/jobs/{id}/log{query}"));
    let all = log(ended.id(), "").expect(200);
    assert_eq!(all.text(), "out\nerr\n");
    assert_eq!(all.header("outlive-log-next"), Some("8"));
    assert_eq!(all.header("x-content-type-options"), Some("nosniff"));
    assert_eq!(log(ended.id(), "?from=4&bytes=3").text(), "err");
    assert_eq!(log(ended.id(), "?bytes=4").text(), "err\n");
    assert_eq!(log(split.id(), "").text(), "out\n");
    assert_eq!(log(split.id(), "?stream=stderr").text(), "err\n");
    assert_eq!(log(queued.id(), "").expect(200).text(), "");
    log(ended.id(), "?stream=../job.json").expect(400);
    log(ended.id(), "?from=-1").expect(400);
    log("1-nobody", "").expect(404);

    let front = page.get("/").expect(200);
    let policy = front.header("content-security-policy").expect("a policy");
    assert!(
        policy.starts_with("default-src 'none'; img-src data:; script-src 'sha256-"),
        "{policy}"
    );
    assert!(!policy.contains("unsafe"), "{policy}");
    assert_eq!(page.ask("HEAD", "/", &[]).expect(200).body, b"");
    for path in [
        "/nothing",
        "/api",
        "/api/jobs/..",
        "/api/jobs/../job.json/log",
        "/api/jobs/",
        "//",
    ] {
        page.get(path).expect(404);
    }
    page.ask("DELETE", "/api/jobs", &[]).expect(405);
    page.get(&format!("/api/jobs/{}/stop", queued.id()))
        .expect(405);
    page.end(Signal::TERM);
    bench.stop_all();
    bench.audit();
}

#[test]
fn metrics_are_what_is_in_the_store() {
    let bench = bench!();
    bench.sh("exit 3").until_recorded("failed");
    let running = bench.sh("sleep 600");
    bench.run(["pool", "add", "web", "--slots", "3"]).expect(0);
    let supervisor = bench.supervise_ready();
    let inside = bench.queued(&["--pool", "web"], "sleep 600");
    inside.until_recorded("running");
    for _ in 0..2 {
        bench.queued(&["--pool", "web", "--slots", "3"], "true");
    }
    let page = Page::of(&bench, &[]);
    let read = || {
        let answer = page.get("/metrics").expect(200);
        let kind = answer.header("content-type").map(str::to_owned);
        assert_eq!(
            kind.as_deref(),
            Some("text/plain; version=0.0.4; charset=utf-8")
        );
        metrics::parse(&answer.text())
    };
    let of = |all: &BTreeMap<metrics::Series, f64>, name: &str, labels: &[(&str, &str)]| {
        let labels = labels
            .iter()
            .map(|(k, v)| ((*k).to_owned(), (*v).to_owned()));
        all.get(&(name.to_owned(), labels.collect())).copied()
    };
    let all = read();
    let jobs = |state| of(&all, "outlive_jobs", &[("state", state)]);
    assert_eq!(jobs("failed"), Some(1.0));
    assert_eq!(jobs("running"), Some(2.0));
    assert_eq!(jobs("queued"), Some(2.0));
    assert_eq!(jobs("interrupted"), Some(0.0));
    let slots = |state| {
        of(
            &all,
            "outlive_pool_slots",
            &[("pool", "web"), ("state", state)],
        )
    };
    assert_eq!((slots("idle"), slots("claimed")), (Some(2.0), Some(1.0)));
    assert_eq!(
        of(&all, "outlive_queue_depth", &[("pool", "web")]),
        Some(2.0)
    );
    assert_eq!(of(&all, "outlive_supervisor_up", &[]), Some(1.0));
    assert_eq!(of(&all, "outlive_unreadable", &[]), Some(0.0));
    drop(supervisor);
    bench.end_supervisor();
    let broken = bench.root().join("jobs/1-broken");
    fs::create_dir(&broken).expect("there is room");
    until("it is seen", || {
        let all = read();
        of(&all, "outlive_supervisor_up", &[]) == Some(0.0)
            && of(&all, "outlive_unreadable", &[]) == Some(1.0)
    });
    fs::remove_dir(&broken).expect("it is empty");
    assert_eq!(running.state(), "running");
    page.end(Signal::TERM);
    bench.crashes();
    bench.stop_all();
    bench.audit();
}

#[test]
fn whoever_listens_is_told_everything_and_then_what_changes() {
    let bench = bench!();
    let old = bench.sh("true");
    old.until_recorded("done");
    let page = Page::of(&bench, &[]);
    let mut events = page.events();
    let (hello, about) = events.hear();
    assert_eq!(
        (hello.as_str(), &about["changes"]),
        ("hello", &json!(false))
    );
    events.until_state(old.id(), "done");
    events.until("ready", |_| Some(()));

    let job = bench.sh("echo first; until test -e go; do sleep 0.01; done; echo second; until test -e end; do sleep 0.01; done; exit 5");
    events.until_state(job.id(), "running");
    let stream = about["stream"].as_u64().expect("a number");
    let follow = |job: &str| page.get(&format!("/events/{stream}/follow?job={job}"));
    follow(job.id()).expect(200);
    events.until("output", |output| (output["job"] == job.id()).then_some(()));
    follow("1-nobody").expect(404);
    page.get("/events/999/follow?job=").expect(404);
    fs::write(bench.file("go"), "").expect("there is room");
    events.until("output", |_| {
        let log = page.get(&format!("/api/jobs/{}/log?from=6", job.id()));
        (log.text() == "second\n").then_some(())
    });
    fs::write(bench.file("end"), "").expect("there is room");
    events.until_state(job.id(), "failed");
    bench.run(["clean", old.id()]).expect(0);
    events.until("gone", |gone| (gone == &json!([old.id()])).then_some(()));
    bench.run(["pool", "add", "web", "--slots", "3"]).expect(0);
    events.until("pools", |told| {
        let mut pools = told["pools"].as_array().into_iter().flatten();
        pools.any(|pool| pool["name"] == "web").then_some(())
    });
    // Whoever comes again is told what is so now.
    let mut again = page.events();
    again.until("reset", |told| (told["jobs"] == 1).then_some(()));
    again.until_state(job.id(), "failed");
    page.end(Signal::INT);
    bench.audit();
}

#[test]
fn one_who_does_not_read_learns_what_is_so_when_he_does() {
    let bench = bench!();
    // Where that is allowed, on a file system that syncs nothing: to stop them all would take longest.
    bench.mount("200m");
    let page = Page::of(&bench, &[]);
    let mut slow = page.events();
    slow.until("ready", |_| Some(()));
    let long = "x".repeat(10_000);
    let lines: Vec<Value> = (0..1000)
        .map(|_| json!({ "argv": ["true", long] }))
        .collect();
    let jobs = bench.queued_from(&["--no-supervisor"], &lines);
    let last = jobs.last().expect("there are some").id().to_owned();
    let mut other = page.events();
    other.until_state(&last, "queued");
    bench.stop_all();
    other.until_state(&last, "cancelled");
    let mut states: BTreeMap<String, Value> = BTreeMap::new();
    while states.len() < 1000 || states.values().any(|state| state != "cancelled") {
        let told = slow.until("jobs", |jobs| jobs.as_array().cloned());
        for job in told {
            let id = job["id"].as_str().expect("an id").to_owned();
            states.insert(id, job["state"].clone());
        }
    }
    page.end(Signal::TERM);
    bench.audit();
}

#[test]
fn nobody_changes_anything_without_the_token() {
    let bench = bench!();
    let job = bench.sh("sleep 600");
    let shows = Page::of(&bench, &[]);
    assert_eq!(shows.fragment, "");
    let path = |verb: &str| format!("/api/jobs/{}/{verb}", job.id());
    shows.ask("POST", &path("stop"), &[]).expect(403);

    let page = Page::of(&bench, &["--allow-changes"]);
    let bearer = page.bearer();
    let with = ("Authorization", bearer.as_str());
    let post = |verb: &str, headers: &[(&str, &str)]| page.ask("POST", &path(verb), headers);
    post("stop", &[]).expect(401);
    post("stop", &[("Authorization", "Bearer x")]).expect(401);
    post("stop", &[with, with]).expect(401);
    page.ask(
        "POST",
        &format!("{}?token={}", path("stop"), &bearer[7..]),
        &[],
    )
    .expect(401);
    post("stop", &[with, ("Origin", "http://evil.example")]).expect(403);
    post("remove", &[with]).expect(404);
    page.ask("POST", "/api/jobs/1-nobody/stop", &[with])
        .expect(404);
    assert_eq!(job.state(), "running");

    post("pause", &[with]).expect(200);
    job.until_recorded("paused");
    let origin = format!("http://{}", page.address);
    post("resume", &[with, ("Origin", &origin)]).expect(200);
    job.until_recorded("running");
    let again = post("restart", &[with, ("Content-Length", "0")])
        .expect(200)
        .json();
    job.until_recorded("cancelled");
    let new = bench.job(again["job"].as_str().expect("a new job"));
    new.until_recorded("running");
    let told = post("pause", &[with]).expect(409).json();
    assert!(
        told["error"]
            .as_str()
            .is_some_and(|why| why.contains("ended")),
        "{told}"
    );
    page.ask("POST", &format!("/api/jobs/{}/stop", new.id()), &[with])
        .expect(200);
    assert_eq!(new.state(), "cancelled");
    page.end(Signal::TERM);
    shows.end(Signal::TERM);
    bench.audit();
}

#[test]
fn a_stop_that_nobody_could_be_asked_for_is_not_called_done() {
    let bench = bench!();
    let job = bench.sh("sleep 600");
    let page = Page::of(&bench, &["--allow-changes"]);
    let bearer = page.bearer();
    let with = [("Authorization", bearer.as_str())];
    let path = format!("/api/jobs/{}/stop", job.id());
    // Nothing can be written there.
    let staging = bench.root().join("staging");
    let moved = bench.root().join("staging.away");
    fs::rename(&staging, &moved).expect("it is there");
    std::os::unix::fs::symlink("/proc/self/fdinfo", &staging).expect("there is room");
    let told = page.ask("POST", &path, &with).expect(500).json();
    assert_eq!(told["code"], 1, "{told}");
    assert!(told["error"].is_string(), "{told}");
    assert_eq!(job.state(), "running");
    fs::remove_file(&staging).expect("it is there");
    fs::rename(&moved, &staging).expect("it is there");
    page.ask("POST", &path, &with).expect(200);
    assert_eq!(job.state(), "cancelled");

    // One that needed SIGKILL is done, too.
    let deaf = bench.sh_with(
        &["--grace", "50ms"],
        "trap '' TERM; echo deaf; while :; do sleep 600; done",
    );
    until("it is deaf", || deaf.log_text().contains("deaf"));
    let path = format!("/api/jobs/{}/stop", deaf.id());
    let told = page.ask("POST", &path, &with).expect(200).json();
    assert_eq!(told["code"], 1, "{told}");
    page.end(Signal::TERM);
    bench.audit();
}

#[test]
fn a_piece_of_long_jobs_is_not_long() {
    const MOST: usize = 1 << 20;
    let bench = bench!();
    let long = "x".repeat(100_000);
    let lines: Vec<Value> = (0..40)
        .map(|_| json!({ "argv": ["true", long, long] }))
        .collect();
    bench.queued_from(&["--no-supervisor"], &lines);
    let page = Page::of(&bench, &[]);
    assert_eq!(
        page.get("/api/jobs")
            .expect(200)
            .json()
            .as_array()
            .map(Vec::len),
        Some(40)
    );
    for path in ["/api/jobs", "/events"] {
        let head = format!("GET {path} HTTP/1.1\r\nHost: {}\r\n\r\n", page.address);
        let lengths = client::lengths_of_chunks(page.connect(), head.as_bytes(), 8_000_000);
        assert!(lengths.len() >= 8, "{path}: {lengths:?}");
        assert!(
            lengths.iter().all(|length| *length < MOST),
            "{path}: {lengths:?}"
        );
    }
    page.end(Signal::TERM);
    bench.stop_all();
    bench.audit();
}

#[test]
fn a_request_that_is_not_meant_for_the_page_is_refused() {
    let bench = bench!();
    let page = Page::of(&bench, &[]);
    let port = page.address.port();
    for path in ["/", "/events", "/metrics", "/api/jobs"] {
        for host in [
            "evil.example",
            &format!("evil.example:{port}"),
            "127.0.0.1",
            "127.0.0.1:1",
        ] {
            page.ask("GET", path, &[("Host", host)]).expect(403);
        }
        for (name, value) in [
            ("Origin", "http://evil.example"),
            ("Origin", "null"),
            ("Sec-Fetch-Site", "cross-site"),
        ] {
            page.ask("GET", path, &[(name, value)]).expect(403);
        }
    }
    page.ask("GET", "/", &[("Host", &format!("localhost:{port}"))])
        .expect(200);
    let none = answer_to(
        page.connect(),
        b"GET / HTTP/1.1\r\nConnection: close\r\n\r\n",
    );
    none.expect(403);
    page.end(Signal::TERM);
    bench.audit();
}

#[test]
fn nobody_can_make_it_hold_more_than_it_wants_to() {
    let bench = bench!();
    let page = Page::of(&bench, &["--allow-changes"]);
    // A head without an end.
    let mut endless = page.connect();
    let sent = (0..100_000).take_while(|_| endless.write_all(b"X-More: of the same\r\n").is_ok());
    assert!(sent.count() < 100_000);
    let long = format!("/{}", "x".repeat(40_000));
    let refused = page.get(&long).status;
    assert!(matches!(refused, 0 | 414 | 431), "{refused}");
    // A body that nobody reads.
    let bearer = page.bearer();
    let body = [
        ("Authorization", bearer.as_str()),
        ("Content-Length", "100000000"),
    ];
    page.ask("POST", "/api/jobs/1-a/stop", &body).expect(413);
    // Connections over which nothing is asked, more than it has room for.
    let idle: Vec<_> = (0..400).map(|_| page.connect()).collect();
    page.get("/api/jobs").expect(200);
    let mut first = &idle[0];
    let closed = first.read(&mut [0; 16]);
    assert!(!matches!(closed, Ok(1..)), "{closed:?}");
    // Listeners, as many as there may be: the next is told to come later, and comes once one has gone.
    let mut listeners: Vec<_> = (0..64).map(|_| page.events()).collect();
    assert_eq!(
        page.get("/events").expect(503).header("retry-after"),
        Some("2")
    );
    page.get("/api/jobs").expect(200);
    listeners.pop();
    until("there is room", || {
        let mut stream = page.connect();
        let head = format!("GET /events HTTP/1.1\r\nHost: {}\r\n\r\n", page.address);
        stream.write_all(head.as_bytes()).expect("it reads");
        let mut status = [0; 12];
        stream.read_exact(&mut status).expect("it answers");
        status.ends_with(b"200")
    });
    page.end(Signal::TERM);
    bench.audit();
}

#[test]
fn what_cannot_be_served_is_said_with_a_code() {
    let bench = bench!();
    for address in [
        "0.0.0.0:0",
        "[::]:0",
        "192.0.2.1:0",
        "example.org:80",
        "nonsense",
    ] {
        let ran = bench.run(["serve", "--listen", address]).expect(2);
        assert_eq!(ran.errors().lines().count(), 1, "{}", ran.errors());
    }
    let taken = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = taken.local_addr().expect("it has one").to_string();
    let ran = bench.run(["serve", "--listen", &address]).expect(1);
    assert!(ran.errors().contains(&address), "{}", ran.errors());
    let file = bench.file("token");
    fs::write(&file, "0123456789abcdef\n").expect("there is room");
    fs::set_permissions(&file, fs::Permissions::from_mode(0o644)).expect("it is ours");
    let name = file.to_str().expect("it is text");
    bench.run(["serve", "--token-file", name]).expect(2);
    fs::set_permissions(&file, fs::Permissions::from_mode(0o600)).expect("it is ours");
    let page = Page::of(&bench, &["--token-file", name]);
    assert_eq!(page.fragment, "");
    let with = ("Authorization", "Bearer 0123456789abcdef");
    page.ask("POST", "/api/jobs/1-a/stop", &[with]).expect(404);
    page.end(Signal::TERM);
    bench.audit();
}

#[test]
fn a_browser_shows_it_live_and_runs_nothing_that_a_job_says() {
    let bench = bench!();
    let Some(browser) = Browser::open(&bench) else {
        bench.audit();
        return;
    };
    const EVIL: &str = "<img src=x onerror=document.title='evil'>";
    let page = Page::of(&bench, &["--allow-changes"]);
    let script = "echo \"$1\"; until test -e go; do sleep 0.01; done; echo then; sleep 600";
    let job = bench.start([
        "--name", "web", "--task", EVIL, "--", "sh", "-c", script, "sh", EVIL,
    ]);
    browser.go(&format!("http://{}/#{}", page.address, page.fragment));
    let row = format!("document.getElementById('job-{}')", job.id());
    browser.until(&row);
    browser.until(&format!("{row}.cells[0].textContent === 'running'"));
    assert_eq!(
        browser.run(&format!("return {row}.cells[2].textContent")),
        EVIL
    );
    assert_eq!(browser.run("return location.hash"), "");

    browser.run(&format!("{row}.click()"));
    browser.until("document.getElementById('log').textContent.includes('onerror')");
    fs::write(bench.file("go"), "").expect("there is room");
    browser.until("document.getElementById('log').textContent.endsWith('then\\n')");
    assert_eq!(browser.run("return document.images.length"), 0);
    assert_eq!(browser.run("return document.title"), "outlive");

    let other = bench.sh("exit 3");
    let exits = format!(
        "document.getElementById('job-{}')?.cells[4].textContent === '3'",
        other.id()
    );
    browser.until(&exits);
    browser.run("const f = document.getElementById('filter'); f.value = 'WEB'; f.dispatchEvent(new Event('input'))");
    browser.until("document.querySelectorAll('#rows tr').length === 1");
    browser.run("document.querySelector('#changes [data-verb=stop]').click()");
    browser.until(&format!("{row}.cells[0].textContent === 'cancelled'"));
    assert_eq!(job.state(), "cancelled");
    bench.run(["clean", job.id()]).expect(0);
    browser.until("document.querySelectorAll('#rows tr').length === 0");
    drop(browser);
    page.end(Signal::TERM);
    bench.audit();
}

#[test]
fn a_browser_shows_no_command_for_a_terminal_nor_half_of_one() {
    let bench = bench!();
    let Some(browser) = Browser::open(&bench) else {
        bench.audit();
        return;
    };
    let page = Page::of(&bench, &[]);
    let step = |nth: u8, text: &str| {
        format!("until test -e go{nth}; do sleep 0.01; done; printf '{text}'; ")
    };
    let script = [
        // What `tput sgr0` writes, a cursor that is kept, and half of a colour.
        "printf '\\033(B\\033[mone\\0337\\033[3';".to_owned(),
        // The other half; a title with an end, and one without.
        step(1, "1mtwo\\033]0;title\\007three\\033]0;no end\\nfour\\033"),
        step(2, "[0mfive\\n"),
    ];
    let job = bench.sh(&script.concat());
    browser.go(&format!("http://{}/#job={}", page.address, job.id()));
    let log = "document.getElementById('log').textContent";
    browser.until(&format!("{log} === 'one'"));
    fs::write(bench.file("go1"), "").expect("there is room");
    browser.until(&format!("{log} === 'onetwothree\\nfour'"));
    fs::write(bench.file("go2"), "").expect("there is room");
    browser.until(&format!("{log} === 'onetwothree\\nfourfive\\n'"));
    drop(browser);
    page.end(Signal::TERM);
    bench.audit();
}

/// Half a command for a terminal, and half a character, at the end of a file that nobody goes on with, are none in the next.
#[test]
fn a_browser_puts_no_halves_of_two_files_together() {
    let bench = bench!();
    let Some(browser) = Browser::open(&bench) else {
        bench.audit();
        return;
    };
    let page = Page::of(&bench, &[]);
    let job = bench.sh("printf 'one\\033[3\\303'; until test -e go; do sleep 0.01; done");
    browser.go(&format!("http://{}/#job={}", page.address, job.id()));
    let log = "document.getElementById('log').textContent";
    browser.until(&format!("{log}.startsWith('one')"));
    // As a rotation does it.
    fs::rename(job.file("log"), job.file("log.1")).expect("it is there");
    fs::write(job.file("log"), "1mtwo\n").expect("there is room");
    fs::set_permissions(job.file("log"), fs::Permissions::from_mode(0o600)).expect("it is ours");
    let said = browser.until(&format!("{log}.endsWith('two\\n') && {log}"));
    let (_, next) = said
        .as_str()
        .and_then(|said| said.split_once("after a rotation …\n"))
        .expect("it is said that it is another file");
    assert_eq!(next, "1mtwo\n");
    fs::write(bench.file("go"), "").expect("there is room");
    job.wait();
    drop(browser);
    page.end(Signal::TERM);
    bench.audit();
}

/// How long it takes until a change is told, and until a thousand jobs are. `cargo test … figures -- --ignored --nocapture`.
#[test]
#[ignore = "figures, for people"]
fn figures() {
    let bench = bench!();
    let page = Page::of(&bench, &[]);
    let mut events = page.events();
    events.until("ready", |_| Some(()));
    let mut latencies = Vec::new();
    for _ in 0..20 {
        let job = bench.sh("sleep 600");
        events.until_state(job.id(), "running");
        let asked = Instant::now();
        job.request_cancel(&bench);
        events.until_state(job.id(), "cancelled");
        latencies.push(asked.elapsed());
    }
    latencies.sort();
    println!("stop asked to told: {latencies:?}");
    let lines: Vec<Value> = (0..1000)
        .map(|_| json!({ "argv": ["true", "some", "arguments"] }))
        .collect();
    bench.queued_from(&["--no-supervisor"], &lines);
    bench.stop_all();
    for _ in 0..5 {
        let began = Instant::now();
        page.events().until("ready", |_| Some(()));
        let events = began.elapsed();
        let began = Instant::now();
        let length = page.get("/api/jobs").body.len();
        println!(
            "1000 jobs: told in {events:?}; {length} bytes asked for in {:?}",
            began.elapsed()
        );
    }
    page.end(Signal::TERM);
    bench.audit();
}

/// Ask a job to end, without a process that must be started first.
trait Cancel {
    fn request_cancel(&self, bench: &Bench);
}

impl Cancel for outlive_tests::Job<'_> {
    fn request_cancel(&self, bench: &Bench) {
        let id = outlive::state_machine::id::JobId::parse(self.id()).expect("an id");
        let job = bench.store().job(&id);
        job.request(outlive::state_machine::control::Request::Cancel)
            .expect("it can be asked");
    }
}
