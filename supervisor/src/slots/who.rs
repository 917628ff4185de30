//! Who or what is in the way of having a slot, in words.

use state_machine::protocol::slot::occupy::Why;
use state_machine::record::{Claim, Holder, Session};

/// Whose a slot is, and since when, or what is wrong with it.
pub(super) fn in_the_way(number: u32, why: &Why) -> String {
    match why {
        Why::Session(session) => format!("{number} has {}", of_session(session)),
        Why::Held(Some(claim)) => format!("{number} has {}", of_claim(claim)),
        Why::Held(None) => format!("{number} is being looked at by somebody else"),
        Why::Broken(why) => format!("{number} is broken ({why})"),
        Why::Damaged(why) => format!("{number} has a record that cannot be read ({why})"),
    }
}

/// A session as others see it.
pub(super) fn of_session(session: &Session) -> String {
    let note = session.note.as_deref();
    let note = note.map_or(String::new(), |note| format!(" ({note})"));
    format!("session {}{note} since {}", session.token, session.since)
}

/// Whoever made a claim, as others see him.
pub(super) fn of_claim(claim: &Claim) -> String {
    let Claim { pid, since, .. } = claim;
    match &claim.holder {
        Holder::Job(job) => format!("job {job} since {since}"),
        Holder::Session => format!("session {} since {since}", claim.token),
        Holder::Maintenance => format!("maintenance (process {pid}) since {since}"),
    }
}
