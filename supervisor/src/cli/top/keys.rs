//! Keys, from the bytes that a terminal sends for them. What must never be here: what a key does.

/// A key that was pressed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Key {
    /// A character.
    Char(char),
    /// A letter, together with Ctrl.
    Ctrl(char),
    /// Enter.
    Enter,
    /// Escape.
    Escape,
    /// Backspace.
    Backspace,
    /// Tab.
    Tab,
    /// An arrow.
    Up,
    /// An arrow.
    Down,
    /// A page up.
    PageUp,
    /// A page down.
    PageDown,
    /// Home.
    Home,
    /// End.
    End,
}

/// Makes keys of bytes, however these are cut.
#[derive(Debug, Default)]
pub(super) struct Decoder(Vec<u8>);

/// What the bytes at the beginning are, and how many.
enum Read {
    Key(Key, usize),
    /// Nothing that is known here.
    Other(usize),
    /// A beginning.
    Part,
}

impl Decoder {
    /// These have come.
    pub(super) fn push(&mut self, bytes: &[u8]) {
        self.0.extend_from_slice(bytes);
    }

    /// Whether something has begun: if nothing more comes soon, it is what it is.
    pub(super) fn waits(&self) -> bool {
        !self.0.is_empty()
    }

    /// The next key; `over` where no more will come of what has begun.
    pub(super) fn next(&mut self, over: bool) -> Option<Key> {
        while !self.0.is_empty() {
            match read(&self.0) {
                Read::Key(key, length) => {
                    self.0.drain(..length);
                    return Some(key);
                }
                Read::Other(length) => drop(self.0.drain(..length)),
                Read::Part if !over => return None,
                Read::Part => {
                    let is_escape = self.0[0] == 0x1b;
                    self.0.clear();
                    return is_escape.then_some(Key::Escape);
                }
            }
        }
        None
    }
}

fn read(bytes: &[u8]) -> Read {
    match bytes {
        [0x1b] => Read::Part,
        [0x1b, b'[' | b'O', rest @ ..] => {
            let Some(end) = rest.iter().position(|byte| (0x40..=0x7e).contains(byte)) else {
                return Read::Part;
            };
            let length = end + 3;
            let key = match &rest[..=end] {
                b"A" => Key::Up,
                b"B" => Key::Down,
                b"H" | b"1~" | b"7~" => Key::Home,
                b"F" | b"4~" | b"8~" => Key::End,
                b"5~" => Key::PageUp,
                b"6~" => Key::PageDown,
                _ => return Read::Other(length),
            };
            Read::Key(key, length)
        }
        [0x1b, ..] => Read::Key(Key::Escape, 1),
        [b'\r' | b'\n', ..] => Read::Key(Key::Enter, 1),
        [0x7f | 0x08, ..] => Read::Key(Key::Backspace, 1),
        [b'\t', ..] => Read::Key(Key::Tab, 1),
        [byte @ 0x01..=0x1a, ..] => Read::Key(Key::Ctrl(char::from(byte + 0x60)), 1),
        [0x00..=0x1f, ..] => Read::Other(1),
        bytes => character(bytes),
    }
}

fn character(bytes: &[u8]) -> Read {
    let length = match bytes[0] {
        0x00..0x80 => 1,
        0xc2..0xe0 => 2,
        0xe0..0xf0 => 3,
        0xf0..0xf5 => 4,
        _ => return Read::Other(1),
    };
    let Some(bytes) = bytes.get(..length) else {
        return Read::Part;
    };
    match std::str::from_utf8(bytes)
        .ok()
        .and_then(|text| text.chars().next())
    {
        Some(c) => Read::Key(Key::Char(c), length),
        None => Read::Other(1),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn keys(parts: &[&[u8]], over: bool) -> Vec<Key> {
        let mut decoder = Decoder::default();
        let mut keys = Vec::new();
        for part in parts {
            decoder.push(part);
            keys.extend(std::iter::from_fn(|| decoder.next(false)));
        }
        keys.extend(std::iter::from_fn(|| decoder.next(over)));
        keys
    }

    #[test]
    fn keys_are_read_however_their_bytes_are_cut() {
        let bytes = b"q\x1b[A\x1bOB\x1b[5~\x1b[6~\x1b[1~\x1b[F\r\t\x7f\x03\xc3\xa4\xe6\x97\xa5";
        let expected = [
            Key::Char('q'),
            Key::Up,
            Key::Down,
            Key::PageUp,
            Key::PageDown,
            Key::Home,
            Key::End,
            Key::Enter,
            Key::Tab,
            Key::Backspace,
            Key::Ctrl('c'),
            Key::Char('ä'),
            Key::Char('日'),
        ];
        for size in 1..=bytes.len() {
            let parts: Vec<&[u8]> = bytes.chunks(size).collect();
            assert_eq!(keys(&parts, false), expected, "{size}");
        }
    }

    #[test]
    fn escape_is_told_from_what_begins_with_it() {
        assert_eq!(keys(&[b"\x1b"], false), []);
        assert_eq!(keys(&[b"\x1b"], true), [Key::Escape]);
        assert_eq!(keys(&[b"\x1bq"], false), [Key::Escape, Key::Char('q')]);
        assert_eq!(keys(&[b"\x1b\x1b[A"], false), [Key::Escape, Key::Up]);
    }

    #[test]
    fn what_is_no_key_is_passed_over() {
        let bytes: &[u8] = b"\x1b[1;5C\x1b[200~\xff\xc3(\x00a";
        assert_eq!(keys(&[bytes], true), [Key::Char('('), Key::Char('a')]);
        for byte in 0..=255 {
            keys(&[&[byte], b"\xf4", &[byte, byte]], true);
        }
    }
}
