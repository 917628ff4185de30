//! Images of a registry: the layout of an image, tokens, and what registries get wrong. Debian's docker-registry is the honest
//! server and skopeo the judge, where both are installed.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::{Child, Stdio};

use outlive_tests::{
    Bench, Dice, Guard, Ran, Registry, Served, bench, digest_of, program_at, rounds, tree_of, until,
};
use serde_json::{Value, json};

use super::pull::{account, begin_with, notes, nothing_is_left, only_job, pull_with};

const CONFIG: &str = "application/vnd.oci.image.config.v1+json";
const LAYER: &str = "application/vnd.oci.image.layer.v1.tar+gzip";
const MANIFEST: &str = "application/vnd.oci.image.manifest.v1+json";
const INDEX: &str = "application/vnd.oci.image.index.v1+json";
const DOCKER: &str = "application/vnd.docker.distribution.manifest.v2+json";
const EMPTY: &str = "sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";
const NAME: &str = "team/app";

/// An image with these layers in a registry, as a manifest of this type under this tag. Its digest.
fn image(registry: &Registry, media_type: &str, tag: Option<&str>, layers: &[&[u8]]) -> String {
    let mut shelf = registry.shelf();
    let config =
        json!({ "architecture": "amd64", "os": "linux", "config": {}, "tag": tag }).to_string();
    let config = shelf.add(CONFIG, config.as_bytes());
    let layers: Vec<Value> = layers.iter().map(|bytes| shelf.add(LAYER, bytes)).collect();
    let manifest =
        json!({ "schemaVersion": 2, "mediaType": media_type, "config": config, "layers": layers });
    shelf.add_manifest(tag, &manifest)
}

/// It begins as what is compressed does: skopeo would compress anything else on its way, and have another digest of it.
fn layer(number: u64) -> Vec<u8> {
    let length = 50_000 + usize::try_from(number).unwrap();
    let mut bytes = Served::of_length(length, number).bytes.to_vec();
    bytes[..3].copy_from_slice(&[0x1f, 0x8b, 0x08]);
    bytes
}

/// Nobody has logged in, or whoever this configuration says.
fn environment(bench: &Bench, config: Option<&Value>) -> Vec<(&'static str, String)> {
    let dir = bench.dir().join("docker");
    fs::create_dir_all(&dir).unwrap();
    if let Some(config) = config {
        fs::write(dir.join("config.json"), config.to_string()).unwrap();
    }
    vec![
        ("DOCKER_CONFIG", dir.to_str().unwrap().to_owned()),
        ("REGISTRY_AUTH_FILE", String::new()),
    ]
}

fn pull(bench: &Bench, registry: &Registry, version: &str, options: &[&str]) -> Ran {
    let reference = format!("oci:{}/{NAME}{version}", registry.front.authority());
    pull_with(bench, &environment(bench, None), &reference, options)
}

/// The layout says what it is, has this entry last, and every file in it is what its name says.
#[track_caller]
fn is_a_layout(dir: &Path, digest: &str, tag: Option<&str>) -> Vec<Value> {
    let files = tree_of(dir, &[]);
    assert_eq!(files["oci-layout"], br#"{"imageLayoutVersion": "1.0.0"}"#);
    let index: Value = serde_json::from_slice(&files["index.json"]).unwrap();
    let entries = index["manifests"].as_array().unwrap().clone();
    let last = entries.last().unwrap();
    assert_eq!(last["digest"], digest);
    assert_eq!(
        last["annotations"]["org.opencontainers.image.ref.name"].as_str(),
        tag
    );
    let manifest = digest.replace(':', "/");
    assert_eq!(last["size"], files[&format!("blobs/{manifest}")].len());
    for (path, bytes) in &files {
        if let Some(hex) = path.strip_prefix("blobs/sha256/") {
            assert_eq!(digest_of(bytes), format!("sha256:{hex}"));
        }
    }
    nothing_is_left(dir);
    entries
}

#[test]
fn an_image_by_its_tag_or_its_digest() {
    let bench = bench!();
    let registry = Registry::new(NAME);
    for media_type in [MANIFEST, DOCKER] {
        let layers = [layer(1), layer(2)];
        let digest = image(&registry, media_type, Some("v1"), &[&layers[0], &layers[1]]);
        pull(&bench, &registry, ":v1", &[]).expect(0);
        let entries = is_a_layout(&bench.file("app"), &digest, Some("v1"));
        assert_eq!(
            (entries.len(), &entries[0]["mediaType"]),
            (1, &json!(media_type))
        );
        assert_eq!(tree_of(&bench.file("app"), &[]).len(), 6);
        fs::remove_dir_all(bench.file("app")).unwrap();
        pull(
            &bench,
            &registry,
            &format!("@{digest}"),
            &["--to", "by-digest"],
        )
        .expect(0);
        is_a_layout(&bench.file("by-digest"), &digest, None);
        fs::remove_dir_all(bench.file("by-digest")).unwrap();
    }
    bench.audit();
}

/// What skopeo writes and reads: both fetch the same from Debian's registry, byte for byte.
#[test]
fn skopeo_writes_the_same() {
    let (Some(registry), Some(skopeo)) = (program_at("docker-registry"), program_at("skopeo"))
    else {
        return;
    };
    let bench = bench!();
    let registry = Debian::start(&bench, &registry);
    let copy = |from: &str, to: &str| {
        let mut command = bench.program(&skopeo);
        command.args([
            "copy",
            "--src-tls-verify=false",
            "--dest-tls-verify=false",
            from,
            to,
        ]);
        bench.end(command).expect(0);
    };
    // Made by us, so that it needs no network, and written to the registry by skopeo.
    let ours = Registry::new(NAME);
    let layers = [layer(1), layer(2)];
    image(
        &ours,
        MANIFEST,
        Some("v1"),
        &[&layers[0], &layers[1], &layers[0]],
    );
    pull(&bench, &ours, ":v1", &["--to", "made"]).expect(0);
    let address = format!("{}/{NAME}", registry.authority);
    copy("oci:made:v1", &format!("docker://{address}:v1"));
    copy(&format!("docker://{address}:v1"), "oci:theirs:v1");
    let none = environment(&bench, None);
    pull_with(
        &bench,
        &none,
        &format!("oci:{address}:v1"),
        &["--to", "ours"],
    )
    .expect(0);
    let (ours, theirs) = (
        tree_of(&bench.file("ours"), &[]),
        tree_of(&bench.file("theirs"), &[]),
    );
    assert_eq!(
        ours.keys().collect::<Vec<_>>(),
        theirs.keys().collect::<Vec<_>>()
    );
    assert!(ours == theirs, "both layouts are the same, byte for byte");
    drop(registry);
    bench.audit();
}

/// Debian's registry, on a port of its own.
struct Debian {
    child: Child,
    authority: String,
}

impl Debian {
    fn start(bench: &Bench, program: &Path) -> Debian {
        // The port is free now, and whoever takes it meanwhile makes the start fail, which is tried again.
        for _ in 0..5 {
            let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
            let authority = listener.local_addr().unwrap().to_string();
            drop(listener);
            let config = bench.dir().join("registry.yml");
            let root = bench.dir().join("registry");
            let text = format!(
                "version: 0.1\nstorage:\n  filesystem:\n    rootdirectory: {}\nhttp:\n  addr: \"{authority}\"\n",
                root.display()
            );
            fs::write(&config, text).unwrap();
            let mut command = bench.program(program);
            command
                .arg("serve")
                .arg(&config)
                .stdout(Stdio::null())
                .stderr(Stdio::null());
            let mut child = command.spawn().unwrap();
            let mut is_gone = false;
            until("the registry answers", || {
                is_gone = child.try_wait().unwrap().is_some();
                is_gone || std::net::TcpStream::connect(&authority).is_ok()
            });
            if !is_gone {
                return Debian { child, authority };
            }
        }
        panic!("there is no port for the registry");
    }
}

impl Drop for Debian {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn of_several_the_one_for_this_machine() {
    let bench = bench!();
    let registry = Registry::new(NAME);
    let other = image(&registry, MANIFEST, None, &[&layer(1)]);
    let ours = image(&registry, MANIFEST, None, &[&layer(2)]);
    let architecture = match std::env::consts::ARCH {
        "x86_64" => "amd64",
        "aarch64" => "arm64",
        other => other,
    };
    let entry = |digest: &str, os: &str, architecture: &str| {
        let size = registry.shelf().manifests[digest].1.len();
        json!({ "mediaType": MANIFEST, "digest": digest, "size": size,
                "platform": { "os": os, "architecture": architecture } })
    };
    let index = |entries: Vec<Value>| json!({ "schemaVersion": 2, "mediaType": INDEX, "manifests": entries });
    let several = index(vec![
        entry(&other, "linux", "other"),
        entry(&other, "windows", architecture),
        entry(&other, "unknown", "unknown"),
        entry(&ours, "linux", architecture),
    ]);
    registry.shelf().add_manifest(Some("v1"), &several);
    let none = index(vec![
        entry(&other, "linux", "other"),
        entry(&other, "unknown", "unknown"),
    ]);
    registry.shelf().add_manifest(Some("none"), &none);
    pull(&bench, &registry, ":v1", &[]).expect(0);
    is_a_layout(&bench.file("app"), &ours, Some("v1"));
    if let Some(skopeo) = program_at("skopeo") {
        registry.shelf().guard = Guard::Token {
            uses: 100,
            secret: None,
            elsewhere: false,
        };
        let from = format!("docker://{}/{NAME}:v1", registry.front.authority());
        let mut command = bench.program(&skopeo);
        command.args(["copy", "--src-tls-verify=false", &from, "oci:theirs:v1"]);
        bench.end(command).expect(0);
        registry.shelf().guard = Guard::Nobody;
        let theirs = tree_of(&bench.file("theirs"), &[]);
        let ours = tree_of(&bench.file("app"), &[]);
        assert_eq!(
            ours.keys().collect::<Vec<_>>(),
            theirs.keys().collect::<Vec<_>>()
        );
        assert!(ours == theirs, "skopeo chooses the same");
    }
    let chosen = notes(&only_job(&bench))
        .into_iter()
        .find(|note| note.contains(&format!("linux/{architecture}")));
    assert!(chosen.is_some_and(|note| note.contains(&ours)));
    let ran = pull(&bench, &registry, ":none", &["--to", "none"]).expect(1);
    assert!(
        ran.errors().contains("there are: linux/other"),
        "{}",
        ran.errors()
    );
    bench.audit();
}

/// P47: whatever a registry sends, nothing lands that is not what was asked for.
#[test]
fn a_registry_that_sends_something_else() {
    let bench = bench!();
    let registry = Registry::new(NAME);
    let (one, other) = (layer(1), layer(2));
    let digest = image(&registry, MANIFEST, Some("v1"), &[&one]);
    let another = image(&registry, MANIFEST, Some("v2"), &[&other]);
    let refused = |version: &str, word: &str| {
        let ran = pull(&bench, &registry, version, &["--to", "x"]).expect(1);
        assert!(ran.errors().contains(word), "{word}: {}", ran.errors());
        let landed = tree_of(&bench.file("x"), &[".outlive-part"]);
        assert!(landed.is_empty(), "{word}: {:?}", landed.keys());
    };
    let manifest = registry.shelf().manifests[&another].1.clone();
    registry.shelf().deceit.manifest = Some(manifest);
    refused(&format!("@{digest}"), "another manifest");
    refused(":v1", "and it is");
    registry.shelf().deceit = Default::default();
    registry.shelf().deceit.content_type = Some(DOCKER.into());
    refused(":v1", "its server that it is");
    registry.shelf().deceit = Default::default();
    let mut wrong = one.clone();
    wrong[7] ^= 1;
    registry.shelf().deceit.blobs.insert(digest_of(&one), wrong);
    refused(":v1", "should be sha256:");
    registry
        .shelf()
        .deceit
        .blobs
        .insert(digest_of(&one), one[1..].to_vec());
    refused(":v1", "bytes");
    registry.shelf().deceit = Default::default();
    refused(":v9", "has no oci:");
    pull(&bench, &registry, ":v1", &["--to", "x"]).expect(0);
    is_a_layout(&bench.file("x"), &digest, Some("v1"));
    bench.audit();
}

#[test]
fn manifests_that_are_odd_and_right() {
    let bench = bench!();
    let registry = Registry::new(NAME);
    let one = layer(1);
    // The same twice, and nothing at all.
    let digest = image(&registry, MANIFEST, Some("v1"), &[&one, b"", &one]);
    // moby#17595: what is said about the encoding is a part of the blob, and nothing is to be undone.
    registry.shelf().deceit.encoding = Some("x-gzip".into());
    pull(&bench, &registry, ":v1", &[]).expect(0);
    is_a_layout(&bench.file("app"), &digest, Some("v1"));
    let files = tree_of(&bench.file("app"), &[]);
    assert!(files[&format!("blobs/{}", EMPTY.replace(':', "/"))].is_empty());
    assert_eq!(files.len(), 6);
    bench.audit();
}

#[test]
fn manifests_that_are_not_followed() {
    let bench = bench!();
    let registry = Registry::new(NAME);
    let config = registry.shelf().add(CONFIG, b"{}");
    let mut foreign = registry.shelf().add(LAYER, b"x");
    foreign["urls"] = json!([registry.storage.url("/foreign")]);
    let mut path = registry.shelf().add(LAYER, b"y");
    path["digest"] = json!("sha256:../../../../etc/passwd");
    let mut unchecked = registry.shelf().add(LAYER, b"z");
    unchecked["digest"] = json!(format!("sha512:{}", "0".repeat(128)));
    for (layer, word) in [
        (foreign, "address of somebody else"),
        (path, "no digest"),
        (unchecked, "no digest"),
    ] {
        let manifest = json!({ "schemaVersion": 2, "mediaType": MANIFEST, "config": config, "layers": [layer] });
        registry.shelf().add_manifest(Some("v1"), &manifest);
        let ran = pull(&bench, &registry, ":v1", &[]).expect(1);
        assert!(ran.errors().contains(word), "{}", ran.errors());
        assert!(tree_of(&bench.work(), &[]).is_empty());
    }
    assert!(registry.storage.asked().is_empty());
    bench.audit();
}

/// Blobs are elsewhere: whoever has them is told nothing.
#[test]
fn a_token_is_shown_to_the_registry_alone() {
    let bench = bench!();
    let registry = Registry::new(NAME);
    let layers: Vec<Vec<u8>> = (1..=6).map(layer).collect();
    let layers: Vec<&[u8]> = layers.iter().map(Vec::as_slice).collect();
    let digest = image(&registry, MANIFEST, Some("v1"), &layers);
    {
        let mut shelf = registry.shelf();
        shelf.redirects = true;
        // A token that is good twice runs out in the middle.
        let secret = None;
        shelf.guard = Guard::Token {
            uses: 2,
            secret,
            elsewhere: false,
        };
    }
    pull(&bench, &registry, ":v1", &["--connections", "1"]).expect(0);
    is_a_layout(&bench.file("app"), &digest, Some("v1"));
    assert_eq!(registry.storage.asked().len(), 7);
    assert!(
        registry
            .storage
            .asked()
            .iter()
            .all(|it| it.header("authorization").is_none())
    );
    assert!(registry.shelf().tokens_given() >= 4);
    assert_eq!(account(&only_job(&bench), "retries"), 0);
    bench.audit();
}

#[test]
fn whoever_has_logged_in_is_known() {
    let bench = bench!();
    let registry = Registry::new(NAME);
    let digest = image(&registry, MANIFEST, Some("v1"), &[&layer(1)]);
    let host = registry.front.authority();
    let reference = format!("oci:{host}/{NAME}:v1");
    // user:word
    let secret = "Basic dXNlcjp3b3Jk".to_owned();
    let login = json!({ "auths": { host.as_str(): { "auth": "dXNlcjp3b3Jk" } } });
    for guard in [
        Guard::Basic(secret.clone()),
        Guard::Token {
            uses: 100,
            secret: Some(secret.clone()),
            elsewhere: false,
        },
    ] {
        registry.shelf().guard = guard;
        let helped = json!({ "credHelpers": { host.as_str(): "pass" } });
        let ran = pull_with(
            &bench,
            &environment(&bench, Some(&helped)),
            &reference,
            &["--to", "x"],
        )
        .expect(1);
        assert!(
            ran.errors().contains("docker-credential-pass"),
            "{}",
            ran.errors()
        );
        let ran = pull_with(
            &bench,
            &environment(&bench, Some(&json!({}))),
            &reference,
            &["--to", "x"],
        )
        .expect(1);
        assert!(ran.errors().contains("docker login"), "{}", ran.errors());
        pull_with(
            &bench,
            &environment(&bench, Some(&login)),
            &reference,
            &["--to", "x"],
        )
        .expect(0);
        is_a_layout(&bench.file("x"), &digest, Some("v1"));
        fs::remove_dir_all(bench.file("x")).unwrap();
    }
    bench.audit();
}

/// A registry may send us anywhere for a token. Its users' words stay with it, unless they have given some for there too.
#[test]
fn a_secret_goes_to_no_other_host_for_a_token() {
    let bench = bench!();
    let registry = Registry::new(NAME);
    let digest = image(&registry, MANIFEST, Some("v1"), &[&layer(1)]);
    let secret = Some("Basic dXNlcjp3b3Jk".to_owned());
    registry.shelf().guard = Guard::Token {
        uses: 100,
        secret,
        elsewhere: true,
    };
    let (host, other) = (registry.front.authority(), registry.storage.authority());
    let reference = format!("oci:{host}/{NAME}:v1");
    let here = json!({ "auths": { host.as_str(): { "auth": "dXNlcjp3b3Jk" } } });
    let ran = pull_with(
        &bench,
        &environment(&bench, Some(&here)),
        &reference,
        &["--to", "x"],
    )
    .expect(1);
    assert!(ran.errors().contains("another host"), "{}", ran.errors());
    assert!(
        registry
            .storage
            .asked()
            .iter()
            .all(|it| it.header("authorization").is_none())
    );
    let both = json!({ "auths": { host.as_str(): { "auth": "bm86bm8=" }, other.as_str(): { "auth": "dXNlcjp3b3Jk" } } });
    pull_with(
        &bench,
        &environment(&bench, Some(&both)),
        &reference,
        &["--to", "x"],
    )
    .expect(0);
    is_a_layout(&bench.file("x"), &digest, Some("v1"));
    bench.audit();
}

/// A tag that moves in the middle does not change what is under way.
#[test]
fn a_tag_that_moves_changes_nothing() {
    let bench = bench!();
    let registry = Registry::new(NAME);
    let one = layer(1);
    let digest = image(&registry, MANIFEST, Some("v1"), &[&one]);
    let reference = format!("oci:{}/{NAME}:v1", registry.front.authority());
    registry.shelf().guard = Guard::Busy;
    let job = begin_with(
        &bench,
        &environment(&bench, None),
        &reference,
        &["--retry", "100"],
    );
    until("a blob was asked for", || {
        registry
            .front
            .asked()
            .iter()
            .any(|it| it.path.contains("/blobs/"))
    });
    bench.run(["pause", job.id()]).expect(0);
    registry.shelf().guard = Guard::Nobody;
    image(&registry, MANIFEST, Some("v1"), &[&layer(2)]);
    bench.run(["resume", job.id()]).expect(0);
    assert_eq!(job.wait(), 0);
    is_a_layout(&bench.file("app"), &digest, Some("v1"));
    bench.audit();
}

/// P27: several images on their way into one layout at once, with a layer in common.
#[test]
fn several_at_once_into_one_layout() {
    let bench = bench!();
    let registry = Registry::new(NAME);
    let shared = Served::of_length(3_000_000, 9).bytes.to_vec();
    let tags: Vec<String> = (1..=4).map(|nth| format!("v{nth}")).collect();
    let mut digests = Vec::new();
    for (nth, tag) in tags.iter().enumerate() {
        let own = layer(nth as u64);
        digests.push(image(&registry, MANIFEST, Some(tag), &[&shared, &own]));
    }
    let jobs: Vec<_> = tags
        .iter()
        .map(|tag| {
            let reference = format!("oci:{}/{NAME}:{tag}", registry.front.authority());
            begin_with(
                &bench,
                &environment(&bench, None),
                &reference,
                &["--to", "all"],
            )
        })
        .collect();
    for job in &jobs {
        assert_eq!(job.wait(), 0);
    }
    let files = tree_of(&bench.file("all"), &[]);
    let index: Value = serde_json::from_slice(&files["index.json"]).unwrap();
    let mut found: Vec<(String, String)> = Vec::new();
    for entry in index["manifests"].as_array().unwrap() {
        let tag = entry["annotations"]["org.opencontainers.image.ref.name"]
            .as_str()
            .unwrap();
        found.push((tag.to_owned(), entry["digest"].as_str().unwrap().to_owned()));
    }
    found.sort();
    let wanted: Vec<(String, String)> = tags.into_iter().zip(digests).collect();
    assert_eq!(found, wanted);
    for (path, bytes) in &files {
        if let Some(hex) = path.strip_prefix("blobs/sha256/") {
            assert_eq!(digest_of(bytes), format!("sha256:{hex}"));
        }
    }
    nothing_is_left(&bench.file("all"));
    let fetched: u64 = jobs.iter().map(|job| account(job, "fetched_bytes")).sum();
    let most = registry.front.sent();
    assert!(fetched <= most, "{fetched} of {most}");
    assert!(
        fetched < 2 * 3_000_000,
        "what all of them have is fetched once: {fetched}"
    );
    bench.audit();
}

/// What a job has left is removed with it, but for what another that is not done has too.
#[test]
fn what_two_have_left_goes_with_the_last_of_them() {
    let bench = bench!();
    let registry = Registry::new(NAME);
    let shared = Served::of_length(300_000, 9).bytes.to_vec();
    let own = [layer(1), layer(2)];
    for (nth, tag) in ["v1", "v2"].iter().enumerate() {
        image(&registry, MANIFEST, Some(tag), &[&shared, &own[nth]]);
        let mut wrong = own[nth].clone();
        wrong[9] ^= 1;
        registry
            .shelf()
            .deceit
            .blobs
            .insert(digest_of(&own[nth]), wrong);
    }
    let options = ["--to", "all", "--connections", "1"];
    for tag in [":v1", ":v2"] {
        pull(&bench, &registry, tag, &options).expect(1);
    }
    let left = || super::pull::staged(&bench.file("all/.outlive-part"), ".whole").len();
    // The configurations, which are not the same, and the layer that is.
    assert_eq!(left(), 3);
    let jobs = bench.jobs();
    bench.run(["clean", jobs[0].id()]).expect(0);
    assert_eq!(left(), 2);
    registry.shelf().deceit = Default::default();
    pull(&bench, &registry, ":v2", &options).expect(0);
    let again = bench.jobs().pop().unwrap();
    assert!(account(&again, "reused_bytes") > 300_000);
    assert!(account(&again, "fetched_bytes") < 100_000);
    nothing_is_left(&bench.file("all"));
    bench.run(["clean", jobs[1].id()]).expect(0);
    is_never_wrong(&bench.file("all"));
    bench.audit();
}

/// Whoever fetches and registers is killed at any moment: what is in the layout is right, and all of it comes there.
#[test]
fn killed_anywhere_a_layout_comes_right() {
    let bench = bench!();
    let mut dice = Dice::new();
    let registry = Registry::new(NAME);
    let shared = Served::of_length(2_000_000, 9).bytes.to_vec();
    let tags = ["v1", "v2"];
    let digests = [1, 2].map(|nth| {
        image(
            &registry,
            MANIFEST,
            Some(tags[nth - 1]),
            &[&shared, &layer(nth as u64)],
        )
    });
    for round in 0..rounds(3) {
        let to = format!("layout-{round}");
        let jobs = tags.map(|tag| {
            let reference = format!("oci:{}/{NAME}:{tag}", registry.front.authority());
            begin_with(
                &bench,
                &environment(&bench, None),
                &reference,
                &["--to", &to],
            )
        });
        for _ in 0..8 {
            dice.moment(100_000);
            let job = dice.pick(&jobs);
            if let Some(worker) = job.worker() {
                worker.kill();
                until("the worker is gone", || !worker.lives());
                bench.crashes();
            }
            is_never_wrong(&bench.file(&to));
            // Refused where it has ended just now.
            bench.run(["resume", job.id()]);
        }
        for job in &jobs {
            while job.wait() == 75 {
                bench.run(["resume", job.id()]);
            }
            assert_eq!(job.wait(), 0, "{}", job.shown());
        }
        let files = is_never_wrong(&bench.file(&to));
        let index: Value = serde_json::from_slice(&files["index.json"]).unwrap();
        let mut found: Vec<&str> = index["manifests"]
            .as_array()
            .unwrap()
            .iter()
            .map(|it| it["digest"].as_str().unwrap())
            .collect();
        found.sort_unstable();
        let mut wanted: Vec<&str> = digests.iter().map(String::as_str).collect();
        wanted.sort_unstable();
        assert_eq!(found, wanted);
        nothing_is_left(&bench.file(&to));
    }
    bench.audit();
}

/// Every blob that stands in the layout is what its name says, and every manifest that its index names is there with all of its
/// blobs.
#[track_caller]
fn is_never_wrong(layout: &Path) -> BTreeMap<String, Vec<u8>> {
    let index =
        fs::read(layout.join("index.json")).unwrap_or_else(|_| br#"{"manifests":[]}"#.to_vec());
    let files = tree_of(layout, &[".outlive-part"]);
    for (path, bytes) in &files {
        if let Some(hex) = path.strip_prefix("blobs/sha256/") {
            assert_eq!(digest_of(bytes), format!("sha256:{hex}"));
        }
    }
    let blob = |digest: &Value| format!("blobs/{}", digest.as_str().unwrap().replace(':', "/"));
    let index: Value = serde_json::from_slice(&index).unwrap();
    for entry in index["manifests"].as_array().unwrap() {
        let manifest: Value = serde_json::from_slice(&files[&blob(&entry["digest"])]).unwrap();
        let layers = manifest["layers"].as_array().unwrap().iter();
        for named in layers.chain([&manifest["config"]]) {
            assert!(files.contains_key(&blob(&named["digest"])), "{named}");
        }
    }
    files
}
