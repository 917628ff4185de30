//! Which directories of a store are watched, under which numbers, and which should be and are not.

use std::collections::{BTreeSet, HashMap};
use std::ffi::OsString;
use std::path::{Path, PathBuf};

use rustix::io::Errno;
use state_machine::id::{JobId, PoolName};

use crate::inotify::{Instance, Interest};

/// A directory that is watched.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) enum Place {
    /// The store.
    Root,
    /// The directory of all jobs.
    Jobs,
    /// One job.
    Job(JobId),
    /// The directory of all pools.
    Pools,
    /// One pool.
    Pool(PoolName),
    /// The directory of the slots of a pool.
    Slots(PoolName),
    /// One slot.
    Slot(PoolName, u32),
}

/// Whether a directory is watched now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Watched {
    /// It is.
    Yes,
    /// There is no such directory; that it comes is told by the one above.
    Missing,
    /// It should be and cannot be.
    No,
    /// It should be, and nothing more can be watched (F52).
    NoRoom,
}

/// The directories.
#[derive(Debug)]
pub(super) struct Places {
    root: PathBuf,
    /// The kernel counts on and gives no number twice.
    numbers: HashMap<i32, Place>,
    /// The same from the other side.
    watched: HashMap<Place, i32>,
    unwatched: BTreeSet<Place>,
}

impl Places {
    /// Nothing of this store is watched yet.
    pub(super) fn new(root: &Path) -> Places {
        Places {
            root: root.to_owned(),
            numbers: HashMap::new(),
            watched: HashMap::new(),
            unwatched: BTreeSet::new(),
        }
    }

    /// Watch a directory, or watch it with another interest.
    pub(super) fn watch(
        &mut self,
        instance: Option<&Instance>,
        place: Place,
        interest: Interest,
    ) -> Watched {
        let Some(instance) = instance else {
            self.unwatched.insert(place);
            return Watched::NoRoom;
        };
        match instance.add(&self.path(&place), interest) {
            Ok(number) => {
                self.unwatched.remove(&place);
                self.bind(place, number);
                Watched::Yes
            }
            Err(Errno::NOENT | Errno::NOTDIR | Errno::LOOP) if place.may_be_missing() => {
                self.forget(Some(instance), &place);
                Watched::Missing
            }
            Err(errno) => {
                self.forget(Some(instance), &place);
                self.unwatched.insert(place);
                match errno {
                    Errno::NOSPC => Watched::NoRoom,
                    _ => Watched::No,
                }
            }
        }
    }

    /// Watch it no more.
    pub(super) fn forget(&mut self, instance: Option<&Instance>, place: &Place) {
        self.unwatched.remove(place);
        if let Some(number) = self.watched.remove(place) {
            self.numbers.remove(&number);
            if let Some(instance) = instance {
                instance.remove(number);
            }
        }
    }

    /// The directory that a number stands for.
    pub(super) fn at(&self, number: i32) -> Option<Place> {
        self.numbers.get(&number).cloned()
    }

    /// Whether a directory is watched, or should be.
    pub(super) fn is_watched(&self, place: &Place) -> bool {
        self.watched.contains_key(place) || self.unwatched.contains(place)
    }

    /// Whether there is none that should be watched and is not.
    pub(super) fn all_watched(&self) -> bool {
        self.unwatched.is_empty()
    }

    /// Those that should be watched and are not.
    pub(super) fn unwatched(&self) -> BTreeSet<Place> {
        self.unwatched.clone()
    }

    /// Those that are watched.
    pub(super) fn watched(&self) -> Vec<Place> {
        self.watched.keys().cloned().collect()
    }

    /// The pools and slots that there are, watched or not, each after what it is in.
    pub(super) fn of_pools(&self) -> Vec<Place> {
        let mut places = vec![Place::Pools];
        for name in entries(&self.path(&Place::Pools)) {
            let Some(Ok(pool)) = name.to_str().map(PoolName::parse) else {
                continue;
            };
            places.push(Place::Pool(pool.clone()));
            let slots = Place::Slots(pool.clone());
            let numbers = entries(&self.path(&slots));
            places.push(slots);
            let numbers = numbers
                .iter()
                .filter_map(|name| name.to_str()?.parse().ok());
            places.extend(numbers.map(|number| Place::Slot(pool.clone(), number)));
        }
        places
    }

    fn bind(&mut self, place: Place, number: i32) {
        if let Some(before) = self.watched.insert(place.clone(), number)
            && before != number
        {
            self.numbers.remove(&before);
        }
        // One directory has one watch, whatever its path: it was renamed.
        if let Some(before) = self.numbers.insert(number, place.clone())
            && before != place
        {
            self.watched.remove(&before);
        }
    }

    fn path(&self, place: &Place) -> PathBuf {
        let pool = |name: &PoolName| self.root.join("pools").join(name.as_str());
        match place {
            Place::Root => self.root.clone(),
            Place::Jobs => self.root.join("jobs"),
            Place::Job(id) => self.root.join("jobs").join(id.as_str()),
            Place::Pools => self.root.join("pools"),
            Place::Pool(name) => pool(name),
            Place::Slots(name) => pool(name).join("slots"),
            Place::Slot(name, number) => pool(name).join("slots").join(number.to_string()),
        }
    }
}

impl Place {
    /// Whether it comes and goes. Without the others nothing is heard.
    fn may_be_missing(&self) -> bool {
        !matches!(self, Place::Root | Place::Jobs)
    }
}

/// The names in a directory; none where it cannot be read.
fn entries(dir: &Path) -> Vec<OsString> {
    let entries = std::fs::read_dir(dir).into_iter().flatten().flatten();
    entries.map(|entry| entry.file_name()).collect()
}
