//! What hosts at addresses are to this one: who they must be, what they gave for the next visit, and why they could not be
//! talked to.

use crate::keys::PublicKey;
use crate::token::Token;
use std::collections::BTreeMap;
use std::net::SocketAddr;

/// Why a peer cannot be talked to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// It does not serve this host's key.
    Unwelcome,
    /// It has another key than the one it is known by, or says so.
    OtherKey {
        /// The one it is known by.
        expected: PublicKey,
        /// The one it says it has.
        told: PublicKey,
    },
}

/// What is known of other hosts.
#[derive(Default)]
pub(crate) struct KnownHosts {
    keys: BTreeMap<SocketAddr, PublicKey>,
    tokens: BTreeMap<PublicKey, Token>,
    faults: BTreeMap<SocketAddr, Fault>,
}

impl KnownHosts {
    /// The host at `remote` must have `key`.
    pub(crate) fn expect(&mut self, remote: SocketAddr, key: PublicKey) {
        self.keys.insert(remote, key);
    }

    /// The key that the host at `remote` must have.
    pub(crate) fn expected(&self, remote: SocketAddr) -> Option<PublicKey> {
        self.keys.get(&remote).copied()
    }

    pub(crate) fn keep_token(&mut self, key: PublicKey, token: Token) {
        self.tokens.insert(key, token);
    }

    /// The token that the host `key` gave.
    pub(crate) fn token(&self, key: PublicKey) -> Option<Token> {
        self.tokens.get(&key).cloned()
    }

    /// All tokens, by the key of the host that gave them.
    pub(crate) fn tokens(&self) -> impl Iterator<Item = (PublicKey, Token)> {
        self.tokens.iter().map(|(key, token)| (*key, token.clone()))
    }

    /// The ticket of the host `key` does not open any more.
    pub(crate) fn forget_ticket(&mut self, key: PublicKey) {
        if let Some(token) = self.tokens.get_mut(&key) {
            token.resumption = None;
        }
    }

    /// The host at `remote` cannot be talked to.
    pub(crate) fn blame(&mut self, remote: SocketAddr, fault: Fault) {
        self.faults.insert(remote, fault);
    }

    /// Somebody talks to the host at `remote` again.
    pub(crate) fn forgive(&mut self, remote: SocketAddr) {
        self.faults.remove(&remote);
    }

    pub(crate) fn fault(&self, remote: SocketAddr) -> Option<Fault> {
        self.faults.get(&remote).copied()
    }
}
