//! The configurations, by name: small, hostile, and each with what must be seen in it. What holds is in `ordinary`,
//! `hostile`, `queue`, `slots` and `pulls`, what is wrong on purpose in `wrong`.

mod build;
mod hostile;
mod ordinary;
mod pulls;
mod queue;
mod slots;
mod wrong;

pub use build::world;
pub use wrong::{findings, mutants};

use crate::world::World;

/// Every configuration in which all rules hold.
pub fn all() -> Vec<World> {
    [
        ordinary::ordinary(),
        hostile::hostile(),
        queue::queue(),
        slots::slots(),
        pulls::pulls(),
    ]
    .concat()
}

/// Every world that there is.
pub fn every() -> impl Iterator<Item = World> {
    all().into_iter().chain(findings()).chain(mutants())
}

/// The world of that name.
pub fn named(name: &str) -> Option<World> {
    every().find(|world| world.name == name)
}
