//! The picture: what is where on the screen. Pure: it draws what it is told. All that jobs say is made safe on its way.

use ratatui::Frame;
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::{Color, Modifier, Style};
use state_machine::job::State;
use state_machine::protocol::look::View;
use state_machine::slot;

use super::app::{App, Mode, Panel};
use super::words;
use crate::cli::list::table::{Columns, Look, STATE, made_safe};
use crate::cli::print::{cut, safe};

/// What keys do, most important first: what there is no room for is left out.
const HELP: [(&str, &str); 10] = [
    ("q", "quit"),
    ("↑↓", "row"),
    ("p", "pause"),
    ("r", "resume"),
    ("s", "stop"),
    ("R", "restart"),
    ("/", "filter"),
    ("a", "all"),
    ("Tab", "panel"),
    ("e", "errors"),
];

/// How the rows of the screen are shared out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Heights {
    /// Rows of jobs.
    pub(super) jobs: u16,
    /// Rows of the panel; 0 where there is no room for it.
    pub(super) panel: u16,
}

/// The title and the pools, the heads, what is told, and the help.
const FIXED: u16 = 5;

impl Heights {
    /// Of a screen of so many rows.
    pub(super) fn of(rows: u16) -> Heights {
        let rest = rows.saturating_sub(FIXED);
        // With its title it takes two fifths.
        let panel = if rest >= 6 { rest * 2 / 5 - 1 } else { 0 };
        let title = u16::from(panel > 0);
        Heights {
            jobs: rest.saturating_sub(panel + title),
            panel,
        }
    }
}

/// How to put into words what depends on more than what is shown.
pub(super) struct Words<'a> {
    /// How a job is.
    pub(super) condition: &'a dyn Fn(&View) -> String,
    /// When something was.
    pub(super) instant: &'a dyn Fn(u64) -> String,
    /// Whether there are colours.
    pub(super) coloured: bool,
}

/// Draw everything.
pub(super) fn draw(frame: &mut Frame<'_>, app: &App, words: &Words<'_>) {
    let area = frame.area();
    let heights = Heights::of(area.height);
    let mut pen = Pen {
        area,
        row: 0,
        buffer: frame.buffer_mut(),
    };
    let strong = Style::new().add_modifier(Modifier::BOLD);
    let quiet = Style::new().add_modifier(Modifier::DIM);
    pen.line(&title(app), strong);
    pen.line(&words::pools(&app.pools), quiet);
    jobs(&mut pen, app, words, heights.jobs);
    if heights.panel > 0 {
        match app.panel {
            Panel::Output => output(&mut pen, app, heights.panel),
            Panel::Slots => slots(&mut pen, app, words, heights.panel),
        }
    }
    told(&mut pen, app);
    help(&mut pen, app);
}

/// Where the next line goes.
struct Pen<'a> {
    area: Rect,
    row: u16,
    buffer: &'a mut Buffer,
}

impl Pen<'_> {
    /// A line that is not safe yet.
    fn line(&mut self, text: &str, style: Style) {
        self.safe_line(&safe(text), style);
    }

    fn safe_line(&mut self, text: &str, style: Style) {
        self.put(0, text, style);
        self.next();
    }

    /// Put something into this line.
    fn put(&mut self, from: usize, text: &str, style: Style) {
        let width = usize::from(self.area.width);
        if self.row >= self.area.height || from >= width {
            return;
        }
        let text = cut(text, width - from);
        let from = u16::try_from(from).unwrap_or(u16::MAX);
        let (x, y) = (self.area.x + from, self.area.y + self.row);
        self.buffer.set_string(x, y, text, style);
    }

    /// The whole of this line is like this.
    fn tint(&mut self, style: Style) {
        if self.row < self.area.height {
            let y = self.area.y + self.row;
            let line = Rect::new(self.area.x, y, self.area.width, 1);
            self.buffer.set_style(line, style);
        }
    }

    fn next(&mut self) {
        self.row += 1;
    }

    /// Go to the row that is so many above the end.
    fn go_to_last(&mut self, rows: u16) {
        self.row = self.row.max(self.area.height.saturating_sub(rows));
    }
}

fn title(app: &App) -> String {
    let mut title = format!("outlive top: {}", app.whose());
    let counts = State::ALL.iter().zip(app.counts);
    let mut counts: Vec<String> = counts
        .filter(|(_, count)| *count > 0)
        .map(|(state, count)| format!("{count} {state}"))
        .collect();
    if counts.is_empty() {
        counts.push("no job".into());
    }
    title.push_str(&format!("; {}", counts.join(", ")));
    if !app.filter.is_empty() {
        title.push_str(&format!("; {} with '{}'", app.jobs.len(), app.filter));
    }
    title
}

fn jobs(pen: &mut Pen<'_>, app: &App, words: &Words<'_>, rows: u16) {
    let seen = app.seen();
    let cells: Vec<_> = seen
        .iter()
        .map(|view| words::cells(view, words.condition, words.instant))
        .collect();
    let safe_cells: Vec<_> = cells.iter().map(made_safe).collect();
    let look = Look {
        room: Some(usize::from(pen.area.width)),
        strict: true,
        coloured: words.coloured,
    };
    let columns = Columns::of(&safe_cells, look);
    let last = pen.row + 1 + rows;
    for cell in columns.heads() {
        pen.put(cell.from, &cell.text, Style::new());
    }
    pen.tint(Style::new().add_modifier(Modifier::UNDERLINED));
    pen.next();
    for (number, (view, row)) in seen.iter().zip(&safe_cells).enumerate() {
        for cell in columns.cells(row) {
            let style = match colour(view.state).filter(|_| words.coloured) {
                Some(colour) if cell.column == STATE => Style::new().fg(colour),
                _ => Style::new(),
            };
            pen.put(cell.from, &cell.text, style);
        }
        if app.top + number == app.at {
            pen.tint(Style::new().add_modifier(Modifier::REVERSED));
        }
        pen.next();
    }
    pen.row = last;
}

/// The same as in a list.
fn colour(state: State) -> Option<Color> {
    match state {
        State::Running => Some(Color::Green),
        State::Failed => Some(Color::Red),
        State::Interrupted => Some(Color::Magenta),
        State::Paused | State::Cancelled => Some(Color::Yellow),
        State::Queued => Some(Color::Cyan),
        State::Done => None,
    }
}

fn output(pen: &mut Pen<'_>, app: &App, rows: u16) {
    let title = match app.job() {
        Some(view) => words::about(view, app.errors),
        None => "no job is chosen".to_owned(),
    };
    panel_title(pen, &title);
    let last = pen.row + rows;
    let surplus = app.output.len().saturating_sub(usize::from(rows));
    for line in &app.output[surplus..] {
        // It is safe already.
        pen.safe_line(line, Style::new());
    }
    pen.row = last;
}

fn slots(pen: &mut Pen<'_>, app: &App, words: &Words<'_>, rows: u16) {
    panel_title(pen, "slots");
    let last = pen.row + rows;
    let lines = app.slots.iter().flat_map(|pool| {
        let slots = pool.slots.iter();
        slots.map(|slot| (words::slot(&pool.pool, slot), slot.state))
    });
    let inside = app
        .jobs
        .iter()
        .filter_map(|view| words::inside(view, &app.slots));
    let lines = lines.chain(inside.map(|line| (line, slot::State::Claimed)));
    for (line, state) in lines.take(usize::from(rows)) {
        let broken = state == slot::State::Broken && words.coloured;
        let style = if broken {
            Style::new().fg(Color::Red)
        } else {
            Style::new()
        };
        pen.line(&line, style);
    }
    pen.row = last;
}

fn panel_title(pen: &mut Pen<'_>, title: &str) {
    pen.put(0, &format!("── {} ", safe(title)), Style::new());
    pen.tint(Style::new().add_modifier(Modifier::UNDERLINED));
    pen.next();
}

/// What is asked, or told.
fn told(pen: &mut Pen<'_>, app: &App) {
    pen.go_to_last(2);
    let strong = Style::new().add_modifier(Modifier::BOLD);
    match (&app.mode, &app.said) {
        (Mode::Confirm(ask, id), _) => {
            pen.line(
                &format!("{} {id}? y: yes, any other key: no", ask.verb()),
                strong,
            );
        }
        (Mode::Filter(_), _) => {
            let text = format!("filter: {}▏", safe(&app.filter));
            pen.safe_line(&text, strong);
        }
        (Mode::Browse, Some(said)) => pen.line(said, strong),
        (Mode::Browse, None) => match app.damaged.as_slice() {
            [] => pen.next(),
            [one] => pen.line(one, Style::new()),
            [one, others @ ..] => {
                pen.line(&format!("{one} (and {} more)", others.len()), Style::new());
            }
        },
    }
}

fn help(pen: &mut Pen<'_>, app: &App) {
    pen.go_to_last(1);
    if matches!(app.mode, Mode::Filter(_)) {
        return pen.line("Enter: keep   Esc: as it was", Style::new());
    }
    let mut at = 0;
    for (key, does) in HELP {
        let does_at = at + key.chars().count() + 1;
        let end = does_at + does.chars().count();
        if end > usize::from(pen.area.width) {
            break;
        }
        pen.put(at, key, Style::new().add_modifier(Modifier::BOLD));
        pen.put(does_at, does, Style::new());
        at = end + 2;
    }
    pen.next();
}
