//! A slot that is not what its session was given, in a store that lies inside another repository: git would take that one for it.

use std::fs;

use outlive_tests::bench;

use crate::site::{Session, Site};

/// What would be somewhere else, if it were anywhere.
const COMMIT: &str = "git -c user.name=n -c user.email=e@e commit -q --allow-empty -m astray";

/// A site whose store is inside another repository.
fn inside_another(slots: u32, options: &[&str]) -> Site {
    let site = Site::new(bench!(), slots, options);
    site.git_in(site.bench.dir(), &["init", "-q"]);
    site
}

/// No commit came to be in that one.
#[track_caller]
fn untouched(site: &Site) {
    let commits = site.git_in(site.bench.dir(), &["rev-list", "--all", "--count"]);
    assert_eq!(commits, "0", "something was committed elsewhere");
}

#[track_caller]
fn refused(site: &Site, one: &Session, why: &str) {
    let commit = site.bench.end(site.exec(one, &["sh", "-c", COMMIT]));
    let said = commit.expect(8).errors();
    assert!(said.contains(why), "{said}");
    let close = format!("outlive pool close {} --force", one.token);
    assert!(said.contains(&close), "what to do: {said}");
    let said = site.pool(&["renew", &one.token, "--expires", "1h"]);
    let said = said.expect(8).errors();
    assert!(said.contains(why), "{said}");
    let told = site.slot(one.slot);
    assert_eq!(told["state"], "claimed");
    assert!(told["expires"].is_null(), "{told}");
    assert!(told["astray"].is_string(), "{told}");
    let said = site.pool(&["status", "web"]).expect(0).text();
    assert!(said.contains(told["astray"].as_str().unwrap()), "{said}");
    untouched(site);
}

#[test]
fn nothing_runs_in_a_place_that_is_not_the_slots_worktree_any_more() {
    // S43.
    let site = inside_another(1, &[]);
    let one = site.open();
    assert!(site.slot(1)["astray"].is_null());
    fs::remove_file(one.path.join(".git")).unwrap();
    refused(&site, &one, "worktree repair");
    site.git(&["worktree", "repair"]);
    site.bench
        .end(site.exec(&one, &["git", "status"]))
        .expect(0);

    let aside = site.bench.file("aside");
    fs::rename(&one.path, &aside).unwrap();
    refused(&site, &one, "was taken away");
    fs::create_dir(&one.path).unwrap();
    refused(&site, &one, "the .git of");
    site.git_in(&one.path, &["init", "-q"]);
    refused(&site, &one, "a repository of its own");
    fs::remove_dir_all(&one.path).unwrap();
    std::os::unix::fs::symlink(site.repository(), &one.path).unwrap();
    refused(&site, &one, "a symbolic link");
    fs::remove_file(&one.path).unwrap();
    fs::write(&one.path, "").unwrap();
    refused(&site, &one, "is not a directory");
    fs::remove_file(&one.path).unwrap();
    fs::rename(&aside, &one.path).unwrap();
    // Its registration is another one's.
    let entry = site.git_in(&one.path, &["rev-parse", "--absolute-git-dir"]);
    let gitdir = format!("{entry}/gitdir");
    let was = fs::read(&gitdir).unwrap();
    fs::write(&gitdir, "/there/is/no/other/.git\n").unwrap();
    refused(&site, &one, "is registered as one at");
    fs::write(&gitdir, "").unwrap();
    refused(&site, &one, "names no place");
    fs::write(&gitdir, was).unwrap();
    site.pool(&["renew", &one.token, "--expires", "1h"])
        .expect(0);
    site.close(&one).expect(0);
    site.bench.audit();
}

#[test]
fn git_does_not_climb_out_of_a_slot_that_loses_its_repository_meanwhile() {
    let loses = format!("rm .git; {COMMIT}");
    let site = inside_another(4, &["--maintain", &loses, "--prepare", "test -e .git"]);
    let one = site.open();
    let mut exec = site.exec(&one, &["sh", "-c", &loses]);
    exec.current_dir(site.bench.dir());
    let said = site.bench.end(exec).expect(128).errors();
    assert!(said.contains("not a git repository"), "{said}");
    let mut job = site
        .bench
        .verb(["run", "--pool", "web", "--wait", "--", "sh", "-c", &loses]);
    job.env("GIT_CONFIG_NOSYSTEM", "1");
    site.bench.end(job).expect(128);
    let idle = site.open();
    site.close(&idle).expect(0);
    let slots = site.maintained(1, &[]);
    let outcome = slots.iter().map(|slot| &slot["result"]["ran"]["outcome"]);
    let failed = outcome.filter(|outcome| outcome["failed"]["exit"] == 128);
    assert_eq!(failed.count(), 1, "{slots:?}");
    site.pool(&["set", "web", "--prepare", &loses]).expect(0);
    site.pool(&["open", "web"]).expect(1);
    untouched(&site);
    site.force(&one).expect(8);
    site.bench.audit();
}

#[test]
fn a_job_is_not_given_a_slot_that_has_lost_its_repository() {
    let site = inside_another(1, &[]);
    let one = site.open();
    site.close(&one).expect(0);
    fs::remove_file(one.path.join(".git")).unwrap();
    let mut job = site.bench.verb(["run", "--pool", "web", "--wait", "--"]);
    job.args(["sh", "-c", COMMIT]);
    let said = site.bench.end(job).expect(8).errors();
    assert!(said.contains("the .git of"), "{said}");
    untouched(&site);
    site.bench.audit();
}

#[test]
fn ceilings_of_ones_own_stay() {
    let site = Site::new(bench!(), 1, &[]);
    let one = site.open();
    let mut exec = site.exec(&one, &["printenv", "GIT_CEILING_DIRECTORIES"]);
    exec.env("GIT_CEILING_DIRECTORIES", "/somewhere:/else");
    let slot = one.path.parent().unwrap().canonicalize().unwrap();
    let both = format!("{}:/somewhere:/else", slot.display());
    assert_eq!(site.bench.end(exec).expect(0).text(), both);
    site.close(&one).expect(0);
    let mut run = site.bench.verb(["run", "--pool", "web", "--follow", "--"]);
    run.args(["printenv", "GIT_CEILING_DIRECTORIES"])
        .env("GIT_CEILING_DIRECTORIES", "/somewhere:/else");
    let said = site.bench.end(run).expect(0).text();
    assert!(said.contains(&both), "{said}");
    site.bench.audit();
}
