//! Where a destination is. Links and `..` on the way to it are followed once, when the job is made: two ways to one place are
//! one place from then on, and a link that changes later changes nothing of a transfer that is under way.

use std::path::{Path, PathBuf};

use state_machine::pull::path::below;

/// Where an absolute path leads. Of a file it is the directory that is looked up: a link of its own name is replaced, as any file
/// would be.
pub(crate) fn of(path: &Path, is_file: bool) -> PathBuf {
    match (path.parent(), path.file_name()) {
        (Some(above), Some(name)) if is_file => resolved(above).join(name),
        _ => resolved(path),
    }
}

/// What is there of a path as the system has it, and the rest as it is written.
fn resolved(path: &Path) -> PathBuf {
    for above in path.ancestors() {
        if let (Ok(real), Ok(rest)) = (above.canonicalize(), path.strip_prefix(above)) {
            return below(real, rest);
        }
    }
    path.to_owned()
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;

    #[test]
    fn every_way_to_a_place_is_one() {
        let dir = tempfile::tempdir().unwrap();
        let real = dir.path().canonicalize().unwrap();
        fs::create_dir_all(real.join("a/b")).unwrap();
        symlink("a/b", real.join("link")).unwrap();
        let of = |path: &str, is_file| super::of(&real.join(path), is_file);
        for same in [
            "a/b/new",
            "link/new",
            "a/../link/./new",
            "link/new/",
            "gone/../a/b/new",
        ] {
            assert_eq!(of(same, true), real.join("a/b/new"), "{same}");
            assert_eq!(of(same, false), real.join("a/b/new"), "{same}");
        }
        assert_eq!(of("link", false), real.join("a/b"));
        assert_eq!(of("link", true), real.join("link"));
        // It is not where the text says: a link leads on from where it is.
        assert_eq!(of("link/../x", false), real.join("a/x"));
    }
}
