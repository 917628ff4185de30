//! The last lines of what a job has printed, as a terminal may be shown them. What moves the cursor or sets colours is left out;
//! whatever else a terminal would obey is escaped.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use rustix::fs::OFlags;

use crate::cli::print;

/// How much of the end is read, in bytes.
const MOST: u64 = 64 << 10;

/// The last `lines` lines of the file `name` of a job's directory. Nothing where there is none.
pub(super) fn tail(dir: &Path, name: &str, lines: usize) -> Vec<String> {
    let bytes = end_of(&dir.join(name)).unwrap_or_default();
    let text = String::from_utf8_lossy(&bytes);
    let mut last: Vec<String> = text.lines().rev().take(lines).map(shown).collect();
    last.reverse();
    last
}

fn end_of(path: &Path) -> io::Result<Vec<u8>> {
    // Whatever stands there: it is not waited for, and a link is not followed.
    let flags = OFlags::NOFOLLOW | OFlags::NONBLOCK;
    let mut file = File::options()
        .read(true)
        .custom_flags(i32::try_from(flags.bits()).unwrap_or(0))
        .open(path)?;
    let about = file.metadata()?;
    if !about.is_file() {
        return Ok(Vec::new());
    }
    let skipped = about.len().saturating_sub(MOST);
    file.seek(SeekFrom::Start(skipped))?;
    let mut bytes = Vec::new();
    file.take(MOST).read_to_end(&mut bytes)?;
    if skipped > 0
        && let Some(end) = bytes.iter().position(|byte| *byte == b'\n')
    {
        // The first line has lost its beginning.
        bytes.drain(..=end);
    }
    Ok(bytes)
}

/// A line as one sees it at last: what was written over it counts.
fn shown(line: &str) -> String {
    let plain = without_sequences(line);
    let last = plain.trim_end_matches('\r').rsplit('\r').next();
    let spaced = last.unwrap_or_default().replace('\t', "    ");
    print::safe(&spaced).into_owned()
}

/// A text without what begins with ESC `[` or ESC `]`, up to where that ends.
fn without_sequences(text: &str) -> String {
    let mut plain = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find("\x1b") {
        plain.push_str(&rest[..at]);
        let after = &rest[at + 1..];
        let end = match after.as_bytes().first() {
            Some(b'[') => after[1..]
                .find(|c: char| ('\u{40}'..='\u{7e}').contains(&c))
                .map(|end| end + 2),
            Some(b']') => after
                .find('\u{7}')
                .map(|end| end + 1)
                .or_else(|| after.find("\x1b\\").map(|end| end + 2)),
            _ => None,
        };
        match end {
            Some(end) => rest = &after[end..],
            None => {
                // It is escaped later.
                plain.push('\x1b');
                rest = after;
            }
        }
    }
    plain.push_str(rest);
    plain
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(text: &[u8], lines: usize) -> Vec<String> {
        let dir = tempfile::tempdir().unwrap();
        std::fs::write(dir.path().join("log"), text).unwrap();
        tail(dir.path(), "log", lines)
    }

    #[test]
    fn the_last_lines_are_shown_as_one_sees_them_at_last() {
        assert_eq!(of(b"one\ntwo\nthree", 2), ["two", "three"]);
        assert_eq!(of(b"", 2), [""; 0]);
        assert_eq!(of(b" 5 %\r 50 %\r100 %\r\n\tx", 9), ["100 %", "    x"]);
        assert_eq!(
            of(
                b"\x1b[1;31mred\x1b[0m \x1b]0;title\x07on\x1b]8;;x\x1b\\link",
                9
            ),
            ["red onlink"]
        );
        assert_eq!(
            of(b"\x1bc\x07\xff\x1b[", 9),
            ["\\u{1b}c\\u{7}\u{fffd}\\u{1b}["]
        );
    }

    #[test]
    fn of_a_long_file_only_the_end_is_read_and_what_is_no_file_is_not() {
        let long = "0123456789\n".repeat(100_000);
        assert_eq!(of(long.as_bytes(), 5), ["0123456789"; 5]);
        let line = "x".repeat(1_000_000);
        assert_eq!(of(line.as_bytes(), 5)[0].len(), 64 << 10);
        let dir = tempfile::tempdir().unwrap();
        std::os::unix::fs::symlink("/dev/zero", dir.path().join("log")).unwrap();
        assert_eq!(tail(dir.path(), "log", 5), [""; 0]);
        assert_eq!(tail(dir.path(), "none", 5), [""; 0]);
    }
}
