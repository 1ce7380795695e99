//! Room for sessions: what is forgotten, and when a peer has to prove its address first.

use super::Peers;
use crate::packet::ConnectionId;
use restp_base::time::{Duration, Time};
use std::net::IpAddr;

/// A session that was not heard for so long makes room for others, and leaves its addresses to them.
pub(super) const IDLE: Duration = Duration::from_secs(60);

/// A handshake that a peer began and did not finish is forgotten: longer than its repeats take (OP-32).
const UNFINISHED: Duration = Duration::from_secs(200);

/// A session that was not heard for so long, and that no flow needs, is forgotten even where there is room: hosts that come
/// and go would fill the table otherwise.
pub(super) const FORGOTTEN: Duration = Duration::from_secs(300);

/// Sessions looked at when there is another one.
const LOOKS: usize = 16;

/// How many handshakes and sessions there may be.
#[derive(Clone, Copy)]
pub(crate) struct Limits {
    pub(crate) half_open: usize,
    pub(crate) sessions: usize,
}

impl Limits {
    /// Unfinished handshakes of one source that has proved its address, and of one that has not, at most: a sixteenth of all.
    fn half_open_of_one_source(self) -> usize {
        (self.half_open / 16).max(4)
    }

    /// Sessions of one source, once half of all are in use.
    fn sessions_of_one_source(self) -> usize {
        (self.sessions / 16).max(4)
    }
}

impl Peers {
    /// Sessions with peers, finished or not.
    pub(crate) fn sessions(&self) -> usize {
        self.sessions.len()
    }

    /// Handshakes that peers began and did not finish.
    pub(crate) fn half_open(&self) -> usize {
        self.sessions.half_open().len()
    }

    /// Are half of the handshakes that peers may begin unfinished?
    pub(crate) fn is_busy(&self) -> bool {
        self.half_open() >= self.limits.half_open / 2
    }

    /// Has `source` its share of unfinished handshakes, or of sessions where these are scarce?
    pub(crate) fn is_crowded(&self, source: IpAddr, proved: bool) -> bool {
        let scarce = self.sessions() >= self.limits.sessions / 2;
        self.sessions.half_open().of(source, proved) >= self.limits.half_open_of_one_source()
            || scarce && self.sessions.of_source(source) >= self.limits.sessions_of_one_source()
    }

    /// Forgets handshakes that nobody will finish.
    pub(crate) fn expire(&mut self, now: Time) {
        self.expire_down_to(now, usize::MAX);
    }

    /// Makes room for one more session; false when all are in use.
    pub(crate) fn make_room(&mut self, now: Time) -> bool {
        self.expire_down_to(now, self.limits.half_open);
        if self.sessions.len() >= self.limits.sessions {
            self.forget(now, IDLE);
        }
        self.sessions.len() < self.limits.sessions
    }

    /// Forgets handshakes that nobody will finish, and the oldest until there are fewer than `most`.
    fn expire_down_to(&mut self, now: Time, most: usize) {
        while let Some((began, id)) = self.sessions.half_open().oldest() {
            if self.half_open() < most && now.since(began) < UNFINISHED {
                break;
            }
            self.remove(&id);
        }
    }

    /// Forgets sessions that were not heard for `silence` and are not those of a flow; it looks at some, the next time at
    /// others.
    pub(super) fn forget(&mut self, now: Time, silence: Duration) {
        for _ in 0..LOOKS.min(self.sessions.finished()) {
            let Some(id) = self.sessions.pop_finished() else {
                return;
            };
            if self.is_needed(now, &id, silence) {
                self.sessions.look_later(id);
            } else {
                self.remove(&id);
            }
        }
    }

    fn is_needed(&self, now: Time, id: &ConnectionId, silence: Duration) -> bool {
        let Some(session) = self.sessions.get(id) else {
            return false;
        };
        let peer = self.peers.get(&session.peer());
        // The current one of a peer with flows, or until the pending one has been heard.
        let current =
            peer.is_some_and(|peer| peer.session == Some(*id) && (peer.flows > 0 || peer.pending.is_some()));
        session.silence(now) < silence || current
    }
}
