use super::*;
use std::net::SocketAddr;

fn of(host: u8, sent_bytes: u64, srtt: Option<u64>) -> FlowStats {
    let at = |host| SocketAddr::from(([10, 0, 0, host], 1));
    let path = PathStats {
        sent_packets: 1,
        sent_bytes,
        srtt: srtt.map(Duration::from_millis),
        down_events: 1,
        ..PathStats::new(PathAddress {
            local: at(host),
            remote: at(9),
        })
    };
    FlowStats {
        sent_bytes,
        paths: vec![path],
        ..FlowStats::default()
    }
}

#[test]
fn a_path_that_was_dialled_again_is_counted_as_one() {
    let mut total = FlowStats::default();
    for stats in [of(1, 100, Some(7)), of(2, 10, None), of(1, 1000, None)] {
        total.add(&stats);
    }
    let paths: Vec<_> = total
        .paths
        .iter()
        .map(|path| (path.sent_bytes, path.down_events))
        .collect();
    assert_eq!((total.sent_bytes, paths), (1110, vec![(1100, 2), (10, 1)]));
    assert_eq!(
        total.paths[0].srtt,
        Some(Duration::from_millis(7)),
        "the last that was known"
    );
}
