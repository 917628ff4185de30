//! What is in the environment of a command in a slot, and what must not be.

use std::ffi::OsString;
use std::path::Path;

use crate::process::SLOT_VARIABLE;
use crate::workspace::CEILING;

/// What git passes on to its hooks and aliases, and would have every git in the slot work on somebody else's repository.
pub(crate) const OF_ANOTHER_REPOSITORY: [&str; 12] = [
    "GIT_ALTERNATE_OBJECT_DIRECTORIES",
    "GIT_COMMON_DIR",
    "GIT_DIR",
    "GIT_GRAFT_FILE",
    "GIT_IMPLICIT_WORK_TREE",
    "GIT_INDEX_FILE",
    "GIT_NAMESPACE",
    "GIT_OBJECT_DIRECTORY",
    "GIT_PREFIX",
    "GIT_QUARANTINE_PATH",
    "GIT_SHALLOW_FILE",
    "GIT_WORK_TREE",
];

/// git's own maintenance would go on in the slot when the command is done.
const QUIET: [(&str, &str); 2] = [("gc.auto", "0"), ("maintenance.auto", "false")];

/// What is set for a command in a slot that would have these variables.
pub(crate) fn settled(
    slot_dir: &Path,
    has: impl Fn(&str) -> Option<OsString>,
) -> Vec<(String, OsString)> {
    let mut variables = vec![
        (SLOT_VARIABLE.to_owned(), slot_dir.into()),
        (CEILING.to_owned(), ceiling(slot_dir, has(CEILING))),
    ];
    let count = has("GIT_CONFIG_COUNT");
    let quiet = quiet(count.as_ref().and_then(|count| count.to_str()));
    variables.extend(quiet.into_iter().map(|(name, value)| (name, value.into())));
    variables
}

/// The slot, before what is there: should its `.git` be gone, a repository that the store happens to be in is not taken for it.
/// The path is one without links, and first: behind an empty entry git would not follow any.
pub(super) fn ceiling(slot_dir: &Path, others: Option<OsString>) -> OsString {
    let real = slot_dir.canonicalize();
    let mut ceiling = real.unwrap_or_else(|_| slot_dir.into()).into_os_string();
    if let Some(others) = others {
        ceiling.push(":");
        ceiling.push(others);
    }
    ceiling
}

/// The variables that keep git quiet, beside what `count` says is configured by variables already.
fn quiet(count: Option<&str>) -> Vec<(String, String)> {
    let count: usize = count.and_then(|count| count.parse().ok()).unwrap_or(0);
    let mut variables = vec![(
        "GIT_CONFIG_COUNT".to_owned(),
        (count + QUIET.len()).to_string(),
    )];
    for (nth, (key, value)) in QUIET.into_iter().enumerate() {
        let nth = count + nth;
        variables.push((format!("GIT_CONFIG_KEY_{nth}"), key.to_owned()));
        variables.push((format!("GIT_CONFIG_VALUE_{nth}"), value.to_owned()));
    }
    variables
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_configured_already_stays() {
        let variables = quiet(Some("3"));
        assert_eq!(variables[0], ("GIT_CONFIG_COUNT".into(), "5".into()));
        assert_eq!(variables[1].0, "GIT_CONFIG_KEY_3");
        assert_eq!(quiet(Some("many"))[1].0, "GIT_CONFIG_KEY_0");
    }

    #[test]
    fn other_ceilings_stay_behind_that_of_the_slot() {
        let slot = Path::new("/there/is/no/slot");
        assert_eq!(ceiling(slot, None), "/there/is/no/slot");
        let both = ceiling(slot, Some("/a::/b".into()));
        assert_eq!(both, "/there/is/no/slot:/a::/b");
    }
}
