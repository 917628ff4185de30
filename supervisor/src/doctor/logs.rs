//! The output of a job that keeps only so much of it: whether it is within its limit, and in order.

use std::fs::Metadata;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use state_machine::protocol::look::View;

use super::{Finding, kind};

/// What a worker may have carried before it looks again, in bytes: the chunk that a directory may exceed its limit by.
const CHUNK: u64 = 1 << 20;
/// Of how many older files none is ever kept.
const MOST: u32 = 1000;

/// Everything worth saying about the output of a job in this directory. While somebody holds it, it is his business.
pub(super) fn examine(view: &View, dir: &Path) -> Vec<Finding> {
    let Some(most) = view.descriptor.output.max_bytes.filter(|_| !view.held) else {
        return Vec::new();
    };
    let keep = view.descriptor.output.keep.unwrap_or(1);
    let mut findings = Vec::new();
    let mut total = 0;
    for name in ["log", "stdout.log", "stderr.log"] {
        // From the oldest to the newest.
        let files = (0..MOST).rev().filter_map(|number| {
            let name = match number {
                0 => name.to_owned(),
                number => format!("{name}.{number}"),
            };
            let found = dir.join(&name).symlink_metadata().ok()?;
            found.is_file().then_some((number, name, found))
        });
        let files: Vec<(u32, String, Metadata)> = files.collect();
        total += files.iter().map(|(_, _, found)| found.len()).sum::<u64>();
        for pair in files.windows(2) {
            if let [(_, older, before), (_, newer, after)] = pair
                && modified(before) > modified(after)
                && after.len() > 0
            {
                findings.push(
                    Finding::new(
                        kind::LOG_ORDER,
                        format!("{older} was written to after {newer}, which should be newer"),
                        "somebody has renamed or changed them; read them by their times",
                    )
                    .at(dir.join(older)),
                );
            }
        }
        if let Some((_, oldest, _)) = files.first().filter(|(number, ..)| *number > keep) {
            findings.push(
                Finding::new(
                    kind::LOG_TOO_MANY,
                    format!("{oldest} is there, and only {keep} older ones are kept"),
                    "nobody removes it but 'outlive clean'; move it away if it is of no use",
                )
                .at(dir.join(oldest)),
            );
        }
    }
    if total > most.saturating_add(CHUNK) {
        findings.push(
            Finding::new(
                kind::LOG_TOO_LONG,
                format!("its log files hold {total} bytes, and its limit is {most}"),
                "somebody else has written to them; it is rotated away when the job runs again, or goes with 'outlive clean'",
            )
            .at(dir),
        );
    }
    findings
}

fn modified(file: &Metadata) -> (i64, i64) {
    (file.mtime(), file.mtime_nsec())
}
