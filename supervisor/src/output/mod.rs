//! The output of a job.
