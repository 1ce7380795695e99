//! What `queue = { … }` stands for.

use super::keys::{Codel, FqCodel, Queue, Red};
use super::wire::{probability, threshold};
use super::{Fault, Written, positive, read};
use crate::discipline::{self, QueueLimit};
use restp_base::units::{self, Quantity};
use toml::Spanned;

impl Queue {
    /// The queue, with `bdp` still to be resolved.
    pub(super) fn read(&self) -> Result<discipline::Queue, Fault> {
        let (queue, written) = match self {
            Queue::DropTail(written) => return limit(written).map(discipline::Queue::DropTail),
            Queue::Red(written) => (discipline::Queue::Red(written.get_ref().read()?), written.span()),
            Queue::Codel(written) => (
                discipline::Queue::Codel(written.get_ref().read()?),
                written.span(),
            ),
            Queue::FqCodel(written) => (
                discipline::Queue::FqCodel(written.get_ref().read()?),
                written.span(),
            ),
        };
        // A limit of one bandwidth-delay product is its owner's to resolve; all else can be judged here.
        let judged = queue.with_limit(queue.limit().resolve(1));
        judged.check().map_err(|error| Fault {
            span: written,
            message: error.to_string(),
        })?;
        Ok(queue)
    }
}

impl Red {
    fn read(&self) -> Result<discipline::Red, Fault> {
        let default = discipline::Red::default();
        Ok(discipline::Red {
            limit: given(&self.limit, limit, default.limit)?,
            min: given(&self.min, threshold, default.min)?,
            max: given(&self.max, threshold, default.max)?,
            max_p: given(&self.max_p, probability, default.max_p)?,
            weight: given(&self.weight, probability, default.weight)?,
            gentle: self.gentle.unwrap_or(default.gentle),
            ecn: self.ecn.unwrap_or(default.ecn),
        })
    }
}

impl Codel {
    fn read(&self) -> Result<discipline::Codel, Fault> {
        codel(
            discipline::Codel::default(),
            [&self.limit, &self.target, &self.interval],
            self.ecn,
        )
    }
}

impl FqCodel {
    fn read(&self) -> Result<discipline::FqCodel, Fault> {
        let default = discipline::FqCodel::default();
        Ok(discipline::FqCodel {
            codel: codel(
                default.codel,
                [&self.limit, &self.target, &self.interval],
                self.ecn,
            )?,
            quantum: self.quantum.unwrap_or(default.quantum),
            queues: self.queues.unwrap_or(default.queues),
            ..default
        })
    }
}

fn codel(
    default: discipline::Codel,
    [most, target, interval]: [&Option<Spanned<Written>>; 3],
    ecn: Option<bool>,
) -> Result<discipline::Codel, Fault> {
    let time = |written: &Spanned<Written>| read(written, units::duration);
    Ok(discipline::Codel {
        limit: given(most, limit, default.limit)?,
        target: given(target, time, default.target)?,
        interval: given(interval, time, default.interval)?,
        ecn: ecn.unwrap_or(default.ecn),
        ..default
    })
}

fn given<W, T>(
    written: &Option<Spanned<W>>,
    reader: impl Fn(&Spanned<W>) -> Result<T, Fault>,
    default: T,
) -> Result<T, Fault> {
    written.as_ref().map_or(Ok(default), reader)
}

fn limit(written: &Spanned<Written>) -> Result<QueueLimit, Fault> {
    let text = written.get_ref().as_str();
    match (text, units::quantity(text)) {
        ("bdp", _) => Ok(QueueLimit::Bdp),
        (_, Ok(Quantity::Packets(n))) => positive(written, n).map(QueueLimit::Packets),
        (_, Ok(Quantity::Bytes(n))) => positive(written, n).map(QueueLimit::Bytes),
        (text, _) => Err(Fault::at(
            written,
            format!(
                "\"{text}\" is not a queue length; write packets (\"100 packets\") or bytes (\"64 KiB\"), or \"bdp\""
            ),
        )),
    }
}
