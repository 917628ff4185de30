//! `outlive list --watch`: the table again and again, whenever it is another one. On a terminal it stays where it is; nothing is
//! asked of that but to move the cursor, so that there is nothing to be put right at the end, however that comes.

use std::collections::BTreeSet;
use std::io::{self, Write};

use nix::sys::signal::Signal;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;

use super::row::{Row, say_what_is_waited_for};
use super::table::Look;
use super::{Chosen, write_rows};
use crate::cli::terminal::{self, Signals};
use crate::cli::{exit, print};
use crate::clock;
use crate::live::Live;
use crate::store::Store;

/// How often times are brought up to date on a terminal, where nothing else is to be shown anew.
const MINUTE: Timespec = Timespec {
    tv_sec: 60,
    tv_nsec: 0,
};

/// Show what is chosen until nobody reads it any more.
pub(super) fn watch(store: &Store, chosen: &Chosen, grouped: bool) -> anyhow::Result<u8> {
    let resized = Signals::hear([Signal::SIGWINCH])?;
    let mut live = Live::open(store)?;
    let mut shown = Shown::default();
    // Why jobs cannot be listed now: what is shown is what was so.
    let mut trouble: Option<String> = None;
    loop {
        let size = terminal::size();
        let mut lines = table(&live, chosen, grouped, size)?;
        let unreadable = live.damaged().chain(trouble.as_deref());
        match size {
            Some(size) => {
                fit(&mut lines, unreadable, size);
                shown.show_in_place(&lines)?;
            }
            None => shown.show_below(&lines, unreadable)?,
        }
        loop {
            match wait(&live, &resized)? {
                Woken::Closed => return Ok(0),
                Woken::Resized => shown.forget_place()?,
                Woken::Minute => {}
                Woken::Heard => match live.update() {
                    Ok(changes) => {
                        if changes.is_nothing() && trouble.is_none() {
                            continue;
                        }
                        trouble = None;
                    }
                    Err(error) => trouble = Some(error.to_string()),
                },
            }
            break;
        }
    }
}

/// Why it is to be shown again.
enum Woken {
    /// There is something to see in `live`.
    Heard,
    /// The terminal has another size.
    Resized,
    /// Times are old.
    Minute,
    /// Nobody reads any more.
    Closed,
}

fn wait(live: &Live, resized: &Signals) -> io::Result<Woken> {
    let out = io::stdout();
    let timeout = terminal::size().is_some().then_some(&MINUTE);
    let mut fds = [
        PollFd::new(live, PollFlags::IN),
        PollFd::new(resized, PollFlags::IN),
        PollFd::new(&out, PollFlags::empty()),
    ];
    match poll(&mut fds, timeout) {
        Ok(0) => return Ok(Woken::Minute),
        Ok(_) | Err(Errno::INTR) => {}
        Err(errno) => return Err(errno.into()),
    }
    let [_, resizes, closes] = fds.map(|fd| !fd.revents().is_empty());
    Ok(if closes {
        Woken::Closed
    } else if resizes && resized.next().is_some() {
        Woken::Resized
    } else {
        Woken::Heard
    })
}

/// The table as lines; on a terminal of so many columns and rows, no more jobs than there can be room for.
fn table(
    live: &Live,
    chosen: &Chosen,
    grouped: bool,
    size: Option<(usize, usize)>,
) -> io::Result<Vec<String>> {
    let now_ms = clock::now_ms();
    let look = Look {
        room: size.map(|(columns, _)| room(columns)),
        strict: true,
        coloured: terminal::has_colours(),
    };
    // The last row is the cursor's, and the first has the heads.
    let most = size.map_or(usize::MAX, |(_, rows)| rows.saturating_sub(2));
    let mut meant: Vec<_> = live
        .jobs()
        .rev()
        .filter(|view| chosen.holds(view))
        .take(if grouped { usize::MAX } else { most })
        .collect();
    meant.reverse();
    let mut rows: Vec<Row> = meant.iter().map(|view| Row::new(view, now_ms)).collect();
    say_what_is_waited_for(live.store(), &mut rows);
    let mut text = Vec::new();
    write_rows(&mut text, &rows, look, grouped)?;
    let text = String::from_utf8_lossy(&text);
    Ok(text.lines().map(str::to_owned).collect())
}

/// What is written up to the last column makes some terminals begin a line of their own.
fn room(columns: usize) -> usize {
    columns.saturating_sub(1)
}

/// Add what cannot be read, and leave the first lines out for which there is no room.
fn fit<'a>(
    lines: &mut Vec<String>,
    unreadable: impl Iterator<Item = &'a str>,
    (columns, rows): (usize, usize),
) {
    for why in unreadable {
        let line = format!("outlive: {}", print::safe(why));
        lines.push(print::cut(&line, room(columns)).into_owned());
    }
    let surplus = lines.len().saturating_sub(rows.saturating_sub(1));
    lines.drain(..surplus);
}

/// What was shown last.
#[derive(Default)]
struct Shown {
    lines: Option<Vec<String>>,
    /// How many lines the cursor is below the first one.
    below: usize,
    said: BTreeSet<String>,
}

impl Shown {
    /// Show it over what was shown before.
    fn show_in_place(&mut self, lines: &[String]) -> io::Result<()> {
        if self.lines.as_deref() == Some(lines) {
            return Ok(());
        }
        let mut text = match self.below {
            0 => String::new(),
            below => format!("\x1b[{below}A\r"),
        };
        for line in lines {
            text.push_str(line);
            text.push_str("\x1b[K\n");
        }
        text.push_str("\x1b[J");
        write(&text)?;
        self.lines = Some(lines.to_vec());
        self.below = lines.len();
        Ok(())
    }

    /// The terminal has moved lines about: begin at its top.
    fn forget_place(&mut self) -> io::Result<()> {
        self.lines = None;
        self.below = 0;
        write("\x1b[H\x1b[2J")
    }

    /// Show it after what was shown before, with a blank line between; and say what cannot be read.
    fn show_below<'a>(
        &mut self,
        lines: &[String],
        unreadable: impl Iterator<Item = &'a str>,
    ) -> io::Result<()> {
        let unreadable: BTreeSet<String> = unreadable.map(str::to_owned).collect();
        for new in unreadable.difference(&self.said) {
            exit::say(new);
        }
        self.said = unreadable;
        if self.lines.as_deref() == Some(lines) {
            return Ok(());
        }
        let between = if self.lines.is_some() { "\n" } else { "" };
        write(&format!("{between}{}\n", lines.join("\n")))?;
        self.lines = Some(lines.to_vec());
        Ok(())
    }
}

fn write(text: &str) -> io::Result<()> {
    let mut out = io::stdout().lock();
    out.write_all(text.as_bytes())?;
    out.flush()
}
