//! Exact numbers of bytes from what delivers pieces of any size.

use super::CHUNK_BYTES;
use bytes::{Buf, Bytes};
use restp::{BiStream, Connection};

/// Most pieces of a chunk, more than full packets make: each may keep the whole buffer in memory in which it was received.
const MOST_PIECES: usize = 512;

/// What delivers bytes in order.
pub trait Pieces: Sync {
    /// The next ones; `None` when none will come.
    fn recv(&self) -> impl Future<Output = Option<Bytes>> + Send;
}

impl Pieces for Connection {
    fn recv(&self) -> impl Future<Output = Option<Bytes>> + Send {
        self.recv()
    }
}

impl Pieces for BiStream {
    async fn recv(&self) -> Option<Bytes> {
        self.recv().await.ok().flatten()
    }
}

/// The receiving direction of a connection or a stream.
pub struct Inlet<'a, S = Connection> {
    source: &'a S,
    rest: Bytes,
}

impl<'a, S: Pieces> Inlet<'a, S> {
    /// Nobody else reads from `source`.
    pub fn new(source: &'a S) -> Self {
        Self::after(source, Bytes::new())
    }

    /// The same, of which `rest` has been read already.
    pub fn after(source: &'a S, rest: Bytes) -> Self {
        Inlet { source, rest }
    }

    /// What has been read from the source and from here not yet.
    pub fn into_rest(self) -> Bytes {
        self.rest
    }

    /// Exactly `length` bytes, which the caller has found to be few; `None` when the data ended before.
    pub async fn bytes(&mut self, length: usize) -> Option<Vec<u8>> {
        let mut out = Vec::with_capacity(length.min(CHUNK_BYTES));
        while out.len() < length {
            self.refill().await?;
            let part = self.rest.len().min(length - out.len());
            out.extend_from_slice(&self.rest.split_to(part));
        }
        Some(out)
    }

    /// Exactly `N` bytes; `None` when the data ended before.
    pub async fn array<const N: usize>(&mut self) -> Option<[u8; N]> {
        self.bytes(N).await?.try_into().ok()
    }

    /// What has arrived, at least one byte and at most `limit` and about one chunk; `None` when the data has ended.
    /// Pieces are handed on together, so that what follows costs once per chunk and not once per datagram.
    pub async fn chunk(&mut self, limit: u64) -> Option<Vec<Bytes>> {
        self.refill().await?;
        let (mut pieces, mut length) = (Vec::new(), 0);
        loop {
            let room = limit - length;
            let part = usize::try_from(room).map_or(self.rest.len(), |room| room.min(self.rest.len()));
            length += part as u64;
            pieces.push(self.rest.split_to(part));
            let is_full = length >= CHUNK_BYTES as u64 || pieces.len() >= MOST_PIECES;
            if length == limit || is_full || !self.refill_now().await {
                return Some(pieces);
            }
        }
    }

    /// Waits until there is something.
    async fn refill(&mut self) -> Option<()> {
        while !self.rest.has_remaining() {
            self.rest = self.source.recv().await?;
        }
        Some(())
    }

    /// Takes what is there already.
    async fn refill_now(&mut self) -> bool {
        while !self.rest.has_remaining() {
            tokio::select! {
                biased;
                data = self.source.recv() => match data {
                    Some(data) => self.rest = data,
                    None => return false,
                },
                () = std::future::ready(()) => return false,
            }
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicUsize, Ordering};

    /// So many bytes, one by one.
    struct Drops(AtomicUsize);

    impl Pieces for Drops {
        async fn recv(&self) -> Option<Bytes> {
            let left = self.0.load(Ordering::Relaxed).checked_sub(1)?;
            self.0.store(left, Ordering::Relaxed);
            Some(Bytes::from_static(b"a"))
        }
    }

    #[tokio::test]
    async fn a_chunk_is_of_few_pieces_however_small_they_are() {
        let drops = Drops(AtomicUsize::new(2 * MOST_PIECES + 3));
        let mut inlet = Inlet::new(&drops);
        let mut pieces = Vec::new();
        while let Some(chunk) = inlet.chunk(u64::MAX).await {
            pieces.push(chunk.len());
        }
        assert_eq!(pieces, [MOST_PIECES, MOST_PIECES, 3]);
    }
}
