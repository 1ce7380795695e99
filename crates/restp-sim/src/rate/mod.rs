//! How fast a direction sends, and how that changes. A rate is a function of time alone, drawn or written before anybody
//! sends: the departure of a packet is still known when the packet arrives, and no event is needed where the rate changes.

mod levels;
mod trace;
mod walk;

pub use trace::{DeliveryTrace, TraceError};
pub use walk::Walk;

use crate::spec_error::SpecError;
use levels::Levels;
use restp_base::random::Stream;
use restp_base::time::{Duration, Time};
use restp_base::units::Rate;

/// How fast a direction sends.
#[derive(Clone, Debug, PartialEq)]
pub enum LinkRate {
    /// Always this fast.
    Constant(Rate),
    /// From each of these times on this fast; the first is zero. At 0 bit/s everything waits.
    Steps(Vec<(Time, Rate)>),
    /// Up and down at random.
    Walk(Walk),
    /// At the times of a recording.
    Trace(DeliveryTrace),
}

impl From<Rate> for LinkRate {
    fn from(rate: Rate) -> Self {
        LinkRate::Constant(rate)
    }
}

impl LinkRate {
    /// Its mean over the first `span` of a run. Of a walk it is the expected one, of a trace that of its whole length.
    pub fn mean(&self, span: Duration) -> Rate {
        match self {
            LinkRate::Constant(rate) => *rate,
            LinkRate::Steps(steps) => levels::mean(steps, span),
            LinkRate::Walk(walk) => walk.mean(),
            LinkRate::Trace(trace) => trace.mean(),
        }
    }

    /// Says what is impossible about it.
    ///
    /// # Errors
    /// The first rule that is broken.
    pub fn check(&self) -> Result<(), SpecError> {
        match self {
            LinkRate::Constant(rate) if rate.as_bps() == 0 => Err(SpecError::NoRate),
            LinkRate::Constant(_) | LinkRate::Trace(_) => Ok(()),
            LinkRate::Steps(steps) => levels::check(steps),
            LinkRate::Walk(walk) => walk.check(),
        }
    }
}

/// The running form of a rate that changes, for a line that asks in the order of time.
#[derive(Clone, Debug)]
pub(crate) enum Course {
    Levels(Levels),
    Trace(trace::Process),
}

impl Course {
    /// That of a checked rate, if it changes; a walk draws from the stream `name`.
    pub(crate) fn new(rate: &LinkRate, seed: u64, name: &str) -> Option<Self> {
        match rate {
            LinkRate::Constant(_) => None,
            LinkRate::Steps(steps) => Some(Course::Levels(Levels::steps(steps))),
            LinkRate::Walk(walk) => Some(Course::Levels(Levels::walk(walk, Stream::named(seed, name)))),
            LinkRate::Trace(trace) => Some(Course::Trace(trace::Process::new(trace))),
        }
    }

    /// The line is free at `free`, and has sent `ahead` billionths of a bit more by then than it was asked to. When has
    /// it sent `bytes` on top, and how far ahead is it then?
    pub(crate) fn send(&mut self, free: Time, ahead: u64, bytes: u32) -> (Time, u64) {
        let bits = u128::from(bytes) * 8_000_000_000;
        let Some(work) = bits.checked_sub(u128::from(ahead)).filter(|work| *work > 0) else {
            return (free, ahead - bits as u64);
        };
        match self {
            Course::Levels(levels) => levels.send(free, work),
            Course::Trace(trace) => trace.send(free, work),
        }
    }
}
