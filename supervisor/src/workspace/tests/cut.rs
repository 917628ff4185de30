use std::os::unix::ffi::OsStrExt;

use rustix::process::{WaitOptions, waitpid};

use super::*;
use crate::process::census;
use crate::process::testing::fork_off;

#[test]
fn a_worktree_is_cut_at_the_head_of_its_repository() {
    with_git(|| {
        let mut bench = Bench::new();
        let slot = bench.cut("1");
        assert_eq!(bench.head(slot.dir()), bench.head(&bench.source()));
        let branch = bench.git(slot.dir(), &["branch", "--show-current"]);
        assert_eq!(branch, "");
        assert_eq!(fs::read(slot.dir().join("a")).unwrap(), b"a\nA\n");
        bench.assert_sound(&slot);
        // Nobody's `git worktree prune` takes it, and who looks sees whose it is.
        let locked = bench.git(&bench.source(), &["worktree", "list", "--porcelain"]);
        let reason = format!("locked a slot of outlive: {}", slot.dir().display());
        assert!(locked.contains(&reason), "{locked}");
        assert_eq!(fs::read_dir(bench.path("slots")).unwrap().count(), 1);
    });
}

#[test]
fn a_bare_repository_and_a_worktree_are_sources_too() {
    with_git(|| {
        let mut bench = Bench::new();
        let source = bench.source();
        let bare = bench.path("bare.git");
        bench.git(
            &source,
            &["clone", "-q", "--bare", ".", bare.to_str().unwrap()],
        );
        bench.git(
            &source,
            &["worktree", "add", "-q", "-b", "other", "../other"],
        );
        bench.write("other/new", "new\n");
        let other = bench.path("other");
        let commit = bench.commit(&other, "third");
        for (name, repository) in [("bare", bare), ("other", other)] {
            let slot = Workspace::new(Source::Git { repository }, bench.path("slots").join(name));
            slot.cut(&mut bench.hands(), None).unwrap();
            bench.assert_sound(&slot);
        }
        assert_eq!(bench.head(&bench.path("slots/other")), commit);
    });
}

/// Hooks of the repository's owner are for what he does himself: one could ask, or take as long as it likes.
#[test]
fn hooks_do_not_run_when_a_slot_is_cut_or_reset() {
    with_git(|| {
        let mut bench = Bench::new();
        let hook = bench.path("source/.git/hooks/post-checkout");
        bench.write(
            "source/.git/hooks/post-checkout",
            "#!/bin/sh\ntouch \"$PWD/hooked\"\n",
        );
        fs::set_permissions(&hook, fs::Permissions::from_mode(0o755)).unwrap();
        let slot = bench.cut("1");
        bench.reset(&slot).unwrap();
        assert!(!slot.dir().join("hooked").exists());
        bench.git(slot.dir(), &["checkout", "-q", "--detach", "main~1"]);
        assert!(slot.dir().join("hooked").exists());
    });
}

#[test]
fn a_slot_may_have_any_name() {
    with_git(|| {
        let mut bench = Bench::new();
        for name in [
            &b"with space"[..],
            b"-f",
            b"new\nline",
            b"\xff\xfe",
            b"*",
            b"'\"$(x)",
        ] {
            let slot = bench.cut(OsStr::from_bytes(name));
            bench.assert_sound(&slot);
            bench.reset(&slot).unwrap();
            let trash = bench.trash();
            slot.remove(&mut bench.hands(), &trash, false).unwrap();
            erase(&trash).unwrap();
        }
        assert_eq!(bench.registered(), [""; 0]);
    });
}

/// S14: nothing is cut over what is there.
#[test]
fn what_is_in_the_way_stays() {
    with_git(|| {
        let mut bench = Bench::new();
        let slot = bench.slot("1");
        bench.write("slots/1/precious", "precious");
        assert!(slot.cut(&mut bench.hands(), None).is_err());
        assert!(slot.dir().join("precious").exists());
        let link = bench.slot("2");
        std::os::unix::fs::symlink(bench.source(), link.dir()).unwrap();
        assert!(link.cut(&mut bench.hands(), None).is_err());
        assert!(link.dir().join("a").exists());
        // S52: one that is only absent keeps its registration.
        let absent = bench.cut("3");
        fs::rename(absent.dir(), bench.path("away")).unwrap();
        assert!(absent.cut(&mut bench.hands(), None).is_err());
        fs::rename(bench.path("away"), absent.dir()).unwrap();
        bench.assert_sound(&absent);
    });
}

/// A program that git runs for every file that it writes.
fn smudge(bench: &Bench, script: &str) {
    bench.write("smudge", script);
    bench.configure(
        "filter.test.smudge",
        &format!("sh '{}'", bench.path("smudge").display()),
    );
    bench.configure("filter.test.clean", "cat");
    bench.configure("filter.test.required", "true");
    bench.write("source/.gitattributes", "a filter=test\n");
    bench.commit(&bench.source(), "filtered");
}

/// S37: what fails half way leaves nothing.
#[test]
fn a_cut_that_fails_leaves_nothing() {
    with_git(|| {
        let mut bench = Bench::new();
        let slot = bench.slot("1");
        smudge(&bench, "exit 1");
        let trouble = slot.cut(&mut bench.hands(), None).unwrap_err();
        assert!(
            trouble.to_string().contains("git worktree add failed"),
            "{trouble}"
        );
        smudge(&bench, "sleep 600");
        bench.within = Duration::from_millis(500);
        let trouble = slot.cut(&mut bench.hands(), None).unwrap_err();
        assert!(matches!(trouble, Trouble::TimedOut { .. }), "{trouble}");
        assert_eq!(fs::read_dir(bench.path("slots")).unwrap().count(), 0);
        assert_eq!(bench.registered(), [""; 0]);
        smudge(&bench, "cat");
        bench.within = Duration::from_secs(60);
        slot.cut(&mut bench.hands(), None).unwrap();
        bench.assert_sound(&slot);
    });
}

/// S37: what is killed half way, git, its minder and whoever asked for it, is cleared away by the next cut, or by a removal.
#[test]
fn a_killed_cut_is_cleared_away() {
    with_git(|| {
        let mut bench = Bench::new();
        let before = bench.cut("before");
        let caller = bench.path("caller");
        // The minder is stopped first, so that it ends nobody and says nothing to its caller; then all of them are killed, git's own
        // processes from the one that was started first.
        let script = format!(
            "at=$PPID
            until [ \"$(cat /proc/$at/comm)\" = 'outlive minder' ]; do
                [ $at -gt 1 ] || exit 1
                git=\"$at $git\"
                at=$(cut -d' ' -f4 /proc/$at/stat)
            done
            kill -STOP $at
            kill -9 $(cat '{}') $at $git",
            caller.display()
        );
        for again_by_removal in [false, true] {
            smudge(&bench, &script);
            let slot = bench.slot("1");
            let pid = fork_off(|| {
                fs::write(&caller, std::process::id().to_string()).unwrap();
                let mut minder = Minder::fork().unwrap();
                let mut hands = Hands {
                    minder: &mut minder,
                    held: None,
                    stop: None,
                    within: Duration::from_secs(60),
                    grace: Duration::from_secs(10),
                };
                let _ = slot.cut(&mut hands, None);
            });
            let (_, status) = waitpid(Some(pid), WaitOptions::empty()).unwrap().unwrap();
            assert_eq!(status.terminating_signal(), Some(9));
            crate::process::testing::until("git is gone", || {
                census(&[slot.dir()]).inside.is_empty()
            });
            assert_eq!(bench.registered().len(), 2);
            let unfinished = Judgement::Unfinished(Unfinished::Cut);
            assert_eq!(bench.judge(&slot), unfinished);
            smudge(&bench, "cat");
            if again_by_removal {
                let trash = bench.trash();
                slot.remove(&mut bench.hands(), &trash, false).unwrap();
                assert_eq!(bench.registered(), ["before"]);
            } else {
                slot.cut(&mut bench.hands(), None).unwrap();
                bench.assert_sound(&slot);
                let trash = bench.trash();
                slot.remove(&mut bench.hands(), &trash, false).unwrap();
                erase(&trash).unwrap();
            }
        }
        bench.assert_sound(&before);
    });
}

#[test]
fn a_slot_is_prepared_in_place() {
    with_git(|| {
        let mut bench = Bench::new();
        let slot = bench.slot("1");
        let script = "pwd; mkdir cache; echo warm >cache/x; git config gc.auto";
        let (done, log) = bench.chore(script, |hands, chore| slot.cut(hands, Some(chore)));
        done.unwrap();
        // S16: git's own maintenance does not go on behind a command.
        assert_eq!(log, format!("{}\n0\n", slot.dir().display()));
        bench.assert_sound(&slot);

        let nothing = Workspace::new(Source::Nothing, bench.path("slots/2"));
        let (done, _) = bench.chore("touch made", |hands, chore| nothing.cut(hands, Some(chore)));
        done.unwrap();
        assert!(nothing.dir().join("made").exists());
        bench.assert_sound(&nothing);
    });
}

#[test]
fn a_slot_that_cannot_be_prepared_is_not_made() {
    with_git(|| {
        let mut bench = Bench::new();
        for source in [
            Source::Git {
                repository: bench.source(),
            },
            Source::Nothing,
        ] {
            let slot = Workspace::new(source, bench.path("slots/1"));
            let (done, log) = bench.chore("touch left; echo why; exit 3", |hands, chore| {
                slot.cut(hands, Some(chore))
            });
            let trouble = done.unwrap_err().to_string();
            assert_eq!(trouble, "the prepare command failed with exit status 3");
            assert!(log.ends_with("why\n"));
        }
        // It would hold work before anybody had it.
        let slot = bench.slot("1");
        let (done, _) = bench.chore("touch left", |hands, chore| slot.cut(hands, Some(chore)));
        assert!(matches!(done, Err(Trouble::Kept(Judgement::Work(_)))));
        assert_eq!(fs::read_dir(bench.path("slots")).unwrap().count(), 0);
        assert_eq!(bench.registered(), [""; 0]);
    });
}

#[test]
fn a_source_that_is_none_is_said_to_be_none() {
    with_git(|| {
        let mut bench = Bench::new();
        let empty = bench.path("empty");
        bench.init(&empty);
        let plain = bench.path("slots");
        for (repository, why) in [
            (empty, "has no commit"),
            (plain, "not a git repository"),
            (bench.path("missing"), "is not there"),
        ] {
            let slot = Workspace::new(Source::Git { repository }, bench.path("slots/1"));
            let trouble = slot.cut(&mut bench.hands(), None).unwrap_err().to_string();
            assert!(trouble.contains(why), "{trouble}");
        }
        assert_eq!(fs::read_dir(bench.path("slots")).unwrap().count(), 0);
    });
}
