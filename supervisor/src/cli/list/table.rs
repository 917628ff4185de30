//! A table of jobs as text: which columns there are, how wide each is, and what is cut where the terminal is narrow.

use std::borrow::Cow;
use std::io::{self, Write};

use crate::cli::print::{cut, safe, width};

/// How many columns there can be.
pub(super) const COLUMNS: usize = 7;
/// The column that says how a job is.
pub(super) const STATE: usize = 3;
/// The cells of a job, in the order of [`HEADS`].
pub(super) type Cells = [String; COLUMNS];

const HEADS: [&str; COLUMNS] = ["ID", "NAME", "TASK", "STATE", "STARTED", "SLOT", "COMMAND"];
/// Those that are there also where nobody has anything in them.
const ALWAYS: [bool; COLUMNS] = [true, false, false, true, false, false, true];
/// What is made narrower where there is too little room, what first comes first, and how narrow at most. The id comes last: it
/// is what one types.
const FLEXIBLE: [(usize, usize); 4] = [(6, 12), (3, 16), (2, 8), (1, 8)];
/// The column of the id.
const ID: usize = 0;
/// How much of an id is shown in any case: when the job was made.
const LEAST_ID: usize = 14;
/// Between two columns.
const GAP: usize = 2;

/// What a table is to look like.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Look {
    /// How many columns of a terminal there are; nothing is cut where there is no terminal.
    pub(super) room: Option<usize>,
    /// Whether no line may be longer than that, whatever is lost of it.
    pub(super) strict: bool,
    /// Whether how a job is has a colour.
    pub(super) coloured: bool,
}

/// Write a table, heads first. `colour_of` is what a terminal is told before it is shown how the job in that row is.
pub(super) fn write<'a>(
    out: &mut impl Write,
    rows: &[&'a Cells],
    look: Look,
    colour_of: impl Fn(usize) -> Option<&'static str>,
) -> io::Result<()> {
    let safe_rows: Vec<[Cow<'a, str>; COLUMNS]> = rows
        .iter()
        .map(|row| row.each_ref().map(|cell| safe(cell)))
        .collect();
    let heads = HEADS.map(Cow::Borrowed);
    let widths = widths(&heads, &safe_rows, look.room);
    write_row(out, &heads, &widths, look, None)?;
    for (number, row) in safe_rows.iter().enumerate() {
        let colour = look.coloured.then(|| colour_of(number)).flatten();
        write_row(out, row, &widths, look, colour)?;
    }
    Ok(())
}

/// How wide each column is; nothing for one that is left out.
fn widths(
    heads: &[Cow<'_, str>; COLUMNS],
    rows: &[[Cow<'_, str>; COLUMNS]],
    room: Option<usize>,
) -> [Option<usize>; COLUMNS] {
    let mut widths: [Option<usize>; COLUMNS] = std::array::from_fn(|column| {
        let widest = rows.iter().map(|row| width(&row[column])).max();
        let widest = widest.filter(|widest| *widest > 0 || ALWAYS[column]);
        let widest = widest.or(ALWAYS[column].then_some(0));
        widest.map(|widest| widest.max(heads[column].len()))
    });
    let Some(room) = room else {
        return widths;
    };
    let there: Vec<usize> = widths.iter().flatten().copied().collect();
    let taken = there.iter().sum::<usize>() + GAP * there.len().saturating_sub(1);
    let mut missing = taken.saturating_sub(room);
    for (column, least) in FLEXIBLE {
        if let Some(width) = &mut widths[column] {
            let given = missing.min(width.saturating_sub(least));
            *width -= given;
            missing -= given;
        }
    }
    if missing > 0
        && let Some(width) = &mut widths[ID]
    {
        *width -= missing.min(width.saturating_sub(telling(rows)));
    }
    widths
}

/// How much of the ids tells each from the others: the beginning of an id is as good as the whole of it.
fn telling(rows: &[[Cow<'_, str>; COLUMNS]]) -> usize {
    let mut ids: Vec<&str> = rows.iter().map(|row| &*row[ID]).collect();
    ids.sort_unstable();
    let common = |pair: &[&str]| {
        let both = pair[0].bytes().zip(pair[1].bytes());
        both.take_while(|(a, b)| a == b).count() + 1
    };
    let most = ids.windows(2).map(common).max();
    most.unwrap_or(0).max(LEAST_ID)
}

/// As much of a cell as there is room for. An id is only shortened, so that it can be typed as it stands.
fn fit(cell: &str, column: usize, room: usize) -> Cow<'_, str> {
    match cell.get(..room) {
        Some(beginning) if column == ID => Cow::Borrowed(beginning),
        _ => cut(cell, room),
    }
}

fn write_row(
    out: &mut impl Write,
    row: &[Cow<'_, str>; COLUMNS],
    widths: &[Option<usize>; COLUMNS],
    look: Look,
    colour: Option<&str>,
) -> io::Result<()> {
    let limit = look.room.filter(|_| look.strict).unwrap_or(usize::MAX);
    let mut at = 0;
    for (column, cell) in row.iter().enumerate() {
        let Some(wide) = widths[column] else {
            continue;
        };
        let is_last = column + 1 == COLUMNS;
        let may_take = wide.min(limit.saturating_sub(at));
        let text = if look.room.is_some() {
            fit(cell, column, may_take)
        } else {
            Cow::Borrowed(&**cell)
        };
        match colour.filter(|_| column == STATE) {
            Some(colour) => write!(out, "\x1b[{colour}m{text}\x1b[0m")?,
            None => out.write_all(text.as_bytes())?,
        }
        if !is_last {
            let next = at.saturating_add(wide + GAP).min(limit);
            let blanks = next.saturating_sub(at + width(&text));
            write!(out, "{:blanks$}", "")?;
            at = next;
        }
    }
    out.write_all(b"\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cells(cells: [&str; COLUMNS]) -> Cells {
        cells.map(str::to_owned)
    }

    fn shown(rows: &[Cells], look: Look) -> Vec<String> {
        let mut out = Vec::new();
        let rows: Vec<&Cells> = rows.iter().collect();
        write(&mut out, &rows, look, |_| Some("31")).unwrap();
        let text = String::from_utf8(out).unwrap();
        text.lines().map(str::to_owned).collect()
    }

    fn in_room(room: usize) -> Look {
        Look {
            room: Some(room),
            ..Look::default()
        }
    }

    #[test]
    fn columns_in_which_nobody_has_anything_are_left_out() {
        let rows = [
            cells(["1-a", "", "", "queued", "", "", "true"]),
            cells(["1-b", "", "", "exited 3 (2m 0s)", "5m 0s", "", "false"]),
        ];
        assert_eq!(
            shown(&rows, Look::default()),
            [
                "ID   STATE             STARTED  COMMAND",
                "1-a  queued                     true",
                "1-b  exited 3 (2m 0s)  5m 0s    false",
            ]
        );
        assert_eq!(shown(&[], Look::default()), ["ID  STATE  COMMAND"]);
    }

    #[test]
    fn the_command_gives_way_first_and_the_id_last() {
        let long = "echo one two three four five six seven";
        let rows = [
            "1795965109941-web",
            "1795965109941-website",
            "1795965109955-w",
        ]
        .map(|id| {
            let waits = "queued (waits for another)";
            cells([id, "web", "", waits, "1.0s", "p/1", long])
        });
        let whole = shown(&rows, in_room(200));
        assert!(whole[1].ends_with(long), "{whole:?}");
        for room in [100, 90, 80, 75] {
            let lines = shown(&rows, in_room(room));
            assert!(lines.iter().all(|line| width(line) <= room), "{lines:?}");
            assert!(lines[1].ends_with('…'), "{lines:?}");
            assert!(
                lines[2].starts_with("1795965109941-website  web"),
                "{lines:?}"
            );
        }
        // What is left of an id still tells it from the others, and is its beginning.
        let lines = shown(&rows, in_room(10));
        assert!(lines[1].starts_with("1795965109941-web   web"), "{lines:?}");
        assert!(lines[2].starts_with("1795965109941-webs  web"), "{lines:?}");
        assert!(lines[3].starts_with("1795965109955-w     web"), "{lines:?}");
        for room in 0..80 {
            let strict = Look {
                strict: true,
                ..in_room(room)
            };
            let lines = shown(&rows, strict);
            assert!(
                lines.iter().all(|line| width(line) <= room),
                "{room} {lines:?}"
            );
        }
    }

    #[test]
    fn wide_characters_take_two_columns_and_what_jobs_say_is_escaped() {
        let rows = [
            cells(["1-a", "", "構築", "running", "", "", "a\x1b[2Jb"]),
            cells(["1-b", "", "b", "running", "", "", "日本語です日本語です"]),
        ];
        assert_eq!(
            shown(&rows, Look::default()),
            [
                "ID   TASK  STATE    COMMAND",
                "1-a  構築  running  a\\u{1b}[2Jb",
                "1-b  b     running  日本語です日本語です",
            ]
        );
        assert_eq!(
            shown(&rows, in_room(34))[2],
            "1-b  b     running  日本語です日…"
        );
    }

    #[test]
    fn only_how_a_job_is_has_a_colour() {
        let rows = [cells(["1-a", "", "", "failed", "", "", "true"])];
        let look = Look {
            coloured: true,
            ..Look::default()
        };
        assert_eq!(shown(&rows, look)[1], "1-a  \x1b[31mfailed\x1b[0m  true");
    }
}
