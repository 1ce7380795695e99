//! A medium as its user describes it.

use super::place::{Place, Station};
use super::rates::Rates;
use super::timing::{DSSS, Timing};
use restp_base::time::Duration;
use std::collections::BTreeSet;
use thiserror::Error;

/// Most packets that wait at a station.
const MOST_QUEUE: u32 = 1 << 20;
/// Most attempts.
const MOST_RETRIES: u32 = 255;

/// One channel: those who share it, and how far they reach.
#[derive(Clone, Debug, PartialEq)]
pub struct MediumSpec {
    /// Unique name; it also names the random streams of its stations.
    pub name: String,
    /// Frame times and pauses.
    pub timing: Timing,
    /// Which mode data frames take.
    pub rates: Rates,
    /// How far stations reach, with the slowest of these modes.
    pub ranges: Ranges,
    /// A frame of the slowest mode survives others that have together at most this part of its power, one through this number; power falls
    /// with the fourth power of the distance (two-ray ground). Faster modes bear less by what they [need](super::Mode::need).
    /// `None`: every other frame within [`Ranges::interfere`] spoils it.
    pub capture: Option<f64>,
    /// Stations wait for EIFS after every carrier that they do not receive, as in ns-2, and not only after frames that reach them strong
    /// enough to be received (802.11-1999 §9.2.3.4).
    pub eifs_after_carriers: bool,
    /// Packets that wait at a station, whichever neighbour they are for; the one being sent does not count.
    pub queue_packets: u32,
    /// Data frames of more bytes, header included, are preceded by RTS and CTS.
    pub rts_threshold: u32,
    /// So many attempts without a CTS (without an ACK, where there was no RTS), and a packet is dropped.
    pub short_retries: u32,
    /// So many data frames without an ACK after a CTS.
    pub long_retries: u32,
    /// Share of the bits that are flipped in frames on their way to the station they are addressed to.
    pub bit_error_rate: f64,
    /// Its stations, each on a node of its own.
    pub stations: Vec<Station>,
}

impl MediumSpec {
    /// A channel with the numbers of the published chains (CMT §4): 2 Mb/s, control frames too, RTS always.
    pub fn new(name: &str, stations: Vec<Station>) -> Self {
        MediumSpec {
            name: name.into(),
            timing: Timing::dsss(DSSS[1]),
            rates: Rates::Fixed(DSSS[1]),
            ranges: Ranges::default(),
            capture: None,
            eifs_after_carriers: false,
            queue_packets: 50,
            rts_threshold: 0,
            short_retries: 7,
            long_retries: 4,
            bit_error_rate: 0.0,
            stations,
        }
    }

    /// Says what is impossible about this description.
    ///
    /// # Errors
    /// The first rule that is broken.
    pub fn check(&self) -> Result<(), MediumError> {
        self.ranges.check()?;
        if let Some(ratio) = self.capture.filter(|ratio| !(1.0..=1e6).contains(ratio)) {
            return Err(MediumError::Capture(ratio));
        }
        if !(0.0..=1.0).contains(&self.bit_error_rate) {
            return Err(MediumError::BitErrors(self.bit_error_rate));
        }
        for (value, most, error) in [
            (
                self.queue_packets,
                MOST_QUEUE,
                MediumError::Queue as fn(u32) -> MediumError,
            ),
            (self.short_retries, MOST_RETRIES, MediumError::ShortRetries),
            (self.long_retries, MOST_RETRIES, MediumError::LongRetries),
        ] {
            if !(1..=most).contains(&value) {
                return Err(error(value));
            }
        }
        let mut nodes = BTreeSet::new();
        for (index, station) in self.stations.iter().enumerate() {
            let node = || station.node.clone();
            if !nodes.insert(&station.node) {
                return Err(MediumError::Twice { node: node() });
            }
            if let Some((index, place)) =
                (station.places().enumerate()).find(|(_, place)| !place.is_possible())
            {
                return Err(MediumError::NoPlace {
                    node: node(),
                    waypoint: index.checked_sub(1),
                    place,
                });
            }
            if let Some((waypoint, at)) = station.disorder() {
                return Err(MediumError::Waypoint {
                    node: node(),
                    waypoint,
                    at,
                });
            }
            let near = |other: &&Station| other.place.metres_to(station.place) < Ranges::LEAST_METRES;
            if let Some(other) = self.stations[..index].iter().find(near) {
                let other = other.node.clone();
                return Err(MediumError::Overlap { node: node(), other });
            }
        }
        for station in &self.stations {
            self.check_neighbour(station)?;
        }
        Ok(())
    }

    /// A radio that reaches nobody is a mistake.
    fn check_neighbour(&self, station: &Station) -> Result<(), MediumError> {
        let others = self.stations.iter().filter(|other| other.node != station.node);
        let distance = |other: &Station| other.nearest_metres(station);
        let nearest = others.min_by(|a, b| distance(a).total_cmp(&distance(b)));
        let metres = nearest.map(distance);
        let reach = self.reach();
        if metres.is_some_and(|metres| metres <= reach) {
            return Ok(());
        }
        let node = station.node.clone();
        Err(match (nearest, metres) {
            (Some(other), Some(metres)) => MediumError::Alone {
                node,
                nearest: other.node.clone(),
                metres,
                reach,
            },
            _ => MediumError::Single { node },
        })
    }

    /// How far data and the control frames that answer it reach, in metres: faster frames need more power.
    fn reach(&self) -> f64 {
        let need = self.timing.control.need / self.rates.slowest().need;
        self.ranges.decode / need.max(1.0).sqrt().sqrt()
    }
}

/// How far a station is decoded, sensed, and spoils what others receive, in metres (CMT §4.2).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Ranges {
    /// A frame of a station so near is received, unless something spoils it.
    pub decode: f64,
    /// A carrier so near keeps others from transmitting.
    pub sense: f64,
    /// A frame so near spoils every other.
    pub interfere: f64,
}

impl Default for Ranges {
    /// 370, 520 and 812 m.
    fn default() -> Self {
        Ranges {
            decode: 370.0,
            sense: 520.0,
            interfere: 812.0,
        }
    }
}

impl Ranges {
    const LEAST_METRES: f64 = 0.01;

    fn check(&self) -> Result<(), MediumError> {
        let Ranges {
            decode,
            sense,
            interfere,
        } = *self;
        let rising = decode >= Self::LEAST_METRES && sense >= decode && interfere >= decode;
        let bounded = sense <= Place::MOST_METRES && interfere <= Place::MOST_METRES;
        if rising && bounded {
            Ok(())
        } else {
            Err(MediumError::Ranges(*self))
        }
    }
}

/// What is impossible about a [`MediumSpec`].
#[derive(Clone, Debug, PartialEq, Error)]
pub enum MediumError {
    /// Ranges of which a smaller one should be larger.
    #[error(
        "stations cannot be decoded to {} m, sensed to {} m and interfere to {} m; decode reaches {} m or further, sense and \
         interfere at least as far as decode, and none further than {} m", .0.decode, .0.sense, .0.interfere, Ranges::LEAST_METRES, Place::MOST_METRES
    )]
    Ranges(Ranges),
    /// A frame that would survive stronger ones.
    #[error(
        "capture at a ratio of {0} is impossible; write how many times stronger than all others a frame has to be, 1 to 1000000"
    )]
    Capture(f64),
    /// A queue for nothing, or for too much.
    #[error("a queue of {0} packets is impossible; write 1 to {MOST_QUEUE}")]
    Queue(u32),
    /// No attempt, or too many.
    #[error("{0} attempts without CTS are impossible; write 1 to {MOST_RETRIES}")]
    ShortRetries(u32),
    /// No attempt, or too many.
    #[error("{0} attempts without ACK are impossible; write 1 to {MOST_RETRIES}")]
    LongRetries(u32),
    /// A share that is none.
    #[error("{0} is no share of the bits; write a number from 0 to 1")]
    BitErrors(f64),
    /// Two radios of one node on one medium.
    #[error("node \"{node}\" has two radios on one channel; name each channel once")]
    Twice {
        /// The node.
        node: String,
    },
    /// A place that is none.
    #[error("\"{node}\" cannot stand at ({}, {}) m; write metres from -{} to {}", .place.x, .place.y, Place::MOST_METRES, Place::MOST_METRES)]
    NoPlace {
        /// The node.
        node: String,
        /// Which of its waypoints; none: where it begins.
        waypoint: Option<usize>,
        /// Where.
        place: Place,
    },
    /// A waypoint before one that is written before it.
    #[error(
        "\"{node}\" cannot be anywhere at {at} that comes after where it was before; write waypoints in the order of time, after 0 s"
    )]
    Waypoint {
        /// The node.
        node: String,
        /// Which of them.
        waypoint: usize,
        /// When.
        at: Duration,
    },
    /// Two stations in one place.
    #[error("\"{node}\" stands where \"{other}\" does; move one of them by a centimetre or more")]
    Overlap {
        /// The node.
        node: String,
        /// The one there before.
        other: String,
    },
    /// A radio that reaches nobody.
    #[error(
        "the radio of \"{node}\" has no link: its nearest neighbour \"{nearest}\" comes no nearer than {metres:.1} m and frames reach {reach:.0} m; \
         move them together, raise decode_m, or send control frames slower where they are faster than data"
    )]
    Alone {
        /// The node.
        node: String,
        /// Who is nearest.
        nearest: String,
        /// How far.
        metres: f64,
        /// How far frames reach.
        reach: f64,
    },
    /// A channel of one station.
    #[error("the radio of \"{node}\" has no link: nobody else is on its channel; add a [[station]] with it")]
    Single {
        /// The node.
        node: String,
    },
}
