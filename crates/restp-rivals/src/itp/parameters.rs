//! What an ITP is made of, and the keys that set it. Keys and units are TCP's where both have them; constants are those of ITP §VI and
//! of `docs/protocol/itp.md`.

use super::manifest::{LARGEST_CHUNK, Naming};
use crate::tcp::parameters::{ParameterError, dashed, error, named};
use restp_base::time::{Duration, Time};
use restp_base::units;
use restp_services::congestion::{AdaptiveParams, CongestionChoice, InterestWindowParams};
use restp_services::connection_management::HandshakeParameters;
use restp_services::framing::{Framing, SendBuffer};
use restp_services::loss_handling::{Differentiation, LossHandling};
use restp_services::path_management::RetransmitTarget;
use restp_services::recovery::{Overtaking, ReceiverDriven, Recovery, RtoParameters};
use restp_services::sender::{CreditUnit, Filling, Sender, SenderParameters, WindowProbes};

/// Parameters of one host's ITP.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ItpParameters {
    /// It is the baseline: data does not say which Interest it answers, and only timeouts find losses.
    pub is_ndn: bool,
    /// How a producer names its chunks. Default by numbers.
    pub naming: Naming,
    /// Bytes of a chunk. Default 1452: what fits a packet of 1500 behind 48 bytes of headers (ITP OP-1).
    pub chunk_bytes: u32,
    /// Chunks that are asked for or wait for their reader at most. Default 8192, as TCP's window.
    pub buffer_chunks: u64,
    /// Rule (b), unless it is off.
    pub overtaking: Option<Overtaking>,
    /// What timeouts cost.
    pub window: InterestWindowParams,
    /// The window is that of ResTP's default, which asks for the cause of each loss (`docs/services/adaptation.md`), instead of ITP's.
    /// Its Interests are spread in time.
    pub adapts: bool,
    /// Timers of Interests: 200 ms to 60 s, 1 s at first, eight in a row (ITP OP-9).
    pub rto: RtoParameters,
    /// Repetition of requests and of manifests that nobody asked for: 1 s, doubling, six in all (ITP OP-7).
    pub request: HandshakeParameters,
    /// A producer keeps an object for so long after the last Interest. Default 120 s (ITP OP-8).
    pub nexus_timeout: Duration,
    /// What answers a request is called after the request, so that who asks for the same gets the same object, and caches can serve it. For
    /// applications that never answer one request in two ways. Otherwise it is called after the flow.
    pub names_after_requests: bool,
}

/// Keys of ITP.
const KEYS: [&str; 13] = [
    "congestion",
    "segment",
    "naming",
    "receive-buffer",
    "overtaking",
    "on-timeout",
    "data-attempts",
    "rto-initial",
    "rto-floor",
    "rto-ceiling",
    "handshake-rto",
    "handshake-attempts",
    "nexus-timeout",
];

const OVERTAKING: [(&str, Option<Overtaking>); 3] = [
    ("mean", Some(Overtaking { deviations: 0 })),
    ("mean+4", Some(Overtaking { deviations: 4 })),
    ("off", None),
];

impl Default for ItpParameters {
    fn default() -> Self {
        ItpParameters {
            is_ndn: false,
            naming: Naming::Sequence,
            chunk_bytes: 1452,
            buffer_chunks: 8192,
            overtaking: Some(Overtaking { deviations: 0 }),
            window: InterestWindowParams::default(),
            adapts: false,
            rto: RtoParameters {
                attempts: 8,
                ..RtoParameters::default()
            },
            request: HandshakeParameters {
                rto: Duration::from_secs(1),
                attempts: 6,
            },
            nexus_timeout: Duration::from_secs(120),
            names_after_requests: false,
        }
    }
}

impl ItpParameters {
    /// ITP, changed by every pair of `set`.
    ///
    /// # Errors
    /// When a key, value or unit is not understood, or the result makes no sense.
    pub fn from_pairs(set: &[(&str, &str)]) -> Result<Self, ParameterError> {
        ItpParameters::default().with(set)
    }

    /// NDN as ITP is compared with (ITP §VI.A), in the same way.
    ///
    /// # Errors
    /// When a key, value or unit is not understood, or the result makes no sense.
    pub fn ndn_from_pairs(set: &[(&str, &str)]) -> Result<Self, ParameterError> {
        let parameters = ItpParameters {
            is_ndn: true,
            overtaking: None,
            window: InterestWindowParams {
                collapses_again: false,
                ..InterestWindowParams::default()
            },
            ..ItpParameters::default()
        };
        parameters.with(set)
    }

    fn with(mut self, set: &[(&str, &str)]) -> Result<Self, ParameterError> {
        for (key, value) in set {
            self.set(&dashed(key), value.trim())?;
        }
        self.check()?;
        Ok(self)
    }

    fn set(&mut self, key: &str, value: &str) -> Result<(), ParameterError> {
        let about = |message: String| error(key, format!("{key}: {message}"));
        let bytes = || units::bytes(value).map_err(|why| about(why.to_string()));
        let packets = || units::packets(value).map_err(|why| about(why.to_string()));
        let span = || units::duration(value).map_err(|why| about(why.to_string()));
        let large = |_| about(format!("\"{value}\" is too large"));
        let count = || {
            let why = |_| {
                about(format!(
                    "\"{value}\" is no count; write a whole number, such as \"4\""
                ))
            };
            value.parse::<u32>().map_err(why)
        };
        let namings = [("sequence", Naming::Sequence), ("hash", Naming::Hash)];
        match key {
            "segment" => self.chunk_bytes = u32::try_from(bytes()?).map_err(large)?,
            "naming" => self.naming = named(key, value, &namings)?,
            "receive-buffer" => self.buffer_chunks = packets()?,
            "overtaking" if self.is_ndn && value != "off" => {
                return Err(about(
                    "a consumer of ndn cannot tell who answered; write \"off\"".into(),
                ));
            }
            "overtaking" => self.overtaking = named(key, value, &OVERTAKING)?,
            "congestion" => {
                self.adapts = named(key, value, &[("interest-window", false), ("adaptive", true)])?
            }
            "on-timeout" => {
                self.window.halves_on_timeout = named(key, value, &[("halve", true), ("collapse", false)])?;
            }
            "data-attempts" => self.rto.attempts = count()?,
            "rto-initial" => self.rto.initial = span()?,
            "rto-floor" => self.rto.floor = span()?,
            "rto-ceiling" => self.rto.ceiling = span()?,
            "handshake-rto" => self.request.rto = span()?,
            "handshake-attempts" => self.request.attempts = count()?,
            "nexus-timeout" => self.nexus_timeout = span()?,
            _ => {
                let all = KEYS.join(", ");
                let message = format!("\"{key}\" is nothing that can be set of ITP; write one of: {all}");
                return Err(error(key, message));
            }
        }
        Ok(())
    }

    /// What no ITP can do.
    fn check(&self) -> Result<(), ParameterError> {
        let within = |key: &str, found: u64, range: std::ops::RangeInclusive<u64>| {
            let message = format!("{key} is {found}; write {} to {}", range.start(), range.end());
            range.contains(&found).then_some(()).ok_or(error(key, message))
        };
        within("segment", self.chunk_bytes.into(), 256..=u64::from(LARGEST_CHUNK))?;
        within("receive-buffer", self.buffer_chunks, 1..=1 << 24)?;
        within("handshake-attempts", self.request.attempts.into(), 1..=100)?;
        within("data-attempts", self.rto.attempts.into(), 1..=1000)?;
        within(
            "nexus-timeout",
            self.nexus_timeout.as_millis(),
            1..=u64::from(u32::MAX),
        )?;
        let spans = [self.rto.floor, self.rto.initial, self.request.rto];
        if spans.iter().any(|span| span.is_zero()) || self.rto.floor > self.rto.ceiling {
            let message = "rto-initial, rto-floor and handshake-rto must be above zero, and rto-floor at most rto-ceiling";
            return Err(error("rto-floor", message.into()));
        }
        Ok(())
    }

    /// The sender of Interests for chunks of `chunk_bytes`, the first of which has the number `first`.
    pub(super) fn sender(&self, now: Time, first: u64, chunk_bytes: u32) -> Sender {
        let parameters = SenderParameters {
            framing: Framing::Fixed,
            segment_bytes: chunk_bytes,
            reserved_bytes: 0,
            send_buffer: SendBuffer::of_waiting(usize::MAX),
            numbered: true,
            retransmits: false, // under the same number
            has_feedback: true,
            pointer_only: false,
            paces: self.adapts,
            reduces_in_proportion: false,
            spares_fresh: false,
            differentiation: Differentiation::Split,
            probes_tail: false,
            thins_acks: false,
            repairs_cost: false,
            limits_outstanding: false,
            loss_handling: if self.adapts {
                LossHandling::Adaptive
            } else {
                LossHandling::Congestion
            },
            credit: CreditUnit::Segments,
            window_probes: WindowProbes::Steady,
            filling: Filling::Whole,
            retransmit_target: RetransmitTarget::Asap,
        };
        let congestion = if self.adapts {
            CongestionChoice::Adaptive(AdaptiveParams)
        } else {
            CongestionChoice::InterestWindow(self.window)
        };
        let controller = congestion.build(chunk_bytes.into());
        let recovery = Recovery::ReceiverDriven(ReceiverDriven::new(self.overtaking));
        let mut sender = Sender::new(now, first, first, parameters, recovery, controller, self.rto);
        sender.bind_credit(false);
        sender.start_timer();
        sender
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_understood_and_the_one_to_blame_is_named() {
        let set = [
            ("segment", "1500 B"),
            ("naming", "hash"),
            ("receive_buffer", "64 packets"),
        ];
        let itp = ItpParameters::from_pairs(&set).expect("keys of the documentation");
        assert_eq!(
            (itp.chunk_bytes, itp.naming, itp.buffer_chunks),
            (1500, Naming::Hash, 64)
        );
        let refused = |set: (&str, &str)| ItpParameters::from_pairs(&[set]).expect_err("refused").key;
        for set in [
            ("segment", "100 B"),
            ("naming", "name"),
            ("rto-floor", "0 s"),
            ("nexus-timeout", "0 s"),
        ] {
            assert_eq!(refused(set), set.0);
        }
        let error = ItpParameters::from_pairs(&[("ack-delay", "1 s")]).expect_err("refused");
        assert!(error.message.contains("nexus-timeout"), "{}", error.message);
    }

    #[test]
    fn ndn_has_no_rule_b() {
        let ndn =
            ItpParameters::ndn_from_pairs(&[("on-timeout", "halve")]).expect("keys of the documentation");
        assert!(ndn.is_ndn && ndn.overtaking.is_none() && ndn.window.halves_on_timeout);
        assert!(ItpParameters::ndn_from_pairs(&[("overtaking", "mean")]).is_err());
    }
}
