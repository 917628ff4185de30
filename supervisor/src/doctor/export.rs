//! All about one job, in one document for whoever is to find out what went wrong: its records, the end of its output, what is found
//! wrong with it, and what the machine is like. Secrets are taken out; what was is said.

use std::fs::{File, Metadata};
use std::io::{Read as _, Seek as _, SeekFrom};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::Path;

use rustix::fs::OFlags;
use serde_json::{Map, Value, json};
use state_machine::id::JobId;

use super::redact::{REDACTED, Redactor, is_secret};
use super::{Machine, examine, names};
use crate::clock;
use crate::error::Result;
use crate::output::is_output;
use crate::store::Store;

/// How much of a record is read, in bytes, and how much of the end of each log.
const MOST: u64 = 4 << 20;
const TAIL: u64 = 64 << 10;
/// How much of that is left out where nothing tells where a word of it begins.
const CUT: usize = 4 << 10;
/// Of how many log files the end is taken: the newest.
const LOGS: usize = 4;

/// What was collected.
#[derive(Debug)]
pub(crate) struct Export {
    /// All of it.
    pub(crate) document: Value,
    /// What was taken out, a sentence each.
    pub(crate) redacted: Vec<String>,
    /// How a file of it is called where nobody says.
    pub(crate) file: String,
}

/// Collect what there is about a job, whether it can be read or not. Changes nothing.
///
/// # Errors
///
/// When its directory or the machine cannot be looked at.
pub(crate) fn export(store: &Store, id: &JobId) -> Result<Export> {
    let dir = store.job_dir(id);
    let checkup = examine(store);
    let of_it = |finding: &&super::Finding| finding.job.as_ref() == Some(id);
    let findings: Vec<_> = checkup.findings.iter().filter(of_it).collect();
    let mut redactor = Redactor::default();
    let descriptor = descriptor(&mut redactor, &dir, id);
    let shown = redactor.text("the id of the job", id.as_str());
    let mut document = json!({
        "outlive": env!("CARGO_PKG_VERSION"),
        "exported_at_ms": clock::now_ms(),
        "job": shown,
        "dir": redactor.text("its path", &dir.to_string_lossy()),
        "descriptor": descriptor,
        "status": record(&mut redactor, &dir, "status.json"),
        "history": history(&mut redactor, &dir),
        "control": request(&mut redactor, &dir, "control"),
        "control_taken": request(&mut redactor, &dir, "control.taken"),
        "files": files(&dir)?,
        "logs": logs(&mut redactor, &dir)?,
        "findings": clean(&mut redactor, "findings", json!(findings)),
        "machine": Machine::of(store)?,
    });
    let redacted = sentences(&redactor);
    document["redacted"] = json!(redacted);
    let file = format!("outlive-{}.json", shown.replace(REDACTED, "redacted"));
    Ok(Export {
        document,
        redacted,
        file,
    })
}

fn sentences(redactor: &Redactor) -> Vec<String> {
    let counts = redactor.counts().iter();
    counts
        .map(|(place, count)| match *count {
            1 => format!("{place}: 1 value"),
            count => format!("{place}: {count} values"),
        })
        .collect()
}

/// What a file holds, or why that cannot be said.
enum Held {
    Nothing,
    Json(Value),
    Text(String),
    Odd(String),
}

fn read(path: &Path) -> Held {
    let mut file = match plain(path) {
        Ok(file) => file,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Held::Nothing,
        Err(error) => return Held::Odd(error.to_string()),
    };
    let mut bytes = Vec::new();
    if let Err(error) = file.by_ref().take(MOST).read_to_end(&mut bytes) {
        return Held::Odd(error.to_string());
    }
    match serde_json::from_slice(&bytes) {
        Ok(value) => Held::Json(value),
        Err(_) => Held::Text(String::from_utf8_lossy(&bytes).into_owned()),
    }
}

/// Opens a plain file to be read, and nothing else. No link is followed, and no FIFO waited for.
fn plain(path: &Path) -> std::io::Result<File> {
    let flags = OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY;
    let file = File::options()
        .read(true)
        .custom_flags(flags.bits().cast_signed())
        .open(path)?;
    if file.metadata()?.is_file() {
        Ok(file)
    } else {
        Err(std::io::Error::other("it is no plain file"))
    }
}

/// The descriptor, with the names of the environment and none of its values. One that cannot be read is not shown: nobody can
/// tell where in it the environment ends.
fn descriptor(redactor: &mut Redactor, dir: &Path, id: &JobId) -> Value {
    let mut value = match read(&dir.join("job.json")) {
        Held::Json(value) => value,
        Held::Nothing => return Value::Null,
        Held::Odd(why) => return json!({ "unreadable": why }),
        Held::Text(text) => {
            redactor.count("all of job.json, which cannot be read and holds the environment");
            return json!({ "unreadable": "it is no JSON", "bytes": text.len() });
        }
    };
    let environments = ["/kind/command/env", "/kind/pull/env"];
    for pointer in environments {
        if let Some(Value::Object(env)) = value.pointer(pointer) {
            for (name, value) in env {
                redactor.learn(name, value.as_str().unwrap_or_default());
            }
        }
    }
    if let Some(Value::Array(argv)) = value.pointer("/kind/command/argv") {
        // What is no text is no secret that could be found elsewhere.
        let words = argv.iter().filter_map(Value::as_str);
        redactor.learn_from(&words.collect::<Vec<_>>(), id.as_str());
    }
    for pointer in environments {
        if let Some(env) = value.pointer_mut(pointer) {
            without_values(redactor, env);
        }
    }
    clean(redactor, "job.json", value)
}

fn without_values(redactor: &mut Redactor, env: &mut Value) {
    let Value::Object(env) = env else {
        *env = json!(REDACTED);
        return;
    };
    for value in env.values_mut() {
        *value = json!(REDACTED);
        redactor.count("the environment");
    }
}

/// A value without its secrets.
fn clean(redactor: &mut Redactor, place: &str, value: Value) -> Value {
    match value {
        Value::String(text) => Value::String(redactor.text(place, &text)),
        Value::Array(values) => match texts(&values) {
            Some(words) => json!(redactor.words(place, &words)),
            None => {
                let values = values.into_iter();
                Value::Array(values.map(|value| clean(redactor, place, value)).collect())
            }
        },
        Value::Object(fields) => {
            let fields = fields.into_iter();
            let cleaned = fields.map(|(name, value)| {
                // Of bytes that are no text nobody can see what is in them.
                let is_secret = value.is_string() && is_secret(&name);
                let value = if name == "hex" || is_secret {
                    redactor.count(place);
                    json!(REDACTED)
                } else {
                    clean(redactor, place, value)
                };
                (name, value)
            });
            Value::Object(cleaned.collect())
        }
        other => other,
    }
}

fn texts(values: &[Value]) -> Option<Vec<&str>> {
    values.iter().map(Value::as_str).collect()
}

fn record(redactor: &mut Redactor, dir: &Path, name: &str) -> Value {
    match read(&dir.join(name)) {
        Held::Nothing => Value::Null,
        Held::Json(value) => clean(redactor, name, value),
        Held::Text(text) => json!({ "unreadable": redactor.text(name, &text) }),
        Held::Odd(why) => json!({ "unreadable": why }),
    }
}

/// The lines of the history as they stand there, those that cannot be read too.
fn history(redactor: &mut Redactor, dir: &Path) -> Value {
    const NAME: &str = "events.jsonl";
    let text = match read(&dir.join(NAME)) {
        Held::Nothing => return Value::Null,
        // One line is JSON as well.
        Held::Json(value) => return json!([clean(redactor, NAME, value)]),
        Held::Odd(why) => return json!({ "unreadable": why }),
        Held::Text(text) => text,
    };
    let lines = text.lines().map(|line| match serde_json::from_str(line) {
        Ok(value) => clean(redactor, NAME, value),
        Err(_) => json!({ "unreadable": redactor.text(NAME, line) }),
    });
    Value::Array(lines.collect())
}

fn request(redactor: &mut Redactor, dir: &Path, name: &str) -> Value {
    match read(&dir.join(name)) {
        Held::Nothing => Value::Null,
        Held::Json(value) => json!(redactor.text(name, &value.to_string())),
        Held::Text(text) => json!(redactor.text(name, &text)),
        Held::Odd(why) => json!({ "unreadable": why }),
    }
}

fn files(dir: &Path) -> Result<Value> {
    let mut files = Vec::new();
    for name in names(dir)? {
        let Ok(found) = dir.join(&name).symlink_metadata() else {
            continue;
        };
        files.push(json!({
            "name": name.to_string_lossy(),
            "is": what(&found),
            "bytes": found.len(),
            "mode": format!("{:04o}", found.permissions().mode() & 0o7777),
            "user": found.uid(),
            "modified_at_ms": found.mtime() * 1000 + found.mtime_nsec() / 1_000_000,
        }));
    }
    Ok(Value::Array(files))
}

fn what(found: &Metadata) -> &'static str {
    if found.is_file() {
        "file"
    } else if found.is_dir() {
        "directory"
    } else if found.is_symlink() {
        "link"
    } else {
        "other"
    }
}

/// The end of each of the newest logs.
fn logs(redactor: &mut Redactor, dir: &Path) -> Result<Value> {
    let mut found: Vec<(String, Metadata)> = names(dir)?
        .into_iter()
        .filter_map(|name| {
            let name = name.into_string().ok().filter(|name| is_output(name))?;
            let metadata = dir.join(&name).symlink_metadata().ok()?;
            metadata.is_file().then_some((name, metadata))
        })
        .collect();
    found.sort_by_key(|(_, found)| std::cmp::Reverse((found.mtime(), found.mtime_nsec())));
    let mut logs = Map::new();
    for (name, metadata) in found.into_iter().take(LOGS) {
        let shown = match tail(&dir.join(&name)) {
            Ok(text) => json!({ "bytes": metadata.len(), "tail": redactor.text(&name, &text) }),
            Err(error) => json!({ "unreadable": error.to_string() }),
        };
        logs.insert(name, shown);
    }
    Ok(Value::Object(logs))
}

fn tail(path: &Path) -> std::io::Result<String> {
    let mut file = plain(path)?;
    let length = file.metadata()?.len();
    file.seek(SeekFrom::Start(length.saturating_sub(TAIL)))?;
    let mut bytes = Vec::new();
    file.take(TAIL).read_to_end(&mut bytes)?;
    // What is cut could be the second half of a secret, also in output without lines.
    let whole = if length > TAIL {
        let line = bytes.iter().position(|&byte| byte == b'\n');
        let end = line.or_else(|| bytes.iter().position(u8::is_ascii_whitespace));
        &bytes[end.map_or(CUT.min(bytes.len()), |end| end + 1)..]
    } else {
        &bytes[..]
    };
    Ok(String::from_utf8_lossy(whole).into_owned())
}
