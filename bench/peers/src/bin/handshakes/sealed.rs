//! ResTP's side: a sealed server, and clients that know its key, do not know it, or come with a ticket. Each comes from an
//! address where nobody was before, so that nothing but the ticket is left of its earlier visit.

use std::net::SocketAddr;

use anyhow::{Context, bail, ensure};
use restp_base::flow::{Flow, FlowId};
use restp_base::machine::{Datagram, Event, Input, Machine, PathAddress};
use restp_base::time::{Duration, Time};
use restp_proto::composition::Preset;
use restp_proto::wire::bare_request;
use restp_proto::{Acceptance, Endpoint, EndpointConfig, InitialNumbers};
use restp_seal::{Token, PublicKey, SealConfig, Sealed, SecretKey};

use crate::{BATCH, address};

const PORT: u16 = 7;

/// Between two batches: the server hears as many strangers in a second as it does.
const APART: Duration = Duration::from_secs(1);

#[derive(Clone, Copy, PartialEq)]
enum Kind {
    Ik,
    Ix,
    Resumed,
}

pub struct Meeting {
    kind: Kind,
    now: Time,
    server: Sealed<Endpoint>,
    key: PublicKey,
    clients: Vec<Client>,
    /// Tokens of the clients' last visits.
    tokens: Vec<Option<Token>>,
    to_server: Vec<Datagram>,
    to_clients: Vec<Datagram>,
    accepted: Vec<FlowId>,
    visits: usize,
    bytes: [usize; 2],
}

struct Client {
    machine: Sealed<Endpoint>,
    path: PathAddress,
    flow: Option<FlowId>,
    connected: bool,
}

fn config() -> anyhow::Result<EndpointConfig> {
    let preset = Preset::named("3wh-arq").context("no such preset")?;
    let mut config = EndpointConfig::new(
        preset
            .composition()
            .check()
            .map_err(|_| anyhow::anyhow!("not valid"))?,
    );
    config.initial_numbers = InitialNumbers::Keyed([5; 16]);
    config.cookies.key = [6; 16];
    Ok(config)
}

fn server_address() -> SocketAddr {
    address(0)
}

impl Meeting {
    pub fn new(kind: &str) -> anyhow::Result<Self> {
        let kind = match kind {
            "ik" => Kind::Ik,
            "ix" => Kind::Ix,
            "resumed" => Kind::Resumed,
            _ => bail!("{kind:?}: allowed are ik, ix, resumed"),
        };
        let seal = SealConfig::new(SecretKey::from_chance([2; 32]), [2; 32], bare_request);
        let server = Sealed::new(Endpoint::new(config()?.listen(PORT, Acceptance::Any)), seal);
        let mut meeting = Meeting {
            kind: Kind::Ik,
            now: Time::ZERO,
            key: server.public_key(),
            server,
            clients: Vec::new(),
            tokens: vec![None; BATCH],
            to_server: Vec::new(),
            to_clients: Vec::new(),
            accepted: Vec::new(),
            visits: 0,
            bytes: [0; 2],
        };
        // A first visit, from which those who come again have their tickets.
        use crate::Meeting as _;
        meeting.gather()?;
        loop {
            meeting.clients()?;
            if meeting.server() {
                break;
            }
        }
        meeting.part()?;
        (meeting.kind, meeting.bytes) = (kind, [0; 2]);
        Ok(meeting)
    }
}

impl crate::Meeting for Meeting {
    fn gather(&mut self) -> anyhow::Result<()> {
        self.now += APART;
        for (number, token) in self.tokens.iter().enumerate() {
            self.visits += 1;
            let mut seed = [1; 32];
            seed[..8].copy_from_slice(&self.visits.to_be_bytes());
            let mut own = [7; 32]; // it keeps its name
            own[..8].copy_from_slice(&number.to_be_bytes());
            let seal = SealConfig::new(SecretKey::from_chance(own), seed, bare_request);
            let mut machine = Sealed::new(Endpoint::new(config()?), seal);
            if self.kind != Kind::Ix {
                machine.expect(server_address(), self.key);
            }
            if let Some(token) = token.clone().filter(|_| self.kind == Kind::Resumed) {
                machine.keep_token(self.key, token);
            }
            self.clients.push(Client {
                machine,
                path: PathAddress {
                    local: address(self.visits),
                    remote: server_address(),
                },
                flow: None,
                connected: false,
            });
        }
        Ok(())
    }

    fn clients(&mut self) -> anyhow::Result<()> {
        self.to_clients.sort_by_key(|datagram| datagram.path.local); // one client after another takes its own
        let mut arriving = self.to_clients.drain(..).peekable();
        let mut out = Datagram::empty();
        for client in &mut self.clients {
            if client.flow.is_none() {
                client.flow = Some(client.machine.open(self.now, client.path, PORT)?);
            }
            while let Some(mut datagram) = arriving.next_if(|datagram| datagram.path == client.path) {
                client.machine.handle(self.now, Input::Datagram(&mut datagram));
            }
            while let Some(event) = client.machine.poll_event() {
                client.connected |= matches!(event, Event::Connected(_));
            }
            while client.machine.poll_transmit(self.now, &mut out) {
                self.bytes[0] += out.len();
                self.to_server.push(arrived(&out));
            }
        }
        Ok(())
    }

    fn server(&mut self) -> bool {
        let quiet = self.to_server.is_empty();
        let mut out = Datagram::empty();
        for mut datagram in self.to_server.drain(..) {
            self.server.handle(self.now, Input::Datagram(&mut datagram));
            while let Some(event) = self.server.poll_event() {
                if let Event::Accepted(flow) = event {
                    self.accepted.push(flow);
                }
            }
            while self.server.poll_transmit(self.now, &mut out) {
                self.bytes[1] += out.len();
                self.to_clients.push(arrived(&out));
            }
        }
        quiet
    }

    fn part(&mut self) -> anyhow::Result<()> {
        let connected = self.clients.iter().filter(|client| client.connected).count();
        ensure!(
            (connected, self.accepted.len()) == (BATCH, BATCH),
            "{connected} clients and {} at the server: {:?}",
            self.accepted.len(),
            self.server.seal_stats()
        );
        let resumed = self.server.seal_stats().resumed as usize;
        ensure!(
            resumed
                == if self.kind == Kind::Resumed {
                    self.visits - BATCH
                } else {
                    0
                },
            "{resumed} resumed"
        );
        for (client, token) in self.clients.drain(..).zip(&mut self.tokens) {
            *token = client.machine.tokens().next().map(|(_, token)| token);
        }
        for flow in self.accepted.drain(..) {
            self.server.abort(self.now, flow);
            self.server.release(self.now, flow);
        }
        let mut out = Datagram::empty();
        while self.server.poll_transmit(self.now, &mut out) {}
        while self.server.poll_event().is_some() {}
        Ok(())
    }

    fn bytes(&self) -> [usize; 2] {
        self.bytes
    }
}

fn arrived(sent: &Datagram) -> Datagram {
    Datagram {
        path: sent.path.reversed(),
        body: sent.to_vec().into(),
        ..Datagram::empty()
    }
}
