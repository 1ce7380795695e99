//! Packets of no association (RFC 9260 §5.1, §8.4): an INIT to the port served is answered and forgotten, a cookie that comes back
//! opens an association, anything else is told that there is none.

use super::Sctp;
use crate::sctp::STREAMS;
use crate::sctp::association::Association;
use crate::sctp::chunk::{Chunk, Init};
use crate::sctp::state_cookie::{Refusal, StateCookie};
use crate::sctp::wire::{Header, Packet};
use restp_base::machine::PathAddress;
use restp_base::time::Time;
use restp_services::connection_management::Ports;
use smallvec::{SmallVec, smallvec};

/// Answers to packets of no association that may wait to be sent; more are dropped, as the network might.
const MOST_ANSWERS: usize = 64;

impl Sctp {
    /// A packet of no association (RFC 9260 §5.1, §8.4).
    pub(super) fn on_stranger(&mut self, now: Time, address: PathAddress, ports: Ports, packet: Packet) {
        let header = packet.header;
        let is_served = self.config.listen == Some(ports.local);
        let answer = match &packet.chunks[..] {
            [Chunk::Init(init)] if is_served && header.tag == 0 => {
                let answer = self.promise(now, address, ports, init);
                return self.answer(address, ports, init.tag, Chunk::InitAck(answer));
            }
            [Chunk::Init(init)] if header.tag == 0 => {
                self.dropped += 1;
                return self.answer(address, ports, init.tag, Chunk::Abort { reflects_tag: false });
            }
            [Chunk::CookieEcho(cookie), rest @ ..] if is_served => {
                let rest = rest.iter().cloned().collect();
                return self.on_cookie(now, address, header, cookie, rest);
            }
            // RFC 9260 §8.4: these are never answered.
            chunks if chunks.iter().any(is_never_answered) => {
                self.dropped += 1;
                return;
            }
            [Chunk::ShutdownAck, ..] => Chunk::ShutdownComplete { reflects_tag: true },
            _ => Chunk::Abort { reflects_tag: true },
        };
        self.dropped += 1;
        self.answer(address, ports, header.tag, answer);
    }

    /// INIT ACK: all that is to be known comes back in the cookie.
    fn promise(&mut self, now: Time, address: PathAddress, ports: Ports, init: &Init) -> Init {
        let (local_tag, local_tsn) = (self.fresh_tag(), self.first_tsn());
        let mut addresses: SmallVec<[_; 2]> = smallvec![address.remote.ip()];
        let further = init.addresses.iter().copied();
        addresses.extend(further.filter(|further| *further != address.remote.ip()));
        let cookie = StateCookie {
            made_at: now,
            local_tag,
            peer_tag: init.tag,
            local_tsn,
            peer_tsn: init.first_tsn,
            peer_window: init.window,
            ports,
            streams: init.streams_in,
            addresses,
        };
        let window = self.parameters.receive_buffer_bytes;
        Init {
            tag: local_tag,
            window: u32::try_from(window).unwrap_or(u32::MAX),
            streams_out: STREAMS.min(init.streams_in),
            streams_in: STREAMS,
            first_tsn: local_tsn,
            addresses: SmallVec::new(),
            cookie: Some(cookie.seal(&self.mint)),
        }
    }

    /// COOKIE ECHO: the peer receives at its address (RFC 9260 §5.1.5).
    fn on_cookie(
        &mut self,
        now: Time,
        address: PathAddress,
        header: Header,
        cookie: &[u8],
        rest: SmallVec<[Chunk; 2]>,
    ) {
        let opened = StateCookie::open(&self.mint, now, cookie).and_then(|cookie| {
            let is_of_packet = cookie.local_tag == header.tag
                && cookie.ports.local == header.destination_port
                && cookie.ports.remote == header.source_port
                && cookie.addresses.contains(&address.remote.ip());
            is_of_packet.then_some(cookie).ok_or(Refusal::Forged)
        });
        let free = self.slots.len() < self.config.max_associations;
        let Some(cookie) = opened.ok().filter(|_| free) else {
            self.dropped += 1; // the peer will try again, or give up
            return;
        };
        let parameters = self.parameters.clone();
        let chance = self.fork();
        let association = Association::accept(now, parameters, address, &cookie, chance);
        let flow = self.insert(association);
        if let Some(slot) = self.slots.get_mut(&flow) {
            slot.association.handle(now, 0, rest, 0);
        }
        self.touch(flow);
    }

    fn answer(&mut self, address: PathAddress, ports: Ports, tag: u32, chunk: Chunk) {
        if self.answers.len() < MOST_ANSWERS {
            let header = Header {
                source_port: ports.local,
                destination_port: ports.remote,
                tag,
            };
            let chunks = smallvec![chunk];
            self.answers.push_back((address, Packet { header, chunks }));
        }
    }
}

fn is_never_answered(chunk: &Chunk) -> bool {
    matches!(
        chunk,
        Chunk::Abort { .. }
            | Chunk::ShutdownComplete { .. }
            | Chunk::Error
            | Chunk::CookieAck
            | Chunk::Init(_)
    )
}
