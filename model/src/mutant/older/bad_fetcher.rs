//! Fetchers that do one thing too early, or not at all.

use state_machine::disk::{Content, Create};
use state_machine::protocol::pull::{Move, keep, make_staging, register};
use state_machine::pull::part::{Part as Record, Run};

use crate::role::fetcher::{boot_name, final_place, home, keystone, site, tag};
use crate::role::{Outcome, Part};
use crate::stage::Stage;

/// Make a part and write into it, and do not lock it.
pub(super) fn without_lock<D: Stage>(disk: &mut D, _: &Part) -> Result<Outcome, D::Fault> {
    make_staging(disk, &site(0).staging)?;
    let Create::Created(part) = disk.create(&site(0).part())? else {
        return Ok(Outcome::LeftToFetcher);
    };
    disk.pour(&part, 0, 0, 1)?;
    disk.close(part)?;
    Ok(Outcome::Quiet)
}

/// Record a block before it is written.
pub(super) fn record_first<D: Stage>(disk: &mut D, part: &Part) -> Result<Outcome, D::Fault> {
    make_staging(disk, &site(0).staging)?;
    let Create::Created(open) = disk.create(&site(0).part())? else {
        return Ok(Outcome::LeftToFetcher);
    };
    disk.in_turn(&open)?;
    disk.pour(&open, 0, 1, 1)?;
    let record = Record {
        etag: Some(tag(1)),
        total_bytes: Some(2),
        runs: vec![Run {
            done: 2,
            ..Run::at(0)
        }],
        ..Record::new(&part.wish.wanted(&boot_name(0)))
    };
    keep(disk, &site(0), &record)?;
    disk.pour(&open, 0, 0, 1)?;
    disk.close(open)?;
    Ok(Outcome::Quiet)
}

/// Make files known before they are in place.
pub(super) fn keystone_first<D: Stage>(disk: &mut D, _: &Part) -> Result<Outcome, D::Fault> {
    make_staging(disk, &site(0).staging)?;
    let keystone = keystone();
    disk.write(&keystone.new, &Content::Raw(keystone.bytes))?;
    disk.rename(&keystone.new, &keystone.to)?;
    let moves = [Move {
        whole: site(0).whole(),
        to: final_place(0),
    }];
    register(disk, &moves, &[home()], None)?;
    Ok(Outcome::Quiet)
}
