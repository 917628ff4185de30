//! One example for every verb, with which its help opens and its manual page ends. Each can be typed as it stands.

use clap::Command;

/// The words of a verb after `outlive`, and what is shown.
const EXAMPLES: &[(&str, &str)] = &[
    (
        "run",
        "outlive run --name web --retry 3 -- python3 -m http.server 8000",
    ),
    (
        "queue",
        "outlive queue --pool build --after 1795965109941-fetch -- make -j4",
    ),
    (
        "pull",
        "outlive pull --wait https://example.org/big.iso --to big.iso",
    ),
    ("start", "outlive start web"),
    ("up", "outlive up --stop"),
    ("check", "outlive check outlive.toml"),
    ("list", "outlive list --all --state active"),
    ("top", "outlive top"),
    ("serve", "outlive serve --listen 127.0.0.1:8099"),
    ("status", "outlive status web"),
    ("log", "outlive log --follow web"),
    ("wait", "outlive wait --timeout 10m web"),
    ("pause", "outlive pause web"),
    ("resume", "outlive resume web"),
    ("stop", "outlive stop web"),
    ("signal", "outlive signal web HUP"),
    ("restart", "outlive restart web"),
    ("clean", "outlive clean --older-than 7d"),
    ("events", "outlive events --follow web"),
    ("pool", "outlive pool add build --slots 2"),
    ("pool list", "outlive pool list"),
    ("pool status", "outlive pool status --json"),
    ("pool open", "outlive pool open web"),
    (
        "pool close",
        "outlive pool close 0f1e2d3c4b5a69788796a5b4c3d2e1f0",
    ),
    (
        "pool exec",
        "outlive pool exec 0f1e2d3c4b5a69788796a5b4c3d2e1f0 -- make test",
    ),
    (
        "pool renew",
        "outlive pool renew 0f1e2d3c4b5a69788796a5b4c3d2e1f0 --expires 2h",
    ),
    ("pool maintain", "outlive pool maintain web --older-than 1d"),
    ("pool repair", "outlive pool repair web/2"),
    (
        "pool add",
        "outlive pool add web --source ~/src/web --slots 4",
    ),
    ("pool set", "outlive pool set web --slots 6"),
    ("pool pause", "outlive pool pause web"),
    ("pool resume", "outlive pool resume web"),
    ("pool remove", "outlive pool remove web"),
    ("supervise", "outlive supervise --foreground"),
    ("supervisor", "outlive supervisor status"),
    ("supervisor status", "outlive supervisor status --json"),
    ("supervisor drain", "outlive supervisor drain --wait"),
    ("supervisor reload", "outlive supervisor reload"),
    ("supervisor stop", "outlive supervisor stop"),
    ("doctor", "outlive doctor --fix"),
    (
        "completions",
        "outlive completions bash > ~/.local/share/bash-completion/completions/outlive",
    ),
    ("man", "outlive man --out ~/.local/share/man/man1"),
];

/// The example of a verb; none of what is not for people.
pub(super) fn of(words: &str) -> Option<&'static str> {
    let found = EXAMPLES.iter().find(|(known, _)| *known == words);
    found.map(|(_, example)| *example)
}

/// A verb whose help, and that of each verb below it, opens with its example.
pub(super) fn shown(words: &str, verb: Command) -> Command {
    let verb = match of(words) {
        Some(example) => verb.before_help(format!("Example: {example}")),
        None => verb,
    };
    verb.mut_subcommands(|part| {
        let below = format!("{words} {}", part.get_name());
        shown(&below, part)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::{declare, declare_visible};

    fn every_verb(words: &str, command: &Command, seen: &mut Vec<String>) {
        for part in command.get_subcommands() {
            let words = format!("{words} {}", part.get_name()).trim().to_owned();
            every_verb(&words, part, seen);
            seen.push(words);
        }
    }

    #[test]
    fn every_verb_has_an_example_and_every_example_is_of_a_verb() {
        let mut verbs = Vec::new();
        every_verb("", &declare_visible(), &mut verbs);
        for verb in &verbs {
            assert!(of(verb).is_some(), "{verb} has none");
        }
        for (words, _) in EXAMPLES {
            assert!(
                verbs.iter().any(|verb| verb == words),
                "there is no {words}"
            );
        }
    }

    #[test]
    fn every_example_can_be_typed() {
        for (words, example) in EXAMPLES {
            let example = example.split(" > ").next().unwrap();
            let typed = example.split_whitespace();
            let parsed = declare().try_get_matches_from(typed);
            assert!(parsed.is_ok(), "{example}: {}", parsed.unwrap_err());
            assert!(example.starts_with(&format!("outlive {words}")));
        }
    }
}
