use nix::unistd::setsid;
use state_machine::record::Exit;

use super::super::proc::Process;
use super::super::testing::{Bench, alone, end_everything, fork_off, until};
use super::*;
use crate::sys::Forked;

/// Ends the tree of `leader` as a worker does, and proves it.
fn end_tree(leader: Leader) {
    let pid = leader.pid();
    until("the tree is empty", || {
        kill_round(pid).unwrap();
        reap_adopted(pid).unwrap();
        leader.peek().unwrap().is_some() && others(pid).unwrap().is_empty()
    });
    assert!(is_empty_after_reaping(leader).unwrap());
}

/// How long a hostile tree lives at most, should the test that made it fail to end it.
const FUSE: Duration = Duration::from_secs(20);

/// Each process forks its successor, which takes a session of its own, and exits; as fast as it can,
/// or with a pause.
fn chain(pause: Duration) {
    let fuse = Instant::now() + FUSE;
    while Instant::now() < fuse {
        match sys::fork().unwrap() {
            Forked::Parent(_) => sys::exit_now(0),
            Forked::Child => {
                setsid().unwrap();
                std::thread::sleep(pause);
            }
        }
    }
}

/// The same, each leaving a sleeper behind; a hundred of them.
fn littering_chain() {
    for _ in 0..100 {
        if let Forked::Child = sys::fork().unwrap() {
            setsid().unwrap();
            break;
        }
        if let Forked::Parent(_) = sys::fork().unwrap() {
            sys::exit_now(0);
        }
    }
    std::thread::sleep(FUSE);
}

/// Doubles every few milliseconds, six times, each in a session of its own.
fn doubling() {
    for _ in 0..6 {
        if let Forked::Child = sys::fork().unwrap() {
            setsid().unwrap();
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    std::thread::sleep(FUSE);
}

#[test]
fn hostile_shell_trees_are_ended() {
    let scripts = [
        // Background children, and one that ignores TERM.
        "sleep 600 & sleep 600 & (trap '' TERM; sleep 600) & wait",
        // Double forks in sessions of their own.
        "(setsid sh -c 'sleep 600 & sleep 600' &) & sleep 600",
        // Depth.
        "sh -c 'sh -c \"sh -c \\\"sleep 600; :\\\"; :\"; :'; :",
        // A stopped part of a tree.
        "sh -c 'sleep 600 & kill -STOP $$; sleep 600' & sleep 600",
        // A new session every few milliseconds, for ever.
        "i=0; while [ $((i+=1)) -lt 2000 ]; do setsid sh -c 'sleep 0.02' & sleep 0.005; done",
        // The leader is gone, its children stay.
        "setsid sleep 600 & sleep 600 & exit 0",
    ];
    alone(|| {
        become_subreaper().unwrap();
        let bench = Bench::new();
        for round in 0..50 {
            let script = scripts[round % scripts.len()];
            let leader = bench.shell(script);
            // At very different moments of its growth.
            let grown = round % 4;
            until("it has grown", || {
                descendants().unwrap().len() > grown || leader.peek().unwrap().is_some()
            });
            end_tree(leader);
            bench.lock_tree();
        }
    });
}

#[test]
fn chains_that_fork_and_exit_are_ended() {
    alone(|| {
        become_subreaper().unwrap();
        for round in 0..50 {
            let leader = match round % 4 {
                0 => fork_off(|| chain(Duration::ZERO)),
                1 => fork_off(|| chain(Duration::from_millis(5))),
                2 => fork_off(littering_chain),
                _ => fork_off(doubling),
            };
            let leader = Leader::of_child(leader).unwrap();
            until("it runs", || descendants().unwrap().len() > round % 5);
            end_tree(leader);
        }
    });
}

#[test]
fn the_leaders_zombie_is_never_reaped_by_the_way() {
    alone(|| {
        become_subreaper().unwrap();
        let bench = Bench::new();
        let leader = bench.shell("for i in 1 2 3 4 5; do (sleep 0.0$i &) ; done; exit 7");
        until("it has ended", || leader.peek().unwrap().is_some());
        let pid = leader.pid();
        until("the others are reaped", || {
            reap_adopted(pid).unwrap();
            others(pid).unwrap().is_empty()
        });
        kill_round(pid).unwrap();
        freeze(pid).unwrap();
        thaw().unwrap();
        assert_eq!(children().unwrap(), [pid]);
        assert_eq!(leader.peek().unwrap(), Some(Exit::Code(7)));
        assert!(is_empty_after_reaping(leader).unwrap());
    });
}

#[test]
fn an_unfinished_tree_is_not_called_empty() {
    alone(|| {
        become_subreaper().unwrap();
        let bench = Bench::new();
        let leader = bench.shell("setsid sleep 600 & exit 0");
        until("it has ended", || leader.peek().unwrap().is_some());
        assert!(!is_empty_after_reaping(leader).unwrap());
        end_everything();
    });
}

#[test]
fn a_frozen_tree_does_nothing_until_thawed() {
    alone(|| {
        become_subreaper().unwrap();
        let bench = Bench::new();
        let leader = bench.shell(
            "trap 'exit 5' TERM
             (setsid sh -c 'i=0; while [ $((i+=1)) -lt 9000 ]; do echo x >> ticks; sleep 0.001; done' &)
             i=0; while [ $((i+=1)) -lt 5000 ]; do setsid sh -c 'sleep 0.005' & sleep 0.002; done",
        );
        let ticks = || std::fs::metadata(bench.dir.path().join("ticks")).map_or(0, |it| it.len());
        for _ in 0..20 {
            let before = ticks();
            until("it works", || ticks() > before);
            let frozen = freeze_within(leader.pid().into(), FUSE).unwrap();
            assert!(frozen.is_whole(), "{}", name_all(&frozen.running));
            assert!(frozen.processes >= 2);
            let (standing, then) = (ticks(), survivors().unwrap());
            std::thread::sleep(Duration::from_millis(20));
            assert_eq!(ticks(), standing);
            let names = |them: &[Process]| them.iter().map(|it| it.pid).collect::<Vec<_>>();
            assert_eq!(names(&survivors().unwrap()), names(&then));
            thaw().unwrap();
        }
        let before = ticks();
        until("it works again", || ticks() > before);
        // A signal sent to a frozen tree is handled when it thaws.
        let frozen = freeze_within(leader.pid().into(), FUSE).unwrap();
        assert!(frozen.is_whole(), "{}", name_all(&frozen.running));
        assert!(signal_all(nix::libc::SIGTERM).unwrap() >= 2);
        thaw().unwrap();
        until("its handler ran", || {
            leader.peek().unwrap() == Some(Exit::Code(5))
        });
        end_tree(leader);
    });
}

#[test]
fn chains_freeze_too() {
    alone(|| {
        become_subreaper().unwrap();
        for _ in 0..20 {
            let leader = fork_off(|| chain(Duration::from_micros(500)));
            let leader = Leader::of_child(leader).unwrap();
            until("it runs", || others(leader.pid()).unwrap().len() > 1);
            let frozen = freeze_within(leader.pid().into(), FUSE).unwrap();
            assert!(frozen.is_whole(), "{}", name_all(&frozen.running));
            let standing = survivors().unwrap();
            assert!(
                standing.iter().all(|it| it.state == b'T'),
                "{}",
                name_all(&standing)
            );
            end_tree(leader);
        }
    });
}

#[test]
fn a_parent_that_waits_in_vfork_counts_as_stopped_once_asked() {
    let process = |state: u8| Process {
        state,
        threads: 1,
        ..Process::read(own_pid()).unwrap()
    };
    assert!(!is_stopped(&process(b'D'), false));
    assert!(is_stopped(&process(b'D'), true));
    assert!(!is_stopped(&process(b'R'), true));
    assert!(is_stopped(&process(b'T'), false));
}

#[test]
fn signals_reach_every_session_once() {
    alone(|| {
        become_subreaper().unwrap();
        let bench = Bench::new();
        let wait = "trap 'echo got >> got' USR1; echo up >> up
             i=0; while [ \\$((i+=1)) -lt 2000 ]; do sleep 0.01; done";
        let leader = bench.shell(&format!(
            "trap : USR1
             setsid sh -c \"{wait}\" & (sh -c \"{wait}\" &)
             i=0; while [ $((i+=1)) -lt 2000 ]; do sleep 0.01; done"
        ));
        let lines = |name: &str| {
            std::fs::read(bench.dir.path().join(name))
                .unwrap_or_default()
                .split(|&b| b == b'\n')
                .count()
                - 1
        };
        until("both are up", || lines("up") == 2);
        signal_all(nix::libc::SIGUSR1).unwrap();
        until("both have heard", || lines("got") == 2);
        signal_all(nix::libc::SIGUSR1).unwrap();
        until("both have heard again", || lines("got") == 4);
        end_tree(leader);
    });
}

#[test]
fn strangers_are_not_below_us() {
    alone(|| {
        let mut parent = Process::read(own_pid()).unwrap();
        parent = Process::read(parent.parent.unwrap()).unwrap();
        assert!(!is_still_ours(&parent));
        // A child of ours with another start time is not the one that was read.
        let child = fork_off(|| {
            nix::unistd::pause();
        });
        let mut process = Process::read(child).unwrap();
        assert!(is_still_ours(&process));
        process.start += 1;
        assert!(!is_still_ours(&process));
        end_everything();
    });
}

#[test]
fn survivors_are_named() {
    alone(|| {
        for _ in 0..7 {
            fork_off(|| {
                nix::unistd::pause();
            });
        }
        until("all sleep", || {
            survivors().unwrap().iter().all(|it| it.state == b'S')
        });
        let text = name_all(&survivors().unwrap());
        assert!(
            text.contains(", sleeping), ") && text.ends_with(" and 2 more"),
            "{text}"
        );
        end_everything();
    });
}
