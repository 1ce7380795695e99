//! Eras (docs/adr/0007-eras.md): all pairs of services that both ends agree on, under loss, duplication, reordering and proposals
//! that cross. Laws from what was on the wire: no end splits from the other, a packet's services are those of its era, nothing is
//! lost or read twice.

use crate::common::{Pair, Verdict, composition};
use restp_base::flow::{Change, ChangeError, Flow, FlowId};
use restp_base::observe::Why;
use restp_base::random::Stream;
use restp_base::time::Duration;
use restp_proto::wire::{EraMessage, EraVerb, ErrorControl, Flags, Order, Services};
use restp_proto::{Composition, EndpointConfig};
use std::collections::{BTreeMap, BTreeSet};

const AGREED: [&[(&str, &str)]; 10] = [
    &[],
    &[("ack", "positive"), ("recovery", "duplicate-ack")],
    &[("ack", "positive+snack")],
    &[("ack", "positive+nak")],
    &[("ack", "delayed+snack")],
    &[("reliability", "harq")],
    &[("reliability", "harq"), ("fec", "interleaved")],
    &[("ordering", "unordered")],
    &[("ordering", "partial"), ("reliability", "partial")],
    &[("ordering", "partial"), ("reliability", "partial+fec")],
];

fn services(set: &[(&str, &str)]) -> Composition {
    let base = [("framing", "fixed"), ("mtu-discovery", "off")];
    composition("default", &[&base, set].concat())
}

fn between(from: &[(&str, &str)]) -> Pair {
    let config = || EndpointConfig {
        weaker_services: true,
        ..EndpointConfig::new(services(from).check().expect("valid"))
    };
    Pair::of(
        config(),
        config().listen(crate::common::PORT, restp_proto::Acceptance::Any),
    )
}

/// Loses one packet of ten, sends one twice and delays one of twenty each, beginning with the data.
fn faults(seed: u64) -> crate::common::Rule {
    let mut stream = Stream::named(seed, "faults");
    Box::new(move |seen| match stream.bits() % 100 {
        _ if seen.header.flags.has(Flags::SYN) => Verdict::Pass,
        0..10 => Verdict::Drop,
        10..15 => Verdict::Twice,
        15..20 => Verdict::Late(Duration::from_millis(stream.bits() % 60)),
        _ => Verdict::Pass,
    })
}

/// One conversation: both sides send messages, and in the middle services change.
struct Talk {
    pair: Pair,
    flows: [FlowId; 2],
    sent: [u32; 2],
    read: [Vec<u32>; 2],
    /// Packets that were forged, which may be dropped.
    forged: u64,
}

impl Talk {
    fn begin(from: &[(&str, &str)], seed: u64) -> Talk {
        let mut pair = between(from);
        let flows = pair.connect();
        pair.rule = faults(seed);
        Talk {
            pair,
            flows: [flows.0, flows.1],
            sent: [0; 2],
            read: [Vec::new(), Vec::new()],
            forged: 0,
        }
    }

    fn change(&mut self, side: usize, to: &[(&str, &str)]) -> Result<Change, ChangeError> {
        let now = self.pair.now;
        self.pair.ends[side].recompose(now, self.flows[side], services(to))
    }

    fn run(&mut self, messages: [u32; 2], span: Duration) {
        let until = self.pair.now + span;
        while self.pair.now < until {
            for (side, most) in messages.into_iter().enumerate() {
                for _ in 0..4 {
                    if self.sent[side] < most {
                        let mut message = vec![side as u8; 300];
                        message[..4].copy_from_slice(&self.sent[side].to_be_bytes());
                        let now = self.pair.now;
                        let written = self.pair.ends[side].write(now, self.flows[side], message.into());
                        self.sent[side] += u32::from(written.is_ok());
                    }
                }
            }
            self.pair.run_for(Duration::from_millis(5));
            for side in 0..2 {
                for message in self.pair.read_all(side, self.flows[side]) {
                    assert_eq!((message.len(), message[4]), (300, 1 - side as u8));
                    let number = u32::from_be_bytes([message[0], message[1], message[2], message[3]]);
                    self.read[side].push(number);
                }
            }
        }
    }

    fn composition(&self, side: usize) -> Composition {
        let flow = self.flows[side];
        let composition = self.pair.ends[side].composition(flow).expect("it runs");
        Composition::clone(composition)
    }

    /// Everything is read once, but for what was given up where that may be; in order, where no order but full was in force.
    fn judge(&self, ordered: bool, full: bool) {
        for side in 0..2 {
            let read = &self.read[side];
            let once: BTreeSet<_> = read.iter().collect();
            assert_eq!(once.len(), read.len(), "read twice");
            assert!(!ordered || read.is_sorted(), "out of order: {read:?}");
            let stats = self.pair.ends[side].stats(self.flows[side]).expect("it runs");
            let missing = self.sent[1 - side] - read.len() as u32;
            assert_eq!(u64::from(missing), stats.skipped_segments, "lost, side {side}");
            assert!(!full || missing == 0, "lost under full reliability");
        }
        let both = [self.composition(0), self.composition(1)];
        let [one, other] = both
            .each_ref()
            .map(|of| (Services::of(of), of.reliability, of.ordering));
        assert_eq!(one, other, "the ends have split");
        if both[0].reliability.encodes() {
            assert_eq!(both[0].fec.code, both[1].fec.code);
        }
        self.judge_wire();
    }

    /// A segment has the services of its era however often it leaves, eras follow each other by number, and nobody dropped more
    /// packets than came late or twice.
    fn judge_wire(&self) {
        for side in 0..2 {
            let moved = |packet: &&crate::common::Seen| {
                packet.from != side && matches!(packet.verdict, Verdict::Late(_) | Verdict::Twice)
            };
            let stale = self.pair.log.iter().filter(moved).count() as u64;
            let stats = self.pair.ends[side].stats(self.flows[side]).expect("it runs");
            assert!(
                stats.rejected_packets <= stale + self.forged,
                "{}",
                stats.rejected_packets
            );
            let mut seen = BTreeMap::new();
            for packet in self.pair.log.iter().filter(|packet| packet.from == side) {
                let header = &packet.header;
                if !packet.is_data() || header.about_eras || header.flags.has(Flags::SYN) {
                    continue;
                }
                let services = constant(header.services);
                let of = |packet: &crate::common::Seen| packet.header.sequence.expect("numbered");
                let number = of(packet).wrapping_sub(of(&self.pair.log[side]));
                let before = *seen.entry(number).or_insert((header.era, services));
                assert_eq!(before, (header.era, services), "segment {number} of side {side}");
            }
            let eras: Vec<_> = seen.into_values().collect();
            let turns = eras.windows(2).filter(|two| two[0].0 != two[1].0).count();
            let changes = eras.windows(2).filter(|two| two[0].1 != two[1].1).count();
            assert!(changes <= turns, "services changed within an era");
        }
    }
}

/// What does not vary by packet.
fn constant(services: Services) -> Services {
    let error = services.error.without(ErrorControl::ENC);
    Services {
        error: if error.has(ErrorControl::NAK) {
            error.without(ErrorControl::SAK)
        } else {
            error
        },
        ..services
    }
}

fn traits(set: &[(&str, &str)]) -> (bool, bool) {
    let composition = services(set);
    let full = composition.reliability.is_full();
    let ordered = composition.ordering != restp_services::ordering::Ordering::Unordered;
    (ordered, full)
}

fn explore(from: &[(&str, &str)], to: &[(&str, &str)], seed: u64) {
    let mut talk = Talk::begin(from, seed);
    talk.run([400, 150], Duration::from_millis(60 + 7 * (seed % 9)));
    talk.change(0, to).expect("both know eras");
    if seed % 3 == 2 {
        talk.change(1, from).expect("it crosses, or is what is");
        let ack = [from, &[("ack", "positive+sack+repeat")]].concat();
        let _ = talk.change(1, &ack); // local, at once or later
    }
    talk.run([400, 150], Duration::from_secs(4));
    talk.pair.rule = Box::new(|_| Verdict::Pass); // whatever state the faults have led to, it is no end
    talk.run([400, 150], Duration::from_secs(12));
    let (before, after) = (traits(from), traits(to));
    talk.judge(before.0 && after.0, before.1 && after.1);
    let wanted = services(to);
    if seed % 3 != 2 {
        assert_eq!(
            Services::of(&talk.composition(1)),
            Services::of(&wanted),
            "the change came about"
        );
    }
}

fn explore_all(seeds: std::ops::Range<u64>) {
    for (i, from) in AGREED.iter().enumerate() {
        for (j, to) in AGREED.iter().enumerate() {
            for seed in seeds.clone().filter(|_| i != j) {
                let run = std::panic::catch_unwind(|| explore(from, to, seed));
                assert!(run.is_ok(), "{from:?} to {to:?}, seed {seed}");
            }
        }
    }
}

#[test]
fn any_change_survives_loss_duplicates_reordering_and_crossing() {
    explore_all(0..3);
}

#[test]
#[ignore = "make test-long: the same with more seeds"]
fn any_change_survives_loss_duplicates_reordering_and_crossing_with_many_seeds() {
    explore_all(3..60);
}

/// What is written after a change is read by the new order, and by no other.
#[test]
fn an_era_has_its_order() {
    for (from, to, sorted) in [
        (AGREED[0], AGREED[7], [true, false]),
        (AGREED[7], AGREED[0], [false, true]),
    ] {
        let mut talk = Talk::begin(from, 4);
        talk.run([300, 0], Duration::from_secs(8));
        talk.change(0, to).expect("both know eras");
        talk.run([301, 0], Duration::from_secs(2));
        talk.run([600, 0], Duration::from_secs(8));
        let (before, after): (Vec<u32>, Vec<u32>) = talk.read[1].iter().partition(|number| **number < 300);
        assert_eq!((before.len(), after.len()), (300, 300), "{from:?} to {to:?}");
        assert_eq!(
            [before.is_sorted(), after.is_sorted()],
            sorted,
            "{from:?} to {to:?}"
        );
    }
}

/// The peer's proposal came between: that of who opened the connection counts, and the other is told.
#[test]
fn of_crossing_proposals_the_openers_counts() {
    let mut talk = Talk::begin(&[], 0);
    talk.pair.rule = Box::new(|_| Verdict::Pass);
    assert_eq!(talk.change(0, &[("ordering", "unordered")]), Ok(Change::Agreed));
    assert_eq!(talk.change(1, &[("ack", "positive+snack")]), Ok(Change::Agreed));
    talk.run([40, 40], Duration::from_secs(2));
    talk.judge(false, true);
    let mut told = [Vec::new(), Vec::new()];
    for (side, told) in told.iter_mut().enumerate() {
        let now = talk.pair.now;
        talk.pair.ends[side].take_changes(now, talk.flows[side], told);
    }
    let why = |side: usize| -> Vec<_> {
        let words = told[side].iter().filter(|changed| changed.key != "mode");
        words
            .map(|changed| (changed.key, &*changed.to, changed.why))
            .collect()
    };
    assert_eq!(why(0), [("ordering", "unordered", Why::Application)]);
    assert_eq!(
        why(1),
        [
            ("ack", "positive+snack", Why::Overtaken),
            ("ordering", "unordered", Why::Peer)
        ]
    );
}

/// Between an end that knows eras and one that does not there is one: what both must know is refused, and no packet says anything
/// of eras after the set-up.
#[test]
fn an_old_peer_is_not_asked() {
    let mut pair = between(&[]);
    pair.rule = Box::new(|seen| {
        // The highest bit of the byte 7: an old peer sends 0, and an old one that answers has not looked.
        let says = seen.header.flags == Flags::SYN | Flags::ECE | Flags::CWR && seen.header.era;
        if says { Verdict::Flip(8 * 7) } else { Verdict::Pass }
    });
    let (opened, accepted) = pair.connect();
    for (side, flow) in [opened, accepted].into_iter().enumerate() {
        let now = pair.now;
        let refused = pair.ends[side].recompose(now, flow, services(&[("ordering", "unordered")]));
        assert_eq!(refused, Err(ChangeError::PeerCannot { key: "ordering" }));
        let local = pair.ends[side].recompose(now, flow, services(&[("congestion", "cubic")]));
        assert_eq!(local, Ok(Change::Local));
    }
    pair.write(0, opened, b"as ever");
    pair.run_for(Duration::from_millis(100));
    assert_eq!(pair.read_all(1, accepted), ["as ever"]);
    let mut later = pair
        .log
        .iter()
        .filter(|seen| seen.header.flags != Flags::SYN | Flags::ECE | Flags::CWR);
    assert!(later.all(|seen| !seen.header.era && !seen.header.about_eras));
}

/// A service that takes only its own composition keeps it.
#[test]
fn an_exact_service_refuses() {
    let config = || EndpointConfig::new(services(&[]).check().expect("valid"));
    let exact = config().listen(crate::common::PORT, restp_proto::Acceptance::Exact);
    let mut pair = Pair::of(config(), exact);
    let (opened, accepted) = pair.connect();
    let now = pair.now;
    let unordered = services(&[("ordering", "unordered")]);
    assert_eq!(pair.ends[0].recompose(now, opened, unordered), Ok(Change::Agreed));
    pair.run_for(Duration::from_millis(100));
    let mut changes = Vec::new();
    pair.ends[0].take_changes(now, opened, &mut changes);
    let told: Vec<_> = changes.iter().map(|changed| (changed.key, changed.why)).collect();
    assert_eq!(told, [("ordering", Why::Refused)]);
    let both = [
        pair.ends[0].composition(opened),
        pair.ends[1].composition(accepted),
    ];
    let kept = both.map(|of| of.map(|of| of.ordering) == Some(services(&[]).ordering));
    assert_eq!(kept, [true, true]);
    pair.write(0, opened, b"goes on");
    pair.run_for(Duration::from_millis(100));
    assert_eq!(pair.read_all(1, accepted), ["goes on"]);
}

/// A proposal leaves again until it is answered, and data flows meanwhile.
#[test]
fn lost_messages_stop_nothing() {
    for lost in 1..6 {
        let mut talk = Talk::begin(&[], 0);
        let mut seen_so_far = 0;
        talk.pair.rule = Box::new(move |seen| {
            seen_so_far += u32::from(seen.header.about_eras);
            if seen.header.about_eras && seen_so_far <= lost {
                Verdict::Drop
            } else {
                Verdict::Pass
            }
        });
        talk.run([100, 100], Duration::from_millis(100));
        talk.change(0, &[("reliability", "harq")]).unwrap();
        talk.run([100, 100], Duration::from_secs(30));
        talk.judge(true, true);
        assert!(
            talk.composition(1).reliability.encodes(),
            "after {lost} lost messages"
        );
    }
}

/// Wishes wait for the era before them, and the last one counts.
#[test]
fn the_last_of_several_wishes_counts() {
    let mut talk = Talk::begin(&[], 5);
    talk.run([300, 0], Duration::from_millis(50));
    for set in [&AGREED[2], &AGREED[7], &AGREED[5]] {
        assert_eq!(talk.change(0, set), Ok(Change::Agreed));
    }
    talk.run([300, 0], Duration::from_secs(20));
    talk.judge(true, true);
    assert_eq!(
        Services::of(&talk.composition(1)),
        Services::of(&services(AGREED[5]))
    );
}

/// One after the other without end: numbers, memory and both ends stand it.
#[test]
fn eras_follow_each_other() {
    let mut talk = Talk::begin(&[], 7);
    for round in 0..40 {
        let to = AGREED[[2, 0, 5, 7][round % 4]];
        let _ = talk.change(round % 2, to);
        talk.run([10_000; 2], Duration::from_millis(400));
    }
    talk.run(talk.sent, Duration::from_secs(8));
    talk.judge(false, true);
    let eras = talk
        .pair
        .log
        .iter()
        .filter_map(|seen| EraMessage::parse(&seen.payload));
    let last = eras.map(|message| message.era).max().unwrap();
    assert!(last > 8, "{last} eras");
}

/// Forged and hostile messages do nothing, and cost one answer at most.
#[test]
fn hostile_messages_do_nothing() {
    let mut talk = Talk::begin(&[], 0);
    talk.pair.rule = Box::new(|_| Verdict::Pass);
    talk.run([20, 20], Duration::from_millis(300));
    let before = [talk.composition(0), talk.composition(1)];
    let next = talk
        .pair
        .log
        .iter()
        .filter(|seen| seen.from == 0)
        .map(|seen| seen.next_number())
        .max()
        .unwrap();
    let propose = |boundary: u32, era: u32, error: ErrorControl| EraMessage {
        verb: EraVerb::Propose {
            order: Order::Full,
            error,
            code: 0,
            boundary,
        },
        attempt: boundary as u16 ^ era as u16,
        era,
    };
    let sack = ErrorControl::ARQ | ErrorControl::SAK;
    let snack = sack | ErrorControl::NAK;
    let memory = talk.pair.ends[1].stats(talk.flows[1]).unwrap().memory_bytes;
    let answers = talk.pair.log.len();
    let hostile = [
        propose(next, 2, snack),                       // an unknown era
        propose(next, 0, snack),                       // one that is
        propose(next.wrapping_sub(1), 1, snack),       // a boundary in the past
        propose(next.wrapping_add(1 << 20), 1, snack), // one far ahead
        propose(next, 1, ErrorControl::NONE),          // without retransmissions
        propose(next, 1, sack | ErrorControl::FEC),    // without a code
        propose(next, 1, sack | ErrorControl::CRC),    // what the set-up settles
    ];
    for message in hostile {
        for _ in 0..100 {
            talk.pair.forge(0, &message.emit(), |header| {
                (header.about_eras, header.sequence) = (true, Some(next));
            });
        }
    }
    for verb in [
        EraVerb::Accept { boundary: next },
        EraVerb::Refuse,
        EraVerb::Confirm,
    ] {
        let message = EraMessage {
            verb,
            attempt: 0,
            era: 1,
        };
        talk.pair.forge(0, &message.emit(), |header| {
            (header.about_eras, header.sequence) = (true, Some(next));
        });
    }
    for garbage in [&b"x"[..], &[0; 16], &[0xFF; 16]] {
        talk.pair.forge(0, garbage, |header| {
            (header.about_eras, header.sequence) = (true, Some(next));
        });
    }
    talk.pair.forge(0, b"of no era", |header| {
        (header.era, header.sequence) = (true, Some(next))
    });
    assert_eq!([talk.composition(0), talk.composition(1)], before);
    assert!(talk.pair.ends[1].stats(talk.flows[1]).unwrap().memory_bytes <= memory);
    assert!(talk.pair.log.len() - answers <= 720, "one answer to each at most");
    talk.forged = talk.pair.ends[1].stats(talk.flows[1]).unwrap().rejected_packets;
    assert!(talk.forged > 0);
    talk.run([60, 60], Duration::from_secs(2));
    talk.judge(true, true);
    talk.change(0, AGREED[2]).unwrap();
    talk.run([90, 90], Duration::from_secs(2));
    talk.judge(true, true);
    assert_eq!(
        Services::of(&talk.composition(1)),
        Services::of(&services(AGREED[2]))
    );
}
