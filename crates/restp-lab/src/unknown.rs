//! What is said of names that nobody knows.

use restp_base::names::hint;

/// The sentence for a word that is none of `allowed`.
pub(crate) fn unknown<'a>(what: &str, word: &str, allowed: impl IntoIterator<Item = &'a str>) -> String {
    let allowed: Vec<&str> = allowed.into_iter().collect();
    let hint = hint(word, allowed.iter().copied());
    format!(
        "there is no {what} \"{word}\"; write one of: {}{hint}",
        allowed.join(", ")
    )
}
