//! `restp publish`: files and folders for any number of others.

use super::{host, node, run};
use crate::args::Publish;
use crate::content::{ContentTicket, Readable, publish};
use crate::failure::Failure;
use crate::interrupt::Interrupt;
use crate::keys;
use crate::monitor::Monitor;
use crate::monitor::content::Serving;
use crate::output::{self, Output};
use crate::progress::Progress;
use crate::transfer::Look;
use restp::{Endpoint, SecretKey};
use restp_rivals::itp::node::{Node, NodeCounters};
use restp_rivals::itp::trust::Publisher;
use serde::Serialize;
use sha2::{Digest, Sha256};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use zeroize::Zeroizing;

/// What others need to fetch it.
#[derive(Serialize)]
pub struct Invitation {
    pub ticket: String,
    addresses: Vec<SocketAddr>,
    publisher: String,
    root: String,
}

/// What was done until the user ended it.
#[derive(Serialize)]
pub struct Served {
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
    let object = Object::read(&arguments.paths, chunk, arguments.key.as_deref())?;
    run(async {
        let mut interrupt = Interrupt::watch()?;
        let endpoint = node::bind(&arguments.listen, &config)?;
        let invitation = object.serve(&endpoint)?;
        let shown = Serving(endpoint.caller());
        let _monitor = Monitor::start("publish", vec![Box::new(shown)], &arguments.monitor)?;
        output.result(&invitation, |invitation| format!("ticket: {}", invitation.ticket))?;
        interrupt.wait().await;
        output.result(&served(&endpoint), Served::sentence)
    })
}

/// Files and folders that have been read, and can be served.
pub struct Object {
    readable: Readable,
    bytes: u64,
}

impl Object {
    /// In chunks of `chunk` bytes, vouched for by the host with the key in this file, or this user's.
    ///
    /// # Errors
    /// When something cannot be read.
    pub fn read(paths: &[PathBuf], chunk: u32, key: Option<&Path>) -> Result<Self, Failure> {
        let publisher = publisher(&keys::identity(key)?)?;
        let progress = Progress::new();
        let line = progress.line("reading", None);
        let mut bytes = 0;
        let object = publish(paths, chunk, &publisher, |read| {
            bytes += read;
            line.show(Look {
                bytes,
                down_for: None,
                paths: Vec::new(),
                found: Vec::new(),
            });
        });
        drop(line);
        let readable = object.map_err(Failure::input)?;
        Ok(Object { readable, bytes })
    }

    /// Serves it from now on.
    ///
    /// # Errors
    /// When the system gives no thread.
    pub fn serve(self, endpoint: &Endpoint<Node>) -> Result<Invitation, Failure> {
        let wanted = self.readable.wanted();
        let published = self.readable.published(node::wake(endpoint));
        let published = published.map_err(Failure::operation)?;
        endpoint.call(|node, _| node.publish(published));
        let ticket = ContentTicket::new(host::reached_at(&endpoint.local_addrs()), wanted);
        output::note(format!(
            "publishing {}; fetch with: restp fetch {ticket}",
            output::bytes(self.bytes)
        ));
        Ok(Invitation {
            ticket: ticket.to_string(),
            publisher: crate::transfer::hex(&wanted.publisher.0),
            root: crate::transfer::hex(&wanted.root),
            addresses: ticket.addresses,
        })
    }
}

/// What was served until now.
pub fn served(endpoint: &Endpoint<Node>) -> Served {
    let NodeCounters {
        answers,
        answered_bytes,
        unproved,
        limited,
        dropped,
    } = endpoint.call(|node, _| node.counters());
    Served {
        chunks: answers,
        bytes: answered_bytes,
        unproved,
        limited,
        dropped,
    }
}

impl Served {
    pub fn sentence(&self) -> String {
        format!("served {} in {} answers", output::bytes(self.bytes), self.chunks)
    }
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
