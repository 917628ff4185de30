use super::super::carry::Carrier;
use super::*;
use crate::watch::Interest;
use std::fs;
use std::os::unix::fs::symlink;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::Instant;

/// A writer that several threads share.
#[derive(Clone, Default)]
struct Shared(Arc<Mutex<Vec<u8>>>);

impl Write for Shared {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }
    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// A follower in a thread of its own.
struct Following {
    out: Shared,
    told: Arc<Mutex<Vec<Notice>>>,
    over: Arc<AtomicBool>,
    thread: Option<JoinHandle<io::Result<()>>>,
}

impl Following {
    fn begin(dir: &Path, start: Start) -> Following {
        Following::with(Watch::new(dir), dir, start)
    }

    fn with(watch: Watch, dir: &Path, start: Start) -> Following {
        let (out, told) = (Shared::default(), Arc::default());
        let over = Arc::new(AtomicBool::new(false));
        let thread = {
            let (dir, mut out, told) = (dir.to_owned(), out.clone(), Arc::clone(&told));
            let told: Arc<Mutex<Vec<Notice>>> = told;
            let over = Arc::clone(&over);
            std::thread::spawn(move || {
                let mut notices = |notice| told.lock().unwrap().push(notice);
                let mut ended = || over.load(Ordering::SeqCst);
                follow_with(
                    watch,
                    &dir,
                    "log",
                    start,
                    &mut out,
                    &mut notices,
                    &mut ended,
                )
            })
        };
        Following {
            out,
            told,
            over,
            thread: Some(thread),
        }
    }

    fn printed(&self) -> Vec<u8> {
        self.out.0.lock().unwrap().clone()
    }

    fn told(&self) -> Vec<Notice> {
        self.told.lock().unwrap().clone()
    }

    fn expect(&self, printed: &[u8]) {
        until(&format!("{:?}", String::from_utf8_lossy(printed)), || {
            self.printed() == printed
        });
    }

    fn expect_told(&self, notice: Notice) {
        until(&format!("{notice:?}"), || self.told().contains(&notice));
    }

    fn end(mut self) -> (Vec<u8>, Vec<Notice>) {
        self.over.store(true, Ordering::SeqCst);
        self.thread.take().unwrap().join().unwrap().unwrap();
        (self.printed(), self.told())
    }
}

impl Drop for Following {
    fn drop(&mut self) {
        self.over.store(true, Ordering::SeqCst);
    }
}

fn until(what: &str, mut holds: impl FnMut() -> bool) {
    let deadline = Instant::now() + Duration::from_secs(20);
    while !holds() {
        assert!(Instant::now() < deadline, "never came true: {what}");
        std::thread::sleep(Duration::from_millis(1));
    }
}

fn append(dir: &Path, text: &str) {
    let mut file = fs::OpenOptions::new()
        .append(true)
        .create(true)
        .open(dir.join("log"))
        .unwrap();
    file.write_all(text.as_bytes()).unwrap();
}

#[test]
fn prints_from_the_top_goes_on_with_what_comes_and_ends() {
    let temp = tempfile::tempdir().unwrap();
    let dir = temp.path();
    fs::write(dir.join("log.1"), "zero\n").unwrap();
    fs::write(dir.join("log"), "one\n").unwrap();
    let following = Following::begin(dir, Start::Top);
    following.expect(b"zero\none\n");
    append(dir, "two\nthr");
    following.expect(b"zero\none\ntwo\nthr");
    // Written before the end is said, and so printed before it ends.
    append(dir, "ee");
    let (printed, told) = following.end();
    assert_eq!(printed, b"zero\none\ntwo\nthree");
    assert_eq!(told, []);
}

#[test]
fn begins_with_the_last_lines_across_files() {
    let temp = tempfile::tempdir().unwrap();
    let dir = temp.path();
    for (name, text) in [("log.2", "a\nb\nc"), ("log.1", "c\n"), ("log", "d\n")] {
        fs::write(dir.join(name), text).unwrap();
    }
    let following = Following::begin(dir, Start::LastLines(2));
    following.expect(b"cc\nd\n");
    append(dir, "e\n");
    assert_eq!(following.end().0, b"cc\nd\ne\n");
    let nothing = Following::begin(dir, Start::LastLines(0));
    assert_eq!(nothing.end().0, b"");
}

#[test]
fn waits_for_a_file_that_is_not_there_yet() {
    let temp = tempfile::tempdir().unwrap();
    let following = Following::begin(temp.path(), Start::Top);
    append(temp.path(), "at last\n");
    following.expect(b"at last\n");
    assert_eq!(following.end().1, []);
}

#[test]
fn a_truncated_file_is_followed_from_its_start() {
    let temp = tempfile::tempdir().unwrap();
    let dir = temp.path();
    append(dir, "before\n");
    let following = Following::begin(dir, Start::Top);
    following.expect(b"before\n");
    for _ in 0..3 {
        let so_far = following.printed();
        let told = following.told().len();
        fs::OpenOptions::new()
            .write(true)
            .open(dir.join("log"))
            .unwrap()
            .set_len(0)
            .unwrap();
        until("told", || following.told().len() > told);
        append(dir, "after\n");
        following.expect(&[so_far, b"after\n".to_vec()].concat());
    }
    assert_eq!(following.end().1, [Notice::Truncated; 3]);
}

#[test]
fn rotation_loses_nothing_and_repeats_nothing() {
    let temp = tempfile::tempdir().unwrap();
    let dir = temp.path();
    let (mut carrier, end) = Carrier::new(dir, "log", 100, 3).unwrap();
    let mut end = fs::File::from(end);
    let following = Following::begin(dir, Start::Top);
    let mut all = Vec::new();
    for i in 0..400 {
        let line = format!("line {i} of the rotating log\n");
        end.write_all(line.as_bytes()).unwrap();
        carrier.carry().unwrap();
        all.extend(line.as_bytes());
        // Never so many rotations ahead that a file could come and go unseen.
        if i % 6 == 5 {
            following.expect(&all);
        }
    }
    let (printed, told) = following.end();
    assert!(printed == all);
    assert_eq!(told, []);
}

#[test]
fn what_was_rotated_away_unseen_is_told_and_nothing_is_repeated() {
    let temp = tempfile::tempdir().unwrap();
    let dir = temp.path();
    let (mut carrier, end) = Carrier::new(dir, "log", 64, 1).unwrap();
    let mut end = fs::File::from(end);
    let following = Following::begin(dir, Start::Top);
    // Eight bytes each, so that no line is cut by a rotation.
    for i in 0..20_000_u64 {
        writeln!(end, "{i:07}").unwrap();
        carrier.carry().unwrap();
    }
    let (printed, told) = following.end();
    let (mut breaks, mut next) = (0, 0);
    for line in String::from_utf8(printed).unwrap().lines() {
        let number: u64 = line.parse().unwrap();
        assert!(number >= next, "{number} after {next}: printed twice");
        breaks += usize::from(number > next);
        next = number + 1;
    }
    assert_eq!(next, 20_000);
    // On a busy machine a rotation may stand still between its two steps. Then a file that is not there is told of, and each time that
    // there is another one next.
    let mut others = told.iter().filter(|notice| **notice != Notice::Missed);
    while let Some(notice) = others.next() {
        assert_eq!(*notice, Notice::Removed, "{told:?}");
        assert_eq!(others.next(), Some(&Notice::Replaced), "{told:?}");
    }
    // The first file that was ever opened may already be a later one.
    assert!(
        breaks <= told.len() + 1,
        "{breaks} breaks, told {}",
        told.len()
    );
}

#[test]
fn without_older_files_each_new_start_is_followed() {
    let temp = tempfile::tempdir().unwrap();
    let dir = temp.path();
    let (mut carrier, end) = Carrier::new(dir, "log", 10, 0).unwrap();
    let mut end = fs::File::from(end);
    let following = Following::begin(dir, Start::Top);
    let mut all = Vec::new();
    for i in 0..50 {
        let line = format!("number {i:02}\n");
        end.write_all(line.as_bytes()).unwrap();
        carrier.carry().unwrap();
        all.extend(line.as_bytes());
        following.expect(&all);
    }
    let (_, told) = following.end();
    assert!(
        told.iter().all(|notice| *notice == Notice::Missed),
        "{told:?}"
    );
}

#[test]
fn removed_replaced_and_symlinked_files_are_told_of_and_not_followed_astray() {
    let temp = tempfile::tempdir().unwrap();
    let dir = temp.path();
    let log = dir.join("log");
    fs::write(dir.join("secret"), "secret\n").unwrap();
    fs::write(dir.join("log.1"), "old\n").unwrap();
    append(dir, "one\n");
    let mut held = fs::OpenOptions::new().append(true).open(&log).unwrap();
    let following = Following::begin(dir, Start::Top);
    following.expect(b"old\none\n");

    fs::remove_file(&log).unwrap();
    following.expect_told(Notice::Removed);
    // A command that writes straight into the file still does.
    held.write_all(b"two\n").unwrap();
    following.expect(b"old\none\ntwo\n");

    symlink("secret", &log).unwrap();
    following.expect_told(Notice::NotAFile);
    fs::remove_file(&log).unwrap();
    append(dir, "three\n");
    following.expect(b"old\none\ntwo\nthree\n");
    following.expect_told(Notice::Replaced);

    fs::rename(&log, dir.join("elsewhere")).unwrap();
    append(dir, "four\n");
    following.expect(b"old\none\ntwo\nthree\nfour\n");
    let (printed, _) = following.end();
    assert_eq!(printed, b"old\none\ntwo\nthree\nfour\n");
}

#[test]
fn without_inotify_it_looks_often_enough() {
    let temp = tempfile::tempdir().unwrap();
    let dir = temp.path();
    let blind = Watch::without_inotify(Interest::Output);
    let following = Following::with(blind, dir, Start::Top);
    append(dir, "one\n");
    following.expect(b"one\n");
    fs::rename(dir.join("log"), dir.join("log.1")).unwrap();
    append(dir, "two\n");
    following.expect(b"one\ntwo\n");
    assert_eq!(following.end().1, []);
}

#[test]
fn a_reader_that_has_gone_away_ends_it_quietly() {
    let temp = tempfile::tempdir().unwrap();
    append(temp.path(), "one\n");
    let (reader, mut writer) = io::pipe().unwrap();
    drop(reader);
    let never = &mut || false;
    follow(
        temp.path(),
        "log",
        Start::Top,
        &mut writer,
        &mut |_| {},
        never,
    )
    .unwrap();
}

#[test]
fn the_directory_may_go_while_it_is_followed() {
    let temp = tempfile::tempdir().unwrap();
    append(temp.path(), "one\n");
    let following = Following::begin(temp.path(), Start::Top);
    following.expect(b"one\n");
    drop(temp);
    following.expect_told(Notice::Removed);
    assert_eq!(following.end().0, b"one\n");
}

#[test]
fn a_process_left_behind_cannot_keep_it_from_ending() {
    let temp = tempfile::tempdir().unwrap();
    let dir = temp.path();
    append(dir, "");
    let stop = Arc::new(AtomicBool::new(false));
    let chatty = {
        let (stop, log) = (Arc::clone(&stop), dir.join("log"));
        std::thread::spawn(move || {
            let mut log = fs::OpenOptions::new().append(true).open(log).unwrap();
            let mut written = 0;
            while !stop.load(Ordering::SeqCst) && written < 1 << 30 {
                written += log.write(&[b'x'; 4096]).unwrap();
            }
        })
    };
    let mut sink = io::sink();
    let outcome = follow(dir, "log", Start::Top, &mut sink, &mut |_| {}, &mut || true);
    stop.store(true, Ordering::SeqCst);
    chatty.join().unwrap();
    outcome.unwrap();
}

/// A writer during whose every write something happens.
struct Meanwhile<F: FnMut()>(Vec<u8>, F);

impl<F: FnMut()> Write for Meanwhile<F> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.extend(bytes);
        (self.1)();
        Ok(bytes.len())
    }
    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[test]
fn what_is_written_just_before_the_end_is_printed() {
    let temp = tempfile::tempdir().unwrap();
    let dir = temp.path();
    let ended = &mut || {
        append(dir, "goodbye\n");
        true
    };
    let mut out = Vec::new();
    follow(dir, "log", Start::Top, &mut out, &mut |_| {}, ended).unwrap();
    assert_eq!(out, b"goodbye\n");
}

#[test]
fn what_is_written_just_before_a_rotation_is_printed() {
    let temp = tempfile::tempdir().unwrap();
    let dir = temp.path();
    append(dir, "one ");
    let mut once = true;
    let meanwhile = || {
        if std::mem::take(&mut once) {
            append(dir, "two ");
            fs::rename(dir.join("log"), dir.join("log.1")).unwrap();
            append(dir, "three");
        }
    };
    let mut out = Meanwhile(Vec::new(), meanwhile);
    follow(dir, "log", Start::Top, &mut out, &mut |_| {}, &mut || true).unwrap();
    assert_eq!(out.0, b"one two three");
}

#[test]
fn rotations_after_the_end_cannot_keep_it_from_ending() {
    let temp = tempfile::tempdir().unwrap();
    let dir = temp.path();
    append(dir, "x");
    let mut rotations = 0;
    let meanwhile = || {
        rotations += 1;
        assert!(rotations < 100, "goes on for ever");
        fs::rename(dir.join("log"), dir.join("log.1")).unwrap();
        append(dir, "x");
    };
    let mut out = Meanwhile(Vec::new(), meanwhile);
    follow(dir, "log", Start::Top, &mut out, &mut |_| {}, &mut || true).unwrap();
}

#[test]
fn idle_it_uses_no_processor() {
    let temp = tempfile::tempdir().unwrap();
    append(temp.path(), "one\n");
    let clock = || {
        let now = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
        Duration::new(now.tv_sec as u64, now.tv_nsec as u32)
    };
    let mut asked = Vec::new();
    let ended = &mut || {
        asked.push(clock());
        asked.len() == 3
    };
    let begun = Instant::now();
    follow(
        temp.path(),
        "log",
        Start::Top,
        &mut io::sink(),
        &mut |_| {},
        ended,
    )
    .unwrap();
    assert!(
        begun.elapsed() >= Duration::from_millis(300),
        "woken without a reason"
    );
    assert!(
        asked[2] - asked[1] < Duration::from_millis(5),
        "{:?}",
        asked[2] - asked[1]
    );
}
