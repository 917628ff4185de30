//! Names of files that a server gave. They become paths below the destination, so whatever could lead out of it is refused
//! before anything is written, and never mended: a name that was changed would be a file that nobody asked for.

use std::path::{Component, Path, PathBuf};

/// Why a name is no path below the destination.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the server names a file {name:?}, which {why}; nothing was written for it")]
pub struct BadPath {
    /// The name as it came.
    pub name: String,
    /// What is wrong with it.
    pub why: &'static str,
}

/// The longest name of a file that file systems take, in bytes.
const LONGEST: usize = 255;

/// The directory in which unfinished files stand: no file of a server may be put there.
pub const STAGING: &str = ".outlive-part";

/// The longest path that a system takes, in bytes.
const LONGEST_PATH: usize = 4095;

/// Whether a path is longer than a system takes one.
pub fn is_too_long(path: &Path) -> bool {
    path.as_os_str().len() > LONGEST_PATH
}

/// How much is kept of a name that leaves no room for an ending, in bytes.
const KEPT: usize = 200;

/// The name of the directory of unfinished files beside a file of this name. `digest` tells long names apart that begin alike.
pub fn staging_beside(name: &str, digest: &str) -> String {
    if name.len() + STAGING.len() <= LONGEST {
        return format!("{name}{STAGING}");
    }
    let end = (0..=KEPT).rev().find(|&at| name.is_char_boundary(at));
    let begin = &name[..end.unwrap_or(0)];
    let few: String = digest.chars().take(16).collect();
    format!("{begin}.{few}{STAGING}")
}

/// The parts of a relative path with `/` between them, all of them plain names.
pub fn parts(name: &str) -> Result<Vec<&str>, BadPath> {
    let bad = |why| BadPath {
        name: name.to_owned(),
        why,
    };
    if name.is_empty() {
        return Err(bad("is empty"));
    }
    if name.starts_with('/') {
        return Err(bad("is an absolute path"));
    }
    let parts: Vec<&str> = name.split('/').collect();
    for part in &parts {
        is_plain(part).map_err(bad)?;
    }
    if parts.first() == Some(&STAGING) {
        return Err(bad("is where unfinished files are kept"));
    }
    Ok(parts)
}

/// Whether this is the name of a file, and of nothing else, on whatever system it may be copied to.
fn is_plain(part: &str) -> Result<(), &'static str> {
    if part.is_empty() {
        return Err("has an empty part");
    }
    if part.len() > LONGEST {
        return Err("has a part that is longer than 255 bytes");
    }
    if part.contains('\\') {
        return Err("has a backslash");
    }
    if part.chars().any(char::is_control) {
        return Err("has a control character");
    }
    let bytes = part.as_bytes();
    if bytes.len() >= 2 && bytes[1] == b':' && bytes[0].is_ascii_alphabetic() {
        return Err("names a drive");
    }
    // Somebody on the way may decode what we would take as it is.
    if matches!(undotted(part).as_str(), "." | "..") {
        return Err("leads out of the destination");
    }
    Ok(())
}

/// The part with escaped dots as dots.
fn undotted(part: &str) -> String {
    part.replace("%2e", ".").replace("%2E", ".")
}

/// What a path leads to from a directory, where nothing of it is there yet: `..` is the directory above, as nothing can be a link.
pub fn below(mut dir: PathBuf, path: &Path) -> PathBuf {
    for part in path.components() {
        match part {
            Component::Normal(name) => dir.push(name),
            Component::ParentDir => {
                dir.pop();
            }
            Component::CurDir | Component::RootDir | Component::Prefix(_) => {}
        }
    }
    dir
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn what_leads_elsewhere_is_refused() {
        for name in [
            "",
            "/abs",
            "../x",
            "a/../../x",
            "a/..",
            "./a",
            "a//b",
            "a/",
            "C:\\x",
            "C:/x",
            "c:x",
            "a\\b",
            "a\0b",
            "a\nb",
            "%2e%2e/x",
            "a/%2E%2e/x",
            "%2e",
            ".outlive-part/x",
            &"x".repeat(256),
        ] {
            assert!(parts(name).is_err(), "{name:?}");
        }
    }

    #[test]
    fn every_name_leaves_room_beside_it() {
        let beside = |name: &str| staging_beside(name, &"0123456789abcdef".repeat(4));
        assert_eq!(beside("a.bin"), "a.bin.outlive-part");
        for (name, count) in [
            ("x", 242),
            ("x", 243),
            ("x", 255),
            ("ä", 127),
            ("\u{1f600}", 63),
        ] {
            let beside = beside(&name.repeat(count));
            assert!(
                beside.len() <= LONGEST && beside.ends_with(STAGING),
                "{beside}"
            );
        }
        let long = "x".repeat(250);
        assert_ne!(staging_beside(&long, "a"), staging_beside(&long, "b"));
    }

    #[test]
    fn what_is_not_there_is_read_as_it_is_written() {
        let of = |path: &str| below("/srv/x".into(), Path::new(path));
        assert_eq!(of("a/./b"), Path::new("/srv/x/a/b"));
        assert_eq!(of("a/../../b"), Path::new("/srv/b"));
        assert_eq!(of("../../../b"), Path::new("/b"));
        assert_eq!(of(""), Path::new("/srv/x"));
    }

    #[test]
    fn what_is_unusual_but_safe_is_taken() {
        for name in [
            "a",
            "a/b/c.bin",
            ".gitattributes",
            "with space [1]",
            "..a/b..",
            "...",
            "größe",
            "ab:c",
            "%2e%2e.txt",
            "sub/.outlive-part",
        ] {
            assert!(parts(name).is_ok(), "{name:?}");
        }
    }

    proptest! {
        #[test]
        fn whatever_is_taken_stays_below(name in "[a.%2eE/\\\\:]{0,12}") {
            if let Ok(parts) = parts(&name) {
                let path: std::path::PathBuf = parts.iter().collect();
                prop_assert!(path.is_relative());
                prop_assert!(path.components().all(|it| matches!(it, std::path::Component::Normal(_))));
                prop_assert_eq!(path.to_str(), Some(name.as_str()));
            }
        }
    }
}
