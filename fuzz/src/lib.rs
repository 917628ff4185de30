//! What the fuzz targets hold every decoder to, as plain functions, so that the ordinary tests replay the
//! corpora with them. Nothing here knows of a fuzzer, and nothing but the product decides what decodes.
//!
//! A record that decodes must survive being written again: encoding gives one line, which decodes to the same
//! value and encodes to the same bytes. Nothing may panic, whatever the bytes.

use state_machine::config::Config;
use state_machine::control::{Control, Request};
use state_machine::disk::Pointer;
use state_machine::record::{Descriptor, History, Line, Slot, Status};
use state_machine::wire::{Ask, LONGEST_LINE, Lines};

/// `config.toml`. Whatever is wrong with it is said in one line.
pub fn config(bytes: &[u8]) {
    match Config::decode(bytes) {
        Ok(config) => assert!(config.retention.retention().keep == config.retention.keep),
        Err(error) => assert!(!error.to_string().is_empty()),
    }
}

/// `job.json`.
pub fn descriptor(bytes: &[u8]) {
    if let Ok(first) = Descriptor::decode(bytes) {
        let written = first.encode();
        assert_one_line(&written);
        let second = Descriptor::decode(&written).expect("what was written decodes");
        assert_eq!(second, first);
        assert_eq!(second.encode(), written);
    }
}

/// `status.json`.
pub fn status(bytes: &[u8]) {
    if let Ok(first) = Status::decode(bytes) {
        if first.lost {
            // Nothing was written, so there is nothing to write again.
            assert!(bytes.iter().all(|&byte| byte == 0));
            return;
        }
        let written = first.encode();
        assert_one_line(&written);
        let second = Status::decode(&written).expect("what was written decodes");
        assert_eq!(second, first);
        assert_eq!(second.encode(), written);
    }
}

/// `slot.json`.
pub fn slot(bytes: &[u8]) {
    if let Ok(first) = Slot::decode(bytes) {
        let written = first.encode();
        assert_one_line(&written);
        let second = Slot::decode(&written).expect("what was written decodes");
        assert_eq!(second, first);
        assert_eq!(second.encode(), written);
    }
}

/// The pointer of a key, `keys/<key>.json`.
pub fn pointer(bytes: &[u8]) {
    if let Ok(first) = Pointer::decode(bytes) {
        let written = first.encode();
        assert_one_line(&written);
        let second = Pointer::decode(&written).expect("what was written decodes");
        assert_eq!(second, first);
        assert_eq!(second.encode(), written);
    }
}

/// `events.jsonl`. What does not decode is counted and never lost sight of; what does is kept line by line; and a
/// line that is appended after the torn end, behind a newline, is always read.
pub fn events(bytes: &[u8]) {
    let first = History::decode(bytes);
    let lines = bytes.split(|&byte| byte == b'\n');
    let filled = lines.filter(|line| !line.is_empty()).count();
    assert_eq!(first.lines.len() + first.undecodable as usize, filled);
    assert_eq!(first.torn, !(bytes.is_empty() || bytes.ends_with(b"\n")));

    let written: Vec<u8> = first.lines.iter().flat_map(Line::encode).collect();
    let second = History::decode(&written);
    assert_eq!(second.lines, first.lines);
    assert_eq!((second.undecodable, second.torn), (0, false));

    let next = Line::state(u64::MAX, state_machine::job::State::Running);
    let mut grown = bytes.to_vec();
    if first.torn {
        grown.push(b'\n');
    }
    grown.extend(next.encode());
    let third = History::decode(&grown);
    assert_eq!(third.lines.split_last(), Some((&next, &*first.lines)));
    assert_eq!(third.undecodable, first.undecodable);
}

/// `control`. Blanks at either end change nothing, a request is one of the known words, and what is kept of
/// anything else fits a message.
pub fn control(bytes: &[u8]) {
    let control = Control::decode(bytes);
    let padded = [b" \t", bytes, b"\r\n"].concat();
    assert_eq!(Control::decode(&padded), control);
    match control {
        Control::Asked(request) => {
            assert!(Request::ALL.contains(&request));
            assert_eq!(
                Control::decode(&Control::encode(request)),
                Control::Asked(request)
            );
        }
        Control::Empty => assert!(bytes.trim_ascii().is_empty()),
        Control::Unknown(word) => {
            assert!(!word.is_empty());
            assert!(word.chars().count() <= 40, "{word}");
        }
    }
}

/// What a client says to a supervisor. Whole lines are the same however they are cut on their way, none is longer than it may
/// be, and what is refused is refused in one short line.
pub fn request(bytes: &[u8]) {
    let whole = lines(bytes, bytes.len());
    for size in [1, 7, 4096] {
        assert_eq!(lines(bytes, size), whole);
    }
    for line in &whole {
        assert!(line.len() <= LONGEST_LINE);
        match Ask::decode(line) {
            Ok(ask) => {
                let written = ask.encode();
                assert_one_line(&written);
                let again = Ask::decode(&written[..written.len() - 1]);
                assert_eq!(again.expect("what was written decodes"), ask);
            }
            Err(why) => {
                let why = why.to_string();
                assert!(!why.is_empty() && why.len() < 200, "{why}");
                assert!(!why.contains('\n'), "{why}");
            }
        }
    }
}

/// The lines that come out before one is too long.
fn lines(bytes: &[u8], size: usize) -> Vec<Vec<u8>> {
    let (mut lines, mut whole) = (Lines::default(), Vec::new());
    for part in bytes.chunks(size.max(1)) {
        lines.push(part);
        loop {
            match lines.next_line() {
                Ok(Some(line)) => whole.push(line),
                Ok(None) => break,
                Err(_) => return whole,
            }
        }
    }
    whole
}

fn assert_one_line(written: &[u8]) {
    assert_eq!(
        written.iter().position(|&byte| byte == b'\n'),
        Some(written.len() - 1)
    );
}
