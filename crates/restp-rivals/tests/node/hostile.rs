//! What lies, floods or makes no sense.

use super::network::*;
use bytes::Bytes;
use restp_base::flow::CloseReason;
use restp_base::machine::{Datagram, Event, Input, Machine};
use restp_base::time::{Duration, Time};
use restp_base::units::Rate;
use restp_rivals::itp::manifest::{self, Core};
use restp_rivals::itp::node::{Complaint, Node, NodeConfig, Published, RootError, Wanted};
use restp_rivals::itp::trust::Publisher;
use restp_rivals::itp::wire::{Header, Kind, Pointer, Refusal, flags};

const LONG: Duration = Duration::from_secs(600);

/// `data`, published by somebody else.
fn by_another(data: &[u8]) -> Published {
    let (core, memory) = object(data);
    let another = Publisher::from_seed(&[1; 32]).expect("a seed");
    Published::new(&core, another.sign(&manifest::digest(&core)), Box::new(memory)).expect("a root")
}

#[test]
fn an_object_of_another_publisher_is_not_fetched() {
    let mut net = Net::new(2);
    let data = content(10_000);
    let wanted = published(&data).wanted();
    net.nodes[1].publish(by_another(&data));
    let flow = net.fetch(0, wanted, &[1]);
    net.run(Duration::from_secs(2), &Shelf::default(), |_| false);
    assert_eq!(
        net.nodes[0].sources(flow)[0].complaint,
        Some(Complaint::HasNot),
        "asked for by publisher"
    );
    assert_eq!(net.data_from(1), 0);
}

#[test]
fn a_signature_that_is_changed_on_the_way_ends_the_fetch_by_name() {
    for (at, expected) in [
        (0, RootError::Forged),
        (96, RootError::Publisher(publisher().key())),
    ] {
        let mut net = Net::new(2);
        let data = content(10_000);
        let wanted = published(&data).wanted();
        net.nodes[1].publish(published(&data));
        net.rule = Box::new(move |seen, datagram| {
            if let Kind::Manifest { .. } = seen.header.kind {
                let mut changed = datagram.body.to_vec();
                let end = changed.len() - 1;
                changed[end - at.min(95)] ^= 1;
                datagram.body = changed.into();
            }
            true
        });
        let flow = net.fetch(0, wanted, &[1]);
        net.run(LONG, &Shelf::default(), |_| false);
        let complaint = net.nodes[0].sources(flow)[0].complaint.expect("refused");
        match (complaint, expected) {
            (Complaint::Root(RootError::Publisher(_)), RootError::Publisher(_)) => {}
            (Complaint::Root(found), expected) => assert_eq!(found, expected),
            other => panic!("{other:?}"),
        }
        assert!(net.events[0].contains(&Event::Closed(flow, CloseReason::Refused)));
        assert_eq!(net.data_from(1), 0, "nothing was asked for");
    }
}

#[test]
fn a_source_that_lies_is_counted_named_and_asked_no_more() {
    let mut net = Net::new(3);
    let data = content(3_000_000);
    for node in [1, 2] {
        net.nodes[node].publish(published(&data));
    }
    net.rule = Box::new(|seen, datagram| {
        if seen.from == 2 && seen.is_data() {
            let mut changed = datagram.body.to_vec();
            changed[500] ^= 1;
            datagram.body = changed.into();
        }
        true
    });
    let flow = net.fetch(0, published(&data).wanted(), &[1, 2]);
    net.run(LONG, &Shelf::default(), |net| net.is_complete(0, flow));
    assert_eq!(net.bytes(0, flow), data);
    let reports = net.nodes[0].sources(flow);
    assert_eq!((reports[0].refused, reports[0].complaint), (0, None));
    assert_eq!(
        (reports[1].complaint, reports[1].bytes, reports[1].serves),
        (Some(Complaint::Lies), 0, false)
    );
    assert!((8..=20).contains(&reports[1].refused), "{}", reports[1].refused);
}

/// One that lies now and then is not found out by eight in a row: what it has wrong is asked of others.
#[test]
fn what_one_source_has_wrong_is_asked_of_another() {
    let mut net = Net::new(3);
    let data = content(300_000);
    for node in [1, 2] {
        net.nodes[node].publish(published(&data));
    }
    net.rule = Box::new(|seen, datagram| {
        if seen.from == 2 && seen.is_data() && seen.header.pointer.chunk % 10 == 3 {
            let mut changed = datagram.body.to_vec();
            changed[500] ^= 1;
            datagram.body = changed.into();
        }
        true
    });
    let flow = net.fetch(0, published(&data).wanted(), &[1, 2]);
    net.run(LONG, &Shelf::default(), |net| net.is_complete(0, flow));
    assert_eq!(net.bytes(0, flow), data);
    let report = &net.nodes[0].sources(flow)[1];
    assert!(
        report.refused > 0 && report.refused <= 31,
        "each of 31 chunks once at most: {}",
        report.refused
    );
}

#[test]
fn the_only_source_lies_and_that_is_the_end() {
    let mut net = Net::new(2);
    let data = content(30_000);
    net.nodes[1].publish(published(&data));
    net.rule = Box::new(|seen, datagram| {
        if seen.is_data() {
            let mut changed = datagram.body.to_vec();
            changed[60] ^= 1;
            datagram.body = changed.into();
        }
        true
    });
    let flow = net.fetch(0, published(&data).wanted(), &[1]);
    net.run(Duration::from_secs(60), &Shelf::default(), |_| false);
    assert_eq!(net.nodes[0].sources(flow)[0].complaint, Some(Complaint::Lies));
    assert!(net.events[0].contains(&Event::Closed(flow, CloseReason::Refused)));
    assert!(!net.got.contains_key(&(0, flow)) || net.got[&(0, flow)].is_empty());
}

/// A publisher signs a root whose manifests make no sense: loops, other levels, other sizes. Each digest is right.
#[test]
fn a_manifest_that_its_place_does_not_allow_ends_the_fetch() {
    let data = content(60_000);
    let (core, mut memory) = object(&data);
    let (mut root, _) = Core::parse(&core).expect("a root");
    assert_eq!((root.level, root.count), (1, 3));
    // The second manifest is the first one again.
    root.digests[1] = root.digests[0];
    memory.manifests[1] = memory.manifests[0].clone();
    let core = Bytes::from(root.emit());
    let signature = publisher().sign(&manifest::digest(&core));
    let loops = Published::new(&core, signature, Box::new(memory)).expect("a root");
    let mut net = Net::new(2);
    let wanted = loops.wanted();
    net.nodes[1].publish(loops);
    let flow = net.fetch(0, wanted, &[1]);
    net.run(Duration::from_secs(60), &Shelf::default(), |_| false);
    // The same entry twice is no lie: both cover 28 chunks. What is below them has no others.
    assert!(!net.is_complete(0, flow) || net.bytes(0, flow) != data);

    let (core, mut memory) = object(&data);
    let (mut root, _) = Core::parse(&core).expect("a root");
    let (mut below, _) = Core::parse(&memory.manifests[0]).expect("a manifest");
    below.level = 1;
    below.length = root.length;
    below.count = 3;
    below.digests.truncate(3);
    memory.manifests[0] = below.emit().into();
    root.digests[0] = manifest::digest(&memory.manifests[0]);
    let core = Bytes::from(root.emit());
    let signature = publisher().sign(&manifest::digest(&core));
    let deep = Published::new(&core, signature, Box::new(memory)).expect("a root");
    let mut net = Net::new(2);
    let wanted = deep.wanted();
    net.nodes[1].publish(deep);
    let flow = net.fetch(0, wanted, &[1]);
    net.run(Duration::from_secs(60), &Shelf::default(), |_| false);
    assert_eq!(net.nodes[0].sources(flow)[0].complaint, Some(Complaint::Lies));
    assert!(!net.is_complete(0, flow));
}

#[test]
fn no_source_gets_more_than_its_rate() {
    let mut net = Net::new(2);
    let data = content(2_000_000);
    net.nodes[1] = Node::new(NodeConfig {
        per_source: Some(Rate::from_bps(8_000_000)),
        ..NodeConfig::new([1; 16])
    });
    net.nodes[1].publish(published(&data));
    let flow = net.fetch(0, published(&data).wanted(), &[1]);
    net.run(Duration::from_secs(1), &Shelf::default(), |_| false);
    let sent: usize = net
        .log
        .iter()
        .filter(|seen| seen.from == 1)
        .map(|seen| seen.bytes)
        .sum();
    assert!(sent <= 1_000_000 + 110_000, "{sent}");
    net.run(Duration::from_secs(4), &Shelf::default(), |net| {
        net.is_complete(0, flow)
    });
    assert_eq!(net.bytes(0, flow), data);
}

/// Interests that are invented, from addresses that are too: each is answered by less than it was, and nothing is kept.
#[test]
fn a_flood_of_invented_interests_is_answered_by_less() {
    let mut node = Node::new(NodeConfig::new([1; 16]));
    let object = published(&content(10_000));
    let wanted = object.wanted();
    node.publish(object);
    let (mut came, mut left) = (0, 0);
    let mut out = Datagram::empty();
    for source in 0..10_000u32 {
        let header = Header {
            kind: Kind::Interest(None),
            flags: 0x80,
            pointer: Pointer {
                object: wanted.object(),
                chunk: source % 10,
                sequence: source,
            },
        };
        let mut datagram = Datagram::empty();
        datagram.path = path(0, 1).reversed();
        datagram
            .path
            .remote
            .set_ip(std::net::IpAddr::from((0x0A01_0000 + source).to_be_bytes()));
        let guessed = u64::from(source).to_be_bytes();
        datagram.body = [&header.emit()[..], &[7; 32], &guessed].concat().into();
        came += datagram.len();
        node.handle(Time::ZERO, Input::Datagram(&mut datagram));
        while node.poll_transmit(Time::ZERO, &mut out) {
            left += out.len();
        }
    }
    assert!(left < came, "{left} for {came}");
    assert_eq!((node.counters().answers, node.counters().unproved), (0, 10_000));
}

#[test]
fn what_makes_no_sense_is_dropped_and_counted() {
    let mut node = Node::new(NodeConfig::new([1; 16]));
    let mut bytes = content(4000);
    for start in 0..2000 {
        for kind in 0x11..=0x15 {
            bytes[start] = kind;
            bytes[start + 2] = 5 + (start % 3) as u8;
            let mut datagram = Datagram::empty();
            datagram.path = path(1, 0);
            datagram.body = Bytes::copy_from_slice(&bytes[start..start + start % 200]);
            node.handle(Time::ZERO, Input::Datagram(&mut datagram));
        }
    }
    assert!(node.counters().dropped > 5000);
    assert_eq!(node.counters().answers, 0);
    let _ = Wanted {
        root: [0; 32],
        publisher: publisher().key(),
    };
}

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
                    let mut datagram = Datagram::empty();
                    datagram.path = path(0, 1);
                    datagram.body = [&header.emit()[..], &[0x55; 8]].concat().into();
                    net.nodes[0].handle(net.now, Input::Datagram(&mut datagram));
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
            let mut datagram = Datagram::empty();
            datagram.path = path(0, 1);
            datagram.body = [&header.emit()[..], &[0x55; 8]].concat().into();
            net.nodes[0].handle(net.now, Input::Datagram(&mut datagram));
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
                let mut datagram = Datagram::empty();
                datagram.path = path(0, 1);
                datagram.body = header.emit().to_vec().into();
                net.nodes[0].handle(net.now, Input::Datagram(&mut datagram));
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
        let mut datagram = Datagram::empty();
        datagram.path = path(0, 1);
        datagram.body = [&header.emit()[..], &[0x55; CHUNK as usize]].concat().into();
        net.nodes[0].handle(net.now, Input::Datagram(&mut datagram));
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
    let mut datagram = Datagram::empty();
    datagram.path = path(0, 1);
    datagram.body = header.emit().to_vec().into();
    net.nodes[0].handle(net.now, Input::Datagram(&mut datagram));
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

/// One that lies every other time never does so eight times in a row.
#[test]
fn a_source_that_lies_every_other_time_is_asked_no_more_after_64() {
    let mut net = Net::new(3);
    let data = content(3_000_000);
    for node in [1, 2] {
        net.nodes[node].publish(published(&data));
        net.rates[node] = Some(Rate::from_bps(5_000_000));
    }
    let mut count = 0;
    net.rule = Box::new(move |seen, datagram| {
        if seen.from == 2 && seen.is_data() {
            count += 1;
            if count % 2 == 0 {
                let mut changed = datagram.body.to_vec();
                changed[500] ^= 1;
                datagram.body = changed.into();
            }
        }
        true
    });
    let flow = net.fetch(0, published(&data).wanted(), &[1, 2]);
    net.run(LONG, &Shelf::default(), |net| net.is_complete(0, flow));
    assert_eq!(net.bytes(0, flow), data);
    let report = &net.nodes[0].sources(flow)[1];
    assert_eq!((report.complaint, report.refused), (Some(Complaint::Lies), 64));
}

/// Each of its refusals has another cookie.
#[test]
fn a_source_that_changes_its_mind_for_ever_is_not_asked_at_once_for_ever() {
    let mut net = Net::new(2);
    let data = content(10_000);
    net.nodes[1].publish(published(&data));
    let mut count = 0u8;
    net.rule = Box::new(move |seen, datagram| {
        if let Kind::Nack { .. } = seen.header.kind {
            let mut changed = datagram.body.to_vec();
            let end = changed.len() - 1;
            count = count.wrapping_add(1);
            changed[end] = changed[end].wrapping_add(count);
            datagram.body = changed.into();
        }
        true
    });
    net.fetch(0, published(&data).wanted(), &[1]);
    net.run(Duration::from_secs(60), &Shelf::default(), |_| false);
    let asked = net.log.iter().filter(|seen| seen.from == 0).count();
    assert!((9..40).contains(&asked), "{asked}");
}
