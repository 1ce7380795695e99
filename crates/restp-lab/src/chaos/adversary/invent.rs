//! Datagrams that nobody's key has touched: of every kind, in anybody's name (docs/protocol/sealed.md).

use super::{Adversary, FASTER};
use crate::chaos::ledger::{Ledger, Party};
use crate::chaos::paths::address;
use crate::chaos::paths::binding;
use crate::chaos::{Side, seat};
use crate::host::address_of;
use bytes::Bytes;
use restp_base::time::Time;
use restp_seal::packet::{CID_BYTES, Packet};

const HELLO_IK: u8 = 0x80;
const HELLO_IX: u8 = 0x81;
const ANSWER: u8 = 0x82;
const RETRY: u8 = 0x83;
const FOREIGN: u8 = 0x84;
const HELLO_RESUMED: u8 = 0x85;
const STALE: u8 = 0x86;
const RESET: u8 = 0x87;
const DATA: u8 = 0xC0;
const EARLY: u8 = 0xE0;

/// Token, one-time key, public key, flags and epoch of an IX Hello.
const IX_TOKEN: usize = 16;
const KEY: usize = 32;
const IX_PAYLOAD: usize = 9;

impl Adversary<'_> {
    /// Sends something invented to `to`: with the `names` of sessions that are on the path, or without.
    pub(super) fn invent(&mut self, now: Time, to: Side, names: bool, ledger: &mut Ledger) {
        let number = self.draw.below(self.case.paths() as u64) as usize;
        let mut path = address(to, number);
        if to == Side::Server {
            path.remote.set_port(binding(self.case, number, now));
        }
        if self.draw.chance(0.3) {
            path.remote = address_of(super::VICTIM);
        }
        let bytes = self.invented(to, names, ledger);
        self.inject(now + FASTER, to, path, bytes);
    }

    /// What a session or a handshake is called by `to`, or anything.
    fn name(&mut self, to: Side, known: bool) -> [u8; CID_BYTES] {
        let mut names = self.seen.iter().filter(|seen| known && seen.from != to);
        let count = names.clone().count() as u64;
        let name = (count > 0).then(|| names.nth(self.draw.below(count) as usize));
        let name = name.flatten().and_then(|seen| seen.bytes.get(1..1 + CID_BYTES));
        name.and_then(|name| name.try_into().ok())
            .unwrap_or_else(|| self.draw.bits().to_be_bytes())
    }

    /// What a session is called in which `from` has spoken of late: a host that has forgotten it calls it so.
    fn spoken(&self, from: Side) -> Option<[u8; CID_BYTES]> {
        let mut seen = self.seen.iter().rev().filter(|seen| seen.from == from);
        seen.find_map(|seen| match Packet::parse(&seen.bytes) {
            Some(Packet::Data(header)) if !header.early => Some(header.to),
            _ => None,
        })
    }

    fn invented(&mut self, to: Side, names: bool, ledger: &mut Ledger) -> Vec<u8> {
        let mut name = self.name(to, names);
        let kinds = [
            HELLO_IK,
            HELLO_IX,
            HELLO_IX,
            ANSWER,
            RETRY,
            RETRY,
            FOREIGN,
            HELLO_RESUMED,
            STALE,
            RESET,
            DATA,
            EARLY,
        ];
        let kind = kinds[self.draw.below(kinds.len() as u64) as usize];
        if kind == RESET && names {
            name = self.spoken(to).unwrap_or(name);
        }
        let length = match kind {
            RETRY | RESET => 16,
            STALE => 0,
            FOREIGN => KEY,
            HELLO_IX => return self.in_the_name_of_the_client(name, ledger),
            DATA | EARLY => return self.packet(kind, name),
            _ => 80 + self.draw.below(300) as usize,
        };
        let noise = self.noise(length);
        [&[kind][..], &name, &noise].concat()
    }

    /// A packet of a number that may well come next.
    fn packet(&mut self, kind: u8, name: [u8; CID_BYTES]) -> Vec<u8> {
        let space = self.draw.below(16) as u8;
        let number = self.draw.below(2_000).to_be_bytes();
        let length = 16 + self.draw.below(64) as usize;
        let noise = self.noise(length);
        [&[kind + space][..], &name, &number[2..], &noise].concat()
    }

    /// A first meeting with the public key of the client: nothing in it is encrypted, so all of it can be invented.
    fn in_the_name_of_the_client(&mut self, name: [u8; CID_BYTES], ledger: &mut Ledger) -> Vec<u8> {
        let client = seat::public(self.case, Party::Side(Side::Client));
        let said = ledger.of_client().last().cloned();
        let pdu = said
            .and_then(|pdu| super::liar::altered(&pdu, &mut self.draw))
            .filter(|lie| !ledger.was_said(lie))
            .unwrap_or_default();
        if !pdu.is_empty() {
            ledger.say(Party::Liar, Bytes::from(pdu.clone()), None);
        }
        let one_time = self.noise(KEY);
        [
            &[HELLO_IX][..],
            &name,
            &[0; IX_TOKEN],
            &one_time,
            &client.0,
            &[0; IX_PAYLOAD],
            &pdu,
        ]
        .concat()
    }

    /// Parts of `bytes` and of others that were seen.
    pub(super) fn splice(&mut self, bytes: &[u8]) -> Vec<u8> {
        let other = match self.seen.len() {
            0 => bytes,
            count => &self.seen[self.draw.below(count as u64) as usize].bytes,
        };
        let cut = |bytes: &[u8], at: usize| bytes.len().min(at);
        let head = 1 + CID_BYTES;
        match self.draw.below(4) {
            0 => [&bytes[..cut(bytes, head)], &other[cut(other, head)..]].concat(),
            1 => [
                &bytes[..1],
                &other[1..cut(other, head)],
                &bytes[cut(bytes, head)..],
            ]
            .concat(),
            2 => [bytes, other].concat(),
            _ => {
                let mut bytes = bytes.to_vec();
                let kind = 0x80 + self.draw.below(8) as u8;
                bytes[0] = if self.draw.chance(0.5) {
                    kind
                } else {
                    bytes[0] ^ EARLY ^ DATA
                };
                bytes
            }
        }
    }

    fn noise(&mut self, length: usize) -> Vec<u8> {
        (0..length).map(|_| self.draw.bits() as u8).collect()
    }
}
