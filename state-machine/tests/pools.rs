//! Changing what somebody made of a pool, with a death or a fault at every effect. Two changes at once are the model's.

// Only a part of it is needed here.
#[allow(dead_code)]
#[path = "support/fake.rs"]
mod fake;

use fake::{Fake, Fault, How, Image};
use state_machine::disk::{Create, Dir, Disk, Mode, Name};
use state_machine::id::PoolName;
use state_machine::protocol::pool::{Changed, PoolForgotten, Wish, change_pool, forget_pool};
use state_machine::record::{Ground, Pool};

const TWO: Wish = Wish {
    slots: Some(2),
    paused: None,
    ground: Ground::NONE,
    new: false,
};
const PAUSE: Wish = Wish {
    slots: None,
    paused: Some(true),
    ground: Ground::NONE,
    new: false,
};

fn pool() -> PoolName {
    PoolName::parse("web").expect("it is a name")
}

fn dir() -> Dir {
    Dir::Pool(pool())
}

/// What the file says; `None` where there is none.
fn recorded(disk: &Fake) -> Option<Pool> {
    let bytes = disk.image().bytes(&dir().at(Name::Pool))?;
    Some(Pool::decode(bytes).expect("it is whole"))
}

fn change(disk: &mut Fake, wish: Wish) -> Result<Changed, Fault> {
    let changed = change_pool(disk, &pool(), wish);
    assert_eq!(disk.open_handles(), 0, "a handle was kept");
    changed
}

const fn made(slots: Option<u32>, paused: bool) -> Pool {
    Pool {
        slots,
        paused,
        ground: Ground::NONE,
    }
}

#[test]
fn a_change_keeps_what_it_is_not_about() {
    let mut disk = Fake::on(Image::store());
    assert_eq!(
        change(&mut disk, TWO),
        Ok(Changed::Is(made(Some(2), false)))
    );
    assert_eq!(
        change(&mut disk, PAUSE),
        Ok(Changed::Is(made(Some(2), true)))
    );
    assert_eq!(recorded(&disk), Some(made(Some(2), true)));
    let same = change(&mut disk, Wish::default());
    assert_eq!(same, Ok(Changed::Is(made(Some(2), true))));
    assert_eq!(forget_pool(&mut disk, &pool()), Ok(PoolForgotten::Yes));
    assert_eq!(recorded(&disk), None);
    assert_eq!(forget_pool(&mut disk, &pool()), Ok(PoolForgotten::No));
    assert_eq!(disk.open_handles(), 0);
    // The lock stays, so that there is only ever one (F18).
    assert!(disk.image().bytes(&dir().at(Name::PlacementLock)).is_some());
    assert_eq!(change(&mut disk, PAUSE), Ok(Changed::Is(made(None, true))));
}

#[test]
fn of_two_that_make_a_pool_one_does_and_the_other_changes_nothing() {
    let mut disk = Fake::on(Image::store());
    let make = |slots| Wish {
        slots: Some(slots),
        new: true,
        ..Wish::default()
    };
    assert_eq!(
        change(&mut disk, make(2)),
        Ok(Changed::Is(made(Some(2), false)))
    );
    assert_eq!(change(&mut disk, make(3)), Ok(Changed::Exists));
    assert_eq!(recorded(&disk), Some(made(Some(2), false)));
    assert_eq!(forget_pool(&mut disk, &pool()), Ok(PoolForgotten::Yes));
    assert_eq!(
        change(&mut disk, make(3)),
        Ok(Changed::Is(made(Some(3), false)))
    );
}

#[test]
fn a_store_that_is_older_than_pools_gets_them() {
    let mut image = Image::store();
    image.remove(&Dir::Pools);
    let mut disk = Fake::on(image);
    assert_eq!(forget_pool(&mut disk, &pool()), Ok(PoolForgotten::No));
    assert_eq!(
        change(&mut disk, TWO),
        Ok(Changed::Is(made(Some(2), false)))
    );
}

#[test]
fn whatever_a_change_dies_in_the_pool_is_as_before_or_as_wished() {
    for before in [None, Some(made(Some(5), false))] {
        for how in How::ALL {
            for k in 0.. {
                let mut disk = Fake::on(Image::store());
                if let Some(before) = &before {
                    change(
                        &mut disk,
                        Wish {
                            slots: before.slots,
                            ..Wish::default()
                        },
                    )
                    .expect("it works");
                }
                disk.fail_at(k, how);
                let changed = change(&mut disk, PAUSE);
                if disk.is_armed() {
                    break;
                }
                assert_eq!(changed, Err(Fault), "a fault was swallowed");
                let slots = before.as_ref().and_then(|before| before.slots);
                let wished = made(slots, true);
                let is = recorded(&disk);
                assert!(is == before || is.as_ref() == Some(&wished), "{is:?}");
                assert_eq!(change(&mut disk, PAUSE), Ok(Changed::Is(wished.clone())));
                assert_eq!(recorded(&disk), Some(wished));
            }
        }
    }
}

#[test]
fn whatever_forgetting_dies_in_it_is_forgotten_the_next_time() {
    for how in How::ALL {
        for k in 0.. {
            let mut disk = Fake::on(Image::store());
            change(&mut disk, TWO).expect("it works");
            disk.fail_at(k, how);
            let forgotten = forget_pool(&mut disk, &pool());
            assert_eq!(disk.open_handles(), 0);
            if disk.is_armed() {
                break;
            }
            assert_eq!(forgotten, Err(Fault));
            assert!(matches!(
                recorded(&disk),
                None | Some(Pool { slots: Some(2), .. })
            ));
            assert!(forget_pool(&mut disk, &pool()).is_ok());
            assert_eq!(recorded(&disk), None);
        }
    }
}

#[test]
fn what_cannot_be_read_is_left_as_it_is() {
    let mut disk = Fake::on(Image::store());
    change(&mut disk, TWO).expect("it works");
    for garbage in [&b"{"[..], b"", b"[1]", b"{\"slots\":-1}"] {
        disk.image_mut().put(&dir().at(Name::Pool), garbage);
        let before = disk.image().visible();
        let changed = change(&mut disk, PAUSE);
        assert!(matches!(changed, Ok(Changed::Damaged(_))), "{changed:?}");
        let forgotten = forget_pool(&mut disk, &pool());
        assert!(
            matches!(forgotten, Ok(PoolForgotten::Damaged(_))),
            "{forgotten:?}"
        );
        assert_eq!(disk.image().visible(), before, "R21");
        assert_eq!(disk.open_handles(), 0);
    }
}

#[test]
fn while_somebody_has_the_placement_lock_nothing_is_changed() {
    let mut disk = Fake::on(Image::store());
    change(&mut disk, TWO).expect("it works");
    let place = dir().at(Name::PlacementLock);
    for mode in [Mode::Shared, Mode::Exclusive] {
        let Ok(state_machine::disk::Open::Opened(lock)) = disk.open(&place, mode) else {
            panic!("it stands");
        };
        assert_eq!(disk.lock(&lock, mode), Ok(true));
        assert_eq!(change_pool(&mut disk, &pool(), PAUSE), Ok(Changed::Busy));
        assert_eq!(forget_pool(&mut disk, &pool()), Ok(PoolForgotten::Busy));
        assert_eq!(recorded(&disk), Some(made(Some(2), false)));
        drop(lock);
    }
    assert_eq!(
        change(&mut disk, PAUSE),
        Ok(Changed::Is(made(Some(2), true)))
    );
    // A lock that is made in between is another's.
    let mut disk = Fake::on(Image::store());
    assert!(disk.mkdir(&dir()).is_ok());
    let Ok(Create::Created(lock)) = disk.create(&place) else {
        panic!("there is none yet");
    };
    assert_eq!(disk.lock(&lock, Mode::Exclusive), Ok(true));
    assert_eq!(change_pool(&mut disk, &pool(), TWO), Ok(Changed::Busy));
    drop(lock);
}

#[test]
fn where_a_directory_stands_in_its_stead_nobody_is_told_that_it_was_changed() {
    let mut disk = Fake::on(Image::store());
    change(&mut disk, TWO).expect("it works");
    disk.image_mut().put_dir(&dir().at(Name::NewPool));
    let changed = change(&mut disk, PAUSE);
    assert!(!matches!(changed, Ok(Changed::Is(_))), "{changed:?}");
    assert_eq!(recorded(&disk), Some(made(Some(2), false)));
}
