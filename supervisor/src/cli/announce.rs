//! Saying which job it is that was made or joined.

use std::io::Write;

use clap::ArgMatches;

use super::print;
use crate::store::Job;

/// Print the id, or the job where JSON is asked for, where scripts read it: on standard output, unless that is the job's, as
/// with `--follow`.
pub(super) fn announce(job: &Job, matches: &ArgMatches) -> anyhow::Result<()> {
    let text = if matches.get_flag("json") {
        serde_json::to_string(&job.report(&job.look()?))?
    } else {
        job.id().to_string()
    };
    if matches.get_flag("follow") {
        // Whoever closed standard error does not want to know.
        let _ = writeln!(std::io::stderr(), "{text}");
    } else {
        print::line(&text)?;
    }
    Ok(())
}
