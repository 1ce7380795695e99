//! A connection as a stream of bytes.

use crate::connection::{Connection, SendError};
use bytes::{Buf, Bytes};
use restp_base::flow::WriteError;
use restp_base::machine::Machine;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// Bytes of one write: small enough to fit into any send buffer's remaining room soon, large enough that the
/// cost of a call does not count.
const WRITE_BYTES: usize = 16 * 1024;

/// A [`Connection`] that reads and writes bytes. With fixed framing each write becomes one message, and messages
/// are read as if they stood in one row.
///
/// A shutdown finishes the sending direction. Dropped after that, the stream still delivers what was written;
/// dropped before, it breaks the connection off.
#[derive(Debug)]
pub struct Stream<M: Machine = restp_proto::Endpoint> {
    connection: Connection<M>,
    unread: Bytes,
    /// Taken from the writer, but the machine had no room: goes first.
    unsent: Bytes,
    /// What one write may hold, once the machine has said so.
    write_bytes: usize,
}

impl<M: Machine> Stream<M> {
    pub(crate) fn new(connection: Connection<M>) -> Self {
        Stream {
            connection,
            unread: Bytes::new(),
            unsent: Bytes::new(),
            write_bytes: WRITE_BYTES,
        }
    }

    /// The connection beneath, for its counters and its end.
    pub fn connection(&self) -> &Connection<M> {
        &self.connection
    }

    fn poll_unsent(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        while !self.unsent.is_empty() {
            let part = self.unsent.slice(..self.unsent.len().min(self.write_bytes));
            match ready!(self.connection.poll_send(cx, &part)) {
                Ok(()) => self.unsent.advance(part.len()),
                Err(SendError::Rejected(WriteError::TooLarge { limit, .. }))
                    if limit > 0 && limit < part.len() =>
                {
                    self.write_bytes = limit
                }
                Err(error) => {
                    self.unsent.clear();
                    return Poll::Ready(Err(io::Error::new(io::ErrorKind::BrokenPipe, error)));
                }
            }
        }
        Poll::Ready(Ok(()))
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
            match ready!(self.connection.poll_recv(cx)) {
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
        ready!(self.poll_unsent(cx))?;
        let taken = buf.len().min(self.write_bytes);
        self.unsent = Bytes::copy_from_slice(&buf[..taken]);
        match self.poll_unsent(cx) {
            Poll::Ready(Err(error)) => Poll::Ready(Err(error)),
            // Held here, and sent before anything else.
            Poll::Ready(Ok(())) | Poll::Pending => Poll::Ready(Ok(taken)),
        }
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.poll_unsent(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        ready!(self.poll_unsent(cx))?;
        self.connection.finish();
        Poll::Ready(Ok(()))
    }
}
