//! The protocols of outlive under every interleaving, with a death at every point.
//!
//! What is checked are the functions that ship, from `state_machine::protocol`. A process is nothing but the
//! role that it plays and the replies that it has had: to take a step, the role is called from its beginning
//! with a disk that answers from those replies ([`replay`]) and stops at the first effect without an answer.
//! That effect happens on the modelled machine, its reply is appended, and so on.
//!
//! | room | what it is for |
//! |---|---|
//! | [`effect`], [`replay`], [`past`] | effects and replies, and the disk that answers from the past |
//! | [`filesystem`], [`machine`], [`errand`], [`web`] | the modelled files, locks, trees, workers that wait to be forked, and a server |
//! | [`stage`], [`role`] | what the roles have around them, and the roles |
//! | [`mutant`] | protocols that are known to be wrong |
//! | [`scene`], [`alone`] | how a world begins, and who heals it |
//! | [`world`], [`rule`], [`guard`] | the model and what must hold in it, panics among it |
//! | [`config`], [`golden`], [`coverage`], [`trace`] | what is run, how big it is, what it reached, and how a finding is shown |
//!
//! What is simpler here than on a machine, and why, is told in `docs/model.md`.

pub mod alone;
pub mod config;
pub mod coverage;
pub mod effect;
pub mod errand;
pub mod filesystem;
pub mod golden;
pub mod guard;
pub mod machine;
pub mod mutant;
pub mod past;
pub mod process;
pub mod replay;
pub mod role;
pub mod rule;
pub mod scene;
pub mod shared;
pub mod stage;
pub mod trace;
pub mod web;
pub mod world;
