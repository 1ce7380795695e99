//! Datagrams that nobody should send.

use crate::network::{Net, content, itp, ms, once};
use bytes::Bytes;
use proptest::prelude::*;
use restp_base::flow::CloseReason;
use restp_base::machine::{Datagram, Head, Input, Machine, PathAddress};
use restp_base::time::{Duration, Time};
use restp_rivals::itp::manifest::{self, Core, Hash, Naming, Trailer};
use restp_rivals::itp::wire::{Header, Kind, Pointer, Refusal};
use restp_rivals::udp::wire::Header as UdpHeader;

/// The datagram with another last byte, and a check sum that is right.
pub fn changed(datagram: &Datagram) -> Datagram {
    let mut body = datagram.body.to_vec();
    if let Some(last) = body.last_mut() {
        *last ^= 1;
    }
    let ports = |at: usize| u16::from_be_bytes([datagram.head[at], datagram.head[at + 1]]);
    let message = &datagram.head[8..];
    let udp = UdpHeader::over(ports(0), ports(2), &[message, &body], datagram.path);
    let head = Head::from_slice(&[&udp.emit(), message].concat());
    Datagram {
        head,
        body: body.into(),
        ..datagram.clone()
    }
}

#[test]
fn a_chunk_with_another_digest_is_refused_and_asked_for_again() {
    let mut net = Net::new(&itp(&[("naming", "hash")]), 2);
    let mut left = 3;
    net.rule = Box::new(move |seen, datagram| {
        if seen.is_data() && seen.header.pointer.chunk == 7 && left > 0 {
            left -= 1;
            *datagram = changed(datagram);
        }
        once()
    });
    net.send(0, 1, &content(100_000));
    net.run_for(Duration::from_secs(10));
    assert!(net.read[1] == content(100_000));
    let stats = net.stats(1);
    assert_eq!((stats.corrupted_packets, stats.lost_packets), (3, 0));
}

#[test]
fn a_producer_of_wrong_chunks_only_is_given_up() {
    let mut net = Net::new(&itp(&[("naming", "hash")]), 2);
    net.rule = Box::new(|seen, datagram| {
        if seen.is_data() {
            *datagram = changed(datagram);
        }
        once()
    });
    net.send(0, 1, &content(100_000));
    net.run_for(Duration::from_secs(10));
    assert_eq!(net.closed(1), Some(&CloseReason::Reset));
    assert!(net.read[1].is_empty());
}

#[test]
fn data_for_what_was_not_asked_is_counted_and_nothing_else() {
    let mut net = Net::new(&itp(&[]), 2);
    net.send(0, 1, &content(100_000));
    net.run_for(ms(100));
    let (object, before) = (net.log[1].header.pointer.object, net.stats(1));
    for (chunk, sequence) in [(60, 0), (0, 1000), (u32::MAX, u32::MAX)] {
        let pointer = Pointer {
            object,
            chunk,
            sequence,
        };
        let header = Header {
            kind: Kind::Data,
            flags: 0,
            pointer,
        };
        let mut forged = whole(&header, &[0; 1452], 49_152);
        net.hosts[1].handle(net.now, Input::Datagram(&mut forged));
    }
    let after = net.stats(1);
    assert_eq!(after.rejected_packets - before.rejected_packets, 3);
    assert_eq!(after.received_packets, before.received_packets);
    net.run_for(Duration::from_secs(5));
    assert!(net.read[1] == content(100_000));
}

#[test]
fn a_manifest_under_the_number_of_another_object_is_dropped() {
    let mut net = Net::new(&itp(&[]), 2);
    let core = Core {
        naming: Naming::Sequence,
        hash: Hash::Sha256,
        level: 0,
        length: 1000,
        chunk_bytes: 500,
        count: 2,
        name: Bytes::from_static(b"D"),
        digests: Vec::new(),
    };
    let body = [core.emit(), Trailer::default().emit()].concat();
    let right = manifest::object_id(&core.emit());
    for (object, held) in [(right ^ 1, 0), (right, 1)] {
        let header = Header {
            kind: Kind::Manifest { request: 0 },
            flags: 0,
            pointer: Pointer {
                object,
                ..Pointer::default()
            },
        };
        net.hosts[1].handle(net.now, Input::Datagram(&mut whole(&header, &body, 49_152)));
        assert_eq!((net.hosts[1].held(), net.hosts[1].dropped_datagrams()), (held, 1));
    }
}

#[test]
fn a_busy_producer_and_a_refusal_of_what_was_not_asked_end_nothing() {
    let mut net = Net::new(&itp(&[]), 2);
    net.send(0, 1, &content(100_000));
    net.run_for(ms(100));
    let asked = net.log.iter().rfind(|seen| seen.is_interest()).expect("it asks");
    let open = asked.header.pointer;
    let other = Pointer {
        sequence: open.sequence + 1000,
        ..open
    };
    for (code, pointer) in [(Refusal::Busy, open), (Refusal::NoNexus, other)] {
        let kind = Kind::Nack {
            code,
            retry_after_ms: 0,
        };
        let header = Header {
            kind,
            flags: 0,
            pointer,
        };
        net.hosts[1].handle(net.now, Input::Datagram(&mut whole(&header, &[], 49_152)));
    }
    net.run_for(Duration::from_secs(5));
    assert!(net.read[1] == content(100_000));
}

/// Whoever sees an Interest could end a retrieval, or drive a consumer away from its producer.
#[test]
fn a_refusal_from_anybody_but_the_producer_ends_nothing() {
    for (port, ends) in [(49_153, false), (49_152, true)] {
        let mut net = Net::new(&itp(&[]), 2);
        net.send(0, 1, &content(100_000));
        net.run_for(ms(100));
        let asked = net.log.iter().rfind(|seen| seen.is_interest()).expect("it asks");
        let kind = Kind::Nack {
            code: Refusal::NoNexus,
            retry_after_ms: 0,
        };
        let header = Header {
            kind,
            flags: 0,
            pointer: asked.header.pointer,
        };
        net.hosts[1].handle(net.now, Input::Datagram(&mut whole(&header, &[], port)));
        net.run_for(Duration::from_secs(5));
        assert_eq!(net.closed(1) == Some(&CloseReason::Refused), ends, "port {port}");
        assert_eq!(net.read[1] == content(100_000), !ends, "port {port}");
    }
}

/// `header` and `payload` as host 1 would get them from port `port` of host 0.
fn whole(header: &Header, payload: &[u8], port: u16) -> Datagram {
    whole_on(Net::path(1, 0), header, payload, port)
}

/// The same on another path.
pub fn whole_on(path: PathAddress, header: &Header, payload: &[u8], port: u16) -> Datagram {
    let message = [&header.emit()[..], payload].concat();
    let udp = UdpHeader::of(port, crate::network::PORT, &message, path);
    Datagram {
        path,
        body: [&udp.emit()[..], &message].concat().into(),
        ..Datagram::empty()
    }
}

proptest! {
    /// Whatever a payload says, memory stays that of what has come.
    #[test]
    fn no_message_breaks_a_host(
        messages in prop::collection::vec((0u8..7, any::<u8>(), prop::collection::vec(any::<u8>(), 0..120)), 1..40)
    ) {
        let mut net = Net::new(&itp(&[]), 2);
        net.send(0, 1, &content(50_000));
        net.run_for(ms(100));
        for (kind, words, mut bytes) in messages {
            if bytes.len() >= 4 {
                bytes[0] = 0x10 | kind;
                bytes[2] = words % 12;
            }
            let path = Net::path(1, 0);
            let udp = UdpHeader::of(49_152, 9, &bytes, path);
            let body = Bytes::from([&udp.emit()[..], &bytes].concat());
            net.hosts[1].handle(net.now, Input::Datagram(&mut Datagram { path, body, ..Datagram::empty() }));
        }
        net.run_for(Duration::from_secs(1));
        prop_assert!(net.hosts[1].held() <= 41);
        prop_assert!(net.now > Time::ZERO);
        prop_assert!(net.read[1].starts_with(&content(50_000)[..1000]));
    }
}

/// A manifest that nobody asked for names ten others: they get nothing until its sender has given something.
#[test]
fn a_manifest_from_anywhere_sends_no_interests_to_whom_it_names() {
    let core = Core {
        naming: Naming::Sequence,
        hash: Hash::Sha256,
        level: 0,
        length: 3000,
        chunk_bytes: 500,
        count: 6,
        name: Bytes::from_static(b"D"),
        digests: Vec::new(),
    };
    let locators = (3..13u8).map(|host| ([10, 0, 0, host], 49_152).into());
    let trailer = Trailer {
        locators: locators.collect(),
        timeout_ms: 1000,
        signature: None,
    };
    let body = [core.emit(), trailer.emit()].concat();
    let object = manifest::object_id(&core.emit());
    let header = |kind, chunk, sequence| Header {
        kind,
        flags: 0,
        pointer: Pointer {
            object,
            chunk,
            sequence,
        },
    };
    for gives in [false, true] {
        let mut net = Net::new(&itp(&[]), 13);
        net.rule = Box::new(|_, _| Vec::new()); // the sender is not there, or answers below
        let announced = header(Kind::Manifest { request: 0 }, 0, 0);
        net.hosts[1].handle(net.now, Input::Datagram(&mut whole(&announced, &body, 49_152)));
        net.run_for(ms(50));
        let first = net
            .log
            .iter()
            .find(|seen| seen.is_interest())
            .expect("the sender is asked");
        let sequence = first.header.pointer.sequence;
        if gives {
            let data = header(Kind::Data, 0, sequence);
            net.hosts[1].handle(net.now, Input::Datagram(&mut whole(&data, &[7; 500], 49_152)));
        }
        net.run_for(Duration::from_secs(200));
        let asked = net.count(|seen| seen.is_interest());
        // One lane asks eight times at most; eleven of them ask more.
        assert_eq!(asked > 11, gives, "{asked} Interests");
    }
}
