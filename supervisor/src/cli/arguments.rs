//! Arguments that several verbs take, and how their values are read.

use std::ffi::OsString;
use std::time::Duration;

use clap::{Arg, ArgAction, ArgMatches, value_parser};
use jiff::{Span, SpanRelativeTo};

use crate::error::{Error, Result};
use crate::store::{Job, Store};

/// `--json`.
pub(super) fn json() -> Arg {
    Arg::new("json")
        .long("json")
        .action(ArgAction::SetTrue)
        .help("Print JSON")
}

/// `--all`.
pub(super) fn all(help: &'static str) -> Arg {
    flag("all", help)
}

/// A flag.
pub(super) fn flag(name: &'static str, help: &'static str) -> Arg {
    Arg::new(name)
        .long(name)
        .action(ArgAction::SetTrue)
        .help(help)
}

/// An option whose value is a word.
pub(super) fn option(name: &'static str, value: &'static str, help: &'static str) -> Arg {
    Arg::new(name).long(name).value_name(value).help(help)
}

/// An option whose value is a length of time.
pub(super) fn duration(name: &'static str, help: &'static str) -> Arg {
    option(name, "TIME", help).value_parser(parse_duration)
}

/// JOB, once.
pub(super) fn job() -> Arg {
    Arg::new("job")
        .value_name("JOB")
        .required(true)
        .help("An id, an unambiguous prefix of one, a name, or a reference")
}

/// JOB, any number of times.
pub(super) fn jobs() -> Arg {
    Arg::new("job")
        .value_name("JOB")
        .num_args(0..)
        .help("An id, an unambiguous prefix of one, a name, or a reference")
}

/// The job that the argument names.
pub(super) fn find_job(store: &Store, matches: &ArgMatches) -> Result<Job> {
    // Clap has seen to it that there is one.
    let query = matches.get_one::<String>("job").map_or("", String::as_str);
    store.resolve(query)
}

/// The jobs that the arguments name, each once.
pub(super) fn find_jobs(store: &Store, matches: &ArgMatches) -> Result<Vec<Job>> {
    let mut jobs: Vec<Job> = Vec::new();
    for query in matches.get_many::<String>("job").unwrap_or_default() {
        let job = store.resolve(query)?;
        if !jobs.iter().any(|known| known.id() == job.id()) {
            jobs.push(job);
        }
    }
    Ok(jobs)
}

/// A length of time: `10s`, `5m`, `1d`, `1h30m`, `250ms`; a bare number is seconds.
pub(super) fn parse_duration(text: &str) -> Result<Duration> {
    let bad = || {
        Error::Usage(format!(
            "'{text}' is no length of time; write 10s, 5m, 1h30m, 1d or a number of seconds"
        ))
    };
    if let Ok(seconds) = text.parse::<f64>() {
        return Duration::try_from_secs_f64(seconds).map_err(|_| bad());
    }
    let span: Span = text.parse().map_err(|_| bad())?;
    let duration = span
        .to_duration(SpanRelativeTo::days_are_24_hours())
        .map_err(|_| bad())?;
    Duration::try_from(duration).map_err(|_| bad())
}

/// A number of bytes: `10M`, `1G`, `512K`, `4096`; powers of 1024.
pub(super) fn parse_size(text: &str) -> Result<u64> {
    let bad = || {
        Error::Usage(format!(
            "'{text}' is no size; write 10M, 1G, 512K or a number of bytes"
        ))
    };
    let end = text
        .find(|c: char| !c.is_ascii_digit())
        .unwrap_or(text.len());
    let number: u64 = text[..end].parse().map_err(|_| bad())?;
    let shift = match text[end..].to_ascii_lowercase().as_str() {
        "" | "b" => 0,
        "k" | "kb" | "kib" => 10,
        "m" | "mb" | "mib" => 20,
        "g" | "gb" | "gib" => 30,
        "t" | "tb" | "tib" => 40,
        _ => return Err(bad()),
    };
    number.checked_mul(1 << shift).ok_or_else(bad)
}

/// Exit codes: `0,3,10-12`.
pub(super) fn parse_codes(text: &str) -> Result<Vec<u8>> {
    let bad = || {
        Error::Usage(format!(
            "'{text}' is no list of exit codes; write 0,3 or 10-12"
        ))
    };
    let mut codes = Vec::new();
    for part in text.split(',') {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        let first: u8 = first.trim().parse().map_err(|_| bad())?;
        let last: u8 = last.trim().parse().map_err(|_| bad())?;
        if first > last {
            return Err(bad());
        }
        codes.extend(first..=last);
    }
    Ok(codes)
}

/// The command, byte for byte.
pub(super) fn command() -> Arg {
    Arg::new("command")
        .value_name("COMMAND")
        .required(true)
        .num_args(1..)
        .trailing_var_arg(true)
        .allow_hyphen_values(true)
        .value_parser(value_parser!(OsString))
        .help(
            "The program and its arguments, passed on byte for byte; name a shell if you want one",
        )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_read_as_people_write_them() {
        let cases = [
            ("10s", 10_000),
            ("5m", 300_000),
            ("1d", 86_400_000),
            ("1h30m", 5_400_000),
            ("250ms", 250),
            ("2", 2_000),
            ("0.5", 500),
        ];
        for (text, ms) in cases {
            assert_eq!(parse_duration(text).unwrap(), Duration::from_millis(ms));
        }
        for bad in ["", "-1", "-5s", "soon", "1x", "nan", "1e400"] {
            assert!(parse_duration(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn sizes_and_codes_are_read_as_people_write_them() {
        assert_eq!(parse_size("10M").unwrap(), 10 << 20);
        assert_eq!(parse_size("7").unwrap(), 7);
        assert!(parse_size("").is_err());
        assert!(parse_size("99999999999T").is_err());
        assert_eq!(parse_codes("0,3,10-12").unwrap(), [0, 3, 10, 11, 12]);
        assert!(parse_codes("256").is_err());
        assert!(parse_codes("5-3").is_err());
    }
}
