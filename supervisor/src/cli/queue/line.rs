//! One line of `queue --from`: a job as a JSON object. What it does not say is as the flags of the command line say.

use std::ffi::OsString;
use std::time::Duration;

use serde::Deserialize;
use serde::de::{Deserializer, Error as _};
use state_machine::id::Name;
use state_machine::record::{Bytes, Environment, OnInterrupt, PauseMode};
use state_machine::units;

use crate::cli::{spec, when};
use crate::error::{Error, Result};
use crate::store::{JobSpec, StartTime, os_string};

/// A job, as a line says it.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Line {
    #[serde(alias = "command")]
    argv: Vec<Bytes>,
    label: Option<String>,
    name: Option<String>,
    task: Option<String>,
    env: Option<Environment>,
    clean_env: Option<bool>,
    cwd: Option<Bytes>,
    pool: Option<String>,
    priority: Option<i32>,
    slots: Option<u32>,
    after: Option<Vec<String>>,
    #[serde(default, deserialize_with = "time")]
    delay: Option<Duration>,
    at: Option<String>,
    #[serde(default, deserialize_with = "time")]
    timeout: Option<Duration>,
    retry: Option<u32>,
    #[serde(default, deserialize_with = "time")]
    backoff: Option<Duration>,
    #[serde(default, deserialize_with = "time")]
    backoff_max: Option<Duration>,
    #[serde(default, deserialize_with = "time")]
    grace: Option<Duration>,
    stdin: Option<Bytes>,
    #[serde(default, deserialize_with = "codes")]
    success_codes: Option<Vec<u8>>,
    on_end: Option<String>,
    on_interrupt: Option<OnInterrupt>,
    pause: Option<PauseMode>,
    #[serde(default, deserialize_with = "size")]
    log_max: Option<u64>,
    log_keep: Option<u32>,
    #[serde(default, deserialize_with = "memory")]
    memory: Option<u64>,
    #[serde(default, deserialize_with = "percent")]
    cpu: Option<u32>,
    split_output: Option<bool>,
}

/// What a line comes to.
#[derive(Debug)]
pub(super) struct Asked {
    pub(super) spec: JobSpec,
    pub(super) label: Option<String>,
    /// What it comes after, as it says it; as the flags say where `None`.
    pub(super) after: Option<Vec<String>>,
}

impl Line {
    /// Read the bytes of a line.
    pub(super) fn decode(bytes: &[u8]) -> Result<Line> {
        serde_json::from_slice(bytes).map_err(|error| Error::Usage(complaint(&error)))
    }

    /// The job that it asks for, where `base` is what the flags say.
    pub(super) fn over(self, base: &JobSpec) -> Result<Asked> {
        let mut spec = base.clone();
        if self.argv.is_empty() {
            return Err(Error::Usage("'argv' names no program".into()));
        }
        spec.argv = self.argv.iter().map(os_string).collect();
        spec.name = self.name.map(|word| name(&word)).transpose()?;
        spec.task = self.task.or(spec.task);
        if self.clean_env == Some(true) {
            spec.env.0.clear();
        }
        for (name, value) in self.env.unwrap_or_default().0 {
            check_variable(&name)?;
            spec.env.set(&name.0, &value.0);
        }
        if let Some(cwd) = &self.cwd {
            spec.cwd = base.cwd.join(os_string(cwd));
        }
        if let Some(stdin) = &self.stdin {
            spec.stdin = Some(base.cwd.join(os_string(stdin)));
        }
        spec.pool = self.pool.or(spec.pool);
        spec.priority = self.priority.unwrap_or(spec.priority);
        spec.slots = self.slots.unwrap_or(spec.slots);
        if spec.slots == 0 {
            return Err(Error::Usage("'slots' must be 1 or more".into()));
        }
        spec.start = match (self.delay, &self.at) {
            (None, None) => spec.start,
            (Some(delay), None) => StartTime::In(delay),
            (None, Some(at)) => StartTime::At(when::instant_ms(at)?),
            (Some(_), Some(_)) => {
                return Err(Error::Usage("'delay' and 'at' cannot both be given".into()));
            }
        };
        if let Some(timeout) = self.timeout {
            // 0 asks for none, where the flags or the configuration have one.
            spec.timeout = Some(timeout).filter(|time| !time.is_zero());
        }
        spec.grace = self.grace.unwrap_or(spec.grace);
        let retry = &mut spec.retry;
        if let Some(again) = self.retry {
            retry.max_attempts = again.saturating_add(1);
        }
        retry.backoff_ms = self.backoff.map_or(retry.backoff_ms, in_ms);
        retry.max_backoff_ms = self.backoff_max.map_or(retry.max_backoff_ms, in_ms);
        spec.success_codes = self.success_codes.unwrap_or(spec.success_codes);
        let on_end = self.on_end.map(|line| spec::by_shell(OsString::from(line)));
        spec.on_end = on_end.or(spec.on_end);
        spec.on_interrupt = self.on_interrupt.unwrap_or(spec.on_interrupt);
        spec.pause = self.pause.unwrap_or(spec.pause);
        if let Some(max) = self.log_max {
            spec.output.max_bytes = Some(max).filter(|max| *max > 0);
        }
        spec.output.keep = self.log_keep.or(spec.output.keep);
        spec::check_limits(&spec.output, self.log_keep.is_some())?;
        spec.limits.memory_bytes = self.memory.or(spec.limits.memory_bytes);
        spec.limits.cpu_percent = self.cpu.or(spec.limits.cpu_percent);
        spec.output.split = self.split_output.unwrap_or(spec.output.split);
        check_bytes(&spec)?;
        Ok(Asked {
            spec,
            label: self.label,
            after: self.after,
        })
    }
}

/// What is wrong with a line, without the line that serde counts: it sees only this one.
fn complaint(error: &serde_json::Error) -> String {
    let text = error.to_string();
    let what = text.rfind(" at line ").map_or(&*text, |end| &text[..end]);
    match error.classify() {
        serde_json::error::Category::Data => what.to_owned(),
        _ => format!("it is no JSON object: {what}, at byte {}", error.column()),
    }
}

fn name(word: &str) -> Result<Name> {
    Name::parse(word).map_err(|why| Error::BadWord {
        word: word.to_owned(),
        why,
    })
}

fn check_variable(name: &Bytes) -> Result<()> {
    if name.0.is_empty() || name.0.contains(&b'=') {
        return Err(Error::Usage(format!(
            "'{}' in 'env' is no name of a variable",
            name.lossy()
        )));
    }
    Ok(())
}

/// A zero byte, which JSON can hold and no system call takes.
fn check_bytes(spec: &JobSpec) -> Result<()> {
    use std::os::unix::ffi::OsStrExt;
    let paths = [Some(&spec.cwd), spec.stdin.as_ref()];
    let paths = paths.into_iter().flatten().map(|path| path.as_os_str());
    let words = spec.argv.iter().chain(spec.on_end.iter().flatten());
    let words = words.map(OsString::as_os_str).chain(paths);
    let variables = spec.env.0.iter().flat_map(|(name, value)| [name, value]);
    let mut all = words
        .map(OsStrExt::as_bytes)
        .chain(variables.map(|bytes| bytes.0.as_slice()));
    if all.any(|bytes| bytes.contains(&0)) {
        return Err(Error::Usage(
            "it holds a zero byte, which no command can be given".into(),
        ));
    }
    Ok(())
}

fn in_ms(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

/// A value as people write it on the command line, or as the number that it is.
#[derive(Deserialize)]
#[serde(untagged)]
enum Value {
    Number(serde_json::Number),
    Text(String),
}

impl Value {
    fn into_text(self) -> String {
        match self {
            Value::Number(number) => number.to_string(),
            Value::Text(text) => text,
        }
    }
}

fn time<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Duration>, D::Error> {
    parsed(deserializer, "10s", units::duration)
}

fn size<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<u64>, D::Error> {
    parsed(deserializer, "10M", units::size)
}

fn memory<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<u64>, D::Error> {
    parsed(deserializer, "512M", units::memory)
}

fn percent<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<u32>, D::Error> {
    parsed(deserializer, "50%", units::percent)
}

fn parsed<'de, D: Deserializer<'de>, T>(
    deserializer: D,
    example: &str,
    parse: fn(&str) -> Result<T, units::BadUnit>,
) -> Result<Option<T>, D::Error> {
    let value = Option::<Value>::deserialize(deserializer)
        .map_err(|_| D::Error::custom(format!("expected a number or a text like \"{example}\"")))?;
    value
        .map(|value| parse(&value.into_text()).map_err(D::Error::custom))
        .transpose()
}

/// `"0,3,10-12"`, or an array of numbers.
fn codes<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Vec<u8>>, D::Error> {
    #[derive(Deserialize)]
    #[serde(untagged)]
    enum Codes {
        Numbers(Vec<u8>),
        Text(String),
    }
    match Option::<Codes>::deserialize(deserializer) {
        Ok(None) => Ok(None),
        Ok(Some(Codes::Numbers(codes))) if !codes.is_empty() => Ok(Some(codes)),
        Ok(Some(Codes::Text(text))) => units::codes(&text).map(Some).map_err(D::Error::custom),
        Ok(Some(_)) | Err(_) => Err(D::Error::custom(
            "expected exit codes: [0,3] or \"0,3,10-12\"",
        )),
    }
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use super::*;

    fn asked(line: &str) -> Result<Asked> {
        let mut base = JobSpec::command(["nothing"]);
        base.cwd = "/base".into();
        base.priority = 7;
        base.env.set(b"KEPT", b"1");
        Line::decode(line.as_bytes())?.over(&base)
    }

    #[test]
    fn a_line_says_what_differs_from_the_flags() {
        let asked = asked(
            r#"{"argv":["sh",{"hex":"61ff"}],"cwd":"sub","env":{"NEW":"2"},"delay":1.5,"timeout":"2m","retry":2,
                "success_codes":[0,3],"label":"a","after":["b:end"],"log_max":"1M","log_keep":2}"#,
        )
        .unwrap();
        let spec = asked.spec;
        assert_eq!(spec.argv[0], "sh");
        assert_eq!(spec.cwd, PathBuf::from("/base/sub"));
        assert_eq!((spec.priority, spec.slots), (7, 1));
        assert_eq!(spec.env.get(b"KEPT"), Some(&b"1"[..]));
        assert_eq!(spec.env.get(b"NEW"), Some(&b"2"[..]));
        assert_eq!(spec.start, StartTime::In(Duration::from_millis(1500)));
        assert_eq!(spec.timeout, Some(Duration::from_secs(120)));
        assert_eq!(spec.retry.max_attempts, 3);
        assert_eq!(spec.success_codes, [0, 3]);
        assert_eq!(spec.output.max_bytes, Some(1 << 20));
        assert_eq!(asked.label.as_deref(), Some("a"));
        assert_eq!(asked.after, Some(vec!["b:end".to_owned()]));
    }

    #[test]
    fn what_a_line_must_not_hold_is_said_in_a_few_words() {
        let cases = [
            ("", "no JSON object"),
            ("no", "no JSON object"),
            ("[]", "invalid"),
            ("{}", "argv"),
            (r#"{"argv":[]}"#, "no program"),
            (r#"{"argv":["x"],"command":["y"]}"#, "duplicate"),
            (r#"{"argv":"x"}"#, "invalid type"),
            (r#"{"argv":["x"],"prioritty":1}"#, "prioritty"),
            (r#"{"argv":["x"],"slots":0}"#, "slots"),
            (r#"{"argv":["x"],"slots":-1}"#, "-1"),
            (r#"{"argv":["a\u0000b"]}"#, "zero byte"),
            (r#"{"argv":["x"],"env":{"A=B":"1"}}"#, "A=B"),
            (r#"{"argv":["x"],"delay":"1s","at":"18:30"}"#, "both"),
            (r#"{"argv":["x"],"delay":"soon"}"#, "soon"),
            (r#"{"argv":["x"],"delay":[]}"#, "10s"),
            (r#"{"argv":["x"],"name":"a/b"}"#, "a/b"),
            (r#"{"argv":["x"],"success_codes":[300]}"#, "exit codes"),
            (r#"{"argv":["x"],"log_max":5}"#, "64K"),
            (r#"{"argv":["x"]} {"argv":["y"]}"#, "trailing"),
        ];
        for (line, word) in cases {
            let why = asked(line).unwrap_err();
            assert_eq!(why.exit_code(), 2, "{line}");
            let why = why.to_string();
            assert!(
                why.contains(word) && !why.contains("at line"),
                "{line}: {why}"
            );
        }
    }
}
