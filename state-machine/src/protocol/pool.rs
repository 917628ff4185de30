//! Changing what somebody made of a pool: read, changed and written again under the pool's placement lock, so that of two
//! changes at once neither is lost (R21).

use crate::call::Call;
use crate::disk::{Change, Content, Dir, Disk, Name, Place, Read};
use crate::id::PoolName;
use crate::protocol::lock::lock_in_turn;
use crate::record::{Damaged, Ground, Pool};

/// What changing a pool came to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Changed {
    /// This is its record now.
    Is(Pool),
    /// Somebody has made it already, and it was to be new.
    Exists,
    /// What it holds cannot be read, and was left as it is (R21).
    Damaged(Damaged),
    /// Others were in the way all the time.
    Busy,
}

/// What is to be changed. What is absent stays.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Wish {
    /// How many slots there are to be.
    pub slots: Option<u32>,
    /// Whether admission is to pause.
    pub paused: Option<bool>,
    /// What the slots are to hold.
    pub ground: Ground,
    /// Whether nobody may have made anything of it yet: of two that make a pool at once, one does.
    pub new: bool,
}

/// Change a pool's record, making it where there is none.
pub fn change_pool<D: Disk>(
    disk: &mut D,
    pool: &PoolName,
    wish: Wish,
) -> Result<Changed, D::Fault> {
    disk.begins(|_| Call::ChangePool {
        pool: pool.clone(),
        slots: wish.slots,
        paused: wish.paused,
        ground: wish.ground.clone(),
        new: wish.new,
    });
    let dir = Dir::Pool(pool.clone());
    if disk.mkdir(&dir)? == Change::Absent {
        // A store that is older than pools.
        disk.mkdir(&Dir::Pools)?;
        disk.sync(&Place::Dir(Dir::Root))?;
        disk.mkdir(&dir)?;
    }
    let Some(lock) = lock_placement(disk, &dir)? else {
        return Ok(Changed::Busy);
    };
    let changed = change_locked(disk, pool, &wish)?;
    disk.release(lock)?;
    Ok(changed)
}

fn change_locked<D: Disk>(disk: &mut D, pool: &PoolName, wish: &Wish) -> Result<Changed, D::Fault> {
    let mut record = match disk.read_pool(pool)? {
        Read::Value(_) if wish.new => return Ok(Changed::Exists),
        Read::Value(record) => record,
        Read::Absent => Pool::default(),
        Read::Damaged(why) => return Ok(Changed::Damaged(why)),
    };
    record.slots = wish.slots.or(record.slots);
    record.paused = wish.paused.unwrap_or(record.paused);
    record.ground = wish.ground.over(&record.ground);
    let dir = Dir::Pool(pool.clone());
    let new = dir.at(Name::NewPool);
    let written = disk.write(&new, &Content::Pool(Box::new(record.clone())))? == Change::Done;
    disk.sync(&new)?;
    if !written || disk.rename(&new, &dir.at(Name::Pool))? != Change::Done {
        let why = "something else stands in its place, or its directory was taken away";
        return Ok(Changed::Damaged(Damaged(why.into())));
    }
    for named in [dir, Dir::Pools] {
        disk.sync(&Place::Dir(named))?;
    }
    Ok(Changed::Is(record))
}

/// What forgetting a pool came to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PoolForgotten {
    /// It is as the configuration says from here on, or there is none.
    Yes,
    /// Nobody had made anything of it.
    No,
    /// What it holds cannot be read, and was left as it is (R21).
    Damaged(Damaged),
    /// Others were in the way all the time.
    Busy,
}

/// Forget what somebody made of a pool; one that the configuration has is as it says then. Its lock stays, so that there is
/// only ever one (F18).
pub fn forget_pool<D: Disk>(disk: &mut D, pool: &PoolName) -> Result<PoolForgotten, D::Fault> {
    disk.begins(|_| Call::ForgetPool { pool: pool.clone() });
    if disk.read_pool(pool)? == Read::Absent {
        return Ok(PoolForgotten::No);
    }
    let dir = Dir::Pool(pool.clone());
    let Some(lock) = lock_placement(disk, &dir)? else {
        return Ok(PoolForgotten::Busy);
    };
    let forgotten = match disk.read_pool(pool)? {
        Read::Absent => PoolForgotten::No,
        Read::Damaged(why) => PoolForgotten::Damaged(why),
        Read::Value(_) => {
            disk.unlink(&dir.at(Name::Pool))?;
            disk.sync(&Place::Dir(dir))?;
            PoolForgotten::Yes
        }
    };
    disk.release(lock)?;
    Ok(forgotten)
}

/// The placement lock, or `None` when others have had it all the time.
fn lock_placement<D: Disk>(disk: &mut D, dir: &Dir) -> Result<Option<D::Handle>, D::Fault> {
    lock_in_turn(disk, &dir.at(Name::PlacementLock))
}
