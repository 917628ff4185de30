//! Models of a registry, in the directory that ollama reads.

use std::fs;

use outlive_tests::{Bench, Ran, Registry, Served, bench, digest_of, tree_of};
use serde_json::json;

use super::pull::{account, nothing_is_left, pull_with};

const MANIFEST: &str = "application/vnd.docker.distribution.manifest.v2+json";
const NAME: &str = "library/tiny";

/// A model with this template and these weights under a tag. The bytes of its manifest.
fn model(registry: &Registry, tag: &str, template: &[u8], weights: &[u8]) -> Vec<u8> {
    let mut shelf = registry.shelf();
    let config = shelf.add(
        "application/vnd.docker.container.image.v1+json",
        br#"{"model_format":"gguf"}"#,
    );
    let layers = [
        shelf.add("application/vnd.ollama.image.model", weights),
        shelf.add("application/vnd.ollama.image.template", template),
        shelf.add("application/vnd.ollama.image.license", b""),
    ];
    let manifest =
        json!({ "schemaVersion": 2, "mediaType": MANIFEST, "config": config, "layers": layers });
    let digest = shelf.add_manifest(Some(tag), &manifest);
    shelf.manifests[&digest].1.clone()
}

fn pull(bench: &Bench, registry: &Registry, tag: &str, options: &[&str]) -> Ran {
    let environment = [
        (
            "OLLAMA_MODELS",
            bench.file("models").to_str().unwrap().to_owned(),
        ),
        (
            "DOCKER_CONFIG",
            bench.file("none").to_str().unwrap().to_owned(),
        ),
        ("OLLAMA_HOST", "127.0.0.1:1".to_owned()),
    ];
    let reference = format!("ollama:{}/{NAME}:{tag}", registry.front.authority());
    pull_with(bench, &environment, &reference, options)
}

#[test]
fn blobs_beside_those_of_others_and_the_manifest_last() {
    let bench = bench!();
    let registry = Registry::new(NAME);
    let weights = Served::of_length(300_000, 1).bytes.to_vec();
    let one = model(&registry, "1b", b"{{ .Prompt }}", &weights);
    let two = model(&registry, "latest", b"{{ .System }}", &weights);
    pull(&bench, &registry, "1b", &[]).expect(0);
    let host = registry.front.authority();
    let manifest = |tag: &str| format!("manifests/{host}/{NAME}/{tag}");
    let files = tree_of(&bench.file("models"), &[]);
    assert_eq!(files[&manifest("1b")], one);
    assert_eq!(files.len(), 5);
    for (path, bytes) in &files {
        if let Some(hex) = path.strip_prefix("blobs/sha256-") {
            assert_eq!(digest_of(bytes), format!("sha256:{hex}"));
        }
    }
    nothing_is_left(&bench.file("models"));
    // Another model has most of the same.
    pull(&bench, &registry, "latest", &[]).expect(0);
    assert_eq!(
        tree_of(&bench.file("models"), &[])[&manifest("latest")],
        two
    );
    let job = &bench.jobs()[1];
    assert_eq!(account(job, "fetched_bytes"), 13);
    assert_eq!(account(job, "reused_bytes"), 300_023);
    bench.audit();
}

/// Nothing is known of a model before all of it is there.
#[test]
fn a_model_that_is_not_all_there_is_not_known() {
    let bench = bench!();
    let registry = Registry::new(NAME);
    let weights = Served::of_length(300_000, 2).bytes.to_vec();
    let manifest = model(&registry, "latest", b"{{ .Prompt }}", &weights);
    let mut wrong = weights.clone();
    wrong[9] ^= 1;
    registry
        .shelf()
        .deceit
        .blobs
        .insert(digest_of(&weights), wrong);
    pull(&bench, &registry, "latest", &[]).expect(1);
    assert!(!bench.file("models/manifests").exists());
    assert!(tree_of(&bench.file("models"), &[".outlive-part"]).is_empty());
    registry.shelf().deceit = Default::default();
    pull(&bench, &registry, "latest", &[]).expect(0);
    let path = format!(
        "models/manifests/{}/{NAME}/latest",
        registry.front.authority()
    );
    assert_eq!(fs::read(bench.file(&path)).unwrap(), manifest);
    bench.audit();
}

/// A tag is moved by its makers: it is another model then, and the manifest is replaced.
#[test]
fn a_model_that_was_changed_is_replaced() {
    let bench = bench!();
    let registry = Registry::new(NAME);
    let weights = Served::of_length(100_000, 3).bytes.to_vec();
    model(&registry, "latest", b"old", &weights);
    pull(&bench, &registry, "latest", &[]).expect(0);
    let new = model(&registry, "latest", b"new", &weights);
    pull(&bench, &registry, "latest", &[]).expect(0);
    let path = format!(
        "models/manifests/{}/{NAME}/latest",
        registry.front.authority()
    );
    assert_eq!(fs::read(bench.file(&path)).unwrap(), new);
    let ran = pull(&bench, &registry, "none", &[]).expect(1);
    assert!(ran.errors().contains("has no ollama:"), "{}", ran.errors());
    bench.audit();
}
