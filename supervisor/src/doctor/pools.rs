//! Pools and their slots: the records of both, and whether what a slot is to hold stands in it.

use std::path::Path;

use state_machine::config::PoolSetup;
use state_machine::disk::{Dir, Disk, Name, Read};
use state_machine::id::PoolName;
use state_machine::protocol::slot::look::{LookSlot, Standing, look_at_slot};
use state_machine::protocol::slot::place::numbers;
use state_machine::record::Slot;
use state_machine::slot::State;

use super::root::of_lock;
use super::{Finding, Mend, kind, modes, or_unreadable, stray, unreadable};
use crate::error::{Error, Result};
use crate::slots::workspace_of;
use crate::store::Store;

/// Every pool that somebody made something of, and every slot that was made.
pub(super) fn examine(store: &Store) -> Result<Vec<Finding>> {
    let mut findings = Vec::new();
    let mut disk = store.disk();
    for name in disk.list(&Dir::Pools)?.unwrap_or_default() {
        let parsed = name.to_text().map(|word| PoolName::parse(&word));
        let Some(Ok(pool)) = parsed else {
            let shown = String::from_utf8_lossy(&name.to_bytes()).into_owned();
            let path = disk.path(&Dir::Pools.at(name));
            findings.push(stray(&path, &format!("pools/{shown}")));
            continue;
        };
        let seen = of_pool(store, &pool, &mut findings);
        findings.extend(or_unreadable(seen.map(|()| None)));
        let setup = store.pool(&pool).ok();
        let numbers = match numbers(&mut disk, &pool) {
            Ok(numbers) => numbers,
            Err(error) => {
                findings.push(unreadable(&error.into()));
                continue;
            }
        };
        for number in numbers {
            let seen = of_slot(store, &pool, number, setup.as_ref(), &mut findings);
            findings.extend(or_unreadable(seen.map(|()| None)));
        }
    }
    Ok(findings)
}

fn of_pool(store: &Store, pool: &PoolName, findings: &mut Vec<Finding>) -> Result<()> {
    let mut disk = store.disk();
    let dir = Dir::Pool(pool.clone());
    let entries = [Name::Pool, Name::PlacementLock, Name::MaintainLock];
    for dir in [&dir, &Dir::Slots(pool.clone())] {
        let path = disk.dir(dir);
        findings.extend(modes::of_entry(&path, &shown(store, &path)));
    }
    for name in entries {
        let path = disk.path(&dir.at(name.clone()));
        let shown = shown(store, &path);
        findings.extend(modes::of_entry(&path, &shown));
        if name != Name::Pool {
            findings.extend(of_lock(&path, &shown));
        }
    }
    if let Read::Damaged(why) = disk.read_pool(pool)? {
        findings.push(
            Finding::new(
                kind::POOL_GARBAGE,
                format!("pools/{pool}/pool.json cannot be read: {why}"),
                format!(
                    "nothing is started in the pool; bring the file back from a copy, or have 'outlive doctor --fix' set it aside and pause the pool, then: outlive pool set {pool} …, outlive pool resume {pool}"
                ),
            )
            .at(disk.path(&dir.at(Name::Pool)))
            .mended_by(Mend::Pause(pool.clone())),
        );
    }
    Ok(())
}

/// A path as it is called in a store.
fn shown(store: &Store, path: &Path) -> String {
    let inside = path.strip_prefix(store.root()).unwrap_or(path);
    inside.display().to_string()
}

fn of_slot(
    store: &Store,
    pool: &PoolName,
    number: u32,
    setup: Option<&PoolSetup>,
    findings: &mut Vec<Finding>,
) -> Result<()> {
    let mut disk = store.disk();
    let dir = Dir::Slot(pool.clone(), number);
    for (place, shown) in [
        (disk.dir(&dir), format!("the slot {pool}/{number}")),
        (
            disk.path(&dir.at(Name::Slot)),
            format!("slot.json of {pool}/{number}"),
        ),
        (
            disk.path(&dir.at(Name::Occupancy)),
            format!("occupancy of {pool}/{number}"),
        ),
    ] {
        findings.extend(modes::of_entry(&place, &shown));
    }
    let occupancy = disk.path(&dir.at(Name::Occupancy));
    findings.extend(of_lock(&occupancy, &shown(store, &occupancy)));
    let record = disk.path(&dir.at(Name::Slot));
    if !disk.exists(&dir.at(Name::Occupancy))? && disk.exists(&dir.at(Name::Slot))? {
        let what = format!("the occupancy lock of {pool}/{number} is missing");
        let advice = "'outlive doctor --fix' makes it, and so does whoever is given the slot next";
        let finding = Finding::new(kind::LOCK_MISSING, what, advice).at(&occupancy);
        findings.push(finding.mended_by(Mend::Lock(occupancy)));
    }
    let garbage = |why: &dyn std::fmt::Display| {
        Finding::new(
            kind::SLOT_GARBAGE,
            format!("slot.json of {pool}/{number} cannot be read: {why}"),
            "nobody gets the slot; bring the file back from a copy, or have 'outlive doctor --fix' set it aside, so that the slot is looked into before it is used",
        )
        .at(&record)
        .mended_by(Mend::Slot(pool.clone(), number))
    };
    let read = disk.read_slot(pool, number)?;
    match &read {
        Read::Damaged(why) => {
            findings.push(if super::job::is_of_newer(&record, why)? {
                Finding::new(
                    kind::NEWER,
                    format!("slot.json of {pool}/{number} cannot be read: {why}"),
                    "use the version that wrote it; if none did, move the file away",
                )
                .at(&record)
            } else {
                garbage(why)
            });
            return Ok(());
        }
        Read::Value(_) | Read::Absent => {}
    }
    if let LookSlot::Slot(view) = look_at_slot(&mut disk, pool, number)? {
        findings.extend(of_standing(store, pool, number, &view.standing));
        if let Read::Value(slot) = &read {
            findings.extend(of_place(store, pool, number, slot, &view.standing, setup)?);
        }
    }
    Ok(())
}

fn of_standing(
    store: &Store,
    pool: &PoolName,
    number: u32,
    standing: &Standing,
) -> Option<Finding> {
    let finding = match standing {
        Standing::Broken(why) => Finding::new(
            kind::SLOT_BROKEN,
            format!("the slot {pool}/{number} is broken: {why}"),
            format!("mend it with: outlive pool repair {pool}/{number}"),
        ),
        Standing::Left => Finding::new(
            kind::SLOT_LEFT,
            format!("whoever had the slot {pool}/{number} is gone and did not give it back"),
            "it is looked into before anybody gets it; nothing need be done",
        ),
        _ => return None,
    };
    Some(finding.at(store.disk().dir(&Dir::Slot(pool.clone(), number))))
}

/// Whether what stands in a slot that was had before is what it must be, as far as that can be seen without git.
fn of_place(
    store: &Store,
    pool: &PoolName,
    number: u32,
    slot: &Slot,
    standing: &Standing,
    setup: Option<&PoolSetup>,
) -> Result<Option<Finding>> {
    let Some(setup) = setup.filter(|setup| setup.ground.has_place()) else {
        return Ok(None);
    };
    if slot.state == State::Broken {
        return Ok(None);
    }
    let workspace = workspace_of(store, pool, number, &setup.ground);
    let wrong = workspace.seen_from_outside().map_err(|why| Error::Place {
        slot: format!("{pool}/{number}"),
        why: why.to_string(),
    })?;
    let Some(wrong) = wrong else {
        return Ok(None);
    };
    let kind = match workspace.dir().symlink_metadata() {
        Err(_) => kind::PLACE_MISSING,
        Ok(_) => kind::PLACE_ASTRAY,
    };
    let what = format!("what the slot {pool}/{number} is to hold is not there: {wrong}");
    Ok(Some(match standing {
        Standing::Session(session) => Finding::new(
            kind,
            what,
            format!(
                "put it back, or give it up with: outlive pool close {} --force",
                session.token
            ),
        )
        .at(workspace.dir()),
        // Somebody is about to leave, and may be taking it away.
        Standing::Held => return Ok(None),
        Standing::Claimed(_) => {
            let advice = "somebody works there; once he has left the slot is found broken";
            Finding::new(kind, what, advice).at(workspace.dir())
        }
        Standing::Idle | Standing::Left | Standing::Broken(_) => Finding::new(
            kind,
            what,
            format!(
                "put it back, or have 'outlive doctor --fix' call the slot broken, and mend that with: outlive pool repair {pool}/{number}"
            ),
        )
        .at(workspace.dir())
        .mended_by(Mend::Break(pool.clone(), number, wrong)),
    }))
}
