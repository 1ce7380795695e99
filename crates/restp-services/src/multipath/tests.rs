//! A connection over two paths through its doors, in virtual time. The paths are senders without a wire: what leaves is
//! logged, and the test says what the peer acknowledges. Segments have 1000 bytes; round trips are 20 and 60 ms.

use super::*;
use crate::ack::{AckReport, Detail};
use crate::congestion::CongestionChoice;
use crate::flow_control::WindowParameters;
use crate::framing::{Framing, SendBuffer};
use crate::loss_handling::{Differentiation, LossHandling};
use crate::ordering::Ordering;
use crate::path_management::{Mapping, PathMode, RetransmitTarget};
use crate::recovery::{FastRecovery, PipeParameters, Recovery, RecoveryChoice, RtoParameters};
use crate::scheduling::Scheduling;
use crate::sender::{CreditUnit, Filling, PeerReport, SenderParameters, Transmission, WindowProbes};

mod buffer;
mod looks;
mod receiving;

const SEGMENT: usize = 1000;
/// First number of the connection, and of the peer's.
const FIRST: u64 = 1000;

fn at(ms: u64) -> Time {
    Time::ZERO + Duration::from_millis(ms)
}

/// A path without a wire.
#[derive(Debug)]
struct Lane {
    sender: Sender,
    /// Which numbers of the connection its own stand for, and those assigned and not sent.
    mapping: Mapping,
    queued: VecDeque<u64>,
    address: PathAddress,
    works: bool,
    over: bool,
    asks_without_data: bool,
    /// Numbers of the connection that left, ends announced, questions asked, acknowledgements due.
    left: Vec<u64>,
    ends: Vec<u64>,
    asked: usize,
    acknowledges: usize,
    /// How often it was asked anything that costs the more the more paths there are.
    looks: std::cell::Cell<usize>,
}

impl Lane {
    fn look(&self) {
        self.looks.set(self.looks.get() + 1);
    }

    fn new(host: u8, rtt_ms: u64) -> Self {
        let parameters = SenderParameters {
            framing: Framing::Fixed,
            segment_bytes: SEGMENT as u32,
            reserved_bytes: 0,
            send_buffer: SendBuffer::of_waiting(usize::MAX),
            numbered: true,
            retransmits: true,
            has_feedback: true,
            pointer_only: false,
            paces: false,
            reduces_in_proportion: false,
            probes_tail: false,
            thins_acks: false,
            repairs_cost: false,
            limits_outstanding: false,
            loss_handling: LossHandling::Congestion,
            credit: CreditUnit::Segments,
            window_probes: WindowProbes::Steady,
            filling: Filling::Whole,
            retransmit_target: RetransmitTarget::Asap,
            spares_fresh: false,
            differentiation: Differentiation::Split,
        };
        let pipe = PipeParameters::new(Detail::Sack { max_blocks: 4 });
        let recovery = Recovery::new(RecoveryChoice::Pipe, FastRecovery::NewReno, true, pipe);
        let controller = CongestionChoice::NewReno(Default::default()).build(SEGMENT as u64);
        let rto = RtoParameters::default();
        let mut sender = Sender::new(at(0), 1, 1, parameters, recovery, controller, rto);
        sender.bind_credit(false);
        sender.establish(at(0), Some(Duration::from_millis(rtt_ms)), false);
        let socket = |host: u8| std::net::SocketAddr::from(([10, 0, 0, host], 0));
        Lane {
            sender,
            mapping: Mapping::new(1),
            queued: VecDeque::new(),
            address: PathAddress {
                local: socket(host),
                remote: socket(9),
            },
            works: true,
            over: false,
            asks_without_data: true,
            left: Vec::new(),
            ends: Vec::new(),
            asked: 0,
            acknowledges: 0,
            looks: std::cell::Cell::default(),
        }
    }

    /// The peer has acknowledged the path's numbers below `pointer`.
    fn ack(&mut self, now: Time, pointer: u64) {
        let peer = PeerReport {
            report: &AckReport::pointer(pointer),
            grant: None,
            is_bare_duplicate: false,
            echoed_rtt: None,
            echoes_mark: false,
            repaired: 0,
        };
        self.sender.on_feedback(now, &peer).expect("possible");
        self.mapping.release_below(pointer);
    }
}

impl Path for Lane {
    const UNMEASURED_RTT: Duration = Duration::ZERO;

    fn sender(&self) -> &Sender {
        &self.sender
    }
    fn sender_mut(&mut self) -> &mut Sender {
        &mut self.sender
    }
    fn address(&self) -> PathAddress {
        self.address
    }
    fn is_over(&self) -> bool {
        self.over
    }
    fn is_closed(&self) -> bool {
        self.over
    }
    fn standing(&self) -> Option<(u8, bool)> {
        self.look();
        (!self.over).then_some((u8::from(!self.works), false))
    }
    fn rank(&self, _copies: bool) -> Option<u8> {
        self.look();
        self.standing().map(|(rank, _)| rank)
    }
    fn segment_bytes(&self) -> Option<u32> {
        self.look();
        Some(SEGMENT as u32)
    }
    fn largest_segment_bytes(&self) -> u32 {
        SEGMENT as u32
    }
    fn takes(&mut self, now: Time, bytes: u64) -> bool {
        self.look();
        self.sender.takes(now, bytes)
    }
    fn assign(&mut self, now: Time, number: u64, payload: Bytes) -> u64 {
        self.queued.push_back(number);
        self.sender.assign(now, payload)
    }
    fn carried(&self) -> impl Iterator<Item = u64> + '_ {
        let outstanding = self.mapping.outstanding().map(|(_, carried)| carried);
        outstanding.chain(self.queued.iter().copied())
    }
    fn acknowledge_soon(&mut self) {
        self.acknowledges += 1;
    }
    fn announce_end(&mut self, fin: u64) {
        self.ends.push(fin);
    }
    fn asks_window(&mut self) -> bool {
        self.asked += usize::from(self.asks_without_data);
        self.asks_without_data
    }
    fn abort(&mut self, _now: Time) {
        self.over = true;
    }
    fn poll_transmit(&mut self, now: Time, _shared: &Shared, out: &mut Datagram) -> bool {
        self.look();
        let Some(Transmission::Segment(segment)) = self.sender.next(now, false) else {
            return false;
        };
        if segment.is_new {
            let carried = self.queued.pop_front();
            self.mapping.push(carried);
            self.left.extend(carried);
        }
        out.body = segment.payload.unwrap_or_default();
        true
    }
    fn deadline(&self, _judged: bool) -> Option<(Time, Wakeup)> {
        self.look();
        None
    }
    fn count(&self, _total: &mut FlowStats) {}
}

/// A connection over two paths, established at once; the peer takes `window` from the first number on.
fn connection(numbering: Numbering, reinjection: Reinjection, window: u64) -> Multipath<Lane> {
    let tx = DataSender::new(DataSenderParameters {
        numbering,
        first: FIRST,
        window,
        framing: Framing::Coalesce,
        segment_bytes: SEGMENT as u32,
        send_buffer: SendBuffer::of_waiting(100 * SEGMENT),
        paths: PathMode::Spreading,
        scheduling: Some(Scheduling::FastestRtt),
        reinjection,
        stall_timeout: Some(Duration::from_secs(9)),
    });
    let rx = match numbering {
        Numbering::Segments => {
            let window = WindowParameters { segments: 4 };
            let mut rx = DataReceiver::of_segments(window, true, SEGMENT as u32);
            rx.begin(FIRST, Ordering::Ordered, window);
            rx
        }
        Numbering::Bytes => DataReceiver::of_bytes(FIRST, 0, 4 * SEGMENT as u32, 16),
    };
    let mut connection = Multipath::new(at(0), true, tx, rx, true);
    for (ordinal, rtt) in [20, 60].into_iter().enumerate() {
        connection
            .paths_mut()
            .put(ordinal, Lane::new(ordinal as u8 + 1, rtt));
        connection.tell(ordinal, PathState::Up);
    }
    assert!(connection.establish(at(0)) && !connection.establish(at(0)));
    while connection.poll_notice().is_some() {}
    connection
}

fn write(connection: &mut Multipath<Lane>, segments: usize) {
    for _ in 0..segments {
        connection
            .write(Bytes::from(vec![7; SEGMENT]), None)
            .expect("there is room");
    }
}

/// Everything that leaves now; what each path has sent of the connection's numbers.
fn flush(connection: &mut Multipath<Lane>, now: Time) -> [Vec<u64>; 2] {
    let mut out = Datagram::empty();
    while connection.poll_transmit(now, &mut out).is_some() {}
    [0, 1].map(|path| std::mem::take(&mut connection.paths_mut()[path].left))
}

/// Both windows of ten segments are filled, the fast path's first.
#[test]
fn data_fill_the_faster_path_first_and_a_pointer_lets_them_go() {
    let mut connection = connection(Numbering::Segments, Reinjection::Early, 100);
    write(&mut connection, 100);
    assert_eq!(
        connection.write(Bytes::from_static(b"x"), None),
        Err(WriteError::Blocked)
    );
    let [fast, slow] = flush(&mut connection, at(0));
    assert_eq!(fast.first(), Some(&FIRST));
    assert!(!slow.is_empty() && fast.iter().all(|number| !slow.contains(number)));
    let sent = (fast.len() + slow.len()) as u64;
    let kept = connection.stats().memory_bytes;
    assert!(!connection.on_data_ack(FIRST + sent + 1, None), "never sent");
    assert!(connection.on_data_ack(FIRST + sent, Some(100)));
    assert!(connection.stats().memory_bytes < kept);
    assert_eq!(connection.poll_notice(), None, "half the buffer still waits");
    for (path, own) in [fast.len(), slow.len()].into_iter().enumerate() {
        connection.paths_mut()[path].ack(at(60), own as u64 + 1);
    }
    for ms in [60, 61] {
        flush(&mut connection, at(ms));
        for path in 0..2 {
            let sent = connection.paths()[path].sender.next_number();
            connection.paths_mut()[path].ack(at(ms), sent);
        }
    }
    assert_eq!(connection.poll_notice(), Some(Notice::Writable));
}

#[test]
fn a_path_that_timed_out_gives_its_data_to_the_other_once() {
    let mut connection = connection(Numbering::Bytes, Reinjection::OnTimeout, 1 << 20);
    write(&mut connection, 2);
    let [fast, slow] = flush(&mut connection, at(0));
    assert_eq!((fast, slow), (vec![FIRST, FIRST + 1000], vec![]));
    connection.paths_mut()[0].works = false;
    connection.place_again(0);
    assert_eq!(flush(&mut connection, at(300))[1], [FIRST, FIRST + 1000]);
    connection.place_again(0);
    connection.place_again(1);
    assert_eq!(flush(&mut connection, at(600)), [vec![], vec![]], "both have it");
    assert_eq!(connection.stats().retransmitted_packets, 2);
}

/// A pointer that came over another path, before the path itself was answered, stood for the lowest number outstanding, which
/// then left again although its own path had no trouble.
#[test]
fn what_the_peer_has_by_another_path_is_not_given_to_a_third() {
    let mut connection = connection(Numbering::Bytes, Reinjection::OnTimeout, 1 << 20);
    write(&mut connection, 12);
    let [fast, slow] = flush(&mut connection, at(0));
    assert_eq!(
        (fast.len(), slow.as_slice()),
        (10, [FIRST + 10_000, FIRST + 11_000].as_slice())
    );
    assert!(connection.on_data_ack(slow[0], Some(1 << 20)));
    connection.place_again(0);
    connection.paths_mut()[0].ack(at(20), 11);
    assert_eq!(flush(&mut connection, at(20)), [vec![], vec![]]);
}

/// The first number leaves at once, however full the path is, and new data are not kept waiting by all that may have arrived.
#[test]
fn data_of_a_silent_path_leave_before_new_ones_and_take_turns_with_them() {
    let mut connection = connection(Numbering::Segments, Reinjection::Early, 100);
    write(&mut connection, 4);
    let [silent, _] = flush(&mut connection, at(0));
    assert_eq!(silent, [FIRST, FIRST + 1, FIRST + 2, FIRST + 3]);
    connection.paths_mut()[0].works = false;
    connection.reinject(0, Some(FIRST + 2));
    write(&mut connection, 2);
    let [_, taken] = flush(&mut connection, at(50));
    assert_eq!(
        taken,
        [FIRST, FIRST + 2, FIRST + 4, FIRST + 1, FIRST + 3, FIRST + 5]
    );
}

#[test]
fn a_shut_window_is_asked_once_per_timeout_and_not_for_ever() {
    let mut connection = connection(Numbering::Segments, Reinjection::Early, 1);
    write(&mut connection, 2);
    flush(&mut connection, at(0));
    connection.paths_mut()[0].ack(at(20), 2);
    connection.on_data_ack(FIRST + 1, Some(0));
    assert_eq!(flush(&mut connection, at(20)), [vec![], vec![]]);
    let (probe_at, why) = connection.deadline().expect("it asks");
    assert_eq!(
        (probe_at, why),
        (at(20) + connection.paths()[0].sender.timeout(), Wakeup::Probe)
    );
    let mut out = Datagram::empty();
    for _ in 0..2 {
        let _no_packet_of_the_lane = connection.poll_transmit(probe_at, &mut out);
    }
    assert_eq!(connection.paths()[0].asked, 1);
    connection.on_deadline(at(9_019));
    assert!(connection.is_established());
    connection.on_deadline(at(9_020));
    assert_eq!(
        connection.poll_notice(),
        Some(Notice::Closed(CloseReason::TimedOut(Duration::from_secs(9))))
    );
    assert!(connection.is_closed(), "its paths were broken off");
}

#[test]
fn where_only_data_can_ask_one_byte_does() {
    let mut connection = connection(Numbering::Bytes, Reinjection::OnTimeout, 0);
    connection.paths_mut()[0].asks_without_data = false;
    write(&mut connection, 1);
    let mut out = Datagram::empty();
    assert_eq!(connection.poll_transmit(at(0), &mut out), None);
    let (probe_at, _) = connection.deadline().expect("it asks");
    assert_eq!(connection.poll_transmit(probe_at, &mut out), Some(0));
    assert_eq!(out.body.len(), 1);
}

/// A peer may acknowledge a path's numbers and not keep what they carried.
#[test]
fn a_pointer_that_stands_although_all_has_arrived_is_reminded_by_its_segment() {
    let mut connection = connection(Numbering::Segments, Reinjection::Early, 100);
    write(&mut connection, 2);
    flush(&mut connection, at(0));
    connection.paths_mut()[0].ack(at(20), 3);
    assert_eq!(flush(&mut connection, at(20))[0], [] as [u64; 0]);
    let (due, why) = connection.deadline().expect("it reminds");
    assert_eq!(why, Wakeup::Retransmission);
    assert_eq!(flush(&mut connection, due), [vec![FIRST], vec![]]);
}

#[test]
fn the_end_takes_a_number_and_is_said_until_it_is_acknowledged() {
    let mut connection = connection(Numbering::Segments, Reinjection::Early, 100);
    write(&mut connection, 1);
    connection.finish();
    assert_eq!(
        connection.write(Bytes::from_static(b"x"), None),
        Err(WriteError::Closed)
    );
    flush(&mut connection, at(0));
    assert_eq!(connection.paths()[0].ends, [FIRST + 1]);
    let (again_at, _) = connection.deadline().expect("it is said again");
    flush(&mut connection, again_at);
    assert_eq!(connection.paths()[0].ends, [FIRST + 1, FIRST + 1]);
    assert!(connection.on_data_ack(FIRST + 2, Some(100)));
    assert!(!connection.concludes(again_at), "the peer has not finished");
    assert_eq!(connection.on_data_fin(again_at, FIRST), Ok(true));
    assert_eq!(connection.poll_notice(), Some(Notice::Readable));
    assert_eq!(connection.read(), Read::End);
    assert!(connection.concludes(again_at));
    assert_eq!(
        connection.poll_notice(),
        Some(Notice::Closed(CloseReason::Finished))
    );
}

#[test]
fn data_of_any_path_are_put_in_order_and_the_end_does_not_move() {
    for numbering in [Numbering::Segments, Numbering::Bytes] {
        let step = if numbering == Numbering::Bytes { 3 } else { 1 };
        let mut connection = connection(numbering, Reinjection::Early, 100);
        let mut data = |number, text: &'static [u8]| {
            connection.on_data(at(1), FIRST + number * step, Bytes::from_static(text))
        };
        assert_eq!(data(1, b"two"), Ok(false));
        assert_eq!(data(0, b"one"), Ok(false));
        assert_eq!(data(0, b"one"), Ok(false));
        let end = FIRST + 3 * step;
        assert_eq!(connection.on_data_fin(at(2), end), Ok(false));
        assert_eq!(connection.on_data_fin(at(2), end + 1), Err(Contradiction));
        let late = Bytes::from_static(b"six");
        assert_eq!(connection.on_data(at(3), end, late.clone()), Err(Contradiction));
        let three = Bytes::from_static(b"end");
        assert_eq!(connection.on_data(at(3), FIRST + 2 * step, three), Ok(true));
        let read: Vec<_> = std::iter::from_fn(|| match connection.read() {
            Read::Data(data) => Some(data),
            _ => None,
        })
        .collect();
        assert_eq!(read.concat(), b"onetwoend");
        assert_eq!(connection.read(), Read::End);
        let stats = connection.stats();
        assert_eq!(
            (stats.duplicate_packets, stats.rejected_packets),
            (1, 2),
            "{numbering:?}"
        );
    }
}

/// Two segments of four wait for the reader; what the window promises is taken, and no more.
#[test]
fn the_window_is_shared_and_reading_opens_it() {
    let mut connection = connection(Numbering::Segments, Reinjection::Early, 100);
    let payload = Bytes::from(vec![7; SEGMENT]);
    for number in FIRST..FIRST + 4 {
        assert!(connection.receiver().takes(number, SEGMENT));
        assert_eq!(connection.on_data(at(0), number, payload.clone()), Ok(false));
    }
    let shared = connection.shared();
    assert_eq!(
        (shared.next, shared.window, shared.paths),
        (Some(FIRST + 4), 0, 2)
    );
    connection.rx.on_sent(&shared);
    assert!(!connection.receiver().takes(FIRST + 5, SEGMENT));
    assert!(
        connection.receiver().takes(FIRST + 4, SEGMENT),
        "a question has to be answered"
    );
    assert!(matches!(connection.read(), Read::Data(_)));
    assert_eq!(connection.paths()[0].acknowledges, 1, "on the best path");
    assert_eq!(connection.shared().window, 1);
}

#[test]
fn the_application_hears_of_a_path_once_and_only_of_one_that_was_up() {
    let mut connection = connection(Numbering::Segments, Reinjection::Early, 100);
    let address = connection.paths()[0].address;
    connection.tell(0, PathState::Up);
    connection.tell(0, PathState::Down);
    connection.tell(0, PathState::Down);
    assert_eq!(
        connection.poll_notice(),
        Some(Notice::Path(address, PathState::Down))
    );
    assert_eq!(connection.poll_notice(), None);
    connection.paths_mut().put(2, Lane::new(3, 30));
    connection.tell(2, PathState::Closed);
    assert_eq!(connection.poll_notice(), None);
}

#[test]
fn the_best_path_works_and_is_fast_and_siblings_are_those_that_work() {
    let mut connection = connection(Numbering::Segments, Reinjection::Early, 100);
    let paths = connection.paths_mut();
    assert!(paths.best() == Some(0) && paths.works_beside(0));
    paths.introduce(at(0), 0);
    assert_eq!(paths[0].sender.siblings().len(), 1);
    paths[1].works = false;
    paths.introduce(at(0), 0);
    assert_eq!(
        (paths[0].sender.siblings().len(), paths.works_beside(0)),
        (0, false)
    );
    (paths[0].works, paths[1].works) = (false, true);
    assert_eq!(paths.best(), Some(1));
}
