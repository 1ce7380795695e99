//! Telephone voice, G.711 without suppression of silence (ResTP §4.5): 160 bytes every 20 ms.

use super::cbr::{Cbr, Framing};
use restp_base::time::Duration;

/// Bytes of a voice frame: 20 ms at 64 kbit/s.
const FRAME_BYTES: u64 = 160;
const INTERVAL: Duration = Duration::from_millis(20);
/// A frame that takes longer is of no use (ResTP §4.5): 30 ms one way, 90 ms for a retransmission, two frames.
const DEADLINE: Duration = Duration::from_millis(160);

/// A talk of `duration`, without end when absent.
pub fn voip(duration: Option<Duration>, late_after: Option<Duration>, framing: Framing) -> Cbr {
    Cbr {
        bytes: FRAME_BYTES,
        interval: INTERVAL,
        count: duration.map(|span| span.as_nanos().div_ceil(INTERVAL.as_nanos())),
        late_after: Some(late_after.unwrap_or(DEADLINE)),
        framing,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// ResTP experiments, E5: 4949 frames are 98.98 s.
    #[test]
    fn a_talk_is_so_many_frames() {
        let talk = voip(Some(Duration::from_millis(98_980)), None, Framing::Known);
        assert_eq!((talk.count, talk.bytes), (Some(4949), 160));
        assert_eq!(talk.late_after, Some(Duration::from_millis(160)));
        assert_eq!(voip(None, None, Framing::Known).count, None);
    }
}
