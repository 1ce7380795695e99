//! `restp bench`: throughput and processor time on loopback, ResTP and plain UDP taking turns.
//!
//! | File | Holds |
//! |---|---|
//! | `compare` | starts both ends as processes of their own, and accounts for their processor time |
//! | `stream` | both ends of a ResTP stream |
//! | `plain_udp` | both ends of plain UDP: the ceiling |
//! | `meter` | what one end prints |

mod compare;
mod meter;
mod plain_udp;
mod stream;

use super::run;
use crate::args::{Bench, Carrier, Role};
use crate::failure::Failure;
use crate::output::Output;
use crate::plan;
use restp::{Composition, Identity, Security, Trust, ValidComposition};

/// Largest UDP payload in an IPv4 packet of 1500 bytes: what a path across Ethernet carries, on loopback as well.
const UDP_PAYLOAD: usize = 1472;

/// With the 24 bytes of header that the default composition has, a segment of this size fills such a packet.
const SEGMENT_BYTES: u32 = 1448;

/// What a seal takes of it.
const SEAL_BYTES: u32 = 31;

/// Longest transfer that makes sense, in seconds.
const MOST_SECONDS: f64 = 3600.0;

/// Measures both, or plays one end.
///
/// # Errors
/// Exit code 2 for a composition that cannot be used, 1 when a transfer fails.
pub fn execute(arguments: &Bench, output: Output) -> Result<(), Failure> {
    if !(arguments.seconds > 0.0 && arguments.seconds <= MOST_SECONDS) {
        return Err(Failure::input(format!(
            "--seconds {}: write a number above 0 and at most {MOST_SECONDS}",
            arguments.seconds
        )));
    }
    let composition = composition(arguments)?;
    let seconds = std::time::Duration::from_secs_f64(arguments.seconds);
    let security = || {
        let identity = Identity::fresh().map_err(Failure::operation);
        if arguments.plain {
            Ok(Security::Plain)
        } else {
            // The other end is another process of this measurement.
            identity.map(|identity| {
                Security::Sealed(Identity {
                    trust: Trust::Anybody,
                    ..identity
                })
            })
        }
    };
    run(async {
        match (arguments.role, arguments.carrier, arguments.to) {
            (None, ..) => compare::compare(arguments, output).await,
            (Some(Role::Server), Carrier::Restp, _) => {
                stream::serve(composition, arguments.listen, security()?).await
            }
            (Some(Role::Server), Carrier::Udp, _) => plain_udp::serve(arguments.listen).await,
            (Some(Role::Client), Carrier::Restp, Some(to)) => {
                stream::send(composition, to, seconds, security()?).await
            }
            (Some(Role::Client), Carrier::Udp, Some(to)) => plain_udp::send(to, seconds).await,
            (Some(Role::Client), _, None) => Err(Failure::input("--role client needs --to ADDR")),
        }
    })
}

fn composition(arguments: &Bench) -> Result<ValidComposition, Failure> {
    let composition = plan::composition(Composition::default(), &arguments.composition, |composition| {
        composition.segment_bytes = SEGMENT_BYTES - if arguments.plain { 0 } else { SEAL_BYTES };
    })?;
    plan::checked(composition)
}
