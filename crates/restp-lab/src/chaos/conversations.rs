//! Which conversation a packet belongs to, and which of its connections, from what is on the wire: ports for one path,
//! keys and tokens for several (ResTP §3.1.11, §3.1.12).

use super::Side;
use restp_base::machine::Datagram;
use restp_proto::wire::codes::CAPABLE_HMAC_SHA256;
use restp_proto::wire::{Flags, Header, Keys, MpCapable, MpJoin, MpSetup};
use restp_services::connection_management::{self as management, EARLY_SEGMENTS};
use std::collections::BTreeMap;
use std::net::SocketAddr;

/// Port of the first flow of a machine (RFC 6335 §6).
pub const FIRST_PORT: u16 = 49_152;

/// Where a packet belongs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Owner {
    /// Conversations count from 0 in the order opened.
    pub conversation: usize,
    /// The connection: one for each set-up of a path, counted over the run; with one path the conversation.
    pub strand: usize,
    /// The server's association, by its first connection: it may have taken several requests of a racing client.
    pub association: usize,
}

/// What is known from the packets so far.
#[derive(Default)]
pub struct Conversations {
    several: bool,
    /// The first conversation of the client's present machine.
    pub first: usize,
    /// The connection that the client has asked for last at each of its ports and paths.
    asked: BTreeMap<(u16, usize), Owner>,
    /// The conversation, or connection, that the server has answered last at each of the client's ports and addresses: behind
    /// a translator that forgot, an old one goes on where it was.
    answered: BTreeMap<(u16, SocketAddr), Owner>,
    /// The client's first number in each connection.
    first_numbers: BTreeMap<usize, u32>,
    strands: usize,
    /// The conversation of each of the client's keys, and of each token that joins it.
    keys: BTreeMap<[u8; 8], usize>,
    tokens: BTreeMap<[u8; 4], Owner>,
}

impl Conversations {
    /// For associations over several paths, or connections on one.
    pub fn new(several: bool) -> Self {
        Conversations {
            several,
            ..Conversations::default()
        }
    }

    /// Where a packet that `from` sends on `path` belongs, when the client has opened so many conversations.
    pub fn owner(&mut self, from: Side, path: usize, datagram: &Datagram, opened: usize) -> Option<Owner> {
        let head = if datagram.head.is_empty() {
            &datagram.body[..]
        } else {
            &datagram.head[..]
        };
        let (header, length) = Header::parse(head, datagram.len()).ok()?;
        let bare = datagram.len() == length;
        let remote = datagram.path.remote;
        match (self.several, from) {
            (false, _) => self.on_one_path(from, remote, &header, opened),
            (true, Side::Client) => self.of_client(path, &header, bare, opened),
            (true, Side::Server) => self.of_server(path, remote, &header),
        }
    }

    /// The client's port tells, because a machine gives its flows one after the other. One that starts again uses them
    /// once more; the server goes on with the old conversation until it answers the SYN of the new one.
    fn on_one_path(
        &mut self,
        from: Side,
        remote: SocketAddr,
        header: &Header,
        opened: usize,
    ) -> Option<Owner> {
        let port = match from {
            Side::Client => header.source,
            Side::Server => header.destination,
        };
        let newest = self.first + usize::from(port.checked_sub(FIRST_PORT)?);
        let newest = (newest < opened).then_some(Owner {
            conversation: newest,
            strand: newest,
            association: newest,
        });
        let key = (port, remote);
        if from == Side::Client {
            if let (Some(owner), Some(number)) = (newest, header.sequence) {
                self.first_numbers.entry(owner.strand).or_insert(number);
            }
            return newest;
        }
        if let Some(owner) = newest.filter(|owner| self.answers(header, owner.strand)) {
            self.answered.insert(key, owner);
        }
        let here = self.answered.get(&key).copied();
        here.or_else(|| self.answered_last(port)).or(newest)
    }

    /// The connection that the server answered last at this port of the client, wherever that was: the client may have moved.
    fn answered_last(&self, port: u16) -> Option<Owner> {
        let of_port = self.answered.iter().filter(|((of, _), _)| *of == port);
        of_port.map(|(_, owner)| *owner).max_by_key(|owner| owner.strand)
    }

    /// Is it a SYN-ACK, with a number of this connection where it has one? It acknowledges the SYN, or early data with
    /// it; a SYN that doubles as data has the number after, and acknowledging it alone says just that.
    fn answers(&self, header: &Header, strand: usize) -> bool {
        let first = self.first_numbers.get(&strand);
        let is_ours = |number: u32| {
            first.is_some_and(|first| (0..=EARLY_SEGMENTS + 1).contains(&number.wrapping_sub(*first).into()))
        };
        header.flags.has(Flags::SYN | Flags::ACK) && header.acknowledgement.is_none_or(is_ours)
    }

    /// A SYN with another first number than the last one of its port begins a connection; its key or token tells of which
    /// conversation.
    fn of_client(&mut self, path: usize, header: &Header, bare: bool, opened: usize) -> Option<Owner> {
        let key = (header.source, path);
        if header.flags.has(Flags::SYN) && !header.flags.has(Flags::ACK) {
            let first = header.sequence?.wrapping_sub(u32::from(!bare));
            let known = self.asked.get(&key);
            if known.is_none_or(|owner| self.first_numbers.get(&owner.strand) != Some(&first)) {
                let strand = self.strands;
                let owner = match header.mp? {
                    MpSetup::Capable(MpCapable {
                        keys: Keys::Initiator(key),
                        ..
                    }) => Owner {
                        conversation: *self.keys.entry(key).or_insert(opened.checked_sub(1)?),
                        strand,
                        association: strand,
                    },
                    MpSetup::Join(MpJoin::Syn { token, .. }) => Owner {
                        strand,
                        ..*self.tokens.get(&token)?
                    },
                    MpSetup::Capable(_) | MpSetup::Join(_) => return None,
                };
                self.strands += 1;
                self.first_numbers.insert(strand, first);
                self.asked.insert(key, owner);
            }
        }
        self.asked.get(&key).copied()
    }

    fn of_server(&mut self, path: usize, remote: SocketAddr, header: &Header) -> Option<Owner> {
        let port = header.destination;
        let asked = self.asked.get(&(port, path)).copied();
        let key = (port, remote);
        if let Some(owner) = asked.filter(|owner| self.answers(header, owner.strand)) {
            self.answered.insert(key, owner);
            if let Some(MpSetup::Capable(MpCapable {
                flags,
                keys: Keys::Responder(responder),
            })) = header.mp
            {
                let hash = if flags & CAPABLE_HMAC_SHA256 != 0 {
                    management::JoinHash::Sha256
                } else {
                    management::JoinHash::Sha1
                };
                let keys = management::Keys {
                    local: responder,
                    remote: responder,
                    hash,
                };
                self.tokens.insert(keys.own_token(), owner);
            }
        }
        self.answered.get(&key).copied().or(asked)
    }
}
