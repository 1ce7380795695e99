//! What sends encoded packets, whichever the code (ResTP §3.5.8).

use super::encoded::Encoded;
use super::fec_code::FecCode;
use super::rlc::{RlcEncoder, RlcParameters};
use super::xor_encoder::XorEncoder;
use crate::ack::AckReport;
use crate::recovery::LaneId;
use bytes::Bytes;
use restp_base::time::{Duration, Time};
use smallvec::SmallVec;

/// What a composition says about forward error correction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FecParameters {
    /// The code (ResTP Table 3.1). Default basic: the least redundancy.
    pub code: FecCode,
    /// How long a packet waits to be encoded in an XOR. `None`: a quarter of the round trip (ResTP §3.5.8).
    pub timer: Option<Duration>,
    /// A loss that is repaired costs of the congestion window what a retransmission would (RFC 9265 §4). Default off: as
    /// published, it costs nothing (OP-42), and beside a flow without encoding one with it takes more than its share.
    pub counts_as_congestion: bool,
    /// Encoded packets of the sliding window for 100 segments, at most. Default 100; more than 50 leave only where fewer would
    /// leave more than 1 segment in 100 missing.
    pub most_percent: u32,
}

impl Default for FecParameters {
    fn default() -> Self {
        FecParameters {
            code: FecCode::default(),
            timer: None,
            counts_as_congestion: false,
            most_percent: 100,
        }
    }
}

/// Collects packets and encodes them.
#[derive(Debug)]
pub struct FecEncoder {
    code: FecCode,
    method: Method,
}

#[derive(Debug)]
enum Method {
    Xor(XorEncoder),
    Rlc(Box<RlcEncoder>),
}

impl FecEncoder {
    /// Nothing was sent. A segment is of use until `deadline` after it left, and what is lost leaves again if it `retransmits`.
    pub fn new(parameters: FecParameters, deadline: Option<Duration>, retransmits: bool) -> Self {
        let FecParameters {
            code,
            timer,
            most_percent,
            ..
        } = parameters;
        let method = match code.shape() {
            Some(shape) => Method::Xor(XorEncoder::new(shape, timer)),
            None => Method::Rlc(Box::new(RlcEncoder::new(RlcParameters {
                most_percent,
                deadline,
                retransmits,
            }))),
        };
        FecEncoder { code, method }
    }

    /// The code it encodes by.
    pub fn code(&self) -> FecCode {
        self.code
    }

    /// Is every segment encoded once, so that its encoded packet is one more transmission of it?
    pub fn encodes_once(&self) -> bool {
        matches!(self.method, Method::Xor(_))
    }

    /// The segment `number` is about to leave by `lane` for the first time; numbers come one after another. Without payload it is the
    /// FIN.
    pub fn on_sent(
        &mut self,
        now: Time,
        number: u64,
        payload: Option<&Bytes>,
        lane: LaneId,
        rtt: Option<Duration>,
    ) {
        match &mut self.method {
            Method::Xor(xor) => {
                let content = payload.map_or(&[][..], Bytes::as_ref);
                xor.on_sent(now, number, content, payload.is_none(), rtt);
            }
            Method::Rlc(rlc) => rlc.on_sent(now, number, payload, lane, rtt),
        }
    }

    /// The peer reports what arrived.
    pub fn on_report(&mut self, report: &AckReport) {
        if let Method::Rlc(rlc) = &mut self.method {
            rlc.on_report(report);
        }
    }

    /// From now on packets leave by these lanes, with so long a round trip; none: by the only one.
    pub fn set_routes(&mut self, routes: impl Iterator<Item = (LaneId, Option<Duration>)>) {
        if let Method::Rlc(rlc) = &mut self.method {
            rlc.set_routes(&routes.collect::<SmallVec<[_; 4]>>());
        }
    }

    /// `lane` is that of another path from now on.
    pub fn forget_lane(&mut self, lane: LaneId) {
        if let Method::Rlc(rlc) = &mut self.method {
            rlc.forget_lane(lane);
        }
    }

    /// Is a retransmission in time that leaves now, of a segment that left at `sent_at`?
    pub fn is_in_time(&self, now: Time, sent_at: Time) -> bool {
        match &self.method {
            Method::Xor(_) => true,
            Method::Rlc(rlc) => rlc.is_in_time(now, sent_at),
        }
    }

    /// When something must be encoded.
    pub fn deadline(&self) -> Option<Time> {
        match &self.method {
            Method::Xor(xor) => xor.deadline(),
            Method::Rlc(rlc) => rlc.deadline(),
        }
    }

    /// The next encoded packet to send by `lane`.
    pub fn poll(&mut self, now: Time, lane: LaneId) -> Option<Encoded> {
        match &mut self.method {
            Method::Xor(xor) => xor.poll(now),
            Method::Rlc(rlc) => rlc.poll(now, lane),
        }
    }

    /// True when everything sent was encoded, and every encoded packet was taken.
    pub fn is_idle(&self) -> bool {
        match &self.method {
            Method::Xor(xor) => xor.is_idle(),
            Method::Rlc(rlc) => rlc.is_idle(),
        }
    }

    /// Forgets what is pending.
    pub fn clear(&mut self) {
        match &mut self.method {
            Method::Xor(xor) => xor.clear(),
            Method::Rlc(rlc) => rlc.clear(),
        }
    }

    /// Payload bytes kept.
    pub fn bytes(&self) -> usize {
        match &self.method {
            Method::Xor(xor) => xor.bytes(),
            Method::Rlc(rlc) => rlc.bytes(),
        }
    }
}
