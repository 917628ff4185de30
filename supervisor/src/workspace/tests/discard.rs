use super::*;

#[test]
fn what_is_given_up_is_said() {
    with_git(|| {
        let mut bench = Bench::new();
        let slot = bench.cut("1");
        let dir = slot.dir();
        assert_eq!(slot.discard(&mut bench.hands()).unwrap(), [""; 0]);
        let commit = bench.commit(dir, "only here");
        fs::write(dir.join("dir/b"), "staged").unwrap();
        bench.git(dir, &["add", "dir/b"]);
        bench.git(dir, &["update-index", "--assume-unchanged", ".gitignore"]);
        fs::write(dir.join(".gitignore"), "").unwrap();
        fs::write(dir.join("a"), "changed").unwrap();
        fs::create_dir_all(dir.join("new/deep")).unwrap();
        fs::write(dir.join("new/deep/file"), "").unwrap();
        fs::set_permissions(dir.join("new/deep"), fs::Permissions::from_mode(0o555)).unwrap();
        bench.init(&dir.join("nested"));
        bench.write("slots/1/nested/file", "");
        bench.commit(&dir.join("nested"), "nested");
        let said = slot.discard(&mut bench.hands()).unwrap();
        assert_eq!(
            said,
            [
                "1 file is staged and not committed (dir/b)".to_owned(),
                "1 file is changed (a)".to_owned(),
                "2 files are neither tracked nor ignored (nested/, new/deep/file)".to_owned(),
                "1 file is changed behind git's back (assume-unchanged or skip-worktree) (.gitignore)"
                    .to_owned(),
                format!("1 commit is on no branch, tag or remote branch ({commit} only here)"),
            ]
        );
        bench.assert_sound(&slot);
        let fresh = bench.cut("2");
        assert_eq!(tree(dir), tree(fresh.dir()));
        // By its hash it can still be had.
        bench.git(&bench.source(), &["branch", "again", &commit]);
    });
}

/// What a rebase has put aside is not given up with it.
#[test]
fn what_was_put_aside_is_in_the_stash() {
    with_git(|| {
        let mut bench = Bench::new();
        let source = bench.source();
        bench.git(&source, &["checkout", "-q", "-b", "other", "main~1"]);
        bench.write("source/a", "a\nother\n");
        bench.commit(&source, "other");
        bench.git(&source, &["checkout", "-q", "main"]);
        for (name, start) in [
            ("rebase", &["rebase", "--autostash", "other"][..]),
            ("merge", &["merge", "--autostash", "other"]),
        ] {
            let slot = bench.cut(name);
            fs::write(slot.dir().join("dir/b"), name).unwrap();
            bench.try_git(slot.dir(), start);
            assert!(bench.work(&slot).contains(&Kind::UnderWay));
            slot.discard(&mut bench.hands()).unwrap();
            bench.assert_sound(&slot);
            let kept = bench.git(&source, &["show", "stash@{0}:dir/b"]);
            assert_eq!(kept, name);
        }
    });
}

#[test]
fn of_a_directory_that_no_repository_knows_nothing_is_given_up() {
    with_git(|| {
        let mut bench = Bench::new();
        let slot = Workspace::new(Source::Nothing, bench.path("slots/1"));
        slot.cut(&mut bench.hands(), None).unwrap();
        fs::write(slot.dir().join("file"), "").unwrap();
        bench.assert_sound(&slot);
        assert_eq!(slot.discard(&mut bench.hands()).unwrap(), [""; 0]);
        bench.reset(&slot).unwrap();
        assert!(slot.dir().join("file").exists());
    });
}
