//! Names of witnesses and the keys that set them. Keys and units are those of our own transports where both have them.

use crate::adapter::Adapter;
use crate::noq::Noq;
use crate::quic::{QuicCongestion, QuicParameters};
use crate::quinn::Quinn;
use crate::sctp::{Sctp, SctpParameters};
use crate::smoltcp::{Smoltcp, SmoltcpParameters};
use restp_base::machine::Machine;
use restp_base::units;
use smoltcp::socket::tcp::CongestionControl;
use std::fmt::Display;
use std::ops::RangeInclusive;
use thiserror::Error;

/// A witness with its parameters, for both ends of one flow.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Witness(Kind);

#[derive(Clone, Debug, PartialEq, Eq)]
enum Kind {
    Noq(QuicParameters),
    Quinn(QuicParameters),
    Sctp(SctpParameters),
    Smoltcp(SmoltcpParameters),
}

/// Why a key could not be set.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{message}")]
pub struct ParameterError {
    /// The key to blame.
    pub key: String,
    /// The value, the rule and the way out.
    pub message: String,
}

impl Witness {
    /// Names of all witnesses.
    pub const NAMES: [&'static str; 4] = ["mpquic:noq", "quic:quinn", "sctp:sctp-proto", "tcp:smoltcp"];

    /// The witness of this name, changed by the pairs of `set`; none: no witness has this name.
    pub fn named(name: &str, set: &[(&str, &str)]) -> Option<Result<Witness, ParameterError>> {
        let mut kind = match name {
            "mpquic:noq" => Kind::Noq(QuicParameters::DEFAULT),
            "quic:quinn" => Kind::Quinn(QuicParameters::DEFAULT),
            "sctp:sctp-proto" => Kind::Sctp(SctpParameters::default()),
            "tcp:smoltcp" => Kind::Smoltcp(SmoltcpParameters::default()),
            _ => return None,
        };
        for (key, value) in set {
            let (key, value) = (key.trim().replace('_', "-"), value.trim());
            if let Err(error) = kind.set(&key, value) {
                return Some(Err(error));
            }
        }
        Some(Ok(Witness(kind)))
    }

    /// May a flow use several paths?
    pub fn takes_several_paths(&self) -> bool {
        matches!(self.0, Kind::Noq(_))
    }

    /// What IPv4 calls its datagrams, for whoever reads along: TCP, UDP or SCTP, by their numbers at IANA.
    pub fn ip_protocol(&self) -> u8 {
        match self.0 {
            Kind::Smoltcp(_) => 6,
            Kind::Noq(_) | Kind::Quinn(_) => 17,
            Kind::Sctp(_) => 132,
        }
    }

    /// A machine that opens a connection, or one that `listens` for it.
    pub fn machine(&self, listens: bool) -> Box<dyn Machine> {
        match &self.0 {
            Kind::Noq(parameters) => Box::new(Adapter::new(Noq::new(parameters, listens))),
            Kind::Quinn(parameters) => Box::new(Adapter::new(Quinn::new(parameters, listens))),
            Kind::Sctp(parameters) => Box::new(Adapter::new(Sctp::new(*parameters, listens))),
            Kind::Smoltcp(parameters) => Box::new(Adapter::new(Smoltcp::new(*parameters, listens))),
        }
    }
}

impl Kind {
    fn set(&mut self, key: &str, value: &str) -> Result<(), ParameterError> {
        match self {
            Kind::Noq(quic) | Kind::Quinn(quic) => set_quic(quic, key, value),
            Kind::Sctp(sctp) => set_sctp(sctp, key, value),
            Kind::Smoltcp(tcp) => set_tcp(tcp, key, value),
        }
    }
}

fn set_quic(quic: &mut QuicParameters, key: &str, value: &str) -> Result<(), ParameterError> {
    match key {
        "congestion" => quic.congestion = named(key, value, &QUIC_CONTROLS)?,
        "datagram" => {
            let bytes = within(key, units::bytes(value), 1200..=65_000)?;
            quic.datagram_bytes = Some(bytes as u16);
        }
        "initial-window" => {
            quic.initial_window_packets = Some(within(key, units::packets(value), 2..=10_000)?);
        }
        "stream-window" => quic.stream_window_bytes = Some(window(key, value)?),
        "connection-window" => quic.connection_window_bytes = Some(window(key, value)?),
        "send-window" => quic.send_window_bytes = Some(window(key, value)?),
        _ => {
            let keys = "congestion, datagram, initial-window, stream-window, connection-window, send-window";
            return Err(unknown(key, keys));
        }
    }
    Ok(())
}

/// Bytes of a window: a full datagram at least, 1 GiB at most.
fn window(key: &str, value: &str) -> Result<u32, ParameterError> {
    Ok(within(key, units::bytes(value), 1500..=1 << 30)? as u32)
}

fn set_sctp(sctp: &mut SctpParameters, key: &str, value: &str) -> Result<(), ParameterError> {
    match key {
        "segment" => sctp.segment_bytes = within(key, units::bytes(value), 100..=60_000)? as u32,
        _ => return Err(unknown(key, "segment")),
    }
    Ok(())
}

fn set_tcp(tcp: &mut SmoltcpParameters, key: &str, value: &str) -> Result<(), ParameterError> {
    match key {
        "congestion" => tcp.congestion = named(key, value, &TCP_CONTROLS)?,
        "segment" => tcp.segment_bytes = within(key, units::bytes(value), 100..=60_000)? as usize,
        "ack-delay" => tcp.ack_delay = units::duration(value).map_err(|error| wrong(key, &error))?,
        _ => return Err(unknown(key, "congestion, segment, ack-delay")),
    }
    Ok(())
}

fn unknown(key: &str, keys: &str) -> ParameterError {
    ParameterError {
        key: key.into(),
        message: format!("\"{key}\" is nothing that can be set of this witness; write one of: {keys}"),
    }
}

const QUIC_CONTROLS: [(&str, QuicCongestion); 3] = [
    ("newreno", QuicCongestion::NewReno),
    ("cubic", QuicCongestion::Cubic),
    ("bbr", QuicCongestion::Bbr),
];
const TCP_CONTROLS: [(&str, CongestionControl); 3] = [
    ("none", CongestionControl::None),
    ("reno", CongestionControl::Reno),
    ("cubic", CongestionControl::Cubic),
];

fn wrong(key: &str, why: &dyn Display) -> ParameterError {
    ParameterError {
        key: key.into(),
        message: format!("{key}: {why}"),
    }
}

fn within(
    key: &str,
    read: Result<u64, units::UnitError>,
    range: RangeInclusive<u64>,
) -> Result<u64, ParameterError> {
    let found = read.map_err(|error| wrong(key, &error))?;
    let (low, high) = (range.start(), range.end());
    if range.contains(&found) {
        Ok(found)
    } else {
        Err(wrong(
            key,
            &format!("{found} is impossible; write {low} to {high}"),
        ))
    }
}

fn named<T: Copy>(key: &str, value: &str, choices: &[(&str, T)]) -> Result<T, ParameterError> {
    let names: Vec<_> = choices.iter().map(|(name, _)| *name).collect();
    match choices.iter().find(|(name, _)| *name == value) {
        Some((_, choice)) => Ok(*choice),
        None => {
            let names = names.join(", ");
            Err(wrong(
                key,
                &format!("\"{value}\" is no choice of this witness; write one of: {names}"),
            ))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_key_changes_its_witness_and_bad_values_are_named() {
        let quic: &[_] = &[
            ("congestion", "newreno", "vegas"),
            ("datagram", "1400 B", "100 B"),
            ("initial_window", "2 packets", "1 packet"),
            ("stream-window", "64 KiB", "100 B"),
            ("connection_window", "1 MiB", "2 GiB"),
            ("send-window", "1500 B", "1499 B"),
        ];
        let tcp: &[_] = &[
            ("congestion", "reno", "bbr"),
            ("segment", "1000 B", "1 B"),
            ("ack-delay", "40 ms", "40"),
        ];
        let sctp: &[_] = &[("segment", "1000 B", "70000 B")];
        for (name, keys) in [
            ("mpquic:noq", quic),
            ("quic:quinn", quic),
            ("sctp:sctp-proto", sctp),
            ("tcp:smoltcp", tcp),
        ] {
            let plain = Witness::named(name, &[]).unwrap().unwrap();
            for (key, good, bad) in keys {
                let set = Witness::named(name, &[(key, good)]).unwrap().unwrap();
                assert_ne!(set, plain, "{name} {key}");
                let error = Witness::named(name, &[(key, bad)]).unwrap().unwrap_err();
                assert_eq!(error.key, key.replace('_', "-"));
                assert!(
                    error.message.contains("write") || error.message.contains("unit"),
                    "{error}"
                );
            }
            let error = Witness::named(name, &[("colour", "red")]).unwrap().unwrap_err();
            assert!(error.message.contains(&keys[0].0.replace('_', "-")), "{error}");
        }
        assert_eq!(Witness::named("tcp:newreno", &[]), None);
        assert!(
            Witness::NAMES
                .iter()
                .all(|name| Witness::named(name, &[]).is_some())
        );
    }
}
