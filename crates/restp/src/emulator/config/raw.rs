//! The file as written: names of keys, kinds of values, and what each stands for in the simulator's terms.

use super::PathConfig;
use restp_base::time::{Duration, Time};
use restp_base::units::{self, Quantity, Rate, UnitError};
use restp_sim::error_model::{
    BurstLoss, Corrupt, Duplicate, GilbertElliott, LossUnit, RateLoss, Reorder, Scripted,
};
use restp_sim::{DirectionSpec, ErrorModel, MarkThreshold, QueueLimit, Way};
use serde::Deserialize;
use serde::de::{Deserializer, Error as _};
use std::fmt::Display;
use std::net::{Ipv4Addr, SocketAddr};
use std::ops::Range;

/// A queue of one bandwidth-delay product holds at least this: 32 packets of 1500 bytes. Below, a short path at
/// a low rate could not hold one burst of a window.
const LEAST_BDP_BYTES: u64 = 32 * 1500;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RawNet {
    pub(super) seed: Option<u64>,
    pub(super) tun: Option<RawTun>,
    #[serde(default)]
    pub(super) path: Vec<RawPath>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RawTun {
    pub(super) namespaces: [String; 2],
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RawPath {
    name: String,
    listen: Option<SocketAddr>,
    to: Option<SocketAddr>,
    #[serde(default, deserialize_with = "addresses")]
    addresses: Option<[(Ipv4Addr, u8); 2]>,
    #[serde(default, deserialize_with = "rate")]
    rate: Option<Rate>,
    #[serde(default, deserialize_with = "duration")]
    delay: Option<Duration>,
    #[serde(default, deserialize_with = "rate")]
    reverse_rate: Option<Rate>,
    #[serde(default, deserialize_with = "duration")]
    reverse_delay: Option<Duration>,
    queue: Option<RawQueue>,
    loss: Option<RawLoss>,
    #[serde(default, deserialize_with = "outages")]
    outage: Vec<Range<Time>>,
    reorder: Option<RawReorder>,
    duplicate: Option<RawFault>,
    corrupt: Option<RawFault>,
    #[serde(default, deserialize_with = "mark")]
    mark: Option<MarkThreshold>,
}

#[derive(Deserialize)]
#[serde(rename_all = "snake_case")]
enum RawQueue {
    #[serde(deserialize_with = "queue_limit")]
    DropTail(QueueLimit),
}

#[derive(Clone, Copy, Default, PartialEq, Deserialize)]
#[serde(rename_all = "snake_case")]
enum RawDirection {
    #[default]
    Forward,
    Reverse,
    Both,
}

impl RawDirection {
    fn touches(self, way: Way) -> bool {
        match self {
            RawDirection::Forward => way == Way::Forward,
            RawDirection::Reverse => way == Way::Reverse,
            RawDirection::Both => true,
        }
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawLoss {
    rate: Option<f64>,
    unit: Option<RawUnit>,
    burst: Option<RawBurst>,
    gilbert_elliott: Option<RawGilbertElliott>,
    drop: Option<Vec<u64>>,
    #[serde(default)]
    direction: RawDirection,
}

#[derive(Deserialize)]
#[serde(rename_all = "snake_case")]
enum RawUnit {
    Packet,
    Bit,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawBurst {
    rate: f64,
    packets: [u64; 2],
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawGilbertElliott {
    good_to_bad: f64,
    bad_to_good: f64,
    loss_good: Option<f64>,
    loss_bad: Option<f64>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawReorder {
    rate: f64,
    #[serde(deserialize_with = "duration")]
    delay: Option<Duration>,
    #[serde(default)]
    direction: RawDirection,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawFault {
    rate: f64,
    #[serde(default)]
    direction: RawDirection,
}

impl RawPath {
    /// The path this table describes.
    pub(super) fn validate(self) -> Result<PathConfig, String> {
        let complain = |message: String| format!("path \"{}\": {message}", self.name);
        if self.name.is_empty() || self.name.contains(char::is_whitespace) {
            return Err(complain("a name is one word; commands name paths".into()));
        }
        let (forward, reverse) = (self.direction(Way::Forward), self.direction(Way::Reverse));
        for (way, spec) in [(Way::Forward, &forward), (Way::Reverse, &reverse)] {
            spec.check()
                .map_err(|error| complain(format!("{way}: {error}")))?;
        }
        if let Some(loss) = &self.loss
            && loss.models().is_empty()
        {
            return Err(complain(
                "loss loses nothing; write rate, burst, gilbert_elliott or drop".into(),
            ));
        }
        Ok(PathConfig {
            name: self.name,
            listen: self.listen,
            to: self.to,
            addresses: self.addresses,
            forward,
            reverse,
        })
    }

    fn direction(&self, way: Way) -> DirectionSpec {
        let reverse = way == Way::Reverse;
        let rate = self.reverse_rate.filter(|_| reverse).or(self.rate);
        let forward_delay = self.delay.unwrap_or_default();
        let reverse_delay = self.reverse_delay.unwrap_or(forward_delay);
        let queue = match &self.queue {
            Some(RawQueue::DropTail(limit)) => *limit,
            None => QueueLimit::Bdp,
        };
        let bdp_bytes = rate.map_or(0, |rate| rate.bytes_in(forward_delay + reverse_delay));
        let loss = self.loss.as_ref().filter(|loss| loss.direction.touches(way));
        let fault = |fault: &Option<RawFault>| {
            fault
                .as_ref()
                .filter(|fault| fault.direction.touches(way))
                .map(|fault| fault.rate)
        };
        DirectionSpec {
            rate,
            delay: if reverse { reverse_delay } else { forward_delay },
            queue: queue.resolve(bdp_bytes.max(LEAST_BDP_BYTES)),
            loss: loss.map(RawLoss::models).unwrap_or_default(),
            outage: self.outage.clone(),
            reorder: self
                .reorder
                .as_ref()
                .filter(|reorder| reorder.direction.touches(way))
                .map(|reorder| Reorder {
                    probability: reorder.rate,
                    extra: reorder.delay.unwrap_or_default(),
                }),
            duplicate: fault(&self.duplicate).map(|probability| Duplicate { probability }),
            corrupt: fault(&self.corrupt).map(|probability| Corrupt { probability }),
            mark: self.mark,
        }
    }
}

impl RawLoss {
    fn models(&self) -> Vec<ErrorModel> {
        let rate = self.rate.map(|probability| {
            let unit = if matches!(self.unit, Some(RawUnit::Bit)) {
                LossUnit::Bit
            } else {
                LossUnit::Packet
            };
            ErrorModel::Rate(RateLoss { probability, unit })
        });
        let burst = self.burst.as_ref().map(|burst| {
            let [least, most] = burst.packets;
            ErrorModel::Burst(BurstLoss {
                probability: burst.rate,
                sizes: least..=most,
            })
        });
        let gilbert_elliott = self.gilbert_elliott.as_ref().map(|raw| {
            ErrorModel::GilbertElliott(GilbertElliott {
                p: raw.good_to_bad,
                r: raw.bad_to_good,
                loss_good: raw.loss_good.unwrap_or(0.0),
                loss_bad: raw.loss_bad.unwrap_or(1.0),
            })
        });
        let scripted = self
            .drop
            .clone()
            .map(|drop| ErrorModel::Scripted(Scripted { drop }));
        [rate, burst, gilbert_elliott, scripted]
            .into_iter()
            .flatten()
            .collect()
    }
}

/// A value read from its text; the parser adds line and key to what `reader` says.
fn written<'de, D: Deserializer<'de>, T, E: Display>(
    deserializer: D,
    reader: impl FnOnce(&str) -> Result<T, E>,
) -> Result<T, D::Error> {
    reader(&String::deserialize(deserializer)?).map_err(D::Error::custom)
}

fn rate<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Rate>, D::Error> {
    written(deserializer, units::rate).map(Some)
}

fn duration<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Duration>, D::Error> {
    written(deserializer, units::duration).map(Some)
}

fn queue_limit<'de, D: Deserializer<'de>>(deserializer: D) -> Result<QueueLimit, D::Error> {
    written(deserializer, |text| match (text, units::quantity(text)) {
        ("bdp", _) => Ok(QueueLimit::Bdp),
        (_, Ok(Quantity::Packets(n))) => Ok(QueueLimit::Packets(n)),
        (_, Ok(Quantity::Bytes(n))) => Ok(QueueLimit::Bytes(n)),
        _ => Err(format!(
            "\"{text}\" is no queue length; write \"100 packets\", \"64 KiB\" or \"bdp\""
        )),
    })
}

fn mark<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<MarkThreshold>, D::Error> {
    written(deserializer, |text| match units::quantity(text) {
        Ok(Quantity::Packets(n)) => Ok(Some(MarkThreshold::Packets(n))),
        Ok(Quantity::Bytes(n)) => Ok(Some(MarkThreshold::Bytes(n))),
        _ => Err(format!(
            "\"{text}\" is no backlog to mark from; write \"20 packets\" or \"30 kB\""
        )),
    })
}

fn outages<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<Range<Time>>, D::Error> {
    let texts = Vec::<String>::deserialize(deserializer)?;
    texts
        .iter()
        .map(|text| outage(text).map_err(D::Error::custom))
        .collect()
}

/// Reads `"20 s..30 s"`.
fn outage(text: &str) -> Result<Range<Time>, String> {
    let (start, end) = text
        .split_once("..")
        .ok_or(format!("\"{text}\" is no span of time; write \"20 s..30 s\""))?;
    let at = |part| {
        units::duration(part)
            .map(|since| Time::ZERO + since)
            .map_err(|error: UnitError| error.to_string())
    };
    let (start, end) = (at(start)?, at(end)?);
    if start >= end {
        return Err(format!(
            "\"{text}\" ends before it starts; write the earlier time first"
        ));
    }
    Ok(start..end)
}

fn addresses<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<[(Ipv4Addr, u8); 2]>, D::Error> {
    let texts = <[String; 2]>::deserialize(deserializer)?;
    let read = |text: &String| {
        let parts = text.split_once('/');
        let pair = parts.and_then(|(ip, length)| Some((ip.parse().ok()?, length.parse::<u8>().ok()?)));
        let pair = pair.filter(|(_, length)| *length <= 32);
        pair.ok_or(D::Error::custom(format!(
            "\"{text}\" is no IPv4 address with its prefix; write \"10.1.0.1/24\""
        )))
    };
    Ok(Some([read(&texts[0])?, read(&texts[1])?]))
}
