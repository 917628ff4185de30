use super::*;
use crate::process::census;
use crate::process::testing::alone_with;

#[test]
fn what_is_changed_staged_or_new_is_work() {
    with_git(|| {
        let mut bench = Bench::new();
        let slot = bench.cut("1");
        fs::write(slot.dir().join("a"), "changed").unwrap();
        assert_eq!(bench.work(&slot), [Kind::Changed]);
        bench.git(slot.dir(), &["add", "a"]);
        assert_eq!(bench.work(&slot), [Kind::Staged]);
        fs::remove_file(slot.dir().join("dir/b")).unwrap();
        fs::write(slot.dir().join("new \n name"), "").unwrap();
        assert_eq!(
            bench.work(&slot),
            [Kind::Staged, Kind::Changed, Kind::Untracked]
        );
        let said = bench.judge(&slot).to_string();
        assert!(
            said.contains("1 file is staged and not committed (a)"),
            "{said}"
        );
    });
}

/// S07: a configuration that hides untracked files hides nothing here, and each is named.
#[test]
fn what_is_hidden_by_configuration_is_work_all_the_same() {
    with_git(|| {
        let mut bench = Bench::new();
        for (name, value) in [
            ("status.showUntrackedFiles", "no"),
            ("diff.ignoreSubmodules", "all"),
            ("status.relativePaths", "false"),
            ("status.branch", "false"),
            ("color.ui", "always"),
        ] {
            bench.configure(name, value);
        }
        let slot = bench.cut("1");
        fs::create_dir_all(slot.dir().join("new/deep")).unwrap();
        fs::write(slot.dir().join("new/deep/file"), "").unwrap();
        let Judgement::Work(work) = bench.judge(&slot) else {
            panic!()
        };
        assert_eq!(work.len(), 1);
        assert_eq!(work[0].named, ["new/deep/file"]);
    });
}

#[test]
fn what_is_ignored_is_no_work() {
    with_git(|| {
        let mut bench = Bench::new();
        let slot = bench.cut("1");
        fs::create_dir(slot.dir().join("cache")).unwrap();
        fs::write(slot.dir().join("cache/x"), "warm").unwrap();
        fs::write(slot.dir().join("dir/x.o"), "built").unwrap();
        bench.assert_sound(&slot);
    });
}

#[test]
fn what_git_was_told_not_to_look_at_is_work_if_it_is_changed() {
    with_git(|| {
        let mut bench = Bench::new();
        let slot = bench.cut("1");
        bench.git(slot.dir(), &["update-index", "--assume-unchanged", "a"]);
        bench.git(slot.dir(), &["update-index", "--skip-worktree", "dir/b"]);
        bench.assert_sound(&slot);
        for name in ["a", "dir/b"] {
            let contents = fs::read(slot.dir().join(name)).unwrap();
            fs::write(slot.dir().join(name), "changed").unwrap();
            assert_eq!(bench.work(&slot), [Kind::Hidden]);
            fs::write(slot.dir().join(name), contents).unwrap();
            bench.assert_sound(&slot);
        }
    });
}

/// S02: commits on a detached HEAD are kept, though the tree is clean.
#[test]
fn commits_that_only_the_slot_has_are_work() {
    with_git(|| {
        let mut bench = Bench::new();
        let slot = bench.cut("1");
        let commit = bench.commit(slot.dir(), "only here");
        let Judgement::Work(work) = bench.judge(&slot) else {
            panic!()
        };
        assert_eq!(work[0].kind, Kind::Commits);
        assert_eq!(work[0].named, [format!("{commit} only here")]);
        // Neither a stash on top of it nor a ref that goes with the slot keeps it.
        fs::write(slot.dir().join("a"), "put aside").unwrap();
        bench.git(slot.dir(), &["stash", "-q"]);
        bench.git(slot.dir(), &["update-ref", "refs/worktree/mine", "HEAD"]);
        assert_eq!(bench.work(&slot), [Kind::Commits]);
        bench.git(slot.dir(), &["checkout", "-q", "--detach", "main"]);
        assert_eq!(bench.work(&slot), [Kind::Commits]);
        for keeper in [
            "refs/heads/kept",
            "refs/tags/kept",
            "refs/remotes/origin/kept",
        ] {
            bench.git(&bench.source(), &["update-ref", keeper, &commit]);
            bench.assert_sound(&slot);
            bench.git(&bench.source(), &["update-ref", "-d", keeper]);
        }
    });
}

/// Branches and stashes are the repository's: they are there when the slot is not.
#[test]
fn branches_and_stashes_outlive_the_slot() {
    with_git(|| {
        let mut bench = Bench::new();
        let slot = bench.cut("1");
        bench.git(slot.dir(), &["checkout", "-q", "-b", "topic"]);
        fs::write(slot.dir().join("a"), "put aside").unwrap();
        bench.git(slot.dir(), &["stash", "-q"]);
        let commit = bench.commit(slot.dir(), "on a branch");
        bench.assert_sound(&slot);
        let trash = bench.trash();
        slot.remove(&mut bench.hands(), &trash, false).unwrap();
        erase(&trash).unwrap();
        let source = bench.source();
        assert_eq!(bench.git(&source, &["rev-parse", "topic"]), commit);
        bench.git(&source, &["stash", "pop", "-q"]);
        assert_eq!(fs::read(source.join("a")).unwrap(), b"put aside");
    });
}

#[test]
fn what_is_under_way_is_work() {
    with_git(|| {
        let mut bench = Bench::new();
        let source = bench.source();
        bench.git(&source, &["checkout", "-q", "-b", "other", "main~1"]);
        bench.write("source/a", "a\nother\n");
        bench.commit(&source, "other");
        bench.git(&source, &["checkout", "-q", "main"]);
        for (name, start, under_way) in [
            ("merge", &["merge", "other"][..], "a merge is under way"),
            ("rebase", &["rebase", "other"], "a rebase is under way"),
            (
                "pick",
                &["cherry-pick", "other"],
                "a cherry-pick is under way",
            ),
            ("revert", &["revert", "main~1"], "a revert is under way"),
            (
                "bisect",
                &["bisect", "start", "main", "main~1"],
                "a bisect is under way",
            ),
        ] {
            let slot = bench.cut(name);
            bench.try_git(slot.dir(), start);
            let said = bench.judge(&slot).to_string();
            assert!(said.contains(under_way), "{said}");
            assert!(bench.work(&slot).contains(&Kind::UnderWay));
            slot.discard(&mut bench.hands()).unwrap();
            bench.assert_sound(&slot);
        }
    });
}

#[test]
fn a_branch_without_a_commit_is_no_work_by_itself() {
    with_git(|| {
        let mut bench = Bench::new();
        let slot = bench.cut("1");
        bench.git(slot.dir(), &["switch", "-q", "--orphan", "new"]);
        bench.assert_sound(&slot);
        fs::write(slot.dir().join("new"), "").unwrap();
        bench.git(slot.dir(), &["add", "new"]);
        assert_eq!(bench.work(&slot), [Kind::Staged]);
        bench.git(slot.dir(), &["rm", "-qf", "new"]);
        bench.reset(&slot).unwrap();
        assert_eq!(bench.head(slot.dir()), bench.head(&bench.source()));
    });
}

/// A submodule's repository is the worktree's own, branches and all, and goes with it.
#[test]
fn what_only_a_submodule_has_is_work() {
    with_git(|| {
        let mut bench = Bench::new();
        let (library, source) = (bench.path("library"), bench.source());
        bench.init(&library);
        bench.write("library/l", "l\n");
        bench.commit(&library, "library");
        let url = library.to_str().unwrap();
        bench.git(&source, &["submodule", "--quiet", "add", url, "sub"]);
        bench.commit(&source, "with a submodule");
        let slot = bench.cut("1");
        bench.assert_sound(&slot);
        bench.git(slot.dir(), &["submodule", "--quiet", "update", "--init"]);
        bench.assert_sound(&slot);

        let sub = slot.dir().join("sub");
        fs::write(sub.join("new"), "").unwrap();
        assert_eq!(bench.work(&slot), [Kind::Changed]);
        bench.git(&sub, &["checkout", "-q", "-b", "topic"]);
        bench.commit(&sub, "only here");
        assert_eq!(bench.work(&slot), [Kind::Changed, Kind::Submodule]);
        // Also when the commit that leads to it is on a branch.
        bench.git(slot.dir(), &["checkout", "-q", "-b", "topic"]);
        bench.commit(slot.dir(), "leads to it");
        assert_eq!(bench.work(&slot), [Kind::Submodule]);

        let said = slot.discard(&mut bench.hands()).unwrap();
        assert!(
            said[0].contains("1 commit of the submodule sub is on no remote"),
            "{said:?}"
        );
        bench.assert_sound(&slot);
        // It can be filled again, and then follows what is recorded.
        bench.git(slot.dir(), &["submodule", "--quiet", "update", "--init"]);
        bench.write("library/l", "later\n");
        bench.commit(&library, "later");
        bench.git(&source, &["submodule", "--quiet", "update", "--remote"]);
        bench.commit(&source, "follows");
        // From a directory, git fetches only where that was allowed by hand.
        bench.git(&sub, &["fetch", "-q"]);
        bench.reset(&slot).unwrap();
        assert_eq!(fs::read(sub.join("l")).unwrap(), b"later\n");
    });
}

/// S43, S52: a directory that is not there is missed, and nothing is done elsewhere instead.
#[test]
fn one_that_is_missing_is_broken() {
    with_git(|| {
        let mut bench = Bench::new();
        let slot = bench.cut("1");
        fs::rename(slot.dir(), bench.path("away")).unwrap();
        assert!(bench.broken(&slot).ends_with("slots/1 is missing"));
        assert!(bench.reset(&slot).is_err());
        assert!(slot.discard(&mut bench.hands()).is_err());
        fs::rename(bench.path("away"), slot.dir()).unwrap();
        bench.assert_sound(&slot);
        let nothing = Workspace::new(Source::Nothing, bench.path("slots/2"));
        assert!(bench.broken(&nothing).ends_with("is missing"));
    });
}

/// S14: what else stands at the path is told apart and left alone.
#[test]
fn somebody_elses_is_broken() {
    with_git(|| {
        let mut bench = Bench::new();
        let slot = bench.cut("1");
        let away = bench.path("away");
        fs::rename(slot.dir(), &away).unwrap();

        bench.init(slot.dir());
        assert!(bench.broken(&slot).contains("a repository of its own"));
        erase(slot.dir()).unwrap();

        std::os::unix::fs::symlink(&away, slot.dir()).unwrap();
        assert!(bench.broken(&slot).contains("a symbolic link stands at"));
        fs::remove_file(slot.dir()).unwrap();

        fs::write(slot.dir(), "").unwrap();
        assert!(bench.broken(&slot).contains("is not a directory"));
        fs::remove_file(slot.dir()).unwrap();

        // A worktree of another repository, and one of the same that is another slot's.
        let other = bench.path("other");
        bench.git(
            &bench.source(),
            &["clone", "-q", ".", other.to_str().unwrap()],
        );
        let path = slot.dir().to_str().unwrap();
        bench.git(&other, &["worktree", "add", "-q", "--detach", path]);
        assert!(
            bench
                .broken(&slot)
                .contains("belongs to another repository")
        );
        erase(slot.dir()).unwrap();
        let neighbour = bench.cut("2");
        fs::rename(neighbour.dir(), slot.dir()).unwrap();
        assert!(bench.broken(&slot).contains("for another place"));
        fs::rename(slot.dir(), neighbour.dir()).unwrap();
        bench.assert_sound(&neighbour);
    });
}

/// S31: one that is damaged is never sound.
#[test]
fn one_that_is_damaged_is_broken() {
    with_git(|| {
        let mut bench = Bench::new();
        for (name, damaged) in [("1", "HEAD"), ("2", "index"), ("3", "commondir")] {
            let slot = bench.cut(name);
            let entry = bench.path("source/.git/worktrees").join(name);
            fs::write(entry.join(damaged), "rubbish").unwrap();
            let why = bench.broken(&slot);
            assert!(why.contains("fails in it"), "{why}");
            assert!(matches!(bench.reset(&slot), Err(Trouble::Kept(_))));
        }
        let slot = bench.cut("4");
        fs::remove_file(slot.dir().join(".git")).unwrap();
        assert!(bench.broken(&slot).contains("the .git of"));
        // S13: somebody has had its registration removed.
        let slot = bench.cut("5");
        erase(&bench.path("source/.git/worktrees/5")).unwrap();
        assert!(bench.broken(&slot).contains("is not registered any more"));
        assert!(slot.dir().join("a").exists());
    });
}

/// A repository that is away is no fault of its slots.
#[test]
fn one_whose_repository_is_away_is_not_judged() {
    with_git(|| {
        let mut bench = Bench::new();
        let slot = bench.cut("1");
        fs::rename(bench.source(), bench.path("away")).unwrap();
        let judged = bench.judge(&slot);
        assert!(matches!(judged, Judgement::Unclear(_)), "{judged:?}");
        fs::rename(bench.path("away"), bench.source()).unwrap();
        bench.assert_sound(&slot);
    });
}

/// S39: a repository or a store that was moved is followed when that is asked for, and a copy is not taken for the original.
#[test]
fn what_was_moved_is_mended() {
    with_git(|| {
        let mut bench = Bench::new();
        let slot = bench.cut("1");
        fs::write(slot.dir().join("new"), "").unwrap();
        fs::rename(bench.source(), bench.path("moved")).unwrap();
        let repository = bench.path("moved");
        let slot = Workspace::new(Source::Git { repository }, slot.dir().to_owned());
        assert!(
            bench
                .broken(&slot)
                .contains("belongs to another repository")
        );
        assert!(matches!(
            slot.mend(&mut bench.hands()),
            Ok(Judgement::Work(_))
        ));
        fs::rename(bench.path("moved"), bench.source()).unwrap();
        let slot = bench.slot("1");
        slot.mend(&mut bench.hands()).unwrap();
        assert_eq!(bench.work(&slot), [Kind::Untracked]);

        let moved = bench.slot("2");
        fs::rename(slot.dir(), moved.dir()).unwrap();
        assert!(bench.broken(&moved).contains("for another place"));
        moved.mend(&mut bench.hands()).unwrap();
        assert_eq!(bench.work(&moved), [Kind::Untracked]);

        let copy = bench.slot("3");
        let status = std::process::Command::new("cp")
            .arg("-a")
            .args([moved.dir(), copy.dir()])
            .status();
        assert!(status.unwrap().success());
        assert!(matches!(
            copy.mend(&mut bench.hands()),
            Ok(Judgement::Broken(_))
        ));
        assert_eq!(bench.work(&moved), [Kind::Untracked]);
    });
}

/// A git that hangs is ended with all that it started.
#[test]
fn a_judgement_takes_a_bounded_time() {
    with_git(|| {
        let mut bench = Bench::new();
        bench.write("source/.gitattributes", "a filter=test\n");
        bench.commit(&bench.source(), "filtered");
        let slot = bench.cut("1");
        bench.configure("filter.test.clean", "setsid sleep 600");
        fs::write(slot.dir().join("a"), "a\nB\n").unwrap();
        bench.within = Duration::from_millis(500);
        let Judgement::Unclear(why) = bench.judge(&slot) else {
            panic!()
        };
        assert_eq!(why, "git status took longer than 500ms");
        assert_eq!(census(&[slot.dir()]).inside, []);
    });
}

#[test]
fn a_machine_without_git_is_told_of() {
    alone_with(&[("PATH", "/outlive-no-programs")], || {
        let dir = tempfile::tempdir().unwrap();
        fs::create_dir(dir.path().join("slot")).unwrap();
        let repository = dir.path().to_owned();
        let slot = Workspace::new(Source::Git { repository }, dir.path().join("slot"));
        let mut minder = Minder::fork().unwrap();
        let mut hands = Hands {
            minder: &mut minder,
            held: None,
            stop: None,
            within: Duration::from_secs(60),
            grace: Duration::from_secs(10),
        };
        let Judgement::Unclear(why) = slot.judge(&mut hands) else {
            panic!()
        };
        assert_eq!(why, "cannot run git rev-parse: command not found: git");
    });
}

/// S15: run from a hook or an alias of git, nothing is done to that repository.
#[test]
fn what_git_leaves_in_the_environment_is_not_followed() {
    let dir = tempfile::tempdir().unwrap();
    let victim = dir.path().join("victim");
    let git = victim.join(".git");
    let init = |arguments: &[&str]| {
        let mut command = std::process::Command::new("git");
        let command = command
            .args(arguments)
            .current_dir(dir.path())
            .envs(NO_HOME);
        assert!(command.status().unwrap().success());
    };
    init(&["init", "-q", "victim"]);
    fs::write(victim.join("file"), "").unwrap();
    init(&["-C", "victim", "add", "file"]);
    let before = everything(&victim);
    let path = |path: PathBuf| path.to_str().unwrap().to_owned();
    let variables = [
        ("GIT_DIR", path(git.clone())),
        ("GIT_WORK_TREE", path(victim.clone())),
        ("GIT_INDEX_FILE", path(git.join("index"))),
        ("GIT_OBJECT_DIRECTORY", path(git.join("objects"))),
        ("GIT_COMMON_DIR", path(git.clone())),
        ("GIT_CONFIG_PARAMETERS", "'core.bare'='true'".to_owned()),
    ];
    let borrowed: Vec<(&str, &str)> = variables
        .iter()
        .map(|(name, value)| (*name, value.as_str()))
        .chain(NO_HOME)
        .collect();
    alone_with(&borrowed, || {
        let mut bench = Bench::new();
        let slot = bench.cut("1");
        bench.assert_sound(&slot);
        let (done, _) = bench.chore("git checkout -q -b topic", |hands, chore| {
            slot.reset(hands, Some(chore))
        });
        done.unwrap();
        slot.discard(&mut bench.hands()).unwrap();
        let trash = bench.trash();
        slot.remove(&mut bench.hands(), &trash, false).unwrap();
        let branches = bench.git(&bench.source(), &["branch", "--list", "topic"]);
        assert_eq!(branches.trim(), "topic");
    });
    assert_eq!(everything(&victim), before);
}
