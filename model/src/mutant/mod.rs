//! Protocols that are known to be wrong. The checker must find what is wrong with each: a world in which they pass is
//! too kind to prove anything about the right ones.
//!
//! | room | what it is for |
//! |---|---|
//! | [`site`] | every place in a shipped protocol where an effect is asked for, read from its source |
//! | [`edit`] | a shipped protocol with one of these effects wrong, made while it is replayed |
//! | [`older`] | whole protocols that are wrong |
//! | [`table`] | all of them, how each is caught, and those that change nothing, with the reason |
//!
//! Nothing of this is in the shipped crate: an edit stands between the protocol and the disk.

pub mod edit;
pub mod older;
pub mod site;
pub mod table;

pub use edit::{Edit, Editing, How};
pub use older::Older;
