//! Names of files that a server gave. They become paths below the destination, so whatever could lead out of it is refused
//! before anything is written, and never mended: a name that was changed would be a file that nobody asked for.

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
