//! Every key, services first. A choice brings its default parameters; the keys below it change them.

mod entries;

use super::Composition;
use super::key::{Access, Key, Slot, Unit};
use entries::{
    ACKNOWLEDGEMENTS, BBR, BIC_PROFILES, CONTROLLED, ENCODED, GROWTH, NUMBERING, POSITIVE, SKIPPING, SPARING,
    SWITCH, VEGAS, WESTWOOD_FILTERS, WESTWOOD_PLUS_FILTERS, bbr, bbr_number, choose, choose_reliability, fec,
    fec_count, grant_blocks, hold, name_of, number, parameter, positive, service, shared_numbers, sparing,
    streams, vegas,
};
use restp_services::ack::{Acknowledgement, Detail, Schedule};
use restp_services::congestion::{CongestionChoice, HyStartChoice};
use restp_services::connection_management::Establishment;
use restp_services::flow_control::{FlowControl, WindowParameters};
use restp_services::framing::Framing;
use restp_services::loss_handling::LossHandling;
use restp_services::ordering::Ordering;
use restp_services::path_management::PathMode;
use restp_services::recovery::{LostRetransmissions, RecoveryChoice, Reordering};
use restp_services::reliability::{FecCode, Reliability};
use restp_services::scheduling::{Scheduling, Weights};

/// A choice among names: the array of pairs it is taken from, and the field.
macro_rules! named {
    ($all:expr, |$c:ident| $slot:expr) => {
        Access::Choice {
            choices: || $all.iter().map(|(name, _)| *name).collect(),
            read: |$c| name_of(&$all, $slot),
            write: |$c, value| choose(&$all, $slot, value),
        }
    };
}

/// A number with its unit, and the field.
macro_rules! number {
    ($unit:ident, $slot:expr) => {
        Access::Number {
            unit: Unit::$unit,
            slot: $slot,
        }
    };
}

/// A parameter of one congestion control.
macro_rules! own {
    ($c:ident, $algorithm:ident, $field:ident) => {
        match &mut $c.congestion {
            CongestionChoice::$algorithm(params) => Some(&mut params.$field),
            _ => None,
        }
    };
}

/// Every key, in the order in which a composition is printed.
pub static KEYS: &[Key] = &[
    service(
        "connection",
        "ResTP §3.5.5",
        named!(Establishment::ALL, |c| Some(&mut c.establishment)),
    ),
    service(
        "framing",
        "ResTP §3.5.3",
        Access::Choice {
            choices: || Framing::ALL.map(|(name, _)| name).to_vec(),
            read: |c| Some(c.framing.name().into()),
            write: |c, value| choose(&Framing::ALL, Some(&mut c.framing), value),
        },
    ),
    service(
        "flow-control",
        "ResTP §3.5.4",
        Access::Choice {
            choices: || FlowControl::NAMES.to_vec(),
            read: |c| Some(c.flow_control.name().into()),
            write: |c, value| {
                c.flow_control = match value {
                    "none" => FlowControl::None,
                    "window" => FlowControl::Window(WindowParameters::default()),
                    _ => return None,
                };
                Some(())
            },
        },
    ),
    service(
        "ordering",
        "ResTP §3.5.7",
        named!(Ordering::ALL, |c| Some(&mut c.ordering)),
    ),
    service(
        "reliability",
        "ResTP §3.5.8",
        Access::Choice {
            choices: || Reliability::ALL.map(|(name, _)| name).to_vec(),
            read: |c| name_of(&Reliability::ALL, Some(&mut c.reliability)),
            write: choose_reliability,
        },
    ),
    service(
        "ack",
        "ResTP §3.5.9",
        Access::Choice {
            choices: || ACKNOWLEDGEMENTS.to_vec(),
            read: |c| Some(c.ack.name()),
            write: |c, value| {
                c.ack = Acknowledgement::from_name(value)?;
                grant_blocks(c);
                Some(())
            },
        },
    ),
    service(
        "recovery",
        "ResTP §3.5.8",
        named!(RecoveryChoice::ALL, |c| Some(&mut c.recovery)),
    ),
    service(
        "loss",
        "ResTP §3.6",
        named!(LossHandling::ALL, |c| Some(&mut c.loss_handling)),
    ),
    service(
        "congestion",
        "ResTP §3.5.6",
        Access::Choice {
            choices: || {
                CongestionChoice::all()
                    .iter()
                    .map(CongestionChoice::name)
                    .collect()
            },
            read: |c| Some(c.congestion.name().into()),
            write: |c, value| {
                c.congestion = CongestionChoice::from_name(value)?;
                Some(())
            },
        },
    ),
    service("pacing", "RFC 9002 §7.7", named!(SWITCH, |c| Some(&mut c.pacing))),
    service("ecn", "OP-59", named!(SWITCH, |c| Some(&mut c.ecn))),
    service(
        "mtu-discovery",
        "RFC 8899",
        named!(SWITCH, |c| Some(&mut c.mtu_discovery)),
    ),
    service("crc", "ResTP §3.1.2", named!(SWITCH, |c| Some(&mut c.crc))),
    service(
        "mapping-crc",
        "ResTP §3.1.13",
        named!(SWITCH, |c| Some(&mut c.mapping_crc)),
    ),
    service(
        "paths",
        "ResTP §3.3",
        named!(PathMode::ALL, |c| Some(&mut c.paths)),
    ),
    service("numbering", "project", NUMBERING),
    service(
        "scheduling",
        "ResTP §3.5.10",
        Access::Choice {
            choices: || {
                let names = Scheduling::ALL.map(|(name, _)| name);
                std::iter::once("none").chain(names).collect()
            },
            read: |c| Some(c.scheduling.as_ref().map_or("none", Scheduling::name).into()),
            write: |c, value| {
                c.scheduling = match value {
                    "none" => None,
                    name => Some(Scheduling::from_name(name)?),
                };
                Some(())
            },
        },
    ),
    number("segment", "OP-18", Unit::Bytes, |c| Some(&mut c.segment_bytes)),
    parameter(
        "window",
        "ResTP §3.1.3",
        "flow-control = window",
        Access::Number {
            unit: Unit::Segments,
            slot: |c| match &mut c.flow_control {
                FlowControl::Window(window) => Some(&mut window.segments),
                FlowControl::None => None,
            },
        },
    ),
    parameter(
        "stream-window",
        "RFC 9000 §4.1",
        "framing = streams",
        number!(Bytes, |c| Some(&mut streams(c)?.window_bytes)),
    ),
    parameter(
        "streams",
        "RFC 9000 §4.6",
        "framing = streams",
        number!(Count, |c| Some(&mut streams(c)?.most)),
    ),
    parameter(
        "weights",
        "ResTP §3.5.10",
        "scheduling = weighted",
        Access::Choice {
            choices: || vec!["shares in the order of the paths such as \"3:1\""],
            read: |c| match &c.scheduling {
                Some(Scheduling::Weighted(weights)) => Some(weights.to_string()),
                _ => None,
            },
            write: |c, value| match &mut c.scheduling {
                Some(Scheduling::Weighted(weights)) => {
                    *weights = Weights::parse(value)?;
                    Some(())
                }
                _ => None,
            },
        },
    ),
    parameter(
        "ack-return",
        "CMT §3",
        "numbering = shared",
        Access::Choice {
            // As many as an association has paths; who has added and removed more lines may name a later one.
            choices: || {
                let mut lines = vec!["any"];
                lines.extend(["1", "2", "3", "4", "5", "6", "7", "8", "9", "10"]);
                lines.extend(["11", "12", "13", "14", "15"]);
                lines
            },
            read: |c| shared_numbers(c).map(|c| c.ack_return.to_string()),
            write: |c, value| {
                shared_numbers(c)?.ack_return = value.parse().ok()?;
                Some(())
            },
        },
    ),
    parameter(
        "hold",
        "OP-48",
        SKIPPING,
        number!(TimeOrAuto, |c| hold(c)
            .map(|rule| &mut rule.hold as &mut dyn Slot)),
    ),
    parameter(
        "deadline",
        "OP-48",
        SKIPPING,
        number!(TimeOrNone, |c| hold(c)
            .map(|rule| &mut rule.deadline as &mut dyn Slot)),
    ),
    parameter(
        "frame-interval",
        "OP-48",
        SKIPPING,
        number!(Time, |c| hold(c)
            .map(|rule| &mut rule.frame_interval as &mut dyn Slot)),
    ),
    parameter(
        "ack-every",
        "ResTP §3.5.9",
        POSITIVE,
        number!(Packets, |c| Some(&mut positive(c)?.every)),
    ),
    parameter(
        "ack-delay",
        "OP-45",
        POSITIVE,
        number!(Time, |c| Some(&mut positive(c)?.delay)),
    ),
    parameter(
        "ack-thinning",
        "RFC 5690",
        POSITIVE,
        named!(SWITCH, |c| Some(&mut positive(c)?.thins)),
    ),
    parameter(
        "ack-period",
        "OP-46",
        "ack = delayed",
        Access::Number {
            unit: Unit::TimeOrAuto,
            slot: |c| match &mut c.ack.schedule {
                Schedule::Delayed(delayed) => Some(&mut delayed.period),
                Schedule::None | Schedule::Positive(_) => None,
            },
        },
    ),
    parameter(
        "repeat-after",
        "OP-47",
        "an ack with repeat, such as positive+repeat",
        number!(TimeOrAuto, |c| Some(&mut c.ack.repeat.as_mut()?.idle)),
    ),
    parameter(
        "sack-blocks",
        "ResTP §3.1.8",
        "ack = positive+sack",
        Access::Number {
            unit: Unit::Count,
            slot: |c| match &mut c.ack.detail {
                Detail::Sack { max_blocks } => Some(max_blocks),
                Detail::Pointer | Detail::Nak | Detail::Snack => None,
            },
        },
    ),
    parameter(
        "lost-repeats",
        "RFC 6675 §4",
        "recovery = pipe",
        named!(LostRetransmissions::ALL, |c| (c.recovery == RecoveryChoice::Pipe)
            .then_some(&mut c.lost_retransmissions)),
    ),
    parameter(
        "reordering",
        "RFC 8985 §6.2",
        "recovery = pipe",
        named!(Reordering::ALL, |c| (c.recovery == RecoveryChoice::Pipe)
            .then_some(&mut c.reordering)),
    ),
    parameter(
        "flight-limit",
        "OP-50",
        "congestion = none",
        number!(Segments, |c| own!(c, None, flight_limit_segments)),
    ),
    parameter(
        "initial-window",
        "OP-33",
        CONTROLLED,
        number!(Segments, |c| Some(
            &mut c.congestion.common()?.initial_window_segments
        )),
    ),
    parameter(
        "initial-threshold",
        "RFC 5681 §3.1",
        CONTROLLED,
        number!(Bytes, |c| Some(
            &mut c.congestion.common()?.initial_threshold_bytes
        )),
    ),
    parameter(
        "growth",
        "RFC 9002 §7.3.1",
        CONTROLLED,
        named!(GROWTH, |c| c.congestion.common().map(|common| &mut common.growth)),
    ),
    parameter(
        "abe",
        "RFC 8511",
        SPARING,
        named!(SWITCH, |c| Some(&mut sparing(c)?.abe)),
    ),
    parameter(
        "fast-convergence",
        "RFC 9438 §4.7",
        "congestion = cubic or bic",
        named!(SWITCH, |c| match &mut c.congestion {
            CongestionChoice::Bic(params) => Some(&mut params.fast_convergence),
            CongestionChoice::Cubic(params) => Some(&mut params.fast_convergence),
            _ => None,
        }),
    ),
    parameter(
        "hystart",
        "RFC 9406",
        "congestion = cubic",
        named!(HyStartChoice::ALL, |c| own!(c, Cubic, hystart)),
    ),
    parameter(
        "bic-profile",
        "INFOCOM 2004",
        "congestion = bic",
        named!(BIC_PROFILES, |c| own!(c, Bic, profile)),
    ),
    parameter(
        "vegas-alpha",
        "TC §2.3.4",
        VEGAS,
        number!(Segments, |c| Some(&mut vegas(c)?.alpha_segments)),
    ),
    parameter(
        "vegas-beta",
        "TC §2.3.4",
        VEGAS,
        number!(Segments, |c| Some(&mut vegas(c)?.beta_segments)),
    ),
    parameter(
        "vegas-gamma",
        "TC §2.3.4",
        VEGAS,
        number!(Segments, |c| Some(&mut vegas(c)?.gamma_segments)),
    ),
    parameter(
        "westwood-filter",
        "TC §2.3.6",
        "congestion = westwood",
        named!(WESTWOOD_FILTERS, |c| own!(c, Westwood, filter)),
    ),
    parameter(
        "westwood-plus-filter",
        "TC §2.3.7",
        "congestion = westwood+",
        named!(WESTWOOD_PLUS_FILTERS, |c| own!(c, WestwoodPlus, filter)),
    ),
    parameter(
        "veno-beta",
        "Fu, Liew 2003",
        "congestion = veno",
        number!(Segments, |c| own!(c, Veno, beta_segments)),
    ),
    parameter(
        "reference-rtt",
        "Caini, Firrincieli 2004",
        "congestion = hybla",
        number!(Time, |c| own!(c, Hybla, reference_rtt)),
    ),
    parameter(
        "bbr-draft",
        "draft-ietf-ccwg-bbr",
        BBR,
        named!(SWITCH, |c| Some(&mut bbr(c)?.draft)),
    ),
    bbr_number("random-loss", "draft-ietf-ccwg-bbr §5.5.10", |c| {
        Some(&mut bbr(c)?.random_loss_percent)
    }),
    bbr_number("bbr-headroom", "draft-ietf-ccwg-bbr §5.5.10", |c| {
        Some(&mut bbr(c)?.queue_headroom_percent)
    }),
    bbr_number("bbr-margin", "draft-ietf-ccwg-bbr §5.6.2", |c| {
        Some(&mut bbr(c)?.clear_margin_percent)
    }),
    bbr_number("bbr-leap", "SIGCOMM 2024", |c| Some(&mut bbr(c)?.leap)),
    bbr_number("bbr-vain-rounds", "draft-ietf-ccwg-bbr §5.3.3.6", |c| {
        Some(&mut bbr(c)?.vain_rounds)
    }),
    parameter(
        "rate",
        "ResTP §3.5.9",
        "congestion = rate",
        number!(Rate, |c| own!(c, Rate, rate)),
    ),
    parameter(
        "fec",
        "ResTP §3.1.5",
        ENCODED,
        named!(FecCode::ALL, |c| Some(&mut fec(c)?.code)),
    ),
    parameter(
        "fec-timer",
        "ResTP §3.5.8",
        ENCODED,
        number!(TimeOrAuto, |c| Some(&mut fec(c)?.timer)),
    ),
    parameter(
        "fec-congestion",
        "RFC 9265 §4",
        ENCODED,
        named!(SWITCH, |c| Some(&mut fec(c)?.counts_as_congestion)),
    ),
    fec_count("fec-redundancy", |c| Some(&mut fec(c)?.most_percent)),
    number("handshake-rto", "OP-32", Unit::Time, |c| {
        Some(&mut c.handshake.rto)
    }),
    number("handshake-attempts", "OP-32", Unit::Count, |c| {
        Some(&mut c.handshake.attempts)
    }),
    number("rto-floor", "OP-58", Unit::Time, |c| Some(&mut c.rto.floor)),
    number("rto-ceiling", "OP-58", Unit::Time, |c| Some(&mut c.rto.ceiling)),
    number("data-attempts", "OP-51", Unit::Count, |c| {
        Some(&mut c.rto.attempts)
    }),
    number("send-buffer", "ResTP §A.1", Unit::Bytes, |c| {
        Some(&mut c.send_buffer_bytes)
    }),
    parameter(
        "outage-timeout",
        "ResTP §3.6",
        "loss = outage",
        Access::Number {
            unit: Unit::Time,
            slot: |c| {
                let probes = c.loss_handling.probes();
                probes.then_some(&mut c.outage_timeout as &mut dyn Slot)
            },
        },
    ),
    number("idle-timeout", "OP-35", Unit::Time, |c| Some(&mut c.idle_timeout)),
    number("progress-timeout", "OP-50", Unit::Time, |c| {
        Some(&mut c.progress_timeout)
    }),
];
