//! The process that makes a transfer: it finds out what a reference stands for, fetches it into a staging directory beside the
//! destination, verifies it, and puts it into place once its worker lets it.
//!
//! It records nothing of the job (R2): it tells its worker by the socket that is its standard input, and may be killed at any
//! instant, which is how it is paused and cancelled. So nothing here handles a signal or a request, and everything on disk is
//! in the order of [`state_machine::protocol::pull`].
//!
//! | room | what it is for |
//! |---|---|
//! | `fetcher` | the process from its first step to its last |
//! | `voice` | what it tells its worker, and how often |
//! | `place` | where a destination is |
//! | `plan` | what is to be fetched, and where it belongs |
//! | `provider` | one file for each kind of reference: what it stands for |
//! | `http` | requests: redirects, who is told which secret, what an error means |
//! | `transfer` | bytes from a server into a part |
//! | `landing` | the directories of the destination, and registering |
//! | `parts` | which unfinished files go when the job is forgotten |
//! | `digest` | what is checked about a file |

mod digest;
mod fetcher;
mod http;
mod landing;
mod parts;
pub(crate) mod place;
mod plan;
mod provider;
mod transfer;
mod voice;

pub(crate) use fetcher::serve;
pub(crate) use parts::discard;

/// Whether a fetcher keeps a file of this name in the directory of its job.
pub(crate) fn is_of_fetcher(name: &str) -> bool {
    let name = name.strip_suffix(".new").unwrap_or(name);
    name == parts::NAME || name == fetcher::RESOLVED
}
