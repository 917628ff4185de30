//! Patterns for paths, the same for what is fetched of a repository and for what a task is made of. They are as the hub's own client
//! reads them: those of fnmatch, in which `*` crosses `/`.
//!
//! Not the patterns of a shell: there is no `**` that would mean more than `*`, nothing is escaped, a leading dot is a character
//! like any other, and a `[` that nothing closes stands for itself.

/// A pattern, read once.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pattern(Vec<Token>);

#[derive(Clone, Debug, PartialEq, Eq)]
enum Token {
    /// Any number of any characters.
    Any,
    /// One character of any kind.
    One,
    /// This character.
    Is(char),
    /// One character within these ranges, or outside of all of them.
    Among {
        ranges: Vec<(char, char)>,
        inside: bool,
    },
}

impl Pattern {
    /// Read a pattern. Every text is one; what ends in `/` means everything below it.
    pub fn new(text: &str) -> Pattern {
        let mut text: Vec<char> = text.replace('\\', "/").chars().collect();
        if text.last() == Some(&'/') {
            text.push('*');
        }
        let mut tokens = Vec::new();
        let mut at = 0;
        while let Some(&character) = text.get(at) {
            at += 1;
            let token = match character {
                '*' if tokens.last() == Some(&Token::Any) => continue,
                '*' => Token::Any,
                '?' => Token::One,
                '[' => match set(&text[at..]) {
                    Some((token, length)) => {
                        at += length;
                        token
                    }
                    None => Token::Is('['),
                },
                other => Token::Is(other),
            };
            tokens.push(token);
        }
        Pattern(tokens)
    }

    /// Whether the whole of a path is as the pattern says.
    pub fn matches(&self, path: &str) -> bool {
        let path: Vec<char> = path.chars().collect();
        let (mut token, mut at) = (0, 0);
        // Where to go on when what follows the last `*` does not fit: it takes one character more.
        let mut retry = None;
        loop {
            match (self.0.get(token), path.get(at)) {
                (None, None) => return true,
                (Some(Token::Any), _) => {
                    token += 1;
                    retry = Some((token, at));
                    continue;
                }
                (Some(this), Some(&character)) if this.takes(character) => {
                    token += 1;
                    at += 1;
                    continue;
                }
                _ => {}
            }
            match retry {
                Some((after, taken)) if taken < path.len() => {
                    retry = Some((after, taken + 1));
                    (token, at) = (after, taken + 1);
                }
                _ => return false,
            }
        }
    }
}

impl Token {
    fn takes(&self, character: char) -> bool {
        match self {
            Token::Any => false,
            Token::One => true,
            Token::Is(this) => *this == character,
            Token::Among { ranges, inside } => {
                let is_in = |&(first, last): &(char, char)| (first..=last).contains(&character);
                ranges.iter().any(is_in) == *inside
            }
        }
    }
}

/// The set that begins after a `[`, and how long it is with its `]`; `None` where nothing closes it.
fn set(text: &[char]) -> Option<(Token, usize)> {
    let is_not = text.first() == Some(&'!');
    let begin = usize::from(is_not);
    // A `]` at the beginning is one of the characters.
    let least = begin + 1;
    let close = least + text.get(least..)?.iter().position(|&it| it == ']')?;
    let within = &text[begin..close];
    let mut ranges = Vec::new();
    let mut at = 0;
    while at < within.len() {
        if at + 2 < within.len() && within[at + 1] == '-' {
            // A range that runs backwards holds nothing.
            ranges.push((within[at], within[at + 2]));
            at += 3;
        } else {
            ranges.push((within[at], within[at]));
            at += 1;
        }
    }
    let inside = !is_not;
    Some((Token::Among { ranges, inside }, close + 1))
}

/// Whether a path is wanted: by one of `include` where there is any, and by none of `exclude`.
pub fn is_wanted(path: &str, include: &[Pattern], exclude: &[Pattern]) -> bool {
    let by = |patterns: &[Pattern]| patterns.iter().any(|pattern| pattern.matches(path));
    (include.is_empty() || by(include)) && !by(exclude)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// What Python's `fnmatch.fnmatchcase` says of the same.
    #[test]
    fn as_the_client_of_the_hub_reads_them() {
        for (pattern, path, fits) in [
            ("*.json", "a/b.json", true),
            ("**.json", "a/b.json", true),
            ("data/*", "data/a/b", true),
            ("data/", "data/a/b", true),
            ("data/", "data", false),
            ("data", "data/a", false),
            ("*", ".hidden", true),
            ("*.JSON", "a.json", false),
            ("a?c", "a/c", true),
            ("a?c", "ac", false),
            ("[ab].bin", "b.bin", true),
            ("[!ab].bin", "b.bin", false),
            ("[!ab].bin", "c.bin", true),
            ("[]x]", "]", true),
            ("[!]x]", "]", false),
            ("[a-c]1", "b1", true),
            ("[a-]1", "-1", true),
            ("[c-a]", "b", false),
            ("[!c-a]", "b", true),
            ("[", "[", true),
            ("a[b", "a[b", true),
            ("[]", "[]", true),
            ("[!]", "[!]", true),
            ("*a*b*c", "xaxbxxc", true),
            ("*a*b*c", "xaxbxx", false),
            ("größe?", "größe!", true),
            ("a\\b", "a/b", true),
            ("", "", true),
            ("", "a", false),
        ] {
            assert_eq!(
                Pattern::new(pattern).matches(path),
                fits,
                "{pattern} {path}"
            );
        }
    }

    #[test]
    fn what_is_not_wanted_is_left_out_of_what_is() {
        let patterns =
            |texts: &[&str]| -> Vec<Pattern> { texts.iter().map(|it| Pattern::new(it)).collect() };
        let (include, exclude) = (patterns(&["*.bin", "*.json"]), patterns(&["old/"]));
        assert!(is_wanted("a.bin", &include, &exclude));
        assert!(!is_wanted("a.txt", &include, &exclude));
        assert!(!is_wanted("old/a.bin", &include, &exclude));
        assert!(is_wanted("a.txt", &[], &exclude));
    }

    /// The plain rule: a `*` takes nothing, or one character and then the rest.
    fn plainly(tokens: &[Token], path: &[char]) -> bool {
        match (tokens.split_first(), path.split_first()) {
            (None, None) => true,
            (Some((Token::Any, rest)), after) => {
                plainly(rest, path) || after.is_some_and(|(_, after)| plainly(tokens, after))
            }
            (Some((token, rest)), Some((&character, after))) => {
                token.takes(character) && plainly(rest, after)
            }
            _ => false,
        }
    }

    proptest! {
        #[test]
        fn the_quick_way_is_the_plain_one(pattern in "[ab*?\\[\\]!/-]{0,8}", path in "[ab/\\]-]{0,8}") {
            let pattern = Pattern::new(&pattern);
            let characters: Vec<char> = path.chars().collect();
            prop_assert_eq!(pattern.matches(&path), plainly(&pattern.0, &characters));
        }
    }
}
