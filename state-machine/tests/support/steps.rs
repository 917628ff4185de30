//! Whole operations as the product puts them together from the protocols: make a job, work on it, ask something of
//! it, forget it, recover the store. What they must come to is said in the tests, not here.

use state_machine::control::Request;
use state_machine::disk::{Dir, Disk, Name, Place, Read};
use state_machine::id::{self, JobId, Key, Ticket};
use state_machine::job::State;
use state_machine::protocol::claim::{Claim, claim};
use state_machine::protocol::create::{Durable, Made, acknowledge, create};
use state_machine::protocol::forget::{Sweeping, sweep};
use state_machine::protocol::hold::{Holder, TakeOver, record, take_over};
use state_machine::protocol::recover::{Recovered, collect, recover_job};
use state_machine::protocol::request::request;
use state_machine::protocol::settle::{LetGo, Searched, let_go, settle};
use state_machine::protocol::spare::lay_in;
use state_machine::protocol::start::{Started, start, start_numbered};
use state_machine::record::{
    Command, Descriptor, Environment, Kind, OnInterrupt, Output, PauseMode, What,
};
use state_machine::retry::Retry;

use crate::fake::{Fake, Fault, Handle};

/// A sweep that a fault ends.
struct Dies;

impl Sweeping<Fault> for Dies {
    fn before(&mut self, _trashed: &Ticket) {}

    fn failed(&mut self, _id: &JobId, fault: Fault) -> Result<(), Fault> {
        Err(fault)
    }
}

/// How a worker's part ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum End {
    /// The command succeeds.
    Done,
    /// An attempt fails, and the next one too.
    FailedTwice,
    /// A pause is honoured.
    Paused,
    /// The worker is killed.
    Lost,
}

/// One operation. A job is chosen by a number, counted round those that there are.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Step {
    /// Queue a job in a pool.
    Queue,
    /// Make a job and run it at once.
    Run(End),
    /// Run a job that is there.
    Work(usize, End),
    /// Ask something of a job.
    Ask(usize, Request),
    /// Write a job's control file by hand.
    Hand(usize, &'static str),
    /// Forget a job.
    Forget(usize),
    /// Queue a job under a name, unless one is under way.
    Start,
    /// Queue the next job of a task.
    Numbered,
    /// Lay in a directory for a job to come.
    LayIn,
    /// Put the store in order.
    Recover,
}

/// The jobs of the listing, oldest first.
pub(crate) fn jobs(disk: &Fake) -> Vec<JobId> {
    let names = disk.image().names(&Dir::Jobs);
    let text = |name: Vec<u8>| String::from_utf8(name).expect("an id is text");
    names
        .into_iter()
        .map(|name| JobId::parse(&text(name)).expect("the name of a job is an id"))
        .collect()
}

/// The job that a step is about.
pub(crate) fn chosen(disk: &Fake, nth: usize) -> Option<JobId> {
    let jobs = jobs(disk);
    (!jobs.is_empty()).then(|| jobs[nth % jobs.len()].clone())
}

fn descriptor(now_ms: u64) -> Descriptor {
    Descriptor {
        id: JobId::new(now_ms, "x", 1),
        kind: Kind::Command(Command {
            argv: vec!["true".into()],
            cwd: "/".into(),
            env: Environment::default(),
            umask: None,
        }),
        display_name: "true".into(),
        name: None,
        task: None,
        project: None,
        pool: None,
        priority: 0,
        after: Vec::new(),
        timeout_ms: None,
        retry: Retry::default(),
        pause: PauseMode::default(),
        grace_ms: 0,
        output: Output::default(),
        stdin: None,
        success_codes: vec![0],
        not_before_ms: None,
        delay_ms: None,
        on_interrupt: OnInterrupt::Leave,
        slots: 1,
        order: 0,
        on_end: None,
        on_failure: None,
        watch: Vec::new(),
        notify: false,
        limits: Default::default(),
        total_bytes: None,
        previous: None,
        created_at_ms: now_ms,
    }
}

/// Take one step at `now_ms`; whoever took it is gone afterwards, and with it every handle.
pub(crate) fn take(disk: &mut Fake, step: Step, now_ms: u64, ticket: &Ticket) -> Result<(), Fault> {
    let pooled = || Descriptor {
        pool: Some("default".into()),
        ..descriptor(now_ms)
    };
    match step {
        Step::Queue => {
            let made = create(disk, &mut pooled(), None, ticket, Durable::Yes)?;
            let Made::Job(made) = made else {
                panic!("crowded: {made:?}");
            };
            let holder = acknowledge(disk, made)?;
            let_go(disk, holder, now_ms, now_ms)?;
        }
        Step::Run(end) => {
            let made = create(disk, &mut descriptor(now_ms), None, ticket, Durable::Yes)?;
            let Made::Job(made) = made else {
                panic!("crowded: {made:?}");
            };
            let holder = acknowledge(disk, made)?;
            work(disk, holder, end, now_ms, now_ms)?;
        }
        Step::Work(nth, end) => {
            let Some(id) = chosen(disk, nth) else {
                return Ok(());
            };
            let Read::Value(descriptor) = disk.read_descriptor(&Dir::Job(id.clone()))? else {
                panic!("{id} has no descriptor");
            };
            let Claim::Mine(lock) = claim(disk, &id)? else {
                panic!("{id} is held");
            };
            let made_ms = descriptor.created_at_ms;
            match take_over(disk, &id, lock, made_ms, now_ms)? {
                TakeOver::Holder(holder) => work(disk, holder, end, made_ms, now_ms)?,
                TakeOver::Damaged(damaged) => panic!("{id}: {damaged}"),
            }
        }
        Step::Ask(nth, asked) => {
            if let Some(id) = chosen(disk, nth) {
                request(disk, &id, asked, ticket)?;
                recover_one(disk, &id, now_ms)?;
            }
        }
        Step::Hand(nth, word) => {
            if let Some(id) = chosen(disk, nth) {
                let control = Place::of_job(&id, Name::Control);
                disk.image_mut().put(&control, word.as_bytes());
                recover_one(disk, &id, now_ms)?;
            }
        }
        Step::Forget(nth) => {
            let Some(id) = chosen(disk, nth) else {
                return Ok(());
            };
            for swept in sweep(disk, &[(id.clone(), ticket.clone())], &mut Dies)? {
                assert!(!swept.is_stubborn, "{id} is more than plain files");
            }
        }
        Step::Start => {
            let web = id::Name::parse("web").expect("it is a name");
            let mut descriptor = Descriptor {
                name: Some(web.clone()),
                ..pooled()
            };
            let key = Key::of_name(b"/p", &web);
            match start(disk, &mut descriptor, &key, ticket, Durable::Yes)? {
                Started::New(made) => {
                    let holder = acknowledge(disk, made)?;
                    let_go(disk, holder, now_ms, now_ms)?;
                }
                Started::UnderWay(_) => {}
                other => panic!("{other:?}"),
            }
        }
        Step::Numbered => {
            let key = Key::of_task(b"/p", "t");
            let mut descriptor = pooled();
            match start_numbered(disk, &mut descriptor, &key, "t", ticket, Durable::Yes)? {
                Started::New(made) => {
                    let holder = acknowledge(disk, made)?;
                    let_go(disk, holder, now_ms, now_ms)?;
                }
                other => panic!("{other:?}"),
            }
        }
        Step::LayIn => {
            lay_in(disk, ticket)?;
        }
        Step::Recover => recover(disk, now_ms, ticket)?,
    }
    Ok(())
}

/// A worker's part: what was asked first, then an attempt, then the end.
fn work(
    disk: &mut Fake,
    mut holder: Holder<Handle>,
    end: End,
    made_ms: u64,
    now_ms: u64,
) -> Result<(), Fault> {
    settle(disk, &mut holder, Searched::Yes, now_ms)?;
    if matches!(holder.status().state, State::Queued | State::Interrupted) {
        go_to(disk, &mut holder, State::Running, &[], now_ms)?;
        match end {
            End::Done => go_to(disk, &mut holder, State::Done, &[], now_ms)?,
            End::Paused => go_to(disk, &mut holder, State::Paused, &[], now_ms)?,
            End::FailedTwice => {
                let retry = What::Retry {
                    attempt: 2,
                    reason: "exit 1".into(),
                    delay_ms: 5,
                };
                go_to(disk, &mut holder, State::Running, &[retry], now_ms)?;
                go_to(disk, &mut holder, State::Failed, &[], now_ms)?;
            }
            End::Lost => return Ok(()),
        }
    }
    let_go(disk, holder, made_ms, now_ms)?;
    Ok(())
}

fn go_to(
    disk: &mut Fake,
    holder: &mut Holder<Handle>,
    state: State,
    notes: &[What],
    now_ms: u64,
) -> Result<(), Fault> {
    let mut status = holder.status().clone();
    status.state = state;
    status.updated_at_ms = now_ms;
    status.attempt += u32::from(state == State::Running);
    status.ended_at_ms = state.is_terminal().then_some(now_ms);
    let durable = if state.is_terminal() {
        Durable::Yes
    } else {
        Durable::No
    };
    record(disk, holder, status, notes, durable)?;
    Ok(())
}

/// Put one job in order. No process of any job lives here, so whoever searches for them finds none.
pub(crate) fn recover_one(disk: &mut Fake, id: &JobId, now_ms: u64) -> Result<(), Fault> {
    let mut recovered = recover_job(disk, id, now_ms)?;
    while let Recovered::LeftoversFirst(mut holder, descriptor) = recovered {
        settle(disk, &mut holder, Searched::Yes, now_ms)?;
        recovered = match let_go(disk, holder, now_ms, now_ms)? {
            LetGo::Free => Recovered::Quiet,
            LetGo::LeftoversFirst(holder) => Recovered::LeftoversFirst(holder, descriptor),
        };
    }
    Ok(())
}

/// Put the store in order, as a supervisor does when it starts.
pub(crate) fn recover(disk: &mut Fake, now_ms: u64, ticket: &Ticket) -> Result<(), Fault> {
    for id in jobs(disk) {
        recover_one(disk, &id, now_ms)?;
    }
    collect(disk, ticket, &mut |_| {})?;
    Ok(())
}
