//! What one sender has in the network at least, from the wire: what it sent, less what it has heard of and less
//! everything that it may have taken for lost, for whatever reason the protocol knows.

use crate::chaos::laws::evidence::Pdu;
use restp_base::sequence;
use restp_base::time::{Duration, Time};
use restp_proto::wire::{Flags, Tail, sack};
use std::collections::BTreeMap;

/// Duplicates that condemn the segment at the pointer (RFC 5681 §3.2).
const DUPLICATES: u64 = 3;

/// A segment that is not acknowledged.
#[derive(Clone, Copy, Debug)]
struct Segment {
    /// What it takes of the window.
    bytes: u64,
    /// What its acknowledgement is worth.
    payload: u64,
    /// Position of its last transmission among all.
    order: u64,
    /// The packet that carried it.
    packet: u64,
    /// It left before the set-up was complete.
    early: bool,
    /// When it left last.
    left: Time,
    /// It left once.
    once: bool,
}

/// What a sender may conclude from what it hears, and when.
#[derive(Clone, Copy, Debug, Default)]
pub struct Conclusions {
    /// The shortest timer there is.
    pub timeout: Duration,
    /// A timer that runs out shows on the wire at once: the first segment leaves again.
    pub shows: bool,
    /// A timer forgets what it gives up: nothing of it leaves again, and its acknowledgement is no new one (RFC 6298 (5.3)).
    pub forgets: bool,
    /// A duplicate that names no arrival tells that some segment has left.
    pub departs: bool,
    /// The third duplicate condemns everything that has left (Tahoe, TC §2.3.1).
    pub starts_over: bool,
    /// Reports name what has arrived and nothing else, and no silence makes them count for less.
    pub measures: bool,
    /// A timer that runs out asks with the last segment whether the path is back.
    pub asks: bool,
    /// Duplicates are counted (RFC 5681 §3.2).
    pub counts: bool,
}

/// What an acknowledgement says.
#[derive(Clone, Copy, Debug, Default)]
pub struct News {
    /// Bytes that it newly acknowledges.
    pub bytes: u64,
    /// The longest round trip that it can have measured, where it surely measured one.
    pub rtt: Option<Duration>,
    /// How soon it comes after a retransmission that it tells of.
    pub again: Option<Duration>,
    /// How late after what left once, and it tells of.
    pub first: Option<Duration>,
}

/// The segments of one direction of one connection.
#[derive(Debug, Default)]
pub struct Outstanding {
    conclusions: Conclusions,
    near: Option<u64>,
    /// The highest number that has left.
    last: Option<u64>,
    segments: BTreeMap<u64, Segment>,
    transmissions: u64,
    /// Number and transmission of a FIN that carries nothing.
    fin: Option<(u64, u64)>,
    /// The latest transmission that is known to have arrived.
    reported: u64,
    /// Transmissions up to this one may have been taken for lost by a timer.
    expired: u64,
    /// Transmissions up to this one were taken for lost with the third duplicate.
    condemned: u64,
    /// Segments that duplicates may tell of.
    departed: u64,
    /// Those that duplicates told of before everything was taken for lost. The pointer passes them first.
    told_before: u64,
    duplicates: u64,
    window: Option<u16>,
    /// The timer may have run since.
    since: Time,
    heard: bool,
}

/// Why a segment left once more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cause {
    /// Feedback said that it was lost.
    Feedback,
    /// The timer ran out.
    Timeout,
    /// One or the other, or something else.
    Unknown,
}

/// A segment that left once more.
#[derive(Clone, Copy, Debug)]
pub struct Retransmission {
    pub number: u64,
    /// What carried it before.
    pub packet: u64,
    pub cause: Cause,
}

impl Outstanding {
    /// Nothing has left.
    pub fn new(conclusions: Conclusions) -> Self {
        Outstanding {
            conclusions,
            ..Outstanding::default()
        }
    }

    /// The number of a packet that this side sends.
    pub fn number(&mut self, wire: u32) -> u64 {
        let number = sequence::expand(self.near.unwrap_or(sequence::ORIGIN + u64::from(wire)), wire);
        self.near = Some(number);
        number
    }

    /// The lowest number that is not acknowledged.
    pub fn first(&self) -> Option<u64> {
        self.segments.keys().next().copied()
    }

    /// Every number below this one has left.
    pub fn next(&self) -> u64 {
        self.segments.keys().next_back().map_or(0, |last| last + 1)
    }

    /// A data packet leaves; `free`: it takes no room. Says what it retransmits.
    pub fn send(
        &mut self,
        at: Time,
        (number, packet): (u64, u64),
        pdu: &Pdu,
        free: bool,
    ) -> Option<Retransmission> {
        if self.segments.is_empty() {
            self.since = at;
        }
        let expired = at.since(self.since) >= self.conclusions.timeout;
        let before = self.segments.get(&number).copied();
        // Where nothing is outstanding but what was given up, the last one asks with the timer though it has arrived.
        let asks = expired && self.conclusions.asks && before.is_none() && self.last == Some(number);
        self.last = self.last.max(Some(number));
        let again = before.map(|before| Retransmission {
            number,
            packet: before.packet,
            cause: self.cause(&before, number, expired),
        });
        let question = Retransmission {
            number,
            packet,
            cause: Cause::Unknown,
        };
        let again = again.or_else(|| asks.then_some(question));
        if expired || again.is_some_and(|again| again.cause == Cause::Unknown) {
            self.expire();
        }
        self.transmissions += 1;
        let payload = pdu.payload.len() as u64;
        let segment = Segment {
            bytes: if free { 0 } else { payload },
            payload,
            order: self.transmissions,
            packet,
            early: before.map_or(!self.heard, |before| before.early),
            left: at,
            once: before.is_none(),
        };
        self.segments.insert(number, segment);
        again
    }

    /// A FIN leaves that carries nothing.
    pub fn finish(&mut self, number: u64) {
        self.transmissions += 1;
        self.fin = Some((number, self.transmissions));
    }

    /// The segment leaves by another path.
    pub fn hand_over(&mut self, wire: u32) {
        if let Some(near) = self.near {
            self.segments.remove(&sequence::expand(near, wire));
        }
    }

    fn cause(&self, before: &Segment, number: u64, expired: bool) -> Cause {
        let named = before.order < self.reported;
        let condemned = self.duplicates >= DUPLICATES && self.first() == Some(number);
        if before.early || before.order <= self.expired || self.segments.len() < 2 {
            return Cause::Unknown;
        }
        match (named || condemned, expired) {
            (true, false) => Cause::Feedback,
            (false, true) if self.duplicates == 0 => Cause::Timeout,
            _ => Cause::Unknown,
        }
    }

    /// A timer may have run out, or something else made the sender take everything for lost.
    pub fn expire(&mut self) {
        self.expired = self.transmissions;
        self.told_before += std::mem::take(&mut self.departed);
    }

    /// Transmissions up to this one are waited for no more.
    fn forgotten(&self) -> u64 {
        if self.conclusions.forgets { self.expired } else { 0 }
    }

    /// Bytes that the pointer has not passed, but for what the timer made the sender forget.
    pub fn unacknowledged(&self) -> u64 {
        let forgotten = self.forgotten();
        let kept = self.segments.values().filter(|segment| segment.order > forgotten);
        kept.map(|segment| segment.bytes).sum()
    }

    /// Bytes in flight, at least.
    pub fn in_flight(&self) -> u64 {
        let after = self.reported.max(self.expired).max(self.condemned);
        let of_late = self.segments.values().filter(|segment| segment.order > after);
        let (sum, largest) = of_late.fold((0, 0), |(sum, largest): (u64, u64), segment| {
            (sum + segment.bytes, largest.max(segment.bytes))
        });
        // The third duplicate condemns the first segment, which shows where it leaves again and only there.
        let Conclusions { forgets, counts, .. } = self.conclusions;
        let condemns = forgets && counts && self.duplicates >= DUPLICATES;
        let first = self
            .segments
            .values()
            .next()
            .filter(|first| condemns && first.order > after);
        let condemned = first.map_or(0, |first| first.bytes);
        sum.saturating_sub(self.departed * largest + condemned)
    }

    /// A packet of the peer arrives.
    pub fn on_received(&mut self, at: Time, pdu: &Pdu) -> News {
        let header = &pdu.header;
        let (Some(near), Some(wire)) = (self.near, header.acknowledgement) else {
            return News::default();
        };
        if header.flags.has(Flags::RST) {
            return News::default();
        }
        self.heard = true;
        let timely = at.since(self.since) < self.conclusions.timeout;
        let Conclusions { timeout, shows, .. } = self.conclusions;
        if !shows && !self.segments.is_empty() && at.since(self.since) >= timeout {
            self.expire();
        }
        if header.flags.has(Flags::SYN) && header.cookie().is_some() {
            self.expire(); // a server that gives a cookie has taken no early data
        }
        let pointer = sequence::expand(near, wire);
        let passed: Vec<u64> = self
            .segments
            .range(..pointer)
            .map(|(number, _)| *number)
            .collect();
        let forgotten = self.forgotten();
        let awaited = |number| {
            self.segments
                .get(number)
                .is_some_and(|segment| segment.order > forgotten)
        };
        let restarts = passed.iter().any(awaited);
        // A hole that was passed or filled makes no sample, and Karn's rule leaves out what left again.
        let follows = passed
            .first()
            .is_some_and(|first| passed.len() as u64 == pointer - first);
        let measures = self.conclusions.measures && timely && follows;
        let ages = passed.iter().map(|number| {
            let segment = self.segments.get(number).filter(|segment| {
                !segment.early && segment.order > self.expired && segment.order > self.condemned
            });
            segment
                .filter(|segment| segment.once)
                .map(|segment| at.since(segment.left))
        });
        let oldest = ages
            .collect::<Option<Vec<_>>>()
            .and_then(|ages| ages.into_iter().max());
        let rtt = oldest.filter(|_| measures && header.tail == Tail::None);
        let only_once = |number| self.segments.get(number).is_some_and(|segment| segment.once);
        let once = passed.iter().filter(|number| only_once(number)).count();
        let mut gone: Vec<Segment> = passed.iter().filter_map(|number| self.arrived(*number)).collect();
        let ranges: Vec<_> = match &header.tail {
            Tail::Sack(blocks) => sack::ranges(blocks, pointer).collect(),
            Tail::Snack(snack) => snack.received(pointer).collect(),
            Tail::None | Tail::Cookie(_) => Vec::new(),
        };
        let before = self.segments.len();
        for range in ranges.into_iter().filter(|range| !range.is_empty()) {
            if let Some((_, order)) = self.fin.filter(|(number, _)| range.contains(number)) {
                self.reported = self.reported.max(order);
            }
            let named: Vec<u64> = self.segments.range(range).map(|(number, _)| *number).collect();
            gone.extend(named.iter().filter_map(|number| self.arrived(*number)));
        }
        let bare = pdu.payload.is_empty() && !header.flags.has(Flags::SYN);
        if !passed.is_empty() {
            self.since = if restarts { at } else { self.since };
            self.duplicates = 0;
            // One of them filled the hole, as retransmissions do. The others are those that duplicates told of.
            let explained = once.min(passed.len() - 1) as u64;
            let before = explained.min(self.told_before);
            self.told_before -= before;
            self.departed = self.departed.saturating_sub(explained - before);
        } else if bare && !self.segments.is_empty() {
            let named = before > self.segments.len();
            self.departed += u64::from(self.conclusions.departs && !named);
            self.duplicates += u64::from(header.window == self.window);
            if self.conclusions.starts_over && self.duplicates == DUPLICATES {
                self.condemned = self.transmissions;
                self.told_before += std::mem::take(&mut self.departed);
            }
        }
        self.window = header.window;
        if self.segments.is_empty() {
            (self.departed, self.told_before) = (0, 0);
        }
        let ages = |once: bool| {
            let of_them = gone.iter().filter(move |segment| segment.once == once);
            of_them.map(|segment| at.since(segment.left))
        };
        News {
            bytes: gone.iter().map(|segment| segment.payload).sum(),
            rtt,
            again: ages(false).min(),
            first: ages(true).max(),
        }
    }

    fn arrived(&mut self, number: u64) -> Option<Segment> {
        let gone = self.segments.remove(&number)?;
        self.reported = self.reported.max(gone.order);
        Some(gone)
    }
}
