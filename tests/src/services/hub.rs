//! A repository of a hub, as the hub's own client accepts it: what is asked about it on one port, the bytes of large files on
//! another, to which the first one leads.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard};

use serde_json::{Value, json};
use sha1::Sha1;
use sha2::{Digest, Sha256};

use super::said::{Said, asked, split};
use crate::server::{Request, Server};

/// What is in a repository, and how its hub behaves.
#[derive(Clone, Debug)]
pub struct Repo {
    /// `models/owner/name`, `datasets/owner/name`.
    pub name: String,
    /// The commit that every branch is at.
    pub commit: String,
    /// Its files.
    pub files: BTreeMap<String, Vec<u8>>,
    /// Files of at least so many bytes are large ones.
    pub large: usize,
    /// How many files are on a page of the list.
    pub page: usize,
    /// The token that is needed for anything.
    pub token: Option<String>,
    /// What is said instead, by the begin of the path: a status and an error code.
    pub refusals: Vec<(String, u16, String)>,
    /// What is sent instead of the bytes of a file.
    pub lies: BTreeMap<String, Vec<u8>>,
    /// How many of the next answers with a file are cut half way.
    pub cuts: BTreeMap<String, u32>,
    /// More entries of the list.
    pub further: Vec<Value>,
    /// What the list has in place of the files.
    pub listed: Option<Vec<Value>>,
    /// Whether the list goes on at its first page.
    pub is_endless: bool,
}

impl Repo {
    /// A repository with these files.
    pub fn new(name: &str, files: &[(&str, Vec<u8>)]) -> Repo {
        Repo {
            name: name.to_owned(),
            commit: "c0ffee".repeat(7)[..40].to_owned(),
            files: files
                .iter()
                .map(|(path, bytes)| ((*path).to_owned(), bytes.clone()))
                .collect(),
            large: 10_000,
            page: 3,
            token: None,
            refusals: Vec::new(),
            lies: BTreeMap::new(),
            cuts: BTreeMap::new(),
            further: Vec::new(),
            listed: None,
            is_endless: false,
        }
    }

    /// An answer with this file, which is cut where that is due.
    fn cut(&mut self, path: &str, said: Said) -> Said {
        match self.cuts.get_mut(path) {
            Some(left) if *left > 0 => {
                *left -= 1;
                said.cut()
            }
            _ => said,
        }
    }

    /// Where its files are, from the root of the server.
    fn place(&self) -> String {
        let name = self.name.strip_prefix("models/").unwrap_or(&self.name);
        format!("/{name}/resolve/{}/", self.commit)
    }
}

/// A hub with one repository.
pub struct Hub {
    /// Who is asked.
    pub api: Server,
    /// Who has the large files.
    pub storage: Server,
    repo: Arc<Mutex<Repo>>,
}

impl Hub {
    /// A hub with this repository.
    pub fn new(repo: Repo) -> Hub {
        let repo = Arc::new(Mutex::new(repo));
        let its = Arc::clone(&repo);
        let storage = Server::new(move |request, reply| {
            let said = stored(&mut lock(&its), request);
            said.send(request, reply);
        });
        let (its, host) = (Arc::clone(&repo), storage.authority());
        let api = Server::new(move |request, reply| {
            let said = answer(&mut lock(&its), &host, request);
            said.send(request, reply);
        });
        Hub { api, storage, repo }
    }

    /// Its address.
    pub fn endpoint(&self) -> String {
        self.api.url("")
    }

    /// The repository, to be looked at or changed.
    pub fn repo(&self) -> MutexGuard<'_, Repo> {
        lock(&self.repo)
    }
}

fn lock(repo: &Mutex<Repo>) -> MutexGuard<'_, Repo> {
    repo.lock().expect("no answer has panicked")
}

fn answer(repo: &mut Repo, storage: &str, request: &Request) -> Said {
    let (path, query) = split(request);
    if let Some((_, status, code)) = repo.refusals.iter().find(|it| path.starts_with(&it.0)) {
        let message = format!("it is a {code}");
        return Said::text(*status, "no")
            .with("X-Error-Code", code)
            .with("X-Error-Message", &message);
    }
    let shown = request
        .header("authorization")
        .and_then(|it| it.strip_prefix("Bearer "));
    if repo.token.is_some() && shown != repo.token.as_deref() {
        return Said::text(401, "no").with("X-Error-Code", "RepoNotFound");
    }
    let about = format!("/api/{}", repo.name);
    if let Some(rest) = path.strip_prefix(&about) {
        return match rest.strip_prefix("/tree/") {
            Some(commit) if commit == repo.commit => tree(repo, request, query),
            Some(_) => Said::text(404, "no").with("X-Error-Code", "RevisionNotFound"),
            None => match rest.strip_prefix("/revision/") {
                Some("main" | "refs/pr/4") | None => said_about(repo),
                Some(commit) if commit == repo.commit => said_about(repo),
                Some(_) => Said::text(404, "no").with("X-Error-Code", "RevisionNotFound"),
            },
        };
    }
    match path
        .strip_prefix(&repo.place())
        .filter(|path| repo.files.contains_key(*path))
    {
        Some(path) => file(repo, storage, request, path),
        None => Said::text(404, "no").with("X-Error-Code", "RepoNotFound"),
    }
}

fn said_about(repo: &Repo) -> Said {
    let siblings: Vec<Value> = repo
        .files
        .keys()
        .map(|path| json!({ "rfilename": path }))
        .collect();
    let (_, id) = repo
        .name
        .split_once('/')
        .expect("a repository is of a kind");
    let about = json!({
        "id": id, "_id": "1", "modelId": id, "sha": repo.commit, "private": false, "gated": false, "disabled": false,
        "tags": [], "downloads": 0, "likes": 0, "siblings": siblings,
    });
    as_json(&about)
}

fn tree(repo: &Repo, request: &Request, query: &str) -> Said {
    let from: usize = asked(query, "cursor").map_or(0, |it| it.parse().expect("cursors are ours"));
    let files = repo.files.iter().map(|(path, bytes)| {
        if bytes.len() < repo.large {
            json!({ "type": "file", "path": path, "size": bytes.len(), "oid": git(bytes) })
        } else {
            let lfs = json!({ "oid": sha256(bytes), "size": bytes.len(), "pointerSize": 130 });
            json!({ "type": "file", "path": path, "size": bytes.len(), "oid": git(b"pointer"), "lfs": lfs })
        }
    });
    let directories = repo.files.keys().filter_map(|path| path.rsplit_once('/'));
    let directories = directories
        .map(|(path, _)| json!({ "type": "directory", "path": path, "size": 0, "oid": "d" }));
    let all: Vec<Value> = match &repo.listed {
        Some(listed) => listed.clone(),
        None => files
            .chain(directories)
            .chain(repo.further.iter().cloned())
            .collect(),
    };
    let until = (from + repo.page).min(all.len());
    let page = as_json(&Value::from(&all[from.min(until)..until]));
    if until == all.len() && !repo.is_endless {
        return page;
    }
    let next = if until == all.len() { 0 } else { until };
    let path = request.path.split('?').next().unwrap_or_default();
    let host = request.header("host").unwrap_or_default();
    page.with(
        "Link",
        &format!("<http://{host}{path}?recursive=true&expand=false&cursor={next}>; rel=\"next\""),
    )
}

fn file(repo: &mut Repo, storage: &str, request: &Request, path: &str) -> Said {
    let bytes = &repo.files[path];
    if bytes.len() < repo.large {
        let sent = repo.lies.get(path).unwrap_or(bytes);
        let said = Said::file(request, sent, &format!("\"{}\"", git(bytes)))
            .with("X-Repo-Commit", &repo.commit);
        return repo.cut(path, said);
    }
    let oid = sha256(bytes);
    Said::of(302)
        .with(
            "Location",
            &format!("http://{storage}/{oid}?signature=secret"),
        )
        .with("X-Repo-Commit", &repo.commit)
        .with("X-Linked-Etag", &format!("\"{oid}\""))
        .with("X-Linked-Size", &bytes.len().to_string())
        .with("ETag", &format!("\"{oid}\""))
}

fn stored(repo: &mut Repo, request: &Request) -> Said {
    let (path, _) = split(request);
    let wanted = path.trim_start_matches('/');
    match repo.files.iter().find(|(_, bytes)| sha256(bytes) == wanted) {
        Some((path, bytes)) => {
            let sent = repo.lies.get(path).unwrap_or(bytes);
            let said = Said::file(request, sent, "\"of-the-storage\"");
            let path = path.clone();
            repo.cut(&path, said)
        }
        None => Said::text(404, "no"),
    }
}

fn as_json(value: &Value) -> Said {
    Said::text(200, value.to_string()).with("Content-Type", "application/json")
}

fn sha256(bytes: &[u8]) -> String {
    hex(&Sha256::digest(bytes))
}

/// The name that git has for a file.
fn git(bytes: &[u8]) -> String {
    let head = format!("blob {}\0", bytes.len());
    hex(&Sha1::new()
        .chain_update(head)
        .chain_update(bytes)
        .finalize())
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
