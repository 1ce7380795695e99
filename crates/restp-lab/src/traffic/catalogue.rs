//! Objects that many want: a consumer asks for one after the other, each drawn by its popularity, and a server answers whoever asks.
//! Over connections a request is written and its answer read in one flow; where objects are asked for without a connection, each
//! request is a flow of its own.

use super::TrafficError;
use super::distribution::exponential;
use super::pattern;
use super::popularity::Popularity;
use bytes::{BufMut, Bytes, BytesMut};
use restp_base::flow::{FlowId, WriteError};
use restp_base::machine::Machine;
use restp_base::random::Stream;
use restp_base::time::{Duration, Time};
use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

/// What one consumer asks for.
#[derive(Clone, Debug, PartialEq)]
pub struct Catalogue {
    /// How often each object is wanted.
    pub popularity: Arc<Popularity>,
    /// Bytes of each.
    pub bytes: u64,
    /// How many requests.
    pub requests: u64,
    /// Mean of the pause before the next request, which is exponential; none when absent.
    pub pause: Option<Duration>,
    /// Each request is a flow of its own.
    pub is_connectionless: bool,
}

/// Bytes of a request: the number of the object, and its length.
const REQUEST_BYTES: usize = 16;

/// The consumer.
#[derive(Debug)]
pub(super) struct Visitor {
    catalogue: Catalogue,
    stream: Stream,
    state: State,
    /// Requests that were made.
    asked: u64,
    /// Bytes that are not those of their object.
    wrong: u64,
    complete: Option<Time>,
    /// The transport is full; it will say when there is room.
    blocked: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// The next request is due.
    Asks {
        at: Time,
    },
    /// So many bytes of the object have come.
    Reads {
        object: u64,
        read: u64,
    },
    Done,
}

impl Visitor {
    pub fn new(catalogue: Catalogue, stream: Stream) -> Self {
        Visitor {
            catalogue,
            stream,
            state: State::Asks { at: Time::MAX },
            asked: 0,
            wrong: 0,
            complete: None,
            blocked: false,
        }
    }

    pub fn begin(&mut self, now: Time) {
        self.state = State::Asks { at: now };
    }

    pub fn next(&self) -> Time {
        match self.state {
            State::Asks { at } if !self.blocked => at,
            _ => Time::MAX,
        }
    }

    pub fn is_connectionless(&self) -> bool {
        self.catalogue.is_connectionless
    }

    /// The request that is due, if one is.
    pub fn take_request(&mut self, now: Time) -> Option<Bytes> {
        if !matches!(self.state, State::Asks { at } if at <= now) {
            return None;
        }
        let object = self.catalogue.popularity.draw(&mut self.stream);
        self.state = State::Reads { object, read: 0 };
        self.asked += 1;
        Some(request(object, self.catalogue.bytes))
    }

    /// Writes the request that is due, if it fits.
    pub fn pump(&mut self, now: Time, machine: &mut dyn Machine, flow: FlowId) -> Result<(), TrafficError> {
        self.blocked = false;
        let (stream, state) = (self.stream.clone(), self.state);
        let Some(request) = self.take_request(now) else {
            return Ok(());
        };
        match machine.write(now, flow, request) {
            Ok(()) => Ok(()),
            Err(WriteError::Blocked) => {
                // The same is asked for when there is room.
                (self.stream, self.state, self.blocked) = (stream, state, true);
                self.asked -= 1;
                Ok(())
            }
            Err(WriteError::Closed) => {
                self.state = State::Done;
                Ok(())
            }
            Err(error) => Err(TrafficError::Message(error)),
        }
    }

    /// The next bytes of the object. Has all of it come?
    pub fn take(&mut self, now: Time, data: &[u8]) -> bool {
        let State::Reads { object, read } = self.state else {
            self.wrong += data.len() as u64; // more than was asked for
            return false;
        };
        self.wrong += pattern::wrong(place(object, self.catalogue.bytes) + read, data);
        let read = read + data.len() as u64;
        if read < self.catalogue.bytes {
            self.state = State::Reads { object, read };
            return false;
        }
        self.wrong += read - self.catalogue.bytes;
        self.state = if self.asked < self.catalogue.requests {
            let pause = self
                .catalogue
                .pause
                .map_or(0.0, |mean| exponential(&mut self.stream, mean.as_nanos() as f64));
            State::Asks {
                at: now + Duration::from_nanos(pause as u64),
            }
        } else {
            self.complete = Some(now);
            State::Done
        };
        true
    }

    /// Requests that were made.
    pub fn asked(&self) -> u64 {
        self.asked
    }
    pub fn wrong(&self) -> u64 {
        self.wrong
    }
    /// When the last object was read.
    pub fn complete(&self) -> Option<Time> {
        self.complete
    }
}

/// Where the bytes of an object stand in the pattern.
fn place(object: u64, bytes: u64) -> u64 {
    object.wrapping_mul(bytes) % (1 << 48)
}

fn request(object: u64, bytes: u64) -> Bytes {
    let mut request = BytesMut::with_capacity(REQUEST_BYTES);
    request.put_u64(object);
    request.put_u64(bytes);
    request.freeze()
}

/// The server: what each of its flows has asked for, and what is still to be written to it.
#[derive(Debug)]
pub(super) struct Librarian {
    is_connectionless: bool,
    desks: BTreeMap<FlowId, Desk>,
}

#[derive(Debug, Default)]
struct Desk {
    /// Bytes of the present request.
    filled: Vec<u8>,
    /// Place in the pattern and bytes to write, of each object that was asked for.
    queue: VecDeque<(u64, u64)>,
}

impl Librarian {
    pub fn new(catalogue: &Catalogue) -> Self {
        Librarian {
            is_connectionless: catalogue.is_connectionless,
            desks: BTreeMap::new(),
        }
    }

    /// Takes part of a request.
    pub fn take(&mut self, flow: FlowId, mut data: &[u8]) {
        let desk = self.desks.entry(flow).or_default();
        while !data.is_empty() {
            let part = data.len().min(REQUEST_BYTES - desk.filled.len());
            desk.filled.extend_from_slice(&data[..part]);
            data = &data[part..];
            if desk.filled.len() == REQUEST_BYTES {
                let (object, bytes) = desk.filled.split_at(8);
                let number = |field: &[u8]| field.iter().fold(0u64, |sum, byte| sum << 8 | u64::from(*byte));
                let (object, bytes) = (number(object), number(bytes));
                desk.queue.push_back((place(object, bytes), bytes));
                desk.filled.clear();
            }
        }
    }

    /// Writes as much of the answers as there is room for.
    pub fn pump(&mut self, now: Time, machine: &mut dyn Machine, flow: FlowId) {
        let Some(desk) = self.desks.get_mut(&flow) else {
            return;
        };
        let mut most = pattern::MOST;
        while let Some((place, left)) = desk.queue.front_mut() {
            let size = (*left).min(most as u64) as usize;
            let piece = Bytes::from_static(pattern::piece(*place, size));
            match machine.write(now, flow, piece) {
                Ok(()) => (*place, *left) = (*place + size as u64, *left - size as u64),
                Err(WriteError::TooLarge { limit, .. }) if (1..size).contains(&limit) => most = limit,
                Err(_) => return,
            }
            if *left == 0 {
                desk.queue.pop_front();
            }
        }
        if self.is_connectionless {
            machine.finish(now, flow);
            machine.release(now, flow);
            self.desks.remove(&flow);
        }
    }

    /// The flow is over.
    pub fn close(&mut self, flow: FlowId) {
        self.desks.remove(&flow);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn visitor(objects: u64, requests: u64) -> Visitor {
        let catalogue = Catalogue {
            popularity: Arc::new(Popularity::zipf(objects, 0.8)),
            bytes: 100_000,
            requests,
            pause: None,
            is_connectionless: true,
        };
        let mut visitor = Visitor::new(catalogue, Stream::named(1, "flow/a/traffic"));
        visitor.begin(Time::ZERO);
        visitor
    }

    fn written(object: u64) -> Vec<u8> {
        let start = place(object, 100_000);
        let halves = [
            pattern::piece(start, 50_000),
            pattern::piece(start + 50_000, 50_000),
        ];
        halves.concat()
    }

    #[test]
    fn each_object_has_bytes_of_its_own_and_others_are_seen() {
        let mut visitor = visitor(50, 3);
        for request in 1..=3 {
            let message = visitor.take_request(Time::ZERO).expect("it is due");
            assert!(visitor.take_request(Time::ZERO).is_none(), "one at a time");
            let State::Reads { object, .. } = visitor.state else {
                panic!("it reads")
            };
            assert_eq!(
                message[..],
                [object.to_be_bytes(), 100_000u64.to_be_bytes()].concat()
            );
            let bytes = written(if request == 2 { object + 1 } else { object });
            assert!(!visitor.take(Time::ZERO, &bytes[..60_000]));
            assert!(visitor.take(Time::ZERO, &bytes[60_000..]));
            assert_eq!(visitor.wrong() > 90_000, request >= 2);
        }
        assert_eq!((visitor.asked(), visitor.complete()), (3, Some(Time::ZERO)));
        assert_eq!(visitor.next(), Time::MAX);
    }

    #[test]
    fn requests_are_understood_however_they_are_cut() {
        let requests = [request(7, 300), request(2, 70)].concat();
        for cut in [1, 3, 15, 16, 17, 32] {
            let mut librarian = Librarian::new(&visitor(10, 1).catalogue);
            requests
                .chunks(cut)
                .for_each(|part| librarian.take(FlowId(1), part));
            let queue = &librarian.desks[&FlowId(1)].queue;
            assert_eq!(*queue, [(2100, 300), (140, 70)], "cut in parts of {cut}");
        }
    }
}
