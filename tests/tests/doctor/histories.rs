//! Histories, and what they say of a record.

use outlive_tests::bench;

use crate::row::{Row, try_all};
use crate::site::Site;

fn state(state: &str) -> String {
    format!("{{\"at_ms\":1795962116137,\"event\":\"state\",\"state\":\"{state}\"}}")
}

/// The history of a job that is done, as it must be in the end.
fn is_whole(site: &Site) {
    let job = site.bench.job(&site.done);
    assert_eq!(job.states(), ["queued", "running", "done"]);
    assert_eq!(job.state(), "done");
}

fn change(site: &Site, change: impl FnOnce(&mut Vec<String>)) -> String {
    let mut lines = site.lines(&site.done);
    change(&mut lines);
    site.write_lines(&site.done, &lines);
    site.of(&site.done, "")
}

pub(crate) fn rows() -> Vec<Row> {
    vec![
        // Two ends.
        Row::mended("history-illegal", |site| {
            change(site, |lines| lines.push(state("failed")))
        })
        .then(is_whole),
        // It begins in the middle.
        Row::mended("history-illegal", |site| {
            change(site, |lines| drop(lines.remove(0)))
        })
        .then(is_whole),
        // A line that was torn in the middle has taken a state with it.
        Row::mended("history-illegal", |site| {
            change(site, |lines| {
                let half = lines[1].len() / 2;
                lines[1].truncate(half);
            })
        })
        .then(is_whole),
        // Nobody reads as much as that.
        Row::mended("history-too-long", |site| {
            let history = site.of(&site.done, "events.jsonl");
            let file = std::fs::File::options()
                .append(true)
                .open(site.path(&history));
            file.unwrap().set_len((64 << 20) + 1).unwrap();
            history
        })
        .then(is_whole),
        Row::mended("history-contradicts", |site| {
            change(site, |lines| lines[2] = state("failed"))
        })
        .then(is_whole),
        // The history knows of an end and the record of none: run again is what it must not be.
        Row::mended("history-contradicts", |site| {
            let lines = ["queued", "running", "done"].map(state);
            site.write_lines(&site.queued, &lines);
            site.of(&site.queued, "")
        })
        .then(|site| assert!(!site.path(&site.of(&site.queued, "")).exists())),
        // A record that counts no steps, as an older version wrote.
        Row::mended("history-illegal", |site| {
            site.edit(&site.of(&site.done, "status.json"), |status| {
                status.as_object_mut().unwrap().remove("steps");
            });
            change(site, |lines| lines.push(state("failed")))
        })
        .changing(&["/status.json"])
        .then(is_whole),
        Row::mended("history-behind", |site| {
            change(site, |lines| drop(lines.pop()))
        })
        .then(is_whole),
        Row::mended("record-lost", |site| {
            let id = site.lost();
            site.write(&site.of(&id, "status.json"), "");
            site.of(&id, "")
        })
        .changing(&["/status.json"]),
        Row::noted("history-garbage", |site| {
            change(site, |lines| lines.insert(1, "{\"at_ms\":17,\"ev".into()))
        })
        .undone_by(|site| drop(change(site, |lines| drop(lines.remove(1))))),
        // What is left is a history that a job can have.
        Row::noted("history-short", |site| {
            let mut lines = site.lines(&site.failed);
            lines.remove(1);
            site.write_lines(&site.failed, &lines);
            site.of(&site.failed, "")
        }),
        Row::noted("history-torn", |site| {
            let path = site.of(&site.done, "events.jsonl");
            let whole = site.read(&path);
            site.write(&path, [whole.as_slice(), b"{\"at_ms\":17"].concat());
            site.of(&site.done, "")
        }),
        Row::noted("time-backwards", |site| {
            change(site, |lines| lines[0] = lines[0].replacen(":1", ":2", 1))
        }),
    ]
}

#[test]
fn histories() {
    try_all(&rows(), || bench!());
}
