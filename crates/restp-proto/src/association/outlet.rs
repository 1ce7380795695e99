//! Which path sends what: whatever a path has to say for itself first, then numbers that went to a silent path, then new
//! data (ResTP §3.3.2, §3.5.10; OP-54, OP-55).

use super::{Association, Member, ShutWindow, State};
use bytes::Bytes;
use restp_base::machine::Datagram;
use restp_base::machine::PathAddress;
use restp_base::time::Time;
use restp_services::connection_management::Notice;
use restp_services::path_management::{Health, PathMode};
use restp_services::scheduling::{
    Candidate, Copy, Place, Placement, Queue, Redundant, Schedule, Scheduling, lead_segments,
};
use smallvec::SmallVec;

/// A segment to be placed.
#[derive(Clone, Copy, Debug)]
struct Next {
    number: u64,
    bytes: u64,
    /// The path that the application chose for it.
    path: Option<PathAddress>,
}

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
        let next = self.next_segment();
        if let Some(next) = next
            && next.number < self.out.next
            && self.out.rescue.is_urgent()
            && self.out.places.is_given(next.number)
        {
            let chosen = self.rescue_first(now, next.number);
            if !chosen.is_empty() {
                return chosen;
            }
        }
        if next.is_none() && !self.out.places.is_watched() && !self.is_redundant() {
            self.members
                .iter_mut()
                .for_each(|member| member.connection.set_fed(false));
            return Placement::new();
        }
        let bytes = next.map_or(self.segment_bytes() as u64, |next| next.bytes);
        let candidates = self.candidates(now, bytes);
        if self.composition.paths != PathMode::HotStandby {
            let chosen = self.repeat_elsewhere(now, &candidates, next.is_none());
            if !chosen.is_empty() {
                return chosen;
            }
        }
        if self.is_redundant()
            && let Some(path) = self.catch_up(now, &candidates)
        {
            return Placement::from_slice(&[path]);
        }
        let chosen = next
            .map(|next| self.choose(now, next, &candidates))
            .unwrap_or_default();
        if let ([path], Some(next)) = (chosen.as_slice(), next)
            && self.is_covered(now, next.number, *path, &candidates)
        {
            self.out.again.remove(&next.number);
            return self.place(now); // one fewer
        }
        for candidate in &candidates {
            // A path that gets nothing although it has room is not limited by its window.
            let starves = next.is_none() || (chosen.is_empty() && candidate.has_room);
            self.members[candidate.path].connection.set_fed(!starves);
        }
        let Some(next) = next.filter(|_| !chosen.is_empty()) else {
            return chosen;
        };
        let number = match chosen.as_slice() {
            [path] if next.path.is_none() => self.lead(next, *path, &candidates),
            _ => next.number,
        };
        let payload = if number < self.out.next {
            if number == next.number {
                self.out.again.remove(&number); // one that leads is sent again, unless it arrives before its turn
            }
            self.out.buffer.get(number).cloned().unwrap_or_default()
        } else {
            self.number_next(self.most_bytes(&chosen).min(next.bytes as usize))
        };
        self.give(now, number, &payload, &chosen, next.path.is_some());
        chosen
    }

    /// The number that `path` takes: the next one, or a later one if it is slow. What it leaves out is numbered and waits.
    fn lead(&mut self, next: Next, path: usize, candidates: &[Candidate]) -> u64 {
        let segment_bytes = self.segment_bytes();
        let chosen = candidates.iter().find(|candidate| candidate.path == path);
        let lead = chosen.map_or(0, |chosen| {
            lead_segments(chosen, candidates, segment_bytes as u64)
        });
        if lead == 0 || !self.out.pins.is_empty() {
            return next.number;
        }
        let wanted = next.number + lead;
        while self.out.next <= wanted && !self.out.queue.is_empty() && self.out.window.allows(self.out.next) {
            self.out.again.insert(self.out.next);
            self.number_next(segment_bytes);
        }
        let free = |number: &&u64| !self.out.places.is_given(**number);
        let later = self.out.again.range(wanted..).find(free);
        let sooner = || self.out.again.range(..wanted).rev().find(free);
        later.or_else(sooner).copied().unwrap_or(next.number)
    }

    fn is_covered(&self, now: Time, number: u64, path: usize, candidates: &[Candidate]) -> bool {
        let fate = |copy: Copy| self.members[copy.path].connection.fate(copy.number);
        self.out.places.is_covered(now, number, path, candidates, fate)
    }

    /// Payload bytes that a segment may have on every path of `chosen`.
    fn most_bytes(&self, chosen: &[usize]) -> usize {
        let most = |path: &usize| self.members[*path].connection.largest_segment_bytes();
        chosen
            .iter()
            .map(most)
            .min()
            .unwrap_or(self.composition.segment_bytes) as usize
    }

    /// Payload bytes of a new segment: any of the paths may have to carry it.
    fn segment_bytes(&self) -> usize {
        let open = self.members.iter().filter(|member| !member.vacant);
        let carried = open.map(|member| member.connection.expected_segment_bytes());
        carried.min().unwrap_or(self.composition.segment_bytes) as usize
    }

    /// Takes the next segment from the queue and numbers it.
    fn number_next(&mut self, most: usize) -> Bytes {
        let payload = self.out.queue.next_segment(most);
        self.out.pins.take(payload.as_ref().map_or(0, Bytes::len));
        self.out.buffer.push(payload.clone());
        self.out.next += 1;
        self.wake_writer();
        payload.unwrap_or_default()
    }

    /// Gives the segment `number` to every path of `chosen`; `settled`: no other repeats it while they answer.
    pub(super) fn give(&mut self, now: Time, number: u64, payload: &Bytes, chosen: &[usize], settled: bool) {
        self.out.rescue.on_given();
        let copies = chosen.iter().map(|path| Copy {
            path: *path,
            number: self.members[*path]
                .connection
                .assign(now, number, payload.clone()),
        });
        let copies: SmallVec<[Copy; 2]> = copies.collect();
        if self.out.places.is_given(number) {
            for copy in copies {
                self.out.places.add_copy(number, now, copy);
            }
            return;
        }
        let place = Place {
            copies,
            at: now,
            settled,
        };
        self.out.places.record(number, place);
    }

    fn is_redundant(&self) -> bool {
        self.composition.scheduling == Some(Scheduling::Redundant)
    }

    /// Every path carries every segment: one that had no room when others took theirs takes it now.
    fn catch_up(&mut self, now: Time, candidates: &[Candidate]) -> Option<usize> {
        let (places, members) = (&mut self.out.places, &self.members);
        let mut owed = |path: &Candidate| {
            let fate = |copy: Copy| members[copy.path].connection.fate(copy.number);
            Some((path.path, places.owed(path.path, fate)?))
        };
        let mut open = Redundant::in_time(candidates).filter(|path| path.has_room);
        let (path, number) = open.find_map(&mut owed)?;
        let payload = self.out.buffer.get(number).cloned()?;
        self.members[path].connection.set_fed(true);
        self.give(now, number, &payload, &[path], true);
        Some(path)
    }

    /// A faster path repeats what a slower one has lost, is late with, or would bring later than an idle one.
    fn repeat_elsewhere(&mut self, now: Time, candidates: &[Candidate], idle: bool) -> Placement {
        let (places, members) = (&mut self.out.places, &self.members);
        let fate = |copy: Copy| members[copy.path].connection.fate(copy.number);
        let Some((number, path)) = places.to_repeat(now, candidates, idle, fate) else {
            return Placement::new();
        };
        let Some(payload) = self.out.buffer.get(number).cloned() else {
            return Placement::new();
        };
        let copy = Copy {
            path,
            number: self.members[path].connection.assign(now, number, payload),
        };
        self.out.places.add_copy(number, now, copy);
        self.out.again.remove(&number);
        Placement::from_slice(&[path])
    }

    /// The segment to place next.
    fn next_segment(&mut self) -> Option<Next> {
        if let Some((number, bytes)) = self.next_again() {
            return Some(Next {
                number,
                bytes,
                path: None,
            });
        }
        if self.out.queue.is_empty() {
            return None;
        }
        let open = self.out.window.allows(self.out.next);
        let newly_shut = !open && !std::mem::replace(&mut self.out.stalled, !open);
        self.out.stalls += u64::from(newly_shut);
        self.out.stalled = !open;
        let waiting = self.out.queue.bytes().min(self.segment_bytes());
        let (bytes, path) = self.out.pins.next(waiting);
        open.then_some(Next {
            number: self.out.next,
            bytes: bytes as u64,
            path,
        })
    }

    /// The paths that take a segment: the one the application chose while data may use it, or those of the scheduler.
    fn choose(&mut self, now: Time, next: Next, candidates: &[Candidate]) -> Placement {
        let members = &self.members;
        let is_pinned = |path: &&Candidate| Some(members[path.path].connection.address()) == next.path;
        if let Some(pinned) = candidates.iter().find(is_pinned) {
            return pinned.has_room.then_some(pinned.path).into_iter().collect();
        }
        let segment = u64::from(self.composition.segment_bytes);
        let queue = Queue {
            segment_bytes: next.bytes,
            queued_bytes: self.out.queue.bytes() as u64,
            window_segments: self.out.window.edge().saturating_sub(self.out.next),
            outstanding_segments: self.out.next - self.out.first,
            acknowledged_bytes: (self.out.first - self.out.origin) * segment,
            stalls: self.out.stalls,
            now,
        };
        self.scheduler.choose(candidates, &queue)
    }

    /// Every path that data may use: the good ones; of these, backups only when there is no other; the suspect ones only
    /// when none is good, or for copies, which nobody waits for; one whose set-up is not complete, because nobody judges it
    /// yet, only when there is no other.
    fn candidates(&mut self, now: Time, bytes: u64) -> SmallVec<[Candidate; 4]> {
        let copies = self.is_redundant();
        let rank = |member: &Member| match (member.health.verdict(), member.backup) {
            _ if member.vacant || !member.connection.is_open() => None,
            _ if !member.connection.is_established() => Some(3),
            (Health::Good, false) => Some(0),
            (Health::Suspect, false) if copies => Some(0),
            (Health::Good, true) => Some(1),
            (Health::Suspect, _) => Some(2),
            (Health::Failed, _) => None,
        };
        let Some(best) = self.members.iter().filter_map(rank).min() else {
            return SmallVec::new();
        };
        let members = self.members.iter_mut().enumerate();
        let usable = members.filter(|(_, member)| rank(member) == Some(best));
        let shares = self.composition.scheduling.as_ref();
        usable
            .map(|(ordinal, member)| Candidate {
                weight: shares.map_or(1, |shares| shares.weight(member.line.unwrap_or(ordinal))),
                ..member.connection.candidate(now, ordinal, bytes)
            })
            .collect()
    }

    /// The peer's window is shut and nothing is outstanding: a path asks, once per timeout (OP-25). It asks with a
    /// keep-alive, because data that the peer does not take would be missing on the path. Or all is sent: DATA_FIN, until
    /// it is acknowledged.
    fn ask_or_end(&mut self, now: Time) -> Option<usize> {
        let best = self.best()?;
        let wait = self.members[best].connection.timeout();
        let blocked = !self.out.queue.is_empty() && !self.out.window.allows(self.out.next);
        if blocked && self.out.first == self.out.next {
            self.out.resend_at = None; // there is no head
            let shut = self.out.shut.get_or_insert(ShutWindow {
                since: now,
                probe_at: now + wait,
            });
            if shut.probe_at > now {
                return None;
            }
            shut.probe_at = now + wait;
            self.members[best].connection.ask();
            return Some(best);
        }
        self.out.shut = None;
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
        let idle =
            |member: &Member| member.connection.is_over() || member.connection.carried().next().is_none();
        let head = self.out.buffer.get(self.out.first).is_some();
        if !head || !self.out.again.is_empty() || !self.members.iter().all(idle) {
            self.out.resend_at = None;
            return false;
        }
        let due = *self.out.resend_at.get_or_insert(now + wait) <= now;
        if due {
            self.out.resend_at = None;
            self.out.places.forget(self.out.first);
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
