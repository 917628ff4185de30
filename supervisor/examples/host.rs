//! A program with threads that is its own worker and its own spawner: nothing has to be installed beside it.
//!
//! It reads lines from standard input. `now COMMAND` starts a job and waits for its end; `queue COMMAND` makes one and has
//! the spawner start it, in slot 1. The store is the user's, or that in `OUTLIVE_ROOT`.
//!
//! ```text
//! printf 'now echo hello\nqueue exit 3\n' | OUTLIVE_ROOT=/tmp/store cargo run --example host
//! ```

use std::error::Error;
use std::io::BufRead;
use std::os::fd::AsFd;

use outlive::spawner::{Answer, Spawner};
use outlive::worker::Launcher;
use outlive::{Job, JobSpec, Store};
use rustix::event::{PollFd, PollFlags, poll};

fn main() -> Result<(), Box<dyn Error>> {
    // First thing, before any thread is there: this very program is executed again for every worker, and for the spawner.
    outlive::worker_if_asked();

    let store = Store::open_default()?;
    let launcher = Launcher::this_program();
    // A thread, as a program of today has many.
    let (lines, input) = std::sync::mpsc::channel();
    std::thread::spawn(move || {
        for line in std::io::stdin().lock().lines().map_while(Result::ok) {
            if lines.send(line).is_err() {
                return;
            }
        }
    });

    let spawner = Spawner::start(&store, &launcher, None)?;
    for line in input {
        let (how, command) = line.split_once(' ').unwrap_or((&line, "true"));
        let spec = JobSpec::command(["sh", "-c", command]);
        let job = match how {
            "now" => store.start(spec, &launcher)?.0,
            "queue" => run_in_slot(&spawner, store.create(spec)?)?,
            _ => return Err(format!("'{how}' is neither 'now' nor 'queue'").into()),
        };
        let view = job.wait(None)?;
        print!("{}", std::fs::read_to_string(job.dir().join("log"))?);
        println!("{} in slot {:?}", view.state, view.status.slot);
    }
    Ok(())
}

/// Have a job started in slot 1, and wait until its worker is gone.
fn run_in_slot(spawner: &Spawner, job: Job) -> Result<Job, Box<dyn Error>> {
    spawner.ask(job.id(), Some(1))?;
    loop {
        // With an async runtime: wait until the descriptor can be read, and receive until there is nothing.
        let fd = spawner.as_fd();
        poll(&mut [PollFd::new(&fd, PollFlags::IN)], None)?;
        while let Some(answer) = spawner.receive()? {
            match answer {
                Answer::Left { .. } => return Ok(job),
                Answer::Refused { why, .. } => return Err(why.into()),
                Answer::Gone => return Err("the spawner is gone; the next one goes on".into()),
                Answer::Forked { .. } | Answer::Started { .. } | Answer::Vacated { .. } => {}
            }
        }
    }
}
