//! "Did you mean": the known name that takes the fewest edits from the one that was written.

/// The candidate nearest to `word`, unless even that one differs in more than a third of its letters.
pub(super) fn nearest<'a>(word: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let (distance, best) = candidates
        .into_iter()
        .map(|candidate| (edits(word, candidate), candidate))
        .min()?;
    (distance <= best.len().div_ceil(3)).then_some(best)
}

/// Fewest insertions, deletions and replacements that make `b` of `a` (Levenshtein 1965).
fn edits(a: &str, b: &str) -> usize {
    let b: Vec<char> = b.chars().collect();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, x) in a.chars().take(64).enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, y) in b.iter().enumerate() {
            let replaced = diagonal + usize::from(x != *y);
            diagonal = row[j + 1];
            row[j + 1] = replaced.min(diagonal + 1).min(row[j] + 1);
        }
    }
    row[b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slip_finds_its_word_and_nonsense_finds_none() {
        let words = ["newreno", "cubic", "bic"];
        assert_eq!(nearest("new-reno", words), Some("newreno"));
        assert_eq!(nearest("cubik", words), Some("cubic"));
        assert_eq!(nearest("", words), None);
        assert_eq!(nearest("vegemite", words), None);
        assert_eq!(nearest(&"x".repeat(1 << 20), words), None);
    }

    #[test]
    fn edits_are_counted() {
        assert_eq!(edits("kitten", "sitting"), 3);
        assert_eq!(edits("", "abc"), 3);
        assert_eq!(edits("abc", "abc"), 0);
    }
}
