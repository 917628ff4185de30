//! How far a transfer is, for people: a bar where there is a terminal, and a line now and then elsewhere.

use std::io::IsTerminal;
use std::time::{Duration, Instant};

use indicatif::{BinaryBytes, ProgressBar, ProgressStyle};
use state_machine::job::State;
use state_machine::protocol::look::View;
use state_machine::record::{Account, Progress};

use super::{exit, print};

/// How often a line is printed where there is no terminal.
const BETWEEN: Duration = Duration::from_secs(5);

/// How far it is, in one line; nothing before anything is known.
pub(super) fn line(progress: &Progress) -> Option<String> {
    let done = BinaryBytes(progress.done_bytes);
    let files = match progress.files_total {
        Some(total) if total != 1 => format!(", {} of {total} files", progress.files_done),
        _ => String::new(),
    };
    match progress.total_bytes {
        Some(total) => {
            let percent = percent(progress.done_bytes, total);
            Some(format!(
                "{done} of {} ({percent} %){files}",
                BinaryBytes(total)
            ))
        }
        None if progress.done_bytes == 0 && progress.files_total.is_none() => None,
        None => Some(format!("{done}{files}")),
    }
}

/// What it has cost.
pub(super) fn account(account: &Account) -> String {
    let Account {
        fetched_bytes,
        reused_bytes,
        discarded_bytes,
        retries,
    } = *account;
    format!(
        "{fetched_bytes} bytes fetched, {reused_bytes} reused, {discarded_bytes} discarded, {retries} requests made again"
    )
}

fn percent(done: u64, total: u64) -> u64 {
    if total == 0 {
        return 100;
    }
    u64::try_from(u128::from(done) * 100 / u128::from(total)).unwrap_or(100)
}

/// Shows how far a transfer is while it is waited for.
pub(super) struct Shown {
    bar: Option<ProgressBar>,
    printed: Instant,
    last: Option<String>,
}

impl Shown {
    /// On standard error: a bar if that is a terminal.
    pub(super) fn new() -> Shown {
        let bar = std::io::stderr().is_terminal().then(|| {
            let bar = ProgressBar::no_length();
            bar.set_style(style(false));
            bar
        });
        Shown {
            bar,
            printed: Instant::now(),
            last: None,
        }
    }

    /// The job is like this now.
    pub(super) fn show(&mut self, view: &View) {
        let status = &view.status;
        let doing = status.status_line.clone().unwrap_or_default();
        let Some(bar) = &self.bar else {
            return self.show_line(view);
        };
        if let Some(total) = status.progress.total_bytes
            && bar.length() != Some(total)
        {
            bar.set_length(total);
            bar.set_style(style(true));
        }
        bar.set_position(status.progress.done_bytes);
        let files = match status.progress.files_total {
            Some(total) if total > 1 => format!("{}/{total} files ", status.progress.files_done),
            _ => String::new(),
        };
        let waits = view.state == State::Running && status.next_attempt_at_ms.is_some();
        let said = match &status.message {
            Some(message) if waits => format!("waiting: {message}"),
            _ => doing,
        };
        bar.set_message(format!("{files}{}", print::safe(&said)));
    }

    fn show_line(&mut self, view: &View) {
        if self.printed.elapsed() < BETWEEN || view.state.is_terminal() {
            return;
        }
        let now = line(&view.status.progress);
        if now.is_some() && now != self.last {
            self.printed = Instant::now();
            exit::say(now.as_deref().unwrap_or_default());
            self.last = now;
        }
    }

    /// It is over: leave nothing that moves.
    pub(super) fn finish(&self, view: &View) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
        if let Some(line) = line(&view.status.progress) {
            exit::say(&format!("{}: {line}", view.state));
        }
    }
}

fn style(has_length: bool) -> ProgressStyle {
    let template = if has_length {
        "{bar:30} {binary_bytes}/{binary_total_bytes} {binary_bytes_per_sec} {eta} {wide_msg}"
    } else {
        "{spinner} {binary_bytes} {binary_bytes_per_sec} {wide_msg}"
    };
    // The templates are ours, and a test makes both.
    ProgressStyle::with_template(template).unwrap_or_else(|_| ProgressStyle::default_bar())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_templates_can_be_used() {
        for has_length in [false, true] {
            let _ = style(has_length);
        }
        assert!(ProgressStyle::with_template("{bar:30} {binary_bytes}/{binary_total_bytes} {binary_bytes_per_sec} {eta} {wide_msg}").is_ok());
    }

    #[test]
    fn a_line_says_what_is_known() {
        let progress = |done_bytes, total_bytes, files_total| Progress {
            done_bytes,
            total_bytes,
            files_done: 1,
            files_total,
        };
        assert_eq!(line(&progress(0, None, None)), None);
        assert_eq!(
            line(&progress(512, Some(1024), Some(1))).unwrap(),
            "512 B of 1.00 KiB (50 %)"
        );
        assert_eq!(
            line(&progress(0, Some(0), Some(1))).unwrap(),
            "0 B of 0 B (100 %)"
        );
        assert_eq!(
            line(&progress(512, None, Some(3))).unwrap(),
            "512 B, 1 of 3 files"
        );
    }
}
