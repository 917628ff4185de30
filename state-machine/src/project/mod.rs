//! The project file, `outlive.toml`: the tasks of a project, what each needs, and when it is ready. Only what is written and what
//! follows from that: nothing here looks at a job, a clock or a file.

mod file;
mod order;
mod place;
mod written;

pub use file::{Invocation, Project, Ready, Restart, Signal, Task};
pub use place::BadProject;

/// The file that makes a directory the root of a project.
pub const PROJECT_FILE: &str = "outlive.toml";
