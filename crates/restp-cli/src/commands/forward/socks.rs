//! `--socks`: who connects here says where to, and goes there from the server.

use super::super::carrier::OpenError;
use super::super::client::Client;
use super::local::{accept, bind};
use super::room::Room;
use super::{Kind, Told};
use crate::args::Listen;
use crate::failure::Failure;
use crate::output::note;
use crate::pipe::{Broken, Operation, Place, Reason};
use crate::socks::{Reply, Request, Wrong};
use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::oneshot::{Receiver, Sender, channel};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::timeout;

/// Who connects says where to within this time.
const SOON: Duration = Duration::from_secs(30);

/// So many say where to, or wait for room, at once. Who has been saying for longest leaves for the next one: silent ones must
/// not keep out those who know what they want.
const MAX_ASKING: usize = 64;

/// An answer is read within this time, and no more than this is read of who goes on talking: bytes that nobody has read would make
/// the end a reset, which can take the answer with it (RFC 2525 §2.17).
const LAST_WORDS: (Duration, u64) = (Duration::from_secs(1), 64 << 10);

/// A SOCKS proxy.
pub struct Socks {
    listener: TcpListener,
    address: String,
}

impl Socks {
    /// Listens.
    ///
    /// # Errors
    /// When the port cannot be had.
    pub async fn bind(listen: &Listen) -> Result<Self, Failure> {
        let (listener, address) = bind(listen).await.map_err(Failure::input)?;
        Ok(Socks { listener, address })
    }

    pub fn told(&self) -> Told {
        Told {
            kind: Kind::Socks,
            listen: self.address.clone(),
            target: "the targets that are allowed".into(),
        }
    }

    /// Asks the server whether it lets anything through.
    ///
    /// # Errors
    /// When it is not there, or would not.
    pub async fn check(&self, client: &Client) -> Result<(), Failure> {
        client.open(Operation::Check(Place::ANY_TCP.to_owned())).await?;
        Ok(())
    }

    /// Serves who connects, for ever.
    pub async fn run(self, client: &Arc<Client>, room: &Room) -> Failure {
        let mut asking = Asking::default();
        loop {
            let stream = accept(&self.listener, &self.address).await;
            let (permit, displaced) = asking.enter().await;
            let (at_work, room, name) = (client.clone(), room.clone(), self.address.clone());
            client.spawn(async move {
                let asked = tokio::select! {
                    asked = ask(stream, &name) => asked,
                    _ = displaced => None,
                };
                let Some((request, stream)) = asked else {
                    return;
                };
                let room = room.enter().await;
                drop(permit);
                forward(&at_work, &request, stream, &name).await;
                drop(room);
            });
        }
    }
}

/// Those who say where to, the one who began first in front.
struct Asking {
    free: Arc<Semaphore>,
    began: VecDeque<Sender<()>>,
}

impl Default for Asking {
    fn default() -> Self {
        Asking {
            free: Arc::new(Semaphore::new(MAX_ASKING)),
            began: VecDeque::new(),
        }
    }
}

impl Asking {
    /// One more, who leaves when the receiver is ready, as long as he holds it. He waits where all wait for room themselves.
    async fn enter(&mut self) -> (OwnedSemaphorePermit, Receiver<()>) {
        let (sender, displaced) = channel();
        self.began.retain(|began| !began.is_closed());
        if self.free.available_permits() == 0 {
            self.began.pop_front();
        }
        self.began.push_back(sender);
        loop {
            // Nobody closes it.
            if let Ok(permit) = self.free.clone().acquire_owned().await {
                return (permit, displaced);
            }
        }
    }
}

/// What who connected wants; nothing when it wants nothing that can be given.
async fn ask(mut stream: TcpStream, name: &str) -> Option<(Request, TcpStream)> {
    match timeout(SOON, Request::read(&mut stream)).await {
        Ok(Ok(request)) => Some((request, stream)),
        // Browsers connect in advance, and leave.
        Err(_) | Ok(Err(Wrong::Gone(_))) => None,
        Ok(Err(wrong)) => {
            note(format!("{name}: {wrong}"));
            end(stream).await;
            None
        }
    }
}

/// Carries `stream` to where it wants to, and answers what came of it.
async fn forward(client: &Client, request: &Request, mut stream: TcpStream, name: &str) {
    let opened = match Place::tcp(&request.host, request.port) {
        None => Err((Reply::HostUnreachable, format!("{:?} is no host", request.host))),
        Some(place) => {
            let opening = client.carriers().open(Operation::Connect(place.to_string()));
            tokio::select! {
                opened = opening => opened.map_err(|error| (reply_to(&error), error.to_string())),
                () = gone(&stream) => return,
            }
        }
    };
    match opened {
        Ok(carrier) => {
            if request.reply(&mut stream, Reply::Succeeded).await.is_err() {
                return;
            }
            // Clients of a proxy leave as they like.
            if let Err(broken @ Broken::Connection(_)) = carrier.join_tcp(stream).await {
                note(format!("{name}: a connection broke: {broken}"));
            }
        }
        Err((reply, why)) => {
            note(format!("{name}: {why}"));
            if request.reply(&mut stream, reply).await.is_ok() {
                end(stream).await;
            }
        }
    }
}

fn reply_to(error: &OpenError) -> Reply {
    match error {
        OpenError::Unreached(_) => Reply::NetworkUnreachable,
        OpenError::Refused(refusal) => match refusal.reason {
            Reason::NotAllowed => Reply::NotAllowed,
            Reason::Unreachable => Reply::HostUnreachable,
            Reason::ConnectionRefused => Reply::ConnectionRefused,
            Reason::Other => Reply::Failed,
        },
    }
}

/// Waits until who waits for an answer has left: during an outage others may have its room.
async fn gone(stream: &TcpStream) {
    if let Ok(1..) = stream.peek(&mut [0]).await {
        std::future::pending().await // it talks already
    }
}

/// Ends a connection so that what was answered arrives.
async fn end(mut stream: TcpStream) {
    let (time, bytes) = LAST_WORDS;
    if stream.shutdown().await.is_ok() {
        let drain = async {
            let mut rest = stream.take(bytes);
            let mut buffer = [0; 1024];
            while let Ok(1..) = rest.read(&mut buffer).await {}
        };
        let _ = timeout(time, drain).await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn who_says_nothing_for_longest_leaves_for_the_next_one() {
        let mut asking = Asking::default();
        let (permit, displaced) = asking.enter().await;
        let first = tokio::spawn(async move {
            let _ = displaced.await;
            drop(permit);
        });
        let (waits_for_room, _) = asking.enter().await;
        let mut others = Vec::new();
        for _ in 2..MAX_ASKING {
            others.push(asking.enter().await);
        }
        assert!(!first.is_finished());
        let next = timeout(Duration::from_secs(60), asking.enter()).await;
        assert!(next.is_ok(), "the first one has left");
        assert!(others.iter_mut().all(|(_, displaced)| {
            displaced
                .try_recv()
                .is_err_and(|error| error == tokio::sync::oneshot::error::TryRecvError::Empty)
        }));
        drop(waits_for_room);
    }
}
