//! The project file: what it says, what is wrong in it and where, and which tasks belong together.

use std::collections::BTreeSet;
use std::time::Duration;

use proptest::collection::vec;
use proptest::prelude::*;
use state_machine::project::{Invocation, Project, Restart, Signal};

fn read(text: &str) -> Project {
    Project::decode(text.as_bytes()).unwrap_or_else(|error| panic!("{error}"))
}

#[track_caller]
fn refused(text: &str) -> String {
    match Project::decode(text.as_bytes()) {
        Ok(project) => panic!("{project:?}"),
        Err(error) => error.to_string(),
    }
}

#[test]
fn a_file_says_what_its_tasks_run_and_need() {
    let project = read(
        r#"
        [task.db]
        command = ["postgres", "-D", "data"]
        ready = { tcp = "127.0.0.1:5432", timeout = "5s" }
        [task.web]
        command = "bundle exec puma"
        needs = ["db"]
        restart = "on-failure"
        retry = { attempts = 5, backoff = "2s..1m" }
        env = { PORT = "8080" }
        cwd = "web"
        timeout = "1h"
        grace = "3s"
        hooks = { ended = ["notify-send", "over"] }
        "#,
    );
    let [db, web] = ["db", "web"].map(|name| &project.tasks[name]);
    assert_eq!(db.command.argv(), ["postgres", "-D", "data"]);
    let ready = db.ready.as_ref().unwrap();
    assert_eq!(ready.signal, Signal::Tcp("127.0.0.1:5432".into()));
    assert_eq!(ready.timeout, Duration::from_secs(5));
    assert_eq!((db.restart, db.retry.max_attempts), (Restart::Never, 1));
    assert_eq!(web.command.argv(), ["sh", "-c", "bundle exec puma"]);
    assert_eq!(web.needs, ["db"]);
    assert_eq!(web.retry.max_attempts, 5);
    assert_eq!(
        (web.retry.backoff_ms, web.retry.max_backoff_ms),
        (2_000, 60_000)
    );
    assert_eq!(web.env["PORT"], "8080");
    assert_eq!(
        (web.cwd.as_deref(), web.ready.as_ref()),
        (Some("web"), None)
    );
    assert_eq!(web.timeout, Some(Duration::from_secs(3600)));
    assert_eq!(web.grace, Some(Duration::from_secs(3)));
    let told = Invocation::Words(vec!["notify-send".into(), "over".into()]);
    assert_eq!(web.on_end, Some(told));
    assert_eq!(read("").tasks.len(), 0);
}

#[test]
fn what_fails_without_a_number_of_attempts_is_run_again_for_ever() {
    let project = read("[task.a]\ncommand = \"x\"\nrestart = \"on-failure\"\n");
    assert_eq!(project.tasks["a"].retry.max_attempts, u32::MAX);
}

#[test]
fn what_a_service_needs_is_read() {
    let project = read(
        r#"
        [task.web]
        command = "serve"
        ready = { notify = true }
        restart = "always"
        retry = { attempts = 3 }
        watch = ["src/**", "./config.toml"]
        limits = { memory = "512M", cpu = "50%" }
        hooks = { ready = "say ready", failed = ["alarm"] }
        "#,
    );
    let web = &project.tasks["web"];
    assert_eq!(web.ready.as_ref().unwrap().signal, Signal::Notify);
    assert_eq!(web.restart, Restart::Always);
    let retry = web.retry;
    assert!(retry.always && retry.in_a_row && retry.max_attempts == 3);
    assert_eq!(web.watch, ["src/**", "config.toml"]);
    assert_eq!(web.limits.memory_bytes, Some(512 << 20));
    assert_eq!(web.limits.cpu_percent, Some(50));
    assert_eq!(web.on_ready, Some(Invocation::Shell("say ready".into())));
    assert_eq!(
        web.on_failure,
        Some(Invocation::Words(vec!["alarm".into()]))
    );
    assert_eq!(web.on_end, None);
    let never = &read("[task.a]\ncommand = \"x\"\n").tasks["a"].retry;
    assert!(!never.always && !never.in_a_row);
}

#[test]
fn what_is_wrong_is_named_with_its_place() {
    let cases = [
        (
            "[task.web]\ncomand = \"x\"\n",
            "line 2, column 1: ",
            "'command' was meant?",
        ),
        (
            "[tasks.web]\ncommand = \"x\"\n",
            "line 1, column 2: ",
            "'task' was meant?",
        ),
        (
            "[task.web]\ncommand = \"x\"\nneeds = [\"dv\"]\n[task.db]\ncommand = \"y\"\n",
            "line 3, column 10: ",
            "no task 'dv'; 'db' was meant?",
        ),
        (
            "[task.web]\ncommand = \"x\"\nneeds = [\"cache\"]\n",
            "line 3, column 10: ",
            "no task 'cache'",
        ),
        (
            "[task.web]\ncommand = 7\n",
            "line 2, column 11: ",
            "a line for a shell, or a list of words",
        ),
        (
            "[task.web]\ncommand = []\n",
            "line 2, column 11: ",
            "at least one word",
        ),
        ("[task.web]\n", "line 1, column 1: ", "command"),
        (
            "[task.web]\ncommand = \"x\"\nready = { tcp = \"5432\" }\n",
            "line 3, column 9: ",
            "a host and a port",
        ),
        (
            "[task.web]\ncommand = \"x\"\nready = { tcp = \"a:1\", delay = \"1s\" }\n",
            "line 3, column 9: ",
            "one of tcp",
        ),
        (
            "[task.web]\ncommand = \"x\"\nready = { timeout = \"1s\" }\n",
            "line 3, column 9: ",
            "one of tcp",
        ),
        (
            "[task.web]\ncommand = \"x\"\nready = { delay = \"soon\" }\n",
            "line 3, column 19: ",
            "'soon' is no length of time",
        ),
        (
            "[task.web]\ncommand = \"x\"\nrestart = \"allways\"\n",
            "line 3, column 11: ",
            "'always' was meant?",
        ),
        (
            "[task.web]\ncommand = \"x\"\nready = { notify = false }\n",
            "line 3, column 9: ",
            "notify is true",
        ),
        (
            "[task.web]\ncommand = \"x\"\nwatch = [\"../other\"]\n",
            "line 3, column 10: ",
            "below the root of the project",
        ),
        (
            "[task.web]\ncommand = \"x\"\nwatch = [\"/etc/x\"]\n",
            "line 3, column 10: ",
            "below the root of the project",
        ),
        (
            "[task.web]\ncommand = \"x\"\nlimits = { memory = \"0\" }\n",
            "line 3, column 21: ",
            "nothing runs without memory",
        ),
        (
            "[task.web]\ncommand = \"x\"\nlimits = { cpu = \"half\" }\n",
            "line 3, column 18: ",
            "write 50%",
        ),
        (
            "[task.web]\ncommand = \"x\"\nhooks = { failed = [] }\n",
            "line 3, column 20: ",
            "at least one word",
        ),
        (
            "[task.web]\ncommand = \"x\"\nretry = { attempts = 3 }\n",
            "line 3, column 22: ",
            "on-failure",
        ),
        (
            "[task.web]\ncommand = \"x\"\nrestart = \"on-failure\"\nretry = { backoff = \"2m..1s\" }\n",
            "line 4, column 21: ",
            "the other way round",
        ),
        (
            "[task.web]\ncommand = \"x\"\nneeds = [\"web\"]\n",
            "line 1, column 7: ",
            "'web' needs itself",
        ),
        (
            "[task.a]\ncommand = \"x\"\nneeds = [\"b\"]\n[task.b]\ncommand = \"x\"\nneeds = [\"a\"]\n",
            "line 1, column 7: ",
            "in a circle: a, b",
        ),
        ("[task.web\n", "line 1, column ", ""),
        (
            "[task.web]\ncommand = \"x\"\n[task.web]\ncommand = \"y\"\n",
            "line 3, column ",
            "duplicate",
        ),
        (
            "[task.\"\"]\ncommand = \"x\"\n",
            "line 2, column 11: ",
            "is empty",
        ),
    ];
    for (text, place, why) in cases {
        let said = refused(text);
        assert!(said.starts_with(place), "{text}: {said}");
        assert!(said.contains(why), "{text}: {said}");
        assert!(!said.contains('\n'), "{said}");
    }
    let error = Project::decode(b"# \xc3\xa4\n[task.web]\n\xff").unwrap_err();
    assert_eq!((error.line, error.column), (3, 1));
}

#[test]
fn what_the_file_says_is_quoted_as_it_stands_there() {
    let cases = [
        (
            r#"grace = "expected a string""#,
            "'expected a string' is no length of time",
        ),
        (
            r#"grace = "invalid, expected a map""#,
            "'invalid, expected a map' is no length of time",
        ),
        (
            r#"needs = "x, expected a string""#,
            "\"x, expected a string\", expected a list, as",
        ),
        (r#"grace = "1\n2""#, r"'1\n2' is no length of time"),
    ];
    for (line, why) in cases {
        let said = refused(&format!("[task.web]\ncommand = \"x\"\n{line}\n"));
        assert!(said.contains(why), "{line}: {said}");
    }
}

#[test]
fn an_address_may_name_a_user() {
    let ready = |address: &str| {
        let text = format!("[task.web]\ncommand = \"x\"\nready = {{ http = \"{address}\" }}\n");
        Project::decode(text.as_bytes())
    };
    for address in [
        "http://host",
        "http://me:pw@host/health",
        "http://me:pw@host:8080/health",
        "http://me@host",
        "http://me:p@w@host?x=a@b:c",
        "http://me:pw@[::1]/health",
        "http://[::1]:80/a@b",
    ] {
        assert!(ready(address).is_ok(), "{address}");
    }
    for address in [
        "http://",
        "http://me:pw@",
        "http://me:80@/health",
        "http://me:pw@:80/health",
        "http://me:pw@host:none/health",
        "http://host:none@",
    ] {
        assert!(ready(address).is_err(), "{address}");
    }
}

#[test]
fn a_stop_leaves_what_other_running_tasks_need() {
    let project = read(
        r#"
        [task.db]
        command = "x"
        [task.setup]
        command = "x"
        needs = ["db"]
        [task.web]
        command = "x"
        needs = ["setup"]
        [task.worker]
        command = "x"
        needs = ["setup"]
        "#,
    );
    let stops = |named: &[&str], running: &[&str]| {
        let running = running.iter().copied();
        let running: BTreeSet<&str> = running
            .filter_map(|name| Some(project.tasks.get_key_value(name)?.0.as_str()))
            .collect();
        project.to_stop(named, &running).join(" ")
    };
    assert_eq!(stops(&["web"], &["db", "web"]), "web setup db");
    // The setup has ended long ago, and what it needed is needed still.
    assert_eq!(stops(&["web"], &["db", "web", "worker"]), "web");
    assert_eq!(
        stops(&["web", "worker"], &["db", "web", "worker"]),
        "worker web setup db"
    );
    assert_eq!(stops(&["db"], &["db", "web"]), "db");
}

/// Tasks `t0` … without a circle: each needs only ones before it.
fn graphs() -> impl Strategy<Value = Vec<BTreeSet<usize>>> {
    vec(vec(any::<prop::sample::Index>(), 0..4), 1..12).prop_map(|tasks| {
        let needs = tasks.iter().enumerate().map(|(nth, needs)| {
            let before = needs.iter().filter(|_| nth > 0);
            before.map(|need| need.index(nth.max(1))).collect()
        });
        needs.collect()
    })
}

fn written(graph: &[BTreeSet<usize>]) -> String {
    let tasks = graph.iter().enumerate().map(|(nth, needs)| {
        let needs: Vec<String> = needs.iter().map(|need| format!("\"t{need}\"")).collect();
        format!(
            "[task.t{nth}]\ncommand = \"x\"\nneeds = [{}]\n",
            needs.join(", ")
        )
    });
    tasks.collect()
}

proptest! {
    #[test]
    fn every_task_comes_after_what_it_needs_and_once(graph in graphs(), wanted in any::<prop::sample::Index>()) {
        let project = read(&written(&graph));
        let wanted = format!("t{}", wanted.index(graph.len()));
        let order = project.in_order([wanted.as_str()]);
        prop_assert_eq!(order.last(), Some(&wanted.as_str()));
        prop_assert_eq!(order.iter().collect::<BTreeSet<_>>().len(), order.len());
        for (place, name) in order.iter().enumerate() {
            for need in &project.tasks[*name].needs {
                prop_assert!(order[..place].contains(&need.as_str()), "{} before {}", name, need);
            }
        }
    }

    #[test]
    fn a_circle_is_always_found(graph in graphs(), from in any::<prop::sample::Index>()) {
        // One that everything before it is needed by needs a new last one, which needs it.
        let first = from.index(graph.len());
        let last = graph.len();
        let mut graph = graph;
        graph.push(BTreeSet::from([first]));
        graph[first].insert(last);
        prop_assert!(refused(&written(&graph)).contains("in a circle"));
    }

    #[test]
    fn any_bytes_are_read_or_refused(bytes in vec(any::<u8>(), 0..200)) {
        let _ = Project::decode(&bytes);
    }

    #[test]
    fn no_stop_takes_what_a_running_task_needs(graph in graphs(), running in vec(any::<bool>(), 12), named in any::<prop::sample::Index>()) {
        let project = read(&written(&graph));
        let names: Vec<&str> = project.tasks.keys().map(String::as_str).collect();
        let named = names[named.index(names.len())];
        let running: BTreeSet<&str> = names.iter().zip(running).filter(|(_, runs)| *runs).map(|(name, _)| *name).collect();
        let stops = project.to_stop(&[named], &running);
        prop_assert!(stops.contains(&named));
        for left in running.iter().filter(|task| !stops.contains(*task)) {
            for need in project.in_order([*left]) {
                prop_assert!(need == named || !stops.contains(&need), "{} needs {}", left, need);
            }
        }
    }
}
