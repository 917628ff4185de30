//! The record beside an unfinished file: which bytes of which version of what are in it. Without it a file's bytes are
//! nobody's, whatever its length: another program may have made it, or a system may have lost what was written (F28).

use serde::{Deserialize, Serialize};

use crate::disk::Read;
use crate::record::Damaged;

/// What an unfinished file holds.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Part {
    /// What it is a part of, as it was asked for: never a signed address.
    pub source: String,
    /// The version, as its server names it: a strong entity tag and no other (RFC 9110, section 8.8.1).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub etag: Option<String>,
    /// How long it is in all, in bytes, where that is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub total_bytes: Option<u64>,
    /// The digest that it must have, as `algorithm:hex`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub digest: Option<String>,
    /// The boot in which the bytes were written that are not synced.
    pub boot: String,
    /// The runs of bytes that are fetched one after the other, in their order.
    pub runs: Vec<Run>,
}

/// Bytes that are fetched one after the other. A run goes on until the next one begins, and the last one to the end.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Run {
    /// Where it begins, in bytes.
    pub from: u64,
    /// How many bytes of it are in the file.
    pub done: u64,
    /// How many of these survive a loss of power.
    #[serde(default)]
    pub synced: u64,
}

/// What is wanted, and when.
#[derive(Clone, Copy, Debug)]
pub struct Wanted<'a> {
    /// What is asked for.
    pub source: &'a str,
    /// Its digest, where that is known.
    pub digest: Option<&'a str>,
    /// Its length in bytes, where that is known.
    pub total_bytes: Option<u64>,
    /// The boot that this is.
    pub boot: &'a str,
}

/// What is to become of an unfinished file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Keep {
    /// It holds this much, and the rest is to be fetched.
    Some(Part),
    /// Nothing of it can be used.
    Nothing {
        /// How many bytes that costs.
        discarded_bytes: u64,
        /// Why, where there was something, or a record of something.
        why: Option<String>,
    },
}

impl Part {
    /// Nothing yet of what is wanted.
    pub fn new(wanted: &Wanted<'_>) -> Part {
        Part {
            source: wanted.source.to_owned(),
            etag: None,
            total_bytes: wanted.total_bytes,
            digest: wanted.digest.map(str::to_owned),
            boot: wanted.boot.to_owned(),
            runs: vec![Run::at(0)],
        }
    }

    /// What can be used of a file of `length` bytes that has this record.
    pub fn judge(found: Read<Part>, length: u64, wanted: &Wanted<'_>) -> Keep {
        let nothing = |why: &str| Keep::Nothing {
            discarded_bytes: length,
            why: (length > 0).then(|| why.to_owned()),
        };
        let mut part = match found {
            Read::Absent => return nothing("nothing tells what its bytes are"),
            Read::Damaged(_) => return nothing("the record of what its bytes are is damaged"),
            Read::Value(part) => part,
        };
        if part.source != wanted.source {
            return nothing("its bytes are of something else");
        }
        if part.digest.as_deref() != wanted.digest {
            return nothing("its bytes are of another digest");
        }
        if wanted.total_bytes.is_some() && part.total_bytes != wanted.total_bytes {
            return nothing("its bytes are of a file of another length");
        }
        if !part.is_sound() {
            return nothing("the record of what its bytes are contradicts itself");
        }
        if part.etag.is_none() && part.digest.is_none() && !part.is_complete() {
            return nothing(
                "its server names no version, so its bytes cannot be matched with later ones",
            );
        }
        let (is_of_this_boot, recorded_bytes) = (part.boot == wanted.boot, part.done_bytes());
        for run in &mut part.runs {
            if !is_of_this_boot {
                run.done = run.done.min(run.synced);
            }
            run.done = run.done.min(length.saturating_sub(run.from));
            run.synced = run.synced.min(run.done);
        }
        if part.done_bytes() == 0 && length.max(recorded_bytes) > 0 {
            // What is in it would stay behind a shorter version. And where its bytes are gone, a record that tells of them must
            // not come back once there are others.
            return Keep::Nothing {
                discarded_bytes: length,
                why: Some("none of its bytes is known to be there".into()),
            };
        }
        part.boot = wanted.boot.to_owned();
        Keep::Some(part)
    }

    /// The same, from the record that was written last and the one that was last synced. Where both can be read they are of one
    /// version, as a change of that replaces the one and removes the other.
    pub fn judge_both(
        last: Read<Part>,
        synced: Read<Part>,
        length: u64,
        wanted: &Wanted<'_>,
    ) -> Keep {
        let is_alone = synced == Read::Absent;
        let last = Part::judge(last, length, wanted);
        if is_alone {
            return last;
        }
        match (last, Part::judge(synced, length, wanted)) {
            (Keep::Some(last), Keep::Some(synced)) if last.done_bytes() < synced.done_bytes() => {
                Keep::Some(synced)
            }
            (Keep::Nothing { .. }, Keep::Some(synced)) => Keep::Some(synced),
            // A record of what is gone must go, however little the other one tells of.
            (Keep::Some(last), anew @ Keep::Nothing { why: Some(_), .. })
                if last.done_bytes() == 0 =>
            {
                anew
            }
            (Keep::Nothing { why: None, .. }, synced) => synced,
            (last, _) => last,
        }
    }

    /// Whether the runs are in order, apart, and within the whole.
    fn is_sound(&self) -> bool {
        let begins_at_zero = self.runs.first().is_some_and(|run| run.from == 0);
        begins_at_zero
            && (0..self.runs.len()).all(|nth| {
                let run = self.runs[nth];
                let end = run.from.checked_add(run.done);
                let fits = match (end, self.end_of(nth)) {
                    (Some(end), Some(limit)) => end <= limit,
                    (Some(_), None) => true,
                    (None, _) => false,
                };
                let follows = nth == 0 || self.runs[nth - 1].from < run.from;
                fits && follows && run.synced <= run.done
            })
    }

    /// Where the `nth` run ends, in bytes; unknown where the length of the whole is.
    pub fn end_of(&self, nth: usize) -> Option<u64> {
        match self.runs.get(nth + 1) {
            Some(next) => Some(next.from),
            None => self.total_bytes,
        }
    }

    /// How many bytes of the `nth` run are missing; unknown where the length of the whole is.
    pub fn missing_in(&self, nth: usize) -> Option<u64> {
        let run = self.runs.get(nth)?;
        Some(self.end_of(nth)?.saturating_sub(run.from + run.done))
    }

    /// How many bytes are in the file.
    pub fn done_bytes(&self) -> u64 {
        self.runs.iter().map(|run| run.done).sum()
    }

    /// Whether every byte is there. Unknown counts as no.
    pub fn is_complete(&self) -> bool {
        self.total_bytes == Some(self.done_bytes())
    }

    /// Nothing of it is there any more, nor known of its version; what it must be is.
    pub fn begin_anew(&mut self, total_bytes: Option<u64>) {
        self.etag = None;
        self.total_bytes = total_bytes;
        self.runs = vec![Run::at(0)];
    }

    /// Split what one run has left to do into `count` runs, none shorter than `least` bytes. Only where the length is known.
    pub fn split(&mut self, nth: usize, count: u64, least: u64) {
        let (Some(missing), Some(&run)) = (self.missing_in(nth), self.runs.get(nth)) else {
            return;
        };
        let count = count.min(missing / least.max(1)).max(1);
        let begin = run.from + run.done;
        let each = missing / count;
        let further = (1..count).map(|piece| Run::at(begin + piece * each));
        self.runs.splice(nth + 1..nth + 1, further);
    }

    /// Everything that is in the file so far survives a loss of power.
    pub fn is_synced_up_to(&mut self, synced: &[u64]) {
        for (run, &synced) in self.runs.iter_mut().zip(synced) {
            run.synced = run.synced.max(synced.min(run.done));
        }
    }

    /// Give back the end of what was written last, so many bytes at most. Where the file ends then, in bytes.
    pub fn give_back(&mut self, most_bytes: u64) -> u64 {
        let last = self.runs.iter_mut().rfind(|run| run.done > 0);
        last.map_or(0, |run| {
            run.done = run.done.saturating_sub(most_bytes);
            run.synced = run.synced.min(run.done);
            run.from + run.done
        })
    }

    /// The bytes of the record.
    pub fn encode(&self) -> Vec<u8> {
        crate::record::encode(self)
    }

    /// Read the bytes of a record.
    pub fn decode(bytes: &[u8]) -> Result<Part, Damaged> {
        crate::record::decode(bytes)
    }
}

impl Run {
    /// Nothing yet, from here on.
    pub fn at(from: u64) -> Run {
        Run {
            from,
            done: 0,
            synced: 0,
        }
    }
}

/// Why a file that an earlier transfer has left whole and verified is not to be used: it may be of an old version, or have been
/// changed since. `found` is its digest as it is read back now.
pub fn why_not_whole(wanted: Option<&str>, found: Option<&str>) -> Option<&'static str> {
    match (wanted, found) {
        (None, _) => {
            Some("an earlier transfer has left it, and nothing tells of which version it is")
        }
        (Some(wanted), Some(found)) if wanted == found => None,
        (Some(_), _) => Some("an earlier transfer has left it, and its digest is wrong now"),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn wanted() -> Wanted<'static> {
        Wanted {
            source: "http://a/b",
            digest: None,
            total_bytes: None,
            boot: "now",
        }
    }

    fn part() -> Part {
        Part {
            etag: Some("\"v1\"".into()),
            total_bytes: Some(100),
            runs: vec![
                Run {
                    from: 0,
                    done: 30,
                    synced: 10,
                },
                Run {
                    from: 50,
                    done: 20,
                    synced: 0,
                },
            ],
            ..Part::new(&wanted())
        }
    }

    fn kept(part: Part, length: u64) -> Vec<(u64, u64)> {
        match Part::judge(Read::Value(part), length, &wanted()) {
            Keep::Some(part) => part.runs.iter().map(|run| (run.from, run.done)).collect(),
            Keep::Nothing { .. } => Vec::new(),
        }
    }

    #[test]
    fn what_is_recorded_and_there_is_kept() {
        assert_eq!(kept(part(), 70), [(0, 30), (50, 20)]);
        assert_eq!(kept(part(), 1000), [(0, 30), (50, 20)]);
        assert_eq!(kept(part(), 60), [(0, 30), (50, 10)]);
        assert_eq!(kept(part(), 20), [(0, 20), (50, 0)]);
    }

    #[test]
    fn after_a_loss_of_power_only_what_was_synced() {
        let mut part = part();
        part.boot = "before".into();
        assert_eq!(kept(part, 70), [(0, 10), (50, 0)]);
    }

    #[test]
    fn what_is_not_known_to_be_of_this_version_goes() {
        let discards = |found: Read<Part>, wanted: Wanted<'_>| {
            matches!(
                Part::judge(found, 70, &wanted),
                Keep::Nothing {
                    discarded_bytes: 70,
                    why: Some(_)
                }
            )
        };
        assert!(discards(Read::Absent, wanted()));
        assert!(discards(Read::Damaged(Damaged("?".into())), wanted()));
        let other = Wanted {
            source: "http://a/c",
            ..wanted()
        };
        assert!(discards(Read::Value(part()), other));
        let other = Wanted {
            digest: Some("sha256:0"),
            ..wanted()
        };
        assert!(discards(Read::Value(part()), other));
        let other = Wanted {
            total_bytes: Some(99),
            ..wanted()
        };
        assert!(discards(Read::Value(part()), other));
        let mut nameless = part();
        nameless.etag = None;
        assert!(discards(Read::Value(nameless), wanted()));
        let mut overlapping = part();
        overlapping.runs[1].from = 29;
        assert!(discards(Read::Value(overlapping), wanted()));
        let mut endless = part();
        endless.runs[1].done = u64::MAX;
        assert!(discards(Read::Value(endless), wanted()));
    }

    #[test]
    fn what_nobody_recorded_goes_and_so_does_a_record_of_what_is_gone() {
        let mut part = part();
        part.boot = "before".into();
        part.runs[0].synced = 0;
        let judge = |length| Part::judge(Read::Value(part.clone()), length, &wanted());
        assert!(matches!(
            judge(70),
            Keep::Nothing {
                discarded_bytes: 70,
                why: Some(_)
            }
        ));
        assert!(matches!(
            judge(0),
            Keep::Nothing {
                discarded_bytes: 0,
                why: Some(_)
            }
        ));
        part.runs = vec![Run::at(0)];
        let Keep::Some(kept) = Part::judge(Read::Value(part), 0, &wanted()) else {
            panic!("there was nothing, and nothing is told of")
        };
        assert_eq!(kept.etag.as_deref(), Some("\"v1\""));
    }

    #[test]
    fn of_two_records_the_one_counts_that_tells_of_more() {
        let synced = Part {
            runs: vec![Run {
                from: 0,
                done: 40,
                synced: 40,
            }],
            ..part()
        };
        let torn = || Read::Damaged(Damaged("?".into()));
        let kept = |last: Read<Part>, boot: &str| {
            let now = Wanted { boot, ..wanted() };
            match Part::judge_both(last, Read::Value(synced.clone()), 70, &now) {
                Keep::Some(part) => part.done_bytes(),
                Keep::Nothing { .. } => 0,
            }
        };
        assert_eq!(kept(Read::Value(part()), "now"), 50);
        assert_eq!(kept(Read::Value(part()), "later"), 40);
        assert_eq!(kept(torn(), "later"), 40);
    }

    #[test]
    fn what_is_complete_needs_no_name_of_a_version() {
        let mut whole = part();
        whole.etag = None;
        whole.runs = vec![Run {
            from: 0,
            done: 100,
            synced: 100,
        }];
        assert_eq!(kept(whole, 100), [(0, 100)]);
    }

    #[test]
    fn a_file_of_the_right_length_with_holes_is_not_complete() {
        let Keep::Some(part) = Part::judge(Read::Value(part()), 100, &wanted()) else {
            panic!()
        };
        assert!(!part.is_complete());
        assert_eq!(part.done_bytes(), 50);
    }

    #[test]
    fn what_another_has_left_whole_is_used_only_where_a_digest_tells() {
        assert_eq!(why_not_whole(Some("a:1"), Some("a:1")), None);
        for (wanted, found) in [
            (None, None),
            (None, Some("a:1")),
            (Some("a:1"), None),
            (Some("a:1"), Some("a:2")),
        ] {
            assert!(
                why_not_whole(wanted, found).is_some(),
                "{wanted:?} {found:?}"
            );
        }
    }

    #[test]
    fn what_is_left_is_split() {
        let mut part = part();
        part.runs = vec![Run {
            from: 0,
            done: 20,
            synced: 0,
        }];
        part.split(0, 4, 10);
        let begins: Vec<u64> = part.runs.iter().map(|run| run.from).collect();
        assert_eq!(begins, [0, 40, 60, 80]);
        part.split(3, 4, 15);
        assert_eq!(part.runs.len(), 4);
    }

    proptest! {
        #[test]
        fn a_split_changes_nothing_but_who_fetches_what(
            total in 1u64..10_000, done in 0u64..10_000, count in 0u64..9, least in 0u64..1000,
        ) {
            let mut part = Part::new(&wanted());
            part.etag = Some("\"x\"".into());
            part.total_bytes = Some(total);
            part.runs[0].done = done.min(total);
            let before = part.clone();
            part.split(0, count, least);
            prop_assert!(part.is_sound());
            prop_assert_eq!(part.done_bytes(), before.done_bytes());
            let missing: u64 = (0..part.runs.len()).filter_map(|nth| part.missing_in(nth)).sum();
            prop_assert_eq!(Some(missing), before.missing_in(0));
        }
    }
}
