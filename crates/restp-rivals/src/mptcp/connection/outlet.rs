//! Which subflow sends what: whatever one has to say for itself first, then pieces whose subflow is in doubt, then new data.

use super::members::MAX_SUBFLOWS;
use super::{Connection, State};
use bytes::Bytes;
use restp_base::machine::Datagram;
use restp_base::time::Time;
use restp_services::connection_management::Notice;
use restp_services::scheduling::{Candidate, Placement, Queue, Schedule};
use smallvec::SmallVec;

impl Connection {
    /// Writes the next segment into `out`; `false` when there is nothing to send now.
    pub(crate) fn poll_transmit(&mut self, now: Time, out: &mut Datagram) -> bool {
        let count = self.members.len();
        for step in 0..count {
            let ordinal = (self.turn + step) % count;
            if self.poll_member(now, ordinal, out) {
                self.turn = ordinal;
                return true;
            }
        }
        if self.state != State::Established {
            return false;
        }
        let chosen = self.place(now);
        let chosen = match chosen.first() {
            Some(first) => Some(*first),
            None => self.ask_or_end(now),
        };
        chosen.is_some_and(|ordinal| self.poll_member(now, ordinal, out))
    }

    fn poll_member(&mut self, now: Time, ordinal: usize, out: &mut Datagram) -> bool {
        let shared = self.shared();
        let tcp = &mut self.members[ordinal].tcp;
        tcp.stamp(shared);
        if !tcp.poll_transmit(now, out) {
            return false;
        }
        let (units, unread) = self.receive_units();
        self.inn.window.advertise(units, unread);
        self.inn.edge = shared.edge;
        if self.members[ordinal].tcp.is_closed() {
            self.collect(now, ordinal);
        }
        true
    }

    /// Gives the next piece to the subflow, or subflows, that shall carry it.
    fn place(&mut self, now: Time) -> Placement {
        while let Some(number) = self.out.again.first().copied() {
            let Some(payload) = self.out.buffer.get(number).cloned() else {
                self.out.again.remove(&number);
                continue;
            };
            let Some(data) = self.out.numbers.start_of(number) else {
                self.out.again.remove(&number);
                continue;
            };
            let mut candidates = self.candidates(now, payload.len() as u64);
            let tried = self.out.tried.get(&number).copied().unwrap_or(0);
            candidates.retain(|candidate| tried & bit(candidate.path) == 0);
            if candidates.is_empty() {
                self.out.again.remove(&number); // those that work have it already
                continue;
            }
            let chosen = self.choose(now, payload.len() as u64, &candidates);
            if !chosen.is_empty() {
                self.out.again.remove(&number);
                self.own.retransmitted_packets += 1;
                self.own.repeated_payload_bytes += payload.len() as u64;
                self.note_tried(number, &chosen);
                self.give(now, data, &payload, &chosen);
            }
            return chosen;
        }
        let bytes = self.next_bytes();
        let candidates = self.candidates(now, bytes.unwrap_or(1));
        for candidate in &candidates {
            self.members[candidate.path].tcp.set_fed(bytes.is_some());
        }
        let Some(bytes) = bytes else {
            return Placement::new();
        };
        let chosen = self.choose(now, bytes, &candidates);
        if !chosen.is_empty() {
            let (number, (data, payload)) = (self.out.next, self.number_next(bytes as usize));
            if chosen.len() > 1 {
                self.note_tried(number, &chosen);
            }
            self.give(now, data, &payload, &chosen);
        }
        chosen
    }

    /// The subflows of `chosen` are not to be given `number` again.
    fn note_tried(&mut self, number: u64, chosen: &[usize]) {
        let bits = chosen.iter().map(|path| bit(*path)).fold(0, |all, one| all | one);
        *self.out.tried.entry(number).or_default() |= bits;
    }

    /// Bytes of the next new piece; none: there is none, or the peer does not take it whole yet.
    fn next_bytes(&mut self) -> Option<u64> {
        if self.out.queue.is_empty() {
            return None;
        }
        let bytes = self.out.queue.bytes().min(self.segment_bytes()) as u64;
        let open = self.out.window.allows(self.out.numbers.next_byte() + bytes - 1);
        let newly_shut = !open && !std::mem::replace(&mut self.out.stalled, !open);
        self.out.stalls += u64::from(newly_shut);
        self.out.stalled = !open;
        open.then_some(bytes)
    }

    /// Payload of a full piece: any of the subflows may have to carry it.
    fn segment_bytes(&self) -> usize {
        let usable = self.members.iter().filter(|member| member.tcp.is_usable());
        let carried = usable.map(|member| member.tcp.segment_bytes());
        carried.min().unwrap_or(self.parameters.segment_bytes) as usize
    }

    /// Takes the next piece from the queue and numbers it: its first byte, and itself.
    fn number_next(&mut self, most: usize) -> (u64, Bytes) {
        let payload = self.out.queue.next_segment(most).unwrap_or_default();
        let data = self.out.numbers.next_byte();
        self.out.numbers.push(payload.len() as u64);
        self.out.buffer.push(Some(payload.clone()));
        self.out.next += 1;
        self.wake_writer();
        (data, payload)
    }

    fn give(&mut self, now: Time, data: u64, payload: &Bytes, chosen: &[usize]) {
        for path in chosen {
            self.members[*path].tcp.assign(now, data, payload.clone());
        }
    }

    fn choose(&mut self, now: Time, bytes: u64, candidates: &[Candidate]) -> Placement {
        let (first, next) = (self.out.numbers.first_byte(), self.out.numbers.next_byte());
        let segment = self.segment_bytes() as u64;
        let queue = Queue {
            segment_bytes: bytes,
            queued_bytes: self.out.queue.bytes() as u64,
            window_segments: self.out.window.edge().saturating_sub(next) / segment,
            outstanding_segments: self.out.next - self.out.first,
            acknowledged_bytes: first - crate::mptcp::subflow::FIRST_DATA,
            stalls: self.out.stalls,
            now,
        };
        self.scheduler.choose(candidates, &queue)
    }

    /// Every subflow that data may use: the working ones, of these backups only when there is no other, and those that
    /// repair a timeout only when nothing else is left.
    fn candidates(&mut self, now: Time, bytes: u64) -> SmallVec<[Candidate; 4]> {
        let rank = |tcp: &crate::tcp::connection::Connection| match (tcp.is_failing(), tcp.is_backup()) {
            _ if !tcp.is_usable() => None,
            (false, false) => Some(0),
            (false, true) => Some(1),
            (true, _) => Some(2),
        };
        let Some(best) = self.members.iter().filter_map(|member| rank(&member.tcp)).min() else {
            return SmallVec::new();
        };
        let members = self.members.iter_mut().enumerate();
        let usable = members.filter(|(_, member)| rank(&member.tcp) == Some(best));
        let scheduling = &self.scheduling;
        usable
            .map(|(ordinal, member)| {
                member
                    .tcp
                    .candidate(now, ordinal, bytes, scheduling.weight(ordinal))
            })
            .collect()
    }

    /// The timer of a subflow ran out: what it carries is given to another, before anything new, as Linux does it.
    pub(super) fn on_timeout(&mut self, ordinal: usize) {
        self.members[ordinal].reinjections += 1;
        self.salvage(ordinal);
    }

    /// What the subflow carries and the peer has not acknowledged goes to another one, if there is one.
    pub(super) fn salvage(&mut self, ordinal: usize) {
        let pieces = self.members[ordinal].tcp.carried();
        let (first, next) = (self.out.first, self.out.next);
        let numbers = pieces.map(|mapping| self.out.numbers.ended_by(mapping.data));
        for number in numbers.filter(|number| (first..next).contains(number)) {
            *self.out.tried.entry(number).or_default() |= bit(ordinal);
            self.out.again.insert(number);
        }
    }

    /// The peer's window is shut and nothing is outstanding: the next piece asks, once per timeout. Or all is sent:
    /// DATA_FIN, until it is acknowledged.
    fn ask_or_end(&mut self, now: Time) -> Option<usize> {
        let best = self.best()?;
        let wait = self.members[best].tcp.timeout();
        let idle = self.out.first == self.out.next;
        if idle && self.out.stalled && !self.out.queue.is_empty() {
            if *self.out.probe_at.get_or_insert(now + wait) > now {
                return None;
            }
            self.out.probe_at = None;
            let (data, payload) = self.number_next(1);
            self.give(now, data, &payload, &[best]);
            self.members[best].tcp.set_probe();
            return Some(best);
        }
        self.out.probe_at = None;
        if self.resends_first(now, wait) {
            return self.place(now).first().copied();
        }
        if self.release.must_send_fin() && self.out.queue.is_empty() {
            self.release.fin_sent(self.out.numbers.next_byte());
            self.out.fin_at = Some(now);
        }
        let fin = self.unacknowledged_fin()?;
        if self.out.fin_at.is_none_or(|at| at > now) {
            return None;
        }
        self.out.fin_at = Some(now + wait);
        self.members[best].tcp.announce_end(fin);
        Some(best)
    }

    /// Our DATA_FIN, while the peer has not acknowledged it.
    pub(super) fn unacknowledged_fin(&self) -> Option<u64> {
        self.release.unacknowledged_fin()
    }

    /// The subflows owe nothing, but Data ACK stands: a peer that has acknowledged bytes of a subflow and has not kept what
    /// they carry is given the first piece again, once per timeout (RFC 8684 §3.3.6).
    fn resends_first(&mut self, now: Time, wait: restp_base::time::Duration) -> bool {
        let idle = self
            .members
            .iter()
            .all(|member| member.gone || member.tcp.carried().next().is_none());
        if self.out.first == self.out.next || !self.out.again.is_empty() || !idle {
            self.out.resend_at = None;
            return false;
        }
        let due = *self.out.resend_at.get_or_insert(now + wait) <= now;
        if due {
            self.out.resend_at = None;
            self.out.tried.remove(&self.out.first);
            self.out.again.insert(self.out.first);
        }
        due
    }

    /// Half the send buffer is free again: tell a writer that was refused.
    pub(super) fn wake_writer(&mut self) {
        let half_empty = self.out.queue.bytes() <= self.parameters.send_buffer_bytes / 2;
        if self.out.writer_waits && half_empty {
            self.out.writer_waits = false;
            self.notices.push_back(Notice::Writable);
        }
    }
}

/// A subflow in a set of them.
fn bit(ordinal: usize) -> u8 {
    1 << (ordinal % MAX_SUBFLOWS)
}
