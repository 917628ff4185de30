//! A repository of many small files, from a hub of the tests' own, beside the hub's own client.

use std::path::Path;
use std::process::Command;

use outlive_tests::{Hub, Repo, Served, program_at, tree_of};

use super::{Tool, compare as compare_tools, outlive, places};

/// How many files there are, and how long each is, in bytes.
const FILES: usize = 2_000;
const LENGTH: usize = 4_000;

pub(super) fn compare() {
    let mut repo = Repo::new("models/owner/name", &[]);
    repo.page = 1_000;
    for nth in 0..FILES {
        let path = format!("dir-{}/file-{nth}.txt", nth % 20);
        let bytes = Served::of_length(LENGTH, nth as u64).bytes.to_vec();
        repo.files.insert(path, bytes);
    }
    let wanted = repo.files.clone();
    let hub = Hub::new(repo);
    let within = |command: Command, dir: &Path| {
        let mut command = command;
        command
            .env("HF_ENDPOINT", hub.endpoint())
            .env("HF_HOME", dir.join("home"))
            .env("HF_TOKEN", "")
            .env("HF_HUB_DISABLE_XET", "1")
            .env("HF_HUB_DISABLE_TELEMETRY", "1");
        command
    };
    let theirs = |dir: &Path| {
        let python = program_at("python3")?;
        let has_it = Command::new(&python)
            .args(["-c", "import huggingface_hub"])
            .output();
        has_it.is_ok_and(|it| it.status.success()).then(|| {
            let script = "from huggingface_hub import snapshot_download\n\
                          snapshot_download('owner/name', local_dir='name')";
            let mut command = Command::new(python);
            command.args(["-c", script]);
            within(command, dir)
        })
    };
    for (place, at) in places() {
        let scratch = tempfile::tempdir_in(at).expect("a scratch directory can be made");
        let tools = [
            Tool::new("outlive pull --wait", |dir| {
                Some(within(outlive(dir, "hf:owner/name"), dir))
            }),
            Tool::new("huggingface_hub's snapshot_download", theirs),
        ];
        compare_tools(
            &format!("{FILES} files of {LENGTH} bytes from a hub, {place}"),
            scratch.path(),
            &tools,
            |dir| tree_of(&dir.join("name"), &[".cache"]) == wanted,
        );
    }
}
