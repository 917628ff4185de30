//! The configuration of a store, `config.toml`: what jobs get when nobody says otherwise, and how long ended ones
//! are kept. It is written by people: a word that means nothing is an error that names it, so that a slip of the
//! hand is not taken for a wish; a table that this version does not know belongs to another one and is left alone.

use std::collections::BTreeMap;
use std::time::Duration;

use serde::{Deserialize, Deserializer};
use thiserror::Error;

use crate::id::PoolName;
use crate::record::{self, Bytes, Ground, MAINTENANCE_TIMEOUT_MS, PauseMode, Upkeep};
use crate::retention::Retention;
use crate::units;

/// The configuration of a store.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct Config {
    /// What a job gets when nobody says otherwise.
    pub defaults: Defaults,
    /// Which ended jobs a sweep keeps.
    pub retention: Keep,
    /// The same for the jobs of one project, by the path of its root.
    pub project: BTreeMap<String, Project>,
    /// The pools.
    pub pool: BTreeMap<PoolName, Pool>,
    /// The supervisor.
    pub supervisor: Supervisor,
}

/// What is particular to the jobs of one project.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Project {
    /// Which of its ended jobs a sweep keeps, whatever holds for others.
    pub retention: Keep,
}

/// A pool.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Pool {
    /// How many slots it has; as many as the machine has processors where absent.
    pub slots: Option<u32>,
    /// The git repository that its slots are worktrees of; a path, from the directory of this file if it is relative.
    pub source: Option<String>,
    /// The command that fills a new slot which is no worktree.
    #[serde(deserialize_with = "some_words")]
    pub prepare: Option<Vec<String>>,
    /// The command that is run in a slot when it is given back.
    #[serde(deserialize_with = "some_words")]
    pub reset: Option<Vec<String>>,
    /// How its slots are maintained.
    pub maintain: Option<Maintain>,
}

/// How the slots of a pool are maintained.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Maintain {
    /// The command: program and arguments, run without a shell.
    #[serde(deserialize_with = "words")]
    pub command: Vec<String>,
    /// How long it may run; ten minutes where absent.
    #[serde(default, deserialize_with = "duration")]
    pub timeout: Option<Duration>,
    /// How often a supervisor has it run; never by itself where absent.
    #[serde(default, deserialize_with = "duration")]
    pub every: Option<Duration>,
}

impl Pool {
    /// What its slots hold.
    fn ground(&self) -> Ground {
        let bytes = |words: &Vec<String>| {
            words
                .iter()
                .map(|word| Bytes::from(word.as_str()))
                .collect()
        };
        Ground {
            source: self.source.as_deref().map(Bytes::from),
            prepare: self.prepare.as_ref().map(bytes),
            reset: self.reset.as_ref().map(bytes),
            maintain: self.maintain.as_ref().map(|maintain| Upkeep {
                command: bytes(&maintain.command),
                timeout_ms: maintain.timeout.map_or(MAINTENANCE_TIMEOUT_MS, ms),
                every_ms: maintain.every.map(ms),
            }),
        }
    }
}

fn ms(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

/// The supervisor.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Supervisor {
    /// How long it stays with nothing to do, where nobody told it to stay.
    #[serde(deserialize_with = "duration")]
    pub idle_exit: Option<Duration>,
}

/// How a pool is set up, from the configuration and what somebody made of it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct PoolSetup {
    /// How many slots it has; `None` for as many as the machine has processors.
    pub slots: Option<u32>,
    /// Whether no job is admitted.
    pub paused: bool,
    /// Whether the configuration has it.
    pub configured: bool,
    /// What its slots hold.
    pub ground: Ground,
}

/// What a job gets when nobody says otherwise.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Defaults {
    /// How long a stop waits before it forces.
    #[serde(deserialize_with = "duration")]
    pub grace: Option<Duration>,
    /// How long an attempt may run.
    #[serde(deserialize_with = "duration")]
    pub timeout: Option<Duration>,
    /// The most that is kept of all output of a job, in bytes.
    #[serde(deserialize_with = "size")]
    pub log_max: Option<u64>,
    /// Over how many older files that is spread.
    pub log_keep: Option<u32>,
    /// What a pause does.
    pub pause: Option<PauseMode>,
}

/// Which ended jobs a sweep keeps.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Keep {
    /// The newest so many.
    pub keep: Option<usize>,
    /// What ended no longer ago than this.
    #[serde(deserialize_with = "duration")]
    pub older_than: Option<Duration>,
}

impl Keep {
    /// The same, as the sweep takes it.
    pub fn retention(&self) -> Retention {
        Retention {
            keep: self.keep,
            older_than_ms: self.older_than.map(ms),
        }
    }
}

/// A configuration that cannot be read.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{0}")]
pub struct BadConfig(String);

impl Config {
    /// How a pool is set up, given what somebody made of it; `None` where there is no such pool. The pool `default` is
    /// always there.
    pub fn pool(&self, name: &PoolName, made: Option<&record::Pool>) -> Option<PoolSetup> {
        let configured = self.pool.get(name);
        if configured.is_none() && made.is_none() && *name != PoolName::default() {
            return None;
        }
        Some(PoolSetup {
            slots: made
                .and_then(|made| made.slots)
                .or(configured.and_then(|pool| pool.slots)),
            paused: made.is_some_and(|made| made.paused),
            configured: configured.is_some() || *name == PoolName::default(),
            ground: made
                .map(|made| made.ground.clone())
                .unwrap_or_default()
                .over(&configured.map(Pool::ground).unwrap_or_default())
                .settled(),
        })
    }

    /// The same for a file in the directory `dir`: what is a relative path in it is one from there.
    #[must_use]
    pub fn standing_in(mut self, dir: &str) -> Config {
        for pool in self.pool.values_mut() {
            if let Some(source) = &mut pool.source
                && !source.starts_with('/')
            {
                *source = format!("{dir}/{source}");
            }
        }
        self
    }

    /// Which ended jobs of a project a sweep keeps.
    pub fn retention_of(&self, project: Option<&str>) -> Retention {
        project
            .and_then(|project| self.project.get(project))
            .map_or(&self.retention, |project| &project.retention)
            .retention()
    }

    /// Read the bytes of `config.toml`.
    pub fn decode(bytes: &[u8]) -> Result<Config, BadConfig> {
        let text = std::str::from_utf8(bytes).map_err(|error| BadConfig(error.to_string()))?;
        let read = |error: toml::de::Error| {
            let line = error
                .span()
                .map(|span| text[..span.start.min(text.len())].matches('\n').count() + 1);
            BadConfig(match line {
                Some(line) => format!("line {line}: {}", error.message()),
                None => error.message().to_owned(),
            })
        };
        let table: toml::Table = toml::from_str(text).map_err(read)?;
        if let Some((key, _)) = table.iter().find(|(_, value)| !value.is_table()) {
            return Err(BadConfig(format!(
                "'{key}' stands in no table; it belongs below a line like [defaults]"
            )));
        }
        toml::from_str(text).map_err(read)
    }
}

fn duration<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Duration>, D::Error> {
    parsed(deserializer, units::duration)
}

/// The words of a command: at least one.
fn words<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<String>, D::Error> {
    let words = Vec::<String>::deserialize(deserializer)?;
    if words.is_empty() {
        return Err(serde::de::Error::custom("a command has at least one word"));
    }
    Ok(words)
}

fn some_words<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Vec<String>>, D::Error> {
    words(deserializer).map(Some)
}

fn size<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<u64>, D::Error> {
    parsed(deserializer, units::size)
}

fn parsed<'de, D: Deserializer<'de>, T>(
    deserializer: D,
    parse: fn(&str) -> Result<T, units::BadUnit>,
) -> Result<Option<T>, D::Error> {
    let text = String::deserialize(deserializer)?;
    parse(&text).map(Some).map_err(serde::de::Error::custom)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_empty_file_configures_nothing() {
        assert_eq!(Config::decode(b""), Ok(Config::default()));
    }

    #[test]
    fn values_are_read_as_people_write_them() {
        let text = br#"
            [defaults]
            grace = "30s"
            log_max = "10M"
            pause = "stop"
            [retention]
            keep = 100
            older_than = "7d"
            [pool.web]
            slots = 3
        "#;
        let config = Config::decode(text).unwrap();
        assert_eq!(config.defaults.grace, Some(Duration::from_secs(30)));
        assert_eq!(config.defaults.log_max, Some(10 << 20));
        assert_eq!(config.defaults.pause, Some(PauseMode::Stop));
        assert_eq!(
            config.retention.retention().older_than_ms,
            Some(604_800_000)
        );
    }

    #[test]
    fn a_pool_says_what_its_slots_hold() {
        let text = br#"
            [pool.web]
            slots = 3
            source = "."
            reset = ["git", "clean", "-fdx"]
            maintain = { command = ["cargo", "fetch"], every = "1d" }
        "#;
        let config = Config::decode(text).unwrap();
        let web = PoolName::parse("web").unwrap();
        let ground = config.pool(&web, None).unwrap().ground;
        assert_eq!(ground.source, Some(".".into()));
        assert_eq!(ground.reset.map(|words| words.len()), Some(3));
        let upkeep = ground.maintain.unwrap();
        assert_eq!(upkeep.command, ["cargo".into(), "fetch".into()]);
        assert_eq!(upkeep.timeout_ms, MAINTENANCE_TIMEOUT_MS);
        assert_eq!(upkeep.every_ms, Some(86_400_000));
        let bare = config.pool(&PoolName::default(), None).unwrap();
        assert!(!bare.ground.has_place());
        let error = Config::decode(b"[pool.web]\nprepare = []\n").unwrap_err();
        assert!(error.to_string().contains("at least one word"), "{error}");
    }

    #[test]
    fn a_slip_of_the_hand_is_named_with_its_line() {
        let error = Config::decode(b"[defaults]\ngrase = \"1s\"\n").unwrap_err();
        assert!(error.to_string().starts_with("line 2: "), "{error}");
        assert!(error.to_string().contains("grase"), "{error}");
        let error = Config::decode(b"[defaults]\ngrace = \"soon\"\n").unwrap_err();
        assert!(error.to_string().contains("'soon'"), "{error}");
        let error = Config::decode(b"grace = \"1s\"\n").unwrap_err();
        assert!(error.to_string().contains("[defaults]"), "{error}");
        assert!(Config::decode(b"\xff").is_err());
        assert!(Config::decode(b"[defaults").is_err());
    }
}
