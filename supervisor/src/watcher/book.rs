//! Which watch is on which directory, and which directories have none. It is written by those who command the watcher and by its
//! thread, and knows no mailbox.

use std::collections::{BTreeSet, HashMap};
use std::io;
use std::mem::MaybeUninit;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustix::fs::inotify::{Event, ReadFlags};
use rustix::io::Errno;
use state_machine::disk::Name;
use state_machine::id::{JobId, PoolName};

use super::Changed;
use crate::inotify::{Buffer, Instance, Interest};

/// What a bufferful of events comes to.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Heard {
    /// Events were lost.
    pub(super) everything: bool,
    pub(super) changed: BTreeSet<Changed>,
}

/// The watches.
#[derive(Debug)]
pub(super) struct Book {
    jobs: PathBuf,
    /// Where the pools are, once they are watched.
    pools: Option<PathBuf>,
    /// `None` as long as the user has no instance left.
    instance: Option<Arc<Instance>>,
    /// What each watch is on. The kernel counts on and gives no number twice (before 2^31 others), so what is still on its way
    /// from a watch that has ended finds nothing here.
    places: HashMap<i32, Changed>,
    /// The same from the other side: `places[numbers[place]] == place`.
    numbers: HashMap<Changed, i32>,
    /// What should be watched and is not.
    unwatched: BTreeSet<Changed>,
    /// It was said that something is not watched.
    said_blind: bool,
}

/// Whether there is a watch on a place now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Watched {
    /// There is.
    Yes,
    /// There is no such directory. Its coming will be told of by the directory above.
    Missing,
    /// It should be watched and cannot be.
    No(Errno),
}

impl Book {
    /// With a watch on `jobs`, if it can be had.
    pub(super) fn new(jobs: &Path) -> Book {
        let mut book = Book {
            jobs: jobs.to_owned(),
            pools: None,
            instance: None,
            places: HashMap::new(),
            numbers: HashMap::new(),
            unwatched: BTreeSet::from([Changed::Jobs]),
            said_blind: false,
        };
        book.mend();
        book
    }

    /// Where events come from.
    pub(super) fn instance(&self) -> Option<Arc<Instance>> {
        self.instance.clone()
    }

    /// Whether something is not watched that should be.
    pub(super) fn is_blind(&self) -> bool {
        !self.unwatched.is_empty()
    }

    /// The jobs that are watched, in order.
    #[cfg(test)]
    pub(super) fn watched(&self) -> Vec<Changed> {
        assert_eq!(self.places.len(), self.numbers.len());
        let mut watched: Vec<Changed> = self.numbers.keys().cloned().collect();
        watched.retain(|place| *place != Changed::Jobs);
        watched.sort();
        watched
    }

    /// Watches the pools, those that are there and those that come.
    pub(super) fn watch_pools(&mut self, pools: &Path) {
        self.pools = Some(pools.to_owned());
        // The watch stands before the look.
        self.watch(&Changed::Pools);
        for entry in std::fs::read_dir(pools).into_iter().flatten().flatten() {
            if let Some(pool) = pool_of(entry.file_name().as_encoded_bytes()) {
                self.watch(&Changed::Pool(pool));
            }
        }
    }

    /// Watches a place, or notes that it is not watched.
    pub(super) fn watch(&mut self, place: &Changed) -> Watched {
        let watched = self.try_to_watch(place);
        match watched {
            Watched::Yes => {
                self.unwatched.remove(place);
            }
            Watched::Missing => self.forget(place),
            Watched::No(errno) => {
                self.unbind(place);
                self.unwatched.insert(place.clone());
                self.say_blind(&self.path(place), &errno.into());
            }
        }
        watched
    }

    /// Ends the watch on a place. What it has told already is passed over.
    pub(super) fn forget(&mut self, place: &Changed) {
        self.unbind(place);
        self.unwatched.remove(place);
    }

    /// Ends the watches on the slots of a pool.
    pub(super) fn forget_slots(&mut self, pool: &PoolName) {
        let is_one = |place: &&Changed| matches!(place, Changed::Slot(of, _) if of == pool);
        let known = self.numbers.keys().chain(&self.unwatched);
        let slots: Vec<Changed> = known.filter(is_one).cloned().collect();
        for slot in slots {
            self.forget(&slot);
        }
    }

    /// Tries once more to watch what is not watched, if there is anything. Whether there was.
    pub(super) fn mend(&mut self) -> bool {
        let was_blind = self.is_blind();
        if was_blind && self.has_instance() {
            for place in self.unwatched.clone() {
                if let Watched::No(Errno::NOSPC) = self.watch(&place) {
                    break; // the rest would be told the same
                }
            }
        }
        if self.said_blind && !self.is_blind() {
            self.said_blind = false;
            tracing::info!(jobs = %self.jobs.display(), "every directory is watched again");
        }
        was_blind
    }

    fn has_instance(&mut self) -> bool {
        if self.instance.is_none() {
            match Instance::new() {
                Ok(instance) => self.instance = Some(Arc::new(instance)),
                Err(error) => self.say_blind(&self.jobs.clone(), &error),
            }
        }
        self.instance.is_some()
    }

    /// Reads what has happened, one bufferful.
    ///
    /// # Errors
    /// The kernel cannot read the queue, which is not expected to happen.
    pub(super) fn hear(&mut self, instance: &Instance) -> io::Result<Heard> {
        let mut buffer: Buffer = [MaybeUninit::uninit(); _];
        let mut heard = Heard::default();
        instance.read(&mut buffer, |event| self.take_down(event, &mut heard))?;
        if heard.everything {
            self.audit();
        }
        Ok(heard)
    }

    fn take_down(&mut self, event: &Event<'_>, heard: &mut Heard) {
        const DIRECTORY_GONE: ReadFlags = ReadFlags::MOVE_SELF
            .union(ReadFlags::DELETE_SELF)
            .union(ReadFlags::UNMOUNT)
            .union(ReadFlags::IGNORED);
        const ENTRY_GONE: ReadFlags = ReadFlags::MOVED_FROM.union(ReadFlags::DELETE);
        if event.events().contains(ReadFlags::QUEUE_OVERFLOW) {
            heard.everything = true;
            return;
        }
        let Some(place) = self.places.get(&event.wd()).cloned() else {
            return; // forgotten, and this was on its way
        };
        if event.events().intersects(DIRECTORY_GONE) {
            self.watch_anew(&place);
        }
        let name = event.file_name().map(|name| name.to_bytes());
        match (place, name) {
            (Changed::Jobs, Some(name)) if let Some(id) = job_of(name) => {
                let gone = event.events().intersects(ENTRY_GONE);
                let job = Changed::Job(id.clone());
                // Its own watch may have told of it already, and be gone.
                let cares = self.numbers.contains_key(&job)
                    || self.unwatched.contains(&job)
                    || heard.changed.contains(&job);
                heard.changed.insert(if gone && !cares {
                    Changed::Forgotten(id)
                } else {
                    job
                });
            }
            (Changed::Pools, Some(name)) => {
                if let Some(pool) = pool_of(name) {
                    self.watch(&Changed::Pool(pool));
                }
                heard.changed.insert(Changed::Pools);
            }
            (place, name) if !name.is_some_and(|name| tells_nothing(&place, name)) => {
                heard.changed.insert(place);
            }
            _ => {}
        }
    }

    /// Sees that every watch is on what is now at its place: the events that would have told are lost.
    fn audit(&mut self) {
        for place in self.numbers.keys().cloned().collect::<Vec<_>>() {
            self.watch(&place);
        }
    }

    /// The directory that was watched is not at its place any more. Another one may be.
    fn watch_anew(&mut self, place: &Changed) {
        self.unbind(place);
        self.watch(place);
    }

    fn try_to_watch(&mut self, place: &Changed) -> Watched {
        let path = self.path(place);
        let Some(instance) = &self.instance else {
            return Watched::No(Errno::MFILE);
        };
        match instance.add(&path, Interest::Records) {
            Ok(number) => {
                self.bind(place, number);
                Watched::Yes
            }
            // Nothing comes to light above `jobs`: without it we are blind.
            Err(error) if *place != Changed::Jobs && is_missing(error) => Watched::Missing,
            Err(error) => Watched::No(error),
        }
    }

    /// Said once, until [`Book::mend`] finds everything watched.
    fn say_blind(&mut self, path: &Path, error: &io::Error) {
        if !self.said_blind {
            self.said_blind = true;
            tracing::warn!(
                path = %path.display(),
                %error,
                "cannot be watched: everything is looked at every two seconds"
            );
        }
    }

    fn bind(&mut self, place: &Changed, number: i32) {
        if self.numbers.get(place) == Some(&number) {
            return;
        }
        self.unbind(place);
        // One directory has one watch, whatever its path: it has been renamed, and whoever had the watch has been told.
        if let Some(before) = self.places.insert(number, place.clone()) {
            self.numbers.remove(&before);
        }
        self.numbers.insert(place.clone(), number);
    }

    fn unbind(&mut self, place: &Changed) {
        if let Some(number) = self.numbers.remove(place) {
            self.places.remove(&number);
            if let Some(instance) = &self.instance {
                instance.remove(number);
            }
        }
    }

    fn pools(&self) -> PathBuf {
        // Nothing of a pool is watched before that.
        self.pools.clone().unwrap_or_default()
    }

    fn path(&self, place: &Changed) -> PathBuf {
        match place {
            Changed::Jobs => self.jobs.clone(),
            Changed::Job(id) | Changed::Forgotten(id) => self.jobs.join(id.as_str()),
            Changed::Pools => self.pools(),
            Changed::Pool(pool) => self.pools().join(pool.as_str()),
            Changed::Slot(pool, number) => {
                let slots = self.pools().join(pool.as_str()).join("slots");
                slots.join(number.to_string())
            }
        }
    }
}

/// Whether what happens to an entry of this name is no reason to look: output and history, and the next record before it takes
/// its place, which is told of itself.
fn tells_nothing(place: &Changed, name: &[u8]) -> bool {
    match place {
        Changed::Jobs | Changed::Pools => false,
        Changed::Job(_) | Changed::Forgotten(_) => !matches!(
            Name::in_job(name),
            Name::Descriptor | Name::Status | Name::Lock | Name::Control
        ),
        Changed::Pool(_) => name != Name::Pool.to_bytes(),
        Changed::Slot(..) => name != Name::Slot.to_bytes() && name != Name::Occupancy.to_bytes(),
    }
}

fn job_of(name: &[u8]) -> Option<JobId> {
    JobId::parse(std::str::from_utf8(name).ok()?).ok()
}

fn pool_of(name: &[u8]) -> Option<PoolName> {
    PoolName::parse(std::str::from_utf8(name).ok()?).ok()
}

/// There is no directory at that path: nothing, a file, or a link, which is not followed.
fn is_missing(error: Errno) -> bool {
    matches!(error, Errno::NOENT | Errno::NOTDIR | Errno::LOOP)
}
