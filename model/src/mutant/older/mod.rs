//! Whole protocols that are known to be wrong, over the same disk: those that this design grew from, and what one
//! might write in their place.

mod ask_nobody;
mod bad_fetcher;
mod bad_supervisor;
mod check_then_remove;
mod close_only;
mod compare_then_unlink;
mod give_up;
mod lock_without_look;
mod reader_mends;
mod record_anyway;
mod recreate;
mod run_unclaimed;
mod skip_running;
mod start_unseen;
mod status_before_empty;
mod status_then_probe;
mod write_unlocked;

use crate::role::{Outcome, Part};
use crate::stage::Stage;

/// A wrong protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Older {
    /// A worker that runs the job that it was forked for, whoever supervises by the time it has claimed it (R20).
    AskNobody,
    /// A sweep that reads the record, probes the lock, and then removes: a worker can claim in between (R9).
    CheckThenRemove,
    /// A holder that closes its lock and does not give it up: who has a copy of it for a moment is taken for an owner (R6).
    CloseOnly,
    /// A supervisor that counts only the jobs that it has admitted itself (R20).
    CountItsOwn,
    /// A holder that reads the request, honours it, compares, and unlinks: a cancel that lands between the two
    /// is lost (R6).
    CompareThenUnlink,
    /// A fetcher that writes into a part that it has not locked (R12).
    FetchUnlocked,
    /// A worker that tries once to record the end, and leaves whatever came of it (R13).
    GiveUp,
    /// A fetcher that makes files known before they are in place (R24).
    KeystoneFirst,
    /// A supervisor that leaves for want of work without looking again (R18).
    LeaveBlindly,
    /// A worker that sees the end and leaves without a word (R13).
    LeaveUnrecorded,
    /// A claim that does not look whether the file that it locked still stands at the path (R1).
    LockWithoutLook,
    /// A reader that writes what it has concluded (R2).
    ReaderMends,
    /// A fetcher whose record tells of a block before that is written (R24).
    RecordAhead,
    /// A line that is written into a job that is gone, by making it again (R10).
    RecordAnyway,
    /// A request that is placed in a job that is gone, by making it again (R10).
    Recreate,
    /// A worker that runs a job because it was admitted, and does not claim it (R2).
    RunUnclaimed,
    /// A holder that records the end of a job that never ran: an assertion of the product stops it (R7).
    SkipRunning,
    /// A worker that starts a command without looking for what is left of the last one (R11).
    StartUnseen,
    /// A worker that records the end before it ends the tree (R11).
    StatusBeforeEmpty,
    /// A reader that reads the record first and asks for the lock then: a job that ended in between looks
    /// interrupted (R3).
    StatusThenProbe,
    /// A holder that writes the record after it has let the job go (R2).
    WriteUnlocked,
}

impl Older {
    /// Play the part wrongly.
    pub fn play<D: Stage>(self, disk: &mut D, part: &Part) -> Result<Outcome, D::Fault> {
        match self {
            Older::AskNobody => ask_nobody::work(disk, part),
            Older::FetchUnlocked => bad_fetcher::without_lock(disk, part),
            Older::KeystoneFirst => bad_fetcher::keystone_first(disk, part),
            Older::RecordAhead => bad_fetcher::record_first(disk, part),
            Older::CheckThenRemove => check_then_remove::sweep(disk, part),
            Older::CloseOnly => close_only::hold(disk, part),
            Older::CompareThenUnlink => compare_then_unlink::honour(disk, part),
            Older::CountItsOwn => bad_supervisor::count_its_own(disk, part),
            Older::LeaveBlindly => bad_supervisor::leave_blindly(disk, part),
            Older::RunUnclaimed => run_unclaimed::run(disk, part),
            Older::GiveUp => give_up::run(disk, part, true),
            Older::LeaveUnrecorded => give_up::run(disk, part, false),
            Older::ReaderMends => reader_mends::read(disk, part),
            Older::RecordAnyway => record_anyway::note(disk, part),
            Older::Recreate => recreate::ask(disk, part),
            Older::StartUnseen => start_unseen::run(disk, part),
            Older::StatusBeforeEmpty => status_before_empty::run(disk, part),
            Older::WriteUnlocked => write_unlocked::hold(disk, part),
            Older::LockWithoutLook => lock_without_look::hold(disk, part),
            Older::SkipRunning => skip_running::end(disk, part),
            Older::StatusThenProbe => status_then_probe::read(disk, part),
        }
    }
}
