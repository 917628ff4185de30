use std::process::Command;

use super::*;

/// S22: a lock that a dead git has left is removed, and no other.
#[test]
fn a_stale_lock_is_removed() {
    with_git(|| {
        let mut bench = Bench::new();
        let slot = bench.cut("1");
        let entry = bench.path("source/.git/worktrees/1");
        let locks = [
            "index.lock",
            "HEAD.lock",
            "modules/sub/index.lock",
            "modules/sub/modules/x/config.lock",
        ];
        for lock in locks {
            bench.write(&format!("source/.git/worktrees/1/{lock}"), "");
        }
        // The repository's own may be held by anybody.
        bench.write("source/.git/packed-refs.lock", "");
        bench.write(
            "source/.git/worktrees/1/modules/sub/objects/pack/x.lock",
            "",
        );
        bench.assert_sound(&slot);
        for lock in locks {
            assert!(!entry.join(lock).exists(), "{lock}");
        }
        assert!(bench.path("source/.git/packed-refs.lock").exists());
        assert!(entry.join("modules/sub/objects/pack/x.lock").exists());
    });
}

/// S22: not while anybody works inside.
#[test]
fn a_lock_that_may_be_held_stays() {
    with_git(|| {
        let mut bench = Bench::new();
        let slot = bench.cut("1");
        let lock = bench.path("source/.git/worktrees/1/index.lock");
        let holders: [fn(&mut Command, &Path, &Path); 2] = [
            |command, slot, _| {
                command.current_dir(slot);
            },
            |command, _, lock| {
                command.current_dir("/").stdout(File::open(lock).unwrap());
            },
        ];
        for hold in holders {
            fs::write(&lock, "").unwrap();
            let mut command = Command::new("sleep");
            command.arg("600");
            hold(&mut command, slot.dir(), &lock);
            let mut holder = command.spawn().unwrap();
            let judged = bench.judge(&slot);
            let trouble = bench.reset(&slot);
            holder.kill().unwrap();
            holder.wait().unwrap();
            let Judgement::Unclear(why) = judged else {
                panic!("{judged:?}")
            };
            assert!(why.contains("index.lock may be held: process"), "{why}");
            assert!(trouble.is_err());
            assert!(lock.exists());
            bench.assert_sound(&slot);
            assert!(!lock.exists());
        }
    });
}

/// S51: a lock of git's maintenance is removed when nobody has it open, as git itself takes it for a reason to do nothing.
#[test]
fn a_stale_lock_of_maintenance_is_removed() {
    with_git(|| {
        let mut bench = Bench::new();
        let source = bench.source();
        let lock = bench.path("source/.git/objects/maintenance.lock");
        assert_eq!(
            clear_maintenance_lock(&mut bench.hands(), &source).unwrap(),
            None
        );
        fs::write(&lock, "").unwrap();
        let mut holder = Command::new("sleep")
            .arg("600")
            .stdout(File::open(&lock).unwrap())
            .spawn()
            .unwrap();
        let cleared = clear_maintenance_lock(&mut bench.hands(), &source);
        holder.kill().unwrap();
        holder.wait().unwrap();
        assert_eq!(cleared.unwrap(), None);
        assert!(lock.exists());
        let cleared = clear_maintenance_lock(&mut bench.hands(), &source);
        assert_eq!(cleared.unwrap(), Some(lock.clone()));
        assert!(!lock.exists());
    });
}
