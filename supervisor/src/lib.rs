//! outlive: durable jobs.

mod process;
mod output;
mod sys;
