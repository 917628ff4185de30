//! The root of a store: where it is, whether it may be used, and its first directories. Nothing here knows of jobs.

use std::os::unix::fs::{DirBuilderExt, MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

use rustix::fs::statfs;
use state_machine::record::Damaged;

use crate::disk::read_small;
use crate::error::{DiskError, Error, Result};

/// The line in `format`.
const FORMAT: &str = "outlive 1";

/// How much of `format` is read, in bytes.
const FORMAT_LIMIT: u64 = 4096;

/// The directories of a store. Those of older versions have fewer; they are made when they are first needed.
pub(crate) const DIRECTORIES: [&str; 8] = [
    "artifacts",
    "jobs",
    "keys",
    "pools",
    "sessions",
    "spares",
    "staging",
    "trash",
];

/// File systems whose flock does not keep processes apart, or not on every machine that sees them, or that answer
/// for a file system that nobody here can ask (F26).
const UNTRUSTED: [(u32, &str); 12] = [
    (0x0000_6969, "NFS"),
    (0xff53_4d42, "CIFS"),
    (0xfe53_4d42, "SMB"),
    (0x0000_517b, "SMB"),
    (0x5346_414f, "AFS"),
    (0x7375_7245, "Coda"),
    (0x0bd0_0bd0, "Lustre"),
    (0x4750_4653, "GPFS"),
    (0x00c3_6400, "Ceph"),
    (0x0102_1997, "9p"),
    (0x6573_5546, "FUSE"),
    (0x7461_636f, "OCFS2"),
];

/// Where the store is when nobody says: `$OUTLIVE_ROOT`, else `$XDG_STATE_HOME/outlive`, else
/// `~/.local/state/outlive`.
pub(super) fn default_root() -> Result<PathBuf> {
    let set = |name: &str| {
        std::env::var_os(name)
            .filter(|value| !value.is_empty())
            .map(PathBuf::from)
    };
    set("OUTLIVE_ROOT")
        .or_else(|| {
            // The XDG specification says that a relative path there counts as unset.
            set("XDG_STATE_HOME")
                .filter(|path| path.is_absolute())
                .map(|path| path.join("outlive"))
        })
        .or_else(|| set("HOME").map(|home| home.join(".local/state/outlive")))
        .ok_or(Error::NoRoot)
}

/// What is done about a store that is not there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Absent {
    /// It is made.
    Make,
    /// It is an error.
    Refuse,
}

/// See that `root` may be used as a store, and make it one if that is wanted. Returns its absolute path.
pub(super) fn prepare(root: &Path, absent: Absent) -> Result<PathBuf> {
    let root = std::path::absolute(root).map_err(|error| DiskError::new("find", root, error))?;
    let metadata = match std::fs::metadata(&root) {
        Ok(metadata) => metadata,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound && absent == Absent::Make => {
            make_directory(&root, true)?;
            std::fs::metadata(&root).map_err(|error| DiskError::new("stat", &root, error))?
        }
        Err(error) => return Err(DiskError::new("stat", &root, error).into()),
    };
    check_owner(&root, &metadata)?;
    check_file_system(&root)?;
    check_format(&root, absent)?;
    close_to_others(&root, &metadata)?;
    // One store has one spelling: what a dead worker left is found by the path that its processes were given (R11).
    std::fs::canonicalize(&root).map_err(|error| DiskError::new("find", &root, error).into())
}

/// A store that others could only look into is ours to close. Only once it is known to be a store: nothing is changed
/// about a directory that is refused.
fn close_to_others(root: &Path, metadata: &std::fs::Metadata) -> Result<()> {
    if metadata.mode() & 0o077 == 0 {
        return Ok(());
    }
    std::fs::set_permissions(root, std::fs::Permissions::from_mode(0o700))
        .map_err(|error| DiskError::new("chmod", root, error).into())
}

fn refused(root: &Path, why: impl Into<String>) -> Error {
    Error::Refused {
        root: root.to_owned(),
        why: why.into(),
    }
}

fn check_owner(root: &Path, metadata: &std::fs::Metadata) -> Result<()> {
    if !metadata.is_dir() {
        return Err(refused(root, "it is not a directory"));
    }
    let user = rustix::process::geteuid().as_raw();
    if metadata.uid() != user {
        return Err(refused(
            root,
            format!(
                "it belongs to user {}, and this is user {user}; set OUTLIVE_ROOT to a directory of your own",
                metadata.uid()
            ),
        ));
    }
    let mode = metadata.mode() & 0o7777;
    if mode & 0o022 != 0 {
        return Err(refused(
            root,
            format!(
                "others may write to it (mode {mode:04o}); see what is in it, then chmod 0700 it"
            ),
        ));
    }
    Ok(())
}

fn check_file_system(root: &Path) -> Result<()> {
    let info =
        statfs(root).map_err(|error| DiskError::new("stat the file system of", root, error))?;
    match untrusted(info.f_type as u32) {
        None => Ok(()),
        Some(name) => Err(refused(
            root,
            format!(
                "it lies on {name}, where file locks cannot be trusted; set OUTLIVE_ROOT to a local file system"
            ),
        )),
    }
}

/// The name of a file system whose flock cannot be trusted, by the magic number of statfs(2).
pub(crate) fn untrusted(magic: u32) -> Option<&'static str> {
    UNTRUSTED
        .iter()
        .find(|(known, _)| *known == magic)
        .map(|(_, name)| *name)
}

/// See that the store has the format that this version writes; a store without one is new.
fn check_format(root: &Path, absent: Absent) -> Result<()> {
    let file = root.join("format");
    let bytes = match read_small(&file, FORMAT_LIMIT)? {
        Some(Ok(bytes)) => bytes,
        Some(Err(Damaged(why))) => {
            return Err(refused(root, format!("its 'format' cannot be read: {why}")));
        }
        None if absent == Absent::Make => return initialize(root, &file),
        None => return Err(refused(root, "it holds no 'format', so it is not a store")),
    };
    let format = String::from_utf8_lossy(&bytes);
    let format = format.trim_end();
    if format == FORMAT {
        return Ok(());
    }
    // R21: what another version wrote is reported and left.
    Err(refused(
        root,
        format!(
            "its format is '{}' and this version knows '{FORMAT}'; use the version that made it",
            format.escape_debug()
        ),
    ))
}

/// Make the directories of a new store, and the format last: a store that has one is whole. Several may do it at
/// once.
fn initialize(root: &Path, file: &Path) -> Result<()> {
    let foreign = std::fs::read_dir(root)
        .map_err(|error| DiskError::new("list", root, error))?
        .filter_map(Result::ok)
        .map(|entry| entry.file_name())
        .find(|name| {
            let ours = |known: &&str| name == *known;
            !DIRECTORIES.iter().any(ours)
                && !is_new_format(name)
                && name != "config.toml"
                && name != "lost+found"
        });
    if let Some(name) = foreign {
        return Err(refused(
            root,
            format!(
                "it holds '{}' and no 'format', so it is not a store; name an empty directory",
                name.to_string_lossy().escape_debug()
            ),
        ));
    }
    for directory in DIRECTORIES {
        make_directory(&root.join(directory), false)?;
    }
    let new = root.join(format!("format.{}", super::ticket().as_str()));
    let written = std::fs::write(&new, format!("{FORMAT}\n"))
        .and_then(|()| std::fs::set_permissions(&new, std::fs::Permissions::from_mode(0o600)))
        .and_then(|()| std::fs::File::open(&new)?.sync_all())
        .and_then(|()| std::fs::rename(&new, file))
        .and_then(|()| std::fs::File::open(root)?.sync_all());
    written.map_err(|error| DiskError::new("write", file, error).into())
}

/// Whether this is the format of a store that somebody else is making just now: in place, or under its ticket.
fn is_new_format(name: &std::ffi::OsStr) -> bool {
    let ticket = name.to_str().and_then(|name| name.strip_prefix("format."));
    let is_ticket = |ticket: &str| {
        ticket
            .bytes()
            .all(|byte| byte.is_ascii_digit() || byte == b'-')
    };
    name == "format" || ticket.is_some_and(is_ticket)
}

fn make_directory(path: &Path, parents: bool) -> Result<()> {
    match std::fs::DirBuilder::new()
        .recursive(parents)
        .mode(0o700)
        .create(path)
    {
        Ok(()) => {
            // Whatever the mask of this process took away.
            std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o700))
                .map_err(|error| DiskError::new("chmod", path, error).into())
        }
        Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => Ok(()),
        Err(error) => Err(DiskError::new("make the directory", path, error).into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mode(path: &Path) -> u32 {
        std::fs::metadata(path).unwrap().mode() & 0o7777
    }

    #[test]
    fn a_new_root_becomes_a_store_that_only_its_owner_can_enter() {
        let parent = tempfile::tempdir().unwrap();
        let root = prepare(&parent.path().join("a/b"), Absent::Make).unwrap();
        assert_eq!(mode(&root), 0o700);
        for directory in DIRECTORIES {
            assert_eq!(mode(&root.join(directory)), 0o700);
        }
        assert_eq!(mode(&root.join("format")), 0o600);
        prepare(&root, Absent::Refuse).unwrap();
    }

    #[test]
    fn what_is_not_a_store_of_ours_is_refused_and_left() {
        let root = tempfile::tempdir().unwrap();
        std::fs::write(root.path().join("thesis.tex"), "x").unwrap();
        std::fs::set_permissions(root.path(), std::fs::Permissions::from_mode(0o755)).unwrap();
        let error = prepare(root.path(), Absent::Make).unwrap_err().to_string();
        assert!(error.contains("thesis.tex"), "{error}");
        assert!(!root.path().join("jobs").exists());
        assert_eq!(mode(root.path()), 0o755);

        let root = tempfile::tempdir().unwrap();
        std::fs::write(root.path().join("format"), "outlive 2\n").unwrap();
        let error = prepare(root.path(), Absent::Make).unwrap_err().to_string();
        assert!(error.contains("'outlive 2'"), "{error}");
        assert!(!root.path().join("jobs").exists());

        let root = tempfile::tempdir().unwrap();
        std::fs::set_permissions(root.path(), std::fs::Permissions::from_mode(0o777)).unwrap();
        let error = prepare(root.path(), Absent::Make).unwrap_err().to_string();
        assert!(error.contains("others may write"), "{error}");
    }

    #[test]
    fn network_file_systems_are_known_by_name() {
        assert_eq!(untrusted(0x6969), Some("NFS"));
        assert_eq!(untrusted(0xef53), None);
    }
}
