//! Queueing many jobs at once: everything is checked before anything is made, and none of them can be started before all of
//! them are there.

mod order;

use std::collections::{BTreeMap, HashMap, HashSet};

use state_machine::config::PoolSetup;
use state_machine::id::{JobId, Name, PoolName, slug};
use state_machine::job::State;
use state_machine::protocol::batch::{create_batch, withdraw_batch};
use state_machine::protocol::look::View;
use state_machine::record::{After, AfterWhen, Descriptor};

use self::order::in_order;
use super::pools::no_pool;
use super::{Begun, Held, Job, JobSpec, Store, slots_of, ticket};
use crate::clock;
use crate::error::{Error, Result};

/// How many jobs are made with one sync: some ms apart, so that a failure is seen before all the work is done.
const CHUNK: usize = 256;

/// A job of a batch.
#[derive(Clone, Debug)]
pub(crate) struct BatchJob {
    /// Where it was asked for, for errors.
    pub(crate) line: usize,
    /// What it is called there.
    pub(crate) label: Option<String>,
    /// What it is to be.
    pub(crate) spec: JobSpec,
    /// The others of the batch that it comes after, by their place in it, beside those of the spec.
    pub(crate) after: Vec<(usize, AfterWhen)>,
}

/// What is done where an unfinished job bears the name of one that is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum IfRunning {
    /// That one stands for it.
    Join,
    /// It is refused.
    Fail,
    /// That one is stopped first.
    Replace,
}

/// A job that was asked for, and whether it is new.
#[derive(Debug)]
pub(crate) struct Queued {
    pub(crate) job: Job,
    pub(crate) is_new: bool,
}

impl Store {
    /// Make many jobs that wait for slots of their pools, in the order in which they are given. When this returns, all of
    /// them survive a loss of power (R19), and can be started; where it fails, none of them is left to run.
    ///
    /// Each of them is held until all are there, which takes a descriptor for each: `room` says how many there are.
    ///
    /// # Errors
    ///
    /// What is wrong with a job names its line, and nothing was made. [`Error::NotNow`] where there is no `room`.
    pub(crate) fn queue_batch(
        &self,
        jobs: Vec<BatchJob>,
        if_running: IfRunning,
        room: usize,
    ) -> Result<Vec<Queued>> {
        if jobs.len() > room {
            return Err(Error::NotNow(format!(
                "{} jobs at once take as many open files, and {room} are allowed; raise the limit (ulimit -Hn) or give \
                 fewer at once",
                jobs.len()
            )));
        }
        self.see_that_pools_have_room(&jobs)?;
        self.see_that_names_are_free(&jobs, if_running)?;
        let after: Vec<Vec<usize>> = jobs
            .iter()
            .map(|job| job.after.iter().map(|(on, _)| *on).collect())
            .collect();
        let order = in_order(&after).map_err(|circle| wait_for_one_another(&jobs, &circle))?;
        let mut making = Making::new(self, jobs, if_running);
        match making.make_all(&order) {
            Ok(()) => making.let_go(),
            Err(error) => Err(making.take_back(error)),
        }
    }

    fn see_that_pools_have_room(&self, jobs: &[BatchJob]) -> Result<()> {
        let pools = self.pools()?;
        for job in jobs {
            see_that_pool_has_room(&pools, job.spec.pool.as_deref(), job.spec.slots)
                .map_err(|error| error.at_line(job.line))?;
        }
        Ok(())
    }

    /// Two jobs of a batch cannot bear one name: the second would join the first. With `fail`, none that is under way can
    /// have it either.
    fn see_that_names_are_free(&self, jobs: &[BatchJob], if_running: IfRunning) -> Result<()> {
        let mut lines: HashMap<&Name, usize> = HashMap::new();
        for job in jobs {
            let Some(name) = &job.spec.name else { continue };
            if let Some(first) = lines.insert(name, job.line) {
                let twice = Error::Usage(format!("line {first} has the name '{name}' already"));
                return Err(twice.at_line(job.line));
            }
        }
        if lines.is_empty() || if_running != IfRunning::Fail {
            return Ok(());
        }
        for view in self.list_outlines()?.jobs {
            let bearer = jobs.iter().find(|job| bears_name_of(&view, &job.spec));
            if let Some(job) = bearer {
                return Err(under_way(&view).at_line(job.line));
            }
        }
        Ok(())
    }
}

/// Whether the pool that a job asks for is there, and can ever have as many idle slots as it takes.
pub(super) fn see_that_pool_has_room(
    pools: &BTreeMap<PoolName, PoolSetup>,
    pool: Option<&str>,
    wanted: u32,
) -> Result<()> {
    let pool = match pool {
        None => PoolName::default(),
        Some(word) => PoolName::parse(word).map_err(|why| Error::BadWord {
            word: word.to_owned(),
            why,
        })?,
    };
    let Some(setup) = pools.get(&pool) else {
        return Err(no_pool(pool, pools.keys()));
    };
    let slots = slots_of(setup);
    if wanted > slots {
        return Err(Error::NotNow(format!(
            "it takes {wanted} slots, and the pool {pool} has {slots}; give the pool more with: outlive pool set {pool} \
             --slots N"
        )));
    }
    Ok(())
}

fn bears_name_of(view: &View, spec: &JobSpec) -> bool {
    let project = view.descriptor.project.as_ref().map(super::os_string);
    let theirs = project.as_deref().map(std::path::Path::new);
    spec.name.is_some()
        && view.descriptor.name == spec.name
        && theirs == spec.project.as_deref()
        && !view.state.is_terminal()
}

/// A job of this name is under way, and that is not what is wanted.
pub(crate) fn under_way(view: &View) -> Error {
    let name = view.descriptor.name.as_ref().map_or("", Name::as_str);
    Error::NotNow(format!(
        "'{name}' is {} already, as {}",
        view.state, view.descriptor.id
    ))
}

/// The error of jobs that wait for one another, as a chain.
fn wait_for_one_another(jobs: &[BatchJob], circle: &[usize]) -> Error {
    let called = |place: &usize| {
        let job = &jobs[*place];
        let label = job.label.as_ref().map(|label| format!("'{label}'"));
        label.unwrap_or_else(|| format!("line {}", job.line))
    };
    let why = match circle {
        [itself] => format!("{} comes after itself", called(itself)),
        _ => {
            let chain: Vec<String> = circle.iter().chain(circle.first()).map(called).collect();
            format!("each of these comes after the next: {}", chain.join(", "))
        }
    };
    let line = circle.first().map_or(0, |place| jobs[*place].line);
    Error::Usage(why).at_line(line)
}

/// A job that was made, or found under way.
struct Made {
    id: JobId,
    /// Its lock, where it is new.
    held: Option<Held>,
}

/// A batch on its way.
struct Making<'a> {
    store: &'a Store,
    if_running: IfRunning,
    created_at_ms: u64,
    /// Those that are not made yet.
    jobs: Vec<Option<BatchJob>>,
    made: Vec<Option<Made>>,
    /// The ids that are given away, or that one of the batch comes after: no other may have them.
    ids: HashSet<JobId>,
    /// What was being made with one sync when that failed. Some of it may be there.
    failed: Vec<Descriptor>,
}

impl<'a> Making<'a> {
    fn new(store: &'a Store, jobs: Vec<BatchJob>, if_running: IfRunning) -> Making<'a> {
        let after = jobs.iter().flat_map(|job| &job.spec.after);
        Making {
            store,
            if_running,
            created_at_ms: clock::now_ms(),
            ids: after.map(|after| after.job.clone()).collect(),
            made: jobs.iter().map(|_| None).collect(),
            jobs: jobs.into_iter().map(Some).collect(),
            failed: Vec::new(),
        }
    }

    fn make_all(&mut self, order: &[usize]) -> Result<()> {
        let mut chunk = Vec::with_capacity(CHUNK);
        for &place in order {
            let Some(job) = self.jobs[place].take() else {
                continue;
            };
            let line = job.line;
            let has_key = job.spec.name.is_some() || job.spec.task.is_some();
            if has_key {
                self.make_chunk(&mut chunk)?;
                let descriptor = self.describe(place, job);
                self.start(place, descriptor)
                    .map_err(|error| error.at_line(line))?;
            } else {
                let descriptor = self.describe(place, job);
                // It is known from here on by whoever comes after it.
                self.made[place] = Some(Made {
                    id: descriptor.id.clone(),
                    held: None,
                });
                chunk.push((place, descriptor));
            }
            if chunk.len() == CHUNK {
                self.make_chunk(&mut chunk)?;
            }
        }
        self.make_chunk(&mut chunk)
    }

    /// The descriptor of a job whose predecessors in the batch have their ids.
    fn describe(&mut self, place: usize, job: BatchJob) -> Descriptor {
        let mut descriptor = job.spec.into_descriptor(self.created_at_ms);
        descriptor.order = u32::try_from(place).unwrap_or(u32::MAX);
        for (on, when) in job.after {
            if let Some(made) = &self.made[on] {
                let job = made.id.clone();
                descriptor.after.push(After { job, when });
            }
        }
        descriptor.id = self.free_id(&descriptor);
        descriptor
    }

    /// An id that no other of the batch has: two that differ in their words can come to the same.
    fn free_id(&mut self, descriptor: &Descriptor) -> JobId {
        let slug = slug(&descriptor.display_name);
        let first = descriptor.order.saturating_add(1);
        let mut id = JobId::new(self.created_at_ms, &slug, first);
        let mut another = first;
        while !self.ids.insert(id.clone()) {
            another = another.wrapping_add(1);
            id = JobId::new(self.created_at_ms, &format!("{slug}-{first}"), another);
        }
        id
    }

    fn make_chunk(&mut self, chunk: &mut Vec<(usize, Descriptor)>) -> Result<()> {
        if chunk.is_empty() {
            return Ok(());
        }
        let (places, mut descriptors): (Vec<usize>, Vec<Descriptor>) = chunk.drain(..).unzip();
        let created = create_batch(&mut self.store.disk(), &mut descriptors, &ticket());
        let holders = match created {
            Ok(Some(holders)) => holders,
            Ok(None) => return Err(Error::Busy("making the jobs".into())),
            Err(error) => {
                self.failed = descriptors;
                return Err(error.into());
            }
        };
        for ((place, descriptor), holder) in places.into_iter().zip(descriptors).zip(holders) {
            self.made[place] = Some(Made {
                id: descriptor.id.clone(),
                held: Some(Held { holder, descriptor }),
            });
        }
        Ok(())
    }

    /// Make a job that has a name or a number, as any other of these is made (R12).
    fn start(&mut self, place: usize, mut descriptor: Descriptor) -> Result<()> {
        loop {
            match self.store.begin_described(&mut descriptor)? {
                Begun::New(made) => {
                    let id = made.id().clone();
                    self.ids.insert(id.clone());
                    match self.store.acknowledge(*made) {
                        Ok(held) => {
                            self.made[place] = Some(Made {
                                id,
                                held: Some(held),
                            });
                            return Ok(());
                        }
                        Err(error) => {
                            self.failed.push(descriptor);
                            return Err(error);
                        }
                    }
                }
                Begun::UnderWay(view) => match self.if_running {
                    IfRunning::Fail => return Err(under_way(&view)),
                    IfRunning::Join => {
                        see_that_it_can_be_joined(&view)?;
                        self.made[place] = Some(Made {
                            id: view.descriptor.id,
                            held: None,
                        });
                        return Ok(());
                    }
                    IfRunning::Replace => self.store.job(&view.descriptor.id).make_way()?,
                },
            }
        }
    }

    /// Let all of them go. They are there, so whatever goes wrong now keeps none of them from being started.
    fn let_go(self) -> Result<Vec<Queued>> {
        let mut queued = Vec::with_capacity(self.made.len());
        let mut trouble = Ok(());
        for made in self.made.into_iter().flatten() {
            let job = self.store.job(&made.id);
            let is_new = made.held.is_some();
            if let Some(held) = made.held {
                trouble = trouble.and(job.let_go(held));
            }
            queued.push(Queued { job, is_new });
        }
        trouble.map(|()| queued)
    }

    /// Take all of them back, or stop what somebody was fast enough to start: it was let go by a failure.
    fn take_back(self, error: Error) -> Error {
        let mut ours = Vec::new();
        let mut left = Vec::new();
        for made in self.made.into_iter().flatten() {
            if let Some(held) = made.held {
                ours.push((made.id, held.holder.into_lock()));
            }
        }
        for descriptor in self.failed {
            let job = self.store.job(&descriptor.id);
            // What stands under this id can be another's, and is not there at all where it was never made.
            if !job.descriptor().is_ok_and(|found| found == descriptor) {
                continue;
            }
            match job.hold() {
                Ok(Some(held)) if held.holder.status().attempt == 0 => {
                    ours.push((descriptor.id, held.holder.into_lock()));
                }
                // A worker has it, or had it.
                Ok(had) => {
                    let free = had.map_or(Ok(()), |held| job.let_go(held));
                    left.extend(free.and_then(|()| job.make_way()).err());
                }
                Err(why) => left.push(why),
            }
        }
        let withdrawn = withdraw_batch(&mut self.store.disk(), ours, &ticket());
        left.extend(withdrawn.err().map(Error::from));
        // What a full disk left half made takes space.
        let _ = self.store.collect();
        match left.first() {
            None => error,
            Some(why) => Error::Worker(format!(
                "{error}; and not everything that was made can be taken back: {why}"
            )),
        }
    }
}

/// Whether a job that bears a name can stand for one that is asked for under it.
pub(crate) fn see_that_it_can_be_joined(view: &View) -> Result<()> {
    if view.state != State::Interrupted {
        return Ok(());
    }
    let name = view.descriptor.name.as_ref().map_or("", Name::as_str);
    Err(Error::NotNow(format!(
        "'{name}' is {}, which was interrupted; resume it, stop it, or use --if-running replace",
        view.descriptor.id
    )))
}
