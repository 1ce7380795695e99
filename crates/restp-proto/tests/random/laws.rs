//! What must hold whatever happens, computed from the applications and from the packets on the wire.

use super::super::common::{Pair, Seen};
use super::application::Application;
use bytes::Bytes;
use restp_base::flow::{CloseReason, Flow};
use restp_base::sequence;
use restp_base::time::Time;
use restp_proto::ValidComposition;
use restp_proto::wire::Flags;
use restp_services::flow_control::FlowControl;
use restp_services::framing::Framing;
use restp_services::ordering::Ordering;
use restp_services::reliability::{FecCode, LENGTH_BYTES};
use std::collections::{BTreeMap, BTreeSet};

/// What one side has sent.
#[derive(Default)]
struct Sent {
    /// Every number with its payload; a number never changes its meaning.
    segments: BTreeMap<u64, Bytes>,
    /// Near which number the next one is looked for.
    near: u64,
    /// First number that the other side has ever refused to take; none before it has said so.
    granted: Option<u64>,
    /// When it last sent beyond that.
    probed_at: Time,
    /// Every number that an encoded packet covers.
    encoded: BTreeSet<u64>,
}

impl Sent {
    /// An encoded packet is the XOR of what was sent, and every number is encoded once (OP-38, OP-39).
    fn judge_encoded(&mut self, code: FecCode, first: u64, seen: &Seen) {
        let fec = seen.header.fec.expect("a FEC word");
        assert!((1..=code.group_limit()).contains(&fec.range), "{fec:?}");
        let mut sum = seen.payload.to_vec();
        for number in code.covered(first, fec.range) {
            assert!(self.encoded.insert(number), "{number} is encoded twice");
            let none = Bytes::new(); // the FIN
            let payload = self.segments.get(&number).unwrap_or(&none);
            assert!(LENGTH_BYTES + payload.len() <= sum.len(), "{number} does not fit");
            let length = (payload.len() as u16).to_be_bytes();
            for (sum, byte) in sum.iter_mut().zip(length.iter().chain(payload)) {
                *sum ^= byte;
            }
        }
        assert!(sum.iter().all(|byte| *byte == 0), "{fec:?} from {first}");
    }
}

pub struct Laws {
    composition: ValidComposition,
    numbered: bool,
    sent: [Sent; 2],
    judged: usize,
    most_memory: u64,
}

impl Laws {
    pub fn new(composition: &ValidComposition) -> Self {
        let window = match composition.flow_control {
            FlowControl::None => 8192,
            FlowControl::Window(parameters) => u64::from(parameters.segments),
        };
        let segment = u64::from(composition.segment_bytes);
        Laws {
            numbered: true,
            sent: [0, 1].map(|_| Sent {
                near: sequence::ORIGIN,
                ..Sent::default()
            }),
            judged: 0,
            // Kept until acknowledged, held for the reader, waiting to be sent, and a little per segment.
            most_memory: 2 * window * (segment + 64)
                + if composition.reliability.encodes() {
                    36 * segment
                } else {
                    0
                }
                + composition.send_buffer_bytes as u64
                + 4 * segment
                + 16 * 1024,
            composition: composition.clone(),
        }
    }

    pub fn at_every_step(&mut self, pair: &Pair, applications: &[Application; 2]) {
        for seen in &pair.log[self.judged..] {
            self.judge_packet(seen);
        }
        self.judged = pair.log.len();
        for (end, application) in pair.ends.iter().zip(applications) {
            if let Some(stats) = application.flow.and_then(|flow| end.stats(flow)) {
                assert!(
                    stats.memory_bytes <= self.most_memory,
                    "{} bytes held, at most {}",
                    stats.memory_bytes,
                    self.most_memory
                );
            }
        }
        if self.composition.reliability.repeats() && self.composition.ordering == Ordering::Ordered {
            for side in 0..2 {
                self.assert_prefix(&applications[side], &applications[1 - side]);
            }
        }
    }

    fn judge_packet(&mut self, seen: &Seen) {
        let header = &seen.header;
        let repeats = self.composition.reliability.repeats();
        let sender = &mut self.sent[seen.from];
        let Some(number) = header.sequence else {
            self.numbered = false;
            let place = sender.segments.len() as u64;
            sender.segments.insert(place, seen.payload.clone());
            return;
        };
        let number = sequence::expand(sender.near, number);
        if seen.is_encoded() {
            return sender.judge_encoded(self.composition.fec.code, number, seen);
        }
        sender.near = number;
        if seen.is_data() {
            let known = sender.segments.insert(number, seen.payload.clone());
            assert!(
                known.is_none_or(|known| known == seen.payload),
                "segment {number} of side {} changed",
                seen.from
            );
            // Early data cannot know what the answer grants (OP-33); it carries no ACK.
            let granted = sender
                .granted
                .filter(|_| header.flags.has(Flags::ACK) || !repeats);
            if let Some(granted) = granted.filter(|granted| number >= *granted) {
                // A probe. With repeats it is the first number outside; without, each one is new, one per timeout.
                let again = seen.at.since(sender.probed_at) >= self.composition.rto.floor;
                let allowed = if repeats { number == granted } else { again };
                assert!(allowed, "{number} is beyond {granted} and no probe");
                sender.probed_at = seen.at;
            }
        }
        let other = &mut self.sent[1 - seen.from];
        if let (Some(acknowledged), true) = (header.acknowledgement, header.flags.has(Flags::ACK))
            && !header.flags.has(Flags::RST)
        {
            let first = sequence::expand(other.near, acknowledged);
            if let Some(window) = header.window {
                let edge = first + u64::from(window);
                other.granted = Some(other.granted.map_or(edge, |known| known.max(edge)));
            }
        }
        if let (Some(window), true) = (header.window, header.flags == Flags::SYN) {
            // The acceptor's numbers are not known yet; they begin at 0 in these runs.
            let edge = sequence::ORIGIN + 1 + u64::from(window);
            other.granted = Some(other.granted.map_or(edge, |known| known.max(edge)));
        }
    }

    fn assert_prefix(&self, reader: &Application, writer: &Application) {
        if self.composition.framing == Framing::Fixed {
            assert!(
                writer.written.starts_with(&reader.read),
                "messages arrive once and in order"
            );
        } else {
            let read = reader.read.concat();
            assert!(
                writer.written.concat().starts_with(&read),
                "the stream arrives once and in order"
            );
        }
    }

    pub fn at_the_end(&self, pair: &Pair, applications: &[Application; 2]) {
        let reliable = self.composition.reliability.repeats();
        for side in 0..2 {
            let (reader, writer) = (&applications[side], &applications[1 - side]);
            let reason = applications[side].closed.as_ref();
            // Without repeats a FIN may be lost, and who waits for it in vain learns that the other side is gone.
            let reset = !reliable && reason == Some(&CloseReason::Reset);
            let reached = reliable || applications[side].flow.is_some();
            assert!(
                reason == Some(&CloseReason::Finished) || reset || !reached,
                "side {side} ended as {reason:?}"
            );
            if self.composition.reliability.is_full() {
                let bytes = |pieces: &[Bytes]| pieces.iter().map(Bytes::len).sum::<usize>();
                assert_eq!(
                    bytes(&reader.read),
                    bytes(&writer.written),
                    "what was written to side {side} arrived"
                );
            }
            self.judge_reading(side, reader, writer);
        }
        let seconds = pair.now.as_secs_f64() as u64;
        let most = 4 * pair.log.len() as u64 + 100 * seconds;
        assert!(pair.wakeups <= most, "{} wakeups, at most {most}", pair.wakeups);
        assert!(
            pair.log.len() < 100_000,
            "{} packets for so little data",
            pair.log.len()
        );
    }

    /// Nothing is read that was not written; where segments are numbered, nothing twice, and where they are
    /// ordered, in their order.
    fn judge_reading(&self, side: usize, reader: &Application, writer: &Application) {
        let written: Vec<&Bytes> = if self.composition.framing == Framing::Fixed {
            writer.written.iter().collect()
        } else {
            self.sent[1 - side].segments.values().collect()
        };
        if self.composition.ordering != Ordering::Unordered {
            let mut rest = written.iter();
            for data in &reader.read {
                assert!(
                    rest.any(|known| *known == data),
                    "side {side} reads in order, once"
                );
            }
        } else if !reader.read.is_empty() {
            let mut left: BTreeMap<&Bytes, usize> = BTreeMap::new();
            for data in written {
                *left.entry(data).or_default() += 1;
            }
            for data in &reader.read {
                let count = left.get_mut(data).expect("only what was written is read");
                assert!(
                    *count > 0 || !self.numbered,
                    "side {side} reads {} bytes twice",
                    data.len()
                );
                *count = count.saturating_sub(1);
            }
        }
    }
}
