//! Putting whole files under their final names. It can be done again at any point, and fetches nothing (R24).

use crate::disk::{Change, Content, Dir, Disk, Place};

/// A whole file, and where it belongs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Move {
    /// Where it stands, verified.
    pub whole: Place,
    /// Its final name.
    pub to: Place,
}

/// What makes the files known to whoever uses them: it is written when all of them are in place, and not before.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Keystone {
    /// Its final name.
    pub to: Place,
    /// Where it is written, beside that or on the same file system.
    pub new: Place,
    /// What is in it.
    pub bytes: Vec<u8>,
}

/// What registering came to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Registered {
    /// Everything is in place, and survives a loss of power.
    Done,
    /// This file is neither in the staging directory nor in place: somebody took it away.
    Missing(Place),
    /// Something else stands at this final name.
    InTheWay(Place),
}

/// Sync where they stand; move every file to its final name; then sync these directories, those within others first; then write
/// what makes the files known.
pub fn register<D: Disk>(
    disk: &mut D,
    moves: &[Move],
    dirs: &[Dir],
    keystone: Option<&Keystone>,
) -> Result<Registered, D::Fault> {
    // That the records of whole files are gone, before their names can be had by others: one that a loss of power brought back
    // would tell of what those fetch.
    for staging in stagings(moves) {
        disk.sync(&Place::Dir(staging.clone()))?;
    }
    for Move { whole, to } in moves {
        match disk.rename(whole, to)? {
            Change::Done => {}
            // An earlier attempt got as far as this one.
            Change::Absent if disk.exists(to)? => {}
            Change::Absent => return Ok(Registered::Missing(whole.clone())),
            Change::Exists | Change::NotEmpty | Change::NotDirectory => {
                return Ok(Registered::InTheWay(to.clone()));
            }
        }
    }
    for dir in dirs {
        disk.sync(&Place::Dir(dir.clone()))?;
    }
    let Some(keystone) = keystone else {
        return Ok(Registered::Done);
    };
    disk.write(&keystone.new, &Content::Raw(keystone.bytes.clone()))?;
    disk.sync(&keystone.new)?;
    if disk.rename(&keystone.new, &keystone.to)? != Change::Done {
        return Ok(Registered::InTheWay(keystone.to.clone()));
    }
    if let Place::File(dir, _) = &keystone.to {
        disk.sync(&Place::Dir(dir.clone()))?;
    }
    Ok(Registered::Done)
}

/// The directories in which whole files stand.
fn stagings(moves: &[Move]) -> Vec<&Dir> {
    let mut stagings: Vec<&Dir> = Vec::new();
    for Move { whole, .. } in moves {
        if let Place::File(dir, _) = whole
            && !stagings.contains(&dir)
        {
            stagings.push(dir);
        }
    }
    stagings
}
