//! One `[[link]]` table, validated: the network's own description of each link it stands for.

use super::error::Fault;
use super::names::{copies, expand};
use super::quantity::{positive, read};
use super::raw::{Direction, RawLink, RawLoss, Unit};
use restp_base::time::{Duration, Time};
use restp_base::units::{self, Quantity};
use restp_sim::error_model::{
    BurstLoss, Corrupt, Duplicate, GilbertElliott, LossUnit, RateLoss, Reorder, Scripted,
};
use restp_sim::{DirectionSpec, ErrorModel, LinkSpec, MarkThreshold, QueueLimit};
use std::ops::Range;
use toml::Spanned;

/// The links `raw` stands for; a queue of one bandwidth-delay product is still to be resolved.
pub(super) fn links(raw: &RawLink) -> Result<Vec<LinkSpec>, Fault> {
    let [from, to] = &raw.between.get_ref()[..] else {
        let found = raw.between.get_ref().len();
        let sentence = format!("a link joins 2 nodes, not {found}; write [\"one\", \"other\"]");
        return Err(Fault::at(&raw.between, sentence));
    };
    let (forward, reverse) = (
        direction(raw, Direction::Forward)?,
        direction(raw, Direction::Reverse)?,
    );
    copies(&raw.name, raw.count.as_ref())?
        .map(|copy| {
            let between = [expand(from, copy)?, expand(to, copy)?];
            if between[0] == between[1] {
                return Err(Fault::at(
                    &raw.between,
                    format!("\"{}\" cannot be joined with itself", between[0]),
                ));
            }
            let name = expand(&raw.name, copy)?;
            Ok(LinkSpec {
                name,
                between,
                forward: forward.clone(),
                reverse: reverse.clone(),
            })
        })
        .collect()
}

fn direction(raw: &RawLink, way: Direction) -> Result<DirectionSpec, Fault> {
    let reverse = way == Direction::Reverse;
    let rate = raw.reverse_rate.as_ref().filter(|_| reverse).unwrap_or(&raw.rate);
    let delay = raw
        .reverse_delay
        .as_ref()
        .filter(|_| reverse)
        .unwrap_or(&raw.delay);
    let touches = |direction: Direction| direction == Direction::Both || direction == way;

    let mut spec = DirectionSpec::new(
        positive(rate, read(rate, units::rate)?)?,
        read(delay, units::duration)?,
        queue(raw)?,
    );
    if let Some(loss) = &raw.loss {
        let models = loss_models(loss)?;
        if touches(loss.get_ref().direction) {
            spec.loss = models;
        }
    }
    spec.outage = raw
        .outage
        .iter()
        .flatten()
        .map(outage)
        .collect::<Result<_, _>>()?;
    if let Some(reorder) = &raw.reorder {
        let model = Reorder {
            probability: probability(&reorder.rate)?,
            extra: positive(&reorder.delay, read(&reorder.delay, units::duration)?)?,
        };
        spec.reorder = touches(reorder.direction).then_some(model);
    }
    if let Some(fault) = &raw.duplicate {
        let model = Duplicate {
            probability: probability(&fault.rate)?,
        };
        spec.duplicate = touches(fault.direction).then_some(model);
    }
    if let Some(fault) = &raw.corrupt {
        let model = Corrupt {
            probability: probability(&fault.rate)?,
        };
        spec.corrupt = touches(fault.direction).then_some(model);
    }
    if let Some(written) = &raw.mark {
        spec.mark = Some(match read(written, units::quantity)? {
            Quantity::Packets(n) => MarkThreshold::Packets(n),
            Quantity::Bytes(n) => MarkThreshold::Bytes(n),
            _ => {
                return Err(Fault::at(
                    written,
                    not_a_size(written.get_ref(), "a backlog to mark from"),
                ));
            }
        });
    }
    Ok(spec)
}

fn queue(raw: &RawLink) -> Result<QueueLimit, Fault> {
    let Some(super::raw::RawQueue::DropTail(written)) = &raw.queue else {
        return Ok(QueueLimit::Bdp);
    };
    if written.get_ref() == "bdp" {
        return Ok(QueueLimit::Bdp);
    }
    match read(written, units::quantity) {
        Ok(Quantity::Packets(n)) => Ok(QueueLimit::Packets(positive(written, n)?)),
        Ok(Quantity::Bytes(n)) => Ok(QueueLimit::Bytes(positive(written, n)?)),
        _ => Err(Fault::at(
            written,
            not_a_size(written.get_ref(), "a queue length"),
        )),
    }
}

fn not_a_size(written: &str, what: &str) -> String {
    let bdp = if what.contains("queue") {
        ", or \"bdp\""
    } else {
        ""
    };
    format!("\"{written}\" is not {what}; write packets (\"100 packets\") or bytes (\"64 KiB\"){bdp}")
}

fn loss_models(raw: &Spanned<RawLoss>) -> Result<Vec<ErrorModel>, Fault> {
    let loss = raw.get_ref();
    let mut models = Vec::new();
    if let Some(rate) = &loss.rate {
        let unit = match loss.unit.as_ref().map(Spanned::get_ref) {
            Some(Unit::Bit) => LossUnit::Bit,
            Some(Unit::Packet) | None => LossUnit::Packet,
        };
        models.push(ErrorModel::Rate(RateLoss {
            probability: probability(rate)?,
            unit,
        }));
    } else if let Some(unit) = &loss.unit {
        return Err(Fault::at(
            unit,
            "a unit without a rate says nothing; add rate = …, or leave the unit out",
        ));
    }
    if let Some(burst) = &loss.burst {
        let [least, most] = *burst.packets.get_ref();
        if least == 0 || least > most {
            let sentence =
                format!("bursts of {least} to {most} packets are impossible; write [least, most], from 1");
            return Err(Fault::at(&burst.packets, sentence));
        }
        models.push(ErrorModel::Burst(BurstLoss {
            probability: probability(&burst.rate)?,
            sizes: least..=most,
        }));
    }
    if let Some(raw) = &loss.gilbert_elliott {
        let loss = |written: &Option<_>, default| written.as_ref().map_or(Ok(default), probability);
        models.push(ErrorModel::GilbertElliott(GilbertElliott {
            p: probability(&raw.good_to_bad)?,
            r: probability(&raw.bad_to_good)?,
            loss_good: loss(&raw.loss_good, 0.0)?,
            loss_bad: loss(&raw.loss_bad, 1.0)?,
        }));
    }
    if let Some(drop) = &loss.drop {
        if let Some(zero) = drop.iter().find(|packet| *packet.get_ref() == 0) {
            return Err(Fault::at(
                zero,
                "there is no packet 0; the first packet offered is number 1",
            ));
        }
        models.push(ErrorModel::Scripted(Scripted {
            drop: drop.iter().map(|one| *one.get_ref()).collect(),
        }));
    }
    if models.is_empty() {
        return Err(Fault::at(
            raw,
            "nothing is lost by this table; write rate, burst, gilbert_elliott or drop",
        ));
    }
    Ok(models)
}

fn probability(written: &Spanned<f64>) -> Result<f64, Fault> {
    let value = *written.get_ref();
    if (0.0..=1.0).contains(&value) {
        return Ok(value);
    }
    Err(Fault::at(
        written,
        format!("{value} is not a probability; write a number from 0 to 1 (1 % is 0.01)"),
    ))
}

/// Reads `"20 s..30 s"`.
fn outage(written: &Spanned<String>) -> Result<Range<Time>, Fault> {
    let text = written.get_ref();
    let Some((start, end)) = text.split_once("..") else {
        return Err(Fault::at(
            written,
            format!("\"{text}\" is not a span of time; write \"20 s..30 s\""),
        ));
    };
    let at = |part: &str| units::duration(part).map_err(|error| Fault::at(written, error));
    let (start, end): (Duration, Duration) = (at(start)?, at(end)?);
    if start >= end {
        return Err(Fault::at(
            written,
            format!("\"{text}\" ends before it starts; write the earlier time first"),
        ));
    }
    Ok(Time::ZERO + start..Time::ZERO + end)
}
