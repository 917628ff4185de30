//! `outlive doctor`: whether a store is as it must be, what the machine offers it, and all about one job for a report.

use std::io::Write as _;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use clap::{Arg, ArgMatches, Command, value_parser};
use serde::Serialize;

use super::arguments::{flag, json, resolve};
use super::{Verb, exit, print};
use crate::doctor::kind::{self, Kind};
use crate::doctor::{Finding, Machine, Severity, examine, export, mend};
use crate::error::{DiskError, Error, Result};
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
                "Mend what can be mended without a loss; what cannot be read is moved, whole, to broken/ in the store",
            ),
            json(),
            flag("kinds", "Print what can be found, and what --fix does about it")
                .conflicts_with("fix"),
            Arg::new("export")
                .long("export")
                .value_name("JOB")
                .conflicts_with_all(["fix", "json", "kinds"])
                .help("Write all about a job into a file for a report, without secrets"),
            Arg::new("output")
                .long("output")
                .value_name("FILE")
                .requires("export")
                .value_parser(value_parser!(PathBuf))
                .help("Write that to FILE, which must be new, and not to outlive-JOB.json; '-' is standard output"),
        ])
}

fn run(matches: &ArgMatches) -> anyhow::Result<u8> {
    if matches.get_flag("kinds") {
        return show_kinds(matches.get_flag("json"));
    }
    let store = Store::open_default()?;
    if let Some(query) = matches.get_one::<String>("export") {
        return write_export(&store, query, matches.get_one::<PathBuf>("output"));
    }
    let mut checkup = examine(&store);
    let mut mended = Vec::new();
    if matches.get_flag("fix") {
        let done = mend(&store, checkup);
        mended = done.mended;
        checkup = done.left;
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
            "{}, {}, {}",
            counted(self.jobs, "job"),
            counted(self.count(Severity::Problem), "problem"),
            counted(self.count(Severity::Note), "note")
        ))
    }
}

fn counted(number: usize, what: &str) -> String {
    let plural = if number == 1 { "" } else { "s" };
    format!("{number} {what}{plural}")
}

fn show(word: &str, finding: &Finding, advice: Option<&str>) -> std::io::Result<()> {
    let job = finding.job.as_ref().map_or("-", |job| job.as_str());
    let advice = advice.map(|advice| format!("; {advice}"));
    let text = format!("{job}: {}{}", finding.what, advice.unwrap_or_default());
    print::line(&format!("{word:<8} {}", print::safe(&text)))
}

fn show_kinds(as_json: bool) -> anyhow::Result<u8> {
    #[derive(Serialize)]
    struct Shown {
        kind: Kind,
        severity: Severity,
        what: &'static str,
        fix: Option<&'static str>,
    }
    if as_json {
        let shown = kind::ALL.iter().map(|&kind| Shown {
            kind,
            severity: kind.severity,
            what: kind.about,
            fix: Some(kind.fix).filter(|fix| !fix.is_empty()),
        });
        print::json(&shown.collect::<Vec<_>>())?;
        return Ok(0);
    }
    for kind in kind::ALL {
        let (severity, word) = (kind.severity.word(), kind.word);
        print::line(&format!("{severity:<8} {word:<20} {}", kind.about))?;
        if !kind.fix.is_empty() {
            print::line(&format!("{:<30}--fix {}", "", kind.fix))?;
        }
    }
    Ok(0)
}

/// Write all about a job into a new file, and say on standard error what was taken out.
fn write_export(store: &Store, query: &str, output: Option<&PathBuf>) -> anyhow::Result<u8> {
    let job = resolve(store, query)?;
    let export = export(store, job.id())?;
    let mut text = serde_json::to_vec_pretty(&export.document)?;
    text.push(b'\n');
    let path = match output {
        Some(path) => path.clone(),
        None => PathBuf::from(&export.file),
    };
    if path.as_os_str() == "-" {
        std::io::stdout().lock().write_all(&text)?;
    } else {
        write_new(&path, &text)?;
        print::line(&print::safe(&path.display().to_string()))?;
    }
    for sentence in &export.redacted {
        exit::say(&format!("redacted {sentence}"));
    }
    exit::say("look through it before you give it away: not every secret can be told by its looks");
    Ok(0)
}

/// Write a file that only its owner can read, and that was not there.
fn write_new(path: &Path, bytes: &[u8]) -> Result<()> {
    let mut file = std::fs::OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(path)
        .map_err(|error| match error.kind() {
            std::io::ErrorKind::AlreadyExists => Error::NotNow(format!(
                "{} is there already; name another file with --output",
                path.display()
            )),
            _ => DiskError::new("create", path, error).into(),
        })?;
    let written = file.write_all(bytes);
    written.map_err(|error| {
        // Half of it is nobody's, and would be in the way of the next try.
        let _ = std::fs::remove_file(path);
        DiskError::new("write", path, error).into()
    })
}
