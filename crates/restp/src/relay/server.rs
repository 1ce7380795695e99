//! A relay: forwards datagrams that it cannot read, and tells both ends where it sees the other.
//!
//! Hosts register at one port. Each gets a port of its own, to which others send; and for each of those the relay has a port towards the
//! host, so that the host sees as many addresses as it has peers. Ports are tasks; what they share is the table of users.

use super::peers::{Link, Peer, Peers};
use super::ports::Ports;
use super::users::{Share, Tokens, Users};
use crate::clock::Clock;
use crate::random::random;
use crate::rendezvous::wire::{Message, RegistrationId, echo_of, is_message};
use crate::socket::ReplySocket;
use restp_base::machine::PathAddress;
use restp_base::time::{Duration, Time};
use restp_base::units::Rate;
use std::cell::RefCell;
use std::io;
use std::net::SocketAddr;
use std::ops::RangeInclusive;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use tokio::task::JoinSet;

/// After the system could not receive.
const PAUSE: std::time::Duration = std::time::Duration::from_millis(10);
/// Between two looks for who is gone.
const CLEAN: std::time::Duration = std::time::Duration::from_secs(5);

/// Both ends are told where the other is with the first datagram, and again after this long while datagrams come: words are lost.
const SAY_AGAIN: Duration = Duration::from_millis(500);
const TIMES_SAID: u32 = 6;

/// The longest datagram.
const MAX_DATAGRAM: usize = 65_535;

/// Datagrams of one socket in a row; then other tasks have their turn.
const IN_A_ROW: usize = 64;

/// What a relay gives.
#[derive(Clone, Debug)]
pub struct RelayConfig {
    /// Where hosts register. `[::]` stands for the addresses of both families.
    pub listen: SocketAddr,
    /// What it forwards for each host, in both directions together.
    pub limit: Rate,
    /// Hosts at once.
    pub most_users: usize,
    /// Ports for hosts and their peers.
    pub ports: RangeInclusive<u16>,
}

impl RelayConfig {
    /// Those that Linux gives to who asks for any, and what lies above them: a port for each peer of a thousand busy hosts.
    pub const PORTS: RangeInclusive<u16> = 32_768..=65_535;
}

/// What a relay has done. Counters only grow.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RelayStats {
    /// Hosts that are registered now.
    pub users: u64,
    /// Bytes forwarded.
    pub forwarded_bytes: u64,
    /// Datagrams dropped because a host had its share.
    pub over_limit: u64,
    /// Requests for a place when there was none.
    pub refused: u64,
}

/// A host that is registered, at the moment of a look. Counters only grow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RelayedHost {
    /// No other host of this relay has had it.
    pub id: u64,
    /// Where it is, and where it registered.
    pub at: PathAddress,
    /// What its peers sent to it, forwarded: datagrams, and bytes in them.
    pub to_host: Forwarded,
    /// What it sent to them.
    pub from_host: Forwarded,
    /// Datagrams dropped because it had its share.
    pub over_limit: u64,
}

/// So much was forwarded.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Forwarded {
    /// Datagrams.
    pub datagrams: u64,
    /// Bytes in them.
    pub bytes: u64,
}

/// The same while it is counted.
#[derive(Debug, Default)]
struct Counted {
    datagrams: AtomicU64,
    bytes: AtomicU64,
}

impl Counted {
    fn add(&self, bytes: usize) {
        self.datagrams.fetch_add(1, Ordering::Relaxed);
        self.bytes.fetch_add(bytes as u64, Ordering::Relaxed);
    }

    fn get(&self) -> Forwarded {
        Forwarded {
            datagrams: self.datagrams.load(Ordering::Relaxed),
            bytes: self.bytes.load(Ordering::Relaxed),
        }
    }
}

/// A way to look at a relay that does not keep it alive.
#[derive(Clone)]
pub struct RelayOverview(Weak<Shared>);

impl RelayOverview {
    /// The hosts that are registered now, those that came first in front; `None` once the relay is gone.
    pub fn look(&self) -> Option<Vec<RelayedHost>> {
        let shared = self.0.upgrade()?;
        let users = lock(&shared.users);
        let mut hosts: Vec<_> = users.iter().map(|place| place.host.look()).collect();
        hosts.sort_by_key(|host| host.id);
        Some(hosts)
    }
}

/// A relay. It ends when it is dropped.
pub struct Relay {
    front: Arc<ReplySocket>,
    shared: Arc<Shared>,
    tokens: Tokens,
}

/// Its hosts have tasks, which hold what they share: these end with it.
impl Drop for Relay {
    fn drop(&mut self) {
        lock(&self.shared.users).clear();
    }
}

/// What its tasks share.
struct Shared {
    clock: Clock,
    ports: Ports,
    config: RelayConfig,
    users: Mutex<Users<Registered>>,
    forwarded_bytes: AtomicU64,
    over_limit: AtomicU64,
    refused: AtomicU64,
    /// Hosts that have had a place.
    entered: AtomicU64,
}

/// A host with a place. Its task ends with it.
struct Registered {
    host: Arc<Host>,
    port: u16,
    _task: JoinSet<()>,
}

/// What the tasks of one host share.
struct Host {
    id: RegistrationId,
    /// Where it is: it may move.
    at: Mutex<PathAddress>,
    share: Mutex<Share>,
    nth: u64,
    to_host: Counted,
    from_host: Counted,
    over_limit: AtomicU64,
}

impl Host {
    fn look(&self) -> RelayedHost {
        RelayedHost {
            id: self.nth,
            at: *lock(&self.at),
            to_host: self.to_host.get(),
            from_host: self.from_host.get(),
            over_limit: self.over_limit.load(Ordering::Relaxed),
        }
    }
}

pub(super) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Relay {
    /// Opens the port where hosts register.
    ///
    /// # Errors
    /// When it cannot be had, the system gives no randomness, or outside of a runtime with I/O.
    pub fn bind(config: RelayConfig) -> io::Result<Self> {
        Ok(Relay {
            front: Arc::new(ReplySocket::bind(config.listen)?),
            tokens: Tokens::new(*random()?),
            shared: Arc::new(Shared {
                clock: Clock::start(),
                users: Mutex::new(Users::new(config.most_users)),
                ports: Ports::new(config.listen.ip(), &config.ports, u16::from_be_bytes(*random()?)),
                config,
                forwarded_bytes: AtomicU64::new(0),
                over_limit: AtomicU64::new(0),
                refused: AtomicU64::new(0),
                entered: AtomicU64::new(0),
            }),
        })
    }

    /// Where hosts register.
    pub fn local_addr(&self) -> SocketAddr {
        self.front.local_addr()
    }

    /// What it has done so far.
    pub fn stats(&self) -> RelayStats {
        let shared = &self.shared;
        RelayStats {
            users: lock(&shared.users).len() as u64,
            forwarded_bytes: shared.forwarded_bytes.load(Ordering::Relaxed),
            over_limit: shared.over_limit.load(Ordering::Relaxed),
            refused: shared.refused.load(Ordering::Relaxed),
        }
    }

    /// A way to look at its hosts from elsewhere.
    pub fn overview(&self) -> RelayOverview {
        RelayOverview(Arc::downgrade(&self.shared))
    }

    /// Serves until it is dropped.
    pub async fn run(&self) -> std::convert::Infallible {
        let mut buffer = vec![0; 2048];
        let mut cleanings = tokio::time::interval(CLEAN);
        loop {
            tokio::select! {
                received = self.front.receive(&mut buffer) => match received {
                    Ok((bytes, from)) => {
                        if let Some(message) = Message::parse(&buffer[..bytes]) {
                            self.on_message(message, from).await;
                        }
                    }
                    // What was sent before did not arrive, or the system is short of something.
                    Err(error) => {
                        tracing::debug!(%error, "receiving failed");
                        tokio::time::sleep(PAUSE).await;
                    }
                },
                _ = cleanings.tick() => lock(&self.shared.users).expire(self.shared.clock.now()),
            }
        }
    }

    async fn on_message(&self, message: Message, from: PathAddress) {
        let answer = match message {
            Message::Register { id, token } => self.register(id, token, from).await,
            Message::Release { id } => {
                // Only from where it is: its name alone is told to nobody, but may have been seen.
                let mut users = lock(&self.shared.users);
                let now = self.shared.clock.now();
                if users
                    .heard(now, &id)
                    .is_some_and(|known| *lock(&known.host.at) == from)
                {
                    users.leave(&id);
                }
                return;
            }
            _ => return,
        };
        let _ = self.front.send(&answer.emit(), &from).await; // it will ask again
    }

    async fn register(&self, id: RegistrationId, token: [u8; 16], path: PathAddress) -> Message {
        let (now, from) = (self.shared.clock.now(), path.remote);
        if !self.tokens.is_right(now, from, token) {
            let token = self.tokens.token(now, from);
            return Message::Prove { id, token };
        }
        let registered = |port| Message::Registered { id, seen: from, port };
        {
            let mut users = lock(&self.shared.users);
            if let Some(known) = users.heard(now, &id) {
                *lock(&known.host.at) = path;
                return registered(known.port);
            }
            if !users.has_room(from) {
                self.shared.refused.fetch_add(1, Ordering::Relaxed);
                return Message::Full { id };
            }
        }
        let Ok(socket) = self.shared.ports.for_host(&id) else {
            self.shared.refused.fetch_add(1, Ordering::Relaxed);
            return Message::Full { id };
        };
        let port = socket.local_addr().port();
        let host = Arc::new(Host {
            id,
            at: Mutex::new(path),
            share: Mutex::new(Share::new(now, self.shared.config.limit)),
            nth: self.shared.entered.fetch_add(1, Ordering::Relaxed),
            to_host: Counted::default(),
            from_host: Counted::default(),
            over_limit: AtomicU64::new(0),
        });
        let mut task = JoinSet::new();
        let serving = Serving {
            socket: Arc::new(socket),
            front: self.front.clone(),
            host: host.clone(),
            shared: self.shared.clone(),
            peers: Peers::default(),
        };
        task.spawn(serving.run());
        let place = Registered {
            host,
            port,
            _task: task,
        };
        lock(&self.shared.users).enter(now, id, from, place);
        registered(port)
    }
}

/// The port of one host, and those who send there.
struct Serving {
    socket: Arc<ReplySocket>,
    front: Arc<ReplySocket>,
    host: Arc<Host>,
    shared: Arc<Shared>,
    peers: Peers,
}

impl Serving {
    async fn run(mut self) {
        let mut buffer = vec![0; MAX_DATAGRAM];
        let mut cleanings = tokio::time::interval(CLEAN);
        loop {
            tokio::select! {
                ready = self.socket.readable() => {
                    if ready.is_err() {
                        return;
                    }
                    for _ in 0..IN_A_ROW {
                        match self.socket.try_receive(&mut buffer) {
                            Ok((bytes, from)) => self.forward(from, &buffer[..bytes]).await,
                            Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                            Err(_) => {} // what was sent before did not arrive
                        }
                    }
                    tokio::task::yield_now().await;
                }
                _ = cleanings.tick() => self.peers.expire(self.shared.clock.now()),
            }
        }
    }

    async fn forward(&mut self, path: PathAddress, datagram: &[u8]) {
        let (now, from) = (self.shared.clock.now(), path.remote);
        if datagram.first().is_none_or(|first| is_message(*first)) {
            return; // nobody speaks to the host in the name of the relay
        }
        // Before anything else: what is over the limit costs neither a port nor words.
        if !self.shared.admits(&self.host, datagram.len()) {
            return;
        }
        if self.peers.heard(now, &path).is_none() {
            self.enter(now, path);
        }
        let Some(peer) = self.peers.heard(now, &path) else {
            return;
        };
        let at = lock(&self.host.at).remote;
        if peer.said < TIMES_SAID && (peer.said == 0 || now.since(peer.said_at) >= SAY_AGAIN) {
            (peer.said, peer.said_at) = (peer.said + 1, now);
            let (id, echo) = (self.host.id, echo_of(datagram));
            self.shared
                .say(&self.front, &self.host, Message::Peer { id, at: from });
            if let Some(echo) = echo {
                let word = Message::Elsewhere { echo, at }.emit();
                // Its sender's address may be forged: nobody gets more than was sent in his name.
                if word.len() <= datagram.len() {
                    let _ = self.socket.try_send(&word, &path);
                }
            }
        }
        if peer.link.asks(now) && peer.opened_at.is_none_or(|opened| now.since(opened) >= SAY_AGAIN) {
            peer.opened_at = Some(now);
            let (id, port) = (self.host.id, peer.link.socket.local_addr().port());
            self.shared
                .say(&self.front, &self.host, Message::Open { id, port });
        }
        if let Some(at) = peer.link.way(datagram)
            && peer.link.socket.try_send(datagram, &at).is_ok()
        {
            self.host.to_host.add(datagram.len());
        }
    }

    /// A port towards the host for who sends on `path`, if there is one to be had.
    fn enter(&mut self, now: Time, path: PathAddress) {
        if self.peers.is_full(now) {
            return;
        }
        let Ok(socket) = self.shared.ports.for_peer() else {
            return;
        };
        let link = Arc::new(Link::new(socket));
        let mut answers = JoinSet::new();
        answers.spawn(answer(
            link.clone(),
            self.socket.clone(),
            path,
            self.host.clone(),
            self.shared.clone(),
        ));
        self.peers.enter(now, path, Peer::new(now, link, answers));
    }
}

thread_local! {
    /// For what the host of any port here sends: a buffer for each peer would be most of what a relay needs.
    static BUFFER: RefCell<Vec<u8>> = RefCell::new(vec![0; MAX_DATAGRAM]);
}

/// What the host sends to one peer.
async fn answer(
    link: Arc<Link>,
    back: Arc<ReplySocket>,
    to: PathAddress,
    host: Arc<Host>,
    shared: Arc<Shared>,
) {
    while link.socket.readable().await.is_ok() {
        BUFFER.with_borrow_mut(|buffer| {
            for _ in 0..IN_A_ROW {
                match link.socket.try_receive(buffer) {
                    Ok((bytes, from)) => {
                        let (now, datagram) = (shared.clock.now(), &buffer[..bytes]);
                        if datagram.first().is_none_or(|first| is_message(*first)) {
                            match Message::parse(datagram) {
                                Some(Message::Bind { id }) if id == host.id => link.bind(now, from),
                                Some(Message::Keep { id }) if id == host.id => link.keep(now, from),
                                _ => {}
                            }
                        } else if link.hears(now, from) && shared.admits(&host, bytes) {
                            link.answer();
                            if back.try_send(datagram, &to).is_ok() {
                                host.from_host.add(bytes);
                            }
                        }
                    }
                    Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                    Err(_) => {}
                }
            }
        });
        tokio::task::yield_now().await;
    }
}

impl Shared {
    /// Says `message` to `host`, out of its share: small datagrams from many addresses would be a flood of words otherwise.
    fn say(&self, front: &ReplySocket, host: &Host, message: Message) {
        let bytes = message.emit();
        if lock(&host.share).take(self.clock.now(), bytes.len() as u64) {
            let _ = front.try_send(&bytes, &lock(&host.at));
        }
    }

    /// May so much more be forwarded for `host`?
    fn admits(&self, host: &Host, bytes: usize) -> bool {
        let fits = lock(&host.share).take(self.clock.now(), bytes as u64);
        let count = |counter: &AtomicU64, more| _ = counter.fetch_add(more, Ordering::Relaxed);
        if fits {
            count(&self.forwarded_bytes, bytes as u64);
        } else {
            count(&self.over_limit, 1);
            count(&host.over_limit, 1);
        }
        fits
    }
}

#[cfg(test)]
mod tests;
