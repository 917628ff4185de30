//! What is in the environment of a command in a slot, and what must not be.

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

/// The variables that keep git quiet, beside what `count` says is configured by variables already.
pub(crate) fn quiet(count: Option<&str>) -> Vec<(String, String)> {
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
}
