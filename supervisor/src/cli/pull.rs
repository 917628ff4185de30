//! `outlive pull`: make a job that fetches something, and start it now.

use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::builder::PossibleValuesParser;
use clap::{Arg, ArgAction, ArgMatches, Command, value_parser};
use rustix::fs::Mode;
use rustix::process::umask;
use state_machine::job::State;
use state_machine::protocol::look::View;
use state_machine::pull::reference::{Reference, is_digest};
use state_machine::record::Kind;

use super::announce::announce;
use super::arguments::{duration, flag, json, option};
use super::hand_over::{Handed, HandedOver, begin_and_hand_over, say_why_not};
use super::progress::Shown;
use super::resume::{Resumed, resume};
use super::{Verb, background, exit, spec};
use crate::error::{Error, Result};
use crate::project::root_above;
use crate::store::{Job, JobSpec, PullSpec, Store, exit_code};
use crate::worker::Start;

pub(super) const VERB: Verb = Verb {
    name: "pull",
    aliases: &[],
    declare,
    run,
};

fn declare(verb: Command) -> Command {
    let patterns = |name: &'static str, help: &'static str| {
        Arg::new(name)
            .long(name)
            .value_name("PATTERN")
            .action(ArgAction::Append)
            .help(help)
    };
    verb.about("Fetch something as a job, and print the job's id")
        .long_about(
            "Fetch something as a job, and print the job's id. It survives cuts, crashes and reboots, goes on where it was, and \
             puts nothing into place that was not verified. REF is one of https://…, hf:owner/name[@revision], \
             hf:datasets/owner/name, oci:host/name:tag and ollama:name:tag.",
        )
        .arg(Arg::new("ref").value_name("REF").required(true).help("What to fetch"))
        .args([
            option("to", "PATH", "Where it goes [its own name, here]").value_parser(value_parser!(PathBuf)),
            option("revision", "REV", "The branch, tag or commit of a repository"),
            option("sha256", "HEX", "What the file must come to"),
            patterns("include", "Only the files of a repository that match, several times for several patterns"),
            patterns("exclude", "Not the files of a repository that match"),
            option("connections", "N", "How many connections there may be at a time [4]")
                .value_parser(value_parser!(u32).range(1..=64)),
            duration("idle-timeout", "How long a connection may be silent [30s]"),
            option("retry", "N", "How often it is tried again in a row when nothing comes [9]")
                .value_parser(value_parser!(u32)),
            duration("backoff", "The longest wait before the first retry; it doubles [1s]"),
            duration("backoff-max", "No wait is longer than this [5m]"),
            duration("timeout", "How long an attempt may run"),
            option("on-end", "COMMAND", "A shell command that is told of the end"),
            option("if-running", "WHAT", "When the same is being fetched already [join]")
                .value_parser(PossibleValuesParser::new(["join", "fail", "replace"])),
            flag("wait", "Wait for the end, show how far it is, and exit with 0 if all went well"),
            flag("follow", "The same as --wait").short('f'),
            json(),
        ])
}

fn run(matches: &ArgMatches) -> anyhow::Result<u8> {
    let store = Store::open_default()?;
    let spec = spec_from(matches)?;
    let if_running = matches
        .get_one::<String>("if-running")
        .map_or("join", String::as_str);
    loop {
        match begin_and_hand_over(&store, spec.clone())? {
            Handed::New(handed) => return tell(&handed, matches),
            Handed::UnderWay(view) if if_running == "replace" => {
                let job = store.job(&view.descriptor.id);
                exit::say(&format!("stopping {}", job.id()));
                match job.stop(None) {
                    Ok(_) | Err(Error::Gone(_)) => {}
                    Err(error) => return Err(error.into()),
                }
            }
            Handed::UnderWay(view) => return join(&store, &view, &spec, if_running, matches),
        }
    }
}

fn spec_from(matches: &ArgMatches) -> Result<JobSpec> {
    let word = |name| matches.get_one::<String>(name).cloned();
    let words = |name| {
        matches
            .get_many::<String>(name)
            .unwrap_or_default()
            .cloned()
            .collect()
    };
    let asked = word("ref").unwrap_or_default();
    let reference = Reference::parse(&asked).map_err(|error| Error::Usage(error.to_string()))?;
    let destination = destination(&reference, matches.get_one::<PathBuf>("to"))?;
    let mut spec =
        JobSpec::pull(&asked, destination).map_err(|error| Error::Usage(error.to_string()))?;
    let is_hub = matches!(reference, Reference::Hub(_));
    let revision = match &reference {
        Reference::Hub(hub) => word("revision").or(hub.revision.clone()),
        _ => word("revision"),
    };
    let digest = word("sha256").map(|hex| format!("sha256:{}", hex.to_ascii_lowercase()));
    let (include, exclude): (Vec<String>, Vec<String>) = (words("include"), words("exclude"));
    if !is_hub && (revision.is_some() || !include.is_empty() || !exclude.is_empty()) {
        return Err(Error::Usage(
            "--revision, --include and --exclude are for repositories of a hub (hf:…)".into(),
        ));
    }
    if digest.is_some() && !matches!(reference, Reference::Web(_)) {
        return Err(Error::Usage(
            "--sha256 is for one file of the web; what else can be fetched has digests of its own"
                .into(),
        ));
    }
    if digest.as_deref().is_some_and(|digest| !is_digest(digest)) {
        return Err(Error::Usage("--sha256 takes 64 hexadecimal digits".into()));
    }
    let time = |name| matches.get_one::<Duration>(name).copied();
    if let Some(pull) = &mut spec.pull {
        *pull = PullSpec {
            revision,
            digest,
            include,
            exclude,
            connections: matches.get_one::<u32>("connections").copied(),
            idle: time("idle-timeout").filter(|time| !time.is_zero()),
            ..pull.clone()
        };
    }
    spec::set_retry(&mut spec, matches);
    spec.timeout = time("timeout").filter(|time| !time.is_zero());
    spec.on_end = word("on-end").map(|command| spec::by_shell(command.into()));
    spec.project = std::env::current_dir()
        .ok()
        .and_then(|dir| root_above(&dir));
    // What is fetched gets the mask of whoever asked for it; what we make ourselves is for its owner's eyes only.
    spec.umask = Some(umask(Mode::from_raw_mode(0o077)).as_raw_mode());
    Ok(spec)
}

/// Where it goes: where the user says, else here, under its own name. A file goes into a directory that stands there.
fn destination(reference: &Reference, to: Option<&PathBuf>) -> Result<PathBuf> {
    let name = reference.file_name();
    let unnamed = |to: &Path| to.file_name().and_then(|it| it.to_str()).is_none();
    let nameless =
        || Error::Usage("the address ends in no name for a file; give one with --to".into());
    match (reference, to) {
        (Reference::Web(_), Some(to)) if leads_into_directory(to) => {
            Ok(to.join(name.ok_or_else(nameless)?))
        }
        (Reference::Web(_), Some(to)) if unnamed(to) => Err(Error::Usage(format!(
            "--to {} ends in no name for a file that is text",
            to.display()
        ))),
        (_, Some(to)) => Ok(to.clone()),
        (Reference::Model(_), None) => models(),
        (_, None) => Ok(name.ok_or_else(nameless)?.into()),
    }
}

fn leads_into_directory(to: &Path) -> bool {
    use std::os::unix::ffi::OsStrExt;
    to.is_dir() || to.as_os_str().as_bytes().ends_with(b"/")
}

/// Where ollama keeps its models.
fn models() -> Result<PathBuf> {
    let set = |name| std::env::var_os(name).filter(|value| !value.is_empty());
    match (set("OLLAMA_MODELS"), set("HOME")) {
        (Some(models), _) => Ok(models.into()),
        (None, Some(home)) => Ok(PathBuf::from(home).join(".ollama/models")),
        (None, None) => Err(Error::Usage(
            "neither OLLAMA_MODELS nor HOME is set; say with --to where the models are".into(),
        )),
    }
}

fn tell(handed: &HandedOver, matches: &ArgMatches) -> anyhow::Result<u8> {
    announce(&handed.job, matches)?;
    match handed.start {
        Start::Over => Ok(say_why_not(&handed.job)?),
        Start::Running => stay(&handed.job, matches),
    }
}

/// Something is being fetched to the same place.
fn join(
    store: &Store,
    view: &View,
    spec: &JobSpec,
    if_running: &str,
    matches: &ArgMatches,
) -> anyhow::Result<u8> {
    let job = store.job(&view.descriptor.id);
    let wanted = spec.clone().into_descriptor(view.descriptor.created_at_ms);
    let is_the_same = match (&view.descriptor.kind, &wanted.kind) {
        (Kind::Pull(standing), Kind::Pull(wanted)) => standing.asks_for_the_same(wanted),
        _ => false,
    };
    if !is_the_same {
        return Err(Error::NotNow(format!(
            "{} puts something else there; stop it, give another place with --to, or use --if-running replace",
            job.id()
        ))
        .into());
    }
    if if_running == "fail" {
        announce(&job, matches)?;
        return Err(Error::NotNow(format!("it is {} already, as {}", view.state, job.id())).into());
    }
    match view.state {
        // Whoever asks for it now wants it to go on.
        State::Interrupted | State::Paused => {
            exit::say(&format!("{} was {}, and goes on", job.id(), view.state));
            if resume(&job)? == Resumed::Queued {
                background::ensure_supervised(store)?;
            }
        }
        state => exit::say(&format!("it is {state} already, as {}", job.id())),
    }
    announce(&job, matches)?;
    stay(&job, matches)
}

/// Stay with the job as far as that was asked for.
fn stay(job: &Job, matches: &ArgMatches) -> anyhow::Result<u8> {
    if !matches.get_flag("wait") && !matches.get_flag("follow") {
        return Ok(0);
    }
    let mut shown = Shown::new();
    let view = job.wait_until(None, |view| {
        shown.show(view);
        view.state.is_terminal() || view.state == State::Interrupted || view.state == State::Paused
    })?;
    shown.finish(&view);
    if let Some(message) = &view.status.message {
        exit::say(message);
    }
    Ok(exit_code(view.state, &view.status))
}
