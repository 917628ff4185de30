//! An image of a registry, as an image layout: a directory that skopeo, podman, crane and others read as `oci:DIR:tag` (OCI image
//! specification, "Image Layout"). What is in it is byte for byte what the registry has, so its digests are those of the registry.

use std::path::Path;

use serde::Serialize;
use serde_json::{Value, json};
use state_machine::pull::reference::{self, Version, is_digest};
use state_machine::pull::word::Cause;
use state_machine::record::Pull;

use super::registry::{
    Descriptor, Found, Kind, Manifest, Platform, Registry, TYPES, Wanted, written_down,
};
use super::{Provider, Variables};
use crate::pull::http::{Http, never};
use crate::pull::plan::{Item, Keystone, Plan, Written};

/// The registry of docker, by the name that its users know it by, and by its own.
const DOCKER: (&str, &str) = ("docker.io", "registry-1.docker.io");
/// How often an image of several may be of several again.
const DEEPEST: usize = 4;
/// The annotation that says which tag a manifest has in a layout.
const TAG: &str = "org.opencontainers.image.ref.name";
/// The file that says what the directory is, as skopeo writes it.
const LAYOUT: &[u8] = br#"{"imageLayoutVersion": "1.0.0"}"#;

/// An image of a registry.
pub(super) struct Image {
    registry: Registry,
    version: Version,
    tag: Option<String>,
    /// The digest that it must have.
    wanted: Wanted,
    shown: String,
}

/// An entry of `index.json`, in the order in which others write it.
#[derive(Serialize)]
struct Entry {
    #[serde(rename = "mediaType")]
    media_type: &'static str,
    digest: String,
    size: usize,
    #[serde(skip_serializing_if = "Value::is_null")]
    annotations: Value,
}

#[derive(Serialize)]
struct Index {
    #[serde(rename = "schemaVersion")]
    schema_version: u64,
    manifests: Vec<Entry>,
}

impl Image {
    /// What is asked for.
    pub(super) fn new(
        image: reference::Image,
        pull: &Pull,
        variables: Variables<'_>,
    ) -> Result<Image, Cause> {
        let wanted = Wanted::of(pull)?;
        let mut name = image.name;
        let host = match image.registry.as_str() {
            "docker.io" | "index.docker.io" => {
                if !name.contains('/') {
                    name = format!("library/{name}");
                }
                DOCKER.1
            }
            host => host,
        };
        let (shown, tag) = match &image.version {
            Version::Tag(tag) => (
                format!("oci:{}/{name}:{tag}", image.registry),
                Some(tag.clone()),
            ),
            Version::Digest(digest) => (format!("oci:{}/{name}@{digest}", image.registry), None),
        };
        Ok(Image {
            registry: Registry::new(host, &name, shown.clone(), variables)?,
            version: image.version,
            tag,
            wanted,
            shown,
        })
    }

    fn found(&self, http: &Http, version: &str) -> Result<Found, Cause> {
        let accept: Vec<&str> = TYPES.iter().map(|it| it.0).collect();
        self.registry.manifest(http, version, &accept.join(", "))
    }

    /// The manifest of one image: what the digest names, or the one of several that is for this machine.
    fn of_this_machine(&self, http: &Http, digest: &str) -> Result<(Found, Manifest), Cause> {
        let mut digest = digest.to_owned();
        for _ in 0..DEEPEST {
            let found = self.found(http, &digest)?;
            let manifest = Manifest::read(&found)?;
            if manifest.kind == Kind::Image {
                return Ok((found, manifest));
            }
            digest = self.choose(&manifest.manifests)?.digest.clone();
            if !is_digest(&digest) {
                return Err(never(format!(
                    "{digest} of {} is no digest that can be checked",
                    self.shown
                )));
            }
        }
        Err(never(format!(
            "{} is an index of indexes without an end",
            self.shown
        )))
    }

    fn choose<'a>(&self, manifests: &'a [Descriptor]) -> Result<&'a Descriptor, Cause> {
        let architecture = architecture(std::env::consts::ARCH);
        let rank = |it: &Descriptor| {
            let platform = it.platform.as_ref()?;
            let fits = platform.os == "linux" && platform.architecture == architecture;
            fits.then(|| rank_of(architecture, platform.variant.as_deref()))
        };
        let mut best: Option<(usize, &Descriptor)> = None;
        for manifest in manifests {
            if let Some(rank) = rank(manifest)
                && best.is_none_or(|(least, _)| rank < least)
            {
                best = Some((rank, manifest));
            }
        }
        best.map(|it| it.1).ok_or_else(|| {
            let there: Vec<String> = manifests
                .iter()
                .filter_map(|it| shown(it.platform.as_ref()?))
                .collect();
            never(format!(
                "{} is not for linux/{architecture}; there are: {}",
                self.shown,
                if there.is_empty() {
                    "none".to_owned()
                } else {
                    there.join(", ")
                }
            ))
        })
    }

    /// Everything that a manifest names, each once: an image may have the same layer twice.
    fn blobs(&self, manifest: &Manifest) -> Result<Vec<Item>, Cause> {
        let mut items: Vec<Item> = Vec::new();
        for blob in std::iter::once(&manifest.config).chain(&manifest.layers) {
            if blob.urls.as_ref().is_some_and(|urls| !urls.is_empty()) {
                return Err(never(format!(
                    "a layer of {} ({}) is not in the registry, but at an address of somebody else; that is not asked",
                    self.shown, blob.digest
                )));
            }
            if !is_digest(&blob.digest) {
                return Err(never(format!(
                    "{:?} of {} is no digest that can be checked; only sha256 is",
                    blob.digest, self.shown
                )));
            }
            let item = self.registry.item(blob, in_layout(&blob.digest))?;
            match items.iter().find(|it| it.path == item.path) {
                Some(same) if same.size == item.size => {}
                Some(_) => {
                    return Err(never(format!(
                        "{} says two lengths of {}",
                        self.shown, blob.digest
                    )));
                }
                None => items.push(item),
            }
        }
        Ok(items)
    }
}

impl Provider for Image {
    fn resolve(&self, http: &Http) -> Result<Option<String>, Cause> {
        let digest = match &self.version {
            Version::Digest(digest) => digest.clone(),
            Version::Tag(tag) => self.found(http, tag)?.digest,
        };
        self.wanted.accept(digest, &self.shown).map(Some)
    }

    fn plan(&self, http: &Http, resolved: Option<&str>, destination: &Path) -> Result<Plan, Cause> {
        let digest = written_down(resolved)?;
        let (found, manifest) = self.of_this_machine(http, digest)?;
        let items = self.blobs(&manifest)?;
        let note = if found.digest == digest {
            format!("{} is {digest}", self.shown)
        } else {
            let architecture = architecture(std::env::consts::ARCH);
            format!(
                "{} is {digest}, and for linux/{architecture} {}",
                self.shown, found.digest
            )
        };
        let written = vec![
            Written {
                path: in_layout(&found.digest),
                bytes: found.bytes.clone(),
            },
            Written {
                path: vec!["oci-layout".to_owned()],
                bytes: LAYOUT.to_vec(),
            },
        ];
        let (media_type, tag, size) = (manifest.media_type, self.tag.clone(), found.bytes.len());
        let make = move |existing: Option<&[u8]>| {
            let annotations = match &tag {
                Some(tag) => json!({ TAG: tag }),
                None => Value::Null,
            };
            let digest = found.digest.clone();
            let entry = Entry {
                media_type,
                digest,
                size,
                annotations,
            };
            merged(existing, entry, tag.as_deref())
        };
        Ok(Plan {
            items,
            written,
            root: destination.to_owned(),
            staging: destination.join(state_machine::pull::path::STAGING),
            // Another image may be on its way into the same layout.
            owns_staging: false,
            keystone: Some(Keystone {
                path: vec!["index.json".to_owned()],
                make: Box::new(make),
            }),
            note: Some(note),
        })
    }
}

/// The index of a layout with this entry in it: instead of the one that had its tag, beside all the others.
fn merged(existing: Option<&[u8]>, entry: Entry, tag: Option<&str>) -> Result<Vec<u8>, Cause> {
    let Some(existing) = existing else {
        let index = Index {
            schema_version: 2,
            manifests: vec![entry],
        };
        return encoded(&index);
    };
    let bad = || {
        never(
            "the index.json that is there is no index of an image layout; move it away and pull again",
        )
    };
    let mut index: Value = serde_json::from_slice(existing).map_err(|_| bad())?;
    if index.get("schemaVersion").and_then(Value::as_u64) != Some(2) {
        return Err(bad());
    }
    let entries = index
        .get_mut("manifests")
        .and_then(Value::as_array_mut)
        .ok_or_else(bad)?;
    entries.retain(|it| {
        let its_tag = it
            .pointer("/annotations")
            .and_then(|it| it.get(TAG))
            .and_then(Value::as_str);
        let is_same = it.get("digest").and_then(Value::as_str) == Some(&entry.digest);
        match its_tag {
            Some(its) => Some(its) != tag,
            None => !is_same,
        }
    });
    entries.push(serde_json::to_value(&entry).map_err(|_| bad())?);
    encoded(&index)
}

fn encoded(index: &impl Serialize) -> Result<Vec<u8>, Cause> {
    serde_json::to_vec(index)
        .map_err(|error| never(format!("index.json cannot be written: {error}")))
}

/// Where a blob is in a layout.
fn in_layout(digest: &str) -> Vec<String> {
    let (algorithm, hex) = digest.split_once(':').unwrap_or(("sha256", digest));
    vec!["blobs".to_owned(), algorithm.to_owned(), hex.to_owned()]
}

/// How images call a processor.
fn architecture(ours: &'static str) -> &'static str {
    match ours {
        "x86_64" => "amd64",
        "x86" => "386",
        "aarch64" => "arm64",
        "powerpc64" if cfg!(target_endian = "little") => "ppc64le",
        "powerpc64" => "ppc64",
        "loongarch64" => "loong64",
        other => other,
    }
}

/// How good a variant of a processor is, the best first: what runs on each of them before what runs on some.
fn rank_of(architecture: &str, variant: Option<&str>) -> usize {
    let order: &[Option<&str>] = match architecture {
        "arm64" => &[Some("v8"), None],
        "arm" => &[Some("v7"), None, Some("v6"), Some("v5")],
        _ => &[None, Some("v1")],
    };
    order
        .iter()
        .position(|it| *it == variant)
        .unwrap_or(order.len())
}

fn shown(platform: &Platform) -> Option<String> {
    // Attestations are kept as if they were images for nothing.
    if platform.os == "unknown" {
        return None;
    }
    let variant = platform
        .variant
        .as_ref()
        .map_or(String::new(), |it| format!("/{it}"));
    Some(format!(
        "{}/{}{variant}",
        platform.os, platform.architecture
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(digest: &str, tag: Option<&str>) -> Entry {
        Entry {
            media_type: TYPES[0].0,
            digest: digest.to_owned(),
            size: 1,
            annotations: tag.map_or(Value::Null, |tag| json!({ TAG: tag })),
        }
    }

    fn after(existing: Option<&[u8]>, digest: &str, tag: Option<&str>) -> Vec<u8> {
        merged(existing, entry(digest, tag), tag).unwrap()
    }

    fn digests(index: &[u8]) -> Vec<String> {
        let index: Value = serde_json::from_slice(index).unwrap();
        let entries = index["manifests"].as_array().unwrap();
        entries
            .iter()
            .map(|it| it["digest"].as_str().unwrap().to_owned())
            .collect()
    }

    #[test]
    fn a_tag_is_one_image_and_others_stay() {
        let one = after(None, "a", Some("v1"));
        assert_eq!(
            String::from_utf8(one.clone()).unwrap(),
            r#"{"schemaVersion":2,"manifests":[{"mediaType":"application/vnd.oci.image.manifest.v1+json","digest":"a","size":1,"annotations":{"org.opencontainers.image.ref.name":"v1"}}]}"#
        );
        let two = after(Some(&one), "b", Some("v2"));
        assert_eq!(digests(&two), ["a", "b"]);
        let moved = after(Some(&two), "c", Some("v1"));
        assert_eq!(digests(&moved), ["b", "c"]);
        let again = after(Some(&moved), "c", Some("v1"));
        assert_eq!(again, moved);
        let untagged = after(Some(&moved), "c", None);
        assert_eq!(digests(&untagged), ["b", "c", "c"]);
        assert_eq!(after(Some(&untagged), "c", None), untagged);
    }

    #[test]
    fn what_is_no_layout_is_not_written_over() {
        for text in [
            "",
            "[]",
            "{}",
            r#"{"schemaVersion":2}"#,
            r#"{"schemaVersion":2,"manifests":{}}"#,
        ] {
            assert!(
                merged(Some(text.as_bytes()), entry("a", None), None).is_err(),
                "{text}"
            );
        }
        let kept = r#"{"schemaVersion":2,"mediaType":"x","manifests":[],"annotations":{"k":"v"}}"#;
        let index: Value =
            serde_json::from_slice(&after(Some(kept.as_bytes()), "a", None)).unwrap();
        assert_eq!(
            (&index["mediaType"], &index["annotations"]["k"]),
            (&json!("x"), &json!("v"))
        );
    }

    #[test]
    fn what_runs_everywhere_comes_first() {
        assert!(rank_of("amd64", None) < rank_of("amd64", Some("v3")));
        assert!(rank_of("arm64", Some("v8")) < rank_of("arm64", Some("v9")));
        assert!(rank_of("arm", Some("v7")) < rank_of("arm", Some("v6")));
    }
}
