//! `outlive doctor`: whether a store is as it must be, and what the machine offers it.

use clap::{ArgMatches, Command};
use serde::Serialize;

use super::arguments::{flag, json};
use super::{Verb, exit, print};
use crate::doctor::{Finding, Machine, Severity, examine, mend};
use crate::store::Store;

pub(super) const VERB: Verb = Verb {
    name: "doctor",
    aliases: &[],
    declare,
    run,
};

fn declare(verb: Command) -> Command {
    verb.about("Check the store, and say what the machine offers it")
        .long_about(
            "Check that every record of the store can be read and agrees with the others, and that nothing is left \
             behind. Changes nothing without --fix. Exits with 1 when there is a problem.",
        )
        .args([
            flag(
                "fix",
                "Mend what can be mended; a record that cannot be read is never touched",
            ),
            json(),
        ])
}

fn run(matches: &ArgMatches) -> anyhow::Result<u8> {
    let store = Store::open_default()?;
    let mut checkup = examine(&store)?;
    let mut mended = Vec::new();
    if matches.get_flag("fix") {
        let done = mend(&store, checkup.findings);
        mended = done.mended;
        checkup = examine(&store)?;
        checkup.findings.splice(0..0, done.failed);
    }
    let report = Report {
        jobs: checkup.jobs,
        findings: checkup.findings,
        mended,
        machine: Machine::of(&store)?,
    };
    if matches.get_flag("json") {
        print::json(&report)?;
    } else {
        report.show()?;
    }
    let problems = report.count(Severity::Problem);
    Ok(if problems > 0 { exit::FAILED } else { 0 })
}

/// What a visit came to, as JSON shows it.
#[derive(Debug, Serialize)]
struct Report {
    jobs: usize,
    findings: Vec<Finding>,
    mended: Vec<Finding>,
    machine: Machine,
}

impl Report {
    fn count(&self, severity: Severity) -> usize {
        self.findings
            .iter()
            .filter(|finding| finding.severity == severity)
            .count()
    }

    fn show(&self) -> std::io::Result<()> {
        for finding in &self.mended {
            show("mended", finding, None)?;
        }
        for finding in &self.findings {
            show(finding.severity.word(), finding, Some(&finding.advice))?;
        }
        for sentence in self.machine.sentences() {
            print::line(&format!("machine  {}", print::safe(&sentence)))?;
        }
        print::line(&format!(
            "{} jobs, {} problems, {} notes",
            self.jobs,
            self.count(Severity::Problem),
            self.count(Severity::Note)
        ))
    }
}

fn show(word: &str, finding: &Finding, advice: Option<&str>) -> std::io::Result<()> {
    let job = finding.job.as_ref().map_or("-", |job| job.as_str());
    let advice = advice.map(|advice| format!("; {advice}"));
    let text = format!("{job}: {}{}", finding.what, advice.unwrap_or_default());
    print::line(&format!("{word:<8} {}", print::safe(&text)))
}
