//! Lengths of time and sizes, as people write them on the command line and in configuration files.

use std::time::Duration;

use jiff::{Span, SpanRelativeTo};
use thiserror::Error;

/// A word that is no length of time, size or list of exit codes.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum BadUnit {
    /// It should be a length of time.
    #[error("'{0}' is no length of time; write 10s, 5m, 1h30m, 1d or a number of seconds")]
    Duration(String),
    /// It should be a size.
    #[error("'{0}' is no size; write 10M, 1G, 512K or a number of bytes")]
    Size(String),
    /// It should be some memory.
    #[error("nothing runs without memory")]
    NoMemory,
    /// It should be a part of a processor.
    #[error("'{0}' is no part of a processor; write 50%")]
    Percent(String),
    /// It should be a list of exit codes.
    #[error("'{0}' is no list of exit codes; write 0,3 or 10-12")]
    Codes(String),
}

/// A length of time: `10s`, `5m`, `1d`, `1h30m`, `250ms`; a bare number is seconds. A day has 24 hours.
pub fn duration(text: &str) -> Result<Duration, BadUnit> {
    let bad = || BadUnit::Duration(text.to_owned());
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
pub fn size(text: &str) -> Result<u64, BadUnit> {
    let bad = || BadUnit::Size(text.to_owned());
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

/// How much memory may be taken, in bytes: as [`size`], and something.
pub fn memory(text: &str) -> Result<u64, BadUnit> {
    let bytes = size(text)?;
    let is_some = bytes > 0;
    is_some.then_some(bytes).ok_or(BadUnit::NoMemory)
}

/// A part of one processor, or several of them, in percent of one: `50%`, `200%`.
pub fn percent(text: &str) -> Result<u32, BadUnit> {
    let number = text.strip_suffix('%');
    let percent = number.and_then(|number| number.parse().ok());
    percent
        .filter(|percent| *percent > 0)
        .ok_or_else(|| BadUnit::Percent(text.to_owned()))
}

/// Exit codes: `0,3,10-12`.
pub fn codes(text: &str) -> Result<Vec<u8>, BadUnit> {
    let bad = || BadUnit::Codes(text.to_owned());
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
            assert_eq!(duration(text), Ok(Duration::from_millis(ms)));
        }
        for bad in ["", "-1", "-5s", "soon", "1x", "nan", "1e400"] {
            assert!(duration(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn sizes_and_codes_are_read_as_people_write_them() {
        assert_eq!(size("10M"), Ok(10 << 20));
        assert_eq!(size("7"), Ok(7));
        for bad in ["", "99999999999T", "1.5M", "M", "-1"] {
            assert!(size(bad).is_err(), "{bad}");
        }
        assert_eq!(codes("0,3,10-12"), Ok(vec![0, 3, 10, 11, 12]));
        for bad in ["256", "5-3", "", "1,,2"] {
            assert!(codes(bad).is_err(), "{bad}");
        }
    }
}
