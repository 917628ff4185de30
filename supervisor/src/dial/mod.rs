//! The client's end of a supervisor's socket, and where that socket is. Nothing here needs a supervisor to be there, and
//! nothing is concluded from what it says but that it is worth a look. What must never be here: a job's files, and a wait
//! without an end.

mod address;
mod conversation;
mod subscription;

pub(crate) use address::{listen, reach, withdraw};
pub(crate) use conversation::{Conversation, Reply};
pub(crate) use subscription::{Heard, Subscription, Teller};
