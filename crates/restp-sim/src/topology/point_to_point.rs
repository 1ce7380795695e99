//! Two nodes and one link.

use crate::spec::{DirectionSpec, LinkSpec};

/// The link `"link"` between `"source"` and `"sink"`, the same both ways.
pub fn point_to_point(direction: &DirectionSpec) -> Vec<LinkSpec> {
    vec![LinkSpec::symmetric("link", ["source", "sink"], direction.clone())]
}
