//! Dialogue, several consumers, several producers, caches (ITP §III.A to C).

use crate::network::{Net, PORT, content, itp, ms, once};
use bytes::Bytes;
use restp_base::flow::{CloseReason, Flow, Read};
use restp_base::machine::Event;
use restp_base::time::Duration;
use restp_rivals::itp::wire::{Kind, flags};
use restp_rivals::itp::{Cache, ItpParameters};

const BYTES: usize = 200_000;

/// Host 1 asks host 0, which answers with `content`; the request and the answer's manifest each are lost once.
#[test]
fn a_request_is_answered_with_an_object_and_retransmitted_until_then() {
    let mut net = Net::new(&itp(&[]), 2);
    let (mut requests, mut manifests) = (0, 0);
    net.rule = Box::new(move |seen, _| {
        let count = match seen.header.kind {
            Kind::Request => &mut requests,
            Kind::Manifest { .. } => &mut manifests,
            _ => return once(),
        };
        *count += 1;
        if *count == 1 { Vec::new() } else { once() }
    });
    let asked = Bytes::from_static(b"GET D");
    let flow = net.hosts[1]
        .request(net.now, Net::path(1, 0), PORT, asked.clone())
        .expect("a free port");
    net.run_for(ms(1500));
    assert_eq!(net.read[0], asked);
    let served = net.accepted(0).expect("a request has come");
    net.hosts[0]
        .write(net.now, served, content(BYTES).into())
        .expect("room");
    net.hosts[0].finish(net.now, served);
    net.run_for(Duration::from_secs(20));
    assert!(net.read[1] == content(BYTES));
    assert_eq!(net.hosts[1].read(net.now, flow), Read::End);
    assert_eq!(
        net.hosts[0].published(),
        1,
        "the same request is answered with the same object"
    );
    let accepted = net.events[0]
        .iter()
        .filter(|event| matches!(event, Event::Accepted(_)));
    assert_eq!(accepted.count(), 1);
}

#[test]
fn a_request_that_nobody_answers_ends_after_six() {
    let mut net = Net::new(&itp(&[]), 2);
    net.rule = Box::new(|_, _| Vec::new());
    net.hosts[1]
        .request(net.now, Net::path(1, 0), PORT, Bytes::from_static(b"?"))
        .expect("a free port");
    net.run_for(Duration::from_secs(100));
    assert_eq!(net.count(|seen| matches!(seen.header.kind, Kind::Request)), 6);
    assert_eq!(
        net.closed(1),
        Some(&CloseReason::TimedOut(Duration::from_secs(63)))
    );
}

#[test]
fn ten_consumers_of_one_object_are_one_manifest_control_block() {
    let mut net = Net::new(&itp(&[]), 11);
    let request = |net: &mut Net, host: usize| {
        let asked = Bytes::from_static(b"D");
        net.hosts[host]
            .request(net.now, Net::path(host, 0), PORT, asked)
            .expect("a free port");
    };
    (1..11).for_each(|host| request(&mut net, host));
    net.run_for(ms(50));
    let asked: Vec<_> = net.events[0].clone();
    for event in asked {
        if let Event::Accepted(flow) = event {
            net.hosts[0]
                .write(net.now, flow, content(BYTES).into())
                .expect("room");
            net.hosts[0]
                .publish(net.now, flow, Bytes::from_static(b"10.0.0.1:9/D"))
                .expect("it was being written");
        }
    }
    net.run_for(Duration::from_secs(20));
    assert_eq!(net.hosts[0].published(), 1);
    for host in 1..11 {
        assert!(net.read[host] == content(BYTES), "host {host}");
    }
}

#[test]
fn the_second_consumer_behind_a_cache_costs_the_producer_no_data() {
    for set in [&[][..], &[("naming", "hash")]] {
        let mut net = Net::new(&itp(set), 3);
        net.cache = Some(Cache::new(1 << 20));
        offer_named(&mut net, 1);
        net.run_for(Duration::from_secs(5));
        let before = net.count(|seen| seen.is_data() && seen.from == 0);
        assert!(net.read[1] == content(BYTES) && before > 0);
        offer_named(&mut net, 2);
        net.run_for(Duration::from_secs(5));
        assert!(net.read[2] == content(BYTES));
        assert_eq!(net.count(|seen| seen.is_data() && seen.from == 0), before);
    }
}

/// The object called D, which host 0 publishes for `to`.
fn offer_named(net: &mut Net, to: usize) {
    let asked = Bytes::from_static(b"D");
    net.hosts[to]
        .request(net.now, Net::path(to, 0), PORT, asked)
        .expect("a free port");
    net.run_for(ms(50));
    let flow = net.events[0].iter().rev().find_map(|event| match event {
        Event::Accepted(flow) => Some(*flow),
        _ => None,
    });
    let flow = flow.expect("a request has come");
    net.hosts[0]
        .write(net.now, flow, content(BYTES).into())
        .expect("room");
    net.hosts[0]
        .publish(net.now, flow, Bytes::from_static(b"10.0.0.1:9/D"))
        .expect("it was being written");
}

#[test]
fn a_cache_that_holds_something_else_does_not_answer_for_a_digest() {
    let mut net = Net::new(&itp(&[("naming", "hash")]), 3);
    net.cache = Some(Cache::new(1 << 20));
    // What the cache sees of the first retrieval is wrong: the producer's own bytes, changed with a right check sum.
    net.rule = Box::new(|seen, datagram| {
        if seen.is_data() && seen.header.pointer.chunk == 7 && seen.header.flags & flags::MANIFEST == 0 {
            *datagram = crate::hostile::changed(datagram);
        }
        once()
    });
    offer_named(&mut net, 1);
    net.run_for(Duration::from_secs(5));
    assert!(net.corrupted(1) > 0);
    net.rule = Box::new(|_, _| once());
    offer_named(&mut net, 2);
    net.run_for(Duration::from_secs(5));
    assert!(
        net.read[2] == content(BYTES),
        "what is wrong is fetched from the producer"
    );
}

#[test]
fn when_one_of_two_producers_dies_the_other_is_asked() {
    let parameters: ItpParameters = itp(&[("data-attempts", "2"), ("naming", "hash")]);
    let mut net = Net::new(&parameters, 3);
    let name = Bytes::from_static(b"both have it");
    let asked = |net: &mut Net, producer: usize| {
        let flow = net.write(producer, 2, &content(BYTES));
        net.hosts[producer]
            .publish(net.now, flow, name.clone())
            .expect("it was being written");
    };
    asked(&mut net, 0);
    asked(&mut net, 1);
    net.run_for(ms(150));
    net.rule = Box::new(|seen, _| if seen.from == 0 { Vec::new() } else { once() });
    net.run_for(Duration::from_secs(20));
    assert!(net.read[2] == content(BYTES));
    assert!(net.count(|seen| seen.is_data() && seen.from == 1) > 0);
}

/// Two flows publish the same content under the same name: there is one object, and its end is that of both.
#[test]
fn every_flow_that_serves_an_object_ends_with_its_nexus() {
    let mut net = Net::new(&itp(&[]), 3);
    for consumer in [1, 2] {
        let flow = net.write(0, consumer, &content(5000));
        net.hosts[0]
            .publish(net.now, flow, Bytes::from_static(b"D"))
            .expect("it was being written");
    }
    net.run_for(Duration::from_secs(130));
    let is_end = |event: &&Event| matches!(event, Event::Closed(_, CloseReason::Finished));
    let ended = net.events[0].iter().filter(is_end).count();
    assert_eq!((net.hosts[0].published(), ended), (0, 2));
}

#[test]
fn an_object_that_is_aborted_ends_for_every_flow_that_serves_it() {
    let mut net = Net::new(&itp(&[]), 3);
    let flows = [1, 2].map(|consumer| {
        let flow = net.write(0, consumer, &content(5000));
        net.hosts[0]
            .publish(net.now, flow, Bytes::from_static(b"D"))
            .expect("it was being written");
        flow
    });
    net.hosts[0].abort(net.now, flows[1]);
    net.run_for(ms(1));
    let first = Event::Closed(flows[0], CloseReason::Finished);
    assert!(net.events[0].contains(&first), "{:?}", net.events[0]);
    assert_eq!(net.hosts[0].published(), 0);
}
