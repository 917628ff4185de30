//! `outlive log`: what a job has printed, byte for byte.

use std::io::{self, Write};
use std::path::Path;

use clap::{Arg, ArgMatches, Command, value_parser};
use state_machine::job::State;

use super::arguments::{find_job, flag, job};
use super::{Verb, exit};
use crate::error::{DiskError, Error};
use crate::output::{self, Notice, Start};
use crate::store::{Job, Store};

pub(super) const VERB: Verb = Verb {
    name: "log",
    aliases: &["logs"],
    declare,
    run,
};

fn declare(verb: Command) -> Command {
    verb.about("Print what a job has printed").args([
        job(),
        flag(
            "follow",
            "Go on as it prints more, from the top, until the job ends",
        )
        .short('f'),
        Arg::new("lines")
            .short('n')
            .long("lines")
            .value_name("N")
            .value_parser(value_parser!(u64))
            .help("The last N lines only"),
        flag(
            "stdout",
            "Standard output only, of a job whose output is split",
        ),
        flag(
            "stderr",
            "Standard error only, of a job whose output is split",
        )
        .conflicts_with("stdout"),
    ])
}

fn run(matches: &ArgMatches) -> anyhow::Result<u8> {
    let store = Store::open_default()?;
    let job = find_job(&store, matches)?;
    let start = matches
        .get_one::<u64>("lines")
        .map_or(Start::Top, |lines| Start::LastLines(*lines));
    let streams = streams(&job, matches)?;
    if matches.get_flag("follow") {
        follow(&job, &streams, start)?;
        return Ok(0);
    }
    if start == Start::Top {
        say_what_is_missing(&job)?;
    }
    for stream in streams {
        let printed = match stream {
            Stream::Out(name) => output::print(&job.dir(), name, start, &mut io::stdout().lock()),
            Stream::Err(name) => output::print(&job.dir(), name, start, &mut io::stderr().lock()),
        };
        printed.map_err(|error| lost(&job, stream.name(), error))?;
    }
    Ok(0)
}

/// What is printed from its beginning may begin in the middle of a line.
fn say_what_is_missing(job: &Job) -> Result<(), Error> {
    if let Some(bytes) = job.look()?.status.dropped_bytes {
        exit::say(&format!(
            "older output is missing: {bytes} bytes were dropped, as --log-max has it"
        ));
    }
    Ok(())
}

/// A stream of a job, and where it is printed.
#[derive(Clone, Copy, Debug)]
enum Stream {
    Out(&'static str),
    Err(&'static str),
}

impl Stream {
    fn name(self) -> &'static str {
        match self {
            Stream::Out(name) | Stream::Err(name) => name,
        }
    }
}

/// The streams that are asked for. One that is asked for alone goes to standard output.
fn streams(job: &Job, matches: &ArgMatches) -> Result<Vec<Stream>, Error> {
    let split = job.look()?.descriptor.output.split;
    let (stdout, stderr) = (matches.get_flag("stdout"), matches.get_flag("stderr"));
    match (split, stdout, stderr) {
        (true, true, _) => Ok(vec![Stream::Out(output::STDOUT)]),
        (true, _, true) => Ok(vec![Stream::Out(output::STDERR)]),
        (false, false, false) => Ok(vec![Stream::Out(output::LOG)]),
        (true, false, false) => Ok(both()),
        (false, ..) => Err(Error::NotNow(format!(
            "the output of {} is not split; run with --split-output to keep the two apart",
            job.id()
        ))),
    }
}

fn both() -> Vec<Stream> {
    vec![Stream::Out(output::STDOUT), Stream::Err(output::STDERR)]
}

/// Follow everything that a job prints, from the top, until it ends.
pub(super) fn follow_job(job: &Job) -> anyhow::Result<()> {
    let streams = if job.look()?.descriptor.output.split {
        both()
    } else {
        vec![Stream::Out(output::LOG)]
    };
    Ok(follow(job, &streams, Start::Top)?)
}

fn follow(job: &Job, streams: &[Stream], start: Start) -> Result<(), Error> {
    std::thread::scope(|scope| {
        let (last, others) = streams
            .split_last()
            .unwrap_or((&Stream::Out(output::LOG), &[]));
        let others: Vec<_> = others
            .iter()
            .map(|stream| scope.spawn(move || follow_one(job, *stream, start)))
            .collect();
        let followed = follow_one(job, *last, start);
        for other in others {
            match other.join() {
                Ok(followed) => followed?,
                Err(panic) => std::panic::resume_unwind(panic),
            }
        }
        followed
    })
}

fn follow_one(job: &Job, stream: Stream, start: Start) -> Result<(), Error> {
    let mut stdout;
    let mut stderr;
    let out: &mut dyn Write = match stream {
        Stream::Out(_) => {
            stdout = io::stdout();
            &mut stdout
        }
        Stream::Err(_) => {
            stderr = io::stderr();
            &mut stderr
        }
    };
    let name = stream.name();
    let mut notices = |notice| exit::say(&tell(name, notice));
    let mut ended = || has_ended(job);
    output::follow(&job.dir(), name, start, out, &mut notices, &mut ended)
        .map_err(|error| lost(job, name, error))
}

/// Whether nothing more is to be printed: the job has ended, and what it left behind too; nobody works on it any more;
/// or it is gone.
pub(super) fn has_ended(job: &Job) -> bool {
    match job.tend() {
        Ok(view) => view.state.is_terminal() || view.state == State::Interrupted,
        Err(_) => true,
    }
}

fn tell(name: &str, notice: Notice) -> String {
    let what = match notice {
        Notice::Truncated => "was truncated; going on from its start",
        Notice::Missed => "was rotated faster than it was read; some output is missing here",
        Notice::Removed => "was removed or moved away",
        Notice::Replaced => "was replaced; going on with the new one",
        Notice::NotAFile => {
            "was replaced by something that is no plain file, which is not followed"
        }
    };
    format!("{name} {what}")
}

fn lost(job: &Job, name: &str, error: io::Error) -> Error {
    if error.kind() == io::ErrorKind::StorageFull {
        // Reading takes no space.
        return Error::Disk(DiskError::new(
            "write to",
            Path::new("standard output"),
            error,
        ));
    }
    let path: &Path = &job.dir().join(name);
    Error::Disk(DiskError::new("read", path, error))
}
