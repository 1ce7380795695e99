//! `restp publish`: files and folders for any number of others.

use super::{host, node, run};
use crate::args::Publish;
use crate::content::{ContentTicket, publish};
use crate::failure::Failure;
use crate::interrupt::Interrupt;
use crate::keys;
use crate::output::{self, Output};
use crate::progress::Progress;
use crate::transfer::Look;
use restp::SecretKey;
use restp_rivals::itp::node::NodeCounters;
use restp_rivals::itp::trust::Publisher;
use serde::Serialize;
use sha2::{Digest, Sha256};
use std::net::SocketAddr;
use zeroize::Zeroizing;

/// What is printed first.
#[derive(Serialize)]
struct Invitation {
    ticket: String,
    addresses: Vec<SocketAddr>,
    publisher: String,
    root: String,
}

/// What was done until the user ended it.
#[derive(Serialize)]
struct Served {
    chunks: u64,
    bytes: u64,
    unproved: u64,
    limited: u64,
    dropped: u64,
}

/// Publishes until interrupted.
///
/// # Errors
/// Exit code 2 when it could not begin.
pub fn execute(arguments: &Publish, output: Output) -> Result<(), Failure> {
    let chunk = node::bytes("--chunk", &arguments.chunk)?;
    let chunk = u32::try_from(chunk)
        .ok()
        .filter(|chunk| (256..=65_487).contains(chunk));
    let chunk = chunk
        .ok_or_else(|| Failure::input(format!("--chunk \"{}\": write 256 B to 65487 B", arguments.chunk)))?;
    let config = node::config(arguments.per_source.as_deref())?;
    let publisher = publisher(&keys::identity(arguments.key.as_deref())?)?;
    let progress = Progress::new();
    let line = progress.line("reading", None);
    let mut read = 0;
    let object = publish(&arguments.paths, chunk, &publisher, |bytes| {
        read += bytes;
        line.show(Look {
            bytes: read,
            down_for: None,
            paths: Vec::new(),
            found: Vec::new(),
        });
    });
    drop(line);
    let (object, _) = object.map_err(Failure::input)?;
    let wanted = object.wanted();
    run(async {
        let mut interrupt = Interrupt::watch()?;
        let endpoint = node::bind(&arguments.listen, &config)?;
        endpoint.call(|node, _| node.publish(object));
        let ticket = ContentTicket::new(host::reached_at(&endpoint.local_addrs()), wanted);
        output::note(format!(
            "publishing {}; fetch with: restp fetch {ticket}",
            output::bytes(read)
        ));
        let invitation = Invitation {
            ticket: ticket.to_string(),
            addresses: ticket.addresses.clone(),
            publisher: crate::transfer::hex(&wanted.publisher.0),
            root: crate::transfer::hex(&wanted.root),
        };
        output.result(&invitation, |invitation| format!("ticket: {}", invitation.ticket))?;
        interrupt.wait().await;
        let NodeCounters {
            answers,
            answered_bytes,
            unproved,
            limited,
            dropped,
        } = endpoint.call(|node, _| node.counters());
        let served = Served {
            chunks: answers,
            bytes: answered_bytes,
            unproved,
            limited,
            dropped,
        };
        output.result(&served, |served| {
            format!(
                "served {} in {} answers",
                output::bytes(served.bytes),
                served.chunks
            )
        })
    })
}

/// Who vouches for what the host with this key publishes.
fn publisher(secret: &SecretKey) -> Result<Publisher, Failure> {
    let digest = Sha256::new()
        .chain_update("restp publisher ")
        .chain_update(secret.to_text().as_bytes());
    let mut seed = Zeroizing::new([0; 32]);
    seed.copy_from_slice(&digest.finalize());
    Publisher::from_seed(&seed).ok_or_else(|| Failure::operation("the key makes no signature"))
}
