//! Worktrees of one repository that are added at the same time: git reads the registrations of all, and gives up over one that is
//! half made.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::process::Command;

use outlive_tests::{Background, bench, rounds};

use crate::site::{Site, session};

impl Site {
    /// The registration of another worktree as it is for an instant while that is added.
    fn half_made(&self) -> std::path::PathBuf {
        let half = self.repository().join(".git/worktrees/half");
        fs::create_dir_all(&half).unwrap();
        fs::write(half.join("gitdir"), "/there/is/none/.git\n").unwrap();
        fs::write(half.join("commondir"), "").unwrap();
        half
    }

    /// Have this verb find a `git` that takes a registration away once a worktree could not be added for it.
    fn with_git_that_heals(&self, mut verb: Command, half: &std::path::Path) -> Command {
        let bin = self.bench.dir().join("bin");
        fs::create_dir_all(&bin).unwrap();
        let paths = std::env::var("PATH").unwrap();
        let script = format!(
            "#!/bin/sh\nPATH='{paths}'\ncase \"$*\" in\n*' worktree add '*) git \"$@\" || {{ rm -r '{}'; exit 128; }};;\n*) exec git \"$@\";;\nesac\n",
            half.display()
        );
        fs::write(bin.join("git"), script).unwrap();
        fs::set_permissions(bin.join("git"), fs::Permissions::from_mode(0o755)).unwrap();
        verb.env("PATH", format!("{}:{paths}", bin.display()));
        verb
    }
}

#[test]
fn a_neighbour_that_is_half_made_is_waited_for() {
    // S40.
    let site = Site::new(bench!(), 2, &[]);
    let half = site.half_made();
    let open = site.verb(&["open", "web", "--json"]);
    let opened = site.bench.end(site.with_git_that_heals(open, &half));
    let one = session(&opened.expect(0).json());
    assert!(!half.exists(), "git has failed once");
    assert_eq!(one.slot, 1);
    let registered = fs::read_dir(site.repository().join(".git/worktrees")).unwrap();
    assert_eq!(registered.count(), 1, "nothing of the first try is left");
    site.close(&one).expect(0);
    site.bench.audit();
}

#[test]
fn a_slot_that_cannot_be_made_is_no_pool_that_is_full() {
    let site = Site::new(bench!(), 20, &[]);
    let one = site.open();
    let half = site.half_made();
    let said = site.pool(&["open", "web"]).expect(1).errors();
    assert!(said.contains("web/2: git worktree add failed"), "{said}");
    assert!(!said.contains(&one.token) && said.len() < 500, "{said}");
    fs::remove_dir_all(half).unwrap();
    let two = site.open();
    assert_eq!(two.slot, 2);
    site.bench.audit();
}

#[test]
fn what_a_killed_git_has_left_of_another_slot_stops_nobody_for_good() {
    // Two were being made when the machine went down: what is left of the second is in the way of the first.
    let site = Site::new(bench!(), 2, &[]);
    for session in [site.open(), site.open()] {
        site.close(&session).expect(0);
    }
    for number in [1, 2] {
        let slot = site.bench.root().join(format!("pools/web/slots/{number}"));
        let place = slot.join("worktree");
        let entry = site.git_in(&place, &["rev-parse", "--absolute-git-dir"]);
        fs::write(format!("{entry}/commondir"), "").unwrap();
        fs::remove_dir_all(place).unwrap();
        fs::remove_file(slot.join("slot.json")).unwrap();
        fs::write(slot.join("worktree.cutting"), "").unwrap();
    }
    let [one, two] = [site.open(), site.open()];
    assert_eq!([one.slot, two.slot], [2, 1]);
    site.bench.audit();
}

#[test]
fn twenty_at_once_have_a_slot_each() {
    // S04, S40.
    let site = Site::new(bench!(), 1, &[]);
    let repository = site.repository().display().to_string();
    for round in 0..rounds(1) {
        let pool = format!("round-{round}");
        let add = ["add", &pool, "--slots", "50", "--source", &repository];
        site.pool(&add).expect(0);
        let openers: Vec<Background> = (0..20)
            .map(|_| site.bench.background(site.verb(&["open", &pool, "--json"])))
            .collect();
        let ran: Vec<_> = openers.into_iter().map(Background::end).collect();
        let got = ran.into_iter().map(|ran| session(&ran.expect(0).json()));
        let mut slots: Vec<u64> = got.map(|session| session.slot).collect();
        slots.sort_unstable();
        slots.dedup();
        assert_eq!(slots.len(), 20);
    }
    site.bench.audit();
}
