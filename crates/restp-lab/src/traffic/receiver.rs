//! The application that reads, and keeps the account of what arrived when.

use super::cbr::Stamp;
use super::{Cbr, Traffic};
use restp_base::flow::{FlowId, Read};
use restp_base::machine::{Event, Machine};
use restp_base::ranges::Ranges;
use restp_base::time::{Duration, Time};

/// Reads everything of the flow it is offered.
#[derive(Debug)]
pub struct Receiver {
    flow: Option<FlowId>,
    /// A file is complete at this many bytes.
    expected: Option<u64>,
    messages: Option<Messages>,
    delivered_bytes: u64,
    first_byte: Option<Time>,
    complete: Option<Time>,
    ended: bool,
}

impl Receiver {
    /// A receiver of `traffic`.
    pub fn new(traffic: &Traffic) -> Self {
        Receiver {
            flow: None,
            expected: match traffic {
                Traffic::File { bytes } => Some(*bytes),
                Traffic::Bulk | Traffic::Cbr(_) => None,
            },
            messages: match traffic {
                Traffic::Cbr(cbr) => Some(Messages::new(cbr.clone())),
                Traffic::Bulk | Traffic::File { .. } => None,
            },
            delivered_bytes: 0,
            first_byte: None,
            complete: None,
            ended: false,
        }
    }

    /// Takes one event of the protocol.
    pub fn on(&mut self, now: Time, event: &Event, machine: &mut dyn Machine) {
        match event {
            Event::Accepted(flow) => {
                self.flow.get_or_insert(*flow);
            }
            Event::Readable(flow) if self.flow.is_none_or(|known| known == *flow) => {
                self.drain(now, *flow, machine)
            }
            Event::Readable(_) | Event::Connected(_) | Event::Writable(_) | Event::Closed(..) => {}
        }
    }

    fn drain(&mut self, now: Time, flow: FlowId, machine: &mut dyn Machine) {
        self.flow = Some(flow);
        loop {
            match machine.read(now, flow) {
                Read::Data(data) => {
                    self.first_byte.get_or_insert(now);
                    self.delivered_bytes += data.len() as u64;
                    if let Some(messages) = &mut self.messages {
                        messages.take(now, &data);
                    }
                    if self.complete.is_none() && self.expected.is_some_and(|all| self.delivered_bytes >= all)
                    {
                        self.complete = Some(now);
                    }
                }
                Read::Empty => return,
                Read::End => {
                    if !std::mem::replace(&mut self.ended, true) {
                        machine.finish(now, flow);
                    }
                    return;
                }
            }
        }
    }

    /// Its flow, once one was accepted.
    pub fn flow(&self) -> Option<FlowId> {
        self.flow
    }

    /// Application bytes read.
    pub fn delivered_bytes(&self) -> u64 {
        self.delivered_bytes
    }

    /// When the first byte was read.
    pub fn first_byte(&self) -> Option<Time> {
        self.first_byte
    }

    /// When the last byte of a file was read.
    pub fn complete(&self) -> Option<Time> {
        self.complete
    }

    /// Has everything that could come been read?
    pub fn finished(&self) -> bool {
        self.complete.is_some() || self.ended
    }

    /// The account of messages, where traffic consists of messages.
    pub fn messages(&self) -> Option<&Messages> {
        self.messages.as_ref()
    }
}

/// Which messages arrived, and how long each took. Cuts a byte stream into messages by their known length, so
/// the account is the same over a transport that keeps boundaries and one that does not.
#[derive(Debug)]
pub struct Messages {
    cbr: Cbr,
    stamp: [u8; Cbr::STAMP_BYTES as usize],
    /// Bytes of the present message so far.
    filled: u64,
    numbers: Ranges,
    delivered: u64,
    late: u64,
    latencies: Vec<Duration>,
}

impl Messages {
    fn new(cbr: Cbr) -> Self {
        let stamp = [0; Cbr::STAMP_BYTES as usize];
        Messages {
            cbr,
            stamp,
            filled: 0,
            numbers: Ranges::default(),
            delivered: 0,
            late: 0,
            latencies: Vec::new(),
        }
    }

    fn take(&mut self, now: Time, mut data: &[u8]) {
        while !data.is_empty() {
            let part = data.len().min((self.cbr.bytes - self.filled) as usize);
            let stamped = (self.filled as usize).min(self.stamp.len());
            let stamp = part.min(self.stamp.len() - stamped);
            self.stamp[stamped..stamped + stamp].copy_from_slice(&data[..stamp]);
            self.filled += part as u64;
            data = &data[part..];
            if self.filled == self.cbr.bytes {
                self.filled = 0;
                self.message(now, Stamp::read(self.stamp));
            }
        }
    }

    fn message(&mut self, now: Time, stamp: Stamp) {
        let latency = now.since(stamp.due);
        self.delivered += 1;
        self.numbers.insert(stamp.number..stamp.number.saturating_add(1));
        self.late += u64::from(self.cbr.late_after.is_some_and(|limit| latency > limit));
        self.latencies.push(latency);
    }

    /// Messages read, copies included.
    pub fn delivered(&self) -> u64 {
        self.delivered
    }

    /// Numbers missing below the highest one read: messages still on their way at the end do not count.
    pub fn lost(&self) -> Option<u64> {
        Some(self.numbers.last()?.end - self.numbers.total())
    }

    /// Messages that took longer than the traffic allows, if it says.
    pub fn late(&self) -> Option<u64> {
        self.cbr.late_after.map(|_| self.late)
    }

    /// From due to read, in the order read.
    pub fn latencies(&self) -> &[Duration] {
        &self.latencies
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn messages(bytes: u64) -> Messages {
        let (interval, late_after) = (Duration::from_millis(20), Some(Duration::from_millis(160)));
        Messages::new(Cbr {
            bytes,
            interval,
            count: None,
            late_after,
        })
    }

    fn message(number: u64, due: u64, bytes: usize) -> Vec<u8> {
        let mut message = [number.to_be_bytes(), due.to_be_bytes()].concat();
        message.resize(bytes, 0);
        message
    }

    #[test]
    fn messages_are_found_however_the_stream_is_cut() {
        let stream: Vec<u8> = (0..7).flat_map(|n| message(n, n * 10, 50)).collect();
        for cut in 1..120 {
            let mut account = messages(50);
            for part in stream.chunks(cut) {
                account.take(Time::from_nanos(100), part);
            }
            assert_eq!(
                (account.delivered(), account.lost()),
                (7, Some(0)),
                "cut in parts of {cut}"
            );
            assert_eq!(account.latencies()[6], Duration::from_nanos(40));
        }
    }

    #[test]
    fn gaps_are_lost_and_slow_ones_late() {
        let mut account = messages(160);
        assert_eq!(account.lost(), None);
        for number in [0, 1, 4, 3, 3] {
            account.take(
                Time::from_nanos(160_000_001 + number),
                &message(number, number, 160),
            );
        }
        assert_eq!(
            (account.delivered(), account.lost(), account.late()),
            (5, Some(1), Some(5))
        );
    }
}
