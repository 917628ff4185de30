//! What a user asks for, read from one word: `https://…`, `hf:owner/name@revision`, `oci:host/name:tag`, `ollama:name:tag`.

use std::fmt;

/// What is asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reference {
    /// One file at an address of the web.
    Web(String),
    /// A repository of a hub: many files at one revision.
    Hub(Hub),
    /// An image in a registry.
    Image(Image),
    /// A model in a registry, as ollama names it.
    Model(Model),
}

/// A repository of a hub.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hub {
    /// What kind of thing it holds.
    pub kind: HubKind,
    /// `owner/name`, or `name` alone for the oldest ones.
    pub name: String,
    /// The branch, tag or commit; `main` where it is not said.
    pub revision: Option<String>,
}

/// What a repository of a hub holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HubKind {
    /// A model.
    Model,
    /// A data set.
    Dataset,
    /// An application.
    Space,
}

/// An image in a registry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Image {
    /// Host and port.
    pub registry: String,
    /// The name within the registry, with its slashes.
    pub name: String,
    /// Which one of them.
    pub version: Version,
}

/// Which image of a name is meant.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Version {
    /// The one that has this tag now.
    Tag(String),
    /// This one, and no other: `algorithm:hex`.
    Digest(String),
}

/// A model in a registry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Model {
    /// Host and port; the registry of its makers where it is not said.
    pub registry: Option<String>,
    /// Whose it is.
    pub namespace: String,
    /// Its name.
    pub name: String,
    /// Which one.
    pub tag: String,
}

/// Why a word is no reference.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("'{word}' cannot be pulled: {why}")]
pub struct BadReference {
    /// The word.
    pub word: String,
    /// What is wrong with it, and what would be right.
    pub why: &'static str,
}

impl Reference {
    /// Read a word.
    pub fn parse(word: &str) -> Result<Reference, BadReference> {
        let read = if word.chars().any(|it| it.is_control() || it == ' ') {
            Err("it has a space or a control character")
        } else if is_of_scheme(word, "http://") || is_of_scheme(word, "https://") {
            web(word)
        } else if let Some(rest) = word.strip_prefix("hf:") {
            Hub::parse(rest).map(Reference::Hub)
        } else if let Some(rest) = word.strip_prefix("oci:") {
            Image::parse(rest).map(Reference::Image)
        } else if let Some(rest) = word.strip_prefix("ollama:") {
            Model::parse(rest).map(Reference::Model)
        } else {
            Err("it begins with none of https://, http://, hf:, oci: and ollama:")
        };
        read.map_err(|why| BadReference {
            word: shown(word),
            why,
        })
    }

    /// The word for who is asked, as `job.json` has it.
    pub fn provider(&self) -> &'static str {
        match self {
            Reference::Web(_) => "web",
            Reference::Hub(_) => "hf",
            Reference::Image(_) => "oci",
            Reference::Model(_) => "ollama",
        }
    }

    /// The name that the destination has where nobody says one; none where a user must, or where what is fetched has a place of
    /// its own.
    pub fn file_name(&self) -> Option<String> {
        match self {
            Reference::Web(address) => name_in(address),
            Reference::Hub(hub) => hub.name.rsplit('/').next().map(str::to_owned),
            Reference::Image(image) => image.name.rsplit('/').next().map(str::to_owned),
            Reference::Model(_) => None,
        }
    }
}

/// The word for people: of an address without who asks, which may have a password in it.
pub fn shown(word: &str) -> String {
    let Some((scheme, rest)) = word.split_once("://") else {
        return word.to_owned();
    };
    let host_ends = rest.find(['/', '?', '#', '\\']).unwrap_or(rest.len());
    match rest[..host_ends].rfind('@') {
        Some(at) => format!("{scheme}://{}", &rest[at + 1..]),
        None => word.to_owned(),
    }
}

fn is_of_scheme(word: &str, scheme: &str) -> bool {
    word.get(..scheme.len())
        .is_some_and(|begin| begin.eq_ignore_ascii_case(scheme))
}

fn web(word: &str) -> Result<Reference, &'static str> {
    let (_, rest) = word.split_once("://").ok_or("it has no host")?;
    let host = rest.split(['/', '?', '#']).next().unwrap_or_default();
    let host = host.rsplit('@').next().unwrap_or_default();
    if host.is_empty() || host.starts_with(':') {
        return Err("it has no host");
    }
    let address = word.split('#').next().unwrap_or(word);
    Ok(Reference::Web(address.to_owned()))
}

/// The last part of the path of an address, decoded, where it is a plain name.
fn name_in(address: &str) -> Option<String> {
    let (_, rest) = address.split_once("://")?;
    let path = rest.split(['?', '#']).next()?;
    let (_, last) = path.rsplit_once('/')?;
    let name = decoded(last)?;
    let is_one = super::path::parts(&name).is_ok_and(|parts| parts.len() == 1);
    is_one.then_some(name)
}

/// What stands behind `%` escapes; `None` where they are wrong, or are no text.
fn decoded(text: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.bytes();
    while let Some(byte) = rest.next() {
        if byte != b'%' {
            bytes.push(byte);
            continue;
        }
        let high = char::from(rest.next()?).to_digit(16)?;
        let low = char::from(rest.next()?).to_digit(16)?;
        bytes.push(u8::try_from(high * 16 + low).ok()?);
    }
    String::from_utf8(bytes).ok()
}

/// Whether a word is made of what names in hubs and registries are made of, with single slashes within.
fn is_name(word: &str) -> bool {
    word.split('/').all(|part| {
        !part.is_empty()
            && part != "."
            && part != ".."
            && part
                .bytes()
                .all(|it| it.is_ascii_alphanumeric() || b"-_.".contains(&it))
    })
}

impl Hub {
    fn parse(rest: &str) -> Result<Hub, &'static str> {
        let (kind, rest) = if let Some(rest) = rest.strip_prefix("datasets/") {
            (HubKind::Dataset, rest)
        } else if let Some(rest) = rest.strip_prefix("spaces/") {
            (HubKind::Space, rest)
        } else {
            (HubKind::Model, rest.strip_prefix("models/").unwrap_or(rest))
        };
        let (name, revision) = match rest.split_once('@') {
            Some((_, "")) => return Err("its revision is empty"),
            Some((name, revision)) => (name, Some(revision.to_owned())),
            None => (rest, None),
        };
        if !is_name(name) || name.split('/').count() > 2 {
            return Err(
                "it should be hf:owner/name or hf:datasets/owner/name, with @revision or not",
            );
        }
        Ok(Hub {
            kind,
            name: name.to_owned(),
            revision,
        })
    }
}

impl Image {
    fn parse(rest: &str) -> Result<Image, &'static str> {
        const SHAPE: &str = "it should be oci:host/name:tag or oci:host/name@sha256:…";
        let (registry, rest) = rest.split_once('/').ok_or(SHAPE)?;
        let (name, version) = match rest.split_once('@') {
            Some((name, digest)) => {
                // A tag beside a digest says nothing that the digest does not.
                let name = name.split_once(':').map_or(name, |(name, _)| name);
                if !is_digest(digest) {
                    return Err("its digest should be sha256: and 64 digits of 0-9 and a-f");
                }
                (name, Version::Digest(digest.to_owned()))
            }
            None => match rest.split_once(':') {
                Some((name, tag)) => (name, Version::Tag(tag.to_owned())),
                None => (rest, Version::Tag("latest".to_owned())),
            },
        };
        let tag_is_one = match &version {
            Version::Tag(tag) => is_name(tag) && !tag.contains('/'),
            Version::Digest(_) => true,
        };
        if !is_host(registry) || !is_name(name) || !tag_is_one {
            return Err(SHAPE);
        }
        Ok(Image {
            registry: registry.to_owned(),
            name: name.to_owned(),
            version,
        })
    }
}

impl Model {
    fn parse(rest: &str) -> Result<Model, &'static str> {
        const SHAPE: &str =
            "it should be ollama:name, ollama:name:tag or ollama:host/owner/name:tag";
        // A port is before a slash, a tag after the last one.
        let (path, tag) = match rest.rsplit_once(':') {
            Some((path, tag)) if !tag.contains('/') => (path, tag),
            _ => (rest, "latest"),
        };
        let parts: Vec<&str> = path.split('/').collect();
        let (registry, namespace, name) = match parts.as_slice() {
            [name] => (None, "library", *name),
            [namespace, name] => (None, *namespace, *name),
            [registry, namespace, name] => (Some(*registry), *namespace, *name),
            _ => return Err(SHAPE),
        };
        let is_one =
            [namespace, name, tag].iter().all(|it| is_name(it)) && registry.is_none_or(is_host);
        if !is_one {
            return Err(SHAPE);
        }
        Ok(Model {
            registry: registry.map(str::to_owned),
            namespace: namespace.to_owned(),
            name: name.to_owned(),
            tag: tag.to_owned(),
        })
    }
}

/// Whether this is a host, with a port or not.
fn is_host(word: &str) -> bool {
    let (host, port) = match word.rsplit_once(':') {
        Some((host, port)) if !port.ends_with(']') => (host, Some(port)),
        _ => (word, None),
    };
    let host_is_one = match host.strip_prefix('[').and_then(|it| it.strip_suffix(']')) {
        Some(inside) => inside
            .bytes()
            .all(|it| it.is_ascii_hexdigit() || it == b':'),
        None => is_name(host) && !host.contains('/'),
    };
    host_is_one && port.is_none_or(|port| port.parse::<u16>().is_ok())
}

/// Whether this is a digest that can be checked: `sha256:` and 64 lower-case hexadecimal digits.
pub fn is_digest(word: &str) -> bool {
    word.strip_prefix("sha256:")
        .is_some_and(|hex| is_hex(hex, 64))
}

/// Whether this is so many lower-case hexadecimal digits.
pub fn is_hex(word: &str, length: usize) -> bool {
    word.len() == length
        && word
            .bytes()
            .all(|it| it.is_ascii_digit() || (b'a'..=b'f').contains(&it))
}

impl HubKind {
    /// The part of an address that says so, as the hub's interface has it.
    pub fn plural(self) -> &'static str {
        match self {
            HubKind::Model => "models",
            HubKind::Dataset => "datasets",
            HubKind::Space => "spaces",
        }
    }
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Version::Tag(word) | Version::Digest(word) => f.pad(word),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(word: &str) -> Reference {
        Reference::parse(word).unwrap()
    }

    #[test]
    fn addresses() {
        let file = |word: &str| parse(word).file_name();
        assert_eq!(parse("https://a/b#c"), Reference::Web("https://a/b".into()));
        assert_eq!(file("https://a/b/c.bin?x=/y"), Some("c.bin".into()));
        assert_eq!(file("HTTP://a/with%20space"), Some("with space".into()));
        for nameless in [
            "https://a",
            "https://a/",
            "https://a/%2e%2e",
            "https://a/x%2fy",
            "https://a/%zz",
        ] {
            assert_eq!(file(nameless), None, "{nameless}");
        }
    }

    #[test]
    fn who_asks_is_not_shown() {
        for (word, shows) in [
            ("http://alice:s3cret@host/a@b?c@d", "http://host/a@b?c@d"),
            ("HTTPS://a:b@c@host:1/x", "HTTPS://host:1/x"),
            ("http://u@host\\x@y", "http://host\\x@y"),
            ("http://u:p@host", "http://host"),
            ("http://host/a@b", "http://host/a@b"),
            ("hf:owner/name@main", "hf:owner/name@main"),
        ] {
            assert_eq!(shown(word), shows);
        }
        let error = Reference::parse("ftp://a:s3cret@host/x").unwrap_err();
        assert!(!error.to_string().contains("s3cret"), "{error}");
    }

    #[test]
    fn repositories_of_a_hub() {
        let Reference::Hub(hub) = parse("hf:datasets/owner/name@refs/pr/4") else {
            panic!()
        };
        assert_eq!(hub.kind, HubKind::Dataset);
        assert_eq!(hub.name, "owner/name");
        assert_eq!(hub.revision.as_deref(), Some("refs/pr/4"));
        assert_eq!(parse("hf:gpt2").file_name(), Some("gpt2".into()));
        for wrong in ["hf:", "hf:a/b/c", "hf:a/../b", "hf:a/b@", "hf:/b", "hf:a b"] {
            assert!(Reference::parse(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn images() {
        let Reference::Image(image) = parse("oci:127.0.0.1:5000/some/name:v1") else {
            panic!()
        };
        assert_eq!(image.registry, "127.0.0.1:5000");
        assert_eq!(image.name, "some/name");
        assert_eq!(image.version, Version::Tag("v1".into()));
        let digest = format!("sha256:{}", "0f".repeat(32));
        let Reference::Image(image) = parse(&format!("oci:[::1]:5000/name:v1@{digest}")) else {
            panic!()
        };
        assert_eq!(
            (image.registry.as_str(), image.name.as_str()),
            ("[::1]:5000", "name")
        );
        assert_eq!(image.version, Version::Digest(digest));
        for wrong in [
            "oci:name",
            "oci:host/name@sha256:ab",
            "oci:host/name:",
            "oci:host:x/name",
            "oci:host/",
        ] {
            assert!(Reference::parse(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn models() {
        let Reference::Model(model) = parse("ollama:llama3:8b") else {
            panic!()
        };
        assert_eq!(
            (
                model.registry,
                model.namespace.as_str(),
                model.name.as_str(),
                model.tag.as_str()
            ),
            (None, "library", "llama3", "8b")
        );
        let Reference::Model(model) = parse("ollama:127.0.0.1:11434/me/mine") else {
            panic!()
        };
        assert_eq!(model.registry.as_deref(), Some("127.0.0.1:11434"));
        assert_eq!(model.tag, "latest");
        for wrong in ["ollama:", "ollama:a/b/c/d", "ollama:a:b:c", "ollama:a/../b"] {
            assert!(Reference::parse(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn anything_else_is_refused_with_a_reason() {
        for wrong in [
            "",
            "file",
            "ftp://a/b",
            "https://",
            "http:///x",
            "https://:80/",
            "HF:a/b",
        ] {
            let why = Reference::parse(wrong).unwrap_err().to_string();
            assert!(why.contains("cannot be pulled"), "{why}");
        }
    }
}
