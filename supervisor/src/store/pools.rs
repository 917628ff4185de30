//! The pools of a store: those that are configured, and what somebody made of them.

use std::collections::BTreeMap;
use std::path::PathBuf;

use state_machine::config::PoolSetup;
use state_machine::disk::{Dir, Disk, Name, Read};
use state_machine::id::PoolName;
use state_machine::protocol::pool::{Changed, PoolForgotten, Wish, change_pool, forget_pool};
use state_machine::record;

use super::Store;
use crate::error::{Error, Result};

impl Store {
    /// What somebody made of pools. What cannot be read is an error that names it, and nothing is taken for a default (R21).
    pub(crate) fn made_pools(&self) -> Result<BTreeMap<PoolName, record::Pool>> {
        let mut disk = self.disk();
        let mut made = BTreeMap::new();
        for name in disk.list(&Dir::Pools)?.unwrap_or_default() {
            let Some(Ok(pool)) = name.to_text().map(|word| PoolName::parse(&word)) else {
                continue;
            };
            match disk.read_pool(&pool)? {
                Read::Value(record) => {
                    made.insert(pool, record);
                }
                Read::Absent => {}
                Read::Damaged(why) => {
                    return Err(Error::Damaged {
                        path: disk.path(&Dir::Pool(pool).at(Name::Pool)),
                        why: why.0,
                    });
                }
            }
        }
        Ok(made)
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
    /// [`Error::NoPool`] where there is none of this name; as [`Store::pools`] otherwise.
    pub fn pool(&self, name: &PoolName) -> Result<PoolSetup> {
        let setup = self.pools()?.remove(name);
        setup.ok_or_else(|| Error::NoPool(name.clone()))
    }

    /// Change how a pool is set up, or make one. A supervisor that runs sees it.
    pub(crate) fn change_pool(&self, name: &PoolName, wish: Wish) -> Result<()> {
        let mut disk = self.disk();
        match change_pool(&mut disk, name, wish)? {
            Changed::Is(_) => Ok(()),
            Changed::Damaged(why) => Err(Error::Damaged {
                path: disk.path(&Dir::Pool(name.clone()).at(Name::Pool)),
                why: why.0,
            }),
            Changed::Busy => Err(Error::Busy(format!("the pool {name}"))),
        }
    }

    /// Forget what somebody made of a pool. `false` where nobody had made anything of it.
    pub(crate) fn forget_pool(&self, name: &PoolName) -> Result<bool> {
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
