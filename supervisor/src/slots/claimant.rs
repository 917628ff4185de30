//! Claims as this process makes them: who it is, for people to read. That it lives is what its lock says, and nothing here.

use state_machine::id::Token;
use state_machine::record::{Claim, Holder};
use state_machine::stamp;

use crate::clock;
use crate::process::start_of_this_process;

/// A claim of this process, from now on.
pub(super) fn claim(token: Token, holder: Holder) -> Claim {
    Claim {
        token,
        holder,
        pid: std::process::id(),
        started: start_of_this_process(),
        boot_id: clock::boot_id(),
        since: stamp::of_ms(clock::now_ms()),
    }
}
