//! The scenario file as written. Nothing is judged here but the names of keys and the kinds of values; every
//! value keeps its place in the file.

use restp_sim::config::{Exactly, Written};
use serde::Deserialize;
use serde::de::{self, Visitor};
use std::collections::BTreeMap;
use std::fmt;
use toml::Spanned;

/// Every key at the top of a file.
pub(super) const TOP: [&str; 19] = [
    "id",
    "title",
    "duration",
    "seed",
    "runs",
    "profile",
    "timers",
    "node",
    "link",
    "medium",
    "station",
    "challenge",
    "host",
    "flow",
    "measure",
    "group",
    "sweep",
    "check",
    "page",
];

/// A point: the keys of [`TOP`], known to be no others, without `sweep`, `check` and `page`.
#[derive(Debug, Deserialize)]
pub(super) struct RawScenario {
    pub id: Spanned<String>,
    #[serde(default)]
    pub title: String,
    pub duration: Spanned<Written>,
    pub seed: Option<Spanned<u64>>,
    pub runs: Option<Spanned<u64>>,
    pub profile: Option<Spanned<String>>,
    pub timers: Option<Spanned<Written>>,
    #[serde(default)]
    pub node: Vec<RawNode>,
    #[serde(default)]
    pub link: Vec<Spanned<RawLink>>,
    #[serde(default)]
    pub medium: Vec<RawMedium>,
    #[serde(default)]
    pub station: Vec<RawStation>,
    #[serde(default)]
    pub challenge: Vec<RawChallenge>,
    #[serde(default)]
    pub host: Vec<RawHost>,
    #[serde(default)]
    pub flow: Vec<RawFlow>,
    pub measure: Option<RawMeasure>,
    #[serde(default)]
    pub group: Vec<RawGroup>,
}

/// The part of a run that counts.
#[derive(Debug, Deserialize)]
#[serde(
    deny_unknown_fields,
    expecting = "a table, such as { from = \"10 s\", to = \"70 s\" }"
)]
pub(super) struct RawMeasure {
    pub from: Option<Spanned<Written>>,
    pub to: Option<Spanned<Written>>,
}

/// Flows that are looked at together.
#[derive(Debug, Deserialize)]
#[serde(
    deny_unknown_fields,
    expecting = "a table, such as { name = \"a\", flows = [\"f\"] }"
)]
pub(super) struct RawGroup {
    pub name: Spanned<String>,
    pub flows: Spanned<Vec<Spanned<String>>>,
    #[serde(default)]
    pub each: Each,
}

/// What counts as one where shares are compared.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Each {
    /// A flow, whatever paths it has.
    #[default]
    Flow,
    /// Each path of a flow.
    Path,
}

/// A node with its place on the map.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, expecting = "a table")]
pub(super) struct RawNode {
    pub name: Spanned<String>,
    pub latitude: Spanned<f64>,
    pub longitude: Spanned<f64>,
}

/// A channel of 802.11.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, expecting = "a table")]
pub(super) struct RawMedium {
    pub name: Spanned<String>,
    #[serde(default, rename = "label")]
    _label: String,
    pub standard: Option<Spanned<String>>,
    pub preamble: Option<Spanned<String>>,
    #[serde(default)]
    pub llc: bool,
    pub rate: Option<Spanned<Written>>,
    pub control_rate: Option<Spanned<Written>>,
    pub decode_m: Option<Spanned<f64>>,
    pub sense_m: Option<Spanned<f64>>,
    pub interfere_m: Option<Spanned<f64>>,
    pub capture: Option<Spanned<f64>>,
    pub eifs: Option<Spanned<String>>,
    pub queue_packets: Option<Spanned<u64>>,
    pub rts_threshold: Option<Spanned<Written>>,
    pub short_retries: Option<Spanned<u64>>,
    pub long_retries: Option<Spanned<u64>>,
    pub bit_errors: Option<Spanned<f64>>,
}

/// Nodes with radios.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, expecting = "a table")]
pub(super) struct RawStation {
    pub name: Spanned<String>,
    #[serde(default, rename = "label")]
    _label: String,
    pub count: Option<Spanned<u64>>,
    pub first: Option<Spanned<String>>,
    pub last: Option<Spanned<String>>,
    pub at_m: Spanned<Exactly<f64, 2>>,
    pub step_m: Option<Exactly<f64, 2>>,
    #[serde(default)]
    pub waypoints: Vec<Spanned<Exactly<Written, 3>>>,
    pub media: Spanned<Vec<Spanned<String>>>,
}

/// A disc on the map during a span of time.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, expecting = "a table")]
pub(super) struct RawChallenge {
    pub during: Spanned<Written>,
    pub centre: Spanned<Exactly<f64, 2>>,
    pub moves_to: Option<Spanned<Exactly<f64, 2>>>,
    pub radius_km: Spanned<f64>,
    pub grows_to_km: Option<Spanned<f64>>,
}

/// Paths by what is asked of them.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, expecting = "a table")]
pub(super) struct RawGeodiverse {
    pub paths: Option<u64>,
    pub separation_km: Option<f64>,
    pub failures: Option<u64>,
    pub radius_km: Option<f64>,
    pub stretch: Option<u64>,
    pub skew: Option<Spanned<Written>>,
}

restp_sim::link_table! {
    pub(super) struct RawLink {
        pub name: Spanned<String>,
        #[serde(default, rename = "label")]
        _label: String,
        pub count: Option<Spanned<u64>>,
        pub between: Spanned<Vec<Spanned<String>>>,
    }
}

/// Machines that serve many flows, or lie on the way of them.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, expecting = "a table")]
pub(super) struct RawHost {
    pub name: Spanned<String>,
    #[serde(default, rename = "label")]
    _label: String,
    pub count: Option<Spanned<u64>>,
    pub node: Option<Spanned<String>>,
    pub transport: Option<Spanned<String>>,
    #[serde(default)]
    pub set: RawSet,
    pub role: Option<Spanned<String>>,
    pub size: Option<Spanned<Size>>,
}

/// Keys of a transport and their values.
pub(super) type RawSet = BTreeMap<String, Spanned<toml::Value>>;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, expecting = "a table")]
pub(super) struct RawFlow {
    pub name: Spanned<String>,
    /// For diagnostics only: what a choice of keys is called in the coordinates of a point.
    #[serde(default, rename = "label")]
    _label: String,
    pub count: Option<Spanned<u64>>,
    pub from: Spanned<String>,
    pub to: Spanned<String>,
    pub transport: Option<Spanned<String>>,
    #[serde(default)]
    pub set: RawSet,
    #[serde(default)]
    pub seal: bool,
    pub traffic: Spanned<RawTraffic>,
    pub start: Option<Spanned<Written>>,
    pub start_spread: Option<Spanned<Written>>,
    pub bins: Option<Spanned<Written>>,
    #[serde(default)]
    pub sawtooth: bool,
    pub paths: Option<Spanned<RawPaths>>,
    pub disjoint: Option<Spanned<u64>>,
    pub geodiverse: Option<Spanned<RawGeodiverse>>,
    pub backups: Option<Spanned<u64>>,
    #[serde(default)]
    pub notice: bool,
    #[serde(default)]
    pub change: Vec<RawChange>,
}

impl RawFlow {
    /// More than one path is asked for.
    pub(super) fn takes_several_paths(&self) -> bool {
        self.paths.as_ref().is_some_and(|paths| paths.get_ref().len() > 1)
            || self.disjoint.as_ref().is_some_and(|count| *count.get_ref() > 1)
            || self.geodiverse.is_some()
    }
}

/// Other services from a moment on.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, expecting = "a table")]
pub(super) struct RawChange {
    pub at: Spanned<Written>,
    pub set: RawSet,
}

/// The links of each path, in the order of travel.
pub(super) type RawPaths = Vec<Spanned<Vec<Spanned<String>>>>;

#[derive(Debug, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum RawTraffic {
    Bulk(RawBulk),
    File(RawFile),
    Cbr(RawCbr),
    Voip(RawVoip),
    Web(RawWeb),
    Zipf(RawZipf),
}

impl RawTraffic {
    /// The path that its messages are pinned to.
    pub(super) fn path(&self) -> Option<&Spanned<u64>> {
        match self {
            RawTraffic::Cbr(cbr) => cbr.path.as_ref(),
            RawTraffic::Voip(voip) => voip.path.as_ref(),
            RawTraffic::Bulk(_) | RawTraffic::File(_) | RawTraffic::Web(_) | RawTraffic::Zipf(_) => None,
        }
    }
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, expecting = "a table")]
pub(super) struct RawBulk {}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, expecting = "a table")]
pub(super) struct RawFile {
    pub bytes: Spanned<Size>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, expecting = "a table")]
pub(super) struct RawCbr {
    pub bytes: Spanned<Size>,
    pub rate: Option<Spanned<Written>>,
    pub interval: Option<Spanned<Written>>,
    pub count: Option<Spanned<u64>>,
    pub late_after: Option<Spanned<Written>>,
    pub path: Option<Spanned<u64>>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, expecting = "a table")]
pub(super) struct RawVoip {
    pub path: Option<Spanned<u64>>,
    pub duration: Option<Spanned<Written>>,
    pub late_after: Option<Spanned<Written>>,
    pub framing: Option<Spanned<String>>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, expecting = "a table")]
pub(super) struct RawWeb {
    pub pages: Option<Spanned<u64>>,
    pub first: Option<RawPage>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, expecting = "a table")]
pub(super) struct RawZipf {
    pub objects: Spanned<u64>,
    pub exponent: Option<Spanned<f64>>,
    pub requests: Option<Spanned<u64>>,
    pub bytes: Spanned<Size>,
    pub pause: Option<Spanned<Written>>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, expecting = "a table")]
pub(super) struct RawPage {
    pub main: Spanned<Size>,
    #[serde(default)]
    pub embedded: Vec<Spanned<Size>>,
    pub parse: Option<Spanned<Written>>,
}

/// The value of a key that counts bytes: a number, or a quantity such as `"64 KiB"`.
#[derive(Clone, Copy, Debug)]
pub(super) struct Size(pub u64);

impl fmt::Display for Size {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} B", self.0)
    }
}

impl<'de> Deserialize<'de> for Size {
    fn deserialize<D: de::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Bytes;
        impl Visitor<'_> for Bytes {
            type Value = Size;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a number of bytes, such as 1400 or \"64 KiB\"")
            }
            fn visit_u64<E: de::Error>(self, bytes: u64) -> Result<Size, E> {
                Ok(Size(bytes))
            }
            fn visit_i64<E: de::Error>(self, bytes: i64) -> Result<Size, E> {
                u64::try_from(bytes)
                    .map(Size)
                    .map_err(|_| E::invalid_value(de::Unexpected::Signed(bytes), &self))
            }
            fn visit_str<E: de::Error>(self, written: &str) -> Result<Size, E> {
                restp_base::units::bytes(written).map(Size).map_err(E::custom)
            }
        }
        deserializer.deserialize_any(Bytes)
    }
}
