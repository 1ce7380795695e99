//! Basic XOR (ResTP §3.1.5, Type 1): one encoded packet over consecutive packets. It repairs one loss per group.

use super::fec_code::Shape;

/// Groups of up to 16 packets (ResTP Table 3.1), one encoded packet each.
pub(super) const SHAPE: Shape = Shape {
    kind: 1,
    stride: 1,
    group_limit: 16,
};

#[cfg(test)]
mod tests {
    use super::super::FecCode;
    use super::super::xor_decoder::XorOutcome;
    use super::super::xor_tests::{Wire, repairable};
    use bytes::Bytes;

    /// ResTP §11.1, the vector of Type 1.
    #[test]
    fn three_packets_become_one_and_the_lost_one_comes_back() {
        let mut wire = Wire::new(FecCode::Basic, 20);
        let payloads = [&b"abc"[..], b"de", b"fghi"];
        payloads.iter().for_each(|payload| wire.send(payload));
        let encoded = wire.flush();
        assert_eq!(encoded.len(), 1);
        assert_eq!((encoded[0].first, encoded[0].range), (20, 3));
        assert_eq!(encoded[0].payload, &b"\x00\x05\x63\x60\x0B\x69"[..]);
        wire.deliver(&[20, 22]);
        assert_eq!(
            wire.decode(&encoded[0]),
            XorOutcome::Rebuilt {
                number: 21,
                payload: Some(Bytes::from_static(b"de")),
            }
        );
    }

    #[test]
    fn a_group_is_closed_by_its_sixteenth_packet() {
        let mut wire = Wire::new(FecCode::Basic, 100);
        (0..40).for_each(|_| wire.send(b"x"));
        let groups: Vec<_> = wire.closed().iter().map(|e| (e.first, e.range)).collect();
        assert_eq!(groups, [(100, 16), (116, 16)]);
        let rest: Vec<_> = wire.flush().iter().map(|e| (e.first, e.range)).collect();
        assert_eq!(rest, [(132, 8)]);
    }

    #[test]
    fn one_loss_of_a_group_is_repaired_and_two_are_not() {
        for lost in 0..16 {
            assert!(repairable(FecCode::Basic, 16, &[lost]), "{lost}");
        }
        assert!(!repairable(FecCode::Basic, 16, &[3, 4]));
        assert!(!repairable(FecCode::Basic, 16, &[0, 15]));
    }
}
