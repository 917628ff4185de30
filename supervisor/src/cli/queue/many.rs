//! `queue --from`: many jobs, one a line.

use std::collections::HashMap;
use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};
use std::path::Path;

use clap::ArgMatches;
use state_machine::record::{After, AfterWhen};

use super::line::{Asked, Line};
use super::room::Room;
use super::{after_word, existing, if_running, supervise};
use crate::cli::exit;
use crate::cli::wait::to_the_end;
use crate::error::{DiskError, Error, Result};
use crate::store::{BatchJob, Job, JobSpec, Queued, Store, exit_code};

/// The longest line that is read, in bytes: more than any command line that a kernel takes.
const LINE_LIMIT: usize = 8 << 20;

/// Queue what the lines of `source` ask for; `base` is what the flags say.
pub(super) fn run(
    store: &Store,
    base: &JobSpec,
    source: &Path,
    matches: &ArgMatches,
) -> anyhow::Result<u8> {
    let lines = if source == Path::new("-") {
        read(store, base, source, io::stdin().lock())?
    } else {
        let file = File::open(source).map_err(|error| DiskError::new("open", source, error))?;
        read(store, base, source, BufReader::new(file))?
    };
    if lines.is_empty() {
        return Ok(0);
    }
    let queued = {
        let room = Room::make();
        store.queue_batch(lines, if_running(matches), room.locks())?
    };
    for Queued { job, .. } in queued.iter().filter(|queued| !queued.is_new) {
        exit::say(&format!("{} is under way already", job.id()));
    }
    let supervised = supervise(store, matches);
    tell(&queued, matches.get_flag("json"))?;
    supervised?;
    if matches.get_flag("wait") {
        return wait(queued.iter().map(|queued| &queued.job));
    }
    Ok(0)
}

fn tell(queued: &[Queued], as_json: bool) -> anyhow::Result<()> {
    use std::io::Write;
    let mut out = io::BufWriter::new(io::stdout().lock());
    for Queued { job, .. } in queued {
        if as_json {
            match job.look() {
                Ok(view) => serde_json::to_writer(&mut out, &job.report(&view))?,
                // It has ended and was swept already.
                Err(Error::Gone(_)) => continue,
                Err(error) => return Err(error.into()),
            }
            out.write_all(b"\n")?;
        } else {
            writeln!(out, "{}", job.id())?;
        }
    }
    out.flush()?;
    Ok(())
}

/// Wait for all of them; the status of the first that did not end well.
fn wait<'a>(jobs: impl Iterator<Item = &'a Job>) -> anyhow::Result<u8> {
    let mut code = 0;
    for job in jobs {
        let view = to_the_end(job)?;
        let own = exit_code(view.state, &view.status);
        code = if code == 0 { own } else { code };
    }
    Ok(code)
}

/// Every job that is asked for, with what it comes after found. Nothing is made here.
fn read(
    store: &Store,
    base: &JobSpec,
    source: &Path,
    input: impl BufRead,
) -> Result<Vec<BatchJob>> {
    let asked = parse(base, source, input)?;
    let labels = labels(&asked)?;
    // A name is looked up among all jobs there are: once is enough.
    let mut known = HashMap::new();
    let mut jobs = Vec::with_capacity(asked.len());
    for (line, Asked { spec, label, after }) in asked {
        let mut job = BatchJob {
            line,
            label,
            spec,
            after: Vec::new(),
        };
        if let Some(wishes) = after {
            job.spec.after.clear();
            for wish in wishes {
                let (query, when) = after_word(&wish);
                if let Some(&on) = labels.get(query) {
                    job.after.push((on, when));
                    continue;
                }
                // A label can end in what looks like a condition.
                if let Some(&on) = labels.get(&wish) {
                    job.after.push((on, AfterWhen::Success));
                    continue;
                }
                let found = match known.get(&wish) {
                    Some(found) => After::clone(found),
                    None => {
                        let found = existing(store, &wish).map_err(|error| error.at_line(line))?;
                        known.insert(wish, found.clone());
                        found
                    }
                };
                job.spec.after.push(found);
            }
        }
        jobs.push(job);
    }
    Ok(jobs)
}

/// Every line that is not blank, with its number.
fn parse(base: &JobSpec, source: &Path, mut input: impl BufRead) -> Result<Vec<(usize, Asked)>> {
    let mut asked = Vec::new();
    let mut bytes = Vec::new();
    for number in 1.. {
        bytes.clear();
        let limit = LINE_LIMIT as u64 + 1;
        let read = input.by_ref().take(limit).read_until(b'\n', &mut bytes);
        read.map_err(|error| DiskError::new("read", source, error))?;
        if bytes.is_empty() {
            break;
        }
        if bytes.len() > LINE_LIMIT {
            let why = format!("it is longer than {LINE_LIMIT} bytes");
            return Err(Error::Usage(why).at_line(number));
        }
        if bytes.iter().all(u8::is_ascii_whitespace) {
            continue;
        }
        let line = Line::decode(&bytes).and_then(|line| line.over(base));
        asked.push((number, line.map_err(|error| error.at_line(number))?));
    }
    Ok(asked)
}

/// The place of each label.
fn labels(asked_of: &[(usize, Asked)]) -> Result<HashMap<String, usize>> {
    let mut labels: HashMap<String, usize> = HashMap::new();
    for (place, (line, asked)) in asked_of.iter().enumerate() {
        let Some(label) = &asked.label else { continue };
        if let Some(first) = labels.insert(label.clone(), place) {
            let why = format!("line {} has the label '{label}' already", asked_of[first].0);
            return Err(Error::Usage(why).at_line(*line));
        }
    }
    Ok(labels)
}
