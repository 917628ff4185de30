//! The actor of one pool: who waits, who is inside, and who is next. The order is [`state_machine::schedule`]'s.

use std::collections::{BTreeMap, HashMap};
use std::time::Duration;

use actix::prelude::*;
use state_machine::id::{JobId, PoolName};
use state_machine::schedule::{Pool, Rank};

use super::job::JobActor;
use super::slot::{Fill, SlotActor, Vacate};
use super::starts::Starts;
use super::{Vigil, backoff};
use crate::slots::{GivenBack, Vacancies};

/// How long nobody looks for a slot where none was to be had and none was given back since.
const LONGEST_REST: Duration = Duration::from_secs(5);

/// A job waits for a slot.
#[derive(Message)]
#[rtype(result = "()")]
pub(super) struct Enqueue {
    pub(super) rank: Rank,
    pub(super) slots: u32,
    pub(super) job: Addr<JobActor>,
    /// Whether it leaves a place inside for that.
    pub(super) leaves: bool,
}

/// A job is inside, whoever started it (R20).
#[derive(Message)]
#[rtype(result = "()")]
pub(super) struct Occupy {
    pub(super) id: JobId,
    pub(super) slots: u32,
    pub(super) number: Option<u32>,
}

/// A job neither waits nor is inside any more.
#[derive(Message)]
#[rtype(result = "()")]
pub(super) struct Leave {
    pub(super) id: JobId,
}

/// How the pool is set up from now on.
#[derive(Message)]
#[rtype(result = "()")]
pub(super) struct Configure {
    pub(super) slots: u32,
    pub(super) paused: bool,
}

/// Whether the supervisor admits at all: not before it knows who is inside, and not while it drains.
#[derive(Message)]
#[rtype(result = "()")]
pub(super) struct Admit(pub(super) bool);

/// A job that was admitted found no slot to be had that has a place.
#[derive(Message)]
#[rtype(result = "()")]
pub(super) struct Full;

/// How the slots are that have a place, seen after one of them has changed. Whether anybody waits for one.
#[derive(Message)]
#[rtype(result = "bool")]
pub(super) struct Seen(pub(super) Vacancies);

/// How the pool stands.
#[derive(Message)]
#[rtype(result = "Report")]
pub(super) struct Tell;

/// How a pool stands.
#[derive(Clone, Debug, MessageResponse)]
pub(super) struct Report {
    pub(super) slots: u32,
    pub(super) taken: u32,
    pub(super) waiting: usize,
    pub(super) paused: bool,
}

pub(super) struct PoolActor {
    name: PoolName,
    core: Pool,
    admits: bool,
    /// Somebody found no slot to be had, and none was given back since. The timer is for what nobody gives back: a slot whose
    /// holder has died, and one in which a process stands.
    full: Option<SpawnHandle>,
    /// How often in a row that was so.
    fruitless: u32,
    /// The idle slots that were seen last: each giving back is a reason to look for a slot once.
    seen: BTreeMap<u32, GivenBack>,
    waiting: HashMap<JobId, Addr<JobActor>>,
    slots: BTreeMap<u32, Addr<SlotActor>>,
    starts: Addr<Starts>,
    _vigil: Vigil,
}

impl PoolActor {
    pub(super) fn new(
        name: PoolName,
        slots: u32,
        paused: bool,
        admits: bool,
        starts: Addr<Starts>,
    ) -> PoolActor {
        PoolActor {
            name,
            core: Pool::new(slots, paused),
            admits,
            full: None,
            fruitless: 0,
            seen: BTreeMap::new(),
            waiting: HashMap::new(),
            slots: BTreeMap::new(),
            starts,
            _vigil: Vigil,
        }
    }

    fn admit(&mut self) {
        while self.admits
            && self.full.is_none()
            && let Some(admitted) = self.core.admit()
        {
            let Some(job) = self.waiting.remove(&admitted.id) else {
                // Nobody speaks for it: who does, enqueues it again.
                self.core.remove(&admitted.id);
                continue;
            };
            tracing::debug!(pool = %self.name, slot = admitted.slot, job = %admitted.id, "admitted");
            self.slot(admitted.slot).do_send(Fill {
                id: admitted.id,
                job,
            });
        }
    }

    /// Have somebody look for a slot again.
    fn is_full_no_more(&mut self, ctx: &mut Context<PoolActor>) {
        if let Some(timer) = self.full.take() {
            ctx.cancel_future(timer);
            self.admit();
        }
    }

    fn slot(&mut self, number: u32) -> &Addr<SlotActor> {
        let (pool, starts) = (&self.name, &self.starts);
        self.slots
            .entry(number)
            .or_insert_with(|| SlotActor::new(pool.clone(), number, starts.clone()).start())
    }

    /// A job is not inside any more, nor does it wait.
    fn leave(&mut self, id: &JobId) {
        self.waiting.remove(id);
        let was_inside = self.core.has(id);
        self.core.remove(id);
        if was_inside {
            self.vacate(id);
        }
    }

    /// Whoever left a slot with a number leaves an idle one; those beyond the number of slots end.
    fn vacate(&mut self, id: &JobId) {
        for slot in self.slots.values() {
            slot.do_send(Vacate { id: id.clone() });
        }
        let most = self.core.slots();
        let inside: Vec<u32> = self
            .core
            .inside()
            .filter_map(|(_, number)| number)
            .collect();
        self.slots
            .retain(|number, _| *number <= most || inside.contains(number));
    }
}

impl Actor for PoolActor {
    type Context = Context<PoolActor>;

    fn started(&mut self, ctx: &mut Context<PoolActor>) {
        // As many as can be waiting at once are told in one go at a start.
        ctx.set_mailbox_capacity(1 << 16);
    }
}

impl Handler<Enqueue> for PoolActor {
    type Result = ();

    fn handle(&mut self, wish: Enqueue, _: &mut Context<PoolActor>) {
        let id = wish.rank_id();
        if wish.leaves {
            self.leave(&id);
        }
        self.core.enqueue(wish.rank, wish.slots);
        if !self.core.has(&id) {
            self.waiting.insert(id, wish.job);
        }
        self.admit();
    }
}

impl Enqueue {
    fn rank_id(&self) -> JobId {
        self.rank.id().clone()
    }
}

impl Handler<Occupy> for PoolActor {
    type Result = ();

    fn handle(&mut self, found: Occupy, _: &mut Context<PoolActor>) {
        self.waiting.remove(&found.id);
        self.fruitless = 0;
        self.core.occupy(&found.id, found.slots, found.number);
    }
}

impl Handler<Leave> for PoolActor {
    type Result = ();

    fn handle(&mut self, Leave { id }: Leave, _: &mut Context<PoolActor>) {
        self.leave(&id);
        self.admit();
    }
}

impl Handler<Full> for PoolActor {
    type Result = ();

    fn handle(&mut self, _: Full, ctx: &mut Context<PoolActor>) {
        if self.full.is_some() {
            return;
        }
        self.fruitless += 1;
        let rest = backoff(self.fruitless).min(LONGEST_REST);
        tracing::debug!(pool = %self.name, ?rest, "no slot is to be had");
        let timer = ctx.run_later(rest, |actor, ctx| actor.is_full_no_more(ctx));
        self.full = Some(timer);
    }
}

impl Handler<Seen> for PoolActor {
    type Result = bool;

    fn handle(&mut self, Seen(now): Seen, ctx: &mut Context<PoolActor>) -> bool {
        let before = std::mem::replace(&mut self.seen, now.idle);
        let is_new = |(number, given_back)| before.get(number) != Some(given_back);
        let waits = self.full.is_some();
        if waits && self.seen.iter().any(is_new) {
            tracing::debug!(pool = %self.name, "a slot was given back");
            self.fruitless = 0;
            self.is_full_no_more(ctx);
        }
        waits
    }
}

impl Handler<Configure> for PoolActor {
    type Result = ();

    fn handle(&mut self, setup: Configure, ctx: &mut Context<PoolActor>) {
        if (setup.slots, setup.paused) != (self.core.slots(), self.core.is_paused()) {
            let (slots, paused) = (setup.slots, setup.paused);
            tracing::info!(pool = %self.name, slots, paused, "the pool is set up anew");
            self.fruitless = 0;
            self.is_full_no_more(ctx);
        }
        self.core.configure(setup.slots, setup.paused);
        self.admit();
    }
}

impl Handler<Admit> for PoolActor {
    type Result = ();

    fn handle(&mut self, Admit(admits): Admit, _: &mut Context<PoolActor>) {
        self.admits = admits;
        self.admit();
    }
}

impl Handler<Tell> for PoolActor {
    type Result = Report;

    fn handle(&mut self, _: Tell, _: &mut Context<PoolActor>) -> Report {
        Report {
            slots: self.core.slots(),
            taken: self.core.taken(),
            waiting: self.core.waiting(),
            paused: self.core.is_paused(),
        }
    }
}
