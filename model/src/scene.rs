//! What is there before anyone moves. A scene is never built by hand: the shipped protocols made it.

use state_machine::control::Request;
use state_machine::id::Ticket;

use crate::alone::{LANE, Trees, play};
use crate::machine::Machine;
use crate::role::{Part, Role, first_job};

/// What is there in the beginning.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scene {
    /// Nothing.
    Empty,
    /// A job that waits.
    Queued,
    /// A job that was paused before anyone ran it.
    Paused,
    /// A job whose worker was killed, and whose tree has ended.
    Abandoned,
    /// A job whose worker was killed, and whose tree lives.
    Orphaned,
    /// A job that has ended well.
    Ended,
}

impl Scene {
    /// The machine as it is then.
    pub fn machine(self) -> Machine {
        let mut machine = Machine::default();
        let mut act = |role, trees| {
            let part = Part {
                role,
                job: first_job(),
                ticket: Ticket::parse("scene").expect("a short word is a ticket"),
                now_ms: 2,
            };
            // A worker that is killed in its sleep is part of the scene.
            let _ = play(&mut machine, &part, 100, trees);
        };
        if self != Scene::Empty {
            act(Role::Creator, Trees::End);
        }
        match self {
            Scene::Empty | Scene::Queued => {}
            Scene::Paused => act(Role::Client(Request::Pause), Trees::End),
            Scene::Abandoned | Scene::Orphaned => act(Role::Worker, Trees::OutliveTheWorker),
            Scene::Ended => act(Role::Worker, Trees::End),
        }
        if self == Scene::Abandoned {
            machine.end_tree(LANE);
            machine.files.renumber();
        }
        machine
    }
}
