//! A limit to what is sent in a second.

use bytes::Bytes;
use restp::clock::Clock;
use restp_base::time::{Duration, Time};
use restp_base::units::Rate;

/// Time that one piece takes at the limit.
const PIECE: Duration = Duration::from_millis(50);

/// Holds back what would be sent too early.
pub struct Limit {
    rate: Option<Rate>,
    clock: Clock,
    /// When what has been sent is over at the limit.
    due: Time,
}

impl Limit {
    /// At most `rate`, or as fast as the connection takes it.
    pub fn to(rate: Option<Rate>) -> Self {
        Limit {
            rate,
            clock: Clock::start(),
            due: Time::ZERO,
        }
    }

    /// Waits until the next piece of `bytes` may be sent; which it is.
    pub async fn next(&mut self, bytes: &mut Bytes) -> Bytes {
        let Some(rate) = self.rate else {
            return std::mem::take(bytes);
        };
        let piece = usize::try_from(rate.bytes_in(PIECE)).unwrap_or(usize::MAX).max(1);
        let piece = bytes.split_to(piece.min(bytes.len()));
        let now = self.clock.now();
        // What was not used is lost after one piece, so that a pause is followed by no burst.
        let begin = self.due.max(now);
        if self.due > now {
            tokio::time::sleep(std::time::Duration::from_nanos(self.due.since(now).as_nanos())).await;
        }
        self.due = begin + rate.transmission_time(piece.len() as u64);
        piece
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn everything_leaves_in_pieces_of_the_rate() {
        let mut all = Bytes::from(vec![7; 1000]);
        let mut limit = Limit::to(Some(Rate::from_bps(160_000)));
        let mut pieces = Vec::new();
        while !all.is_empty() {
            pieces.push(limit.next(&mut all).await.len());
        }
        assert_eq!(pieces, [1000], "50 ms at 20 kB/s");
        let mut all = Bytes::from(vec![7; 2500]);
        let mut sizes = Vec::new();
        while !all.is_empty() {
            sizes.push(limit.next(&mut all).await.len());
        }
        assert_eq!(sizes, [1000, 1000, 500]);
        assert!(
            limit.clock.now() >= Time::ZERO + Duration::from_millis(150),
            "it takes at least that long"
        );
        let mut all = Bytes::from(vec![7; 2500]);
        assert_eq!(Limit::to(None).next(&mut all).await.len(), 2500);
    }
}
