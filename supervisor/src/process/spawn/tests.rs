use std::fs::{File, Permissions, copy, create_dir, remove_file, set_permissions, write};
use std::os::unix::fs::PermissionsExt;

use rustix::event::{PollFd, PollFlags, poll};
use state_machine::record::Exit;

use super::super::program::MACHINE;
use super::super::testing::{Bench, alone, fork_off, until, words};
use super::super::{become_subreaper, kill_round};
use super::*;

fn start(bench: &Bench, argv: &[OsString]) -> Result<Leader, CannotStart> {
    fork_command(bench.command(argv, bench.lock_tree()))
        .unwrap()
        .release()
}

fn ended(leader: Leader) -> Exit {
    let mut exit = None;
    until("the command has ended", || {
        exit = leader.peek().unwrap();
        exit.is_some()
    });
    // Looking does not reap.
    assert_eq!(leader.peek().unwrap(), exit);
    assert_eq!(leader.reap().unwrap(), exit.unwrap());
    exit.unwrap()
}

#[test]
fn every_exit_code_is_exact() {
    alone(|| {
        let bench = Bench::new();
        for code in 0..=255_u8 {
            let leader = bench.shell(&format!("exit {code}"));
            assert_eq!(ended(leader), Exit::Code(code));
        }
    });
}

#[test]
fn every_deadly_signal_is_exact() {
    alone(|| {
        let bench = Bench::new();
        let harmless = [17, 18, 19, 20, 21, 22, 23, 28];
        for signal in (1..=64_i32).filter(|it| !harmless.contains(it) && !(32..34).contains(it)) {
            let leader = bench.shell("exec sleep 600");
            sys::pidfd_kill(leader.pidfd(), signal).unwrap();
            assert_eq!(ended(leader), Exit::Signal(u8::try_from(signal).unwrap()));
        }
    });
}

#[test]
fn stopped_is_not_an_exit() {
    alone(|| {
        let bench = Bench::new();
        let leader = bench.shell("kill -STOP $$; exit 3");
        until("it has stopped", || {
            super::super::proc::Process::read(leader.pid())
                .unwrap()
                .state
                == b'T'
        });
        assert_eq!(leader.peek().unwrap(), None);
        sys::kill(leader.pid(), nix::libc::SIGCONT).unwrap();
        assert_eq!(ended(leader), Exit::Code(3));
    });
}

/// Waits until the child has said what it expects.
fn until_expected(waiting: &Waiting) {
    let mut fds = [PollFd::new(&waiting.channel, PollFlags::IN)];
    poll(&mut fds, None).unwrap();
}

#[test]
fn a_program_that_vanishes_is_expected_and_found_missing() {
    alone(|| {
        let bench = Bench::new();
        let program = bench.dir.path().join("program");
        copy("/bin/sh", &program).unwrap();
        let argv = [
            program.clone().into_os_string(),
            "-c".into(),
            "exit 7".into(),
        ];
        for vanishes in [false, true] {
            let waiting = fork_command(bench.command(&argv, bench.lock_tree())).unwrap();
            until_expected(&waiting);
            if vanishes {
                remove_file(&program).unwrap();
            }
            let mut expected = false;
            let released = waiting.release_and_say(|| expected = true);
            assert_eq!(expected, MACHINE.is_some());
            match released {
                Ok(leader) => assert_eq!((vanishes, ended(leader)), (false, Exit::Code(7))),
                Err(CannotStart::Missing { .. }) => assert!(vanishes),
                Err(error) => panic!("{error}"),
            }
        }
    });
}

#[test]
fn what_may_be_refused_is_not_expected() {
    alone(|| {
        let mut bench = Bench::new();
        let program = |name: &str| bench.dir.path().join(name).into_os_string();
        write(program("script"), "#!/bin/sh\n").unwrap();
        set_permissions(program("script"), Permissions::from_mode(0o700)).unwrap();
        let script = [program("script")];
        let missing = words(&["./missing"]);
        let long = words(&["true", &"x".repeat(100 << 10)]);
        let expects = |bench: &Bench, argv: &[OsString]| {
            let mut expected = false;
            let waiting = fork_command(bench.command(argv, bench.lock_tree())).unwrap();
            let released = waiting.release_and_say(|| expected = true);
            if let Ok(leader) = released {
                assert_eq!(ended(leader), Exit::Code(0));
            }
            expected
        };
        for argv in [&script[..], &missing, &long] {
            assert!(!expects(&bench, argv), "{:?}", argv[0]);
        }
        let known = expects(&bench, &words(&["true"]));
        assert_eq!(known, MACHINE.is_some());
        // The first that is found decides, and it is a script here.
        copy(program("script"), bench.dir.path().join("true")).unwrap();
        let path = format!("{}:/bin:/usr/bin", bench.dir.path().display());
        bench.env = vec![("PATH".into(), path.into())];
        assert!(!expects(&bench, &words(&["true"])));
    });
}

#[test]
fn what_cannot_be_started_says_why() {
    alone(|| {
        let mut bench = Bench::new();
        let dir = bench.dir.path().to_owned();
        let path = |name: &str| dir.join(name).into_os_string();

        for argv in [words(&[]), words(&[""]), words(&["", "x"])] {
            let error = start(&bench, &argv).unwrap_err();
            assert!(matches!(error, CannotStart::Missing { .. }), "{error}");
            assert_eq!(error.to_string(), "the command is empty");
        }
        for program in ["no-such-program-at-all", "./nothing-here", "/dev/null/x"] {
            let error = start(&bench, &words(&[program])).unwrap_err();
            assert!(matches!(error, CannotStart::Missing { .. }), "{error}");
            assert!(error.to_string().contains(program), "{error}");
        }

        write(dir.join("plain"), "echo hello\n").unwrap();
        write(dir.join("bad"), "#!/no/such/interpreter\n").unwrap();
        create_dir(dir.join("folder")).unwrap();
        set_permissions(dir.join("bad"), Permissions::from_mode(0o700)).unwrap();
        for (name, why) in [
            ("plain", "ermission denied"),
            ("bad", "interpreter"),
            ("folder", "directory"),
        ] {
            let error = start(&bench, &[path(name)]).unwrap_err();
            assert!(
                matches!(error, CannotStart::NotExecutable { .. }),
                "{error}"
            );
            assert!(error.to_string().contains(why), "{error}");
        }
        // Refused while searching is remembered, and what comes later still found.
        bench.env = vec![("PATH".into(), path(""))];
        let error = start(&bench, &words(&["plain"])).unwrap_err();
        assert!(
            matches!(error, CannotStart::NotExecutable { .. }),
            "{error}"
        );
        create_dir(dir.join("later")).unwrap();
        write(dir.join("later/plain"), "exit 9\n").unwrap();
        set_permissions(dir.join("later/plain"), Permissions::from_mode(0o700)).unwrap();
        let both = format!("{0}:/no/where:{0}/later", dir.display());
        bench.env = vec![("PATH".into(), both.into())];
        // And without an interpreter line it is the shell's.
        assert_eq!(
            ended(start(&bench, &words(&["plain"])).unwrap()),
            Exit::Code(9)
        );

        let argv = words(&["true", &"x".repeat(10 << 20)]);
        let error = start(&Bench::new(), &argv).unwrap_err();
        assert!(
            matches!(error, CannotStart::TooLong { bytes, .. } if bytes > 10 << 20),
            "{error}"
        );
        let error = start(&Bench::new(), &words(&["true", "a\0b"])).unwrap_err();
        assert!(matches!(error, CannotStart::Other { .. }), "{error}");

        let gone = dir.join("gone");
        let argv = words(&["true"]);
        let waiting = fork_command(bench.command_in(&gone, &argv, bench.lock_tree())).unwrap();
        let error = waiting.release().unwrap_err();
        assert!(
            matches!(&error, CannotStart::Directory { path, .. } if *path == gone),
            "{error}"
        );
        // Nothing of all this is left, and the lock is free.
        assert!(super::super::is_empty().unwrap());
        bench.lock_tree();
    });
}

#[test]
fn without_a_path_the_usual_places_are_searched() {
    alone(|| {
        let mut bench = Bench::new();
        bench.env.clear();
        assert_eq!(
            ended(start(&bench, &words(&["true"])).unwrap()),
            Exit::Code(0)
        );
    });
}

#[test]
fn arguments_and_environment_arrive_byte_for_byte() {
    alone(|| {
        let mut bench = Bench::new();
        let odd = OsString::from_vec((1..=255).collect());
        bench
            .env
            .push((OsString::from_vec(b"N\xff".to_vec()), odd.clone()));
        bench.env.push(("EMPTY".into(), "".into()));
        let mut argv = words(&["cat", "/proc/self/cmdline", "/proc/self/environ", "-"]);
        argv.push(odd.clone());
        argv.push("".into());
        // The unreadable names make it exit 1; it is what it was given that matters.
        ended(start(&bench, &argv).unwrap());
        let mut expected = Vec::new();
        for argument in &argv {
            expected.extend([argument.as_bytes(), b"\0"].concat());
        }
        for (name, value) in &bench.env {
            expected.extend([name.as_bytes(), b"=", value.as_bytes(), b"\0"].concat());
        }
        assert!(
            bench.output().starts_with(&expected),
            "{:?}",
            bench.output()
        );
    });
}

#[test]
fn the_command_finds_a_clean_house() {
    alone(|| {
        let bench = Bench::new();
        // A stray descriptor that does not close by itself, an ignored signal, a blocked one.
        let stray = fcntl_dupfd_cloexec(File::open("/dev/null").unwrap(), 50).unwrap();
        fcntl_setfd(&stray, FdFlags::empty()).unwrap();
        nix::sys::signal::SigSet::all().thread_block().unwrap();
        let argv = words(&["sh", "-c", "ls -l /proc/$$/fd; umask; pwd; cat"]);
        let mut command = bench.command(&argv, bench.lock_tree());
        command.umask = Some(0o027);
        let leader = fork_command(command).unwrap().release().unwrap();
        assert_eq!(
            rustix::process::getsid(Some(leader.pid())).unwrap(),
            leader.pid()
        );
        assert_eq!(ended(leader), Exit::Code(0));
        let said = String::from_utf8(bench.output()).unwrap();
        let mut fds: Vec<(u32, &str)> = said
            .lines()
            .filter_map(|line| line.split_once(" -> "))
            .map(|(left, target)| (left.rsplit(' ').next().unwrap().parse().unwrap(), target))
            .collect();
        fds.sort_unstable();
        assert_eq!(fds.len(), 4, "{said}");
        assert_eq!((fds[0], fds[3].0), ((0, "/dev/null"), 100), "{said}");
        assert!(fds[3].1.ends_with("/tree"), "{said}");
        assert!(said.contains("\n0027\n"), "{said}");
        assert!(
            said.trim_end()
                .ends_with(bench.dir.path().to_str().unwrap()),
            "{said}"
        );
        // Not through a shell, which blocks signals itself now and then.
        let argv = words(&["cat", "/proc/self/status"]);
        assert_eq!(ended(start(&bench, &argv).unwrap()), Exit::Code(0));
        let said = String::from_utf8(bench.output()).unwrap();
        for mask in ["SigBlk", "SigIgn"] {
            assert!(
                said.contains(&format!("{mask}:\t0000000000000000\n")),
                "{said}"
            );
        }
        drop(stray);
    });
}

#[test]
fn a_low_limit_of_descriptors_moves_the_tree_down() {
    use rustix::process::{Resource, Rlimit, setrlimit};
    alone(|| {
        let bench = Bench::new();
        for (limit, lowest) in [(64, 20), (16, 10)] {
            let both = Rlimit {
                current: Some(limit),
                maximum: Some(limit),
            };
            setrlimit(Resource::Nofile, both).unwrap();
            assert_eq!(ended(bench.shell("ls -l /proc/$$/fd")), Exit::Code(0));
            let said = String::from_utf8(bench.output()).unwrap();
            let tree = said.lines().find(|line| line.ends_with("/tree")).unwrap();
            let (left, _) = tree.split_once(" -> ").unwrap();
            let number: u64 = left.rsplit(' ').next().unwrap().parse().unwrap();
            assert!((lowest..limit).contains(&number), "{said}");
        }
    });
}

#[test]
fn stdio_may_lie_anywhere() {
    alone(|| {
        let bench = Bench::new();
        let tree = bench.lock_tree();
        // Standard output comes from descriptor 0, standard input from 2, standard error from 1.
        let argv = words(&["sh", "-c", "cat; echo error >&2"]);
        let mut command = bench.command(&argv, tree);
        write(bench.dir.path().join("in"), "from in\n").unwrap();
        let places = [
            (2, File::open(bench.dir.path().join("in")).unwrap()),
            (0, File::create(bench.dir.path().join("out")).unwrap()),
            (1, File::create(bench.dir.path().join("err")).unwrap()),
        ];
        sys::close_from(
            0,
            &places
                .iter()
                .map(|(_, file)| file.as_raw_fd())
                .chain([command.tree.as_raw_fd()])
                .collect::<Vec<_>>(),
        );
        std::mem::forget((command.stdin, command.stdout, command.stderr));
        let [stdin, stdout, stderr] = places.map(|(at, file)| {
            let placed = fcntl_dupfd_cloexec(&file, at).unwrap();
            assert!(placed.as_raw_fd() < 3);
            placed
        });
        (command.stdin, command.stdout, command.stderr) = (stdin, stdout, stderr);
        assert_eq!(
            ended(fork_command(command).unwrap().release().unwrap()),
            Exit::Code(0)
        );
        assert_eq!(bench.output(), b"from in\n");
        assert_eq!(
            std::fs::read(bench.dir.path().join("err")).unwrap(),
            b"error\n"
        );
    });
}

#[test]
fn nothing_runs_before_the_release_or_after_a_drop() {
    alone(|| {
        let bench = Bench::new();
        let argv = words(&["touch", "ran"]);
        let ran = bench.dir.path().join("ran");
        let waiting = fork_command(bench.command(&argv, bench.lock_tree())).unwrap();
        until("it waits", || {
            super::super::proc::Process::read(waiting.pid())
                .unwrap()
                .state
                == b'S'
        });
        assert!(!ran.exists());
        drop(waiting);
        assert!(super::super::is_empty().unwrap());
        assert!(!ran.exists());
        bench.lock_tree();
    });
}

#[test]
fn a_dead_worker_starts_nothing_and_leaves_nothing() {
    alone(|| {
        become_subreaper().unwrap();
        let bench = Bench::new();
        let ran = bench.dir.path().join("ran");
        for released in [false, true] {
            let argv = words(&["sh", "-c", "sleep 600; touch ran"]);
            let worker = fork_off(|| {
                let waiting = fork_command(bench.command(&argv, bench.lock_tree())).unwrap();
                if released {
                    waiting.release().unwrap();
                    write(bench.dir.path().join("started"), "").unwrap();
                } else {
                    write(bench.dir.path().join("forked"), "").unwrap();
                    std::mem::forget(waiting);
                }
                nix::unistd::pause();
            });
            let sign = if released { "started" } else { "forked" };
            until("the worker is there", || {
                bench.dir.path().join(sign).exists()
            });
            sys::kill(worker, nix::libc::SIGKILL).unwrap();
            // The leader goes by itself; its own child, once it has one, is the kill's.
            until("all is gone", || {
                if released {
                    kill_round(None).unwrap();
                }
                super::super::is_empty().unwrap()
            });
            bench.lock_tree();
        }
        assert!(!ran.exists());
    });
}

#[test]
fn a_child_killed_while_it_waits_tells_of_the_signal() {
    alone(|| {
        let bench = Bench::new();
        let argv = words(&["true"]);
        for _ in 0..20 {
            let waiting = fork_command(bench.command(&argv, bench.lock_tree())).unwrap();
            sys::kill(waiting.pid(), nix::libc::SIGKILL).unwrap();
            assert_eq!(ended(waiting.release().unwrap()), Exit::Signal(9));
        }
    });
}

#[test]
fn the_tree_is_locked_until_its_last_process_ends() {
    alone(|| {
        become_subreaper().unwrap();
        let bench = Bench::new();
        let gate = bench.dir.path().join("gate");
        nix::unistd::mkfifo(&gate, nix::sys::stat::Mode::S_IRWXU).unwrap();
        // Open for both, so that neither side ever blocks in opening it.
        let mut gate = File::options().read(true).write(true).open(gate).unwrap();
        let leader = bench.shell("setsid sh -c 'read line <> gate' >/dev/null & exit 0");
        assert_eq!(ended(leader), Exit::Code(0));
        assert!(bench.open_tree().try_lock().is_err());
        std::io::Write::write_all(&mut gate, b"go\n").unwrap();
        until("the last has ended", || super::super::is_empty().unwrap());
        bench.lock_tree();
    });
}
