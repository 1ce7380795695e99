//! The keys of a link as written. Nothing is judged here but the names of keys and the kinds of values; every value
//! keeps its place in the file.

use super::{Exactly, Outages, Written};
use crate::spec::Way;
use serde::Deserialize;
use toml::Spanned;

/// Declares a table with the fields given and, behind them, the keys of every link; unknown keys are refused with
/// all of these names. Its `wire` is what the keys of a link say. The crate that uses it needs `serde` and `toml`.
///
/// (One struct with all fields, because a flattened one forgets where its values are written.)
///
/// ```
/// restp_sim::link_table! {
///     /// A cable between two houses.
///     struct Cable {
///         name: String,
///     }
/// }
/// let cable: Cable = toml::from_str("name = \"a\"\nrate = \"10 Mbit/s\"").unwrap();
/// let no_files = |name: &str| Err(std::io::Error::other(format!("no {name} here")));
/// let [forward, reverse] = cable.wire().directions(&no_files).unwrap();
/// assert_eq!((cable.name.as_str(), forward.rate), ("a", reverse.rate));
/// ```
#[macro_export]
macro_rules! link_table {
    ($(#[$meta:meta])* $vis:vis struct $name:ident { $($fields:tt)* }) => {
        $(#[$meta])*
        #[derive(Debug, ::serde::Deserialize)]
        #[serde(deny_unknown_fields, expecting = "a table")]
        $vis struct $name {
            $($fields)*
            rate: Option<::toml::Spanned<$crate::config::Speed>>,
            delay: Option<::toml::Spanned<$crate::config::Written>>,
            reverse_rate: Option<::toml::Spanned<$crate::config::Speed>>,
            reverse_delay: Option<::toml::Spanned<$crate::config::Written>>,
            queue: Option<$crate::config::Queue>,
            mtu: Option<::toml::Spanned<$crate::config::Written>>,
            overhead: Option<::toml::Spanned<$crate::config::Written>>,
            loss: Option<::toml::Spanned<$crate::config::Loss>>,
            #[serde(default)]
            outage: $crate::config::Outages,
            jitter: Option<$crate::config::Shaking>,
            reorder: Option<$crate::config::Reordering>,
            duplicate: Option<$crate::config::Flaw>,
            corrupt: Option<$crate::config::Flaw>,
            police: Option<::toml::Spanned<$crate::config::Policing>>,
            mark: Option<::toml::Spanned<$crate::config::Written>>,
        }

        impl $name {
            $vis fn wire(&self) -> $crate::config::Wire<'_> {
                $crate::config::Wire {
                    rate: self.rate.as_ref(),
                    delay: self.delay.as_ref(),
                    reverse_rate: self.reverse_rate.as_ref(),
                    reverse_delay: self.reverse_delay.as_ref(),
                    queue: self.queue.as_ref(),
                    mtu: self.mtu.as_ref(),
                    overhead: self.overhead.as_ref(),
                    loss: self.loss.as_ref(),
                    outage: &self.outage,
                    jitter: self.jitter.as_ref(),
                    reorder: self.reorder.as_ref(),
                    duplicate: self.duplicate.as_ref(),
                    corrupt: self.corrupt.as_ref(),
                    police: self.police.as_ref(),
                    mark: self.mark.as_ref(),
                }
            }
        }
    };
}

/// `queue = { … }`: a discipline with its limit and parameters.
#[derive(Debug, Deserialize)]
#[serde(
    rename_all = "snake_case",
    expecting = "a queue, such as { drop_tail = \"100 packets\" } or { codel = {} }"
)]
pub enum Queue {
    /// A size, or `bdp`.
    DropTail(Spanned<Written>),
    /// Random early detection.
    Red(Spanned<Red>),
    /// Controlled delay.
    Codel(Spanned<Codel>),
    /// Controlled delay, flow by flow.
    FqCodel(Spanned<FqCodel>),
}

/// `queue = { red = { … } }`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, expecting = "a table, such as { max_p = 0.1 }")]
pub struct Red {
    pub(super) limit: Option<Spanned<Written>>,
    pub(super) min: Option<Spanned<Written>>,
    pub(super) max: Option<Spanned<Written>>,
    pub(super) max_p: Option<Spanned<f64>>,
    pub(super) weight: Option<Spanned<f64>>,
    pub(super) gentle: Option<bool>,
    pub(super) ecn: Option<bool>,
}

/// `queue = { codel = { … } }`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, expecting = "a table, such as { target = \"5 ms\" }")]
pub struct Codel {
    pub(super) limit: Option<Spanned<Written>>,
    pub(super) target: Option<Spanned<Written>>,
    pub(super) interval: Option<Spanned<Written>>,
    pub(super) ecn: Option<bool>,
}

/// `queue = { fq_codel = { … } }`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, expecting = "a table, such as { quantum = 300 }")]
pub struct FqCodel {
    pub(super) limit: Option<Spanned<Written>>,
    pub(super) target: Option<Spanned<Written>>,
    pub(super) interval: Option<Spanned<Written>>,
    pub(super) ecn: Option<bool>,
    pub(super) quantum: Option<u32>,
    pub(super) queues: Option<u32>,
}

/// `loss = { … }`: one or several models.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, expecting = "a table, such as { rate = 0.01 }")]
pub struct Loss {
    pub(super) rate: Option<Spanned<f64>>,
    pub(super) unit: Option<Spanned<Unit>>,
    pub(super) burst: Option<Burst>,
    pub(super) gilbert_elliott: Option<TwoStates>,
    pub(super) drop: Option<Vec<Spanned<u64>>>,
    #[serde(default)]
    pub(super) during: Outages,
    #[serde(default)]
    pub(super) direction: Touched,
}

#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Unit {
    Packet,
    Bit,
}

#[derive(Debug, Deserialize)]
#[serde(
    deny_unknown_fields,
    expecting = "a table, such as { rate = 0.001, packets = [2, 8] }"
)]
pub(super) struct Burst {
    pub rate: Spanned<f64>,
    pub packets: Spanned<Exactly<u64, 2>>,
}

#[derive(Debug, Deserialize)]
#[serde(
    deny_unknown_fields,
    expecting = "a table, such as { good_to_bad = 0.01, bad_to_good = 0.3 }"
)]
pub(super) struct TwoStates {
    pub good_to_bad: Spanned<f64>,
    pub bad_to_good: Spanned<f64>,
    pub loss_good: Option<Spanned<f64>>,
    pub loss_bad: Option<Spanned<f64>>,
}

/// `jitter = { … }`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, expecting = "a table, such as { delay = \"10 ms\" }")]
pub struct Shaking {
    pub(super) delay: Spanned<Written>,
    #[serde(default)]
    pub(super) reorder: bool,
    #[serde(default)]
    pub(super) direction: Touched,
}

/// `police = { … }`.
#[derive(Debug, Deserialize)]
#[serde(
    deny_unknown_fields,
    expecting = "a table, such as { rate = \"10 Mbit/s\", burst = \"50 kB\" }"
)]
pub struct Policing {
    pub(super) rate: Spanned<Written>,
    pub(super) burst: Spanned<Written>,
    #[serde(default)]
    pub(super) direction: Touched,
}

/// `reorder = { … }`.
#[derive(Debug, Deserialize)]
#[serde(
    deny_unknown_fields,
    expecting = "a table, such as { rate = 0.05, delay = \"8 ms\" }"
)]
pub struct Reordering {
    pub(super) rate: Spanned<f64>,
    pub(super) delay: Spanned<Written>,
    #[serde(default)]
    pub(super) direction: Touched,
}

/// `duplicate = { … }` or `corrupt = { … }`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, expecting = "a table, such as { rate = 0.01 }")]
pub struct Flaw {
    pub(super) rate: Spanned<f64>,
    #[serde(default)]
    pub(super) direction: Touched,
}

/// `direction = …`: which way a fault happens.
#[derive(Clone, Copy, Debug, Default, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Touched {
    #[default]
    Forward,
    Reverse,
    Both,
}

impl Touched {
    pub fn has(self, way: Way) -> bool {
        match self {
            Touched::Forward => way == Way::Forward,
            Touched::Reverse => way == Way::Reverse,
            Touched::Both => true,
        }
    }
}
