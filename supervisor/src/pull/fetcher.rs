//! The process from its first step to its last.

use std::io;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use rustix::net::{SocketType, sockopt};
use state_machine::pull::reference::Reference;
use state_machine::pull::word::Cause;
use state_machine::record::{Descriptor, Kind, Pull};

use super::http::{self, Http, never};
use super::transfer::{Crew, fetch_all};
use super::voice::Voice;
use super::{landing, parts, provider};
use crate::error::{DiskError, Error, Result};
use crate::store::os_string;

/// How many connections there are where nobody says.
const CONNECTIONS: u32 = 4;
/// No more than this are made, whoever says so.
const MOST_CONNECTIONS: u32 = 64;
/// What is asked for now, in the job's directory: a fetcher that is started again asks for the same.
pub(super) const RESOLVED: &str = "resolved";

/// Make the transfer of the job in `dir` for the worker at the other end of standard input.
///
/// # Errors
///
/// When there is no worker, or no such job. Why a transfer does not succeed is told to the worker.
pub(crate) fn serve(dir: &Path) -> Result<()> {
    let socket = socket_of_worker().map_err(|error| match error.kind() {
        io::ErrorKind::InvalidInput => {
            Error::Usage("a fetcher is started by the worker of a job, and not by hand".into())
        }
        _ => Error::Worker(format!("nothing can be fetched: {error}")),
    })?;
    let _ = crate::sys::set_title("outlive fetcher".as_ref());
    let voice = Arc::new(Voice::new(socket));
    let fetched = pull_of(dir).and_then(|pull| transfer(dir, &pull, &voice));
    voice.ends(fetched.as_ref().err());
    fetched.map_err(|cause| Error::Worker(cause.why().to_owned()))
}

/// The socket that is our standard input. What else we were started with stays open: the lock of the tree is among it.
fn socket_of_worker() -> io::Result<OwnedFd> {
    let stdin = io::stdin();
    if !matches!(sockopt::socket_type(&stdin), Ok(SocketType::SEQPACKET)) {
        return Err(io::ErrorKind::InvalidInput.into());
    }
    let socket = rustix::io::fcntl_dupfd_cloexec(&stdin, 3)?;
    nix::unistd::dup2_stdin(std::fs::File::open("/dev/null")?)?;
    Ok(socket)
}

fn pull_of(dir: &Path) -> std::result::Result<Pull, Cause> {
    let path = dir.join("job.json");
    let bytes = std::fs::read(&path)
        .map_err(|error| never(DiskError::new("read", &path, error).to_string()))?;
    let descriptor = Descriptor::decode(&bytes)
        .map_err(|why| never(format!("{} is damaged: {}", path.display(), why.0)))?;
    match descriptor.kind {
        Kind::Pull(pull) => Ok(pull),
        Kind::Command(_) => Err(never(format!("{} is no transfer", path.display()))),
    }
}

fn transfer(dir: &Path, pull: &Pull, voice: &Arc<Voice>) -> std::result::Result<(), Cause> {
    let reference = Reference::parse(&pull.reference).map_err(|error| never(error.to_string()))?;
    let idle = Duration::from_millis(pull.idle_ms.unwrap_or(http::IDLE_MS).max(1));
    let http = Http::new(idle)?;
    let provider = provider::of(reference, pull)?;
    voice.doing(Some("asking what there is"));
    let resolved = match remembered(dir) {
        Some(resolved) => Some(resolved),
        None => remember(dir, provider.resolve(&http)?)?,
    };
    let destination = PathBuf::from(os_string(&pull.destination));
    let plan = provider.plan(&http, resolved.as_deref(), &destination)?;
    if let Some(note) = &plan.note {
        voice.note(note);
    }
    landing::prepare(&plan)?;
    let crew = Arc::new(Crew::new(http, Arc::clone(voice), &plan));
    let _alone = landing::have_it_alone(&plan, voice)?;
    landing::see_that_they_are_files(&plan)?;
    landing::sweep(&plan, voice);
    parts::doubt(dir, &plan, voice)?;
    landing::see_that_it_fits(&plan)?;
    parts::note(dir, &plan)?;
    voice.expect(plan.items.iter().map(|item| item.size));
    voice.doing(None);
    let connections = pull
        .connections
        .unwrap_or(CONNECTIONS)
        .clamp(1, MOST_CONNECTIONS);
    let items = Arc::new(plan.items.clone());
    fetch_all(&crew, &items, connections as usize)?;
    let _turn = landing::in_turn(&plan, voice)?;
    if !voice.may_register() {
        // Without a worker nobody would know of it.
        return Err(http::later("the worker is gone"));
    }
    landing::put_into_place(&plan, &crew)?;
    parts::are_gone(dir);
    Ok(())
}

fn remembered(dir: &Path) -> Option<String> {
    let text = std::fs::read_to_string(dir.join(RESOLVED)).ok()?;
    let text = text.trim();
    (!text.is_empty()).then(|| text.to_owned())
}

/// Write down what is asked for now.
fn remember(dir: &Path, resolved: Option<String>) -> std::result::Result<Option<String>, Cause> {
    let Some(text) = &resolved else {
        return Ok(None);
    };
    let path = dir.join(RESOLVED);
    write_whole(&path, format!("{text}\n").as_bytes())
        .map_err(|error| landing::cause_of(&DiskError::new("write", &path, error)))?;
    Ok(resolved)
}

/// Write a file so that it is whole or as it was.
pub(super) fn write_whole(path: &Path, bytes: &[u8]) -> io::Result<()> {
    use std::io::Write;
    use std::os::unix::fs::OpenOptionsExt;
    let new = path.with_extension("new");
    let mut options = std::fs::OpenOptions::new();
    let mut file = options
        .write(true)
        .create(true)
        .truncate(true)
        .mode(0o600)
        .open(&new)?;
    file.write_all(bytes)?;
    file.sync_data()?;
    std::fs::rename(&new, path)
}
