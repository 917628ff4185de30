//! Printing: lines and JSON on standard output, and text made safe for a terminal. What a job or a file says could hold
//! control characters that a terminal would obey.

use std::borrow::{Borrow, Cow};
use std::io::{self, Write};
use std::time::Duration;

use serde::Serialize;
use state_machine::job::State;
use state_machine::protocol::look::View;
use state_machine::record::{Exit, Failure, Kind};
use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

/// Print one line.
pub(super) fn line(text: &str) -> io::Result<()> {
    bytes(text.as_bytes())
}

/// Print one line of bytes that need not be text.
pub(super) fn bytes(text: &[u8]) -> io::Result<()> {
    let mut out = io::stdout().lock();
    out.write_all(text)?;
    out.write_all(b"\n")?;
    out.flush()
}

/// Print a value as one line of JSON.
pub(super) fn json<T: Serialize>(value: &T) -> anyhow::Result<()> {
    let text = serde_json::to_string(value)?;
    line(&text)?;
    Ok(())
}

/// Text with every character that a terminal could obey escaped.
pub(super) fn safe(text: &str) -> Cow<'_, str> {
    // Most of what is printed, and what a listing has very much of.
    if is_plain(text) {
        return Cow::Borrowed(text);
    }
    if text.chars().any(is_unsafe) {
        let mut escaped = String::with_capacity(text.len());
        for c in text.chars() {
            if is_unsafe(c) {
                escaped.extend(c.escape_default());
            } else {
                escaped.push(c);
            }
        }
        Cow::Owned(escaped)
    } else {
        Cow::Borrowed(text)
    }
}

/// Whether it holds nothing but what was on a typewriter.
fn is_plain(text: &str) -> bool {
    text.bytes().all(|byte| matches!(byte, b' '..=b'~'))
}

/// How many columns of a terminal it takes. It is safe already.
pub(super) fn width(text: &str) -> usize {
    if text.is_ascii() {
        text.len()
    } else {
        text.width()
    }
}

/// As much of a text as there are columns for, and `…` where that is not all of it. It is safe already.
pub(super) fn cut(text: &str, columns: usize) -> Cow<'_, str> {
    if width(text) <= columns {
        return Cow::Borrowed(text);
    }
    let Some(room) = columns.checked_sub(1) else {
        return Cow::Borrowed("");
    };
    let mut taken = 0;
    let mut end = 0;
    for (at, c) in text.char_indices() {
        taken += c.width().unwrap_or(0);
        if taken > room {
            break;
        }
        end = at + c.len_utf8();
    }
    Cow::Owned(format!("{}…", &text[..end]))
}

/// Control characters, and those that change the direction of what follows.
fn is_unsafe(c: char) -> bool {
    c.is_control()
        || matches!(c, '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

/// How a job is, in a few words.
pub(super) fn condition(view: &View) -> String {
    let status = &view.status;
    let mut words = match view.state {
        State::Running if view.held && status.stopping.is_some() => "stopping".to_owned(),
        State::Running if status.next_attempt_at_ms.is_some() => {
            format!("running (waits for attempt {})", status.attempt)
        }
        State::Done | State::Failed => return ended(view),
        state => state.to_string(),
    };
    if view.state == State::Paused && view.held && status.stopping.is_some() {
        words = "stopping".into();
    }
    if view.leftovers {
        words.push_str(", processes left");
    }
    words
}

fn ended(view: &View) -> String {
    let how = match (view.status.failure, view.status.exit) {
        (Some(Failure::Timeout), _) => "timed out".to_owned(),
        (Some(Failure::Dependency), _) => return "never started".to_owned(),
        (Some(Failure::Transfer), _) => "failed".to_owned(),
        (Some(_), None) => "failed to start".to_owned(),
        (_, Some(Exit::Code(code))) => format!("exited {code}"),
        (_, Some(Exit::Signal(signal))) => format!("killed by signal {signal}"),
        (_, None) => view.state.to_string(),
    };
    // The code alone misleads where the submitter has said what counts as success.
    let how = match (view.state, view.status.exit) {
        (State::Done, Some(Exit::Code(0))) => how,
        (State::Done, _) => format!("done, {how}"),
        (_, Some(Exit::Code(0))) if view.status.failure.is_none() => format!("failed, {how}"),
        _ => how,
    };
    let left = view.leftovers.then(|| "processes left".to_owned());
    let details: Vec<String> = ran(view).map(short).into_iter().chain(left).collect();
    if details.is_empty() {
        how
    } else {
        format!("{how} ({})", details.join(", "))
    }
}

/// How long a job ran.
pub(super) fn ran(view: &View) -> Option<Duration> {
    let from = view.status.started_at_ms?;
    let to = view.status.ended_at_ms?;
    Some(Duration::from_millis(to.saturating_sub(from)))
}

/// A length of time in at most two units: `2.5s`, `3m 20s`, `4h 5m`, `2d 3h`.
pub(super) fn short(time: Duration) -> String {
    let seconds = time.as_secs();
    match seconds {
        0..60 => format!("{:.1}s", time.as_secs_f64()),
        60..3_600 => format!("{}m {}s", seconds / 60, seconds % 60),
        3_600..86_400 => format!("{}h {}m", seconds / 3_600, seconds % 3_600 / 60),
        _ => format!("{}d {}h", seconds / 86_400, seconds % 86_400 / 3_600),
    }
}

/// An instant in local time, for people.
pub(super) fn instant(at_ms: u64) -> String {
    let stamp = i64::try_from(at_ms)
        .ok()
        .and_then(|ms| jiff::Timestamp::from_millisecond(ms).ok());
    match stamp {
        Some(stamp) => stamp
            .to_zoned_datetime(jiff::tz::TimeZone::system())
            .strftime("%Y-%m-%d %H:%M:%S")
            .to_string(),
        None => format!("{at_ms} ms"),
    }
}

/// What a job runs or fetches, on one line.
pub(super) fn work(view: &View) -> String {
    match &view.descriptor.kind {
        Kind::Command(command) => {
            let words: Vec<String> = command
                .argv
                .iter()
                .map(|word| quoted(&word.lossy()))
                .collect();
            words.join(" ")
        }
        Kind::Pull(pull) => state_machine::pull::reference::shown(&pull.reference),
    }
}

/// A word as a shell would need it, where it holds anything that a shell would not leave alone.
fn quoted(word: &str) -> String {
    let plain = |c: char| c.is_alphanumeric() || "-_./=:,+@%".contains(c);
    if !word.is_empty() && word.chars().all(plain) {
        word.to_owned()
    } else {
        format!("'{}'", word.replace('\'', r"'\''"))
    }
}

/// Print a table: every column as wide as its widest cell, the last one as wide as it likes.
pub(super) fn columns<const N: usize>(
    head: &[&str; N],
    rows: &[impl Borrow<[String; N]>],
) -> io::Result<()> {
    let safe_rows: Vec<[Cow<'_, str>; N]> = rows
        .iter()
        .map(|row| row.borrow().each_ref().map(|cell| safe(cell)))
        .collect();
    let head = head.map(Cow::Borrowed);
    let widths: [usize; N] = std::array::from_fn(|column| {
        let cells = safe_rows.iter().chain([&head]);
        let widths = cells.map(|row| width(&row[column]));
        widths.max().unwrap_or(0)
    });
    let mut out = io::BufWriter::with_capacity(1 << 16, io::stdout().lock());
    for row in [&head].into_iter().chain(&safe_rows) {
        for (column, cell) in row.iter().enumerate() {
            out.write_all(cell.as_bytes())?;
            if column + 1 == N {
                out.write_all(b"\n")?;
            } else {
                let blanks = widths[column] + 2 - width(cell);
                write!(out, "{:blanks$}", "")?;
            }
        }
    }
    out.flush()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_terminal_would_obey_is_escaped() {
        assert_eq!(safe("plain ünïcode"), "plain ünïcode");
        assert_eq!(safe("a\x1b[2Jb\n\u{202e}"), "a\\u{1b}[2Jb\\n\\u{202e}");
    }

    #[test]
    fn what_is_cut_takes_the_columns_that_there_are() {
        assert_eq!(cut("four", 4), "four");
        assert_eq!(cut("fours", 4), "fou…");
        assert_eq!(cut("日本語です", 10), "日本語です");
        // Half of a character cannot be shown.
        assert_eq!(cut("日本語です", 8), "日本語…");
        assert_eq!(cut("日本語です", 2), "…");
        assert_eq!(cut("e\u{301}e\u{301}e\u{301}", 2), "e\u{301}…");
        assert_eq!(cut("four", 1), "…");
        assert_eq!(cut("four", 0), "");
    }

    #[test]
    fn times_are_short() {
        assert_eq!(short(Duration::from_millis(2_540)), "2.5s");
        assert_eq!(short(Duration::from_secs(200)), "3m 20s");
        assert_eq!(short(Duration::from_secs(90_000)), "1d 1h");
    }

    #[test]
    fn words_are_quoted_for_a_shell() {
        assert_eq!(quoted("a-b=c"), "a-b=c");
        assert_eq!(quoted("it's"), r"'it'\''s'");
        assert_eq!(quoted(""), "''");
    }
}
