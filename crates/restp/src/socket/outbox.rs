//! Datagrams on their way out: those of one path and one size share a buffer and leave in one call.

use super::{Fault, SocketStats};
use restp_base::machine::{Datagram, Ecn, PathAddress};
use std::io;
use std::task::Poll;

/// Most bytes of one call: the length field of UDP without its own and the IP header. RFC 768.
const MAX_BATCH_BYTES: usize = 65_535 - 48;

/// Paths that can be filled side by side, so that a scheduler that alternates between them still makes full
/// batches.
const MAX_BATCHES: usize = 8;

/// Full batches gathered before they are sent. More would only keep the receiver waiting and leave the
/// processor's second-level cache.
const ENOUGH_FULL: usize = 2;

/// Datagrams of one path with one mark, one permission and one size; the last may be shorter.
#[derive(Debug)]
pub(crate) struct Batch {
    path: PathAddress,
    ecn: Ecn,
    may_fragment: bool,
    segment_bytes: usize,
    segments: usize,
    /// A shorter datagram ends a batch: the kernel cuts at multiples of the size.
    ended: bool,
    bytes: Vec<u8>,
    sent_bytes: usize,
    sent_segments: usize,
    /// What the kernel made of those it did not take.
    fault: Option<Fault>,
}

impl Batch {
    fn unused() -> Self {
        Batch {
            path: PathAddress::UNSET,
            ecn: Ecn::NotEct,
            may_fragment: false,
            segment_bytes: 0,
            segments: 0,
            ended: true,
            bytes: Vec::new(),
            sent_bytes: 0,
            sent_segments: 0,
            fault: None,
        }
    }

    fn restart(&mut self, datagram: &Datagram) {
        self.path = datagram.path;
        self.ecn = datagram.ecn;
        self.may_fragment = datagram.may_fragment;
        self.segment_bytes = datagram.len();
        self.segments = 0;
        self.ended = false;
        self.bytes.clear();
        self.sent_bytes = 0;
        self.sent_segments = 0;
        self.fault = None;
        self.append(datagram);
    }

    fn takes(&self, datagram: &Datagram, max_segments: usize) -> bool {
        !self.ended
            && !self.is_full(max_segments)
            && datagram.len() <= self.segment_bytes
            && datagram.ecn == self.ecn
            && datagram.may_fragment == self.may_fragment
    }

    /// No room for another datagram of full size?
    fn is_full(&self, max_segments: usize) -> bool {
        self.segments >= max_segments || self.bytes.len() + self.segment_bytes > MAX_BATCH_BYTES
    }

    fn append(&mut self, datagram: &Datagram) {
        self.bytes.extend_from_slice(&datagram.head);
        self.bytes.extend_from_slice(&datagram.body);
        self.segments += 1;
        self.ended = datagram.len() < self.segment_bytes;
    }

    /// Where the datagrams go.
    pub(crate) fn path(&self) -> &PathAddress {
        &self.path
    }

    /// Their mark.
    pub(crate) fn ecn(&self) -> Ecn {
        self.ecn
    }

    /// The network may cut them into pieces.
    pub(crate) fn may_fragment(&self) -> bool {
        self.may_fragment
    }

    /// Size of each datagram but perhaps the last.
    pub(crate) fn segment_bytes(&self) -> usize {
        self.segment_bytes
    }

    /// Nothing left to send?
    pub(crate) fn is_sent(&self) -> bool {
        self.sent_segments == self.segments
    }

    /// The path refuses what is sent on it.
    pub(crate) fn is_refused(&self) -> bool {
        self.fault == Some(Fault::Refusal)
    }

    fn left(&self) -> usize {
        self.segments - self.sent_segments
    }

    /// Sends what is left with `call`, which is given bytes and how many datagrams they are, and may take as many
    /// at once as `max_segments` says at that time. Stops where the kernel has no room; everything else that it
    /// refuses is a loss to the protocol, and the rest goes on. What is too long for the path and may be cut is cut only where it
    /// leaves by itself.
    pub(crate) fn send(
        &mut self,
        stats: &mut SocketStats,
        max_segments: impl Fn() -> usize,
        mut call: impl FnMut(&[u8], usize) -> io::Result<()>,
    ) -> Poll<()> {
        let mut one_by_one = false;
        while !self.is_sent() {
            let segments = if max_segments() > 1 && !one_by_one {
                self.left()
            } else {
                1
            };
            let end = self
                .bytes
                .len()
                .min(self.sent_bytes + segments * self.segment_bytes);
            match call(&self.bytes[self.sent_bytes..end], segments) {
                Ok(()) => {
                    stats.send_calls += 1;
                    stats.sent_datagrams += segments as u64;
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Poll::Pending,
                // A device without segmentation offload says so only now (EIO, EINVAL), and the socket remembers:
                // the same bytes go again one by one.
                Err(_) if segments > 1 && max_segments() == 1 => continue,
                Err(error) if segments > 1 && self.may_fragment && Fault::of(&error) == Fault::Loss => {
                    one_by_one = true;
                    continue;
                }
                Err(error) => {
                    tracing::debug!(%error, path = ?self.path, segments, "datagrams refused by the kernel");
                    stats.send_drops += segments as u64;
                    self.fault = Some(Fault::of(&error));
                }
            }
            self.sent_segments += segments;
            self.sent_bytes = end;
        }
        Poll::Ready(())
    }

    /// Gives up what is left; returns how many datagrams that are.
    pub(crate) fn give_up(&mut self) -> u64 {
        let left = self.left();
        self.sent_segments = self.segments;
        left as u64
    }
}

/// Batches being filled, in the order of their first datagrams. The order within a path is kept.
#[derive(Debug)]
pub(crate) struct Outbox {
    batches: Vec<Batch>,
    used: usize,
    full: usize,
}

impl Outbox {
    pub(crate) fn new() -> Self {
        Outbox {
            batches: (0..MAX_BATCHES).map(|_| Batch::unused()).collect(),
            used: 0,
            full: 0,
        }
    }

    /// Is there certainly room for one more datagram?
    pub(crate) fn has_room(&self) -> bool {
        self.used < MAX_BATCHES && self.full < ENOUGH_FULL
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.used == 0
    }

    /// Copies `datagram` behind those of its path, or opens a batch for it. Call only with [`Outbox::has_room`].
    /// `max_segments` is what one call of the socket takes.
    pub(crate) fn push(&mut self, datagram: &Datagram, max_segments: usize) {
        // The youngest batch of the path: an older one would overtake it.
        let open = self.batches[..self.used]
            .iter_mut()
            .rev()
            .find(|batch| batch.path == datagram.path);
        let batch = match open {
            Some(batch) if batch.takes(datagram, max_segments) => {
                batch.append(datagram);
                batch
            }
            _ => {
                self.used += 1;
                let batch = &mut self.batches[self.used - 1];
                batch.restart(datagram);
                batch
            }
        };
        // Without offload each datagram is a batch, and gathering only a few would cost a turn for each.
        self.full += usize::from(max_segments > 1 && batch.is_full(max_segments));
    }

    /// The batches to send, oldest first; those already sent are skipped by [`Batch::is_sent`].
    pub(crate) fn batches(&mut self) -> &mut [Batch] {
        &mut self.batches[..self.used]
    }

    /// Forgets everything; the buffers are used again.
    pub(crate) fn clear(&mut self) {
        self.used = 0;
        self.full = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bytes::Bytes;
    use restp_base::machine::Head;
    use std::net::SocketAddr;

    fn datagram(port: u16, head: &[u8], body: &'static [u8]) -> Datagram {
        let local = SocketAddr::from(([127, 0, 0, 1], 1));
        let path = PathAddress {
            local,
            remote: SocketAddr::from(([127, 0, 0, 1], port)),
        };
        Datagram {
            path,
            ecn: Ecn::Ect0,
            may_fragment: false,
            peer: 0,
            segment: None,
            head: Head::from_slice(head),
            body: Bytes::from_static(body),
        }
    }

    /// Destination port, datagrams and bytes of every batch.
    fn contents(outbox: &mut Outbox) -> Vec<(u16, usize, Vec<u8>)> {
        let describe = |batch: &mut Batch| (batch.path.remote.port(), batch.segments, batch.bytes.clone());
        outbox.batches().iter_mut().map(describe).collect()
    }

    #[test]
    fn datagrams_of_one_size_share_a_batch_and_a_shorter_one_ends_it() {
        let mut outbox = Outbox::new();
        for datagram in [
            datagram(7, b"ab", b"c"),
            datagram(7, b"", b"def"),
            datagram(7, b"g", b""),
            datagram(7, b"h", b"ij"),
        ] {
            outbox.push(&datagram, 64);
        }
        assert_eq!(
            contents(&mut outbox),
            [(7, 3, b"abcdefg".to_vec()), (7, 1, b"hij".to_vec())]
        );
    }

    #[test]
    fn a_longer_datagram_opens_a_new_batch() {
        let mut outbox = Outbox::new();
        outbox.push(&datagram(7, b"a", b""), 64);
        outbox.push(&datagram(7, b"b", b"c"), 64);
        assert_eq!(
            contents(&mut outbox),
            [(7, 1, b"a".to_vec()), (7, 1, b"bc".to_vec())]
        );
    }

    #[test]
    fn paths_are_filled_side_by_side() {
        let mut outbox = Outbox::new();
        for (port, body) in [(7, b"a"), (8, b"b"), (7, b"c"), (8, b"d")] {
            outbox.push(&datagram(port, b"", body), 64);
        }
        assert_eq!(
            contents(&mut outbox),
            [(7, 2, b"ac".to_vec()), (8, 2, b"bd".to_vec())]
        );
    }

    #[test]
    fn without_offload_every_datagram_is_its_own_batch() {
        let mut outbox = Outbox::new();
        outbox.push(&datagram(7, b"", b"a"), 1);
        outbox.push(&datagram(7, b"", b"b"), 1);
        assert_eq!(outbox.batches().len(), 2);
    }

    #[test]
    fn a_batch_stays_below_what_one_call_may_carry() {
        static LONG: [u8; 1472] = [0; 1472];
        let mut outbox = Outbox::new();
        while outbox.has_room() {
            outbox.push(&datagram(7, b"", &LONG), 64);
        }
        assert!(
            outbox
                .batches()
                .iter()
                .all(|batch| batch.bytes.len() <= MAX_BATCH_BYTES)
        );
        let datagrams: Vec<usize> = outbox.batches().iter().map(Batch::left).collect();
        assert_eq!(
            datagrams,
            [44, 44],
            "44 datagrams of 1472 bytes fit into one call"
        );
    }

    /// A batch of abc, def and g.
    fn three() -> Outbox {
        let mut outbox = Outbox::new();
        for body in [&b"abc"[..], b"def", b"g"] {
            outbox.push(&datagram(7, b"", body), 64);
        }
        outbox
    }

    #[test]
    fn where_offload_fails_the_same_datagrams_go_one_by_one() {
        for kind in [io::ErrorKind::Other, io::ErrorKind::InvalidInput] {
            let (mut outbox, mut stats) = (three(), SocketStats::default());
            let offload = std::cell::Cell::new(64);
            let mut sent = Vec::new();
            let done = outbox.batches()[0].send(
                &mut stats,
                || offload.get(),
                |bytes, segments| {
                    if segments > 1 {
                        // As quinn-udp does on such an error.
                        offload.set(1);
                        return Err(kind.into());
                    }
                    sent.push(bytes.to_vec());
                    Ok(())
                },
            );
            assert_eq!(
                (done, sent),
                (
                    Poll::Ready(()),
                    vec![b"abc".to_vec(), b"def".to_vec(), b"g".to_vec()]
                )
            );
            assert_eq!(
                (stats.sent_datagrams, stats.send_calls, stats.send_drops),
                (3, 3, 0)
            );
        }
    }

    #[test]
    fn what_may_be_cut_and_is_too_long_goes_one_by_one() {
        for may_fragment in [true, false] {
            let (mut outbox, mut stats) = (Outbox::new(), SocketStats::default());
            for body in [&b"abc"[..], b"def", b"g"] {
                let datagram = datagram(7, b"", body);
                outbox.push(
                    &Datagram {
                        may_fragment,
                        ..datagram
                    },
                    64,
                );
            }
            let mut sent = Vec::new();
            let done = outbox.batches()[0].send(
                &mut stats,
                || 64,
                |bytes, segments| {
                    if segments > 1 {
                        return Err(io::Error::other("as EMSGSIZE: neither no offload nor a refusal"));
                    }
                    sent.push(bytes.to_vec());
                    Ok(())
                },
            );
            assert_eq!(done, Poll::Ready(()));
            let all = [&b"abc"[..], b"def", b"g"].map(<[u8]>::to_vec);
            assert_eq!(sent, if may_fragment { all.to_vec() } else { vec![] });
            let lost = if may_fragment { 0 } else { 3 };
            assert_eq!((stats.sent_datagrams, stats.send_drops), (3 - lost, lost));
        }
    }

    #[test]
    fn a_full_kernel_buffer_keeps_the_rest_and_other_errors_cost_only_their_datagrams() {
        let (mut outbox, mut stats) = (three(), SocketStats::default());
        let answers = [
            Ok(()),
            Err(io::ErrorKind::WouldBlock.into()),
            Err(io::Error::from(io::ErrorKind::NetworkUnreachable)),
            Ok(()),
        ];
        let mut answers = answers.into_iter();
        let mut offered = Vec::new();
        let mut call = |bytes: &[u8], _| {
            offered.push(bytes.to_vec());
            answers.next().expect("no further call")
        };
        let batch = &mut outbox.batches()[0];
        assert_eq!(batch.send(&mut stats, || 1, &mut call), Poll::Pending);
        assert!(!batch.is_sent());
        assert_eq!(batch.send(&mut stats, || 1, &mut call), Poll::Ready(()));
        assert_eq!(offered, [&b"abc"[..], b"def", b"def", b"g"]);
        assert_eq!((stats.sent_datagrams, stats.send_drops), (2, 1));
        assert!(batch.is_refused(), "its path hears of it");
        outbox.clear();
        outbox.push(&datagram(7, b"", b"abc"), 64);
        assert!(!outbox.batches()[0].is_refused(), "the next one is innocent");
    }
}
