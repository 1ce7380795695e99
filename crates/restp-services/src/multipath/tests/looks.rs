//! How often paths are asked anything: a packet of one path costs no more where there are more of them (ResTP §3.3).

use super::*;

/// Questions to paths, and packets, while the first of `paths` is acknowledged segment by segment and the others are full.
fn looks_and_packets(paths: usize) -> (usize, usize) {
    let mut connection = connection(Numbering::Segments, Reinjection::Early, 1000);
    for ordinal in 2..paths {
        let lane = Lane::new(ordinal as u8 + 1, 60);
        connection.paths_mut().put(ordinal, lane);
    }
    write(&mut connection, 100);
    let turn = |connection: &mut Multipath<Lane>, ms: u64| {
        let mut out = Datagram::empty();
        let sent = std::iter::from_fn(|| connection.poll_transmit(at(ms), &mut out));
        let sent = sent.count();
        connection.deadline();
        // Who only looks on costs nothing afterwards.
        assert_eq!(connection.observed().count(), connection.paths().len());
        sent
    };
    assert_eq!(turn(&mut connection, 0), 10 * paths, "every window is full");
    let looks = |connection: &Multipath<Lane>| -> usize {
        connection.paths().iter().map(|path| path.looks.get()).sum()
    };
    let before = looks(&connection);
    let mut packets = 0;
    for acked in 1..=8 {
        connection.paths_mut()[0].ack(at(20 + acked), acked + 1);
        packets += turn(&mut connection, 20 + acked);
    }
    (looks(&connection) - before, packets)
}

#[test]
fn a_packet_asks_the_same_of_two_paths_as_of_eight() {
    let (looks, packets) = looks_and_packets(2);
    assert_eq!(packets, 16, "slow start");
    assert_eq!(looks_and_packets(8), (looks, packets));
}
