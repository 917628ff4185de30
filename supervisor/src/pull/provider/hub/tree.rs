//! Which files a repository has at a commit.

use std::collections::BTreeSet;

use serde::Deserialize;
use state_machine::pull::word::Cause;
use url::Url;

use super::Repository;
use crate::pull::digest::Digest;
use crate::pull::http::{Http, Public, never, shown};

/// No more files than this are listed: a server could go on for ever.
const MOST: usize = 2_000_000;

/// No more pages than this are read one after the other with no file in them.
const MOST_EMPTY: usize = 100;

/// A file of a repository.
pub(super) struct File {
    /// Its path as the hub names it. Not yet looked at.
    pub(super) path: String,
    /// How long it is, in bytes.
    pub(super) size: u64,
    /// What it must come to, where the hub names that so that it can be checked.
    digest: Option<Digest>,
}

/// An entry of a listing.
#[derive(Deserialize)]
struct Entry {
    r#type: String,
    path: String,
    #[serde(default)]
    size: u64,
    oid: Option<String>,
    lfs: Option<Lfs>,
}

/// What is known of a large file. What git keeps in its place is a few lines that name it.
#[derive(Deserialize)]
struct Lfs {
    oid: String,
    size: u64,
}

impl Repository {
    /// Every file, page by page.
    pub(super) fn tree(&self, http: &Http, commit: &str) -> Result<Vec<File>, Cause> {
        let mut files = Vec::new();
        let first = self.about(&format!("/tree/{commit}?recursive=true&expand=false"))?;
        let mut seen = BTreeSet::new();
        let (mut next, mut empty) = (Some(first.clone()), 0);
        while let Some(url) = next {
            if !seen.insert(url.to_string()) {
                return Err(never(format!(
                    "the list of files at {} leads back to itself",
                    shown(&url)
                )));
            }
            // Where the next page is is for the server to say, and who asks for the server that was asked.
            let is_same = url.origin() == first.origin();
            let access = if is_same { &*self.access } else { &Public };
            let (answer, text) = self.ask(http, &url, access)?;
            let entries: Vec<Entry> = serde_json::from_slice(&text)
                .map_err(|error| never(format!("{} is no list of files: {error}", shown(&url))))?;
            let is_empty = entries.is_empty();
            files.extend(
                entries
                    .into_iter()
                    .filter(|it| it.r#type == "file")
                    .map(File::from),
            );
            empty = if is_empty { empty + 1 } else { 0 };
            if files.len() > MOST || empty > MOST_EMPTY {
                return Err(never(format!(
                    "the list of files at {} does not end",
                    shown(&url)
                )));
            }
            next = match answer.header("link").and_then(next_in) {
                Some(link) => Some(following(&url, link)?),
                None => None,
            };
        }
        Ok(files)
    }
}

/// The page after this one.
fn following(url: &Url, link: &str) -> Result<Url, Cause> {
    match url.join(link) {
        Ok(next) if next.scheme() == url.scheme() || next.scheme() == "https" => Ok(next),
        _ => Err(never(format!(
            "the list of files at {} goes on at no address",
            shown(url)
        ))),
    }
}

impl From<Entry> for File {
    fn from(entry: Entry) -> File {
        let hex = |oid: &str| oid.to_ascii_lowercase();
        match entry.lfs {
            Some(lfs) => {
                let oid = hex(&lfs.oid);
                let oid = oid.strip_prefix("sha256:").unwrap_or(&oid);
                File {
                    path: entry.path,
                    size: lfs.size,
                    digest: Digest::parse(&format!("sha256:{oid}")),
                }
            }
            None => File {
                path: entry.path,
                size: entry.size,
                digest: entry
                    .oid
                    .and_then(|oid| Digest::parse(&format!("git:{}", hex(&oid)))),
            },
        }
    }
}

impl File {
    /// What it must come to.
    ///
    /// # Errors
    ///
    /// When the hub names nothing that can be checked: then nothing would tell a wrong file from the right one.
    pub(super) fn checked(&self) -> Result<Digest, Cause> {
        self.digest.clone().ok_or_else(|| {
            never(format!(
                "the hub names no digest of {:?} that can be checked; nothing was written",
                self.path
            ))
        })
    }
}

/// The address of the next page in a `Link` header (RFC 8288).
fn next_in(header: &str) -> Option<&str> {
    let mut rest = header;
    loop {
        let (_, after) = rest.split_once('<')?;
        let (address, after) = after.split_once('>')?;
        let parameters = after.split('<').next().unwrap_or_default();
        let is_next = parameters.split([';', ',']).any(|parameter| {
            let (name, value) = parameter.split_once('=').unwrap_or_default();
            name.trim().eq_ignore_ascii_case("rel") && value.trim().trim_matches('"') == "next"
        });
        if is_next {
            return Some(address);
        }
        rest = after;
    }
}

/// See that no two files have one name, and that none has the name of another's directory.
pub(super) fn can_stand_together(files: &[File]) -> Result<(), Cause> {
    let mut names = BTreeSet::new();
    for file in files {
        if !names.insert(file.path.as_str()) {
            return Err(never(format!(
                "the hub names {:?} twice; nothing was written",
                file.path
            )));
        }
    }
    for file in files {
        let above = file.path.match_indices('/').map(|(at, _)| &file.path[..at]);
        if let Some(above) = above.into_iter().find(|above| names.contains(above)) {
            return Err(never(format!(
                "the hub names {above:?} as a file and as the directory of another; nothing was written"
            )));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_next_page_is_found_in_its_header() {
        assert_eq!(
            next_in("<https://a/b?c=1>; rel=\"next\""),
            Some("https://a/b?c=1")
        );
        assert_eq!(next_in("</p>; rel=prev, </n>; rel=next"), Some("/n"));
        assert_eq!(next_in("</p>; rel=\"prev\""), None);
        assert_eq!(next_in("next"), None);
    }

    #[test]
    fn a_large_file_has_the_digest_of_its_bytes() {
        let oid = "0f".repeat(32);
        let text = format!(
            r#"[{{"type":"file","path":"a","size":9,"oid":"{}","lfs":{{"oid":"{oid}","size":7,"pointerSize":9}},"xetHash":"x"}},
                {{"type":"file","path":"b","size":3,"oid":"{}"}}]"#,
            "1".repeat(40),
            "2".repeat(40)
        );
        let entries: Vec<Entry> = serde_json::from_str(&text).unwrap();
        let files: Vec<File> = entries.into_iter().map(File::from).collect();
        assert_eq!(
            (files[0].size, &files[0].digest),
            (7, &Some(Digest::Sha256(oid)))
        );
        assert_eq!(
            (files[1].size, &files[1].digest),
            (3, &Some(Digest::Git("2".repeat(40))))
        );
    }

    #[test]
    fn a_digest_is_what_it_is_however_it_is_spelt() {
        let file = |oid: &str, lfs: Option<&str>| {
            let lfs = lfs.map(|oid| Lfs {
                oid: oid.to_owned(),
                size: 1,
            });
            File::from(Entry {
                r#type: "file".to_owned(),
                path: "some/file".to_owned(),
                size: 1,
                oid: Some(oid.to_owned()),
                lfs,
            })
        };
        let (git, sha) = ("ab".repeat(20), "cd".repeat(32));
        let (prefixed, upper) = (format!("sha256:{sha}"), sha.to_uppercase());
        for spelt in [&sha, &prefixed, &upper] {
            let digest = file(&git, Some(spelt)).checked().unwrap();
            assert_eq!(digest, Digest::Sha256(sha.clone()));
        }
        let digest = file(&git.to_uppercase(), None).checked().unwrap();
        assert_eq!(digest, Digest::Git(git.clone()));
        for (oid, lfs) in [
            (git.as_str(), Some("short")),
            (git.as_str(), Some("")),
            ("", None),
            (&sha, None),
        ] {
            let why = file(oid, lfs).checked().unwrap_err();
            assert!(why.why().contains("some/file"), "{why:?}");
        }
    }

    #[test]
    fn names_that_cannot_be_on_one_disk_are_refused() {
        let files = |names: &[&str]| -> Vec<File> {
            let file = |name: &&str| File {
                path: (*name).to_owned(),
                size: 0,
                digest: None,
            };
            names.iter().map(file).collect()
        };
        assert!(can_stand_together(&files(&["a", "b/a", "b/c"])).is_ok());
        assert!(can_stand_together(&files(&["a", "a"])).is_err());
        assert!(can_stand_together(&files(&["a/b/c", "a"])).is_err());
    }
}
