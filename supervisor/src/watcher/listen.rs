//! The thread: it sleeps until the kernel tells of something, and posts what was heard. Where everything is watched, it
//! never wakes to look.

use std::io;
use std::os::fd::AsFd;
use std::sync::atomic::Ordering;
use std::time::Duration;

use outlive_mailbox::{Closed, Notice, Poster};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;

use super::book::Heard;
use super::{Changed, Shared};
use crate::clock;
use crate::inotify::Instance;

/// How often everybody is told to look while something is not watched.
const BLIND_LOOK: Duration = Duration::from_secs(2);

/// How long nothing more is heard after something was. A job that starts or ends brings a dozen events, one by one: told of each,
/// this process and whoever makes them would do little else. What comes first is told at once.
const REST: Duration = Duration::from_millis(2);

/// Why the thread ends before it is told to.
enum End {
    /// Nobody wants to hear it.
    Closed,
    Kernel(io::Error),
}

/// What was in the sleep's way.
struct Woken {
    bell: bool,
    events: bool,
}

/// Posts what happens until it is told to end.
pub(super) fn listen(shared: &Shared, poster: &Poster<Changed>) {
    match listen_to_the_end(shared, poster) {
        Ok(()) | Err(End::Closed) => {}
        Err(End::Kernel(error)) => tracing::error!(%error, "the watcher cannot go on"),
    }
}

fn listen_to_the_end(shared: &Shared, poster: &Poster<Changed>) -> Result<(), End> {
    // When to look without having been told, on the clock since boot. It comes once more when all is watched again.
    let mut look_at = None;
    // Until when it rests.
    let mut rests_until = Duration::ZERO;
    loop {
        let (blind, instance) = {
            let book = shared.book();
            (book.is_blind(), book.instance())
        };
        if blind && look_at.is_none() {
            look_at = Some(clock::since_boot() + BLIND_LOOK);
        }

        let rests = rests_until > clock::since_boot();
        let listens_to = instance.as_deref().filter(|_| !rests);
        let until = rests
            .then_some(rests_until)
            .into_iter()
            .chain(look_at)
            .min();
        let woken = sleep(shared, listens_to, until)?;
        if woken.bell {
            shared.silence();
        }
        if shared.end.load(Ordering::SeqCst) {
            return Ok(());
        }
        if let Some(instance) = instance.filter(|_| woken.events) {
            let heard = shared.book().hear(&instance)?;
            post(poster, heard)?;
            rests_until = clock::since_boot() + REST;
        }
        if look_at.is_some_and(|at| at <= clock::since_boot()) {
            look_at = None;
            // First the watches and then the word, so that whoever looks looks at what is watched.
            if shared.book().mend() {
                poster.post(Notice::Everything)?;
            }
        }
    }
}

/// Sleeps until there is something to hear, the bell is rung, or it is `until`. A signal ends it too.
fn sleep(
    shared: &Shared,
    instance: Option<&Instance>,
    until: Option<Duration>,
) -> Result<Woken, End> {
    let timeout = until
        .map(|until| Timespec::try_from(until.saturating_sub(clock::since_boot())))
        .transpose()
        .map_err(|_| Errno::INVAL)?;
    // Without an instance the bell stands in its place too.
    let events = instance.map_or(shared.bell.as_fd(), |instance| instance.as_fd());
    let mut fds = [
        PollFd::from_borrowed_fd(shared.bell.as_fd(), PollFlags::IN),
        PollFd::from_borrowed_fd(events, PollFlags::IN),
    ];
    match poll(&mut fds, timeout.as_ref()) {
        Ok(_) | Err(Errno::INTR) => Ok(Woken {
            bell: !fds[0].revents().is_empty(),
            events: instance.is_some() && !fds[1].revents().is_empty(),
        }),
        Err(errno) => Err(errno.into()),
    }
}

fn post(poster: &Poster<Changed>, heard: Heard) -> Result<(), Closed<Changed>> {
    if heard.everything {
        return poster.post(Notice::Everything);
    }
    for changed in heard.changed {
        poster.post(Notice::Of(changed))?;
    }
    Ok(())
}

impl From<Closed<Changed>> for End {
    fn from(_: Closed<Changed>) -> End {
        End::Closed
    }
}

impl From<io::Error> for End {
    fn from(error: io::Error) -> End {
        End::Kernel(error)
    }
}

impl From<Errno> for End {
    fn from(errno: Errno) -> End {
        End::Kernel(errno.into())
    }
}
