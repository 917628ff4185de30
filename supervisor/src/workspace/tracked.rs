//! What `git ls-files -s -v -z` says: every tracked path, with what `git status` does not tell of it.

use std::path::{Path, PathBuf};

use super::Trouble;
use super::git::{Git, path_of};

/// A tracked path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Tracked {
    pub(super) path: PathBuf,
    pub(super) is_submodule: bool,
    /// Whether git was told to take it for unchanged without looking.
    pub(super) assumed_unchanged: bool,
    /// Whether git was told that it need not be there, as with a sparse checkout.
    pub(super) skipped: bool,
}

impl Tracked {
    /// Whether git looks at it as at any other.
    pub(super) fn is_plain(&self) -> bool {
        !self.assumed_unchanged && !self.skipped
    }

    /// `H 100644 <hash> 0<tab>path`; a tag in lower case is that of one assumed to be unchanged.
    fn parse(line: &[u8]) -> Option<Tracked> {
        let tab = line.iter().position(|&byte| byte == b'\t')?;
        let (tag, rest) = line.get(..tab)?.split_first()?;
        Some(Tracked {
            path: path_of(line.get(tab + 1..)?),
            is_submodule: rest.starts_with(b" 160000 "),
            assumed_unchanged: tag.is_ascii_lowercase(),
            skipped: tag.eq_ignore_ascii_case(&b'S'),
        })
    }
}

/// Everything tracked in the worktree at `dir`.
pub(super) fn tracked(git: &mut Git<'_, '_>, dir: &Path) -> Result<Vec<Tracked>, Trouble> {
    let text = git.read(dir, &["ls-files", "-s", "-v", "-z"])?;
    Ok(text
        .split(|&byte| byte == 0)
        .filter_map(Tracked::parse)
        .collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tags_and_modes_are_told_apart() {
        let parse = |line: &str| Tracked::parse(line.as_bytes());
        let plain = Tracked {
            path: "a b\tc".into(),
            is_submodule: false,
            assumed_unchanged: false,
            skipped: false,
        };
        assert_eq!(parse("H 100644 1234 0\ta b\tc"), Some(plain.clone()));
        assert!(plain.is_plain());
        assert!(parse("h 100755 1234 0\tx").unwrap().assumed_unchanged);
        assert!(parse("S 100644 1234 0\tx").unwrap().skipped);
        let both = parse("s 160000 1234 0\tx").unwrap();
        assert!(both.skipped && both.assumed_unchanged && both.is_submodule);
        assert_eq!(parse("H 100644 1234 0"), None);
        assert_eq!(parse(""), None);
    }
}
