//! Services that honest programs talk to, and what some of them get wrong: on loopback, in the tests' own processes.
//!
//! | file | what it is for |
//! |---|---|
//! | `said` | what is said to one request, ranges as an honest server answers them |
//! | `hub` | a repository of a hub, as the hub's own client accepts it |
//! | `nginx` | nginx itself, where it is installed |
//! | `registry` | manifests and blobs, and tokens that run out |

mod hub;
mod nginx;
mod registry;
mod said;

pub use hub::{Hub, Repo};
pub use nginx::Nginx;
pub use registry::{Deceit, Guard, Registry, Shelf, digest_of};
