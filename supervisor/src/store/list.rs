//! Every job of a store: finding them, looking at each, and putting them in order. What is true about one is decided by
//! the protocol `look`; this room only does it many times, and fast. Nothing is remembered from one listing to the next.

use state_machine::disk::{Dir, Disk, Place};
use state_machine::id::JobId;
use state_machine::protocol::look::{Look, View, look};

use super::Store;
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
                Ok(id) => ids.push((made_at_ms(&id), id)),
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
        self.list_on(&self.disk)
    }

    /// As [`Store::list`], but that no command has its environment: most of a descriptor, and what few ask for.
    pub(crate) fn list_outlines(&self) -> Result<Listing> {
        self.list_on(&self.disk.without_environments())
    }

    fn list_on(&self, disk: &FsDisk) -> Result<Listing> {
        let (jobs, damaged) = self.seen(disk, |view| view)?;
        Ok(Listing { jobs, damaged })
    }

    /// What `show` makes of every job, oldest first, and what cannot be read. It is called on several threads, and what it
    /// does not keep takes no memory; its views have no environments.
    pub(crate) fn show_all<T: Send>(
        &self,
        show: impl Fn(View) -> T + Sync,
    ) -> Result<(Vec<T>, Vec<Error>)> {
        self.seen(&self.disk.without_environments(), show)
    }

    fn seen<T: Send>(
        &self,
        disk: &FsDisk,
        show: impl Fn(View) -> T + Sync,
    ) -> Result<(Vec<T>, Vec<Error>)> {
        let (ids, mut damaged) = self.entries()?;
        let see = |disk: &mut FsDisk, id: &JobId| match look(disk, id) {
            Ok(Look::Job(view)) => Seen::Job(view.descriptor.order, show(*view)),
            Ok(Look::Gone) => Seen::Gone,
            Ok(Look::Damaged { file, why }) => Seen::Damaged(Error::Damaged {
                path: self.disk.path(&Place::of_job(id, file)),
                why: why.0,
            }),
            Err(error) => Seen::Damaged(error.into()),
        };
        let mut jobs = Vec::with_capacity(ids.len());
        let mut in_order = true;
        for (id, seen) in ids.iter().zip(shared_out(&ids, disk, see)) {
            match seen {
                Seen::Job(order, shown) => {
                    in_order &= order == 0;
                    jobs.push((made_at_ms(id), order, shown));
                }
                Seen::Gone => {}
                Seen::Damaged(error) => damaged.push(error),
            }
        }
        // Those that were made together have one time, and numbers that a word does not sort by.
        if !in_order {
            jobs.sort_by_key(|&(made_at_ms, order, _)| (made_at_ms, order));
        }
        Ok((
            jobs.into_iter().map(|(_, _, shown)| shown).collect(),
            damaged,
        ))
    }
}

/// See each of these jobs. Reading thousands of records goes further than one core, so it is shared out.
fn shared_out<T: Send>(
    ids: &[JobId],
    disk: &FsDisk,
    see: impl Fn(&mut FsDisk, &JobId) -> T + Sync,
) -> Vec<T> {
    const WORTH_A_THREAD: usize = 500;
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    let share = ids.len().div_ceil(threads).max(WORTH_A_THREAD);
    let see_all = |share: &[JobId]| -> Vec<T> {
        let mut disk = disk.clone();
        share.iter().map(|id| see(&mut disk, id)).collect()
    };
    let (ours, theirs) = ids.split_at(share.min(ids.len()));
    std::thread::scope(|scope| {
        let see_all = &see_all;
        let theirs: Vec<_> = theirs
            .chunks(share)
            .map(|share| scope.spawn(move || see_all(share)))
            .collect();
        let mut all = see_all(ours);
        for share in theirs {
            match share.join() {
                Ok(seen) => all.extend(seen),
                Err(panic) => std::panic::resume_unwind(panic),
            }
        }
        all
    })
}

/// When a job was made, as its id says, for ordering.
fn made_at_ms(id: &JobId) -> u64 {
    let digits = id.as_str().split('-').next().unwrap_or_default();
    digits.parse().unwrap_or(u64::MAX)
}
