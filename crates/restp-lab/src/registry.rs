//! From the name of a transport in a scenario to the machines at both ends of a flow.

use crate::scenario::unknown;
use crate::traffic::PORT;
use restp_base::machine::Machine;
use restp_rivals::udp::{Udp, UdpConfig};
use std::path::Path;

/// A protocol with its parameters, for both ends of one flow.
#[derive(Clone, Debug)]
pub struct Transport {
    name: String,
    kind: Kind,
}

#[derive(Clone, Debug)]
enum Kind {
    Udp,
}

/// The machines of one flow: who opens it, and who serves it.
pub struct Ends {
    /// At the flow's `from`.
    pub client: Box<dyn Machine>,
    /// At the flow's `to`, listening on [`PORT`].
    pub server: Box<dyn Machine>,
}

impl Transport {
    /// The transport called `name`; names of profile files start at `dir`.
    ///
    /// # Errors
    /// A sentence with the names that exist.
    pub fn named(name: &str, _dir: &Path) -> Result<Self, String> {
        let kind = match name {
            "udp" => Kind::Udp,
            _ => return Err(unknown("transport", name, ["udp"])),
        };
        Ok(Transport {
            name: name.into(),
            kind,
        })
    }

    /// Its name as written.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Changes one parameter.
    ///
    /// # Errors
    /// A sentence with the keys or values that exist.
    pub fn set(&mut self, key: &str, _value: &str) -> Result<(), String> {
        match self.kind {
            Kind::Udp => Err(format!("udp has nothing to set, so no \"{key}\"; leave set out")),
        }
    }

    /// Are the parameters possible together?
    ///
    /// # Errors
    /// A sentence with the rule and the way out.
    pub fn check(&self) -> Result<(), String> {
        match self.kind {
            Kind::Udp => Ok(()),
        }
    }

    /// The machines of one flow. Everything random in them comes from `seed` and `flow`.
    pub fn machines(&self, _seed: u64, _flow: &str) -> Ends {
        match self.kind {
            Kind::Udp => Ends {
                client: Box::new(Udp::new(UdpConfig::default())),
                server: Box::new(Udp::new(UdpConfig {
                    listen: Some(PORT),
                    ..UdpConfig::default()
                })),
            },
        }
    }
}
