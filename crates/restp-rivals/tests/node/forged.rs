//! What is sent in the name of others, by who does not see the numbers of Interests, or only those of one.

use super::network::*;
use restp_base::time::{Duration, Time};
use restp_base::units::Rate;
use restp_rivals::itp::node::Complaint;
use restp_rivals::itp::wire::{Header, Kind, Pointer, Refusal, flags};

const LONG: Duration = Duration::from_secs(600);

/// Somebody on the link writes the source's address on his envelopes and knows the object, but does not see the numbers of Interests.
#[test]
fn who_does_not_see_the_numbers_cannot_turn_a_fetch_against_its_source() {
    let data = content(3_000_000);
    let object = published(&data).wanted().object();
    for kind in [Kind::Data, refusal(Refusal::NoNexus), refusal(Refusal::Unproved)] {
        let mut net = Net::new(2);
        net.rates[1] = Some(Rate::from_bps(20_000_000));
        net.nodes[1].publish(published(&data));
        let flow = net.fetch(0, published(&data).wanted(), &[1]);
        let mut dropped = 0;
        for round in 0..20u32 {
            net.run(Duration::from_millis(40), &Shelf::default(), |_| false);
            let before = net.nodes[0].counters().dropped;
            for chunk in 0..3000 {
                for sequence in [0, 1, round * 3000 + chunk] {
                    let header = Header {
                        kind: kind.clone(),
                        flags: 0x80,
                        pointer: Pointer {
                            object,
                            chunk,
                            sequence,
                        },
                    };
                    inject(&mut net, 1, 0, &header, &[0x55; 8]);
                }
            }
            dropped += net.nodes[0].counters().dropped - before;
        }
        net.run(LONG, &Shelf::default(), |net| net.is_complete(0, flow));
        let report = &net.nodes[0].sources(flow)[0];
        assert_eq!((report.refused, report.complaint), (0, None), "{kind:?}");
        assert!(
            net.now < Time::ZERO + Duration::from_secs(4),
            "{kind:?}: {:?}",
            net.now
        );
        // What is forged for a chunk that is held already may pass for late.
        assert!(dropped >= 150_000, "{kind:?}: {dropped}");
        assert_eq!(net.bytes(0, flow), data);
    }
}

fn refusal(code: Refusal) -> Kind {
    Kind::Nack {
        code,
        retry_after_ms: 0,
    }
}

/// He cannot end a fetch with a root that is none either.
#[test]
fn a_root_that_answers_another_request_says_nothing_of_its_source() {
    let data = content(30_000);
    let mut net = Net::new(2);
    net.nodes[1].publish(published(&data));
    let flow = net.fetch(0, published(&data).wanted(), &[1]);
    let header = Header {
        kind: Kind::Manifest { request: 1 },
        flags: flags::HASH,
        pointer: Pointer {
            object: 1,
            chunk: 0,
            sequence: 0,
        },
    };
    inject(&mut net, 1, 0, &header, b"no root");
    assert_eq!(net.nodes[0].counters().dropped, 1);
    net.run(LONG, &Shelf::default(), |net| net.is_complete(0, flow));
    assert_eq!(net.bytes(0, flow), data);
}

/// Who sees the numbers and refuses something of another object does not speak of this one.
#[test]
fn a_refusal_has_to_name_the_object_and_what_was_asked_for() {
    let data = content(500_000);
    let mut net = Net::new(2);
    net.rates[1] = Some(Rate::from_bps(4_000_000));
    net.nodes[1].publish(published(&data));
    let flow = net.fetch(0, published(&data).wanted(), &[1]);
    net.run(Duration::from_millis(300), &Shelf::default(), |_| false);
    let asked = |seen: &&Seen| seen.from == 0 && matches!(seen.header.kind, Kind::Interest(_));
    let open = net.log.iter().rfind(asked).expect("it has begun").header.pointer;
    let before = net.nodes[0].counters().dropped;
    let (object, chunk) = (open.object ^ 1, open.chunk ^ 1);
    for pointer in [Pointer { object, ..open }, Pointer { chunk, ..open }] {
        for code in [
            Refusal::NoNexus,
            Refusal::NotAuthorised,
            Refusal::NoSuchChunk,
            Refusal::Unproved,
        ] {
            let header = Header {
                kind: refusal(code),
                flags: 0x80,
                pointer,
            };
            inject(&mut net, 1, 0, &header, &[0x55; 8]);
        }
    }
    assert_eq!(net.nodes[0].counters().dropped - before, 8);
    net.run(LONG, &Shelf::default(), |net| net.is_complete(0, flow));
    assert_eq!(net.nodes[0].sources(flow)[0].complaint, None);
    assert_eq!(net.bytes(0, flow), data);
}

/// One source sees the numbers that it is asked with, and writes the address of the other on its envelopes.
#[test]
fn the_numbers_of_one_source_tell_nothing_of_those_of_another() {
    let data = content(500_000);
    let object = published(&data).wanted().object();
    let mut net = Net::new(3);
    for node in [1, 2] {
        net.nodes[node].publish(published(&data));
        net.rates[node] = Some(Rate::from_bps(2_000_000));
    }
    let flow = net.fetch(0, published(&data).wanted(), &[1, 2]);
    while !net.is_complete(0, flow) && net.now < Time::ZERO + LONG {
        net.run(Duration::from_millis(100), &Shelf::default(), |net| {
            net.is_complete(0, flow)
        });
        let asked = |seen: &&Seen| seen.to == 2 && matches!(seen.header.kind, Kind::Interest(_));
        let Some(last) = net.log.iter().rfind(asked).map(|seen| seen.header.pointer) else {
            continue;
        };
        for chunk in last.chunk.saturating_sub(30)..last.chunk + 2 {
            for sequence in last.sequence - 60..last.sequence + 60 {
                let header = Header {
                    kind: refusal(Refusal::NoNexus),
                    flags: 0x80,
                    pointer: Pointer {
                        object,
                        chunk,
                        sequence,
                    },
                };
                inject(&mut net, 1, 0, &header, &[]);
            }
        }
    }
    assert_eq!(net.nodes[0].sources(flow)[0].complaint, None);
    assert_eq!(net.bytes(0, flow), data);
}

/// The same of a cache and those above it.
#[test]
fn the_numbers_of_one_producer_tell_nothing_of_those_of_another() {
    let data = content(200_000);
    let mut net = Net::new(4);
    for node in [2, 3] {
        net.nodes[node].publish(published(&data));
    }
    let above = [path(1, 2), path(1, 3)];
    net.nodes[1].relay(net.now, Box::new(Hoard::default()), &above);
    let flow = net.fetch(0, published(&data).wanted(), &[1]);
    net.run(LONG, &Shelf::default(), |net| net.is_complete(0, flow));
    let first = |to| {
        let asked =
            |seen: &&Seen| (seen.from, seen.to) == (1, to) && matches!(seen.header.kind, Kind::Interest(_));
        net.log
            .iter()
            .find(asked)
            .expect("it was asked")
            .header
            .pointer
            .sequence
    };
    assert!(first(2).abs_diff(first(3)) > 1000, "{} {}", first(2), first(3));
}

/// `count` times data that is not what it should be, as if from node 1.
fn forge_data(net: &mut Net, pointer: Pointer, flags: u8, count: u32) {
    for _ in 0..count {
        let header = Header {
            kind: Kind::Data,
            flags,
            pointer,
        };
        inject(net, 1, 0, &header, &[0x55; CHUNK as usize]);
    }
}

/// A number that is too old to be remembered is guessed more easily than one that is open: of a long fetch there are many.
#[test]
fn forged_data_for_a_number_that_is_forgotten_blames_nobody() {
    let data = content(12_000_000);
    let mut net = Net::new(2);
    net.rates[1] = Some(Rate::from_bps(50_000_000));
    net.nodes[1].publish(published(&data));
    let flow = net.fetch(0, published(&data).wanted(), &[1]);
    let interests = |net: &Net| -> Vec<Pointer> {
        let asked = |seen: &&Seen| seen.from == 0 && matches!(seen.header.kind, Kind::Interest(_));
        net.log
            .iter()
            .filter(asked)
            .map(|seen| seen.header.pointer)
            .collect()
    };
    net.run(LONG, &Shelf::default(), |net| interests(net).len() > 11_000);
    let all = interests(&net);
    let (first, last) = (all[0], all[all.len() - 1]);
    let before = net.nodes[0].counters().dropped;
    let forgotten = Pointer {
        sequence: first.sequence,
        ..last
    };
    forge_data(&mut net, forgotten, 0x80, 100);
    // None ever left with this one; what is held already is no reason to take it.
    let never = Pointer {
        sequence: first.sequence - 1,
        ..all[100]
    };
    forge_data(&mut net, never, 0x80, 100);
    assert_eq!(net.nodes[0].counters().dropped - before, 200);
    net.run(LONG, &Shelf::default(), |net| net.is_complete(0, flow));
    let report = &net.nodes[0].sources(flow)[0];
    assert_eq!((report.refused, report.complaint), (0, None));
    assert_eq!(net.bytes(0, flow), data);
}

/// Where a cache says that it had something, the window may begin anew. A forger has no say in that.
#[test]
fn a_forged_word_of_a_cache_says_nothing_of_the_way() {
    let data = content(200_000);
    let object = published(&data).wanted().object();
    let mut net = Net::new(2);
    net.rates[1] = Some(Rate::from_bps(8_000_000));
    net.nodes[1].publish(published(&data));
    let flow = net.fetch(0, published(&data).wanted(), &[1]);
    while !net.is_complete(0, flow) && net.now < Time::ZERO + LONG {
        let pointer = Pointer {
            object,
            chunk: 1,
            sequence: 1,
        };
        forge_data(&mut net, pointer, 0x80 | flags::CACHE, 1);
        net.run(Duration::from_millis(10), &Shelf::default(), |net| {
            net.is_complete(0, flow)
        });
    }
    assert_eq!(net.bytes(0, flow), data);
    let asked = |seen: &&Seen| seen.from == 0 && matches!(seen.header.kind, Kind::Interest(_));
    assert_eq!(
        net.log.iter().filter(asked).count(),
        net.got[&(0, flow)].len(),
        "each once"
    );
}

/// What a source answered too late, before it was asked anew, must not pass for an answer of now.
#[test]
fn a_source_that_is_asked_anew_is_asked_with_new_numbers() {
    let data = content(200_000);
    let mut net = Net::new(2);
    net.rates[1] = Some(Rate::from_bps(1_000_000));
    net.nodes[1].publish(published(&data));
    let flow = net.fetch(0, published(&data).wanted(), &[1]);
    net.run(Duration::from_millis(500), &Shelf::default(), |_| false);
    let asked = |seen: &&Seen| seen.from == 0 && matches!(seen.header.kind, Kind::Interest(_));
    let open = net.log.iter().rfind(asked).expect("it has begun");
    let header = Header {
        kind: refusal(Refusal::NoNexus),
        flags: open.header.flags & !flags::REPEATED,
        pointer: open.header.pointer,
    };
    inject(&mut net, 1, 0, &header, &[]);
    assert_eq!(
        net.nodes[0].sources(flow)[0].complaint,
        Some(Complaint::HasNot),
        "it says so itself"
    );
    net.run(LONG, &Shelf::default(), |net| net.is_complete(0, flow));
    assert_eq!(net.bytes(0, flow), data);
    let asked = net.log.iter().filter(asked);
    let numbers: Vec<u32> = asked.map(|seen| seen.header.pointer.sequence).collect();
    assert!(numbers.is_sorted_by(|earlier, later| earlier < later));
}
