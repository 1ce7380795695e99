//! What an async user holds of one connection.

use crate::connect_error::ConnectError;
use crate::driver::shared::{PathEvent, Shared};
use crate::stream::Stream;
use crate::waiters::{Looked, until};
use bytes::Bytes;
use restp_base::flow::{Change, ChangeError, CloseReason, FlowId, FlowStats, Read, WriteError};
use restp_base::machine::{Machine, PathAddress};
use restp_base::observe::Changed;
use restp_proto::ValidComposition;
use restp_seal::PublicKey;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use thiserror::Error;

/// Why data was not taken for sending.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum SendError {
    /// This data cannot be sent at all, as it is.
    #[error(transparent)]
    Rejected(WriteError),
    /// No socket is bound to the local address of the path that was chosen.
    #[error("no socket is bound to {}, so no path begins there; choose one of the connection's paths", .0.local)]
    NotBound(PathAddress),
    /// The sending direction is finished, or the connection is over.
    #[error("the connection is closed for sending{}", .0.as_ref().map(|reason| format!(": {reason}")).unwrap_or_default())]
    Closed(Option<CloseReason>),
}

/// One connection. All methods take `&self`: one task may send while another receives.
///
/// Dropping it breaks the connection off, unless [`Connection::finish`] was called: then what was written is
/// still delivered, and what the peer still sends is dropped.
///
/// ```
/// use restp::{Acceptance, CloseReason, Endpoint, EndpointConfig, Preset, Trust};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let mut composition = Preset::named("default").ok_or("no such preset")?.composition();
/// composition.set("framing", "fixed")?; // one send is one receive
/// let config = EndpointConfig::new(composition.check()?);
/// let server = Endpoint::bind("127.0.0.1:0".parse()?, config.clone().listen(7, Acceptance::Exact), Trust::Nobody)?;
/// let key = server.public_key().ok_or("sealed")?;
/// let client = Endpoint::bind("127.0.0.1:0".parse()?, config, Trust::Key(key))?;
///
/// let asking = client.connect(server.local_addr(), 7).await?;
/// let answering = server.accept().await.ok_or("closed")?;
/// asking.send("what time is it?".into()).await?;
/// asking.finish(); // nothing more will be asked; the answer may still come
/// assert_eq!(answering.recv().await, Some("what time is it?".into()));
/// answering.send("noon".into()).await?;
/// answering.finish();
/// assert_eq!(asking.recv().await, Some("noon".into()));
/// assert_eq!(asking.recv().await, None);
/// assert_eq!(asking.closed().await, CloseReason::Finished);
/// assert!(asking.stats().handshake.is_some());
/// # Ok(())
/// # }
/// ```
pub struct Connection<M: Machine = crate::Transport> {
    pub(crate) shared: Arc<Shared<M>>,
    pub(crate) flow: FlowId,
    finished: AtomicBool,
}

impl<M: Machine> Connection<M> {
    pub(crate) fn new(shared: Arc<Shared<M>>, flow: FlowId) -> Self {
        Connection {
            shared,
            flow,
            finished: AtomicBool::new(false),
        }
    }

    /// The name of its flow in the machine.
    pub fn id(&self) -> FlowId {
        self.flow
    }

    /// Waits until both sides know of the connection.
    ///
    /// # Errors
    /// The reason, when it ended before.
    pub async fn established(&self) -> Result<(), CloseReason> {
        until(|| {
            let core = self.shared.lock();
            let Some(state) = core.flows.get(&self.flow) else {
                return Ok(Err(CloseReason::Aborted));
            };
            match &state.closed {
                _ if state.established => Ok(Ok(())),
                Some(reason) => Ok(Err(reason.clone())),
                None => Err(state.watchers.wait()),
            }
        })
        .await
    }

    /// Sends data: one message with fixed framing, the next bytes of the stream otherwise. Waits while the send
    /// buffer is full. Taken data is sent on even when the future is dropped; data not taken is not sent at all.
    ///
    /// # Errors
    /// When the message is too large, or the connection is finished or over.
    pub async fn send(&self, data: Bytes) -> Result<(), SendError> {
        until(|| self.look_send(&data)).await
    }

    /// The same, on a path of the application's choice, named as in [`Connection::stats`] and [`PathEvent`]. While that path
    /// does not answer, or is none of this connection, another carries the data.
    ///
    /// # Errors
    /// As [`Connection::send`], and when no path can begin at the local address.
    pub async fn send_on(&self, data: Bytes, path: PathAddress) -> Result<(), SendError> {
        until(|| self.look_write(&data, Some(path))).await
    }

    pub(crate) fn look_send(&self, data: &Bytes) -> Looked<Result<(), SendError>> {
        self.look_write(data, None)
    }

    fn look_write(&self, data: &Bytes, path: Option<PathAddress>) -> Looked<Result<(), SendError>> {
        let mut core = self.shared.lock();
        if core.stopped {
            return Ok(Err(SendError::Closed(Some(CloseReason::Aborted))));
        }
        let now = core.now();
        let written = match path {
            Some(path) if !core.sockets.iter().any(|socket| socket.serves(&path)) => {
                return Ok(Err(SendError::NotBound(path)));
            }
            Some(path) => core.machine.write_on(now, self.flow, data.clone(), path),
            None => core.machine.write(now, self.flow, data.clone()),
        };
        core.wake_driver();
        match written {
            Ok(()) => Ok(Ok(())),
            Err(WriteError::Closed) => {
                let reason = core.flows.get(&self.flow).and_then(|state| state.closed.clone());
                Ok(Err(SendError::Closed(reason)))
            }
            Err(WriteError::Blocked) => match core.flows.get(&self.flow) {
                Some(state) => Err(state.writers.wait()),
                None => Ok(Err(SendError::Closed(None))),
            },
            Err(rejected) => Ok(Err(SendError::Rejected(rejected))),
        }
    }

    /// Waits for the next message (fixed framing) or the next bytes of the stream. `None`: the peer has finished
    /// and everything was read, or the connection is over; [`Connection::closed`] tells them apart.
    pub async fn recv(&self) -> Option<Bytes> {
        until(|| self.look_recv()).await
    }

    pub(crate) fn look_recv(&self) -> Looked<Option<Bytes>> {
        let mut core = self.shared.lock();
        if core.broken {
            return Ok(None);
        }
        let now = core.now();
        match core.machine.read(now, self.flow) {
            Read::Data(data) => {
                // Room in the receive buffer is news for the peer.
                core.wake_driver();
                Ok(Some(data))
            }
            Read::End => Ok(None),
            Read::Empty => match core.flows.get(&self.flow) {
                Some(state) if state.closed.is_none() => Err(state.readers.wait()),
                _ => Ok(None),
            },
        }
    }

    /// No more sends will come. Everything sent before is delivered, then the peer reads the end. Returns at once.
    pub fn finish(&self) {
        self.finished.store(true, Ordering::Relaxed);
        let mut core = self.shared.lock();
        if !core.stopped {
            let now = core.now();
            core.machine.finish(now, self.flow);
            core.wake_driver();
        }
    }

    /// Breaks the connection off at once and tells the peer.
    pub fn abort(&self) {
        let mut core = self.shared.lock();
        if !core.stopped {
            let now = core.now();
            core.machine.abort(now, self.flow);
            core.wake_driver();
        }
    }

    /// Waits for the end of the connection.
    pub async fn closed(&self) -> CloseReason {
        until(|| {
            let core = self.shared.lock();
            match core.flows.get(&self.flow) {
                None => Ok(CloseReason::Aborted),
                Some(state) => match &state.closed {
                    Some(reason) => Ok(reason.clone()),
                    None => Err(state.watchers.wait()),
                },
            }
        })
        .await
    }

    /// Ends the connection in good order: finishes, drops what the peer still sends, and waits for the end.
    /// [`CloseReason::Finished`] means that the peer has everything.
    pub async fn close(self) -> CloseReason {
        self.finish();
        while self.recv().await.is_some() {}
        self.closed().await
    }

    /// Waits for the next news of a path: up, suspect, down, closed. `None` when the connection is over and all was
    /// told; where it has one path only there are none. News that nobody asks for are kept, the latest 256.
    pub async fn path_event(&self) -> Option<PathEvent> {
        until(|| {
            let mut core = self.shared.lock();
            let Some(state) = core.flows.get_mut(&self.flow) else {
                return Ok(None);
            };
            match state.news.pop_front() {
                Some(event) => Ok(Some(event)),
                None if state.closed.is_some() => Ok(None),
                None => Err(state.path_watchers.wait()),
            }
        })
        .await
    }

    /// One more path. `backup`: only used when no other works. Until the connection is established paths race,
    /// afterwards they join.
    ///
    /// # Errors
    /// When no socket is bound to its local address, or the connection has one path only.
    pub fn add_path(&self, path: PathAddress, backup: bool) -> Result<(), ConnectError> {
        let mut core = self.shared.lock();
        if core.stopped {
            return Err(ConnectError::Stopped);
        }
        if !core.sockets.iter().any(|socket| socket.serves(&path)) {
            return Err(ConnectError::not_bound(path));
        }
        let now = core.now();
        let added = core.machine.add_path(now, self.flow, path, backup);
        core.wake_driver();
        Ok(added?)
    }

    /// Takes a path away; the others go on with what it owed.
    ///
    /// # Errors
    /// When it is no path of this connection, or the only one that works.
    pub fn remove_path(&self, path: PathAddress) -> Result<(), ConnectError> {
        let mut core = self.shared.lock();
        if core.stopped {
            return Err(ConnectError::Stopped);
        }
        let now = core.now();
        let removed = core.machine.remove_path(now, self.flow, path);
        core.wake_driver();
        Ok(removed?)
    }

    /// Changes services while the connection runs: keys and values as in a composition, on top of those in force. What this end
    /// decides alone has changed when it returns; what the peer has to know takes a round trip or two, and
    /// [`Connection::take_changes`] tells what became of it.
    ///
    /// # Errors
    /// When the set-up has settled a service, the result would not be valid, or the peer cannot follow. Nothing is changed then.
    pub fn reconfigure<'a>(
        &self,
        set: impl IntoIterator<Item = (&'a str, &'a str)>,
    ) -> Result<Change, ChangeError> {
        let set = set.into_iter().map(|(key, value)| (key.into(), value.into()));
        let set: Vec<(String, String)> = set.collect();
        let mut core = self.shared.lock();
        if core.stopped {
            return Err(ChangeError::NotRunning);
        }
        let now = core.now();
        let changed = core.machine.reconfigure(now, self.flow, &set);
        core.wake_driver();
        changed
    }

    /// How services changed since the last call, the latest 256; those of the controller's own mode from the first call on.
    pub fn take_changes(&self) -> Vec<Changed> {
        let mut core = self.shared.lock();
        let kept = core.flows.get_mut(&self.flow);
        let mut changes: Vec<_> = kept
            .map(|state| state.changes.drain(..).collect())
            .unwrap_or_default();
        if !core.broken {
            let now = core.now();
            core.machine.take_changes(now, self.flow, &mut changes);
        }
        changes
    }

    /// Counters and estimates, for diagnostics only.
    pub fn stats(&self) -> FlowStats {
        self.shared.lock().machine.stats(self.flow).unwrap_or_default()
    }

    /// The local and remote address of the path in use; `None` once the machine has forgotten the flow.
    pub fn path(&self) -> Option<PathAddress> {
        self.stats().path
    }

    /// The connection as a stream of bytes for everything that reads and writes those.
    pub fn into_stream(self) -> Stream<M> {
        Stream::new(self)
    }
}

impl Connection {
    /// The key of the host at the other end, once it has proved it; `None` without a seal.
    pub fn peer_key(&self) -> Option<PublicKey> {
        self.shared.lock().machine.seal()?.flow_key(self.flow)
    }

    /// The composition as negotiated; `None` once the engine has forgotten the flow.
    pub fn composition(&self) -> Option<ValidComposition> {
        self.shared
            .lock()
            .machine
            .engine()
            .composition(self.flow)
            .cloned()
    }
}

impl<M: Machine> fmt::Debug for Connection<M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Connection")
            .field("flow", &self.flow)
            .finish_non_exhaustive()
    }
}

impl<M: Machine> Drop for Connection<M> {
    fn drop(&mut self) {
        let mut core = self.shared.lock();
        if self.finished.load(Ordering::Relaxed) {
            core.detach(self.flow)
        } else {
            core.discard(self.flow)
        }
    }
}
