//! The store around the jobs.

use std::os::unix::net::UnixListener;

use outlive_tests::bench;
use rustix::fs::{AtFlags, CWD, Gid, Uid, chownat};

use crate::row::{Row, try_all};
use crate::site::{Site, set_mode};

fn own(site: &Site, inside: &str, user: u32) {
    let (user, group) = (Uid::from_raw(user), Gid::from_raw(user));
    let path = site.path(inside);
    chownat(
        CWD,
        path,
        Some(user),
        Some(group),
        AtFlags::SYMLINK_NOFOLLOW,
    )
    .unwrap();
}

pub(crate) fn rows() -> Vec<Row> {
    let mut rows = vec![
        Row::mended("missing-directory", |site| {
            std::fs::remove_dir(site.path("trash")).unwrap();
            "trash".into()
        }),
        Row::mended("not-directory", |site| {
            std::fs::remove_dir(site.path("staging")).unwrap();
            site.write("staging", "what is this?");
            "staging".into()
        }),
        Row::mended("not-directory", |site| {
            site.write("broken", "what is this?");
            "broken".into()
        })
        .then(|site| assert!(site.path("broken").is_dir())),
        Row::mended("not-directory", |site| {
            site.link("broken", "/nowhere/at/all");
            "broken".into()
        })
        .then(|site| assert!(site.path("broken").is_dir())),
        Row::mended("mode", |site| {
            set_mode(&site.path(&site.of(&site.done, "log")), 0o644);
            site.of(&site.done, "log")
        }),
        Row::mended("mode", |site| {
            set_mode(&site.path(&site.of(&site.running, "")), 0o755);
            site.of(&site.running, "")
        }),
        Row::mended("mode", |site| {
            set_mode(&site.path("pools/w/slots/1/slot.json"), 0o666);
            "pools/w/slots/1/slot.json".into()
        }),
        Row::stays("config", |site| {
            site.write("config.toml", "[pool.w\nslots = ");
            "config.toml".into()
        })
        .undone_by(|site| site.remove("config.toml")),
        Row::mended("lock-odd", |site| {
            site.mkdir("supervisor.lock");
            site.write("supervisor.lock/notes", "here");
            "supervisor.lock".into()
        }),
        Row::mended("lock-odd", |site| {
            let lock = site.pointer("name-old").replace(".json", ".lock");
            site.remove(&lock);
            site.link(&lock, "/etc/hostname");
            lock
        }),
        Row::mended("dead-socket", |site| {
            drop(UnixListener::bind(site.path("supervisor.sock")).unwrap());
            "supervisor.sock".into()
        })
        .then(|site| assert!(!site.path("supervisor.sock").exists())),
        Row::mended("dead-socket", |site| {
            site.write("supervisor.sock", "no socket");
            "supervisor.sock".into()
        }),
        Row::mended("left-behind", |site| {
            site.mkdir("staging/1-2-3");
            site.write("staging/1-2-3/lock", "");
            site.write("staging/1-2-3/job.json", "{");
            "staging/1-2-3".into()
        })
        .changing(&["staging/"]),
        Row::mended("left-behind", |site| {
            site.mkdir("trash/1-2-3");
            site.mkdir("trash/1-2-3/deeper");
            site.write("trash/1-2-3/deeper/log", "x");
            "trash/1-2-3".into()
        })
        .changing(&["trash/"]),
        Row::mended("spare", |site| {
            let _ = std::fs::remove_dir_all(site.path("spares/3"));
            site.copy(&site.of(&site.done, ""), "spares/3");
            site.edit("spares/3/job.json", |job| job["id"] = "1-gone".into());
            "spares/3".into()
        })
        .changing(&["spares/3"]),
        Row::noted("stray", |site| {
            site.write("notes", "mine");
            "notes".into()
        }),
        Row::noted("stray", |site| {
            site.write(&site.of(&site.done, "notes"), "mine");
            site.of(&site.done, "notes")
        })
        .undone_by(|site| site.remove(&site.of(&site.done, "notes"))),
        Row::noted("stray", |site| {
            site.mkdir("pools/not a pool");
            "pools/not a pool".into()
        }),
        Row::noted("set-aside", |site| {
            site.mkdir("broken");
            site.mkdir("broken/17");
            "broken".into()
        }),
        Row::mended("not-a-job", |site| {
            site.mkdir("jobs/.hidden");
            site.write("jobs/.hidden/notes", "mine");
            "jobs/.hidden".into()
        }),
        Row::mended("not-a-job", |site| {
            site.write("jobs/17-file", "mine");
            "jobs/17-file".into()
        }),
        Row::mended("not-a-job", |site| {
            site.link("jobs/17-link", "/tmp");
            "jobs/17-link".into()
        }),
    ];
    if rustix::process::geteuid().is_root() {
        rows.push(
            Row::stays("owner", |site| {
                own(site, &site.of(&site.done, "log"), 65534);
                site.of(&site.done, "log")
            })
            .undone_by(|site| own(site, &site.of(&site.done, "log"), 0)),
        );
    }
    rows
}

#[test]
fn the_store_around_the_jobs() {
    try_all(&rows(), || bench!());
}
