//! What waits to leave through a tunnel. The links are slower than what comes, so the queue stands here: one for each flow, each kept
//! short (FQ-CoDel, RFC 8290), so that a call does not wait behind a download.

use super::pieces::Pieces;
use crate::backlog::{Backlog, LOOK};
use bytes::Bytes;
use restp::packet::{ecn, flow, mark_ce};
use restp::{Connection, FlowStats, SendError};
use restp_base::time::{Duration as Span, Time};
use restp_sim::{Codel, FairQueue, FqCodel, Parcel, QueueLimit};
use std::collections::VecDeque;
use std::time::Duration;
use tokio::time::{Instant, sleep};

/// What the connection may hold that has not left, where no queue is fair: enough for the paths until one looks again.
const HELD: Duration = Duration::from_millis(10);

/// The longest round trip that is common beyond the tunnel (RFC 8289 §4.3).
const BEYOND: Span = Span::from_millis(100);
/// Round trips of the slowest link within which a connection inside has seen all that is usual: a packet lost twice comes three of them
/// late, what waited for it then comes in one burst, and lets the next burst begin, which is no standing queue.
const ROUNDS: u64 = 8;
/// More than that is a link that stands still.
const LONGEST: Span = Span::from_secs(5);

/// All that waits: 10 240 packets (RFC 8290 §5.2.1), and no more bytes than so many frames of Ethernet have.
const MOST_PACKETS: u64 = 10_240;
const MOST_BYTES: u64 = MOST_PACKETS * 1_514;

/// Packets that wait for one connection.
pub struct Outlet {
    queue: FairQueue<Bytes>,
    /// Messages of the next packet that are to be sent.
    next: VecDeque<Bytes>,
    backlog: Backlog,
    pieces: Pieces,
    /// Most bytes of a packet.
    limit: usize,
    began: Instant,
}

/// What comes next.
enum Step {
    /// Nothing waits.
    Rest,
    /// The connection holds enough.
    Look,
    /// This message leaves.
    Send(Bytes),
}

impl Outlet {
    /// For `connection`, which carries packets of `limit` bytes at most in `pieces`.
    pub fn of(connection: &Connection, pieces: Pieces, limit: usize) -> Self {
        let mut seed = [0; 8];
        // Who could foresee it could choose whose queue he shares. Without one nothing else is lost.
        let _ = getrandom::fill(&mut seed);
        let backlog = Backlog::of(&connection.stats());
        Self::new(backlog, pieces, limit, u64::from_le_bytes(seed))
    }

    fn new(backlog: Backlog, pieces: Pieces, limit: usize, seed: u64) -> Self {
        Outlet {
            queue: FairQueue::new(&parameters(limit), seed).expect("sound parameters"),
            next: VecDeque::new(),
            backlog,
            pieces,
            limit,
            began: Instant::now(),
        }
    }

    fn now(&self) -> Time {
        let nanos = self.began.elapsed().as_nanos();
        Time::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX))
    }

    /// Takes a packet, unless the connection carries none of that size. Where there is no room one of the flow that has most is dropped.
    pub fn push(&mut self, packet: &[u8]) {
        if packet.len() > self.limit {
            return;
        }
        let parcel = Parcel {
            bytes: u32::try_from(packet.len()).unwrap_or(u32::MAX),
            ecn: ecn(packet),
            may_fragment: false,
            flow: flow(packet),
            tag: 0,
        };
        self.queue
            .push(self.now(), parcel, Bytes::copy_from_slice(packet));
    }

    /// Sends what waits until the connection is over. Can be dropped and called again at any time.
    pub async fn run(&mut self, connection: &Connection) {
        loop {
            let message = match self.step(|| connection.stats()) {
                Step::Rest => return std::future::pending().await,
                Step::Look => {
                    sleep(LOOK).await;
                    continue;
                }
                Step::Send(message) => message,
            };
            match connection.send(message).await {
                Ok(()) => self.on_taken(),
                Err(SendError::Rejected(_)) => self.next.clear(),
                Err(_) => return,
            }
        }
    }

    fn step(&mut self, stats: impl FnOnce() -> FlowStats) -> Step {
        if self.next.is_empty() && self.queue.is_empty() {
            return Step::Rest;
        }
        let mut looked = None;
        let stats = || {
            let stats = stats();
            looked = Some(interval(&stats));
            stats
        };
        let is_enough = self
            .backlog
            .is_enough(stats, Instant::now(), HELD, self.pieces.message());
        if let Some(interval) = looked {
            // It is never too short.
            let _ = self.queue.set_interval(interval);
        }
        if is_enough {
            return Step::Look;
        }
        if self.next.is_empty()
            && let Some(packet) = self.pop()
        {
            self.next.extend(self.pieces.cut(&packet));
        }
        self.next.front().cloned().map_or(Step::Rest, Step::Send)
    }

    /// The connection has taken the next message.
    fn on_taken(&mut self) {
        if let Some(message) = self.next.pop_front() {
            self.backlog.take(message.len(), Instant::now());
        }
    }

    fn pop(&mut self) -> Option<Bytes> {
        let (packet, is_marked) = self.queue.pop(self.now())?;
        Some(if is_marked { mark_ce(&packet) } else { packet })
    }
}

/// The longest round trip that is usual for connections inside.
fn interval(stats: &FlowStats) -> Span {
    let links = stats.paths.iter().map(|path| path.srtt);
    let slowest = links.chain([stats.srtt]).flatten().max();
    (BEYOND + slowest.unwrap_or_default() * ROUNDS).min(LONGEST)
}

/// For packets of `limit` bytes at most.
fn parameters(limit: usize) -> FqCodel {
    let codel = Codel {
        limit: QueueLimit::Packets(MOST_PACKETS),
        mtu_bytes: limit as u64,
        ..FqCodel::default().codel
    };
    FqCodel {
        codel,
        most_bytes: MOST_BYTES,
        ..FqCodel::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use restp_base::flow::PathStats;
    use restp_base::machine::PathAddress;

    const LIMIT: usize = 1340;

    /// Of UDP from this port, with these bits of congestion.
    fn packet(port: u8, ecn: u8, bytes: usize) -> Vec<u8> {
        let mut packet = vec![0; bytes];
        packet[..10].copy_from_slice(&[0x45, ecn, 0, 0, 0, 0, 0x40, 0, 64, 17]);
        packet[21] = port;
        packet
    }

    fn outlet() -> Outlet {
        Outlet::new(Backlog::default(), Pieces::of(LIMIT), LIMIT, 1)
    }

    /// Of packets that go in six messages.
    fn large_outlet() -> Outlet {
        let pieces = Pieces::of(LIMIT);
        Outlet::new(Backlog::default(), pieces, usize::from(pieces.mtu()), 1)
    }

    /// A connection that has sent so many bytes, whose round trip is not known.
    fn sent(bytes: u64) -> FlowStats {
        FlowStats {
            sent_payload_bytes: bytes,
            ..FlowStats::default()
        }
    }

    /// Ports of those that leave while the connection sends all that it takes.
    fn ports(outlet: &mut Outlet, most: usize) -> Vec<u8> {
        let next = || match outlet.step(|| sent(u64::MAX)) {
            Step::Send(packet) => {
                outlet.on_taken();
                Some(packet[21])
            }
            _ => None,
        };
        std::iter::from_fn(next).take(most).collect()
    }

    #[test]
    fn a_call_does_not_wait_behind_a_download() {
        let mut outlet = outlet();
        (0..100).for_each(|_| outlet.push(&packet(1, 0, LIMIT)));
        assert_eq!(ports(&mut outlet, 2), [1, 1]);
        outlet.push(&packet(2, 0, 100));
        assert_eq!(ports(&mut outlet, 1), [2]);
        assert_eq!(ports(&mut outlet, 999), [1; 98]);
        assert!(matches!(outlet.step(|| sent(0)), Step::Rest));
    }

    /// Where it takes more no queue is fair.
    #[test]
    fn a_connection_that_sends_nothing_takes_eight_messages() {
        for mut outlet in [outlet(), large_outlet()] {
            let full = packet(1, 0, outlet.limit);
            (0..100).for_each(|_| outlet.push(&full));
            let dead = || FlowStats {
                congestion_window_bytes: 1,
                srtt: Some(BEYOND),
                ..sent(0)
            };
            for _ in 0..8 {
                assert!(matches!(outlet.step(dead), Step::Send(_)));
                outlet.on_taken();
            }
            assert!(matches!(outlet.step(dead), Step::Look));
            assert!(matches!(outlet.step(|| sent(8 * LIMIT as u64)), Step::Send(_)));
        }
    }

    #[test]
    fn a_call_waits_for_the_rest_of_one_large_packet_at_most() {
        let mut outlet = large_outlet();
        let large = packet(1, 0, outlet.limit);
        (0..9).for_each(|_| outlet.push(&large));
        assert_eq!(ports(&mut outlet, 2).len(), 2);
        outlet.push(&packet(2, 0, 100));
        assert_eq!(ports(&mut outlet, 6), [0, 0, 0, 0, 2, 1]);
    }

    #[test]
    fn a_packet_that_was_not_taken_in_full_is_the_next_again() {
        let mut outlet = outlet();
        (1..=2).for_each(|port| outlet.push(&packet(port, 0, 100)));
        for _ in 0..2 {
            assert!(matches!(outlet.step(|| sent(0)), Step::Send(packet) if packet[21] == 1));
        }
        outlet.on_taken();
        assert_eq!(ports(&mut outlet, 9), [2]);
    }

    #[tokio::test(start_paused = true)]
    async fn what_stands_is_marked_where_that_is_understood_and_dropped_elsewhere() {
        for (ecn, left, marked) in [(0b10, 50, 2), (0b00, 48, 0)] {
            let mut outlet = outlet();
            (0..50).for_each(|_| outlet.push(&packet(1, ecn, LIMIT)));
            let mut all = Vec::new();
            // Too long from 10 ms on: 200 ms later, and 200 ms after that.
            let stats = || FlowStats {
                srtt: Some(Span::from_micros(12_500)),
                ..sent(u64::MAX)
            };
            tokio::time::advance(Duration::from_millis(10)).await;
            while let Step::Send(packet) = outlet.step(stats) {
                outlet.on_taken();
                all.push(packet[1]);
                tokio::time::advance(Duration::from_millis(10)).await;
            }
            let is_ce = |bits: &&u8| **bits == 0b11;
            assert_eq!(
                (all.len(), all.iter().filter(is_ce).count()),
                (left, marked),
                "{ecn:b}"
            );
        }
    }

    #[test]
    fn the_slowest_link_decides_for_how_long_a_queue_may_stand() {
        let address = ([127, 0, 0, 1], 1).into();
        let path = PathAddress {
            local: address,
            remote: address,
        };
        let link = |ms| PathStats {
            srtt: Some(Span::from_millis(ms)),
            ..PathStats::new(path)
        };
        let interval = |links: &[u64]| {
            let paths = links.iter().map(|ms| link(*ms)).collect();
            let stats = FlowStats { paths, ..sent(0) };
            super::interval(&stats).as_nanos() / 1_000_000
        };
        assert_eq!(
            [interval(&[]), interval(&[20, 60]), interval(&[600, 20])],
            [100, 580, 4_900]
        );
        assert_eq!(interval(&[700]), 5_000, "it stands still");
    }

    /// Of a link on which each takes longer to leave than it may wait.
    #[tokio::test(start_paused = true)]
    async fn a_large_packet_behind_another_is_not_dropped_for_its_age() {
        let mut outlet = large_outlet();
        let mtu = outlet.limit;
        outlet.push(&packet(1, 0, mtu));
        for _ in 0..20 {
            outlet.push(&packet(1, 0, mtu));
            tokio::time::advance(Duration::from_millis(64)).await;
            for _ in 0..6 {
                assert!(matches!(outlet.step(|| sent(u64::MAX)), Step::Send(_)));
                outlet.on_taken();
            }
        }
        assert_eq!(outlet.queue.dropped(), 0);
    }

    /// Of hosts that send packets of 1340 bytes, which a device of larger ones carries too, a burst of 2000 was cut.
    #[test]
    fn many_small_packets_wait_and_no_more_bytes_than_of_frames() {
        for (bytes, expected) in [(40, 10_240), (1340, 10_240), (1515, 10_233), (8035, 1929)] {
            let mut outlet = large_outlet();
            (0..10_300).for_each(|_| outlet.push(&packet(1, 0, bytes)));
            assert_eq!(10_300 - outlet.queue.dropped(), expected, "{bytes}");
        }
    }

    /// A device whose MTU somebody has raised gives packets of up to 64 KiB: 10 240 of them were 671 MB.
    #[test]
    fn what_the_connection_does_not_carry_is_not_held() {
        let mut outlet = outlet();
        outlet.push(&packet(1, 0, LIMIT + 1));
        outlet.push(&packet(1, 0, usize::from(u16::MAX)));
        assert!(matches!(outlet.step(|| sent(0)), Step::Rest));
        outlet.push(&packet(1, 0, LIMIT));
        assert!(matches!(outlet.step(|| sent(0)), Step::Send(_)));
    }
}
