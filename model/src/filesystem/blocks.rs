//! What is in a file that is fetched: its blocks, each of which is of some version of the file, at the place where that has it.
//! A block is written whole, unless whoever writes it dies; then it is [`TORN`].

use super::{Data, Filesystem, Ino, Inode, Owner};
use crate::effect::Handle;
use crate::shared::Shared;

/// A block of no version: a hole, or one that was cut short.
pub const TORN: u8 = 0;

impl Data {
    /// The blocks of a file that is fetched; `None` where it is another file.
    pub fn blocks(&self) -> Option<&[u8]> {
        match self {
            Data::Empty => Some(&[]),
            Data::Blocks(blocks) => Some(blocks),
            _ => None,
        }
    }

    fn of_blocks(blocks: Vec<u8>) -> Data {
        if blocks.is_empty() {
            Data::Empty
        } else {
            Data::Blocks(blocks)
        }
    }
}

impl Filesystem {
    /// The blocks of what an owner has open under a number.
    pub fn blocks_of(&self, owner: Owner, handle: Handle) -> &[u8] {
        let data = self.data_of(owner, handle);
        data.and_then(Data::blocks).unwrap_or_default()
    }

    /// Write one block into what is open. A file that is too short has holes before it.
    pub(super) fn put_block(&mut self, owner: Owner, handle: Handle, at: usize, block: u8) {
        let mut blocks = self.blocks_of(owner, handle).to_vec();
        if blocks.len() <= at {
            blocks.resize(at + 1, TORN);
        }
        blocks[at] = block;
        self.fill_open(owner, handle, blocks);
    }

    /// Cut what is open after so many blocks.
    pub(super) fn shorten(&mut self, owner: Owner, handle: Handle, count: usize) {
        let mut blocks = self.blocks_of(owner, handle).to_vec();
        let ino: Ino = self.open[self.expect(owner, handle)].ino;
        if count < blocks.len() {
            self.note_cut(ino);
        }
        blocks.resize(count, TORN);
        self.fill_open(owner, handle, blocks);
    }

    fn fill_open(&mut self, owner: Owner, handle: Handle, blocks: Vec<u8>) {
        let ino: Ino = self.open[self.expect(owner, handle)].ino;
        self.inodes[usize::from(ino)] = Inode::File(Shared::new(Data::of_blocks(blocks)));
        self.note_content(ino);
    }
}

/// What may be left of blocks that are not on the medium yet, where these are; `None` where neither is of this kind. What the
/// medium has of it stays. Of what was added each block is there or is a hole, and the file is as long as it got. A file that
/// was cut is there as it was, or as what was added to nothing.
pub(super) fn fates(medium: &Data, now: &Data, was_cut: bool) -> Option<Vec<Data>> {
    let is_of_blocks = |data: &Data| matches!(data, Data::Blocks(_));
    if !is_of_blocks(medium) && !is_of_blocks(now) {
        return None;
    }
    let (old, new) = (medium.blocks()?, now.blocks()?);
    let is_same = |(old, new): &(&u8, &u8)| old == new;
    let same = old.iter().zip(new).take_while(is_same).count();
    let base = if was_cut { 0 } else { same };
    let mut fates = vec![old.to_vec()];
    for length in base..=new.len() {
        let added = length - base;
        for holes in 0..1u32 << added {
            let mut blocks = new[..length].to_vec();
            for nth in (0..added).filter(|nth| holes & (1 << nth) != 0) {
                blocks[base + nth] = TORN;
            }
            if !fates.contains(&blocks) {
                fates.push(blocks);
            }
        }
    }
    Some(fates.into_iter().map(Data::of_blocks).collect())
}
