//! The output of a job: opening the file a command writes to, carrying output into files of limited
//! size, and showing it to people.
//!
//! A job directory holds `log`, or `stdout.log` and `stderr.log` where the streams are split.
//! Without limits the command writes straight into the file and nothing of this is in between. With
//! limits a [`Carrier`] stands between a pipe and the file, and keeps older files beside it:
//! `log.1` is the newest of them.
//!
//! What must never be here: records, locks and states of jobs. This room knows a directory, a file
//! name and bytes, and no byte is ever added, changed or interpreted (line ends are only counted).

mod carry;
mod follow;
mod kept;
mod open;
mod piece;
mod read;
mod rotate;
mod sink;

pub(crate) use carry::Carrier;
pub(crate) use follow::{Notice, follow};
pub(crate) use open::open_plain;
pub(crate) use piece::{Piece, Place, piece};
pub(crate) use read::{Start, print};

/// The file both streams go to when they are not split.
pub(crate) const LOG: &str = "log";
/// The file of standard output where the streams are split.
pub(crate) const STDOUT: &str = "stdout.log";
/// The file of standard error where the streams are split.
pub(crate) const STDERR: &str = "stderr.log";

/// The file that the command told of a job's end writes to.
pub(crate) const ON_END: &str = "on_end.log";

/// The most older files that are kept per stream. A reader opens all of them at once, so this has
/// to stay well below the number of descriptors a process may have.
pub(crate) const MOST_KEPT: u32 = 100;

/// The limit of each file, in bytes, when `budget` bytes are to hold everything that is kept of a
/// job: `streams` streams, each with its current file and `keep` older ones. Never 0, since a file
/// of no bytes could never be filled.
pub(crate) fn share(budget: u64, streams: u32, keep: u32) -> u64 {
    let files = u64::from(streams.max(1)) * (u64::from(keep.min(MOST_KEPT)) + 1);
    (budget / files).max(1)
}

/// The name of the `k`-th older file of `name`: `log.1` is the newest, `k` counts from 1.
fn older(name: &str, k: u32) -> String {
    format!("{name}.{k}")
}

/// Whether a file of this name in a job's directory holds output: the current file of a stream, an older one, or the
/// next before it takes its place.
pub(crate) fn is_output(name: &str) -> bool {
    let digits = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    [LOG, STDOUT, STDERR, ON_END].iter().any(|log| {
        let older = name
            .strip_prefix(log)
            .and_then(|rest| rest.strip_prefix('.'));
        name == *log || older.is_some_and(digits) || name == format!(".{log}.new")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_budget_is_shared_by_every_file_of_every_stream() {
        assert_eq!(share(10 << 20, 1, 1), 5 << 20);
        assert_eq!(share(10 << 20, 2, 4), 1 << 20);
        assert_eq!(share(10 << 20, 1, 0), 10 << 20);
        assert_eq!(share(3, 2, 3), 1);
        for (budget, streams, keep) in [(1_000_003, 1, 3), (999, 2, 1), (77, 2, 0)] {
            let files = u64::from(streams) * (u64::from(keep) + 1);
            assert!(share(budget, streams, keep) * files <= budget);
        }
    }
}
