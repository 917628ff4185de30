//! The files of a repository of a hub, at one commit (PULLS). Every file has a digest that can be checked: the one of a large file
//! is SHA-256, the one of any other is git's name for it.

mod access;
mod tree;

use std::path::Path;
use std::sync::Arc;

use serde::Deserialize;
use state_machine::pattern::{Pattern, is_wanted};
use state_machine::pull::reference::{Hub, HubKind};
use state_machine::pull::word::Cause;
use state_machine::record::Pull;
use url::Url;

use self::tree::File;
use super::{Provider, Variables};
use crate::pull::http::{Access, Answer, Ask, Http, never};
use crate::pull::plan::{Item, Plan};

/// Where repositories are where nobody says.
const ENDPOINT: &str = "https://huggingface.co";
/// How many files are named in a message at most.
const NAMED: usize = 5;

/// A repository of a hub.
pub(super) struct Repository {
    hub: Hub,
    endpoint: String,
    access: Arc<dyn Access>,
    include: Vec<Pattern>,
    exclude: Vec<Pattern>,
}

/// What a hub says about a repository at a revision.
#[derive(Deserialize)]
struct About {
    sha: Option<String>,
}

impl Repository {
    /// What is asked for, of the hub that the environment names.
    pub(super) fn new(
        mut hub: Hub,
        pull: &Pull,
        variables: Variables<'_>,
    ) -> Result<Repository, Cause> {
        match (&hub.revision, &pull.revision) {
            (Some(one), Some(other)) if one != other => {
                return Err(never(format!(
                    "it cannot be both of revision {one} and of {other}"
                )));
            }
            (None, Some(revision)) => hub.revision = Some(revision.clone()),
            _ => {}
        }
        if pull.digest.is_some() {
            return Err(never(
                "a repository has no digest of its own, every file has one; name a commit as the revision",
            ));
        }
        let endpoint = match variables("HF_ENDPOINT") {
            Some(endpoint) => endpoint
                .into_string()
                .map_err(|_| never("HF_ENDPOINT is no text"))?,
            None => ENDPOINT.to_owned(),
        };
        let patterns = |texts: &[String]| texts.iter().map(|it| Pattern::new(it)).collect();
        Ok(Repository {
            hub,
            endpoint: endpoint.trim_end_matches('/').to_owned(),
            access: access::of(variables)?,
            include: patterns(&pull.include),
            exclude: patterns(&pull.exclude),
        })
    }

    /// An address of the hub's interface.
    fn about(&self, rest: &str) -> Result<Url, Cause> {
        let kind = self.hub.kind.plural();
        self.address(&format!("api/{kind}/{}{rest}", self.hub.name))
    }

    fn address(&self, path: &str) -> Result<Url, Cause> {
        let address = format!("{}/{path}", self.endpoint);
        Url::parse(&address)
            .map_err(|error| never(format!("HF_ENDPOINT: {address} is no address: {error}")))
    }

    /// Where a file is, at a commit.
    fn address_of(&self, commit: &str, path: &str) -> Result<Url, Cause> {
        let kind = match self.hub.kind {
            HubKind::Model => "",
            HubKind::Dataset => "datasets/",
            HubKind::Space => "spaces/",
        };
        let (name, path) = (&self.hub.name, escaped(path, "/"));
        self.address(&format!("{kind}{name}/resolve/{commit}/{path}"))
    }

    /// Ask for a text; what the hub refuses is said in words that help.
    fn ask(&self, http: &Http, url: &Url, access: &dyn Access) -> Result<(Answer, Vec<u8>), Cause> {
        let answer = http.ask(&Ask::get(url, access))?;
        if answer.status() == 200 {
            return answer.into_text();
        }
        let shown = self.shown();
        let code = answer.header("x-error-code").unwrap_or_default();
        let message = answer.header("x-error-message").unwrap_or_default();
        let why = match (code, answer.status()) {
            ("GatedRepo", _) => format!(
                "{shown} is gated: ask for access at {}, and set HF_TOKEN to a token of an account that has it",
                self.page()
            ),
            _ if message == "Access to this resource is disabled." => {
                format!("{shown} was disabled by the hub")
            }
            _ if message.starts_with("Invalid credentials") => {
                "the hub does not know the token; set HF_TOKEN to one that is good, or to nothing"
                    .to_owned()
            }
            ("RevisionNotFound", _) => format!(
                "{shown} has no revision {}",
                self.hub.revision.as_deref().unwrap_or("main")
            ),
            // A hub does not tell a stranger what there is.
            ("RepoNotFound", _) | (_, 401 | 404) if self.access.header().is_none() => format!(
                "there is no {shown}, or it is private; if it is, set HF_TOKEN to a token of an account that may see it"
            ),
            ("RepoNotFound", _) | (_, 404) => {
                format!("there is no {shown}, or the token is of an account that may not see it")
            }
            _ => return Err(answer.refusal()),
        };
        Err(never(why))
    }

    /// Its name, for people.
    fn shown(&self) -> String {
        let kind = match self.hub.kind {
            HubKind::Model => "hf:",
            HubKind::Dataset => "hf:datasets/",
            HubKind::Space => "hf:spaces/",
        };
        format!("{kind}{}", self.hub.name)
    }

    /// Its page, for people.
    fn page(&self) -> String {
        let kind = match self.hub.kind {
            HubKind::Model => "",
            HubKind::Dataset => "datasets/",
            HubKind::Space => "spaces/",
        };
        format!("{}/{kind}{}", self.endpoint, self.hub.name)
    }

    /// Those of the files that are wanted.
    fn wanted(&self, files: Vec<File>) -> Result<Vec<File>, Cause> {
        let (wanted, others): (Vec<File>, Vec<File>) = files
            .into_iter()
            .partition(|file| is_wanted(&file.path, &self.include, &self.exclude));
        if wanted.is_empty() && !others.is_empty() {
            let some: Vec<&str> = others
                .iter()
                .take(NAMED)
                .map(|file| file.path.as_str())
                .collect();
            return Err(never(format!(
                "none of the {} files of {} is as the patterns say; there are: {}{}",
                others.len(),
                self.shown(),
                some.join(", "),
                if others.len() > NAMED { ", …" } else { "" }
            )));
        }
        Ok(wanted)
    }
}

impl Provider for Repository {
    fn resolve(&self, http: &Http) -> Result<Option<String>, Cause> {
        let url = match &self.hub.revision {
            Some(revision) => self.about(&format!("/revision/{}", escaped(revision, "")))?,
            None => self.about("")?,
        };
        let (_, text) = self.ask(http, &url, &*self.access)?;
        let about: Option<About> = serde_json::from_slice(&text).ok();
        match about.and_then(|about| about.sha) {
            // It becomes a part of every address.
            Some(commit) if is_commit(&commit) => Ok(Some(commit)),
            _ => Err(never(format!(
                "{} does not say of which commit {} is; is it a hub?",
                self.endpoint,
                self.shown()
            ))),
        }
    }

    fn plan(&self, http: &Http, resolved: Option<&str>, destination: &Path) -> Result<Plan, Cause> {
        let commit = resolved
            .filter(|commit| is_commit(commit))
            .ok_or_else(|| never("the commit that was written down is none"))?;
        let files = self.wanted(self.tree(http, commit)?)?;
        tree::can_stand_together(&files)?;
        let note = format!(
            "{} files of {} at commit {commit}",
            files.len(),
            self.shown()
        );
        let mut items = Vec::with_capacity(files.len());
        for file in files {
            let parts = state_machine::pull::path::parts(&file.path);
            let parts = parts.map_err(|error| never(error.to_string()))?;
            let path = parts.into_iter().map(str::to_owned).collect();
            let url = self.address_of(commit, &file.path)?;
            let item = Item::at(path, url, Arc::clone(&self.access));
            items.push(item.known(Some(file.checked()?), Some(file.size)));
        }
        Ok(Plan {
            items,
            written: Vec::new(),
            root: destination.to_owned(),
            staging: destination.join(state_machine::pull::path::STAGING),
            owns_staging: true,
            keystone: None,
            note: Some(note),
        })
    }
}

fn is_commit(word: &str) -> bool {
    (1..=64).contains(&word.len()) && word.bytes().all(|it| it.is_ascii_alphanumeric())
}

/// A text as a part of an address: everything is escaped but letters, digits, `-._~`, and what is in `plain`.
fn escaped(text: &str, plain: &str) -> String {
    use std::fmt::Write;
    let mut escaped = String::with_capacity(text.len());
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric()
            || b"-._~".contains(&byte)
            || plain.as_bytes().contains(&byte)
        {
            escaped.push(char::from(byte));
        } else {
            // Writing to a string cannot fail.
            let _ = write!(escaped, "%{byte:02X}");
        }
    }
    escaped
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_become_parts_of_addresses() {
        assert_eq!(escaped("refs/pr/4", ""), "refs%2Fpr%2F4");
        assert_eq!(
            escaped("a b/[ü]%2e.bin", "/"),
            "a%20b/%5B%C3%BC%5D%252e.bin"
        );
    }
}
