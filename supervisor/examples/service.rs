//! A service that restarts its children: each of them is a job, which outlives this program, so that an upgrade of it does
//! not stop them. Started again, it takes over what runs and starts what does not.
//!
//! It watches until each child has been restarted so many times, as its first argument says, and stops them then.
//!
//! ```text
//! OUTLIVE_ROOT=/tmp/store cargo run --example service 2
//! ```

use std::error::Error;
use std::time::Duration;

use outlive::state_machine::id::Name;
use outlive::state_machine::record::{OnInterrupt, What};
use outlive::supervisor::{Config, Supervisor};
use outlive::{Job, JobSpec, Store};

/// A child: its name and its command, which ends now and then.
const CHILDREN: [(&str, &str); 2] = [
    ("clock", "date; exec sleep 0.3"),
    ("greeter", "echo hello; exec sleep 0.2"),
];

fn main() -> Result<(), Box<dyn Error>> {
    // First thing, before any thread is there: this very program is executed again for its workers.
    outlive::worker_if_asked();
    let restarts = match std::env::args().nth(1) {
        Some(number) => number.parse()?,
        None => 3,
    };
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    let children = tokio::task::LocalSet::new();
    runtime.block_on(children.run_until(serve(restarts)))
}

async fn serve(restarts: u32) -> Result<(), Box<dyn Error>> {
    let store = Store::open_default()?;
    let mut supervisor = Supervisor::start(store.clone(), Config::default())?;
    supervisor.ready().await;
    let mut watched = Vec::new();
    for (name, command) in CHILDREN {
        let keeping = keep(store.clone(), name, command, restarts);
        watched.push(tokio::task::spawn_local(keeping));
    }
    for child in watched {
        child.await??;
    }
    Ok(())
}

/// Keep one child running.
async fn keep(
    store: Store,
    name: &str,
    command: &str,
    restarts: u32,
) -> Result<(), outlive::Error> {
    for nth in 0..=restarts {
        let mut spec = JobSpec::command(["sh", "-c", command]);
        // Under a name, one that runs already is joined and not started a second time.
        spec.name = Name::parse(name).ok();
        // A reboot is no reason to stay down.
        spec.on_interrupt = OnInterrupt::Resume;
        let (job, is_new) = store.queue(spec)?;
        println!("{name}: {} as {}", word(nth, is_new), job.id());
        tell(name, &job).await?;
        // One that ends at once does not keep the machine busy.
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    Ok(())
}

fn word(nth: u32, is_new: bool) -> &'static str {
    match (is_new, nth) {
        (false, _) => "taken over",
        (true, 0) => "started",
        (true, _) => "started again",
    }
}

/// Tell of every state of a child, until it has ended.
async fn tell(name: &str, job: &Job) -> Result<(), outlive::Error> {
    let mut events = job.events_async();
    while let Some(line) = events.next().await? {
        if let What::State { state } = line.what {
            println!("{name}: {state}");
        }
    }
    Ok(())
}
