//! Receive buffers. One receive may bring many datagrams of one peer in one buffer; the payloads the protocol
//! keeps are slices of that buffer, and the buffer comes back when the last of them is dropped.

use bytes::Bytes;
use quinn_udp::RecvMeta;
use std::io::{self, IoSliceMut};
use std::sync::{Arc, Mutex, PoisonError};

/// Messages of one receive call. Each may hold up to 64 coalesced datagrams.
const MESSAGES: usize = 16;

/// Longest message: coalesced receives end at the length field of UDP.
const BUFFER_BYTES: usize = 65_536;

/// Free buffers kept for use again (4 MiB); what is above goes back to the system.
const MAX_FREE: usize = 64;

/// The messages of one receive call.
#[derive(Debug)]
pub(crate) struct Inbox {
    buffers: Vec<Box<[u8]>>,
    meta: Vec<RecvMeta>,
    filled: usize,
    pool: Arc<Pool>,
}

impl Inbox {
    pub(crate) fn new() -> Self {
        let pool = Arc::new(Pool::default());
        Inbox {
            buffers: (0..MESSAGES).map(|_| pool.take()).collect(),
            meta: vec![RecvMeta::default(); MESSAGES],
            filled: 0,
            pool,
        }
    }

    /// Lets `receive` fill the buffers and note what it filled.
    ///
    /// # Errors
    /// Those of `receive`; the inbox is then empty.
    pub(crate) fn fill(
        &mut self,
        receive: impl FnOnce(&mut [IoSliceMut<'_>], &mut [RecvMeta]) -> io::Result<usize>,
    ) -> io::Result<()> {
        self.filled = 0;
        let mut buffers = self.buffers.iter_mut();
        let mut slices: [IoSliceMut<'_>; MESSAGES] =
            std::array::from_fn(|_| IoSliceMut::new(buffers.next().map_or(&mut [], |buffer| buffer)));
        self.filled = receive(&mut slices, &mut self.meta)?;
        Ok(())
    }

    /// The received messages: what is known about each, and its bytes.
    pub(crate) fn messages(&mut self) -> impl Iterator<Item = (RecvMeta, Bytes)> {
        let filled = std::mem::take(&mut self.filled);
        let pool = &self.pool;
        self.meta
            .iter()
            .zip(&mut self.buffers)
            .take(filled)
            .map(|(meta, buffer)| (*meta, payload(pool, buffer, meta.len)))
    }
}

/// The first `len` bytes of `buffer`. A well-filled buffer is handed over and replaced; of a nearly empty one
/// the bytes are copied, so a message never holds more than twice its size. Within a message one kept datagram
/// holds its companions: at most 64 KiB, and only for those that a peer sent together.
fn payload(pool: &Arc<Pool>, buffer: &mut Box<[u8]>, len: usize) -> Bytes {
    if len < BUFFER_BYTES / 2 {
        return Bytes::copy_from_slice(&buffer[..len]);
    }
    let filled = std::mem::replace(buffer, pool.take());
    let mut bytes = Bytes::from_owner(Lent {
        buffer: Some(filled),
        pool: pool.clone(),
    });
    bytes.truncate(len);
    bytes
}

/// Buffers nobody uses.
#[derive(Debug, Default)]
struct Pool(Mutex<Vec<Box<[u8]>>>);

impl Pool {
    fn take(&self) -> Box<[u8]> {
        let free = self.0.lock().unwrap_or_else(PoisonError::into_inner).pop();
        free.unwrap_or_else(|| vec![0; BUFFER_BYTES].into_boxed_slice())
    }

    fn put(&self, buffer: Box<[u8]>) {
        let mut free = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if free.len() < MAX_FREE {
            free.push(buffer);
        }
    }
}

/// A buffer whose slices are in use; it returns to the pool with the last of them.
struct Lent {
    buffer: Option<Box<[u8]>>,
    pool: Arc<Pool>,
}

impl AsRef<[u8]> for Lent {
    fn as_ref(&self) -> &[u8] {
        self.buffer.as_deref().unwrap_or(&[])
    }
}

impl Drop for Lent {
    fn drop(&mut self) {
        if let Some(buffer) = self.buffer.take() {
            self.pool.put(buffer);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn receive(inbox: &mut Inbox, lens: &[usize]) -> Vec<Bytes> {
        inbox
            .fill(|slices, meta| {
                for (index, len) in lens.iter().enumerate() {
                    slices[index][..*len].fill(index as u8 + 1);
                    meta[index].len = *len;
                }
                Ok(lens.len())
            })
            .unwrap();
        inbox.messages().map(|(_, bytes)| bytes).collect()
    }

    #[test]
    fn a_full_buffer_is_lent_and_comes_back_with_its_last_slice() {
        let mut inbox = Inbox::new();
        let received = receive(&mut inbox, &[65_507]);
        let slice = received[0].slice(1472..2944);
        drop(received);
        assert_eq!(slice, vec![1; 1472]);
        assert_eq!(inbox.pool.0.lock().unwrap().len(), 0, "still held");
        drop(slice);
        assert_eq!(inbox.pool.0.lock().unwrap().len(), 1, "came back");
        receive(&mut inbox, &[65_507]);
        assert_eq!(inbox.pool.0.lock().unwrap().len(), 1, "was used again");
    }

    #[test]
    fn small_messages_are_copied_and_hold_no_buffer() {
        let mut inbox = Inbox::new();
        let received = receive(&mut inbox, &[10, 0, 20_000]);
        assert_eq!(
            received.iter().map(Bytes::len).collect::<Vec<_>>(),
            [10, 0, 20_000]
        );
        drop(inbox);
        assert_eq!(received[0], [1; 10][..]);
    }

    #[test]
    fn an_error_leaves_nothing_to_read() {
        let mut inbox = Inbox::new();
        receive(&mut inbox, &[5]);
        assert!(
            inbox
                .fill(|_, _| Err(io::ErrorKind::ConnectionRefused.into()))
                .is_err()
        );
        assert_eq!(inbox.messages().count(), 0);
    }

    #[test]
    fn free_buffers_are_bounded() {
        let pool = Pool::default();
        for _ in 0..2 * MAX_FREE {
            pool.put(Box::new([]));
        }
        assert_eq!(pool.0.lock().unwrap().len(), MAX_FREE);
    }
}
