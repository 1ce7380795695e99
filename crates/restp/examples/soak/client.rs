//! A client: so many connections at a time, each of some kind, each for a while.

use crate::kind::{ALL, Kind};
use crate::pattern::{self, MessageCheck, StreamCheck};
use crate::report::{Report, add, subtract};
use crate::{secret, security};
use restp::{CloseReason, Connection, Endpoint, EndpointConfig};
use restp_base::random::Stream as Dice;
use std::error::Error;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;
use tokio::time::{Instant, sleep};

/// What a client is to do.
pub struct Plan {
    pub key: u8,
    /// Its endpoints have this port and those above it, in every life.
    pub first_port: u16,
    pub seed: u64,
    /// At a time, shared evenly by the peers.
    pub connections: usize,
    pub life_s: f64,
}

/// Where a server is.
#[derive(Clone, Debug)]
struct Peer {
    number: u8,
    addresses: Vec<SocketAddr>,
}

pub async fn run(plan: Plan, peers: &[&str], report: Arc<Report>) -> Result<(), Box<dyn Error>> {
    let peers = peers
        .iter()
        .map(|word| peer(word))
        .collect::<Result<Vec<_>, _>>()?;
    let mut endpoints = Vec::new();
    for (offset, kind) in ALL.into_iter().enumerate() {
        let at = SocketAddr::from((Ipv4Addr::LOCALHOST, plan.first_port + offset as u16));
        let config = EndpointConfig::new(kind.composition()?.check()?);
        let endpoint = Endpoint::bind_with(&[at.into()], config, security(plan.key))?;
        // The keys of every second server are known before, the others are learnt.
        for peer in peers.iter().filter(|peer| peer.number % 2 == 0) {
            for address in &peer.addresses {
                endpoint.expect(*address, secret(peer.number).public());
            }
        }
        endpoints.push(Arc::new(endpoint));
    }
    let mut slots = Vec::new();
    for slot in 0..plan.connections {
        let (kind, peer) = (
            ALL[slot % ALL.len()],
            peers[slot / ALL.len() % peers.len()].clone(),
        );
        let slot = Slot {
            kind,
            peer,
            endpoint: endpoints[slot % ALL.len()].clone(),
            dice: Dice::named(plan.seed, &format!("slot/{slot}")),
            life_s: plan.life_s,
            report: report.clone(),
        };
        slots.push(tokio::spawn(slot.run()));
    }
    for slot in slots {
        slot.await?;
    }
    Err("nothing is left to do".into())
}

fn peer(word: &str) -> Result<Peer, Box<dyn Error>> {
    let (number, addresses) = word.split_once('@').ok_or("a peer is NUMBER@ADDRESS,ADDRESS")?;
    Ok(Peer {
        number: number.parse()?,
        addresses: addresses.split(',').map(str::parse).collect::<Result<_, _>>()?,
    })
}

/// The place of one connection at a time.
struct Slot {
    kind: Kind,
    peer: Peer,
    endpoint: Arc<Endpoint>,
    dice: Dice,
    life_s: f64,
    report: Arc<Report>,
}

impl Slot {
    async fn run(mut self) {
        loop {
            sleep(self.span(0.2, 3.0)).await;
            if let Err(why) = self.connection().await {
                self.report.broke(self.peer.number, self.kind, why);
            }
        }
    }

    fn span(&mut self, least_s: f64, most_s: f64) -> Duration {
        Duration::from_secs_f64(least_s + self.dice.unit() * (most_s - least_s))
    }

    /// One connection from beginning to end.
    async fn connection(&mut self) -> Result<(), String> {
        let addresses = match self.kind {
            Kind::Multipath => &self.peer.addresses[..],
            _ => {
                let chosen = self.dice.below(self.peer.addresses.len() as u64) as usize;
                &self.peer.addresses[chosen..=chosen]
            }
        };
        let connected = self.endpoint.connect_to(addresses, self.kind.port()).await;
        let connection = connected.map_err(|error| format!("not opened: {error}"))?;
        add(&self.report.opened, 1);
        add(&self.report.live, 1);
        let until = Instant::now() + self.span(0.2 * self.life_s, 1.8 * self.life_s);
        let seed = self.dice.bits();
        let reason = if self.kind.is_stream() {
            self.stream(connection, seed, until).await
        } else {
            self.messages(connection, seed, until).await
        };
        subtract(&self.report.live, 1);
        if reason != CloseReason::Finished {
            return Err(reason.to_string());
        }
        add(&self.report.finished, 1);
        Ok(())
    }

    /// Bytes in a row, some now and then; all of them have to come back.
    async fn stream(&mut self, connection: Connection, seed: u64, until: Instant) -> CloseReason {
        let (report, kind) = (self.report.clone(), self.kind);
        let sending = async {
            let mut sent = 0;
            while Instant::now() < until {
                let length = 200 + self.dice.below(4000);
                if connection.send(pattern::bytes(seed, sent, length)).await.is_err() {
                    break;
                }
                sent += length;
                sleep(self.span(0.5, 2.5)).await;
            }
            connection.finish();
            sent
        };
        let receiving = async {
            let mut check = StreamCheck::of(Some(seed));
            while let Some(data) = connection.recv().await {
                add(&report.stream_bytes, data.len() as u64);
                if let Err(what) = check.take(&data) {
                    report.found(kind, what);
                }
            }
            check.received
        };
        let (sent, received) = tokio::join!(sending, receiving);
        let reason = connection.closed().await;
        if reason == CloseReason::Finished && sent != received {
            report.found(kind, format!("{received} bytes came back of {sent}"));
        }
        reason
    }

    /// Messages: datagrams evenly, frames of a voice in spurts of a second (ITU-T P.59), one every 20 ms.
    async fn messages(&mut self, connection: Connection, seed: u64, until: Instant) -> CloseReason {
        let (report, kind) = (self.report.clone(), self.kind);
        let sending = async {
            let mut number = 0;
            while Instant::now() < until {
                let length = 8 + if kind == Kind::Voice {
                    152
                } else {
                    self.dice.below(1000)
                };
                if connection
                    .send(pattern::message(seed, number, length))
                    .await
                    .is_err()
                {
                    break;
                }
                add(&report.sent, 1);
                number += 1;
                let pause = match kind {
                    Kind::Voice if number % 50 == 0 => self.span(3.0, 6.0),
                    Kind::Voice => Duration::from_millis(20),
                    _ => self.span(0.1, 0.9),
                };
                sleep(pause).await;
            }
            sleep(Duration::from_secs(1)).await; // for what is still on its way back
            connection.finish();
        };
        let receiving = async {
            let mut check = MessageCheck::of(kind);
            while let Some(data) = connection.recv().await {
                add(&report.received, 1);
                if let Err(what) = check.take(&data) {
                    report.found(kind, what);
                }
            }
        };
        tokio::join!(sending, receiving);
        connection.closed().await
    }
}
