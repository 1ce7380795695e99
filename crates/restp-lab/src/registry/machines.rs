//! The machines of a transport: a pair for one flow, or one for many.

use super::{Kind, Transport, restp};
use crate::traffic::PORT;
use restp_base::machine::{Machine, PathAddress};
use restp_base::time::Time;
use restp_rivals::host::{Tcp, TcpConfig};
use restp_rivals::itp::{Itp, ItpConfig, ItpParameters};
use restp_rivals::sctp::{Sctp, SctpConfig};
use restp_rivals::tcp::TcpParameters;
use restp_rivals::udp::{Udp, UdpConfig};

/// The machines of one flow: who opens it, and who serves it.
pub struct Ends {
    /// At the flow's `from`.
    pub client: Box<dyn Machine>,
    /// At the flow's `to`, listening on [`PORT`].
    pub server: Box<dyn Machine>,
}

impl Transport {
    /// The machines of a flow along `path`, as its opener sees it. All protocols are deterministic; nothing in them is
    /// random, and what a seal draws follows from a constant.
    pub fn machines(&self, path: PathAddress) -> Ends {
        match &self.kind {
            Kind::Restp(composition) => restp::ends(composition, path, self.sealed, self.follows),
            Kind::Witness(witness) => Ends {
                client: witness.machine(false),
                server: witness.machine(true),
            },
            _ => Ends {
                client: self.machine(None, &[path]),
                server: self.machine(Some(PORT), &[]),
            },
        }
    }

    /// One machine for many flows: it opens some along these paths, and serves others on [`PORT`]. What their openers set or
    /// change goes, too.
    pub fn shared_machine(&self, opens: &[PathAddress]) -> Box<dyn Machine> {
        match &self.kind {
            Kind::Restp(composition) => restp::shared(composition, opens),
            Kind::Witness(witness) => witness.machine(true),
            _ => self.machine(Some(PORT), opens),
        }
    }

    /// A machine that serves the port `listen`, if it serves any, and opens flows along `opens`.
    fn machine(&self, listen: Option<u16>, opens: &[PathAddress]) -> Box<dyn Machine> {
        match &self.kind {
            Kind::Udp => Box::new(Udp::new(UdpConfig {
                listen,
                ..UdpConfig::default()
            })),
            Kind::Tcp(parameters) => Box::new(tcp(parameters, listen, opens)),
            Kind::Sctp(parameters) => Box::new(Sctp::new(SctpConfig {
                listen,
                ..SctpConfig::new((**parameters).clone())
            })),
            Kind::Itp(parameters) => {
                // Whoever asks for an object of a catalogue gets the same.
                let parameters = ItpParameters {
                    names_after_requests: true,
                    ..(**parameters).clone()
                };
                Box::new(Itp::new(ItpConfig { listen, parameters }))
            }
            Kind::Restp(composition) => restp::shared(composition, opens),
            Kind::Witness(witness) => witness.machine(listen.is_some()),
        }
    }
}

/// With fast open, who opens flows has the cookies of earlier contacts.
fn tcp(parameters: &TcpParameters, listen: Option<u16>, opens: &[PathAddress]) -> Tcp {
    let config = TcpConfig {
        listen,
        ..TcpConfig::new(parameters.clone())
    };
    let cookies = config.cookies;
    let mut machine = Tcp::new(config);
    for path in opens.iter().filter(|_| parameters.fast_open) {
        machine.keep_cookie(Time::ZERO, restp::kept_cookie(cookies, *path));
    }
    machine
}
