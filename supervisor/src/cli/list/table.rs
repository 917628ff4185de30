//! A table of jobs as text: which columns there are, how wide each is, and what is cut where the terminal is narrow.

use std::borrow::Cow;
use std::io::{self, Write};

use crate::cli::print::{cut, safe, width};

/// How many columns there can be.
pub(in crate::cli) const COLUMNS: usize = 7;
/// The column that says how a job is.
pub(in crate::cli) const STATE: usize = 3;
/// The cells of a job, in the order of [`HEADS`].
pub(in crate::cli) type Cells = [String; COLUMNS];

static HEADS: SafeCells<'static> = [
    Cow::Borrowed("ID"),
    Cow::Borrowed("NAME"),
    Cow::Borrowed("TASK"),
    Cow::Borrowed("STATE"),
    Cow::Borrowed("STARTED"),
    Cow::Borrowed("SLOT"),
    Cow::Borrowed("COMMAND"),
];
/// Those that are there also where nobody has anything in them.
const ALWAYS: [bool; COLUMNS] = [true, false, false, true, false, false, true];
/// What is made narrower where there is too little room, what first comes first, and how narrow at most. The id comes last: it
/// is what one types.
const FLEXIBLE: [(usize, usize); 6] = [(1, 32), (2, 32), (6, 12), (3, 16), (2, 8), (1, 8)];
/// What is left out where that is not enough, what first comes first.
const DISPENSABLE: [usize; 4] = [5, 4, 1, 2];
/// The column of the id.
const ID: usize = 0;
/// How much of an id is shown in any case: when the job was made.
const LEAST_ID: usize = 14;
/// Between two columns.
const GAP: usize = 2;

/// What a table is to look like.
#[derive(Clone, Copy, Debug, Default)]
pub(in crate::cli) struct Look {
    /// How many columns of a terminal there are; nothing is cut where there is no terminal.
    pub(in crate::cli) room: Option<usize>,
    /// Whether no line may be longer than that, whatever is lost of it.
    pub(in crate::cli) strict: bool,
    /// Whether how a job is has a colour.
    pub(in crate::cli) coloured: bool,
}

/// Write a table, heads first. `colour_of` is what a terminal is told before it is shown how the job in that row is.
pub(super) fn write(
    out: &mut impl Write,
    rows: &[&Cells],
    look: Look,
    colour_of: impl Fn(usize) -> Option<&'static str>,
) -> io::Result<()> {
    let safe_rows: Vec<SafeCells<'_>> = rows.iter().map(|row| made_safe(row)).collect();
    let columns = Columns::of(&safe_rows, look);
    write_row(out, columns.heads(), None)?;
    for (number, row) in safe_rows.iter().enumerate() {
        let colour = look.coloured.then(|| colour_of(number)).flatten();
        write_row(out, columns.cells(row), colour)?;
    }
    Ok(())
}

fn write_row<'a>(
    out: &mut impl Write,
    cells: impl Iterator<Item = Cell<'a>>,
    colour: Option<&str>,
) -> io::Result<()> {
    let mut at = 0;
    for Cell { column, from, text } in cells {
        let blanks = from.saturating_sub(at);
        write!(out, "{:blanks$}", "")?;
        match colour.filter(|_| column == STATE) {
            Some(colour) => write!(out, "\x1b[{colour}m{text}\x1b[0m")?,
            None => out.write_all(text.as_bytes())?,
        }
        at = from + width(&text);
    }
    out.write_all(b"\n")
}

/// The cells of a job as a terminal may be shown them.
pub(in crate::cli) type SafeCells<'a> = [Cow<'a, str>; COLUMNS];

/// These cells as a terminal may be shown them.
pub(in crate::cli) fn made_safe(cells: &Cells) -> SafeCells<'_> {
    cells.each_ref().map(|cell| safe(cell))
}

/// A cell that has its place.
pub(in crate::cli) struct Cell<'a> {
    /// The column, as a number.
    pub(in crate::cli) column: usize,
    /// Where it begins, in columns of a terminal.
    pub(in crate::cli) from: usize,
    /// What is shown of it.
    pub(in crate::cli) text: Cow<'a, str>,
}

/// How wide each column is; nothing for one that is left out.
pub(in crate::cli) struct Columns {
    widths: [Option<usize>; COLUMNS],
    look: Look,
}

impl Columns {
    /// For these rows.
    pub(in crate::cli) fn of(rows: &[SafeCells<'_>], look: Look) -> Columns {
        let whole: [Option<usize>; COLUMNS] = std::array::from_fn(|column| {
            let widest = rows.iter().map(|row| width(&row[column])).max();
            let widest = widest.filter(|widest| *widest > 0 || ALWAYS[column]);
            let widest = widest.or(ALWAYS[column].then_some(0));
            widest.map(|widest| widest.max(HEADS[column].len()))
        });
        let widths = match look.room {
            Some(room) => fitted(whole, rows, room),
            None => whole,
        };
        Columns { widths, look }
    }

    /// The heads of the columns that there are.
    pub(in crate::cli) fn heads(&self) -> impl Iterator<Item = Cell<'static>> {
        self.cells(&HEADS)
    }

    /// Where everything of a row is.
    pub(in crate::cli) fn cells<'a>(
        &self,
        row: &'a SafeCells<'a>,
    ) -> impl Iterator<Item = Cell<'a>> {
        let look = self.look;
        let limit = look.room.filter(|_| look.strict).unwrap_or(usize::MAX);
        let mut next = 0_usize;
        let there = self.widths.into_iter().enumerate();
        there.filter_map(move |(column, wide)| {
            let wide = wide?;
            let from = next;
            next = from.saturating_add(wide + GAP).min(limit);
            let text = match look.room {
                Some(_) => fit(&row[column], column, wide.min(limit - from)),
                None => Cow::Borrowed(&*row[column]),
            };
            Some(Cell { column, from, text })
        })
    }
}

/// These widths as there is room for them: first everything is narrower, then columns are left out.
fn fitted(
    mut whole: [Option<usize>; COLUMNS],
    rows: &[SafeCells<'_>],
    room: usize,
) -> [Option<usize>; COLUMNS] {
    for column in DISPENSABLE {
        let (widths, missing) = made_narrower(whole, rows, room);
        if missing == 0 {
            return widths;
        }
        whole[column] = None;
    }
    made_narrower(whole, rows, room).0
}

/// These widths as narrow as they have to be, and how much they are still too wide.
fn made_narrower(
    mut widths: [Option<usize>; COLUMNS],
    rows: &[SafeCells<'_>],
    room: usize,
) -> ([Option<usize>; COLUMNS], usize) {
    let there: Vec<usize> = widths.iter().flatten().copied().collect();
    let taken = there.iter().sum::<usize>() + GAP * there.len().saturating_sub(1);
    let mut missing = taken.saturating_sub(room);
    let of_id = if missing > 0 { telling(rows) } else { 0 };
    for (column, least) in FLEXIBLE.into_iter().chain([(ID, of_id)]) {
        if let Some(width) = &mut widths[column] {
            let given = missing.min(width.saturating_sub(least));
            *width -= given;
            missing -= given;
        }
    }
    (widths, missing)
}

/// How much of the ids tells each from the others: the beginning of an id is as good as the whole of it.
fn telling(rows: &[SafeCells<'_>]) -> usize {
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
        // What is left of an id still tells it from the others, and is its beginning; the slot went before it.
        let lines = shown(&rows, in_room(66));
        assert!(!lines[0].contains("SLOT"), "{lines:?}");
        assert!(lines[1].starts_with("1795965109941-web    "), "{lines:?}");
        assert!(lines[2].starts_with("1795965109941-websi  "), "{lines:?}");
        assert!(lines[3].starts_with("1795965109955-w      "), "{lines:?}");
        // Then columns go, and at last there are three.
        for room in 50..75 {
            let lines = shown(&rows, in_room(room));
            assert!(lines.iter().all(|line| width(line) <= room), "{lines:?}");
        }
        let lines = shown(&rows, in_room(10));
        assert_eq!(lines[0], "ID                  STATE             COMMAND");
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
