//! What the entries of the table are made of: names of choices, what a parameter needs, and the three kinds of entry
//! (ResTP §3.5; `docs/protocol/composition.md`).

use super::{Access, Composition, Key, Slot, Unit};
use restp_services::ack::{PositiveParameters, Schedule};
use restp_services::congestion::{
    BbrParams, BicProfile, CommonParams, CongestionChoice, Growth, VegasParams, WestwoodFilter,
    WestwoodPlusFilter,
};
use restp_services::framing::{Framing, StreamLimits};
use restp_services::ordering::HoldParameters;
use restp_services::path_management::NumberSpace;
use restp_services::reliability::{FecParameters, Reliability};

pub(super) const SWITCH: [(&str, bool); 2] = [("on", true), ("off", false)];

pub(super) const GROWTH: [(&str, Growth); 2] = [("bytes", Growth::Bytes), ("acks", Growth::Acks)];

pub(super) const BIC_PROFILES: [(&str, BicProfile); 2] =
    [("sim", BicProfile::Sim), ("paper", BicProfile::Paper)];

pub(super) const WESTWOOD_FILTERS: [(&str, WestwoodFilter); 2] = [
    ("const", WestwoodFilter::Const),
    ("tustin", WestwoodFilter::Tustin),
];

pub(super) const WESTWOOD_PLUS_FILTERS: [(&str, WestwoodPlusFilter); 2] = [
    ("const", WestwoodPlusFilter::Const),
    ("pub", WestwoodPlusFilter::Pub),
];

/// The techniques that make sense; SACK and SNACK at once do not, because SAK and NAK together mean SNACK
/// (ResTP §3.5.9).
pub(super) const ACKNOWLEDGEMENTS: [&str; 17] = [
    "none",
    "positive",
    "positive+nak",
    "positive+sack",
    "positive+snack",
    "positive+repeat",
    "positive+nak+repeat",
    "positive+sack+repeat",
    "positive+snack+repeat",
    "delayed",
    "delayed+nak",
    "delayed+sack",
    "delayed+snack",
    "delayed+repeat",
    "delayed+nak+repeat",
    "delayed+sack+repeat",
    "delayed+snack+repeat",
];

/// Under full reliability no hole is skipped.
pub(super) const SKIPPING: &str = "reliability = partial, partial+fec, quasi or unreliable";

pub(super) fn hold(c: &mut Composition) -> Option<&mut HoldParameters> {
    (!c.reliability.is_full()).then_some(&mut c.hold)
}

/// The algorithms with a window.
pub(super) const CONTROLLED: &str = "a congestion control with a window, such as cubic";

pub(super) const SPARING: &str = "congestion = newreno, reno or cubic";

/// The algorithms for which RFC 8511 says what a mark costs.
pub(super) fn sparing(c: &mut Composition) -> Option<&mut CommonParams> {
    match &mut c.congestion {
        CongestionChoice::NewReno(common) | CongestionChoice::Reno(common) => Some(common),
        CongestionChoice::Cubic(params) => Some(&mut params.common),
        _ => None,
    }
}

pub(super) const VEGAS: &str = "congestion = vegas";

pub(super) fn vegas(c: &mut Composition) -> Option<&mut VegasParams> {
    match &mut c.congestion {
        CongestionChoice::Vegas(params) => Some(params),
        _ => None,
    }
}

pub(super) const BBR: &str = "congestion = bbr";

pub(super) fn bbr(c: &mut Composition) -> Option<&mut BbrParams> {
    match &mut c.congestion {
        CongestionChoice::Bbr(params) => Some(params),
        _ => None,
    }
}

pub(super) const fn bbr_number(
    name: &'static str,
    section: &'static str,
    slot: fn(&mut Composition) -> Option<&mut dyn Slot>,
) -> Key {
    let unit = Unit::Count;
    parameter(name, section, BBR, Access::Number { unit, slot })
}

pub(super) const POSITIVE: &str = "ack = positive";

pub(super) fn positive(c: &mut Composition) -> Option<&mut PositiveParameters> {
    match &mut c.ack.schedule {
        Schedule::Positive(positive) => Some(positive),
        Schedule::None | Schedule::Delayed(_) => None,
    }
}

/// The services that encode.
pub(super) const ENCODED: &str = "reliability = quasi, harq or partial+fec";

/// Bounds of streams, where there are any.
pub(super) fn streams(c: &mut Composition) -> Option<&mut StreamLimits> {
    match &mut c.framing {
        Framing::Streams(limits) => Some(limits),
        Framing::Fixed | Framing::Coalesce => None,
    }
}

pub(super) fn fec(c: &mut Composition) -> Option<&mut FecParameters> {
    c.reliability.encodes().then_some(&mut c.fec)
}

/// A service brings its code, unless the one in place fits.
pub(super) fn choose_reliability(c: &mut Composition, value: &str) -> Option<()> {
    choose(&Reliability::ALL, Some(&mut c.reliability), value)?;
    if !c.reliability.encodes_by(c.fec.code) {
        c.fec.code = c.reliability.default_code();
    }
    Some(())
}

pub(super) const NUMBERING: Access = Access::Choice {
    choices: || NumberSpace::ALL.map(|(name, _)| name).to_vec(),
    read: |c| name_of(&NumberSpace::ALL, Some(&mut c.numbering)),
    write: choose_numbering,
};

fn choose_numbering(c: &mut Composition, value: &str) -> Option<()> {
    choose(&NumberSpace::ALL, Some(&mut c.numbering), value)?;
    grant_blocks(c);
    Some(())
}

/// Where paths share the numbers.
pub(super) fn shared_numbers(c: &mut Composition) -> Option<&mut Composition> {
    (c.numbering == NumberSpace::Shared).then_some(c)
}

/// Where paths share the numbers an acknowledgement has many blocks.
pub(super) fn grant_blocks(c: &mut Composition) {
    if c.numbering == NumberSpace::Shared {
        c.ack.detail = c.ack.detail.of_many_paths();
    }
}

pub(super) const fn fec_count(
    name: &'static str,
    slot: fn(&mut Composition) -> Option<&mut dyn Slot>,
) -> Key {
    let unit = Unit::Count;
    parameter(name, "project", ENCODED, Access::Number { unit, slot })
}

pub(super) const fn service(name: &'static str, section: &'static str, access: Access) -> Key {
    Key {
        name,
        section,
        service: true,
        needs: "",
        access,
    }
}

pub(super) const fn number(
    name: &'static str,
    section: &'static str,
    unit: Unit,
    slot: fn(&mut Composition) -> Option<&mut dyn Slot>,
) -> Key {
    parameter(name, section, "", Access::Number { unit, slot })
}

pub(super) const fn parameter(
    name: &'static str,
    section: &'static str,
    needs: &'static str,
    access: Access,
) -> Key {
    Key {
        name,
        section,
        service: false,
        needs,
        access,
    }
}

pub(super) fn name_of<T: PartialEq>(all: &[(&'static str, T)], slot: Option<&mut T>) -> Option<String> {
    let chosen = slot?;
    let (name, _) = all.iter().find(|(_, choice)| choice == chosen)?;
    Some((*name).into())
}

pub(super) fn choose<T: Copy>(all: &[(&'static str, T)], slot: Option<&mut T>, value: &str) -> Option<()> {
    let (_, choice) = all.iter().find(|(name, _)| *name == value)?;
    *slot? = *choice;
    Some(())
}
