//! What a shell completes: verbs, and the jobs, tasks and pools that there are just then.

use std::fs;
use std::path::Path;

use outlive_tests::{Bench, bench};

/// What bash offers after these words, the last of which is being typed, in `dir`.
fn offered(bench: &Bench, dir: &Path, words: &[&str]) -> Vec<String> {
    let line = words.join(" ");
    let script = r#"
        source <(outlive completions bash)
        COMP_LINE="$1" COMP_POINT=${#1} COMP_TYPE=9
        read -r -a COMP_WORDS <<< "$1"
        [[ $1 == *' ' ]] && COMP_WORDS+=('')
        COMP_CWORD=$((${#COMP_WORDS[@]} - 1))
        _clap_complete_outlive outlive "${COMP_WORDS[COMP_CWORD]}" "${COMP_WORDS[COMP_CWORD-1]}"
        printf '%s\n' "${COMPREPLY[@]}"
    "#;
    // Under its own name, and not under that of the binary that is tested.
    let bin = bench.dir().join("bin");
    if !bin.exists() {
        fs::create_dir(&bin).unwrap();
        std::os::unix::fs::symlink(bench.binary(), bin.join("outlive")).unwrap();
    }
    let mut path = bin.into_os_string();
    path.push(":/usr/bin:/bin");
    let mut bash = bench.program("bash");
    bash.args(["--norc", "-c", script, "bash", &line])
        .env("PATH", path)
        .current_dir(dir);
    let ran = bench.end(bash).expect(0);
    assert_eq!(ran.errors(), "");
    ran.text().lines().map(str::to_owned).collect()
}

#[test]
fn what_there_is_just_then_is_offered() {
    let bench = bench!();
    let elsewhere = bench.work();
    let project = bench.dir().join("project");
    fs::create_dir(&project).unwrap();
    let file = "[task.web]\ncommand = \"x\"\n[task.worker]\ncommand = \"x\"\n";
    fs::write(project.join("outlive.toml"), file).unwrap();
    let job = bench.start(["--name", "walrus", "--", "sleep", "600"]);
    bench
        .run(["pool", "add", "build", "--slots", "2"])
        .expect(0);

    let offer = |dir: &Path, words: &[&str]| offered(&bench, dir, words);
    assert!(offer(&elsewhere, &["outlive", "sta"]).contains(&"status".to_owned()));
    assert_eq!(offer(&elsewhere, &["outlive", "stop", "wal"]), ["walrus"]);
    let begin = &job.id()[..6];
    assert_eq!(offer(&elsewhere, &["outlive", "log", begin]), [job.id()]);
    assert_eq!(
        offer(&project, &["outlive", "start", "w"]),
        ["web", "worker"]
    );
    assert_eq!(offer(&project, &["outlive", "restart", "web"]), ["web"]);
    assert_eq!(
        offer(&elsewhere, &["outlive", "queue", "--pool", "b"]),
        ["build"]
    );
    assert_eq!(
        offer(&elsewhere, &["outlive", "pool", "set", "b"]),
        ["build"]
    );
    job.stop(0);
    bench.audit();
}

#[test]
fn a_shell_that_asks_makes_nothing() {
    let bench = bench!();
    let nowhere = bench.dir().join("nowhere");
    let mut verb = bench.verb(["--", "outlive", "stop", ""]);
    verb.env("OUTLIVE_COMPLETE", "bash")
        .env("_CLAP_COMPLETE_INDEX", "2")
        .env("OUTLIVE_ROOT", &nowhere);
    bench.end(verb).expect(0);
    assert!(!nowhere.exists());
    bench.audit();
}
