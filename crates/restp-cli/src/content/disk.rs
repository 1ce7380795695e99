//! A disk that nobody waits for but a thread of its own: one that is slow, or a server of files that does not answer, holds up nobody
//! else at the port. What the system has in memory is read at once.

use bytes::Bytes;
use std::fmt;
use std::fs::File;
use std::io;
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, TryLockError};
use std::task::Poll;

/// What is to be written, and waits for the thread. What is beyond is not written.
const MOST_JOBS: usize = 1024;

/// What can be read.
pub trait Disk: fmt::Debug + Send + 'static {
    /// For what.
    type Question: Clone + PartialEq + fmt::Debug + Send;
    /// What is there. `Pending`: the disk would have to be waited for, and it does not `wait`.
    fn answer(&mut self, question: &Self::Question, wait: bool) -> Poll<Option<Bytes>>;
}

/// A disk and its thread.
#[derive(Debug)]
pub struct Attended<D: Disk> {
    desk: Arc<Mutex<Desk<D>>>,
    jobs: SyncSender<Job<D>>,
}

/// The thread has it while it waits for the disk.
#[derive(Debug)]
struct Desk<D: Disk> {
    disk: D,
    is_reading: bool,
    /// What was read last: whoever asks for it next does not have it read again.
    read: Option<(D::Question, Option<Bytes>)>,
}

type Job<D> = Box<dyn FnOnce(&mut Desk<D>) + Send>;

impl<D: Disk> Attended<D> {
    /// `wake`: who was told `Pending` is to ask again. It is called by the thread.
    ///
    /// # Errors
    /// When the system gives no thread.
    pub fn new(disk: D, wake: impl Fn() + Send + 'static) -> io::Result<Self> {
        let (jobs, waiting) = sync_channel(MOST_JOBS);
        let desk = Arc::new(Mutex::new(Desk {
            disk,
            is_reading: false,
            read: None,
        }));
        let own = desk.clone();
        std::thread::Builder::new()
            .name("disk".into())
            .spawn(move || attend(&own, &waiting, wake))?;
        Ok(Attended { desk, jobs })
    }

    /// None: the thread has it, and will wake who asks.
    fn desk(&self) -> Option<MutexGuard<'_, Desk<D>>> {
        match self.desk.try_lock() {
            Ok(desk) => Some(desk),
            Err(TryLockError::Poisoned(desk)) => Some(desk.into_inner()),
            Err(TryLockError::WouldBlock) => None,
        }
    }

    /// What answers `question`, if it is there without waiting. Else it is read, one question after the other.
    pub fn ask(&self, question: &D::Question) -> Poll<Option<Bytes>> {
        let Some(mut desk) = self.desk() else {
            return Poll::Pending;
        };
        if let Some((_, bytes)) = desk
            .read
            .take_if(|(read, bytes)| read == question && bytes.is_none())
        {
            return Poll::Ready(bytes); // it may be there later
        }
        if let Some((_, bytes)) = desk.read.as_ref().filter(|(read, _)| read == question) {
            return Poll::Ready(bytes.clone());
        }
        let answer = desk.disk.answer(question, false);
        if answer.is_ready() || desk.is_reading {
            return answer;
        }
        let read = question.clone();
        let sent = self.jobs.try_send(Box::new(move |desk| {
            desk.is_reading = false;
            if let Poll::Ready(bytes) = desk.disk.answer(&read, true) {
                desk.read = Some((read, bytes));
            }
        }));
        desk.is_reading = sent.is_ok();
        match sent {
            Err(TrySendError::Disconnected(_)) => Poll::Ready(None),
            // Full: what is written wakes as well.
            Ok(()) | Err(TrySendError::Full(_)) => Poll::Pending,
        }
    }

    /// Writes now what `is_quick`, else when the thread gets to it. False: too much waits already.
    pub fn write(
        &self,
        is_quick: impl FnOnce(&D) -> bool,
        write: impl FnOnce(&mut D) + Send + 'static,
    ) -> bool {
        if let Some(mut desk) = self.desk()
            && is_quick(&desk.disk)
        {
            write(&mut desk.disk);
            return true;
        }
        let job = |desk: &mut Desk<D>| write(&mut desk.disk);
        self.jobs.try_send(Box::new(job)).is_ok()
    }
}

fn attend<D: Disk>(desk: &Mutex<Desk<D>>, jobs: &Receiver<Job<D>>, wake: impl Fn()) {
    while let Ok(job) = jobs.recv() {
        job(&mut desk.lock().unwrap_or_else(PoisonError::into_inner));
        wake();
    }
}

/// Fills `into` with what is at `at`, if the system has all of it in memory.
#[cfg(target_os = "linux")]
pub fn read_at_once(file: &File, into: &mut [u8], at: u64) -> bool {
    let length = into.len();
    let buffers = &mut [io::IoSliceMut::new(into)];
    // Whatever is wrong is found again by who waits.
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
        type Question = Item;

        fn answer(&mut self, item: &Item, wait: bool) -> Poll<Option<Bytes>> {
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
            for (position, manifest) in tree.push(manifest::digest(chunk)) {
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
            Box::new(Attended::new(disk, wake).unwrap())
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
        let disk = Attended::new(disk, move || _ = woken.send(())).unwrap();
        assert_eq!([disk.ask(&item), disk.ask(&item)], [Poll::Pending, Poll::Pending]);
        open.send(()).unwrap();
        wakes.recv().unwrap();
        let mut asked = [Poll::Pending, Poll::Pending];
        while asked.iter().any(Poll::is_pending) {
            asked = [disk.ask(&item), disk.ask(&item)]; // the thread may be about to let go of it
        }
        let found = Poll::Ready(Some(Bytes::from_static(b"it")));
        assert_eq!((asked, reads.lock().unwrap().len()), ([found.clone(), found], 1));
    }
}
