use std::path::PathBuf;
use std::sync::Arc;

use ratatui::Terminal;
use ratatui::backend::TestBackend;
use ratatui::buffer::Cell;
use ratatui::style::{Color, Modifier};
use state_machine::job::State;
use state_machine::record::{Descriptor, Status};

use super::app::{Ask, Mode};
use super::keys::Key;
use super::*;
use crate::store::PoolStanding;

/// A job that runs, or what else `status` says.
fn job(id: &str, command: &str, status: &str) -> Arc<View> {
    let descriptor = format!(
        r#"{{"id":"{id}","kind":{{"command":{{"argv":["{command}"],"cwd":"/","env":{{}}}}}},"display_name":"x","created_at_ms":1,"project":"/p"}}"#
    );
    let descriptor = Descriptor::decode(descriptor.as_bytes()).unwrap();
    let status = Status::decode(format!(r#"{{{status},"updated_at_ms":1}}"#).as_bytes()).unwrap();
    Arc::new(View {
        state: status.state,
        held: !status.state.is_terminal(),
        leftovers: false,
        descriptor,
        status,
    })
}

fn running(id: &str) -> Arc<View> {
    job(id, "sleep", r#""state":"running","attempt":1"#)
}

fn app_of(jobs: &[Arc<View>]) -> App {
    let mut app = App::new(Scope::All, false);
    app.have_rows(5);
    app.see(jobs.iter());
    app
}

fn shown(app: &mut App, columns: u16, rows: u16) -> Terminal<TestBackend> {
    let mut terminal = Terminal::new(TestBackend::new(columns, rows)).unwrap();
    app.have_rows(usize::from(Heights::of(rows).jobs));
    let words = Words {
        condition: &|view| print::condition(view),
        instant: &|at_ms| format!("at {at_ms}"),
        coloured: true,
    };
    terminal
        .draw(|frame| draw::draw(frame, app, &words))
        .unwrap();
    terminal
}

fn lines(terminal: &Terminal<TestBackend>) -> Vec<String> {
    let buffer = terminal.backend().buffer();
    let width = usize::from(buffer.area.width);
    let lines = buffer.content.chunks(width);
    let text = |line: &[Cell]| line.iter().map(Cell::symbol).collect::<String>();
    lines.map(|line| text(line).trim_end().to_owned()).collect()
}

fn ids(app: &App) -> Vec<&str> {
    app.jobs
        .iter()
        .map(|view| view.descriptor.id.as_str())
        .collect()
}

fn press(app: &mut App, keys: &str) -> Option<Do> {
    keys.chars().fold(None, |_, c| app.press(Key::Char(c)))
}

#[test]
fn what_runs_comes_first_and_what_ended_last_comes_before_what_ended_before() {
    let ended = |id, at| job(id, "true", &format!(r#""state":"done","ended_at_ms":{at}"#));
    let jobs = [
        ended("1-a", 10),
        running("2-b"),
        job("3-c", "true", r#""state":"queued""#),
        ended("4-d", 30),
        job("5-e", "true", r#""state":"interrupted""#),
        ended("6-f", 20),
    ];
    let app = app_of(&jobs);
    assert_eq!(ids(&app), ["2-b", "5-e", "3-c", "4-d", "6-f", "1-a"]);
    assert_eq!(app.counts.iter().sum::<usize>(), 6);
}

#[test]
fn the_chosen_job_stays_chosen_wherever_it_goes() {
    let jobs: Vec<_> = (1..=9).map(|n| running(&format!("{n}-a"))).collect();
    let mut app = app_of(&jobs);
    press(&mut app, "jjj");
    assert_eq!(app.chosen.as_ref().unwrap().as_str(), "4-a");
    app.see(jobs[2..].iter());
    assert_eq!((app.chosen.as_ref().unwrap().as_str(), app.at), ("4-a", 1));
    // It is gone: whoever has its place is chosen.
    app.see(jobs[5..].iter());
    assert_eq!((app.chosen.as_ref().unwrap().as_str(), app.at), ("7-a", 1));
    app.see(jobs[..1].iter());
    assert_eq!((app.chosen.as_ref().unwrap().as_str(), app.at), ("1-a", 0));
    app.see([].iter());
    assert_eq!(press(&mut app, "jksrpR"), None);
    assert_eq!(app.chosen, None);
    assert_eq!(app.mode, Mode::Browse);
    app.see(jobs.iter());
    assert!(app.chosen.is_some());
}

#[test]
fn the_chosen_job_is_always_in_sight() {
    let jobs: Vec<_> = (10..60).map(|n| running(&format!("{n}-a"))).collect();
    let mut app = app_of(&jobs);
    let keys = [
        Key::End,
        Key::PageUp,
        Key::Up,
        Key::Home,
        Key::PageDown,
        Key::PageDown,
        Key::Down,
        Key::Up,
        Key::End,
        Key::Down,
        Key::PageDown,
        Key::PageUp,
    ];
    for rows in [1, 2, 5, 49, 50, 51, 200, 3] {
        app.have_rows(rows);
        for key in keys {
            app.press(key);
            let seen = app
                .seen()
                .iter()
                .any(|view| Some(&view.descriptor.id) == app.chosen.as_ref());
            assert!(seen, "{rows} {key:?} {} {}", app.top, app.at);
            assert_eq!(app.seen().len(), rows.min(50), "{rows} {key:?} {}", app.top);
        }
    }
}

#[test]
fn what_ends_something_is_asked_for_twice() {
    let mut app = app_of(&[running("1-a")]);
    let id = app.chosen.clone().unwrap();
    assert_eq!(press(&mut app, "p"), Some(Do::Ask(Ask::Pause, id.clone())));
    assert_eq!(press(&mut app, "r"), Some(Do::Ask(Ask::Resume, id.clone())));
    assert_eq!(press(&mut app, "s"), None);
    assert_eq!(press(&mut app, "n"), None);
    assert_eq!(app.mode, Mode::Browse);
    // It means the job that it was asked for, whatever is chosen by now.
    press(&mut app, "s");
    app.see([running("2-b")].iter());
    assert_eq!(press(&mut app, "y"), Some(Do::Ask(Ask::Stop, id)));
    assert_eq!(press(&mut app, "y"), None);
    press(&mut app, "R");
    assert!(matches!(app.mode, Mode::Confirm(Ask::Restart, _)));
    app.press(Key::Escape);
    app.see([job("3-c", "true", r#""state":"failed""#)].iter());
    assert!(matches!(
        press(&mut app, "R"),
        Some(Do::Ask(Ask::Restart, _))
    ));
    assert_eq!(press(&mut app, "q"), Some(Do::Quit));
    press(&mut app, "/q");
    assert_eq!(app.press(Key::Ctrl('c')), Some(Do::Quit));
}

#[test]
fn a_filter_is_what_is_written_until_it_is_given_up() {
    let jobs = [
        running("1-make"),
        job("2-b", "Fetch", r#""state":"done""#),
        running("3-c"),
    ];
    let mut app = app_of(&jobs);
    assert_eq!(press(&mut app, "/fET"), Some(Do::Choose));
    app.see(jobs.iter());
    assert_eq!(ids(&app), ["2-b"]);
    assert_eq!(app.counts.iter().sum::<usize>(), 3);
    app.press(Key::Backspace);
    app.press(Key::Enter);
    assert_eq!((app.filter.as_str(), &app.mode), ("fE", &Mode::Browse));
    press(&mut app, "/ running");
    app.press(Key::Escape);
    assert_eq!(app.filter, "fE");
    assert_eq!(app.press(Key::Escape), Some(Do::Choose));
    assert_eq!(app.filter, "");
    press(&mut app, "/running");
    app.see(jobs.iter());
    assert_eq!(ids(&app), ["1-make", "3-c"]);
}

#[test]
fn a_project_has_its_jobs_until_everyone_is_asked_for() {
    let jobs = [running("1-a"), running("2-b")];
    let mut app = App::new(Scope::Project(PathBuf::from("/elsewhere")), false);
    app.see(jobs.iter());
    assert_eq!(ids(&app), [""; 0]);
    assert_eq!(app.whose(), "/elsewhere");
    assert_eq!(press(&mut app, "a"), Some(Do::Choose));
    app.see(jobs.iter());
    assert_eq!(ids(&app), ["1-a", "2-b"]);
    assert_eq!(app.whose(), "everyone's jobs");
    press(&mut app, "a");
    app.see(jobs.iter());
    assert_eq!(ids(&app), [""; 0]);
    // Outside of any project there is nothing else to be asked for.
    let mut app = app_of(&jobs);
    press(&mut app, "a");
    app.see(jobs.iter());
    assert_eq!(ids(&app), ["1-a", "2-b"]);
}

#[test]
fn a_picture_has_everything_in_its_place() {
    let failed = r#""state":"failed","exit":{"code":3},"started_at_ms":5,"ended_at_ms":7005"#;
    let jobs = [
        job(
            "1-a",
            "make",
            r#""state":"running","attempt":1,"started_at_ms":9,"progress":{"done_bytes":1,"total_bytes":4,"files_done":0}"#,
        ),
        job("2-b", "false", failed),
    ];
    let mut app = app_of(&jobs);
    app.output = ["building", "built"].map(str::to_owned).to_vec();
    app.pools = vec![PoolStanding {
        name: "default".into(),
        slots: 2,
        taken: 1,
        waiting: 3,
        paused: false,
        configured: false,
        declared: true,
    }];
    let terminal = shown(&mut app, 70, 16);
    assert_eq!(
        lines(&terminal),
        [
            "outlive top: everyone's jobs; 1 running, 1 failed",
            "slots taken: default 1/2, 3 waiting",
            "ID   STATE            STARTED  COMMAND",
            "1-a  running 25 %     at 9     make",
            "2-b  exited 3 (7.0s)  at 5     false",
            "",
            "",
            "",
            "",
            "",
            "── 1-a; 1 B of 4 B (25 %)",
            "building",
            "built",
            "",
            "",
            "q quit  ↑↓ row  p pause  r resume  s stop  R restart  / filter  a all",
        ]
    );
    let buffer = terminal.backend().buffer();
    assert_eq!(buffer[(5, 3)].fg, Color::Green);
    assert_eq!(buffer[(5, 4)].fg, Color::Red);
    assert!(buffer[(0, 3)].modifier.contains(Modifier::REVERSED));
    assert!(!buffer[(0, 4)].modifier.contains(Modifier::REVERSED));

    press(&mut app, "js");
    let lines_now = lines(&shown(&mut app, 70, 16));
    assert_eq!(lines_now[14], "stop 2-b? y: yes, any other key: no");
    app.mode = Mode::Browse;
    press(&mut app, "/bu");
    assert_eq!(lines(&shown(&mut app, 70, 16))[14], "filter: bu▏");
    app.press(Key::Escape);
    app.press(Key::Tab);
    assert_eq!(lines(&shown(&mut app, 70, 16))[10], "── slots");
    app.said = Some("stop 2-b: done".into());
    app.damaged = vec!["a cannot be read".into(), "b".into()];
    assert_eq!(lines(&shown(&mut app, 70, 16))[14], "stop 2-b: done");
    app.said = None;
    assert_eq!(
        lines(&shown(&mut app, 70, 16))[14],
        "a cannot be read (and 1 more)"
    );
}

#[test]
fn nothing_that_a_job_says_reaches_the_terminal_as_it_is() {
    let command = "\\u001b[2Ja\\u0007\\u202e";
    let said =
        format!(r#""state":"running","attempt":1,"status_line":"{command}","message":"{command}""#);
    let mut app = app_of(&[job("1-a", command, &said)]);
    app.damaged = vec!["\x1b[2J".into()];
    app.filter = "\x1b".into();
    app.output = vec![print::safe("\x1b[2J").into_owned()];
    for mode in [Mode::Browse, Mode::Filter(String::new())] {
        app.mode = mode;
        let terminal = shown(&mut app, 100, 20);
        let text = lines(&terminal).join("");
        assert!(
            !text.chars().any(|c| c.is_control() || c == '\u{202e}'),
            "{text:?}"
        );
        assert!(text.contains("\\u{1b}[2Ja"), "{text:?}");
    }
}

#[test]
fn it_fits_into_whatever_there_is() {
    let jobs: Vec<_> = (10..60).map(|n| running(&format!("{n}-a"))).collect();
    let mut app = app_of(&jobs);
    app.output = vec!["日本語".repeat(100); 50];
    for rows in 1..30 {
        for columns in [1, 2, 3, 10, 30, 79, 200] {
            for panel in [Panel::Output, Panel::Slots] {
                app.panel = panel;
                let terminal = shown(&mut app, columns, rows);
                assert_eq!(lines(&terminal).len(), usize::from(rows));
            }
        }
    }
}

#[test]
fn a_time_of_today_is_that_of_the_day() {
    let at = 1_700_000_000_000;
    assert_eq!(instant(at, at).len(), "12:34:56".len());
    assert_eq!(
        instant(at, at + 86_400_000).len(),
        "2023-11-14 12:34:56".len()
    );
}

#[test]
fn every_state_has_its_place_among_the_counts() {
    for state in State::ALL {
        let app = app_of(&[job("1-a", "true", &format!(r#""state":"{state}""#))]);
        let place = State::ALL.iter().position(|known| *known == state).unwrap();
        assert_eq!(app.counts[place], 1);
    }
}
