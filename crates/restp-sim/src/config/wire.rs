//! What the keys of a link stand for in the network's own terms.

use super::keys::{Burst, Flaw, Loss, Policing, Queue, Reordering, Shaking, TwoStates, Unit};
use super::{Fault, OpenFile, Outages, Speed, Written, positive, read};
use crate::discipline::{Queue as Discipline, QueueLimit};
use crate::error_model::{
    BurstLoss, Corrupt, Duplicate, ErrorModel, GilbertElliott, Jitter, LossUnit, RateLoss, Reorder, Scripted,
};
use crate::police::Police;
use crate::rate::LinkRate;
use crate::spec::{DirectionSpec, MarkThreshold, Way};
use crate::spec_error::SpecError;
use restp_base::time::{Duration, Time};
use restp_base::units::{self, Quantity};
use std::ops::Range;
use toml::Spanned;

/// The keys of a link, each as written. `None`: left out.
#[derive(Clone, Copy, Debug)]
#[allow(
    missing_docs,
    reason = "each field is the key of its name, listed at the module"
)]
pub struct Wire<'a> {
    pub rate: Option<&'a Spanned<Speed>>,
    pub delay: Option<&'a Spanned<Written>>,
    pub reverse_rate: Option<&'a Spanned<Speed>>,
    pub reverse_delay: Option<&'a Spanned<Written>>,
    pub queue: Option<&'a Queue>,
    pub mtu: Option<&'a Spanned<Written>>,
    pub overhead: Option<&'a Spanned<Written>>,
    pub loss: Option<&'a Spanned<Loss>>,
    pub outage: &'a Outages,
    pub jitter: Option<&'a Shaking>,
    pub reorder: Option<&'a Reordering>,
    pub duplicate: Option<&'a Flaw>,
    pub corrupt: Option<&'a Flaw>,
    pub police: Option<&'a Spanned<Policing>>,
    pub mark: Option<&'a Spanned<Written>>,
}

impl Wire<'_> {
    /// Forward and reverse. Without `rate` there is no limit, without `delay` no delay. A queue of one
    /// bandwidth-delay product, also when none is written, is still to be [resolved](QueueLimit::resolve): only the
    /// caller knows of which path. All else has passed [`DirectionSpec::check`]. `open` opens the files that are named.
    ///
    /// # Errors
    /// The first value that is not understood or impossible, with its place.
    pub fn directions(&self, open: &OpenFile<'_>) -> Result<[DirectionSpec; 2], Fault> {
        let [forward, reverse] = [self.rate, self.reverse_rate]
            .map(|rate| rate.map(|written| Speed::read(written, open)).transpose());
        let forward = forward?;
        let reverse = reverse?.or_else(|| forward.clone());
        Ok([
            self.direction(Way::Forward, forward)?,
            self.direction(Way::Reverse, reverse)?,
        ])
    }

    fn direction(&self, way: Way, rate: Option<LinkRate>) -> Result<DirectionSpec, Fault> {
        let reverse = way == Way::Reverse;
        let delay = self.reverse_delay.filter(|_| reverse).or(self.delay);
        // Every value is judged, whichever way it touches.
        let loss = self.loss.map(loss_models).transpose()?;
        let reorder = self.reorder.map(reordering).transpose()?;
        let jitter = self.jitter.map(shaking).transpose()?;
        let police = self.police.map(policing).transpose()?;
        let flaw = |flaw: Option<&Flaw>| match flaw {
            Some(flaw) => probability(&flaw.rate).map(|p| flaw.direction.has(way).then_some(p)),
            None => Ok(None),
        };
        Ok(DirectionSpec {
            rate,
            delay: delay.map_or(Ok(Duration::ZERO), |written| read(written, units::duration))?,
            queue: self.queue()?,
            mtu: self.mtu.map(longest).transpose()?,
            overhead_bytes: self.overhead.map_or(Ok(0), overhead)?,
            loss: loss
                .filter(|_| self.loss.is_some_and(|loss| loss.get_ref().direction.has(way)))
                .unwrap_or_default(),
            loss_during: self
                .loss
                .map_or(Ok(Vec::new()), |loss| spans(&loss.get_ref().during))?,
            outage: spans(self.outage)?,
            police: police.filter(|_| {
                self.police
                    .is_some_and(|police| police.get_ref().direction.has(way))
            }),
            jitter: jitter.filter(|_| self.jitter.is_some_and(|jitter| jitter.direction.has(way))),
            reorder: reorder.filter(|_| self.reorder.is_some_and(|reorder| reorder.direction.has(way))),
            duplicate: flaw(self.duplicate)?.map(|probability| Duplicate { probability }),
            corrupt: flaw(self.corrupt)?.map(|probability| Corrupt { probability }),
            mark: self.marks()?,
        })
    }
}

impl Wire<'_> {
    fn queue(&self) -> Result<Discipline, Fault> {
        self.queue
            .map_or(Ok(QueueLimit::Bdp.into()), |queue| queue.read())
    }

    /// A queue that decides by itself whom it marks takes no threshold beside that.
    fn marks(&self) -> Result<Option<MarkThreshold>, Fault> {
        let Some(written) = self.mark else { return Ok(None) };
        match self.queue()? {
            Discipline::DropTail(_) => threshold(written).map(Some),
            _ => Err(Fault::at(written, SpecError::TwoMarkers.to_string())),
        }
    }
}

/// Most bytes of a packet. IPv4 promises 68 (RFC 791 §3.2).
fn longest(written: &Spanned<Written>) -> Result<u32, Fault> {
    match read(written, units::quantity)? {
        Quantity::Bytes(bytes @ 68..=65_535) => Ok(bytes as u32),
        _ => Err(Fault::at(
            written,
            format!(
                "\"{}\" is no packet's length; write \"1280 B\", from 68 to 65535",
                written.get_ref()
            ),
        )),
    }
}

/// Bytes that every packet takes of the line beside its own. Ethernet's have 38, preamble and gap included.
fn overhead(written: &Spanned<Written>) -> Result<u32, Fault> {
    match read(written, units::quantity)? {
        Quantity::Bytes(bytes @ 0..=1000) => Ok(bytes as u32),
        _ => Err(Fault::at(
            written,
            format!(
                "\"{}\" is no overhead of a packet; write \"28 B\", up to 1000",
                written.get_ref()
            ),
        )),
    }
}

/// A backlog in packets or bytes.
pub(super) fn threshold(written: &Spanned<Written>) -> Result<MarkThreshold, Fault> {
    match read(written, units::quantity)? {
        Quantity::Packets(n) => Ok(MarkThreshold::Packets(n)),
        Quantity::Bytes(n) => Ok(MarkThreshold::Bytes(n)),
        _ => Err(Fault::at(
            written,
            format!(
                "\"{}\" is not a backlog; write packets (\"20 packets\") or bytes (\"30 kB\")",
                written.get_ref()
            ),
        )),
    }
}

fn reordering(raw: &Reordering) -> Result<Reorder, Fault> {
    Ok(Reorder {
        probability: probability(&raw.rate)?,
        extra: positive(&raw.delay, read(&raw.delay, units::duration)?)?,
    })
}

fn shaking(raw: &Shaking) -> Result<Jitter, Fault> {
    Ok(Jitter {
        most: positive(&raw.delay, read(&raw.delay, units::duration)?)?,
        reorder: raw.reorder,
    })
}

fn policing(written: &Spanned<Policing>) -> Result<Police, Fault> {
    let raw = written.get_ref();
    let police = Police {
        rate: read(&raw.rate, units::rate)?,
        burst_bytes: read(&raw.burst, units::bytes)?,
    };
    match police.check() {
        Ok(()) => Ok(police),
        Err(error) => Err(Fault::at(written, error)),
    }
}

fn loss_models(raw: &Spanned<Loss>) -> Result<Vec<ErrorModel>, Fault> {
    let loss = raw.get_ref();
    let mut models = Vec::new();
    if let Some(rate) = &loss.rate {
        let unit = match loss.unit.as_ref().map(Spanned::get_ref) {
            Some(Unit::Bit) => LossUnit::Bit,
            Some(Unit::Packet) | None => LossUnit::Packet,
        };
        let probability = probability(rate)?;
        models.push(ErrorModel::Rate(RateLoss { probability, unit }));
    } else if let Some(unit) = &loss.unit {
        return Err(Fault::at(
            unit,
            "a unit without a rate says nothing; add rate = …, or leave the unit out",
        ));
    }
    if let Some(raw) = &loss.burst {
        models.push(ErrorModel::Burst(burst(raw)?));
    }
    if let Some(raw) = &loss.gilbert_elliott {
        models.push(ErrorModel::GilbertElliott(gilbert_elliott(raw)?));
    }
    if let Some(drop) = &loss.drop {
        models.push(ErrorModel::Scripted(scripted(drop)?));
    }
    if models.is_empty() {
        return Err(Fault::at(
            raw,
            "nothing is lost by this table; write rate, burst, gilbert_elliott or drop",
        ));
    }
    Ok(models)
}

fn burst(raw: &Burst) -> Result<BurstLoss, Fault> {
    let [least, most] = **raw.packets.get_ref();
    if least == 0 || least > most {
        let sentence =
            format!("bursts of {least} to {most} packets are impossible; write [least, most], from 1");
        return Err(Fault::at(&raw.packets, sentence));
    }
    Ok(BurstLoss {
        probability: probability(&raw.rate)?,
        sizes: least..=most,
    })
}

fn gilbert_elliott(raw: &TwoStates) -> Result<GilbertElliott, Fault> {
    let loss = |written: &Option<_>, default| written.as_ref().map_or(Ok(default), probability);
    Ok(GilbertElliott {
        p: probability(&raw.good_to_bad)?,
        r: probability(&raw.bad_to_good)?,
        loss_good: loss(&raw.loss_good, 0.0)?,
        loss_bad: loss(&raw.loss_bad, 1.0)?,
    })
}

fn scripted(numbers: &[Spanned<u64>]) -> Result<Scripted, Fault> {
    if let Some(zero) = numbers.iter().find(|packet| *packet.get_ref() == 0) {
        return Err(Fault::at(
            zero,
            "there is no packet 0; the first packet offered is number 1",
        ));
    }
    Ok(Scripted {
        drop: numbers.iter().map(|one| *one.get_ref()).collect(),
    })
}

pub(super) fn probability(written: &Spanned<f64>) -> Result<f64, Fault> {
    let value = *written.get_ref();
    if (0.0..=1.0).contains(&value) {
        return Ok(value);
    }
    Err(Fault::at(
        written,
        format!("{value} is not a probability; write a number from 0 to 1 (1 % is 0.01)"),
    ))
}

fn spans(written: &Outages) -> Result<Vec<Range<Time>>, Fault> {
    written.0.iter().map(span).collect()
}

/// Reads a span of time, `"20 s..30 s"`.
///
/// # Errors
/// When it is not understood, or ends before it starts.
pub fn span(written: &Spanned<Written>) -> Result<Range<Time>, Fault> {
    let text = written.get_ref().as_str();
    let Some((start, end)) = text.split_once("..") else {
        return Err(Fault::at(
            written,
            format!("\"{text}\" is not a span of time; write \"20 s..30 s\""),
        ));
    };
    let at = |part| units::duration(part).map_err(|error| Fault::at(written, error));
    let (start, end) = (at(start)?, at(end)?);
    if start >= end {
        return Err(Fault::at(
            written,
            format!("\"{text}\" ends before it starts; write the earlier time first"),
        ));
    }
    Ok(Time::ZERO + start..Time::ZERO + end)
}
