use std::os::unix::fs::symlink;

use super::*;

/// The tree of a slot that was cut just now.
fn fresh(bench: &mut Bench) -> BTreeMap<PathBuf, (u32, Vec<u8>)> {
    let slot = bench.cut("fresh");
    let fresh = tree(slot.dir());
    let trash = bench.trash();
    slot.remove(&mut bench.hands(), &trash, false).unwrap();
    erase(&trash).unwrap();
    fresh
}

/// S39: after a reset the tree is that of a slot just cut, apart from what is ignored.
#[test]
fn a_reset_slot_is_as_one_just_cut() {
    with_git(|| {
        let mut bench = Bench::new();
        symlink("a", bench.path("source/link")).unwrap();
        bench.write("source/run", "#!/bin/sh\n");
        fs::set_permissions(bench.path("source/run"), fs::Permissions::from_mode(0o755)).unwrap();
        bench.commit(&bench.source(), "kinds");
        let slot = bench.cut("1");
        let dir = slot.dir();
        // On a branch, with all of it committed: nothing that would be lost.
        bench.git(dir, &["checkout", "-q", "-b", "topic"]);
        fs::remove_file(dir.join("a")).unwrap();
        fs::create_dir(dir.join("a")).unwrap();
        fs::write(dir.join("a/file"), "").unwrap();
        fs::remove_file(dir.join("link")).unwrap();
        fs::write(dir.join("link"), "no link").unwrap();
        fs::remove_file(dir.join("dir/b")).unwrap();
        fs::remove_dir(dir.join("dir")).unwrap();
        fs::write(dir.join("dir"), "no directory").unwrap();
        fs::write(dir.join("A"), "").unwrap();
        fs::write(dir.join("Run"), "").unwrap();
        bench.commit(dir, "everything else");
        // What git has no eyes for.
        fs::create_dir_all(dir.join("empty/deep")).unwrap();
        fs::create_dir(dir.join("cache")).unwrap();
        fs::write(dir.join("cache/x"), "warm").unwrap();
        fs::write(dir.join("x.o"), "built").unwrap();
        bench.git(dir, &["update-index", "--assume-unchanged", "Run"]);
        bench.git(dir, &["update-index", "--skip-worktree", "A"]);
        fs::remove_file(dir.join("A")).unwrap();
        for (name, mode) in [
            ("run", 0o555),
            ("a/file", 0o444),
            ("a", 0o555),
            ("empty", 0o555),
        ] {
            fs::set_permissions(dir.join(name), fs::Permissions::from_mode(mode)).unwrap();
        }
        bench.git(dir, &["update-ref", "refs/worktree/mine", "HEAD"]);
        bench.assert_sound(&slot);

        let fresh = fresh(&mut bench);
        bench.reset(&slot).unwrap();
        assert_eq!(tree(dir), fresh);
        assert_eq!(bench.head(dir), bench.head(&bench.source()));
        assert_eq!(bench.git(dir, &["branch", "--show-current"]), "");
        assert_eq!(bench.git(dir, &["for-each-ref", "refs/worktree"]), "");
        assert_eq!(fs::read(dir.join("cache/x")).unwrap(), b"warm");
        assert!(dir.join("x.o").exists());
        // The branch is free again.
        bench.git(&bench.source(), &["checkout", "-q", "topic"]);
        assert_eq!(fs::read_dir(bench.path("slots")).unwrap().count(), 1);
    });
}

/// What was not tracked when it was ignored, and is tracked now, is the repository's.
#[test]
fn a_reset_follows_the_repository() {
    with_git(|| {
        let mut bench = Bench::new();
        let slot = bench.cut("1");
        let dir = slot.dir();
        fs::create_dir_all(dir.join("cache/deep")).unwrap();
        fs::write(dir.join("cache/deep/x"), "warm").unwrap();
        fs::write(dir.join("x.o"), "built").unwrap();
        fs::create_dir(dir.join("y.o")).unwrap();
        fs::write(dir.join("y.o/built"), "built").unwrap();
        let source = bench.source();
        bench.write("source/x.o", "tracked\n");
        bench.write("source/y.o", "tracked\n");
        bench.write("source/cache/deep/y", "tracked\n");
        bench.git(&source, &["add", "-f", "x.o", "y.o", "cache/deep/y"]);
        bench.git(&source, &["rm", "-q", "dir/b"]);
        bench.commit(&source, "third");
        let fresh = fresh(&mut bench);
        bench.reset(&slot).unwrap();
        assert_eq!(tree(dir), fresh);
        assert_eq!(fs::read(dir.join("x.o")).unwrap(), b"tracked\n");
        assert_eq!(fs::read(dir.join("y.o")).unwrap(), b"tracked\n");
        assert_eq!(fs::read(dir.join("cache/deep/x")).unwrap(), b"warm");
        bench.assert_sound(&slot);
    });
}

/// S02, S07, S08: nothing but a discard destroys work.
#[test]
fn no_verb_destroys_work() {
    with_git(|| {
        let mut bench = Bench::new();
        let slot = bench.cut("1");
        let dir = slot.dir();
        fs::write(dir.join("a"), "changed").unwrap();
        fs::write(dir.join("new"), "new").unwrap();
        let before = everything(&bench.path("slots"));
        let trash = bench.trash();
        assert!(matches!(bench.reset(&slot), Err(Trouble::Kept(_))));
        let (done, _) = bench.chore("git clean -fdx", |hands, chore| {
            slot.reset(hands, Some(chore))
        });
        assert!(matches!(done, Err(Trouble::Kept(_))));
        assert!(slot.cut(&mut bench.hands(), None).is_err());
        assert!(slot.mend(&mut bench.hands()).is_ok());
        let kept = slot.remove(&mut bench.hands(), &trash, false);
        assert!(matches!(kept, Err(Trouble::Kept(Judgement::Work(_)))));
        // Also where it is broken beside.
        let entry = bench.path("source/.git/worktrees/1");
        fs::rename(&entry, bench.path("entry")).unwrap();
        assert!(bench.reset(&slot).is_err());
        assert!(slot.cut(&mut bench.hands(), None).is_err());
        assert!(slot.mend(&mut bench.hands()).is_err());
        assert!(slot.discard(&mut bench.hands()).is_err());
        assert!(slot.remove(&mut bench.hands(), &trash, false).is_err());
        fs::create_dir_all(entry.parent().unwrap()).unwrap();
        fs::rename(bench.path("entry"), &entry).unwrap();
        assert_eq!(everything(&bench.path("slots")), before);
        assert!(!trash.exists());
    });
}

/// What was interrupted goes on, though it looks like work by then.
#[test]
fn an_interrupted_reset_goes_on() {
    with_git(|| {
        let mut bench = Bench::new();
        let slot = bench.cut("1");
        slot.begin(Unfinished::Reset).unwrap();
        fs::write(slot.dir().join("a"), "half").unwrap();
        bench.init(&slot.dir().join("nested"));
        let unfinished = Judgement::Unfinished(Unfinished::Reset);
        assert_eq!(bench.judge(&slot), unfinished);
        assert!(slot.cut(&mut bench.hands(), None).is_err());
        let fresh = fresh(&mut bench);
        bench.reset(&slot).unwrap();
        assert_eq!(tree(slot.dir()), fresh);
        bench.assert_sound(&slot);
    });
}

#[test]
fn the_pools_own_reset_comes_last() {
    with_git(|| {
        let mut bench = Bench::new();
        let slot = bench.cut("1");
        fs::write(slot.dir().join("x.o"), "built").unwrap();
        bench.git(slot.dir(), &["checkout", "-q", "-b", "topic"]);
        let script = "git symbolic-ref -q HEAD || echo detached; git clean -qfdx; ls";
        let (done, log) = bench.chore(script, |hands, chore| slot.reset(hands, Some(chore)));
        assert!(done.unwrap().unwrap().succeeded());
        assert_eq!(log, "detached\na\ndir\n");
        bench.assert_sound(&slot);
    });
}

#[test]
fn a_reset_whose_command_fails_is_not_finished() {
    with_git(|| {
        let mut bench = Bench::new();
        let slot = bench.cut("1");
        for script in ["echo why; exit 3", "touch left"] {
            let (done, _) = bench.chore(script, |hands, chore| slot.reset(hands, Some(chore)));
            assert!(done.is_err());
            let unfinished = Judgement::Unfinished(Unfinished::Reset);
            assert_eq!(bench.judge(&slot), unfinished);
            bench.reset(&slot).unwrap();
            bench.assert_sound(&slot);
        }
        let nothing = Workspace::new(Source::Nothing, bench.path("slots/2"));
        nothing.cut(&mut bench.hands(), None).unwrap();
        let (done, _) = bench.chore("exit 3", |hands, chore| nothing.reset(hands, Some(chore)));
        assert!(done.is_err());
        let (done, _) = bench.chore("touch new", |hands, chore| {
            nothing.reset(hands, Some(chore))
        });
        done.unwrap();
        bench.assert_sound(&nothing);
        assert!(nothing.dir().join("new").exists());
    });
}

/// S39: a part of the tree, or a configuration, that a session has chosen is not the next one's.
#[test]
fn settings_of_a_session_do_not_stay() {
    with_git(|| {
        let mut bench = Bench::new();
        let slot = bench.cut("1");
        let dir = slot.dir();
        bench.git(dir, &["sparse-checkout", "set", "--no-cone", "/a"]);
        bench.git(dir, &["config", "--worktree", "core.autocrlf", "true"]);
        assert!(!dir.join("dir/b").exists());
        bench.assert_sound(&slot);
        let fresh = fresh(&mut bench);
        assert!(fresh.contains_key(Path::new("dir/b")));
        bench.reset(&slot).unwrap();
        assert_eq!(tree(dir), fresh);
        assert_eq!(
            bench.git(dir, &["config", "--default", "no", "core.autocrlf"]),
            "no"
        );
    });
}

/// Of a repository that is checked out in part, a slot has that part.
#[test]
fn a_part_stays_a_part() {
    with_git(|| {
        let mut bench = Bench::new();
        let source = bench.source();
        bench.git(
            &source,
            &["sparse-checkout", "set", "--no-cone", "/a", "/.gitignore"],
        );
        let slot = bench.cut("1");
        let dir = slot.dir();
        assert!(!dir.join("dir/b").exists());
        let fresh = fresh(&mut bench);
        bench.reset(&slot).unwrap();
        assert_eq!(tree(dir), fresh);
        bench.git(dir, &["sparse-checkout", "disable"]);
        assert!(dir.join("dir/b").exists());
        bench.assert_sound(&slot);
        bench.reset(&slot).unwrap();
        assert_eq!(tree(dir), fresh);
    });
}

/// Whoever has it written, a worktree is the same.
#[test]
fn the_mask_of_whoever_resets_is_no_matter() {
    with_git(|| {
        rustix::process::umask(rustix::fs::Mode::from_raw_mode(0o077));
        let mut bench = Bench::new();
        let slot = bench.cut("1");
        let mode = |name: &str| {
            fs::metadata(slot.dir().join(name))
                .unwrap()
                .permissions()
                .mode()
        };
        assert_eq!(mode("a") & 0o777, 0o644);
        assert_eq!(mode("dir") & 0o777, 0o755);
    });
}

/// S02, the other way round: what a slot was cut at is not its own work, also when the repository has it on no branch and has moved on.
#[test]
fn what_a_slot_was_cut_at_is_not_its_work() {
    with_git(|| {
        let mut bench = Bench::new();
        let source = bench.source();
        bench.git(&source, &["checkout", "-q", "--detach"]);
        bench.commit(&source, "on no branch");
        let (one, two) = (bench.cut("1"), bench.cut("2"));
        bench.assert_sound(&one);
        bench.commit(&source, "on no branch either");
        bench.reset(&one).unwrap();
        bench.git(&source, &["checkout", "-q", "main"]);
        bench.assert_sound(&one);
        bench.assert_sound(&two);
        bench.commit(two.dir(), "its own");
        let Judgement::Work(work) = bench.judge(&two) else {
            panic!()
        };
        assert_eq!(work[0].named.len(), 1);
        bench.reset(&one).unwrap();
        assert_eq!(bench.head(one.dir()), bench.head(&source));
    });
}
