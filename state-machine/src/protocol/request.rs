//! Asking something of a job, and taking what was asked (R6).
//!
//! A request is built in `staging/` and then placed as the job's `control`: cancel by rename, which replaces
//! anything weaker; pause and resume by link, which replaces nothing. The holder takes it by renaming it to
//! `control.taken` and only then reads it, so that what it honours is what it removed; it keeps it until the
//! effect is recorded, so that a crash in between loses nothing.

use crate::call::Call;
use crate::control::{Control, Request};
use crate::disk::{Change, Content, Dir, Disk, Name, Place, Read};
use crate::id::{JobId, Ticket};
use crate::job::State;
use crate::protocol::claim::{Held, probe};
use crate::record::Damaged;

/// How often placing is tried: a collector may take the request away while it is still in `staging/`.
const PLACEMENTS: u32 = 8;

/// What asking came to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Asked {
    /// The request is on disk. It takes effect, or the job ends first.
    Placed,
    /// The same, or a cancel, is waiting already.
    Standing(Request),
    /// A request of the same strength has not been honoured yet; ask again when it has.
    Busy(Request),
    /// The job has ended.
    Ended(State),
    /// The job is past stopping.
    TooLate,
    /// There is no such job.
    Gone,
    /// Its status cannot be read.
    Damaged(Damaged),
    /// Collectors took the request away every time.
    Crowded,
}

/// Ask something of a job.
pub fn request<D: Disk>(
    disk: &mut D,
    id: &JobId,
    request: Request,
    ticket: &Ticket,
) -> Result<Asked, D::Fault> {
    disk.begins(|_| Call::Request {
        id: id.clone(),
        request,
        ticket: ticket.clone(),
    });
    let dir = Dir::Job(id.clone());
    match disk.read_status(&dir)? {
        Read::Value(status) if status.state.is_terminal() && status.leftovers.is_none() => {
            return Ok(Asked::Ended(status.state));
        }
        // Where its worker died over that, it is as stoppable as any other.
        Read::Value(status)
            if status.is_past_stopping()
                && probe(disk, &Place::of_job(id, Name::Lock))? == Held::Yes =>
        {
            return Ok(Asked::TooLate);
        }
        Read::Value(_) => {}
        Read::Damaged(why) => return Ok(Asked::Damaged(why)),
        Read::Absent if disk.exists(&Place::Dir(dir.clone()))? => {}
        Read::Absent => return Ok(Asked::Gone),
    }
    let control = dir.at(Name::Control);
    for nth in 0..PLACEMENTS {
        let staged = Dir::Staging.at(Name::Request(ticket.nth(nth)));
        disk.write(&staged, &Content::Request(request))?;
        let placed = if request == Request::Cancel {
            disk.rename(&staged, &control)?
        } else {
            let placed = disk.link(&staged, &control)?;
            disk.unlink(&staged)?;
            placed
        };
        match placed {
            Change::Done => return Ok(Asked::Placed),
            Change::Exists => match disk.read_control(&control)? {
                Some(Control::Asked(Request::Cancel)) => {
                    return Ok(Asked::Standing(Request::Cancel));
                }
                Some(Control::Asked(standing)) if standing == request => {
                    return Ok(Asked::Standing(standing));
                }
                Some(Control::Asked(standing)) => return Ok(Asked::Busy(standing)),
                // Something is there that the holder will throw away, or it was taken just now.
                Some(_) | None => disk.give_way(nth)?,
            },
            _ if disk.exists(&Place::Dir(dir.clone()))? => {}
            _ => {
                // What found no place is nobody's.
                disk.unlink(&staged)?;
                return Ok(Asked::Gone);
            }
        }
    }
    Ok(Asked::Crowded)
}

/// What the holder found when it looked for a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Took {
    /// Nothing was asked.
    Nothing,
    /// This was asked; call [`answered`] once its effect is recorded.
    Asked(Request),
    /// A control file is there and still empty: look again in a moment, and call [`discard`] when it stays so.
    Empty,
    /// Something was asked that is no request; call [`answered`] once that has been said.
    Unknown(String),
}

/// Take the request that is to be honoured next. Only for the holder of the job's lock.
///
/// A request that an earlier holder took and did not answer comes first, unless a stronger one waits: a cancel
/// takes the place of a pause that is being honoured, and nothing takes the place of a cancel.
pub fn take<D: Disk>(disk: &mut D, id: &JobId) -> Result<Took, D::Fault> {
    disk.begins(|_| Call::Take { id: id.clone() });
    let control = Place::of_job(id, Name::Control);
    let taken = Place::of_job(id, Name::Taken);
    let honouring = disk.read_control(&taken)?;
    let waiting = disk.read_control(&control)?;
    let take_waiting = match (&honouring, &waiting) {
        (_, None | Some(Control::Empty)) => false,
        (Some(Control::Asked(honoured)), Some(Control::Asked(asked))) => asked.outranks(*honoured),
        (Some(Control::Asked(_)), Some(Control::Unknown(_))) => false,
        (None | Some(Control::Empty | Control::Unknown(_)), Some(_)) => true,
    };
    let found = if take_waiting && disk.rename(&control, &taken)? == Change::Done {
        disk.read_control(&taken)?
    } else {
        honouring.or(waiting.filter(|waiting| *waiting == Control::Empty))
    };
    Ok(match found {
        None => Took::Nothing,
        Some(Control::Asked(request)) => Took::Asked(request),
        Some(Control::Empty) => Took::Empty,
        Some(Control::Unknown(word)) => Took::Unknown(word),
    })
}

/// The effect of what was taken is recorded: it can go. A request that came meanwhile is another file and
/// stays (R6).
pub fn answered<D: Disk>(disk: &mut D, id: &JobId) -> Result<(), D::Fault> {
    disk.begins(|_| Call::Answered { id: id.clone() });
    let taken = Place::of_job(id, Name::Taken);
    if disk.unlink(&taken)? == Change::NotEmpty {
        // Somebody made a directory of that name. It goes to the trash, or it would be taken for a request for ever.
        for nth in 0..PLACEMENTS {
            let trashed = Dir::Trashed(trash_ticket(id).nth(nth));
            if disk.rename_new(&taken, &Place::Dir(trashed))? != Change::Exists {
                break;
            }
        }
    }
    Ok(())
}

/// A ticket of the job's own, cut so that a number still fits behind it.
fn trash_ticket(id: &JobId) -> Ticket {
    let word: String = id.as_str().chars().take(40).collect();
    // What can be an id can be a ticket: both are one entry of a directory.
    Ticket::parse(&word).unwrap_or_else(|_| unreachable!("an id is a ticket"))
}

/// Throw away a control file that has stayed empty, so that the next request makes a new one, which is noticed.
/// It is taken like any request: what was written into it meanwhile is honoured, not lost.
pub fn discard<D: Disk>(disk: &mut D, id: &JobId) -> Result<Took, D::Fault> {
    disk.begins(|_| Call::Discard { id: id.clone() });
    let control = Place::of_job(id, Name::Control);
    let taken = Place::of_job(id, Name::Taken);
    match disk.read_control(&taken)? {
        None | Some(Control::Empty) => {}
        Some(_) => return take(disk, id),
    }
    disk.rename(&control, &taken)?;
    match disk.read_control(&taken)? {
        Some(Control::Asked(request)) => Ok(Took::Asked(request)),
        Some(Control::Unknown(word)) => Ok(Took::Unknown(word)),
        Some(Control::Empty) => {
            answered(disk, id)?;
            Ok(Took::Nothing)
        }
        None => Ok(Took::Nothing),
    }
}
