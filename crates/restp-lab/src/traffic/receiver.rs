//! The application that serves a flow: reads, keeps the account of what arrived when, and answers where the traffic
//! asks for it.

use super::account::{Account, Moments};
use super::catalogue::Librarian;
use super::cbr::{Framing, Stamp};
use super::web::Responder;
use super::{Cbr, Traffic, pattern};
use restp_base::flow::{FlowId, Read};
use restp_base::machine::{Event, Machine, PathAddress};
use restp_base::ranges::Ranges;
use restp_base::time::{Duration, Time};

/// Reads everything of the flow it is offered.
#[derive(Debug)]
pub struct Receiver {
    flow: Option<FlowId>,
    /// A file is complete at this many bytes.
    expected: Option<u64>,
    messages: Option<Messages>,
    responder: Option<Responder>,
    librarian: Option<Librarian>,
    account: Account,
    /// Bytes of a stream that are not those written at their place.
    wrong: Option<u64>,
    complete: Option<Time>,
    ended: bool,
    /// Further paths whose addresses here the opener is to hear of.
    announces: Vec<PathAddress>,
}

impl Receiver {
    /// A receiver of `traffic`.
    pub fn new(traffic: &Traffic, moments: Moments) -> Self {
        Receiver {
            flow: None,
            expected: match traffic {
                Traffic::File { bytes } => Some(*bytes),
                Traffic::Bulk | Traffic::Cbr(_) | Traffic::Web(_) | Traffic::Zipf(_) => None,
            },
            messages: match traffic {
                Traffic::Cbr(cbr) => Some(Messages::new(cbr.clone())),
                Traffic::Bulk | Traffic::File { .. } | Traffic::Web(_) | Traffic::Zipf(_) => None,
            },
            responder: matches!(traffic, Traffic::Web(_)).then(Responder::default),
            librarian: match traffic {
                Traffic::Zipf(catalogue) => Some(Librarian::new(catalogue)),
                _ => None,
            },
            account: Account::new(moments),
            wrong: matches!(traffic, Traffic::Bulk | Traffic::File { .. }).then_some(0),
            complete: None,
            ended: false,
            announces: Vec::new(),
        }
    }

    /// It gives each flow that it is offered these further paths.
    pub fn announcing(self, paths: impl IntoIterator<Item = PathAddress>) -> Self {
        Receiver {
            announces: paths.into_iter().collect(),
            ..self
        }
    }

    /// Takes one event of the protocol.
    pub fn on(&mut self, now: Time, event: &Event, machine: &mut dyn Machine) {
        if let Event::Accepted(flow) = event {
            for path in &self.announces {
                // More than it can announce are more than its opener could add.
                let _refused = machine.add_path(now, *flow, *path, false);
            }
        }
        if self.librarian.is_some() {
            return self.serve(now, event, machine);
        }
        match event {
            Event::Accepted(flow) => {
                self.flow.get_or_insert(*flow);
            }
            Event::Readable(flow) if self.flow.is_none_or(|known| known == *flow) => {
                self.drain(now, *flow, machine)
            }
            Event::Writable(flow) => {
                if let Some(responder) = &mut self.responder {
                    responder.pump(now, machine, *flow);
                }
            }
            Event::Readable(_)
            | Event::Connected(_)
            | Event::Stream(..)
            | Event::Path(..)
            | Event::Closed(..) => {}
        }
    }

    /// Answers what is asked for in any of its flows.
    fn serve(&mut self, now: Time, event: &Event, machine: &mut dyn Machine) {
        let Some(librarian) = &mut self.librarian else {
            return;
        };
        match event {
            Event::Accepted(flow) => self.flow = Some(*flow),
            Event::Readable(flow) => {
                while let Read::Data(data) = machine.read(now, *flow) {
                    self.account.enter(now, data.len());
                    librarian.take(*flow, &data);
                }
                librarian.pump(now, machine, *flow);
            }
            Event::Writable(flow) => librarian.pump(now, machine, *flow),
            Event::Closed(flow, _) => librarian.close(*flow),
            Event::Connected(_) | Event::Stream(..) | Event::Path(..) => {}
        }
    }

    fn drain(&mut self, now: Time, flow: FlowId, machine: &mut dyn Machine) {
        self.flow = Some(flow);
        if let Some(messages) = &mut self.messages {
            messages.begin_read();
        }
        loop {
            match machine.read(now, flow) {
                Read::Data(data) => {
                    if let Some(wrong) = &mut self.wrong {
                        *wrong += pattern::wrong(self.account.bytes(), &data);
                    }
                    self.account.enter(now, data.len());
                    if let Some(messages) = &mut self.messages {
                        messages.take(now, &data);
                    }
                    if let Some(responder) = &mut self.responder {
                        responder.take(&data);
                        responder.pump(now, machine, flow);
                    }
                    let bytes = self.account.bytes();
                    if self.complete.is_none() && self.expected.is_some_and(|all| bytes >= all) {
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

    /// What it read.
    pub fn account(&self) -> &Account {
        &self.account
    }

    /// Bytes that are not those written at their place, where traffic is a stream that knows: something was lost,
    /// repeated or changed.
    pub fn wrong_bytes(&self) -> Option<u64> {
        self.wrong
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

/// Which messages arrived, and how long each took. Cuts a byte stream into messages as their framing says; known or
/// written lengths give the same account over a transport that keeps boundaries and one that does not.
#[derive(Debug)]
pub struct Messages {
    cbr: Cbr,
    /// Length as written and stamp of the present message.
    head: [u8; HEAD_BYTES],
    /// Bytes of the present message so far, those of its length included.
    filled: u64,
    /// Nothing was taken yet of what the present read returns.
    at_start_of_read: bool,
    numbers: Ranges,
    delivered: u64,
    late: u64,
    on_time: u64,
    latencies: Vec<Duration>,
}

const STAMP_BYTES: usize = Cbr::STAMP_BYTES as usize;
const HEAD_BYTES: usize = Framing::Prefixed.prefix_bytes() as usize + STAMP_BYTES;

impl Messages {
    fn new(cbr: Cbr) -> Self {
        Messages {
            cbr,
            head: [0; HEAD_BYTES],
            filled: 0,
            at_start_of_read: true,
            numbers: Ranges::default(),
            delivered: 0,
            late: 0,
            on_time: 0,
            latencies: Vec::new(),
        }
    }

    /// The application asks for all there is.
    fn begin_read(&mut self) {
        self.at_start_of_read = true;
    }

    /// Takes the next part of what this read returns.
    fn take(&mut self, now: Time, mut data: &[u8]) {
        let at_start = std::mem::replace(&mut self.at_start_of_read, false);
        if self.cbr.framing == Framing::Raw {
            if at_start
                && self.filled == 0
                && let Some(stamp) = data.first_chunk()
            {
                self.message(now, Stamp::read(*stamp));
            }
            self.filled = (self.filled + data.len() as u64) % self.cbr.bytes;
            return;
        }
        let prefix = self.cbr.framing.prefix_bytes() as usize;
        while !data.is_empty() {
            let length = self.length();
            let part = data.len().min((length - self.filled) as usize);
            let from = (self.filled as usize).min(prefix + STAMP_BYTES);
            let head = part.min(prefix + STAMP_BYTES - from);
            self.head[from..from + head].copy_from_slice(&data[..head]);
            self.filled += part as u64;
            data = &data[part..];
            if self.filled == self.length() {
                self.filled = 0;
                let stamp = self.head[prefix..].first_chunk().copied().unwrap_or_default();
                self.message(now, Stamp::read(stamp));
            }
        }
    }

    /// Of the present message: as written before it once that is read, else as known.
    fn length(&self) -> u64 {
        let prefix = self.cbr.framing.prefix_bytes();
        match self.cbr.framing {
            Framing::Prefixed if self.filled < prefix => prefix,
            Framing::Prefixed => prefix + u64::from(u16::from_be_bytes([self.head[0], self.head[1]])),
            Framing::Known | Framing::Raw => self.cbr.bytes,
        }
    }

    fn message(&mut self, now: Time, stamp: Stamp) {
        let latency = now.since(stamp.due);
        let late = self.cbr.late_after.is_some_and(|limit| latency > limit);
        let first = self.numbers.insert(stamp.number..stamp.number.saturating_add(1)) > 0;
        self.delivered += 1;
        self.late += u64::from(late);
        self.on_time += u64::from(first && !late);
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

    /// Messages that did not, each counted once, if the traffic says.
    pub fn on_time(&self) -> Option<u64> {
        self.cbr.late_after.map(|_| self.on_time)
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
            framing: Framing::Known,
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
