//! The word that was probably meant.

/// Of the words that are known, the one that a slip or two make this one of, if any is.
pub fn nearest<'a>(word: &str, known: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    known
        .map(|one| (strsim::damerau_levenshtein(word, one), one))
        .filter(|(slips, one)| *slips <= 1 + one.len() / 4)
        // Of several, the same one in whatever order they come.
        .min()
        .map(|(_, one)| one)
}
