//! What is put into place: only what was verified, only where it belongs, and only where there is room.

use std::fs;
use std::sync::atomic::Ordering;

use outlive_tests::{Served, Server, TmpFs, bench, digest_of, until};

use super::pull::{
    account, begin, halting, holding, notes, nothing_is_left, only_job, progress_is_whole, pull,
    staged, until_arrived, until_arrived_in,
};

/// What sha256sum says of a file.
fn sha256(bench: &outlive_tests::Bench, bytes: &[u8]) -> String {
    let path = bench.file("to-be-summed");
    fs::write(&path, bytes).unwrap();
    let mut command = bench.program("sha256sum");
    command.arg(&path);
    let text = bench.end(command).expect(0).text();
    fs::remove_file(path).unwrap();
    text.split(' ').next().unwrap().to_owned()
}

/// P47: right length, wrong content.
#[test]
fn what_is_not_what_was_wanted_never_lands() {
    let bench = bench!();
    let (file, other) = (
        Served::of_length(100_000, 30),
        Served::of_length(100_000, 31),
    );
    let wanted = sha256(&bench, &other.bytes);
    let server = Server::new(move |request, reply| file.serve(request, reply));
    let ran = pull(&bench, &server.url("/file.bin"), &["--sha256", &wanted]).expect(1);
    assert!(ran.errors().contains(&wanted), "{}", ran.errors());
    assert!(!bench.work().join("file.bin").exists());
    assert_eq!(server.asked().len(), 1, "it would be the same again");
    assert_eq!(account(&only_job(&bench), "discarded_bytes"), 100_000);
    bench.audit();
}

/// The bytes that were here may be what is wrong: then one more try is worth it.
#[test]
fn what_was_kept_and_is_wrong_is_fetched_again() {
    let bench = bench!();
    let file = Served::of_length(100_000, 32);
    let (bytes, wanted) = (file.bytes.clone(), sha256(&bench, &file.bytes));
    let server = halting(file, 1);
    let job = begin(&bench, &server.url("/file.bin"), &["--sha256", &wanted]);
    let staging = bench.work().join("file.bin.outlive-part");
    until_arrived(&bench, 33_333);
    bench.run(["pause", job.id()]).expect(0);
    let part = &staged(&staging, ".part")[0];
    let mut spoilt = fs::read(part).unwrap();
    spoilt[0] ^= 1;
    fs::write(part, spoilt).unwrap();
    bench.run(["resume", job.id()]).expect(0);
    assert_eq!(job.wait(), 0);
    assert!(fs::read(bench.work().join("file.bin")).unwrap() == *bytes);
    nothing_is_left(&bench.work());
    bench.audit();
}

/// What is there already, with the right digest, is not fetched.
#[test]
fn what_is_there_is_not_fetched_again() {
    let bench = bench!();
    let file = Served::of_length(100_000, 33);
    let wanted = sha256(&bench, &file.bytes);
    fs::write(bench.work().join("file.bin"), &*file.bytes).unwrap();
    let server = Server::new(move |request, reply| file.serve(request, reply));
    pull(&bench, &server.url("/file.bin"), &["--sha256", &wanted]).expect(0);
    assert_eq!(server.asked().len(), 0);
    assert_eq!(account(&only_job(&bench), "reused_bytes"), 100_000);
    bench.audit();
}

/// P04: what could not be put into place is said to be in the way, and is not fetched again when it can.
#[test]
fn what_is_in_the_way_is_named_and_costs_no_byte() {
    let bench = bench!();
    let file = Served::of_length(100_000, 34);
    let bytes = file.bytes.clone();
    let digest = digest_of(&bytes).replace("sha256:", "");
    let options = ["--sha256", digest.as_str()];
    let (server, go) = holding(file);
    let url = server.url("/file.bin");
    let job = begin(&bench, &url, &options);
    until_arrived(&bench, 50_000);
    fs::create_dir_all(bench.file("file.bin/mine")).unwrap();
    go.store(true, Ordering::Relaxed);
    assert_eq!(job.wait(), 1);
    let why = job.shown()["message"].as_str().unwrap().to_owned();
    assert!(why.contains("file.bin is a directory"), "{why}");
    assert!(bench.file("file.bin/mine").exists());
    fs::remove_dir_all(bench.file("file.bin")).unwrap();
    pull(&bench, &url, &options).expect(0);
    assert!(fs::read(bench.file("file.bin")).unwrap() == *bytes);
    assert_eq!(server.asked().len(), 1);
    let again = bench.jobs().pop().unwrap();
    assert_eq!(account(&again, "fetched_bytes"), 0);
    assert_eq!(account(&again, "reused_bytes"), 100_000);
    progress_is_whole(&again, 100_000);
    nothing_is_left(&bench.work());
    bench.audit();
}

/// What was fetched from one address, and could not be put into place, is not taken for what is at another.
#[test]
fn what_came_from_elsewhere_is_not_what_is_asked_for() {
    let bench = bench!();
    let (one, other) = (
        Served::of_length(100_000, 40),
        Served::of_length(100_000, 41),
    );
    let bytes = other.bytes.clone();
    let (server, go) = holding(one);
    let job = begin(&bench, &server.url("/file.bin"), &[]);
    until_arrived(&bench, 50_000);
    fs::create_dir_all(bench.file("file.bin/mine")).unwrap();
    go.store(true, Ordering::Relaxed);
    assert_eq!(job.wait(), 1);
    fs::remove_dir_all(bench.file("file.bin")).unwrap();
    let server = Server::new(move |request, reply| other.serve(request, reply));
    pull(&bench, &server.url("/other"), &["--to", "file.bin"]).expect(0);
    assert!(fs::read(bench.file("file.bin")).unwrap() == *bytes);
    let again = bench.jobs().pop().unwrap();
    assert_eq!(account(&again, "discarded_bytes"), 100_000);
    assert_eq!(account(&again, "fetched_bytes"), 100_000);
    nothing_is_left(&bench.work());
    bench.audit();
}

/// That a directory stands at the name makes it the place to put the file into.
#[test]
fn a_file_goes_into_a_directory() {
    let bench = bench!();
    let file = Served::of_length(100_000, 35);
    let bytes = file.bytes.clone();
    let server = Server::new(move |request, reply| file.serve(request, reply));
    fs::create_dir_all(bench.file("sub/file.bin/mine")).unwrap();
    pull(&bench, &server.url("/file.bin"), &["--to", "sub/file.bin"]).expect(0);
    assert!(fs::read(bench.file("sub/file.bin/file.bin")).unwrap() == *bytes);
    bench.audit();
}

/// P24: the store and the destination are on different file systems, and nobody ever sees a short file.
#[test]
fn the_destination_may_be_on_another_file_system() {
    let bench = bench!();
    let other = bench.work().join("mounted");
    fs::create_dir(&other).unwrap();
    let Some(_mounted) = TmpFs::mount(&other, "64m") else {
        return bench.audit();
    };
    let file = Served::of_length(20_000_000, 35);
    let bytes = file.bytes.clone();
    let server = Server::new(move |request, reply| file.serve(request, reply));
    let job = begin(&bench, &server.url("/file.bin"), &["--to", "mounted/"]);
    let path = other.join("file.bin");
    until("it is there", || match fs::metadata(&path) {
        Ok(found) => {
            assert_eq!(
                found.len(),
                20_000_000,
                "a short file stands under the final name"
            );
            true
        }
        Err(_) => false,
    });
    assert_eq!(job.wait(), 0);
    assert!(fs::read(&path).unwrap() == *bytes);
    bench.audit();
}

/// P25: a disk that gets full pauses the transfer, keeps what has arrived, and it goes on when there is room.
#[test]
fn a_full_disk_pauses_with_the_reason() {
    let bench = bench!();
    let small = bench.work().join("mounted");
    fs::create_dir(&small).unwrap();
    let Some(mounted) = TmpFs::mount(&small, "12m") else {
        return bench.audit();
    };
    let file = Served::of_length(5_000_000, 36);
    let bytes = file.bytes.clone();
    let (server, go) = holding(file);
    let job = begin(&bench, &server.url("/file.bin"), &["--to", "mounted/"]);
    let staging = small.join("file.bin.outlive-part");
    until_arrived_in(&staging, 2_500_000);
    mounted.fill("ballast");
    go.store(true, Ordering::Relaxed);
    job.until_recorded("paused");
    let why = job.shown()["message"].as_str().unwrap().to_owned();
    assert!(why.contains("space") && why.contains("make room"), "{why}");
    assert!(!small.join("file.bin").exists());
    assert_eq!(staged(&staging, ".part").len(), 1);
    fs::remove_file(small.join("ballast")).unwrap();
    bench.run(["resume", job.id()]).expect(0);
    assert_eq!(job.wait(), 0);
    assert!(fs::read(small.join("file.bin")).unwrap() == *bytes);
    assert!(account(&job, "reused_bytes") > 1_000_000);
    bench.audit();
}

/// P25: a disk that is too small is seen to be when the length is known, and nothing is fetched that would not fit.
#[test]
fn what_does_not_fit_is_not_begun() {
    let bench = bench!();
    let small = bench.work().join("mounted");
    fs::create_dir(&small).unwrap();
    let Some(mounted) = TmpFs::mount(&small, "2m") else {
        return bench.audit();
    };
    let file = Served::of_length(3_000_000, 36);
    let bytes = file.bytes.clone();
    let server = Server::new(move |request, reply| file.serve(request, reply));
    let ran = pull(&bench, &server.url("/file.bin"), &["--to", "mounted/"]).expect(75);
    assert!(ran.errors().contains("make room"), "{}", ran.errors());
    let job = only_job(&bench);
    assert_eq!(job.state(), "paused");
    assert_eq!(account(&job, "fetched_bytes"), 0);
    mounted.remount("size=16m");
    bench.run(["resume", job.id()]).expect(0);
    assert_eq!(job.wait(), 0);
    assert!(fs::read(small.join("file.bin")).unwrap() == *bytes);
    bench.audit();
}

/// P57: each of two would fit, and both do not. One says so, and the other ends well.
#[test]
fn of_two_that_do_not_fit_together_one_goes_on() {
    let bench = bench!();
    let small = bench.work().join("mounted");
    fs::create_dir(&small).unwrap();
    let Some(_mounted) = TmpFs::mount(&small, "6m") else {
        return bench.audit();
    };
    let files = [37, 38].map(|number| Served::of_length(4_000_000, number));
    let bytes = files.clone().map(|file| file.bytes);
    let held = files.map(holding);
    let jobs = [0, 1].map(|nth| {
        let options = ["--to", &format!("mounted/{nth}")];
        begin(&bench, &held[nth].0.url("/file.bin"), &options)
    });
    let staging = |nth: usize| small.join(format!("{nth}.outlive-part"));
    until("each is half way, or has no room", || {
        jobs.iter().enumerate().all(|(nth, job)| {
            let parts = staged(&staging(nth), ".part");
            let found = parts.first().and_then(|part| fs::metadata(part).ok());
            found.is_some_and(|found| found.len() == 2_000_000) || job.recorded() == "paused"
        })
    });
    for (_, go) in &held {
        go.store(true, Ordering::Relaxed);
    }
    let mut states = jobs.clone().map(|job| {
        until("it has ended or is paused", || {
            matches!(job.recorded().as_str(), "done" | "paused")
        });
        job.recorded()
    });
    for (nth, state) in states.iter().enumerate() {
        if state == "done" {
            assert!(fs::read(small.join(nth.to_string())).unwrap() == *bytes[nth]);
        } else {
            let why = jobs[nth].shown()["message"].as_str().unwrap().to_owned();
            assert!(why.contains("make room"), "{why}");
            // Whoever gives it room by giving it up.
            bench.run(["stop", jobs[nth].id()]).expect(0);
            until("its worker is gone", || jobs[nth].worker().is_none());
            bench.run(["clean", jobs[nth].id()]).expect(0);
            nothing_is_left(&small);
        }
    }
    states.sort_unstable();
    assert_eq!(states, ["done", "paused"]);
    bench.audit();
}

/// P25: the disk of the store gets full while bytes come, and what was fetched lands once there is room for the record.
#[test]
fn a_full_disk_of_the_record_loses_nothing() {
    let bench = bench!();
    let Some(disk) = bench.mount("4m") else {
        return bench.audit();
    };
    let file = Served::of_length(100_000, 39);
    let bytes = file.bytes.clone();
    let (server, go) = holding(file);
    let job = begin(&bench, &server.url("/file.bin"), &[]);
    until_arrived(&bench, 50_000);
    disk.fill("ballast");
    go.store(true, Ordering::Relaxed);
    until("all of it was sent", || server.sent() == 100_000);
    assert_eq!(job.state(), "running");
    fs::remove_file(bench.root().join("ballast")).unwrap();
    assert_eq!(job.wait(), 0);
    assert!(fs::read(bench.file("file.bin")).unwrap() == *bytes);
    nothing_is_left(&bench.work());
    bench.audit();
}

/// P50, P28, P52: a record or a part that was damaged, emptied or taken away costs what it told of, and nothing else.
#[test]
fn a_damaged_part_or_record_is_begun_anew() {
    type Spoil = fn(&std::path::Path);
    let spoil: [(&str, Spoil); 5] = [
        ("json", |path| fs::write(path, vec![0; 100]).unwrap()),
        ("json", |path| fs::write(path, b"").unwrap()),
        ("json", |path| fs::remove_file(path).unwrap()),
        ("part", |path| fs::write(path, b"").unwrap()),
        ("part", |path| fs::remove_file(path).unwrap()),
    ];
    for (which, spoil) in spoil {
        let bench = bench!();
        let file = Served::of_length(100_000, 37);
        let bytes = file.bytes.clone();
        let server = halting(file, 1);
        let job = begin(&bench, &server.url("/file.bin"), &[]);
        let staging = bench.work().join("file.bin.outlive-part");
        until_arrived(&bench, 33_333);
        bench.run(["pause", job.id()]).expect(0);
        spoil(&staged(&staging, which)[0]);
        bench.run(["resume", job.id()]).expect(0);
        assert_eq!(job.wait(), 0, "{which}");
        assert!(
            fs::read(bench.work().join("file.bin")).unwrap() == *bytes,
            "{which}"
        );
        nothing_is_left(&bench.work());
        bench.audit();
    }
}

/// P52: a file of the full length that nobody has recorded anything of is not taken for complete.
#[test]
fn a_part_without_a_record_is_nobodys() {
    let bench = bench!();
    let file = Served::of_length(100_000, 38);
    let bytes = file.bytes.clone();
    let server = halting(file, 1);
    let job = begin(&bench, &server.url("/file.bin"), &[]);
    let staging = bench.work().join("file.bin.outlive-part");
    until_arrived(&bench, 33_333);
    bench.run(["pause", job.id()]).expect(0);
    fs::remove_file(&staged(&staging, ".json")[0]).unwrap();
    let part = fs::OpenOptions::new()
        .write(true)
        .open(&staged(&staging, ".part")[0])
        .unwrap();
    part.set_len(100_000).unwrap();
    bench.run(["resume", job.id()]).expect(0);
    assert_eq!(job.wait(), 0);
    assert!(fs::read(bench.work().join("file.bin")).unwrap() == *bytes);
    assert!(
        notes(&job)
            .iter()
            .any(|note| note.contains("nothing tells")),
        "{:?}",
        notes(&job)
    );
    bench.audit();
}

/// The mode is that of a new file of whoever asked for it.
#[test]
fn what_lands_has_the_mode_of_its_submitter() {
    use std::os::unix::fs::PermissionsExt;
    let bench = bench!();
    let file = Served::of_length(10, 39);
    let server = Server::new(move |request, reply| file.serve(request, reply));
    let command = bench.verb_after("umask 027", ["pull", &server.url("/file.bin"), "--wait"]);
    bench.end(command).expect(0);
    let mode = fs::metadata(bench.work().join("file.bin"))
        .unwrap()
        .permissions()
        .mode();
    assert_eq!(mode & 0o777, 0o640);
    bench.audit();
}

#[test]
fn what_cannot_be_is_refused_at_once() {
    let bench = bench!();
    for (arguments, word) in [
        (vec!["pull", "ftp://a/b"], "begins with none"),
        (vec!["pull", "https://a/"], "--to"),
        (
            vec!["pull", "https://a/b", "--sha256", "abc"],
            "64 hexadecimal",
        ),
        (
            vec!["pull", "https://a/b", "--include", "x"],
            "repositories",
        ),
        (
            vec!["pull", "hf:a/b", "--sha256", "abc"],
            "one file of the web",
        ),
    ] {
        let ran = bench.run(arguments).expect(2);
        assert!(ran.errors().contains(word), "{}", ran.errors());
    }
    assert!(bench.jobs().is_empty());
    bench.audit();
}
