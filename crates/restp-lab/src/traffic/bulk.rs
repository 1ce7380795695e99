//! Bytes as fast as the transport takes them. Every write shares one static buffer, so nothing is copied.

use super::{TrafficError, pattern};
use bytes::Bytes;
use restp_base::flow::{FlowId, WriteError};
use restp_base::machine::Machine;
use restp_base::time::Time;

/// More than any window takes at one instant: 64 MiB is 5 s of a 100 Mbit/s path.
const FLOOD_BYTES: u64 = 64 << 20;

#[derive(Debug)]
pub(super) struct Source {
    left: u64,
    written: u64,
    /// Bytes per write; shrinks when the transport takes whole messages only.
    chunk: usize,
    finished: bool,
    /// Bytes taken at `instant`.
    taken: u64,
    instant: Time,
}

impl Source {
    pub fn new(bytes: u64) -> Self {
        Source {
            left: bytes,
            written: 0,
            chunk: pattern::MOST,
            finished: false,
            taken: 0,
            instant: Time::ZERO,
        }
    }

    pub fn pump(&mut self, now: Time, machine: &mut dyn Machine, flow: FlowId) -> Result<(), TrafficError> {
        if self.instant != now {
            (self.instant, self.taken) = (now, 0);
        }
        while self.left > 0 {
            let size = self.left.min(self.chunk as u64) as usize;
            let data = Bytes::from_static(pattern::piece(self.written, size));
            match machine.write(now, flow, data) {
                Ok(()) => {
                    self.left -= size as u64;
                    self.written += size as u64;
                    self.taken += size as u64;
                }
                Err(WriteError::TooLarge { limit, .. }) if (1..size).contains(&limit) => self.chunk = limit,
                Err(_) => return Ok(()),
            }
            if self.taken > FLOOD_BYTES {
                return Err(TrafficError::Unlimited { taken: self.taken });
            }
        }
        if !std::mem::replace(&mut self.finished, true) {
            machine.finish(now, flow);
        }
        Ok(())
    }
}
