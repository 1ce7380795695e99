//! Messages at a constant rate. The first 16 bytes of each carry its number and the time at which it was due, so
//! that the receiver can tell what is lost and what is late.

use super::TrafficError;
use bytes::{BufMut, Bytes, BytesMut};
use restp_base::flow::{FlowId, WriteError};
use restp_base::machine::{Machine, PathAddress};
use restp_base::time::{Duration, Time};

/// A stream of equal messages at equal intervals.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cbr {
    /// Bytes per message.
    pub bytes: u64,
    /// Time from one message to the next.
    pub interval: Duration,
    /// How many messages; without end when absent.
    pub count: Option<u64>,
    /// A message that takes longer than this counts as late; without it none does.
    pub late_after: Option<Duration>,
    /// How the receiver finds messages in a stream of bytes.
    pub framing: Framing,
}

/// How a receiver tells one message from the next. Transports that keep boundaries make no difference between them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Framing {
    /// It knows how long they are.
    Known,
    /// Two bytes before each say how long it is.
    Prefixed,
    /// It takes what one read returns for one message, as if a stream kept boundaries: messages that were merged, and
    /// the rest of one that was split, have no head and are lost.
    Raw,
}

impl Framing {
    /// Bytes before each message.
    pub(super) const fn prefix_bytes(self) -> u64 {
        match self {
            Framing::Prefixed => 2,
            Framing::Known | Framing::Raw => 0,
        }
    }
}

impl Cbr {
    /// Bytes of number and time.
    pub const STAMP_BYTES: u64 = 16;
    /// Longest message.
    pub const MOST_BYTES: u64 = 1 << 20;
}

/// Number and due time, as they stand at the start of each message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Stamp {
    pub number: u64,
    pub due: Time,
}

impl Stamp {
    pub fn read(bytes: [u8; Cbr::STAMP_BYTES as usize]) -> Stamp {
        let whole = u128::from_be_bytes(bytes);
        Stamp {
            number: (whole >> 64) as u64,
            due: Time::from_nanos(whole as u64),
        }
    }
}

#[derive(Debug)]
pub(super) struct Source {
    cbr: Cbr,
    /// Where the messages go; the transport chooses when absent.
    path: Option<PathAddress>,
    next_number: u64,
    next_due: Time,
    /// The transport is full; it will say when there is room.
    blocked: bool,
    finished: bool,
    /// Messages are cut from here; the buffer is used again once all of them are gone.
    arena: BytesMut,
}

const ARENA_BYTES: usize = 256 << 10;

impl Source {
    pub fn new(cbr: Cbr, path: Option<PathAddress>) -> Self {
        let next_due = Time::MAX;
        Source {
            cbr,
            path,
            next_number: 0,
            next_due,
            blocked: false,
            finished: false,
            arena: BytesMut::new(),
        }
    }

    pub fn begin(&mut self, now: Time) {
        self.next_due = now;
    }

    pub fn next(&self) -> Time {
        if self.blocked || self.finished {
            Time::MAX
        } else {
            self.next_due
        }
    }

    pub fn sent(&self) -> u64 {
        self.next_number
    }

    /// Messages that found no room keep the time at which they were due.
    pub fn pump(&mut self, now: Time, machine: &mut dyn Machine, flow: FlowId) -> Result<(), TrafficError> {
        self.blocked = false;
        while self.next_due <= now && !self.finished {
            let message = self.message();
            let written = match self.path {
                Some(path) => machine.write_on(now, flow, message, path),
                None => machine.write(now, flow, message),
            };
            match written {
                Ok(()) => {}
                Err(WriteError::Blocked) => {
                    self.blocked = true;
                    return Ok(());
                }
                Err(WriteError::Closed) => {
                    self.finished = true;
                    return Ok(());
                }
                Err(error) => return Err(TrafficError::Message(error)),
            }
            self.next_number += 1;
            self.next_due += self.cbr.interval;
            if self.cbr.count == Some(self.next_number) {
                self.finished = true;
                machine.finish(now, flow);
            }
        }
        Ok(())
    }

    fn message(&mut self) -> Bytes {
        let size = (self.cbr.framing.prefix_bytes() + self.cbr.bytes) as usize;
        if self.arena.capacity() < size {
            self.arena.reserve(ARENA_BYTES.max(size));
        }
        if self.cbr.framing == Framing::Prefixed {
            self.arena.put_u16(self.cbr.bytes as u16);
        }
        self.arena.put_u64(self.next_number);
        self.arena.put_u64(self.next_due.as_nanos());
        self.arena.resize(size, 0);
        self.arena.split().freeze()
    }
}
