//! Whoever writes an address on an envelope: until somebody has shown that he is there, at most three times the bytes that
//! came from it go to it (RFC 9000 §8.1). He has when he, having been sent something there, seals a packet that comes from
//! there; or any packet, when there is no other address where he can have got the keys. Who shows the proof that went there has, too. Who dials sends to the addresses that it was told, and to no others.

use super::evidence::{Evidence, Fault};
use crate::chaos::trace::What;
use crate::chaos::{Party, Side};
use std::collections::BTreeMap;
use std::net::SocketAddr;

/// So many times what came from an address may be sent there.
const AMPLIFICATION: usize = 3;

/// An address as a server sees it.
#[derive(Default)]
struct Address {
    came: usize,
    went: usize,
    /// Who has been sent something there.
    reached: Option<Party>,
    proved: bool,
}

/// `party` has sealed a packet. If there is but one address where it can have got what it needs for that, it was there.
fn on_first_packet(addresses: &mut BTreeMap<SocketAddr, Address>, party: Party) {
    let mut reached = addresses
        .values_mut()
        .filter(|address| address.reached == Some(party));
    if let (Some(only), None) = (reached.next(), reached.next()) {
        only.proved = true;
    }
}

pub fn check(evidence: &Evidence<'_>) -> Result<(), Fault> {
    let mut addresses: BTreeMap<_, Address> = BTreeMap::new();
    for (index, record) in evidence.trace.records.iter().enumerate() {
        match record.what {
            What::Restarted { side: Side::Server } => addresses.clear(),
            What::Came {
                to: Side::Server,
                from,
                bytes,
                sealed,
                proof,
            } => {
                let address = addresses.entry(from).or_default();
                address.came += bytes;
                address.proved |= proof || sealed.is_some() && address.reached == sealed;
                if let Some(party) = sealed {
                    on_first_packet(&mut addresses, party);
                }
            }
            What::Went {
                from: Side::Server,
                to,
                bytes,
                reaches,
            } => {
                let address = addresses.entry(to).or_default();
                address.went += bytes;
                address.reached = address.reached.or(reaches);
                if !address.proved && address.went > AMPLIFICATION * address.came {
                    let what = format!(
                        "{} bytes go to {to}, where nobody has shown to be, and {} came from there",
                        address.went, address.came
                    );
                    return Err(Fault::at(index, what));
                }
            }
            What::Went {
                from: Side::Client,
                to,
                reaches: Some(Party::Liar) | None,
                ..
            } => {
                return Err(Fault::at(
                    index,
                    format!("the client sends to {to}, which it was not told"),
                ));
            }
            _ => {}
        }
    }
    Ok(())
}
