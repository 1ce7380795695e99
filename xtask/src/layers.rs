//! Dependencies point down only. Dev-dependencies are exempt: a test may stand above what it tests.

use anyhow::Context;
use toml::Table;

use crate::finding::Finding;
use crate::tree::Tree;

/// Every crate with its layer. A dependency must lie in a lower one.
const LAYERS: [(&str, u8); 11] = [
    ("restp-base", 1),
    ("restp-services", 2),
    ("restp-sim", 2),
    ("restp-rivals", 3),
    ("restp-proto", 3),
    ("restp-seal", 3),
    ("restp-witnesses", 3),
    ("restp-lab", 4),
    ("restp", 4),
    ("restp-cli", 5),
    ("restp-py", 6),
];

/// Pairs that lie the right way round and are forbidden none the less: a protocol knows no simulator.
const APART: [(&str, &str); 2] = [("restp-rivals", "restp-sim"), ("restp-proto", "restp-sim")];

/// What touches clocks, sockets or the system's randomness, and therefore stays in the drivers of layer 4 and above.
const OUTSIDE_WORLD: [&str; 8] = [
    "getrandom",
    "libc",
    "mio",
    "quinn-udp",
    "rand",
    "socket2",
    "tokio",
    "rustix",
];

/// Folders of the crates from `LAYERS` that must keep clocks, chance and hash order out.
pub fn pure_crates() -> impl Iterator<Item = String> {
    LAYERS
        .iter()
        .filter(|(_, layer)| *layer <= 3)
        .map(|(name, _)| format!("crates/{name}"))
}

/// Reads the manifest of every crate.
///
/// # Errors
/// A manifest is not TOML.
pub fn check(tree: &Tree) -> anyhow::Result<Vec<Finding>> {
    let mut findings = Vec::new();
    for (path, text) in tree
        .below("crates")
        .filter(|(path, _)| path.ends_with("/Cargo.toml"))
    {
        findings.extend(check_manifest(path, text).with_context(|| path.to_owned())?);
    }
    Ok(findings)
}

fn check_manifest(path: &str, text: &str) -> anyhow::Result<Vec<Finding>> {
    let manifest: Table = text.parse()?;
    let name = manifest
        .get("package")
        .and_then(|package| package.get("name"))
        .and_then(|name| name.as_str())
        .context("no package.name")?;
    let Some(layer) = layer_of(name) else {
        return Ok(vec![Finding::error(
            path,
            None,
            format!("{name} has no layer; give it one in xtask/src/layers.rs"),
        )]);
    };
    let findings = dependencies(&manifest).into_iter().filter_map(|dependency| {
        let reason = match layer_of(&dependency) {
            Some(below) if below >= layer => {
                format!("{dependency} is in layer {below}; {name}, in layer {layer}, may use lower layers only")
            }
            Some(_) if APART.contains(&(name, dependency.as_str())) => format!("{name} must not know {dependency}"),
            None if layer <= 3 && OUTSIDE_WORLD.contains(&dependency.as_str()) => {
                format!("{dependency} touches the outside world, which {name}, in layer {layer}, must not; move the use to a driver")
            }
            _ => return None,
        };
        Some(Finding::error(path, None, reason))
    });
    Ok(findings.collect())
}

fn layer_of(name: &str) -> Option<u8> {
    LAYERS
        .iter()
        .find(|(known, _)| *known == name)
        .map(|(_, layer)| *layer)
}

/// Names of the packages in every table of dependencies but the one for tests, renamed ones by their true name.
fn dependencies(manifest: &Table) -> Vec<String> {
    let per_target = manifest.get("target").and_then(|target| target.as_table());
    let scopes = std::iter::once(manifest).chain(
        per_target
            .into_iter()
            .flat_map(|targets| targets.values().filter_map(|scope| scope.as_table())),
    );
    let tables = scopes.flat_map(|scope| ["dependencies", "build-dependencies"].map(|key| scope.get(key)));
    let entries = tables.flatten().filter_map(|table| table.as_table()).flatten();
    entries
        .map(|(key, value)| {
            value
                .get("package")
                .and_then(|name| name.as_str())
                .unwrap_or(key)
                .to_owned()
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn verdict(name: &str, rest: &str) -> Vec<String> {
        let manifest = format!("[package]\nname = \"{name}\"\n{rest}");
        check_manifest("Cargo.toml", &manifest)
            .unwrap()
            .into_iter()
            .map(|finding| finding.message)
            .collect()
    }

    #[test]
    fn edges_that_point_down_pass() {
        assert_eq!(
            verdict(
                "restp",
                "[dependencies]\nrestp-proto.workspace = true\nrestp-sim.workspace = true"
            ),
            [""; 0]
        );
        assert_eq!(
            verdict(
                "restp-lab",
                "[dependencies]\nrestp-rivals = { path = \"x\" }\ntokio = \"1\""
            ),
            [""; 0]
        );
    }

    #[test]
    fn an_edge_up_or_sideways_fails() {
        assert!(
            verdict("restp-services", "[dependencies]\nrestp-proto.workspace = true")[0].contains("layer 3")
        );
        assert!(
            verdict("restp-services", "[dependencies]\nrestp-sim.workspace = true")[0]
                .contains("lower layers only")
        );
        assert_eq!(
            verdict("restp-base", "[build-dependencies]\nrestp-base.workspace = true").len(),
            1
        );
    }

    #[test]
    fn a_renamed_or_target_specific_edge_is_seen() {
        let renamed = "[dependencies]\nharmless = { package = \"restp-cli\", path = \"x\" }";
        assert_eq!(verdict("restp-lab", renamed).len(), 1);
        assert_eq!(
            verdict(
                "restp-lab",
                "[target.'cfg(unix)'.dependencies]\nrestp-cli.workspace = true"
            )
            .len(),
            1
        );
    }

    #[test]
    fn tests_may_look_up() {
        assert_eq!(
            verdict("restp-services", "[dev-dependencies]\nrestp-lab.workspace = true"),
            [""; 0]
        );
    }

    #[test]
    fn a_protocol_knows_neither_simulator_nor_sockets() {
        assert!(
            verdict("restp-proto", "[dependencies]\nrestp-sim.workspace = true")[0].contains("must not know")
        );
        assert!(
            verdict("restp-proto", "[dependencies]\ntokio.workspace = true")[0].contains("outside world")
        );
    }

    #[test]
    fn a_crate_without_a_layer_fails() {
        assert!(verdict("restp-new", "")[0].contains("no layer"));
    }
}
