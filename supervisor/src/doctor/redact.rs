//! Taking secrets out of what is shown to others: credentials in addresses, headers that authorize, what follows the name of a
//! secret, and whatever an environment has under such a name. Rather too much is taken than too little; nobody can promise that
//! nothing is left.
//!
//! Only text goes in and out here.

use std::collections::BTreeMap;
use std::ops::Range;

use state_machine::id::slug;

/// What stands where something was taken out.
pub(super) const REDACTED: &str = "[redacted]";

/// A value of an environment that is shorter than this is not looked for elsewhere: it would be found in every other word.
const SHORTEST: usize = 6;
/// How long a word is, in bytes, that is taken for a secret where one may follow.
const RANDOM: usize = 16;

/// Parts of names behind which a secret stands.
const WORDS: [&str; 15] = [
    "token",
    "secret",
    "secrets",
    "password",
    "passwd",
    "passphrase",
    "pwd",
    "apikey",
    "credential",
    "credentials",
    "auth",
    "authorization",
    "cookie",
    "signature",
    "bearer",
];
/// What makes a key one that is secret.
const KEYS: [&str; 8] = [
    "api",
    "access",
    "private",
    "secret",
    "signing",
    "encryption",
    "auth",
    "account",
];
/// Words that end as the names of secrets do, and are none.
const HARMLESS: [&str; 13] = [
    "monkey",
    "donkey",
    "turkey",
    "hockey",
    "jockey",
    "whiskey",
    "hotkey",
    "compass",
    "bypass",
    "surpass",
    "trespass",
    "overpass",
    "underpass",
];
/// How words begin that are secrets wherever they stand.
const PREFIXES: [&str; 17] = [
    "ghp_",
    "gho_",
    "ghs_",
    "ghu_",
    "ghr_",
    "github_pat_",
    "glpat-",
    "hf_",
    "npm_",
    "pypi-",
    "sk_live_",
    "xoxa-",
    "xoxb-",
    "xoxp-",
    "AIza",
    "sk-",
    "eyJ",
];
/// Behind these flags stands a user, and perhaps a password.
const USER_FLAGS: [&str; 3] = ["-u", "--user", "--proxy-user"];

/// Takes secrets out, and counts how many from where.
#[derive(Debug, Default)]
pub(super) struct Redactor {
    known: Vec<String>,
    counts: BTreeMap<String, usize>,
}

impl Redactor {
    /// Look for this value everywhere, as it is that of a name which tells of a secret.
    pub(super) fn learn(&mut self, name: &str, value: &str) {
        if is_secret_variable(name) {
            self.know(value);
            // What prints JSON writes it so.
            let quoted = serde_json::Value::from(value).to_string();
            self.know(quoted.trim_matches('"'));
        }
    }

    /// Look everywhere for the secrets of this command, too, also as they are written in the id that is made from it.
    pub(super) fn learn_from(&mut self, words: &[&str], id: &str) {
        let mut secrets = Vec::new();
        let mut before = "";
        for &word in words {
            match standing(before, word) {
                Standing::Whole => secrets.push(word),
                Standing::Password(at) => secrets.push(&word[at..]),
                Standing::Free => {
                    secrets.extend(self.find(word).into_iter().map(|range| &word[range]));
                }
            }
            before = word;
        }
        for secret in secrets {
            self.know(secret);
            // An id is cut where it would be too long.
            let slug = slug(secret);
            let in_id = (SHORTEST..=slug.len()).rev().map(|length| &slug[..length]);
            if let Some(part) = in_id.into_iter().find(|part| id.contains(part)) {
                self.know(part);
            }
        }
    }

    fn know(&mut self, secret: &str) {
        if secret.len() >= SHORTEST && !self.known.iter().any(|it| it == secret) {
            self.known.push(secret.to_owned());
        }
    }

    /// Something was taken out of this place.
    pub(super) fn count(&mut self, place: &str) {
        *self.counts.entry(place.to_owned()).or_default() += 1;
    }

    /// From where how many were taken.
    pub(super) fn counts(&self) -> &BTreeMap<String, usize> {
        &self.counts
    }

    /// The text without its secrets.
    pub(super) fn text(&mut self, place: &str, text: &str) -> String {
        let mut found = self.find(text);
        found.sort_by_key(|range| (range.start, std::cmp::Reverse(range.end)));
        let mut clean = String::with_capacity(text.len());
        let mut at = 0;
        for range in found {
            if range.start < at || range.is_empty() {
                continue;
            }
            clean.push_str(&text[at..range.start]);
            clean.push_str(REDACTED);
            at = range.end;
            self.count(place);
        }
        clean.push_str(&text[at..]);
        clean
    }

    /// A command without its secrets: the word behind a flag that names one is one.
    pub(super) fn words(&mut self, place: &str, words: &[&str]) -> Vec<String> {
        let mut clean = Vec::with_capacity(words.len());
        let mut before = "";
        for &word in words {
            clean.push(match standing(before, word) {
                Standing::Whole => {
                    self.count(place);
                    REDACTED.to_owned()
                }
                Standing::Password(at) => {
                    self.count(place);
                    format!("{}{REDACTED}", &word[..at])
                }
                Standing::Free => self.text(place, word),
            });
            before = word;
        }
        clean
    }

    /// Where secrets are.
    fn find(&self, text: &str) -> Vec<Range<usize>> {
        let mut found = Vec::new();
        for known in &self.known {
            found.extend(
                text.match_indices(known.as_str())
                    .map(|(at, _)| at..at + known.len()),
            );
        }
        found.extend(in_addresses(text));
        found.extend(private_keys(text));
        let mut seen = 0;
        for name in names(text) {
            // What stands deep in a secret goes with it. In a long one there may be very many names.
            if name.end + RANDOM < seen {
                continue;
            }
            let secret = behind(text, &name)
                .or_else(|| itself(text, &name))
                .or_else(|| behind_user(text, &name));
            if let Some(secret) = secret {
                seen = seen.max(secret.end);
                found.push(secret);
            }
        }
        found
    }
}

/// What a word of a command is, by the one before it.
enum Standing {
    /// All of it is a secret.
    Whole,
    /// It is one from here on.
    Password(usize),
    /// That is to be seen in it.
    Free,
}

fn standing(before: &str, word: &str) -> Standing {
    let is_name = before.starts_with('-') && !before.contains('=') && is_secret(before);
    let is_user = USER_FLAGS.contains(&before);
    match word.find(':') {
        _ if is_name && !word.starts_with('-') => Standing::Whole,
        Some(at) if is_user => Standing::Password(at + 1),
        _ => Standing::Free,
    }
}

/// Whether the name of a variable tells of a secret. There a key is one, too; where one works is none.
fn is_secret_variable(name: &str) -> bool {
    if matches!(name, "PWD" | "OLDPWD") {
        return false;
    }
    // Many are written without a sign before it: SSHPASS, DEPLOYKEY.
    let is_last = |last: String| {
        let ends_so = ["key", "pass"].iter().any(|end| last.ends_with(end));
        ends_so && !HARMLESS.iter().any(|word| last.ends_with(word))
    };
    is_secret(name) || parts(name).pop().is_some_and(is_last)
}

/// Whether a name tells of a secret.
pub(super) fn is_secret(name: &str) -> bool {
    let parts = parts(name);
    let is_word = |part: &String| {
        WORDS.contains(&part.as_str())
            || ["token", "secret", "password", "passwd", "apikey"]
                .iter()
                .any(|word| part.ends_with(word))
    };
    parts.iter().any(is_word)
        || parts
            .windows(2)
            .any(|pair| KEYS.contains(&pair[0].as_str()) && pair[1] == "key")
}

/// The parts of a name, in small letters: `accessToken`, `ACCESS_TOKEN` and `--access-token` have the same.
fn parts(name: &str) -> Vec<String> {
    let mut parts = vec![String::new()];
    let mut was_small = false;
    for c in name.chars() {
        if !c.is_ascii_alphanumeric() || c.is_ascii_uppercase() && was_small {
            parts.push(String::new());
        }
        if c.is_ascii_alphanumeric()
            && let Some(part) = parts.last_mut()
        {
            part.push(c.to_ascii_lowercase());
        }
        was_small = c.is_ascii_lowercase() || c.is_ascii_digit();
    }
    parts.retain(|part| !part.is_empty());
    parts
}

/// Every run of characters that names are made of.
fn names(text: &str) -> Vec<Range<usize>> {
    let is_of_name = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'.');
    let bytes = text.as_bytes();
    let mut found = Vec::new();
    let mut at = 0;
    while at < bytes.len() {
        let start = at;
        while at < bytes.len() && is_of_name(bytes[at]) {
            at += 1;
        }
        if at > start {
            found.push(start..at);
        } else {
            at += 1;
        }
    }
    found
}

/// What stands behind a name that tells of a secret: `name=value`, `name: value`, `"name": "value"`, `--name value`, and
/// `name value` where that looks random.
fn behind(text: &str, name: &Range<usize>) -> Option<Range<usize>> {
    let word = &text[name.clone()];
    if !is_secret(word) {
        return None;
    }
    let bytes = text.as_bytes();
    let skip = |mut at: usize, of: &[u8]| {
        while bytes.get(at).is_some_and(|byte| of.contains(byte)) {
            at += 1;
        }
        at
    };
    // JSON in JSON has a backslash before its quotation marks.
    let unescaped = |at: usize| {
        let behind = skip(at, b"\\");
        let is_quote = matches!(bytes.get(behind), Some(b'"' | b'\''));
        if is_quote { behind } else { at }
    };
    let mut at = unescaped(name.end);
    if matches!(bytes.get(at), Some(b'"' | b'\'')) {
        at += 1;
    }
    let blank = skip(at, b" \t");
    let is_assigned = matches!(bytes.get(blank), Some(b'=' | b':'));
    let start = if is_assigned {
        skip(skip(blank, b"=:>"), b" \t")
    } else {
        blank
    };
    if start == name.end {
        return None;
    }
    let start = unescaped(start);
    let quote = bytes
        .get(start)
        .copied()
        .filter(|byte| matches!(byte, b'"' | b'\''));
    if let Some(quote) = quote {
        let end = end_of_quoted(bytes, start + 1, quote);
        let is_value = is_assigned || word.starts_with('-') || is_random(&text[start + 1..end]);
        return (is_value && end > start + 1).then_some(start + 1..end);
    }
    let ends: &dyn Fn(u8) -> bool = if is_assigned && is_header(word) {
        // A header goes on to the end of its line.
        &|byte| matches!(byte, b'\n' | b'\r' | b'"' | b'\'')
    } else {
        &|byte: u8| byte.is_ascii_whitespace() || b"&;,\"'<>()[]{}".contains(&byte)
    };
    let length = bytes[start..].iter().position(|&byte| ends(byte));
    let end = length.map_or(bytes.len(), |length| start + length);
    let value = &text[start..end];
    let is_value =
        is_assigned || word.starts_with('-') && !value.starts_with('-') || is_random(value);
    (is_value && !value.is_empty()).then_some(start..end)
}

/// Where what is quoted ends, at the latest with its line. A quotation mark behind a backslash is one of the text.
fn end_of_quoted(bytes: &[u8], start: usize, quote: u8) -> usize {
    let mut at = start;
    while let Some(&byte) = bytes.get(at) {
        match byte {
            b'\n' => break,
            b'\\'
                if bytes
                    .get(at + 1)
                    .is_some_and(|&next| next == quote || next == b'\\') =>
            {
                at += 2
            }
            byte if byte == quote => break,
            _ => at += 1,
        }
    }
    at.min(bytes.len())
}

/// The password in `-u user:password`, `--user=user:password`, `-uuser:password`, with or without quotation marks.
fn behind_user(text: &str, name: &Range<usize>) -> Option<Range<usize>> {
    let word = &text[name.clone()];
    let bytes = text.as_bytes();
    let start = if USER_FLAGS.contains(&word) {
        let is_gap = |byte: u8| matches!(byte, b' ' | b'\t' | b'=');
        let gap = bytes[name.end..].iter().take_while(|byte| is_gap(**byte));
        let start = name.end + gap.count();
        let quotes = bytes[start..]
            .iter()
            .take_while(|byte| b"\"'\\".contains(byte));
        if start == name.end {
            return None;
        }
        start + quotes.count()
    } else if word.starts_with("-u") {
        name.start + "-u".len()
    } else {
        return None;
    };
    let ends = |byte: &u8| byte.is_ascii_whitespace() || b"&;,\"'\\<>()[]{}".contains(byte);
    let length = bytes[start..].iter().position(ends);
    let end = length.map_or(bytes.len(), |length| start + length);
    let password = start + text[start..end].find(':')? + 1;
    (password < end).then_some(password..end)
}

/// Whether a name is that of a header whose value has blanks in it.
fn is_header(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    name.ends_with("authorization") || name.ends_with("cookie")
}

/// Whether a word looks like a secret by itself.
fn is_random(word: &str) -> bool {
    let of_base64 = |byte: u8| byte.is_ascii_alphanumeric() || b"+/=_-.".contains(&byte);
    word.len() >= RANDOM
        && word.bytes().all(of_base64)
        && word.bytes().any(|byte| byte.is_ascii_digit())
}

/// A word that is a secret wherever it stands.
fn itself(text: &str, word: &Range<usize>) -> Option<Range<usize>> {
    let shown = &text[word.clone()];
    let is_one = PREFIXES.iter().any(|prefix| shown.starts_with(prefix)) && is_random(shown);
    is_one.then(|| word.clone())
}

/// The user and password in addresses.
fn in_addresses(text: &str) -> Vec<Range<usize>> {
    let ends = |c: char| c.is_whitespace() || "/?#\"'<>".contains(c);
    // In JSON a slash may be written with a backslash before it.
    let plain = text.match_indices("://");
    plain
        .chain(text.match_indices(r":\/\/"))
        .filter_map(|(at, sign)| {
            let start = at + sign.len();
            let length = text[start..].find(ends).unwrap_or(text.len() - start);
            let end = text[start..start + length].rfind('@')?;
            Some(start..start + end)
        })
        .collect()
}

/// Private keys as PEM and PGP have them, between their first line and their last. Of one of the two a log may be cut off.
fn private_keys(text: &str) -> Vec<Range<usize>> {
    const NAME: &str = "PRIVATE KEY";
    let mut found = Vec::new();
    let mut start = None;
    let mut seen = 0;
    for (at, _) in text.match_indices(NAME) {
        let name_end = at + NAME.len();
        let mut ends = ["-----", " BLOCK-----"].into_iter();
        let Some(rest) = ends.find(|rest| text[name_end..].starts_with(rest)) else {
            continue;
        };
        let behind = name_end + rest.len();
        let before = &text[seen..at];
        let Some(dashes) = before.rfind("-----") else {
            continue;
        };
        if before[dashes..].starts_with("-----BEGIN ") {
            start = Some(behind);
        } else if before[dashes..].starts_with("-----END ") {
            let end = seen + dashes;
            let is_of_key =
                |byte: &&u8| byte.is_ascii_alphanumeric() || b"+/=\\\r\n".contains(byte);
            let length = before.as_bytes()[..dashes]
                .iter()
                .rev()
                .take_while(is_of_key);
            found.push(start.take().unwrap_or(end - length.count())..end);
        }
        seen = behind;
    }
    found.extend(start.map(|start| start..text.len()));
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn clean(text: &str) -> String {
        Redactor::default().text("here", text)
    }

    #[test]
    fn secrets_go_and_the_rest_stays() {
        for (text, expected) in [
            ("token=abc", "token=[redacted]"),
            (
                "GET https://me:pw@host/path?x=1",
                "GET https://[redacted]@host/path?x=1",
            ),
            (
                "https://host/?access_token=a&page=2",
                "https://host/?access_token=[redacted]&page=2",
            ),
            (
                "Authorization: Bearer abc def\nnext",
                "Authorization: [redacted]\nnext",
            ),
            (
                r#"{"password": "a b", "user": "me"}"#,
                r#"{"password": "[redacted]", "user": "me"}"#,
            ),
            (
                "curl --token abc --verbose",
                "curl --token [redacted] --verbose",
            ),
            (
                "AWS_SECRET_ACCESS_KEY=x1 ls",
                "AWS_SECRET_ACCESS_KEY=[redacted] ls",
            ),
            ("accessToken: q", "accessToken: [redacted]"),
            ("the token is 3", "the token is 3"),
            ("the token 0123456789abcdef0123", "the token [redacted]"),
            (
                "pushed with ghp_0123456789abcdefXYZ",
                "pushed with [redacted]",
            ),
            ("tokens: 17, key: value", "tokens: 17, key: value"),
            ("http://localhost:80/a@b", "http://localhost:80/a@b"),
            ("password", "password"),
            ("password=", "password="),
            ("ünïcode secret=ß", "ünïcode secret=[redacted]"),
            (
                r#"{"token": "a\"b\\", "x": 1}"#,
                r#"{"token": "[redacted]", "x": 1}"#,
            ),
            (
                r#"{"said": "{\"password\": \"abc\"}"}"#,
                r#"{"said": "{\"password\": \"[redacted]"}"#,
            ),
            ("token=password: x", "token=[redacted] [redacted]"),
            (
                r"https:\/\/me:pw@host\/path",
                r"https:\/\/[redacted]@host\/path",
            ),
            (
                "sh -c 'curl -u me:pw http://h:80'",
                "sh -c 'curl -u me:[redacted] http://h:80'",
            ),
            ("curl -ume:pw", "curl -ume:[redacted]"),
            ("--proxy-user=me:pw x", "--proxy-user=me:[redacted] x"),
            ("--user \"me:pw\"", "--user \"me:[redacted]\""),
            ("sort -u a b:c", "sort -u a b:c"),
            (
                "x\n-----BEGIN RSA PRIVATE KEY-----\nMIIE\n-----END RSA PRIVATE KEY-----\ny",
                "x\n-----BEGIN RSA PRIVATE KEY-----[redacted]-----END RSA PRIVATE KEY-----\ny",
            ),
            (
                "it said: MIIE\nQ0/+=\n-----END PRIVATE KEY-----\ny",
                "it said: [redacted]-----END PRIVATE KEY-----\ny",
            ),
            (
                "x-----BEGIN PRIVATE KEY-----\nMIIE",
                "x-----BEGIN PRIVATE KEY-----[redacted]",
            ),
            (
                "-----BEGIN PUBLIC KEY-----\nMIIE",
                "-----BEGIN PUBLIC KEY-----\nMIIE",
            ),
            (
                "x\n-----BEGIN PGP PRIVATE KEY BLOCK-----\nVersion: 1\n\nlQ/+=\n=abcd\n-----END PGP PRIVATE KEY BLOCK-----\ny",
                "x\n-----BEGIN PGP PRIVATE KEY BLOCK-----[redacted]-----END PGP PRIVATE KEY BLOCK-----\ny",
            ),
            (
                "it said: lQ/+=\n=abcd\n-----END PGP PRIVATE KEY BLOCK-----\ny",
                "it said: [redacted]-----END PGP PRIVATE KEY BLOCK-----\ny",
            ),
            (
                "-----BEGIN PGP PUBLIC KEY BLOCK-----\nmQ",
                "-----BEGIN PGP PUBLIC KEY BLOCK-----\nmQ",
            ),
            ("-update: 3", "-update: 3"),
        ] {
            assert_eq!(clean(text), expected);
        }
    }

    #[test]
    fn a_value_that_is_secret_by_its_name_is_found_everywhere() {
        let mut redactor = Redactor::default();
        redactor.learn("HF_TOKEN", "open sesame");
        redactor.learn("HOME", "/home/me");
        let text = redactor.text("log", "I say open sesame in /home/me, open sesame");
        assert_eq!(text, "I say [redacted] in /home/me, [redacted]");
        assert_eq!(redactor.counts()["log"], 2);
    }

    #[test]
    fn a_key_in_an_environment_is_secret_and_the_working_directory_is_not() {
        let mut redactor = Redactor::default();
        redactor.learn("RAILS_MASTER_KEY", "rails-master");
        redactor.learn("DB_PASS", "dolphin");
        redactor.learn("LINES_TOKEN", "one\"two\nthree");
        redactor.learn("PWD", "/home/me");
        redactor.learn("SSHPASS", "porpoise");
        redactor.learn("DEPLOYKEY", "skeleton");
        redactor.learn("MONKEY", "banana");
        redactor.learn("UI_HOTKEY", "ctrl-shift");
        redactor.learn("PROXY_BYPASS", "localhost");
        for (text, expected) in [
            ("rails-master, dolphin", "[redacted], [redacted]"),
            ("porpoise, skeleton", "[redacted], [redacted]"),
            ("ctrl-shift at localhost", "ctrl-shift at localhost"),
            (r#"{"x":"one\"two\nthree"}"#, r#"{"x":"[redacted]"}"#),
            ("a banana in /home/me", "a banana in /home/me"),
        ] {
            assert_eq!(redactor.text("here", text), expected);
        }
    }

    #[test]
    fn a_text_of_nothing_but_secrets_takes_no_longer_than_another() {
        for part in ["token=", "cookie=", "token='x", "-ua:", "://@"] {
            let text = part.repeat(200_000);
            assert!(clean(&text).len() <= text.len() * 3);
        }
    }

    #[test]
    fn the_secrets_of_a_command_are_found_in_its_output_and_in_its_id() {
        let mut redactor = Redactor::default();
        let words = ["curl", "--token", "Swordfish_9", "-u", "me:letmein"];
        redactor.learn_from(&words, "17-curl-token-swordfish-9-u-me-letm");
        for (text, expected) in [
            ("I am Swordfish_9", "I am [redacted]"),
            ("letmein", "[redacted]"),
            ("17-curl-token-swordfish-9-u", "17-curl-token-[redacted]-u"),
        ] {
            assert_eq!(redactor.text("here", text), expected);
        }
    }

    #[test]
    fn a_command_has_secrets_in_words_of_their_own() {
        let mut redactor = Redactor::default();
        let words = [
            "curl",
            "-u",
            "me:pw",
            "--api-key",
            "k",
            "--password=x",
            "-H",
            "Cookie: a b",
        ];
        assert_eq!(
            redactor.words("job.json", &words),
            [
                "curl",
                "-u",
                "me:[redacted]",
                "--api-key",
                "[redacted]",
                "--password=[redacted]",
                "-H",
                "Cookie: [redacted]"
            ]
        );
    }
}
