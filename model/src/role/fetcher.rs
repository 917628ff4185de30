//! A fetcher: it fetches a file or two, and puts them into place. What is done with parts, records and whole files is the
//! shipped code; here are the deeds of a [`Source`] on the modelled machine, whose files have blocks and not bytes, and a server
//! that is honest, and answers what it has. What an answer means is shipped code, too ([`state_machine::pull::answer`]).
//!
//! The record is kept after every block but the first, and with a sync after the second: the shipped one does so from time to
//! time. What was not kept is when a body ends or is cut.

use state_machine::disk::{Dir, Mode, Name, Open, Place};
use state_machine::protocol::pull::{
    Fetched, Keystone, Move, Poured, Registered, Site, Source, Verified, begin_anew, discard,
    fetch, keep, keep_synced, make_staging, register,
};
use state_machine::pull::answer::{Answer, Asked, Verdict};
use state_machine::pull::part::{Part as Record, Wanted};
use state_machine::pull::word::Cause;

use super::{Outcome, Part};
use crate::effect::Handle;
use crate::filesystem::TORN;
use crate::stage::{Blocks, News, Stage};

/// How often a file is begun anew in one run before that counts as a server that does not know what it has.
const RESTARTS: u32 = 3;

/// What is to be fetched, and what its server tells of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Wish {
    /// How many files: one or two.
    pub files: u8,
    /// How many blocks they have, in each version.
    pub lengths: [u8; 2],
    /// Whether the server names their version.
    pub tagged: bool,
    /// Whether it is known which version is wanted: the first one, by its digest and its length.
    pub digest: bool,
}

impl Default for Wish {
    fn default() -> Self {
        Wish {
            files: 1,
            lengths: [2, 2],
            tagged: true,
            digest: false,
        }
    }
}

impl Wish {
    /// How many blocks a file has in this version.
    pub fn length(&self, version: u8) -> usize {
        usize::from(self.lengths[usize::from(version) - 1])
    }

    /// What is wanted, in the boot of this name.
    pub fn wanted<'a>(&self, boot: &'a str) -> Wanted<'a> {
        Wanted {
            source: "http://s/f",
            digest: self.digest.then_some("sha256:1"),
            total_bytes: self.size(),
            boot,
        }
    }

    /// How long it must be, where that is known.
    fn size(&self) -> Option<u64> {
        self.digest.then(|| u64::from(self.lengths[0]))
    }

    /// Whether these blocks are a whole file that is wanted.
    pub fn is_right(&self, blocks: &[u8]) -> bool {
        let versions = if self.digest { 1..=1 } else { 1..=2 };
        let is_all_of = |version: u8| {
            blocks.len() == self.length(version) && blocks.iter().all(|&block| block == version)
        };
        versions.into_iter().any(is_all_of)
    }
}

/// The name of a boot.
pub fn boot_name(boot: u8) -> String {
    format!("boot {boot}")
}

/// What a server calls a version.
pub fn tag(version: u8) -> String {
    format!("\"v{version}\"")
}

/// Where the files belong.
pub fn home() -> Dir {
    Dir::Outside(b"home".to_vec())
}

/// Where a file is until it is put into place.
pub fn site(file: u8) -> Site {
    Site {
        staging: Dir::Outside(b"parts".to_vec()),
        key: format!("k{file}"),
    }
}

/// The final name of a file.
pub fn final_place(file: u8) -> Place {
    home().at(Name::Other(format!("f{file}").into_bytes()))
}

/// Who has this locked puts files into place. The shipped one locks the directory itself where others may register there, and
/// elsewhere asks its worker, which lives and is the only one.
pub fn turn() -> Place {
    home().at(Name::Other(b"turn".to_vec()))
}

/// What makes the files known.
pub fn keystone() -> Keystone {
    Keystone {
        to: home().at(Name::Other(b"index".to_vec())),
        new: site(0).staging.at(Name::Other(b"index.new".to_vec())),
        bytes: b"all of it".to_vec(),
    }
}

/// Fetch every file, and put them into place.
pub(super) fn fetch_and_register<D: Stage>(disk: &mut D, part: &Part) -> Result<Outcome, D::Fault> {
    // No world has so many boots that their number would not fit.
    let boot = boot_name(disk.boot()? as u8);
    make_staging(disk, &site(0).staging)?;
    for file in 0..part.wish.files {
        if let Err(outcome) = fetch_one(disk, part.wish, file, &boot)? {
            return Ok(outcome);
        }
    }
    let Open::Opened(turn) = disk.open(&turn(), Mode::Exclusive)? else {
        // It is never removed, so somebody is kept from it.
        return Ok(Outcome::LeftToFetcher);
    };
    disk.in_turn(&turn)?;
    // Whoever was there before removes it when nothing is in it.
    make_staging(disk, &site(0).staging)?;
    let registered = put_into_place(disk, part)?;
    disk.close(turn)?;
    Ok(registered)
}

fn put_into_place<D: Stage>(disk: &mut D, part: &Part) -> Result<Outcome, D::Fault> {
    let moves: Vec<Move> = (0..part.wish.files)
        .map(|file| Move {
            whole: site(file).whole(),
            to: final_place(file),
        })
        .collect();
    match register(disk, &moves, &[home()], Some(&keystone()))? {
        Registered::Done => {}
        Registered::Missing(_) => return Ok(Outcome::TakenAway),
        // Only where what makes the files known is gone before it could be moved: nothing else is there.
        Registered::InTheWay(_) => return Ok(Outcome::TakenAway),
    }
    disk.tell(News::Registered);
    // Another one may have something in it.
    disk.rmdir(&site(0).staging)?;
    Ok(Outcome::Registered)
}

/// Fetch one file. An error is what this comes to in its stead.
fn fetch_one<D: Stage>(
    disk: &mut D,
    wish: Wish,
    file: u8,
    boot: &str,
) -> Result<Result<(), Outcome>, D::Fault> {
    let mut fetcher = Fetcher {
        disk,
        wish,
        file,
        has_resumed: false,
    };
    let mut is_second = false;
    loop {
        // Only a digest can tell.
        let there = match wish.digest {
            true => fetcher.disk.peruse(&final_place(file))?,
            false => None,
        };
        if there.is_some_and(|blocks| wish.is_right(&blocks)) {
            return Ok(Ok(()));
        }
        let outcome = match fetch(&mut fetcher, &site(file), &wish.wanted(boot))? {
            Fetched::Whole => {
                fetcher.disk.tell(News::Whole(file));
                return Ok(Ok(()));
            }
            Fetched::Busy => Outcome::LeftToFetcher,
            Fetched::Not(Cause::NoRoom { .. }) => Outcome::NoRoom,
            Fetched::Not(Cause::Later { .. }) => Outcome::Cut,
            Fetched::Not(Cause::Never { .. }) => Outcome::Refused,
            Fetched::Wrong(_) if fetcher.has_resumed && !is_second => {
                is_second = true;
                continue;
            }
            Fetched::Wrong(_) => Outcome::Refused,
        };
        return Ok(Err(outcome));
    }
}

/// Who fetches one file.
struct Fetcher<'a, D> {
    disk: &'a mut D,
    wish: Wish,
    file: u8,
    has_resumed: bool,
}

impl<D: Stage> Source for Fetcher<'_, D> {
    type Disk = D;

    fn disk(&mut self) -> &mut D {
        self.disk
    }

    #[track_caller]
    fn length(&mut self, part: &Handle) -> Result<u64, D::Fault> {
        Ok(self.disk.length(part)? as u64)
    }

    #[track_caller]
    fn empty(&mut self, part: &Handle) -> Result<(), D::Fault> {
        self.disk.shorten(part, 0)
    }

    fn pour(
        &mut self,
        part: &Handle,
        site: &Site,
        record: &mut Record,
    ) -> Result<Poured, D::Fault> {
        pour_all(self, *part, site, record)
    }

    #[track_caller]
    fn verify(&mut self, part: &Handle, record: &Record) -> Result<Verified, D::Fault> {
        let length = self.wish.size().or(record.total_bytes);
        let version = if self.wish.digest { 1 } else { TORN };
        let is_right = self
            .disk
            .verify(part, length.map(|length| length as usize), version)?;
        Ok(match is_right {
            true => Verified::Right,
            false => Verified::Wrong("it is something else".into()),
        })
    }

    fn discards(&mut self, bytes: u64, _: &str) {
        if bytes > 0 {
            self.disk.tell(News::Discards);
        }
        self.disk.tell(News::Synced(self.file, Blocks::default()));
        self.disk.tell(News::Kept(self.file, Blocks::default()));
    }

    fn reuses(&mut self, bytes: u64) {
        self.has_resumed = bytes > 0;
        if bytes > 0 {
            self.disk.tell(News::Reuses);
        }
    }
}

/// Ask for what is missing until nothing is, as the shipped one does. It is not that one's code, which has connections and
/// threads; what it decides by is.
fn pour_all<D: Stage>(
    own: &mut Fetcher<'_, D>,
    part: Handle,
    site: &Site,
    record: &mut Record,
) -> Result<Poured, D::Fault> {
    let mut restarts = 0;
    while !record.is_complete() {
        if record.done_bytes() > 0 && record.etag.is_none() && record.digest.is_none() {
            throw_away(own, part, site, record, own.wish.size())?;
        }
        let Some(version) = own.disk.ask(own.file)? else {
            return Ok(later());
        };
        match verdict(own.wish, version, record) {
            Verdict::Append { total_bytes } => {
                record.total_bytes = record.total_bytes.or(total_bytes);
            }
            Verdict::Whole { total_bytes } => {
                if record.done_bytes() > 0 {
                    throw_away(own, part, site, record, total_bytes)?;
                }
                record.etag = own.wish.tagged.then(|| tag(version));
                record.total_bytes = own.wish.size().or(total_bytes);
                keep(own.disk, site, record)?;
            }
            Verdict::Complete => {
                record.total_bytes = Some(record.done_bytes());
                keep(own.disk, site, record)?;
                return Ok(Poured::All);
            }
            Verdict::Restart(_) | Verdict::AskWhole(_) => {
                throw_away(own, part, site, record, own.wish.size())?;
                restarts += 1;
                if restarts > RESTARTS {
                    return Ok(later());
                }
                continue;
            }
            Verdict::AskOrigin(_) | Verdict::Later(_) => return Ok(later()),
            Verdict::Never(why) => return Ok(Poured::Not(Cause::Never { why })),
        }
        if let Some(cause) = pour_body(own, part, site, record, version)? {
            return Ok(Poured::Not(cause));
        }
    }
    Ok(Poured::All)
}

/// Write what comes until it ends or is cut. Why nothing more can be written, if so.
fn pour_body<D: Stage>(
    own: &mut Fetcher<'_, D>,
    part: Handle,
    site: &Site,
    record: &mut Record,
    version: u8,
) -> Result<Option<Cause>, D::Fault> {
    let mut is_kept = true;
    for at in record.done_bytes() as usize..own.wish.length(version) {
        match own.disk.pour(&part, own.file, at, version) {
            Ok(true) => {}
            Ok(false) => break,
            Err(fault) => {
                own.disk.survive(fault)?;
                return no_room(own, part, site, record).map(Some);
            }
        }
        record.runs[0].done += 1;
        is_kept = at > 0;
        match at {
            0 => {}
            1 => keep_all_synced(own, site, record, version)?,
            _ => keep_all(own, site, record, version)?,
        }
    }
    if !is_kept {
        keep_all(own, site, record, version)?;
    }
    Ok(None)
}

fn keep_all<D: Stage>(
    own: &mut Fetcher<'_, D>,
    site: &Site,
    record: &Record,
    version: u8,
) -> Result<(), D::Fault> {
    keep(own.disk, site, record)?;
    let count = record.runs[0].done as u8;
    own.disk
        .tell(News::Kept(own.file, Blocks { version, count }));
    Ok(())
}

fn keep_all_synced<D: Stage>(
    own: &mut Fetcher<'_, D>,
    site: &Site,
    record: &mut Record,
    version: u8,
) -> Result<(), D::Fault> {
    keep_synced(own.disk, site, record)?;
    let count = record.runs[0].synced as u8;
    own.disk
        .tell(News::Kept(own.file, Blocks { version, count }));
    own.disk
        .tell(News::Synced(own.file, Blocks { version, count }));
    Ok(())
}

/// The disk is full: give a little of it back for the record.
fn no_room<D: Stage>(
    own: &mut Fetcher<'_, D>,
    part: Handle,
    site: &Site,
    record: &mut Record,
) -> Result<Cause, D::Fault> {
    let end = record.give_back(1);
    own.disk.tell(News::Synced(own.file, Blocks::default()));
    own.disk.tell(News::Kept(own.file, Blocks::default()));
    let shorter = own.disk.shorten(&part, end as usize);
    shorter.or_else(|fault| own.disk.survive(fault))?;
    let kept = keep(own.disk, site, record);
    kept.or_else(|fault| own.disk.survive(fault))?;
    let why = "the disk is full".into();
    Ok(Cause::NoRoom { why })
}

fn throw_away<D: Stage>(
    own: &mut Fetcher<'_, D>,
    part: Handle,
    site: &Site,
    record: &mut Record,
    total_bytes: Option<u64>,
) -> Result<(), D::Fault> {
    own.discards(record.done_bytes(), "it is of no use");
    let total_bytes = own.wish.size().or(total_bytes);
    begin_anew(own, &part, site, record, total_bytes)
}

fn later() -> Poured {
    let why = "nothing comes".into();
    Poured::Not(Cause::Later { why, after_ms: 0 })
}

/// What an honest server answers that has this version, and what that means to who has this part.
fn verdict(wish: Wish, version: u8, record: &Record) -> Verdict {
    let from = record.done_bytes();
    let is_ranged = from > 0;
    let asked = Asked {
        from: is_ranged.then_some(from),
        etag: record.etag.as_deref().filter(|_| is_ranged),
        total_bytes: record.total_bytes.filter(|_| is_ranged || wish.digest),
        has_digest: wish.digest,
        is_as_sent: false,
    };
    let (total, now) = (wish.length(version) as u64, tag(version));
    let is_same = asked.etag.is_none_or(|known| known == now);
    let (status, range, length) = if is_ranged && is_same && from < total {
        let range = format!("bytes {from}-{}/{total}", total - 1);
        (206, Some(range), total - from)
    } else if is_ranged && is_same {
        (416, Some(format!("bytes */{total}")), 0)
    } else {
        (200, None, total)
    };
    let answer = Answer {
        status,
        content_range: range.as_deref(),
        content_length: Some(length),
        etag: wish.tagged.then_some(&*now),
        ..Answer::default()
    };
    answer.judge(&asked)
}

/// Remove what is left of every file, where nobody fetches it.
pub(super) fn discard_all<D: Stage>(disk: &mut D, part: &Part) -> Result<Outcome, D::Fault> {
    for file in 0..part.wish.files {
        if !discard(disk, &site(file))? {
            return Ok(Outcome::LeftToFetcher);
        }
    }
    Ok(Outcome::Discarded)
}
