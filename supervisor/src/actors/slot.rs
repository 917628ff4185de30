//! The actor of one slot: the job in it, and having that started.

use actix::prelude::*;
use state_machine::id::{JobId, PoolName};

use super::Vigil;
use super::job::{Admitted, JobActor};
use super::starts::{Start, Starts};

/// A job gets the slot.
#[derive(Message)]
#[rtype(result = "()")]
pub(super) struct Fill {
    pub(super) id: JobId,
    pub(super) job: Addr<JobActor>,
}

/// This job is out of the slot, if it was in it.
#[derive(Message)]
#[rtype(result = "()")]
pub(super) struct Vacate {
    pub(super) id: JobId,
}

pub(super) struct SlotActor {
    pool: PoolName,
    number: u32,
    job: Option<JobId>,
    starts: Addr<Starts>,
    _vigil: Vigil,
}

impl SlotActor {
    pub(super) fn new(pool: PoolName, number: u32, starts: Addr<Starts>) -> SlotActor {
        SlotActor {
            pool,
            number,
            job: None,
            starts,
            _vigil: Vigil,
        }
    }
}

impl Actor for SlotActor {
    type Context = Context<SlotActor>;
}

impl Handler<Fill> for SlotActor {
    type Result = ();

    fn handle(&mut self, Fill { id, job }: Fill, _: &mut Context<SlotActor>) {
        tracing::info!(pool = %self.pool, slot = self.number, job = %id, "starting");
        self.job = Some(id.clone());
        job.do_send(Admitted(self.number));
        self.starts.do_send(Start {
            id,
            slot: Some(self.number),
            job,
        });
    }
}

impl Handler<Vacate> for SlotActor {
    type Result = ();

    fn handle(&mut self, Vacate { id }: Vacate, _: &mut Context<SlotActor>) {
        if self.job.as_ref() == Some(&id) {
            self.job = None;
            tracing::debug!(pool = %self.pool, slot = self.number, job = %id, "the slot is idle");
        }
    }
}
