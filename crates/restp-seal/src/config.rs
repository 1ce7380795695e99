//! What a user sets.

use crate::keys::{PublicKey, SecretKey};
use crate::schedule::PACKETS_PER_KEY;
use crate::secret::Secret;
use restp_base::machine::{Datagram, Request};
use std::collections::BTreeSet;
use std::fmt;

/// Whom a host serves.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Clients {
    /// Everybody.
    #[default]
    All,
    /// Those with these keys.
    Only(BTreeSet<PublicKey>),
}

/// Configuration of a sealed endpoint.
#[derive(Clone)]
pub struct SealConfig {
    /// This host's name.
    pub secret: SecretKey,
    /// All chance comes from it: 32 bytes of the operating system for each endpoint, or of a simulation's stream.
    pub seed: Secret,
    /// Whom this host serves.
    pub clients: Clients,
    /// Does it serve anybody at all? Where it does not, requests get no answer, but for those of the hosts it talks to.
    pub serves: bool,
    /// Are flows accepted only when the host at the other end has proved its key? Otherwise those with early data are before
    /// that, and their key is told later.
    pub awaits_proof: bool,
    /// May a host be talked to whose key is not known yet? What it says then is its key.
    pub first_use: bool,
    /// This processor has instructions for AES; where one end has none, ChaCha20-Poly1305 is faster.
    pub fast_aes: bool,
    /// Handshakes begun by peers and not finished, at most. From half of them on, a peer must prove its address first.
    pub max_half_open: usize,
    /// Handshakes computed in a second for addresses that prove nothing, each about a tenth of a millisecond; from there on,
    /// too, a peer must prove its address first.
    pub max_unproved_per_second: u32,
    /// The same of those that come with a ticket: each costs less than half of the others, only who has or has seen a ticket
    /// can ask for it, and who asks for many of the others does not keep these out.
    pub max_unproved_resumed_per_second: u32,
    /// Sessions at once; when all are in use further requests are dropped and counted.
    pub max_sessions: usize,
    /// Packets of one path that one key seals. Both ends must count alike, so anything but [`PACKETS_PER_KEY`] talks only to
    /// its like: it is for tests, which see keys change before a million packets have passed.
    pub packets_per_key: u64,
    /// What a datagram of the machine asks for, if it may be taken twice without harm. Such ones (a SYN) travel in the first
    /// message of a handshake; others wait for the session, or are early data. Those that ask for a path of a flow there is are
    /// taken from addresses that have not answered, too.
    pub request: fn(&Datagram) -> Option<Request>,
}

impl fmt::Debug for SealConfig {
    /// Without the seed, from which everything follows.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SealConfig")
            .field("key", &self.secret.public())
            .field("clients", &self.clients)
            .field("first_use", &self.first_use)
            .finish_non_exhaustive()
    }
}

impl SealConfig {
    /// A host named by `secret` that serves everybody and talks to everybody. `seed` as [`SealConfig::seed`],
    /// `request` as [`SealConfig::request`].
    pub fn new(
        secret: SecretKey,
        seed: impl Into<Secret>,
        request: fn(&Datagram) -> Option<Request>,
    ) -> Self {
        SealConfig {
            secret,
            seed: seed.into(),
            clients: Clients::All,
            serves: true,
            awaits_proof: false,
            first_use: true,
            fast_aes: true,
            max_half_open: 1_024,
            max_unproved_per_second: 500,
            max_unproved_resumed_per_second: 2_000,
            max_sessions: 65_536,
            packets_per_key: PACKETS_PER_KEY,
            request,
        }
    }
}
