//! The named compositions of ResTP §17, and `default`.
//!
//! Each preset says how it differs from `plain`, the composition of nothing at all. Where §17 leaves a choice
//! open: bulk presets coalesce, real-time ones keep frames apart (ResTP §3.7); recovery is by duplicates with
//! positive acknowledgements alone, by the pipe rule with selective ones (OP-44).

use super::Composition;
use restp_base::time::Duration;
use restp_services::ack::Acknowledgement;
use restp_services::congestion::{
    AdaptiveParams, BbrParams, BicParams, CommonParams, CongestionChoice, CubicParams, FlightLimit,
};
use restp_services::connection_management::{Establishment, HandshakeParameters};
use restp_services::flow_control::{FlowControl, WindowParameters};
use restp_services::framing::Framing;
use restp_services::loss_handling::LossHandling;
use restp_services::ordering::{HoldParameters, Ordering};
use restp_services::path_management::{AckReturn, NumberSpace, PathMode};
use restp_services::recovery::{LostRetransmissions, RecoveryChoice, Reordering, RtoParameters};
use restp_services::reliability::{FecCode, FecParameters, Reliability};
use restp_services::scheduling::Scheduling;

/// A composition with a name.
pub struct Preset {
    /// As in `restp:<name>` and `preset = "<name>"`.
    pub name: &'static str,
    /// Where it comes from.
    pub section: &'static str,
    /// What it is for, in one line.
    pub purpose: &'static str,
    make: fn() -> Composition,
}

impl Preset {
    /// The preset called `name`.
    pub fn named(name: &str) -> Option<&'static Preset> {
        PRESETS.iter().find(|preset| preset.name == name)
    }

    /// Its value.
    pub fn composition(&self) -> Composition {
        (self.make)()
    }
}

/// The preset `default`: nobody has to know why his packets are lost (`docs/services/adaptation.md`). A set-up timer of 1 s because
/// at 5 % every tenth exchange loses a packet (RFC 6298 (2.1)).
impl Default for Composition {
    fn default() -> Self {
        Composition {
            ack: Acknowledgement::positive().with_sack().thinned(),
            congestion: CongestionChoice::Adaptive(AdaptiveParams),
            loss_handling: LossHandling::Adaptive,
            // Who wants to wait longer for a peer says so: 24 h are for who has chosen `outage`.
            outage_timeout: Duration::from_secs(300),
            handshake: HandshakeParameters {
                rto: Duration::from_secs(1),
                ..HandshakeParameters::default()
            },
            ..cubic()
        }
    }
}

impl Composition {
    /// The same over several paths at once, as `default` is where an application names more than one: each path learns for itself
    /// why its packets are lost and who shares it, and none that makes the transfer slower is used. What is of use for a while only
    /// takes all paths in turn that bring it in time, so that each is warm and carries a part when another dies; BBR, because a path that
    /// takes over has to grow at once although it loses packets. An application's own choice of paths stays.
    pub fn over_several_paths(self) -> Self {
        if self.paths != PathMode::Single {
            return self;
        }
        if self.reliability.is_partial() {
            return Composition {
                paths: PathMode::Spreading,
                numbering: NumberSpace::Shared,
                scheduling: Some(Scheduling::RoundRobin),
                congestion: CongestionChoice::Bbr(BbrParams::default()),
                pacing: true,
                ack: Acknowledgement {
                    detail: self.ack.detail.of_many_paths(),
                    ..self.ack
                },
                ..self
            };
        }
        Composition {
            paths: PathMode::Spreading,
            scheduling: Some(Scheduling::Guard),
            // What a slower path takes ahead has to be there: 300 ms at 50 Mbit/s.
            send_buffer_bytes: self.send_buffer_bytes.max(2 << 20),
            ..self
        }
    }
}

/// What other stacks do, and what `resilient` and `multipath` differ from.
fn cubic() -> Composition {
    Composition {
        ack: Acknowledgement::positive().with_sack(),
        recovery: RecoveryChoice::Pipe,
        reordering: Reordering::Adaptive,
        congestion: CongestionChoice::Cubic(CubicParams::default().sparing_marks()),
        pacing: true,
        ecn: true,
        mtu_discovery: true,
        ..three_way_arq()
    }
}

/// Every preset: the project's own first, then ResTP §17 in its order.
pub static PRESETS: &[Preset] = &[
    Preset {
        name: "default",
        section: "project",
        purpose: "file transfer on any network: learns why packets are lost, and who shares the path",
        make: Composition::default,
    },
    Preset {
        name: "cubic",
        section: "project",
        purpose: "file transfer as other stacks do it: CUBIC, SACK, pacing, ECN",
        make: cubic,
    },
    Preset {
        name: "resilient",
        section: "project",
        purpose: "links that lose packets and die for a while: BBR, probes through outages",
        make: resilient,
    },
    Preset {
        name: "multipath",
        section: "project",
        purpose: "file transfer over several paths at once, never worse than the best of them: BBR, guard",
        make: || Composition {
            congestion: CongestionChoice::Bbr(BbrParams::default()),
            // A hole on one path holds up what all of them bring: to wait whether it was only late costs more than a
            // retransmission for nothing, and BBR reduces nothing for that.
            reordering: Reordering::Threshold,
            ..cubic().over_several_paths()
        },
    },
    Preset {
        name: "voice",
        section: "project",
        purpose: "telephony: frames are of use for 200 ms, rebuilt where a repeat would be too late",
        make: || in_time(Duration::from_millis(200), Duration::from_millis(20), 100),
    },
    Preset {
        name: "video",
        section: "project",
        purpose: "live video: packets are of use for 250 ms, rebuilt where a repeat would be too late",
        make: || in_time(Duration::from_millis(250), Duration::from_millis(4), 15),
    },
    Preset {
        name: "unrel",
        section: "ResTP §4.5",
        purpose: "datagrams as with UDP: voice where only timeliness counts, constant bit rate",
        make: plain,
    },
    Preset {
        name: "3wh-arq",
        section: "ResTP §4.1",
        purpose: "file and bulk transfer as published: NewReno, positive ACK",
        make: three_way_arq,
    },
    Preset {
        name: "3wh-harq",
        section: "ResTP §4.1",
        purpose: "file transfer with forward error correction before repeats",
        make: || Composition {
            reliability: Reliability::Harq,
            ..three_way_arq()
        },
    },
    Preset {
        name: "opt-arq",
        section: "ResTP §4.2",
        purpose: "web: data beside the SYN",
        make: opportunistic_arq,
    },
    Preset {
        name: "mp-opt",
        section: "ResTP §4.3",
        purpose: "web over several paths; one works, the others wait",
        make: || Composition {
            paths: PathMode::HotStandby,
            ..opportunistic_arq()
        },
    },
    Preset {
        name: "outage",
        section: "ResTP §4.4",
        purpose: "satellite: probe through outages instead of backing off",
        make: || Composition {
            loss_handling: LossHandling::Outage,
            // A whole window resumes at once; unless spread over a round trip it overflows the first queue.
            pacing: true,
            ..three_way_arq()
        },
    },
    Preset {
        name: "ful-arq",
        section: "ResTP §4.5",
        purpose: "voice with full reliability, to compare with par-arq",
        make: voice,
    },
    Preset {
        name: "par-arq",
        section: "ResTP §3.7",
        purpose: "voice: repair what can still be in time, skip the rest",
        make: || Composition {
            ordering: Ordering::Partial,
            reliability: Reliability::Partial,
            ..voice()
        },
    },
    Preset {
        name: "arq-only",
        section: "ResTP §A.3.3",
        purpose: "bulk over lossy links: losses are corruption, the rate stays (OP-50)",
        make: || Composition {
            loss_handling: LossHandling::Corruption,
            congestion: plain().congestion,
            pacing: true,
            ..three_way_arq()
        },
    },
    Preset {
        name: "geo-spread",
        section: "ResTP §4.6",
        purpose: "all of several distant paths at once",
        make: || Composition {
            paths: PathMode::Spreading,
            scheduling: Some(Scheduling::RoundRobin),
            ..three_way_arq()
        },
    },
];

/// BBR because it fills a path that loses 5 % and still leaves CUBIC its share; the probe state because it goes on within
/// a timeout of the end of an outage; a set-up timer of 1 s because at 5 % every tenth exchange loses a packet (RFC 6298
/// (2.1)). Measured in docs/results/paths.md.
fn resilient() -> Composition {
    Composition {
        congestion: CongestionChoice::Bbr(BbrParams::default()),
        loss_handling: LossHandling::Outage,
        handshake: HandshakeParameters {
            rto: Duration::from_secs(1),
            ..HandshakeParameters::default()
        },
        ..cubic()
    }
}

/// What is of use until `deadline` and leaves every `interval`, with up to `most_percent` of redundancy. Measured in
/// docs/results/voice.md.
fn in_time(deadline: Duration, interval: Duration, most_percent: u32) -> Composition {
    Composition {
        framing: Framing::Fixed,
        ordering: Ordering::Partial,
        hold: HoldParameters {
            hold: None,
            deadline: Some(deadline),
            frame_interval: interval,
        },
        reliability: Reliability::PartialFec,
        fec: FecParameters {
            code: FecCode::Rlc,
            most_percent,
            ..FecParameters::default()
        },
        // Whoever acknowledges less often says later what is lost.
        ack: Acknowledgement::positive().with_sack(),
        ..Composition::default()
    }
}

/// Every service off. The flight limit has a meaning only once something is acknowledged; 256 segments are
/// 29 Mbit/s over 100 ms.
fn plain() -> Composition {
    Composition {
        establishment: Establishment::Connectionless,
        framing: Framing::Fixed,
        flow_control: FlowControl::None,
        ordering: Ordering::Unordered,
        hold: HoldParameters::default(),
        reliability: Reliability::Unreliable,
        ack: Acknowledgement::NONE,
        recovery: RecoveryChoice::Timer,
        lost_retransmissions: LostRetransmissions::Evidence,
        reordering: Reordering::Threshold,
        loss_handling: LossHandling::Congestion,
        congestion: CongestionChoice::None(FlightLimit {
            flight_limit_segments: 256,
        }),
        pacing: false,
        ecn: false,
        mtu_discovery: false,
        crc: false,
        mapping_crc: false,
        paths: PathMode::Single,
        numbering: NumberSpace::PerPath,
        ack_return: AckReturn::Any,
        scheduling: None,
        segment_bytes: 1400,
        fec: FecParameters::default(),
        handshake: HandshakeParameters::default(),
        rto: RtoParameters::default(),
        send_buffer_bytes: 256 << 10,
        outage_timeout: Duration::from_secs(24 * 3600),
        idle_timeout: Duration::from_secs(60),
        progress_timeout: Duration::from_secs(300),
    }
}

fn three_way_arq() -> Composition {
    Composition {
        establishment: Establishment::ThreeWay,
        framing: Framing::Coalesce,
        flow_control: FlowControl::Window(WindowParameters::default()),
        ordering: Ordering::Ordered,
        reliability: Reliability::Arq,
        ack: Acknowledgement::positive(),
        recovery: RecoveryChoice::DuplicateAck,
        congestion: CongestionChoice::NewReno(CommonParams::default()),
        ..plain()
    }
}

fn opportunistic_arq() -> Composition {
    Composition {
        establishment: Establishment::Opportunistic,
        ..three_way_arq()
    }
}

/// BIC because NewReno halves on every loss whatever its cause (ResTP §3.7); SACK as of OP-52.
fn voice() -> Composition {
    Composition {
        framing: Framing::Fixed,
        ack: Acknowledgement::positive().with_sack(),
        recovery: RecoveryChoice::Pipe,
        congestion: CongestionChoice::Bic(BicParams::default()),
        ..three_way_arq()
    }
}
