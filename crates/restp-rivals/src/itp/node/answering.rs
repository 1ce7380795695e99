//! What others ask of a node is answered at once, or when a disk has it (`docs/protocol/itp.md`).

use super::guard::{self, Proof};
use super::message;
use super::outbox::Requester;
use super::upstream::Question;
use super::waiting::{self, PendingRequest, Requested};
use super::{Node, Wanted, manifest_message};
use crate::itp::manifest::Digest;
use crate::itp::wire::{Header, Kind, Refusal, flags};
use bytes::Bytes;
use restp_base::machine::{Datagram, PathAddress};
use restp_base::time::Time;
use std::task::{Poll, ready};

impl Node {
    pub(super) fn on_request(
        &mut self,
        now: Time,
        path: PathAddress,
        header: &Header,
        payload: &[u8],
    ) -> Option<()> {
        let (wanted, cookie) = Wanted::parse(payload)?;
        if self.is_proved(now, path, header, cookie) {
            self.serve(now, path, header, Requested::Root(wanted));
        }
        Some(())
    }

    pub(super) fn on_interest(
        &mut self,
        now: Time,
        path: PathAddress,
        header: &Header,
        payload: &[u8],
    ) -> Option<()> {
        let (digest, cookie) = message::parse_interest(payload)?;
        if self.is_proved(now, path, header, cookie) {
            self.serve(now, path, header, Requested::Item(Question::of(header, digest)));
        }
        Some(())
    }

    /// What somebody who has proved where he is asks for leaves now, or when a disk has it.
    fn serve(&mut self, now: Time, path: PathAddress, header: &Header, what: Requested) {
        if !self.outbox.has_room(proved(path)) {
            self.counters.dropped += 1; // before anything is read for it
            return;
        }
        match self.answer(now, path, header, &what) {
            Poll::Ready(Some(answer)) => self.push(now, answer),
            Poll::Ready(None) => {}
            Poll::Pending => {
                // Of the header nothing else is needed, and a snapshot may be long.
                let header = Header {
                    kind: Kind::Interest(None),
                    ..*header
                };
                let asked = PendingRequest {
                    at: now,
                    path,
                    header,
                    what,
                };
                let waits = self.waiting.push(self.disk_of(&what), asked);
                self.counters.limited += u64::from(!waits);
            }
        }
    }

    /// Whose disk has it.
    fn disk_of(&self, what: &Requested) -> waiting::Disk {
        match what {
            Requested::Root(_) => None,
            Requested::Item(question) => {
                Some(question.object).filter(|object| self.published.contains_key(object))
            }
        }
    }

    /// What answers a question at once. Pending: a disk has to be waited for.
    fn answer(
        &mut self,
        now: Time,
        path: PathAddress,
        header: &Header,
        what: &Requested,
    ) -> Poll<Option<Datagram>> {
        match *what {
            Requested::Root(wanted) => self.answer_request(now, path, header, wanted),
            Requested::Item(question) => self.answer_interest(now, path, header, question.digest),
        }
    }

    fn answer_request(
        &mut self,
        now: Time,
        path: PathAddress,
        header: &Header,
        wanted: Wanted,
    ) -> Poll<Option<Datagram>> {
        let published = self.published.get(&wanted.object());
        if let Some(object) = published.filter(|object| object.wanted() == wanted) {
            return Poll::Ready(Some(manifest_message(path, header.pointer, object.body())));
        }
        let number = self.number();
        match &mut self.relay {
            Some(relay) => relay.on_request(now, path, header, wanted, number),
            None => Poll::Ready(Some(refusal(path, header, Refusal::NoNexus))),
        }
    }

    fn answer_interest(
        &mut self,
        now: Time,
        path: PathAddress,
        header: &Header,
        digest: Digest,
    ) -> Poll<Option<Datagram>> {
        if let Some(object) = self.published.get_mut(&header.pointer.object) {
            return Poll::Ready(Some(match ready!(object.answer(header.pointer, header.flags)) {
                Ok((flags, payload)) => {
                    let header = Header {
                        kind: Kind::Data,
                        flags,
                        pointer: header.pointer,
                    };
                    message::datagram(path, &header, payload)
                }
                Err(code) => refusal(path, header, code),
            }));
        }
        match &mut self.relay {
            Some(relay) => relay.on_interest(now, path, header, digest),
            None => Poll::Ready(Some(refusal(path, header, Refusal::NoNexus))),
        }
    }

    /// How many wait for a disk.
    pub fn waiting(&self) -> usize {
        self.waiting.len()
    }

    /// A disk may have read something: who waits for it asks again.
    pub fn on_disk(&mut self, now: Time) {
        for disk in self.waiting.disks() {
            while let Some(first) = self.waiting.first(disk, now) {
                let Poll::Ready(answer) = self.answer(now, first.path, &first.header, &first.what) else {
                    break;
                };
                let others = self.waiting.take(disk).into_iter().skip(1);
                if let Some(answer) = answer {
                    self.push(now, answer);
                }
                for other in others {
                    self.serve(now, other.path, &other.header, other.what);
                }
            }
        }
    }

    /// Does somebody receive where this comes from? If that is not known now, a cookie goes there, which is shorter than what came.
    fn is_proved(
        &mut self,
        now: Time,
        path: PathAddress,
        header: &Header,
        cookie: Option<&guard::Cookie>,
    ) -> bool {
        let requester = match self.guard.proof(now, path.remote, cookie) {
            Proof::Present => return true,
            Proof::Past => proved(path),
            Proof::None => Requester::Unproved,
        };
        self.counters.unproved += 1;
        if !self.outbox.has_room(requester) {
            self.counters.dropped += 1;
            return false;
        }
        let cookie = Bytes::copy_from_slice(&self.guard.cookie(now, path.remote));
        let refusal = message::refusal(header.pointer, header.flags & flags::MANIFEST, Refusal::Unproved);
        self.outbox
            .push(message::datagram(path, &refusal, cookie), requester);
        false
    }

    /// An answer to somebody who has proved where he is. What does not leave takes nothing of what he may have.
    pub(super) fn push(&mut self, now: Time, answer: Datagram) {
        let requester = proved(answer.path);
        if !self.outbox.has_room(requester) {
            self.counters.dropped += 1;
            return;
        }
        let bytes = message::answer_bytes(answer.body.len());
        let Some(departs) = self.guard.departure(now, answer.path.remote, bytes) else {
            self.counters.limited += 1;
            return;
        };
        self.counters.answers += 1;
        self.counters.answered_bytes += answer.body.len() as u64;
        if departs > now {
            self.outbox.push_paced(answer, requester, departs);
        } else {
            self.outbox.push(answer, requester);
        }
    }
}

/// Somebody who has proved that he is at the other end of `path`.
fn proved(path: PathAddress) -> Requester {
    Requester::Proved(guard::source_of(path.remote.ip()))
}

/// A refusal for who asked with this header.
fn refusal(path: PathAddress, header: &Header, code: Refusal) -> Datagram {
    let refusal = message::refusal(header.pointer, header.flags & flags::MANIFEST, code);
    message::datagram(path, &refusal, Bytes::new())
}
