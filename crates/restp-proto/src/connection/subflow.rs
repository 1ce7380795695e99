//! What a connection does differently when it is one of several paths of an association (ResTP §3.1.11 to §3.1.13): its
//! own numbers stand for those of the association, data comes from there and goes there, and the window it advertises
//! is the shared one (OP-55).

use super::{Connection, Ports, State};
use crate::composition::ValidComposition;
use crate::wire::codes::{CAPABLE_HMAC_SHA1, CAPABLE_HMAC_SHA256};
use crate::wire::{self, Dss, Flags, Header, MpCapable, MpJoin, MpSetup};
use bytes::Bytes;
use restp_base::machine::PathAddress;
use restp_base::sequence;
use restp_base::time::{Duration, Time};
use restp_services::congestion::Congestion;
use restp_services::connection_management::{JoinHash, Key, Keys, Nonce};
use restp_services::flow_control::{ReceiveWindow, SendWindow};
use restp_services::framing::SendQueue;
use restp_services::ordering::Reassembly;
use restp_services::path_management::{Mapping, Unanswered};
use restp_services::scheduling::{Candidate, Fate};
use restp_services::view::Sibling;
use std::collections::VecDeque;
use std::sync::Arc;

/// How a path comes to belong to its association.
#[derive(Clone, Debug)]
pub(crate) enum Setup {
    /// The first one: the keys are exchanged on it.
    Capable {
        local: Key,
        remote: Option<Key>,
        hash: JoinHash,
    },
    /// A further one: both ends prove that they know the keys.
    Join {
        keys: Keys,
        local: Nonce,
        remote: Option<Nonce>,
        address_id: u8,
        backup: bool,
    },
}

/// What a packet of this path said to the association.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Said {
    /// The peer's connection-level pointer.
    pub(crate) data_ack: Option<u32>,
    /// Its window, in segments from there.
    pub(crate) window: Option<u16>,
    /// The number of its DATA_FIN.
    pub(crate) fin: Option<u32>,
}

/// The part of a connection that belongs to an association.
#[derive(Debug)]
pub(crate) struct Subflow {
    setup: Setup,
    /// The third packet's form is repeated until the responder is heard (OP-22).
    confirms: bool,
    /// Connection numbers of the frames in the send queue, and of what is outstanding.
    queued: VecDeque<u64>,
    pub(super) mapping: Mapping,
    /// The association's pointer and window, as they stand now; the pointer last sent here.
    data_ack: u64,
    data_ack_sent: u64,
    window: Option<u16>,
    /// Number of our DATA_FIN while a packet shall carry it.
    fin_due: Option<u64>,
    /// Paths in use, or the ordinal of this one while it is set up (OP-20).
    k: u8,
    payload_crc: bool,
    /// Data waits that the association would place here, were there room.
    pub(super) fed: bool,
    /// It is taken for dead: where nothing is outstanding that could ask, a keep-alive does, once per timeout.
    pub(super) failed: bool,
    /// From the peer, not yet taken by the association.
    arrived: Vec<(u32, Bytes)>,
    said: Option<Said>,
    /// Connection number of the packet being taken.
    arriving: Option<u32>,
    /// Window and pointer last heard, to tell news from a duplicate.
    heard: (Option<u16>, Option<u32>),
}

/// What the answer to our SYN means for the association.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Answer {
    Accepted,
    /// The peer knows no multipath, or does not want it: one path, three-way (ResTP §3.5.5).
    SinglePath,
    /// It could not prove itself.
    Forged,
}

impl Subflow {
    pub(crate) fn new(setup: Setup, first: u64, k: u8, payload_crc: bool) -> Self {
        Subflow {
            setup,
            confirms: false,
            queued: VecDeque::new(),
            mapping: Mapping::new(first),
            data_ack: sequence::ORIGIN,
            data_ack_sent: 0,
            window: None,
            fin_due: None,
            k,
            payload_crc,
            fed: false,
            failed: false,
            arrived: Vec::new(),
            said: None,
            arriving: None,
            heard: (None, None),
        }
    }

    /// The keys, once both are known.
    fn keys(&self) -> Option<Keys> {
        match self.setup {
            Setup::Capable { local, remote, hash } => Some(Keys {
                local,
                remote: remote?,
                hash,
            }),
            Setup::Join { keys, .. } => Some(keys),
        }
    }

    /// As association: what the next packets say.
    fn stamp(&mut self, data_ack: u64, window: Option<u16>) {
        (self.data_ack, self.window) = (data_ack, window);
    }

    /// Connection numbers that are queued or outstanding here.
    fn carried(&self) -> impl Iterator<Item = u64> + '_ {
        let outstanding = self.mapping.outstanding().map(|(_, carried)| carried);
        outstanding.chain(self.queued.iter().copied())
    }
    pub(super) fn memory(&self) -> usize {
        self.mapping.memory() + self.queued.capacity() * size_of::<u64>()
    }

    /// The frame that leaves first in the send queue, or the path's FIN, took the next number.
    pub(super) fn on_numbered(&mut self, with_data: bool) {
        let carried = if with_data { self.queued.pop_front() } else { None };
        self.mapping.push(carried);
    }

    /// Multipath fields of a SYN or SYN-ACK.
    pub(super) fn set_up(&self, header: &mut Header, answer: bool) {
        (header.k, header.window) = (self.k, self.window);
        header.mp = Some(match &self.setup {
            Setup::Capable { local, hash, .. } => MpSetup::Capable(MpCapable {
                flags: match (answer, hash) {
                    (false, _) => CAPABLE_HMAC_SHA1 | CAPABLE_HMAC_SHA256,
                    (true, JoinHash::Sha1) => CAPABLE_HMAC_SHA1,
                    (true, JoinHash::Sha256) => CAPABLE_HMAC_SHA256,
                },
                keys: if answer {
                    wire::Keys::Responder(*local)
                } else {
                    wire::Keys::Initiator(*local)
                },
            }),
            Setup::Join {
                keys,
                local,
                remote,
                address_id,
                backup,
            } => MpSetup::Join(if answer {
                let proof = keys.prove(*local, remote.unwrap_or_default());
                let mut hmac = [0; 8];
                hmac.copy_from_slice(&proof[..8]);
                MpJoin::SynAck {
                    backup: *backup,
                    address_id: *address_id,
                    hmac,
                    random: *local,
                }
            } else {
                MpJoin::Syn {
                    backup: *backup,
                    address_id: *address_id,
                    token: keys.peer_token(),
                    random: *local,
                }
            }),
        });
    }

    /// The third form of the set-up extension.
    fn confirmation(&self) -> Option<MpSetup> {
        match &self.setup {
            Setup::Capable { local, remote, hash } => Some(MpSetup::Capable(MpCapable {
                flags: match hash {
                    JoinHash::Sha1 => CAPABLE_HMAC_SHA1,
                    JoinHash::Sha256 => CAPABLE_HMAC_SHA256,
                },
                keys: wire::Keys::Both {
                    initiator: *local,
                    responder: (*remote)?,
                },
            })),
            Setup::Join {
                keys, local, remote, ..
            } => Some(MpSetup::Join(MpJoin::Ack {
                hmac: keys.prove(*local, (*remote)?),
            })),
        }
    }

    /// Multipath fields of every later packet. `number`: of the numbered segment it carries; `bare`: it carries none.
    pub(super) fn fill(&mut self, header: &mut Header, number: Option<u64>, payload: &Bytes, bare: bool) {
        header.window = self.window;
        header.k = self.k;
        let opens = header.flags.has(Flags::SYN);
        let acknowledges = header.flags.has(Flags::ACK) && !opens;
        if self.confirms && acknowledges && !header.flags.has(Flags::RST) {
            header.mp = self.confirmation();
        }
        let data_ack =
            (acknowledges && (bare || self.data_ack != self.data_ack_sent)).then_some(self.data_ack);
        let mapped = number.and_then(|number| Some((number, self.mapping.carried_by(number)?)));
        let mapping = mapped.map(|(number, carried)| wire::Mapping {
            dsn: sequence::truncate(carried),
            ssn: sequence::truncate(number),
            length: 1,
            payload_crc: self.payload_crc.then(|| crc32fast::hash(payload)),
        });
        let fin = if bare && !opens { self.fin_due.take() } else { None };
        let dss = Dss {
            fin: fin.is_some(),
            data_ack: data_ack.map(sequence::truncate),
            // A DATA_FIN has a number of its own and no data: a mapping of no packets names it.
            mapping: mapping.or(fin.map(|fin| wire::Mapping {
                dsn: sequence::truncate(fin),
                ..wire::Mapping::default()
            })),
        };
        if dss != Dss::default() {
            header.dss = Some(dss);
        }
        self.data_ack_sent = data_ack.unwrap_or(self.data_ack_sent);
    }

    /// The answer to our SYN.
    pub(super) fn on_answer(&mut self, header: &Header) -> Answer {
        let (answer, setup) = (header.mp, &mut self.setup);
        self.confirms = true;
        match (setup, answer) {
            (Setup::Capable { remote, hash, .. }, Some(MpSetup::Capable(capable))) => {
                let wire::Keys::Responder(key) = capable.keys else {
                    return Answer::SinglePath;
                };
                if capable.flags & (CAPABLE_HMAC_SHA1 | CAPABLE_HMAC_SHA256) == 0 {
                    return Answer::SinglePath;
                }
                *hash = hash_of(capable.flags);
                *remote = Some(key);
                Answer::Accepted
            }
            (Setup::Capable { .. }, _) => Answer::SinglePath,
            (
                Setup::Join {
                    keys, local, remote, ..
                },
                Some(MpSetup::Join(MpJoin::SynAck { hmac, random, .. })),
            ) if keys.verify(&hmac, *local, random) => {
                *remote = Some(random);
                Answer::Accepted
            }
            (Setup::Join { .. }, _) => Answer::Forged,
        }
    }

    /// As responder: does the packet complete the set-up? A joining initiator has to prove itself.
    pub(super) fn is_confirmed_by(&self, header: &Header) -> bool {
        match (&self.setup, header.mp) {
            (Setup::Capable { .. }, _) => true,
            (
                Setup::Join {
                    keys, local, remote, ..
                },
                Some(MpSetup::Join(MpJoin::Ack { hmac })),
            ) => remote.is_some_and(|remote| keys.verify(&hmac, *local, remote)),
            (Setup::Join { .. }, _) => false,
        }
    }

    /// Takes note of what a packet of an established path says. False when its mapping contradicts it.
    pub(super) fn hear(&mut self, header: &Header, payload: &Bytes) -> bool {
        self.confirms &= header.flags.has(Flags::SYN);
        self.arriving = None;
        let dss = header.dss.unwrap_or_default();
        if !payload.is_empty() {
            let covers = |mapping: &wire::Mapping| {
                let offset = header.sequence?.wrapping_sub(mapping.ssn);
                (offset < u32::from(mapping.length)).then(|| mapping.dsn.wrapping_add(offset))
            };
            self.arriving = dss.mapping.as_ref().and_then(covers);
            let crc = dss.mapping.and_then(|mapping| mapping.payload_crc);
            if self.arriving.is_none() || crc.is_some_and(|crc| crc != crc32fast::hash(payload)) {
                return false;
            }
        }
        let fin = dss.mapping.filter(|_| dss.fin).map(|mapping| {
            let beyond = if mapping.length == 0 {
                0
            } else {
                mapping.length.into()
            };
            mapping.dsn.wrapping_add(beyond)
        });
        let said = Said {
            data_ack: dss.data_ack,
            window: header.window.filter(|_| header.flags.has(Flags::ACK)),
            fin,
        };
        self.said = Some(said);
        true
    }

    /// A bare acknowledgement that brings news of the association is no duplicate (RFC 6824 §3.3.1).
    pub(super) fn is_repeated(&mut self, header: &Header) -> bool {
        let now = (header.window, header.dss.and_then(|dss| dss.data_ack));
        std::mem::replace(&mut self.heard, now) == now
    }

    /// Payloads that the path has newly received belong to the association.
    pub(super) fn take_in(&mut self, payloads: impl Iterator<Item = Bytes>) {
        if let Some(number) = self.arriving {
            self.arrived.extend(payloads.map(|payload| (number, payload)));
        }
    }
}

/// The hash both ends use when one offers `flags`.
pub(crate) fn hash_of(flags: u8) -> JoinHash {
    if flags & CAPABLE_HMAC_SHA256 != 0 {
        JoinHash::Sha256
    } else {
        JoinHash::Sha1
    }
}

impl Connection {
    /// Makes this connection a path of an association.
    pub(crate) fn into_path(mut self, setup: Setup, k: u8) -> Self {
        let first = self.out.board.first();
        self.out.window = SendWindow::initial(first, u64::MAX / 2); // the shared one binds
        let payload_crc = false; // CRC of the whole packet is a service of its own
        self.subflow = Some(Box::new(Subflow::new(setup, first, k, payload_crc)));
        self
    }

    /// Makes it a connection on one path again: the peer knows no others.
    pub(super) fn leave_association(&mut self, header: &Header) {
        self.subflow = None;
        (self.services.paths, self.services.setup) = (wire::Paths::Single, wire::Setup::ThreeWay);
        if let Some(window) = header.window {
            self.out.window = SendWindow::initial(self.out.board.first(), window.into());
        }
    }

    /// May the association give it a segment of `bytes` now? Repairs come first.
    pub(crate) fn takes(&mut self, now: Time, bytes: u64) -> bool {
        let sent = self.out.board.next() - self.out.origin;
        let open = match self.state {
            State::Established => true,
            State::SynSent(_) | State::SynReceived(_) => self
                .exchange
                .is_some_and(|exchange| exchange.may_send(sent, true)),
            _ => false,
        };
        open && !self.out.outage.is_active()
            && self.out.queue.is_empty()
            && (self.out.board.lost() == 0 || !self.composition.reliability.repeats())
            && self.keeps_flight_limit(bytes)
            && self.has_room(now, bytes)
    }

    /// The association gives it the segment `number`. It leaves with the next packet, under the path's number that this
    /// returns.
    pub(crate) fn assign(&mut self, now: Time, number: u64, payload: Bytes) -> u64 {
        if self.out.board.is_empty() {
            self.progress_at = now;
        }
        self.out.queue.push(payload);
        if let Some(subflow) = &mut self.subflow {
            subflow.queued.push_back(number);
        }
        self.out.board.next() + self.out.queue.frames() as u64 - 1
    }

    /// What became of the segment with this number of the path's.
    pub(crate) fn fate(&self, number: u64) -> Fate {
        match self.out.board.in_flight_since(number) {
            Some((_, true)) => Fate::Open,
            Some((_, false)) => Fate::Lost,
            None if self.out.board.is_lost(number) => Fate::Lost,
            None if number >= self.out.board.next() => Fate::Open,
            None => Fate::Arrived,
        }
    }

    /// Data waits that the association would place here, were there room.
    pub(crate) fn set_fed(&mut self, fed: bool) {
        if let Some(subflow) = &mut self.subflow {
            subflow.fed = fed;
        }
    }

    /// What was assigned last asks whether the peer's window is still shut.
    pub(crate) fn set_probe(&mut self) {
        self.out.window_probe = true;
    }

    /// The shared window has opened: what asked was not taken, and would be now.
    pub(crate) fn window_opened(&mut self) {
        if std::mem::take(&mut self.out.window_probe) {
            self.out.board.mark_all_lost();
        }
    }

    /// The next acknowledgement carries DATA_FIN with the number `fin`, and leaves now.
    pub(crate) fn announce_end(&mut self, fin: u64) {
        if let Some(subflow) = &mut self.subflow {
            subflow.fin_due = Some(fin);
            self.inn.ack.on_urgent_once();
        }
    }

    /// What other paths may know of it, once it was measured.
    pub(crate) fn as_sibling(&self) -> Option<Sibling> {
        self.path.as_sibling()
    }
    /// What its congestion control knows of other paths.
    pub(crate) fn siblings(&mut self) -> &mut Vec<Sibling> {
        &mut self.path.siblings
    }

    /// What a scheduler may know of it.
    pub(crate) fn candidate(&mut self, now: Time, ordinal: usize, bytes: u64) -> Candidate {
        let has_room = self.takes(now, bytes);
        let rtt = &self.path.rtt;
        let unknown = Duration::from_millis(100); // no path is established without a sample, but one may be Karn's
        Candidate {
            path: ordinal,
            has_room,
            smoothed_rtt: rtt.smoothed().unwrap_or(unknown),
            min_rtt: rtt.minimum().unwrap_or(unknown),
            rtt_variation: rtt.variation().unwrap_or_default(),
            window_bytes: self.path.controller.window_bytes(),
            in_flight_bytes: self.out.board.in_flight_bytes(),
            weight: 1,
        }
    }

    pub(crate) fn keys(&self) -> Option<Keys> {
        self.subflow.as_ref()?.keys()
    }
    /// The peer has declined to have several paths.
    pub(crate) fn is_alone(&self) -> bool {
        self.subflow.is_none()
    }
    /// It carries data, or may already carry some beside its set-up.
    pub(crate) fn is_open(&self) -> bool {
        self.is_established() || self.exchange.is_some_and(|exchange| exchange.may_send(0, true))
    }
    pub(crate) fn is_established(&self) -> bool {
        self.state == State::Established
    }
    pub(crate) fn is_over(&self) -> bool {
        self.state.is_over()
    }
    pub(crate) fn address(&self) -> PathAddress {
        self.path.address
    }
    pub(crate) fn ports(&self) -> Ports {
        self.ports
    }
    pub(crate) fn smoothed_rtt(&self) -> Option<Duration> {
        self.path.rtt.smoothed()
    }
    pub(crate) fn minimum_rtt(&self) -> Option<Duration> {
        self.path.rtt.minimum()
    }
    pub(crate) fn timeout(&self) -> Duration {
        self.path.rto.value(&self.path.rtt)
    }
    /// Feedback with news, and answers to keep-alives, so far.
    pub(crate) fn answers(&self) -> u64 {
        self.answers
    }
    pub(crate) fn stamp(&mut self, data_ack: u64, window: Option<u16>, paths: u8) {
        let established = self.is_established();
        if let Some(subflow) = &mut self.subflow {
            subflow.stamp(data_ack, window);
            if established {
                subflow.k = paths;
            }
        }
    }
    pub(crate) fn take_said(&mut self) -> Option<Said> {
        self.subflow.as_mut()?.said.take()
    }
    /// Moves what has newly arrived into `arrived`, which is empty.
    pub(crate) fn swap_arrived(&mut self, arrived: &mut Vec<(u32, Bytes)>) {
        if let Some(subflow) = &mut self.subflow {
            std::mem::swap(&mut subflow.arrived, arrived);
        }
    }
    /// Connection numbers that are queued or outstanding here.
    pub(crate) fn carried(&self) -> impl Iterator<Item = u64> + '_ {
        self.subflow.iter().flat_map(|subflow| subflow.carried())
    }
    /// The association is this one connection: what was written belongs to it.
    pub(crate) fn adopt(&mut self, queue: SendQueue, composition: Arc<ValidComposition>) {
        self.out.queue = queue;
        if let Some(reassembly) = &self.inn.reassembly {
            let next = reassembly.next();
            self.inn.reassembly = Some(Reassembly::new(composition.ordering, next));
            self.inn.window = ReceiveWindow::new(next, super::granted(composition.flow_control));
        }
        self.composition = composition;
    }

    /// What was assigned leaves at once, whatever the window says, as with the first repeat of a loss (RFC 5681
    /// §3.2 (2)).
    pub(crate) fn rescue(&mut self) {
        self.out.rescue_at_once = true;
    }

    /// Takes back what was assigned and has not left.
    pub(crate) fn unassign(&mut self) {
        self.out.queue.clear();
        if let Some(subflow) = &mut self.subflow {
            subflow.queued.clear();
        }
    }

    /// The answer that is due first.
    pub(crate) fn unanswered(&self) -> Option<Unanswered> {
        let since = if self.out.board.is_empty() {
            self.asked_at
        } else {
            self.out.board.unanswered_since()
        };
        Some(Unanswered {
            since: since?,
            last_answer: self.answered_at,
        })
    }

    /// The first connection number that left here at `from` or later and is not answered.
    pub(crate) fn first_sent_since(&self, from: Time) -> Option<u64> {
        let board = &self.out.board;
        let later = |number: u64| board.in_flight_since(number).is_some_and(|(at, _)| at >= from);
        let mut outstanding = self.subflow.as_ref()?.mapping.outstanding();
        outstanding
            .find(|(number, _)| later(*number))
            .map(|(_, carried)| carried)
    }

    /// The peer is asked for an answer now, whatever is outstanding.
    pub(crate) fn ask(&mut self) {
        self.keepalive_due = true;
    }

    /// Timeouts in a row, or probing already: nothing comes back.
    pub(crate) fn timeouts_in_row(&self) -> u32 {
        if self.out.outage.is_active() {
            u32::MAX
        } else {
            self.path.rto.expiries()
        }
    }

    /// An acknowledgement leaves with the next turn, because the association has news.
    pub(crate) fn acknowledge_soon(&mut self) {
        self.inn.ack.on_urgent_once();
    }
}
