//! Rust text with comments and literals blanked, so that a search meets code only.

/// `text` of the same length in lines, in which comments and the insides of literals are spaces.
pub fn code_only(text: &str) -> String {
    let chars: Vec<char> = text.chars().collect();
    let mut code = String::with_capacity(text.len());
    let mut at = 0;
    while at < chars.len() {
        let end = not_code(&chars, at);
        if end == at {
            code.push(chars[at]);
            at += 1;
        } else {
            code.extend(chars[at..end].iter().map(|c| if *c == '\n' { '\n' } else { ' ' }));
            at = end;
        }
    }
    code
}

/// Lines, counted from 1, in which `token` stands as a whole word.
pub fn lines_with<'a>(code: &'a str, token: &'a str) -> impl Iterator<Item = usize> + 'a {
    code.lines()
        .enumerate()
        .filter(move |(_, line)| has_word(line, token))
        .map(|(index, _)| index + 1)
}

/// Whether `word` stands in `line` with no letter, digit or `_` touching its word ends.
pub fn has_word(line: &str, word: &str) -> bool {
    let touches = |c: Option<char>, end: Option<char>| c.is_some_and(is_word) && end.is_some_and(is_word);
    line.match_indices(word).any(|(at, _)| {
        let (before, after) = (
            line[..at].chars().next_back(),
            line[at + word.len()..].chars().next(),
        );
        !touches(before, word.chars().next()) && !touches(after, word.chars().next_back())
    })
}

/// For every `allow` or `expect` of `lint` in `code`, whether a reason follows.
pub fn permissions(code: &str, lint: &str) -> Vec<bool> {
    let dense: String = code.split_whitespace().collect();
    let explained = |opening: &str| {
        let opening = format!("{opening}({lint}");
        dense
            .split(&opening)
            .skip(1)
            .map(|rest| rest.starts_with(",reason="))
            .collect::<Vec<_>>()
    };
    ["allow", "expect"].into_iter().flat_map(explained).collect()
}

fn is_word(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

/// The end of the comment or literal that begins at `at`; `at` itself where code goes on.
fn not_code(chars: &[char], at: usize) -> usize {
    let starts = |pattern: &str| {
        pattern
            .chars()
            .enumerate()
            .all(|(i, c)| chars.get(at + i) == Some(&c))
    };
    if starts("//") {
        return find(chars, at, |c| c == '\n');
    }
    if starts("/*") {
        return block_comment(chars, at);
    }
    let begins_word = at == 0 || !is_word(chars[at - 1]) || (chars[at - 1] == 'b' && chars[at] == 'r');
    if chars[at] == 'r' && begins_word {
        return raw_string(chars, at);
    }
    match chars[at] {
        '"' => quoted(chars, at),
        // A lifetime has no closing quote behind one character or an escape.
        '\'' if chars.get(at + 1) == Some(&'\\') || chars.get(at + 2) == Some(&'\'') => quoted(chars, at),
        _ => at,
    }
}

fn block_comment(chars: &[char], at: usize) -> usize {
    let (mut depth, mut end) = (1, at + 2);
    while depth > 0 && end < chars.len() {
        match (chars[end], chars.get(end + 1)) {
            ('/', Some('*')) => (depth, end) = (depth + 1, end + 2),
            ('*', Some('/')) => (depth, end) = (depth - 1, end + 2),
            _ => end += 1,
        }
    }
    end
}

fn raw_string(chars: &[char], at: usize) -> usize {
    let quote = find(chars, at + 1, |c| c != '#');
    if chars.get(quote) != Some(&'"') {
        return at;
    }
    let hashes = quote - at - 1;
    let mut end = quote + 1;
    while end < chars.len() {
        if chars[end] == '"' && (1..=hashes).all(|i| chars.get(end + i) == Some(&'#')) {
            return end + hashes + 1;
        }
        end += 1;
    }
    end
}

fn quoted(chars: &[char], at: usize) -> usize {
    let mut end = at + 1;
    while end < chars.len() && chars[end] != chars[at] {
        end += if chars[end] == '\\' { 2 } else { 1 };
    }
    (end + 1).min(chars.len())
}

fn find(chars: &[char], from: usize, wanted: impl Fn(char) -> bool) -> usize {
    chars[from..]
        .iter()
        .position(|c| wanted(*c))
        .map_or(chars.len(), |found| from + found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn comments_and_literals_vanish_and_code_stays() {
        let text = "a // x\n/* y /* y */ y */ b(\"x \\\" x\", 'x', '\\'', br#\"x \" x\"#) <'c> rd";
        let code = code_only(text);
        assert_eq!(code.lines().count(), 2);
        let left: String = code.split_whitespace().collect();
        assert_eq!(left, "ab(,,,b)<'c>rd");
    }

    #[test]
    fn an_unfinished_literal_ends_with_the_text() {
        for text in ["\"x", "\"x\\", "r#\"x", "/* x", "'\\", "r", "r#"] {
            assert_eq!(code_only(text).chars().count(), text.chars().count(), "{text}");
        }
    }

    #[test]
    fn a_word_is_not_found_inside_another() {
        assert!(has_word("let x: HashMap<u8, u8>", "HashMap"));
        assert!(!has_word("let x: MyHashMapper", "HashMap"));
        assert!(has_word("see a/b/c", "/b/"));
        assert_eq!(lines_with("a\nb a\nab", "a").collect::<Vec<_>>(), [1, 2]);
    }

    #[test]
    fn a_permission_is_told_with_and_without_its_reason() {
        let code = "#[allow(x::y)] #[expect(\n    x::y,\n    reason = \"\"\n)] #[allow(z)]";
        assert_eq!(permissions(code, "x::y"), [false, true]);
        assert_eq!(permissions(code, "w"), [false; 0]);
    }
}
