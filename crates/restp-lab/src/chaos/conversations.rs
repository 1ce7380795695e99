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
    /// The server's connections that have numbers.
    numbered: Vec<Numbered>,
    /// The client's first number in each connection.
    first_numbers: BTreeMap<usize, u32>,
    strands: usize,
    /// The conversation of each of the client's keys, and of each token that joins it.
    keys: BTreeMap<[u8; 8], usize>,
    tokens: BTreeMap<[u8; 4], Owner>,
}

/// A connection of the server as its numbers tell it from others.
struct Numbered {
    /// The client's port and path.
    of: (u16, usize),
    owner: Owner,
    /// The first number and the latest.
    first: u32,
    latest: u32,
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
    /// once more; the server may go on with the old conversation beside the new one, where the client has moved. Its numbers
    /// tell them apart, and where there are none the address that it answered.
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
            self.on_first_number((port, 0), owner, header);
        }
        let here = self.answered.get(&key).copied();
        let numbered = header.sequence.and_then(|number| {
            let latest = (!header.flags.has(Flags::RST)).then_some(number); // what refuses may have a number of its own
            self.numbered(port, number, latest)
        });
        (numbered.or(here))
            .or_else(|| self.answered_last(port))
            .or(newest)
    }

    /// The server begins a connection, unless it says so once more.
    fn on_first_number(&mut self, of: (u16, usize), owner: Owner, header: &Header) {
        let Some(first) = header.sequence else { return };
        let known = |one: &Numbered| one.owner == owner && one.first == first;
        if !self.numbered.iter().any(known) {
            self.numbered.push(Numbered {
                of,
                owner,
                first,
                latest: first,
            });
        }
    }

    /// The connection at this port of the client whose latest number is nearest: first numbers are nowhere near each other.
    fn numbered(&mut self, port: u16, number: u32, latest: Option<u32>) -> Option<Owner> {
        let of_port = self.numbered.iter_mut().filter(|one| one.of.0 == port);
        let nearest = of_port.min_by_key(|one| one.distance(number))?;
        nearest.latest = latest.unwrap_or(nearest.latest);
        Some(nearest.owner)
    }

    /// With several paths, which may share numbers: `here`, unless the number is nearest to those of another association; then its
    /// latest connection on this port and path.
    fn of_number(&mut self, of: (u16, usize), here: Option<Owner>, number: u32) -> Option<Owner> {
        let nearest = self.numbered.iter().min_by_key(|one| one.distance(number));
        let association = nearest.map(|one| one.owner.association);
        let is_here = here.map(|owner| owner.association) == association;
        let of_association = |one: &&mut Numbered| match here {
            Some(owner) if is_here => one.owner == owner,
            _ => one.of == of && Some(one.owner.association) == association,
        };
        let Some(one) = self.numbered.iter_mut().rfind(of_association) else {
            return here;
        };
        one.latest = number;
        Some(one.owner)
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
            self.on_first_number((port, path), owner, header);
            if let Some(MpSetup::Capable(MpCapable {
                flags,
                keys: Keys::Responder(responder),
                ..
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
        let here = self.answered.get(&key).copied().or(asked);
        match header.sequence {
            Some(number) => self.of_number((port, path), here, number),
            None => here,
        }
    }
}

impl Numbered {
    fn distance(&self, number: u32) -> u32 {
        (number.wrapping_sub(self.latest) as i32).unsigned_abs()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use restp_base::machine::{Head, PathAddress};
    use restp_proto::composition::Preset;
    use restp_proto::wire::Services;

    const PORT: u16 = 80;

    fn header(source: u16, destination: u16) -> Header {
        let preset = Preset::named("3wh-arq").expect("a preset");
        let composition = preset.composition().check().expect("valid");
        let mut header = Header::new(Services::of(&composition), source, destination);
        header.window = Some(8192).filter(|_| header.services.flow_control != 0);
        header
    }

    /// A packet of the server to the client behind this port of its translator.
    fn to_client(at: u16, flags: Flags, number: u32, acknowledges: u32) -> Datagram {
        let mut header = header(PORT, FIRST_PORT);
        header.flags = flags;
        header.sequence = Some(number);
        header.acknowledgement = Some(acknowledges);
        datagram(at, &header)
    }

    fn syn(number: u32) -> Datagram {
        let mut header = header(FIRST_PORT, PORT);
        header.flags = Flags::SYN;
        header.sequence = Some(number);
        datagram(0, &header)
    }

    fn datagram(remote: u16, header: &Header) -> Datagram {
        let mut head = Head::new();
        header.emit(&[], &mut head).expect("a header");
        Datagram {
            path: PathAddress {
                local: ([10, 0, 0, 2], 0).into(),
                remote: ([10, 0, 0, 1], remote).into(),
            },
            head,
            ..Datagram::empty()
        }
    }

    /// The client has moved and starts again, and the server has not noticed: it goes on with both, to wherever it knows the client.
    #[test]
    fn numbers_tell_an_old_connection_from_the_new_one() {
        let mut all = Conversations::new(false);
        let server = |all: &mut Conversations, datagram, opened| {
            let owner = all.owner(Side::Server, 0, &datagram, opened);
            owner.map(|owner| owner.conversation)
        };
        all.owner(Side::Client, 0, &syn(10), 1);
        let answer = Flags::SYN | Flags::ACK;
        assert_eq!(server(&mut all, to_client(0, answer, 7_000_000, 11), 1), Some(0));
        all.first = 1;
        all.owner(Side::Client, 0, &syn(5_000_000), 2);
        assert_eq!(
            server(&mut all, to_client(2, answer, 3_000_000_000, 5_000_001), 2),
            Some(1)
        );
        for at in [0, 1, 2] {
            let old = to_client(at, Flags::ACK, 7_000_080, 50);
            assert_eq!(server(&mut all, old, 2), Some(0), "{at}");
            let new = to_client(at, Flags::ACK, 3_000_000_090, 5_000_050);
            assert_eq!(server(&mut all, new, 2), Some(1), "{at}");
        }
    }
}
