//! The socket of a supervisor, `supervisor.sock`. Nothing needs it to be right, only to be told sooner.

mod report;

pub use report::{PoolReport, StatusReport};

use actix::Addr;

use crate::actors::Root;
use crate::store::Store;

/// Serve the socket of the store.
pub(crate) fn serve(_store: &Store, _root: Addr<Root>) {}
