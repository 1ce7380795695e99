//! "Did you mean": the known name that takes the fewest edits from the one that was written.

/// A longer word is no slip of a name, and is not compared: comparing takes time with the product of the lengths.
const LONGEST: usize = 64;

/// The candidate nearest to `word`, unless even that one differs in more than a third of the letters of the longer
/// of the two, or in all of its own. Of equally near ones, the first in the alphabet.
///
/// ```
/// use restp_base::names::nearest;
/// assert_eq!(nearest("dealy", ["rate", "delay"]), Some("delay"));
/// assert_eq!(nearest("bandwidth", ["rate", "delay"]), None);
/// ```
pub fn nearest<'a>(word: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let word = letters(word)?;
    let near = |candidate: &'a str| {
        let letters = letters(candidate)?;
        let distance = edits(&word, &letters);
        let limit = word.len().max(letters.len()).div_ceil(3);
        (distance <= limit && distance < letters.len()).then_some((distance, candidate))
    };
    let best = candidates.into_iter().filter_map(near).min()?;
    Some(best.1)
}

/// The end of a sentence that points at the candidate [nearest] to `word`: `; did you mean "delay"?`, or nothing.
pub fn hint<'a>(word: &str, candidates: impl IntoIterator<Item = &'a str>) -> String {
    nearest(word, candidates).map_or_else(String::new, |near| format!("; did you mean \"{near}\"?"))
}

/// The letters of a word short enough to be a name.
fn letters(word: &str) -> Option<Vec<char>> {
    let letters: Vec<char> = word.chars().take(LONGEST + 1).collect();
    (letters.len() <= LONGEST).then_some(letters)
}

/// Fewest insertions, deletions, replacements and exchanges of neighbours that make `b` of `a` (optimal string
/// alignment: Damerau 1964, Levenshtein 1965).
fn edits(a: &[char], b: &[char]) -> usize {
    let (mut before, mut last): (Vec<usize>, Vec<usize>) = (Vec::new(), (0..=b.len()).collect());
    for i in 1..=a.len() {
        let mut row = vec![i];
        for j in 1..=b.len() {
            let change = usize::from(a[i - 1] != b[j - 1]);
            let mut best = (last[j - 1] + change).min(last[j] + 1).min(row[j - 1] + 1);
            if i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] {
                best = best.min(before[j - 2] + 1);
            }
            row.push(best);
        }
        before = std::mem::replace(&mut last, row);
    }
    last[b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn near_misses_are_found_and_far_words_are_not() {
        let keys = ["delay", "rate", "queue", "outage"];
        assert_eq!(nearest("dealy", keys), Some("delay"));
        assert_eq!(nearest("outtage", keys), Some("outage"));
        assert_eq!(nearest("bandwidth", keys), None);
    }

    #[test]
    fn a_slip_finds_its_word_and_nonsense_finds_none() {
        let words = ["newreno", "cubic", "bic"];
        assert_eq!(nearest("new-reno", words), Some("newreno"));
        assert_eq!(nearest("cubik", words), Some("cubic"));
        assert_eq!(nearest("", words), None);
        assert_eq!(nearest("vegemite", words), None);
        assert_eq!(nearest(&"x".repeat(1 << 20), words), None);
        assert_eq!(nearest("b", ["a", "*"]), None, "no letter of it would stay");
    }

    #[test]
    fn edits_count_exchanged_neighbours_once() {
        let edits = |a: &str, b: &str| edits(&letters(a).unwrap(), &letters(b).unwrap());
        assert_eq!(edits("", "abc"), 3);
        assert_eq!(edits("abc", "abc"), 0);
        assert_eq!(edits("delay", "dealy"), 1);
        assert_eq!(edits("kitten", "sitting"), 3);
    }

    #[test]
    fn the_hint_ends_a_sentence() {
        assert_eq!(hint("sinc", ["source", "sink"]), "; did you mean \"sink\"?");
        assert_eq!(hint("router", ["source", "sink"]), "");
    }
}
