//! The end with the target: each flow has a socket of its own, so that the target tells them apart.

use super::flows::{Flows, MOST};
use super::intake::Intake;
use super::message::{Assembly, MAX_DATAGRAM_BYTES, Message};
use super::outlet::{Outlet, SWEEP};
use super::seldom::Seldom;
use crate::output::note;
use crate::pipe::Answer;
use bytes::Bytes;
use restp::Connection;
use std::io;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::Arc;
use tokio::net::UdpSocket;
use tokio::sync::mpsc::{Receiver, Sender, channel};
use tokio::task::{AbortHandle, JoinSet};
use tokio::time::{Instant, interval, sleep};

/// After an error of a socket.
const PAUSE: std::time::Duration = std::time::Duration::from_millis(10);
/// Answers of all targets that wait for the connection; further ones wait in their sockets.
const MAX_ANSWERS: usize = 64;

/// Carries datagrams between `connection` and `target` until the connection is over. Whoever asks again is given `answer` again.
///
/// # Errors
/// When the connection carries no datagrams, or the peer wants no more.
pub async fn connecting(
    connection: &Connection,
    target: SocketAddr,
    answer: Option<&Answer>,
) -> Result<(), String> {
    let mut outlet = Outlet::default();
    outlet.begin(connection, false)?; // flows of another connection are others
    let (mut targets, mut answers) = Targets::of(target);
    let mut assembly = Assembly::default();
    let mut intake = Intake::of(connection);
    let mut sweep = interval(SWEEP);
    loop {
        tokio::select! {
            message = intake.next(connection) => {
                let Some(message) = message else { return Ok(()) };
                let left = match Message::decode(&message) {
                    Some(Message::Data { flow, datagram }) => targets.hand_out(flow, &datagram).await,
                    Some(part @ Message::Part { .. }) => match assembly.take(&part) {
                        Some((flow, datagram)) => targets.hand_out(flow, &datagram).await,
                        None => None,
                    },
                    Some(Message::End { flow }) => {
                        targets.flows.remove(flow);
                        None
                    }
                    Some(Message::Open(_)) => {
                        outlet.answer(answer);
                        None
                    }
                    Some(Message::Answer(Answer::Refused(refusal))) => return Err(refusal.sentence),
                    Some(Message::Answer(_)) | None => None,
                };
                left.into_iter().for_each(|flow| outlet.end(flow));
            }
            Some((flow, datagram)) = answers.recv() => {
                if targets.flows.used(flow, Instant::now()).is_some() {
                    outlet.push(flow, &datagram);
                }
            }
            () = outlet.run(connection) => {}
            _ = sweep.tick() => {
                let over = targets.flows.expire(Instant::now());
                over.into_iter().for_each(|(flow, _)| outlet.end(flow));
            }
        }
    }
}

/// A socket of each flow.
struct Targets {
    at: SocketAddr,
    flows: Flows<Target>,
    answers: Sender<(u16, Bytes)>,
    readers: JoinSet<()>,
    told: Seldom,
}

struct Target {
    socket: Arc<UdpSocket>,
    reader: AbortHandle,
}

impl Drop for Target {
    fn drop(&mut self) {
        self.reader.abort();
    }
}

impl Targets {
    fn of(at: SocketAddr) -> (Self, Receiver<(u16, Bytes)>) {
        let (answers, receiver) = channel(MAX_ANSWERS);
        let targets = Targets {
            at,
            flows: Flows::at_most(MOST),
            answers,
            readers: JoinSet::new(),
            told: Seldom::default(),
        };
        (targets, receiver)
    }

    /// Sends `datagram` to the target from the socket of `flow`; the flow that had to end for it.
    async fn hand_out(&mut self, flow: u16, datagram: &Bytes) -> Option<u16> {
        let now = Instant::now();
        if let Some(target) = self.flows.used(flow, now) {
            let _ = target.socket.try_send(datagram); // a full socket drops, as a network does
            return None;
        }
        let socket = match self.open().await {
            Ok(socket) => Arc::new(socket),
            Err(error) => {
                // With each datagram of each flow it would be a flood.
                if self.told.is_due(now) {
                    note(format!("udp:{}: {error}", self.at));
                }
                return None;
            }
        };
        // Of a new socket nobody knows yet that there is room: a try would drop the first datagram.
        let _ = socket.send(datagram).await;
        while self.readers.try_join_next().is_some() {}
        let reader = self
            .readers
            .spawn(read(flow, socket.clone(), self.answers.clone()));
        let left = self.flows.insert(flow, Target { socket, reader }, now);
        left.map(|(flow, _)| flow)
    }

    async fn open(&self) -> io::Result<UdpSocket> {
        let any: SocketAddr = match self.at {
            SocketAddr::V4(_) => (Ipv4Addr::UNSPECIFIED, 0).into(),
            SocketAddr::V6(_) => (Ipv6Addr::UNSPECIFIED, 0).into(),
        };
        let socket = UdpSocket::bind(any).await?;
        socket.connect(self.at).await?;
        Ok(socket)
    }
}

/// Reads what comes back in a flow.
async fn read(flow: u16, socket: Arc<UdpSocket>, answers: Sender<(u16, Bytes)>) {
    let mut buffer = vec![0; MAX_DATAGRAM_BYTES];
    loop {
        match socket.recv(&mut buffer).await {
            Ok(length) => {
                let datagram = Bytes::copy_from_slice(&buffer[..length]);
                if answers.send((flow, datagram)).await.is_err() {
                    return;
                }
            }
            // Nobody listened there when the last one was sent, or a firewall said no: it may be otherwise next time.
            Err(_) => sleep(PAUSE).await,
        }
    }
}
