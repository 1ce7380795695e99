//! What headers say of the data that a datagram carries, for captures and laws.

use restp_base::machine::Datagram;
use restp_rivals::itp::wire as itp_wire;
use restp_rivals::sctp::chunk::Chunk;
use restp_rivals::sctp::wire as sctp_wire;

/// What a datagram says of the data it carries, in the units of its protocol: segments with ResTP, bytes with TCP, chunks with SCTP.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Numbers {
    /// Where its payload begins.
    pub sequence: Option<u32>,
    /// What is expected next in the other direction.
    pub acknowledgement: Option<u32>,
    /// How much payload there is.
    pub payload_bytes: usize,
}

/// The chunk of a message with data; of others nothing, because an Interest acknowledges no other.
pub(super) fn of_itp(message: &[u8], rest: &[u8]) -> Option<Numbers> {
    let (header, length) = itp_wire::Header::parse(message).ok()?;
    let is_data = matches!(header.kind, itp_wire::Kind::Data);
    Some(Numbers {
        sequence: is_data.then_some(header.pointer.chunk),
        acknowledgement: None,
        payload_bytes: if is_data {
            message.len() - length + rest.len()
        } else {
            0
        },
    })
}

/// TSN and cumulative TSN ack of a packet of ours, which carries one chunk.
pub(super) fn of_sctp(datagram: &Datagram) -> Option<Numbers> {
    let packet = sctp_wire::Packet::parse(&mut datagram.clone()).ok()?;
    let mut numbers = Numbers::default();
    for chunk in &packet.chunks {
        match chunk {
            Chunk::Data(data) => {
                numbers.sequence = Some(data.fragment.tsn);
                numbers.payload_bytes += data.payload.len();
            }
            Chunk::Sack(sack) => numbers.acknowledgement = Some(sack.cumulative.wrapping_add(1)),
            _ => {}
        }
    }
    Some(numbers)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn data_of_itp_says_its_chunk_and_an_interest_carries_nothing() {
        let message = |kind| {
            let pointer = itp_wire::Pointer {
                chunk: 7,
                ..itp_wire::Pointer::default()
            };
            let header = itp_wire::Header {
                kind,
                flags: 0,
                pointer,
            };
            of_itp(&header.emit(), b"a chunk")
        };
        let data = Numbers {
            sequence: Some(7),
            acknowledgement: None,
            payload_bytes: 7,
        };
        assert_eq!(message(itp_wire::Kind::Data), Some(data));
        let request = message(itp_wire::Kind::Request).map(|numbers| numbers.payload_bytes);
        assert_eq!((request, of_itp(b"no message", b"")), (Some(0), None));
    }
}
