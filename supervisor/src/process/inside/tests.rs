use std::process::{Child, Command, Stdio};

use rustix::process::{WaitOptions, waitpid};

use super::*;
use crate::process::testing::{alone, fork_off, until};

/// A process that a test has started, and ends.
struct Started(Child);

impl Drop for Started {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn start(command: &mut Command) -> Started {
    Started(command.stdin(Stdio::null()).spawn().unwrap())
}

fn sleeper() -> Command {
    let mut command = Command::new("sleep");
    command.arg("600").current_dir("/");
    command
}

/// How the process is inside of `dir`, once it is.
#[track_caller]
fn how(dir: &Path, process: &Started) -> How {
    let pid = Pid::from_child(&process.0);
    let mut how = None;
    until("it is inside", || {
        let census = census(&[dir]);
        let one = census.inside.iter().find(|one| one.pid == pid);
        how = one.map(|one| one.how);
        how.is_some()
    });
    how.unwrap()
}

/// S03: whoever works inside is found, also one whose directory is elsewhere.
#[test]
fn every_way_to_be_inside_is_seen() {
    let dir = tempfile::tempdir().unwrap();
    let below = dir.path().join("a b\n");
    std::fs::create_dir(&below).unwrap();
    let file = File::create(below.join("file")).unwrap();

    let there = start(sleeper().current_dir(&below));
    assert_eq!(how(dir.path(), &there), How::Cwd);

    let writer = start(sleeper().stdout(file));
    assert_eq!(how(dir.path(), &writer), How::OpenFile);
    std::fs::remove_file(below.join("file")).unwrap();
    assert_eq!(how(dir.path(), &writer), How::OpenFile);

    let program = below.join("program");
    // By another process: what this one has open for writing, a child of another test may have open too, and then the copy
    // cannot be executed.
    let copied = Command::new("cp").arg("/bin/sleep").arg(&program).status();
    assert!(copied.unwrap().success());
    let runner = start(Command::new(&program).arg("600").current_dir("/"));
    assert_eq!(how(dir.path(), &runner), How::Program);
}

#[test]
fn a_mapped_file_is_seen() {
    let dir = tempfile::tempdir().unwrap();
    let plain = start(&mut sleeper());
    let mut library = None;
    until("its library is mapped", || {
        let maps = std::fs::read_to_string(format!("/proc/{}/maps", plain.0.id())).unwrap();
        let path = |line: &str| Some(line.get(line.find('/')?..)?.to_owned());
        library = maps
            .lines()
            .filter_map(path)
            .find(|path| path.contains("/libc.so"));
        library.is_some()
    });
    std::fs::copy(library.unwrap(), dir.path().join("libc.so.6")).unwrap();
    let mapper = start(sleeper().env("LD_LIBRARY_PATH", dir.path()));
    assert_eq!(how(dir.path(), &mapper), How::Mapped);
}

#[test]
fn a_neighbour_with_a_longer_name_is_not_inside() {
    let dir = tempfile::tempdir().unwrap();
    let (one, ten) = (dir.path().join("1"), dir.path().join("10"));
    std::fs::create_dir(&one).unwrap();
    std::fs::create_dir(&ten).unwrap();
    let neighbour = start(sleeper().current_dir(&ten));
    assert_eq!(how(&ten, &neighbour), How::Cwd);
    assert_eq!(census(&[&one]).inside, []);
    drop(neighbour);
    assert_eq!(census(&[&one, &ten]).inside, []);
}

/// A link to the directory is the directory, and one that is gone is asked after all the same.
#[test]
fn the_directory_is_known_by_any_name_and_when_it_is_gone() {
    let dir = tempfile::tempdir().unwrap();
    let (real, link) = (dir.path().join("real"), dir.path().join("link"));
    std::fs::create_dir(&real).unwrap();
    std::os::unix::fs::symlink(&real, &link).unwrap();
    let there = start(sleeper().current_dir(&real));
    assert_eq!(how(&link, &there), How::Cwd);
    std::fs::remove_dir(&real).unwrap();
    assert_eq!(how(&real, &there), How::Cwd);
}

/// S27: this process is not counted, and its parents are.
#[test]
fn the_shell_that_asks_from_inside_is_inside() {
    alone(|| {
        let dir = tempfile::tempdir().unwrap();
        std::env::set_current_dir(dir.path()).unwrap();
        assert_eq!(census(&[dir.path()]).inside, []);
        let asker = fork_off(|| {
            let census = census(&[dir.path()]);
            let [one] = census.inside.as_slice() else {
                panic!("{census:?}");
            };
            assert!(one.is_ancestor);
            assert_eq!(one.how, How::Cwd);
            assert!(one.to_string().contains(" is in "));
        });
        let (_, status) = waitpid(Some(asker), WaitOptions::empty()).unwrap().unwrap();
        assert_eq!(status.exit_status(), Some(0));
    });
}
