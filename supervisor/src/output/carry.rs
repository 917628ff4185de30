//! The pipe side of a carrier: takes what a command prints out of its pipe, so that the command
//! never waits for a disk, a name or a reader.
//!
//! Copying through a buffer with `read` and an appending `write` is chosen over `splice`: it was
//! measured faster for every size of write (splice takes the pipe page by page), and splice refuses
//! append mode, so that a truncation by somebody else could leave a hole of zeros.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::Path;
use std::time::{Duration, Instant};

use rustix::fs::OFlags;
use rustix::io::Errno;
use rustix::pipe::PipeFlags;

use super::MOST_KEPT;
use super::open::open_dir;
use super::sink::Sink;

/// The most that is moved at a time, in bytes: what an ordinary pipe holds.
const CHUNK: usize = 64 << 10;

/// How many chunks one call moves at most, so that the caller's loop stays responsive.
const CHUNKS_PER_CALL: usize = 8;

/// One stream of a command on its way into files of limited size.
#[derive(Debug)]
pub(crate) struct Carrier {
    pipe: OwnedFd,
    sink: Sink,
    buffer: Box<[u8]>,
    pace: Pace,
}

/// What one call has moved.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Carried {
    /// Bytes taken out of the pipe, kept or dropped.
    pub(crate) bytes: u64,
    /// Nobody has the other end any more and everything was taken: stop polling.
    pub(crate) ended: bool,
}

impl Carrier {
    /// A carrier into the file `name` of the directory `dir` (each file at most `limit` bytes, up
    /// to `keep` older ones beside it, at most [`MOST_KEPT`]), and the end of the pipe that the
    /// command is to write to. Both ends are close-on-exec; only the carrier's own does not block.
    ///
    /// A file that cannot be opened now is no error: it is tried again with each output.
    ///
    /// # Errors
    /// The directory cannot be opened, or there are no descriptors left for a pipe.
    pub(crate) fn new(
        dir: &Path,
        name: &str,
        limit: u64,
        keep: u32,
    ) -> io::Result<(Carrier, OwnedFd)> {
        let dir = open_dir(dir)?;
        let (pipe, for_command) = rustix::pipe::pipe_with(PipeFlags::CLOEXEC)?;
        rustix::fs::fcntl_setfl(&pipe, OFlags::NONBLOCK)?;
        let sink = Sink::new(dir, name, limit, keep.min(MOST_KEPT));
        let buffer = vec![0; CHUNK].into_boxed_slice();
        let carrier = Carrier {
            pipe,
            sink,
            buffer,
            pace: Pace::default(),
        };
        Ok((carrier, for_command))
    }

    /// What to poll for reading.
    pub(crate) fn fd(&self) -> BorrowedFd<'_> {
        self.pipe.as_fd()
    }

    /// Bytes that were printed and that no reader can see any more: deleted with the oldest file,
    /// or dropped because they could not be written. What somebody else removed or truncated is not
    /// counted.
    pub(crate) fn dropped_bytes(&self) -> u64 {
        self.sink.dropped()
    }

    /// Moves what is there now, at most 512 KiB. Never waits for more output; may pause for 100 µs
    /// when output trickles in faster than it is worth waking up for.
    ///
    /// # Errors
    /// Reading the pipe failed, which no state of the disk can cause.
    pub(crate) fn carry(&mut self) -> io::Result<Carried> {
        let quick = self.pace.before();
        let mut carried = Carried::default();
        for _ in 0..CHUNKS_PER_CALL {
            let took = self.take(CHUNK, &mut carried)?;
            // A short chunk has emptied the pipe; asking again would only be told so.
            if took < CHUNK {
                break;
            }
        }
        self.pace.after(quick, carried.bytes, self.pipe.as_fd());
        Ok(carried)
    }

    /// Moves what was in the pipe when called, for the end of a job. Does not wait for those who
    /// still have the other end, and is not held up by what they print meanwhile.
    ///
    /// # Errors
    /// As [`Carrier::carry`].
    pub(crate) fn drain(&mut self) -> io::Result<Carried> {
        let mut carried = Carried::default();
        let there = rustix::io::ioctl_fionread(&self.pipe)?;
        while carried.bytes < there {
            let left = (there - carried.bytes).min(CHUNK as u64) as usize;
            if self.take(left, &mut carried)? == 0 {
                break;
            }
        }
        Ok(carried)
    }

    /// Moves one chunk of at most `most` bytes: how many it was. None are left, for now or for
    /// ever, at 0.
    fn take(&mut self, most: usize, carried: &mut Carried) -> io::Result<usize> {
        let took = match rustix::io::read(&self.pipe, &mut self.buffer[..most]) {
            Ok(took) => took,
            Err(Errno::AGAIN | Errno::INTR) => return Ok(0),
            Err(errno) => return Err(errno.into()),
        };
        self.sink.put(&self.buffer[..took]);
        carried.bytes += took as u64;
        carried.ended = took == 0;
        Ok(took)
    }
}

/// Calls nearer to each other than this are a stream, not single lines.
const NEAR: Duration = Duration::from_micros(150);
/// How long a trickling stream is left to gather.
const NAP: Duration = Duration::from_micros(100);
/// Fewer bytes than this are not worth a wake-up each.
const TRICKLE: u64 = 4096;
/// How many calls in a row make a stream a lasting one.
const LASTING: u32 = 64;
/// The pipe of a lasting stream, in bytes. Not larger: all pipes of one user share 64 MiB, and
/// whoever is above that gets pipes of a page or two.
const LARGER_PIPE: usize = 256 << 10;

/// Keeps a command that prints many short lines from waking the carrier for each: measured, 200 MB
/// of 100-byte writes take half the time and a seventh of the processor so.
#[derive(Debug, Default)]
struct Pace {
    last_end: Option<Instant>,
    last_bytes: u64,
    streak: u32,
    /// Whether the larger pipe was asked for, and given. Without it, the command would fill the
    /// pipe during a nap and wait.
    larger: Option<bool>,
}

impl Pace {
    /// Waits a moment where that is worth it. Whether this call follows closely on the last.
    fn before(&self) -> bool {
        let quick = self.last_end.is_some_and(|end| end.elapsed() < NEAR);
        if quick && self.larger == Some(true) && self.last_bytes < TRICKLE {
            std::thread::sleep(NAP);
        }
        quick
    }

    fn after(&mut self, quick: bool, bytes: u64, pipe: BorrowedFd<'_>) {
        let busy = quick || bytes >= CHUNK as u64;
        self.streak = if busy {
            self.streak.saturating_add(1)
        } else {
            0
        };
        if self.streak >= LASTING && self.larger.is_none() {
            self.larger = Some(rustix::pipe::fcntl_setpipe_size(pipe, LARGER_PIPE).is_ok());
        }
        self.last_bytes = bytes;
        self.last_end = Some(Instant::now());
    }
}

#[cfg(test)]
mod tests {
    use super::super::read::{Start, print};
    use super::super::share;
    use super::*;
    use rustix::event::{PollFd, PollFlags, poll};
    use std::fs::{self, File};
    use std::io::Write;
    use std::os::unix::fs::{MetadataExt, symlink};
    use std::process::Command;

    /// Reproducible noise, every byte value in it.
    struct Noise(u64);

    impl Noise {
        fn next(&mut self) -> u64 {
            self.0 ^= self.0 << 13;
            self.0 ^= self.0 >> 7;
            self.0 ^= self.0 << 17;
            self.0
        }

        fn bytes(&mut self, count: usize) -> Vec<u8> {
            (0..count).map(|_| (self.next() >> 32) as u8).collect()
        }
    }

    /// Carries until nobody writes any more, looking at the directory after each call. Fails rather
    /// than hangs.
    fn carry_all(carrier: &mut Carrier, mut look: impl FnMut(&Carrier)) {
        let patience = rustix::time::Timespec {
            tv_sec: 20,
            tv_nsec: 0,
        };
        loop {
            let mut fds = [PollFd::new(&carrier.pipe, PollFlags::IN)];
            assert_eq!(
                poll(&mut fds, Some(&patience)).unwrap(),
                1,
                "the writer is blocked"
            );
            let carried = carrier.carry().unwrap();
            look(carrier);
            if carried.ended {
                return;
            }
        }
    }

    fn writer(
        end: OwnedFd,
        work: impl FnOnce(&mut File) + Send + 'static,
    ) -> std::thread::JoinHandle<()> {
        std::thread::spawn(move || work(&mut File::from(end)))
    }

    /// Apparent size and blocks, in bytes, of what a directory holds.
    fn du(dir: &Path) -> (u64, u64) {
        let entries = fs::read_dir(dir)
            .unwrap()
            .filter_map(|entry| entry.unwrap().metadata().ok());
        entries.fold((0, 0), |(size, blocks), file| {
            (size + file.len(), blocks + file.blocks() * 512)
        })
    }

    fn kept(dir: &Path) -> Vec<u8> {
        let mut out = Vec::new();
        print(dir, "log", Start::Top, &mut out).unwrap();
        out
    }

    #[test]
    fn bytes_are_exact_and_the_limit_holds_whatever_the_writer_does() {
        for (seed, keep) in [(1, 0), (2, 1), (3, 5)] {
            let temp = tempfile::tempdir().unwrap();
            let dir = temp.path();
            let budget = 300_000;
            let (mut carrier, end) =
                Carrier::new(dir, "log", share(budget, 1, keep), keep).unwrap();
            let mut noise = Noise(seed);
            let mut all = noise.bytes(1_000_000);
            all.extend(b"x".repeat(700_000)); // a long line without its newline
            let sent = all.clone();
            let thread = writer(end, move |end| {
                let mut rest = &sent[..];
                while !rest.is_empty() {
                    let some = (noise.next() % 20_000 + 1).min(rest.len() as u64) as usize;
                    end.write_all(&rest[..some]).unwrap();
                    rest = &rest[some..];
                }
            });
            carry_all(&mut carrier, |_| assert!(du(dir).0 <= budget));
            thread.join().unwrap();
            let kept = kept(dir);
            assert!(all.ends_with(&kept), "keep {keep}");
            assert_eq!(
                kept.len() as u64 + carrier.dropped_bytes(),
                all.len() as u64
            );
            assert!(
                keep == 0 || kept.len() as u64 >= budget / 2,
                "keeps too little: {}",
                kept.len()
            );
        }
    }

    #[test]
    fn a_third_of_a_gigabyte_stays_within_its_budget_and_one_chunk() {
        let temp = tempfile::tempdir().unwrap();
        let dir = temp.path();
        let (budget, keep, total) = (10_u64 << 20, 3, 300_u64 << 20);
        let (mut carrier, end) = Carrier::new(dir, "log", share(budget, 1, keep), keep).unwrap();
        let thread = writer(end, move |end| {
            for _ in 0..total / 8192 {
                end.write_all(&[b'y'; 8192]).unwrap();
            }
        });
        carry_all(&mut carrier, |_| {
            let (size, blocks) = du(dir);
            assert!(
                size <= budget && blocks <= budget + CHUNK as u64,
                "{size} {blocks}"
            );
        });
        thread.join().unwrap();
        assert_eq!(carrier.dropped_bytes() + du(dir).0, total);
    }

    #[test]
    fn both_streams_together_stay_within_the_budget() {
        let temp = tempfile::tempdir().unwrap();
        let dir = temp.path();
        let budget = 100_000;
        for name in [super::super::STDOUT, super::super::STDERR] {
            let (mut carrier, end) = Carrier::new(dir, name, share(budget, 2, 1), 1).unwrap();
            let thread = writer(end, |end| end.write_all(&[0; 500_000]).unwrap());
            carry_all(&mut carrier, |_| assert!(du(dir).0 <= budget));
            thread.join().unwrap();
        }
        assert!(du(dir).0 > budget / 2);
    }

    #[test]
    fn another_attempt_goes_on_in_the_same_file() {
        let temp = tempfile::tempdir().unwrap();
        for text in ["first ", "second"] {
            let (mut carrier, end) = Carrier::new(temp.path(), "log", 10, 3).unwrap();
            let thread = writer(end, move |end| end.write_all(text.as_bytes()).unwrap());
            carry_all(&mut carrier, |_| {});
            thread.join().unwrap();
        }
        assert_eq!(fs::read(temp.path().join("log.1")).unwrap(), b"first seco");
        assert_eq!(fs::read(temp.path().join("log")).unwrap(), b"nd");
    }

    /// What somebody may do to the log of a job.
    fn meddle(dir: &Path, round: u64) {
        let log = dir.join("log");
        match round % 7 {
            0 => drop(fs::remove_file(&log)),
            1 => drop(fs::rename(&log, dir.join("moved"))),
            2 => {
                drop(fs::remove_file(&log));
                drop(symlink(dir.join("precious"), &log));
            }
            3 => drop(fs::OpenOptions::new().write(true).truncate(true).open(&log)),
            4 => {
                drop(fs::remove_file(&log));
                drop(fs::create_dir(&log));
            }
            5 => drop(fs::remove_file(dir.join("log.1"))),
            _ => {
                drop(fs::remove_file(&log));
                let kind = rustix::fs::FileType::Fifo;
                let mode = rustix::fs::Mode::RWXU;
                let _ = rustix::fs::mknodat(rustix::fs::CWD, &log, kind, mode, 0);
            }
        }
    }

    #[test]
    fn a_chatty_writer_never_blocks_whatever_is_done_to_its_log() {
        let temp = tempfile::tempdir().unwrap();
        let dir = temp.path();
        fs::write(dir.join("precious"), b"precious").unwrap();
        let (mut carrier, end) = Carrier::new(dir, "log", 20_000, 2).unwrap();
        let thread = writer(end, |end| {
            for i in 0..200_000 {
                writeln!(end, "line {i}").unwrap();
            }
        });
        let mut round = 0;
        carry_all(&mut carrier, |_| {
            round += 1;
            meddle(dir, round);
        });
        thread.join().unwrap();
        assert!(round > 7);
        assert_eq!(fs::read(dir.join("precious")).unwrap(), b"precious");
    }

    #[test]
    fn a_file_is_back_at_its_place_with_the_next_output() {
        for round in 0..7 {
            let temp = tempfile::tempdir().unwrap();
            let dir = temp.path();
            fs::write(dir.join("precious"), b"precious").unwrap();
            let (mut carrier, end) = Carrier::new(dir, "log", 1000, 2).unwrap();
            let mut end = File::from(end);
            end.write_all(b"before\n").unwrap();
            carrier.carry().unwrap();
            meddle(dir, round);
            end.write_all(b"after\n").unwrap();
            carrier.carry().unwrap();
            let expected = if round == 5 {
                "before\nafter\n"
            } else {
                "after\n"
            };
            assert_eq!(
                fs::read_to_string(dir.join("log")).unwrap(),
                expected,
                "round {round}"
            );
            assert_eq!(fs::read(dir.join("precious")).unwrap(), b"precious");
            assert_eq!(carrier.dropped_bytes(), 0);
        }
    }

    #[test]
    fn output_of_others_in_the_same_file_is_not_overwritten() {
        let temp = tempfile::tempdir().unwrap();
        let log = temp.path().join("log");
        let (mut carrier, end) = Carrier::new(temp.path(), "log", 1000, 1).unwrap();
        let mut end = File::from(end);
        end.write_all(b"one\n").unwrap();
        carrier.carry().unwrap();
        fs::OpenOptions::new()
            .append(true)
            .open(&log)
            .unwrap()
            .write_all(b"a mark\n")
            .unwrap();
        end.write_all(b"two\n").unwrap();
        carrier.carry().unwrap();
        assert_eq!(fs::read(&log).unwrap(), b"one\na mark\ntwo\n");
    }

    #[test]
    fn a_rotation_that_fails_drops_counts_and_is_made_up_for() {
        let temp = tempfile::tempdir().unwrap();
        let dir = temp.path();
        // A directory at the place of the oldest file, and every name taken that it could be moved
        // to.
        fs::create_dir(dir.join("log.1")).unwrap();
        fs::create_dir(dir.join("log.1.displaced")).unwrap();
        (2..=16).for_each(|n| fs::create_dir(dir.join(format!("log.1.displaced-{n}"))).unwrap());
        let (mut carrier, end) = Carrier::new(dir, "log", 1000, 1).unwrap();
        let mut end = File::from(end);
        pass(&mut carrier, &mut end, 50_000);
        assert_eq!(fs::metadata(dir.join("log")).unwrap().len(), 1000);
        assert_eq!(carrier.dropped_bytes(), 49_000);
        fs::remove_dir(dir.join("log.1")).unwrap();
        recovers(&mut carrier, &mut end, dir);
        assert_eq!(fs::metadata(dir.join("log.1")).unwrap().len(), 1000);
    }

    #[test]
    fn the_directory_may_go() {
        let temp = tempfile::tempdir().unwrap();
        let (mut carrier, end) = Carrier::new(temp.path(), "log", 1000, 1).unwrap();
        drop(temp);
        let thread = writer(end, |end| end.write_all(&[b'x'; 300_000]).unwrap());
        carry_all(&mut carrier, |_| {});
        thread.join().unwrap();
        assert_eq!(carrier.dropped_bytes(), 300_000);
    }

    #[test]
    fn drain_takes_what_is_there_and_does_not_wait_for_a_process_left_behind() {
        let temp = tempfile::tempdir().unwrap();
        let (mut carrier, end) = Carrier::new(temp.path(), "log", 1 << 20, 1).unwrap();
        assert_eq!(carrier.drain().unwrap(), Carried::default());
        let mut end = File::from(end);
        let most = end.write(&[b'z'; 60_000]).unwrap() as u64;
        assert_eq!(
            carrier.drain().unwrap(),
            Carried {
                bytes: most,
                ended: false
            }
        );
        assert_eq!(carrier.drain().unwrap(), Carried::default());
        drop(end);
        assert!(carrier.carry().unwrap().ended);
        assert_eq!(kept(temp.path()).len() as u64, most);
    }

    #[test]
    fn only_its_own_end_of_the_pipe_does_not_block() {
        let temp = tempfile::tempdir().unwrap();
        let (carrier, end) = Carrier::new(temp.path(), "log", 100, 1).unwrap();
        let flags = |fd: BorrowedFd<'_>| rustix::fs::fcntl_getfl(fd).unwrap();
        assert!(flags(carrier.fd()).contains(OFlags::NONBLOCK));
        assert!(!flags(end.as_fd()).contains(OFlags::NONBLOCK));
        for fd in [carrier.fd(), end.as_fd()] {
            let flags = rustix::io::fcntl_getfd(fd).unwrap();
            assert!(flags.contains(rustix::io::FdFlags::CLOEXEC));
        }
    }

    /// A small file system of its own, where this may mount one; unmounted when dropped.
    struct SmallDisk(tempfile::TempDir);

    impl SmallDisk {
        fn new() -> Option<SmallDisk> {
            let dir = tempfile::tempdir().unwrap();
            let mount = ["-t", "tmpfs", "-o", "size=256k,mode=700", "outlive-test"];
            run("mount", &mount, dir.path()).then(|| SmallDisk(dir))
        }
    }

    impl Drop for SmallDisk {
        fn drop(&mut self) {
            run("umount", &["-l"], self.0.path());
        }
    }

    fn run(program: &str, arguments: &[&str], place: &Path) -> bool {
        let mut command = Command::new(program);
        command
            .args(arguments)
            .arg(place)
            .stderr(std::process::Stdio::null());
        command.status().is_ok_and(|status| status.success())
    }

    /// Writes `count` bytes through `carrier` and sees that all were taken.
    fn pass(carrier: &mut Carrier, end: &mut File, count: usize) {
        let mut taken = 0;
        while taken < count {
            let some = (count - taken).min(30_000);
            end.write_all(&vec![b'x'; some]).unwrap();
            let carried = carrier.drain().unwrap();
            assert_eq!(carried.bytes, some as u64);
            taken += some;
        }
    }

    #[test]
    fn a_full_disk_drops_counts_and_recovers() {
        let Some(disk) = SmallDisk::new() else { return }; // may not mount
        let dir = disk.0.path();
        let (mut carrier, end) = Carrier::new(dir, "log", 1 << 20, 1).unwrap();
        let mut end = File::from(end);
        pass(&mut carrier, &mut end, 1_000_000);
        let on_disk = fs::metadata(dir.join("log")).unwrap().len();
        assert!(on_disk > 0 && on_disk <= 256 << 10);
        assert_eq!(carrier.dropped_bytes() + on_disk, 1_000_000);

        // Room again.
        fs::remove_file(dir.join("log")).unwrap();
        recovers(&mut carrier, &mut end, dir);
    }

    /// The next output is kept, once the moment is over in which nothing is tried.
    fn recovers(carrier: &mut Carrier, end: &mut File, dir: &Path) {
        let deadline = Instant::now() + Duration::from_secs(10);
        loop {
            let before = carrier.dropped_bytes();
            pass(carrier, end, 100);
            if carrier.dropped_bytes() == before {
                break;
            }
            assert!(Instant::now() < deadline, "does not recover");
        }
        assert!(fs::metadata(dir.join("log")).unwrap().len() >= 100);
    }

    #[test]
    fn a_read_only_disk_keeps_no_job_from_starting() {
        let Some(disk) = SmallDisk::new() else { return }; // may not mount
        let dir = disk.0.path();
        assert!(run("mount", &["-o", "remount,ro"], dir));
        let (mut carrier, end) = Carrier::new(dir, "log", 1000, 0).unwrap();
        let mut end = File::from(end);
        pass(&mut carrier, &mut end, 5000);
        assert_eq!(carrier.dropped_bytes(), 5000);
        assert!(run("mount", &["-o", "remount,rw"], dir));
        recovers(&mut carrier, &mut end, dir);
    }
}
