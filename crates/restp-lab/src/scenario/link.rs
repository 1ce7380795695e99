//! One `[[link]]` table, validated: the network's own description of each link it stands for.

use super::names::{copies, expand};
use super::raw::RawLink;
use restp_sim::LinkSpec;
use restp_sim::config::Fault;
use std::fs::File;
use std::path::Path;
use toml::Spanned;

/// The links `table` stands for; a delay may still have to come from the map, and a queue of one bandwidth-delay product is still to be resolved.
/// Names of files start at `dir`.
pub(super) fn links(table: &Spanned<RawLink>, dir: &Path) -> Result<Vec<LinkSpec>, Fault> {
    let raw = table.get_ref();
    let [from, to] = &raw.between.get_ref()[..] else {
        let found = raw.between.get_ref().len();
        let sentence = format!("a link joins 2 nodes, not {found}; write [\"one\", \"other\"]");
        return Err(Fault::at(&raw.between, sentence));
    };
    let wire = raw.wire();
    if wire.rate.is_none() {
        return Err(Fault::at(table, "missing field \"rate\""));
    }
    let [forward, reverse] = wire.directions(&|name| Ok(Box::new(File::open(dir.join(name))?)))?;
    copies(&raw.name, raw.count.as_ref())?
        .map(|copy| {
            let between = [expand(from, copy)?, expand(to, copy)?];
            if between[0] == between[1] {
                return Err(Fault::at(
                    &raw.between,
                    format!("\"{}\" cannot be joined with itself", between[0]),
                ));
            }
            let name = expand(&raw.name, copy)?;
            Ok(LinkSpec {
                name,
                between,
                forward: forward.clone(),
                reverse: reverse.clone(),
            })
        })
        .collect()
}
