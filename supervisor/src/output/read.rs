//! Printing what is kept of a stream: all of it, or its last lines. Bytes go out as they came in.
//!
//! Memory does not depend on the output: lines are counted block by block from the end and never
//! held.

use std::io::{self, Write};
use std::os::fd::AsFd;
use std::path::Path;

use super::kept::{Kept, open_all};
use super::open::open_dir;

/// Bytes read at a time.
pub(super) const BLOCK: usize = 64 << 10;

/// Where to begin.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Start {
    /// With the oldest byte that is kept.
    Top,
    /// With the last lines. A last line without its newline counts as one.
    LastLines(u64),
}

/// Prints what is kept of the stream `name` in the directory `dir`, oldest first, and ends at what
/// was there when it began. A stream that has no file yet prints nothing. A reader of `out` that
/// has gone away is not an error.
///
/// # Errors
/// The directory or a file cannot be read, or `out` cannot be written.
pub(crate) fn print(dir: &Path, name: &str, start: Start, out: &mut dyn Write) -> io::Result<()> {
    let dir = open_dir(dir)?;
    let kept = open_all(dir.as_fd(), name)?;
    quiet_on_closed(print_from(&kept, start, out))
}

/// A closed pipe ends quietly.
pub(super) fn quiet_on_closed(outcome: io::Result<()>) -> io::Result<()> {
    match outcome {
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        outcome => outcome,
    }
}

fn print_from(kept: &[Kept], start: Start, out: &mut dyn Write) -> io::Result<()> {
    let from = position(kept, start)?;
    let mut offset = from.offset;
    for file in &kept[from.file..] {
        copy(file, offset, file.size, out)?;
        offset = 0;
    }
    out.flush()
}

/// Copies the bytes from `offset` up to `end`, or to where the file ends by now: the offset that
/// was reached.
pub(super) fn copy(file: &Kept, offset: u64, end: u64, out: &mut dyn Write) -> io::Result<u64> {
    let mut buffer = [0; BLOCK];
    let mut at = offset;
    while at < end {
        let want = (end - at).min(BLOCK as u64) as usize;
        let bytes = file.read_at(&mut buffer[..want], at)?;
        if bytes.is_empty() {
            break;
        }
        out.write_all(bytes)?;
        at += bytes.len() as u64;
    }
    Ok(at)
}

/// A place in a row of files.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Position {
    /// Index of the file; the number of files when it is the end of everything.
    pub(super) file: usize,
    /// Bytes into it.
    pub(super) offset: u64,
}

/// Where `start` is in `kept`.
pub(super) fn position(kept: &[Kept], start: Start) -> io::Result<Position> {
    match start {
        Start::Top => Ok(Position { file: 0, offset: 0 }),
        Start::LastLines(lines) => last_lines(kept, lines),
    }
}

/// Goes back over the newlines: the one that ends the last line does not begin another.
fn last_lines(kept: &[Kept], lines: u64) -> io::Result<Position> {
    let end = match kept.last() {
        Some(newest) => Position {
            file: kept.len() - 1,
            offset: newest.size,
        },
        None => Position { file: 0, offset: 0 },
    };
    if lines == 0 {
        return Ok(end);
    }
    let mut to_pass = lines;
    let mut at_the_very_end = true;
    let mut buffer = [0; BLOCK];
    for (index, file) in kept.iter().enumerate().rev() {
        let mut end = file.size;
        while end > 0 {
            let begin = (end - 1) / BLOCK as u64 * BLOCK as u64;
            let block = file.read_at(&mut buffer[..(end - begin) as usize], begin)?;
            for (i, byte) in block.iter().enumerate().rev() {
                let ends_the_last_line = std::mem::take(&mut at_the_very_end);
                if *byte != b'\n' || ends_the_last_line {
                    continue;
                }
                to_pass -= 1;
                if to_pass == 0 {
                    return Ok(Position {
                        file: index,
                        offset: begin + i as u64 + 1,
                    });
                }
            }
            end = begin;
        }
    }
    Ok(Position { file: 0, offset: 0 })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    /// The same, by holding everything.
    fn naive(all: &[u8], lines: usize) -> Vec<u8> {
        let lines_there: Vec<&[u8]> = all.split_inclusive(|byte| *byte == b'\n').collect();
        lines_there[lines_there.len().saturating_sub(lines)..].concat()
    }

    fn printed(dir: &Path, start: Start) -> Vec<u8> {
        let mut out = Vec::new();
        print(dir, "log", start, &mut out).unwrap();
        out
    }

    /// Writes `all`, cut at the given places, the oldest part into the highest number.
    fn keep(dir: &Path, all: &[u8], cuts: &[usize]) {
        let mut parts = Vec::new();
        let mut from = 0;
        for &cut in cuts {
            parts.push(&all[from..cut]);
            from = cut;
        }
        parts.push(&all[from..]);
        for (k, part) in parts.iter().rev().enumerate() {
            let name = if k == 0 {
                "log".to_owned()
            } else {
                super::super::older("log", k as u32)
            };
            fs::write(dir.join(name), part).unwrap();
        }
    }

    #[test]
    fn last_lines_agree_with_a_naive_twin() {
        let long = [
            b"x".repeat(3 * BLOCK + 5),
            b"\nshort\n".to_vec(),
            b"y".repeat(BLOCK),
        ]
        .concat();
        let mut at_blocks = b"a".repeat(BLOCK - 1);
        at_blocks.extend(b"\n");
        at_blocks.extend(b"b".repeat(BLOCK - 1));
        at_blocks.extend(b"\n");
        let binary: Vec<u8> = (0..200_000u32)
            .map(|i| (i.wrapping_mul(2654435761) >> 13) as u8)
            .collect();
        let samples: Vec<Vec<u8>> = vec![
            b"".to_vec(),
            b"\n".to_vec(),
            b"\n\n\n".to_vec(),
            b"one".to_vec(),
            b"one\n".to_vec(),
            b"one\ntwo\nthree".to_vec(),
            b"one\n\ntwo\xff\n\nthree\n\n".to_vec(),
            long,
            at_blocks,
            binary,
        ];
        for all in &samples {
            let cuts: [&[usize]; 5] = [
                &[],
                &[all.len() / 2],
                &[0, all.len()],
                &[all.len() / 3, all.len() / 2],
                &[all.len()],
            ];
            for cuts in cuts {
                let dir = tempfile::tempdir().unwrap();
                keep(dir.path(), all, cuts);
                assert_eq!(printed(dir.path(), Start::Top), *all);
                for lines in [0, 1, 2, 3, 4, 5, 700, 100_000] {
                    let got = printed(dir.path(), Start::LastLines(lines));
                    let length = all.len();
                    assert!(
                        got == naive(all, lines as usize),
                        "{lines} of {length} at {cuts:?}"
                    );
                }
            }
        }
    }

    #[test]
    fn no_output_yet_prints_nothing_and_no_directory_is_an_error() {
        let dir = tempfile::tempdir().unwrap();
        assert_eq!(printed(dir.path(), Start::Top), b"");
        assert_eq!(printed(dir.path(), Start::LastLines(5)), b"");
        let gone = print(&dir.path().join("gone"), "log", Start::Top, &mut io::sink());
        assert_eq!(gone.unwrap_err().kind(), io::ErrorKind::NotFound);
    }

    #[test]
    fn a_reader_that_has_gone_away_is_no_error() {
        let dir = tempfile::tempdir().unwrap();
        fs::write(dir.path().join("log"), b"x".repeat(1 << 20)).unwrap();
        let (reader, mut writer) = io::pipe().unwrap();
        drop(reader);
        print(dir.path(), "log", Start::Top, &mut writer).unwrap();
    }
}
