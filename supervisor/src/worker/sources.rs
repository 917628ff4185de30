//! Watching the files that a command is made of. Changes that come together count as one, once there was none for a moment.
//!
//! Only directories are watched that a pattern can reach, and those that are made later are watched then. What must never be here:
//! what becomes of the command.

use std::collections::HashMap;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd};
use std::path::{Path, PathBuf};
use std::time::Duration;

use rustix::fs::inotify::ReadFlags;
use state_machine::pattern::Pattern;

use crate::clock;
use crate::inotify::{Buffer, Instance, Interest};

/// Changes that follow each other so closely are one.
const QUIET: Duration = Duration::from_millis(100);
/// Where they never stop, it is not waited longer.
const LONGEST: Duration = Duration::from_secs(2);

/// The files that a command is made of.
pub(super) struct Sources {
    root: PathBuf,
    globs: Vec<Glob>,
    inotify: Instance,
    /// What is watched, from the root.
    dirs: HashMap<i32, PathBuf>,
    /// Why not everything is.
    gap: Option<String>,
    change: Option<Change>,
}

/// A change that was seen.
struct Change {
    /// The first file of it, from the root.
    path: String,
    /// When it was, in time since boot.
    first: Duration,
    last: Duration,
}

/// A pattern, and where it can lead.
struct Glob {
    pattern: Pattern,
    /// The directory that everything it matches is below, from the root.
    base: PathBuf,
    /// Whether it reaches further down than that directory.
    is_deep: bool,
}

impl Glob {
    fn new(text: &str) -> Glob {
        let wild = text.find(['*', '?', '[']);
        let literal = &text[..wild.unwrap_or(text.len())];
        let base = literal.rsplit_once('/').map_or("", |(base, _)| base);
        Glob {
            pattern: Pattern::new(text),
            base: PathBuf::from(base),
            is_deep: wild.is_some() || text.ends_with('/'),
        }
    }

    /// Whether a directory has something that it matches in it, or may lead to that.
    fn reaches(&self, dir: &Path) -> bool {
        self.base.starts_with(dir) || self.is_deep && dir.starts_with(&self.base)
    }
}

impl Sources {
    /// Watch what matches these patterns below `root`. Why that cannot be, where the machine has nothing left to watch with (F52).
    pub(super) fn new(root: &Path, patterns: &[String]) -> Result<Sources, String> {
        let cannot = |error: std::io::Error| format!("changes of files are not seen: {error}");
        let mut sources = Sources {
            root: root.canonicalize().map_err(cannot)?,
            globs: patterns.iter().map(|text| Glob::new(text)).collect(),
            inotify: Instance::new().map_err(cannot)?,
            dirs: HashMap::new(),
            gap: None,
            change: None,
        };
        sources.watch(PathBuf::new(), false);
        Ok(sources)
    }

    /// Why not everything is watched, told once.
    pub(super) fn take_gap(&mut self) -> Option<String> {
        self.gap.take()
    }

    /// What wakes who sleeps, where something happens.
    pub(super) fn fd(&self) -> BorrowedFd<'_> {
        self.inotify.as_fd()
    }

    /// When what was seen so far is a change that is over, in time since boot.
    pub(super) fn due(&self) -> Option<Duration> {
        let change = self.change.as_ref()?;
        Some((change.last + QUIET).min(change.first + LONGEST))
    }

    /// What has changed, once that is over.
    pub(super) fn take(&mut self) -> Option<String> {
        self.hear();
        self.due().filter(|due| *due <= clock::since_boot())?;
        self.change.take().map(|change| change.path)
    }

    /// What has changed so far is no news: what is started now has it.
    pub(super) fn forget(&mut self) {
        self.hear();
        self.change = None;
    }

    fn hear(&mut self) {
        loop {
            let mut heard = Vec::new();
            let mut buffer: Buffer = [MaybeUninit::uninit(); _];
            // What cannot be read is read at the next look.
            let _ = self.inotify.read(&mut buffer, |event| {
                let name = event
                    .file_name()
                    .map(|name| name.to_string_lossy().into_owned());
                heard.push((event.wd(), event.events(), name));
            });
            if heard.is_empty() {
                return;
            }
            for (watch, events, name) in heard {
                self.take_in(watch, events, name);
            }
        }
    }

    fn take_in(&mut self, watch: i32, events: ReadFlags, name: Option<String>) {
        if events.contains(ReadFlags::QUEUE_OVERFLOW) {
            self.watch(PathBuf::new(), false);
            self.saw("a great many files".into());
            return;
        }
        if events.contains(ReadFlags::IGNORED) {
            self.dirs.remove(&watch);
            return;
        }
        let (Some(dir), Some(name)) = (self.dirs.get(&watch), name) else {
            return;
        };
        let path = dir.join(name);
        if !events.contains(ReadFlags::ISDIR) {
            self.saw_if_meant(&path);
        } else if events.intersects(ReadFlags::CREATE | ReadFlags::MOVED_TO) {
            // What was put into it before it was watched is a change, too.
            self.watch(path, true);
        }
    }

    /// Watch a directory and those below it, as far as a pattern reaches.
    fn watch(&mut self, dir: PathBuf, is_new: bool) {
        let mut left = vec![dir];
        while let Some(dir) = left.pop() {
            if !self.globs.iter().any(|glob| glob.reaches(&dir)) {
                continue;
            }
            let there = self.root.join(&dir);
            match self.inotify.add(&there, Interest::Records) {
                Ok(watch) => {
                    self.dirs.insert(watch, dir.clone());
                }
                Err(rustix::io::Errno::NOENT | rustix::io::Errno::NOTDIR) => continue,
                Err(error) => {
                    let there = there.display();
                    let gap = || format!("changes below {there} are not seen: {error}");
                    self.gap.get_or_insert_with(gap);
                    continue;
                }
            }
            for entry in std::fs::read_dir(&there).into_iter().flatten().flatten() {
                let path = dir.join(entry.file_name());
                match entry.file_type() {
                    // What a repository keeps for itself changes whenever somebody only looks.
                    Ok(kind) if kind.is_dir() && entry.file_name() != ".git" => left.push(path),
                    Ok(kind) if !kind.is_dir() && is_new => self.saw_if_meant(&path),
                    _ => {}
                }
            }
        }
    }

    fn saw_if_meant(&mut self, path: &Path) {
        let path = path.to_string_lossy();
        if self.globs.iter().any(|glob| glob.pattern.matches(&path)) {
            self.saw(path.into_owned());
        }
    }

    fn saw(&mut self, path: String) {
        let now = clock::since_boot();
        let change = self.change.get_or_insert(Change {
            path,
            first: now,
            last: now,
        });
        change.last = now;
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    const ALL: &[&str] = &["src/**", "config.toml", "a/b/*.txt"];

    /// `None` on a machine whose instances other programs have used up.
    fn sources(root: &Path) -> Option<Sources> {
        let patterns: Vec<String> = ALL.iter().map(|&it| it.to_owned()).collect();
        let sources = Sources::new(root, &patterns).ok()?;
        sources.gap.is_none().then_some(sources)
    }

    /// What the next change is, without waiting until it is over.
    fn next(sources: &mut Sources) -> Option<String> {
        sources.hear();
        sources.change.take().map(|change| change.path)
    }

    #[test]
    fn what_a_pattern_matches_is_seen_and_nothing_else() {
        let root = tempfile::tempdir().unwrap();
        let at = |path: &str| root.path().join(path);
        fs::create_dir_all(at("src/deep")).unwrap();
        fs::create_dir_all(at("other")).unwrap();
        let Some(mut sources) = sources(root.path()) else {
            return;
        };
        assert_eq!(sources.dirs.len(), 3, "the root and those below src");
        for (file, seen) in [
            ("src/deep/a.rs", true),
            ("config.toml", true),
            ("other.toml", false),
            ("other/a.rs", false),
            ("src/b", true),
        ] {
            fs::write(at(file), "x").unwrap();
            assert_eq!(next(&mut sources).as_deref(), seen.then_some(file));
        }
        fs::rename(at("src/b"), at("src/c")).unwrap();
        assert_eq!(next(&mut sources).as_deref(), Some("src/b"));
        fs::remove_file(at("src/c")).unwrap();
        assert_eq!(next(&mut sources).as_deref(), Some("src/c"));
        fs::read(at("src/deep/a.rs")).unwrap();
        assert_eq!(next(&mut sources), None);
    }

    #[test]
    fn directories_that_are_made_later_are_watched_with_what_is_in_them() {
        let root = tempfile::tempdir().unwrap();
        let at = |path: &str| root.path().join(path);
        let Some(mut sources) = sources(root.path()) else {
            return;
        };
        fs::create_dir_all(at("src/.git")).unwrap();
        fs::create_dir_all(at("src/one/two")).unwrap();
        fs::write(at("src/one/two/file"), "x").unwrap();
        assert_eq!(next(&mut sources).as_deref(), Some("src/one/two/file"));
        fs::write(at("src/.git/index"), "x").unwrap();
        assert_eq!(next(&mut sources), None);
        // A whole tree is moved to where it counts.
        fs::create_dir_all(at("made/b")).unwrap();
        fs::write(at("made/b/file.txt"), "x").unwrap();
        fs::rename(at("made"), at("a")).unwrap();
        assert_eq!(next(&mut sources).as_deref(), Some("a/b/file.txt"));
        fs::write(at("a/b/other.txt"), "x").unwrap();
        assert_eq!(next(&mut sources).as_deref(), Some("a/b/other.txt"));
        fs::write(at("a/file.txt"), "x").unwrap();
        assert_eq!(next(&mut sources), None);
    }

    #[test]
    fn a_change_is_told_once_it_is_over_and_what_was_before_a_start_is_forgotten() {
        let root = tempfile::tempdir().unwrap();
        fs::create_dir(root.path().join("src")).unwrap();
        let Some(mut sources) = sources(root.path()) else {
            return;
        };
        fs::write(root.path().join("src/a"), "x").unwrap();
        sources.forget();
        assert_eq!((sources.due(), sources.take()), (None, None));
        fs::write(root.path().join("src/a"), "y").unwrap();
        sources.hear();
        let due = sources.due().expect("something has changed");
        let change = sources.change.as_mut().unwrap();
        assert_eq!(due, change.last + QUIET);
        // As if it had gone on ever since.
        change.first = Duration::ZERO;
        change.last = due;
        assert_eq!(sources.due(), Some(LONGEST));
        assert_eq!(sources.take().as_deref(), Some("src/a"));
        assert_eq!(sources.take(), None);
    }
}
