//! Streams of a connection that carries many (`framing = "streams"`).

use crate::connection::Connection;
use crate::driver::shared::Shared;
use crate::waiters::{Looked, Polled, StreamWaiters, until};
use bytes::Bytes;
use restp_base::flow::{FlowId, Read};
use restp_base::machine::Machine;
use restp_base::streams::{StreamEvent, StreamId, StreamOpenError, StreamRead, StreamWriteError, Streams};
use std::fmt;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, ready};
use thiserror::Error;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// Most bytes taken in one write: what is copied in vain when the stream's share of the send buffer is full.
const WRITE_BYTES: usize = 16 * 1024;

/// Why what is read of a stream ends before its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum StreamReadError {
    /// The peer has broken its direction off, with this code.
    #[error("the peer has broken off the stream, code {0}")]
    Reset(u32),
    /// The connection ended first, or this end has stopped reading.
    #[error("the stream is not read to its end: the connection is over, or reading was stopped")]
    Lost,
}

impl<M: Machine> Connection<M> {
    /// Opens a stream of its own within the connection. Waits while the peer takes no more.
    ///
    /// # Errors
    /// When the connection carries no streams (`framing = "streams"` in its composition), is finished, or over.
    pub async fn open_stream(&self) -> Result<BiStream<M>, StreamOpenError> {
        let opened = until(|| {
            on_streams(&self.shared, self.flow, |streams, waiters| {
                let (Some(streams), Some(waiters)) = (streams, waiters) else {
                    return Ok(Err(StreamOpenError::Closed));
                };
                match streams.open() {
                    Err(StreamOpenError::Limit) => Err(waiters.openers.wait()),
                    other => Ok(other),
                }
            })
        });
        Ok(self.stream(opened.await?))
    }

    /// Waits for the next stream that the peer opens. `None`: the peer has finished and opens no more, the connection is over, or
    /// carries none.
    pub async fn accept_stream(&self) -> Option<BiStream<M>> {
        let accepted = until(|| self.look_accept());
        Some(self.stream(accepted.await?))
    }

    fn look_accept(&self) -> Looked<Option<StreamId>> {
        let mut core = self.shared.lock();
        if core.broken {
            return Ok(None);
        }
        let now = core.now();
        let core = &mut *core;
        core.wake_driver();
        let Some(streams) = core.machine.streams(now, self.flow) else {
            return Ok(None);
        };
        let accepted = streams.accept();
        // Nothing but its end is read of a flow with streams.
        if accepted.is_some() || core.machine.read(now, self.flow) == Read::End {
            return Ok(accepted);
        }
        match core.flows.get(&self.flow) {
            Some(state) if state.closed.is_none() => Err(state.streams.acceptors.wait()),
            _ => Ok(None),
        }
    }

    /// The composition has streams, and both ends know.
    pub fn carries_streams(&self) -> bool {
        on_streams(&self.shared, self.flow, |streams, _| streams.is_some())
    }

    fn stream(&self, id: StreamId) -> BiStream<M> {
        BiStream {
            shared: self.shared.clone(),
            flow: self.flow,
            id,
            finished: AtomicBool::new(false),
            stopped: AtomicBool::new(false),
            unread: Bytes::new(),
            reading: Polled::default(),
            writing: Polled::default(),
        }
    }
}

/// Calls with the streams of the flow, and with who waits for something of them: nobody can any more once it is over.
fn on_streams<M: Machine, T>(
    shared: &Shared<M>,
    flow: FlowId,
    call: impl FnOnce(Option<&mut dyn Streams>, Option<&mut StreamWaiters>) -> T,
) -> T {
    let mut core = shared.lock();
    if core.broken {
        return call(None, None);
    }
    let now = core.now();
    let core = &mut *core;
    let state = core.flows.get_mut(&flow).filter(|state| state.closed.is_none());
    let waiters = state.map(|state| &mut state.streams);
    let result = call(core.machine.streams(now, flow), waiters);
    core.wake_driver();
    result
}

/// One stream of a connection: bytes both ways, in order, whatever becomes of other streams. All methods take `&self`: one task
/// may send while another receives.
///
/// Dropping it asks the peer to break its direction off, and breaks off this one unless [`BiStream::finish`] was called: then what
/// was written is still delivered. It may outlive its [`Connection`], if that was finished.
///
/// ```
/// use restp::{Acceptance, Endpoint, EndpointConfig, Preset, Trust};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let mut composition = Preset::named("default").ok_or("no such preset")?.composition();
/// composition.set("framing", "streams")?;
/// composition.set("ordering", "unordered")?; // each stream is ordered by itself
/// let config = EndpointConfig::new(composition.check()?);
/// let server = Endpoint::bind("127.0.0.1:0".parse()?, config.clone().listen(7, Acceptance::Exact), Trust::Nobody)?;
/// let key = server.public_key().ok_or("sealed")?;
/// let client = Endpoint::bind("127.0.0.1:0".parse()?, config, Trust::Key(key))?;
///
/// let asking = client.connect(server.local_addr(), 7).await?;
/// let answering = server.accept().await.ok_or("closed")?;
/// for question in ["what time is it?", "and the day?"] {
///     let stream = asking.open_stream().await?;
///     stream.send(question.into()).await?;
///     stream.finish();
///     let other = answering.accept_stream().await.ok_or("over")?;
///     assert_eq!(other.recv().await?, Some(question.into()));
///     assert_eq!(other.recv().await?, None);
///     other.send("noon".into()).await?;
///     other.finish();
///     assert_eq!(stream.recv().await?, Some("noon".into()));
/// }
/// # Ok(())
/// # }
/// ```
pub struct BiStream<M: Machine = crate::Transport> {
    shared: Arc<Shared<M>>,
    flow: FlowId,
    id: StreamId,
    finished: AtomicBool,
    stopped: AtomicBool,
    /// Of what was read, for who takes fewer bytes at a time.
    unread: Bytes,
    reading: Polled,
    writing: Polled,
}

impl<M: Machine> BiStream<M> {
    /// Its number within the connection.
    pub fn id(&self) -> StreamId {
        self.id
    }

    /// Sends bytes. Waits while the stream's share of the send buffer is full. Bytes that were taken are sent on even when the
    /// future is dropped; those not taken are not sent at all.
    ///
    /// # Errors
    /// When the peer has stopped reading, the direction was finished, or the connection is over.
    pub async fn send(&self, data: Bytes) -> Result<(), StreamWriteError> {
        until(|| self.look_send(&data)).await
    }

    fn look_send(&self, data: &Bytes) -> Looked<Result<(), StreamWriteError>> {
        on_streams(&self.shared, self.flow, |streams, waiters| {
            let (Some(streams), Some(waiters)) = (streams, waiters) else {
                return Ok(Err(StreamWriteError::Closed));
            };
            match streams.write(self.id, data.clone()) {
                Err(StreamWriteError::Blocked) => Err(waiters.writers.entry(self.id).or_default().wait()),
                other => Ok(other),
            }
        })
    }

    /// Waits for the next bytes. `None`: the peer has finished, and everything was read.
    ///
    /// # Errors
    /// When the peer has broken its direction off, or the connection ended first.
    pub async fn recv(&self) -> Result<Option<Bytes>, StreamReadError> {
        until(|| self.look_recv()).await
    }

    fn look_recv(&self) -> Looked<Result<Option<Bytes>, StreamReadError>> {
        on_streams(&self.shared, self.flow, |streams, waiters| {
            // A stream that is over reads as ended, but who stopped has not read to the end.
            let reads = streams.filter(|_| !self.stopped.load(Ordering::Relaxed));
            let read = reads.map_or(StreamRead::Lost, |streams| streams.read(self.id));
            match (read, waiters) {
                (StreamRead::Data(data), _) => Ok(Ok(Some(data))),
                (StreamRead::End, _) => Ok(Ok(None)),
                (StreamRead::Reset(code), _) => Ok(Err(StreamReadError::Reset(code))),
                (StreamRead::Empty, Some(waiters)) => Err(waiters.readers.entry(self.id).or_default().wait()),
                (StreamRead::Empty, None) | (StreamRead::Lost, _) => Ok(Err(StreamReadError::Lost)),
            }
        })
    }

    /// No more sends will come: everything sent before is delivered, then the peer reads the end. Returns at once.
    pub fn finish(&self) {
        self.finished.store(true, Ordering::Relaxed);
        self.tell(|streams| streams.finish(self.id));
    }

    /// Breaks off the direction to the peer, which reads `code`; what has not left is dropped.
    pub fn reset(&self, code: u32) {
        self.tell(|streams| streams.reset(self.id, code));
    }

    /// Nothing is read any more: the peer is asked to break its direction off, and told `code`.
    pub fn stop(&self, code: u32) {
        self.stopped.store(true, Ordering::Relaxed);
        on_streams(&self.shared, self.flow, |streams, waiters| {
            if let Some(streams) = streams {
                streams.stop(self.id, code);
            }
            if let Some(waiters) = waiters {
                waiters.on_event(StreamEvent::Readable(self.id)); // another task may wait for bytes
            }
        });
    }

    fn tell(&self, call: impl FnOnce(&mut dyn Streams)) {
        on_streams(&self.shared, self.flow, |streams, _| {
            if let Some(streams) = streams {
                call(streams);
            }
        });
    }
}

impl<M: Machine> AsyncRead for BiStream<M> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        if self.unread.is_empty() {
            let mut reading = std::mem::take(&mut self.reading);
            let read = reading.poll(cx, || self.look_recv());
            self.reading = reading;
            match ready!(read) {
                Ok(data) => self.unread = data.unwrap_or_default(),
                Err(error) => return Poll::Ready(Err(io::Error::new(io::ErrorKind::ConnectionReset, error))),
            }
        }
        let part = self.unread.len().min(buf.remaining());
        buf.put_slice(&self.unread.split_to(part));
        Poll::Ready(Ok(()))
    }
}

impl<M: Machine> AsyncWrite for BiStream<M> {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        let taken = buf.len().min(WRITE_BYTES);
        let part = Bytes::copy_from_slice(&buf[..taken]);
        let mut writing = std::mem::take(&mut self.writing);
        let sent = writing.poll(cx, || self.look_send(&part));
        self.writing = writing;
        let sent = ready!(sent);
        let broken = |error| io::Error::new(io::ErrorKind::BrokenPipe, error);
        Poll::Ready(sent.map(|()| taken).map_err(broken))
    }

    /// What was written is on its way already.
    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.finish();
        Poll::Ready(Ok(()))
    }
}

impl<M: Machine> fmt::Debug for BiStream<M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("BiStream")
            .field("flow", &self.flow)
            .field("id", &self.id)
            .finish_non_exhaustive()
    }
}

impl<M: Machine> Drop for BiStream<M> {
    fn drop(&mut self) {
        let finished = *self.finished.get_mut();
        on_streams(&self.shared, self.flow, |streams, waiters| {
            if let Some(streams) = streams {
                streams.stop(self.id, 0);
                if !finished {
                    streams.reset(self.id, 0);
                }
            }
            if let Some(waiters) = waiters {
                waiters.forget(self.id);
            }
        });
    }
}
