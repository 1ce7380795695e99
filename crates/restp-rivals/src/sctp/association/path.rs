//! One path of an association: is it confirmed, is it used, does it answer (RFC 9260 §5.4, §8.2, §8.3)?

use bytes::Bytes;
use restp_base::machine::PathAddress;
use restp_base::random::Stream;
use restp_base::time::{Duration, Time};
use restp_services::recovery::LaneId;

/// Bytes of what a heartbeat asks with: parameter type and length, a number that cannot be guessed.
const QUESTION_BYTES: usize = 12;

/// A pair of addresses.
#[derive(Debug)]
pub(super) struct Path {
    pub address: PathAddress,
    pub lane: LaneId,
    /// The peer has shown that it receives here.
    pub confirmed: bool,
    /// Its errors are few enough.
    pub active: bool,
    /// Timeouts and unanswered heartbeats in a row.
    pub errors: u32,
    /// Of these, timeouts in a row as the sender counted when it was looked at last.
    pub expiries: u32,
    /// A heartbeat is out: what it asked with, and when.
    asked: Option<(u64, Time)>,
    /// The last error.
    pub erred_at: Time,
    /// When it counts as unanswered, or when the next one is due.
    heartbeat_at: Option<Time>,
    pub sent_packets: u64,
    pub sent_bytes: u64,
    pub received_bytes: u64,
    pub arrived_payload_bytes: u64,
    pub duplicate_payload_bytes: u64,
    pub down_events: u64,
}

impl Path {
    pub fn new(address: PathAddress, lane: LaneId, confirmed: bool) -> Self {
        Path {
            address,
            lane,
            confirmed,
            active: true,
            errors: 0,
            expiries: 0,
            asked: None,
            erred_at: Time::ZERO,
            heartbeat_at: None,
            sent_packets: 0,
            sent_bytes: 0,
            received_bytes: 0,
            arrived_payload_bytes: 0,
            duplicate_payload_bytes: 0,
            down_events: 0,
        }
    }

    /// May data leave here?
    pub fn is_usable(&self) -> bool {
        self.confirmed && self.active
    }

    /// One more error. True when the path is not used any more for it.
    pub fn on_error(&mut self, most: u32) -> bool {
        self.errors += 1;
        let fails = self.active && self.errors > most;
        if fails {
            self.active = false;
            self.down_events += 1;
        }
        fails
    }

    /// It answers. True when it is used from now on.
    pub fn on_answer(&mut self) -> bool {
        self.errors = 0;
        let comes_back = !self.is_usable();
        (self.active, self.confirmed) = (true, true);
        comes_back
    }

    /// Is a heartbeat to leave?
    pub fn is_due(&self, now: Time) -> bool {
        self.asked.is_none() && self.heartbeat_at.is_some_and(|at| at <= now)
    }

    pub fn heartbeat_at(&self) -> Option<Time> {
        self.heartbeat_at
    }

    /// A heartbeat is to leave at once.
    pub fn ask_now(&mut self, now: Time) {
        if self.asked.is_none() {
            self.heartbeat_at = Some(now);
        }
    }

    /// Data has left, or an answer has come: idle time begins, and ends with a heartbeat, if there are any (RFC 9260 §8.3). A
    /// path that is not used is asked in the same rhythm.
    pub fn begin_idle(&mut self, now: Time, every: Option<Duration>, timeout: Duration, chance: &mut Stream) {
        if self.asked.is_none() {
            let jitter = timeout.scaled(512 + chance.below(1024), 1024);
            self.heartbeat_at = every.map(|every| now + every + jitter);
        }
    }

    /// True once when the heartbeat that is out was not answered in time.
    pub fn was_ignored(&mut self, now: Time) -> bool {
        let is_late = self.asked.is_some() && self.heartbeat_at.is_some_and(|at| at <= now);
        if is_late {
            (self.asked, self.heartbeat_at) = (None, None);
        }
        is_late
    }

    /// A heartbeat leaves; it is answered within `timeout` or not at all.
    pub fn question(&mut self, now: Time, timeout: Duration, chance: &mut Stream) -> Bytes {
        let number = chance.bits();
        self.asked = Some((number, now));
        self.heartbeat_at = Some(now + timeout);
        let mut question = Vec::with_capacity(QUESTION_BYTES);
        question.extend([0, 1, 0, QUESTION_BYTES as u8]);
        question.extend(number.to_be_bytes());
        question.into()
    }

    /// An answer has come. The round trip, if it is one to the heartbeat that is out.
    pub fn answered(&mut self, now: Time, answer: &[u8]) -> Option<Duration> {
        let number = u64::from_be_bytes(answer.get(4..QUESTION_BYTES)?.try_into().ok()?);
        let (_, at) = self.asked.take_if(|(asked, _)| *asked == number)?;
        self.heartbeat_at = None;
        Some(now.since(at))
    }
}
