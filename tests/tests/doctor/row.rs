//! What is tried of every kind of breakage.

use std::panic::{AssertUnwindSafe, catch_unwind};

use outlive_tests::Bench;
use serde_json::Value;

use crate::site::{Site, Template};
use crate::snapshot::{Entry, Snapshot, keeps, take};

/// What becomes of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ends {
    /// `--fix` mends it, and it is not found any more.
    Mended,
    /// It is a note, and stays one.
    Noted,
    /// It is a problem that only a person can see to.
    Stays,
}

/// One way to break a store.
pub(crate) struct Row {
    /// The word that it is found by.
    pub(crate) kind: &'static str,
    pub(crate) ends: Ends,
    /// Breaks it; the path from the root of all that is concerned.
    pub(crate) break_it: fn(&Site) -> String,
    /// Ends of names of files whose content the mending is to change.
    pub(crate) changes: &'static [&'static str],
    /// What is to be true once it is mended.
    pub(crate) then: fn(&Site),
    /// Makes a store of it that a test may end with.
    pub(crate) undo: fn(&Site),
}

impl Row {
    const fn new(kind: &'static str, ends: Ends, break_it: fn(&Site) -> String) -> Row {
        Row {
            kind,
            ends,
            break_it,
            changes: &[],
            then: |_| {},
            undo: |_| {},
        }
    }

    pub(crate) const fn mended(kind: &'static str, break_it: fn(&Site) -> String) -> Row {
        Row::new(kind, Ends::Mended, break_it)
    }

    pub(crate) const fn noted(kind: &'static str, break_it: fn(&Site) -> String) -> Row {
        Row::new(kind, Ends::Noted, break_it)
    }

    pub(crate) const fn stays(kind: &'static str, break_it: fn(&Site) -> String) -> Row {
        Row::new(kind, Ends::Stays, break_it)
    }

    pub(crate) const fn changing(self, changes: &'static [&'static str]) -> Row {
        Row { changes, ..self }
    }

    pub(crate) const fn then(self, then: fn(&Site)) -> Row {
        Row { then, ..self }
    }

    pub(crate) const fn undone_by(self, undo: fn(&Site)) -> Row {
        Row { undo, ..self }
    }
}

/// Try every row, each in a store of its own, and say which went wrong.
pub(crate) fn try_all(rows: &[Row], bench: impl Fn() -> Bench) {
    let template = Template::new(bench());
    let mut wrong = Vec::new();
    for (number, row) in rows.iter().enumerate() {
        let site = template.site(bench());
        let tried = catch_unwind(AssertUnwindSafe(move || try_one(row, &site)));
        if tried.is_err() {
            wrong.push(format!("row {number}: {}", row.kind));
        }
    }
    template.audit();
    assert!(wrong.is_empty(), "{wrong:#?}");
}

fn try_one(row: &Row, site: &Site) {
    let kind = row.kind;
    let root = site.bench.root();
    let (code, report) = site.doctor(&[]);
    assert_eq!((code, of_kind(&report, kind).len()), (0, 0), "{report}");
    let sound = take(&root);
    let concerned = (row.break_it)(site);
    let broken = take(&root);

    let (code, report) = site.doctor(&[]);
    let found = of_kind(&report, kind);
    assert!(!found.is_empty(), "{kind} is not found: {report}");
    let has_problem = array(&report, "findings")
        .iter()
        .any(|finding| finding["severity"] == "problem");
    assert_eq!(code, i32::from(has_problem), "{report}");
    for finding in &found {
        let is_said = ["what", "advice", "path"]
            .iter()
            .all(|field| finding[field].as_str().is_some_and(|text| !text.is_empty()));
        assert!(is_said, "{finding}");
        let mendable = finding["mendable"].as_bool().unwrap();
        assert_eq!(mendable, row.ends == Ends::Mended, "{finding}");
        let severity = finding["severity"].as_str().unwrap();
        assert!(
            row.ends != Ends::Stays || severity == "problem",
            "{finding}"
        );
        assert!(row.ends != Ends::Noted || severity == "note", "{finding}");
    }
    assert_eq!(take(&root), broken, "{kind}: a look changes nothing");

    let (code, report) = site.doctor(&["--fix"]);
    assert_eq!(code, i32::from(row.ends == Ends::Stays), "{kind}: {report}");
    let is_mended = array(&report, "mended")
        .iter()
        .any(|finding| finding["kind"] == kind);
    assert_eq!(is_mended, row.ends == Ends::Mended, "{kind}: {report}");
    let (again, report) = site.doctor(&[]);
    assert_eq!(again, code, "{kind}: {report}");
    let left = of_kind(&report, kind);
    assert_eq!(
        left.is_empty(),
        row.ends == Ends::Mended,
        "{kind}: {report}"
    );

    let fixed = take(&root);
    nothing_is_lost(row, &concerned, &broken, &fixed);
    (row.then)(site);
    (row.undo)(site);
    end(site, &sound);
}

fn of_kind(report: &Value, kind: &str) -> Vec<Value> {
    let mut findings = array(report, "findings").clone();
    findings.retain(|finding| finding["kind"] == kind);
    findings
}

fn array<'a>(report: &'a Value, name: &str) -> &'a Vec<Value> {
    report[name].as_array().unwrap()
}

/// What is not concerned is as it was, byte by byte; what is, is still somewhere.
fn nothing_is_lost(row: &Row, concerned: &str, broken: &Snapshot, fixed: &Snapshot) {
    for (path, entry) in broken {
        if row.changes.iter().any(|part| path.contains(part)) {
            continue;
        }
        let is_concerned = path.starts_with(concerned) || concerned.starts_with(path.as_str());
        if is_concerned {
            assert!(keeps(fixed, path, entry), "{}: {path} is lost", row.kind);
        } else {
            assert_eq!(fixed.get(path), Some(entry), "{}: {path}", row.kind);
        }
    }
    for (path, entry) in fixed {
        let others = path != "broken" && path.starts_with("broken");
        if let Entry::File(mode, _) = entry
            && others
        {
            assert_eq!(mode & 0o077, 0, "{path} is for nobody else");
        }
    }
}

/// End what lives, and see that the store is one that a test may end with.
fn end(site: &Site, sound: &Snapshot) {
    site.end_children();
    for id in [&site.running, &site.paused] {
        assert!(sound.contains_key(&site.of(id, "job.json")));
        let job = site.bench.job(id);
        assert!(matches!(job.state().as_str(), "running" | "paused"));
        job.stop(0);
    }
    site.bench.run(["list", "--all"]).expect(0);
    // One that waits is no harm to anybody, and has a spare's next record in it.
    site.bench.run(["stop", &site.queued]);
    site.bench.audit();
}
