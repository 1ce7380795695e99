//! Names of links, nodes and flows, and the copies a table with a `count` stands for.

use restp_sim::config::Fault;
use toml::Spanned;

/// The most copies of one table, and the most links or flows in all: route tables grow with the square of the nodes.
pub(super) const MOST: u64 = 65_536;

/// One of the things a table stands for: `Some(i)`, from 1, when the table has a `count`.
pub(super) type Copy = Option<u64>;

/// The copies a table stands for.
pub(super) fn copies(
    name: &Spanned<String>,
    count: Option<&Spanned<u64>>,
) -> Result<Box<dyn Iterator<Item = Copy>>, Fault> {
    let Some(count) = count else {
        return Ok(Box::new(std::iter::once(None)));
    };
    let n = *count.get_ref();
    if n == 0 || n > MOST {
        return Err(Fault::at(
            count,
            format!("a count of {n} is impossible; write 1 to {MOST}"),
        ));
    }
    if !name.get_ref().contains(PLACE) {
        let sentence = format!(
            "\"{0}\" would name {n} things; write {PLACE} in it, as in \"{0}-{PLACE}\"",
            name.get_ref()
        );
        return Err(Fault::at(name, sentence));
    }
    Ok(Box::new((1..=n).map(Some)))
}

const PLACE: &str = "{i}";

/// The name of one copy.
pub(super) fn expand(written: &Spanned<String>, copy: Copy) -> Result<String, Fault> {
    let name = match copy {
        Some(i) => written.get_ref().replace(PLACE, &i.to_string()),
        None => written.get_ref().clone(),
    };
    let plain = |c: char| c.is_alphanumeric() || c == '-' || c == '_';
    if name.is_empty() || !name.chars().all(plain) {
        let sentence = format!(
            "\"{name}\" is not a name; write letters, digits, \"-\" and \"_\" ({PLACE} needs a count)"
        );
        return Err(Fault::at(written, sentence));
    }
    Ok(name)
}
