//! A supervisor: it claims the store, and then goes round: it looks at every job, does for each what it needs, admits those
//! that wait to the slots of their pool, and sleeps until something has changed. It leaves when nothing keeps it.
//!
//! The actors of the shipped one do the same job by job, as they are told that something may have changed; here everything
//! is looked at in each round, so that nothing has to be remembered but who was admitted.

use std::collections::BTreeMap;

use state_machine::dependency::{Seen, dependency};
use state_machine::disk::Dir;
use state_machine::id::JobId;
use state_machine::job::State;
use state_machine::protocol::look::{Look, View, look};
use state_machine::protocol::supervise::{
    Retired, Supervision, claim_supervision, fail_unmet, is_asked, retire,
};
use state_machine::schedule::{Pool, Rank};
use state_machine::supervise::{Clocks, Need, Readiness, keeps_busy, need, readiness};

use super::{Outcome, Part, SLOTS, recoverer};
use crate::errand::{Glimpse, Memory};
use crate::stage::{News, Stage};

/// What can be wrong about a supervisor.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Faults {
    /// It leaves without looking again.
    pub(crate) leaves_blindly: bool,
    /// It counts only the jobs that it has admitted itself.
    pub(crate) counts_its_own: bool,
}

/// Supervise the store until nothing is to be done.
pub(crate) fn supervise<D: Stage>(
    disk: &mut D,
    part: &Part,
    faults: Faults,
) -> Result<Outcome, D::Fault> {
    let mut memory = match disk.memory() {
        Some(memory) => memory,
        None => match claim_supervision(disk)? {
            Supervision::Ours(lock) => Memory {
                lock,
                admitted: Vec::new(),
                ended: Vec::new(),
            },
            Supervision::Taken => return Ok(Outcome::LeftToSupervisor),
        },
    };
    loop {
        disk.tell(News::Supervises);
        let round = Round::make(disk, part, &mut memory, faults)?;
        if round.busy {
            memory = disk.sleep(memory, round.saw)?;
            continue;
        }
        disk.tell(News::Retires);
        if faults.leaves_blindly {
            disk.release(memory.lock)?;
            return Ok(Outcome::Retired);
        }
        match retire(disk, memory.lock)? {
            Retired::Free => return Ok(Outcome::Retired),
            Retired::Again(lock) => memory.lock = lock,
        }
        disk.tell(News::Supervises);
        memory = disk.sleep(memory, None)?;
    }
}

/// One look at everything, and what came of it.
struct Round {
    /// What was seen of the jobs; `None` where something was done about one of them, and is to be looked at.
    saw: Option<Vec<Glimpse>>,
    /// Whether anything keeps the supervisor.
    busy: bool,
}

impl Round {
    fn make<D: Stage>(
        disk: &mut D,
        part: &Part,
        memory: &mut Memory<D::Handle>,
        faults: Faults,
    ) -> Result<Round, D::Fault> {
        let mut round = Round {
            saw: Some(Vec::new()),
            busy: false,
        };
        let mut pool = Pool::new(SLOTS, false);
        for (job, _) in &memory.admitted {
            pool.occupy(job, 1, None);
        }
        let views = look_at_all(disk, &memory.ended)?;
        for (id, seen) in &views {
            let view = match seen {
                Known::View(view) => view,
                Known::Ended(state) => {
                    pool.remove(id);
                    round.see(Glimpse::new(id.clone(), *state, false, false));
                    continue;
                }
                Known::Damaged => {
                    round.see(Glimpse {
                        job: id.clone(),
                        seen: None,
                    });
                    continue;
                }
            };
            let asked = !view.held && !view.state.is_terminal() && is_asked(disk, id)?;
            let needs = need(view, asked);
            round.busy |= keeps_busy(needs, &view.descriptor);
            round.see(Glimpse::new(
                id.clone(),
                view.status.state,
                view.held,
                asked,
            ));
            match needs {
                Need::Nothing => {
                    pool.remove(id);
                    memory.ended.push((id.clone(), view.state));
                }
                Need::Rest => {}
                Need::Room if faults.counts_its_own => {}
                Need::Room => pool.occupy(id, view.descriptor.slots, view.status.slot),
                Need::Settling => {
                    recoverer::recover(disk, id, part.now_ms)?;
                    round.saw = None;
                }
                Need::Admission | Need::Resumption => {
                    match readiness_of(disk, view, &views, part.now_ms)? {
                        Readiness::Now => {
                            pool.enqueue(Rank::of(&view.descriptor), view.descriptor.slots);
                        }
                        Readiness::Never(why) => {
                            let made_ms = view.descriptor.created_at_ms;
                            fail_unmet(disk, id, &why, made_ms, part.now_ms)?;
                            round.saw = None;
                        }
                        Readiness::Later | Readiness::In(_) => {}
                    }
                }
            }
        }
        while let Some(next) = pool.admit() {
            let worker = disk.fork(&next.id)?;
            memory.admitted.push((next.id, worker));
        }
        memory.ended.sort();
        Ok(round)
    }

    fn see(&mut self, glimpse: Glimpse) {
        if let Some(saw) = &mut self.saw {
            saw.push(glimpse);
        }
    }
}

/// What is known of a job.
enum Known {
    /// This was seen just now.
    View(Box<View>),
    /// It had ended so before.
    Ended(State),
    /// It cannot be read.
    Damaged,
}

impl Known {
    fn seen(&self) -> Seen {
        match self {
            Known::View(view) => Seen::State(view.state),
            Known::Ended(state) => Seen::State(*state),
            Known::Damaged => Seen::Damaged,
        }
    }
}

/// Every job of the listing, with what is true about it. One that has ended is not looked at again.
fn look_at_all<D: Stage>(
    disk: &mut D,
    ended: &[(JobId, State)],
) -> Result<BTreeMap<JobId, Known>, D::Fault> {
    let mut views = BTreeMap::new();
    for name in disk.list(&Dir::Jobs)?.unwrap_or_default() {
        let word = name.to_text();
        let Some(Ok(id)) = word.map(|word| JobId::parse(&word)) else {
            continue;
        };
        if let Some((_, state)) = ended.iter().find(|(known, _)| *known == id) {
            views.insert(id, Known::Ended(*state));
            continue;
        }
        match look(disk, &id)? {
            Look::Job(view) => drop(views.insert(id, Known::View(view))),
            Look::Damaged { .. } => drop(views.insert(id, Known::Damaged)),
            Look::Gone => {}
        }
    }
    Ok(views)
}

/// When a job may start that waits.
fn readiness_of<D: Stage>(
    disk: &mut D,
    view: &View,
    views: &BTreeMap<JobId, Known>,
    now_ms: u64,
) -> Result<Readiness, D::Fault> {
    let after = &view.descriptor.after;
    let mut seen = Vec::with_capacity(after.len());
    for one in after {
        seen.push(match views.get(&one.job) {
            Some(known) => known.seen(),
            // Not in the listing: that it is gone is only said by its own directory.
            None => match look(disk, &one.job)? {
                Look::Job(view) => Seen::State(view.state),
                Look::Damaged { .. } => Seen::Damaged,
                Look::Gone => Seen::Gone,
            },
        });
    }
    let mut seen = seen.into_iter();
    let comes_to = dependency(after, |_| seen.next().unwrap_or(Seen::Damaged));
    Ok(readiness(
        &view.descriptor,
        view.status.attempt,
        comes_to,
        Clocks::at_first(now_ms),
    ))
}
