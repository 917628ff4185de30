//! A build with dependencies: a program with an async runtime that has a supervisor of its own, queues steps that come after
//! one another, and waits for all of them. Killed half way and started again, it joins the steps that are under way.
//!
//! ```text
//! OUTLIVE_ROOT=/tmp/store cargo run --example orchestrator
//! ```

use std::error::Error;

use outlive::state_machine::id::Name;
use outlive::state_machine::job::State;
use outlive::state_machine::record::{After, AfterWhen};
use outlive::supervisor::{Config, Supervisor};
use outlive::{Job, JobSpec, Store};

/// A step: its name, its command, and the steps that must have succeeded before.
const STEPS: [(&str, &str, &[&str]); 4] = [
    ("parse", "sleep 0.2; echo parsed", &[]),
    ("compile", "sleep 0.2; echo compiled", &["parse"]),
    ("document", "echo documented", &["parse"]),
    ("package", "echo packaged", &["compile", "document"]),
];

fn main() -> Result<(), Box<dyn Error>> {
    // First thing, before any thread is there: this very program is executed again for its workers.
    outlive::worker_if_asked();
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    runtime.block_on(build())
}

async fn build() -> Result<(), Box<dyn Error>> {
    let store = Store::open_default()?;
    let mut supervisor = Supervisor::start(store.clone(), Config::default())?;
    supervisor.ready().await;
    let mut jobs: Vec<(&str, Job)> = Vec::new();
    for (step, command, needs) in STEPS {
        let mut spec = JobSpec::command(["sh", "-c", command]);
        spec.name = Some(Name::parse(step)?);
        for (_, job) in jobs.iter().filter(|(step, _)| needs.contains(step)) {
            spec.after.push(After {
                job: job.id().clone(),
                when: AfterWhen::Success,
            });
        }
        let (job, is_new) = store.queue(spec)?;
        println!("{step}: {}", if is_new { "queued" } else { "under way" });
        jobs.push((step, job));
    }
    for (step, job) in &jobs {
        let view = job.wait_async(None).await?;
        println!("{step}: {}", view.state);
        if view.state != State::Done {
            let why = view.status.message.unwrap_or_default();
            return Err(format!("{step} is {}: {why}", view.state).into());
        }
    }
    Ok(())
}
