//! The spawner's end: one loop that sleeps in `poll` until it is asked, a worker says something, or one has ended.

use std::collections::VecDeque;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::net::{UnixDatagram, UnixStream};
use std::path::Path;

use nix::sys::signal::Signal;
use nix::sys::signalfd::{SfdFlags, SignalFd};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::net::{RecvFlags, SendFlags, recv, send};
use rustix::process::{Pid, Resource, Rlimit, chdir, getrlimit, setrlimit, setsid};

use super::crew::Crew;
use super::message::{Ask, LONGEST, Word, encode};
use state_machine::id::JobId;

use crate::error::{DiskError, Error, Result};
use crate::process::{mask_all_but_faults, socket_on_stdin};
use crate::store::Store;
use crate::sys::{self, Forked};
use crate::worker::{Asked, become_claiming_worker, take_message};

/// How many workers may be starting at a time: each costs a descriptor until it has said how that went. Who asks for more is
/// made to wait by a socket that is full.
const MOST_STARTING: u64 = 256;

/// The share of the descriptors that these may use.
const SHARE: u64 = 4;

/// How many answers wait for a supervisor that does not listen, before no more is done for it.
const MOST_UNSENT: usize = 1024;

/// Be the spawner of the supervisor at the other end of standard input, until that end is closed. The calling process must
/// have one thread. `open_files` is the soft limit of open files that workers and commands get.
///
/// # Errors
///
/// When it cannot be one. The supervisor is told as well.
pub(crate) fn serve(root: &Path, open_files: Option<u64>) -> Result<()> {
    let socket = socket_on_stdin().map_err(|error| match error.kind() {
        io::ErrorKind::InvalidInput => {
            Error::Usage("a spawner is started by a supervisor, and not by hand".into())
        }
        _ => Error::Worker(format!("the spawner cannot hear its supervisor: {error}")),
    })?;
    let spawner = set_up(root, open_files).and_then(|store| Spawner::new(store, &socket));
    match spawner {
        Ok(spawner) => spawner.run(),
        Err(error) => {
            // Nobody left to tell is nobody to be told.
            let _ = tell(&socket, &encode(&Word::unfit(&error.to_string())));
            Err(error)
        }
    }
}

/// Leave the supervisor's session, directory, limits and name behind.
fn set_up(root: &Path, open_files: Option<u64>) -> Result<Store> {
    let system = |what: &str, error: io::Error| Error::Worker(format!("{what}: {error}"));
    if !sys::has_one_thread().map_err(|error| system("cannot count threads", error))? {
        return Err(Error::Usage(
            "worker_if_asked() is called too late: this program has threads already".into(),
        ));
    }
    let store = Store::open_existing(root)?;
    // What a terminal sends is for the supervisor.
    setsid().map_err(|error| system("cannot make a session", error.into()))?;
    chdir("/").map_err(|error| DiskError::new("enter", Path::new("/"), error))?;
    if let Some(soft) = open_files {
        limit_open_files(soft).map_err(|error| system("cannot limit open files", error))?;
    }
    // Shown to people; one that cannot have it runs all the same.
    let _ = sys::set_title("outlive spawner".as_ref());
    // Known here, it need not be asked by every worker.
    sys::ignored_signals();
    Ok(store)
}

fn limit_open_files(soft: u64) -> io::Result<()> {
    let maximum = getrlimit(Resource::Nofile).maximum;
    let soft = maximum.map_or(soft, |maximum| soft.min(maximum));
    Ok(setrlimit(
        Resource::Nofile,
        Rlimit {
            current: Some(soft),
            maximum,
        },
    )?)
}

/// How many workers may be starting at a time.
fn most_starting() -> usize {
    let soft = getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX);
    let most = (soft / SHARE).clamp(1, MOST_STARTING);
    usize::try_from(most).unwrap_or(1)
}

/// The spawner.
struct Spawner<'a> {
    store: Store,
    socket: &'a OwnedFd,
    signals: SignalFd,
    /// Where workers say that nothing of their command is left: their end, which each of them gets a copy of, and ours.
    vacates: UnixDatagram,
    vacated: UnixDatagram,
    crew: Crew,
    /// How many workers may be starting at a time.
    most_starting: usize,
    /// What the supervisor has not heard yet.
    unsent: VecDeque<Vec<u8>>,
}

/// Why the spawner woke.
#[derive(Default)]
struct Woken {
    /// The other end is closed. That is told unasked, however much there is to do.
    closed: bool,
    asked: bool,
    deaths: bool,
    vacated: bool,
    spoke: Vec<Pid>,
}

/// The supervisor has closed its end.
struct Closed;

impl<'a> Spawner<'a> {
    fn new(store: Store, socket: &'a OwnedFd) -> Result<Spawner<'a>> {
        let (vacates, vacated) = slot_notices()
            .map_err(|error| Error::Worker(format!("workers cannot be heard: {error}")))?;
        Ok(Spawner {
            vacates,
            vacated,
            store,
            socket,
            signals: hear_of_deaths()
                .map_err(|error| Error::Worker(format!("cannot hear of deaths: {error}")))?,
            crew: Crew::default(),
            most_starting: most_starting(),
            unsent: VecDeque::from([encode(&Word::Ready { ready: true })]),
        })
    }

    fn run(mut self) -> Result<()> {
        while self.send().is_ok() {
            let woken = self
                .sleep()
                .map_err(|error| Error::Worker(format!("the spawner cannot sleep: {error}")))?;
            if woken.closed {
                break;
            }
            for pid in woken.spoke {
                self.crew
                    .hear(pid, &mut |word| self.unsent.push_back(encode(&word)));
            }
            if woken.vacated {
                self.hear_of_slots();
            }
            // Before anything is asked: who has left can be asked for again.
            if woken.deaths {
                self.reap();
            }
            if woken.asked && self.take_asks().is_err() {
                break;
            }
            self.crew.dismiss();
        }
        Ok(())
    }

    /// Sleep until there is something to do.
    fn sleep(&self) -> io::Result<Woken> {
        let mut wanted = PollFlags::empty();
        wanted.set(PollFlags::IN, self.takes_more());
        wanted.set(PollFlags::OUT, !self.unsent.is_empty());
        let (pids, channels): (Vec<Pid>, Vec<BorrowedFd<'_>>) = self.crew.channels().unzip();
        let mut fds = Vec::with_capacity(3 + channels.len());
        fds.push(PollFd::new(self.socket, wanted));
        fds.push(PollFd::from_borrowed_fd(
            self.signals.as_fd(),
            PollFlags::IN,
        ));
        fds.push(PollFd::new(&self.vacated, PollFlags::IN));
        fds.extend(
            channels
                .iter()
                .map(|channel| PollFd::from_borrowed_fd(*channel, PollFlags::IN)),
        );
        let rest = self.crew.rest_without_a_job();
        let timeout = rest.and_then(|rest| Timespec::try_from(rest).ok());
        match poll(&mut fds, timeout.as_ref()) {
            Ok(_) => {}
            Err(Errno::INTR) => return Ok(Woken::default()),
            Err(error) => return Err(error.into()),
        }
        let is_ready = |fd: &PollFd<'_>| !fd.revents().is_empty();
        Ok(Woken {
            closed: fds[0].revents().intersects(PollFlags::HUP | PollFlags::ERR),
            asked: fds[0].revents().contains(PollFlags::IN),
            deaths: is_ready(&fds[1]),
            vacated: is_ready(&fds[2]),
            spoke: pids
                .into_iter()
                .zip(&fds[3..])
                .filter(|(_, fd)| is_ready(fd))
                .map(|(pid, _)| pid)
                .collect(),
        })
    }

    fn takes_more(&self) -> bool {
        self.crew.starting() < self.most_starting && self.unsent.len() < MOST_UNSENT
    }

    /// Pass on which jobs have nothing left of their command, and which have nothing left at all, so that their worker can have
    /// another.
    fn hear_of_slots(&mut self) {
        let mut id = [0_u8; LONGEST];
        while let Ok((length, channel)) =
            take_message(self.vacated.as_fd(), &mut id, RecvFlags::DONTWAIT)
        {
            let id = std::str::from_utf8(&id[..length]).ok();
            let Some(job) = id.and_then(|id| JobId::parse(id).ok()) else {
                continue;
            };
            if let Some(channel) = channel {
                self.crew
                    .is_without_a_job(&job, channel.into(), &mut |word| {
                        self.unsent.push_back(encode(&word))
                    });
            } else if self.crew.has(&job) {
                let word = Word::Vacated { job, vacated: true };
                self.unsent.push_back(encode(&word));
            }
        }
    }

    fn reap(&mut self) {
        // One signal stands for any number of deaths.
        while let Ok(Some(_)) = self.signals.read_signal() {}
        let reaped = Crew::reap();
        // What they said of their slots before they ended comes first, also of those that nobody has looked at yet.
        self.hear_of_slots();
        for (pid, status) in reaped {
            self.crew.let_go(pid, status, &mut |word| {
                self.unsent.push_back(encode(&word))
            });
        }
    }

    fn take_asks(&mut self) -> std::result::Result<(), Closed> {
        let mut buffer = [0_u8; LONGEST];
        while self.takes_more() {
            match recv(self.socket, &mut buffer, RecvFlags::DONTWAIT) {
                Ok((0, _)) => return Err(Closed),
                Ok((length, _)) => match serde_json::from_slice(&buffer[..length]) {
                    Ok(ask) => self.answer(ask),
                    // Only another version says what is not understood, and it cannot be answered.
                    Err(_) => return Err(Closed),
                },
                Err(Errno::AGAIN) => return Ok(()),
                Err(Errno::INTR) => {}
                Err(_) => return Err(Closed),
            }
        }
        Ok(())
    }

    fn answer(&mut self, ask: Ask) {
        if self.crew.has(&ask.job) {
            let word = Word::refused(ask.job, "it has a worker already", false);
            self.unsent.push_back(encode(&word));
            return;
        }
        if self.crew.hand_over(&ask.job, ask.slot, self.socket.as_fd()) {
            return;
        }
        let job = ask.job.clone();
        match self.fork(ask) {
            Ok((pid, channel)) => self.crew.add(pid, job, channel),
            Err(error) => {
                let word = Word::refused(job, &format!("no worker can be made: {error}"), false);
                self.unsent.push_back(encode(&word));
            }
        }
    }

    /// Fork a worker, and hear it at the channel that this returns. In the child this does not return.
    fn fork(&self, ask: Ask) -> io::Result<(Pid, UnixStream)> {
        let (ours, theirs) = UnixStream::pair()?;
        let vacates = self.vacates.try_clone()?;
        let asked_by = self.socket.try_clone()?;
        ours.set_nonblocking(true)?;
        self.store.remember_config();
        match sys::fork()? {
            Forked::Parent(pid) => Ok((pid, ours)),
            Forked::Child => {
                let _bomb = sys::NeverUnwind;
                let asked = Asked {
                    job: ask.job,
                    slot: ask.slot,
                    channel: theirs,
                    asked_by,
                };
                become_claiming_worker(&self.store, asked, vacates)
            }
        }
    }

    /// Tell the supervisor as much as it takes now.
    fn send(&mut self) -> std::result::Result<(), Closed> {
        while let Some(word) = self.unsent.front() {
            match tell(self.socket, word) {
                Ok(()) => {
                    self.unsent.pop_front();
                }
                Err(Errno::AGAIN) => return Ok(()),
                Err(Errno::INTR) => {}
                Err(_) => return Err(Closed),
            }
        }
        Ok(())
    }
}

/// The end that workers write to, and the one that is read. Neither waits: a worker has better to do.
fn slot_notices() -> io::Result<(UnixDatagram, UnixDatagram)> {
    let (theirs, ours) = UnixDatagram::pair()?;
    theirs.set_nonblocking(true)?;
    ours.set_nonblocking(true)?;
    Ok((theirs, ours))
}

fn tell(socket: &OwnedFd, word: &[u8]) -> std::result::Result<(), Errno> {
    send(socket, word, SendFlags::NOSIGNAL | SendFlags::DONTWAIT).map(|_| ())
}

/// Hear of the end of children, and be ended by no signal that can be blocked: a worker that is forked inherits that, and
/// has no moment in which one could end it by accident.
fn hear_of_deaths() -> io::Result<SignalFd> {
    mask_all_but_faults()?;
    sys::hear_of_deaths()?;
    let mut deaths = nix::sys::signal::SigSet::empty();
    deaths.add(Signal::SIGCHLD);
    Ok(SignalFd::with_flags(
        &deaths,
        SfdFlags::SFD_CLOEXEC | SfdFlags::SFD_NONBLOCK,
    )?)
}
