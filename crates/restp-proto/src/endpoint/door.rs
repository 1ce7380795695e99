//! The door of an endpoint: a datagram is parsed once, and both its codes are checked, before anything in it is believed.

use super::Endpoint;
use crate::wire::{ErrorControl, Header, Integrity, verify};
use bytes::Bytes;
use restp_base::machine::Datagram;

/// The bytes of `datagram` that hold its header: the first of its two parts, or all in one piece.
pub(super) fn head(datagram: &mut Datagram) -> &[u8] {
    if !datagram.head.is_empty() && Header::length(&datagram.head) != Some(datagram.head.len()) {
        // The header ends elsewhere than the sender's buffers do: damaged, or another's machine.
        datagram.body = Bytes::from(datagram.to_vec());
        datagram.head.clear();
    }
    if datagram.head.is_empty() {
        &datagram.body
    } else {
        &datagram.head
    }
}

impl Endpoint {
    /// The payload of `datagram`, whose `header` is `length` bytes long, and whether it is damaged. None: the header is.
    pub(super) fn payload(
        &mut self,
        datagram: &mut Datagram,
        header: &Header,
        length: usize,
    ) -> Option<(Bytes, bool)> {
        let in_one_piece = datagram.head.is_empty();
        let payload = if in_one_piece {
            datagram.body.slice(length..)
        } else {
            std::mem::take(&mut datagram.body)
        };
        if !header.services.error.has(ErrorControl::CRC) {
            return Some((payload, false));
        }
        let head = if in_one_piece {
            &datagram.body[..length]
        } else {
            &datagram.head
        };
        match verify(head, &payload) {
            Integrity::Whole => Some((payload, false)),
            Integrity::Damaged => Some((payload, true)),
            Integrity::Unknown => {
                self.stats.corrupted_headers += 1; // dropped silently (OP-24)
                None
            }
        }
    }
}
