//! Disk access off the driver's thread: a slow disk, or a network file system that does not respond, blocks no other flow on the port.
//! What the page cache holds is read at once.

use bytes::Bytes;
use std::fmt;
use std::fs::File;
use std::io;
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, TryLockError};
use std::task::Poll;
use std::thread::JoinHandle;

/// Reads and writes in the queue of the thread. A write beyond that is not done.
const MOST_JOBS: usize = 1024;

/// What can be read.
pub trait Disk: fmt::Debug + Send + 'static {
    /// Names what is read.
    type Key: Clone + PartialEq + fmt::Debug + Send;
    /// Reads what `key` names. `Pending`: the read would block, and `may_block` is false.
    fn read(&mut self, key: &Self::Key, may_block: bool) -> Poll<Option<Bytes>>;
}

/// A disk, and the thread that blocks on it.
#[derive(Debug)]
pub struct BackgroundDisk<D: Disk> {
    state: Arc<Mutex<State<D>>>,
    jobs: SyncSender<Job<D>>,
    thread: JoinHandle<()>,
}

/// The thread holds the lock while it blocks.
#[derive(Debug)]
struct State<D: Disk> {
    disk: D,
    is_reading: bool,
    /// The last result of the thread, for all who ask for the same key.
    last_read: Option<(D::Key, Option<Bytes>)>,
}

type Job<D> = Box<dyn FnOnce(&mut State<D>) + Send>;

impl<D: Disk> BackgroundDisk<D> {
    /// The thread calls `wake` after each job: what was `Pending` is to be polled again.
    ///
    /// # Errors
    /// When the system gives no thread.
    pub fn new(disk: D, wake: impl Fn() + Send + 'static) -> io::Result<Self> {
        let (jobs, queue) = sync_channel(MOST_JOBS);
        let state = Arc::new(Mutex::new(State {
            disk,
            is_reading: false,
            last_read: None,
        }));
        let own = state.clone();
        let thread = std::thread::Builder::new()
            .name("disk".into())
            .spawn(move || run_jobs(&own, &queue, wake))?;
        Ok(BackgroundDisk { state, jobs, thread })
    }

    /// None: the thread holds it, and will wake.
    fn try_lock(&self) -> Option<MutexGuard<'_, State<D>>> {
        match self.state.try_lock() {
            Ok(state) => Some(state),
            Err(TryLockError::Poisoned(state)) => Some(state.into_inner()),
            Err(TryLockError::WouldBlock) => None,
        }
    }

    /// What `key` names, if it can be read without blocking. Otherwise the thread reads it, one key at a time.
    pub fn poll_read(&self, key: &D::Key) -> Poll<Option<Bytes>> {
        let Some(mut state) = self.try_lock() else {
            return Poll::Pending;
        };
        if let Some((_, missing)) = state
            .last_read
            .take_if(|(last, bytes)| last == key && bytes.is_none())
        {
            return Poll::Ready(missing); // it may be there later
        }
        if let Some((_, bytes)) = state.last_read.as_ref().filter(|(last, _)| last == key) {
            return Poll::Ready(bytes.clone());
        }
        let found = state.disk.read(key, false);
        if found.is_ready() {
            return found;
        }
        if self.thread.is_finished() {
            return Poll::Ready(None); // a read has panicked: nothing would wake
        }
        if state.is_reading {
            return Poll::Pending;
        }
        let key = key.clone();
        let job = self.jobs.try_send(Box::new(move |state| {
            state.is_reading = false;
            if let Poll::Ready(bytes) = state.disk.read(&key, true) {
                state.last_read = Some((key, bytes));
            }
        }));
        state.is_reading = job.is_ok();
        match job {
            Err(TrySendError::Disconnected(_)) => Poll::Ready(None),
            // Full: writes wake as well.
            Ok(()) | Err(TrySendError::Full(_)) => Poll::Pending,
        }
    }

    /// Writes at once if `is_quick`, otherwise on the thread. False: its queue is full.
    pub fn write(
        &self,
        is_quick: impl FnOnce(&D) -> bool,
        write: impl FnOnce(&mut D) + Send + 'static,
    ) -> bool {
        if let Some(mut state) = self.try_lock()
            && is_quick(&state.disk)
        {
            write(&mut state.disk);
            return true;
        }
        let job = |state: &mut State<D>| write(&mut state.disk);
        self.jobs.try_send(Box::new(job)).is_ok()
    }
}

fn run_jobs<D: Disk>(state: &Mutex<State<D>>, queue: &Receiver<Job<D>>, wake: impl Fn()) {
    while let Ok(job) = queue.recv() {
        job(&mut state.lock().unwrap_or_else(PoisonError::into_inner));
        wake();
    }
}

/// Fills `into` with what is at `at`, if the system has all of it in memory.
#[cfg(target_os = "linux")]
pub fn read_at_once(file: &File, into: &mut [u8], at: u64) -> bool {
    let length = into.len();
    let buffers = &mut [io::IoSliceMut::new(into)];
    // An error shows again in the blocking read.
    rustix::io::preadv2(file, buffers, at, rustix::io::ReadWriteFlags::NOWAIT) == Ok(length)
}

/// The same where nobody can tell.
#[cfg(not(target_os = "linux"))]
pub fn read_at_once(_: &File, _: &mut [u8], _: u64) -> bool {
    false
}

#[cfg(test)]
mod tests {
    use super::*;
    use restp::{Acceptance, Composition, Endpoint, EndpointConfig, Trust};
    use restp_base::flow::FlowId;
    use restp_rivals::itp::manifest::{self, Digest, TreeBuilder};
    use restp_rivals::itp::node::{FIRST_BYTES, Item, Keep, Node, NodeConfig, Published, Source, Wanted};
    use restp_rivals::itp::trust::Publisher;
    use std::collections::BTreeMap;
    use std::net::SocketAddr;
    use std::sync::mpsc::{Sender, channel};
    use std::thread::ThreadId;

    const PORT: u16 = 7;
    const CHUNK: usize = 1000;

    /// A disk of which nothing is in memory. It answers once the gate is open; nobody may wait for it in the thread of the driver.
    #[derive(Debug)]
    struct Stalled {
        items: BTreeMap<Item, Bytes>,
        driver: ThreadId,
        gate: Receiver<()>,
        reads: Arc<Mutex<Vec<Item>>>,
    }

    impl Disk for Stalled {
        type Key = Item;

        fn read(&mut self, item: &Item, wait: bool) -> Poll<Option<Bytes>> {
            if !wait {
                return Poll::Pending;
            }
            assert_ne!(std::thread::current().id(), self.driver, "everybody waits");
            let _ = self.gate.recv(); // until the other end goes
            self.reads.lock().unwrap().push(*item);
            Poll::Ready(self.items.get(item).cloned())
        }
    }

    #[derive(Debug)]
    struct InMemory(BTreeMap<Item, Bytes>);

    impl Source for InMemory {
        fn chunk(&mut self, number: u64) -> Poll<Option<Bytes>> {
            Poll::Ready(self.0.get(&Item::Chunk(number)).cloned())
        }
        fn manifest(&mut self, position: u64) -> Poll<Option<Bytes>> {
            Poll::Ready(self.0.get(&Item::Manifest(position)).cloned())
        }
    }

    #[derive(Debug)]
    struct Nothing;

    impl Keep for Nothing {
        fn recall(&mut self, _: Item, _: &Digest) -> Option<Bytes> {
            None
        }
    }

    /// Where the items of `data` are.
    fn published(data: &[u8], source: impl FnOnce(BTreeMap<Item, Bytes>) -> Box<dyn Source>) -> Published {
        let mut tree = TreeBuilder::new(data.len() as u64, CHUNK as u32, Bytes::new()).unwrap();
        let mut items = BTreeMap::new();
        for (number, chunk) in (0..).zip(data.chunks(CHUNK)) {
            items.insert(Item::Chunk(number), Bytes::copy_from_slice(chunk));
            for (position, manifest) in tree.push(chunk) {
                items.insert(Item::Manifest(position), manifest);
            }
        }
        let core = tree.finish().unwrap();
        let publisher = Publisher::from_seed(&[1; 32]).unwrap();
        let signature = publisher.sign(&manifest::digest(&core));
        Published::new(&core, signature, source(items)).unwrap()
    }

    async fn fetch(wanted: Wanted, from: SocketAddr) -> Vec<u8> {
        let local = "127.0.0.1:0".parse().unwrap();
        let endpoint = Endpoint::with_machine(Node::new(NodeConfig::new([2; 16])), &[local]).unwrap();
        let path = endpoint.paths_to(&[from])[0];
        let flow: FlowId = endpoint.call(|node, now| {
            let flow = node.fetch(wanted).unwrap();
            assert!(node.add_source(now, flow, path));
            flow
        });
        let connection = endpoint.adopt(flow);
        let root = connection.until(|node, _| node.root(flow).map(drop));
        root.await.unwrap();
        endpoint.call(|node, now| node.start(now, flow, Box::new(Nothing)));
        let mut got = BTreeMap::new();
        let all = connection.until(|node, _| {
            got.extend(std::iter::from_fn(|| node.take_arrived(flow)));
            node.is_complete(flow).then_some(())
        });
        all.await.unwrap();
        let chunks = got.into_iter().filter(|(item, _)| matches!(item, Item::Chunk(_)));
        chunks.flat_map(|(_, bytes)| bytes).collect()
    }

    #[tokio::test]
    async fn a_disk_that_does_not_answer_holds_up_neither_other_content_nor_connections_at_the_port() {
        let (stalled, data) = (vec![1; 20 * CHUNK], vec![2; 300 * CHUNK]);
        let config =
            || EndpointConfig::new(Composition::default().check().unwrap()).listen(PORT, Acceptance::Any);
        let local = || "127.0.0.1:0".parse().unwrap();
        let server = Endpoint::bind(local(), config(), Trust::Nobody).unwrap();
        let content = server.share_port(Node::new(NodeConfig::new([1; 16])), FIRST_BYTES);
        let (open, gate): (Sender<()>, _) = channel();
        let reads = Arc::default();
        let caller = content.caller();
        let slow = published(&stalled, |items| {
            let disk = Stalled {
                items,
                driver: std::thread::current().id(),
                gate,
                reads: Arc::clone(&reads),
            };
            let wake = move || _ = caller.call(Node::on_disk);
            Box::new(BackgroundDisk::new(disk, wake).unwrap())
        });
        let quick = published(&data, |items| Box::new(InMemory(items)));
        let (wanted, other) = (slow.wanted(), quick.wanted());
        content.call(|node, _| node.publish(slow));
        content.call(|node, _| node.publish(quick));
        let at = server.local_addr();
        let waiting = [tokio::spawn(fetch(wanted, at)), tokio::spawn(fetch(wanted, at))];
        // Both have asked for the first chunk, and the disk has stalled.
        while content.call(|node, _| node.waiting()) < 2 {
            tokio::task::yield_now().await;
        }

        assert!(fetch(other, at).await == data);
        let client = Endpoint::bind(local(), config(), Trust::Key(server.public_key().unwrap())).unwrap();
        let connection = client.connect(at, PORT).await.unwrap();
        connection.send(Bytes::from_static(b"hello")).await.unwrap();
        let accepted = server.accept().await.unwrap();
        assert_eq!(accepted.recv().await.as_deref(), Some(&b"hello"[..]));
        assert!(waiting.iter().all(|fetch| !fetch.is_finished()));
        assert!(reads.lock().unwrap().is_empty());

        drop(open);
        for fetch in waiting {
            assert!(fetch.await.unwrap() == stalled);
        }
        let mut all: Vec<Item> = reads.lock().unwrap().clone();
        let first = all.first().copied();
        assert_eq!(first, Some(Item::Chunk(0)), "in the order of questions");
        all.sort();
        all.dedup();
        assert_eq!(all.len(), 20); // once or twice each: one of both may be behind
    }

    #[test]
    fn what_several_wait_for_is_read_once() {
        let ((open, gate), (woken, wakes)) = (channel(), channel());
        let item = Item::Chunk(0);
        let reads = Arc::default();
        let disk = Stalled {
            items: BTreeMap::from([(item, Bytes::from_static(b"it"))]),
            driver: std::thread::current().id(),
            gate,
            reads: Arc::clone(&reads),
        };
        let disk = BackgroundDisk::new(disk, move || _ = woken.send(())).unwrap();
        assert_eq!(
            [disk.poll_read(&item), disk.poll_read(&item)],
            [Poll::Pending, Poll::Pending]
        );
        open.send(()).unwrap();
        wakes.recv().unwrap();
        let mut asked = [Poll::Pending, Poll::Pending];
        while asked.iter().any(Poll::is_pending) {
            asked = [disk.poll_read(&item), disk.poll_read(&item)]; // the thread may still hold the lock
        }
        let found = Poll::Ready(Some(Bytes::from_static(b"it")));
        assert_eq!((asked, reads.lock().unwrap().len()), ([found.clone(), found], 1));
    }

    #[derive(Debug)]
    struct Broken;

    impl Disk for Broken {
        type Key = ();

        fn read(&mut self, (): &(), may_block: bool) -> Poll<Option<Bytes>> {
            assert!(!may_block, "broken");
            Poll::Pending
        }
    }

    #[test]
    fn a_read_that_panics_leaves_nobody_pending_for_ever() {
        let disk = BackgroundDisk::new(Broken, || ()).unwrap();
        while disk.poll_read(&()).is_pending() {
            std::thread::yield_now();
        }
        assert_eq!(disk.poll_read(&()), Poll::Ready(None));
    }
}
