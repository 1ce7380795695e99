//! What a cache keeps, on disk, by digest: packs of chunks in the order in which they came, each with a list. When there are too many
//! bytes the pack that was used least recently goes. A chunk that is read for the first time since the start, or that is asked for
//! again, is held against its digest: what was damaged is dropped, and fetched anew. Where one was damaged that was good before, so is
//! each of its pack when it is read next.

use super::disk::read_at_once;
use super::pack::{self, LINE_BYTES, MOST_CHUNK, MOST_PACK, Pack, Place, key_of};
use crate::output::note;
use bytes::Bytes;
use restp_rivals::itp::manifest::{Digest, digest, names_of};
use restp_rivals::itp::node::Wanted;
use rustix::fs::FlockOperation;
use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File, OpenOptions};
use std::io::{self, ErrorKind, Read};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Poll, ready};
use std::time::SystemTime;

/// A store has this many packs, so that what goes at a time is a small share; none is smaller than this.
const PACKS: u64 = 64;
const LEAST_PACK: u64 = 1 << 20;
/// What waits to be written together; after a crash it is fetched again.
const TOGETHER: usize = 256 << 10;
/// Roots that are kept, bytes of one at most, and the share of the store that they take beside it.
const MOST_ROOTS: usize = 4096;
const MOST_ROOT: u64 = 65_507;
const SHARE_OF_ROOTS: u64 = 16;

/// What a store did, to be looked at while it works.
#[derive(Debug, Default)]
pub struct StoreStats {
    /// Bytes of chunks in it.
    pub bytes: AtomicU64,
    /// Chunks in it.
    pub chunks: AtomicU64,
    /// Chunks that were damaged, and dropped.
    pub damaged: AtomicU64,
    /// Chunks that the disk did not take.
    pub failed: AtomicU64,
    /// Chunks that made room for others.
    pub evicted: AtomicU64,
}

/// A store.
#[derive(Debug)]
pub struct DiskStore {
    folder: PathBuf,
    /// Held while it is in use.
    _lock: File,
    limit: u64,
    pack_bytes: u64,
    /// By the first eight bytes of the digest: of two chunks that share them the later one counts.
    places: BTreeMap<u64, Place>,
    packs: BTreeMap<u32, Pack>,
    /// Use of packs, the oldest first.
    by_use: BTreeSet<(u64, u32)>,
    uses: u64,
    /// The pack that is being filled, with what is not written of it.
    current: u32,
    data_tail: Vec<u8>,
    list_tail: Vec<u8>,
    bytes: u64,
    /// The user knows that the disk does not take everything.
    has_told: bool,
    stats: Arc<StoreStats>,
}

/// Does `folder` hold anything but what a new file system has?
fn holds_files(folder: &Path) -> io::Result<bool> {
    for entry in fs::read_dir(folder)? {
        if entry?.file_name() != "lost+found" {
            return Ok(true);
        }
    }
    Ok(false)
}

impl DiskStore {
    /// The store in `folder`, which is made where it is missing, of `limit` bytes.
    ///
    /// # Errors
    /// When the folder cannot be used, another cache uses it, or it holds something else: what is too much here is removed.
    pub fn open(folder: &Path, limit: u64) -> io::Result<Self> {
        fs::create_dir_all(folder)?;
        if !folder.join("roots").is_dir() && holds_files(folder)? {
            return Err(ErrorKind::DirectoryNotEmpty.into());
        }
        fs::create_dir_all(folder.join("roots"))?;
        let lock = OpenOptions::new()
            .create(true)
            .truncate(false)
            .write(true)
            .open(folder.join("lock"))?;
        rustix::fs::flock(&lock, FlockOperation::NonBlockingLockExclusive)?;
        let mut store = DiskStore {
            folder: folder.to_owned(),
            _lock: lock,
            limit,
            pack_bytes: (limit / PACKS).clamp(LEAST_PACK, MOST_PACK),
            places: BTreeMap::new(),
            packs: BTreeMap::new(),
            by_use: BTreeSet::new(),
            uses: 0,
            current: 0,
            data_tail: Vec::new(),
            list_tail: Vec::new(),
            bytes: 0,
            has_told: false,
            stats: Arc::new(StoreStats::default()),
        };
        store.load()?;
        store.make_room();
        store.publish_stats();
        Ok(store)
    }

    /// What it did, to be looked at while it works.
    pub fn stats(&self) -> Arc<StoreStats> {
        self.stats.clone()
    }

    /// Packs from before, in the order of their last use.
    fn load(&mut self) -> io::Result<()> {
        let mut found = Vec::new();
        for entry in fs::read_dir(&self.folder)? {
            let entry = entry?;
            let name = entry.file_name();
            let number = name.to_str().and_then(|name| name.strip_suffix(".list"));
            if let Some(number) = number.and_then(|number| u32::from_str_radix(number, 16).ok()) {
                found.push((entry.metadata()?.modified()?, number));
            }
        }
        found.sort();
        for (_, number) in &found {
            // What is no pack goes; what cannot be read now may be readable another time.
            if let Err(error) = self.load_pack(*number)
                && matches!(
                    error.kind(),
                    ErrorKind::NotFound | ErrorKind::InvalidData | ErrorKind::UnexpectedEof
                )
            {
                self.remove_files(*number);
            }
        }
        let last = found.iter().map(|(_, number)| *number).max();
        self.current = last.map_or(0, |last| last.wrapping_add(1));
        Ok(())
    }

    fn load_pack(&mut self, number: u32) -> io::Result<()> {
        let (mut pack, lines) = Pack::load(&self.folder, number)?;
        for (key, place) in lines {
            pack.keys.push(key);
            self.places.insert(key, place);
        }
        self.bytes += pack.bytes;
        self.uses += 1;
        pack.used = self.uses;
        self.by_use.insert((self.uses, number));
        self.packs.insert(number, pack);
        Ok(())
    }

    /// What it takes of its limit.
    fn weight(&self) -> u64 {
        self.packs.values().map(Pack::weight).sum()
    }

    /// Removes what was used least recently until there is room.
    fn make_room(&mut self) {
        while self.weight() > self.limit
            && let Some(&(used, number)) = self.by_use.iter().find(|(_, number)| *number != self.current)
        {
            self.by_use.remove(&(used, number));
            if let Some(pack) = self.packs.remove(&number) {
                self.bytes -= pack.bytes;
                for key in pack.keys {
                    if self.places.get(&key).is_some_and(|place| place.pack == number) {
                        self.places.remove(&key);
                        self.stats.evicted.fetch_add(1, Ordering::Relaxed);
                    }
                }
            }
            self.remove_files(number);
        }
    }

    fn remove_files(&self, number: u32) {
        for kind in ["pack", "list"] {
            // It may be gone already.
            let _ = fs::remove_file(pack::path(&self.folder, number, kind));
        }
    }

    fn publish_stats(&self) {
        self.stats.bytes.store(self.bytes, Ordering::Relaxed);
        self.stats
            .chunks
            .store(self.places.len() as u64, Ordering::Relaxed);
    }

    /// Pack `number` is the one used last, which its file remembers to the second.
    fn on_use(&mut self, number: u32, wait: bool) -> Poll<()> {
        let Some(pack) = self.packs.get_mut(&number) else {
            return Poll::Ready(());
        };
        if pack.used == self.uses {
            return Poll::Ready(());
        }
        let now = restp::clock::unix_seconds();
        let now = SystemTime::UNIX_EPOCH + std::time::Duration::from_secs(now);
        if pack.touched != Some(now) {
            if !wait {
                return Poll::Pending;
            }
            // Where that fails the order after the next start is another one.
            let _ = pack.list.set_modified(now);
            pack.touched = Some(now);
        }
        self.by_use.remove(&(pack.used, number));
        self.uses += 1;
        pack.used = self.uses;
        self.by_use.insert((self.uses, number));
        Poll::Ready(())
    }

    /// What is at `place`, if it can be read.
    fn read(&self, place: Place, wait: bool) -> Poll<Option<Bytes>> {
        let Some(pack) = self.packs.get(&place.pack) else {
            return Poll::Ready(None);
        };
        let written = pack.bytes
            - if place.pack == self.current {
                self.data_tail.len() as u64
            } else {
                0
            };
        let mut bytes = vec![0; place.length as usize];
        match u64::from(place.offset).checked_sub(written) {
            Some(waiting) => match (self.data_tail.get(waiting as usize..))
                .and_then(|tail| tail.get(..place.length as usize))
            {
                Some(found) => bytes.copy_from_slice(found),
                None => return Poll::Ready(None),
            },
            None if wait => {
                if pack.data.read_exact_at(&mut bytes, place.offset.into()).is_err() {
                    return Poll::Ready(None);
                }
            }
            None if read_at_once(&pack.data, &mut bytes, place.offset.into()) => {}
            None => return Poll::Pending,
        }
        Poll::Ready(Some(bytes.into()))
    }

    /// A chunk is put into memory: nothing has to be written for it, or removed.
    pub fn takes_at_once(&self) -> bool {
        let current = self.packs.get(&self.current);
        current.is_some_and(|pack| pack.weight() < self.pack_bytes)
            && self.data_tail.len() < TOGETHER
            && self.weight() <= self.limit
    }

    fn append(&mut self, name: &Digest, payload: &[u8]) -> io::Result<()> {
        if self
            .packs
            .get(&self.current)
            .is_some_and(|pack| pack.weight() >= self.pack_bytes)
        {
            self.flush()?;
            self.current = self.current.wrapping_add(1);
        }
        if !self.packs.contains_key(&self.current) {
            self.uses += 1;
            let pack = Pack::create(&self.folder, self.current, self.uses)?;
            self.by_use.insert((self.uses, self.current));
            self.packs.insert(self.current, pack);
        }
        if self.data_tail.len() >= TOGETHER {
            self.flush()?;
        }
        let (key, current) = (key_of(name), self.current);
        let Some(pack) = self.packs.get_mut(&current) else {
            return Ok(());
        };
        let (offset, length) = (pack.bytes as u32, payload.len() as u32);
        self.data_tail.extend_from_slice(payload);
        self.list_tail.extend_from_slice(name);
        self.list_tail.extend_from_slice(&offset.to_be_bytes());
        self.list_tail.extend_from_slice(&length.to_be_bytes());
        pack.bytes += u64::from(length);
        pack.keys.push(key);
        self.bytes += u64::from(length);
        self.places.insert(
            key,
            Place {
                pack: current,
                offset,
                length,
                is_known: true,
            },
        );
        self.make_room();
        self.publish_stats();
        Ok(())
    }

    /// Writes what waits: first the chunks, then the list that names them.
    ///
    /// # Errors
    /// When the disk does not take it. What waited is forgotten.
    pub fn flush(&mut self) -> io::Result<()> {
        let (data, list) = (
            std::mem::take(&mut self.data_tail),
            std::mem::take(&mut self.list_tail),
        );
        let Some(pack) = self.packs.get_mut(&self.current) else {
            return Ok(());
        };
        let at = pack.bytes - data.len() as u64;
        let lines = (pack.keys.len() * LINE_BYTES - list.len()) as u64;
        let written = pack
            .data
            .write_all_at(&data, at)
            .and_then(|()| pack.list.write_all_at(&list, lines));
        if written.is_err() {
            let lost = pack.keys.split_off(lines as usize / LINE_BYTES);
            pack.bytes = at;
            self.bytes -= data.len() as u64;
            self.stats.failed.fetch_add(lost.len() as u64, Ordering::Relaxed);
            let current = self.current;
            for key in lost {
                if self
                    .places
                    .get(&key)
                    .is_some_and(|place| place.pack == current && u64::from(place.offset) >= at)
                {
                    self.places.remove(&key);
                }
            }
            self.publish_stats();
        }
        written
    }

    fn root_path(&self, wanted: &Wanted) -> PathBuf {
        let name = [&wanted.root[..], &wanted.publisher.0].concat();
        self.folder
            .join("roots")
            .join(crate::transfer::hex(&digest(&name)))
    }

    /// Too many roots: those that were written first go.
    fn bound_roots(&self) -> io::Result<()> {
        let mut all = Vec::new();
        for entry in fs::read_dir(self.folder.join("roots"))? {
            let entry = entry?;
            let is_root = |name: &str| name.len() == 64 && name.bytes().all(|byte| byte.is_ascii_hexdigit());
            if !entry.file_name().to_str().is_some_and(is_root) {
                continue;
            }
            let found = entry.metadata()?;
            all.push((found.modified()?, entry.path(), found.len()));
        }
        all.sort();
        let mut bytes = 0;
        for (newer, (_, path, length)) in all.iter().rev().enumerate() {
            bytes += length;
            if newer >= MOST_ROOTS || bytes > self.limit / SHARE_OF_ROOTS {
                fs::remove_file(path)?;
            }
        }
        Ok(())
    }
}

impl DiskStore {
    /// The chunk with this digest, if it is there. `in_doubt`: it may be damaged. `Pending`: the disk would have to be waited for, and it
    /// does not `wait`.
    pub fn get(&mut self, name: &Digest, in_doubt: bool, wait: bool) -> Poll<Option<Bytes>> {
        let key = key_of(name);
        let Some(&place) = self.places.get(&key) else {
            return Poll::Ready(None);
        };
        let found = ready!(self.read(place, wait));
        let is_good = match &found {
            // Whoever asks may have made up a digest whose beginning is that of another chunk: that one is not damaged.
            Some(found) if in_doubt || !place.is_known => {
                let mut is_another = false;
                let is_named = names_of(found).any(|own| {
                    is_another |= key_of(&own) == key;
                    own == *name
                });
                if is_another && !is_named {
                    return Poll::Ready(None);
                }
                is_named
            }
            Some(_) => true,
            None => false,
        };
        if !is_good {
            self.stats.damaged.fetch_add(1, Ordering::Relaxed);
            self.places.remove(&key);
            if place.is_known {
                self.doubt(place.pack);
            }
            self.publish_stats();
            return Poll::Ready(None);
        }
        if let Some(known) = self.places.get_mut(&key) {
            known.is_known = true;
        }
        ready!(self.on_use(place.pack, wait));
        Poll::Ready(found)
    }

    /// Something has changed on the disk below the pack `number`: nothing of it is good before it was looked at again.
    fn doubt(&mut self, number: u32) {
        let file = pack::path(&self.folder, number, "pack");
        note(format!(
            "{}: a chunk was damaged, and is fetched anew; each one in this file is looked at before it is sent",
            file.display()
        ));
        for key in self.packs.get(&number).into_iter().flat_map(|pack| &pack.keys) {
            if let Some(place) = self.places.get_mut(key).filter(|place| place.pack == number) {
                place.is_known = false;
            }
        }
    }

    /// Keeps a chunk that has this digest.
    pub fn put(&mut self, name: &Digest, payload: &Bytes) {
        if payload.len() > MOST_CHUNK as usize || payload.len() as u64 > self.limit {
            return;
        }
        if let Err(error) = self.append(name, payload) {
            self.stats.failed.fetch_add(1, Ordering::Relaxed);
            if !std::mem::replace(&mut self.has_told, true) {
                let folder = self.folder.display();
                crate::output::note(format!(
                    "{folder}: {error}; what cannot be kept is only handed on"
                ));
            }
        }
    }

    /// A root manifest, if it is there.
    pub fn root(&self, wanted: &Wanted) -> Option<Bytes> {
        let file = File::open(self.root_path(wanted)).ok()?;
        let mut body = Vec::new();
        file.take(MOST_ROOT).read_to_end(&mut body).ok()?;
        Some(body.into())
    }

    /// Keeps one.
    pub fn put_root(&self, wanted: &Wanted, body: &Bytes) {
        let written = restp::files::prepare(&self.root_path(wanted), body)
            .and_then(|file| file.persist(self.root_path(wanted)).map_err(|error| error.error))
            .and_then(|_| self.bound_roots());
        if written.is_err() {
            self.stats.failed.fetch_add(1, Ordering::Relaxed);
        }
    }
}

impl Drop for DiskStore {
    fn drop(&mut self) {
        // What is not written is fetched again.
        let _ = self.flush();
    }
}

#[cfg(test)]
mod tests;
