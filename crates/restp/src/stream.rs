//! A connection as a stream of bytes.

use crate::connection::{Connection, SendError};
use crate::waiters::Polled;
use bytes::Bytes;
use restp_base::flow::WriteError;
use restp_base::machine::Machine;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// Most bytes taken in one write: what is copied in vain when the send buffer is full.
const WRITE_BYTES: usize = 16 * 1024;

/// A [`Connection`] that reads and writes bytes. With fixed framing each write becomes one message, and messages
/// are read as if they stood in one row.
///
/// A shutdown finishes the sending direction. Dropped after that, the stream still delivers what was written;
/// dropped before, it breaks the connection off.
///
/// ```
/// use restp::{Acceptance, Endpoint, EndpointConfig, Preset, Trust};
/// use tokio::io::{AsyncReadExt, AsyncWriteExt};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let preset = Preset::named("default").ok_or("no such preset")?;
/// let config = EndpointConfig::new(preset.composition().check()?);
/// let server = Endpoint::bind("127.0.0.1:0".parse()?, config.clone().listen(7, Acceptance::Any), Trust::Nobody)?;
/// let key = server.public_key().ok_or("sealed")?;
/// let client = Endpoint::bind("127.0.0.1:0".parse()?, config, Trust::Key(key))?;
///
/// let mut sending = client.connect(server.local_addr(), 7).await?.into_stream();
/// let mut receiving = server.accept().await.ok_or("closed")?.into_stream();
/// sending.write_all(&[7; 100_000]).await?;
/// sending.shutdown().await?;
/// let mut received = Vec::new();
/// receiving.read_to_end(&mut received).await?;
/// assert_eq!(received.len(), 100_000);
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct Stream<M: Machine = crate::Transport> {
    connection: Connection<M>,
    unread: Bytes,
    reading: Polled,
    writing: Polled,
    /// What one write may hold, once the machine has said so.
    write_bytes: usize,
}

impl<M: Machine> Stream<M> {
    pub(crate) fn new(connection: Connection<M>) -> Self {
        Stream {
            connection,
            unread: Bytes::new(),
            reading: Polled::default(),
            writing: Polled::default(),
            write_bytes: WRITE_BYTES,
        }
    }

    /// The connection beneath, for its counters and its end.
    pub fn connection(&self) -> &Connection<M> {
        &self.connection
    }
}

impl<M: Machine> AsyncRead for Stream<M> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        // An empty message is no end of the stream.
        while self.unread.is_empty() {
            let stream = &mut *self;
            match ready!(stream.reading.poll(cx, || stream.connection.look_recv())) {
                Some(data) => self.unread = data,
                None => return Poll::Ready(Ok(())),
            }
        }
        let part = self.unread.len().min(buf.remaining());
        buf.put_slice(&self.unread.split_to(part));
        Poll::Ready(Ok(()))
    }
}

impl<M: Machine> AsyncWrite for Stream<M> {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        if buf.is_empty() {
            return Poll::Ready(Ok(0));
        }
        loop {
            let taken = buf.len().min(self.write_bytes);
            let part = Bytes::copy_from_slice(&buf[..taken]);
            let stream = &mut *self;
            match ready!(stream.writing.poll(cx, || stream.connection.look_send(&part))) {
                Ok(()) => return Poll::Ready(Ok(taken)),
                Err(SendError::Rejected(WriteError::TooLarge { limit, .. }))
                    if (1..taken).contains(&limit) =>
                {
                    self.write_bytes = limit;
                }
                Err(error) => return Poll::Ready(Err(io::Error::new(io::ErrorKind::BrokenPipe, error))),
            }
        }
    }

    /// What was written is on its way already.
    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.connection.finish();
        Poll::Ready(Ok(()))
    }
}
