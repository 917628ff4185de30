//! The terminal while `top` has it: entered and left in one piece, whatever ends the process. What must never be here: what is
//! shown on it.

use std::fs::File;
use std::io::{self, BufWriter, Write, stdin, stdout};
use std::os::fd::AsFd;
use std::panic;
use std::sync::atomic::{AtomicBool, Ordering};

use ratatui::Terminal;
use ratatui::backend::CrosstermBackend;
use rustix::termios::{OptionalActions, Termios, tcgetattr, tcsetattr};

/// To a screen of its own, without a cursor.
const ENTER: &[u8] = b"\x1b[?1049h\x1b[?25l";
/// And back.
const LEAVE: &[u8] = b"\x1b[0m\x1b[?25h\x1b[?1049l";

/// Whether it has to be left: a panic may have seen to that before what is dropped does.
static ENTERED: AtomicBool = AtomicBool::new(false);

/// What is drawn on. A picture is written at once.
pub(super) type Canvas = Terminal<CrosstermBackend<BufWriter<File>>>;

/// The terminal, which is left when this is dropped.
pub(super) struct Screen {
    pub(super) canvas: Canvas,
    before: Termios,
}

impl Screen {
    /// Enter it.
    pub(super) fn enter() -> io::Result<Screen> {
        let before = tcgetattr(stdin())?;
        let out = File::from(stdout().as_fd().try_clone_to_owned()?);
        let backend = CrosstermBackend::new(BufWriter::with_capacity(1 << 16, out));
        let canvas = Terminal::new(backend)?;
        // From here on, dropping it puts everything right.
        let screen = Screen { canvas, before };
        screen.take()?;
        Ok(screen)
    }

    fn take(&self) -> io::Result<()> {
        let mut raw = self.before.clone();
        raw.make_raw();
        ENTERED.store(true, Ordering::SeqCst);
        tcsetattr(stdin(), OptionalActions::Now, &raw)?;
        write(ENTER)
    }

    /// Let somebody else have it for a while.
    pub(super) fn give_back(&self) {
        leave(&self.before);
    }

    /// Have it again, whatever it is like now.
    pub(super) fn take_again(&mut self) -> io::Result<()> {
        self.before = tcgetattr(stdin())?;
        self.take()?;
        self.canvas.clear()
    }

    /// See that a panic is told on a terminal on which it can be read.
    pub(super) fn leave_on_panic(&self) {
        let before = self.before.clone();
        let tell = panic::take_hook();
        panic::set_hook(Box::new(move |info| {
            leave(&before);
            tell(info);
        }));
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        leave(&self.before);
    }
}

/// Leave it, unless that was done. A terminal that is gone needs nothing.
fn leave(before: &Termios) {
    if !ENTERED.swap(false, Ordering::SeqCst) {
        return;
    }
    let _ = write(LEAVE);
    let _ = tcsetattr(stdin(), OptionalActions::Now, before);
}

fn write(bytes: &[u8]) -> io::Result<()> {
    let mut out = stdout().lock();
    out.write_all(bytes)?;
    out.flush()
}
