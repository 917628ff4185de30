//! Every job of a store: finding them, looking at each, and putting them in order. What is true about one is decided by
//! the protocol `look`; this room only does it many times, and fast. What has ended, and is on disk as it was, need not be
//! read again: `remembered.rs`.

use std::sync::atomic::{AtomicUsize, Ordering};

use state_machine::disk::{Dir, Disk, Place};
use state_machine::id::JobId;
use state_machine::protocol::look::{Look, View, look};

use super::Store;
use super::remembered::{Line, Remembered, learn};
use crate::disk::FsDisk;
use crate::error::{Error, Result};

/// Every job of a store.
#[derive(Debug, Default)]
pub struct Listing {
    /// What is true about each readable job, oldest first.
    pub jobs: Vec<View>,
    /// The directories that are no readable job, each with the reason; they hide nothing else (R21).
    pub damaged: Vec<Error>,
}

/// What looking at an entry of `jobs/` came to.
enum Seen<T> {
    /// A job: its place among those that were made with it, and what is made of it.
    Job(u32, T),
    /// It was forgotten meanwhile.
    Gone,
    /// It cannot be read.
    Damaged(Error),
}

impl Store {
    /// The id of every entry that can be a job, readable or not, oldest first.
    pub(crate) fn ids(&self) -> Result<Vec<JobId>> {
        Ok(self.entries()?.0)
    }

    /// The ids of every entry of the store, readable or not, oldest first, and the entries that can be none.
    pub(crate) fn entries(&self) -> Result<(Vec<JobId>, Vec<Error>)> {
        let mut ids = Vec::new();
        let mut strange = Vec::new();
        for name in self.disk().list(&Dir::Jobs)?.unwrap_or_default() {
            let parsed = name
                .to_text()
                .ok_or_else(|| "its name is not UTF-8".to_owned())
                .and_then(|word| JobId::parse(&word).map_err(|why| format!("its name {why}")));
            match parsed {
                Ok(id) => ids.push((made_at_ms(id.as_str()), id)),
                Err(why) => strange.push(Error::Damaged {
                    path: self.disk.path(&Dir::Jobs.at(name)),
                    why,
                }),
            }
        }
        ids.sort_unstable();
        Ok((ids.into_iter().map(|(_, id)| id).collect(), strange))
    }

    /// What is true about every job, oldest first.
    ///
    /// # Errors
    ///
    /// Only when the listing itself cannot be had: a job that cannot be read is among [`Listing::damaged`].
    pub fn list(&self) -> Result<Listing> {
        let (ids, mut damaged) = self.entries()?;
        let seen = shared_out(&ids, &self.disk, |disk, id| self.see(disk, id, |view| view));
        let jobs = in_order(&ids, seen, &mut damaged);
        Ok(Listing { jobs, damaged })
    }

    /// As [`Store::list`], but that no command has its environment: most of a descriptor, and what few ask for.
    pub(crate) fn list_outlines(&self) -> Result<Listing> {
        let (jobs, damaged) = self.show_all(|view| view)?;
        Ok(Listing { jobs, damaged })
    }

    /// What `show` makes of every job, oldest first, and what cannot be read. It is called on several threads, and what it
    /// does not keep takes no memory; its views have no environments.
    pub(crate) fn show_all<T: Send>(
        &self,
        show: impl Fn(View) -> T + Sync,
    ) -> Result<(Vec<T>, Vec<Error>)> {
        let (entries, remembered) = if Remembered::is_there(self) {
            at_once(|| self.entries(), || Remembered::of(self))
        } else {
            (self.entries(), Remembered::of(self))
        };
        let (ids, mut damaged) = entries?;
        let found = remembered.find(&ids);
        let learns = found.is_worth_learning();
        let disk = self.disk.without_environments();
        let ids_and_lines: Vec<_> = ids.iter().zip(&found.lines).collect();
        let seen = shared_out(&ids_and_lines, &disk, |disk, &(id, line)| {
            if let Some(line) = *line
                && let Some(view) = remembered.view(id, line)
            {
                let seen = Seen::Job(view.descriptor.order, show(view));
                return (seen, Some(Line::Kept(line)));
            }
            let stamp = if learns { remembered.stamp(id) } else { None };
            let mut learned = None;
            let seen = self.see(disk, id, |view| {
                learned = stamp.and_then(|stamp| learn(&stamp, &view));
                show(view)
            });
            (seen, learned)
        });
        let mut lines = Vec::with_capacity(ids.len());
        let seen = seen.map(|(seen, line)| {
            lines.extend(line);
            seen
        });
        let jobs = in_order(&ids, seen, &mut damaged);
        remembered.write(self, &found, &lines);
        Ok((jobs, damaged))
    }

    /// What is true about these jobs, in their order, without their environments: [`Error::Gone`] about one that was forgotten,
    /// and [`Error::Damaged`] about one that cannot be read.
    pub(crate) fn outlines(&self, ids: &[JobId]) -> Vec<Result<View>> {
        let disk = self.disk.without_environments();
        let seen = shared_out(ids, &disk, |disk, id| self.see(disk, id, |view| view));
        let looked = ids.iter().zip(seen).map(|(id, seen)| match seen {
            Seen::Job(_, view) => Ok(view),
            Seen::Gone => Err(Error::Gone(id.clone())),
            Seen::Damaged(error) => Err(error),
        });
        looked.collect()
    }

    /// What is true about a job, and what `show` makes of it.
    fn see<T>(&self, disk: &mut FsDisk, id: &JobId, show: impl FnOnce(View) -> T) -> Seen<T> {
        match look(disk, id) {
            Ok(Look::Job(view)) => Seen::Job(view.descriptor.order, show(*view)),
            Ok(Look::Gone) => Seen::Gone,
            Ok(Look::Damaged { file, why }) => Seen::Damaged(Error::Damaged {
                path: self.disk.path(&Place::of_job(id, file)),
                why: why.0,
            }),
            Err(error) => Seen::Damaged(error.into()),
        }
    }
}

/// What was made of each of the jobs, oldest first. Those that cannot be read are put with the `damaged`.
fn in_order<T>(
    ids: &[JobId],
    seen: impl Iterator<Item = Seen<T>>,
    damaged: &mut Vec<Error>,
) -> Vec<T> {
    let mut jobs = Vec::with_capacity(ids.len());
    let mut in_order = true;
    for (id, seen) in ids.iter().zip(seen) {
        match seen {
            Seen::Job(order, shown) => {
                in_order &= order == 0;
                jobs.push((made_at_ms(id.as_str()), order, shown));
            }
            Seen::Gone => {}
            Seen::Damaged(error) => damaged.push(error),
        }
    }
    // Those that were made together have one time, and numbers that a word does not sort by.
    if !in_order {
        jobs.sort_by_key(|&(made_at_ms, order, _)| (made_at_ms, order));
    }
    jobs.into_iter().map(|(_, _, shown)| shown).collect()
}

/// Do both, one of them on a thread of its own.
fn at_once<A: Send, B: Send>(one: impl FnOnce() -> A, other: impl FnOnce() -> B + Send) -> (A, B) {
    std::thread::scope(|scope| {
        let other = scope.spawn(other);
        (one(), joined(other))
    })
}

/// See each of these jobs. Reading thousands of records goes further than one core, so it is shared out: in small shares, as
/// the cores may have other things to do.
fn shared_out<I: Sync, T: Send>(
    jobs: &[I],
    disk: &FsDisk,
    see: impl Fn(&mut FsDisk, &I) -> T + Sync,
) -> impl Iterator<Item = T> {
    const SHARE: usize = 250;
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    let shares: Vec<&[I]> = jobs.chunks(SHARE).collect();
    let next = AtomicUsize::new(0);
    let see_some = || {
        let mut disk = disk.clone();
        let mut seen = Vec::new();
        while let number = next.fetch_add(1, Ordering::Relaxed)
            && let Some(share) = shares.get(number)
        {
            let share: Vec<T> = share.iter().map(|job| see(&mut disk, job)).collect();
            seen.push((number, share));
        }
        seen
    };
    let mut seen = std::thread::scope(|scope| {
        let others = 1..threads.min(shares.len());
        let others: Vec<_> = others.map(|_| scope.spawn(see_some)).collect();
        let mut seen = see_some();
        seen.extend(others.into_iter().flat_map(joined));
        seen
    });
    seen.sort_unstable_by_key(|&(number, _)| number);
    seen.into_iter().flat_map(|(_, share)| share)
}

fn joined<T>(thread: std::thread::ScopedJoinHandle<'_, T>) -> T {
    thread
        .join()
        .unwrap_or_else(|panic| std::panic::resume_unwind(panic))
}

/// What jobs are ordered by: when they were made, as their ids say, and then the id.
pub(super) fn age(id: &str) -> (u64, &str) {
    (made_at_ms(id), id)
}

/// When a job was made, as its id says, in ms since the epoch.
pub(crate) fn made_at_ms(id: &str) -> u64 {
    let digits = id.split('-').next().unwrap_or_default();
    digits.parse().unwrap_or(u64::MAX)
}
