//! Fetching a file and registering it, with a death or a fault at every effect. What several do at once, and what a loss of power
//! leaves, is the model's.

// Only a part of it is needed here.
#[allow(dead_code)]
#[path = "support/fake.rs"]
mod fake;

use fake::{Fake, Fault, Handle, How, Image};
use state_machine::disk::{Dir, Disk, Name, Place};
use state_machine::protocol::pull::{
    Fetched, Keystone, Move, Poured, Registered, Site, Source, Verified, begin_anew, discard,
    fetch, keep, keep_synced, register,
};
use state_machine::pull::part::{Part, Wanted};
use state_machine::pull::word::Cause;

const SOURCE: &str = "http://a/b";
const HOWS: [How; 3] = [How::Before, How::After, How::Torn];

fn staging() -> Dir {
    Dir::Outside(b"staged".to_vec())
}

fn home() -> Dir {
    Dir::Outside(b"home".to_vec())
}

fn site() -> Site {
    Site {
        staging: staging(),
        key: "k".into(),
    }
}

fn final_place() -> Place {
    home().at(Name::Other(b"file".to_vec()))
}

fn keystone() -> Keystone {
    Keystone {
        to: home().at(Name::Other(b"index".to_vec())),
        new: staging().at(Name::Other(b"index.new".to_vec())),
        bytes: b"file is there".to_vec(),
    }
}

fn wanted(digest: Option<&str>) -> Wanted<'_> {
    Wanted {
        source: SOURCE,
        digest,
        total_bytes: None,
        boot: "now",
    }
}

/// A machine with the destination, which is not staged into yet.
fn machine() -> Fake {
    let mut image = Image::store();
    image.put_dir(&Place::Dir(home()));
    Fake::on(image)
}

/// Who fetches from a server that has this, in this version, and is cut after so many bytes.
struct Fetcher {
    disk: Fake,
    has: &'static [u8],
    etag: &'static str,
    cut_after: usize,
    poured: usize,
    reused: u64,
    discarded: u64,
}

impl Fetcher {
    fn on(disk: Fake, has: &'static [u8], etag: &'static str) -> Fetcher {
        Fetcher {
            disk,
            has,
            etag,
            cut_after: usize::MAX,
            poured: 0,
            reused: 0,
            discarded: 0,
        }
    }

    fn content(&self) -> Vec<u8> {
        let bytes = self.disk.image().bytes(&site().part());
        bytes.unwrap_or_default().to_vec()
    }
}

impl Source for Fetcher {
    type Disk = Fake;

    fn disk(&mut self) -> &mut Fake {
        &mut self.disk
    }

    fn length(&mut self, _: &Handle) -> Result<u64, Fault> {
        Ok(self.content().len() as u64)
    }

    fn empty(&mut self, _: &Handle) -> Result<(), Fault> {
        self.disk.image_mut().overwrite(&site().part(), b"");
        Ok(())
    }

    fn pour(&mut self, part: &Handle, at: &Site, record: &mut Part) -> Result<Poured, Fault> {
        let total = Some(self.has.len() as u64);
        if record.etag.as_deref() != Some(self.etag) {
            if record.done_bytes() > 0 {
                begin_anew(self, part, at, record, total)?;
            }
            record.etag = Some(self.etag.into());
            record.total_bytes = total;
            keep(&mut self.disk, at, record)?;
        }
        while !record.is_complete() {
            if self.poured == self.cut_after {
                return Ok(Poured::Not(Cause::Later {
                    why: "cut".into(),
                    after_ms: 0,
                }));
            }
            let done = record.done_bytes() as usize;
            let mut content = self.content();
            // What is beyond the record is not known to be there.
            content.truncate(done);
            content.push(self.has[done]);
            self.disk.image_mut().overwrite(&at.part(), &content);
            self.poured += 1;
            record.runs[0].done += 1;
            if done.is_multiple_of(2) {
                keep(&mut self.disk, at, record)?;
            } else {
                keep_synced(&mut self.disk, at, record)?;
            }
        }
        Ok(Poured::All)
    }

    fn verify(&mut self, _: &Handle, record: &Part) -> Result<Verified, Fault> {
        let content = self.content();
        let is_right = match &record.digest {
            Some(digest) => digest.as_bytes() == content,
            None => Some(content.len() as u64) == record.total_bytes,
        };
        Ok(if is_right {
            Verified::Right
        } else {
            Verified::Wrong("it is something else".into())
        })
    }

    fn discards(&mut self, bytes: u64, _: &str) {
        self.discarded += bytes;
    }

    fn reuses(&mut self, bytes: u64) {
        self.reused += bytes;
    }
}

fn register_all(disk: &mut Fake) -> Result<Registered, Fault> {
    let moves = [Move {
        whole: site().whole(),
        to: final_place(),
    }];
    register(disk, &moves, &[home()], Some(&keystone()))
}

/// Nothing that is not what was wanted stands where it would be taken for it, whatever has happened.
#[track_caller]
fn is_sound(image: &Image, right: &[&[u8]]) {
    for place in [site().whole(), final_place()] {
        if let Some(bytes) = image.bytes(&place) {
            assert!(right.contains(&bytes), "{place:?} is {bytes:?}");
        }
    }
    if image.bytes(&keystone().to).is_some() {
        assert!(
            image.bytes(&final_place()).is_some(),
            "it is known, and not there"
        );
    }
}

#[test]
fn a_file_is_fetched_and_registered() {
    let mut fetcher = Fetcher::on(machine(), b"hello", "v1");
    assert_eq!(
        fetch(&mut fetcher, &site(), &wanted(None)),
        Ok(Fetched::Whole)
    );
    assert_eq!(fetcher.poured, 5);
    // A second time there is nothing to do.
    assert_eq!(
        fetch(&mut fetcher, &site(), &wanted(None)),
        Ok(Fetched::Whole)
    );
    assert_eq!(fetcher.poured, 5);
    assert_eq!(register_all(&mut fetcher.disk), Ok(Registered::Done));
    assert_eq!(
        fetcher.disk.image().bytes(&final_place()),
        Some(&b"hello"[..])
    );
    assert_eq!(
        fetcher.disk.image().names(&staging()),
        Vec::<Vec<u8>>::new()
    );
    assert_eq!(fetcher.disk.open_handles(), 0);
    // And a third time neither.
    assert_eq!(register_all(&mut fetcher.disk), Ok(Registered::Done));
}

/// After a death or a fault at any effect, the next one finishes, and what was recorded is not poured again.
#[test]
fn whatever_stops_it_the_next_one_finishes() {
    for how in HOWS {
        for k in 0.. {
            let mut first = Fetcher::on(machine(), b"hello", "v1");
            first.disk.fail_at(k, how);
            let failed = fetch(&mut first, &site(), &wanted(None));
            let failed = failed.is_err() || register_all(&mut first.disk).is_err();
            let was_reached = !first.disk.is_armed();
            is_sound(first.disk.image(), &[b"hello"]);
            let mut second = Fetcher::on(Fake::on(first.disk.image().clone()), b"hello", "v1");
            if second.disk.image().bytes(&final_place()).is_none() {
                assert_eq!(
                    fetch(&mut second, &site(), &wanted(None)),
                    Ok(Fetched::Whole),
                    "{k} {how:?}"
                );
                let kept = second.reused as usize;
                assert!(
                    second.poured + kept == 5 || second.poured == 0,
                    "{k} {how:?}"
                );
                assert!(
                    first.poured <= kept + 1 || kept == 0 || second.poured == 0,
                    "{k} {how:?}"
                );
            }
            assert_eq!(
                register_all(&mut second.disk),
                Ok(Registered::Done),
                "{k} {how:?}"
            );
            is_sound(second.disk.image(), &[b"hello"]);
            assert_eq!(
                second.disk.image().bytes(&keystone().to),
                Some(&b"file is there"[..])
            );
            assert_eq!(
                second.disk.image().names(&staging()),
                Vec::<Vec<u8>>::new(),
                "{k} {how:?}"
            );
            if !was_reached {
                assert!(!failed);
                break;
            }
        }
    }
}

/// A file that changes between two attempts is never mixed, wherever the first one stops.
#[test]
fn two_versions_are_never_mixed() {
    for how in HOWS {
        for k in 0.. {
            let mut first = Fetcher::on(machine(), b"hello", "v1");
            first.cut_after = 3;
            assert!(matches!(
                fetch(&mut first, &site(), &wanted(None)),
                Ok(Fetched::Not(_))
            ));
            let mut second = Fetcher::on(Fake::on(first.disk.image().clone()), b"HOWDY!", "v2");
            second.disk.fail_at(k, how);
            let _ = fetch(&mut second, &site(), &wanted(None));
            let was_reached = !second.disk.is_armed();
            is_sound(second.disk.image(), &[b"HOWDY!"]);
            let mut third = Fetcher::on(Fake::on(second.disk.image().clone()), b"HOWDY!", "v2");
            assert_eq!(
                fetch(&mut third, &site(), &wanted(None)),
                Ok(Fetched::Whole),
                "{k} {how:?}"
            );
            is_sound(third.disk.image(), &[b"HOWDY!"]);
            if !was_reached {
                break;
            }
        }
    }
}

/// What a digest refuses is gone, with all that told of it, and does not come back.
#[test]
fn what_is_wrong_never_becomes_whole() {
    for how in HOWS {
        for k in 0.. {
            let mut first = Fetcher::on(machine(), b"hello", "v1");
            first.disk.fail_at(k, how);
            let fetched = fetch(&mut first, &site(), &wanted(Some("other")));
            let was_reached = !first.disk.is_armed();
            assert!(matches!(fetched, Err(Fault) | Ok(Fetched::Wrong(_))));
            is_sound(first.disk.image(), &[]);
            let mut second = Fetcher::on(Fake::on(first.disk.image().clone()), b"hello", "v1");
            let again = fetch(&mut second, &site(), &wanted(Some("other")));
            assert!(matches!(again, Ok(Fetched::Wrong(_))), "{k} {how:?}");
            assert_eq!(second.disk.image().bytes(&site().part()), None);
            assert_eq!(second.disk.image().bytes(&site().record()), None);
            if !was_reached {
                break;
            }
        }
    }
}

/// A part that another one has is left alone; and once that one is done, there is nothing left to do.
#[test]
fn only_one_fetches() {
    let mut first = Fetcher::on(machine(), b"hello", "v1");
    first.cut_after = 2;
    assert!(matches!(
        fetch(&mut first, &site(), &wanted(None)),
        Ok(Fetched::Not(_))
    ));
    let state_machine::disk::Open::Opened(other) = first
        .disk
        .open(&site().part(), state_machine::disk::Mode::Exclusive)
        .unwrap()
    else {
        panic!()
    };
    assert!(
        first
            .disk
            .lock(&other, state_machine::disk::Mode::Exclusive)
            .unwrap()
    );
    assert_eq!(fetch(&mut first, &site(), &wanted(None)), Ok(Fetched::Busy));
    assert_eq!(first.poured, 2);
    first.disk.rename(&site().part(), &site().whole()).unwrap();
    assert_eq!(
        fetch(&mut first, &site(), &wanted(None)),
        Ok(Fetched::Whole)
    );
}

/// A record that is damaged, of something else, or gone costs what it told of.
#[test]
fn without_its_record_a_part_is_nobodys() {
    let spoil: [fn(&mut Image); 3] = [
        |image| image.put(&site().record(), b"\0\0\0"),
        |image| {
            let other = Wanted {
                source: "http://a/other",
                ..wanted(None)
            };
            image.put(&site().record(), &Part::new(&other).encode());
        },
        |image| image.overwrite(&site().record(), b""),
    ];
    for spoil in spoil {
        let mut first = Fetcher::on(machine(), b"hello", "v1");
        first.cut_after = 1;
        assert!(matches!(
            fetch(&mut first, &site(), &wanted(None)),
            Ok(Fetched::Not(_))
        ));
        let mut image = first.disk.image().clone();
        spoil(&mut image);
        let mut second = Fetcher::on(Fake::on(image), b"hello", "v1");
        assert_eq!(
            fetch(&mut second, &site(), &wanted(None)),
            Ok(Fetched::Whole)
        );
        assert_eq!((second.reused, second.discarded, second.poured), (0, 1, 5));
    }
}

#[test]
fn what_is_in_the_way_is_left_and_named() {
    let mut fetcher = Fetcher::on(machine(), b"hello", "v1");
    assert_eq!(
        fetch(&mut fetcher, &site(), &wanted(None)),
        Ok(Fetched::Whole)
    );
    fetcher.disk.image_mut().put_dir(&final_place());
    assert_eq!(
        register_all(&mut fetcher.disk),
        Ok(Registered::InTheWay(final_place()))
    );
    assert!(fetcher.disk.image().bytes(&keystone().to).is_none());
    let moves = [Move {
        whole: staging().at(Name::Other(b"gone".to_vec())),
        to: home().at(Name::Other(b"gone".to_vec())),
    }];
    let registered = register(&mut fetcher.disk, &moves, &[], None);
    assert_eq!(registered, Ok(Registered::Missing(moves[0].whole.clone())));
}

/// What came after the record was last written is of no version that anybody knows. A shorter version must not end in it.
#[test]
fn what_nobody_recorded_is_not_left_behind_a_shorter_version() {
    let mut first = Fetcher::on(machine(), b"hello", "v1");
    first.cut_after = 0;
    assert!(matches!(
        fetch(&mut first, &site(), &wanted(None)),
        Ok(Fetched::Not(_))
    ));
    // It is killed with bytes on the disk of which no record tells.
    first.disk.image_mut().overwrite(&site().part(), b"hel");
    let mut second = Fetcher::on(Fake::on(first.disk.image().clone()), b"no", "v2");
    assert_eq!(
        fetch(&mut second, &site(), &wanted(None)),
        Ok(Fetched::Whole)
    );
    assert_eq!(second.disk.image().bytes(&site().whole()), Some(&b"no"[..]));
    assert_eq!((second.reused, second.discarded), (0, 3));
}

/// A record that a loss of power has emptied costs what was not synced, and no more.
#[test]
fn what_was_synced_is_known_whatever_became_of_the_last_record() {
    let mut first = Fetcher::on(machine(), b"hello", "v1");
    first.cut_after = 3;
    assert!(matches!(
        fetch(&mut first, &site(), &wanted(None)),
        Ok(Fetched::Not(_))
    ));
    let mut image = first.disk.image().clone();
    image.overwrite(&site().record(), b"");
    let mut second = Fetcher::on(Fake::on(image), b"hello", "v1");
    let after_boot = Wanted {
        boot: "later",
        ..wanted(None)
    };
    assert_eq!(fetch(&mut second, &site(), &after_boot), Ok(Fetched::Whole));
    assert_eq!((second.reused, second.discarded), (2, 0));
}

/// Whatever stops it, what is discarded is gone once that is done again; and a part that somebody has is left.
#[test]
fn what_is_left_of_a_file_is_discarded() {
    for cut_after in [0, 3, usize::MAX] {
        for k in 0.. {
            let mut fetcher = Fetcher::on(machine(), b"hello", "v1");
            fetcher.cut_after = cut_after;
            assert!(fetch(&mut fetcher, &site(), &wanted(None)).is_ok());
            let mut disk = fetcher.disk;
            disk.fail_at(k, How::Before);
            let failed = discard(&mut disk, &site()).is_err();
            let was_reached = !disk.is_armed();
            assert_eq!(failed, was_reached);
            let mut disk = Fake::on(disk.image().clone());
            assert_eq!(discard(&mut disk, &site()), Ok(true));
            assert_eq!(disk.image().names(&staging()), Vec::<Vec<u8>>::new());
            assert_eq!(disk.open_handles(), 0);
            if !was_reached {
                break;
            }
        }
    }
    let mut fetcher = Fetcher::on(machine(), b"hello", "v1");
    fetcher.cut_after = 3;
    assert!(fetch(&mut fetcher, &site(), &wanted(None)).is_ok());
    let mut disk = fetcher.disk;
    let state_machine::disk::Open::Opened(part) = disk
        .open(&site().part(), state_machine::disk::Mode::Exclusive)
        .unwrap()
    else {
        panic!()
    };
    assert!(
        disk.lock(&part, state_machine::disk::Mode::Exclusive)
            .unwrap()
    );
    assert_eq!(discard(&mut disk, &site()), Ok(false));
    assert!(disk.image().bytes(&site().part()).is_some());
}
