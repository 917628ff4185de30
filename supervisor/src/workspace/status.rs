//! What `git status --porcelain=v2 -z` says, whatever the configuration hides: untracked files one by one, and submodules too.

use std::path::PathBuf;

use super::git::path_of;

/// The arguments of the call.
pub(super) const ARGUMENTS: [&str; 7] = [
    "status",
    "--porcelain=v2",
    "-z",
    "--branch",
    "--untracked-files=all",
    "--ignore-submodules=none",
    "--no-renames",
];

/// What git sees in a worktree.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Status {
    /// Whether HEAD is at no commit at all.
    pub(super) is_unborn: bool,
    pub(super) conflicted: Vec<PathBuf>,
    pub(super) staged: Vec<PathBuf>,
    pub(super) changed: Vec<PathBuf>,
    pub(super) untracked: Vec<PathBuf>,
    /// Submodules that are changed, in whatever way; they are among the changed or staged too.
    pub(super) submodules: Vec<PathBuf>,
}

impl Status {
    pub(super) fn parse(text: &[u8]) -> Status {
        let mut status = Status::default();
        for line in text.split(|&byte| byte == 0) {
            status.add(line);
        }
        status
    }

    fn add(&mut self, line: &[u8]) {
        // The path is the last field, and may have spaces in it.
        let field = |nth: usize, of: usize| line.splitn(of, |&byte| byte == b' ').nth(nth);
        let path = |of: usize| field(of - 1, of).map(path_of);
        match line.first() {
            Some(b'#') => self.is_unborn |= line == b"# branch.oid (initial)",
            Some(b'?') => self.untracked.extend(path(2)),
            Some(b'u') => self.conflicted.extend(path(11)),
            Some(b'1') => {
                let Some(path) = path(9) else { return };
                let code = field(1, 9).unwrap_or_default();
                if field(2, 9).is_some_and(|sub| sub.starts_with(b"S")) {
                    self.submodules.push(path.clone());
                }
                if code.first() != Some(&b'.') {
                    self.staged.push(path.clone());
                }
                if code.get(1) != Some(&b'.') {
                    self.changed.push(path);
                }
            }
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_of_line_is_understood() {
        let text = b"# branch.oid 1234\0# branch.head (detached)\0\
            1 M. N... 100644 100644 100644 a a staged\0\
            1 .M N... 100644 100644 100644 a a with space\0\
            1 AM N... 000000 100644 100644 a a both\nlines\0\
            1 .M S.MU 160000 160000 160000 a a module\0\
            u UU N... 100644 100644 100644 100644 a a a conflict\0\
            ? new file\0\
            ! ignored\0";
        let paths = |names: &[&str]| names.iter().map(PathBuf::from).collect::<Vec<_>>();
        let expected = Status {
            is_unborn: false,
            conflicted: paths(&["conflict"]),
            staged: paths(&["staged", "both\nlines"]),
            changed: paths(&["with space", "both\nlines", "module"]),
            untracked: paths(&["new file"]),
            submodules: paths(&["module"]),
        };
        assert_eq!(Status::parse(text), expected);
        assert!(Status::parse(b"# branch.oid (initial)\0").is_unborn);
        for torn in [&b""[..], b"1", b"1 M. x", b"u UU", b"?", b"x y\0\0"] {
            assert_eq!(Status::parse(torn), Status::default());
        }
    }
}
