//! The spawner: a small process with one thread that forks workers for a supervisor, which has many and must not fork. It is
//! the supervisor's program, executed once for that; forking costs a fraction of an execution for each job.
//!
//! | file | what it is for |
//! |---|---|
//! | `handle` | the supervisor's end: executing a spawner, asking it, hearing from it |
//! | `process` | the spawner's end: its loop |
//! | `crew` | the workers that it has forked: what they say of their start, and their end |
//! | `message` | what goes over the socket between the two, one message per datagram |
//!
//! The spawner knows no pool and no order, and decides nothing: a worker that it forks takes the job itself, or is refused.
//! It is nothing that a job depends on. It ends with the supervisor's end of the socket, by no other signal than SIGKILL,
//! and its workers live on when it does, whatever ended it.

mod crew;
mod handle;
mod message;
mod process;

pub use handle::Spawner;
pub use message::Answer;
pub(crate) use process::serve;
