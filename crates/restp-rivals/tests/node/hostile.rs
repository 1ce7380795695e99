//! What lies, floods or makes no sense.

use super::network::*;
use bytes::Bytes;
use restp_base::flow::CloseReason;
use restp_base::machine::{Datagram, Event, Input, Machine};
use restp_base::time::{Duration, Time};
use restp_base::units::Rate;
use restp_rivals::itp::manifest::{self, Core, Hash};
use restp_rivals::itp::node::{Complaint, Node, NodeConfig, Published, RootError, Wanted};
use restp_rivals::itp::trust::Publisher;
use restp_rivals::itp::wire::{Header, Kind, Pointer, Refusal};

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
            damage(datagram, 500);
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
            damage(datagram, 500);
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
            damage(datagram, 60);
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

/// A manifest that differs from the right one in one field, and what is wrong with it.
type Wrong = (&'static str, fn(&mut Core));

#[test]
fn one_wrong_field_of_a_manifest_is_enough() {
    let wrong: [Wrong; 6] = [
        ("nothing", |_| {}),
        ("length", |core| core.length -= 1),
        ("count", |core| {
            core.count -= 1;
            core.digests.pop();
        }),
        ("name", |core| core.name = Bytes::from_static(b"other")),
        ("chunk size", |core| core.chunk_bytes += 1),
        ("hash", |core| core.hash = Hash::Blake3),
    ];
    let data = content(60_000);
    for (what, change) in wrong {
        let (core, mut memory) = object(&data);
        let (mut root, _) = Core::parse(&core).unwrap();
        let (mut below, _) = Core::parse(&memory.manifests[0]).unwrap();
        change(&mut below);
        memory.manifests[0] = below.emit().into();
        root.digests[0] = manifest::digest(&memory.manifests[0]);
        let core = Bytes::from(root.emit());
        let signature = publisher().sign(&manifest::digest(&core));
        let published = Published::new(&core, signature, Box::new(memory)).unwrap();
        let mut net = Net::new(2);
        let wanted = published.wanted();
        net.nodes[1].publish(published);
        let flow = net.fetch(0, wanted, &[1]);
        net.run(Duration::from_secs(60), &Shelf::default(), |net| {
            net.is_complete(0, flow)
        });
        let complaint = net.nodes[0].sources(flow)[0].complaint;
        let expected = (what != "nothing").then_some(Complaint::Lies);
        assert_eq!(complaint, expected, "{what}");
        assert_eq!(net.is_complete(0, flow), expected.is_none(), "{what}");
    }
}

/// With a proof that is right, and for ever.
#[test]
fn a_source_that_wants_nothing_but_proofs_is_given_up() {
    let data = content(3_000_000);
    let mut net = Net::new(2);
    net.nodes[1].publish(published(&data));
    net.rule = Box::new(|seen, datagram| {
        if seen.is_data() {
            let code = Refusal::Unproved;
            let kind = Kind::Nack {
                code,
                retry_after_ms: 0,
            };
            let header = Header {
                kind,
                ..seen.header.clone()
            };
            datagram.body = [&header.emit()[..], &[7; 8]].concat().into();
        }
        true
    });
    let flow = net.fetch(0, published(&data).wanted(), &[1]);
    let is_over = |net: &Net| {
        net.events[0]
            .iter()
            .any(|event| matches!(event, Event::Closed(..)))
    };
    net.run(LONG, &Shelf::default(), is_over);
    assert_eq!(net.nodes[0].sources(flow)[0].complaint, Some(Complaint::Unproved));
    assert!(is_over(&net));
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
    let sent = |net: &Net| -> usize {
        let seen = net.log.iter().filter(|seen| seen.from == 1);
        seen.map(|seen| seen.bytes).sum()
    };
    net.run(Duration::from_secs(1), &Shelf::default(), |_| false);
    let first = sent(&net);
    net.run(Duration::from_secs(1), &Shelf::default(), |_| false);
    let second = sent(&net) - first;
    assert!(first <= 1_000_000 && second <= 1_000_000, "{first} {second}");
    assert!(second >= 900_000, "a consumer fills the rate: {first} {second}");
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

/// An Interest for what nobody publishes.
fn interest(sequence: u32) -> Header {
    Header {
        kind: Kind::Interest(None),
        flags: 0x80,
        pointer: Pointer {
            object: 7,
            chunk: 0,
            sequence,
        },
    }
}

/// What a node sends, by the kind of each.
fn sent(node: &mut Node, now: Time, most: usize) -> Vec<Kind> {
    let mut out = Datagram::empty();
    let next = || {
        let is_one = node.poll_transmit(now, &mut out);
        is_one.then(|| Header::parse(&out.to_vec()).expect("a message").0.kind)
    };
    std::iter::from_fn(next).take(most).collect()
}

/// They left first, and so no question did while there was always one more.
#[test]
fn a_flood_of_answers_keeps_no_question_from_leaving() {
    let mut net = Net::new(3);
    for sequence in 0..10 {
        inject(&mut net, 2, 0, &interest(sequence), &[7; 40]);
    }
    let wanted = published(&content(10_000)).wanted();
    net.fetch(0, wanted, &[1]);
    let sent = sent(&mut net.nodes[0], Time::ZERO, 12);
    let questions: Vec<_> = (0..sent.len())
        .filter(|at| matches!(sent[*at], Kind::Request))
        .collect();
    assert_eq!((questions, sent.len()), (vec![1], 11));
}

/// Or who fills the queue pays for what he is not given, and is given less once there is room.
#[test]
fn an_answer_for_which_there_is_no_room_is_counted_and_costs_its_asker_nothing() {
    let mut net = Net::new(2);
    net.nodes[1] = Node::new(NodeConfig {
        per_source: Some(Rate::from_bps(80_000_000)),
        ..NodeConfig::new([1; 16])
    });
    inject(&mut net, 0, 1, &interest(0), &[7; 32]);
    let mut out = Datagram::empty();
    assert!(net.nodes[1].poll_transmit(net.now, &mut out));
    let shown = [&[7; 32], &out.body[..]].concat();
    for sequence in 0..80_000 {
        inject(&mut net, 0, 1, &interest(sequence), &shown);
    }
    let counters = net.nodes[1].counters();
    assert_eq!(
        (counters.limited, counters.answers + counters.dropped),
        (0, 80_000)
    );
    net.now += Duration::from_secs(1);
    let sent = sent(&mut net.nodes[1], net.now, 80_000);
    assert_eq!(sent.len() as u64, counters.answers);
    inject(&mut net, 0, 1, &interest(0), &shown);
    assert_eq!(net.nodes[1].counters().answers, counters.answers + 1);
}

/// Nobody has to be anywhere to ask for cookies.
#[test]
fn a_flood_from_forged_addresses_leaves_room_to_who_has_shown_his() {
    let mut net = Net::new(2);
    inject(&mut net, 0, 1, &interest(0), &[7; 32]);
    let mut out = Datagram::empty();
    assert!(net.nodes[1].poll_transmit(net.now, &mut out));
    let shown = [&[7; 32], &out.body[..]].concat();
    for sequence in 0..20_000 {
        inject(&mut net, 0, 1, &interest(sequence), &[7; 32]);
    }
    let counters = net.nodes[1].counters();
    assert_eq!((counters.unproved, counters.answers), (20_001, 0));
    assert!(counters.dropped > 10_000);
    inject(&mut net, 0, 1, &interest(0), &shown);
    assert_eq!(net.nodes[1].counters().answers, 1);
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
                damage(datagram, 500);
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
