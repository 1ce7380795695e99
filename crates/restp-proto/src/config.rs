//! What a user sets for a whole endpoint.

use crate::composition::{Composition, ValidComposition};
use crate::connection::Consent;
use restp_services::connection_management::{CookieParameters, LocalPorts};
use siphasher::sip::SipHasher24;
use std::fmt;

/// Where initial sequence numbers come from.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum InitialNumbers {
    /// Every association begins here: for simulation, and for tests of the wrap at 2³² (OP-17).
    Fixed(u32),
    /// Keyed hash of the association and a clock (RFC 6528 §3), unpredictable to whoever lacks the key.
    Keyed([u8; 16]),
}

impl fmt::Debug for InitialNumbers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            InitialNumbers::Fixed(number) => write!(f, "Fixed({number})"),
            InitialNumbers::Keyed(_) => f.write_str("Keyed"), // no secret in logs
        }
    }
}

/// Which compositions a service accepts from its peers (OP-27).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Acceptance {
    /// Every valid one; numbers and local matters come from the service's own.
    Any,
    /// Only the services of its own composition.
    Exact,
}

/// One service that peers may reach.
#[derive(Clone, Debug)]
pub struct Listener {
    /// Port it is reached at.
    pub port: u16,
    /// Its composition, and the defaults of accepted ones.
    pub composition: Composition,
    /// What it accepts.
    pub acceptance: Acceptance,
}

/// Configuration of an endpoint.
#[derive(Clone, Debug)]
pub struct EndpointConfig {
    /// Composition of flows opened here.
    pub composition: ValidComposition,
    /// Services offered here.
    pub listeners: Vec<Listener>,
    /// Where initial sequence numbers come from.
    pub initial_numbers: InitialNumbers,
    /// Port of the first flow opened here, from which the others go on. `None`: the initial numbers tell, so that each life of
    /// a host begins elsewhere.
    pub first_port: Option<u16>,
    /// Peers may have several paths; otherwise they are offered one (ResTP §3.5.5).
    pub several_paths: bool,
    /// Associations held at once, lingering ones included; further SYNs are dropped and counted.
    pub max_connections: usize,
    /// Associations whose set-up is not complete, at once (SYN floods end here).
    pub max_half_open: usize,
    /// Associations that take early data although their set-up is not complete, at once. Beyond it early data is not
    /// taken, and the set-up is an ordinary one (RFC 7413 §5.1).
    pub max_early: usize,
    /// How cookies are made (OP-30).
    pub cookies: CookieParameters,
    /// What arrives comes from where it says: below there is a seal, which lets no packet through twice and has asked each new
    /// address. Then retransmissions, too, show that a peer has moved; otherwise they may be copies.
    pub addresses_proved: bool,
    /// Peers may change running flows to less order or less reliability than these were opened with, or than the
    /// application has last changed them to; otherwise that is refused (docs/adr/0007).
    pub weaker_services: bool,
}

impl EndpointConfig {
    /// An endpoint that opens flows of `composition` and offers nothing.
    pub fn new(composition: ValidComposition) -> Self {
        EndpointConfig {
            composition,
            listeners: Vec::new(),
            initial_numbers: InitialNumbers::Fixed(0),
            first_port: None,
            several_paths: true,
            max_connections: 65_536,
            max_half_open: 1_024,
            max_early: 1_024,
            cookies: CookieParameters::default(),
            addresses_proved: false,
            weaker_services: false,
        }
    }

    /// Offers a service at `port`, with the endpoint's own composition as its defaults.
    #[must_use]
    pub fn listen(mut self, port: u16, acceptance: Acceptance) -> Self {
        let composition = Composition::clone(&self.composition);
        self.listeners.push(Listener {
            port,
            composition,
            acceptance,
        });
        self
    }

    /// What peers may make of flows of this endpoint.
    pub(crate) fn consent(&self) -> Consent {
        if self.weaker_services {
            Consent::Anything
        } else {
            Consent::NothingWeaker
        }
    }

    /// Where the ports of flows opened here begin: elsewhere in each life of a host, whose peers may still know the flows of
    /// the last one (RFC 6056 §3.3).
    pub(crate) fn local_ports(&self) -> LocalPorts {
        match (self.first_port, self.initial_numbers) {
            (Some(first), _) => LocalPorts::new(first),
            (None, InitialNumbers::Fixed(_)) => LocalPorts::anywhere(0),
            (None, InitialNumbers::Keyed(key)) => {
                LocalPorts::anywhere(SipHasher24::new_with_key(&key).hash(b"first port"))
            }
        }
    }
}
