//! A piece of what a job has printed, never more than asked for, as bytes; and where in which file it is, so that one can go on from there.

use std::io;

use hyper::StatusCode;
use hyper::header::{HeaderName, HeaderValue};
use state_machine::id::JobId;

use super::reply::{Reply, refusal, whole};
use crate::output::{self, Piece, Place};
use crate::store::Store;

/// How much is given where nothing else is asked for, in bytes.
const USUAL: u64 = 64 << 10;
/// How much at most.
const MOST: u64 = 256 << 10;

/// What is asked for.
#[derive(Debug, Default)]
pub(super) struct Wanted {
    stream: Option<&'static str>,
    from: Option<u64>,
    file: Option<String>,
    most: Option<u64>,
}

impl Wanted {
    /// From the query of an address: `stream`, `from`, `file`, `bytes`.
    ///
    /// # Errors
    ///
    /// What in it makes no sense.
    pub(super) fn read(query: &str) -> Result<Wanted, String> {
        let mut wanted = Wanted::default();
        for (key, value) in url::form_urlencoded::parse(query.as_bytes()) {
            let number = || {
                let number = value.parse();
                number.map_err(|_| format!("{key} is a number of bytes"))
            };
            match &*key {
                "stream" => wanted.stream = Some(file_of(&value)?),
                "from" => wanted.from = Some(number()?),
                "bytes" => wanted.most = Some(number()?),
                "file" => wanted.file = Some(value.into_owned()),
                _ => return Err(format!("'{key}' is not known here")),
            }
        }
        Ok(wanted)
    }

    fn place(&self) -> Place {
        match self.from {
            Some(from) => Place::From(from),
            None => Place::Last,
        }
    }
}

fn file_of(stream: &str) -> Result<&'static str, String> {
    match stream {
        "log" => Ok(output::LOG),
        "stdout" => Ok(output::STDOUT),
        "stderr" => Ok(output::STDERR),
        "on_end" => Ok(output::ON_END),
        _ => Err("stream is log, stdout, stderr or on_end".into()),
    }
}

/// Read it. Blocks.
///
/// # Errors
///
/// The job is gone, or the file cannot be read.
pub(super) fn read(store: &Store, job: &JobId, split: bool, wanted: &Wanted) -> io::Result<Piece> {
    let usual = if split { output::STDOUT } else { output::LOG };
    let stream = wanted.stream.unwrap_or(usual);
    let most = wanted.most.unwrap_or(USUAL).min(MOST);
    let dir = store.job_dir(job);
    let piece = output::piece(&dir, stream, wanted.place(), most)?;
    let is_other = |file: &String| *file != piece.file;
    if piece.from > piece.size || wanted.file.as_ref().is_some_and(is_other) {
        // It was rotated or cut: what it goes on with is the end of what is there.
        return output::piece(&dir, stream, Place::Last, most);
    }
    Ok(piece)
}

/// The answer.
pub(super) fn answer(read: io::Result<Piece>) -> Reply {
    match read {
        Ok(piece) => found(piece),
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            refusal(StatusCode::NOT_FOUND, "the job is gone")
        }
        Err(error) => refusal(StatusCode::INTERNAL_SERVER_ERROR, &error.to_string()),
    }
}

fn found(piece: Piece) -> Reply {
    let next = piece.from + piece.bytes.len() as u64;
    let mut reply = whole("text/plain; charset=utf-8", piece.bytes);
    let mut add = |name: &'static str, value: String| {
        if let Ok(value) = HeaderValue::from_str(&value) {
            let name = HeaderName::from_static(name);
            reply.headers_mut().insert(name, value);
        }
    };
    add("outlive-log-from", piece.from.to_string());
    add("outlive-log-next", next.to_string());
    add("outlive-log-size", piece.size.to_string());
    add("outlive-log-file", piece.file);
    reply
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_makes_no_sense_is_said() {
        let read = |query| Wanted::read(query).map(|wanted| (wanted.stream, wanted.from));
        assert_eq!(read("").unwrap(), (None, None));
        assert_eq!(
            read("stream=stderr&from=7").unwrap(),
            (Some("stderr.log"), Some(7))
        );
        for bad in [
            "from=-1",
            "from=x",
            "stream=../job.json",
            "bytes=1e9",
            "other=1",
            "from=99999999999999999999",
        ] {
            assert!(read(bad).is_err(), "{bad}");
        }
    }
}
