//! Manifests: of one image or model, and of several for several kinds of machine.

use serde::Deserialize;
use state_machine::pull::word::Cause;

use super::Found;
use crate::pull::http::never;

/// What a manifest can be, by its type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::pull::provider) enum Kind {
    /// One thing: its configuration and its layers.
    Image,
    /// Several of them.
    Index,
}

/// The types of manifests that are understood.
pub(in crate::pull::provider) const TYPES: [(&str, Kind); 4] = [
    ("application/vnd.oci.image.manifest.v1+json", Kind::Image),
    ("application/vnd.oci.image.index.v1+json", Kind::Index),
    (
        "application/vnd.docker.distribution.manifest.v2+json",
        Kind::Image,
    ),
    (
        "application/vnd.docker.distribution.manifest.list.v2+json",
        Kind::Index,
    ),
];

/// Something that is named by its digest.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
pub(in crate::pull::provider) struct Descriptor {
    /// What it is.
    #[serde(default, rename = "mediaType")]
    pub(in crate::pull::provider) media_type: String,
    /// `algorithm:hex`.
    #[serde(default)]
    pub(in crate::pull::provider) digest: String,
    /// How long it is, in bytes.
    #[serde(default)]
    pub(in crate::pull::provider) size: u64,
    /// Where it is to be had if not here.
    #[serde(default)]
    pub(in crate::pull::provider) urls: Option<Vec<String>>,
    /// What kind of machine it is for.
    #[serde(default)]
    pub(in crate::pull::provider) platform: Option<Platform>,
}

/// A kind of machine.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub(in crate::pull::provider) struct Platform {
    /// Its system.
    pub(in crate::pull::provider) os: String,
    /// Its processor.
    pub(in crate::pull::provider) architecture: String,
    /// Which one of these.
    pub(in crate::pull::provider) variant: Option<String>,
}

/// A manifest, read.
#[derive(Clone, Debug)]
pub(in crate::pull::provider) struct Manifest {
    /// Its type.
    pub(in crate::pull::provider) media_type: &'static str,
    /// What that is.
    pub(in crate::pull::provider) kind: Kind,
    /// The configuration, where it is of one thing.
    pub(in crate::pull::provider) config: Descriptor,
    /// The layers, where it is of one thing.
    pub(in crate::pull::provider) layers: Vec<Descriptor>,
    /// The manifests, where it is of several.
    pub(in crate::pull::provider) manifests: Vec<Descriptor>,
}

#[derive(Deserialize)]
struct Raw {
    #[serde(rename = "schemaVersion")]
    schema_version: Option<u64>,
    #[serde(rename = "mediaType")]
    media_type: Option<String>,
    config: Option<Descriptor>,
    layers: Option<Vec<Descriptor>>,
    manifests: Option<Vec<Descriptor>>,
}

impl Manifest {
    /// Read a manifest. What could be taken for one thing by one reader and for another by another is refused.
    pub(in crate::pull::provider) fn read(found: &Found) -> Result<Manifest, Cause> {
        let raw: Raw = serde_json::from_slice(&found.bytes).map_err(|error| {
            never(format!(
                "the manifest {} cannot be read: {error}",
                found.digest
            ))
        })?;
        let bad = |why: &str| never(format!("the manifest {} {why}", found.digest));
        if raw.schema_version != Some(2) {
            return Err(bad(
                "is of a form that is not understood: its schemaVersion is not 2",
            ));
        }
        let shape = match (&raw.manifests, raw.config.is_some() || raw.layers.is_some()) {
            (Some(_), false) => Kind::Index,
            (None, true) => Kind::Image,
            _ => return Err(bad("is neither of one image nor of several")),
        };
        let said = found.content_type.as_deref().and_then(known);
        let own = match &raw.media_type {
            Some(text) => Some(
                known(text).ok_or_else(|| bad(&format!("is a {text}, which is not understood")))?,
            ),
            None => None,
        };
        if let (Some(own), Some(said)) = (own, said)
            && own != said
        {
            return Err(bad(&format!(
                "says that it is a {}, and its server that it is a {}",
                own.0, said.0
            )));
        }
        // The type may be left out of the ones of OCI.
        let of_shape = TYPES.iter().find(|it| it.1 == shape).copied();
        let (media_type, kind) = own
            .or(said)
            .or(of_shape)
            .filter(|it| it.1 == shape)
            .ok_or_else(|| bad("is not of the type that it says"))?;
        Ok(Manifest {
            media_type,
            kind,
            config: raw.config.unwrap_or_default(),
            layers: raw.layers.unwrap_or_default(),
            manifests: raw.manifests.unwrap_or_default(),
        })
    }
}

/// A type that is understood, without its parameters.
fn known(text: &str) -> Option<(&'static str, Kind)> {
    let text = text.split(';').next().unwrap_or_default().trim();
    TYPES
        .iter()
        .find(|it| it.0.eq_ignore_ascii_case(text))
        .copied()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(content_type: Option<&str>, text: &str) -> Result<Manifest, Cause> {
        Manifest::read(&Found {
            digest: "sha256:…".into(),
            content_type: content_type.map(str::to_owned),
            bytes: text.into(),
        })
    }

    #[test]
    fn its_type_is_what_it_says_or_its_server_or_its_shape() {
        let oci = TYPES[0].0;
        let image = r#"{"schemaVersion":2,"config":{},"layers":[]}"#;
        assert_eq!(read(None, image).unwrap().media_type, oci);
        assert_eq!(read(Some("text/plain"), image).unwrap().kind, Kind::Image);
        let docker = format!("{}; charset=utf-8", TYPES[2].0);
        assert_eq!(read(Some(&docker), image).unwrap().media_type, TYPES[2].0);
        let own = format!(r#"{{"schemaVersion":2,"mediaType":"{oci}","config":{{}},"layers":[]}}"#);
        assert_eq!(read(None, &own).unwrap().media_type, oci);
        assert!(read(Some(&docker), &own).is_err());
        assert!(read(Some(TYPES[1].0), image).is_err());
    }

    #[test]
    fn what_could_be_read_in_two_ways_is_refused() {
        for text in [
            r#"{"schemaVersion":2,"config":{},"layers":[],"manifests":[]}"#,
            r#"{"schemaVersion":2}"#,
            r#"{"schemaVersion":1,"fsLayers":[],"layers":[]}"#,
            r#"{"schemaVersion":2,"mediaType":"application/x","layers":[]}"#,
            r#"{"schemaVersion":2,"layers":[{"size":-1}]}"#,
            "[]",
            "",
        ] {
            assert!(read(None, text).is_err(), "{text}");
        }
    }
}
