//! Every combination of choices, for tests that must hold for all of them.

use super::{Composition, Preset};
use restp_services::ack::Acknowledgement;
use restp_services::congestion::CongestionChoice;
use restp_services::connection_management::Establishment;
use restp_services::flow_control::{FlowControl, WindowParameters};
use restp_services::framing::Framing;
use restp_services::loss_handling::LossHandling;
use restp_services::ordering::Ordering;
use restp_services::path_management::{NumberSpace, PathMode};
use restp_services::recovery::RecoveryChoice;
use restp_services::reliability::Reliability;
use restp_services::scheduling::Scheduling;

/// Calls `visit` with every combination of services under default numbers. Of the congestion algorithms it
/// takes `congestion`; pacing and CRC follow ECN, because no rule joins them with anything else.
pub(super) fn combinations(congestion: &[&str], mut visit: impl FnMut(&Composition)) {
    let acks: Vec<Acknowledgement> = ["none", "positive", "delayed"]
        .iter()
        .flat_map(|schedule| ["", "+nak", "+sack", "+snack"].map(|detail| format!("{schedule}{detail}")))
        .flat_map(|name| [format!("{name}+repeat"), name])
        .map(|name| Acknowledgement::from_name(&name).unwrap())
        .collect();
    let windows = [
        FlowControl::None,
        FlowControl::Window(WindowParameters::default()),
    ];
    let schedulers = [None, Some(Scheduling::RoundRobin), Some(Scheduling::FastestRtt)];
    let mut c = Preset::named("unrel").unwrap().composition();
    for name in congestion {
        c.congestion = CongestionChoice::from_name(name).unwrap();
        // Every rule takes fast open for opportunistic.
        for (_, establishment) in &Establishment::ALL[..3] {
            c.establishment = *establishment;
            for (_, framing) in Framing::ALL {
                c.framing = framing;
                for flow_control in windows {
                    c.flow_control = flow_control;
                    for (_, ordering) in Ordering::ALL {
                        c.ordering = ordering;
                        for (_, reliability) in Reliability::ALL {
                            c.reliability = reliability;
                            c.fec.code = reliability.default_code();
                            for ack in &acks {
                                c.ack = *ack;
                                for (_, recovery) in RecoveryChoice::ALL {
                                    c.recovery = recovery;
                                    for (_, loss_handling) in LossHandling::ALL {
                                        c.loss_handling = loss_handling;
                                        for (_, paths) in PathMode::ALL {
                                            c.paths = paths;
                                            for scheduling in &schedulers {
                                                c.scheduling = scheduling.clone();
                                                for on in [false, true] {
                                                    (c.ecn, c.pacing, c.crc) = (on, on, on);
                                                    visit(&c);
                                                    if on && paths != PathMode::Single {
                                                        c.numbering = NumberSpace::Shared;
                                                        visit(&c);
                                                        c.numbering = NumberSpace::PerPath;
                                                    }
                                                }
                                            }
                                        }
                                    }
                                }
                            }
                        }
                    }
                }
            }
        }
    }
}
