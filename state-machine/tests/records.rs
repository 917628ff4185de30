//! Every record survives being written and read; what a newer version adds is passed over; what is cut off is never
//! taken for something else.

#[path = "support/any.rs"]
mod any;

use proptest::prelude::*;
use state_machine::disk::Pointer;
use state_machine::id::JobId;
use state_machine::record::{
    Descriptor, Environment, History, Line, Slot, Status, What, blank, padded,
};

/// Objects that are no records: the map of an environment, whose every field is a variable, and those whose one
/// field says which kind of thing it is. A field more in them is not something to pass over.
const NOT_GROWN: [&str; 5] = ["env", "kind", "exit", "holder", "last_outcome"];

/// What a newer version might write: fields that nobody knows yet, in front of and behind those of every object.
/// Done on the text, as a JSON value keeps neither the order of an environment nor its doubles.
fn grown(json: &[u8]) -> Vec<u8> {
    let mut grown = Vec::new();
    let mut string: Option<Vec<u8>> = None;
    let (mut last, mut under, mut objects) = (Vec::new(), Vec::new(), Vec::new());
    let mut escaped = false;
    for &byte in json {
        if let Some(text) = &mut string {
            grown.push(byte);
            if byte == b'"' && !escaped {
                last = string.take().unwrap_or_default();
            } else {
                text.push(byte);
                escaped = byte == b'\\' && !escaped;
            }
            continue;
        }
        match byte {
            b'"' => string = Some(Vec::new()),
            b':' => under.clone_from(&last),
            b'{' => {
                let under = std::mem::take(&mut under);
                objects.push(!NOT_GROWN.iter().any(|name| name.as_bytes() == under));
            }
            b'}' if objects.pop() == Some(true) => grown.extend(br#","zz_unknown":"exploded""#),
            _ => {}
        }
        grown.push(byte);
        if byte == b'{' && objects.last() == Some(&true) {
            grown.extend(br#""00_unknown":{"a":[1,null,{"state":"x"}]},"#);
        }
    }
    grown
}

/// Hold a record to everything that is asked of one.
fn check<T: PartialEq + std::fmt::Debug>(
    record: &T,
    encode: fn(&T) -> Vec<u8>,
    decode: fn(&[u8]) -> Option<T>,
) -> Result<(), TestCaseError> {
    let bytes = encode(record);
    let read = |bytes: &[u8]| decode(bytes);
    prop_assert!(
        read(&bytes).as_ref() == Some(record),
        "{record:?} came back as {:?}",
        read(&bytes)
    );
    prop_assert_eq!(
        bytes.iter().position(|&byte| byte == b'\n'),
        Some(bytes.len() - 1)
    );
    let newer = read(&grown(&bytes));
    prop_assert!(
        newer.as_ref() == Some(record),
        "grown, {record:?} is {newer:?}"
    );
    for cut in 0..bytes.len() {
        // Only the newline can be missing from a whole record.
        let whole = cut + 1 == bytes.len();
        let expected = whole.then_some(record);
        prop_assert!(read(&bytes[..cut]).as_ref() == expected, "cut at {cut}");
        // A file system that lost the data of a longer file shows zero bytes in its place.
        let zeroed = [&bytes[..cut], &vec![0; bytes.len() - cut]].concat();
        prop_assert!(read(&zeroed).is_none(), "zeros from {cut}");
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn descriptors(record in any::descriptor()) {
        check(&record, Descriptor::encode, |bytes| Descriptor::decode(bytes).ok())?;
    }

    #[test]
    fn statuses(record in any::status()) {
        let written = |bytes: &[u8]| Status::decode(bytes).ok().filter(|status| !status.lost);
        check(&record, Status::encode, written)?;
    }

    #[test]
    fn slots(record in any::slot()) {
        check(&record, Slot::encode, |bytes| Slot::decode(bytes).ok())?;
    }

    #[test]
    fn lines(record in any::line()) {
        check(&record, Line::encode, Line::decode)?;
    }

    #[test]
    fn pointers(job in any::descriptor().prop_map(|descriptor| descriptor.id), count: u64) {
        check(&Pointer { job, count }, Pointer::encode, |bytes| Pointer::decode(bytes).ok())?;
    }

    #[test]
    fn environments_keep_every_byte_the_order_and_the_doubles(environment in any::environment()) {
        let json = serde_json::to_string(&environment).unwrap();
        prop_assert_eq!(serde_json::from_str::<Environment>(&json).unwrap(), environment);
    }

    #[test]
    fn set_and_unset_agree_with_a_map(
        names in proptest::collection::vec(("[AB]", proptest::option::of(any::bytes())), 0..12),
    ) {
        let mut environment = Environment::default();
        let mut twin = std::collections::HashMap::new();
        for (name, value) in names {
            match &value {
                Some(value) => environment.set(name.as_bytes(), &value.0),
                None => environment.unset(name.as_bytes()),
            }
            twin.insert(name, value);
        }
        for (name, value) in &twin {
            let expected = value.as_ref().map(|value| value.0.as_slice());
            prop_assert_eq!(environment.get(name.as_bytes()), expected);
        }
        prop_assert_eq!(environment.0.len(), twin.values().flatten().count());
    }

    #[test]
    fn a_history_that_is_cut_is_a_prefix_and_says_whether_it_is_torn(
        lines in proptest::collection::vec(any::line(), 0..4),
    ) {
        let bytes: Vec<u8> = lines.iter().flat_map(Line::encode).collect();
        let mut ends = vec![0];
        for line in &lines {
            ends.push(ends.last().unwrap() + line.encode().len());
        }
        for cut in 0..=bytes.len() {
            let history = History::decode(&bytes[..cut]);
            // A line that lacks only its newline is whole, and torn all the same.
            let whole = ends[1..].iter().filter(|&&end| end - 1 <= cut).count();
            let clean = ends.contains(&cut);
            prop_assert_eq!(&history.lines, &lines[..whole]);
            prop_assert_eq!(history.torn, !clean);
            let rest = !clean && !ends.contains(&(cut + 1));
            prop_assert_eq!(history.undecodable, u32::from(rest));
        }
    }

    #[test]
    fn rubbish_between_the_lines_is_counted_and_hides_nothing(
        parts in proptest::collection::vec(prop_oneof![
            any::line().prop_map(Ok),
            "[^\\n]{1,12}".prop_map(Err),
        ], 0..8),
    ) {
        let bytes: Vec<u8> = parts
            .iter()
            .flat_map(|part| match part {
                Ok(line) => line.encode(),
                Err(rubbish) => [rubbish.as_bytes(), b"\n"].concat(),
            })
            .collect();
        let history = History::decode(&bytes);
        let lines: Vec<Line> = parts.iter().flatten().cloned().collect();
        let mut states = lines.iter().rev().filter_map(|line| match line.what {
            What::State { state } => Some(state),
            _ => None,
        });
        prop_assert_eq!(history.last_state(), states.next());
        prop_assert_eq!(history.undecodable as usize, parts.len() - lines.len());
        prop_assert_eq!(history.lines, lines);
    }

    #[test]
    fn no_decoder_panics_on_a_record_with_a_byte_changed(
        record in any::status(), at: proptest::sample::Index, byte: u8,
    ) {
        let mut bytes = record.encode();
        let at = at.index(bytes.len());
        bytes[at] = byte;
        // It may decode, to another value even: only a checksum could tell. It must not panic.
        let _ = Status::decode(&bytes);
        let _ = Descriptor::decode(&bytes);
        let _ = Slot::decode(&bytes);
        let _ = History::decode(&bytes);
    }

    #[test]
    fn an_unknown_state_is_an_error_and_changes_nothing(word in "[a-zA-Z_]{0,12}") {
        let known = state_machine::job::State::ALL.iter().any(|state| state.word() == word);
        let status = format!(r#"{{"state":"{word}","updated_at_ms":1}}"#);
        prop_assert_eq!(Status::decode(status.as_bytes()).is_ok(), known);
        let line = format!(r#"{{"at_ms":1,"event":"state","state":"{word}"}}"#);
        prop_assert_eq!(Line::decode(line.as_bytes()).is_some(), known);
        let known = ["idle", "claimed", "maintaining", "broken"].contains(&word.as_str());
        let slot = format!(r#"{{"number":1,"state":"{word}"}}"#);
        prop_assert_eq!(Slot::decode(slot.as_bytes()).is_ok(), known);
    }

    #[test]
    fn an_id_that_leaves_its_directory_is_damage(word in "[./a]{0,4}") {
        let good = JobId::parse(&word).is_ok();
        let json = format!(
            r#"{{"id":"{word}","kind":{{"command":{{"argv":[],"cwd":"/","env":{{}}}}}},"display_name":"","created_at_ms":1}}"#
        );
        prop_assert_eq!(Descriptor::decode(json.as_bytes()).is_ok(), good);
    }
}

#[test]
fn room_at_the_end_of_a_record_is_passed_over_and_is_none_alone() {
    let pointer = Pointer {
        job: JobId::parse("1-x").expect("it is an id"),
        count: 3,
    };
    let bytes = pointer.encode();
    for length in [0, bytes.len(), bytes.len() + 1, 100, 8192, 20_000] {
        let padded = padded(bytes.clone(), length);
        assert_eq!(padded.len(), length.max(bytes.len()));
        assert!(padded.ends_with(b"\n"));
        assert_eq!(Pointer::decode(&padded), Ok(pointer.clone()), "{length}");
    }
    let damaged = Descriptor::decode(&blank()).unwrap_err();
    assert_eq!(damaged.to_string(), "the file holds only blanks");
    assert!(blank().trim_ascii().is_empty());
}
