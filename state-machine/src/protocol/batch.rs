//! Making many jobs with one sync. Each of them is made as any other (R8): built in `staging/`, locked from its first
//! instant, renamed into `jobs/` when it is whole. Nobody runs one before the maker lets it go, and the maker lets none go
//! before all of them can be seen and survive a loss of power.

use crate::call::Call;
use crate::disk::{Change, Content, Dir, Disk, Name, Place};
use crate::id::{JobId, Ticket, slug};
use crate::protocol::create::{discard, stage, sync_jobs};
use crate::protocol::forget::{make_final, purge};
use crate::protocol::hold::{Holder, newborn};
use crate::record::Descriptor;

/// The holders of the jobs of a batch.
pub type Holders<D> = Vec<Holder<<D as Disk>::Handle>>;

/// A job of a batch on its way in.
struct Staged<H> {
    dir: Dir,
    lock: H,
}

/// Make a job from each descriptor and hold them, in the same order; `None` where no room was found in `staging/`, or
/// no id, and then none of them is there. The ids are chosen here, and where one of them comes after another of the batch,
/// that is told by the id that the other has in the descriptors: so it must stand before it, and no two may have the same.
///
/// When this returns, all of them survive a loss of power (R19).
pub fn create_batch<D: Disk>(
    disk: &mut D,
    descriptors: &mut [Descriptor],
    ticket: &Ticket,
) -> Result<Option<Holders<D>>, D::Fault> {
    disk.begins(|_| Call::CreateBatch {
        descriptors: descriptors.to_vec(),
        ticket: ticket.clone(),
    });
    let mut staged = Vec::with_capacity(descriptors.len());
    for (nth, descriptor) in (0..).zip(descriptors.iter()) {
        let Some((dir, lock)) = stage(disk, &ticket.nth(nth).nth(0))? else {
            withdraw(disk, staged, ticket)?;
            return Ok(None);
        };
        describe(disk, &dir, descriptor)?;
        staged.push(Staged { dir, lock });
    }
    disk.sync_all()?;
    for nth in 0..staged.len() {
        if !publish(disk, &staged, descriptors, nth)? {
            withdraw(disk, staged, ticket)?;
            return Ok(None);
        }
        staged[nth].dir = Dir::Job(descriptors[nth].id.clone());
    }
    sync_jobs(disk)?;
    let held = |(job, made): (Staged<D::Handle>, &Descriptor)| {
        newborn(made.id.clone(), job.lock, made.created_at_ms)
    };
    Ok(Some(
        staged.into_iter().zip(&*descriptors).map(held).collect(),
    ))
}

fn describe<D: Disk>(disk: &mut D, dir: &Dir, descriptor: &Descriptor) -> Result<(), D::Fault> {
    let content = Content::Descriptor(Box::new(descriptor.clone()));
    disk.write(&dir.at(Name::Descriptor), &content)?;
    Ok(())
}

/// Let the `nth` job be seen. `false` when no id is free, or its directory is not there any more.
fn publish<D: Disk>(
    disk: &mut D,
    staged: &[Staged<D::Handle>],
    descriptors: &mut [Descriptor],
    nth: usize,
) -> Result<bool, D::Fault> {
    let from = Place::Dir(staged[nth].dir.clone());
    for another in 1..=JobId::COLLISIONS {
        let to = Place::Dir(Dir::Job(descriptors[nth].id.clone()));
        match disk.rename_new(&from, &to)? {
            Change::Done => return Ok(true),
            Change::Exists => {}
            _ => return Ok(false),
        }
        for changed in rename(descriptors, nth, another) {
            let dir = &staged[changed].dir;
            describe(disk, dir, &descriptors[changed])?;
            disk.sync(&dir.at(Name::Descriptor))?;
        }
    }
    Ok(false)
}

/// Give the `nth` job another id, also where later ones come after it. Says whose descriptors that has changed.
fn rename(descriptors: &mut [Descriptor], nth: usize, another: u32) -> Vec<usize> {
    let taken = descriptors[nth].id.clone();
    let free = another_id(descriptors, nth, another);
    descriptors[nth].id = free.clone();
    let mut changed = vec![nth];
    for (later, descriptor) in descriptors.iter_mut().enumerate().skip(nth + 1) {
        for after in &mut descriptor.after {
            if after.job == taken {
                after.job = free.clone();
                changed.push(later);
            }
        }
    }
    changed.dedup();
    changed
}

/// An id that no other of the batch has, and that none of them comes after: it would be taken for that one.
fn another_id(descriptors: &[Descriptor], nth: usize, another: u32) -> JobId {
    let ours = &descriptors[nth];
    let slug = slug(&ours.display_name);
    let is_meant = |id: &JobId| {
        let means = |one: &Descriptor| one.id == *id || one.after.iter().any(|on| on.job == *id);
        descriptors.iter().any(means)
    };
    let ids = (another..).map(|another| {
        JobId::new(
            ours.created_at_ms,
            &format!("{slug}-{another}"),
            ours.order + 1,
        )
    });
    // A batch has fewer ids in it than there are numbers.
    ids.clone()
        .find(|id| !is_meant(id))
        .unwrap_or_else(|| ours.id.clone())
}

/// Take jobs back that were made and not let go yet, the last first: more were to be made with them, and could not be. That
/// needs no room on the disk.
pub fn withdraw_batch<D: Disk>(
    disk: &mut D,
    made: Vec<(JobId, D::Handle)>,
    ticket: &Ticket,
) -> Result<(), D::Fault> {
    disk.begins(|number| Call::WithdrawBatch {
        jobs: made
            .iter()
            .map(|(id, lock)| (id.clone(), number(lock)))
            .collect(),
        ticket: ticket.clone(),
    });
    let made = made.into_iter().rev().map(|(id, lock)| Staged {
        dir: Dir::Job(id),
        lock,
    });
    withdraw(disk, made.collect(), ticket)
}

/// None of them is to be there. Those that can be seen already are ours, and nobody has run one: they leave as a job that is
/// forgotten does (R8).
fn withdraw<D: Disk>(
    disk: &mut D,
    staged: Vec<Staged<D::Handle>>,
    ticket: &Ticket,
) -> Result<(), D::Fault> {
    let mut trashed = Vec::new();
    for (nth, job) in (0..).zip(staged) {
        if let Dir::Job(_) = job.dir {
            let to = ticket.nth(nth);
            let place = Place::Dir(Dir::Trashed(to.clone()));
            disk.rename_new(&Place::Dir(job.dir), &place)?;
            trashed.push(to);
        } else {
            discard(disk, &job.dir)?;
        }
        disk.release(job.lock)?;
    }
    if !trashed.is_empty() {
        make_final(disk)?;
    }
    for ticket in trashed {
        purge(disk, &ticket)?;
    }
    Ok(())
}
