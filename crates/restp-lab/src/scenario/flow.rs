//! One `[[flow]]` table, validated.

use super::error::unknown;
use super::names::{copies, expand};
use super::raw::{RawCbr, RawFlow, RawTraffic};
use crate::registry::{Transport, text_of};
use crate::traffic::{Cbr, Traffic};
use restp_base::time::Duration;
use restp_base::units::{self, Rate};
use restp_sim::Topology;
use restp_sim::config::{Fault, positive, read};
use std::path::Path;
use toml::Spanned;

/// One flow, ready to run.
#[derive(Clone, Debug)]
pub struct FlowPlan {
    /// Its name in results.
    pub name: String,
    /// The node that opens it and sends.
    pub from: String,
    /// The node that serves it and receives.
    pub to: String,
    /// The protocol at both ends.
    pub transport: Transport,
    /// What is sent.
    pub traffic: Traffic,
    /// When it is opened.
    pub start: Duration,
    /// It is opened up to this much later, by a uniform draw from the flow's own stream.
    pub start_spread: Duration,
}

/// The most messages of one flow: each leaves its latency in memory until the run ends.
const MOST_MESSAGES: u64 = 50_000_000;

/// The flows `raw` stands for. `dir` is where names of profile files start.
pub(super) fn flows(
    raw: &RawFlow,
    topology: &Topology,
    duration: Duration,
    dir: &Path,
) -> Result<Vec<FlowPlan>, Fault> {
    let transport = transport(raw, dir)?;
    let traffic = traffic(&raw.traffic, duration)?;
    let time = |written: &Option<_>| {
        written
            .as_ref()
            .map_or(Ok(Duration::ZERO), |text| read(text, units::duration))
    };
    let (start, start_spread) = (time(&raw.start)?, time(&raw.start_spread)?);
    copies(&raw.name, raw.count.as_ref())?
        .map(|copy| {
            let node = |written: &Spanned<String>| {
                let name = expand(written, copy)?;
                if topology.node(&name).is_some() {
                    return Ok(name);
                }
                let known = topology.nodes().map(|node| topology.name(node)).take(20);
                Err(Fault::at(
                    written,
                    unknown("node", &name, known) + "; nodes exist because links name them",
                ))
            };
            let (from, to) = (node(&raw.from)?, node(&raw.to)?);
            if from == to {
                let sentence = format!("a flow from \"{from}\" to itself crosses no link; name another node");
                return Err(Fault::at(&raw.to, sentence));
            }
            let (transport, traffic) = (transport.clone(), traffic.clone());
            Ok(FlowPlan {
                name: expand(&raw.name, copy)?,
                from,
                to,
                transport,
                traffic,
                start,
                start_spread,
            })
        })
        .collect()
}

fn transport(raw: &RawFlow, dir: &Path) -> Result<Transport, Fault> {
    let mut set = Vec::new();
    for (key, value) in &raw.set {
        let Some(text) = text_of(value.get_ref()) else {
            return Err(Fault::at(
                value,
                format!("\"{key}\" takes one value, such as \"bic\" or 10"),
            ));
        };
        set.push((key.as_str(), text));
    }
    let pairs: Vec<(&str, &str)> = set.iter().map(|(key, text)| (*key, text.as_str())).collect();
    Transport::new(raw.transport.get_ref(), &pairs, dir).map_err(|error| {
        match error.key.as_ref().and_then(|key| raw.set.get(key)) {
            Some(value) => Fault::at(value, error),
            None => Fault::at(&raw.transport, error),
        }
    })
}

fn traffic(raw: &Spanned<RawTraffic>, duration: Duration) -> Result<Traffic, Fault> {
    let unbuilt = |name| {
        Err(Fault::at(
            raw,
            format!("{name} traffic is not built yet; use bulk, file or cbr"),
        ))
    };
    match raw.get_ref() {
        RawTraffic::Bulk(_) => Ok(Traffic::Bulk),
        RawTraffic::File(file) => {
            let bytes = positive(&file.bytes, file.bytes.get_ref().0)?;
            Ok(Traffic::File { bytes })
        }
        RawTraffic::Cbr(cbr) => {
            let cbr = constant_bit_rate(raw, cbr)?;
            let messages = duration.as_nanos() / cbr.interval.as_nanos();
            if messages.min(cbr.count.unwrap_or(u64::MAX)) > MOST_MESSAGES {
                let sentence = format!(
                    "{messages} messages are too many for one run; at most {MOST_MESSAGES} are possible"
                );
                return Err(Fault::at(raw, sentence));
            }
            Ok(Traffic::Cbr(cbr))
        }
        RawTraffic::Voip(_) => unbuilt("voip"),
        RawTraffic::Web(_) => unbuilt("web"),
    }
}

fn constant_bit_rate(whole: &Spanned<RawTraffic>, raw: &RawCbr) -> Result<Cbr, Fault> {
    let bytes = raw.bytes.get_ref().0;
    if !(Cbr::STAMP_BYTES..=Cbr::MOST_BYTES).contains(&bytes) {
        let (least, most) = (Cbr::STAMP_BYTES, Cbr::MOST_BYTES);
        let sentence = format!(
            "a message of {bytes} bytes is impossible; write {least} (its number and time) to {most} bytes"
        );
        return Err(Fault::at(&raw.bytes, sentence));
    }
    let interval = match (&raw.rate, &raw.interval) {
        (Some(rate), None) => interval(positive(rate, read(rate, units::rate)?)?, bytes),
        (None, Some(written)) => positive(written, read(written, units::duration)?)?,
        _ => {
            return Err(Fault::at(
                whole,
                "cbr needs either rate (\"64 kbit/s\") or interval (\"20 ms\"), not both",
            ));
        }
    };
    let late_after = raw
        .late_after
        .as_ref()
        .map(|written| read(written, units::duration))
        .transpose()?;
    let count = raw
        .count
        .as_ref()
        .map(|count| positive(count, *count.get_ref()))
        .transpose()?;
    Ok(Cbr {
        bytes,
        interval,
        count,
        late_after,
    })
}

/// The time between messages of `bytes` at `rate`, rounded to a nanosecond.
pub(super) fn interval(rate: Rate, bytes: u64) -> Duration {
    let nanos =
        (u128::from(bytes) * 8_000_000_000 + u128::from(rate.as_bps() / 2)) / u128::from(rate.as_bps());
    Duration::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX))
}
