//! Which mode the data frames between two stations take.

use super::minstrel::Minstrel;
use super::timing::Mode;
use restp_base::random::Stream;
use restp_base::time::Time;

/// How a medium chooses it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Rates {
    /// Always this one.
    Fixed(Mode),
    /// One of these, slowest first, by what arrived before.
    Minstrel(&'static [Mode]),
}

impl Rates {
    /// The mode that reaches furthest: ranges are meant for it.
    pub fn slowest(&self) -> Mode {
        match self {
            Rates::Fixed(mode) => *mode,
            Rates::Minstrel(modes) => modes[0],
        }
    }

    /// The fastest one.
    pub fn fastest(&self) -> Mode {
        match self {
            Rates::Fixed(mode) => *mode,
            Rates::Minstrel(modes) => modes[modes.len() - 1],
        }
    }
}

/// The choice for one hop.
#[derive(Clone, Debug)]
pub(super) enum Chooser {
    Fixed(Mode),
    Minstrel(Box<Minstrel>),
}

impl Chooser {
    pub(super) fn new(rates: &Rates, stream: impl FnOnce() -> Stream) -> Self {
        match rates {
            Rates::Fixed(mode) => Chooser::Fixed(*mode),
            Rates::Minstrel(modes) => Chooser::Minstrel(Box::new(Minstrel::new(modes, stream()))),
        }
    }

    /// The mode of attempt number `attempt` (from 0) of a frame.
    pub(super) fn choose(&mut self, now: Time, attempt: u32) -> Mode {
        match self {
            Chooser::Fixed(mode) => *mode,
            Chooser::Minstrel(minstrel) => minstrel.choose(now, attempt),
        }
    }

    /// What came of a data frame.
    pub(super) fn on_attempt(&mut self, mode: Mode, acknowledged: bool) {
        if let Chooser::Minstrel(minstrel) = self {
            minstrel.on_attempt(mode, acknowledged);
        }
    }
}
