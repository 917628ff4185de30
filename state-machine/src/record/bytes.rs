//! Arguments, paths and environment are bytes on Unix. As JSON they are strings where they are UTF-8 and
//! `{"hex":"…"}` where they are not, so nothing is lost and nearly everything is readable.

use std::fmt;
use std::marker::PhantomData;

use serde::de::{DeserializeSeed, Error, IgnoredAny, MapAccess, Visitor};
use serde::ser::SerializeMap;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// A string of bytes that is usually text.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
pub struct Bytes(pub Vec<u8>);

impl Bytes {
    /// The bytes as text, with the replacement character where they are not UTF-8. For people only.
    pub fn lossy(&self) -> std::borrow::Cow<'_, str> {
        String::from_utf8_lossy(&self.0)
    }
}

impl std::fmt::Debug for Bytes {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{:?}", self.lossy())
    }
}

impl From<&str> for Bytes {
    fn from(text: &str) -> Bytes {
        Bytes(text.as_bytes().to_vec())
    }
}

impl From<Vec<u8>> for Bytes {
    fn from(bytes: Vec<u8>) -> Bytes {
        Bytes(bytes)
    }
}

/// The field that holds the hex of what is no text.
const HEX: &str = "hex";

impl Serialize for Bytes {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        if let Ok(text) = std::str::from_utf8(&self.0) {
            return serializer.serialize_str(text);
        }
        let mut map = serializer.serialize_map(Some(1))?;
        map.serialize_entry(HEX, &to_hex(&self.0))?;
        map.end()
    }
}

impl<'de> Deserialize<'de> for Bytes {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Bytes, D::Error> {
        Form(PhantomData).deserialize(deserializer)
    }
}

/// Reads either form of [`Bytes`], as a `T`. Without a detour: a listing reads them by the hundred thousand.
pub(super) struct Form<T>(pub(super) PhantomData<T>);

impl<'de, T: for<'a> From<&'a str> + From<Vec<u8>>> DeserializeSeed<'de> for Form<T> {
    type Value = T;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<T, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de, T: for<'a> From<&'a str> + From<Vec<u8>>> Visitor<'de> for Form<T> {
    type Value = T;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a text, or an object with the field \"hex\"")
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<T, E> {
        Ok(T::from(text))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<T, A::Error> {
        let mut bytes = None;
        while let Some(name) = map.next_key::<String>()? {
            if name != HEX {
                map.next_value::<IgnoredAny>()?;
            } else if bytes.is_some() {
                return Err(Error::duplicate_field(HEX));
            } else {
                let hex = map.next_value::<String>()?;
                let decoded = from_hex(&hex)
                    .ok_or_else(|| Error::custom("\"hex\" holds something else than hex"))?;
                bytes = Some(decoded);
            }
        }
        bytes.map(T::from).ok_or_else(|| Error::missing_field(HEX))
    }
}

/// The same form for bytes that are no [`Bytes`] in memory, as serde's `with`.
pub(crate) mod plain {
    use super::{Bytes, Deserialize, Deserializer, Serialize, Serializer};

    pub(crate) fn serialize<S: Serializer>(bytes: &[u8], serializer: S) -> Result<S::Ok, S::Error> {
        Bytes(bytes.to_vec()).serialize(serializer)
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<Vec<u8>, D::Error> {
        Bytes::deserialize(deserializer).map(|bytes| bytes.0)
    }
}

pub(super) fn to_hex(bytes: &[u8]) -> String {
    use std::fmt::Write;
    let mut hex = String::with_capacity(bytes.len() * 2);
    for byte in bytes {
        // Writing to a string cannot fail.
        let _ = write!(hex, "{byte:02x}");
    }
    hex
}

pub(super) fn from_hex(hex: &str) -> Option<Vec<u8>> {
    let digits: Option<Vec<u8>> = hex
        .chars()
        .map(|c| c.to_digit(16).map(|digit| digit as u8))
        .collect();
    let (pairs, rest) = digits.as_deref()?.as_chunks::<2>();
    rest.is_empty()
        .then(|| pairs.iter().map(|[high, low]| high << 4 | low).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_stays_readable_and_the_rest_is_not_lost() {
        let text = Bytes::from("a b");
        assert_eq!(serde_json::to_string(&text).unwrap(), r#""a b""#);
        let odd = Bytes(vec![b'a', 0xff]);
        let json = serde_json::to_string(&odd).unwrap();
        assert_eq!(json, r#"{"hex":"61ff"}"#);
        assert_eq!(serde_json::from_str::<Bytes>(&json).unwrap(), odd);
    }

    #[test]
    fn bad_hex_is_an_error() {
        for bad in [r#"{"hex":"6"}"#, r#"{"hex":"6é"}"#, r#"{"hex":7}"#, "7"] {
            assert!(serde_json::from_str::<Bytes>(bad).is_err(), "{bad}");
        }
    }
}
