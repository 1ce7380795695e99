//! `[[medium]]` and `[[station]]` tables, validated: channels of 802.11 and who stands where.

use super::names::{Copy as Copied, copies, expand};
use super::raw::{RawMedium, RawScenario, RawStation};
use crate::unknown::unknown;
use restp_base::time::Time;
use restp_base::units::{self, Rate};
use restp_sim::config::{Exactly, Fault, Written, read};
use restp_sim::medium::timing::{DSSS, DSSS_SHORT, LLC_BYTES, OFDM};
use restp_sim::medium::{MediumError, MediumSpec, Mode, Place, Ranges, Rates, Station, Timing};
use std::collections::BTreeMap;
use toml::Spanned;

/// Each may hear each.
const MOST_STATIONS: usize = 4096;

/// The media of a scenario with their stations.
pub(super) fn media(raw: &RawScenario) -> Result<Vec<MediumSpec>, Fault> {
    let mut media = raw.medium.iter().map(channel).collect::<Result<Vec<_>, _>>()?;
    if let Some((again, name)) = (raw.medium.iter().zip(&media).enumerate()).find_map(|(n, (table, spec))| {
        media[..n]
            .iter()
            .any(|one| one.name == spec.name)
            .then_some((table, &spec.name))
    }) {
        let sentence = format!("two media are called \"{name}\"; every medium needs a name of its own");
        return Err(Fault::at(&again.name, sentence));
    }
    let mut written = BTreeMap::new();
    for table in &raw.station {
        for copy in copies(&table.name, table.count.as_ref())? {
            let node = name(table, copy)?;
            if written.insert(node.clone(), table).is_some() {
                let sentence =
                    format!("two stations are called \"{node}\"; every station needs a name of its own");
                return Err(Fault::at(&table.name, sentence));
            }
            for channel in table.media.get_ref() {
                let known = media.iter().map(|medium| medium.name.as_str());
                let Some(index) = known.clone().position(|known| known == channel.get_ref()) else {
                    return Err(Fault::at(channel, unknown("medium", channel.get_ref(), known)));
                };
                media[index].stations.push(Station {
                    waypoints: waypoints(table, copy)?,
                    ..Station::new(&node, place(table, copy))
                });
            }
        }
        if written.len() > MOST_STATIONS {
            let sentence = format!("more than {MOST_STATIONS} stations are too many for one network");
            return Err(Fault::at(&table.name, sentence));
        }
        if table.media.get_ref().is_empty() {
            let sentence = "a station without a medium hears nobody; name the channels of its radios";
            return Err(Fault::at(&table.media, sentence));
        }
    }
    for (table, medium) in raw.medium.iter().zip(&media) {
        if medium.stations.is_empty() {
            let sentence = format!(
                "no station has a radio on \"{0}\"; write media = [\"{0}\"] in a [[station]]",
                medium.name
            );
            return Err(Fault::at(&table.name, sentence));
        }
        medium.check().map_err(|error| blame(table, &written, &error))?;
    }
    Ok(media)
}

/// A channel, still without stations.
fn channel(raw: &RawMedium) -> Result<MediumSpec, Fault> {
    let usual = MediumSpec::new(&expand(&raw.name, None)?, vec![]);
    let standard = match &raw.standard {
        Some(written) => named(written, "standard", &Standard::ALL)?,
        None => Standard::B,
    };
    let standard = match &raw.preamble {
        Some(written) => standard.with_preamble(written)?,
        None => standard,
    };
    let modes = standard.modes();
    let rates = match &raw.rate {
        Some(written) if written.get_ref().as_str() == ADAPTED => Rates::Minstrel(modes),
        Some(written) => Rates::Fixed(mode(written, standard, Some(ADAPTED))?),
        None if standard != Standard::G => Rates::Fixed(modes[1]),
        None => Rates::Minstrel(modes),
    };
    let control = match &raw.control_rate {
        Some(written) => mode(written, standard, None)?,
        None if standard != Standard::G => modes[1],
        None => modes[0],
    };
    if let (Some(capture), Some(_)) = (&raw.capture, &raw.interfere_m) {
        let sentence =
            "where frames survive weaker ones, power says what spoils them; leave out capture or interfere_m";
        return Err(Fault::at(capture, sentence));
    }
    let metres =
        |written: &Option<Spanned<f64>>, usual| written.as_ref().map_or(usual, |metres| *metres.get_ref());
    let count = |written: &Option<Spanned<u64>>, usual| match written {
        Some(count) => u32::try_from(*count.get_ref()).unwrap_or(u32::MAX),
        None => usual,
    };
    let bytes = |written: &Spanned<Written>| read(written, units::bytes);
    let mut timing = standard.timing(control);
    if raw.llc {
        timing.data_header += LLC_BYTES;
    }
    Ok(MediumSpec {
        timing,
        rates,
        capture: raw.capture.as_ref().map(|ratio| *ratio.get_ref()),
        eifs_after_carriers: match &raw.eifs {
            Some(written) => named(written, "rule of EIFS", &[("frames", false), ("carriers", true)])?,
            None => usual.eifs_after_carriers,
        },
        ranges: Ranges {
            decode: metres(&raw.decode_m, usual.ranges.decode),
            sense: metres(&raw.sense_m, usual.ranges.sense),
            interfere: metres(&raw.interfere_m, usual.ranges.interfere),
        },
        queue_packets: count(&raw.queue_packets, usual.queue_packets),
        rts_threshold: match &raw.rts_threshold {
            Some(written) => u32::try_from(bytes(written)?).unwrap_or(u32::MAX),
            None => usual.rts_threshold,
        },
        short_retries: count(&raw.short_retries, usual.short_retries),
        long_retries: count(&raw.long_retries, usual.long_retries),
        bit_error_rate: raw.bit_errors.as_ref().map_or(0.0, |rate| *rate.get_ref()),
        ..usual
    })
}

/// What a standard brings.
#[derive(Clone, Copy, PartialEq)]
enum Standard {
    B,
    /// With a short preamble.
    BShort,
    G,
}

/// In the place of a rate.
const ADAPTED: &str = "minstrel";

impl Standard {
    const ALL: [(&'static str, Standard); 2] = [("802.11b", Standard::B), ("802.11g", Standard::G)];

    /// 802.11b has a choice, OFDM has not.
    fn with_preamble(self, written: &Spanned<String>) -> Result<Self, Fault> {
        let is_short = named(written, "preamble", &[("long", false), ("short", true)])?;
        match self {
            Standard::G => Err(Fault::at(
                written,
                "802.11g has one preamble; leave this out, or write standard = \"802.11b\"",
            )),
            _ if is_short => Ok(Standard::BShort),
            _ => Ok(self),
        }
    }

    fn modes(self) -> &'static [Mode] {
        match self {
            Standard::B => &DSSS,
            Standard::BShort => &DSSS_SHORT,
            Standard::G => &OFDM,
        }
    }

    fn timing(self, control: Mode) -> Timing {
        match self {
            Standard::B | Standard::BShort => Timing::dsss(control),
            Standard::G => Timing::ofdm(control),
        }
    }
}

/// One of these, by its name.
fn named<T: Copy>(written: &Spanned<String>, kind: &str, all: &[(&'static str, T)]) -> Result<T, Fault> {
    let known = all.iter().find(|(name, _)| name == written.get_ref());
    known.map(|(_, value)| *value).ok_or_else(|| {
        let names = all.iter().map(|(name, _)| *name);
        Fault::at(written, unknown(kind, written.get_ref(), names))
    })
}

/// A rate of the standard. `other` may stand there as well.
fn mode(written: &Spanned<Written>, standard: Standard, other: Option<&str>) -> Result<Mode, Fault> {
    let of = |mode: &Mode| Rate::from_bps(u64::from(mode.kbps) * 1000);
    let modes = standard.modes();
    let text = written.get_ref().as_str();
    let rate = match read(written, units::rate) {
        Err(fault) if text.starts_with(|first: char| first.is_ascii_digit()) => return Err(fault),
        rate => rate.ok(),
    };
    let found = modes.iter().copied().find(|mode| Some(of(mode)) == rate);
    found.ok_or_else(|| {
        let rates = modes.iter().map(|mode| of(mode).to_string());
        let rates: Vec<String> = rates.chain(other.map(str::to_owned)).collect();
        let sentence = format!(
            "stations do not send at {text}; write one of: {}",
            rates.join(", ")
        );
        Fault::at(written, sentence)
    })
}

/// What a copy is called: `first` and `last` have names of their own where they are written.
fn name(table: &RawStation, copy: Copied) -> Result<String, Fault> {
    let ends = [
        (&table.first, Some(1)),
        (&table.last, table.count.as_ref().map(|count| *count.get_ref())),
    ];
    for (written, of) in ends {
        if let Some(written) = written {
            if copy.is_none() {
                return Err(Fault::at(
                    written,
                    "one station is first and last; call it by its name, or write a count",
                ));
            }
            if copy == of {
                return expand(written, None);
            }
        }
    }
    expand(&table.name, copy)
}

fn place(table: &RawStation, copy: Copied) -> Place {
    stepped(table, copy, **table.at_m.get_ref())
}

fn stepped(table: &RawStation, copy: Copied, [x, y]: [f64; 2]) -> Place {
    let [east, north] = table.step_m.map_or([0.0; 2], |step| *step);
    let steps = copy.map_or(0, |copy| copy - 1) as f64;
    Place::new(x + steps * east, y + steps * north)
}

/// Where it goes; a row of stations goes as one.
fn waypoints(table: &RawStation, copy: Copied) -> Result<Vec<(Time, Place)>, Fault> {
    let point = |written: &Spanned<Exactly<Written, 3>>| {
        let [at, x, y] = &**written.get_ref();
        let metres = |text: &Written| {
            let number = text.as_str().parse::<f64>();
            number.map_err(|_| {
                Fault::at(
                    written,
                    format!("\"{text}\" is no number of metres; write a time and two numbers"),
                )
            })
        };
        let at = units::duration(at.as_str()).map_err(|error| Fault::at(written, error))?;
        Ok((Time::ZERO + at, stepped(table, copy, [metres(x)?, metres(y)?])))
    };
    table.waypoints.iter().map(point).collect()
}

/// Puts a complaint where what it is about is written.
fn blame(table: &RawMedium, stations: &BTreeMap<String, &RawStation>, error: &MediumError) -> Fault {
    let number = |written: &Option<Spanned<u64>>| written.as_ref().map(Spanned::span);
    let metres = |written: &Option<Spanned<f64>>| written.as_ref().map(Spanned::span);
    let station = |node: &String| stations.get(node);
    let span = match error {
        MediumError::Ranges(ranges) => {
            let least = if ranges.sense < ranges.decode {
                metres(&table.sense_m)
            } else {
                metres(&table.interfere_m)
            };
            least.or(metres(&table.decode_m))
        }
        MediumError::Capture(_) => metres(&table.capture),
        MediumError::Queue(_) => number(&table.queue_packets),
        MediumError::ShortRetries(_) => number(&table.short_retries),
        MediumError::LongRetries(_) => number(&table.long_retries),
        MediumError::BitErrors(_) => metres(&table.bit_errors),
        MediumError::NoPlace {
            node,
            waypoint: Some(waypoint),
            ..
        }
        | MediumError::Waypoint { node, waypoint, .. } => station(node)
            .and_then(|table| table.waypoints.get(*waypoint))
            .map(Spanned::span),
        MediumError::NoPlace { node, .. } | MediumError::Overlap { node, .. } => {
            station(node).map(|table| table.at_m.span())
        }
        MediumError::Twice { node } | MediumError::Single { node } | MediumError::Alone { node, .. } => {
            station(node).map(|table| table.media.span())
        }
    };
    Fault {
        span: span.unwrap_or_else(|| table.name.span()),
        message: error.to_string(),
    }
}
