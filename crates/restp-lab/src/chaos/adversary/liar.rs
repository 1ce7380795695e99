//! A client with a key of its own. Its seal is genuine, and what it says in it is whatever it likes: what the client said, with
//! other flags, numbers, ports and payloads, and answers to questions that it was not asked.

use crate::chaos::ledger::{Ledger, Party};
use crate::chaos::paths::address;
use crate::chaos::seal::Seal;
use crate::chaos::{Case, Side, seat};
use crate::host::address_of;
use crate::traffic::PORT;
use bytes::Bytes;
use restp_base::flow::{Flow, FlowId, FlowStats, OpenError, Read, WriteError};
use restp_base::machine::{Datagram, Event, Head, Input, Machine, PathAddress, Wakeup};
use restp_base::random::Stream;
use restp_base::time::Time;
use restp_proto::wire::{Flags, Header};
use restp_seal::Sealed;
use std::collections::VecDeque;
use std::net::SocketAddr;

/// Every payload of a liar consists of it.
pub const LIE: u8 = 0xA5;

pub struct Liar {
    sealed: Sealed<Puppet>,
    server: SocketAddr,
}

/// What stands at the place of an engine: it says what it is told to.
#[derive(Default)]
struct Puppet {
    lies: VecDeque<Datagram>,
}

impl Liar {
    pub fn new(case: &Case, seal: &Seal) -> Self {
        let server = address(Side::Client, 0).remote;
        let config = seat::configuration(case, seal, Party::Liar, 1);
        let mut sealed = Sealed::new(Puppet::default(), config);
        sealed.expect(server, seat::public(case, Party::Side(Side::Server)));
        // So that it may speak at all: the flow is nobody's.
        let _ = sealed.open(Time::ZERO, path(server), PORT);
        Liar { sealed, server }
    }

    /// Says something.
    pub fn lie(&mut self, now: Time, draw: &mut Stream, ledger: &mut Ledger) {
        let Some(lie) = lie(draw, ledger.of_client()).filter(|lie| !ledger.was_said(lie)) else {
            return;
        };
        let pdu = Bytes::from(lie);
        ledger.say(Party::Liar, pdu.clone(), None);
        let datagram = Datagram {
            path: path(self.server),
            body: pdu,
            ..Datagram::empty()
        };
        self.sealed.inner_mut().lies.push_back(datagram);
        self.wake(now);
    }

    pub fn wake(&mut self, now: Time) {
        if self.sealed.next_deadline().is_some_and(|(at, _)| at <= now) {
            self.sealed.handle(now, Input::Deadline);
        }
    }

    pub fn next(&self) -> Option<Time> {
        self.sealed.next_deadline().map(|(at, _)| at)
    }

    /// The server sent this to `remote`, an address of the liar.
    pub fn on_received(&mut self, now: Time, remote: SocketAddr, bytes: &[u8]) {
        let mut datagram = Datagram {
            path: PathAddress {
                local: remote,
                remote: self.server,
            },
            body: Bytes::copy_from_slice(bytes),
            ..Datagram::empty()
        };
        self.sealed.handle(now, Input::Datagram(&mut datagram));
    }

    /// What leaves next, and the path as the server sees it.
    pub fn transmit(&mut self, now: Time) -> Option<(PathAddress, Vec<u8>)> {
        let mut out = Datagram::empty();
        let sends = self.sealed.poll_transmit(now, &mut out);
        sends.then(|| (out.path.reversed(), out.to_vec()))
    }
}

fn path(server: SocketAddr) -> PathAddress {
    PathAddress {
        local: address_of(super::OWN),
        remote: server,
    }
}

/// Something between seals, or one of the PDUs `said` with something in it changed.
fn lie(draw: &mut Stream, said: &[Bytes]) -> Option<Vec<u8>> {
    if draw.chance(0.1) {
        // A challenge, or a response to none.
        let value = draw.bits().to_be_bytes();
        return Some([&[0x80 + draw.below(2) as u8][..], &value].concat());
    }
    let index = said
        .len()
        .checked_sub(1 + draw.below(said.len().max(1) as u64) as usize)?;
    altered(&said[index], draw)
}

/// `pdu` with other ports, numbers or flags; its payload is a lie.
pub fn altered(pdu: &Bytes, draw: &mut Stream) -> Option<Vec<u8>> {
    let (mut header, length) = Header::parse(pdu, pdu.len()).ok()?;
    let mut payload = vec![LIE; pdu.len() - length];
    match draw.below(5) {
        0 => header.source = header.source.wrapping_add(1_000 + draw.below(8) as u16),
        1 => {
            (header.flags, header.acknowledgement) = (Flags::RST, None);
            payload.clear();
        }
        2 => {
            let number = header.acknowledgement.or(header.sequence);
            (header.flags, header.acknowledgement) = (Flags::RST | Flags::ACK, number);
            payload.clear();
        }
        3 => header.flags = header.flags | Flags::FIN,
        _ => {
            let by = draw.below(1 << 16) as u32;
            header.sequence = header.sequence.map(|number| number.wrapping_add(by));
        }
    }
    let mut head = Head::new();
    header.emit(&payload, &mut head).ok()?;
    Some([&head[..], &payload].concat())
}

impl Flow for Puppet {
    fn open(&mut self, _: Time, _: PathAddress, _: u16) -> Result<FlowId, OpenError> {
        Ok(FlowId(0))
    }
    fn add_path(&mut self, _: Time, _: FlowId, _: PathAddress, _: bool) -> Result<(), OpenError> {
        Ok(())
    }
    fn remove_path(&mut self, _: Time, _: FlowId, _: PathAddress) -> Result<(), OpenError> {
        Ok(())
    }
    fn write(&mut self, _: Time, _: FlowId, _: Bytes) -> Result<(), WriteError> {
        Ok(())
    }
    fn write_on(&mut self, _: Time, _: FlowId, _: Bytes, _: PathAddress) -> Result<(), WriteError> {
        Ok(())
    }
    fn read(&mut self, _: Time, _: FlowId) -> Read {
        Read::Empty
    }
    fn finish(&mut self, _: Time, _: FlowId) {}
    fn abort(&mut self, _: Time, _: FlowId) {}
    fn release(&mut self, _: Time, _: FlowId) {}
    fn stats(&self, _: FlowId) -> Option<FlowStats> {
        None
    }
}

impl Machine for Puppet {
    fn handle(&mut self, _: Time, _: Input<'_>) {}
    fn poll_transmit(&mut self, _: Time, out: &mut Datagram) -> bool {
        let lie = self.lies.pop_front();
        lie.map(|lie| *out = lie).is_some()
    }
    fn poll_event(&mut self) -> Option<Event> {
        None
    }
    fn next_deadline(&self) -> Option<(Time, Wakeup)> {
        None
    }
    fn held(&self) -> usize {
        0
    }
}
