//! Who works inside a directory: every process whose directory, root or program is in it, or that has a file in it open or
//! mapped. Only looks.
//!
//! What a process looks like from outside is true of a moment that has passed. And not everyone can be looked into: a process of
//! another user, or one that has closed itself to its own user, is not counted, and said to be unseen.

use std::ffi::OsString;
use std::fmt;
use std::fs::File;
use std::io::{self, Read};
use std::os::fd::OwnedFd;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};

use rustix::fs::{CWD, Mode, OFlags, fstat, openat, stat};
use rustix::process::Pid;

use super::proc::{self, Process};

/// Looks at all processes, as long as at each of them one was gone before it could be examined: it may have left a child that
/// was not in the list yet.
const LOOKS: u32 = 6;

/// The deepest directory that is climbed out of.
const DEEPEST: usize = 256;

/// What the kernel adds to the path of a file that was deleted.
const DELETED: &[u8] = b" (deleted)";

/// In which way a process is inside.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum How {
    /// Its working directory is.
    Cwd,
    /// Its root directory is.
    Root,
    /// The program that it runs is.
    Program,
    /// It has a file open that is.
    OpenFile,
    /// It has a file mapped into its memory that is.
    Mapped,
}

/// A process that works inside.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Inside {
    /// Its number, at the time it was seen.
    pub(crate) pid: Pid,
    /// When it started, in clock ticks since boot.
    pub(crate) start: u64,
    /// Its short name, chosen by itself.
    pub(crate) command: OsString,
    /// In which way it is inside; the first that was found, in the order of [`How`].
    pub(crate) how: How,
    /// By what.
    pub(crate) path: PathBuf,
    /// Whether it is a parent of this process, or a parent of one: the shell that somebody asks from, say.
    pub(crate) is_ancestor: bool,
}

/// As a message names it: `1234 (vim) has /slot/notes open`.
impl fmt::Display for Inside {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Inside {
            pid, command, path, ..
        } = self;
        write!(f, "{pid} ({}) ", command.display())?;
        let path = path.display();
        match self.how {
            How::Cwd => write!(f, "is in {path}"),
            How::Root => write!(f, "has its root in {path}"),
            How::Program => write!(f, "runs {path}"),
            How::OpenFile => write!(f, "has {path} open"),
            How::Mapped => write!(f, "has {path} mapped"),
        }
    }
}

/// Who is inside, as far as can be seen.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Census {
    /// Those that are.
    pub(crate) inside: Vec<Inside>,
    /// Short names of those that could not be looked into.
    pub(crate) unseen: Vec<OsString>,
}

/// Every living process but this one that works inside one of the directories, or has one of the files open. Parents of this
/// process count like any other.
pub(crate) fn census(places: &[&Path]) -> Census {
    let places: Vec<Place> = places.iter().map(|place| Place::of(place)).collect();
    let ancestors = ancestors();
    let namespace = mount_namespace(proc::own_pid());
    let mut census = Census::default();
    for _ in 0..LOOKS {
        let mut missed = false;
        census.unseen.clear();
        for pid in proc::all() {
            match examine(pid, &places, namespace.as_deref()) {
                Seen::Inside(mut one) => {
                    one.is_ancestor = ancestors.contains(&one.pid);
                    if !census.has(&one) {
                        census.inside.push(one);
                    }
                }
                Seen::Elsewhere => {}
                Seen::Nothing(name) => census.unseen.push(name),
                Seen::Gone => missed = true,
            }
        }
        if !missed {
            break;
        }
    }
    // Those that were seen in an earlier look may have ended since.
    census.inside.retain(Inside::is_still_there);
    census
}

impl Census {
    fn has(&self, one: &Inside) -> bool {
        self.inside
            .iter()
            .any(|known| known.pid == one.pid && known.start == one.start)
    }
}

impl Inside {
    fn is_still_there(&self) -> bool {
        Process::read(self.pid).is_some_and(|now| now.start == self.start && !now.is_dead())
    }
}

/// What was seen of a process.
enum Seen {
    Inside(Inside),
    Elsewhere,
    /// Nothing, as it is not ours to look into.
    Nothing(OsString),
    /// Nothing, as it was gone by then.
    Gone,
}

fn examine(pid: Pid, places: &[Place], namespace: Option<&Path>) -> Seen {
    if pid == proc::own_pid() {
        return Seen::Elsewhere;
    }
    let Some(process) = Process::read(pid) else {
        return Seen::Gone;
    };
    if process.kernel || process.is_dead() {
        return Seen::Elsewhere;
    }
    let found = match whereabouts(pid, places, namespace) {
        Ok(found) => found,
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
            return Seen::Nothing(process.comm);
        }
        // A dead one has no directory any more.
        Err(_) => return Seen::Gone,
    };
    match found {
        Some((how, path)) => Seen::Inside(Inside {
            pid,
            start: process.start,
            command: process.comm,
            how,
            path,
            is_ancestor: false,
        }),
        None => Seen::Elsewhere,
    }
}

/// By what a process is inside, if it is.
fn whereabouts(
    pid: Pid,
    places: &[Place],
    namespace: Option<&Path>,
) -> io::Result<Option<(How, PathBuf)>> {
    let of = |name: &str| PathBuf::from(format!("/proc/{pid}/{name}"));
    for (how, name) in [
        (How::Cwd, "cwd"),
        (How::Root, "root"),
        (How::Program, "exe"),
    ] {
        let path = match std::fs::read_link(of(name)) {
            Ok(path) => path,
            // The program of one that is just ending.
            Err(error) if error.kind() == io::ErrorKind::NotFound && how == How::Program => {
                continue;
            }
            Err(error) => return Err(error),
        };
        if places.iter().any(|place| place.holds(&path)) {
            return Ok(Some((how, path)));
        }
    }
    // From within a container a directory may have any name.
    if mount_namespace(pid).as_deref() != namespace {
        for (how, name) in [(How::Cwd, "cwd"), (How::Root, "root")] {
            if let Some(place) = places.iter().find(|place| place.is_above(&of(name))) {
                return Ok(Some((how, place.path.clone())));
            }
        }
    }
    if let Some(path) = open_file(&of("fd"), places) {
        return Ok(Some((How::OpenFile, path)));
    }
    Ok(mapped_file(&of("maps"), places).map(|path| (How::Mapped, path)))
}

fn open_file(descriptors: &Path, places: &[Place]) -> Option<PathBuf> {
    let entries = std::fs::read_dir(descriptors).ok()?;
    let targets = entries
        .flatten()
        .filter_map(|entry| std::fs::read_link(entry.path()).ok());
    targets
        .into_iter()
        .find(|path| places.iter().any(|place| place.holds(path)))
}

fn mapped_file(maps: &Path, places: &[Place]) -> Option<PathBuf> {
    let mut text = Vec::new();
    File::open(maps).ok()?.read_to_end(&mut text).ok()?;
    // Nothing before the path has a slash in it: `7f00-7f01 r-xp 00000000 08:01 1234   /slot/lib.so`
    let paths = text.split(|&byte| byte == b'\n').filter_map(|line| {
        let start = line.iter().position(|&byte| byte == b'/')?;
        line.get(start..)
    });
    let held = |path: &&[u8]| places.iter().any(|place| place.holds_mapped(path));
    paths
        .into_iter()
        .find(held)
        .map(|path| PathBuf::from(OsString::from_vec(path.to_vec())))
}

/// A directory or file, by what it is recognised.
struct Place {
    path: PathBuf,
    /// The path as `maps` writes it.
    in_maps: Vec<u8>,
    /// Device and inode, where it is there.
    identity: Option<(u64, u64)>,
}

impl Place {
    fn of(path: &Path) -> Place {
        let path = real(path);
        let bytes = path.as_os_str().as_bytes();
        let in_maps = bytes
            .iter()
            .flat_map(|&byte| match byte {
                b'\n' => b"\\012".to_vec(),
                other => vec![other],
            })
            .collect();
        Place {
            in_maps,
            identity: stat(&path).ok().map(|stat| (stat.st_dev, stat.st_ino)),
            path,
        }
    }

    fn holds(&self, path: &Path) -> bool {
        is_at_or_below(
            path.as_os_str().as_bytes(),
            self.path.as_os_str().as_bytes(),
        )
    }

    fn holds_mapped(&self, path: &[u8]) -> bool {
        is_at_or_below(path, &self.in_maps)
    }

    /// Whether the directory that this link leads to is this one or below it, under whatever name.
    fn is_above(&self, link: &Path) -> bool {
        let Some(identity) = self.identity else {
            return false;
        };
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let mut at: Option<OwnedFd> = openat(CWD, link, flags, Mode::empty()).ok();
        let mut before = None;
        for _ in 0..DEEPEST {
            let Some(fd) = &at else { return false };
            let Ok(found) = fstat(fd) else { return false };
            let here = (found.st_dev, found.st_ino);
            if here == identity {
                return true;
            }
            if before == Some(here) {
                return false;
            }
            before = Some(here);
            at = openat(fd, "..", flags, Mode::empty()).ok();
        }
        false
    }
}

/// Whether a path that the kernel tells is `place`, or below it.
fn is_at_or_below(path: &[u8], place: &[u8]) -> bool {
    match path.strip_prefix(place) {
        Some(rest) => rest.is_empty() || rest == DELETED || rest.starts_with(b"/"),
        None => false,
    }
}

/// The path without links, also of what is not there any more.
fn real(path: &Path) -> PathBuf {
    if let Ok(real) = path.canonicalize() {
        return real;
    }
    match (path.parent().map(Path::canonicalize), path.file_name()) {
        (Some(Ok(parent)), Some(name)) => parent.join(name),
        _ => path.to_owned(),
    }
}

fn mount_namespace(pid: Pid) -> Option<PathBuf> {
    std::fs::read_link(format!("/proc/{pid}/ns/mnt")).ok()
}

/// The parents of this process, nearest first.
fn ancestors() -> Vec<Pid> {
    let mut found = Vec::new();
    let mut at = proc::own_pid();
    while let Some(parent) = Process::read(at).and_then(|process| process.parent) {
        if found.contains(&parent) {
            break;
        }
        found.push(parent);
        at = parent;
    }
    found
}

#[cfg(test)]
mod tests;
