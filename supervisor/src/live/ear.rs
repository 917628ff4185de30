//! Hearing what may have changed in a store, as one descriptor that can be waited for together with anything else.
//!
//! By inotify, which says where; where the user has no instance left (F52) a supervisor tells that something has, and where there
//! is none of those either, one looks on a timer. What must never be here: what is in a record.

use std::collections::BTreeSet;
use std::io;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::Duration;

use rustix::event::{Timespec, epoll};
use rustix::fs::inotify::{Event, ReadFlags};
use rustix::io::Errno;
use rustix::time::{
    Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, timerfd_create, timerfd_settime,
};
use state_machine::disk::Name;
use state_machine::id::JobId;
use state_machine::wire;

use super::places::{Place, Places, Watched};
use crate::clock;
use crate::dial::{self, Subscription, Teller};
use crate::inotify::{Buffer, Instance, Interest};
use crate::store::Store;

/// How long nothing more is heard after something was, at least: what happens to a job brings a dozen events, one by one. What
/// comes first is heard at once.
const REST: Duration = Duration::from_millis(20);
/// And at most, where it is much work to look at what was heard of: nobody is to see it later than a tenth of a second.
const LONGEST_REST: Duration = Duration::from_millis(80);
/// How often to look where something is not watched.
const BLIND: Duration = Duration::from_secs(1);
/// How often to look where a supervisor tells: what becomes of a job after its end he does not.
const BACKSTOP: Duration = Duration::from_secs(5);
/// How many bufferfuls are heard at a time: 2,000 events are in one.
const BUFFERS: usize = 8;

/// What may have changed.
#[derive(Debug, Default)]
pub(super) struct Heard {
    /// Anything, what has ended included: events were lost.
    pub(super) lost: bool,
    /// Which jobs there are, and whatever has not ended: where was not said.
    pub(super) unsure: bool,
    /// These jobs, or that they are there.
    pub(super) jobs: BTreeSet<JobId>,
    /// The output of these jobs.
    pub(super) output: BTreeSet<JobId>,
    /// Pools, their slots, the configuration, whether there is a supervisor.
    pub(super) pools: bool,
}

impl Heard {
    pub(super) fn is_nothing(&self) -> bool {
        !self.lost && !self.unsure && !self.pools && self.jobs.is_empty() && self.output.is_empty()
    }
}

/// Hears of one store.
#[derive(Debug)]
pub(super) struct Ear {
    /// Can be read when there is something to hear: of `timer`, and of whatever tells.
    all: OwnedFd,
    timer: OwnedFd,
    places: Places,
    /// Makes an instance; in a test, one that is not to be had.
    make_instance: fn() -> io::Result<Instance>,
    instance: Option<Instance>,
    teller: Teller,
    told: Option<Subscription>,
    /// Whether what tells is in `all` now.
    listens: bool,
    /// Jobs whose output is heard of.
    followed: BTreeSet<JobId>,
    /// What is told of again after the rest. A file that is closed is told of before its lock is free.
    echo: Heard,
    /// In time since boot.
    rests_until: Option<Duration>,
    /// When to look without having been told, in time since boot.
    look_at: Option<Duration>,
    /// The last look failed.
    failed: bool,
}

impl Ear {
    /// Hears of the store itself from now on, of which jobs come and go, and of its pools.
    pub(super) fn new(store: &Store) -> io::Result<Ear> {
        Ear::with(store, Instance::new)
    }

    /// The same, with instances that are made so.
    pub(super) fn with(
        store: &Store,
        make_instance: fn() -> io::Result<Instance>,
    ) -> io::Result<Ear> {
        let flags = TimerfdFlags::CLOEXEC | TimerfdFlags::NONBLOCK;
        let timer = timerfd_create(TimerfdClockId::Boottime, flags)?;
        let all = epoll::create(epoll::CreateFlags::CLOEXEC)?;
        epoll::add(&all, &timer, nothing(), epoll::EventFlags::IN)?;
        let everything = wire::Interest {
            jobs: None,
            every: true,
        };
        let mut ear = Ear {
            all,
            timer,
            places: Places::new(store.root()),
            make_instance,
            instance: make_instance().ok(),
            teller: Teller::new(store.root(), everything),
            told: None,
            listens: false,
            followed: BTreeSet::new(),
            echo: Heard::default(),
            rests_until: None,
            look_at: None,
            failed: false,
        };
        for place in [Place::Root, Place::Jobs, Place::Pools] {
            ear.watch(place);
        }
        ear.watch_pools();
        if ear.instance.is_none() {
            ear.told = ear.teller.ask();
        }
        ear.listen()?;
        ear.set_timer()?;
        Ok(ear)
    }

    /// Hears of this job from now on. Look at it *after* this.
    pub(super) fn watch_job(&mut self, id: &JobId) -> bool {
        let place = Place::Job(id.clone());
        let is_new = !self.places.is_watched(&place);
        if is_new {
            self.watch(place);
        }
        is_new
    }

    /// Hears no more of this job but that it goes.
    pub(super) fn forget_job(&mut self, id: &JobId) {
        if !self.followed.contains(id) {
            self.places
                .forget(self.instance.as_ref(), &Place::Job(id.clone()));
        }
    }

    /// Hears of the output of this job, too, or no more.
    pub(super) fn follow(&mut self, id: &JobId, follow: bool) {
        let place = Place::Job(id.clone());
        let changes = if follow {
            self.followed.insert(id.clone())
        } else {
            self.followed.remove(id)
        };
        if changes {
            // The same watch, with another interest.
            self.watch(place);
        }
    }

    /// Hears of the pools and slots that there are now.
    pub(super) fn watch_pools(&mut self) {
        // What comes between the look and the watch is found by the next look.
        loop {
            let mut new = self.places.of_pools();
            new.retain(|place| !self.places.is_watched(place));
            let watched = new.into_iter().map(|place| self.watch(place));
            if !watched.fold(false, |any, watched| any | (watched == Watched::Yes)) {
                return;
            }
        }
    }

    fn watch(&mut self, place: Place) -> Watched {
        let interest = self.interest(&place);
        self.places.watch(self.instance.as_ref(), place, interest)
    }

    fn interest(&self, place: &Place) -> Interest {
        match place {
            Place::Job(id) if self.followed.contains(id) => Interest::Output,
            _ => Interest::Records,
        }
    }

    /// What was heard since the last call. Does not wait.
    ///
    /// # Errors
    ///
    /// The kernel cannot tell, which is not expected to happen.
    pub(super) fn hear(&mut self) -> io::Result<Heard> {
        // Nothing to read: something else has woken us.
        let _ = rustix::io::read(&self.timer, &mut [0u8; 8]);
        let now = clock::since_boot();
        if self.rests_until.is_some_and(|until| until > now) {
            self.set_timer()?;
            return Ok(Heard::default());
        }
        self.rests_until = None;
        let mut heard = std::mem::take(&mut self.echo);
        if self.instance.is_some() {
            self.hear_kernel(&mut heard)?;
        } else if let Some(told) = &mut self.told {
            match told.hear() {
                dial::Heard::Nothing => {}
                dial::Heard::Something => heard.unsure = true,
                dial::Heard::Lost => {
                    self.stop_listening();
                    self.told = None;
                    self.mend(&mut heard);
                }
            }
        }
        if self.look_at.is_some_and(|at| at <= now) {
            self.look_at = None;
            self.mend(&mut heard);
            heard.lost |= std::mem::take(&mut self.failed);
        }
        if heard.is_nothing() {
            self.listen()?;
        }
        self.set_timer()?;
        Ok(heard)
    }

    /// Hear nothing for a while, after it took so much of a processor to look at what was heard of.
    pub(super) fn rest(&mut self, took: Duration) -> io::Result<()> {
        let rest = took.saturating_mul(2).clamp(REST, LONGEST_REST);
        self.rests_until = Some(clock::since_boot() + rest);
        self.stop_listening();
        self.set_timer()
    }

    /// A look has failed: everything is to be looked at, a little later.
    pub(super) fn look_again(&mut self) {
        self.failed = true;
    }

    /// Try once more to have everything watched, and say that anything may have changed meanwhile.
    fn mend(&mut self, heard: &mut Heard) {
        if self.instance.is_none() {
            self.find_who_tells();
        }
        for place in self.places.unwatched() {
            if let Watched::NoRoom = self.watch(place) {
                break; // the rest would be told the same
            }
        }
        heard.unsure = true;
        heard.pools = true;
        heard.output.extend(self.followed.iter().cloned());
    }

    fn find_who_tells(&mut self) {
        match (self.make_instance)() {
            Ok(instance) => {
                self.stop_listening();
                self.told = None;
                self.instance = Some(instance);
            }
            Err(_) if self.told.is_none() => self.told = self.teller.ask(),
            Err(_) => {}
        }
    }

    fn hear_kernel(&mut self, heard: &mut Heard) -> io::Result<()> {
        let mut buffer: Buffer = [MaybeUninit::uninit(); _];
        for _ in 0..BUFFERS {
            let Some(instance) = self.instance.take() else {
                break;
            };
            let mut told = false;
            let read = instance.read(&mut buffer, |event| {
                told = true;
                self.take_down(&instance, event, heard);
            });
            self.instance = Some(instance);
            read?;
            if !told {
                break;
            }
        }
        if heard.lost {
            // The events that would have told that a directory is another one now are lost, too.
            for place in self.places.watched() {
                self.watch(place);
            }
            heard.pools = true;
            heard.output.extend(self.followed.iter().cloned());
        }
        Ok(())
    }

    fn take_down(&mut self, instance: &Instance, event: &Event<'_>, heard: &mut Heard) {
        const DIRECTORY_GONE: ReadFlags = ReadFlags::MOVE_SELF
            .union(ReadFlags::DELETE_SELF)
            .union(ReadFlags::UNMOUNT)
            .union(ReadFlags::IGNORED);
        if event.events().contains(ReadFlags::QUEUE_OVERFLOW) {
            heard.lost = true;
            return;
        }
        let Some(place) = self.places.at(event.wd()) else {
            return; // forgotten, and this was on its way
        };
        if event.events().intersects(DIRECTORY_GONE) {
            // Another one may be in its place.
            let interest = self.interest(&place);
            self.places.forget(Some(instance), &place);
            self.places.watch(Some(instance), place.clone(), interest);
            match place {
                Place::Job(id) => {
                    heard.jobs.insert(id);
                }
                Place::Root | Place::Jobs => heard.lost = true,
                _ => heard.pools = true,
            }
            return;
        }
        let name = event.file_name().map(|name| name.to_bytes());
        self.take_down_entry(place, name.unwrap_or_default(), heard);
    }

    fn take_down_entry(&mut self, place: Place, name: &[u8], heard: &mut Heard) {
        match place {
            Place::Root => match name {
                b"supervisor.lock" => {
                    heard.pools = true;
                    self.echo.pools = true;
                }
                b"config.toml" | b"supervisor.sock" | b"pools" => heard.pools = true,
                b"jobs" => heard.lost = true,
                _ => {}
            },
            Place::Jobs => match job_of(name) {
                Some(id) => {
                    heard.jobs.insert(id);
                }
                // What can be no job is said to be there.
                None => heard.lost = true,
            },
            Place::Job(id) => match Name::in_job(name) {
                Name::Descriptor | Name::Status | Name::Control => {
                    heard.jobs.insert(id);
                }
                Name::Lock | Name::Tree => {
                    self.echo.jobs.insert(id.clone());
                    heard.jobs.insert(id);
                }
                Name::Log | Name::Other(_) if self.followed.contains(&id) => {
                    heard.output.insert(id);
                }
                _ => {}
            },
            Place::Pools | Place::Slots(_) => heard.pools = true,
            Place::Pool(_) => {
                heard.pools |= name == b"slots" || name == Name::Pool.to_bytes();
            }
            Place::Slot(..) => {
                let is_held = name == Name::Occupancy.to_bytes();
                heard.pools |= is_held || name == Name::Slot.to_bytes();
                self.echo.pools |= is_held;
            }
        }
    }

    /// Have what tells in `all`, unless it is.
    fn listen(&mut self) -> io::Result<()> {
        if self.listens || self.rests_until.is_some() {
            return Ok(());
        }
        let told = match (&self.instance, &self.told) {
            (Some(instance), _) => instance.as_fd(),
            (None, Some(told)) => told.as_fd(),
            (None, None) => return Ok(()),
        };
        epoll::add(&self.all, told, nothing(), epoll::EventFlags::IN)?;
        self.listens = true;
        Ok(())
    }

    fn stop_listening(&mut self) {
        if !std::mem::take(&mut self.listens) {
            return;
        }
        let told = match (&self.instance, &self.told) {
            (Some(instance), _) => instance.as_fd(),
            (None, Some(told)) => told.as_fd(),
            (None, None) => return,
        };
        // It is there, as nothing else takes it away.
        let _ = epoll::delete(&self.all, told);
    }

    /// Be woken when the rest is over, or when one has to look without being told; not at all where everything is watched.
    fn set_timer(&mut self) -> io::Result<()> {
        let now = clock::since_boot();
        let every = match (&self.instance, &self.told) {
            _ if self.failed => Some(BLIND),
            (Some(_), _) if self.places.all_watched() => None,
            (None, Some(told)) => Some(told.patience().unwrap_or(BACKSTOP).min(BACKSTOP)),
            _ => Some(BLIND),
        };
        self.look_at = match (every, self.look_at) {
            (None, _) => None,
            (Some(every), Some(at)) => Some(at.min(now + every)),
            (Some(every), None) => Some(now + every),
        };
        let until = self.rests_until.or(self.look_at);
        // A time of nothing would mean never.
        let left = until.map(|until| until.saturating_sub(now).max(Duration::from_nanos(1)));
        let value = Timespec::try_from(left.unwrap_or_default()).map_err(|_| Errno::INVAL)?;
        let once = Itimerspec {
            it_interval: Timespec::default(),
            it_value: value,
        };
        timerfd_settime(&self.timer, TimerfdTimerFlags::empty(), &once)?;
        Ok(())
    }

    /// Whether a supervisor tells.
    #[cfg(test)]
    pub(super) fn is_told(&self) -> bool {
        self.told.is_some()
    }

    /// Whether nobody wakes it but what happens.
    #[cfg(test)]
    pub(super) fn sleeps(&self) -> bool {
        self.rests_until.is_none() && self.look_at.is_none() && self.listens
    }
}

impl AsFd for Ear {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.all.as_fd()
    }
}

/// What is in the set is not told apart: all of it is looked at.
fn nothing() -> epoll::EventData {
    epoll::EventData::new_u64(0)
}

fn job_of(name: &[u8]) -> Option<JobId> {
    JobId::parse(std::str::from_utf8(name).ok()?).ok()
}
