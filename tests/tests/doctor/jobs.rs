//! Jobs: their records, their files, what is asked of them, what lives of them.

use std::os::unix::net::UnixListener;
use std::time::{Duration, SystemTime};

use outlive_tests::bench;
use serde_json::json;

use crate::row::{Row, try_all};
use crate::site::Site;

/// Put something in the place of a file of a job.
fn instead(site: &Site, job: &str, file: &str, put: impl FnOnce(&str)) -> String {
    let path = site.of(job, file);
    site.remove(&path);
    put(&path);
    site.of(job, "")
}

fn directory(site: &Site, job: &str, file: &str) -> String {
    instead(site, job, file, |path| {
        site.mkdir(path);
        site.write(&format!("{path}/notes"), "mine");
    })
}

/// What no record and no lock can be: it cannot even be opened.
fn socket(site: &Site, job: &str, file: &str) -> String {
    instead(site, job, file, |path| {
        drop(UnixListener::bind(site.path(path)).unwrap());
    })
}

fn set_aside(site: &Site, id: &str) {
    assert!(!site.path(&site.of(id, "")).exists());
    let listed = site.bench.list();
    assert!(listed.iter().all(|job| job["id"] != *id), "{listed:?}");
}

fn halved(site: &Site, job: &str, file: &str) -> String {
    let path = site.of(job, file);
    let bytes = site.read(&path);
    site.write(&path, &bytes[..bytes.len().min(60) / 2]);
    site.of(job, "")
}

pub(crate) fn rows() -> Vec<Row> {
    [
        records(),
        files(),
        asked(),
        said(),
        living(),
        logs(),
        waiting(),
    ]
    .into_iter()
    .flatten()
    .collect()
}

fn records() -> Vec<Row> {
    vec![
        Row::mended("descriptor", |site| {
            site.write(&site.of(&site.done, "job.json"), "rubbish");
            site.of(&site.done, "")
        })
        .then(|site| set_aside(site, &site.done)),
        Row::mended("descriptor", |site| halved(site, &site.queued, "job.json"))
            .then(|site| set_aside(site, &site.queued)),
        Row::mended("descriptor", |site| {
            site.remove(&site.of(&site.failed, "job.json"));
            site.of(&site.failed, "")
        }),
        Row::mended("descriptor", |site| directory(site, &site.done, "job.json")),
        Row::mended("descriptor", |site| socket(site, &site.done, "job.json")),
        Row::mended("status", |site| {
            site.write(&site.of(&site.done, "status.json"), "rubbish");
            site.of(&site.done, "")
        })
        .then(|site| set_aside(site, &site.done)),
        Row::mended("status", |site| halved(site, &site.failed, "status.json")),
        // The history tells of an end: no loss of power has emptied it.
        Row::mended("status", |site| {
            site.write(&site.of(&site.done, "status.json"), [0; 90]);
            site.of(&site.done, "")
        }),
        Row::mended("status", |site| {
            instead(site, &site.done, "status.json", |path| {
                site.link(path, "job.json");
            })
        }),
        // Without a record it counts as never begun, and its history tells of an end.
        Row::mended("history-contradicts", |site| {
            site.remove(&site.of(&site.done, "status.json"));
            site.of(&site.done, "")
        })
        .then(|site| set_aside(site, &site.done)),
        Row::stays("newer", |site| {
            site.edit_for_now(&site.of(&site.done, "status.json"), |status| {
                status["state"] = "hibernating".into();
            });
            site.of(&site.done, "")
        })
        .undone_by(Site::restore),
        Row::stays("newer", |site| {
            site.edit_for_now(&site.of(&site.queued, "job.json"), |job| {
                job["kind"] = json!({"container": {"image": "x"}});
            });
            site.of(&site.queued, "")
        })
        .undone_by(Site::restore),
        Row::mended("wrong-name", |site| {
            site.rename(&site.of(&site.done, ""), "jobs/17-other");
            "jobs/17-other".into()
        })
        .then(|site| assert_eq!(site.bench.job(&site.done).state(), "done")),
        Row::mended("wrong-name", |site| {
            site.copy(&site.of(&site.done, ""), "jobs/17-copy");
            "jobs/17-copy".into()
        })
        .then(|site| assert_eq!(site.bench.job(&site.done).state(), "done")),
    ]
}

fn files() -> Vec<Row> {
    vec![
        Row::mended("lock-missing", |site| {
            site.remove(&site.of(&site.done, "lock"));
            site.of(&site.done, "lock")
        }),
        Row::mended("lock-missing", |site| {
            site.remove(&site.of(&site.queued, "lock"));
            site.of(&site.queued, "lock")
        })
        .then(|site| site.bench.job(&site.queued).stop(0)),
        Row::mended("lock-odd", |site| directory(site, &site.queued, "lock"))
            .then(|site| site.bench.job(&site.queued).stop(0)),
        Row::mended("lock-odd", |site| {
            instead(site, &site.done, "lock", |path| site.link(path, "log"))
        }),
        Row::mended("lock-odd", |site| socket(site, &site.done, "lock")),
        Row::mended("odd-file", |site| directory(site, &site.done, "log")),
        Row::mended("odd-file", |site| directory(site, &site.done, "tree")),
        Row::mended("odd-file", |site| {
            instead(site, &site.failed, "events.jsonl", |path| {
                site.link(path, "/dev/null");
            })
        })
        .then(|site| {
            let states = site.bench.job(&site.failed).states();
            assert_eq!(states, ["queued", "running", "failed"]);
        }),
    ]
}

fn asked() -> Vec<Row> {
    vec![
        Row::mended("request-left", |site| {
            site.write(&site.of(&site.done, "control"), "cancel\n");
            site.of(&site.done, "control")
        })
        .changing(&["/control"]),
        Row::mended("request-left", |site| {
            site.write(&site.of(&site.failed, "control.taken"), "pause\n");
            site.of(&site.failed, "control.taken")
        })
        .changing(&["/control.taken"]),
        Row::mended("request-waits", |site| {
            site.write(&site.of(&site.queued, "control"), "pause\n");
            site.of(&site.queued, "")
        })
        .changing(&["/control"])
        .then(|site| assert_eq!(site.bench.job(&site.queued).state(), "paused")),
    ]
}

fn said() -> Vec<Row> {
    vec![
        Row::noted("exit-missing", |site| {
            site.edit(&site.of(&site.done, "status.json"), |status| {
                status.as_object_mut().unwrap().remove("exit");
            });
            site.of(&site.done, "")
        }),
        Row::noted("progress", |site| {
            site.edit(&site.of(&site.done, "status.json"), |status| {
                status["progress"] = json!({"done_bytes": 7, "total_bytes": 3, "files_done": 0});
            });
            site.of(&site.done, "")
        }),
        Row::noted("time-backwards", |site| {
            site.edit_for_now(&site.of(&site.done, "status.json"), |status| {
                status["ended_at_ms"] = 1.into();
            });
            site.of(&site.done, "")
        })
        .undone_by(Site::restore),
        Row::mended("worker-lost", |site| {
            let id = site.lost();
            site.of(&id, "")
        })
        .changing(&["/status.json"]),
        Row::mended("rebooted", |site| {
            let id = site.lost();
            site.edit(&site.of(&id, "status.json"), |status| {
                status["updated_at_ms"] = 1.into();
            });
            site.of(&id, "")
        })
        .changing(&["/status.json"]),
        Row::noted("interrupted", |site| {
            let id = site.lost();
            site.doctor(&["--fix"]);
            site.of(&id, "")
        }),
    ]
}

fn living() -> Vec<Row> {
    vec![
        Row::stays("processes-left", |site| {
            let dir = site.of(&site.done, "");
            site.marked(&dir);
            dir
        }),
        Row::stays("processes-of-nobody", |site| {
            site.marked("jobs/17-gone");
            "jobs/17-gone".into()
        }),
    ]
}

fn logs() -> Vec<Row> {
    vec![
        Row::noted("log-order", |site| {
            let newer = site.of(&site.limited, "log");
            site.write(&site.of(&site.limited, "log.1"), "older");
            let file = std::fs::File::options()
                .append(true)
                .open(site.path(&newer))
                .unwrap();
            file.set_modified(SystemTime::now() - Duration::from_secs(60))
                .unwrap();
            site.of(&site.limited, "")
        }),
        Row::noted("log-too-long", |site| {
            site.write(&site.of(&site.limited, "log"), vec![b'x'; 3 << 20]);
            site.of(&site.limited, "")
        }),
        Row::noted("log-too-many", |site| {
            site.write(&site.of(&site.limited, "log.7"), "old");
            site.of(&site.limited, "")
        }),
    ]
}

fn waiting() -> Vec<Row> {
    vec![
        Row::noted("after-unknown", |site| {
            site.edit(&site.of(&site.queued, "job.json"), |job| {
                job["after"] = json!([{"job": "17-gone", "when": "success"}]);
            });
            site.of(&site.queued, "")
        }),
        Row::stays("after-cycle", |site| {
            let other = site.bench.queue(&["true"]);
            for (one, after) in [
                (site.queued.as_str(), other.id()),
                (other.id(), &site.queued),
            ] {
                site.edit_for_now(&site.of(one, "job.json"), |job| {
                    job["after"] = json!([{"job": after, "when": "end"}]);
                });
            }
            site.of(&site.queued, "")
        })
        .undone_by(Site::restore),
    ]
}

#[test]
fn the_records_of_jobs() {
    try_all(&records(), || bench!());
}

#[test]
fn the_files_of_jobs() {
    try_all(&files(), || bench!());
}

#[test]
fn what_is_asked_of_jobs_and_said_by_them() {
    try_all(&asked(), || bench!());
    try_all(&said(), || bench!());
}

#[test]
fn what_lives_of_jobs_and_what_they_wait_for() {
    try_all(&living(), || bench!());
    try_all(&logs(), || bench!());
    try_all(&waiting(), || bench!());
}
