//! The end with the clients: each address that sends to it has a flow, and what comes back in a flow goes there.

use super::flows::{Flows, MOST};
use super::message::{Assembly, MAX_DATAGRAM_BYTES, Message};
use super::outlet::{Outlet, SWEEP};
use crate::pipe::Answer;
use bytes::Bytes;
use restp::Connection;
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::time::Duration;
use tokio::net::UdpSocket;
use tokio::time::{Instant, interval, sleep};

/// Until a socket that fails is asked again.
const PAUSE: Duration = Duration::from_millis(10);

/// Carries datagrams between `socket` and `connection` until that is over. Whoever asks again is given `answer` again.
///
/// # Errors
/// When the connection carries no datagrams, or the peer wants no more.
pub async fn listening(
    connection: &Connection,
    socket: &UdpSocket,
    answer: Option<&Answer>,
) -> Result<(), String> {
    let mut outlet = Outlet::of(connection)?;
    let mut clients = Clients::default();
    let mut assembly = Assembly::default();
    let mut buffer = vec![0; MAX_DATAGRAM_BYTES];
    let mut sweep = interval(SWEEP);
    loop {
        tokio::select! {
            message = connection.recv() => {
                let Some(message) = message else { return Ok(()) };
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
            received = socket.recv_from(&mut buffer) => match received {
                Ok((length, from)) => {
                    let (flow, left) = clients.flow_of(from);
                    left.into_iter().for_each(|flow| outlet.end(flow));
                    outlet.push(flow, &buffer[..length]);
                }
                Err(_) => sleep(PAUSE).await,
            },
            () = outlet.run(connection) => {}
            _ = sweep.tick() => clients.expire().into_iter().for_each(|flow| outlet.end(flow)),
        }
    }
}

/// Addresses of clients by flow, and flows by address.
struct Clients {
    flows: Flows<SocketAddr>,
    by_address: BTreeMap<SocketAddr, u16>,
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
    /// The flow of the client at `address`, and the one that had to end for it.
    fn flow_of(&mut self, address: SocketAddr) -> (u16, Option<u16>) {
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
    fn hand_out(&mut self, socket: &UdpSocket, flow: u16, datagram: &Bytes) {
        if let Some(address) = self.flows.used(flow, Instant::now()) {
            let _ = socket.try_send_to(datagram, *address); // a full socket drops, as a network does
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
        let at = |port| SocketAddr::from(([127, 0, 0, 1], port));
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
