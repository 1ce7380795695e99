//! Requests that carry no data (ResTP §3.5.5): a layer below may have to hand one on twice.

use super::codes::MPX_JOIN;
use restp_base::machine::{Datagram, Request};

/// Bits of the second byte.
const ACK: u8 = 0x10;
const RST: u8 = 0x04;
const SYN: u8 = 0x02;
const FIN: u8 = 0x01;

/// What this datagram asks for, if it asks and brings no data: handed on twice it does no harm, the second time it is a
/// retransmission of the first.
pub fn bare_request(datagram: &Datagram) -> Option<Request> {
    let head = if datagram.head.is_empty() {
        &datagram.body[..]
    } else {
        &datagram.head[..]
    };
    let base = head.first_chunk::<12>()?;
    let length = 4 * usize::from(base[6] & 0xF0 | base[0] & 0x0F);
    let whole = length.checked_sub(datagram.head.len()) == Some(datagram.body.len());
    if base[1] & (SYN | ACK | RST | FIN) != SYN || !whole {
        return None;
    }
    Some(match base[6] >> 2 & 0b11 {
        MPX_JOIN => Request::Path,
        _ => Request::Flow,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn datagram(head: &[u8], body: &'static [u8]) -> Datagram {
        Datagram {
            head: head.into(),
            body: body.into(),
            ..Datagram::empty()
        }
    }

    #[test]
    fn a_syn_without_data_and_nothing_else() {
        let syn = [0x03, 0x02, 0x10, 0, 0, 1, 0, 0, 0xC3, 0x50, 0, 0x50];
        assert_eq!(bare_request(&datagram(&syn, b"")), Some(Request::Flow));
        let mut join = syn;
        join[6] |= MPX_JOIN << 2;
        assert_eq!(bare_request(&datagram(&join, b"")), Some(Request::Path));
        assert_eq!(bare_request(&datagram(&syn, b"data")), None);
        assert_eq!(bare_request(&datagram(&syn[..11], b"")), None);
        assert_eq!(bare_request(&datagram(b"", b"")), None);
        for flags in [0x00, 0x12, 0x06, 0x03, 0x10] {
            let mut other = syn;
            other[1] = flags;
            assert_eq!(bare_request(&datagram(&other, b"")), None, "{flags:#04x}");
        }
    }
}
