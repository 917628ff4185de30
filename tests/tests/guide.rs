//! The guide, typed as it stands: nothing in it fails, and what it says is seen.

use std::fs;
use std::path::Path;
use std::time::Duration;

use outlive_tests::{Bench, Ran, bench, free_port};

/// What the guide has its reader type, but for what is for a terminal and stays.
fn typed() -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/guide.md");
    let guide = fs::read_to_string(path).unwrap();
    let mut script = String::from("set -x\n");
    let mut is_typed = false;
    for line in guide.lines() {
        match line {
            "```sh" => is_typed = true,
            "```" => is_typed = false,
            _ if line.starts_with("outlive up") || line.starts_with("outlive top") => {}
            _ if is_typed => {
                script.push_str(line);
                script.push('\n');
            }
            _ => {}
        }
    }
    script
}

fn run(bench: &Bench, script: &str) -> (String, String) {
    let bin = bench.dir().join("bin");
    fs::create_dir(&bin).unwrap();
    std::os::unix::fs::symlink(bench.binary(), bin.join("outlive")).unwrap();
    let mut path = bin.into_os_string();
    path.push(":");
    path.push(std::env::var_os("PATH").unwrap_or_default());
    let mut bash = bench.program("bash");
    bash.args(["--norc", "-c", script])
        .env("PATH", path)
        .current_dir(bench.work());
    // It waits now and then for what it has started.
    let ran = Ran::run(bash, Duration::from_secs(120));
    (ran.text(), ran.errors())
}

#[test]
fn nothing_in_the_guide_fails() {
    let bench = bench!();
    let mut asked = bench.program("python3");
    asked.args(["-c", "import http.server"]);
    if bench.end(asked).code() != 0 {
        eprintln!("left out: the guide needs Python with its library");
        return bench.audit();
    }
    bench.crashes();
    let script = typed()
        .replace("54320", &free_port().to_string())
        .replace("54380", &free_port().to_string());
    let (said, errors) = run(&bench, &script);
    for seen in [
        "working\ndone\n",
        "db\nweb\nworker\n",
        "attempt     2\n",
        "killed by SIGKILL",
        "site/index.html has changed",
        "interrupted",
        " 0 problems",
    ] {
        assert!(said.contains(seen), "{seen}: {said}\n{errors}");
    }
    // All that is said besides what is typed is that two waits were over before the job was, and what has become of the third.
    let is_expected = |line: &&str| {
        line.starts_with('+')
            || line.ends_with("is still running")
            || line.contains("was interrupted; 'outlive resume' runs it again")
    };
    let complaints: Vec<&str> = errors.lines().filter(|line| !is_expected(line)).collect();
    assert!(complaints.is_empty(), "{complaints:?}");
    bench.audit();
}
