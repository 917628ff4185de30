//! Open file descriptions and their locks. A lock belongs to a description, which several processes can share
//! (F1, F3), and ends when the last of them has closed it (F2). It follows the inode (F16).

use state_machine::disk::{Mode, Open, Place};

use super::{Data, Filesystem, Ino, Inode, Owner};
use crate::effect::Handle;

/// An open file.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Description {
    pub(super) ino: Ino,
    pub(super) lock: Option<Mode>,
    /// For which lock it was opened: what is to be locked exclusively is opened for writing, or its last close is no notice.
    pub(super) opened: Mode,
    /// Who has it open, under which number; sorted. Descriptions are sorted by the first of these.
    pub(super) holders: Vec<(Owner, Handle)>,
}

impl Filesystem {
    /// Open an inode, under the lowest number that is free, as the kernel does.
    pub(super) fn open_ino(&mut self, owner: Owner, ino: Ino, opened: Mode) -> Handle {
        let handle = self.free_handle(owner);
        self.open.push(Description {
            ino,
            lock: None,
            opened,
            holders: vec![(owner, handle)],
        });
        handle
    }

    fn free_handle(&self, owner: Owner) -> Handle {
        (0..=Handle::MAX)
            .find(|&handle| self.description(owner, handle).is_none())
            .expect("a modelled process has few files open")
    }

    /// Share the description through which somebody has locked a file exclusively, as who reads the links in
    /// `/proc/<pid>/fd` does, or a child that has not closed yet what was its parent's (F55).
    pub(super) fn peek(&mut self, owner: Owner, place: &Place) -> Open<Handle> {
        let ino = self.find(place);
        let handle = self.free_handle(owner);
        let locked = self.open.iter_mut().find(|description| {
            Some(description.ino) == ino && description.lock == Some(Mode::Exclusive)
        });
        let Some(description) = locked else {
            return Open::Absent;
        };
        description.holders.push((owner, handle));
        description.holders.sort_unstable();
        Open::Opened(handle)
    }

    /// The place in `open` of what an owner has open under a number.
    pub(super) fn description(&self, owner: Owner, handle: Handle) -> Option<usize> {
        self.open
            .iter()
            .position(|description| description.holders.contains(&(owner, handle)))
    }

    /// Whether what an owner has open under a number was opened to be locked in this mode.
    pub fn is_opened_for(&self, owner: Owner, handle: Handle, mode: Mode) -> bool {
        let opened = self
            .description(owner, handle)
            .map(|at| self.open[at].opened);
        mode == Mode::Shared || opened == Some(Mode::Exclusive)
    }

    pub(super) fn expect(&self, owner: Owner, handle: Handle) -> usize {
        self.description(owner, handle)
            .expect("a protocol used a descriptor that it does not have")
    }

    /// What the file holds that an owner has open under a number; `None` for a directory.
    pub fn data_of(&self, owner: Owner, handle: Handle) -> Option<&Data> {
        let ino = self.open[self.expect(owner, handle)].ino;
        match &self.inodes[usize::from(ino)] {
            Inode::File(data) => Some(data),
            Inode::Directory(_) => None,
        }
    }

    /// Whether `mode` can be had on `ino` through a description that has no lock yet.
    fn grants(&self, ino: Ino, mode: Mode) -> bool {
        self.open.iter().all(|other| {
            let together = other.lock == Some(Mode::Shared) && mode == Mode::Shared;
            other.ino != ino || other.lock.is_none() || together
        })
    }

    /// Whether an owner would be given the exclusive lock of what it has open under a number.
    pub fn may_lock(&self, owner: Owner, handle: Handle) -> bool {
        self.grants(self.open[self.expect(owner, handle)].ino, Mode::Exclusive)
    }

    pub(super) fn lock(&mut self, owner: Owner, handle: Handle, mode: Mode) -> bool {
        let at = self.expect(owner, handle);
        assert!(
            self.open[at].lock.is_none(),
            "converting a lock loses it (F9)"
        );
        let ino = self.open[at].ino;
        let granted = self.grants(ino, mode);
        if granted {
            self.open[at].lock = Some(mode);
        } else if mode == Mode::Exclusive {
            self.refused.retain(|&(who, _)| who != owner);
            self.refused.push((owner, ino));
            self.refused.sort_unstable();
        }
        granted
    }

    /// Who keeps the owner from the exclusive lock that it was refused last, as things stand now.
    pub fn in_the_way_of(&self, owner: Owner) -> impl Iterator<Item = Owner> + '_ {
        let refused = self.refused.iter().find(|&&(who, _)| who == owner);
        let ino = refused.map(|&(_, ino)| ino);
        self.open
            .iter()
            .filter(move |other| Some(other.ino) == ino && other.lock.is_some())
            .flat_map(|other| other.holders.iter().map(|&(who, _)| who))
    }

    pub(super) fn forget_refusal(&mut self, owner: Owner) {
        self.refused.retain(|&(who, _)| who != owner);
    }

    /// Let another owner share a description.
    pub(super) fn share(&mut self, owner: Owner, handle: Handle, with: Owner) {
        let at = self.expect(owner, handle);
        self.open[at].holders.push((with, 0));
        self.open[at].holders.sort_unstable();
    }

    pub(super) fn close(&mut self, owner: Owner, handle: Handle) {
        let at = self.expect(owner, handle);
        self.open[at]
            .holders
            .retain(|&holder| holder != (owner, handle));
        if self.open[at].holders.is_empty() {
            self.open.remove(at);
        }
    }

    /// Unlock a description for everybody who has it (F2), and close it.
    pub(super) fn release(&mut self, owner: Owner, handle: Handle) {
        let at = self.expect(owner, handle);
        self.open[at].lock = None;
        self.close(owner, handle);
    }

    /// Who else has the description that an owner has open under a number.
    pub fn sharers(&self, owner: Owner, handle: Handle) -> impl Iterator<Item = Owner> + '_ {
        let shared = self.description(owner, handle);
        let holders = shared.map_or(&[][..], |at| &self.open[at].holders);
        let others = move |&&(who, _): &&(Owner, Handle)| who != owner;
        holders.iter().filter(others).map(|&(who, _)| who)
    }

    /// An owner is gone: everything that it has open is closed.
    pub fn close_all(&mut self, owner: Owner) {
        for description in &mut self.open {
            description.holders.retain(|&(who, _)| who != owner);
        }
        self.open
            .retain(|description| !description.holders.is_empty());
        self.forget_refusal(owner);
    }

    /// Whether an owner has anything open.
    pub fn has_open(&self, owner: Owner) -> bool {
        self.open
            .iter()
            .any(|description| description.holders.iter().any(|&(who, _)| who == owner))
    }
}
