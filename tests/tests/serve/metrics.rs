//! A parser of the text format 0.0.4, as its documentation has it, which takes nothing else.

use std::collections::{BTreeMap, BTreeSet};

/// A sample's name, and its labels in the order of their names.
pub(crate) type Series = (String, BTreeMap<String, String>);

/// Parse it.
#[track_caller]
pub(crate) fn parse(text: &str) -> BTreeMap<Series, f64> {
    let mut samples = BTreeMap::new();
    let (mut helped, mut typed) = (BTreeSet::new(), BTreeSet::new());
    assert!(text.ends_with('\n'), "the last line has an end");
    for line in text.lines() {
        if let Some(rest) = line.strip_prefix("# HELP ") {
            let (name, help) = rest.split_once(' ').expect("a name and a text");
            assert!(!help.is_empty() && helped.insert(name.to_owned()), "{line}");
        } else if let Some(rest) = line.strip_prefix("# TYPE ") {
            let (name, kind) = rest.split_once(' ').expect("a name and a type");
            assert_eq!(kind, "gauge", "{line}");
            assert!(
                helped.contains(name) && typed.insert(name.to_owned()),
                "{line}"
            );
        } else {
            let (series, value) = sample(line);
            assert!(typed.contains(&series.0), "{line}");
            assert!(samples.insert(series, value).is_none(), "twice: {line}");
        }
    }
    samples
}

fn sample(line: &str) -> (Series, f64) {
    let end = line.find(['{', ' ']).expect("a name ends");
    let (name, mut rest) = line.split_at(end);
    assert!(is_name(name), "{line}");
    let mut labels = BTreeMap::new();
    if let Some(inside) = rest.strip_prefix('{') {
        rest = inside;
        while !rest.starts_with('}') {
            let (label, after) = rest.split_once("=\"").expect("a label");
            assert!(is_name(label), "{line}");
            let (value, after) = quoted(after);
            labels.insert(label.to_owned(), value);
            rest = after.strip_prefix(',').unwrap_or(after);
        }
        rest = &rest[1..];
    }
    let value = rest.strip_prefix(' ').expect("a value");
    ((name.to_owned(), labels), value.parse().expect("a number"))
}

/// What stands up to the next quotation mark, and what is behind that.
fn quoted(text: &str) -> (String, &str) {
    let mut value = String::new();
    let mut chars = text.char_indices();
    while let Some((at, c)) = chars.next() {
        match c {
            '"' => return (value, &text[at + 1..]),
            '\\' => match chars.next().expect("something is escaped").1 {
                'n' => value.push('\n'),
                c @ ('\\' | '"') => value.push(c),
                c => panic!("\\{c} is no escape"),
            },
            c => value.push(c),
        }
    }
    panic!("a value without an end: {text}");
}

fn is_name(name: &str) -> bool {
    let is_good = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == ':';
    !name.is_empty() && name.chars().all(is_good) && !name.starts_with(|c: char| c.is_ascii_digit())
}
