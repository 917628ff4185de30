//! What `run` says at once of a program that cannot be started, and what only the record can say, because the command was
//! on its way already.

use std::fs::{Permissions, set_permissions, write};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use outlive::worker::Launcher;
use outlive_tests::{Bench, Job, bench};

/// A file that may be executed.
fn executable(bench: &Bench, name: &str, content: &[u8]) -> PathBuf {
    let path = bench.file(name);
    write(&path, content).unwrap();
    set_permissions(&path, Permissions::from_mode(0o700)).unwrap();
    path
}

/// A program that `loader` is to load, and nothing more.
fn loaded_by(loader: &Path) -> Vec<u8> {
    let name = [loader.to_str().unwrap().as_bytes(), &[0]].concat();
    // One that runs here says of which machine it is.
    let mut program = std::fs::read(std::env::current_exe().unwrap()).unwrap();
    program.truncate(64);
    program[32..40].copy_from_slice(&64_u64.to_ne_bytes());
    program[56..58].copy_from_slice(&1_u16.to_ne_bytes());
    let mut segment = [0; 56];
    segment[..4].copy_from_slice(&3_u32.to_ne_bytes());
    segment[8..16].copy_from_slice(&120_u64.to_ne_bytes());
    segment[32..40].copy_from_slice(&(name.len() as u64).to_ne_bytes());
    segment[40..48].copy_from_slice(&(name.len() as u64).to_ne_bytes());
    [program, segment.to_vec(), name].concat()
}

/// A program that is as it should be up to what only its `exec` looks at: what is to load it is a text.
fn odd(bench: &Bench) -> String {
    let loader = executable(bench, "loader", &[b' '; 100]);
    let program = executable(bench, "odd", &loaded_by(&loader));
    program.to_str().unwrap().to_owned()
}

fn expect_failed(job: &Job, words: &[&str]) {
    assert_eq!(job.wait(), 126);
    job.expect_states(&["queued", "running", "failed"]);
    let shown = job.shown();
    assert_eq!(shown["failure"], "not_executable", "{shown}");
    assert!(shown["exit"].is_null(), "{shown}");
    let message = shown["message"].as_str().unwrap();
    for word in words {
        assert!(message.contains(word), "'{word}' is not in: {message}");
    }
}

#[test]
fn what_can_be_seen_beforehand_is_said_at_once() {
    let bench = bench!();
    let text = executable(&bench, "text", b"#!/no/such/interpreter\n");
    let foreign = loaded_by(Path::new("/no/such/loader"));
    let foreign = executable(&bench, "foreign", &foreign);
    for program in [&text, &foreign] {
        let program = program.to_str().unwrap();
        let ran = bench.run(["run", "--", program]).expect(126);
        assert!(ran.errors().contains(program), "{ran:?}");
        expect_failed(&bench.job(&ran.text()), &[program, "interpreter"]);
    }
    // Found by searching, and after one that is not worth trying.
    let path = format!("PATH=/no/such/dir:{}", bench.work().display());
    let ran = bench.run(["run", "--env", &path, "--", "foreign"]);
    expect_failed(&bench.job(&ran.expect(126).text()), &["foreign"]);
    bench.audit();
}

#[test]
#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
fn what_only_the_exec_finds_out_is_in_the_record() {
    let bench = bench!();
    let odd = odd(&bench);
    let ran = bench.run(["run", "--", &odd]).expect(0);
    expect_failed(&bench.job(&ran.text()), &[&odd]);
    // Relative to the directory of the command, and not to that of the worker.
    let ran = bench.run(["run", "--", "./odd"]).expect(0);
    expect_failed(&bench.job(&ran.text()), &["./odd"]);
    bench.audit();
}

#[test]
fn whoever_waits_is_told_what_the_exec_finds_out() {
    let bench = bench!();
    let odd = odd(&bench);
    for how in ["--wait", "--follow"] {
        bench.run(["run", how, "--", &odd]).expect(126);
    }
    // And is not told of success where the job was forgotten before he could look.
    for job in bench.jobs() {
        expect_failed(&job, &[&odd]);
    }
    let launcher = Launcher::program(bench.binary(), &["worker"]);
    let (job, _) = bench.store().start(bench.spec(&[&odd]), &launcher).unwrap();
    expect_failed(&bench.job(job.id().as_str()), &[&odd]);
    bench.audit();
}
