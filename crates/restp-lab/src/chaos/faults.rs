//! What breaks, where and when. Everything but a path that is dead for ever is over when the network heals; from then on
//! progress is demanded.

use super::{Side, skewed};
use restp_base::random::Stream;
use serde::{Deserialize, Serialize};
use std::ops::Range;

/// One fault. Those of a wire hit what `from` sends over hop `hop`, until the network heals.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case", deny_unknown_fields)]
pub enum Fault {
    /// Packets vanish one by one.
    Loss {
        /// The hop, from 0.
        hop: usize,
        /// Whose packets.
        from: Side,
        /// Probability per packet.
        rate: f64,
    },
    /// Packets vanish in runs.
    Burst {
        /// The hop, from 0.
        hop: usize,
        /// Whose packets.
        from: Side,
        /// Probability that one begins, per packet.
        rate: f64,
        /// Longest run.
        longest: u64,
    },
    /// Packets are overtaken.
    Reorder {
        /// The hop, from 0.
        hop: usize,
        /// Whose packets.
        from: Side,
        /// Probability per packet.
        rate: f64,
        /// By how much they come later.
        extra_ms: u64,
    },
    /// Packets come twice.
    Duplicate {
        /// The hop, from 0.
        hop: usize,
        /// Whose packets.
        from: Side,
        /// Probability per packet.
        rate: f64,
    },
    /// A bit flips. Only compositions with CRC promise anything then.
    Corrupt {
        /// The hop, from 0.
        hop: usize,
        /// Whose packets.
        from: Side,
        /// Probability per packet.
        rate: f64,
    },
    /// Nothing passes.
    Outage {
        /// The hop, from 0.
        hop: usize,
        /// Whose packets.
        from: Side,
        /// Its beginning.
        from_ms: u64,
        /// Its end.
        until_ms: u64,
    },
    /// Nothing passes any more, ever. At least one path lives.
    Kill {
        /// The hop, from 0.
        hop: usize,
        /// Whose packets.
        from: Side,
        /// Its beginning.
        at_ms: u64,
    },
    /// Nothing passes either way, again and again.
    Flap {
        /// The hop, from 0.
        hop: usize,
        /// The first outage begins.
        from_ms: u64,
        /// None begins or lasts any more.
        until_ms: u64,
        /// Length of each outage.
        down_ms: u64,
        /// From one to the next.
        up_ms: u64,
    },
    /// Nothing passes, and the sender's lower layer says so for each packet.
    Refuse {
        /// The hop, from 0.
        hop: usize,
        /// Whose packets.
        from: Side,
        /// Its beginning.
        from_ms: u64,
        /// Its end.
        until_ms: u64,
    },
    /// A translator of addresses forgets: the client's packets come from another address from now on, and what is sent to
    /// the old one is lost.
    Rebind {
        /// The path, from 0.
        path: usize,
        /// When.
        at_ms: u64,
    },
    /// The lower layer reports that the address of a path works or does not, rightly or wrongly.
    Notice {
        /// To whom.
        side: Side,
        /// The path, from 0.
        path: usize,
        /// When.
        at_ms: u64,
        /// What it says.
        up: bool,
    },
    /// A machine loses everything it knew and starts again at the same address; the client begins anew.
    Restart {
        /// Whose.
        side: Side,
        /// When.
        at_ms: u64,
    },
    /// A clock leaps forwards between two inputs, as after a suspension.
    ClockJump {
        /// Whose.
        side: Side,
        /// When.
        at_ms: u64,
        /// How far.
        by_ms: u64,
    },
    /// A reader does not read, and its window fills up.
    PauseReading {
        /// Whose.
        side: Side,
        /// From when.
        from_ms: u64,
        /// Until when.
        until_ms: u64,
    },
    /// A writer ends before its plan does.
    Finish {
        /// Whose.
        side: Side,
        /// When.
        at_ms: u64,
    },
    /// An application breaks off.
    Abort {
        /// Whose.
        side: Side,
        /// When.
        at_ms: u64,
    },
}

/// Faults of one run, at most.
const MOST: u64 = 7;

/// A schedule for a path of `hops` that heals at `heal_ms`. Bits flip only where `crc` protects them.
pub fn draw(draw: &mut Stream, hops: usize, heal_ms: u64, crc: bool) -> Vec<Fault> {
    let faults = (0..draw.below(MOST + 1)).map(|_| one(draw, hops, heal_ms));
    faults
        .filter(|fault| crc || !matches!(fault, Fault::Corrupt { .. }))
        .collect()
}

fn one(draw: &mut Stream, hops: usize, heal_ms: u64) -> Fault {
    let hop = draw.below(hops as u64) as usize;
    let from = Side::BOTH[draw.below(2) as usize];
    let side = from;
    let at_ms = draw.below(heal_ms);
    let until_ms = at_ms + 1 + draw.below(heal_ms - at_ms);
    let rate = 0.3 * draw.unit();
    match draw.below(20) {
        0..4 => Fault::Loss { hop, from, rate },
        4..6 => Fault::Burst {
            hop,
            from,
            rate: rate / 5.0,
            longest: 1 + draw.below(12),
        },
        6..9 => Fault::Reorder {
            hop,
            from,
            rate,
            extra_ms: 1 + skewed(draw, 500),
        },
        9..11 => Fault::Duplicate { hop, from, rate },
        11..13 => Fault::Corrupt { hop, from, rate },
        13 | 14 => Fault::Outage {
            hop,
            from,
            from_ms: at_ms,
            until_ms,
        },
        15 => Fault::Restart { side, at_ms },
        16 => Fault::ClockJump {
            side,
            at_ms,
            by_ms: 1 << draw.below(15),
        },
        17 => Fault::PauseReading {
            side,
            from_ms: at_ms,
            until_ms,
        },
        18 => Fault::Finish { side, at_ms },
        _ => Fault::Abort { side, at_ms },
    }
}

impl Fault {
    /// The hop of a fault of a wire, to be changed where hops are counted anew.
    pub fn hop_mut(&mut self) -> Option<&mut usize> {
        match self {
            Fault::Loss { hop, .. }
            | Fault::Burst { hop, .. }
            | Fault::Reorder { hop, .. }
            | Fault::Duplicate { hop, .. }
            | Fault::Corrupt { hop, .. }
            | Fault::Outage { hop, .. }
            | Fault::Kill { hop, .. }
            | Fault::Flap { hop, .. }
            | Fault::Refuse { hop, .. } => Some(hop),
            Fault::Restart { .. }
            | Fault::ClockJump { .. }
            | Fault::PauseReading { .. }
            | Fault::Finish { .. }
            | Fault::Abort { .. }
            | Fault::Rebind { .. }
            | Fault::Notice { .. } => None,
        }
    }

    /// The hop of a fault of a wire.
    pub fn hop(&self) -> Option<usize> {
        self.clone().hop_mut().copied()
    }

    /// The path of a fault of a whole path.
    pub fn path_mut(&mut self) -> Option<&mut usize> {
        match self {
            Fault::Rebind { path, .. } | Fault::Notice { path, .. } => Some(path),
            _ => None,
        }
    }

    /// Does it hit what `sender` sends over `hop`?
    pub fn hits(&self, hop: usize, sender: Side) -> bool {
        let way = match self {
            Fault::Loss { from, .. }
            | Fault::Burst { from, .. }
            | Fault::Reorder { from, .. }
            | Fault::Duplicate { from, .. }
            | Fault::Corrupt { from, .. }
            | Fault::Outage { from, .. }
            | Fault::Kill { from, .. }
            | Fault::Refuse { from, .. } => *from == sender,
            _ => true,
        };
        way && self.hop() == Some(hop)
    }

    /// The outages of a path that flaps, in milliseconds.
    pub fn downs(&self) -> impl Iterator<Item = Range<u64>> {
        let (from, until, down, up) = match *self {
            Fault::Flap {
                from_ms,
                until_ms,
                down_ms,
                up_ms,
                ..
            } => (from_ms, until_ms, down_ms, up_ms),
            _ => (0, 0, 1, 1),
        };
        let starts = (from..until).step_by((down + up).max(1) as usize);
        starts.map(move |start| start..(start + down).min(until))
    }

    /// Last moment at which it does anything, where it says so itself.
    fn last_ms(&self) -> u64 {
        match *self {
            Fault::Outage { until_ms, .. }
            | Fault::PauseReading { until_ms, .. }
            | Fault::Flap { until_ms, .. }
            | Fault::Refuse { until_ms, .. } => until_ms,
            Fault::Restart { at_ms, .. }
            | Fault::ClockJump { at_ms, .. }
            | Fault::Finish { at_ms, .. }
            | Fault::Abort { at_ms, .. }
            | Fault::Kill { at_ms, .. }
            | Fault::Rebind { at_ms, .. }
            | Fault::Notice { at_ms, .. } => at_ms,
            Fault::Loss { .. }
            | Fault::Burst { .. }
            | Fault::Reorder { .. }
            | Fault::Duplicate { .. }
            | Fault::Corrupt { .. } => 0,
        }
    }

    /// Says what is impossible about it.
    ///
    /// # Errors
    /// The rule that is broken.
    pub fn check(&self, hops: usize, paths: usize, heal_ms: u64, crc: bool) -> Result<(), String> {
        if matches!(self, Fault::Corrupt { .. }) && !crc {
            return Err(
                "nobody promises anything about flipped bits without crc; choose crc = \"on\"".into(),
            );
        }
        if let Some(hop) = self.hop().filter(|hop| *hop >= hops) {
            return Err(format!("there is no hop {hop}; the last one is {}", hops - 1));
        }
        if let Some(path) = self.clone().path_mut().filter(|path| **path >= paths) {
            return Err(format!("there is no path {path}; the last one is {}", paths - 1));
        }
        if matches!(self, Fault::Flap { down_ms, up_ms, .. } if *down_ms == 0 || *up_ms == 0) {
            return Err("a path that flaps is down and up for at least 1 ms each".into());
        }
        if self.last_ms() > heal_ms {
            return Err(format!(
                "it goes on until {} ms, and everything is whole from {heal_ms} ms on; let it end before",
                self.last_ms()
            ));
        }
        if let Fault::Outage {
            from_ms, until_ms, ..
        }
        | Fault::PauseReading {
            from_ms, until_ms, ..
        }
        | Fault::Flap {
            from_ms, until_ms, ..
        }
        | Fault::Refuse {
            from_ms, until_ms, ..
        } = self
            && from_ms >= until_ms
        {
            return Err(format!(
                "it ends at {until_ms} ms, before it begins at {from_ms} ms"
            ));
        }
        Ok(())
    }
}
