//! Those who work in the slots of a pool: sessions, jobs, maintenance; and those who look at them, close them, or take them
//! out of the pool. Finding a slot, and going through those of a pool, is the shipped code; what a role adds is the tree that
//! works in the slot, and looking whether one does.

mod closer;
mod enterer;
mod maintainer;
mod mender;
mod onlooker;
mod opener;
mod renewer;
mod shedder;
mod tenant;

use state_machine::id::{JobId, Token};
use state_machine::protocol::slot::find::Finding;
use state_machine::protocol::slot::look::Standing;
use state_machine::protocol::slot::occupy::Occupant;
use state_machine::record::{Claim, Holder};
use state_machine::stamp;

use super::{Outcome, Part};
use crate::stage::Stage;

/// What a process does about slots.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Slots {
    /// Opens a session, and leaves it open.
    Open,
    /// Opens one that has expired as soon as it is open.
    OpenBriefly,
    /// Opens one, lets a command work in it, and closes it.
    Work,
    /// Lets a command work in a session that is not its own.
    Enter,
    /// Closes a session that is not its own.
    Close,
    /// Lets a session expire later that is not its own.
    Renew,
    /// Finds a slot broken.
    Break,
    /// Mends the first slot.
    Mend,
    /// Runs a job in a slot.
    Tenant,
    /// Maintains every slot that is due.
    Maintain,
    /// Takes the slots out of the pool that are more than one.
    Shed,
    /// Takes every slot out.
    ShedAll,
    /// Looks at the first slot.
    Look,
}

/// What somebody who looked at a slot saw.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Seen {
    /// It is nobody's.
    Idle,
    /// It is nobody's, and was not given back.
    Left,
    /// A session is open in it.
    Session,
    /// A job or maintenance has it.
    Claimed,
    /// Somebody has it who comes or leaves.
    Held,
    /// It is broken.
    Broken,
}

impl From<&Standing> for Seen {
    fn from(standing: &Standing) -> Seen {
        match standing {
            Standing::Idle => Seen::Idle,
            Standing::Left => Seen::Left,
            Standing::Session(_) => Seen::Session,
            Standing::Claimed(_) => Seen::Claimed,
            Standing::Held => Seen::Held,
            Standing::Broken(_) => Seen::Broken,
        }
    }
}

/// How long a slot that was maintained is not due, in ms. Every clock of the model is well within it.
pub const SPAN_MS: u64 = 10_000;

/// Play the part.
pub(super) fn play<D: Stage>(disk: &mut D, part: &Part, slots: Slots) -> Result<Outcome, D::Fault> {
    match slots {
        Slots::Open | Slots::OpenBriefly | Slots::Work => opener::open(disk, part, slots),
        Slots::Close => closer::close(disk, &token_of(part.closes)),
        Slots::Enter => enterer::enter_and_work(disk, &token_of(part.closes)),
        Slots::Renew => renewer::renew(disk, part),
        Slots::Break => mender::find_broken(disk, part),
        Slots::Mend => mender::mend_first(disk),
        Slots::Tenant => tenant::run(disk, part),
        Slots::Maintain => maintainer::maintain(disk, part),
        Slots::Shed => shedder::shed(disk, part, 1),
        Slots::ShedAll => shedder::shed(disk, part, 0),
        Slots::Look => onlooker::look(disk),
    }
}

fn token_of(ticket: &str) -> Token {
    Token::parse(ticket).expect("a ticket is a word")
}

fn claim_of(part: &Part, holder: Holder) -> Claim {
    Claim {
        token: token_of(part.ticket.as_str()),
        holder,
        pid: 7,
        started: 1,
        boot_id: "b".into(),
        since: stamp::of_ms(part.now_ms),
    }
}

/// The name under which what works in a slot with this token is known.
pub fn tree_in(number: u32, token: &Token) -> JobId {
    JobId::parse(&format!("slot{number}-{token}")).expect("it is a word")
}

/// The slot that a tree works in, and the token with which; `None` for one of a job without a slot.
pub fn place_of(tree: &JobId) -> Option<(u32, Token)> {
    let (number, token) = tree.as_str().strip_prefix("slot")?.split_once('-')?;
    Some((number.parse().ok()?, token_of(token)))
}

/// Look at what stands in a slot: here only whether something works in it.
fn inspect<D: Stage>(disk: &mut D, occupant: &Occupant<D::Handle>) -> Result<Finding, D::Fault> {
    let record = occupant.record();
    if !record.returned && disk.works_in(record.number)? {
        return Ok(Finding::Busy("a tree".into()));
    }
    Ok(Finding::Sound)
}
