//! Repositories of a hub. The hub is of the tests' own making, and the hub's own client is the judge of it, where it is installed.

use std::fs;
use std::path::Path;

use outlive_tests::{
    Bench, Hub, Ran, Repo, Served, Server, bench, digest_of, program_at, tree_of, until,
};
use serde_json::json;

use super::pull::{
    account, begin_with, notes, nothing_is_left, only_job, progress_is_sound, pull_with,
};

const NAME: &str = "models/owner/name";

/// Small files and large ones, with names of every kind that is safe.
fn repo() -> Repo {
    let bytes = |length, number| Served::of_length(length, number).bytes.to_vec();
    Repo::new(
        NAME,
        &[
            (".gitattributes", b"*.bin filter=lfs\n".to_vec()),
            ("README.md", bytes(900, 1)),
            ("config.json", b"{}".to_vec()),
            ("data/a b [1].txt", bytes(5_000, 2)),
            ("data/deep/er/gr\u{f6}\u{df}e%2e.txt", bytes(10, 3)),
            ("empty", Vec::new()),
            ("model-1.bin", bytes(400_000, 4)),
            ("model-2.bin", bytes(150_000, 5)),
            ("same.bin", bytes(150_000, 5)),
        ],
    )
}

fn pull(bench: &Bench, hub: &Hub, reference: &str, options: &[&str]) -> Ran {
    pull_with(bench, &environment(bench, hub), reference, options)
}

/// Nobody has logged in.
fn environment(bench: &Bench, hub: &Hub) -> Vec<(&'static str, String)> {
    let home = bench.dir().join("home");
    vec![
        ("HF_ENDPOINT", hub.endpoint()),
        ("HF_HOME", home.to_str().unwrap().to_owned()),
        ("HF_TOKEN", String::new()),
        ("HUGGING_FACE_HUB_TOKEN", String::new()),
    ]
}

#[track_caller]
fn is_all_there(dir: &Path, hub: &Hub) {
    let found = tree_of(dir, &[]);
    let wanted = hub.repo().files.clone();
    assert_eq!(
        found.keys().collect::<Vec<_>>(),
        wanted.keys().collect::<Vec<_>>()
    );
    assert!(found == wanted, "every file is right");
    nothing_is_left(dir);
}

#[test]
fn every_file_of_one_commit() {
    let bench = bench!();
    let hub = Hub::new(repo());
    pull(&bench, &hub, "hf:owner/name", &[]).expect(0);
    is_all_there(&bench.file("name"), &hub);
    let commit = hub.repo().commit.clone();
    for request in hub.api.asked() {
        if request.path.contains("/resolve/") || request.path.contains("/tree/") {
            assert!(request.path.contains(&commit), "{}", request.path);
        }
    }
    let job = only_job(&bench);
    let shown = job.shown();
    assert_eq!(shown["progress"]["files_done"], 9);
    assert_eq!(shown["progress"]["files_total"], 9);
    assert_eq!(
        shown["progress"]["done_bytes"],
        shown["progress"]["total_bytes"]
    );
    assert!(
        notes(&job).iter().any(|note| note.contains(&commit)),
        "{:?}",
        notes(&job)
    );
    // What is in a signed address is written down nowhere.
    for name in ["status.json", "events.jsonl", "log"] {
        let text = String::from_utf8(fs::read(job.file(name)).unwrap_or_default()).unwrap();
        assert!(!text.contains("signature"), "{name}: {text}");
    }
    bench.audit();
}

/// The hub's own client fetches the same tree from the same hub. Without it, nothing is shown of how true our hub is.
#[test]
fn the_client_of_the_hub_fetches_the_same() {
    let Some(python) = program_at("python3") else {
        return;
    };
    let bench = bench!();
    let mut probe = bench.program(&python);
    probe.args(["-c", "import huggingface_hub"]);
    if bench.end(probe).code() != 0 {
        eprintln!("left out: python3 has no huggingface_hub here");
        bench.audit();
        return;
    }
    let hub = Hub::new(repo());
    let snapshot = |options: &str, dir: &str| {
        let script = format!(
            "from huggingface_hub import snapshot_download\nsnapshot_download('owner/name', local_dir='{dir}', {options})"
        );
        let mut command = bench.program(&python);
        command
            .args(["-c", &script])
            .envs(environment(&bench, &hub))
            .env("HF_HUB_DISABLE_XET", "1");
        bench.end(command).expect(0);
        tree_of(&bench.file(dir), &[".cache"])
    };
    let theirs = snapshot("", "theirs");
    pull(&bench, &hub, "hf:owner/name", &["--to", "ours"]).expect(0);
    assert!(
        tree_of(&bench.file("ours"), &[]) == theirs,
        "both trees are the same"
    );
    is_all_there(&bench.file("ours"), &hub);
    for (nth, (include, exclude)) in [
        ("*.bin", "same*"),
        ("data/", "*er*"),
        ("[!m]*", "*.md"),
        ("*.[jt]*", "data/deep/**"),
    ]
    .into_iter()
    .enumerate()
    {
        let options = format!("allow_patterns=['{include}'], ignore_patterns=['{exclude}']");
        let theirs = snapshot(&options, &format!("theirs-{nth}"));
        let ours = format!("ours-{nth}");
        pull(
            &bench,
            &hub,
            "hf:owner/name",
            &["--to", &ours, "--include", include, "--exclude", exclude],
        )
        .expect(0);
        let ours = tree_of(&bench.file(&ours), &[]);
        assert_eq!(
            ours.keys().collect::<Vec<_>>(),
            theirs.keys().collect::<Vec<_>>(),
            "{include} {exclude}"
        );
        assert!(ours == theirs);
    }
    bench.audit();
}

#[test]
fn only_what_is_asked_for() {
    let bench = bench!();
    let hub = Hub::new(repo());
    pull(
        &bench,
        &hub,
        "hf:owner/name",
        &[
            "--include",
            "data/",
            "--include",
            "*.json",
            "--exclude",
            "*deep*",
        ],
    )
    .expect(0);
    let found: Vec<String> = tree_of(&bench.file("name"), &[]).into_keys().collect();
    assert_eq!(found, ["config.json", "data/a b [1].txt"]);
    let ran = pull(
        &bench,
        &hub,
        "hf:owner/name",
        &["--to", "none", "--include", "*.gguf"],
    )
    .expect(1);
    assert!(
        ran.errors().contains("none of the 9 files"),
        "{}",
        ran.errors()
    );
    assert!(tree_of(&bench.file("none"), &[]).is_empty());
    bench.audit();
}

#[test]
fn data_sets_and_revisions() {
    let bench = bench!();
    let mut repo = repo();
    repo.name = "datasets/owner/name".into();
    let hub = Hub::new(repo);
    pull(&bench, &hub, "hf:datasets/owner/name@refs/pr/4", &[]).expect(0);
    is_all_there(&bench.file("name"), &hub);
    assert!(
        hub.api.asked()[0].path.ends_with("/revision/refs%2Fpr%2F4"),
        "{:?}",
        hub.api.asked()[0]
    );
    let ran = pull(
        &bench,
        &hub,
        "hf:datasets/owner/name",
        &["--revision", "v9", "--to", "x"],
    )
    .expect(1);
    assert!(
        ran.errors().contains("has no revision v9"),
        "{}",
        ran.errors()
    );
    bench.audit();
}

#[test]
fn what_is_refused_is_said_with_what_to_do() {
    for (status, code, words) in [
        (403, "GatedRepo", ["gated", "HF_TOKEN"]),
        (401, "RepoNotFound", ["private", "HF_TOKEN"]),
        (
            404,
            "RepoNotFound",
            ["there is no hf:owner/name", "private"],
        ),
        (404, "RevisionNotFound", ["no revision", "main"]),
    ] {
        let bench = bench!();
        let mut repo = repo();
        repo.refusals.push(("/api/".into(), status, code.into()));
        let hub = Hub::new(repo);
        let ran = pull(&bench, &hub, "hf:owner/name", &[]).expect(1);
        for word in words {
            assert!(ran.errors().contains(word), "{code}: {}", ran.errors());
        }
        assert_eq!(
            hub.api.asked().len(),
            1,
            "{code}: it would be the same again"
        );
        assert!(tree_of(&bench.file("name"), &[]).is_empty());
        bench.audit();
    }
}

/// Of a gated repository everybody may see what there is, and only some may have it.
#[test]
fn what_a_hub_says_about_a_file_is_shown() {
    let bench = bench!();
    let mut repo = repo();
    let commit = repo.commit.clone();
    let of_files = format!("/owner/name/resolve/{commit}/");
    repo.refusals.push((of_files, 403, "GatedRepo".into()));
    let hub = Hub::new(repo);
    let ran = pull(&bench, &hub, "hf:owner/name", &[]).expect(1);
    assert!(
        ran.errors().contains("the server says: it is a GatedRepo"),
        "{}",
        ran.errors()
    );
    assert!(tree_of(&bench.file("name"), &[".outlive-part"]).is_empty());
    bench.audit();
}

/// P44: the token is for the hub, and not for who has the large files.
#[test]
fn a_token_is_shown_to_the_hub_alone() {
    let bench = bench!();
    let mut repo = repo();
    repo.token = Some("hf_secret".into());
    let hub = Hub::new(repo);
    let mut environment = environment(&bench, &hub);
    fs::create_dir_all(bench.dir().join("home")).unwrap();
    fs::write(bench.dir().join("home/token"), "hf_secret\n").unwrap();
    pull_with(&bench, &environment, "hf:owner/name", &[]).expect(0);
    is_all_there(&bench.file("name"), &hub);
    let stored = hub.storage.asked();
    assert_eq!(stored.len(), 3);
    assert!(
        stored
            .iter()
            .all(|it| it.header("authorization").is_none() && it.header("cookie").is_none())
    );
    environment.push(("HF_HUB_DISABLE_IMPLICIT_TOKEN", "1".into()));
    pull_with(&bench, &environment, "hf:owner/name", &["--to", "x"]).expect(1);
    environment.pop();
    environment.push(("HF_TOKEN", "hf_other".into()));
    let ran = pull_with(&bench, &environment, "hf:owner/name", &["--to", "y"]).expect(1);
    assert!(ran.errors().contains("may not see it"), "{}", ran.errors());
    assert!(!ran.errors().contains("hf_other"));
    bench.audit();
}

/// P55: names that lead elsewhere are refused before anything is written.
#[test]
fn a_name_that_leads_elsewhere_is_refused() {
    for name in [
        "../x",
        "/abs",
        "a/../../x",
        "C:\\x",
        "a\u{0}b",
        "%2e%2e/x",
        "a/./b",
        ".outlive-part/x",
        "README.md/x",
        "README.md",
    ] {
        let bench = bench!();
        let mut repo = repo();
        repo.further =
            vec![json!({ "type": "file", "path": name, "size": 1, "oid": "0".repeat(40) })];
        let hub = Hub::new(repo);
        pull(&bench, &hub, "hf:owner/name", &[]).expect(1);
        assert!(tree_of(&bench.work(), &[]).is_empty(), "{name}");
        assert!(
            !hub.api
                .asked()
                .iter()
                .any(|it| it.path.contains("/resolve/")),
            "{name}"
        );
        bench.audit();
    }
}

/// P55: a link that stands where a directory belongs leads nowhere.
#[test]
fn a_link_in_the_destination_is_not_followed() {
    let bench = bench!();
    let hub = Hub::new(repo());
    fs::create_dir_all(bench.file("name")).unwrap();
    fs::create_dir_all(bench.file("elsewhere")).unwrap();
    std::os::unix::fs::symlink(bench.file("elsewhere"), bench.file("name/data")).unwrap();
    let ran = pull(&bench, &hub, "hf:owner/name", &[]).expect(1);
    assert!(ran.errors().contains("is a link"), "{}", ran.errors());
    assert!(tree_of(&bench.file("elsewhere"), &[]).is_empty());
    bench.audit();
}

/// Both kinds of digests are checked: right length, wrong content.
#[test]
fn what_is_not_what_the_hub_says_never_lands() {
    for name in ["README.md", "model-1.bin"] {
        let bench = bench!();
        let mut repo = repo();
        let mut wrong = repo.files[name].clone();
        wrong[0] ^= 1;
        repo.lies.insert(name.into(), wrong);
        let hub = Hub::new(repo);
        let ran = pull(&bench, &hub, "hf:owner/name", &[]).expect(1);
        assert!(ran.errors().contains(name), "{}", ran.errors());
        let landed = tree_of(&bench.file("name"), &[".outlive-part"]);
        assert!(landed.is_empty(), "one that is wrong keeps all of them out");
        bench.audit();
    }
}

/// P30, P32, P58: some of the files have come, and then the hub has none. That is no success for any verb; what has come is not
/// fetched again.
#[test]
fn some_of_the_files_are_not_the_repository() {
    let bench = bench!();
    let mut repo = repo();
    let of_last = format!("/owner/name/resolve/{}/model-2.bin", repo.commit);
    repo.refusals.push((of_last, 503, String::new()));
    let hub = Hub::new(repo);
    let options = ["--connections", "1", "--retry", "0"];
    pull(&bench, &hub, "hf:owner/name", &options).expect(1);
    assert!(tree_of(&bench.file("name"), &[".outlive-part"]).is_empty());
    let job = only_job(&bench);
    assert_eq!((job.state().as_str(), job.wait()), ("failed", 1));
    assert_eq!(bench.list()[0]["state"], "failed");
    hub.repo().refusals.clear();
    let before = hub.api.asked().len();
    pull(&bench, &hub, "hf:owner/name", &options).expect(0);
    is_all_there(&bench.file("name"), &hub);
    let again: Vec<String> = hub.api.asked()[before..]
        .iter()
        .map(|it| it.path.clone())
        .collect();
    let again: Vec<&String> = again
        .iter()
        .filter(|path| path.contains("/resolve/"))
        .collect();
    assert_eq!(again.len(), 2, "{again:?}");
    bench.audit();
}

/// P20: cuts of several files do not change how much there is in all.
#[test]
fn cuts_of_several_files_change_no_total() {
    let bench = bench!();
    let mut repo = repo();
    repo.cuts = [("model-1.bin", 3), ("model-2.bin", 2), ("README.md", 1)]
        .map(|(path, times)| (path.to_owned(), times))
        .into();
    let length = repo.files.values().map(Vec::len).sum();
    let hub = Hub::new(repo);
    let job = begin_with(&bench, &environment(&bench, &hub), "hf:owner/name", &[]);
    progress_is_sound(&job, length);
    assert_eq!(job.wait(), 0);
    is_all_there(&bench.file("name"), &hub);
    let account = job.shown()["account"].clone();
    assert_eq!(account["fetched_bytes"], length);
    // What is cut short of its first byte is an answer too.
    assert_eq!(account["retries"], 6, "{account}");
    bench.audit();
}

/// A branch that moves in the middle does not mix two commits.
#[test]
fn a_branch_that_moves_changes_nothing() {
    let bench = bench!();
    let mut repo = repo();
    let commit = repo.commit.clone();
    repo.refusals.push((
        format!("/owner/name/resolve/{commit}/model-1.bin"),
        503,
        String::new(),
    ));
    let hub = Hub::new(repo);
    let job = begin_with(
        &bench,
        &environment(&bench, &hub),
        "hf:owner/name",
        &["--retry", "50", "--connections", "1"],
    );
    until("some has come", || {
        hub.api
            .asked()
            .iter()
            .any(|it| it.path.contains("model-1.bin"))
    });
    bench.run(["pause", job.id()]).expect(0);
    hub.repo().refusals.clear();
    let asked = hub.api.asked().len();
    bench.run(["resume", job.id()]).expect(0);
    assert_eq!(job.wait(), 0);
    is_all_there(&bench.file("name"), &hub);
    for request in &hub.api.asked()[asked..] {
        assert!(
            request.path.contains(&commit),
            "the branch is not asked for again: {}",
            request.path
        );
    }
    bench.audit();
}

#[test]
fn a_list_that_leads_back_to_itself_ends() {
    let bench = bench!();
    let mut repo = repo();
    repo.is_endless = true;
    let hub = Hub::new(repo);
    let ran = pull(&bench, &hub, "hf:owner/name", &[]).expect(1);
    assert!(
        ran.errors().contains("leads back to itself"),
        "{}",
        ran.errors()
    );
    bench.audit();
}

/// What is there already is looked at, and not fetched.
#[test]
fn a_second_pull_fetches_what_is_missing() {
    let bench = bench!();
    let hub = Hub::new(repo());
    pull(&bench, &hub, "hf:owner/name", &[]).expect(0);
    fs::remove_file(bench.file("name/model-2.bin")).unwrap();
    fs::write(bench.file("name/README.md"), b"mine").unwrap();
    let before = hub.api.asked().len();
    pull(&bench, &hub, "hf:owner/name", &[]).expect(0);
    is_all_there(&bench.file("name"), &hub);
    let fetched = hub.api.asked()[before..]
        .iter()
        .filter(|it| it.path.contains("/resolve/"))
        .count();
    assert_eq!(fetched, 2);
    let jobs = bench.jobs();
    assert_eq!(account(&jobs[1], "fetched_bytes"), 150_900);
    bench.audit();
}

/// A hub may spell a digest as it likes, but it must be one: without it a wrong file would land.
#[test]
fn a_digest_that_cannot_be_checked_is_no_digest() {
    let right = Served::of_length(20_000, 9).bytes.to_vec();
    let hex = digest_of(&right).replace("sha256:", "");
    let spelt = |oid: &str| {
        let lfs = json!({ "oid": oid, "size": right.len(), "pointerSize": 130 });
        json!({ "type": "file", "path": "large", "size": right.len(), "oid": "1".repeat(40), "lfs": lfs })
    };
    let (upper, prefixed) = (hex.to_uppercase(), format!("sha256:{hex}"));
    for (oid, lie, wanted) in [
        (upper.as_str(), false, 0),
        (&prefixed, false, 0),
        (&upper, true, 1),
        (&prefixed, true, 1),
        ("none", false, 1),
        ("", false, 1),
    ] {
        let bench = bench!();
        let mut repo = Repo::new(NAME, &[("large", right.clone())]);
        repo.listed = Some(vec![spelt(oid)]);
        if lie {
            let wrong = Served::of_length(20_000, 10).bytes.to_vec();
            repo.lies.insert("large".into(), wrong);
        }
        let hub = Hub::new(repo);
        let ran = pull(&bench, &hub, "hf:owner/name", &[]).expect(wanted);
        if wanted == 0 {
            is_all_there(&bench.file("name"), &hub);
        } else {
            assert!(ran.errors().contains("large"), "{oid}: {}", ran.errors());
            assert!(!bench.file("name/large").exists(), "{oid}");
        }
        bench.audit();
    }
}

/// A list whose pages are empty and go on is none.
#[test]
fn a_list_of_empty_pages_ends() {
    let bench = bench!();
    let server = Server::new(|request, reply| {
        if !request.path.contains("/tree/") {
            return reply.answer(200, &[], br#"{"sha":"c0ffee"}"#);
        }
        let link = format!("<?cursor={}>; rel=\"next\"", request.nth);
        reply.answer(200, &[("Link", &link)], b"[]");
    });
    let environment = [("HF_ENDPOINT", server.url("")), ("HF_TOKEN", "x".into())];
    let ran = pull_with(&bench, &environment, "hf:owner/name", &[]).expect(1);
    assert!(ran.errors().contains("does not end"), "{}", ran.errors());
    bench.audit();
}
