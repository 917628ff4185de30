//! A registry with one name in it: manifests and blobs by digest, tokens that run out, and what some registries get wrong.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard};

use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use super::said::{Said, split};
use crate::server::{Request, Server};

/// Who may have what is there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Guard {
    /// Everybody.
    Nobody,
    /// Everybody, but blobs only later.
    Busy,
    /// Whoever shows this, as `Authorization` has it.
    Basic(String),
    /// Whoever has a token that was not used so often yet. It is given to whoever shows `secret`, if that is said.
    Token {
        /// How often it is good.
        uses: u32,
        /// What is to be shown for it, as `Authorization` has it.
        secret: Option<String>,
        /// Whether it is given by the other server, so by another host.
        elsewhere: bool,
    },
}

/// What a registry gets wrong.
#[derive(Clone, Debug, Default)]
pub struct Deceit {
    /// Every manifest is this one.
    pub manifest: Option<Vec<u8>>,
    /// What is sent for a blob, by its digest.
    pub blobs: BTreeMap<String, Vec<u8>>,
    /// What is said about the encoding of blobs.
    pub encoding: Option<String>,
    /// What is said about the type of manifests.
    pub content_type: Option<String>,
    /// What is said about the digest of manifests.
    pub digest: Option<String>,
}

/// A registry.
pub struct Registry {
    /// Who is asked.
    pub front: Server,
    /// Who has the blobs, where these are elsewhere.
    pub storage: Server,
    shelf: Arc<Mutex<Shelf>>,
}

/// What it has.
pub struct Shelf {
    /// `owner/name`.
    pub name: String,
    /// Manifests by tag and by digest, with their types.
    pub manifests: BTreeMap<String, (String, Vec<u8>)>,
    /// Blobs by digest.
    pub blobs: BTreeMap<String, Vec<u8>>,
    /// Who may have them.
    pub guard: Guard,
    /// Whether blobs are elsewhere.
    pub redirects: bool,
    /// What it gets wrong.
    pub deceit: Deceit,
    tokens: BTreeMap<String, u32>,
    given: u32,
}

impl Registry {
    /// A registry that has nothing yet under this name.
    pub fn new(name: &str) -> Registry {
        let shelf = Arc::new(Mutex::new(Shelf {
            name: name.to_owned(),
            manifests: BTreeMap::new(),
            blobs: BTreeMap::new(),
            guard: Guard::Nobody,
            redirects: false,
            deceit: Deceit::default(),
            tokens: BTreeMap::new(),
            given: 0,
        }));
        let its = Arc::clone(&shelf);
        let storage = Server::new(move |request, reply| {
            let said = match split(request) {
                (path, query) if path == "/token" => lock(&its).token(request, query),
                (path, _) => lock(&its).blob(request, path.trim_start_matches('/')),
            };
            said.send(request, reply);
        });
        let (its, host) = (Arc::clone(&shelf), storage.authority());
        let front = Server::new(move |request, reply| {
            let said = lock(&its).answer(request, &host);
            said.send(request, reply);
        });
        Registry {
            front,
            storage,
            shelf,
        }
    }

    /// What it has, to be looked at or changed.
    pub fn shelf(&self) -> MutexGuard<'_, Shelf> {
        lock(&self.shelf)
    }
}

fn lock(shelf: &Mutex<Shelf>) -> MutexGuard<'_, Shelf> {
    shelf.lock().expect("no answer has panicked")
}

impl Shelf {
    /// Take in a blob; what names it in a manifest.
    pub fn add(&mut self, media_type: &str, bytes: &[u8]) -> Value {
        let digest = digest_of(bytes);
        self.blobs.insert(digest.clone(), bytes.to_vec());
        json!({ "mediaType": media_type, "digest": digest, "size": bytes.len() })
    }

    /// Take in a manifest under its digest, and under a tag where one is said; its digest.
    pub fn add_manifest(&mut self, tag: Option<&str>, manifest: &Value) -> String {
        let media_type = manifest["mediaType"]
            .as_str()
            .unwrap_or("text/plain")
            .to_owned();
        let bytes = manifest.to_string().into_bytes();
        let digest = digest_of(&bytes);
        for name in tag.into_iter().chain([digest.as_str()]) {
            self.manifests
                .insert(name.to_owned(), (media_type.clone(), bytes.clone()));
        }
        digest
    }

    fn answer(&mut self, request: &Request, storage: &str) -> Said {
        let (path, query) = split(request);
        if path == "/token" {
            return self.token(request, query);
        }
        if let Some(refusal) = self.refusal(request, storage) {
            return refusal;
        }
        // How some clients see whether this is a registry.
        if path == "/v2/" {
            return Said::text(200, "{}");
        }
        let base = format!("/v2/{}/", self.name);
        let Some((kind, which)) = path.strip_prefix(&base).and_then(|it| it.split_once('/')) else {
            return Said::text(404, r#"{"errors":[{"code":"NAME_UNKNOWN"}]}"#);
        };
        match kind {
            "blobs" if self.redirects => {
                Said::of(307).with("Location", &format!("http://{storage}/{which}"))
            }
            "blobs" => self.blob(request, which),
            _ => self.manifest(request, which),
        }
    }

    fn manifest(&self, request: &Request, which: &str) -> Said {
        let Some((media_type, bytes)) = self.manifests.get(which) else {
            return Said::text(404, r#"{"errors":[{"code":"MANIFEST_UNKNOWN"}]}"#);
        };
        let accepted = request.header("accept").unwrap_or_default();
        if media_type != "text/plain" && !accepted.contains(media_type.as_str()) {
            return Said::text(
                404,
                r#"{"errors":[{"code":"MANIFEST_UNKNOWN","message":"but accept header"}]}"#,
            );
        }
        let sent = self.deceit.manifest.as_ref().unwrap_or(bytes);
        let digest = self
            .deceit
            .digest
            .clone()
            .unwrap_or_else(|| digest_of(bytes));
        Said::text(200, sent.clone())
            .with(
                "Content-Type",
                self.deceit.content_type.as_deref().unwrap_or(media_type),
            )
            .with("Docker-Content-Digest", &digest)
    }

    fn blob(&self, request: &Request, which: &str) -> Said {
        let Some(bytes) = self.blobs.get(which) else {
            return Said::text(404, r#"{"errors":[{"code":"BLOB_UNKNOWN"}]}"#);
        };
        let sent = self.deceit.blobs.get(which).unwrap_or(bytes);
        let mut reply = Said::file(request, sent, &format!("\"{which}\""));
        if reply.status == 416 {
            // As Debian's docker-registry 2.8.2 does: the length of the blob, and the body of an error.
            let range = format!("bytes */{}", sent.len());
            reply = Said::text(416, "{\"errors\":[{\"code\":\"UNKNOWN\"}]}")
                .with("Content-Range", &range);
            reply = reply.announcing(sent.len());
        }
        match &self.deceit.encoding {
            Some(encoding) => reply.with("Content-Encoding", encoding),
            None => reply,
        }
    }

    fn refusal(&mut self, request: &Request, storage: &str) -> Option<Said> {
        let shown = request.header("authorization");
        let refused =
            |challenge: &str| Some(Said::text(401, "no").with("WWW-Authenticate", challenge));
        match &self.guard {
            Guard::Nobody => None,
            Guard::Busy => split(request).0.contains("/blobs/").then(|| Said::of(503)),
            Guard::Basic(secret) if shown == Some(secret) => None,
            Guard::Basic(_) => refused("Basic realm=\"here\""),
            Guard::Token { elsewhere, .. } => {
                let token = shown.and_then(|it| it.strip_prefix("Bearer "));
                if let Some(left) = token.and_then(|token| self.tokens.get_mut(token))
                    && *left > 0
                {
                    *left -= 1;
                    return None;
                }
                let own = request.header("host").unwrap_or_default();
                let host = if *elsewhere { storage } else { own };
                let name = &self.name;
                refused(&format!(
                    "Bearer realm=\"http://{host}/token\",service=\"tests\",scope=\"repository:{name}:pull,push\""
                ))
            }
        }
    }

    fn token(&mut self, request: &Request, query: &str) -> Said {
        let Guard::Token { uses, secret, .. } = &self.guard else {
            return Said::text(404, "no");
        };
        if secret.is_some() && request.header("authorization") != secret.as_deref() {
            return Said::text(401, "no");
        }
        let scope = format!(
            "scope=repository%3A{}%3Apull",
            self.name.replace('/', "%2F")
        );
        let asked = query.contains("service=tests") && query.contains(&scope);
        if !asked || query.contains("push") {
            return Said::text(400, "no");
        }
        self.given += 1;
        let token = format!("token-{}", self.given);
        self.tokens.insert(token.clone(), *uses);
        Said::text(200, json!({ "token": token, "expires_in": 60 }).to_string())
    }

    /// How many tokens were given.
    pub fn tokens_given(&self) -> u32 {
        self.given
    }
}

/// The digest of these bytes, as registries write it.
pub fn digest_of(bytes: &[u8]) -> String {
    let hex: String = Sha256::digest(bytes)
        .iter()
        .map(|byte| format!("{byte:02x}"))
        .collect();
    format!("sha256:{hex}")
}
