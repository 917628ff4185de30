//! Maintaining the slots of a pool: its command is run in each that is idle and due, with everything that it writes kept.

use std::fs::File;
use std::io::Write;
use std::os::fd::AsFd;
use std::path::PathBuf;
use std::time::Duration;

use state_machine::id::PoolName;
use state_machine::maintenance::{PoolReport, PoolResult, SlotReport, SlotResult};
use state_machine::protocol::slot::find::Finding;
use state_machine::protocol::slot::maintain::{
    Crew, Ended, Maintained, claim_maintenance, end_maintenance, maintain_slot,
};
use state_machine::protocol::slot::occupy::{Occupant, Why};
use state_machine::protocol::slot::place::numbers;
use state_machine::record::{Claim, Holder, Outcome, Upkeep};
use state_machine::stamp;

use super::artifact::artifact;
use super::claimant::claim;
use super::environment::ceiling;
use super::inspect::Notes;
use super::token::new_token;
use super::who::of_claim;
use super::yard::{CannotRun, Yard, words};
use super::{GRACE, MAINTENANCE_VARIABLE, Slots, ms};
use crate::clock;
use crate::disk::{FsDisk, LockFile};
use crate::error::{DiskError, Error, Result};
use crate::process::{self, SLOT_VARIABLE, Work, pid_that_locks};
use crate::workspace::{CEILING, environment};

impl Slots {
    /// Maintain the slots of one pool, or of every pool whose slots have a place, in the order of their names: those that were not
    /// maintained within `older_than`. Surplus slots are shed first, also where there is no command.
    ///
    /// Nobody who wants a slot waits for this, and of two who maintain a pool at once the second leaves it to the first.
    ///
    /// # Errors
    ///
    /// As [`Slots::standings`]. What goes wrong with a slot is in the report.
    pub fn maintain(
        &self,
        pool: Option<&PoolName>,
        older_than: Option<Duration>,
    ) -> Result<Vec<PoolReport>> {
        let pools: Vec<PoolName> = match pool {
            Some(pool) => vec![pool.clone()],
            None => self
                .store
                .pools()?
                .into_iter()
                .filter(|(_, setup)| setup.ground.has_place())
                .map(|(name, _)| name)
                .collect(),
        };
        let maintain = |pool: PoolName| {
            Ok(PoolReport {
                result: self.maintain_pool(&pool, older_than)?,
                pool: pool.to_string(),
            })
        };
        pools
            .into_iter()
            .take_while(|_| !self.is_stopped())
            .map(maintain)
            .collect()
    }

    fn maintain_pool(&self, pool: &PoolName, older_than: Option<Duration>) -> Result<PoolResult> {
        let mut yard = match self.yard(pool) {
            Ok(yard) => yard,
            // A pool that only counts has nothing to maintain.
            Err(Error::NoPlace(_)) => return Ok(PoolResult::NoMaintainCommand),
            Err(error) => return Err(error),
        };
        let Some(upkeep) = yard.setup.ground.maintain.clone() else {
            let shed = yard.shed()?;
            return Ok(if shed.is_empty() {
                PoolResult::NoMaintainCommand
            } else {
                PoolResult::Visited {
                    shed,
                    slots: Vec::new(),
                }
            });
        };
        let mut disk = self.store.disk();
        if numbers(&mut disk, pool)?.is_empty() {
            return Ok(PoolResult::NoSlots);
        }
        let Some(lock) = claim_maintenance(&mut disk, pool)? else {
            let path = self.store.disk().path(&maintain_lock(pool));
            return Ok(PoolResult::Claimed {
                by_pid: pid_that_locks(&path).unwrap_or(0),
            });
        };
        let visited = yard.visit_all(&upkeep, older_than);
        end_maintenance(&mut disk, lock)?;
        visited
    }
}

fn maintain_lock(pool: &PoolName) -> state_machine::disk::Place {
    use state_machine::disk::{Dir, Name};
    Dir::Pool(pool.clone()).at(Name::MaintainLock)
}

impl Yard<'_> {
    fn visit_all(&mut self, upkeep: &Upkeep, older_than: Option<Duration>) -> Result<PoolResult> {
        let shed = self.shed()?;
        let mut disk = self.store.disk();
        let mut slots = Vec::new();
        for number in numbers(&mut disk, &self.pool)? {
            if self.is_stopped() {
                break;
            }
            if let Some(result) = self.visit(&mut disk, number, upkeep, older_than)? {
                slots.push(SlotReport {
                    slot: number,
                    result,
                });
            }
        }
        Ok(PoolResult::Visited { shed, slots })
    }

    fn visit(
        &mut self,
        disk: &mut FsDisk,
        number: u32,
        upkeep: &Upkeep,
        older_than: Option<Duration>,
    ) -> Result<Option<SlotResult>> {
        let pool = self.pool.clone();
        let token = new_token(&pool)?;
        let mut crew = Keeper {
            claim: claim(token, Holder::Maintenance),
            yard: self,
            upkeep,
            notes: Notes::default(),
            ran: None,
        };
        let older_than_ms = older_than.map(ms);
        let now_ms = clock::now_ms();
        let mut maintained = maintain_slot(disk, &pool, number, older_than_ms, now_ms, &mut crew)?;
        if let Maintained::Taken(why) = &maintained
            && crew.yard.end_orphans(number, why)
        {
            maintained = maintain_slot(disk, &pool, number, older_than_ms, now_ms, &mut crew)?;
        }
        let ran = crew.ran.take();
        Ok(Some(match maintained {
            Maintained::NotDue(last_maintained) => SlotResult::NotDue { last_maintained },
            Maintained::Taken(why) => taken(why),
            Maintained::Busy(by) => SlotResult::Unavailable { by },
            Maintained::Unavailable => SlotResult::Unavailable {
                by: format!(
                    "others who look for slots, or have just removed it: {}",
                    self.busy()
                ),
            },
            Maintained::Ran(outcome) => {
                let (duration_ms, artifact) = ran.unwrap_or_default();
                SlotResult::Ran {
                    outcome,
                    duration_ms,
                    artifact: artifact.display().to_string(),
                }
            }
        }))
    }
}

fn taken(why: Why) -> SlotResult {
    match why {
        Why::Session(session) => SlotResult::InUse {
            by: format!("session {}", session.token),
        },
        Why::Held(Some(claim)) => match &claim.holder {
            Holder::Job(job) => SlotResult::InUse {
                by: format!("job {job}"),
            },
            Holder::Session => SlotResult::InUse {
                by: format!("session {}", claim.token),
            },
            Holder::Maintenance => SlotResult::Unavailable {
                by: of_claim(&claim),
            },
        },
        Why::Held(None) => SlotResult::Unavailable {
            by: "somebody who has only just come, or is about to leave".into(),
        },
        Why::Broken(why) => SlotResult::Broken { why },
        Why::Damaged(why) => SlotResult::Broken {
            why: format!("its record cannot be read: {why}"),
        },
    }
}

/// Whoever runs the command in a slot.
struct Keeper<'y, 's> {
    yard: &'y mut Yard<'s>,
    upkeep: &'y Upkeep,
    claim: Claim,
    notes: Notes,
    /// How long it took, and where everything is that it wrote.
    ran: Option<(u64, PathBuf)>,
}

impl Crew<FsDisk> for Keeper<'_, '_> {
    fn inspect(
        &mut self,
        _: &mut FsDisk,
        occupant: &Occupant<LockFile>,
    ) -> Result<Finding, DiskError> {
        Ok(self.yard.inspect(occupant, &mut self.notes))
    }

    fn claim(&mut self, _: &Occupant<LockFile>) -> Claim {
        let mut claim = self.claim.clone();
        claim.since = stamp::of_ms(clock::now_ms());
        claim
    }

    fn run(&mut self, _: &mut FsDisk, occupant: &Occupant<LockFile>) -> Result<Ended, DiskError> {
        let number = occupant.number();
        let (path, log) = artifact(self.yard.store, &format!("{}-{number}", self.yard.pool))?;
        let (outcome, duration_ms) = self.command(occupant, &log)?;
        self.ran = Some((duration_ms, path));
        Ok(Ended {
            outcome,
            now: stamp::of_ms(clock::now_ms()),
        })
    }
}

impl Keeper<'_, '_> {
    fn command(
        &mut self,
        occupant: &Occupant<LockFile>,
        mut log: &File,
    ) -> Result<(Outcome, u64), DiskError> {
        let number = occupant.number();
        let argv = words(&self.upkeep.command);
        if let Some(done) = self.yard.clear_stale_lock(occupant.lock().as_fd()) {
            let _ = writeln!(log, "outlive: {done}");
        }
        let mut env = environment();
        let own = [SLOT_VARIABLE, super::SESSION_VARIABLE, MAINTENANCE_VARIABLE];
        env.retain(|(name, _)| !own.iter().any(|own| name == own));
        let slot_dir = self.yard.slot_dir(number);
        env.push((CEILING.into(), ceiling(&slot_dir, None)));
        env.push((SLOT_VARIABLE.into(), slot_dir.into()));
        let token = self.claim.token.as_str();
        env.push((MAINTENANCE_VARIABLE.into(), token.into()));
        let begun = clock::since_boot();
        let ran = self.yard.run(&Work {
            argv: &argv,
            env: &env,
            cwd: &self.yard.place(number),
            umask: None,
            stdin: None,
            stdout: log.as_fd(),
            stderr: log.as_fd(),
            held: Some(occupant.lock().as_fd()),
            timeout: Duration::from_millis(self.upkeep.timeout_ms),
            grace: GRACE,
        });
        let ran = match ran {
            Ok(ran) => ran,
            // A file that cannot be written to is no reason to record less.
            Err(CannotRun::NotBegun(why)) => {
                let _ = writeln!(log, "outlive: the command cannot be run: {why}");
                return Ok((Outcome::Failed { exit: None }, 0));
            }
            Err(CannotRun::Lost(why)) => {
                let _ = writeln!(log, "outlive: the command is ended: {why}");
                // The slot is not given back over the heads of those that work in it still.
                self.yard.end_own_orphans(number, &self.claim)?;
                let ran = clock::since_boot().saturating_sub(begun);
                return Ok((Outcome::Interrupted, ms(ran)));
            }
        };
        if let Some(leftovers) = &ran.leftovers {
            let _ = writeln!(
                log,
                "outlive: left running when it ended, and ended: {leftovers}"
            );
        }
        if ran.outcome == process::Outcome::Stopped {
            let _ = writeln!(log, "outlive: told to stop, and ended");
        }
        let outcome = match ran.outcome {
            process::Outcome::Succeeded => Outcome::Succeeded,
            process::Outcome::Failed { exit } => Outcome::Failed {
                exit: exit.map(|exit| exit.shell_code()),
            },
            process::Outcome::TimedOut => Outcome::TimedOut,
            process::Outcome::Stopped => Outcome::Interrupted,
        };
        Ok((outcome, ran.duration_ms))
    }
}
