//! The door of an endpoint: a datagram is parsed once, and both its codes are checked, before anything in it is believed.

use super::Endpoint;
use crate::wire::{ErrorControl, Header, Integrity, verify};
use bytes::Bytes;
use restp_base::machine::Datagram;

impl Endpoint {
    /// Header and payload of a datagram in either of its two forms, and whether the payload is damaged. Both codes are
    /// checked here.
    pub(super) fn decode(&mut self, datagram: &mut Datagram) -> Option<(Header, Bytes, bool)> {
        let bytes = datagram.len();
        if !datagram.head.is_empty() && Header::length(&datagram.head) != Some(datagram.head.len()) {
            // The header ends elsewhere than the sender's buffers do: damaged, or another's machine.
            datagram.body = Bytes::from(datagram.to_vec());
            datagram.head.clear();
        }
        let in_one_piece = datagram.head.is_empty();
        let head: &[u8] = if in_one_piece {
            &datagram.body
        } else {
            &datagram.head
        };
        let Ok((header, length)) = Header::parse(head, bytes) else {
            self.stats.malformed += 1;
            return None;
        };
        let payload = if in_one_piece {
            datagram.body.slice(length..)
        } else {
            std::mem::take(&mut datagram.body)
        };
        let head = if in_one_piece {
            &datagram.body[..length]
        } else {
            &datagram.head
        };
        let integrity = if header.services.error.has(ErrorControl::CRC) {
            verify(head, &payload)
        } else {
            Integrity::Whole
        };
        if integrity == Integrity::Unknown {
            self.stats.corrupted_headers += 1; // dropped silently (OP-24)
            return None;
        }
        Some((header, payload, integrity == Integrity::Damaged))
    }
}
