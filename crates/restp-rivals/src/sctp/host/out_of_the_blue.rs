//! "Out of the blue" packets, of no association and opening none (RFC 9260 §8.4): whoever sent them is told that there is none.

use super::Sctp;
use crate::sctp::chunk::{Cause, Causes, Chunk};
use crate::sctp::wire::{Header, Packet};
use restp_base::machine::PathAddress;
use restp_services::connection_management::Ports;
use smallvec::smallvec;

/// Answers to packets of no association that may wait to be sent; more are dropped, as the network might.
const MOST_ANSWERS: usize = 64;

impl Sctp {
    /// A packet of no association (RFC 9260 §8.4).
    pub(super) fn on_out_of_the_blue(&mut self, address: PathAddress, ports: Ports, packet: &Packet) {
        self.dropped += 1;
        let answer = match &packet.chunks[..] {
            // RFC 9260 §8.4: these are never answered.
            chunks if chunks.iter().any(is_never_answered) => return,
            chunks if chunks.contains(&Chunk::ShutdownAck) => Chunk::ShutdownComplete { reflects_tag: true },
            _ => Chunk::Abort {
                reflects_tag: true,
                causes: Causes::new(),
            },
        };
        self.answer(address, ports, packet.header.tag, answer);
    }

    pub(super) fn answer(&mut self, address: PathAddress, ports: Ports, tag: u32, chunk: Chunk) {
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
    match chunk {
        Chunk::Abort { .. } | Chunk::ShutdownComplete { .. } | Chunk::CookieAck | Chunk::Init(_) => true,
        Chunk::Error(causes) => causes.iter().any(|cause| cause.code == Cause::STALE_COOKIE),
        _ => false,
    }
}
