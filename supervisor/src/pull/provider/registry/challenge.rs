//! What a registry wants to be shown: the header `WWW-Authenticate` (RFC 9110, section 11.6.1).

/// One way to say who asks.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Challenge {
    /// `basic` or `bearer`, in lower case.
    pub(super) scheme: String,
    parameters: Vec<(String, String)>,
}

impl Challenge {
    /// The value of a parameter.
    pub(super) fn parameter(&self, name: &str) -> Option<&str> {
        let found = self.parameters.iter().find(|it| it.0 == name)?;
        Some(&found.1)
    }

    /// Every challenge in a header, or in several with commas between them.
    pub(super) fn all(header: &str) -> Vec<Challenge> {
        let mut all: Vec<Challenge> = Vec::new();
        let mut rest = header;
        loop {
            rest = rest.trim_start_matches([' ', '\t', ',']);
            let end = rest.find([' ', '\t', ',', '=']).unwrap_or(rest.len());
            let (word, after) = rest.split_at(end);
            if word.is_empty() {
                // What is there now begins nothing; what was read before it stands.
                return all;
            }
            match (after.trim_start().strip_prefix('='), all.last_mut()) {
                (Some(value), Some(challenge)) => {
                    let (value, after) = value_in(value.trim_start());
                    challenge
                        .parameters
                        .push((word.to_ascii_lowercase(), value));
                    rest = after;
                }
                (Some(_), None) => return all,
                (None, _) => {
                    all.push(Challenge {
                        scheme: word.to_ascii_lowercase(),
                        parameters: Vec::new(),
                    });
                    rest = after;
                }
            }
        }
    }
}

/// A word or a quoted text, and what stands after it.
fn value_in(text: &str) -> (String, &str) {
    let Some(quoted) = text.strip_prefix('"') else {
        let end = text.find([' ', '\t', ',']).unwrap_or(text.len());
        return (text[..end].to_owned(), &text[end..]);
    };
    let mut value = String::new();
    let mut characters = quoted.char_indices();
    while let Some((at, character)) = characters.next() {
        match character {
            '"' => return (value, &quoted[at + 1..]),
            '\\' => value.extend(characters.next().map(|it| it.1)),
            other => value.push(other),
        }
    }
    (value, "")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn as_registries_send_it() {
        let header = r#"Bearer realm="https://auth.example/token",service="a, b",scope="repository:a/b:pull,push""#;
        let all = Challenge::all(header);
        assert_eq!(all.len(), 1);
        assert_eq!(all[0].scheme, "bearer");
        assert_eq!(
            all[0].parameter("realm"),
            Some("https://auth.example/token")
        );
        assert_eq!(all[0].parameter("service"), Some("a, b"));
        assert_eq!(all[0].parameter("scope"), Some("repository:a/b:pull,push"));
    }

    #[test]
    fn several_at_once_and_oddly_written() {
        let all =
            Challenge::all("Basic realm=\"x \\\"y\\\"\", BEARER Realm = z , service=s, Negotiate");
        let schemes: Vec<&str> = all.iter().map(|it| it.scheme.as_str()).collect();
        assert_eq!(schemes, ["basic", "bearer", "negotiate"]);
        assert_eq!(all[0].parameter("realm"), Some("x \"y\""));
        assert_eq!(all[1].parameter("realm"), Some("z"));
        assert_eq!(all[1].parameter("service"), Some("s"));
    }

    #[test]
    fn nonsense_is_no_challenge_and_ends() {
        for header in [
            "",
            ",",
            "=",
            "a=b",
            "\"",
            "Bearer realm=\"open",
            "Bearer ==,=\"",
            "é",
            "Bearer realm=é",
        ] {
            let _ = Challenge::all(header);
        }
    }
}
