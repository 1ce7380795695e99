//! What the two SYNs settle (RFC 9293 §3.7.1, RFC 7323, RFC 2018): segment sizes, scale, timestamps, reports.

use super::super::fast_open::FastOpen;
use super::super::nak::SEGMENTS_MAX;
use super::super::options::{Options, TIMESTAMP_BYTES};
use super::super::wire::Header;
use super::Connection;
use crate::subflow::dss::DSS_BYTES;
use restp_base::sequence;
use restp_services::ack::{Detail, NakReporter};

/// Window without scaling, and in every SYN (RFC 7323 §2.2).
pub(crate) const UNSCALED: u64 = 0xffff;
/// Largest shift of a window (RFC 7323 §2.3).
const MAX_SHIFT: u8 = 14;
/// Payload of a peer that names no maximum (RFC 9293 §3.7.1, MUST-15).
const DEFAULT_MSS: u16 = 536;

/// What the SYNs have settled.
#[derive(Clone, Copy, Debug)]
pub(super) struct Agreed {
    /// Payload of a full segment from here.
    pub(super) segment_bytes: u32,
    /// How far the peer's windows are shifted.
    pub(super) peer_shift: u8,
    /// What acknowledgements say beside their number.
    pub(super) detail: Detail,
    /// Segment bytes in which both ends count holes.
    pub(super) unit: u64,
    pub(super) clock: Option<Clock>,
}

/// Timestamps in use (RFC 7323 §4.3).
#[derive(Clone, Copy, Debug)]
pub(super) struct Clock {
    /// TS.Recent: what to echo.
    pub(super) recent: u32,
    /// Last.ACK.sent: only a segment that reaches down to it updates the echo.
    pub(super) acknowledged: u64,
}

impl Connection {
    /// The options of our SYN, or of our answer to the peer's: what both want.
    pub(super) fn offer(&self, answers: bool) -> Options {
        let timestamps = self.parameters.timestamps && (!answers || self.agreed.clock.is_some());
        let detail = if answers {
            self.agreed.detail
        } else {
            self.parameters.detail
        };
        Options {
            mss: Some(self.most_taken(timestamps)),
            sack_permitted: matches!(detail, Detail::Sack { .. }),
            nak_mode: (detail == Detail::Nak).then_some(self.parameters.nak.mode),
            snack_permitted: detail == Detail::Snack,
            window_scale: (self.parameters.window_scaling && (!answers || self.receiver.window_shift() > 0))
                .then(|| shift_for(self.window_bytes())),
            multipath: self
                .subflow
                .as_ref()
                .and_then(|subflow| subflow.set_up.greeting()),
            fast_open: FastOpen::of(self.exchange),
            ..Options::default()
        }
    }

    /// Bytes of options that every segment with payload has.
    fn option_bytes(&self, timestamps: bool) -> usize {
        let multipath = self.subflow.as_ref().map_or(0, |_| DSS_BYTES);
        multipath + if timestamps { TIMESTAMP_BYTES } else { 0 }
    }

    /// Bytes of options and payload that we take in one segment.
    fn most_taken(&self, timestamps: bool) -> u16 {
        let room = self.option_bytes(timestamps);
        (self.parameters.segment_bytes as usize + room).min(0xffff) as u16
    }

    /// The peer's SYN, or its answer to ours: where its bytes begin, what it takes, which options both have.
    pub(super) fn learn(&mut self, syn: &Header) {
        let next = sequence::ORIGIN + u64::from(syn.sequence) + 1;
        let theirs = &syn.options;
        let clock = theirs.timestamps.filter(|_| self.parameters.timestamps);
        let option_bytes = self.option_bytes(clock.is_some());
        let theirs_most = usize::from(theirs.mss.unwrap_or(DEFAULT_MSS))
            .saturating_sub(option_bytes)
            .max(1);
        // Both ends know both maxima and come to the same, whatever segments each of them sends.
        let offered = self.most_taken(clock.is_some() || (self.opened_here && self.parameters.timestamps));
        let ours_most = usize::from(offered).saturating_sub(option_bytes);
        let unit = ours_most.min(theirs_most).max(1) as u64;
        let scaled = theirs.window_scale.filter(|_| self.parameters.window_scaling);
        self.agreed = Agreed {
            segment_bytes: self.parameters.segment_bytes.min(theirs_most as u32),
            peer_shift: scaled.unwrap_or(0).min(MAX_SHIFT),
            detail: self.detail_with(theirs),
            unit,
            clock: clock.map(|clock| Clock {
                recent: clock.value,
                acknowledged: next,
            }),
        };
        let shift = scaled.map_or(0, |_| shift_for(self.window_bytes()));
        let units = (self.window_bytes() >> shift).min(UNSCALED) as u32;
        let pieces = 2 * self.parameters.window.segments as usize;
        let nak = NakReporter::new(self.parameters.nak, SEGMENTS_MAX * unit, next);
        self.receiver.begin_bytes(next, shift, units, pieces, nak);
        self.first_received = next;
        self.ecn.learn(self.parameters.ecn, syn.flags);
        let recovery = self.parameters.recovery_of(self.agreed.detail, theirs.nak_mode);
        self.sender.agree(self.agreed.segment_bytes, recovery);
        if self.parameters.dsack && matches!(self.agreed.detail, Detail::Sack { .. }) {
            self.duplicates.get_or_insert_default();
            self.sender.expect_duplicates();
        }
        self.advertised = syn.window;
        self.sender
            .grant_afresh(self.numbers.first_byte(), u64::from(syn.window));
        self.sender.bind_credit(self.subflow.is_none());
        if let Some(subflow) = &mut self.subflow {
            subflow.begin(self.numbers.first_byte(), next);
        }
    }

    /// What acknowledgements may say to a peer that offers `theirs`.
    fn detail_with(&self, theirs: &Options) -> Detail {
        let detail = self.parameters.detail;
        let both = match detail {
            Detail::Pointer => true,
            Detail::Sack { .. } => theirs.sack_permitted,
            Detail::Nak => theirs.nak_mode.is_some(),
            Detail::Snack => theirs.snack_permitted,
        };
        if both { detail } else { Detail::Pointer }
    }
}

/// The smallest shift under which `bytes` fit into the field (RFC 7323 §2).
pub(crate) fn shift_for(bytes: u64) -> u8 {
    (0..MAX_SHIFT)
        .find(|shift| bytes >> shift <= UNSCALED)
        .unwrap_or(MAX_SHIFT)
}
