//! Job ids, names, keys and tickets: how they are made, and what may be one. Whatever comes from outside is
//! parsed into one of these types or refused; only they ever become part of a path.

use serde::{Deserialize, Serialize};
use thiserror::Error;

/// The longest slug, in characters.
const SLUG_LIMIT: usize = 40;
/// The longest name of an entry that any file system here takes, in bytes.
const COMPONENT_LIMIT: usize = 255;

/// Why a word cannot be an id, a name or a token.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum BadWord {
    /// It is empty.
    #[error("is empty")]
    Empty,
    /// It is longer than a file name can be.
    #[error("is longer than {COMPONENT_LIMIT} bytes")]
    TooLong,
    /// It starts with a dot.
    #[error("starts with a dot")]
    LeadingDot,
    /// It holds a separator or a control character.
    #[error("holds a '/' or a control character")]
    Separator,
    /// It holds something that a name may not.
    #[error("may hold only letters, digits and '_'")]
    Alphabet,
}

/// Refuse what must never become an entry of a directory.
fn component(word: &str) -> Result<(), BadWord> {
    if word.is_empty() {
        Err(BadWord::Empty)
    } else if word.len() > COMPONENT_LIMIT {
        Err(BadWord::TooLong)
    } else if word.starts_with('.') {
        Err(BadWord::LeadingDot)
    } else if word.chars().any(|c| c == '/' || c.is_control()) {
        Err(BadWord::Separator)
    } else {
        Ok(())
    }
}

/// The id of a job, which is also the name of its directory.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct JobId(String);

impl JobId {
    /// How many jobs of one slug can be made in one millisecond.
    pub const COLLISIONS: u32 = 64;

    /// The id of the `nth` job (from 1) that was made at `now_ms` with this slug.
    pub fn new(now_ms: u64, slug: &str, nth: u32) -> JobId {
        match nth {
            0 | 1 => JobId(format!("{now_ms}-{slug}")),
            _ => JobId(format!("{now_ms}-{slug}-{nth}")),
        }
    }

    /// Take a word from outside as an id, or say why it cannot be one.
    pub fn parse(word: &str) -> Result<JobId, BadWord> {
        component(word).map(|()| JobId(word.to_owned()))
    }

    /// The id as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl TryFrom<String> for JobId {
    type Error = BadWord;

    fn try_from(word: String) -> Result<Self, BadWord> {
        component(&word).map(|()| JobId(word))
    }
}

impl From<JobId> for String {
    fn from(id: JobId) -> String {
        id.0
    }
}

impl std::fmt::Display for JobId {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.pad(&self.0)
    }
}

/// The readable half of an id: lower case letters and digits, one dash between runs of anything else, at most
/// 40 characters, never empty.
pub fn slug(text: &str) -> String {
    let mut slug = String::new();
    for c in text.chars() {
        if slug.len() == SLUG_LIMIT {
            break;
        }
        if c.is_ascii_alphanumeric() {
            slug.push(c.to_ascii_lowercase());
        } else if !slug.is_empty() && !slug.ends_with('-') {
            slug.push('-');
        }
    }
    let trimmed = slug.trim_end_matches('-');
    if trimmed.is_empty() {
        "job".to_owned()
    } else {
        trimmed.to_owned()
    }
}

/// The name of a job: what a user calls it while it is under way. At most one unfinished job of a project
/// bears it (R12).
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Name(String);

impl Name {
    /// A name that a user gave: letters, digits and `_`.
    pub fn parse(word: &str) -> Result<Name, BadWord> {
        component(word)?;
        if word.chars().all(|c| c.is_ascii_alphanumeric() || c == '_') {
            Ok(Name(word.to_owned()))
        } else {
            Err(BadWord::Alphabet)
        }
    }

    /// The name of the `nth` unnamed job of a task: `<task>-<n>`. What is outside the alphabet is escaped, and
    /// so is the escape's own sign, so that no two tasks share a name; the dash, which no given name holds,
    /// keeps these names apart from given ones.
    pub fn of_task(task: &str, nth: u64) -> Result<Name, BadWord> {
        let name = format!("{}-{nth}", escape(task));
        component(&name).map(|()| Name(name))
    }

    /// The name under which the job of a project's task runs: the task's own where it can be one, and else its escape. No two
    /// tasks share one: what an escape holds, no task keeps as its own.
    pub fn of_project_task(task: &str) -> Result<Name, BadWord> {
        match Name::parse(task) {
            Ok(name) if !holds_an_escape(task) => Ok(name),
            Err(BadWord::Empty) => Err(BadWord::Empty),
            _ => {
                let name = escape(task);
                component(&name).map(|()| Name(name))
            }
        }
    }

    /// The name as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// Whether something in the text looks like what [`escape`] makes of a character.
fn holds_an_escape(text: &str) -> bool {
    let inner: Vec<&str> = text.split('_').collect();
    let is_hex = |part: &&str| {
        !part.is_empty()
            && part
                .bytes()
                .all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
    };
    // What stands before the first and behind the last sign is between no two of them.
    inner.len() > 2 && inner[1..inner.len() - 1].iter().any(is_hex)
}

/// `_` and everything outside the alphabet become `_<hex of the character>_`, so the text can be told from its
/// escape. Two different texts never have the same escape.
fn escape(text: &str) -> String {
    use std::fmt::Write;
    let mut escaped = String::new();
    for c in text.chars() {
        if c.is_ascii_alphanumeric() {
            escaped.push(c);
        } else {
            // Writing to a string cannot fail.
            let _ = write!(escaped, "_{:x}_", u32::from(c));
        }
    }
    escaped
}

impl TryFrom<String> for Name {
    type Error = BadWord;

    /// Records hold given names and names of tasks, so the alphabet here is that of both.
    fn try_from(word: String) -> Result<Self, BadWord> {
        component(&word)?;
        if word
            .chars()
            .all(|c| c.is_ascii_alphanumeric() || c == '_' || c == '-')
        {
            Ok(Name(word))
        } else {
            Err(BadWord::Alphabet)
        }
    }
}

impl From<Name> for String {
    fn from(name: Name) -> String {
        name.0
    }
}

impl std::fmt::Display for Name {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.pad(&self.0)
    }
}

/// The name of a pool, which is also the name of its directory.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct PoolName(String);

impl PoolName {
    /// Take a word from outside as the name of a pool: letters, digits, `_` and `-`.
    pub fn parse(word: &str) -> Result<PoolName, BadWord> {
        Name::try_from(word.to_owned()).map(|Name(word)| PoolName(word))
    }

    /// The name as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl Default for PoolName {
    /// The pool that is always there.
    fn default() -> PoolName {
        PoolName("default".to_owned())
    }
}

impl TryFrom<String> for PoolName {
    type Error = BadWord;

    fn try_from(word: String) -> Result<Self, BadWord> {
        PoolName::parse(&word)
    }
}

impl From<PoolName> for String {
    fn from(name: PoolName) -> String {
        name.0
    }
}

impl std::fmt::Display for PoolName {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.pad(&self.0)
    }
}

/// What at most one start may be under way for (R12): a name or a task in a project, or a destination. It
/// becomes a file name, so it holds a readable half and a hash of everything that makes it unique.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Key(String);

impl Key {
    /// The key of a name within a project (the bytes of the project's root, empty outside of any).
    pub fn of_name(project: &[u8], name: &Name) -> Key {
        Key::new("name", name.as_str(), project)
    }

    /// The key of a task within a project, under which its unnamed jobs are numbered.
    pub fn of_task(project: &[u8], task: &str) -> Key {
        Key::new("task", task, project)
    }

    /// The key of a destination that a pull writes.
    pub fn of_destination(path: &[u8]) -> Key {
        Key::new("to", &String::from_utf8_lossy(path), path)
    }

    fn new(kind: &str, readable: &str, rest: &[u8]) -> Key {
        let mut hash = Fnv::new();
        hash.add(kind.as_bytes());
        hash.add(readable.as_bytes());
        hash.add(rest);
        Key(format!("{kind}-{}-{:016x}", slug(readable), hash.0))
    }

    /// The key as a file name without its ending.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// A key for tests and models, taken as it is.
    pub fn parse(word: &str) -> Result<Key, BadWord> {
        component(word).map(|()| Key(word.to_owned()))
    }
}

impl TryFrom<String> for Key {
    type Error = BadWord;

    fn try_from(word: String) -> Result<Self, BadWord> {
        component(&word).map(|()| Key(word))
    }
}

impl From<Key> for String {
    fn from(key: Key) -> String {
        key.0
    }
}

/// FNV-1a, 64 bit: stable for ever, as it is part of the format. Two keys that collide share a lock and are
/// told apart by what the job's descriptor says, so a collision costs a moment's wait and nothing else.
struct Fnv(u64);

impl Fnv {
    fn new() -> Fnv {
        Fnv(0xcbf2_9ce4_8422_2325)
    }

    /// Add one field; its length goes in too, so that two fields cannot be cut differently.
    fn add(&mut self, bytes: &[u8]) {
        let length = (bytes.len() as u64).to_le_bytes();
        for byte in length.iter().chain(bytes) {
            self.0 = (self.0 ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3);
        }
    }
}

/// A word that nobody else uses: it names what one process has in `staging/` or `trash/`.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Ticket(String);

impl Ticket {
    /// Take a word as a ticket; the caller makes it unique.
    pub fn parse(word: &str) -> Result<Ticket, BadWord> {
        component(word).map(|()| Ticket(word.to_owned()))
    }

    /// The ticket as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The `nth` further ticket that its holder may use.
    pub fn nth(&self, nth: u32) -> Ticket {
        Ticket(format!("{}-{nth}", self.0))
    }
}

impl TryFrom<String> for Ticket {
    type Error = BadWord;

    fn try_from(word: String) -> Result<Self, BadWord> {
        component(&word).map(|()| Ticket(word))
    }
}

impl From<Ticket> for String {
    fn from(ticket: Ticket) -> String {
        ticket.0
    }
}

/// What tells one claim on a slot from every other one, before and after it (R23). A session's is what its holder is given.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Token(String);

impl Token {
    /// Take a word as a token; whoever makes one makes it unique.
    pub fn parse(word: &str) -> Result<Token, BadWord> {
        Token::try_from(word.to_owned())
    }

    /// The token as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl TryFrom<String> for Token {
    type Error = BadWord;

    fn try_from(word: String) -> Result<Self, BadWord> {
        component(&word).map(|()| Token(word))
    }
}

impl From<Token> for String {
    fn from(token: Token) -> String {
        token.0
    }
}

impl std::fmt::Display for Token {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.pad(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_is_a_time_and_a_slug() {
        let slug = slug("sh -c 'Exit 7'");
        assert_eq!(slug, "sh-c-exit-7");
        assert_eq!(JobId::new(17, &slug, 1).as_str(), "17-sh-c-exit-7");
        assert_eq!(JobId::new(17, &slug, 2).as_str(), "17-sh-c-exit-7-2");
    }

    #[test]
    fn slugs_are_never_empty_and_never_long() {
        assert_eq!(slug(""), "job");
        assert_eq!(slug("…/*"), "job");
        assert_eq!(slug(&"abc ".repeat(30)).len(), 39);
        assert_eq!(slug(&"x".repeat(90)).len(), 40);
    }

    #[test]
    fn what_could_leave_the_directory_is_refused() {
        assert_eq!(JobId::parse(""), Err(BadWord::Empty));
        assert_eq!(JobId::parse(".."), Err(BadWord::LeadingDot));
        assert_eq!(JobId::parse("a/b"), Err(BadWord::Separator));
        assert_eq!(JobId::parse("a\nb"), Err(BadWord::Separator));
        assert_eq!(JobId::parse(&"x".repeat(300)), Err(BadWord::TooLong));
    }

    #[test]
    fn no_two_tasks_share_a_job_name() {
        let tasks = ["a", "a-1", "a_1", "a_2d_1", "a 1", "ä"];
        let names: std::collections::BTreeSet<Name> = tasks
            .iter()
            .map(|task| Name::of_task(task, 1).unwrap())
            .collect();
        assert_eq!(names.len(), tasks.len());
        for name in names {
            assert!(Name::parse(name.as_str()).is_err(), "{name} could be given");
        }
    }

    #[test]
    fn no_two_tasks_of_a_project_share_a_job_name() {
        let tasks = [
            "web", "db_main", "a_2d_1", "a-1", "a_1", "a_1_b", "a__1", "_a_", "a b", "ä", "_e4_",
        ];
        let names: std::collections::BTreeSet<Name> = tasks
            .iter()
            .map(|task| Name::of_project_task(task).unwrap())
            .collect();
        assert_eq!(names.len(), tasks.len());
        for own in ["web", "db_main", "a__1", "a_1"] {
            assert_eq!(Name::of_project_task(own).unwrap().as_str(), own);
        }
        assert_eq!(Name::of_project_task("a-1").unwrap().as_str(), "a_2d_1");
        assert!(Name::of_project_task("").is_err());
    }

    #[test]
    fn keys_are_stable_and_tell_fields_apart() {
        let web = Name::parse("web").unwrap();
        let key = Key::of_name(b"/srv/app", &web);
        assert_eq!(key.as_str(), "name-web-31fb91989a568f0f");
        assert_ne!(key, Key::of_name(b"/srv/ap", &web));
        assert_ne!(key, Key::of_task(b"/srv/app", "web"));
    }
}
