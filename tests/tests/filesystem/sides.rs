//! The two disks: the modelled one, and the real one below a scratch directory, each with the numbers under which its
//! owners have files open.

use std::cell::Cell;
use std::collections::BTreeMap;
use std::convert::Infallible;
use std::fs::{self, File, OpenOptions};
use std::io::Write as _;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::time::Duration;

use outlive::DiskError;
use outlive::disk::{FsDisk, LockFile};
use outlive_model::effect::{Effect, Handle, Reply, path};
use outlive_model::errand::Memory;
use outlive_model::filesystem::{Data, Filesystem, Owner};
use outlive_model::replay::{Asking, At, Host};
use outlive_model::stage::{News, Stage};
use state_machine::control::{Control, Request};
use state_machine::disk::{Disk, Name, Open, Place};
use state_machine::record::Line;

use crate::answer::{Answer, Side};
use crate::script::Opened;

/// How an effect happens on the modelled file system; a liar does it wrongly, to be found out.
pub(crate) type Apply = fn(&mut Filesystem, Owner, &Effect) -> Reply;

/// The modelled disk.
pub(crate) struct Model {
    pub(crate) files: Filesystem,
    apply: Apply,
    /// Whether inodes are numbered anew after each effect, as the checker does.
    renumbers: bool,
}

/// A modelled disk for one owner.
struct Asked<'a> {
    model: &'a mut Model,
    owner: Owner,
}

impl Model {
    pub(crate) fn new(apply: Apply, renumbers: bool) -> Model {
        Model {
            files: Filesystem::default(),
            apply,
            renumbers,
        }
    }

    fn asking(&mut self, owner: Owner) -> Asking<Asked<'_>> {
        Asking {
            host: Asked { model: self, owner },
            syncs: true,
        }
    }

    pub(crate) fn settle(&mut self) {
        if self.renumbers {
            self.files.renumber();
        }
    }
}

impl Host for Asked<'_> {
    type Fault = Infallible;

    fn answer(&mut self, _: At, effect: impl FnOnce() -> Effect) -> Result<Reply, Infallible> {
        let reply = (self.model.apply)(&mut self.model.files, self.owner, &effect());
        self.model.settle();
        Ok(reply)
    }

    fn failure(&self) -> Infallible {
        unreachable!("the model of the files never fails by itself")
    }

    fn can_go_on(&self, fault: &Infallible) -> bool {
        match *fault {}
    }

    fn hear(&mut self, _: News) {}

    fn memory(&self) -> Option<Memory<Handle>> {
        None
    }
}

impl Side for Model {
    type Handle = Handle;
    type Fault = Infallible;

    fn disk(&mut self, owner: Owner) -> impl Disk<Handle = Handle, Fault = Infallible> {
        self.asking(owner)
    }

    fn keep(&mut self, _: Owner, handle: Handle) -> Handle {
        handle
    }

    fn take(&mut self, _: Owner, number: Handle) -> Handle {
        number
    }

    fn put_back(&mut self, _: Owner, _: Handle, _: Handle) {}

    fn hand_open(&mut self, owner: Owner, place: &Place) -> Open<Handle> {
        let mut asking = self.asking(owner);
        let Ok(opened) = Stage::hand_open(&mut asking, place);
        opened.map_or(Open::Absent, Open::Opened)
    }

    fn hand_write(&mut self, owner: Owner, number: Handle, request: Request) {
        let Ok(()) = Stage::hand_write(&mut self.asking(owner), &number, request);
    }

    fn fault(fault: Infallible) -> Answer {
        match fault {}
    }
}

/// An open file of the real disk.
struct Held {
    file: LockFile,
    state: Rc<Cell<Way>>,
}

/// How an open file is used; those who share its description share this.
#[derive(Clone, Copy, Default)]
struct Way {
    /// Whether a lock was taken through it.
    locked: bool,
    /// Whether a shell opened it that has not written yet.
    by_hand: bool,
}

/// The real disk. All owners live in this process: a lock belongs to the description (F1), so they exclude each other
/// all the same, and who drops all its files has died.
pub(crate) struct Real {
    root: PathBuf,
    disk: FsDisk,
    open: BTreeMap<(Owner, Handle), Held>,
    /// How long a lock is tried for that should be free.
    pub(crate) patience: Duration,
    /// What the file that is in use right now shares with its doubles.
    taken: Option<Rc<Cell<Way>>>,
}

/// Something that stands: its path below the root, its inode, and its bytes where it is a file.
pub(crate) type Entry = (Vec<u8>, u64, Option<Vec<u8>>);

const STANDING: [&str; 7] = [
    "jobs", "staging", "trash", "keys", "spares", "pools", "sessions",
];

impl Real {
    /// A real disk in an empty directory.
    pub(crate) fn new(root: &Path) -> Real {
        for dir in STANDING {
            fs::create_dir(root.join(dir)).expect("the scratch directory is ours");
        }
        Real {
            root: root.to_owned(),
            disk: FsDisk::new(root.to_owned()),
            open: BTreeMap::new(),
            patience: Duration::from_secs(2),
            taken: None,
        }
    }

    /// Who has what open.
    pub(crate) fn opened(&self) -> Vec<Opened> {
        self.open
            .iter()
            .map(|(&(owner, handle), held)| Opened {
                owner,
                handle,
                locked: held.state.get().locked,
                by_hand: held.state.get().by_hand,
            })
            .collect()
    }

    /// Whether an owner has something open under a number, and whether a lock was taken through it.
    pub(crate) fn lock_of(&self, owner: Owner, handle: Handle) -> Option<bool> {
        self.open
            .get(&(owner, handle))
            .map(|held| held.state.get().locked)
    }

    /// Whether an owner has a file open as a shell that has not written yet.
    pub(crate) fn is_by_hand(&self, owner: Owner, handle: Handle) -> bool {
        let held = self.open.get(&(owner, handle));
        held.is_some_and(|held| held.state.get().by_hand)
    }

    /// Whether an owner has anything open.
    pub(crate) fn has_open(&self, owner: Owner) -> bool {
        self.open.keys().any(|&(who, _)| who == owner)
    }

    pub(crate) fn note_lock(&mut self, owner: Owner, handle: Handle) {
        if let Some(held) = self.open.get(&(owner, handle)) {
            held.state.set(Way {
                locked: true,
                ..held.state.get()
            });
        }
    }

    /// The file that was used last was given up with its lock: its doubles have none either.
    pub(crate) fn note_release(&mut self) {
        if let Some(state) = self.taken.take() {
            state.set(Way {
                locked: false,
                ..state.get()
            });
        }
    }

    /// Share an open file with another owner: the description stays one.
    pub(crate) fn inherit(&mut self, owner: Owner, handle: Handle, with: Owner) {
        let held = &self.open[&(owner, handle)];
        let doubled: OwnedFd = held
            .file
            .as_fd()
            .try_clone_to_owned()
            .expect("there are descriptors left");
        let shared = Held {
            file: LockFile::from(doubled),
            state: Rc::clone(&held.state),
        };
        self.open.insert((with, 0), shared);
    }

    /// An owner has died.
    pub(crate) fn die(&mut self, owner: Owner) {
        self.open.retain(|&(who, _), _| who != owner);
    }

    /// Do the first half of a write, a fill or an append, as a process that is killed in it does.
    pub(crate) fn half(&mut self, effect: &Effect) {
        let mut options = OpenOptions::new();
        options.mode(0o600);
        let (place, bytes) = match effect {
            // Killed between the opening and the first byte.
            Effect::Write(place, _) => {
                options.create(true).write(true).truncate(true);
                (place.clone(), Vec::new())
            }
            Effect::Fill(place, data) => {
                options.write(true);
                let bytes = encoded(data);
                (place.clone(), bytes[..bytes.len() / 2].to_vec())
            }
            Effect::Append(dir, lines, mend) => {
                options.create(true).append(true);
                (dir.at(Name::Events), half_of(lines, *mend))
            }
            other => unreachable!("{other} has no halves"),
        };
        // Where it cannot be opened, nothing happens, as on the real disk.
        if let Ok(mut file) = options.open(self.root.join(path(&place))) {
            file.write_all(&bytes)
                .expect("the scratch directory has room");
        }
    }

    /// Everything that stands.
    pub(crate) fn walk(&self) -> Vec<Entry> {
        let mut found = Vec::new();
        for dir in STANDING {
            self.walk_from(dir.as_bytes(), &self.root.join(dir), &mut found);
        }
        // What is in none of them.
        let root = fs::metadata(&self.root).expect("it stands");
        found.push((b".".to_vec(), root.ino(), None));
        for entry in fs::read_dir(&self.root).expect("it is a directory") {
            let name = entry.expect("it can be read").file_name();
            if !STANDING.iter().any(|dir| *dir == name) {
                let path = [b"./", name.as_bytes()].concat();
                self.walk_from(&path, &self.root.join(&name), &mut found);
            }
        }
        found
    }

    fn walk_from(&self, name: &[u8], at: &Path, found: &mut Vec<Entry>) {
        use std::io::Read as _;
        let mut file = File::open(at).expect("it stands");
        let stat = file.metadata().expect("it is open");
        if !stat.is_dir() {
            let mut bytes = Vec::new();
            file.read_to_end(&mut bytes).expect("it is a file");
            found.push((name.to_vec(), stat.ino(), Some(bytes)));
            return;
        }
        found.push((name.to_vec(), stat.ino(), None));
        for entry in fs::read_dir(at).expect("it is a directory") {
            let entry = entry.expect("it can be read").file_name();
            let path = [name, b"/", entry.as_bytes()].concat();
            self.walk_from(&path, &at.join(&entry), found);
        }
    }

    /// Close everything, and remove what a walk has found.
    pub(crate) fn clear(&mut self, found: &[Entry]) {
        self.open.clear();
        for (path, _, bytes) in found.iter().rev() {
            if !path.contains(&b'/') {
                continue;
            }
            let at = self.root.join(std::ffi::OsStr::from_bytes(path));
            let removed = match bytes {
                Some(_) => fs::remove_file(at),
                None => fs::remove_dir(at),
            };
            removed.expect("it was found a moment ago");
        }
    }
}

/// The bytes of a record.
fn encoded(data: &Data) -> Vec<u8> {
    match data {
        Data::Descriptor(descriptor) => descriptor.encode(),
        Data::Status(status) => status.encode(),
        Data::Request(request) => Control::encode(*request),
        Data::Pointer(pointer) => pointer.encode(),
        Data::Pool(pool) => pool.encode(),
        Data::Slot(slot) => slot.encode(),
        Data::Session(session) => session.encode(),
        other => unreachable!("nobody dies while filling in {other}"),
    }
}

/// The bytes of an append up to the middle of its last line.
fn half_of(lines: &[Line], mend: bool) -> Vec<u8> {
    let mut bytes = if mend { b"\n".to_vec() } else { Vec::new() };
    let (last, whole) = lines.split_last().expect("nobody appends nothing");
    for line in whole {
        bytes.extend(line.encode());
    }
    let last = last.encode();
    bytes.extend(&last[..last.len() / 2]);
    bytes
}

impl Side for Real {
    type Handle = LockFile;
    type Fault = DiskError;

    fn disk(&mut self, _: Owner) -> impl Disk<Handle = LockFile, Fault = DiskError> {
        self.disk.clone()
    }

    /// Under the lowest number that is free, as the kernel does for each process.
    fn keep(&mut self, owner: Owner, file: LockFile) -> Handle {
        let number = (0..).find(|&number| !self.open.contains_key(&(owner, number)));
        let number = number.expect("few files are open");
        let state = Rc::default();
        self.open.insert((owner, number), Held { file, state });
        number
    }

    fn take(&mut self, owner: Owner, number: Handle) -> LockFile {
        let held = self.open.remove(&(owner, number));
        let held = held.expect("a step uses only what is open");
        self.taken = Some(held.state);
        held.file
    }

    fn put_back(&mut self, owner: Owner, number: Handle, file: LockFile) {
        let state = self.taken.take().unwrap_or_default();
        self.open.insert((owner, number), Held { file, state });
    }

    fn hand_open(&mut self, owner: Owner, place: &Place) -> Open<Handle> {
        let mut options = OpenOptions::new();
        options.create(true).write(true).truncate(true).mode(0o600);
        let Ok(file) = options.open(self.root.join(path(place))) else {
            return Open::Absent;
        };
        let number = self.keep(owner, LockFile::from(OwnedFd::from(file)));
        self.open[&(owner, number)].state.set(Way {
            by_hand: true,
            ..Way::default()
        });
        Open::Opened(number)
    }

    fn hand_write(&mut self, owner: Owner, number: Handle, request: Request) {
        let held = &self.open[&(owner, number)];
        let fd = held.file.as_fd().try_clone_to_owned();
        let mut file = File::from(fd.expect("there are descriptors left"));
        let word = format!("{request}\n");
        file.write_all(word.as_bytes())
            .expect("the scratch directory has room");
        held.state.set(Way {
            by_hand: false,
            ..held.state.get()
        });
    }

    fn fault(fault: DiskError) -> Answer {
        let number = fault.source.raw_os_error().unwrap_or(0);
        Answer::Fault(fault.operation, number)
    }
}
