//! TCP listeners at this host that who connects has asked for. Whoever connects to one waits here until it is taken.

use crate::output::note;
use crate::pipe::{self, Place, Refusal, SUPERSEDED, Token};
use bytes::Bytes;
use restp::{BiStream, PublicKey};
use std::collections::BTreeMap;
use std::io;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, watch};

/// TCP connections of one listener that wait to be taken; further ones wait in the system's backlog.
const MAX_WAITING: usize = 64;

/// All of them.
#[derive(Default)]
pub struct Listeners {
    held: Mutex<BTreeMap<String, Arc<Listener>>>,
    waiting: Mutex<BTreeMap<Token, Waiting>>,
}

struct Listener {
    owner: Option<PublicKey>,
    tcp: TcpListener,
    /// Who holds it: the latest who has asked.
    holder: watch::Sender<u64>,
}

struct Waiting {
    stream: TcpStream,
    _room: OwnedSemaphorePermit,
}

/// A listener that is held for one stream.
pub struct Held<'a> {
    of: &'a Listeners,
    name: String,
    listener: Arc<Listener>,
    number: u64,
    announced: Vec<Token>,
}

impl Listeners {
    /// A listener at `place`. Where `owner` has one, it goes on with that one: a client that was killed and started again need not wait.
    ///
    /// # Errors
    /// When another one has it, or the system does not give it.
    pub async fn hold(&self, place: &Place, owner: Option<PublicKey>) -> Result<Held<'_>, Refusal> {
        let name = place.to_string();
        if let Some(held) = self.take_over(&name, owner) {
            return Ok(held);
        }
        let (host, asked) = place.host_and_port();
        let bound = pipe::listen((&host, asked)).await;
        let tcp = bound.map_err(|error| Refusal::of(&name, &error))?;
        let address = tcp.local_addr().map_err(|error| Refusal::of(&name, &error))?;
        let listener = Arc::new(Listener {
            owner,
            tcp,
            holder: watch::Sender::new(0),
        });
        // Any free port is another one each time.
        let name = if asked == 0 { address.to_string() } else { name };
        self.held().insert(name.clone(), listener.clone());
        Ok(Held {
            of: self,
            name,
            listener,
            number: 0,
            announced: Vec::new(),
        })
    }

    fn take_over(&self, name: &str, owner: Option<PublicKey>) -> Option<Held<'_>> {
        let held = self.held();
        let listener = held.get(name).filter(|held| held.owner == owner)?.clone();
        let number = *listener.holder.borrow() + 1;
        listener.holder.send_replace(number);
        Some(Held {
            of: self,
            name: name.to_owned(),
            listener,
            number,
            announced: Vec::new(),
        })
    }

    /// The connection that was announced so, if it still waits.
    pub fn take(&self, token: &Token) -> Option<TcpStream> {
        self.waiting().remove(token).map(|waiting| waiting.stream)
    }

    fn held(&self) -> MutexGuard<'_, BTreeMap<String, Arc<Listener>>> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn waiting(&self) -> MutexGuard<'_, BTreeMap<Token, Waiting>> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Held<'_> {
    /// Where it listens.
    pub fn address(&self) -> String {
        let address = self.listener.tcp.local_addr();
        address.map_or_else(|_| self.name.clone(), |address: SocketAddr| address.to_string())
    }

    /// Announces who connects, until `control` is over or somebody else holds the listener.
    pub async fn announce(mut self, control: &BiStream) {
        let mut holder = self.listener.holder.subscribe();
        let number = self.number;
        let room = Arc::new(Semaphore::new(MAX_WAITING));
        tokio::select! {
            () = other_than(number, &mut holder) => {
                let _ = control.send(Bytes::copy_from_slice(&SUPERSEDED)).await;
            }
            () = nothing_more(control) => {}
            () = self.accept(control, &room) => {}
        }
    }

    async fn accept(&mut self, control: &BiStream, room: &Arc<Semaphore>) {
        loop {
            let Ok(room) = room.clone().acquire_owned().await else {
                return;
            };
            let stream = match self.listener.tcp.accept().await {
                Ok((stream, _)) => {
                    pipe::reset_unless_joined(&stream);
                    stream
                }
                Err(error) => {
                    refused(&self.name, &error).await;
                    continue;
                }
            };
            let mut token = SUPERSEDED;
            if let Err(error) = getrandom::fill(&mut token) {
                note(format!("{}: no randomness: {error}", self.name));
                return;
            }
            self.announced
                .retain(|token| self.of.waiting().contains_key(token));
            self.announced.push(token);
            let waiting = Waiting { stream, _room: room };
            self.of.waiting().insert(token, waiting);
            if control.send(Bytes::copy_from_slice(&token)).await.is_err() {
                return;
            }
        }
    }
}

impl Drop for Held<'_> {
    /// Who waits has been announced to nobody else.
    fn drop(&mut self) {
        for token in &self.announced {
            if let Some(stream) = self.of.take(token) {
                pipe::reset(stream);
            }
        }
        if *self.listener.holder.borrow() == self.number {
            self.of.held().remove(&self.name);
        }
    }
}

/// Waits until the holder is another one than `number`.
async fn other_than(number: u64, holder: &mut watch::Receiver<u64>) {
    let _ = holder.wait_for(|holder| *holder != number).await;
}

/// Waits for the end of what comes over `control`.
async fn nothing_more(control: &BiStream) {
    while let Ok(Some(_)) = control.recv().await {}
}

/// The system has no room for one more: it may have in a moment.
async fn refused(name: &str, error: &io::Error) {
    note(format!("{name}: {error}; trying again"));
    tokio::time::sleep(Duration::from_secs(1)).await;
}
