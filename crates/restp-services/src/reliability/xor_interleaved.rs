//! Interleaved XOR (ResTP §3.1.5, Type 2): two encoded packets, each over every other packet (OP-37). Together they
//! repair two consecutive losses, at twice the redundancy of the basic code.

use super::fec_code::Shape;

/// Groups of up to 8 packets (ResTP Table 3.1), so 16 packets for two encoded ones.
pub(super) const SHAPE: Shape = Shape {
    kind: 2,
    stride: 2,
    group_limit: 8,
};

#[cfg(test)]
mod tests {
    use super::super::FecCode;
    use super::super::xor_tests::{Wire, repairable};

    /// ResTP §11.1, the vector of Type 2.
    #[test]
    fn six_packets_become_two_by_parity() {
        let mut wire = Wire::new(FecCode::Interleaved, 30);
        (0..6).for_each(|_| wire.send(b"x"));
        let covered: Vec<Vec<u64>> = wire
            .flush()
            .iter()
            .map(|e| FecCode::Interleaved.covered(e.first, e.range).collect())
            .collect();
        assert_eq!(covered, [[30, 32, 34], [31, 33, 35]]);
        assert!(repairable(FecCode::Interleaved, 6, &[1, 2]), "31 and 32");
        assert!(!repairable(FecCode::Interleaved, 6, &[0, 2]), "30 and 32");
    }

    #[test]
    fn both_groups_are_closed_by_the_sixteenth_packet() {
        let mut wire = Wire::new(FecCode::Interleaved, 101);
        (0..17).for_each(|_| wire.send(b"x"));
        let groups: Vec<_> = wire.closed().iter().map(|e| (e.first, e.range)).collect();
        assert_eq!(groups, [(101, 8), (102, 8)]);
        assert_eq!(wire.flush().len(), 1, "a lone packet needs one, not two");
    }

    #[test]
    fn any_two_consecutive_losses_are_repaired() {
        for lost in 0..15 {
            assert!(repairable(FecCode::Interleaved, 16, &[lost, lost + 1]), "{lost}");
        }
        assert!(!repairable(FecCode::Interleaved, 16, &[4, 5, 6]));
    }
}
