//! What a server's answer to a request for bytes means (RFC 9110, sections 13 to 15). Decided by status, range, version and
//! length together: each of them alone has been wrong somewhere, and the bytes of a wrong answer were written into files.

/// No file is longer than this, in bytes: a server that says so is wrong, and would be every time.
pub const LONGEST: u64 = i64::MAX as u64;

/// What was asked for.
#[derive(Clone, Copy, Debug)]
pub struct Asked<'a> {
    /// From which byte on; `None` where the whole was asked for, without a range.
    pub from: Option<u64>,
    /// The version that the bytes must be of, where one is known: a strong entity tag.
    pub etag: Option<&'a str>,
    /// How long the whole is, in bytes, where that is known.
    pub total_bytes: Option<u64>,
    /// Whether a digest will tell whether the whole is right.
    pub has_digest: bool,
    /// Whether an encoding that the server names is a part of the file: nothing is decoded, and the digest is of what comes.
    pub is_as_sent: bool,
}

/// What a server answered, before its body.
#[derive(Clone, Copy, Debug, Default)]
pub struct Answer<'a> {
    /// The status code.
    pub status: u16,
    /// `Content-Range`.
    pub content_range: Option<&'a str>,
    /// `Content-Encoding`, all of them.
    pub content_encoding: Option<&'a str>,
    /// `Transfer-Encoding`, all of them.
    pub transfer_encoding: Option<&'a str>,
    /// Whether it is one of HTTP/1.0, which knows no transfer encoding.
    pub is_http10: bool,
    /// `Content-Type`.
    pub content_type: Option<&'a str>,
    /// `Content-Length`, in bytes.
    pub content_length: Option<u64>,
    /// `ETag`.
    pub etag: Option<&'a str>,
    /// Whether it came from where a redirect led, and not from where was asked first.
    pub redirected: bool,
}

/// How the end of a body is told (RFC 9112, section 6.3).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// The last chunk says so. A length that is named besides does not count.
    Chunks,
    /// It has so many bytes.
    Length(u64),
    /// The connection is closed: nothing tells it from a cut.
    Close,
}

/// What is to be done about it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// The body goes on where we are.
    Append {
        /// How long the whole is, in bytes.
        total_bytes: Option<u64>,
    },
    /// The body is the whole, from its first byte.
    Whole {
        /// How long it is, in bytes, where that is known.
        total_bytes: Option<u64>,
    },
    /// There is nothing more to come.
    Complete,
    /// What we have is of no use: discard it, and ask for the whole.
    Restart(String),
    /// What we have may be good, but not with this answer: ask without a range, and write that from the first byte.
    AskWhole(String),
    /// The address that a redirect gave is not good any more: ask where we asked first.
    AskOrigin(String),
    /// It may go better later.
    Later(String),
    /// It would go the same way every time.
    Never(String),
}

impl Answer<'_> {
    /// What this answer means to who asked so.
    pub fn judge(&self, asked: &Asked<'_>) -> Verdict {
        match self.status {
            206 => self.judge_range(asked),
            200 => self.judge_whole(asked),
            416 => self.judge_refused_range(asked),
            401 | 403 if self.redirected => Verdict::AskOrigin(format!(
                "the address that the server led to answers {}: it has expired",
                self.status
            )),
            401 => never("401: the server wants to know who asks; give a token"),
            403 => never("403: the server does not let us have it"),
            404 => never("404: there is no such file on the server"),
            410 => never("410: the server does not have it any more"),
            451 => never("451: the server may not give it, for legal reasons"),
            408 | 425 | 429 | 500 | 502 | 503 | 504 => {
                Verdict::Later(format!("the server answered {}", self.status))
            }
            other => Verdict::Never(format!(
                "the server answered {other}, which is no answer to a request for a file"
            )),
        }
    }

    /// How its body ends.
    ///
    /// # Errors
    ///
    /// Why that cannot be known: what is done to the bytes on their way cannot be undone.
    pub fn end(&self) -> Result<End, String> {
        let by_length = self.content_length.map_or(End::Close, End::Length);
        let codings: Vec<&str> = codings(self.transfer_encoding).collect();
        match codings.as_slice() {
            [] => Ok(by_length),
            [coding] if !self.is_http10 && coding.eq_ignore_ascii_case("chunked") => {
                Ok(End::Chunks)
            }
            [coding] if coding.eq_ignore_ascii_case("chunked") => {
                Err("the server answered with chunks in HTTP/1.0, which has none".into())
            }
            codings => Err(format!(
                "the server sent the file with Transfer-Encoding: {}, though that was not asked for",
                codings.join(", ")
            )),
        }
    }

    fn judge_range(&self, asked: &Asked<'_>) -> Verdict {
        let Some(from) = asked.from else {
            return Verdict::Later("the server sent a range that nobody asked for".into());
        };
        if let Err(why) = self.end() {
            return Verdict::Never(why);
        }
        if let Some(encoding) = self.encoding(asked) {
            // A range counts bytes of the encoded file, of which we have none.
            return Verdict::AskWhole(format!("the server sent a range of a {encoding} file"));
        }
        let Some(range) = self.content_range.and_then(ContentRange::parse) else {
            return Verdict::AskWhole("the server sent a range and did not say which".into());
        };
        if let Some(why) = too_long(range.total_bytes) {
            return Verdict::Never(why);
        }
        if range.from != Some(from) {
            return Verdict::Restart("the server sent other bytes than were asked for".into());
        }
        if let (Some(known), Some(now)) = (asked.total_bytes, range.total_bytes)
            && known != now
        {
            return Verdict::Restart(format!(
                "the file has changed on the server: it has {now} bytes now, and had {known}"
            ));
        }
        if let Some(why) = self.is_of_another_version(asked) {
            return Verdict::Restart(why);
        }
        Verdict::Append {
            total_bytes: range.total_bytes.or(asked.total_bytes),
        }
    }

    /// Why the bytes cannot be told to be of the version that we have a part of.
    fn is_of_another_version(&self, asked: &Asked<'_>) -> Option<String> {
        let known = asked.etag?;
        match self.etag {
            Some(now) if now == known => None,
            // A digest tells in the end, and some servers leave the tag out of a range.
            None if asked.has_digest => None,
            None => Some("the server does not say any more which version it sends".into()),
            Some(_) => Some("the file has changed on the server".into()),
        }
    }

    fn judge_whole(&self, asked: &Asked<'_>) -> Verdict {
        if self.content_range.is_some() {
            // It did honour the range, or says so: nobody can know where these bytes belong.
            return match asked.from {
                Some(_) => Verdict::AskWhole("the server answered 200 with a range".into()),
                None => Verdict::Later("the server answered 200 with a range to no range".into()),
            };
        }
        if let Some(encoding) = self.encoding(asked) {
            return Verdict::Never(format!(
                "the server sent the file {encoding}-encoded, though that was not asked for"
            ));
        }
        let length = match self.end() {
            Ok(End::Length(length)) => Some(length),
            Ok(End::Chunks | End::Close) => None,
            Err(why) => return Verdict::Never(why),
        };
        if let Some(why) = too_long(length) {
            return Verdict::Never(why);
        }
        if let (Some(known), Some(now)) = (asked.total_bytes, length)
            && asked.has_digest
            && known != now
        {
            return Verdict::Never(format!(
                "the server sends {now} bytes, and the file that is wanted has {known}"
            ));
        }
        Verdict::Whole {
            total_bytes: length,
        }
    }

    fn judge_refused_range(&self, asked: &Asked<'_>) -> Verdict {
        let Some(from) = asked.from else {
            return Verdict::Later("the server refused a range that nobody asked for".into());
        };
        let total = self
            .content_range
            .and_then(ContentRange::parse)
            .and_then(|range| range.total_bytes);
        match total {
            Some(total)
                if total == from && asked.total_bytes.is_none_or(|known| known == total) =>
            {
                Verdict::Complete
            }
            Some(total) => Verdict::Restart(format!(
                "the file has {total} bytes on the server, and {from} of it were here"
            )),
            None => Verdict::AskWhole("the server refused the range and did not say why".into()),
        }
    }

    /// The encoding of the body, where there is one that is not a part of the file.
    fn encoding(&self, asked: &Asked<'_>) -> Option<&str> {
        codings(self.content_encoding.filter(|_| !asked.is_as_sent)).next()
    }
}

/// Why no file can be of this length, in bytes.
fn too_long(length: Option<u64>) -> Option<String> {
    let length = length.filter(|length| *length > LONGEST)?;
    Some(format!(
        "the server says that the file has {length} bytes, which none can have"
    ))
}

/// What a list of encodings says was done, one after the other.
fn codings(list: Option<&str>) -> impl Iterator<Item = &str> {
    list.unwrap_or_default()
        .split(',')
        .map(str::trim)
        .filter(|it| !it.is_empty() && !it.eq_ignore_ascii_case("identity"))
}

fn never(why: &str) -> Verdict {
    Verdict::Never(why.to_owned())
}

/// What `Content-Range` says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ContentRange {
    /// The first byte that is sent; `None` where none is.
    pub from: Option<u64>,
    /// How long the whole is, in bytes, where that is known.
    pub total_bytes: Option<u64>,
}

impl ContentRange {
    /// Read `bytes 0-99/100`, `bytes 0-99/*` or `bytes */100`.
    pub fn parse(text: &str) -> Option<ContentRange> {
        let (unit, rest) = text.trim().split_once(' ')?;
        if !unit.eq_ignore_ascii_case("bytes") {
            return None;
        }
        let (range, total) = rest.trim().split_once('/')?;
        let total_bytes = match total.trim() {
            "*" => None,
            number => Some(number.parse().ok()?),
        };
        if range.trim() == "*" {
            let from = None;
            return Some(ContentRange { from, total_bytes });
        }
        let (first, last) = range.trim().split_once('-')?;
        let (first, last): (u64, u64) = (first.trim().parse().ok()?, last.trim().parse().ok()?);
        if first > last || total_bytes.is_some_and(|total| last >= total) {
            return None;
        }
        Some(ContentRange {
            from: Some(first),
            total_bytes,
        })
    }
}

/// The entity tag, where it is a strong one: only such a tag says that two answers are the same, byte for byte.
pub fn strong(etag: Option<&str>) -> Option<&str> {
    etag.map(str::trim).filter(|tag| {
        let quoted = tag.len() >= 2 && tag.starts_with('"') && tag.ends_with('"');
        quoted && tag.bytes().all(|it| it > b' ' && it != 0x7f)
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const TAG: &str = "\"v1\"";

    fn asked() -> Asked<'static> {
        Asked {
            from: Some(40),
            etag: Some(TAG),
            total_bytes: Some(100),
            has_digest: false,
            is_as_sent: false,
        }
    }

    fn range(content_range: &str) -> Answer<'_> {
        Answer {
            status: 206,
            content_range: Some(content_range),
            content_length: Some(60),
            etag: Some(TAG),
            ..Answer::default()
        }
    }

    fn of_status(status: u16) -> Answer<'static> {
        Answer {
            status,
            ..Answer::default()
        }
    }

    #[test]
    fn a_range_that_agrees_is_appended() {
        let verdict = range("bytes 40-99/100").judge(&asked());
        let total_bytes = Some(100);
        assert_eq!(verdict, Verdict::Append { total_bytes });
        let verdict = range("bytes 40-59/100").judge(&asked());
        assert_eq!(verdict, Verdict::Append { total_bytes });
        let verdict = range("bytes 40-99/*").judge(&asked());
        assert_eq!(verdict, Verdict::Append { total_bytes });
    }

    #[test]
    fn a_range_that_does_not_agree_is_never_written() {
        let restarts = |answer: Answer<'_>| matches!(answer.judge(&asked()), Verdict::Restart(_));
        assert!(restarts(range("bytes 0-99/100")));
        assert!(restarts(range("bytes 41-99/100")));
        assert!(restarts(range("bytes 40-100/101")));
        let etag = Some("\"v2\"");
        assert!(restarts(Answer {
            etag,
            ..range("bytes 40-99/100")
        }));
        let etag = Some("W/\"v1\"");
        assert!(restarts(Answer {
            etag,
            ..range("bytes 40-99/100")
        }));
        let etag = None;
        let untagged = Answer {
            etag,
            ..range("bytes 40-99/100")
        };
        assert!(restarts(untagged));
        let with_digest = Asked {
            has_digest: true,
            ..asked()
        };
        assert!(matches!(
            untagged.judge(&with_digest),
            Verdict::Append { .. }
        ));
        let several = Answer {
            content_range: None,
            content_type: Some("multipart/byteranges; boundary=x"),
            ..range("")
        };
        assert!(matches!(several.judge(&asked()), Verdict::AskWhole(_)));
        let content_encoding = Some("gzip");
        let encoded = Answer {
            content_encoding,
            ..range("bytes 40-99/100")
        };
        assert!(matches!(encoded.judge(&asked()), Verdict::AskWhole(_)));
    }

    #[test]
    fn the_whole_is_written_from_its_first_byte() {
        let whole = Answer {
            content_length: Some(100),
            etag: Some(TAG),
            ..of_status(200)
        };
        let total_bytes = Some(100);
        assert_eq!(whole.judge(&asked()), Verdict::Whole { total_bytes });
        let content_range = Some("bytes 40-99/100");
        let lying = Answer {
            content_range,
            ..whole
        };
        assert!(matches!(lying.judge(&asked()), Verdict::AskWhole(_)));
        let from = None;
        assert!(matches!(
            lying.judge(&Asked { from, ..asked() }),
            Verdict::Later(_)
        ));
        let content_encoding = Some("gzip");
        let encoded = Answer {
            content_encoding,
            ..whole
        };
        assert!(matches!(encoded.judge(&asked()), Verdict::Never(_)));
        let as_sent = Asked {
            is_as_sent: true,
            ..asked()
        };
        assert_eq!(
            encoded.judge(&as_sent),
            Verdict::Whole {
                total_bytes: encoded.content_length
            }
        );
        let content_encoding = Some("identity");
        let plain = Answer {
            content_encoding,
            ..whole
        };
        assert!(matches!(plain.judge(&asked()), Verdict::Whole { .. }));
        let unknown = of_status(200);
        let total_bytes = None;
        assert_eq!(unknown.judge(&asked()), Verdict::Whole { total_bytes });
    }

    #[test]
    fn an_end_is_a_length_or_chunks_and_nothing_else() {
        let content_length = Some(100);
        let end = |transfer_encoding, is_http10, content_length| {
            let answer = Answer {
                content_length,
                transfer_encoding,
                is_http10,
                ..of_status(200)
            };
            let judged = answer.judge(&Asked {
                from: None,
                total_bytes: None,
                ..asked()
            });
            assert_eq!(
                matches!(judged, Verdict::Never(_)),
                answer.end().is_err(),
                "{judged:?}"
            );
            answer.end().ok()
        };
        assert_eq!(end(None, false, content_length), Some(End::Length(100)));
        assert_eq!(end(None, false, None), Some(End::Close));
        assert_eq!(
            end(Some("Chunked"), false, content_length),
            Some(End::Chunks)
        );
        for nothing in ["", "identity", " , identity"] {
            assert_eq!(end(Some(nothing), false, None), Some(End::Close));
            assert_eq!(
                end(Some(nothing), false, content_length),
                Some(End::Length(100))
            );
        }
        for wrong in [
            "gzip",
            "gzip, chunked",
            "chunked, gzip",
            "chunked, chunked",
            "x",
        ] {
            assert_eq!(end(Some(wrong), false, content_length), None, "{wrong}");
        }
        assert_eq!(end(Some("chunked"), true, content_length), None);
        let chunked = Answer {
            transfer_encoding: Some("chunked"),
            content_length,
            ..of_status(200)
        };
        let total_bytes = None;
        assert_eq!(chunked.judge(&asked()), Verdict::Whole { total_bytes });
        let coded = Answer {
            transfer_encoding: Some("gzip, chunked"),
            ..range("bytes 40-99/100")
        };
        assert!(matches!(coded.judge(&asked()), Verdict::Never(_)));
    }

    #[test]
    fn no_file_is_longer_than_a_file_can_be() {
        let whole = |length| Answer {
            content_length: Some(length),
            ..of_status(200)
        };
        assert!(matches!(whole(u64::MAX).judge(&asked()), Verdict::Never(_)));
        assert!(matches!(
            whole(LONGEST).judge(&asked()),
            Verdict::Whole { .. }
        ));
        let verdict = range("bytes 40-99/18446744073709551615").judge(&asked());
        assert!(matches!(verdict, Verdict::Never(_)));
    }

    #[test]
    fn every_encoding_counts() {
        for (encodings, is_encoded) in [
            ("identity, gzip", true),
            ("gzip, identity", true),
            ("\u{fffd}", true),
            ("identity, identity", false),
            ("", false),
        ] {
            let whole = Answer {
                content_encoding: Some(encodings),
                ..of_status(200)
            };
            let verdict = whole.judge(&asked());
            assert_eq!(
                matches!(verdict, Verdict::Never(_)),
                is_encoded,
                "{encodings}"
            );
        }
    }

    #[test]
    fn a_refused_range_means_complete_or_stale() {
        let refused = |content_range| Answer {
            content_range,
            ..of_status(416)
        };
        let complete = Asked {
            from: Some(100),
            ..asked()
        };
        assert_eq!(
            refused(Some("bytes */100")).judge(&complete),
            Verdict::Complete
        );
        assert!(matches!(
            refused(Some("bytes */99")).judge(&complete),
            Verdict::Restart(_)
        ));
        assert!(matches!(
            refused(Some("bytes */100")).judge(&asked()),
            Verdict::Restart(_)
        ));
        assert!(matches!(
            refused(None).judge(&asked()),
            Verdict::AskWhole(_)
        ));
    }

    #[test]
    fn errors_are_final_or_not() {
        for status in [408, 425, 429, 500, 502, 503, 504] {
            assert!(
                matches!(of_status(status).judge(&asked()), Verdict::Later(_)),
                "{status}"
            );
        }
        for status in [
            400, 401, 403, 404, 405, 410, 451, 304, 305, 306, 204, 100, 999,
        ] {
            assert!(
                matches!(of_status(status).judge(&asked()), Verdict::Never(_)),
                "{status}"
            );
        }
        for status in [401, 403] {
            let redirected = true;
            let expired = Answer {
                redirected,
                ..of_status(status)
            };
            assert!(
                matches!(expired.judge(&asked()), Verdict::AskOrigin(_)),
                "{status}"
            );
        }
    }

    #[test]
    fn only_a_strong_tag_names_a_version() {
        assert_eq!(strong(Some("\"a\"")), Some("\"a\""));
        for weak in ["W/\"a\"", "a", "\"", "\"a b\"", "\"a\n\"", ""] {
            assert_eq!(strong(Some(weak)), None, "{weak:?}");
        }
        assert_eq!(strong(None), None);
    }

    proptest! {
        #[test]
        fn bytes_are_appended_only_where_they_belong(
            from in 0u64..50, first in 0u64..50, last in 0u64..60, total in proptest::option::of(0u64..60),
            known in proptest::option::of(0u64..60), status in 200u16..600, has_digest: bool,
        ) {
            let total_text = total.map_or("*".to_owned(), |it| it.to_string());
            let content_range = format!("bytes {first}-{last}/{total_text}");
            let answer = Answer { status, ..range(&content_range) };
            let asked = Asked { from: Some(from), total_bytes: known, has_digest, ..asked() };
            if let Verdict::Append { total_bytes } = answer.judge(&asked) {
                prop_assert_eq!(status, 206);
                prop_assert_eq!(first, from);
                prop_assert!(known.is_none() || total_bytes == known);
            }
        }

        #[test]
        fn no_header_makes_it_fail(text in ".{0,40}") {
            let _ = ContentRange::parse(&text);
            let _ = strong(Some(&text));
        }
    }
}
