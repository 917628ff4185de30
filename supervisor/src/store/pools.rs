//! The pools of a store: those that are configured, and what somebody made of them.

use std::collections::BTreeMap;
use std::path::PathBuf;

use serde::Serialize;
use state_machine::config::PoolSetup;
use state_machine::disk::{Dir, Disk, Name, Read};
use state_machine::id::PoolName;
use state_machine::job::State;
use state_machine::nearest::nearest;
use state_machine::protocol::look::View;
use state_machine::protocol::pool::{Changed, PoolForgotten, Wish, change_pool, forget_pool};
use state_machine::record;

use super::configured;
use super::{Store, processors};
use crate::error::{Error, Result};

/// How a pool stands, as files and locks have it: no supervisor is asked.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct PoolStanding {
    /// Its name.
    pub name: String,
    /// How many slots it has.
    pub slots: u32,
    /// How many of them jobs have that somebody is responsible for; more than there are, where there were more before.
    pub taken: u32,
    /// How many jobs are queued in it.
    pub waiting: usize,
    /// Whether it admits no job for now.
    pub paused: bool,
    /// Whether the configuration has it.
    pub configured: bool,
    /// Whether it is there at all. One that is not is only named by a job that waits in it, or runs.
    pub declared: bool,
}

impl PoolStanding {
    fn new(name: &str, setup: Option<&PoolSetup>) -> PoolStanding {
        PoolStanding {
            name: name.to_owned(),
            slots: setup.map_or(0, slots_of),
            taken: 0,
            waiting: 0,
            paused: setup.is_some_and(|setup| setup.paused),
            configured: setup.is_some_and(|setup| setup.configured),
            declared: setup.is_some(),
        }
    }

    fn count(&mut self, view: &View) {
        if view.held {
            self.taken = self.taken.saturating_add(view.descriptor.slots.max(1));
        } else if view.state == State::Queued {
            self.waiting += 1;
        }
    }
}

fn exists(name: &PoolName) -> Error {
    Error::NotNow(format!(
        "there is a pool '{name}' already; change it with: outlive pool set {name} --slots N"
    ))
}

/// How many slots a pool that is set up so has on this machine.
pub(crate) fn slots_of(setup: &PoolSetup) -> u32 {
    setup.slots.unwrap_or_else(processors)
}

/// The pool of a job that has not ended.
fn pool_of(view: &View) -> Option<&str> {
    let pool = view.descriptor.pool.as_deref()?;
    (!view.state.is_terminal()).then_some(pool)
}

/// How pools stand that are set up so, with these jobs, by name; those that only a job still names among them.
pub(crate) fn standings<'a>(
    setups: &BTreeMap<PoolName, PoolSetup>,
    jobs: impl Iterator<Item = &'a View>,
) -> Vec<PoolStanding> {
    let mut standings: BTreeMap<String, PoolStanding> = setups
        .iter()
        .map(|(name, setup)| {
            let name = name.as_str();
            (name.to_owned(), PoolStanding::new(name, Some(setup)))
        })
        .collect();
    for view in jobs {
        if let Some(pool) = pool_of(view) {
            standings
                .entry(pool.to_owned())
                .or_insert_with(|| PoolStanding::new(pool, None))
                .count(view);
        }
    }
    standings.into_values().collect()
}

impl Store {
    /// How every pool stands, by name, those that only a job still names among them; and what cannot be read of the
    /// jobs, which hides nothing else (R21).
    ///
    /// # Errors
    ///
    /// As [`Store::pools`], and when the listing of the jobs cannot be had.
    pub fn pool_standings(&self) -> Result<(Vec<PoolStanding>, Vec<Error>)> {
        let setups = self.pools()?;
        let listing = self.list_outlines()?;
        let standings = standings(&setups, listing.jobs.iter());
        Ok((standings, listing.damaged))
    }

    /// Make a pool.
    ///
    /// # Errors
    ///
    /// [`Error::NotNow`] where there is one of this name.
    pub(crate) fn add_pool(&self, name: &PoolName, wish: Wish) -> Result<()> {
        if self.pools()?.contains_key(name) {
            return Err(exists(name));
        }
        self.change_pool(name, Wish { new: true, ..wish })
    }

    /// Change how a pool that is there is set up. A supervisor that runs sees it.
    ///
    /// # Errors
    ///
    /// [`Error::NoPool`] where there is none of this name.
    pub(crate) fn set_pool(&self, name: &PoolName, wish: Wish) -> Result<()> {
        self.pool(name)?;
        self.change_pool(name, wish)
    }

    /// Remove a pool that no job is in, or, of one that is configured, what somebody made of it. Says how it is set up
    /// from now on, where it is still there.
    ///
    /// # Errors
    ///
    /// [`Error::NoPool`] where there is none of this name; [`Error::NotNow`] where jobs are in it that have not ended, and
    /// where it is as it is configured.
    pub(crate) fn remove_pool(&self, name: &PoolName) -> Result<Option<PoolSetup>> {
        let setup = self.pool(name)?;
        if !setup.configured {
            self.see_that_nobody_is_in(name)?;
        } else if !self.made_pools()?.contains_key(name) {
            return Err(Error::NotNow(format!(
                "the pool {name} is as it is configured, and nobody has made anything else of it"
            )));
        }
        self.forget_pool(name)?;
        Ok(self.pools()?.remove(name))
    }

    fn see_that_nobody_is_in(&self, name: &PoolName) -> Result<()> {
        let jobs = self.list_outlines()?.jobs;
        let mut inside = jobs
            .iter()
            .filter(|view| pool_of(view) == Some(name.as_str()))
            .map(|view| &view.descriptor.id);
        let Some(first) = inside.next() else {
            return Ok(());
        };
        let others = match inside.count() {
            0 => String::new(),
            more => format!(" and {more} more"),
        };
        Err(Error::NotNow(format!(
            "jobs of the pool {name} have not ended: {first}{others}; let them end or stop them first"
        )))
    }

    /// What somebody made of pools. What cannot be read is an error that names it, and nothing is taken for a default (R21).
    pub(crate) fn made_pools(&self) -> Result<BTreeMap<PoolName, record::Pool>> {
        let read = self.each_made_pool()?.into_iter();
        read.map(|(name, pool)| Ok((name, pool?))).collect()
    }

    /// As [`Store::made_pools`], where one that cannot be read hides no other.
    pub(crate) fn each_made_pool(&self) -> Result<BTreeMap<PoolName, Result<record::Pool>>> {
        let mut disk = self.disk();
        let mut made = BTreeMap::new();
        for name in disk.list(&Dir::Pools)?.unwrap_or_default() {
            let Some(Ok(pool)) = name.to_text().map(|word| PoolName::parse(&word)) else {
                continue;
            };
            if let Some(read) = self.made_pool(&pool).transpose() {
                made.insert(pool, read);
            }
        }
        Ok(made)
    }

    /// What somebody made of one pool, if anybody made anything of it.
    fn made_pool(&self, pool: &PoolName) -> Result<Option<record::Pool>> {
        let mut disk = self.disk();
        match disk.read_pool(pool)? {
            Read::Value(record) => Ok(Some(record)),
            Read::Absent => Ok(None),
            Read::Damaged(why) => Err(Error::Damaged {
                path: disk.path(&Dir::Pool(pool.clone()).at(Name::Pool)),
                why: why.0,
            }),
        }
    }

    /// Every pool, and how it is set up.
    ///
    /// # Errors
    ///
    /// When the configuration or the record of a pool cannot be read.
    pub fn pools(&self) -> Result<BTreeMap<PoolName, PoolSetup>> {
        let (config, made) = (self.config()?, self.made_pools()?);
        let names = config.pool.keys().chain(made.keys()).cloned();
        Ok(names
            .chain([PoolName::default()])
            .filter_map(|name| {
                let setup = config.pool(&name, made.get(&name))?;
                Some((name, setup))
            })
            .collect())
    }

    /// How a pool is set up.
    ///
    /// # Errors
    ///
    /// [`Error::NoPool`] where there is none of this name; when the configuration or the record of this pool cannot be read.
    /// That of another one is no matter.
    pub fn pool(&self, name: &PoolName) -> Result<PoolSetup> {
        let made = self.made_pool(name)?;
        let setup = configured::with(self.root(), |config| config.pool(name, made.as_ref()))?;
        setup.ok_or_else(|| {
            // What cannot be read is no matter for a name that is not there.
            let pools = self.pools().unwrap_or_default();
            no_pool(name.clone(), pools.keys())
        })
    }

    /// Change how a pool is set up, or make one.
    fn change_pool(&self, name: &PoolName, wish: Wish) -> Result<()> {
        let mut disk = self.disk();
        match change_pool(&mut disk, name, wish)? {
            Changed::Is(_) => Ok(()),
            Changed::Exists => Err(exists(name)),
            Changed::Damaged(why) => Err(Error::Damaged {
                path: disk.path(&Dir::Pool(name.clone()).at(Name::Pool)),
                why: why.0,
            }),
            Changed::Busy => Err(Error::Busy(format!("the pool {name}"))),
        }
    }

    /// Forget what somebody made of a pool. `false` where nobody had made anything of it.
    fn forget_pool(&self, name: &PoolName) -> Result<bool> {
        let mut disk = self.disk();
        match forget_pool(&mut disk, name)? {
            PoolForgotten::Yes => Ok(true),
            PoolForgotten::No => Ok(false),
            PoolForgotten::Damaged(why) => Err(Error::Damaged {
                path: disk.path(&Dir::Pool(name.clone()).at(Name::Pool)),
                why: why.0,
            }),
            PoolForgotten::Busy => Err(Error::Busy(format!("the pool {name}"))),
        }
    }

    /// The directory that holds every pool.
    pub(crate) fn pools_dir(&self) -> PathBuf {
        self.disk.dir(&Dir::Pools)
    }
}

/// That there is no such pool, and which of those that there are was probably meant.
pub(super) fn no_pool<'a>(pool: PoolName, known: impl Iterator<Item = &'a PoolName>) -> Error {
    let meant = nearest(pool.as_str(), known.map(PoolName::as_str));
    let meant = meant.and_then(|meant| PoolName::parse(meant).ok());
    Error::NoPool { pool, meant }
}
