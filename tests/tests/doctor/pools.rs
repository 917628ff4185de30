//! Pools, slots and sessions.

use std::fs;

use outlive_tests::{bench, program_at};
use serde_json::json;

use crate::row::{Row, try_all};
use crate::site::Site;

const FIRST: &str = "pools/w/slots/1/slot.json";
const SECOND: &str = "pools/w/slots/2/slot.json";

/// The session has its slot still.
fn closes(site: &Site) {
    let inside = site.path("pools/w/slots/1/worktree/made");
    assert!(inside.exists());
    site.bench.run(["pool", "close", &site.token]).expect(0);
}

/// Somebody else can have the second slot.
fn opens(site: &Site) {
    let opened = site
        .bench
        .run(["pool", "open", "w", "--json"])
        .expect(0)
        .json();
    assert_eq!(opened["slot"], 2);
    let token = opened["token"].as_str().unwrap();
    site.bench.run(["pool", "close", token]).expect(0);
}

/// Nobody gets the second slot until it is mended.
fn is_broken(site: &Site) {
    site.bench.run(["pool", "open", "w"]).expect(7);
    let ran = site.bench.run(["doctor"]).expect(0);
    assert!(ran.text().contains("w/2 is broken"), "{ran:?}");
}

fn session(site: &Site, name: &str, change: impl FnOnce(&mut serde_json::Value)) -> String {
    let path = format!("sessions/{name}.json");
    site.copy(&format!("sessions/{}.json", site.token), &path);
    site.edit(&path, change);
    path
}

pub(crate) fn rows() -> Vec<Row> {
    [of_pools(), of_slots(), of_places(), of_sessions()]
        .into_iter()
        .flatten()
        .collect()
}

fn of_pools() -> Vec<Row> {
    vec![
        Row::mended("pool-garbage", |site| {
            site.write("pools/w/pool.json", "rubbish");
            "pools/w/pool.json".into()
        })
        .then(|site| {
            let pools = site.bench.run(["pool", "list", "--json"]).expect(0).json();
            let pool = pools
                .as_array()
                .unwrap()
                .iter()
                .find(|it| it["name"] == "w");
            assert_eq!(pool.unwrap()["paused"], true, "{pools}");
        }),
        Row::mended("pool-garbage", |site| {
            site.remove("pools/w/pool.json");
            site.mkdir("pools/w/pool.json");
            "pools/w/pool.json".into()
        }),
        Row::mended("lock-odd", |site| {
            site.remove("pools/w/placement.lock");
            site.mkdir("pools/w/placement.lock");
            "pools/w/placement.lock".into()
        })
        .then(opens),
    ]
}

fn of_slots() -> Vec<Row> {
    vec![
        Row::mended("slot-garbage", |site| {
            site.write(FIRST, "rubbish");
            FIRST.into()
        })
        .then(closes),
        Row::mended("slot-garbage", |site| {
            site.write(SECOND, [0; 40]);
            SECOND.into()
        })
        .then(opens),
        Row::mended("slot-garbage", |site| {
            site.edit(SECOND, |slot| slot["number"] = 5.into());
            SECOND.into()
        })
        .then(opens),
        Row::stays("newer", |site| {
            site.edit_for_now(SECOND, |slot| slot["state"] = "lent".into());
            SECOND.into()
        })
        .undone_by(Site::restore),
        Row::mended("lock-missing", |site| {
            site.remove("pools/w/slots/2/occupancy");
            "pools/w/slots/2/occupancy".into()
        })
        .then(opens),
        Row::mended("lock-odd", |site| {
            site.remove("pools/w/slots/2/occupancy");
            site.link("pools/w/slots/2/occupancy", "/dev/null");
            "pools/w/slots/2/occupancy".into()
        })
        .then(opens),
        Row::noted("slot-broken", |site| {
            site.edit(SECOND, |slot| {
                slot["state"] = "broken".into();
                slot["broken"] = "it was cut in half".into();
            });
            SECOND.into()
        })
        .then(is_broken),
        Row::noted("slot-left", |site| {
            site.edit(SECOND, |slot| {
                slot["state"] = "claimed".into();
                slot["returned"] = false.into();
                slot["claim"] = json!({
                    "token": "w-17", "holder": {"job": site.done}, "pid": 1, "started": 1,
                    "boot_id": "another", "since": "2026-01-01T00:00:00Z",
                });
            });
            SECOND.into()
        })
        .then(opens),
    ]
}

fn of_places() -> Vec<Row> {
    let mut rows = vec![
        Row::mended("place-missing", |site| {
            fs::remove_dir_all(site.path("pools/w/slots/2/worktree")).unwrap();
            SECOND.into()
        })
        .changing(&["slots/2/slot.json"])
        .then(is_broken),
        Row::mended("place-astray", |site| {
            fs::remove_dir_all(site.path("pools/w/slots/2/worktree")).unwrap();
            site.link("pools/w/slots/2/worktree", "/tmp");
            "pools/w/slots/2".into()
        })
        .changing(&["slots/2/slot.json"])
        .then(is_broken),
        Row::stays("place-missing", |site| {
            let place = "pools/w/slots/1/worktree";
            site.rename(place, "../away");
            place.into()
        })
        .undone_by(|site| site.rename("../away", "pools/w/slots/1/worktree")),
    ];
    if program_at("git").is_some() {
        rows.push(
            Row::mended("place-astray", |site| {
                let registered = worktree(site);
                fs::write(registered, "/elsewhere/.git\n").unwrap();
                "pools/g/slots/1".into()
            })
            .changing(&["pools/g/slots/1/slot.json"])
            .then(|site| {
                site.bench.run(["pool", "repair", "g/1"]).expect(0);
                let opened = site.bench.run(["pool", "open", "g", "--json"]).expect(0);
                assert_eq!(opened.json()["slot"], 1);
            }),
        );
    }
    rows
}

/// A pool `g` with one worktree that was given back; the file in which git has registered where it is.
fn worktree(site: &Site) -> std::path::PathBuf {
    let repository = site.bench.dir().join("repository");
    fs::create_dir(&repository).unwrap();
    for arguments in [
        &["init", "-q", "-b", "main"][..],
        &["commit", "-q", "--allow-empty", "-m", "one"],
    ] {
        let mut git = site.bench.program("git");
        git.current_dir(&repository)
            .env("GIT_CONFIG_GLOBAL", "/dev/null")
            .args(["-c", "user.name=n", "-c", "user.email=e@e"])
            .args(arguments);
        site.bench.end(git).expect(0);
    }
    let mut add = site
        .bench
        .verb(["pool", "add", "g", "--slots", "1", "--source"]);
    add.arg(&repository);
    site.bench.end(add).expect(0);
    let opened = site
        .bench
        .run(["pool", "open", "g", "--json"])
        .expect(0)
        .json();
    let token = opened["token"].as_str().unwrap();
    site.bench.run(["pool", "close", token]).expect(0);
    let entries = fs::read_dir(repository.join(".git/worktrees")).unwrap();
    let entry = entries.flatten().next().unwrap().path();
    entry.join("gitdir")
}

fn of_sessions() -> Vec<Row> {
    vec![
        Row::mended("session-garbage", |site| {
            let path = format!("sessions/{}.json", site.token);
            site.write(&path, "rubbish");
            path
        })
        .then(closes),
        Row::mended("session-garbage", |site| {
            site.write("sessions/w-17.json", "rubbish");
            "sessions/w-17.json".into()
        })
        .then(closes),
        // Two sessions for one slot.
        Row::mended("session-void", |site| {
            session(site, "w-17", |session| session["token"] = "w-17".into())
        })
        .then(closes),
        Row::mended("session-slot-gone", |site| {
            session(site, "w-17", |session| {
                session["token"] = "w-17".into();
                session["slot"] = 9.into();
            })
        }),
        Row::mended("session-name", |site| session(site, "w-17", |_| {})).then(closes),
    ]
}

#[test]
fn pools_and_slots() {
    try_all(&of_pools(), || bench!());
    try_all(&of_slots(), || bench!());
}

#[test]
fn places_and_sessions() {
    try_all(&of_places(), || bench!());
    try_all(&of_sessions(), || bench!());
}
