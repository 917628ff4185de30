use super::*;

impl Bench {
    fn remove(&mut self, slot: &Workspace, force: bool) -> Result<Removed, Trouble> {
        let trash = self.trash();
        let removed = slot.remove(&mut self.hands(), &trash, force)?;
        if removed == Removed::ToErase {
            erase(&trash).unwrap();
        }
        assert!(!trash.exists());
        Ok(removed)
    }
}

#[test]
fn exactly_one_registration_goes() {
    with_git(|| {
        let mut bench = Bench::new();
        let source = bench.source();
        let before = everything(&source);
        let (one, two) = (bench.cut("1"), bench.cut("2"));
        bench.git(
            &source,
            &["worktree", "add", "-q", "--detach", "../by-hand"],
        );
        assert_eq!(bench.remove(&one, false).unwrap(), Removed::ToErase);
        assert!(!one.dir().exists());
        assert_eq!(bench.registered(), ["2", "by-hand"]);
        bench.assert_sound(&two);
        bench.git(&source, &["worktree", "remove", "../by-hand"]);
        bench.remove(&two, false).unwrap();
        assert_eq!(everything(&source), before);
        // Its number is free again.
        let again = bench.cut("1");
        bench.assert_sound(&again);
    });
}

/// S13: one that is only absent meanwhile is a worktree when it is back, with its index.
#[test]
fn bystanders_that_are_absent_stay_registered() {
    with_git(|| {
        let mut bench = Bench::new();
        let (two, three) = (bench.cut("2"), bench.cut("3"));
        fs::write(two.dir().join("a"), "staged").unwrap();
        bench.git(two.dir(), &["add", "a"]);
        fs::rename(two.dir(), bench.path("away")).unwrap();
        bench.remove(&three, false).unwrap();
        // Whatever somebody else does.
        bench.git(&bench.source(), &["worktree", "prune", "--expire=now"]);
        fs::rename(bench.path("away"), two.dir()).unwrap();
        assert_eq!(bench.work(&two), [Kind::Staged]);
    });
}

/// S14: what stands there instead is never taken, whatever is forced.
#[test]
fn what_stands_there_instead_is_never_taken() {
    with_git(|| {
        let mut bench = Bench::new();
        let slot = bench.cut("1");
        let away = bench.path("away");
        fs::rename(slot.dir(), &away).unwrap();
        let refuses = |bench: &mut Bench| {
            let before = everything(&bench.path("slots"));
            for force in [false, true] {
                assert!(bench.remove(&slot, force).is_err());
            }
            assert_eq!(everything(&bench.path("slots")), before);
            assert!(bench.path("away/a").exists());
        };
        let path = slot.dir().to_str().unwrap();
        bench.git(&bench.source(), &["clone", "-q", ".", path]);
        refuses(&mut bench);
        erase(slot.dir()).unwrap();
        std::os::unix::fs::symlink(&away, slot.dir()).unwrap();
        refuses(&mut bench);
        fs::remove_file(slot.dir()).unwrap();
        let neighbour = bench.cut("2");
        fs::rename(neighbour.dir(), slot.dir()).unwrap();
        refuses(&mut bench);
        fs::rename(slot.dir(), neighbour.dir()).unwrap();
        bench.assert_sound(&neighbour);
        fs::rename(&away, slot.dir()).unwrap();
        bench.assert_sound(&slot);
    });
}

/// S52: one that is missing, or locked by somebody else, stays registered unless it is forced or unlocked.
#[test]
fn one_that_is_missing_or_locked_stays_registered() {
    with_git(|| {
        let mut bench = Bench::new();
        let slot = bench.cut("1");
        let path = slot.dir().to_str().unwrap();
        let source = bench.source();
        bench.git(&source, &["worktree", "unlock", path]);
        bench.git(&source, &["worktree", "lock", "--reason", "mine", path]);
        for force in [false, true] {
            let why = bench.remove(&slot, force).unwrap_err().to_string();
            assert!(why.contains("locked by somebody else: mine"), "{why}");
        }
        fs::rename(slot.dir(), bench.path("away")).unwrap();
        assert!(bench.remove(&slot, true).is_err());
        bench.git(&source, &["worktree", "unlock", path]);
        assert!(bench.remove(&slot, false).is_err());
        assert_eq!(bench.registered(), ["1"]);
        assert_eq!(bench.remove(&slot, true).unwrap(), Removed::Nothing);
        assert_eq!(bench.registered(), [""; 0]);
        assert!(bench.path("away/a").exists());
    });
}

#[test]
fn one_that_is_broken_goes_when_it_is_forced() {
    with_git(|| {
        let mut bench = Bench::new();
        let one = bench.cut("1");
        fs::remove_file(one.dir().join(".git")).unwrap();
        assert!(bench.remove(&one, false).is_err());
        bench.remove(&one, true).unwrap();
        let two = bench.cut("2");
        erase(&bench.path("source/.git/worktrees/2")).unwrap();
        assert!(bench.remove(&two, false).is_err());
        bench.remove(&two, true).unwrap();
        let three = bench.cut("3");
        fs::write(bench.path("source/.git/worktrees/3/HEAD"), "rubbish").unwrap();
        assert!(bench.remove(&three, false).is_err());
        bench.remove(&three, true).unwrap();
        assert_eq!(bench.registered(), [""; 0]);
        assert_eq!(fs::read_dir(bench.path("slots")).unwrap().count(), 0);
    });
}

/// Killed between any two of its steps, a removal goes on when it is asked for again.
#[test]
fn an_interrupted_removal_goes_on() {
    with_git(|| {
        let mut bench = Bench::new();
        for steps in 0..4 {
            let slot = bench.cut("1");
            let entry = bench.path("source/.git/worktrees/1");
            slot.begin(Unfinished::Removal).unwrap();
            if steps >= 1 {
                fs::rename(slot.dir(), bench.trash()).unwrap();
                erase(&bench.trash()).unwrap();
            }
            if steps >= 2 {
                fs::remove_file(entry.join("gitdir")).unwrap();
                fs::remove_file(entry.join("HEAD")).unwrap();
            }
            if steps >= 3 {
                erase(&entry).unwrap();
            }
            let unfinished = Judgement::Unfinished(Unfinished::Removal);
            assert_eq!(bench.judge(&slot), unfinished);
            bench.remove(&slot, false).unwrap();
            assert_eq!(bench.registered(), [""; 0]);
            assert_eq!(fs::read_dir(bench.path("slots")).unwrap().count(), 0);
        }
    });
}

#[test]
fn anything_can_be_erased() {
    let dir = tempfile::tempdir().unwrap();
    let top = dir.path().join("top");
    let outside = dir.path().join("outside");
    fs::create_dir(&outside).unwrap();
    fs::write(outside.join("kept"), "").unwrap();
    let mut deep = top.clone();
    for _ in 0..700 {
        deep.push("d");
    }
    // Longer than a path may be, so that it is made from within.
    let script = "mkdir -p \"$1\"; cd \"$1\"; i=0; while [ $i -lt 5 ]; do mkdir -p $(printf 'long/%.0s' $(seq 300)); cd $(printf 'long/%.0s' $(seq 300)); i=$((i+1)); done; touch bottom";
    let status = std::process::Command::new("bash")
        .args(["-c", script, "bash"])
        .arg(&deep)
        .status();
    assert!(status.unwrap().success());
    fs::write(top.join("file"), "").unwrap();
    std::os::unix::fs::symlink(&outside, top.join("link")).unwrap();
    std::os::unix::fs::symlink("nowhere", top.join("dangling")).unwrap();
    let shut = top.join("shut");
    fs::create_dir_all(shut.join("in/side")).unwrap();
    fs::write(shut.join("in/file"), "").unwrap();
    fs::set_permissions(shut.join("in"), fs::Permissions::from_mode(0o500)).unwrap();
    fs::set_permissions(&shut, fs::Permissions::from_mode(0o000)).unwrap();
    erase(&top).unwrap();
    assert!(!top.exists());
    assert!(outside.join("kept").exists());
    erase(&top).unwrap();
    let link = dir.path().join("link");
    std::os::unix::fs::symlink(&outside, &link).unwrap();
    erase(&link).unwrap();
    assert!(outside.join("kept").exists());
}

/// S35: what cannot be removed is named, and everything else is gone.
#[test]
fn what_cannot_be_erased_is_named() {
    let dir = tempfile::tempdir().unwrap();
    let top = dir.path().join("top");
    fs::create_dir_all(top.join("a/b")).unwrap();
    fs::create_dir_all(top.join("z/z")).unwrap();
    let stuck = top.join("a/b/stuck");
    fs::write(&stuck, "").unwrap();
    let chattr = |flag: &str| {
        let mut command = std::process::Command::new("chattr");
        let status = command
            .arg(flag)
            .arg(&stuck)
            .stderr(std::process::Stdio::null());
        status.status().is_ok_and(|status| status.success())
    };
    if !chattr("+i") {
        // Only root may, and only on some file systems.
        return;
    }
    let failed = erase(&top);
    let rest = everything(&top).len();
    assert!(chattr("-i"));
    let why = failed.unwrap_err().to_string();
    assert!(why.contains("a/b/stuck"), "{why}");
    assert_eq!(rest, 1);
    assert!(!top.join("z").exists());
    erase(&top).unwrap();
}
