//! The one record of what is outstanding: for each number sent and not yet below the receiver's pointer, when
//! it was sent, how often, and what we believe became of it (RFC 6675 §4 calls it so). Facts only; who is lost is decided beside it.

use crate::ack::AckReport;
use restp_base::time::{Duration, Time};
use std::collections::VecDeque;
use thiserror::Error;

/// What we believe became of a segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fate {
    InFlight,
    Lost,
    Delivered,
}

#[derive(Clone, Copy, Debug)]
struct Entry {
    sent_at: Time,
    /// Position among all transmissions: which of two left later.
    order: u64,
    bytes: u32,
    repeated: bool,
    fate: Fate,
}

/// What an acknowledgement changed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Feedback {
    /// Numbers the receiver's pointer passed.
    pub advanced: u64,
    /// Segments delivered for the first time to our knowledge, by pointer or by block.
    pub delivered: u64,
    /// Their bytes.
    pub delivered_bytes: u64,
    /// Round trip of the latest of them, unless it was sent more than once (Karn's rule) or waited at the receiver
    /// for a repeat.
    pub rtt: Option<Duration>,
    /// The pointer stands where it stood while data is outstanding; the caller clears this for packets that
    /// carried data or changed the window (RFC 5681 §2).
    pub duplicate: bool,
}

impl Feedback {
    /// The peer has got something it had not reported before.
    pub fn is_progress(&self) -> bool {
        self.delivered > 0 || self.advanced > 0
    }
}

/// The peer acknowledged a number that was never sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("acknowledged {acknowledged}, but only numbers below {next} were sent")]
pub struct UnsentAcknowledged {
    /// What it acknowledged.
    pub acknowledged: u64,
    /// The first number not sent.
    pub next: u64,
}

/// Record of the outstanding segments of one direction.
#[derive(Debug)]
pub struct Scoreboard {
    first: u64,
    entries: VecDeque<Entry>,
    transmissions: u64,
    in_flight: u64,
    in_flight_bytes: u64,
    outstanding_bytes: u64,
    lost: u64,
    /// Delivered beyond the pointer.
    delivered: u64,
    /// Segments that duplicates without blocks say have left the network, we do not know which.
    departed: u64,
    /// Nothing below this number awaits retransmission.
    lost_from: u64,
    /// Highest `order`s reported delivered, the highest first.
    latest_delivered: [u64; super::DUPLICATE_THRESHOLD as usize],
}

impl Scoreboard {
    /// Nothing sent; the first number will be `first`.
    pub fn new(first: u64) -> Self {
        Scoreboard {
            first,
            entries: VecDeque::new(),
            transmissions: 0,
            in_flight: 0,
            in_flight_bytes: 0,
            outstanding_bytes: 0,
            lost: 0,
            delivered: 0,
            departed: 0,
            lost_from: first,
            latest_delivered: [0; super::DUPLICATE_THRESHOLD as usize],
        }
    }

    /// SND.UNA: the lowest number not acknowledged.
    pub fn first(&self) -> u64 {
        self.first
    }
    /// SND.NXT: the next new number.
    pub fn next(&self) -> u64 {
        self.first + self.entries.len() as u64
    }
    /// True when everything sent is acknowledged.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }
    /// Segments believed to be in the network: the pipe of RFC 6675.
    pub fn in_flight(&self) -> u64 {
        self.in_flight.saturating_sub(self.departed)
    }
    /// Their bytes.
    pub fn in_flight_bytes(&self) -> u64 {
        if self.departed == 0 {
            return self.in_flight_bytes;
        }
        self.in_flight_bytes
            - self.in_flight_bytes * self.departed.min(self.in_flight) / self.in_flight.max(1)
    }
    /// Bytes the receiver's pointer has not passed: FlightSize of RFC 5681 §2.
    pub fn outstanding_bytes(&self) -> u64 {
        self.outstanding_bytes
    }
    /// Segments declared lost and not sent again yet.
    pub fn lost(&self) -> u64 {
        self.lost
    }
    /// Bytes of memory the record takes.
    pub fn memory(&self) -> usize {
        self.entries.capacity() * size_of::<Entry>()
    }

    /// A new segment leaves; returns its number.
    pub fn on_sent(&mut self, now: Time, bytes: u32) -> u64 {
        self.transmissions += 1;
        let order = self.transmissions;
        self.entries.push_back(Entry {
            sent_at: now,
            order,
            bytes,
            repeated: false,
            fate: Fate::InFlight,
        });
        self.in_flight += 1;
        self.in_flight_bytes += u64::from(bytes);
        self.outstanding_bytes += u64::from(bytes);
        self.next() - 1
    }

    /// The lost segment `number` leaves again. Returns the position of this transmission among all.
    pub fn on_repeated(&mut self, now: Time, number: u64) -> Option<u64> {
        let index = number.checked_sub(self.first)? as usize;
        let entry = self
            .entries
            .get_mut(index)
            .filter(|entry| entry.fate == Fate::Lost)?;
        self.transmissions += 1;
        *entry = Entry {
            sent_at: now,
            order: self.transmissions,
            repeated: true,
            fate: Fate::InFlight,
            ..*entry
        };
        self.lost -= 1;
        self.in_flight += 1;
        self.in_flight_bytes += u64::from(entry.bytes);
        self.lost_from = number + 1;
        Some(self.transmissions)
    }

    /// `number` leaves again as a probe, whatever we believe became of it: its answer gives no round trip (OP-51).
    pub fn on_probed(&mut self, number: u64) {
        let index = number.checked_sub(self.first);
        if let Some(entry) = index.and_then(|index| self.entries.get_mut(index as usize)) {
            entry.repeated = true;
        }
    }

    /// The lowest lost number that awaits retransmission.
    pub fn next_lost(&mut self) -> Option<u64> {
        if self.lost == 0 {
            return None;
        }
        self.lost_from = self.lost_from.max(self.first);
        loop {
            let entry = self.entries.get((self.lost_from - self.first) as usize)?;
            if entry.fate == Fate::Lost {
                return Some(self.lost_from);
            }
            self.lost_from += 1;
        }
    }

    /// Applies what the peer reported.
    ///
    /// # Errors
    /// When it acknowledges what was never sent; nothing is changed then.
    pub fn acknowledge(&mut self, now: Time, report: &AckReport) -> Result<Feedback, UnsentAcknowledged> {
        let next = self.next();
        let highest = report
            .received
            .iter()
            .map(|range| range.end)
            .fold(report.cumulative, u64::max);
        if highest > next {
            return Err(UnsentAcknowledged {
                acknowledged: highest - 1,
                next,
            });
        }
        let mut feedback = Feedback::default();
        if report.cumulative < self.first {
            return Ok(feedback); // late: everything it says is known
        }
        feedback.duplicate = report.cumulative == self.first && !self.entries.is_empty();
        feedback.advanced = report.cumulative - self.first;
        let mut repaired = false;
        for _ in 0..feedback.advanced {
            let Some(entry) = self.entries.pop_front() else {
                break;
            };
            repaired |= entry.repeated;
            self.first += 1;
            self.outstanding_bytes -= u64::from(entry.bytes);
            if entry.fate == Fate::Delivered {
                self.delivered -= 1;
            } else {
                self.settle(now, entry, &mut feedback);
            }
        }
        if repaired {
            // What the pointer passed besides the repeat was waiting behind the hole: its age is no round trip.
            feedback.rtt = None;
        }
        for range in &report.received {
            for number in range.start.max(self.first)..range.end {
                let index = (number - self.first) as usize;
                let entry = self.entries[index];
                if entry.fate != Fate::Delivered {
                    self.settle(now, entry, &mut feedback);
                    self.entries[index].fate = Fate::Delivered;
                    self.delivered += 1;
                }
            }
        }
        if self.entries.is_empty() && self.entries.capacity() > 64 {
            self.entries = VecDeque::new();
        }
        Ok(feedback)
    }

    /// `entry` is delivered: takes it out of the counts and into the feedback.
    fn settle(&mut self, now: Time, entry: Entry, feedback: &mut Feedback) {
        match entry.fate {
            Fate::InFlight => {
                self.in_flight -= 1;
                self.in_flight_bytes -= u64::from(entry.bytes);
            }
            Fate::Lost => self.lost -= 1,
            Fate::Delivered => {}
        }
        feedback.delivered += 1;
        feedback.delivered_bytes += u64::from(entry.bytes);
        if entry.repeated {
            return; // which of its transmissions arrived is unknown
        }
        feedback.rtt = Some(now.since(entry.sent_at));
        let [a, b, c] = &mut self.latest_delivered;
        if entry.order > *a {
            (*a, *b, *c) = (entry.order, *a, *b);
        } else if entry.order > *b {
            (*b, *c) = (entry.order, *b);
        } else if entry.order > *c {
            *c = entry.order;
        }
    }

    /// A transmission of which three later ones are reported delivered has a lower order than this.
    pub fn overtaken_below(&self) -> u64 {
        self.latest_delivered[self.latest_delivered.len() - 1]
    }

    /// The order of the last transmission of `number`, while its fate is open.
    pub fn order_in_flight(&self, number: u64) -> Option<u64> {
        let entry = self.entries.get(number.checked_sub(self.first)? as usize)?;
        (entry.fate == Fate::InFlight).then_some(entry.order)
    }

    /// The order of the last transmission of `number`, and whether it was sent once only.
    pub fn order_and_once(&self, number: u64) -> Option<(u64, bool)> {
        let entry = self.entries.get(number.checked_sub(self.first)? as usize)?;
        Some((entry.order, !entry.repeated))
    }

    /// Declares `number` lost, if its fate is open. True when that is news.
    pub fn mark_lost(&mut self, number: u64) -> bool {
        let Some(index) = number.checked_sub(self.first) else {
            return false;
        };
        let Some(entry) = self.entries.get_mut(index as usize) else {
            return false;
        };
        if entry.fate != Fate::InFlight {
            return false;
        }
        entry.fate = Fate::Lost;
        self.in_flight -= 1;
        self.in_flight_bytes -= u64::from(entry.bytes);
        self.lost += 1;
        self.departed = self.departed.min(self.in_flight);
        self.lost_from = self.lost_from.min(number);
        true
    }

    /// Declares everything whose fate is open lost; returns how many segments that are.
    pub fn mark_all_lost(&mut self) -> u64 {
        self.departed = 0;
        (self.first..self.next())
            .filter(|number| self.mark_lost(*number))
            .count() as u64
    }

    /// Takes everything outstanding out of the record: nobody will send it again, so its fate does not matter.
    pub fn forget(&mut self) {
        self.first = self.next();
        self.entries = VecDeque::new();
        (self.in_flight, self.in_flight_bytes, self.lost) = (0, 0, 0);
        (self.outstanding_bytes, self.delivered, self.departed) = (0, 0, 0);
    }

    /// One more segment has left the network, we do not know which (a duplicate without blocks).
    pub fn depart_one(&mut self) {
        self.departed = (self.departed + 1).min(self.in_flight);
    }
    /// The pointer explained `known` of the departures.
    pub fn departures_explained(&mut self, known: u64) {
        self.departed = self.departed.saturating_sub(known);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use restp_base::random::Stream;
    use smallvec::smallvec;

    fn at(ms: u64) -> Time {
        Time::ZERO + Duration::from_millis(ms)
    }

    /// Segments 10..=17 of 100 bytes, sent one per millisecond from 0 on; 10 to 13 and 16 are lost (ResTP §3.1.9).
    fn burst() -> Scoreboard {
        let mut board = Scoreboard::new(10);
        for i in 0..8 {
            assert_eq!(board.on_sent(at(i), 100), 10 + i);
        }
        board
    }

    #[test]
    fn what_is_forgotten_is_neither_in_flight_nor_lost_and_late_reports_of_it_say_nothing() {
        let mut board = burst();
        board.mark_all_lost();
        board.forget();
        assert_eq!((board.first(), board.next()), (18, 18));
        assert_eq!(
            (
                board.in_flight(),
                board.in_flight_bytes() + board.outstanding_bytes(),
                board.lost()
            ),
            (0, 0, 0)
        );
        assert_eq!(
            board.acknowledge(at(90), &AckReport::pointer(14)),
            Ok(Feedback::default())
        );
        assert_eq!(board.on_sent(at(91), 100), 18);
    }

    #[test]
    fn blocks_and_pointer_settle_what_they_name() {
        let mut board = burst();
        let report = AckReport {
            cumulative: 10,
            received: smallvec![17..18, 14..16],
            ..Default::default()
        };
        let feedback = board.acknowledge(at(100), &report).unwrap();
        assert_eq!(
            (feedback.advanced, feedback.delivered, feedback.delivered_bytes),
            (0, 3, 300)
        );
        assert!(feedback.duplicate);
        assert_eq!((board.in_flight(), board.in_flight_bytes()), (5, 500));
        assert_eq!(board.overtaken_below(), 5, "14 was the fifth transmission");

        assert!(board.mark_lost(10) && !board.mark_lost(10) && !board.mark_lost(14) && !board.mark_lost(99));
        assert_eq!(board.next_lost(), Some(10));
        assert_eq!(board.on_repeated(at(101), 10), Some(9));
        assert_eq!((board.next_lost(), board.lost(), board.in_flight()), (None, 0, 5));

        let feedback = board.acknowledge(at(200), &AckReport::pointer(11)).unwrap();
        assert_eq!(feedback.rtt, None, "Karn: 10 was sent twice");
        let feedback = board.acknowledge(at(200), &AckReport::pointer(18)).unwrap();
        assert_eq!(
            (feedback.advanced, feedback.delivered, feedback.duplicate),
            (7, 4, false)
        );
        assert_eq!(
            feedback.rtt,
            Some(Duration::from_millis(194)),
            "16 left at 6 ms and was not known"
        );
        assert!(board.is_empty());
    }

    #[test]
    fn what_waited_behind_a_hole_gives_no_round_trip() {
        let mut board = burst();
        board.mark_lost(10);
        board.on_repeated(at(150), 10);
        let feedback = board.acknowledge(at(200), &AckReport::pointer(16)).unwrap();
        assert_eq!(
            (feedback.delivered, feedback.rtt),
            (6, None),
            "11 to 15 arrived long ago"
        );
        let feedback = board.acknowledge(at(201), &AckReport::pointer(18)).unwrap();
        assert_eq!(feedback.rtt, Some(Duration::from_millis(194)));
    }

    #[test]
    fn acknowledging_what_was_never_sent_changes_nothing() {
        let mut board = burst();
        let refused = board.acknowledge(at(9), &AckReport::pointer(19)).unwrap_err();
        assert_eq!(
            refused,
            UnsentAcknowledged {
                acknowledged: 18,
                next: 18
            }
        );
        let report = AckReport {
            cumulative: 12,
            received: smallvec![14..30],
            ..Default::default()
        };
        assert!(board.acknowledge(at(9), &report).is_err());
        assert_eq!((board.first(), board.in_flight()), (10, 8));
    }

    #[test]
    fn a_late_acknowledgement_says_nothing() {
        let mut board = burst();
        board.acknowledge(at(9), &AckReport::pointer(15)).unwrap();
        assert_eq!(
            board.acknowledge(at(9), &AckReport::pointer(12)),
            Ok(Feedback::default())
        );
    }

    #[test]
    fn counts_agree_with_the_entries_under_random_operations() {
        let mut stream = Stream::named(3, "scoreboard");
        for _ in 0..100 {
            let mut board = Scoreboard::new(1 << 32);
            for step in 0..200 {
                let (first, next) = (board.first(), board.next());
                let any = |stream: &mut Stream| first + stream.below(next - first + 1);
                match stream.below(7) {
                    0..=2 => drop(board.on_sent(at(step), 1 + stream.below(1400) as u32)),
                    3 => drop(board.mark_lost(any(&mut stream))),
                    4 => board.depart_one(),
                    5 => drop(
                        board
                            .next_lost()
                            .map(|number| board.on_repeated(at(step), number)),
                    ),
                    _ => {
                        let (a, b, c) = (any(&mut stream), any(&mut stream), any(&mut stream));
                        let received = smallvec![b.min(c)..b.max(c)];
                        let cumulative = if stream.chance(0.5) { first } else { a };
                        board
                            .acknowledge(
                                at(step),
                                &AckReport {
                                    cumulative,
                                    received,
                                    ..Default::default()
                                },
                            )
                            .unwrap();
                    }
                }
                let of = |fate| board.entries.iter().filter(move |entry| entry.fate == fate);
                assert_eq!(board.in_flight, of(Fate::InFlight).count() as u64);
                assert_eq!(
                    board.in_flight_bytes,
                    of(Fate::InFlight).map(|e| u64::from(e.bytes)).sum::<u64>()
                );
                let all: u64 = board.entries.iter().map(|e| u64::from(e.bytes)).sum();
                assert_eq!(board.outstanding_bytes, all);
                assert_eq!(board.lost, of(Fate::Lost).count() as u64);
                assert_eq!(board.delivered, of(Fate::Delivered).count() as u64);
                let lowest = (board.first()..board.next())
                    .find(|n| board.entries[(n - board.first) as usize].fate == Fate::Lost);
                assert_eq!(board.next_lost(), lowest);
            }
        }
    }
}
