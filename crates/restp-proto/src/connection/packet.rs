//! A packet as a connection sees it.

use crate::wire::Header;
use bytes::Bytes;
use restp_base::machine::Ecn;

/// A received packet after the codec: everything a connection looks at.
pub(crate) struct Packet<'a> {
    pub(crate) header: &'a Header,
    pub(crate) payload: Bytes,
    /// The payload is a part of the buffer that it was received in, perhaps with others.
    pub(crate) is_slice: bool,
    /// Bytes of all of it.
    pub(crate) bytes: usize,
    /// The payload is not what was sent, by its check sum.
    pub(crate) is_damaged: bool,
    pub(crate) ecn: Ecn,
    /// Who sent it, as in [`Datagram::peer`](restp_base::machine::Datagram::peer).
    pub(crate) peer: u128,
}
