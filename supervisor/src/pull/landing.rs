//! The directories of the destination: making them, seeing that what is written there stays there, and putting what was fetched
//! into place.

use std::collections::BTreeSet;
use std::fs::{self, File, TryLockError};
use std::io::{self, Read};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::time::Duration;

use rustix::fs::OFlags;
use state_machine::disk::{Change, Content, Dir, Disk, Name, Place};
use state_machine::protocol::pull::{Keystone, Move, Registered, make_staging, register};
use state_machine::pull::answer::LONGEST;
use state_machine::pull::path::is_too_long;
use state_machine::pull::reference::is_hex;
use state_machine::pull::word::Cause;

use super::http::never;
use super::parts;
use super::plan::{Item, Plan, Written};
use super::transfer::Crew;
use super::voice::Voice;
use crate::disk::FsDisk;
use crate::error::DiskError;

/// The endings of the names in a staging directory.
const ENDINGS: [&str; 5] = [".part", ".json", ".json.new", ".synced", ".whole"];
/// How often a lock is looked at that another transfer has.
const LOOK: Duration = Duration::from_millis(200);

/// Make the directories that are written to before anything is registered, and see that there may be files at the final names.
pub(super) fn prepare(plan: &Plan) -> Result<(), Cause> {
    fs::create_dir_all(&plan.root).map_err(|error| of_path("make", &plan.root, error))?;
    for path in plan.paths() {
        can_be_there(&plan.root, path)?;
        stays_inside(&plan.root, path)?;
    }
    stage_there(plan)
}

/// See that there can be a file of this name: that is found out before any of it is fetched.
fn can_be_there(root: &Path, path: &[String]) -> Result<(), Cause> {
    let at = root.join(path.iter().collect::<PathBuf>());
    if is_too_long(&at) {
        return Err(never(format!(
            "{} is a longer path than the system takes",
            at.display()
        )));
    }
    Ok(())
}

/// Make the directory of unfinished files.
fn stage_there(plan: &Plan) -> Result<(), Cause> {
    let mut disk = FsDisk::new("/".into());
    let made = make_staging(&mut disk, &outside(&plan.staging));
    match made.map_err(|error| cause_of(&error))? {
        Change::Exists if !is_directory(&plan.staging) => Err(never(format!(
            "{} is no directory, and unfinished files belong there; move it away and pull again",
            plan.staging.display()
        ))),
        Change::Done | Change::Exists => Ok(()),
        Change::Absent | Change::NotEmpty | Change::NotDirectory => Err(never(format!(
            "{} cannot be made: the directory that it belongs in is gone",
            plan.staging.display()
        ))),
    }
}

fn is_directory(path: &Path) -> bool {
    fs::symlink_metadata(path).is_ok_and(|found| found.is_dir())
}

/// See that nothing on the way to a final name leads elsewhere, and that nothing stands there that no file should replace.
fn stays_inside(root: &Path, path: &[String]) -> Result<(), Cause> {
    let mut at = root.to_owned();
    for (nth, part) in path.iter().enumerate() {
        at.push(part);
        let is_last = nth + 1 == path.len();
        let found = match fs::symlink_metadata(&at) {
            Ok(found) => found,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
            Err(error) => return Err(of_path("look at", &at, error)),
        };
        let shown = at.display();
        if is_last && found.is_dir() {
            return Err(never(format!(
                "{shown} is a directory, and a file belongs there; move it away"
            )));
        }
        // A link is replaced, and what it leads to stays as it is.
        if is_last && !found.is_file() && !found.is_symlink() {
            return Err(never(format!(
                "{shown} is no file, and a file belongs there; move it away"
            )));
        }
        if !is_last && found.is_symlink() {
            return Err(never(format!(
                "{shown} is a link, and leads out of the destination; remove it"
            )));
        }
        if !is_last && !found.is_dir() {
            return Err(never(format!(
                "{shown} is a file, and a directory belongs there; move it away"
            )));
        }
    }
    Ok(())
}

/// Wait until nobody else fetches into the staging directory, where it is for one transfer alone: two of them would put one half
/// each into place. It is ours until what is returned is dropped, or this process ends.
pub(super) fn have_it_alone(plan: &Plan, voice: &Voice) -> Result<Option<File>, Cause> {
    if !plan.owns_staging {
        return Ok(None);
    }
    let line = format!(
        "{}: another transfer fetches to the same place",
        plan.place().display()
    );
    loop {
        // Whoever had it removes it when he is done.
        stage_there(plan)?;
        let dir = match File::open(&plan.staging) {
            Ok(dir) => dir,
            Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
            Err(error) => return Err(of_path("open", &plan.staging, error)),
        };
        match wait_for(&dir, voice, &line) {
            Ok(()) if stands(&dir, &plan.staging) => return Ok(Some(dir)),
            Ok(()) => {}
            // Where a file system knows no locks each file still has its own record, and is verified.
            Err(_) => return Ok(None),
        }
    }
}

/// Wait for a lock that another transfer has, and say so meanwhile. Whatever ends a fetcher ends this wait.
fn wait_for(dir: &File, voice: &Voice, line: &str) -> io::Result<()> {
    loop {
        match dir.try_lock() {
            Ok(()) => {
                voice.doing(None);
                return Ok(());
            }
            Err(TryLockError::WouldBlock) => {
                voice.doing(Some(line));
                std::thread::sleep(LOOK);
            }
            Err(TryLockError::Error(error)) => return Err(error),
        }
    }
}

/// Whether this open directory is the one that stands there (R1): a lock on one that was removed is a lock on nothing.
pub(super) fn stands(dir: &File, path: &Path) -> bool {
    match (dir.metadata(), fs::symlink_metadata(path)) {
        (Ok(open), Ok(there)) => (open.dev(), open.ino()) == (there.dev(), there.ino()),
        _ => false,
    }
}

/// See that what has the names of unfinished files is files: what is something else is nobody's, and would be waited for.
pub(super) fn see_that_they_are_files(plan: &Plan) -> Result<(), Cause> {
    for key in plan.keys() {
        for ending in ENDINGS {
            let path = plan.staging.join(format!("{key}{ending}"));
            if fs::symlink_metadata(&path).is_ok_and(|found| !found.is_file()) {
                return Err(never(format!(
                    "{} is no file, and an unfinished file belongs there; move it away and pull again",
                    path.display()
                )));
            }
        }
    }
    Ok(())
}

/// Remove what is left in a staging directory of what is not wanted any more: of another revision, of other patterns, from
/// elsewhere. What somebody fetches at this moment, for another store, is left to him.
pub(super) fn sweep(plan: &Plan, voice: &Voice) {
    if !plan.owns_staging {
        return;
    }
    let wanted: BTreeSet<&str> = plan.items.iter().map(|item| item.key.as_str()).collect();
    let entries = fs::read_dir(&plan.staging).into_iter().flatten().flatten();
    let found: BTreeSet<String> = entries
        .filter_map(|entry| {
            let name = entry.file_name().into_string().ok()?;
            let key = ENDINGS.iter().find_map(|it| name.strip_suffix(it))?;
            is_hex(key, 32).then(|| key.to_owned())
        })
        .collect();
    let staging = parts::staging_of(plan);
    for key in found.iter().filter(|key| !wanted.contains(key.as_str())) {
        let bytes = parts::remove(&staging, key).unwrap_or(0);
        if bytes > 0 {
            let why = "it belongs to something else than what is asked for now";
            voice.discarded(bytes, false, key, why);
        }
    }
}

/// See that there is room for what is missing, before any of it is fetched.
pub(super) fn see_that_it_fits(plan: &Plan) -> Result<(), Cause> {
    for item in &plan.items {
        if let Some(size) = item.size.filter(|size| *size > LONGEST) {
            return Err(never(format!(
                "{} is said to have {size} bytes, which no file can have",
                item.name()
            )));
        }
    }
    let missing: Option<Vec<u64>> = plan
        .items
        .iter()
        .map(|item| missing_of(plan, item))
        .collect();
    let Some(missing) = missing else {
        return Ok(());
    };
    // A server may say anything.
    let missing = missing
        .iter()
        .fold(0_u64, |sum, bytes| sum.saturating_add(*bytes));
    let free = match rustix::fs::statvfs(&plan.staging) {
        Ok(found) => found.f_bavail.saturating_mul(found.f_frsize),
        // Then it is found out by writing.
        Err(_) => return Ok(()),
    };
    if missing > free {
        return Err(no_room(&plan.staging, missing, free));
    }
    Ok(())
}

/// So many bytes are missing, and so many are free.
pub(super) fn no_room(at: &Path, missing: u64, free: u64) -> Cause {
    Cause::NoRoom {
        why: format!(
            "{}: {missing} bytes are missing and {free} are free; make room and resume",
            at.display()
        ),
    }
}

/// How many bytes of a file are not on the disk yet; `None` where nobody knows how long it is.
fn missing_of(plan: &Plan, item: &Item) -> Option<u64> {
    let size = item.size?;
    let found = fs::symlink_metadata(plan.root.join(item.path.iter().collect::<PathBuf>()));
    if found.is_ok_and(|found| found.is_file() && found.len() == size) {
        return Some(0);
    }
    let here = ["part", "whole"].map(|ending| {
        let found = fs::metadata(plan.staging.join(format!("{}.{ending}", item.key)));
        found.map_or(0, |found| found.blocks() * 512)
    });
    Some(size.saturating_sub(here.iter().sum()))
}

/// Put everything into place. For who has his turn.
pub(super) fn put_into_place(plan: &Plan, crew: &Crew) -> Result<(), Cause> {
    let mut dirs = BTreeSet::new();
    for path in plan.paths() {
        stays_inside(&plan.root, path)?;
        let dir = dir_of(&plan.root, path);
        fs::create_dir_all(&dir).map_err(|error| of_path("make", &dir, error))?;
        // Every directory up to the root, as each may be new.
        let up = dir.ancestors().take_while(|it| it.starts_with(&plan.root));
        dirs.extend(up.map(Path::to_owned));
    }
    dirs.extend(plan.root.parent().map(Path::to_owned));
    // Those within others sort after them.
    let dirs: Vec<Dir> = dirs.iter().rev().map(|dir| outside(dir)).collect();
    let mut disk = FsDisk::new("/".into());
    let mut moves: Vec<Move> = plan
        .items
        .iter()
        .map(|item| Move {
            whole: crew.site(item).whole(),
            to: place(&plan.root, &item.path),
        })
        .collect();
    for written in &plan.written {
        let whole = stage(&mut disk, plan, written).map_err(|error| cause_of(&error))?;
        give_mode(&disk.path(&whole), crew)?;
        let to = place(&plan.root, &written.path);
        moves.push(Move { whole, to });
    }
    let keystone = match &plan.keystone {
        Some(keystone) => Some(Keystone {
            to: place(&plan.root, &keystone.path),
            new: staged(plan, &keystone.key(), "json.new"),
            bytes: (keystone.make)(content_of(plan, &keystone.path)?.as_deref())?,
        }),
        None => None,
    };
    let registered = register(&mut disk, &moves, &dirs, keystone.as_ref());
    match registered.map_err(|error| cause_of(&error))? {
        Registered::Done => {}
        Registered::Missing(place) => {
            return Err(super::http::later(format!(
                "{} was taken away before it was put into place",
                disk.path(&place).display()
            )));
        }
        Registered::InTheWay(place) => {
            return Err(never(format!(
                "{} is in the way; move it away and pull again",
                disk.path(&place).display()
            )));
        }
    }
    if let Some(keystone) = &keystone {
        give_mode(&disk.path(&keystone.to), crew)?;
    }
    // Another transfer may have something in it.
    let _ = disk.rmdir(&outside(&plan.staging));
    Ok(())
}

/// Wait until nobody else registers there, where others may: what two of them write at once would be one of both at best. It is
/// over when what is returned is dropped, or this process ends. For who may still be stopped: others may have it for long.
pub(super) fn in_turn(plan: &Plan, voice: &Voice) -> Result<Option<File>, Cause> {
    if plan.owns_staging {
        return Ok(None);
    }
    let root = File::open(&plan.root).map_err(|error| of_path("open", &plan.root, error))?;
    let line = format!(
        "{}: somebody else has it locked; waiting to put what was fetched into place",
        plan.root.display()
    );
    wait_for(&root, voice, &line).map_err(|error| of_path("lock", &plan.root, error))?;
    // Whoever was there before us removes the staging directory when nothing is in it.
    stage_there(plan)?;
    Ok(Some(root))
}

/// Write a file that is not fetched to where one that was fetched would stand.
fn stage(disk: &mut FsDisk, plan: &Plan, written: &Written) -> Result<Place, DiskError> {
    let key = written.key();
    let (new, whole) = (staged(plan, &key, "json.new"), staged(plan, &key, "whole"));
    disk.write(&new, &Content::Raw(written.bytes.clone()))?;
    disk.sync(&new)?;
    disk.rename(&new, &whole)?;
    Ok(whole)
}

/// Until now it was its owner's alone.
fn give_mode(path: &Path, crew: &Crew) -> Result<(), Cause> {
    let mode = fs::Permissions::from_mode(crew.mode.as_raw_mode());
    fs::set_permissions(path, mode).map_err(|error| of_path("give a mode to", path, error))
}

fn staged(plan: &Plan, key: &str, ending: &str) -> Place {
    let name = format!("{key}.{ending}");
    outside(&plan.staging).at(Name::Other(name.into_bytes()))
}

/// What is in the file that is to be replaced, where there is one.
fn content_of(plan: &Plan, path: &[String]) -> Result<Option<Vec<u8>>, Cause> {
    let path = plan.root.join(path.iter().collect::<PathBuf>());
    let failed = |error| of_path("read", &path, error);
    // What is no file may have nothing to read for ever.
    let at_once = OFlags::NONBLOCK.bits().cast_signed();
    let opened = File::options().read(true).custom_flags(at_once).open(&path);
    let mut file = match opened {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(failed(error)),
    };
    if !file.metadata().map_err(failed)?.is_file() {
        return Err(never(format!(
            "{} is no file, and a file belongs there; move it away and pull again",
            path.display()
        )));
    }
    let mut bytes = Vec::new();
    file.read_to_end(&mut bytes).map_err(failed)?;
    Ok(Some(bytes))
}

impl Plan {
    /// Every final path, below the root.
    fn paths(&self) -> impl Iterator<Item = &[String]> {
        let items = self.items.iter().map(|item| item.path.as_slice());
        let written = self.written.iter().map(|written| written.path.as_slice());
        let keystone = self
            .keystone
            .iter()
            .map(|keystone| keystone.path.as_slice());
        items.chain(written).chain(keystone)
    }

    /// What the names of everything in the staging directory begin with.
    pub(super) fn keys(&self) -> impl Iterator<Item = String> {
        let items = self.items.iter().map(|item| item.key.clone());
        let written = self.written.iter().map(Written::key);
        items
            .chain(written)
            .chain(self.keystone.iter().map(|keystone| keystone.key()))
    }

    /// Where it goes, for people: the file, where it is one, else the directory.
    fn place(&self) -> PathBuf {
        match self.items.as_slice() {
            [one] if self.keystone.is_none() => {
                self.root.join(one.path.iter().collect::<PathBuf>())
            }
            _ => self.root.clone(),
        }
    }
}

fn dir_of(root: &Path, path: &[String]) -> PathBuf {
    let dirs = path.len().saturating_sub(1);
    root.join(path[..dirs].iter().collect::<PathBuf>())
}

fn place(root: &Path, path: &[String]) -> Place {
    let name = path.last().map_or(Vec::new(), |it| it.as_bytes().to_vec());
    outside(&dir_of(root, path)).at(Name::Other(name))
}

fn outside(dir: &Path) -> Dir {
    Dir::Outside(dir.as_os_str().as_bytes().to_vec())
}

/// What it means that the disk does not let us.
pub(super) fn cause_of(error: &DiskError) -> Cause {
    of_path_shown(error.to_string(), error.source.kind())
}

fn of_path(operation: &'static str, path: &Path, error: io::Error) -> Cause {
    cause_of(&DiskError::new(operation, path, error))
}

fn of_path_shown(why: String, kind: io::ErrorKind) -> Cause {
    match kind {
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => Cause::NoRoom {
            why: format!("{why}; make room and resume"),
        },
        _ => never(why),
    }
}
