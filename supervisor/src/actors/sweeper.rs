//! The actor that sweeps: what the configuration does not keep is forgotten, soon after it has become too old or too much.
//! Where the configuration keeps everything, it does nothing at all.

use std::collections::hash_map::Entry;
use std::collections::{HashMap, HashSet};
use std::time::Duration;

use actix::prelude::*;
use state_machine::config::Config;
use state_machine::id::JobId;
use state_machine::retention::{Ended, Retention};

use super::{Vigil, backoff, off};
use crate::clock;
use crate::error::Result;
use crate::store::Store;

/// How long after an end a sweep follows: many ends are one sweep.
const SOON: Duration = Duration::from_secs(5);
/// The longest time between two sweeps of what becomes too old.
const LONGEST: Duration = Duration::from_secs(24 * 60 * 60);

/// What is kept from now on.
#[derive(Message)]
#[rtype(result = "()")]
pub(super) struct Keep(pub(super) Config);

/// A job has ended.
#[derive(Message)]
#[rtype(result = "()")]
pub(super) struct Grown;

/// This job is spared: one more comes after it and has not ended.
#[derive(Message)]
#[rtype(result = "()")]
pub(super) struct Spare(pub(super) JobId);

/// One fewer does.
#[derive(Message)]
#[rtype(result = "()")]
pub(super) struct SpareNoMore(pub(super) JobId);

pub(super) struct Sweeper {
    store: Store,
    config: Config,
    /// How many come after each.
    spared: HashMap<JobId, usize>,
    timer: Option<SpawnHandle>,
    /// Whether the timer is set for soon, and not for what becomes too old.
    soon: bool,
    sweeping: bool,
    again: bool,
    failures: u32,
    _vigil: Vigil,
}

impl Sweeper {
    pub(super) fn new(store: Store, config: Config) -> Sweeper {
        Sweeper {
            store,
            config,
            spared: HashMap::new(),
            timer: None,
            soon: false,
            sweeping: false,
            again: false,
            failures: 0,
            _vigil: Vigil,
        }
    }

    fn keeps_everything(&self) -> bool {
        let everything = Retention::default();
        self.config.retention.retention() == everything
            && self
                .config
                .project
                .values()
                .all(|project| project.retention.retention() == everything)
    }

    fn sweep_in(&mut self, time: Duration, ctx: &mut Context<Sweeper>) {
        if let Some(timer) = self.timer.take() {
            ctx.cancel_future(timer);
        }
        self.soon = time <= SOON;
        self.timer = Some(ctx.run_later(time, |actor, ctx| {
            actor.timer = None;
            actor.soon = false;
            actor.sweep(ctx);
        }));
    }

    /// There is more to sweep: do it soon.
    fn grown(&mut self, ctx: &mut Context<Sweeper>) {
        if !self.keeps_everything() && !self.soon {
            self.sweep_in(SOON, ctx);
        }
    }

    fn sweep(&mut self, ctx: &mut Context<Sweeper>) {
        if self.keeps_everything() {
            return;
        }
        if self.sweeping {
            self.again = true;
            return;
        }
        self.sweeping = true;
        let (store, config) = (self.store.clone(), self.config.clone());
        let spared: HashSet<JobId> = self.spared.keys().cloned().collect();
        off(move || sweep(&store, &config, &spared))
            .into_actor(self)
            .map(|swept, actor, ctx| actor.swept(swept, ctx))
            .spawn(ctx);
    }

    fn swept(&mut self, swept: Result<Option<Duration>>, ctx: &mut Context<Sweeper>) {
        self.sweeping = false;
        match swept {
            Ok(next) => {
                self.failures = 0;
                if std::mem::take(&mut self.again) {
                    self.sweep_in(SOON, ctx);
                } else if let Some(next) = next {
                    self.sweep_in(next.clamp(SOON, LONGEST), ctx);
                }
            }
            Err(error) => {
                self.failures += 1;
                tracing::warn!(%error, "the sweep failed; it is tried again");
                self.sweep_in(backoff(self.failures).max(SOON), ctx);
            }
        }
    }
}

/// Forget what is not kept. Says when the next of what is kept becomes too old, if anything does.
fn sweep(store: &Store, config: &Config, spared: &HashSet<JobId>) -> Result<Option<Duration>> {
    let now_ms = clock::now_ms();
    let mut by_project: std::collections::BTreeMap<Option<String>, Vec<Ended>> =
        std::collections::BTreeMap::new();
    // No more is kept of a job than the rule needs: there may be very many.
    let (ended, _) = store.show_all(|view| {
        if !view.state.is_terminal() || spared.contains(&view.descriptor.id) {
            return None;
        }
        // Only projects that have a rule of their own are apart.
        let project = view
            .descriptor
            .project
            .as_ref()
            .map(|root| root.lossy().into_owned())
            .filter(|root| config.project.contains_key(root));
        let ended = Ended {
            ended_at_ms: view.status.ended_at_ms.unwrap_or(view.status.updated_at_ms),
            id: view.descriptor.id,
        };
        Some((project, ended))
    })?;
    for (project, ended) in ended.into_iter().flatten() {
        by_project.entry(project).or_default().push(ended);
    }
    let mut next: Option<u64> = None;
    for (project, ended) in by_project {
        let retention = config.retention_of(project.as_deref());
        if retention == Retention::default() {
            // Nothing is said: nothing goes.
            continue;
        }
        let oldest = ended.iter().map(|job| job.ended_at_ms).min();
        let taken = retention.takes(ended, now_ms);
        let swept = store.forget(&taken)?;
        if !swept.forgotten.is_empty() {
            tracing::info!(jobs = swept.forgotten.len(), "swept");
        }
        for left in swept.left {
            tracing::warn!(%left, "something is left of what is forgotten");
        }
        for kept in swept.kept {
            tracing::debug!(job = %kept.id, why = kept.why, "not swept");
        }
        if let (Some(limit), Some(oldest)) = (retention.older_than_ms, oldest) {
            let due = oldest.saturating_add(limit).saturating_sub(now_ms);
            let due = if due == 0 { limit } else { due };
            next = Some(next.map_or(due, |next| next.min(due)));
        }
    }
    Ok(next.map(Duration::from_millis))
}

impl Actor for Sweeper {
    type Context = Context<Sweeper>;
}

impl Handler<Keep> for Sweeper {
    type Result = ();

    fn handle(&mut self, Keep(config): Keep, ctx: &mut Context<Sweeper>) {
        self.config = config;
        self.sweep(ctx);
    }
}

impl Handler<Grown> for Sweeper {
    type Result = ();

    fn handle(&mut self, _: Grown, ctx: &mut Context<Sweeper>) {
        self.grown(ctx);
    }
}

impl Handler<Spare> for Sweeper {
    type Result = ();

    fn handle(&mut self, Spare(job): Spare, _: &mut Context<Sweeper>) {
        *self.spared.entry(job).or_default() += 1;
    }
}

impl Handler<SpareNoMore> for Sweeper {
    type Result = ();

    fn handle(&mut self, SpareNoMore(job): SpareNoMore, ctx: &mut Context<Sweeper>) {
        if let Entry::Occupied(mut spared) = self.spared.entry(job) {
            *spared.get_mut() -= 1;
            if *spared.get() == 0 {
                spared.remove();
                self.grown(ctx);
            }
        }
    }
}
