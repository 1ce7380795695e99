//! Packet protection: sealing and opening between two hosts. Each path has its numbers and keys, so that a path which lags behind another
//! neither loses packets to the window of numbers nor shares a nonce.

use crate::packet::{ConnectionId, DATA_HEADER, DataHeader, NUMBERS, OVERHEAD};
use crate::path_room::PathRoom;
use crate::replay::Window;
use crate::schedule::{Keys, PACKETS_PER_KEY, PathSecrets, SPACES, Suite};
use crate::secret::Secret;
use restp_base::machine::{Datagram, Head, PathAddress};

/// Packets that did not open, after which a session takes none (RFC 9001 §6.6 for ChaCha20-Poly1305).
const MAX_FORGERIES: u64 = 1 << 36;

/// Why a packet was not opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Refusal {
    /// It is not genuine.
    Forged,
    /// It was here before, or is too old to tell.
    Replayed,
    /// It begins a path, and there is no room for more.
    Crowded,
}

/// Seals what leaves.
pub(crate) struct Sealer {
    suite: Suite,
    packets_per_key: u64,
    secrets: PathSecrets,
    to: ConnectionId,
    early: bool,
    spaces: Vec<Space>,
    /// Times any path was used: the one that was not used for longest makes room.
    uses: u64,
}

struct Space {
    path: PathAddress,
    keys: Keys,
    next: u64,
    used: u64,
}

impl Sealer {
    pub(crate) fn new(suite: Suite, secret: Secret, to: ConnectionId, early: bool) -> Self {
        Sealer {
            suite,
            packets_per_key: PACKETS_PER_KEY,
            secrets: PathSecrets::new(secret),
            to,
            early,
            spaces: Vec::new(),
            uses: 0,
        }
    }

    /// The request for the session went along `path`: the peer takes path 0 to be there, whichever is used first.
    pub(crate) fn begun_on(mut self, path: PathAddress) -> Self {
        self.space(path);
        self
    }

    /// The same, where each key seals `packets` packets.
    pub(crate) fn lasting(mut self, packets: u64) -> Self {
        self.packets_per_key = packets;
        self
    }

    /// Have as many packets been sealed as one key seals?
    pub(crate) fn is_worn(&self) -> bool {
        self.uses >= self.packets_per_key
    }

    /// What its peer calls the session.
    pub(crate) fn to(&self) -> ConnectionId {
        self.to
    }

    /// Appends `datagram`, sealed, to `out`. `None` when the numbers of its path have run out.
    pub(crate) fn seal(&mut self, datagram: &Datagram, out: &mut Head) -> Option<()> {
        let index = self.space(datagram.path)?;
        let (to, early) = (self.to, self.early);
        let space = &mut self.spaces[index];
        if space.next >= NUMBERS {
            return None;
        }
        let header = DataHeader {
            to,
            early,
            space: index as u8,
            number: space.next,
        };
        space.next += 1;
        let bytes = header.emit();
        let begin = out.len() + DATA_HEADER;
        out.reserve(datagram.len() + OVERHEAD);
        out.extend_from_slice(&bytes);
        out.extend_from_slice(&datagram.head);
        out.extend_from_slice(&datagram.body);
        let tag = space.keys.seal(header.number, &bytes, &mut out[begin..])?;
        out.extend_from_slice(&tag);
        if space.keys.generation() > 0 && self.secrets.are_whole() {
            let used = self.spaces.len();
            self.secrets.part(|space| usize::from(space) < used);
        }
        Some(())
    }

    /// The place of `path` among the numbered ones.
    fn space(&mut self, path: PathAddress) -> Option<usize> {
        self.uses += 1;
        let found = self.spaces.iter().position(|space| space.path == path);
        let index = match found {
            Some(index) => index,
            None if self.spaces.len() < usize::from(SPACES) => {
                let index = self.spaces.len() as u8;
                let keys = Keys::new(self.suite, self.secrets.of(index)?)?.lasting(self.packets_per_key);
                self.secrets.spend(index);
                self.spaces.push(Space {
                    path,
                    keys,
                    next: 0,
                    used: 0,
                });
                self.spaces.len() - 1
            }
            // Its numbers go on: only the address is another.
            None => (0..self.spaces.len()).min_by_key(|index| self.spaces[*index].used)?,
        };
        let space = &mut self.spaces[index];
        (space.path, space.used) = (path, self.uses);
        Some(index)
    }
}

/// Opens what arrives.
pub(crate) struct Opener {
    suite: Suite,
    packets_per_key: u64,
    secrets: PathSecrets,
    spaces: [Option<Box<(Keys, Window)>>; SPACES as usize],
    forgeries: u64,
}

impl Opener {
    pub(crate) fn new(suite: Suite, secret: Secret) -> Self {
        Opener {
            suite,
            packets_per_key: PACKETS_PER_KEY,
            secrets: PathSecrets::new(secret),
            spaces: Default::default(),
            forgeries: 0,
        }
    }

    /// The same, where each key seals `packets` packets.
    pub(crate) fn lasting(mut self, packets: u64) -> Self {
        self.packets_per_key = packets;
        self
    }

    /// Paths on which something genuine has come.
    pub(crate) fn paths(&self) -> usize {
        self.spaces.iter().flatten().count()
    }

    /// Is path `space` one of them?
    pub(crate) fn has_path(&self, space: u8) -> bool {
        self.spaces[usize::from(space % SPACES)].is_some()
    }

    /// Decrypts `sealed`, tag included, into `opened`, which is shorter by the tag; a packet in session `id`. Keys of paths that
    /// are new are kept in `room`.
    pub(crate) fn open(
        &mut self,
        id: ConnectionId,
        header: &DataHeader,
        sealed: &[u8],
        opened: &mut [u8],
        room: &mut PathRoom,
    ) -> Result<(), Refusal> {
        if self.forgeries >= MAX_FORGERIES {
            return Err(Refusal::Forged);
        }
        let opened = if self.has_path(header.space) {
            self.open_in_space(header, sealed, opened)
        } else {
            self.open_first(id, header, sealed, opened, room)
        };
        self.forgeries += u64::from(opened == Err(Refusal::Forged));
        opened
    }

    fn open_in_space(
        &mut self,
        header: &DataHeader,
        sealed: &[u8],
        opened: &mut [u8],
    ) -> Result<(), Refusal> {
        let space = self.spaces[usize::from(header.space % SPACES)].as_deref_mut();
        let (keys, window) = space.ok_or(Refusal::Forged)?;
        if !window.is_new(header.number) {
            return Err(Refusal::Replayed);
        }
        if !keys.open(header.number, &header.emit(), sealed, opened) {
            return Err(Refusal::Forged);
        }
        window.note(header.number);
        if keys.generation() > 0 && self.secrets.are_whole() {
            self.secrets
                .part(|space| self.spaces[usize::from(space)].is_some());
        }
        Ok(())
    }

    /// The first packet of a path, as it says. Only a genuine one makes it a path.
    fn open_first(
        &mut self,
        id: ConnectionId,
        header: &DataHeader,
        sealed: &[u8],
        opened: &mut [u8],
        room: &mut PathRoom,
    ) -> Result<(), Refusal> {
        let index = header.space % SPACES;
        let whose = (id, header.early, index);
        let compute = || Some(Keys::new(self.suite, self.secrets.of(index)?)?.lasting(self.packets_per_key));
        let keys = room.of(whose, compute).ok_or(Refusal::Forged)?;
        if !keys.open(header.number, &header.emit(), sealed, opened) {
            return Err(Refusal::Forged);
        }
        let keys = room.take(&whose).ok_or(Refusal::Forged)?;
        let parts = keys.generation() > 0 && self.secrets.are_whole();
        let mut window = Window::default();
        window.note(header.number);
        self.secrets.spend(index);
        self.spaces[usize::from(index)] = Some(Box::new((keys, window)));
        if parts {
            self.secrets
                .part(|space| self.spaces[usize::from(space)].is_some());
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::packet::Packet;
    use crate::path_room::MAX_PENDING;
    use crate::schedule::TAG_BYTES;
    use std::net::SocketAddr;

    fn path(host: u8) -> PathAddress {
        PathAddress {
            local: SocketAddr::from(([10, 0, 0, 1], 1)),
            remote: SocketAddr::from(([10, 0, 0, host], 1)),
        }
    }

    fn datagram(host: u8, text: &str) -> Datagram {
        Datagram {
            path: path(host),
            head: Head::from_slice(b"head "),
            body: text.to_owned().into(),
            ..Datagram::empty()
        }
    }

    fn ends() -> (Sealer, Opener) {
        let suite = Suite::Aes128Gcm;
        (
            Sealer::new(suite, [1; 32].into(), *b"connect.", false),
            Opener::new(suite, [1; 32].into()),
        )
    }

    fn opened(opener: &mut Opener, bytes: &[u8]) -> Result<Vec<u8>, Refusal> {
        opened_with(&mut PathRoom::new(64), opener, bytes)
    }

    fn opened_with(pending: &mut PathRoom, opener: &mut Opener, bytes: &[u8]) -> Result<Vec<u8>, Refusal> {
        let Some(Packet::Data(header)) = Packet::parse(bytes) else {
            panic!("a packet");
        };
        let sealed = &bytes[DATA_HEADER..];
        let mut opened = vec![0; sealed.len() - TAG_BYTES];
        opener.open(*b"session.", &header, sealed, &mut opened, pending)?;
        Ok(opened)
    }

    #[test]
    fn a_datagram_in_two_parts_comes_out_once_in_one() {
        let (mut sealer, mut opener) = ends();
        let mut out = Head::new();
        sealer.seal(&datagram(2, "and body"), &mut out).unwrap();
        assert_eq!(out.len(), 13 + OVERHEAD);
        assert_eq!(opened(&mut opener, &out), Ok(b"head and body".to_vec()));
        assert_eq!(opened(&mut opener, &out), Err(Refusal::Replayed));
    }

    #[test]
    fn no_changed_bit_goes_unnoticed_nor_spoils_the_genuine_packet() {
        let (mut sealer, mut opener) = ends();
        let mut out = Head::new();
        sealer.seal(&datagram(2, "x"), &mut out).unwrap();
        for bit in 0..out.len() * 8 {
            let mut bytes = out.to_vec();
            bytes[bit / 8] ^= 0x80 >> (bit % 8);
            // The connection id finds the session; it is covered by the tag all the same.
            if let Some(Packet::Data(_)) = Packet::parse(&bytes) {
                assert_eq!(opened(&mut opener, &bytes), Err(Refusal::Forged), "bit {bit}");
            }
        }
        assert!(opened(&mut opener, &out).is_ok());
    }

    #[test]
    fn after_too_many_forgeries_nothing_opens_any_more() {
        let genuine = |sealer: &mut Sealer| {
            let mut out = Head::new();
            sealer.seal(&datagram(2, "x"), &mut out).unwrap();
            out.to_vec()
        };
        for known in [true, false] {
            let (mut sealer, mut opener) = ends();
            if known {
                assert!(
                    opened(&mut opener, &genuine(&mut sealer)).is_ok(),
                    "the path has keys"
                );
            }
            opener.forgeries = MAX_FORGERIES - 2;
            let mut forged = genuine(&mut sealer);
            *forged.last_mut().unwrap() ^= 1;
            assert_eq!(opened(&mut opener, &forged), Err(Refusal::Forged));
            assert!(opened(&mut opener, &genuine(&mut sealer)).is_ok(), "one is left");
            let mut forged = genuine(&mut sealer);
            *forged.last_mut().unwrap() ^= 1;
            forged[0] ^= u8::from(!known); // of a path that is new
            assert_eq!(opened(&mut opener, &forged), Err(Refusal::Forged));
            let last = genuine(&mut sealer);
            assert_eq!(opened(&mut opener, &last), Err(Refusal::Forged), "known: {known}");
        }
    }

    #[test]
    fn the_numbers_of_a_path_end_and_do_not_begin_again() {
        let (mut sealer, _) = ends();
        sealer.seal(&datagram(2, "x"), &mut Head::new()).unwrap();
        let generation = (NUMBERS - 1) / PACKETS_PER_KEY;
        let keys = Keys::in_generation(Suite::Aes128Gcm, [1; 32], generation).unwrap();
        (sealer.spaces[0].next, sealer.spaces[0].keys) = (NUMBERS - 1, keys);
        let mut last = Head::new();
        sealer.seal(&datagram(2, "x"), &mut last).unwrap();
        assert_eq!(last[DATA_HEADER - 6..DATA_HEADER], [0xFF; 6]);
        let mut none = Head::new();
        assert_eq!(sealer.seal(&datagram(2, "x"), &mut none), None);
        assert!(none.is_empty());
        assert!(
            sealer.seal(&datagram(3, "x"), &mut none).is_some(),
            "other paths go on"
        );
    }

    #[test]
    fn more_paths_than_numbered_ones_share_and_no_number_comes_twice() {
        let (mut sealer, mut opener) = ends();
        for round in 0..3 {
            for host in 0..40 {
                let mut out = Head::new();
                sealer.seal(&datagram(host, "x"), &mut out).unwrap();
                assert!(opened(&mut opener, &out).is_ok(), "host {host}, round {round}");
            }
        }
        assert_eq!(sealer.spaces.len(), usize::from(SPACES));
    }

    #[test]
    fn with_the_first_key_that_is_behind_the_secret_of_the_direction_is_gone() {
        let (mut sealer, mut opener) = ends();
        let mut exchange = |sealer: &mut Sealer, host| {
            let mut out = Head::new();
            sealer.seal(&datagram(host, "x"), &mut out).unwrap();
            assert!(opened(&mut opener, &out).is_ok());
            (opener.secrets.are_whole(), opener.secrets.of(host - 2))
        };
        let (whole, first) = exchange(&mut sealer, 2);
        assert!(whole && sealer.secrets.are_whole() && first.is_some());
        sealer.spaces[0].next = PACKETS_PER_KEY;
        assert_eq!(exchange(&mut sealer, 2), (false, None));
        assert_eq!((sealer.secrets.are_whole(), sealer.secrets.of(0)), (false, None));
        // Paths that were not used yet can begin all the same, and nothing leads back to them either.
        assert_eq!(exchange(&mut sealer, 3), (false, None));
        assert_eq!(sealer.secrets.of(1), None);
    }

    #[test]
    fn what_is_forged_on_a_path_computes_its_keys_once_and_takes_no_place_of_a_path() {
        let (mut sealer, mut opener) = ends();
        let mut pending = PathRoom::new(64);
        let mut out = Head::new();
        sealer.seal(&datagram(2, "x"), &mut out).unwrap();
        let mut forged = out.to_vec();
        *forged.last_mut().unwrap() ^= 1;
        for turn in 0..100 {
            let refused = opened_with(&mut pending, &mut opener, &forged);
            assert_eq!(refused, Err(Refusal::Forged));
            assert_eq!(
                (opener.forgeries, opener.paths(), pending.len()),
                (turn + 1, 0, 1)
            );
        }
        assert!(opened_with(&mut pending, &mut opener, &out).is_ok());
        assert_eq!((opener.paths(), pending.len()), (1, 0), "it is a path now");
    }

    #[test]
    fn what_is_forged_on_every_path_of_every_session_keeps_a_bounded_number_of_keys() {
        let mut pending = PathRoom::new(64);
        let (mut sealer, mut opener) = ends();
        for session in 0..200_u64 {
            let (_, mut other) = ends();
            for space in 0..=u8::MAX {
                let header = DataHeader {
                    to: *b"connect.",
                    early: space % 2 == 0,
                    space,
                    number: u64::from(space) << 20,
                };
                let opener = if session == 0 { &mut opener } else { &mut other };
                let refused = opener.open(
                    session.to_be_bytes(),
                    &header,
                    &[7; TAG_BYTES],
                    &mut [],
                    &mut pending,
                );
                assert_eq!((refused, opener.paths()), (Err(Refusal::Forged), 0));
            }
            assert!(pending.len() <= MAX_PENDING);
        }
        assert_eq!(pending.len(), MAX_PENDING);
        for host in 0..SPACES {
            let mut out = Head::new();
            sealer.seal(&datagram(host, "x"), &mut out).unwrap();
            let opened = opened_with(&mut pending, &mut opener, &out);
            assert!(opened.is_ok(), "path {host} is as good as before");
        }
    }
}
