//! What a loss of power takes. Beside the files as every process sees them stands what is on the medium, and the
//! changes that may or may not be there yet, in the order in which they were made.
//!
//! A change of names is atomic and in no order with any other (F30); of two changes of one name the later one is the
//! one that is seen when both are there. A content that was not synced is there, or not at all, or was cut to nothing
//! (F29); what was appended to a file takes none of what was there before, and can be there in part (F32). A sync of a directory brings its names, a sync of a file its content, and neither brings the other (F28). A
//! sync that failed brings nothing, and the next one takes the content for synced all the same (F31).

use super::{Filesystem, Ino, Inode};
use crate::filesystem::Data;
use crate::shared::Shared;
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
}

/// What became of a content that was not synced.
const FATES: u32 = 3;

impl Medium {
    /// A medium that holds all of this.
    fn of(inodes: &[Inode]) -> Medium {
        Medium {
            inodes: inodes.to_vec(),
            namings: Vec::new(),
            dirty: Vec::new(),
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

    /// In how many ways a loss of power can turn out now; 0 where power is never lost.
    pub fn outcomes(&self) -> u32 {
        self.medium.as_ref().map_or(0, |medium| {
            let names = 2u32.saturating_pow(medium.namings.len() as u32);
            names.saturating_mul(FATES.saturating_pow(medium.dirty.len() as u32))
        })
    }

    /// Lose power, with the given one of the [`outcomes`](Filesystem::outcomes).
    pub fn lose_power(&mut self, outcome: u32) {
        let Some(medium) = self.medium.take() else {
            return;
        };
        let mut medium = *medium;
        let mut outcome = outcome;
        for change in std::mem::take(&mut medium.namings) {
            if outcome.is_multiple_of(2) {
                for naming in &change {
                    medium.name(naming);
                }
            }
            outcome /= 2;
        }
        for ino in std::mem::take(&mut medium.dirty) {
            let at = usize::from(ino);
            match outcome % FATES {
                0 => medium.inodes[at] = self.inodes[at].clone(),
                1 => {}
                _ => medium.inodes[at] = self.cut(&medium.inodes[at], at),
            }
            outcome /= FATES;
        }
        self.inodes = medium.inodes;
        self.open.clear();
        self.refused.clear();
        self.fit_medium();
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
            _ => Data::Empty,
        };
        Inode::File(Shared::new(left))
    }

    pub(super) fn note_names(&mut self, change: Vec<Naming>) {
        if let Some(medium) = &mut self.medium {
            medium.namings.push(change);
        }
    }

    pub(super) fn note_content(&mut self, ino: Ino) {
        if let Some(medium) = &mut self.medium
            && let Err(at) = medium.dirty.binary_search(&ino)
        {
            medium.dirty.insert(at, ino);
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
                    medium.inodes[usize::from(ino)] = file;
                }
            }
        }
    }

    /// A sync fails: what it was to bring to the medium counts as brought, and is not.
    pub(super) fn fail_to_sync(&mut self, ino: Ino) {
        if let Some(medium) = &mut self.medium
            && let Ok(at) = medium.dirty.binary_search(&ino)
        {
            medium.dirty.remove(at);
        }
    }
}
