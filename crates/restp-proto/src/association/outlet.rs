//! Which path sends what: whatever a path has to say for itself first, then numbers that went to a silent path, then new
//! data (ResTP §3.3.2, §3.5.10; OP-54, OP-55).

use super::{Association, Member, State};
use restp_base::machine::Datagram;
use restp_base::time::Time;
use restp_services::connection_management::Notice;
use restp_services::path_management::Health;
use restp_services::scheduling::{Candidate, Placement, Queue, Schedule};

impl Association {
    /// Writes the next datagram into `out`; `false` when there is nothing to send now.
    pub(crate) fn poll_transmit(&mut self, now: Time, out: &mut Datagram) -> bool {
        let paths = self.members.len();
        for step in 0..paths {
            let ordinal = (self.turn + step) % paths;
            if self.poll_member(now, ordinal, out) {
                self.turn = ordinal;
                return true;
            }
        }
        if self.state != State::Over {
            for ordinal in self.place(now) {
                if self.poll_member(now, ordinal, out) {
                    return true;
                }
            }
            if let Some(ordinal) = self.ask_or_end(now) {
                return self.poll_member(now, ordinal, out);
            }
        }
        false
    }

    fn poll_member(&mut self, now: Time, ordinal: usize, out: &mut Datagram) -> bool {
        let next = self.inn.reassembly.as_ref().map(|reassembly| reassembly.next());
        let unread = self.inn.inbox.len() as u64;
        let paths = self.paths_in_use();
        let member = &mut self.members[ordinal];
        if member.vacant {
            return false;
        }
        if let Some(next) = next {
            let window = (self.services.flow_control != 0).then(|| self.inn.window.offer(next, unread));
            member.connection.stamp(next, window, paths);
            if !member.connection.poll_transmit(now, out) {
                return false;
            }
            self.inn.window.advertise(next, unread);
            return true;
        }
        let window = self.inn.window.offer(restp_base::sequence::ORIGIN, 0);
        member
            .connection
            .stamp(0, (self.services.flow_control != 0).then_some(window), paths);
        member.connection.poll_transmit(now, out)
    }

    /// Gives the next segment to the path, or paths, that shall carry it.
    fn place(&mut self, now: Time) -> Placement {
        let Some((number, bytes)) = self.next_segment() else {
            return Placement::new();
        };
        if number < self.out.next && self.out.urgent {
            let chosen = self.rescue_first(now, number);
            if !chosen.is_empty() {
                return chosen;
            }
        }
        let chosen = self.choose(now, bytes);
        if chosen.is_empty() {
            return chosen;
        }
        let payload = if number < self.out.next {
            self.out.again.remove(&number);
            self.out.buffer.get(number).cloned()
        } else {
            let payload = self
                .out
                .queue
                .next_segment(self.composition.segment_bytes as usize);
            self.out.buffer.push(payload.clone());
            self.out.next += 1;
            self.wake_writer();
            payload
        };
        let payload = payload.unwrap_or_default();
        for ordinal in &chosen {
            self.members[*ordinal]
                .connection
                .assign(now, number, payload.clone());
        }
        chosen
    }

    /// The first number of a failed path leaves on the best one, full or not: everything after it waits for it.
    fn rescue_first(&mut self, now: Time, number: u64) -> Placement {
        let (Some(best), Some(payload)) = (self.best(), self.out.buffer.get(number).cloned()) else {
            return Placement::new();
        };
        if self.members[best].connection.is_busy() {
            return Placement::new(); // its own repairs come first
        }
        self.out.urgent = false;
        self.out.again.remove(&number);
        self.members[best].connection.rescue(now, number, payload);
        Placement::from_slice(&[best])
    }

    /// Number and size of the segment to place next.
    fn next_segment(&mut self) -> Option<(u64, u64)> {
        while let Some(&number) = self.out.again.first() {
            if let Some(payload) = self.out.buffer.get(number) {
                return Some((number, payload.len() as u64));
            }
            self.out.again.remove(&number);
        }
        let waiting = self
            .out
            .queue
            .bytes()
            .min(self.composition.segment_bytes as usize);
        let open = waiting > 0 && self.out.window.allows(self.out.next);
        open.then_some((self.out.next, waiting as u64))
    }

    /// The paths that take a segment of `bytes`, by mode.
    fn choose(&mut self, now: Time, bytes: u64) -> Placement {
        let queue = Queue {
            segment_bytes: bytes,
            queued_bytes: self.out.queue.bytes() as u64,
            window_segments: self.out.window.edge().saturating_sub(self.out.next),
        };
        let candidates = self.candidates(now, bytes);
        self.scheduler.choose(&candidates, &queue)
    }

    /// Every path that data may use: the good ones; of these, backups only when there is no other; the suspect ones only
    /// when none is good.
    fn candidates(&mut self, now: Time, bytes: u64) -> smallvec::SmallVec<[Candidate; 4]> {
        let rank = |member: &Member| match (member.health.verdict(), member.backup) {
            _ if member.vacant || !member.connection.is_open() => None,
            (Health::Good, false) => Some(0),
            (Health::Good, true) => Some(1),
            (Health::Suspect, _) => Some(2),
            (Health::Failed, _) => None,
        };
        let Some(best) = self.members.iter().filter_map(rank).min() else {
            return smallvec::SmallVec::new();
        };
        let members = self.members.iter_mut().enumerate();
        let usable = members.filter(|(_, member)| rank(member) == Some(best));
        usable
            .map(|(ordinal, member)| member.connection.candidate(now, ordinal, bytes))
            .collect()
    }

    /// The peer's window is shut and nothing is outstanding: the next segment asks, once per timeout (OP-25). Or all is
    /// sent: DATA_FIN, until it is acknowledged.
    fn ask_or_end(&mut self, now: Time) -> Option<usize> {
        let best = self.best()?;
        let wait = self.members[best].connection.timeout();
        let blocked = !self.out.queue.is_empty() && !self.out.window.allows(self.out.next);
        if blocked && self.out.first == self.out.next {
            if *self.out.probe_at.get_or_insert(now + wait) > now {
                return None;
            }
            self.out.probe_at = None;
            let payload = self
                .out
                .queue
                .next_segment(self.composition.segment_bytes as usize);
            self.out.buffer.push(payload.clone());
            self.members[best]
                .connection
                .assign_probe(now, self.out.next, payload.unwrap_or_default());
            self.out.next += 1;
            return Some(best);
        }
        self.out.probe_at = None;
        if self.resends_head(now, wait) {
            return self.place(now).first().copied();
        }
        if self.release.must_send_fin() && self.out.queue.is_empty() && self.out.again.is_empty() {
            self.release.fin_sent(self.out.next);
            self.out.buffer.push(None);
            self.out.next += 1;
            self.out.fin_at = Some(now);
        }
        let fin = self.release.local_fin().filter(|fin| *fin >= self.out.first)?;
        if self.out.fin_at.is_none_or(|at| at > now) {
            return None;
        }
        self.out.fin_at = Some(now + wait);
        self.members[best].connection.announce_end(fin);
        Some(best)
    }

    /// The paths owe nothing, but the pointer stands: a peer that has acknowledged a path's number and has not kept what
    /// it carried is reminded once per timeout.
    fn resends_head(&mut self, now: Time, wait: restp_base::time::Duration) -> bool {
        let idle = |member: &Member| member.connection.carried().next().is_none();
        let head = self.out.buffer.get(self.out.first).is_some();
        if !head || !self.out.again.is_empty() || !self.members.iter().all(idle) {
            self.out.resend_at = None;
            return false;
        }
        let due = *self.out.resend_at.get_or_insert(now + wait) <= now;
        if due {
            self.out.resend_at = None;
            self.out.again.insert(self.out.first);
        }
        due
    }

    /// Half the send buffer is free again: tell a writer that was refused.
    fn wake_writer(&mut self) {
        let half_empty = self.out.queue.bytes() <= self.composition.send_buffer_bytes / 2;
        if self.out.writer_waits && half_empty {
            self.out.writer_waits = false;
            self.notices.push_back(Notice::Writable);
        }
    }
}
