//! Packets larger than a message: cut into messages that are full, and put together again. Fewer packets are fewer headers of what they
//! carry (docs/protocol/datagrams.md, Tunnels). Messages come in order and each once, so one packet at a time is put together.

use bytes::{BufMut, Bytes, BytesMut};

/// In front of what follows of a packet. Packets begin with 4 or 6 in the upper half of a byte, messages of the set-up with 2 or `R`.
pub const REST: u8 = 6;
/// A packet has no more bytes than this, unless one message holds more: what switches call a jumbo frame, and still 4 ms at 20 Mbit/s for who
/// waits behind one.
const MOST_PACKET_BYTES: usize = 9_000;
/// Shortest header of IP.
const LEAST_PACKET_BYTES: usize = 20;

/// How packets fit into messages of so many bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pieces {
    message: usize,
}

impl Pieces {
    /// Of messages of `message` bytes at most.
    pub fn of(message: usize) -> Self {
        Pieces { message }
    }

    /// The most bytes of a message.
    pub fn message(self) -> usize {
        self.message
    }

    /// The most bytes of a packet.
    pub fn mtu(self) -> u16 {
        let most = self.filling(MOST_PACKET_BYTES.max(self.message));
        u16::try_from(most).unwrap_or(u16::MAX)
    }

    /// The most bytes up to `most` that leave no message with room, or `most` where one message holds it.
    pub fn filling(self, most: usize) -> usize {
        let rest = self.message.saturating_sub(1);
        match most.checked_sub(self.message) {
            Some(more) if rest > 0 => most - more % rest,
            _ => most,
        }
    }

    /// The messages that carry `packet`.
    pub fn cut(self, packet: &Bytes) -> impl Iterator<Item = Bytes> {
        let first = packet.slice(..packet.len().min(self.message));
        let rest = packet.slice(first.len()..);
        let size = self.message.saturating_sub(1).max(1);
        let starts = (0..rest.len()).step_by(size);
        std::iter::once(first).chain(starts.map(move |start| {
            let piece = &rest[start..rest.len().min(start + size)];
            let mut message = BytesMut::with_capacity(1 + piece.len());
            message.put_u8(REST);
            message.put_slice(piece);
            message.freeze()
        }))
    }
}

/// The packet of which a part has come.
#[derive(Debug, Default)]
pub struct Assembly {
    packet: BytesMut,
    length: usize,
}

impl Assembly {
    /// A packet, or the first message of one: it says itself how long it is. Returns it once it is whole.
    pub fn begin(&mut self, first: &[u8]) -> Option<BytesMut> {
        self.packet.clear();
        self.length = length(first)?;
        self.packet = BytesMut::from(first);
        self.whole()
    }

    /// What follows of it.
    pub fn add(&mut self, rest: &[u8]) -> Option<BytesMut> {
        if self.packet.is_empty() || self.packet.len() + rest.len() > self.length {
            self.packet.clear(); // the beginning is not known, or another one is meant
            return None;
        }
        self.packet.put_slice(rest);
        self.whole()
    }

    fn whole(&mut self) -> Option<BytesMut> {
        (self.packet.len() >= self.length).then(|| std::mem::take(&mut self.packet))
    }
}

/// Is this a packet of IP, or the first message of one, and no message of the set-up?
pub fn is_packet(bytes: &[u8]) -> bool {
    length(bytes).is_some()
}

/// How long the packet of IP is that begins so.
fn length(packet: &[u8]) -> Option<usize> {
    let field = |at: usize| usize::from(u16::from_be_bytes([packet[at], packet[at + 1]]));
    match packet.first()? >> 4 {
        _ if packet.len() < LEAST_PACKET_BYTES => None,
        4 => Some(field(2)),
        6 => Some(40 + field(4)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn packet(version: u8, bytes: usize) -> Bytes {
        let mut packet: Vec<u8> = (0..bytes).map(|at| at as u8).collect();
        packet[0] = version << 4;
        let (at, length) = if version == 4 { (2, bytes) } else { (4, bytes - 40) };
        packet[at..at + 2].copy_from_slice(&(length as u16).to_be_bytes());
        packet.into()
    }

    #[test]
    fn a_packet_is_cut_into_full_messages_and_whole_again() {
        for (bytes, messages) in [(40, 1), (100, 1), (101, 2), (199, 2), (200, 3), (298, 3)] {
            for version in [4, 6] {
                let packet = packet(version, bytes);
                let cut: Vec<_> = Pieces::of(100).cut(&packet).collect();
                assert_eq!(cut.len(), messages, "{bytes}");
                assert!(cut.iter().all(|message| message.len() <= 100));
                let mut assembly = Assembly::default();
                let mut came = vec![assembly.begin(&cut[0])];
                came.extend(cut[1..].iter().map(|message| {
                    assert_eq!(message[0], REST);
                    assembly.add(&message[1..])
                }));
                let whole = came.pop().flatten();
                assert_eq!(whole.as_deref(), Some(&packet[..]), "{bytes}");
                assert!(came.iter().all(Option::is_none));
            }
        }
    }

    #[test]
    fn the_largest_packets_leave_no_message_with_room() {
        assert_eq!(Pieces::of(1_340).mtu(), 1_340 + 5 * 1_339);
        assert_eq!(Pieces::of(20_000).mtu(), 20_000, "one message holds more");
        assert_eq!(
            (Pieces::of(0).mtu(), Pieces::of(1).mtu()),
            (9_000, 9_000),
            "none carries any"
        );
        let filling = |most| Pieces::of(1_340).filling(most);
        assert_eq!(
            [576, 1_340, 1_341, 2_678, 2_679, 9_000].map(filling),
            [576, 1_340, 1_340, 1_340, 2_679, 8_035]
        );
    }

    #[test]
    fn what_follows_nothing_or_is_too_long_is_no_packet() {
        let mut assembly = Assembly::default();
        assert_eq!(assembly.add(&[1; 50]), None);
        let cut: Vec<_> = Pieces::of(100).cut(&packet(4, 298)).collect();
        assert_eq!(assembly.begin(&cut[0]), None);
        assert_eq!(assembly.add(&cut[1][1..]), None);
        assert_eq!(assembly.add(&[7; 100]), None, "two too many");
        assert_eq!(assembly.add(&cut[2][1..]), None, "that one is forgotten");
        assert_eq!(assembly.begin(&cut[0]), None);
        let other = packet(4, 60);
        assert_eq!(
            assembly.begin(&other).as_deref(),
            Some(&other[..]),
            "another one begins"
        );
        assert_eq!(assembly.add(&cut[1][1..]), None);
    }

    /// The most that a header can say: 65 535 bytes behind the 40 of IPv6.
    const LONGEST: usize = 40 + 65_535;

    #[test]
    fn headers_that_lie_make_packets_of_what_they_say_at_most() {
        for (version, says, length) in [(4, 0, 0), (4, 19, 19), (6, 0, 40), (6, 59, 99)] {
            let mut lies = packet(version, 100).to_vec();
            let at = if version == 4 { 2 } else { 4 };
            lies[at..at + 2].copy_from_slice(&u16::to_be_bytes(says));
            let mut assembly = Assembly::default();
            assert!(assembly.begin(&lies).is_some(), "{length} of 100 bytes are there");
            assert_eq!(assembly.add(&[1]), None);
            assert!(assembly.packet.is_empty());
        }
        let mut jumbo = packet(6, 100).to_vec();
        jumbo[4..6].fill(0xff);
        let mut assembly = Assembly::default();
        assert_eq!(assembly.begin(&jumbo), None);
        for _ in 0..(LONGEST - 101) {
            assert_eq!(assembly.add(&[1]), None);
        }
        assert_eq!(assembly.add(&[1]).map(|packet| packet.len()), Some(LONGEST));
        assert_eq!(assembly.add(&[1]), None, "endless");
        assert!(assembly.packet.is_empty());
    }

    #[test]
    fn what_begins_no_packet_ends_the_one_before() {
        let cut: Vec<_> = Pieces::of(100).cut(&packet(4, 150)).collect();
        let mut assembly = Assembly::default();
        assert_eq!(assembly.begin(&cut[0]), None);
        assert_eq!(assembly.begin(&[0x45; 19]), None);
        assert_eq!(assembly.add(&cut[1][1..]), None);
    }

    proptest! {
        #[test]
        fn whatever_a_peer_sends_is_bounded(messages in proptest::collection::vec(
            (any::<bool>(), proptest::collection::vec(any::<u8>(), 0..1500), any::<bool>()),
            0..80,
        )) {
            let mut assembly = Assembly::default();
            for (begins, mut bytes, is_six) in messages {
                if let Some(first) = bytes.first_mut() {
                    *first = if is_six { 0x60 } else { 0x45 };
                }
                let whole = if begins { assembly.begin(&bytes) } else { assembly.add(&bytes) };
                prop_assert!(assembly.packet.len() <= LONGEST);
                if let Some(whole) = whole {
                    prop_assert!(whole.len() >= length(&whole).unwrap());
                    prop_assert!(assembly.packet.is_empty());
                }
            }
        }
    }

    #[test]
    fn a_packet_with_bytes_behind_its_end_is_whole() {
        let mut long = packet(4, 60).to_vec();
        long.extend([0; 4]);
        assert_eq!(Assembly::default().begin(&long).as_deref(), Some(&long[..]));
    }

    #[test]
    fn what_is_no_packet_is_not_taken_for_one() {
        for (first, length, expected) in [
            (0x45, 20, true),
            (0x60, 20, true),
            (0x45, 19, false),
            (REST, 99, false),
            (0x02, 99, false),
            (b'R', 99, false),
        ] {
            assert_eq!(is_packet(&vec![first; length]), expected, "{first} {length}");
        }
        assert!(!is_packet(&[]));
    }
}
