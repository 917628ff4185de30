//! One number for one thing: after each step inodes are numbered anew, in the order in which a walk meets them,
//! and what nobody can reach is dropped. Two states that differ only in the order in which files were once made
//! are then one state; without this the space never closes.

use std::sync::Arc;

use super::names::STANDING;
use super::power::Medium;
use super::{Filesystem, Ino, Inode};

impl Filesystem {
    /// Number the inodes anew and drop the unreachable ones.
    pub fn renumber(&mut self) {
        self.open.sort_by(|a, b| a.holders.cmp(&b.holders));
        let order = self.order();
        if order.len() == self.inodes.len() && order.iter().enumerate().all(is_in_place) {
            self.drop_refusals_of_the_gone(&order);
            return;
        }
        self.drop_refusals_of_the_gone(&order);
        let mut new = vec![Ino::MAX; self.inodes.len()];
        for (number, &old) in order.iter().enumerate() {
            // There are never more than a few dozen inodes; `add` sees to it that a number holds them.
            new[usize::from(old)] = number as Ino;
        }
        self.inodes = order
            .iter()
            .map(|&old| self.inodes[usize::from(old)].renumbered(&new))
            .collect();
        for description in &mut self.open {
            description.ino = new[usize::from(description.ino)];
        }
        for (_, ino) in &mut self.refused {
            *ino = new[usize::from(*ino)];
        }
        if let Some(medium) = &mut self.medium {
            medium.renumber(&order, &new);
        }
    }

    /// The reachable inodes: the standing directories, what they hold, then what is only open.
    pub(super) fn order(&self) -> Vec<Ino> {
        let mut order: Vec<Ino> = (0..STANDING as Ino).collect();
        let mut at = 0;
        while at < order.len() {
            if let Inode::Directory(entries) = &self.inodes[usize::from(order[at])] {
                for &(_, ino) in entries.iter() {
                    if !order.contains(&ino) {
                        order.push(ino);
                    }
                }
            }
            at += 1;
        }
        for description in &self.open {
            if !order.contains(&description.ino) {
                order.push(description.ino);
            }
        }
        if let Some(medium) = &self.medium {
            medium.order(&mut order);
        }
        order
    }

    fn drop_refusals_of_the_gone(&mut self, order: &[Ino]) {
        self.refused.retain(|(_, ino)| order.contains(ino));
    }
}

fn is_in_place((at, &ino): (usize, &Ino)) -> bool {
    at == usize::from(ino)
}

impl Medium {
    /// Add what only the medium still knows.
    fn order(&self, order: &mut Vec<Ino>) {
        let waiting = self.namings.iter().flatten();
        for ino in waiting
            .flat_map(|naming| [Some(naming.dir), naming.ino])
            .flatten()
        {
            if !order.contains(&ino) {
                order.push(ino);
            }
        }
        let mut at = 0;
        while at < order.len() {
            if let Inode::Directory(entries) = &self.inodes[usize::from(order[at])] {
                for &(_, ino) in entries.iter() {
                    if !order.contains(&ino) {
                        order.push(ino);
                    }
                }
            }
            at += 1;
        }
    }

    fn renumber(&mut self, order: &[Ino], new: &[Ino]) {
        self.inodes = order
            .iter()
            .map(|&old| self.inodes[usize::from(old)].renumbered(new))
            .collect();
        for naming in self.namings.iter_mut().flatten() {
            naming.dir = new[usize::from(naming.dir)];
            naming.ino = naming.ino.map(|ino| new[usize::from(ino)]);
        }
        // A content that nobody can reach any more is nobody's.
        for inos in [&mut self.dirty, &mut self.cut] {
            inos.retain(|ino| order.contains(ino));
            for ino in inos.iter_mut() {
                *ino = new[usize::from(*ino)];
            }
            inos.sort_unstable();
        }
    }
}

impl Inode {
    fn renumbered(&self, new: &[Ino]) -> Inode {
        match self {
            Inode::File(data) => Inode::File(data.clone()),
            Inode::Directory(entries) => Inode::Directory(Arc::new(
                entries
                    .iter()
                    .map(|(name, ino)| (name.clone(), new[usize::from(*ino)]))
                    .collect(),
            )),
        }
    }
}
