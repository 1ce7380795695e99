//! The store of a cache that works: what is asked of it and put into it does not wait for its disk.

use super::disk::{BackgroundDisk, Disk};
use super::store::{DiskStore, StoreStats};
use bytes::Bytes;
use restp_rivals::itp::manifest::Digest;
use restp_rivals::itp::node::{Store, Wanted};
use std::io;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::task::Poll;

/// What can be read of a store.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Stored {
    /// The chunk with this digest; whether it may be damaged.
    Chunk(Digest, bool),
    /// A root manifest.
    Root(Wanted),
}

impl Disk for DiskStore {
    type Key = Stored;

    fn read(&mut self, key: &Stored, wait: bool) -> Poll<Option<Bytes>> {
        match key {
            Stored::Chunk(name, in_doubt) => self.get(name, *in_doubt, wait),
            Stored::Root(wanted) if wait => Poll::Ready(self.root(wanted)),
            Stored::Root(_) => Poll::Pending,
        }
    }
}

/// A store that a cache works with.
#[derive(Debug)]
pub struct Kept {
    disk: BackgroundDisk<DiskStore>,
    stats: Arc<StoreStats>,
}

impl Kept {
    /// `store`, which `wake` makes its node look at again.
    ///
    /// # Errors
    /// When the system gives no thread.
    pub fn new(store: DiskStore, wake: impl Fn() + Send + 'static) -> io::Result<Self> {
        Ok(Kept {
            stats: store.stats(),
            disk: BackgroundDisk::new(store, wake)?,
        })
    }

    fn write(
        &self,
        is_quick: impl FnOnce(&DiskStore) -> bool,
        write: impl FnOnce(&mut DiskStore) + Send + 'static,
    ) {
        if !self.disk.write(is_quick, write) {
            self.stats.failed.fetch_add(1, Ordering::Relaxed);
        }
    }
}

impl Store for Kept {
    fn get(&mut self, name: &Digest, in_doubt: bool) -> Poll<Option<Bytes>> {
        self.disk.poll_read(&Stored::Chunk(*name, in_doubt))
    }

    fn put(&mut self, name: &Digest, payload: &Bytes) {
        let (name, payload) = (*name, payload.clone());
        self.write(DiskStore::takes_at_once, move |store| store.put(&name, &payload));
    }

    fn root(&mut self, wanted: &Wanted) -> Poll<Option<Bytes>> {
        self.disk.poll_read(&Stored::Root(*wanted))
    }

    fn put_root(&mut self, wanted: &Wanted, body: &Bytes) {
        let (wanted, body) = (*wanted, body.clone());
        self.write(|_| false, move |store| store.put_root(&wanted, &body));
    }
}

impl Drop for Kept {
    fn drop(&mut self) {
        // What is not written is fetched again.
        self.write(|_| true, |store| _ = store.flush());
    }
}
