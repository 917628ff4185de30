//! A file system in memory for one test at a time: names, inodes, flocks, and a fault at the `k`th effect. It holds
//! bytes, so that every record goes through its real form. It knows nothing of jobs.

use std::cell::RefCell;
use std::collections::{BTreeMap, HashMap};
use std::rc::Rc;

use state_machine::control::Control;
use state_machine::disk::{
    Change, Content, Create, Dir, Disk, Fill, Mode, Name, Open, Place, Pointer, Read,
};
use state_machine::id::{Key, PoolName, Token};
use state_machine::pull::part::Part;
use state_machine::record::{
    self, Damaged, Descriptor, History, Line, Pool, Session, Slot, Status,
};

/// The fault that was asked for has happened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Fault;

/// How an effect fails.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum How {
    /// It did not happen.
    Before,
    /// It happened, and its reply was lost: the process died.
    After,
    /// Half of what was to be written was written. For any other effect the same as [`How::Before`].
    Torn,
}

impl How {
    /// Every way.
    pub(crate) const ALL: [How; 3] = [How::Before, How::After, How::Torn];
}

/// The flocks of a machine: for each open description its inode and how it is locked.
type Locks = Rc<RefCell<HashMap<u64, (u64, Option<Mode>)>>>;

/// An open description. Dropping it closes it, as the death of its process does.
#[derive(Debug)]
pub(crate) struct Handle {
    number: u64,
    locks: Locks,
}

impl Drop for Handle {
    fn drop(&mut self) {
        self.locks.borrow_mut().remove(&self.number);
    }
}

/// What stands at a path.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Node {
    Dir,
    File(u64),
}

/// Everything that is on disk. Two equal ones cannot be told apart by any reader.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub(crate) struct Image {
    tree: BTreeMap<Vec<u8>, Node>,
    inodes: BTreeMap<u64, Vec<u8>>,
}

/// The file system.
#[derive(Debug)]
pub(crate) struct Fake {
    image: Image,
    locks: Locks,
    next: u64,
    fault: Option<(usize, How)>,
    torn: bool,
    waits: Vec<u32>,
}

fn dir_path(dir: &Dir) -> Vec<u8> {
    match dir {
        Dir::Root => b"root".to_vec(),
        Dir::Pools => b"pools".to_vec(),
        Dir::Pool(pool) => format!("pools/{pool}").into_bytes(),
        Dir::Slots(pool) => format!("pools/{pool}/slots").into_bytes(),
        Dir::Slot(pool, number) => format!("pools/{pool}/slots/{number}").into_bytes(),
        Dir::Sessions => b"sessions".to_vec(),
        Dir::Outside(path) => path.clone(),
        Dir::Jobs => b"jobs".to_vec(),
        Dir::Staging => b"staging".to_vec(),
        Dir::Trash => b"trash".to_vec(),
        Dir::Keys => b"keys".to_vec(),
        Dir::Job(id) => format!("jobs/{id}").into_bytes(),
        Dir::Staged(ticket) => format!("staging/{}", ticket.as_str()).into_bytes(),
        Dir::Trashed(ticket) => format!("trash/{}", ticket.as_str()).into_bytes(),
        Dir::Spares => b"spares".to_vec(),
        Dir::Spare(number) => format!("spares/{number}").into_bytes(),
    }
}

fn path(place: &Place) -> Vec<u8> {
    match place {
        Place::Dir(dir) => dir_path(dir),
        Place::File(dir, name) => [&dir_path(dir)[..], b"/", &name.to_bytes()].concat(),
    }
}

fn parent(path: &[u8]) -> &[u8] {
    &path[..path.iter().rposition(|&byte| byte == b'/').unwrap_or(0)]
}

impl Image {
    /// An empty store.
    pub(crate) fn store() -> Image {
        let mut image = Image::default();
        for dir in [
            "", "root", "jobs", "staging", "trash", "keys", "pools", "sessions",
        ] {
            image.tree.insert(dir.into(), Node::Dir);
        }
        image
    }

    /// The names in a directory.
    pub(crate) fn names(&self, dir: &Dir) -> Vec<Vec<u8>> {
        let dir = dir_path(dir);
        let entries = self.tree.keys().filter(|path| parent(path) == dir);
        entries
            .filter(|path| path.len() > dir.len())
            .map(|path| path[dir.len() + 1..].to_vec())
            .collect()
    }

    /// The bytes of a file.
    pub(crate) fn bytes(&self, place: &Place) -> Option<&[u8]> {
        match self.tree.get(&path(place))? {
            Node::File(inode) => self.inodes.get(inode).map(Vec::as_slice),
            Node::Dir => None,
        }
    }

    /// Everything that a reader can see: each path, and its bytes where it is a file.
    pub(crate) fn visible(&self) -> BTreeMap<Vec<u8>, Option<Vec<u8>>> {
        let bytes = |node: &Node| match node {
            Node::Dir => None,
            Node::File(inode) => self.inodes.get(inode).cloned(),
        };
        let entries = self.tree.iter();
        entries
            .map(|(path, node)| (path.clone(), bytes(node)))
            .collect()
    }

    /// Put a file there, as a hand would.
    pub(crate) fn put(&mut self, place: &Place, bytes: &[u8]) {
        let inode = self.inodes.keys().last().map_or(1, |last| last + 1);
        self.tree.insert(path(place), Node::File(inode));
        self.inodes.insert(inode, bytes.to_vec());
    }

    /// Write over a file that is there, as another program would: it stays the same file.
    #[allow(dead_code, reason = "not every test of this support needs it")]
    pub(crate) fn overwrite(&mut self, place: &Place, bytes: &[u8]) {
        self.replace(place, bytes);
    }

    /// Put a directory there, as a hand would.
    #[allow(dead_code, reason = "not every test of this support needs it")]
    pub(crate) fn put_dir(&mut self, place: &Place) {
        self.tree.insert(path(place), Node::Dir);
    }

    /// Take an empty directory away, as a hand would.
    #[allow(dead_code, reason = "not every test of this support needs it")]
    pub(crate) fn remove(&mut self, dir: &Dir) {
        self.tree.remove(&dir_path(dir));
    }

    fn replace(&mut self, place: &Place, bytes: &[u8]) -> Change {
        let at = path(place);
        match self.tree.get(&at) {
            Some(Node::Dir) => Change::NotEmpty,
            _ if self.tree.get(parent(&at)) != Some(&Node::Dir) => Change::Absent,
            Some(Node::File(inode)) => {
                self.inodes.insert(*inode, bytes.to_vec());
                Change::Done
            }
            None => {
                self.put(place, bytes);
                Change::Done
            }
        }
    }

    fn rename(&mut self, from: &Place, to: &Place, replacing: bool) -> Change {
        let (from, to) = (path(from), path(to));
        let Some(node) = self.tree.get(&from).cloned() else {
            return Change::Absent;
        };
        if self.tree.get(parent(&to)) != Some(&Node::Dir) {
            return Change::Absent;
        }
        match self.tree.get(&to) {
            Some(_) if !replacing => return Change::Exists,
            Some(Node::Dir) => return Change::NotEmpty,
            _ => {}
        }
        let under = [&from[..], b"/"].concat();
        let moved: Vec<Vec<u8>> = self
            .tree
            .keys()
            .filter(|path| path.starts_with(&under))
            .cloned()
            .collect();
        for path in moved {
            let node = self.tree.remove(&path).expect("it was just listed");
            self.tree
                .insert([&to[..], &path[from.len()..]].concat(), node);
        }
        self.tree.remove(&from);
        self.tree.insert(to, node);
        Change::Done
    }
}

impl Fake {
    /// A machine that has just started on what is on disk: nobody holds anything.
    pub(crate) fn on(image: Image) -> Fake {
        Fake {
            next: image.inodes.keys().last().map_or(1, |last| last + 1),
            image,
            locks: Locks::default(),
            fault: None,
            torn: false,
            waits: Vec::new(),
        }
    }

    /// Let the `k`th effect from now on (from 0) fail.
    pub(crate) fn fail_at(&mut self, k: usize, how: How) {
        self.fault = Some((k, how));
    }

    /// Whether a fault is still to come.
    pub(crate) fn is_armed(&self) -> bool {
        self.fault.is_some()
    }

    /// How many descriptions are open.
    pub(crate) fn open_handles(&self) -> usize {
        self.locks.borrow().len()
    }

    /// The rounds before which somebody gave way to others.
    pub(crate) fn waits(&self) -> &[u32] {
        &self.waits
    }

    /// What is on disk.
    pub(crate) fn image(&self) -> &Image {
        &self.image
    }

    /// What is on disk, to be changed by hand.
    pub(crate) fn image_mut(&mut self) -> &mut Image {
        &mut self.image
    }

    /// One effect, and the fault that it may be.
    fn effect<T>(&mut self, effect: impl FnOnce(&mut Self) -> T) -> Result<T, Fault> {
        let Some((k, how)) = self.fault else {
            return Ok(effect(self));
        };
        if k > 0 {
            self.fault = Some((k - 1, how));
            return Ok(effect(self));
        }
        self.fault = None;
        self.torn = how == How::Torn;
        if how != How::Before {
            drop(effect(self));
        }
        Err(Fault)
    }

    /// An effect that writes `bytes`, of which a torn one takes half.
    fn writing<T>(
        &mut self,
        bytes: &[u8],
        effect: impl FnOnce(&mut Self, &[u8]) -> T,
    ) -> Result<T, Fault> {
        self.torn = false;
        self.effect(|disk| {
            let torn = std::mem::take(&mut disk.torn);
            let kept = if torn { bytes.len() / 2 } else { bytes.len() };
            effect(disk, &bytes[..kept])
        })
    }

    /// An effect that has no half.
    fn whole<T>(&mut self, effect: impl FnOnce(&mut Self) -> T) -> Result<T, Fault> {
        if let Some((0, How::Torn)) = self.fault {
            self.fault = Some((0, How::Before));
        }
        self.effect(effect)
    }

    fn open_inode(&mut self, inode: u64) -> Handle {
        self.next += 1;
        let handle = Handle {
            number: self.next,
            locks: Rc::clone(&self.locks),
        };
        self.locks.borrow_mut().insert(self.next, (inode, None));
        handle
    }

    fn read<T>(&self, place: &Place, decode: impl FnOnce(&[u8]) -> Result<T, Damaged>) -> Read<T> {
        match self.image.bytes(place).map(decode) {
            None => Read::Absent,
            Some(Ok(value)) => Read::Value(value),
            Some(Err(damaged)) => Read::Damaged(damaged),
        }
    }
}

fn encode(content: &Content) -> Vec<u8> {
    match content {
        Content::Descriptor(descriptor) => descriptor.encode(),
        Content::Status(status) => status.encode(),
        Content::Request(request) => Control::encode(*request),
        Content::Pointer(pointer) => pointer.encode(),
        Content::Pool(pool) => pool.encode(),
        Content::Slot(slot) => slot.encode(),
        Content::Session(session) => session.encode(),
        Content::Part(part) => part.encode(),
        Content::Raw(bytes) => bytes.clone(),
        Content::Blank => record::blank(),
    }
}

impl Disk for Fake {
    type Handle = Handle;
    type Fault = Fault;

    fn open(&mut self, place: &Place, _mode: Mode) -> Result<Open<Handle>, Fault> {
        self.whole(|disk| match disk.image.tree.get(&path(place)) {
            None => Open::Absent,
            Some(Node::Dir) => Open::Denied,
            Some(&Node::File(inode)) => Open::Opened(disk.open_inode(inode)),
        })
    }

    fn create(&mut self, place: &Place) -> Result<Create<Handle>, Fault> {
        self.whole(|disk| {
            let at = path(place);
            if disk.image.tree.contains_key(&at) {
                return Create::Exists;
            }
            if disk.image.replace(place, b"") != Change::Done {
                return Create::Absent;
            }
            let Some(&Node::File(inode)) = disk.image.tree.get(&at) else {
                return Create::Absent;
            };
            Create::Created(disk.open_inode(inode))
        })
    }

    fn lock(&mut self, handle: &Handle, mode: Mode) -> Result<bool, Fault> {
        self.whole(|disk| {
            let mut locks = disk.locks.borrow_mut();
            let (inode, before) = locks[&handle.number];
            assert_eq!(before, None, "F9: a lock was converted");
            let free = !locks.iter().any(|(&number, &(other, locked))| {
                number != handle.number
                    && other == inode
                    && match locked {
                        None => false,
                        Some(Mode::Exclusive) => true,
                        Some(Mode::Shared) => mode == Mode::Exclusive,
                    }
            });
            if free {
                locks.insert(handle.number, (inode, Some(mode)));
            }
            free
        })
    }

    fn stands(&mut self, handle: &Handle, place: &Place) -> Result<bool, Fault> {
        self.whole(|disk| {
            let inode = disk.locks.borrow()[&handle.number].0;
            disk.image.tree.get(&path(place)) == Some(&Node::File(inode))
        })
    }

    fn close(&mut self, handle: Handle) -> Result<(), Fault> {
        self.whole(|_| drop(handle))
    }

    fn release(&mut self, handle: Handle) -> Result<(), Fault> {
        // Nobody shares a description here.
        self.whole(|_| drop(handle))
    }

    fn exists(&mut self, place: &Place) -> Result<bool, Fault> {
        self.whole(|disk| disk.image.tree.contains_key(&path(place)))
    }

    fn read_descriptor(&mut self, dir: &Dir) -> Result<Read<Descriptor>, Fault> {
        self.whole(|disk| disk.read(&dir.at(Name::Descriptor), Descriptor::decode))
    }

    fn read_status(&mut self, dir: &Dir) -> Result<Read<Status>, Fault> {
        self.whole(|disk| disk.read(&dir.at(Name::Status), Status::decode))
    }

    fn read_history(&mut self, dir: &Dir) -> Result<History, Fault> {
        self.whole(|disk| {
            History::decode(disk.image.bytes(&dir.at(Name::Events)).unwrap_or_default())
        })
    }

    fn read_control(&mut self, place: &Place) -> Result<Option<Control>, Fault> {
        self.whole(|disk| disk.image.bytes(place).map(Control::decode))
    }

    fn read_pointer(&mut self, key: &Key) -> Result<Read<Pointer>, Fault> {
        self.whole(|disk| disk.read(&Dir::Keys.at(Name::Pointer(key.clone())), Pointer::decode))
    }

    fn write(&mut self, place: &Place, content: &Content) -> Result<Change, Fault> {
        let bytes = encode(content);
        self.writing(&bytes, |disk, bytes| disk.image.replace(place, bytes))
    }

    fn fill(&mut self, place: &Place, content: &Content) -> Result<Fill, Fault> {
        let bytes = encode(content);
        self.writing(&bytes, |disk, half| {
            let Some(old) = disk.image.bytes(place).map(<[u8]>::to_vec) else {
                return Fill::Absent;
            };
            if bytes.len() > old.len() {
                return Fill::NoRoom;
            }
            let new = if half.len() < bytes.len() {
                [half, &old[half.len()..]].concat()
            } else {
                record::padded(bytes.clone(), old.len())
            };
            disk.image.replace(place, &new);
            Fill::Done
        })
    }

    fn append(&mut self, dir: &Dir, lines: &[Line], mend: bool) -> Result<Change, Fault> {
        let place = dir.at(Name::Events);
        let old = self.image.bytes(&place).unwrap_or_default().to_vec();
        let mut added = Vec::new();
        if mend && !old.is_empty() && !old.ends_with(b"\n") {
            added.push(b'\n');
        }
        added.extend(lines.iter().flat_map(Line::encode));
        self.writing(&added, |disk, added| {
            disk.image.replace(&place, &[&old[..], added].concat())
        })
    }

    fn sync(&mut self, place: &Place) -> Result<Change, Fault> {
        self.whole(|disk| match disk.image.tree.contains_key(&path(place)) {
            true => Change::Done,
            false => Change::Absent,
        })
    }

    fn read_pool(&mut self, pool: &PoolName) -> Result<Read<Pool>, Fault> {
        let place = Dir::Pool(pool.clone()).at(Name::Pool);
        self.whole(|disk| disk.read(&place, Pool::decode))
    }

    fn read_slot(&mut self, pool: &PoolName, number: u32) -> Result<Read<Slot>, Fault> {
        let place = Dir::Slot(pool.clone(), number).at(Name::Slot);
        self.whole(|disk| disk.read(&place, |bytes| Slot::decode(bytes)?.of(number)))
    }

    fn read_session(&mut self, token: &Token) -> Result<Read<Session>, Fault> {
        let place = Dir::Sessions.at(Name::Session(token.clone()));
        self.whole(|disk| disk.read(&place, Session::decode))
    }

    fn read_part(&mut self, place: &Place) -> Result<Read<Part>, Fault> {
        self.whole(|disk| disk.read(place, Part::decode))
    }

    fn sync_all(&mut self) -> Result<(), Fault> {
        self.whole(|_| ())
    }

    fn rename(&mut self, from: &Place, to: &Place) -> Result<Change, Fault> {
        self.whole(|disk| disk.image.rename(from, to, true))
    }

    fn rename_new(&mut self, from: &Place, to: &Place) -> Result<Change, Fault> {
        self.whole(|disk| disk.image.rename(from, to, false))
    }

    fn link(&mut self, from: &Place, to: &Place) -> Result<Change, Fault> {
        self.whole(|disk| {
            let Some(node) = disk.image.tree.get(&path(from)).cloned() else {
                return Change::Absent;
            };
            let to = path(to);
            if disk.image.tree.contains_key(&to) {
                return Change::Exists;
            }
            if disk.image.tree.get(parent(&to)) != Some(&Node::Dir) {
                return Change::Absent;
            }
            disk.image.tree.insert(to, node);
            Change::Done
        })
    }

    fn unlink(&mut self, place: &Place) -> Result<Change, Fault> {
        self.whole(|disk| match disk.image.tree.get(&path(place)) {
            None => Change::Absent,
            Some(Node::Dir) => Change::NotEmpty,
            Some(Node::File(_)) => {
                disk.image.tree.remove(&path(place));
                Change::Done
            }
        })
    }

    fn mkdir(&mut self, dir: &Dir) -> Result<Change, Fault> {
        self.whole(|disk| {
            let at = dir_path(dir);
            if disk.image.tree.contains_key(&at) {
                return Change::Exists;
            }
            if disk.image.tree.get(parent(&at)) != Some(&Node::Dir) {
                return Change::Absent;
            }
            disk.image.tree.insert(at, Node::Dir);
            Change::Done
        })
    }

    fn rmdir(&mut self, dir: &Dir) -> Result<Change, Fault> {
        self.whole(|disk| match disk.image.tree.get(&dir_path(dir)) {
            None => Change::Absent,
            Some(Node::File(_)) => Change::NotDirectory,
            Some(Node::Dir) if !disk.image.names(dir).is_empty() => Change::NotEmpty,
            Some(Node::Dir) => {
                disk.image.tree.remove(&dir_path(dir));
                Change::Done
            }
        })
    }

    fn list(&mut self, dir: &Dir) -> Result<Option<Vec<Name>>, Fault> {
        self.whole(|disk| {
            if disk.image.tree.get(&dir_path(dir)) != Some(&Node::Dir) {
                return None;
            }
            let names = disk.image.names(dir);
            Some(names.iter().map(|name| Name::in_job(name)).collect())
        })
    }

    fn give_way(&mut self, round: u32) -> Result<(), Fault> {
        self.whole(|disk| disk.waits.push(round))
    }
}
