//! Which segment a slower path takes: not the next one, which would hold up all that faster paths bring meanwhile, but
//! one that is needed later. The segments before it are left to the faster paths (the idea of DAPS, Kuhn and others, ICC
//! 2014, and OTIAS, Yang and others, ICC 2014). The lead is long enough for the answer of the slower path: what it has
//! lost, or is late with, the faster ones then send when its turn comes, and nothing ever waits for it.

use super::Candidate;
use restp_base::numeric::mul_div;

/// Up to this many round trips of the fastest path a slower one takes its turn: it holds up little, and with queues on both
/// it is not clear which of two is the slower.
pub(super) const SLOW: u64 = 4;

/// How many segments faster paths send before one on `chosen` is answered. A quarter of the round trip and four times its
/// variation are added, because late costs a retransmission and early costs memory at the receiver only.
pub fn lead_segments(chosen: &Candidate, paths: &[Candidate], segment_bytes: u64) -> u64 {
    let fastest = paths.iter().map(|path| path.smoothed_rtt).min();
    if fastest.is_none_or(|fastest| chosen.smoothed_rtt <= fastest * SLOW) {
        return 0;
    }
    let answered = chosen.smoothed_rtt * 5 / 4 + chosen.rtt_variation * 4;
    let ahead = |fast: &Candidate| {
        let round_trip = fast.smoothed_rtt.as_nanos().max(1);
        mul_div(fast.in_flight_bytes, answered.as_nanos(), round_trip)
    };
    let faster = paths
        .iter()
        .filter(|path| path.smoothed_rtt < chosen.smoothed_rtt);
    let bytes = faster.map(ahead).fold(0, u64::saturating_add);
    bytes / segment_bytes.max(1)
}

#[cfg(test)]
mod tests {
    use super::super::candidate;
    use super::*;
    use restp_base::time::Duration;

    #[test]
    fn a_slower_path_leads_by_what_the_faster_ones_send_meanwhile() {
        let fast = Candidate {
            in_flight_bytes: 140_000,
            ..candidate(0, 20, false)
        };
        let mut slow = candidate(1, 200, true);
        // 250 ms at 100 segments per 20 ms.
        assert_eq!(lead_segments(&slow, &[fast, slow], 1400), 1250);
        slow.rtt_variation = Duration::from_millis(10);
        assert_eq!(lead_segments(&slow, &[fast, slow], 1400), 1450);
        assert_eq!(lead_segments(&fast, &[fast, slow], 1400), 0);
        let similar = candidate(1, 80, true);
        assert_eq!(lead_segments(&similar, &[fast, similar], 1400), 0);
        let idle = candidate(0, 20, true);
        assert_eq!(
            lead_segments(&slow, &[idle, slow], 1400),
            0,
            "nothing is sent there"
        );
    }
}
