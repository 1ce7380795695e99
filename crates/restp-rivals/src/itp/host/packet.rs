//! A message in its UDP datagram (ITP §III.B): the two headers, and nothing believed whose check sum is wrong or absent.

use crate::itp::wire::{Header, WireError};
use crate::udp::wire as udp;
use bytes::Bytes;
use restp_base::machine::{Datagram, Ecn, Head, PathAddress};
use thiserror::Error;

/// A message as it came.
#[derive(Debug)]
pub(in crate::itp) struct Message {
    pub source_port: u16,
    pub destination_port: u16,
    pub header: Header,
    pub payload: Bytes,
}

/// Why a datagram is no message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub(in crate::itp) enum PacketError {
    /// It is not even UDP.
    #[error("{0}")]
    Udp(#[from] udp::WireError),
    /// It has no check sum, which ITP demands.
    #[error("the check sum (offset 6) is 0, and ITP demands one")]
    Unchecked,
    /// It is no ITP.
    #[error("{0}")]
    Itp(#[from] WireError),
}

/// What is in `datagram`, in either of its two forms.
pub(in crate::itp) fn take_apart(datagram: &mut Datagram) -> Result<Message, PacketError> {
    let ports = udp::Header::parse(
        if datagram.head.is_empty() {
            &datagram.body
        } else {
            &datagram.head
        },
        if datagram.head.is_empty() {
            &[]
        } else {
            &datagram.body
        },
        datagram.path,
    )?;
    if ports.checksum == 0 {
        return Err(PacketError::Unchecked);
    }
    let message = |header, payload| Message {
        source_port: ports.source_port,
        destination_port: ports.destination_port,
        header,
        payload,
    };
    if let Some(head) = datagram.head.get(udp::HEADER_BYTES..)
        && let Ok((header, length)) = Header::parse(head)
        && length == head.len()
    {
        return Ok(message(header, std::mem::take(&mut datagram.body)));
    }
    let mut whole = if datagram.head.is_empty() {
        std::mem::take(&mut datagram.body)
    } else {
        datagram.to_vec().into()
    };
    let mut rest = whole.split_off(udp::HEADER_BYTES);
    let (header, length) = Header::parse(&rest)?;
    Ok(message(header, rest.split_off(length)))
}

/// The datagram that carries `header` and `payload` along `path`, from the first of `ports` to the second.
pub(in crate::itp) fn datagram(
    path: PathAddress,
    ports: (u16, u16),
    header: &Header,
    payload: Bytes,
) -> Datagram {
    let message = header.emit();
    let udp = udp::Header::over(ports.0, ports.1, &[&message, &payload], path);
    let mut head = Head::from_slice(&udp.emit());
    head.extend_from_slice(&message);
    Datagram {
        path,
        ecn: Ecn::NotEct,
        may_fragment: false,
        peer: 0,
        segment: None,
        head,
        body: payload,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::itp::wire::{Kind, Pointer};

    #[test]
    fn both_forms_are_the_same_message_and_every_changed_bit_is_noticed() {
        let at = |last: u8| ([10, 0, 0, last], 0).into();
        let path = PathAddress {
            local: at(1),
            remote: at(2),
        };
        let header = Header {
            kind: Kind::Data,
            flags: 0,
            pointer: Pointer::default(),
        };
        let sent = datagram(path, (9, 4000), &header, Bytes::from_static(b"chunk"));
        let whole = Datagram {
            head: Head::new(),
            body: sent.to_vec().into(),
            ..sent.clone()
        };
        let odd = Datagram {
            head: Head::from_slice(&whole.body[..30]),
            body: whole.body.slice(30..),
            ..sent.clone()
        };
        for form in [&sent, &whole, &odd] {
            let message = take_apart(&mut form.clone()).expect("a message");
            assert_eq!((message.source_port, message.destination_port), (9, 4000));
            assert_eq!(
                (message.header, &message.payload[..]),
                (header.clone(), &b"chunk"[..])
            );
        }
        for bit in 0..whole.body.len() * 8 {
            let mut changed = whole.body.to_vec();
            changed[bit / 8] ^= 1 << (bit % 8);
            let body = changed.into();
            assert!(
                take_apart(&mut Datagram {
                    body,
                    ..whole.clone()
                })
                .is_err(),
                "bit {bit}"
            );
        }
        let mut unchecked = whole.body.to_vec();
        unchecked[6..8].fill(0);
        let body = unchecked.into();
        let refused = take_apart(&mut Datagram { body, ..whole }).expect_err("refused");
        assert_eq!(refused, PacketError::Unchecked);
    }
}
