//! What leaves, in order (RFC 9260 §6.1, §6.2): what a state wants said, answers, heartbeats, an acknowledgement, then
//! retransmissions and new data, path by path. Nothing is bundled, as in the published studies (CMT §1.1).

use super::{Association, State};
use crate::sctp::STREAMS;
use crate::sctp::chunk::Chunk;
use crate::sctp::chunk::{Data, Init, MOST_BLOCKS, Sack};
use crate::sctp::parameters::Spread;
use crate::sctp::wire::{Header, Packet};
use restp_base::machine::{Datagram, Ecn};
use restp_base::observe::Transmitted;
use restp_base::sequence::truncate;
use restp_base::time::Time;
use restp_services::path_management::AckReturn;
use restp_services::sender::{Segment, Transmission};
use smallvec::{SmallVec, smallvec};
use std::net::IpAddr;

/// Writes the next packet into `out`; `false` when there is nothing to send now.
pub(super) fn poll(association: &mut Association, now: Time, out: &mut Datagram) -> bool {
    association.conclude(now);
    if let Some(chunk) = association.next_of_state() {
        return association.send(association.current(), chunk, out);
    }
    if association.state.is_opening() || association.is_closed() {
        return false;
    }
    if let Some((index, chunk)) = association.replies.pop_front() {
        return association.send(index, chunk, out);
    }
    if let Some((index, chunk)) = association.next_heartbeat(now) {
        return association.send(index, chunk, out);
    }
    if association.receiver.ack_timer().is_due(now) {
        let (index, chunk) = association.next_sack();
        return association.send(index, chunk, out);
    }
    association.state.sends_data() && association.send_data(now, out)
}

impl Association {
    /// What the state wants said now.
    fn next_of_state(&mut self) -> Option<Chunk> {
        match &mut self.state {
            State::Aborting(cause) => {
                let causes = cause.take().into_iter().collect();
                self.state = State::Closed;
                let reflects_tag = false;
                let is_known = self.peer_tag != 0;
                return is_known.then_some(Chunk::Abort { reflects_tag, causes });
            }
            State::Completing => {
                self.state = State::Closed;
                return Some(Chunk::ShutdownComplete { reflects_tag: false });
            }
            _ => {}
        }
        if !self.state.timer_mut()?.take_due() {
            return None;
        }
        match &self.state {
            State::CookieWait(_) => Some(Chunk::Init(self.init())),
            State::CookieEchoed(_, cookie) => Some(Chunk::CookieEcho(cookie.clone())),
            State::ShutdownSent(_) => Some(Chunk::Shutdown {
                cumulative: self.cumulative(),
            }),
            State::ShutdownAckSent(_) => Some(Chunk::ShutdownAck),
            _ => None,
        }
    }

    /// What we say of ourselves. Addresses where there are several (RFC 9260 §5.1.2).
    fn init(&self) -> Init {
        Init {
            tag: self.local_tag,
            window: self.window(),
            streams_out: 1,
            streams_in: STREAMS,
            first_tsn: self.local_tsn,
            addresses: self.own_addresses(),
            ..Init::default()
        }
    }

    /// Ours, where there are several.
    pub(super) fn own_addresses(&self) -> SmallVec<[IpAddr; 2]> {
        let mut addresses = SmallVec::new();
        for address in self.addresses().map(|path| path.local.ip()) {
            if !self.further.is_empty() && !addresses.contains(&address) {
                addresses.push(address);
            }
        }
        addresses
    }

    fn window(&self) -> u32 {
        let before_any = self.receiver.next().is_none();
        let free = if before_any {
            self.parameters.receive_buffer_bytes
        } else {
            self.free_bytes()
        };
        u32::try_from(free).unwrap_or(u32::MAX)
    }

    fn cumulative(&self) -> u32 {
        truncate(self.receiver.next().unwrap_or_default()).wrapping_sub(1)
    }

    /// All that is known of what has arrived, and the path it returns by.
    fn next_sack(&mut self) -> (usize, Chunk) {
        let next = self.receiver.next().unwrap_or_default();
        let offset = |number: u64| u16::try_from(number - (next - 1)).unwrap_or(u16::MAX);
        let beyond = self.receiver.beyond_hole().into_iter();
        let blocks = beyond.flat_map(|arrived| arrived.ranges().iter());
        let blocks = blocks.map(|range| (offset(range.start), offset(range.end - 1)));
        let arrivals = self.receiver.ack_timer().arrivals().min(3) as u8;
        let sack = Sack {
            cumulative: self.cumulative(),
            window: self.window(),
            blocks: blocks.take(MOST_BLOCKS).collect(),
            duplicates: std::mem::take(&mut self.duplicates),
            arrivals: if self.parameters.dac { arrivals } else { 0 },
        };
        self.told_free = sack.window.into();
        *self.stats.report_bytes.get_or_insert(0) += 4 * sack.blocks.len() as u64;
        self.receiver.acknowledgement().on_sent();
        (self.ack_path(), Chunk::Sack(sack))
    }

    /// The path that acknowledgements return by. Paths are counted as who opened the association wrote them, which is the order of its
    /// addresses; those that it heard of first are ours.
    fn ack_path(&self) -> usize {
        let told = |number: usize| {
            let address = self.peer_addresses.get(number)?;
            self.paths
                .iter()
                .position(|path| path.address.remote.ip() == *address)
        };
        let wanted = match self.parameters.ack_return {
            AckReturn::Fixed(number) if !self.opened_here => {
                told(number).map_or(AckReturn::Any, AckReturn::Fixed)
            }
            as_written => as_written,
        };
        wanted.choose(self.latest, |path| {
            self.paths.get(path).is_some_and(|path| path.confirmed)
        })
    }

    /// What the sender lets out on the first path that has something, in turn.
    fn send_data(&mut self, now: Time, out: &mut Datagram) -> bool {
        let count = self.paths.len();
        // A path that carries no data would keep the draw, and with it all others from their turn.
        let may_carry: SmallVec<[bool; 8]> = (0..count)
            .map(|path| self.paths[path].is_usable() && self.carries_data(path))
            .collect();
        let drawn = self
            .draws
            .as_mut()
            .map(|draws| draws.path(count, |path| may_carry[path]));
        for step in 0..count {
            let index = (self.turn + step) % count;
            let (is_usable, lane) = (self.paths[index].is_usable(), self.paths[index].lane);
            if !self.carries_data(index) {
                continue;
            }
            let is_drawn = drawn.flatten().is_none_or(|drawn| drawn == index);
            let carries_new = is_drawn && self.carries_new(index);
            if !is_usable && !carries_new {
                continue;
            }
            let sent = self.sender.on(lane, |sender| {
                if carries_new {
                    sender.next(now, false)
                } else {
                    sender.next_early(now, true, None).map(Transmission::Segment)
                }
            });
            if let Some(Transmission::Segment(segment)) = sent {
                self.turn = self.next_turn(index, segment.is_new);
                return self.send_segment(now, index, segment, out);
            }
        }
        self.turn = (self.turn + 1) % count;
        false
    }

    /// Which path is asked first after something, new or not, has left by the path `index`.
    fn next_turn(&mut self, index: usize, is_new: bool) -> usize {
        if let Some(draws) = self.draws.as_mut().filter(|_| is_new) {
            draws.on_sent();
        }
        match self.parameters.spread {
            Spread::Packets if is_new => (index + 1) % self.paths.len(),
            _ => index,
        }
    }

    fn send_segment(&mut self, now: Time, index: usize, segment: Segment, out: &mut Datagram) -> bool {
        let (Some(number), Some(payload)) = (segment.number, segment.payload) else {
            return false;
        };
        let Some(mut fragment) = self.outbound.fragment(number) else {
            return false;
        };
        fragment.tsn = truncate(number);
        self.wake_writer();
        self.begin_idle(now, index);
        self.send(index, Chunk::Data(Data { fragment, payload }), out);
        out.segment = Some(Transmitted { number, at: now });
        true
    }

    fn send(&mut self, index: usize, chunk: Chunk, out: &mut Datagram) -> bool {
        let is_init = matches!(chunk, Chunk::Init(_));
        let packet = Packet {
            header: Header {
                source_port: self.ports.local,
                destination_port: self.ports.remote,
                tag: if is_init { 0 } else { self.peer_tag },
            },
            chunks: smallvec![chunk],
        };
        packet.emit(out);
        let path = &mut self.paths[index];
        (out.path, out.ecn, out.segment) = (path.address, Ecn::NotEct, None);
        let bytes = out.len() as u64;
        path.sent_packets += 1;
        path.sent_bytes += bytes;
        self.stats.sent_packets += 1;
        self.stats.sent_bytes += bytes;
        true
    }
}
