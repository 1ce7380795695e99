//! Proportional rate reduction (RFC 6937, RFC 9937): within a loss episode the window comes down to the threshold in step
//! with what is delivered, instead of at once. So the acknowledgement clock does not stop for half a round trip, and what
//! the losses took away leaves at the pace of the bottleneck.

/// The reduction of the episode under repair, if one is.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct RateReduction {
    episode: Option<Episode>,
}

#[derive(Clone, Copy, Debug)]
struct Episode {
    /// In flight when it began, in bytes (RecoverFS).
    flight: u64,
    /// Delivered since (prr_delivered).
    delivered: u64,
    /// Sent since (prr_out).
    sent: u64,
    /// How much may be in flight until the next acknowledgement.
    limit: u64,
}

/// What one acknowledgement within the episode says.
#[derive(Clone, Copy, Debug)]
pub(super) struct Progress {
    /// Bytes delivered by it.
    pub delivered: u64,
    /// Bytes in flight after it (pipe).
    pub in_flight: u64,
    /// The window that the controller wants in the end (ssthresh).
    pub threshold: u64,
    /// Bytes of a full segment.
    pub segment: u64,
    /// It moves the pointer and shows no further loss (SafeACK).
    pub is_safe: bool,
}

impl RateReduction {
    /// A loss episode begins with `flight` bytes in flight.
    pub(super) fn begin(&mut self, flight: u64) {
        self.episode = Some(Episode {
            flight: flight.max(1),
            delivered: 0,
            sent: 0,
            limit: 0,
        });
    }

    /// It is over: the window is what the controller says.
    pub(super) fn end(&mut self) {
        self.episode = None;
    }

    /// Computes anew how much may leave (RFC 9937 §6.2).
    pub(super) fn on_acknowledged(&mut self, progress: Progress) {
        let Some(episode) = &mut self.episode else { return };
        let Progress {
            delivered,
            in_flight,
            threshold,
            segment,
            is_safe,
        } = progress;
        episode.delivered += delivered;
        let mut more = if in_flight > threshold {
            let due = u128::from(episode.delivered) * u128::from(threshold);
            let due = due.div_ceil(u128::from(episode.flight)) as u64;
            due.saturating_sub(episode.sent)
        } else {
            let bound = episode.delivered.saturating_sub(episode.sent).max(delivered);
            let bound = bound + if is_safe { segment } else { 0 };
            bound.min(threshold - in_flight)
        };
        if episode.sent == 0 {
            more = more.max(segment); // the first retransmission leaves in any case
        }
        episode.limit = in_flight + more;
    }

    /// A segment of `bytes` left.
    pub(super) fn on_sent(&mut self, bytes: u64) {
        if let Some(episode) = &mut self.episode {
            episode.sent += bytes;
        }
    }

    /// How much may be in flight where the controller's window is `window`.
    pub(super) fn window(&self, window: u64) -> u64 {
        self.episode.map_or(window, |episode| episode.limit)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SEGMENT: u64 = 1;

    /// A bottleneck that delivers a segment per acknowledgement: what leaves after each, from `flight` segments of which
    /// `lost` first are lost, down to `threshold`.
    fn sent_by_acknowledgement(flight: u64, lost: u64, threshold: u64, acknowledgements: usize) -> Vec<u64> {
        let mut reduction = RateReduction::default();
        reduction.begin(flight);
        let mut in_flight = flight - lost;
        (0..acknowledgements)
            .map(|_| {
                in_flight -= 1;
                reduction.on_acknowledged(Progress {
                    delivered: 1,
                    in_flight,
                    threshold,
                    segment: SEGMENT,
                    is_safe: false,
                });
                let mut sent = 0;
                while in_flight + SEGMENT <= reduction.window(threshold) {
                    reduction.on_sent(SEGMENT);
                    in_flight += 1;
                    sent += 1;
                }
                sent
            })
            .collect()
    }

    /// RFC 6937 §3.1's example of one loss: with a reduction to 7 of 10, seven segments leave for ten that are delivered.
    #[test]
    fn seven_leave_for_ten_that_arrive() {
        let sent = sent_by_acknowledgement(20, 1, 14, 10);
        assert_eq!(sent, [1, 1, 1, 0, 1, 1, 0, 1, 1, 0]);
    }

    /// With many losses the pipe is below the threshold at once: what is delivered is replaced, one for one.
    #[test]
    fn heavy_losses_conserve_packets() {
        let sent = sent_by_acknowledgement(20, 15, 14, 4);
        assert_eq!(sent, [1; 4]);
    }

    #[test]
    fn an_acknowledgement_without_further_loss_lets_one_more_leave() {
        let mut reduction = RateReduction::default();
        reduction.begin(20);
        reduction.on_acknowledged(Progress {
            delivered: 1,
            in_flight: 4,
            threshold: 14,
            segment: 1,
            is_safe: true,
        });
        assert_eq!(reduction.window(14), 6);
        reduction.on_sent(2);
        reduction.on_acknowledged(Progress {
            delivered: 1,
            in_flight: 13,
            threshold: 14,
            segment: 1,
            is_safe: true,
        });
        assert_eq!(reduction.window(14), 14, "never above the threshold");
    }

    /// What may be in flight of 20, of which `sent` have left since, after an acknowledgement without progress.
    fn limit(sent: u64, delivered: u64, in_flight: u64) -> u64 {
        let mut reduction = RateReduction::default();
        reduction.begin(20);
        reduction.on_sent(sent);
        reduction.on_acknowledged(Progress {
            delivered,
            in_flight,
            threshold: 14,
            segment: SEGMENT,
            is_safe: false,
        });
        reduction.window(14)
    }

    #[test]
    fn bounds_of_one_acknowledgement() {
        assert_eq!(limit(0, 0, 19), 20, "the first retransmission leaves in any case");
        assert_eq!(limit(1, 0, 19), 19);
        assert_eq!(
            limit(3, 1, 4),
            5,
            "what is delivered is replaced, whatever left before"
        );
        assert_eq!(limit(1, 10, 14), 14, "the threshold is reached");
        assert_eq!(limit(1, 10, 15), 21, "seven tenths of what is delivered");
    }

    #[test]
    fn outside_an_episode_the_window_is_the_controllers() {
        let mut reduction = RateReduction::default();
        assert_eq!(reduction.window(14), 14);
        reduction.begin(20);
        assert_eq!(reduction.window(14), 0);
        reduction.end();
        assert_eq!(reduction.window(14), 14);
    }
}
