//! The course of a job, told as the deeds that it asks for, in their order. The model tries every interleaving of it; here is
//! what it does when nobody comes between, and what the model has not: timeouts, hooks, workers that are made early, processes
//! that cannot be ended.

mod asked;
mod end;
// Only a part of it is needed here.
#[allow(dead_code)]
#[path = "../support/fake.rs"]
mod fake;
mod keep;
mod keeper;
mod retry;
mod start;
mod take;
mod transfer;
mod worker;
