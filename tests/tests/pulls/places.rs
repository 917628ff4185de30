//! Where a transfer goes, and what is met there: ways to one place, others at the same place, things that are no files, and what an
//! earlier transfer has left.

use std::fs::{self, File};
use std::os::unix::fs::symlink;
use std::path::Path;
use std::sync::atomic::Ordering;

use outlive_tests::{
    Bench, Hub, Job, Registry, Repo, Served, Server, bench, digest_of, tree_of, until,
};
use rustix::fs::{CWD, FileType, Mode, mknodat};
use serde_json::json;

use super::pull::{
    account, begin, begin_with, halting, holding, notes, nothing_is_left, pull, pull_with, staged,
    until_arrived,
};

const LENGTH: usize = 100_000;
const MANIFEST: &str = "application/vnd.oci.image.manifest.v1+json";
const LAYER: &str = "application/vnd.oci.image.layer.v1.tar+gzip";

/// A repository whose files no other number has.
fn hub(number: u64) -> Hub {
    let names: Vec<String> = (0..40).map(|nth| format!("dir/{nth}.bin")).collect();
    let files: Vec<(&str, Vec<u8>)> = names
        .iter()
        .map(|name| {
            (
                name.as_str(),
                Served::of_length(3_000, number).bytes.to_vec(),
            )
        })
        .collect();
    Hub::new(Repo::new("models/owner/name", &files))
}

fn of_hub(hub: &Hub) -> Vec<(&'static str, String)> {
    vec![("HF_ENDPOINT", hub.endpoint()), ("HF_TOKEN", "x".into())]
}

/// An image with one layer.
fn registry(layer: &[u8]) -> Registry {
    let registry = Registry::new("team/app");
    {
        let mut shelf = registry.shelf();
        let config = shelf.add(
            "application/vnd.oci.image.config.v1+json",
            b"{\"os\":\"linux\"}",
        );
        let layers = [shelf.add(LAYER, layer)];
        let manifest = json!({ "schemaVersion": 2, "mediaType": MANIFEST, "config": config, "layers": layers });
        shelf.add_manifest(Some("v1"), &manifest);
    }
    registry
}

fn image(registry: &Registry) -> String {
    format!("oci:{}/team/app:v1", registry.front.authority())
}

fn says(job: &Job<'_>, text: &str) {
    until(text, || {
        let status = job.status().unwrap_or_default();
        status["status_line"]
            .as_str()
            .is_some_and(|line| line.contains(text))
    });
}

fn pipe(path: &Path) {
    mknodat(CWD, path, FileType::Fifo, Mode::from_raw_mode(0o600), 0).unwrap();
}

/// R12: it is one place, whichever way leads there.
#[test]
fn every_way_to_a_place_is_joined() {
    let bench = bench!();
    let file = Served::of_length(LENGTH, 200);
    let bytes = file.bytes.clone();
    let (server, go) = holding(file);
    let url = server.url("/file.bin");
    fs::create_dir_all(bench.file("real/sub")).unwrap();
    symlink("real/sub", bench.file("link")).unwrap();
    let job = begin(&bench, &url, &["--to", "real/sub/f"]);
    for way in ["real/../real/sub/f", "link/f", "link/../sub/f"] {
        let ran = bench.run(["pull", &url, "--to", way]).expect(0);
        assert_eq!(ran.text(), job.id(), "{way}");
    }
    bench
        .run(["pull", &server.url("/other"), "--to", "link/f"])
        .expect(6);
    go.store(true, Ordering::Relaxed);
    assert_eq!(job.wait(), 0);
    assert!(fs::read(bench.file("real/sub/f")).unwrap() == *bytes);
    assert_eq!(server.asked().len(), 1);
    bench.audit();
}

#[test]
fn a_destination_may_be_a_link() {
    let bench = bench!();
    let file = Served::of_length(LENGTH, 201);
    let bytes = file.bytes.clone();
    let server = Server::new(move |request, reply| file.serve(request, reply));
    fs::create_dir_all(bench.file("real")).unwrap();
    symlink("real", bench.file("link")).unwrap();
    for (to, at) in [
        ("link", "real/file.bin"),
        ("link/f", "real/f"),
        ("link/sub/f", "real/sub/f"),
    ] {
        pull(&bench, &server.url("/file.bin"), &["--to", to]).expect(0);
        assert!(fs::read(bench.file(at)).unwrap() == *bytes, "{to}");
    }
    fs::remove_dir_all(bench.file("real")).unwrap();
    fs::create_dir_all(bench.file("real")).unwrap();
    let hub = hub(202);
    pull_with(&bench, &of_hub(&hub), "hf:owner/name", &["--to", "link"]).expect(0);
    assert!(tree_of(&bench.file("real"), &[]) == hub.repo().files);
    let registry = registry(&Served::of_length(LENGTH, 203).bytes);
    pull_with(&bench, &[], &image(&registry), &["--to", "link"]).expect(0);
    assert!(bench.file("real/index.json").exists());
    nothing_is_left(&bench.file("real"));
    bench.audit();
}

/// R12: two stores know nothing of each other, and two repositories become no mixture. Whoever waits can be told to stop.
#[test]
fn two_repositories_of_two_stores_do_not_mix() {
    let (one, other): (Bench, Bench) = (bench!(), bench!());
    let (first_hub, second_hub) = (hub(204), hub(205));
    let of_files = format!("/owner/name/resolve/{}/", first_hub.repo().commit);
    first_hub
        .repo()
        .refusals
        .push((of_files, 503, String::new()));
    let to = one.file("to");
    let options = [
        "--to",
        to.to_str().unwrap(),
        "--retry",
        "1000",
        "--backoff-max",
        "10ms",
    ];
    let begin = |bench, hub| begin_with(bench, &of_hub(hub), "hf:owner/name", &options);
    let first = begin(&one, &first_hub);
    until("it fetches", || {
        first_hub
            .api
            .asked()
            .iter()
            .any(|it| it.path.contains("/resolve/"))
    });
    // It has the place while it fetches, and not while it waits for its server.
    first_hub.repo().refusals[0].1 = 404;
    assert_eq!(first.wait(), 1);
    let held = File::open(to.join(".outlive-part")).unwrap();
    held.lock().unwrap();
    let second = begin(&other, &second_hub);
    says(&second, "another transfer");
    other.run(["pause", second.id()]).expect(0);
    assert_eq!(second.state(), "paused");
    other.run(["resume", second.id()]).expect(0);
    says(&second, "another transfer");
    second.stop(0);
    assert_eq!(second.state(), "cancelled");
    drop(held);
    first_hub.repo().refusals.clear();
    let both = [begin(&one, &first_hub), begin(&other, &second_hub)];
    assert_eq!(both.map(|job| job.wait()), [0, 0]);
    let found = tree_of(&to, &[]);
    assert!(
        found == first_hub.repo().files || found == second_hub.repo().files,
        "it is one of both"
    );
    nothing_is_left(&to);
    one.audit();
    other.audit();
}

/// Past stopping is only what cannot take long: a lock that somebody has may.
#[test]
fn who_waits_to_register_can_be_stopped() {
    let bench = bench!();
    let registry = registry(&Served::of_length(LENGTH, 206).bytes);
    fs::create_dir_all(bench.file("app")).unwrap();
    let held = File::open(bench.file("app")).unwrap();
    held.lock().unwrap();
    let job = begin_with(&bench, &[], &image(&registry), &[]);
    says(&job, "locked");
    bench.run(["pause", job.id()]).expect(0);
    assert_eq!(job.state(), "paused");
    bench.run(["resume", job.id()]).expect(0);
    says(&job, "locked");
    job.stop(0);
    assert_eq!(job.state(), "cancelled");
    drop(held);
    pull_with(&bench, &[], &image(&registry), &[]).expect(0);
    assert!(bench.file("app/index.json").exists());
    nothing_is_left(&bench.file("app"));
    bench.audit();
}

/// What is no file is nobody's transfer, and is not waited for.
#[test]
fn what_is_no_file_is_named_at_once() {
    type Make = fn(&Path);
    let file: Make = |path| fs::write(path, "mine").unwrap();
    let link: Make = |path| symlink("elsewhere", path).unwrap();
    for (name, make) in [
        ("file.bin", pipe as Make),
        ("file.bin.outlive-part", pipe),
        ("file.bin.outlive-part", file),
        ("file.bin.outlive-part", link),
    ] {
        let bench = bench!();
        let served = Served::of_length(LENGTH, 207);
        let digest = digest_of(&served.bytes).replace("sha256:", "");
        let server = Server::new(move |request, reply| served.serve(request, reply));
        make(&bench.file(name));
        let url = server.url("/file.bin");
        let ran = pull(&bench, &url, &["--sha256", &digest]).expect(1);
        let path = bench.file(name);
        assert!(
            ran.errors().contains(path.to_str().unwrap()),
            "{}",
            ran.errors()
        );
        assert_eq!(server.asked().len(), 0);
        assert!(
            fs::symlink_metadata(&path).is_ok(),
            "it is not ours to remove"
        );
        bench.audit();
    }
    let bench = bench!();
    let registry = registry(&Served::of_length(LENGTH, 208).bytes);
    fs::create_dir_all(bench.file("app")).unwrap();
    pipe(&bench.file("app/index.json"));
    let ran = pull_with(&bench, &[], &image(&registry), &[]).expect(1);
    assert!(ran.errors().contains("index.json"), "{}", ran.errors());
    bench.audit();
}

/// The name of what has arrived leads elsewhere now.
#[test]
fn a_part_that_is_a_link_is_named_and_goes() {
    let bench = bench!();
    let server = halting(Served::of_length(LENGTH, 209), 1);
    let url = server.url("/file.bin");
    let job = begin(&bench, &url, &[]);
    until_arrived(&bench, LENGTH as u64 / 3);
    job.stop(0);
    let staging = bench.file("file.bin.outlive-part");
    let part = staged(&staging, ".part").remove(0);
    let elsewhere = bench.file("elsewhere");
    fs::rename(&part, &elsewhere).unwrap();
    symlink(&elsewhere, &part).unwrap();
    let ran = pull(&bench, &url, &[]).expect(1);
    assert!(
        ran.errors().contains(part.to_str().unwrap()),
        "{}",
        ran.errors()
    );
    assert!(elsewhere.exists());
    bench.run(["clean", job.id()]).expect(0);
    assert!(elsewhere.exists());
    nothing_is_left(&bench.work());
    bench.audit();
}

/// A transfer that could not put what it had fetched into place.
fn left_whole(bench: &Bench, file: Served, options: &[&str]) -> Server {
    let (server, go) = holding(file);
    let job = begin(bench, &server.url("/file.bin"), options);
    until_arrived(bench, LENGTH as u64 / 2);
    fs::create_dir_all(bench.file("file.bin/mine")).unwrap();
    go.store(true, Ordering::Relaxed);
    assert_eq!(job.wait(), 1);
    fs::remove_dir_all(bench.file("file.bin")).unwrap();
    let whole = staged(&bench.file("file.bin.outlive-part"), ".whole");
    assert_eq!(whole.len(), 1);
    server
}

/// What an earlier transfer has left whole may be of a version that is no more.
#[test]
fn without_a_digest_a_new_pull_asks_anew() {
    let bench = bench!();
    let server = left_whole(&bench, Served::of_length(LENGTH, 210), &[]);
    pull(&bench, &server.url("/file.bin"), &[]).expect(0);
    assert_eq!(server.asked().len(), 2);
    let again = bench.jobs().pop().unwrap();
    assert_eq!(account(&again, "discarded_bytes"), LENGTH as u64);
    assert!(
        notes(&again)
            .iter()
            .any(|note| note.contains("earlier transfer")),
        "{:?}",
        notes(&again)
    );
    nothing_is_left(&bench.work());
    bench.audit();
}

/// And it may have been changed since.
#[test]
fn what_was_left_whole_is_verified_again() {
    for is_changed in [false, true] {
        let bench = bench!();
        let file = Served::of_length(LENGTH, 211);
        let bytes = file.bytes.clone();
        let digest = digest_of(&bytes).replace("sha256:", "");
        let options = ["--sha256", digest.as_str()];
        let server = left_whole(&bench, file, &options);
        if is_changed {
            let whole = staged(&bench.file("file.bin.outlive-part"), ".whole").remove(0);
            let mut changed = bytes.to_vec();
            changed[7] ^= 1;
            fs::write(whole, changed).unwrap();
        }
        pull(&bench, &server.url("/file.bin"), &options).expect(0);
        assert!(fs::read(bench.file("file.bin")).unwrap() == *bytes);
        assert_eq!(server.asked().len(), if is_changed { 2 } else { 1 });
        nothing_is_left(&bench.work());
        bench.audit();
    }
}

/// What was written and not fetched goes too.
#[test]
fn clean_leaves_nothing_of_an_image_that_was_not_registered() {
    let bench = bench!();
    let registry = registry(&Served::of_length(LENGTH, 212).bytes);
    fs::create_dir_all(bench.file("app")).unwrap();
    fs::write(bench.file("app/index.json"), "{").unwrap();
    let ran = pull_with(&bench, &[], &image(&registry), &[]).expect(1);
    assert!(ran.errors().contains("pull again"), "{}", ran.errors());
    bench.run(["clean", "--all"]).expect(0);
    nothing_is_left(&bench.file("app"));
    bench.audit();
}

/// A name that leaves no room for an ending has its unfinished files beside it all the same.
#[test]
fn a_name_may_be_as_long_as_a_name_can_be() {
    let bench = bench!();
    let file = Served::of_length(LENGTH, 213);
    let bytes = file.bytes.clone();
    let server = Server::new(move |request, reply| file.serve(request, reply));
    let name = "x".repeat(255);
    pull(&bench, &server.url("/file.bin"), &["--to", &name]).expect(0);
    assert!(fs::read(bench.file(&name)).unwrap() == *bytes);
    nothing_is_left(&bench.work());
    bench.audit();
}

/// What cannot be is found out before a byte is fetched.
#[test]
fn what_cannot_be_a_file_is_not_fetched() {
    use std::ffi::OsStr;
    use std::os::unix::ffi::OsStrExt;
    let bench = bench!();
    let server = Server::new(|_, reply| reply.answer(404, &[], b""));
    let mut command = bench.verb(["pull", &server.url("/file.bin"), "--to"]);
    command.arg(OsStr::from_bytes(b"not-\xff-text"));
    bench.end(command).expect(2);
    assert_eq!(bench.jobs().len(), 0);
    let long = vec!["x".repeat(250); 17].join("/");
    let hub = Hub::new(Repo::new(
        "models/owner/name",
        &[(&long, b"bytes".to_vec())],
    ));
    let ran = pull_with(&bench, &of_hub(&hub), "hf:owner/name", &[]).expect(1);
    assert!(ran.errors().contains("longer path"), "{}", ran.errors());
    assert!(
        !hub.api
            .asked()
            .iter()
            .any(|it| it.path.contains("/resolve/"))
    );
    bench.audit();
}

/// What stands behind a `#` is no part of what is fetched.
#[test]
fn a_fragment_makes_no_other_file() {
    let bench = bench!();
    let (server, go) = holding(Served::of_length(LENGTH, 214));
    let url = server.url("/file.bin");
    let job = begin(&bench, &format!("{url}#one"), &[]);
    let ran = bench.run(["pull", &format!("{url}#other")]).expect(0);
    assert_eq!(ran.text(), job.id());
    go.store(true, Ordering::Relaxed);
    assert_eq!(job.wait(), 0);
    bench.audit();
}
