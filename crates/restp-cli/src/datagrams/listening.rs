//! The end with the clients: each address that sends to it has a flow, and what comes back in a flow goes there.

use super::flows::{Flows, MOST};
use super::intake::Intake;
use super::message::{Assembly, MAX_DATAGRAM_BYTES, Message};
use super::outlet::{Outlet, SWEEP};
use crate::pipe::Answer;
use bytes::Bytes;
use restp::{Connection, PathAddress, ReplySocket};
use std::collections::BTreeMap;
use std::io::{self, ErrorKind};
use std::pin::pin;
use std::time::Duration;
use tokio::net::{ToSocketAddrs, lookup_host};
use tokio::time::{Instant, interval, sleep};

/// Until a socket that fails is asked again.
const PAUSE: Duration = Duration::from_millis(10);

/// A socket at the first address of `host` that can be had.
///
/// # Errors
/// When the host has no address here, or none has the port free.
pub async fn listen_at(host: impl ToSocketAddrs) -> io::Result<ReplySocket> {
    let mut failure = ErrorKind::AddrNotAvailable.into();
    for address in lookup_host(host).await? {
        match ReplySocket::bind(address) {
            Ok(socket) => return Ok(socket),
            Err(error) => failure = error,
        }
    }
    Err(failure)
}

/// A socket for clients. It outlives a connection: what comes while there is none waits for another one.
pub struct Listening<'a> {
    socket: &'a ReplySocket,
    clients: Clients,
    outlet: Outlet,
    buffer: Vec<u8>,
}

impl<'a> Listening<'a> {
    /// Nothing has come at `socket` yet.
    pub fn at(socket: &'a ReplySocket) -> Self {
        Listening {
            socket,
            clients: Clients::default(),
            outlet: Outlet::default(),
            buffer: vec![0; MAX_DATAGRAM_BYTES],
        }
    }

    /// Carries datagrams between the socket and `connection` until that is over. Whoever asks again is given `answer` again; who has
    /// none to give asks himself, and anew when the connection is lost.
    ///
    /// # Errors
    /// When the connection carries no datagrams, or the peer wants no more.
    pub async fn carry(&mut self, connection: &Connection, answer: Option<&Answer>) -> Result<(), String> {
        let Listening {
            socket,
            clients,
            outlet,
            buffer,
        } = self;
        outlet.begin(connection, answer.is_none())?;
        let mut assembly = Assembly::default();
        let mut intake = Intake::of(connection);
        let mut sweep = interval(SWEEP);
        loop {
            tokio::select! {
                message = intake.next(connection) => {
                    let Some(message) = message else {
                        outlet.on_lost();
                        return Ok(());
                    };
                    match Message::decode(&message) {
                        Some(Message::Open(_)) => outlet.answer(answer),
                        Some(Message::Data { flow, datagram }) => clients.hand_out(socket, flow, &datagram),
                        Some(Message::End { flow }) => clients.end(flow),
                        Some(part @ Message::Part { .. }) => {
                            if let Some((flow, datagram)) = assembly.take(&part) {
                                clients.hand_out(socket, flow, &datagram);
                            }
                        }
                        Some(Message::Answer(Answer::Refused(refusal))) => return Err(refusal.sentence),
                        Some(Message::Answer(_)) | None => {}
                    }
                }
                received = socket.receive(buffer) => match received {
                    Ok((length, from)) => clients.take(from, &buffer[..length], outlet),
                    Err(_) => sleep(PAUSE).await,
                },
                () = outlet.run(connection) => {}
                _ = sweep.tick() => clients.expire().into_iter().for_each(|flow| outlet.end(flow)),
            }
        }
    }

    /// Takes what comes until there is `another` connection.
    pub async fn await_another<T>(&mut self, another: impl Future<Output = T>) -> T {
        let mut another = pin!(another);
        loop {
            tokio::select! {
                another = &mut another => return another,
                received = self.socket.receive(&mut self.buffer) => match received {
                    Ok((length, from)) => self.clients.take(from, &self.buffer[..length], &mut self.outlet),
                    Err(_) => sleep(PAUSE).await,
                },
            }
        }
    }
}

/// Addresses of clients, and those of this host that they ask, by flow; and flows by address.
struct Clients {
    flows: Flows<PathAddress>,
    by_address: BTreeMap<PathAddress, u16>,
    next: u16,
}

impl Default for Clients {
    fn default() -> Self {
        Clients {
            flows: Flows::at_most(MOST),
            by_address: BTreeMap::new(),
            next: 0,
        }
    }
}

impl Clients {
    /// A datagram came from the client at `address`.
    fn take(&mut self, address: PathAddress, datagram: &[u8], outlet: &mut Outlet) {
        let (flow, left) = self.flow_of(address);
        left.into_iter().for_each(|flow| outlet.end(flow));
        outlet.push(flow, datagram);
    }

    /// The flow of the client at `address`, and the one that had to end for it.
    fn flow_of(&mut self, address: PathAddress) -> (u16, Option<u16>) {
        let now = Instant::now();
        if let Some(flow) = self.by_address.get(&address) {
            self.flows.used(*flow, now);
            return (*flow, None);
        }
        let flow = self.flows.free(self.next);
        self.next = flow.wrapping_add(1);
        let left = self.flows.insert(flow, address, now);
        if let Some((_, address)) = left {
            self.by_address.remove(&address);
        }
        self.by_address.insert(address, flow);
        (flow, left.map(|(flow, _)| flow))
    }

    /// Gives `datagram` to the client of `flow`, if there is one.
    fn hand_out(&mut self, socket: &ReplySocket, flow: u16, datagram: &Bytes) {
        if let Some(address) = self.flows.used(flow, Instant::now()) {
            let _ = socket.try_send(datagram, address); // a full socket drops, as a network does
        }
    }

    fn end(&mut self, flow: u16) {
        if let Some(address) = self.flows.remove(flow) {
            self.by_address.remove(&address);
        }
    }

    fn expire(&mut self) -> Vec<u16> {
        let over = self.flows.expire(Instant::now()).into_iter();
        let over = over.map(|(flow, address)| {
            self.by_address.remove(&address);
            flow
        });
        over.collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_address_keeps_its_flow_until_too_many_came() {
        let at = |port| PathAddress {
            local: ([127, 0, 0, 1], 5000).into(),
            remote: ([127, 0, 0, 1], port).into(),
        };
        let mut clients = Clients::default();
        for port in 1..=256 {
            assert_eq!(clients.flow_of(at(port)), (port - 1, None));
        }
        assert_eq!(clients.flow_of(at(1)), (0, None));
        assert_eq!(clients.flow_of(at(257)), (256, Some(1)));
        assert_eq!(
            clients.flow_of(at(2)),
            (257, Some(2)),
            "a number that is not in use elsewhere"
        );
        clients.end(257);
        assert_eq!(clients.flow_of(at(2)), (258, None));
        assert_eq!(clients.by_address.len(), 256);
    }
}
