//! The dumbbell: many pairs share one bottleneck.

use crate::spec::{DirectionSpec, LinkSpec};

/// `pairs` sources `"source1"`… and sinks `"sink1"`…, each with its own access link (`"access1"`…, `"exit1"`…) to the
/// routers `"left"` and `"right"`, and the link `"bottleneck"` between these.
pub fn dumbbell(pairs: usize, access: &DirectionSpec, bottleneck: &DirectionSpec) -> Vec<LinkSpec> {
    let mut links = vec![LinkSpec::symmetric(
        "bottleneck",
        ["left", "right"],
        bottleneck.clone(),
    )];
    for pair in 1..=pairs {
        let (source, sink) = (format!("source{pair}"), format!("sink{pair}"));
        links.push(LinkSpec::symmetric(
            &format!("access{pair}"),
            [&source, "left"],
            access.clone(),
        ));
        links.push(LinkSpec::symmetric(
            &format!("exit{pair}"),
            ["right", &sink],
            access.clone(),
        ));
    }
    links
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::topology::{Topology, point_to_point};

    #[test]
    fn every_pair_crosses_three_links() {
        let topology = Topology::new(&dumbbell(3, &DirectionSpec::default(), &DirectionSpec::default()))
            .expect("a network");
        let node = |name| topology.node(name).expect("a node");
        let links: Vec<&str> = topology
            .route(node("source2"), node("sink2"))
            .map(|(link, _)| link)
            .collect();
        assert_eq!(links, ["access2", "bottleneck", "exit2"]);
        assert_eq!(topology.nodes().count(), 8);
        assert!(Topology::new(&point_to_point(&DirectionSpec::default())).is_ok());
    }
}
