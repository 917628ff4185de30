//! Keys: names that jobs bear.

use outlive_tests::bench;
use serde_json::json;

use crate::row::{Row, try_all};
use crate::site::Site;

/// Whoever starts the name joins the job that bears it.
fn is_found(site: &Site) {
    let ran = site
        .bench
        .run(["run", "--name", "web", "--", "true"])
        .expect(0);
    assert_eq!(ran.text().trim(), site.queued, "{ran:?}");
}

fn starts_old(site: &Site) {
    let ran = site
        .bench
        .run(["run", "--name", "old", "--", "true"])
        .expect(0);
    site.bench.job(ran.text().trim()).wait();
}

pub(crate) fn rows() -> Vec<Row> {
    vec![
        Row::mended("key-garbage", |site| {
            let pointer = site.pointer("name-web");
            site.write(&pointer, "rubbish");
            pointer
        })
        .then(is_found),
        Row::mended("key-garbage", |site| {
            let pointer = site.pointer("name-old");
            site.write(&pointer, "");
            pointer
        })
        .then(starts_old),
        Row::mended("key-garbage", |site| {
            let pointer = site.pointer("name-old");
            site.remove(&pointer);
            site.mkdir(&pointer);
            pointer
        })
        .then(starts_old),
        Row::mended("key-astray", |site| {
            let pointer = site.pointer("name-web");
            site.remove(&pointer);
            pointer
        })
        .then(is_found),
        Row::mended("key-astray", |site| {
            let pointer = site.pointer("name-web");
            site.edit(&pointer, |it| it["job"] = json!(site.done));
            pointer
        })
        .then(is_found),
        Row::stays("key-shared", |site| {
            site.copy(&site.of(&site.queued, ""), "jobs/17-second");
            site.edit("jobs/17-second/job.json", |job| {
                job["id"] = "17-second".into()
            });
            "jobs/17-second".into()
        })
        .undone_by(|site| site.bench.job("17-second").stop(0)),
        Row::noted("key-stale", |site| {
            let pointer = site.pointer("name-old");
            site.edit(&pointer, |it| it["job"] = json!("17-gone"));
            pointer
        })
        .then(starts_old),
    ]
}

#[test]
fn keys() {
    try_all(&rows(), || bench!());
}
