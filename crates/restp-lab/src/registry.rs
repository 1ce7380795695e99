//! From the name of a transport in a scenario to the machines at both ends of a flow.

mod machines;
mod numbers;
mod restp;
mod seal;
mod unknown;

pub use machines::Ends;
pub(crate) use numbers::Numbers;
pub(crate) use restp::text_of;

use restp_base::machine::{Datagram, PathAddress};
use restp_proto::composition::ValidComposition;
use restp_proto::wire;
use restp_rivals::itp::ItpParameters;
use restp_rivals::sctp::SctpParameters;
use restp_rivals::tcp::wire as tcp_wire;
use restp_rivals::tcp::{ParameterError, TcpParameters};
use restp_services::path_management::PathMode;
use restp_services::reliability::Reliability;
use restp_witnesses::Witness;
use std::path::Path;
use thiserror::Error;
use unknown::unknown_transport;

/// A protocol with its parameters, for both ends of one flow.
#[derive(Clone, Debug)]
pub struct Transport {
    name: String,
    kind: Kind,
    /// Its datagrams are sealed.
    sealed: bool,
    /// Who serves it goes along with changes.
    follows: bool,
}

#[derive(Clone, Debug)]
enum Kind {
    Udp,
    Restp(Box<ValidComposition>),
    /// TCP, or MPTCP where the parameters say how paths are chosen.
    Tcp(Box<TcpParameters>),
    /// SCTP, CMT, or a scheme of SMT.
    Sctp(Box<SctpParameters>),
    /// ITP or NDN: a receiver asks for each chunk.
    Itp(Box<ItpParameters>),
    /// Somebody else's engine.
    Witness(Witness),
}

/// Its number at IANA.
const TCP: u8 = 6;
/// The same of SCTP.
const SCTP: u8 = 132;
/// The same of UDP.
const UDP: u8 = 17;
/// Source and destination port, length, check sum (RFC 768).
const UDP_HEADER_BYTES: usize = 8;

/// Why a transport was refused.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{message}")]
pub struct TransportError {
    /// The key of `set` that is to blame; none: the name, or the whole.
    pub key: Option<String>,
    /// The value, the rule and the way out.
    pub message: String,
}

impl TransportError {
    fn whole(message: impl ToString) -> Self {
        TransportError {
            key: None,
            message: message.to_string(),
        }
    }
}

impl Transport {
    /// The transport called `name`, changed by the pairs of `set`; names of profile files start at `dir`.
    ///
    /// # Errors
    /// When nothing has this name, or the pairs are not understood or not possible together.
    pub fn new(name: &str, set: &[(&str, &str)], dir: &Path) -> Result<Self, TransportError> {
        Self::over(false, name, set, dir)
    }

    /// The same over one path or `several`: `restp:default` uses all of them.
    ///
    /// # Errors
    /// As [`Transport::new`].
    pub fn over(several: bool, name: &str, set: &[(&str, &str)], dir: &Path) -> Result<Self, TransportError> {
        let kind = match name.split_once(':') {
            None if name == "udp" => match set.first() {
                None => Kind::Udp,
                Some((key, _)) => {
                    let message = format!("udp has nothing to set, so no \"{key}\"; leave it out");
                    return Err(TransportError {
                        key: Some((*key).into()),
                        message,
                    });
                }
            },
            _ if let Some(witness) = Witness::named(name, set) => {
                Kind::Witness(witness.map_err(|error| {
                    let (key, message) = (error.key, error.message);
                    blaming(set, &key, message)
                })?)
            }
            Some(("tcp", congestion)) => Kind::Tcp(made(TcpParameters::from_pairs(congestion, set), set)?),
            Some(("classic-tcp", name)) => {
                Kind::Tcp(made(TcpParameters::classic_from_pairs(name, set), set)?)
            }
            None if name == "mptcp" => Kind::Tcp(made(TcpParameters::of_several_from_pairs(None, set), set)?),
            Some(("mptcp", congestion)) => Kind::Tcp(made(
                TcpParameters::of_several_from_pairs(Some(congestion), set),
                set,
            )?),
            None if name == "classic-mptcp" => Kind::Tcp(made(
                TcpParameters::classic_of_several_from_pairs(None, set),
                set,
            )?),
            Some(("classic-mptcp", congestion)) => Kind::Tcp(made(
                TcpParameters::classic_of_several_from_pairs(Some(congestion), set),
                set,
            )?),
            None if name == "sctp" => Kind::Sctp(made(SctpParameters::from_pairs(set), set)?),
            Some(("cmt", policy)) => {
                let parameters = SctpParameters::concurrent_from_pairs(policy, set);
                Kind::Sctp(made(parameters, set)?)
            }
            Some(("smt", scheme)) => {
                let parameters = SctpParameters::simultaneous_from_pairs(scheme, set);
                Kind::Sctp(made(parameters, set)?)
            }
            None if name == "itp" => Kind::Itp(made(ItpParameters::from_pairs(set), set)?),
            None if name == "ndn" => Kind::Itp(made(ItpParameters::ndn_from_pairs(set), set)?),
            Some(("restp", profile)) => {
                Kind::Restp(Box::new(restp::composition(several, profile, set, dir)?))
            }
            _ => return Err(TransportError::whole(unknown_transport(name))),
        };
        Ok(Transport {
            name: name.into(),
            kind,
            sealed: false,
            follows: false,
        })
    }

    /// The same with ResTP composed of something else: of algorithms, for instance, that have no name in a scenario.
    ///
    /// # Errors
    /// When it is not ResTP, or its readers would no longer get messages, or a stream, as their traffic expects.
    pub(crate) fn recomposed(self, composition: ValidComposition) -> Result<Self, TransportError> {
        if !matches!(self.kind, Kind::Restp(_)) {
            let message = format!("\"{}\" has no composition; choose restp:default", self.name);
            return Err(TransportError::whole(message));
        }
        let stream = self.is_stream();
        let kind = Kind::Restp(Box::new(composition));
        let changed = Transport { kind, ..self };
        if changed.is_stream() != stream {
            let message = "framing differs from the scenario's; set it there as well";
            return Err(TransportError::whole(message));
        }
        Ok(changed)
    }

    /// The same after a change of `set` while it runs.
    ///
    /// # Errors
    /// When its services stay, or these are none, or the set-up has settled what differs.
    pub(crate) fn reconfigured(self, set: &[(String, String)]) -> Result<Self, TransportError> {
        let Kind::Restp(from) = &self.kind else {
            let message = format!(
                "the services of \"{}\" stay; choose a restp transport, or leave change out",
                self.name
            );
            return Err(TransportError::whole(message));
        };
        let kind = Kind::Restp(Box::new(restp::changed(from, set)?));
        Ok(Transport { kind, ..self })
    }

    /// The same with a server that goes along with whatever the opener changes.
    pub(crate) fn following(self) -> Self {
        Transport {
            follows: true,
            ..self
        }
    }

    /// The same with its datagrams sealed, as on real networks.
    ///
    /// # Errors
    /// When it is not ResTP.
    pub fn sealed(self) -> Result<Self, TransportError> {
        match self.kind {
            Kind::Restp(_) => Ok(Transport { sealed: true, ..self }),
            _ => Err(TransportError::whole(format!(
                "only ResTP is sealed here, and \"{}\" is not; leave seal out",
                self.name
            ))),
        }
    }

    /// Does the transport called `name` have timers and attempts to set?
    pub(crate) fn has_timers(name: &str) -> bool {
        name != "udp" && !Witness::NAMES.contains(&name)
    }

    /// Does a reader get a stream of bytes, in which messages may be merged or split?
    pub(crate) fn is_stream(&self) -> bool {
        match &self.kind {
            Kind::Udp | Kind::Sctp(_) => false,
            Kind::Restp(composition) => composition.framing.is_byte_stream(),
            Kind::Tcp(_) | Kind::Itp(_) | Kind::Witness(_) => true,
        }
    }

    /// May a flow use several paths?
    pub(crate) fn takes_several_paths(&self) -> bool {
        match &self.kind {
            Kind::Udp | Kind::Itp(_) => false,
            Kind::Tcp(parameters) => parameters.multipath.is_some(),
            Kind::Restp(composition) => composition.paths != PathMode::Single,
            Kind::Sctp(_) => true,
            Kind::Witness(witness) => witness.takes_several_paths(),
        }
    }

    /// Does who opens a flow wait for the server to announce the addresses of its further paths?
    pub(crate) fn waits_for_announcements(&self) -> bool {
        match &self.kind {
            Kind::Tcp(parameters) => parameters.multipath.is_some() && parameters.announced_addresses,
            _ => false,
        }
    }

    /// Does it send again what is lost?
    pub(crate) fn is_reliable(&self) -> bool {
        match &self.kind {
            Kind::Udp => false,
            Kind::Restp(composition) => {
                matches!(composition.reliability, Reliability::Arq | Reliability::Harq)
            }
            Kind::Tcp(_) | Kind::Sctp(_) | Kind::Itp(_) | Kind::Witness(_) => true,
        }
    }

    /// Does the receiver ask for what was published? Then an object is written as a whole before any of it leaves, and what is lost
    /// and retransmitted is counted by the receiver.
    pub(crate) fn is_receiver_driven(&self) -> bool {
        matches!(self.kind, Kind::Itp(_))
    }

    /// May one machine of it have many flows?
    ///
    /// # Errors
    /// When it has one connection for each machine.
    pub(crate) fn check_shared(&self) -> Result<(), TransportError> {
        match self.kind {
            Kind::Witness(_) => Err(TransportError::whole(format!(
                "a machine of \"{}\" has one connection here, so no host of many flows is made of it; choose one of our own transports",
                self.name
            ))),
            _ => Ok(()),
        }
    }

    /// Is it the same protocol, whatever its parameters?
    pub(crate) fn speaks_with(&self, other: &Transport) -> bool {
        std::mem::discriminant(&self.kind) == std::mem::discriminant(&other.kind)
    }

    /// May the application choose the path of a message?
    pub(crate) fn pins_messages(&self) -> bool {
        matches!(self.kind, Kind::Restp(_))
    }

    /// Its name as written.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// What the headers of a datagram say that arrived along `path`, as its receiver sees that; `None` where it cannot be
    /// read.
    pub(crate) fn numbers(&self, datagram: &Datagram, path: PathAddress) -> Option<Numbers> {
        let (head, body) = (&datagram.head[..], &datagram.body[..]);
        let bytes = if head.is_empty() { body } else { head };
        let rest = if head.is_empty() { &[][..] } else { body };
        match &self.kind {
            _ if self.sealed => None,
            Kind::Udp => Some(Numbers {
                payload_bytes: datagram.len().checked_sub(UDP_HEADER_BYTES)?,
                ..Numbers::default()
            }),
            Kind::Restp(_) => {
                let (header, length) = wire::Header::parse(bytes, datagram.len()).ok()?;
                Some(Numbers {
                    sequence: header.sequence,
                    acknowledgement: header.acknowledgement,
                    payload_bytes: datagram.len() - length,
                })
            }
            Kind::Sctp(_) => numbers::of_sctp(datagram),
            Kind::Itp(_) => numbers::of_itp(bytes.get(UDP_HEADER_BYTES..)?, rest),
            _ if self.ip_protocol() != TCP => None,
            Kind::Tcp(_) | Kind::Witness(_) => {
                let (header, length) = tcp_wire::Header::parse(bytes, rest, path).ok()?;
                let acknowledges = header.flags.has(tcp_wire::Flags::ACK);
                Some(Numbers {
                    sequence: Some(header.sequence),
                    acknowledgement: acknowledges.then_some(header.acknowledgement),
                    payload_bytes: datagram.len() - length,
                })
            }
        }
    }

    /// What IPv4 calls it: its number at IANA, and one for experiments (RFC 3692) where it has none.
    pub(crate) fn ip_protocol(&self) -> u8 {
        match &self.kind {
            Kind::Udp | Kind::Itp(_) => UDP,
            Kind::Restp(_) => 253,
            Kind::Tcp(_) => TCP,
            Kind::Sctp(_) => SCTP,
            Kind::Witness(witness) => witness.ip_protocol(),
        }
    }
}

/// What was made of the pairs of `set`.
fn made<P>(parameters: Result<P, ParameterError>, set: &[(&str, &str)]) -> Result<Box<P>, TransportError> {
    let blamed = |error: ParameterError| blaming(set, &error.key, error.message);
    parameters.map(Box::new).map_err(blamed)
}

/// The error about `key`, as the scenario writes it.
fn blaming(set: &[(&str, &str)], key: &str, message: String) -> TransportError {
    let written = set.iter().find(|(written, _)| written.replace('_', "-") == key);
    // The key stands before it already.
    let message = match message.strip_prefix(key).and_then(|rest| rest.strip_prefix(": ")) {
        Some(rest) if written.is_some() => rest.to_owned(),
        _ => message,
    };
    TransportError {
        key: written.map(|(written, _)| (*written).to_owned()),
        message,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::traffic::PORT;
    use restp_base::time::Time;

    #[track_caller]
    fn refused(name: &str, set: &[(&str, &str)]) -> TransportError {
        Transport::new(name, set, Path::new("")).expect_err("refused")
    }

    #[test]
    fn names_that_do_not_exist_are_answered_with_those_that_do() {
        let message = refused("rstp:unrel", &[]).message;
        assert!(
            message.contains("tcp, udp; ") && message.ends_with("did you mean \"restp:unrel\"?"),
            "{message}"
        );
        let message = refused("restp:unrell", &[]).message;
        assert!(
            message.contains("3wh-arq") && message.ends_with("did you mean \"unrel\"?"),
            "{message}"
        );
        let message = refused("restp:nowhere.toml", &[]).message;
        assert!(
            message.contains("nowhere.toml") && message.contains("cannot be read"),
            "{message}"
        );
    }

    #[test]
    fn the_key_to_blame_is_named() {
        assert_eq!(
            refused("udp", &[("congestion", "bic")]).key.as_deref(),
            Some("congestion")
        );
        let set = [("segment", "1000 B"), ("congestion", "newrenno")];
        let error = refused("restp:3wh-arq", &set);
        assert_eq!(error.key.as_deref(), Some("congestion"));
        assert!(
            error.message.contains("new-reno") || error.message.contains("newreno"),
            "{error}"
        );
        let set = [("rto_floor", "1")];
        for name in ["restp:3wh-arq", "classic-tcp:newreno"] {
            assert_eq!(refused(name, &set).key.as_deref(), Some("rto_floor"), "{name}");
        }
        for name in ["mptcp", "mptcp:lia", "classic-mptcp", "classic-mptcp:lia"] {
            let error = refused(name, &[("scheduling", "minrtt")]);
            assert_eq!(error.key.as_deref(), Some("scheduling"), "{error}");
            let several = Transport::new(name, &[], Path::new("")).expect("a rival");
            assert!(several.takes_several_paths() && several.is_stream(), "{name}");
        }
        for name in ["sctp", "cmt:cwnd"] {
            let error = refused(name, &[("ack_return", "both")]);
            assert_eq!(error.key.as_deref(), Some("ack_return"), "{error}");
            let several = Transport::new(name, &[], Path::new("")).expect("a rival");
            assert!(several.takes_several_paths() && !several.is_stream(), "{name}");
        }
        assert!(refused("cmt:cwd", &[]).message.contains("did you mean"), "cwnd");
        let error = refused("tcp:cubic", &[("window", "x")]);
        assert!(
            error.key.as_deref() == Some("window") && error.message.starts_with("\"x\" does not"),
            "{error}"
        );
        let error = refused("classic-tcp:newrenno", &[]);
        assert!(
            error.key.is_none() && error.message.contains("newreno, bic, cubic"),
            "{error}"
        );
    }

    #[test]
    fn only_restp_is_sealed_and_then_nobody_reads_its_headers() {
        let path = PathAddress {
            local: ([10, 0, 0, 1], 0).into(),
            remote: ([10, 0, 0, 2], 0).into(),
        };
        let named = |name: &str| Transport::new(name, &[], Path::new("")).expect("a transport");
        let error = named("classic-tcp:cubic").sealed().expect_err("refused");
        assert!(error.message.contains("only ResTP"), "{error}");
        let sealed = named("restp:3wh-arq").sealed().expect("ResTP");
        let mut client = sealed.machines(path).client;
        client.open(Time::ZERO, path, PORT).expect("a free port");
        let mut out = Datagram::empty();
        assert!(client.poll_transmit(Time::ZERO, &mut out));
        let first = out.head.first().or(out.body.first());
        assert!(first.is_some_and(|byte| byte & 0x80 != 0), "{first:?}");
        assert_eq!(sealed.numbers(&out, path), None);
    }

    #[test]
    fn with_fast_open_the_opener_has_a_cookie_and_its_first_segment_data() {
        let path = PathAddress {
            local: ([10, 0, 0, 1], 0).into(),
            remote: ([10, 0, 0, 2], 0).into(),
        };
        for (set, bytes) in [(&[][..], 0), (&[("fast-open", "on")], 100)] {
            let transport = Transport::new("classic-tcp:newreno", set, Path::new("")).expect("a rival");
            let mut client = transport.machines(path).client;
            let flow = client.open(Time::ZERO, path, PORT).expect("a free port");
            let request = bytes::Bytes::from(vec![7; 100]);
            client.write(Time::ZERO, flow, request).expect("room");
            let mut out = Datagram::empty();
            assert!(client.poll_transmit(Time::ZERO, &mut out));
            let numbers = transport.numbers(&out, path).expect("a header of TCP");
            assert_eq!(numbers.payload_bytes, bytes, "{set:?}");
        }
    }

    #[test]
    fn a_profile_file_is_a_preset_with_changes() {
        let dir = std::env::temp_dir().join(format!("restp-lab-profile-{}", std::process::id()));
        std::fs::create_dir_all(&dir).unwrap();
        std::fs::write(
            dir.join("mine.toml"),
            "preset = \"3wh-arq\"\nsegment = \"1000 B\"\n",
        )
        .unwrap();
        std::fs::write(dir.join("broken.toml"), "preset = \"3wh-arq\"\nsegment = [1]\n").unwrap();
        let named = |name: &str| Transport::new(name, &[], &dir);
        let Kind::Restp(composition) = named("restp:mine.toml").unwrap().kind else {
            panic!("not ResTP")
        };
        assert_eq!(composition.segment_bytes, 1000);
        assert!(
            named("restp:broken.toml")
                .expect_err("refused")
                .message
                .contains("\"segment\"")
        );
        std::fs::remove_dir_all(&dir).unwrap();
    }
}
