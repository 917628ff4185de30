//! The environment of a command: names and values as bytes, in order. It is most of a descriptor, so there are two ways to
//! read it: as it is, and only to see that it can be read.

use std::fmt;
use std::marker::PhantomData;

use serde::de::{DeserializeSeed, Error, MapAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::Bytes;
use super::bytes::{Form, from_hex, to_hex};

/// What begins the JSON of a name that is not UTF-8; no name can hold it.
const NO_TEXT: char = '\0';

/// An environment: names and values in order, doubles included.
///
/// As JSON it is one object. A value that is not UTF-8 is `{"hex":"…"}`; a name that is not UTF-8 is a zero
/// character, which no name can hold, and then the hex of its bytes.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Default)]
pub struct Environment(pub Vec<(Bytes, Bytes)>);

impl Environment {
    /// Set `name` to `value`, whatever it was before.
    pub fn set(&mut self, name: &[u8], value: &[u8]) {
        self.unset(name);
        self.0.push((Bytes(name.to_vec()), Bytes(value.to_vec())));
    }

    /// Remove `name`.
    pub fn unset(&mut self, name: &[u8]) {
        self.0.retain(|(known, _)| known.0 != name);
    }

    /// The value of `name`, if it is set.
    pub fn get(&self, name: &[u8]) -> Option<&[u8]> {
        self.0
            .iter()
            .find(|(known, _)| known.0 == name)
            .map(|(_, value)| value.0.as_slice())
    }
}

impl Serialize for Environment {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.0.iter().map(|(name, value)| {
            let name = match std::str::from_utf8(&name.0) {
                Ok(text) if !text.starts_with(NO_TEXT) => std::borrow::Cow::Borrowed(text),
                _ => format!("{NO_TEXT}{}", to_hex(&name.0)).into(),
            };
            (name, value)
        }))
    }
}

impl<'de> Deserialize<'de> for Environment {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Environment, D::Error> {
        deserializer
            .deserialize_map(Pairs(PhantomData))
            .map(Environment)
    }
}

/// An environment that was read and not kept: nothing in it is damaged, and no more is known of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Unread;

impl<'de> Deserialize<'de> for Unread {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Unread, D::Error> {
        // However many there are, a vector of them takes no memory.
        let passed: Vec<(Passed, Passed)> = deserializer.deserialize_map(Pairs(PhantomData))?;
        drop(passed);
        Ok(Unread)
    }
}

/// What is kept of a text that is not kept.
struct Passed;

impl From<&str> for Passed {
    fn from(_: &str) -> Passed {
        Passed
    }
}

impl From<Vec<u8>> for Passed {
    fn from(_: Vec<u8>) -> Passed {
        Passed
    }
}

/// Reads names and values, each as a `T`.
struct Pairs<T>(PhantomData<T>);

impl<'de, T: for<'a> From<&'a str> + From<Vec<u8>>> Visitor<'de> for Pairs<T> {
    type Value = Vec<(T, T)>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object of names and values")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Vec<(T, T)>, A::Error> {
        let mut pairs = Vec::with_capacity(map.size_hint().unwrap_or(0).min(4096));
        while let Some(name) = map.next_key_seed(NameForm(PhantomData))? {
            pairs.push((name, map.next_value_seed(Form(PhantomData))?));
        }
        Ok(pairs)
    }
}

/// Reads the JSON of a name.
struct NameForm<T>(PhantomData<T>);

impl<'de, T: for<'a> From<&'a str> + From<Vec<u8>>> DeserializeSeed<'de> for NameForm<T> {
    type Value = T;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<T, D::Error> {
        deserializer.deserialize_str(self)
    }
}

impl<T: for<'a> From<&'a str> + From<Vec<u8>>> Visitor<'_> for NameForm<T> {
    type Value = T;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a name")
    }

    fn visit_str<E: Error>(self, name: &str) -> Result<T, E> {
        match name.strip_prefix(NO_TEXT) {
            None => Ok(T::from(name)),
            Some(hex) => from_hex(hex)
                .map(T::from)
                .ok_or_else(|| Error::custom("a name in env holds something else than hex")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_environment_keeps_every_byte_and_the_order() {
        let env = Environment(vec![
            (Bytes::from("B"), Bytes::from("%H 'q' \n=")),
            (Bytes::from("A-B"), Bytes(vec![0xfe, 0xff])),
            (Bytes(vec![b'X', 0x80]), Bytes::from("")),
            (Bytes::from("hex"), Bytes::from("{\"hex\":\"00\"}")),
            (Bytes::from("B"), Bytes::from("twice")),
        ]);
        let json = serde_json::to_string(&env).unwrap();
        assert_eq!(serde_json::from_str::<Environment>(&json).unwrap(), env);
        assert_eq!(serde_json::from_str::<Unread>(&json).unwrap(), Unread);
    }
}
