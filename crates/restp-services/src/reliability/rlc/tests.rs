//! Window and decoder with a lossy wire between them.

use super::decoder::RlcDecoder;
use super::window::{Reach, Window};
use crate::reliability::{Encoded, Rebuilt};
use bytes::Bytes;
use restp_base::random::Stream;
use restp_base::time::Time;
use std::collections::BTreeMap;

/// Sends segments of random lengths from a first number on.
struct Wire {
    window: Window,
    sent: BTreeMap<u64, Bytes>,
    next: u64,
    decoder: RlcDecoder,
    rebuilt: BTreeMap<u64, Option<Bytes>>,
}

impl Wire {
    fn new(next: u64) -> Self {
        Wire {
            window: Window::default(),
            sent: BTreeMap::new(),
            next,
            decoder: RlcDecoder::default(),
            rebuilt: BTreeMap::new(),
        }
    }
    fn send(&mut self, payload: Bytes) -> u64 {
        self.window.push(Time::ZERO, self.next, payload.clone());
        self.sent.insert(self.next, payload);
        self.next += 1;
        self.next - 1
    }
    fn send_any(&mut self, draw: &mut Stream) -> u64 {
        let payload: Vec<u8> = (0..1 + draw.below(40)).map(|_| draw.bits() as u8).collect();
        self.send(payload.into())
    }
    fn dense(&mut self, count: u16) -> Encoded {
        self.reach(count - 1, count, 1)
    }
    fn reach(&mut self, back: u16, count: u16, stride: u8) -> Encoded {
        self.window
            .encode(Reach { back, count, stride })
            .expect("something")
    }
    fn arrives(&mut self, number: u64) {
        let payload = self.sent[&number].clone();
        self.decoder.on_received(number, &payload);
        self.check();
    }
    fn repairs(&mut self, encoded: &Encoded) -> usize {
        let before = self.rebuilt.len();
        assert!(
            self.decoder
                .decode(encoded.first, encoded.range, &encoded.payload)
        );
        self.check();
        self.rebuilt.len() - before
    }
    fn dense_repairs(&mut self, count: u16) -> usize {
        let encoded = self.dense(count);
        self.repairs(&encoded)
    }
    /// What is rebuilt is what was sent, once.
    fn check(&mut self) {
        for (number, payload) in self.decoder.take_rebuilt() {
            assert_eq!(
                payload.as_ref(),
                Some(&self.sent[&number]).filter(|sent| !sent.is_empty())
            );
            assert!(self.rebuilt.insert(number, payload).is_none(), "{number} twice");
        }
    }
}

fn numbers(rebuilt: &[Rebuilt]) -> Vec<u64> {
    rebuilt.iter().map(|(number, _)| *number).collect()
}

#[test]
fn as_many_encoded_packets_as_losses_rebuild_them_all() {
    let mut draw = Stream::named(1, "rlc");
    let mut wire = Wire::new(100);
    let sent: Vec<u64> = (0..30).map(|_| wire.send_any(&mut draw)).collect();
    let lost = [103, 104, 105, 117, 129];
    sent.iter()
        .filter(|number| !lost.contains(number))
        .for_each(|number| wire.arrives(*number));
    let useful: Vec<usize> = (0..6).map(|_| wire.dense_repairs(30)).collect();
    assert_eq!(useful, [0, 0, 0, 0, 5, 0]);
    assert_eq!(wire.rebuilt.keys().copied().collect::<Vec<_>>(), lost);
}

/// The segments of ResTP §11.1, with the coefficients that RFC 8681 §3.6 draws from the numbers of RFC 8682 §2.3; computed apart.
/// `vectors/headers.json` has the packet.
#[test]
fn three_segments_become_the_sum_that_the_standards_say() {
    let mut wire = Wire::new(20);
    for payload in [&b"abc"[..], b"de", b"fghi"] {
        wire.send(Bytes::from_static(payload));
    }
    let encoded = wire.dense(3);
    assert_eq!((encoded.first, encoded.range), (20, 0x00_1002));
    assert_eq!(encoded.payload, &b"\x00\x4E\x0D\x32\x17\xA8"[..]);
    [20, 22].into_iter().for_each(|number| wire.arrives(number));
    assert_eq!(wire.repairs(&encoded), 1);
}

#[test]
fn what_arrives_late_takes_an_unknown_out_of_what_is_known() {
    let mut draw = Stream::named(2, "rlc");
    let mut wire = Wire::new(7);
    (0..6).for_each(|_| _ = wire.send_any(&mut draw));
    let two = [wire.dense(6), wire.reach(3, 2, 3)];
    assert_eq!(
        two.each_ref().map(|encoded| wire.repairs(encoded)),
        [0, 0],
        "before any segment"
    );
    [7, 8, 10, 11].into_iter().for_each(|number| wire.arrives(number));
    assert_eq!(
        wire.rebuilt.keys().copied().collect::<Vec<_>>(),
        [9, 12],
        "9 and 12 share both"
    );
}

#[test]
fn a_segment_without_payload_is_the_fin() {
    let mut wire = Wire::new(1);
    wire.send(Bytes::from_static(b"last"));
    wire.send(Bytes::new());
    let encoded = wire.dense(2);
    wire.arrives(1);
    assert_eq!(wire.repairs(&encoded), 1);
    assert_eq!(wire.rebuilt.get(&2), Some(&None));
}

/// Of 16 segments and as many encoded packets any 16 do, unless their coefficients happen to depend on one another: in GF(2^8)
/// about one time in 256.
#[test]
fn any_as_many_as_there_are_segments_rebuild_them_but_for_one_in_256() {
    let (mut draw, mut failures) = (Stream::named(3, "rlc"), 0);
    for round in 0..1000u64 {
        let mut wire = Wire::new(1 + 1000 * round);
        let segments: Vec<u64> = (0..16).map(|_| wire.send_any(&mut draw)).collect();
        (0..draw.below(4000)).for_each(|_| {
            _ = wire.window.encode(Reach {
                back: 0,
                count: 1,
                stride: 1,
            })
        });
        let mut lost = 0;
        for number in segments {
            if draw.chance(0.5) {
                lost += 1;
            } else {
                wire.arrives(number);
            }
        }
        let encoded: Vec<_> = (0..lost).map(|_| wire.dense(16)).collect();
        encoded.iter().for_each(|encoded| _ = wire.repairs(encoded));
        failures += u64::from(wire.rebuilt.len() < lost);
    }
    assert!(failures <= 12, "{failures} of 1000");
}

/// Whatever is lost, delayed or doubled, what is rebuilt is what was sent.
#[test]
fn nothing_is_ever_rebuilt_that_was_not_sent() {
    let mut draw = Stream::named(4, "rlc");
    for _ in 0..60 {
        let mut wire = Wire::new(draw.below(1 << 40));
        let (loss, mut late) = (draw.unit(), Vec::new());
        for _ in 0..200 {
            let number = wire.send_any(&mut draw);
            match draw.chance(loss) {
                true if draw.chance(0.3) => late.push(number),
                true => {}
                false => wire.arrives(number),
            }
            if draw.chance(0.4) {
                let (back, stride) = (draw.below(40) as u16, 1 + draw.below(4) as u8);
                let reach = Reach {
                    back,
                    count: 1 + draw.below(40) as u16,
                    stride,
                };
                let encoded = wire.window.encode(reach).filter(|_| !draw.chance(loss / 2.0));
                encoded.iter().for_each(|encoded| _ = wire.repairs(encoded));
            }
            if draw.chance(0.05) {
                late.drain(..).for_each(|number| wire.arrives(number));
            }
        }
    }
}

#[test]
fn what_is_no_encoded_packet_is_refused() {
    let mut decoder = RlcDecoder::default();
    for payload in [&b""[..], b"\x00"] {
        assert!(!decoder.decode(5, 0, payload), "too short");
    }
    assert!(
        !decoder.decode(5, 0, b"\xFF\xFFa"),
        "solved at once, and no segment"
    );
    assert!(
        !decoder.decode(5, 0x0FFF, b"\x00\x01a"),
        "wider than anything that is remembered"
    );
    decoder.on_received(6, b"longer than that");
    assert!(
        !decoder.decode(6, 1, b"\x00\x01a"),
        "a part is longer than the whole"
    );
    decoder.on_received(7, b"a");
    assert!(
        !decoder.decode(7, 0, b"\x00\x01a\x01"),
        "it contradicts what arrived"
    );
    decoder.decode(u64::MAX - 1, 4, b"\x00\x01a");
    assert!(decoder.take_rebuilt().is_empty());
}

#[test]
fn a_flood_of_packets_that_rebuild_nothing_takes_bounded_memory() {
    let mut draw = Stream::named(5, "rlc");
    let mut decoder = RlcDecoder::default();
    for number in 0..5000 {
        let range = (draw.bits() as u32) & 0x00FF_F0FF;
        decoder.decode(number + draw.below(60), range, &[0x55; 1402]);
    }
    assert!(decoder.bytes() < 64 * (1402 + 16 * 320), "{}", decoder.bytes());
    (0..2000).for_each(|number| decoder.on_received(10_000 + number, &[0; 100]));
    assert_eq!(decoder.bytes(), 321 * 100, "what is old is forgotten");
    assert!(numbers(&decoder.take_rebuilt()).len() < 5000);
}

/// Each window begins before the one that came last and reaches into it: reduced, an equation would have the unknowns of all.
#[test]
fn windows_that_descend_make_no_equation_wider_than_what_is_remembered() {
    let mut decoder = RlcDecoder::default();
    for index in 0..64 {
        let (first, range) = (100_000 - 250 * index, (index as u32) << 12 | 0xFF);
        decoder.decode(first, range, &[0x55; 1402]);
    }
    assert!(decoder.bytes() < 64 * (1402 + 16 * 321), "{}", decoder.bytes());
}

#[test]
fn of_too_many_equations_the_oldest_is_forgotten() {
    let mut wire = Wire::new(1000);
    let mut draw = Stream::named(6, "rlc");
    for _ in 0..65 {
        (0..2).for_each(|_| _ = wire.send_any(&mut draw));
        assert_eq!(wire.dense_repairs(2), 0);
    }
    [1001, 1003, 1129]
        .into_iter()
        .for_each(|number| wire.arrives(number));
    assert_eq!(wire.rebuilt.into_keys().collect::<Vec<_>>(), [1002, 1128]);
}
