//! Connections that this host opens, and who is at their other end: the one that is expected, one that is met for the first time
//! and remembered, or nobody ([`Trust`](crate::Trust)).

use crate::connect_error::ConnectError;
use crate::connection::Connection;
use crate::endpoint::Endpoint;
use restp_seal::{Fault, PublicKey};
use std::collections::BTreeSet;
use std::net::SocketAddr;
use std::time::Duration;

/// How often it is looked whether somebody has said that a host has another key.
const LOOK: Duration = Duration::from_millis(100);

impl Endpoint {
    /// So long after somebody has said that a host has another key its answer is waited for, which would show that he lied: longer
    /// than any round trip on Earth takes.
    pub const GRACE: Duration = Duration::from_secs(10);

    /// The host at `remote` has `key`: connections opened from now on reach it or nobody, whatever the endpoint trusts.
    pub fn expect(&self, remote: SocketAddr, key: PublicKey) {
        if let Some(sealed) = self.shared.lock().machine.seal_mut() {
            sealed.expect(remote, key);
        }
    }

    /// The key of the host at `remote`, once it has proved it and was heard from there.
    pub fn peer_key(&self, remote: SocketAddr) -> Option<PublicKey> {
        self.shared.lock().machine.seal()?.peer_key(remote)
    }

    /// Why the host at `remote` could not be talked to, as far as its key or ours is concerned; while it is still asked, what
    /// somebody says.
    pub fn fault(&self, remote: SocketAddr) -> Option<Fault> {
        self.shared.lock().machine.seal()?.fault(remote)
    }

    /// Opens a connection to the service `port` of the host at `remote`, and waits until it is established with who is trusted.
    /// Whoever is met for the first time is remembered, if known hosts are; otherwise nothing is opened.
    ///
    /// # Errors
    /// Those of [`Endpoint::open`], and those of [`Endpoint::confirm`].
    pub async fn connect(&self, remote: SocketAddr, port: u16) -> Result<Connection, ConnectError> {
        let connection = self.open(remote, port)?;
        self.confirm(&connection, &[remote]).await?;
        Ok(connection)
    }

    /// [`Endpoint::open_to`], and waits as [`Endpoint::connect`] does.
    ///
    /// # Errors
    /// Those of [`Endpoint::open_to`], and those of [`Endpoint::confirm`].
    pub async fn connect_to(&self, remotes: &[SocketAddr], port: u16) -> Result<Connection, ConnectError> {
        let connection = self.open_to(remotes, port)?;
        self.confirm(&connection, remotes).await?;
        Ok(connection)
    }

    /// Opens one connection over every pair of a bound address and one of `remotes`, all of one host, that makes sense
    /// ([`Endpoint::paths_to`]), and returns at once. Addresses that an interface bound by [`Endpoint::bind_locals`] gets
    /// later become paths as well.
    ///
    /// The first paths race, each 25 ms after the one before, so that a dead one delays nobody; then the others join.
    ///
    /// # Errors
    /// When no local socket reaches any of `remotes`, there are several pairs and the composition has one path, or several of
    /// `remotes` are known to be of different hosts.
    pub fn open_to(&self, remotes: &[SocketAddr], port: u16) -> Result<Connection, ConnectError> {
        self.expect_one_host(remotes)?;
        let paths = self.paths_to(remotes);
        if paths.is_empty() {
            let mut errors = remotes.iter().filter_map(|remote| self.source_for(*remote).err());
            let is_for_now = |error: &ConnectError| matches!(error, ConnectError::NoRoute { .. });
            if let Some(error) = errors.find(is_for_now) {
                return Err(error);
            }
        }
        let connection = self.open_paths(&paths, port)?;
        if let Some(state) = self.shared.lock().flows.get_mut(&connection.id()) {
            state.remotes = remotes.to_vec();
        }
        Ok(connection)
    }

    /// A key that is known of one address is that of all.
    fn expect_one_host(&self, remotes: &[SocketAddr]) -> Result<(), ConnectError> {
        let mut core = self.shared.lock();
        let told = |remote: &SocketAddr| core.machine.expected(*remote);
        let keys: BTreeSet<PublicKey> = remotes.iter().filter_map(told).collect();
        match keys.first() {
            Some(key) if keys.len() == 1 => {
                if let Some(sealed) = core.machine.seal_mut() {
                    remotes.iter().for_each(|remote| sealed.expect(*remote, *key));
                }
                Ok(())
            }
            Some(_) => Err(ConnectError::SeveralHosts(keys.into_iter().collect())),
            None => Ok(()),
        }
    }

    /// Waits until `connection`, which was opened to `remotes`, is established with who is trusted, and remembers who was met for
    /// the first time. [`Endpoint::connect`] has done so.
    ///
    /// # Errors
    /// The reason when it ended before, when the host has another key or refuses ours, or when it cannot be remembered: then
    /// nothing should be sent, and the connection be dropped.
    pub async fn confirm(&self, connection: &Connection, remotes: &[SocketAddr]) -> Result<(), ConnectError> {
        tokio::select! {
            established = connection.established() => {
                established.map_err(|reason| self.refusal(remotes).unwrap_or(ConnectError::Closed(reason)))?;
            }
            error = self.other_key(remotes, |_| ()) => return Err(error),
        }
        #[cfg(unix)]
        self.remember(connection, remotes).await?;
        Ok(())
    }

    /// Writes down who was met for the first time.
    #[cfg(unix)]
    async fn remember(&self, connection: &Connection, remotes: &[SocketAddr]) -> Result<(), ConnectError> {
        let Some(hosts) = self.shared.lock().machine.known_hosts().cloned() else {
            return Ok(());
        };
        let Some(key) = connection.peer_key() else {
            return Ok(());
        };
        let is_new = |remote: &SocketAddr| {
            self.peer_key(*remote) == Some(key) && self.shared.lock().machine.expected(*remote).is_none()
        };
        for remote in remotes.iter().copied().filter(is_new) {
            let hosts = hosts.clone();
            // It waits for the disk, and for others that write.
            let learnt = tokio::task::spawn_blocking(move || hosts.learn(remote, key)).await;
            learnt.map_err(|_| ConnectError::Stopped)??;
        }
        Ok(())
    }

    /// Waits until somebody says that the host at one of `remotes` has another key than the one expected, calls `said` with that
    /// address, and waits 10 s whether the host answers all the same: anybody can say so, and only an answer of the host is proof.
    /// Then it is the reason why nothing can be opened there.
    pub async fn other_key(&self, remotes: &[SocketAddr], mut said: impl FnMut(SocketAddr)) -> ConnectError {
        loop {
            let is_told = |remote: &&SocketAddr| matches!(self.fault(**remote), Some(Fault::OtherKey { .. }));
            if let Some(remote) = remotes.iter().find(is_told) {
                said(*remote);
                tokio::time::sleep(Endpoint::GRACE).await;
                if let Some(error) = self.refusal(remotes) {
                    return error;
                }
            }
            tokio::time::sleep(LOOK).await;
        }
    }

    /// Why nothing can be opened to `remotes`, as far as keys are concerned.
    pub fn refusal(&self, remotes: &[SocketAddr]) -> Option<ConnectError> {
        let mut faults = remotes
            .iter()
            .filter_map(|remote| Some((*remote, self.fault(*remote)?)));
        let (remote, fault) = faults.next()?;
        Some(match fault {
            Fault::OtherKey { expected, told } => ConnectError::OtherKey {
                remote,
                expected,
                told,
                known: self.known_in(remote, expected),
            },
            Fault::Unwelcome => ConnectError::Unwelcome {
                remote,
                own: self.public_key()?,
            },
        })
    }

    /// The file that says so, if it is known of an earlier meeting that the host at `remote` has `key`.
    fn known_in(&self, remote: SocketAddr, key: PublicKey) -> Option<std::path::PathBuf> {
        #[cfg(unix)]
        return {
            let core = self.shared.lock();
            let hosts = core.machine.known_hosts()?;
            (hosts.key_of(remote) == Some(key)).then(|| hosts.path().to_owned())
        };
        #[cfg(not(unix))]
        {
            let _ = (remote, key);
            None
        }
    }
}
