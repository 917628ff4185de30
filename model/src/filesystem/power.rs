//! What a loss of power takes. Beside the files as every process sees them stands what is on the medium, and the
//! changes that may or may not be there yet, in the order in which they were made.
//!
//! A change of names is atomic and in no order with any other (F30); of two changes of one name the later one is the
//! one that is seen when both are there. A content that was not synced is there, or not at all, or was cut to nothing
//! (F29); what was appended to a file takes none of what was there before, and can be there in part (F32), and what was
//! filled in place can be there in part, too, and then it is neither the old nor the new. A sync of a directory brings its
//! names, a sync of a file its content, and neither brings the other (F28). A sync that failed brings nothing, and the next
//! one takes the content for synced all the same (F31).

use std::collections::HashSet;

use super::{Filesystem, Ino, Inode, blocks};
use crate::filesystem::Data;
use crate::shared::{Shared, hash_of};
use state_machine::disk::Name;

/// What one name stands for from here on.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Naming {
    pub(super) dir: Ino,
    pub(super) name: Name,
    pub(super) ino: Option<Ino>,
}

/// The medium.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Medium {
    /// What is on it, by inode.
    pub(super) inodes: Vec<Inode>,
    /// The changes of names that may be on it or not, oldest first.
    pub(super) namings: Vec<Vec<Naming>>,
    /// The files whose content may be on it or not; sorted.
    pub(super) dirty: Vec<Ino>,
    /// Those of them that were cut since: nothing of what the medium has need stay. Sorted.
    pub(super) cut: Vec<Ino>,
}

impl Medium {
    /// A medium that holds all of this.
    fn of(inodes: &[Inode]) -> Medium {
        Medium {
            inodes: inodes.to_vec(),
            namings: Vec::new(),
            dirty: Vec::new(),
            cut: Vec::new(),
        }
    }

    pub(super) fn add(&mut self, inode: &Inode) {
        self.inodes.push(match inode {
            Inode::Directory(_) => Inode::Directory(Default::default()),
            Inode::File(_) => Inode::File(Shared::new(Data::Empty)),
        });
    }

    fn name(&mut self, naming: &Naming) {
        if let Inode::Directory(entries) = &mut self.inodes[usize::from(naming.dir)] {
            let entries = std::sync::Arc::make_mut(entries);
            entries.retain(|(name, _)| *name != naming.name);
            if let Some(ino) = naming.ino {
                entries.push((naming.name.clone(), ino));
                entries.sort();
            }
        }
    }

    /// Every way in which the changes of names may have come out, each once.
    fn images_of_names(&self) -> Vec<Vec<Inode>> {
        let mut images = vec![self.clone()];
        for change in &self.namings {
            let with = |image: &Medium| {
                let mut image = image.clone();
                change.iter().for_each(|naming| image.name(naming));
                image
            };
            let reached: Vec<Medium> = images.iter().map(with).collect();
            images.extend(reached);
            let mut seen = HashSet::new();
            images.retain(|image| seen.insert(hash_of(&image.inodes)));
        }
        images.into_iter().map(|image| image.inodes).collect()
    }

    /// The names of a directory reach the medium, and what moved between it and another one moves there, too.
    fn sync_names(&mut self, dir: Ino) {
        let (reached, waiting): (Vec<_>, Vec<_>) = std::mem::take(&mut self.namings)
            .into_iter()
            .partition(|change| change.iter().any(|naming| naming.dir == dir));
        self.namings = waiting;
        for naming in reached.iter().flatten() {
            // What the name stood for before is no news any more.
            for change in &mut self.namings {
                change.retain(|old| (old.dir, &old.name) != (naming.dir, &naming.name));
            }
            self.name(naming);
        }
        self.namings.retain(|change| !change.is_empty());
    }
}

impl Filesystem {
    /// Keep account of what is on the medium from here on; all of it is.
    pub fn fit_medium(&mut self) {
        self.medium = Some(Box::new(Medium::of(&self.inodes)));
    }

    /// Whether anything could be lost with the power that would not be lost a moment later.
    pub fn has_medium(&self) -> bool {
        self.medium.is_some()
    }

    /// How many changes may be on the medium or not.
    pub fn unsynced(&self) -> usize {
        self.medium
            .as_ref()
            .map_or(0, |medium| medium.namings.len() + medium.dirty.len())
    }

    /// What may be there after a loss of power, each possibility once; nothing where power is never lost.
    pub fn images(&self) -> Vec<Filesystem> {
        let Some(medium) = &self.medium else {
            return Vec::new();
        };
        let mut seen = HashSet::new();
        let mut images = Vec::new();
        for names in medium.images_of_names() {
            for image in self.images_of_contents(names, &medium.dirty) {
                if seen.insert(hash_of(&image)) {
                    images.push(image);
                }
            }
        }
        images
    }

    /// With these names, each possibility of what became of the contents that were not synced.
    fn images_of_contents(&self, names: Vec<Inode>, dirty: &[Ino]) -> Vec<Filesystem> {
        let bare = Filesystem {
            inodes: names,
            ..Filesystem::default()
        };
        let reached = bare.order();
        let dirty = dirty.iter().filter(|ino| reached.contains(ino));
        let mut images = vec![bare];
        for &ino in dirty {
            let at = usize::from(ino);
            let fates = |image: &Filesystem| {
                let become_that = |fate| {
                    let mut image = image.clone();
                    image.inodes[at] = fate;
                    image
                };
                let fates = self.fates(&image.inodes[at], at).into_iter();
                fates.map(become_that).collect::<Vec<_>>()
            };
            images = images.iter().flat_map(fates).collect();
        }
        for image in &mut images {
            image.renumber();
            image.fit_medium();
        }
        images
    }

    fn was_cut(&self, at: usize) -> bool {
        let medium = self.medium.as_ref();
        medium.is_some_and(|medium| medium.cut.iter().any(|&ino| usize::from(ino) == at))
    }

    /// What may be there of a content that was not synced, where this is on the medium.
    fn fates(&self, old: &Inode, at: usize) -> Vec<Inode> {
        if let (Inode::File(old), Inode::File(new)) = (old, &self.inodes[at])
            && let Some(fates) = blocks::fates(old, new, self.was_cut(at))
        {
            let files = fates.into_iter().map(Shared::new);
            return files.map(Inode::File).collect();
        }
        vec![self.inodes[at].clone(), old.clone(), self.cut(old, at)]
    }

    pub(super) fn note_names(&mut self, change: Vec<Naming>) {
        if let Some(medium) = &mut self.medium {
            medium.namings.push(change);
        }
    }

    /// What is left of a content of which only a part reached the medium.
    fn cut(&self, old: &Inode, at: usize) -> Inode {
        let (Inode::File(old), Inode::File(new)) = (old, &self.inodes[at]) else {
            unreachable!("a directory has no content");
        };
        let left = match &**new {
            Data::History(_) => {
                let mut history = old.history();
                history.torn = true;
                history.undecodable += 1;
                Data::History(history)
            }
            Data::Filled(_, length) => Data::Filled(Box::new(Data::Garbage), *length),
            _ => Data::Empty,
        };
        Inode::File(Shared::new(left))
    }

    pub(super) fn note_content(&mut self, ino: Ino) {
        if let Some(medium) = &mut self.medium
            && let Err(at) = medium.dirty.binary_search(&ino)
        {
            medium.dirty.insert(at, ino);
        }
    }

    /// A content gets shorter.
    pub(super) fn note_cut(&mut self, ino: Ino) {
        self.note_content(ino);
        if let Some(medium) = &mut self.medium
            && let Err(at) = medium.cut.binary_search(&ino)
        {
            medium.cut.insert(at, ino);
        }
    }

    /// What was found at a place reaches the medium.
    pub(super) fn sync_ino(&mut self, ino: Ino) {
        let content = self.inodes[usize::from(ino)].clone();
        let Some(medium) = &mut self.medium else {
            return;
        };
        match content {
            Inode::Directory(_) => medium.sync_names(ino),
            file @ Inode::File(_) => {
                if let Ok(at) = medium.dirty.binary_search(&ino) {
                    medium.dirty.remove(at);
                    medium.cut.retain(|&cut| cut != ino);
                    medium.inodes[usize::from(ino)] = file;
                }
            }
        }
    }

    /// Everything reaches the medium.
    pub(super) fn sync_everything(&mut self) {
        if self.medium.is_some() {
            self.fit_medium();
        }
    }

    /// A sync fails: what it was to bring to the medium counts as brought, and is not.
    pub(super) fn fail_to_sync(&mut self, ino: Ino) {
        if let Some(medium) = &mut self.medium
            && let Ok(at) = medium.dirty.binary_search(&ino)
        {
            medium.dirty.remove(at);
            medium.cut.retain(|&cut| cut != ino);
        }
    }
}
