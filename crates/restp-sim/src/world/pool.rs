//! Packets on their way, in slots that are used again: nothing is allocated per packet, and only indices move from
//! hop to hop.

use bytes::Bytes;
use restp_base::machine::{Datagram, Ecn};
use restp_base::observe::Transmitted;

/// What the hops need to know of a packet; its contents lie apart, out of their way.
#[derive(Clone, Copy, Debug)]
pub(super) struct Packet {
    /// For traces.
    pub(super) number: u64,
    /// The host it comes from, and how many lines it has taken.
    pub(super) from: u32,
    pub(super) hops: u32,
    /// The host it goes to, and that host's node.
    pub(super) to: u32,
    pub(super) goal: u32,
    pub(super) bytes: u32,
    pub(super) ecn: Ecn,
    pub(super) may_fragment: bool,
}

/// All packets on their way.
#[derive(Debug, Default)]
pub(super) struct Pool {
    packets: Vec<Packet>,
    #[expect(
        clippy::vec_box,
        reason = "one word moves where a packet is sent or has arrived"
    )]
    contents: Vec<Box<Datagram>>,
    free: Vec<u32>,
}

impl Pool {
    /// Swaps the contents of `datagram` into a slot.
    pub(super) fn put(&mut self, packet: Packet, datagram: &mut Box<Datagram>) -> u32 {
        let index = self.slot(packet);
        std::mem::swap(&mut self.contents[index as usize], datagram);
        index
    }

    /// A second packet like `index`.
    pub(super) fn copy(&mut self, index: u32, number: u64) -> u32 {
        let copy = self.slot(Packet {
            number,
            ..*self.packet(index)
        });
        self.contents[copy as usize] = self.contents[index as usize].clone();
        self.contents[copy as usize].segment = None;
        copy
    }

    pub(super) fn packet(&self, index: u32) -> &Packet {
        &self.packets[index as usize]
    }

    /// What it is made of.
    pub(super) fn contents(&self, index: u32) -> &Datagram {
        &self.contents[index as usize]
    }

    /// The segment in it, where it has one.
    pub(super) fn segment(&self, index: u32) -> Option<Transmitted> {
        self.contents[index as usize].segment
    }

    /// The line it takes next is counted.
    pub(super) fn on_hop(&mut self, index: u32) {
        self.packets[index as usize].hops += 1;
    }

    /// Swaps the contents out, or back in; the slot stays taken.
    pub(super) fn swap(&mut self, index: u32, contents: &mut Box<Datagram>) {
        std::mem::swap(&mut self.contents[index as usize], contents);
    }

    /// Swaps the contents out and frees the slot.
    pub(super) fn take(&mut self, index: u32, arrived: &mut Box<Datagram>) {
        std::mem::swap(&mut self.contents[index as usize], arrived);
        arrived.ecn = self.packets[index as usize].ecn;
        self.free.push(index);
    }

    /// Frees the slot; the contents stay until it is used again.
    pub(super) fn discard(&mut self, index: u32) {
        self.free.push(index);
    }

    /// Slots in use.
    pub(super) fn used(&self) -> usize {
        self.packets.len() - self.free.len()
    }

    /// Does to the packet what a line did to it.
    #[cold]
    pub(super) fn damage(&mut self, index: u32, mark_ce: bool, flip_bit: Option<u64>) {
        let packet = &mut self.packets[index as usize];
        if mark_ce {
            packet.ecn = Ecn::Ce;
        }
        if let Some(bit) = flip_bit {
            flip(&mut self.contents[index as usize], bit, packet.bytes);
        }
    }

    fn slot(&mut self, packet: Packet) -> u32 {
        if let Some(index) = self.free.pop() {
            self.packets[index as usize] = packet;
            return index;
        }
        self.packets.push(packet);
        self.contents.push(Box::new(Datagram::empty()));
        (self.packets.len() - 1) as u32
    }
}

/// Flips one of the datagram's own bits: `bit` of those on the wire, scaled down to what is there without the lower
/// headers. The payload may be shared, so it is copied first.
fn flip(datagram: &mut Datagram, bit: u64, wire_bytes: u32) {
    let bits = datagram.len() as u64 * 8;
    if bits == 0 {
        return;
    }
    let bit = (u128::from(bit) * u128::from(bits) / (u128::from(wire_bytes.max(1)) * 8)) as u64;
    let (byte, mask) = ((bit / 8) as usize, 0x80 >> (bit % 8));
    let head = datagram.head.len();
    if byte < head {
        datagram.head[byte] ^= mask;
    } else {
        let mut body = datagram.body.to_vec();
        body[byte - head] ^= mask;
        datagram.body = Bytes::from(body);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn datagram() -> Datagram {
        Datagram {
            head: [0u8; 4][..].into(),
            body: Bytes::from(vec![0u8; 6]),
            ..Datagram::empty()
        }
    }

    #[test]
    fn each_wire_bit_flips_one_bit_and_spares_shared_payload() {
        let shared = datagram();
        for bit in 0..30 * 8 {
            let mut hit = shared.clone();
            flip(&mut hit, bit, 30);
            let changed: u32 = hit.to_vec().iter().map(|byte| byte.count_ones()).sum();
            assert_eq!(changed, 1, "bit {bit}");
        }
        assert!(shared.to_vec().iter().all(|&byte| byte == 0));
        let mut last = shared;
        flip(&mut last, 30 * 8 - 1, 30);
        assert_eq!(last.to_vec()[9], 1);
    }

    #[test]
    fn slots_are_used_again() {
        let mut pool = Pool::default();
        let packet = Packet {
            number: 1,
            from: 0,
            hops: 0,
            to: 0,
            goal: 0,
            bytes: 38,
            ecn: Ecn::NotEct,
            may_fragment: false,
        };
        let mut carried = Box::new(datagram());
        let first = pool.put(packet, &mut carried);
        assert!(carried.is_empty());
        pool.take(first, &mut carried);
        assert_eq!((carried.len(), pool.used()), (10, 0));
        assert_eq!(pool.put(packet, &mut carried), first);
        assert_eq!(pool.used(), 1);
    }
}
