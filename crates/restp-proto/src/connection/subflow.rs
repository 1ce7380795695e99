//! What a connection does differently when it is one of several paths of an association (ResTP §3.1.11 to §3.1.13): its
//! own numbers stand for those of the association, data comes from there and goes there, and the window it advertises
//! is the shared one (OP-55).

mod lane;
mod path;

pub(crate) use lane::{Stream, Turn};

use crate::wire::codes::{CAPABLE_HMAC_SHA1, CAPABLE_HMAC_SHA256, CAPABLE_INTEGRITY};
use crate::wire::{self, Dss, Flags, Header, MpCapable, MpJoin, MpSetup};
use bytes::Bytes;
use restp_base::sequence;
use restp_base::time::Duration;
use restp_services::connection_management::{JoinHash, Key, Keys, Nonce};
use restp_services::multipath::Shared;
use restp_services::path_management::Mapping;
use restp_services::recovery::LaneId;
use std::collections::VecDeque;
use std::fmt;

/// Most paths of an association: k has four bits (ResTP §3.1.1).
pub(crate) const MAX_PATHS: usize = 15;

/// How a path comes to belong to its association.
#[derive(Clone)]
pub(crate) enum Setup {
    /// The first one: the keys are exchanged on it.
    Capable {
        local: Key,
        remote: Option<Key>,
        hash: JoinHash,
        address_id: u8,
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

impl fmt::Debug for Setup {
    /// Without the keys: both together admit another path to the association.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Setup::Capable { hash, .. } => write!(f, "Capable({hash:?})"),
            Setup::Join { address_id, .. } => write!(f, "Join({address_id})"),
        }
    }
}

/// What a packet of this path said to the association.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct DssUpdate {
    /// The peer's connection-level pointer.
    pub(crate) data_ack: Option<u32>,
    /// Its window, in segments from there.
    pub(crate) window: Option<u16>,
    /// The number of its DATA_FIN.
    pub(crate) fin: Option<u32>,
    /// The number of its payload.
    pub(crate) data: Option<u32>,
}

/// The part of a connection that belongs to an association.
#[derive(Debug)]
pub(crate) struct Subflow {
    setup: Setup,
    /// The third packet's form is retransmitted until the responder is heard (OP-22).
    confirms: bool,
    /// Connection numbers of the frames in the send queue, and of what is outstanding.
    queued: VecDeque<u64>,
    pub(super) mapping: Mapping,
    /// The association's pointer and window, as they stand now.
    data_ack: u64,
    window: Option<u16>,
    /// Both as last sent here, unless the peer has asked since.
    told: Option<(u64, Option<u16>)>,
    /// Number of our DATA_FIN while a packet shall carry it.
    fin_due: Option<u64>,
    /// Paths in use, or the ordinal of this one while it is set up (OP-20).
    k: u8,
    /// Both ends put a CRC-32 beside every mapping.
    integrity: bool,
    /// It is taken for dead: where nothing is outstanding that could ask, a keep-alive does, once per timeout.
    pub(super) failed: bool,
    /// Window and pointer last heard, to tell news from a duplicate.
    heard: (Option<u16>, Option<u32>),
    /// The numbers of its packets are those of the association: nothing is mapped.
    pub(super) shares: bool,
    /// As one of several paths that share them: its lane, and what it may do in this turn.
    pub(super) lane: Option<LaneId>,
    pub(super) turn: Turn,
    /// What its set-up measured, until it is told.
    pub(super) set_up_rtt: Option<Duration>,
    /// It is silent, and asked once per timeout.
    pub(super) suspect: bool,
}

impl DssUpdate {
    /// The last that the peer says on a path, breaking it off: what it has by now counts, or nobody would ever know.
    pub(super) fn last(header: &Header) -> DssUpdate {
        DssUpdate {
            data_ack: header.dss.and_then(|dss| dss.data_ack),
            ..DssUpdate::default()
        }
    }
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
    pub(crate) fn new(setup: Setup, first: u64, k: u8, integrity: bool) -> Self {
        Subflow {
            setup,
            confirms: false,
            queued: VecDeque::new(),
            mapping: Mapping::new(first),
            data_ack: sequence::ORIGIN,
            window: None,
            told: None,
            fin_due: None,
            k,
            integrity,
            failed: false,
            heard: (None, None),
            shares: false,
            lane: None,
            turn: Turn::default(),
            set_up_rtt: None,
            suspect: false,
        }
    }

    /// The keys, once both are known.
    fn keys(&self) -> Option<Keys> {
        match self.setup {
            Setup::Capable {
                local, remote, hash, ..
            } => Some(Keys {
                local,
                remote: remote?,
                hash,
            }),
            Setup::Join { keys, .. } => Some(keys),
        }
    }

    /// What the next packets say of the association.
    fn stamp(&mut self, shared: &Shared, advertises: bool, established: bool) {
        self.data_ack = shared.next.unwrap_or(0);
        self.window = advertises.then_some(shared.window as u16);
        if established {
            self.k = shared.paths.clamp(1, MAX_PATHS) as u8;
        }
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
        header.k = self.k;
        if !self.shares {
            header.window = self.window;
        }
        header.mp = Some(match &self.setup {
            Setup::Capable {
                local,
                hash,
                address_id,
                ..
            } => MpSetup::Capable(MpCapable {
                address_id: if answer || !self.shares { 0 } else { *address_id },
                flags: self.asks()
                    | if answer {
                        chosen(*hash)
                    } else {
                        CAPABLE_HMAC_SHA1 | CAPABLE_HMAC_SHA256
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

    /// Flag A, where integrity is asked for.
    fn asks(&self) -> u8 {
        if self.integrity { CAPABLE_INTEGRITY } else { 0 }
    }

    /// The third form of the set-up extension.
    fn confirmation(&self) -> Option<MpSetup> {
        match &self.setup {
            Setup::Capable {
                local, remote, hash, ..
            } => Some(MpSetup::Capable(MpCapable {
                address_id: 0,
                flags: self.asks() | chosen(*hash),
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

    /// The same where paths share the numbers: the packet's own say all.
    pub(super) fn fill_shared(&self, header: &mut Header) {
        header.k = self.k;
        let acknowledges = header.flags.has(Flags::ACK) && !header.flags.has(Flags::SYN);
        if self.confirms && acknowledges && !header.flags.has(Flags::RST) {
            header.mp = self.confirmation();
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
        let known = Some((self.data_ack, self.window));
        // A window counts from the pointer beside it (OP-55), so news of either take both.
        let data_ack = (acknowledges && (bare || self.told != known)).then_some(self.data_ack);
        let mapped = number.and_then(|number| Some((number, self.mapping.carried_by(number)?)));
        // Beside a cookie there is one form of DSS, without it (OP-21).
        let roomy = header.cookie().is_none();
        let mapping = mapped.map(|(number, carried)| wire::Mapping {
            dsn: sequence::truncate(carried),
            ssn: sequence::truncate(number),
            length: 1,
            payload_crc: (self.integrity && roomy).then(|| crc32fast::hash(payload)),
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
        if data_ack.is_some() {
            self.told = known;
        }
    }

    /// The peer wants to hear where the association stands, whatever was said before.
    pub(super) fn on_data_ack_wanted(&mut self) {
        self.told = None;
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
                self.integrity |= asks_for_integrity(capable.flags);
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

    /// What a packet of an established path says. None when its mapping contradicts it.
    pub(super) fn on_dss(&mut self, header: &Header, payload: &Bytes) -> Option<DssUpdate> {
        self.confirms &= header.flags.has(Flags::SYN);
        if self.shares {
            return Some(DssUpdate::default());
        }
        let dss = header.dss.unwrap_or_default();
        let mut data = None;
        if !payload.is_empty() {
            let mapping = dss.mapping?;
            let offset = header.sequence?.wrapping_sub(mapping.ssn);
            let covers = offset < u32::from(mapping.length);
            data = covers.then(|| mapping.dsn.wrapping_add(offset));
            // Before it has heard us a peer does not know that we ask; beside a cookie there is no room (OP-21).
            let owed = self.integrity && header.flags.has(Flags::ACK) && header.cookie().is_none();
            let crc = mapping.payload_crc;
            let is_intact = crc.map_or(!owed, |crc| crc == crc32fast::hash(payload));
            data.filter(|_| is_intact)?;
        }
        // A mapping of no packets names the number behind the last one, which DATA_FIN takes.
        let fin = dss.mapping.filter(|_| dss.fin);
        Some(DssUpdate {
            data_ack: dss.data_ack,
            window: header.window.filter(|_| header.flags.has(Flags::ACK)),
            fin: fin.map(|mapping| mapping.dsn.wrapping_add(mapping.length.into())),
            data,
        })
    }

    /// A bare acknowledgement that brings news of the association is no duplicate (RFC 6824 §3.3.1).
    pub(super) fn is_duplicate(&mut self, header: &Header) -> bool {
        let now = (header.window, header.dss.and_then(|dss| dss.data_ack));
        std::mem::replace(&mut self.heard, now) == now
    }
}

/// One side asks, and both do it.
pub(crate) fn asks_for_integrity(flags: u8) -> bool {
    flags & CAPABLE_INTEGRITY != 0
}

/// What an answer says of the hash.
fn chosen(hash: JoinHash) -> u8 {
    match hash {
        JoinHash::Sha1 => CAPABLE_HMAC_SHA1,
        JoinHash::Sha256 => CAPABLE_HMAC_SHA256,
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
