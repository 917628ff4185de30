//! A lock outlives the last close of its holder where somebody else has the description for a moment (F55): who reads the
//! links in `/proc/<pid>/fd`, and a child that was started just then and has not closed yet what was its parent's. A
//! holder that lets a job go gives its lock up for all of them, so that no request is left to such a one (R6).

use std::fs::File;
use std::os::fd::AsRawFd;
use std::process::Stdio;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{SystemTime, UNIX_EPOCH};

use outlive::disk::FsDisk;
use outlive::state_machine::control::Request;
use outlive::state_machine::id::Ticket;
use outlive::state_machine::job::State;
use outlive::state_machine::protocol::claim::{Claim, claim};
use outlive::state_machine::protocol::hold::{TakeOver, take_over};
use outlive::state_machine::protocol::request::{Asked, request};
use outlive::state_machine::protocol::settle::{LetGo, let_go};
use outlive::store::Job;
use outlive_tests::{Bench, bench};

/// How many descriptors a started child has to close. It lets its parent go on before it has.
const DESCRIPTORS: usize = 200;

/// One test at a time: the children of one would have copies of what the other opens.
static ALONE: Mutex<()> = Mutex::new(());

/// Raised when it is dropped, so that the threads end with a test that fails.
struct Over<'a>(&'a AtomicBool);

impl Drop for Over<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// Let so many jobs go, each so often, while other threads do `meanwhile` again and again. What is asked next of a job that
/// nobody holds takes effect before the client goes on.
fn let_go_while(
    bench: &Bench,
    jobs: usize,
    times: usize,
    threads: usize,
    meanwhile: impl Fn() + Sync,
) {
    let over = AtomicBool::new(false);
    let unread: usize = std::thread::scope(|scope| {
        let _over = Over(&over);
        for _ in 0..threads {
            scope.spawn(|| {
                while !over.load(Ordering::Relaxed) {
                    meanwhile();
                }
            });
        }
        (0..jobs)
            .map(|_| bench.store().create(bench.spec(&["true"])).unwrap())
            .map(|job| (0..times).filter(|_| !is_answered(bench, &job)).count())
            .sum()
    });
    assert_eq!(unread, 0, "so many of {} requests lay unread", jobs * times);
}

/// Hold the job, let it go with a request to it that its sender has left to us, and see whether that took effect.
fn is_answered(bench: &Bench, job: &Job) -> bool {
    let view = job.look().unwrap();
    let (asked, expected) = match view.state {
        State::Paused => (Request::Resume, State::Queued),
        _ => (Request::Pause, State::Paused),
    };
    let (id, made_ms) = (job.id(), view.descriptor.created_at_ms);
    let mut disk = FsDisk::new(bench.root());
    let Claim::Mine(lock) = claim(&mut disk, id).unwrap() else {
        // The one who had it last has it still.
        return false;
    };
    let TakeOver::Holder(holder) = take_over(&mut disk, id, lock, made_ms, made_ms).unwrap() else {
        panic!("nothing is damaged");
    };
    let ticket = Ticket::parse("asked").unwrap();
    let placed = request(&mut disk, id, asked, &ticket).unwrap();
    // One that lay unread in an earlier round is still there.
    assert!(
        matches!(placed, Asked::Placed | Asked::Standing(_)),
        "{placed:?}"
    );
    let LetGo::Free = let_go(&mut disk, holder, made_ms, made_ms).unwrap() else {
        panic!("it has no processes");
    };
    job.look().unwrap().state == expected
}

#[test]
fn a_request_takes_effect_while_somebody_reads_what_the_last_holder_has_open() {
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    let bench = bench!();
    // What is opened next, as the lock is, has the lowest number that is free. Most of the time nothing has it.
    let next = File::open("/dev/null").unwrap().as_raw_fd();
    let link = format!("/proc/{}/fd/{next}", std::process::id());
    let link = std::ffi::CString::new(link).unwrap();
    let_go_while(&bench, 20, 150, 4, || {
        for _ in 0..100 {
            let _ = rustix::fs::readlinkat_raw(rustix::fs::CWD, &link, &mut [0u8; 64]);
        }
    });
    bench.audit();
}

#[test]
fn a_request_takes_effect_while_a_child_of_the_last_holder_is_being_started() {
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    let bench = bench!();
    let open: Vec<File> = (0..DESCRIPTORS)
        .map(|_| File::open("/dev/null").unwrap())
        .collect();
    let_go_while(&bench, 4, 100, 2, || {
        let child = bench.program("true").stdin(Stdio::null()).spawn();
        child.unwrap().wait().unwrap();
    });
    drop(open);
    bench.audit();
}

/// The worker that is made first has a copy of the lock, and is sent away when another job has the id that it was made for.
/// The lock is its maker's then, who goes on with it.
#[test]
fn a_worker_that_is_sent_away_leaves_its_maker_the_lock() {
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    let bench = bench!();
    bench.run(["list"]).expect(0);
    let now_ms = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
    let now_ms = u64::try_from(now_ms.as_millis()).unwrap();
    // Whatever the time will be when the job is made, that id is taken.
    let taken: Vec<_> = (now_ms..now_ms + 10_000)
        .map(|ms| bench.root().join(format!("jobs/{ms}-sleep-600")))
        .collect();
    for dir in &taken {
        std::fs::create_dir(dir).unwrap();
    }
    let id = bench.run(["run", "--", "sleep", "600"]).expect(0).text();
    for dir in &taken {
        std::fs::remove_dir(dir).unwrap();
    }
    assert!(id.ends_with("-2"), "{id}");
    let job = bench.job(&id);
    assert_eq!(job.state(), "running");
    assert_eq!(job.shown()["alive"], true);
    job.stop(0);
    bench.audit();
}
