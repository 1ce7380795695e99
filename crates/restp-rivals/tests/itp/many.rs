//! Many consumers of one producer: requests that mean the same, caches that ask once, flows whose applications have gone.

use crate::network::{Net, PORT, content, itp, ms, once};
use bytes::Bytes;
use restp_base::flow::{CloseReason, Flow};
use restp_base::machine::{Event, Input, Machine};
use restp_base::time::Duration;
use restp_rivals::itp::wire::Kind;
use restp_rivals::itp::{Cache, ItpParameters};
use std::cell::RefCell;
use std::rc::Rc;

const BYTES: usize = 200_000;
const CHUNKS: usize = BYTES.div_ceil(1452);

fn named(set: &[(&str, &str)]) -> ItpParameters {
    ItpParameters {
        names_after_requests: true,
        ..itp(set)
    }
}

fn ask(net: &mut Net, host: usize, message: &'static [u8]) {
    net.hosts[host]
        .request(net.now, Net::path(host, 0), PORT, Bytes::from_static(message))
        .expect("a free port");
}

/// Host 0 answers every request that it has not answered yet, and has nothing more to do with it.
fn answer_all(net: &mut Net) {
    for event in std::mem::take(&mut net.events[0]) {
        if let Event::Accepted(flow) = event {
            let host = &mut net.hosts[0];
            host.write(net.now, flow, content(BYTES).into()).expect("room");
            host.finish(net.now, flow);
            host.release(net.now, flow);
        }
    }
}

#[test]
fn ten_who_ask_for_the_same_get_one_object() {
    let mut net = Net::new(&named(&[]), 12);
    (1..11).for_each(|host| ask(&mut net, host, b"D"));
    ask(&mut net, 11, b"E");
    net.run_for(ms(30));
    answer_all(&mut net);
    assert_eq!(net.hosts[0].published(), 2);
    net.run_for(Duration::from_secs(20));
    for host in 1..12 {
        assert!(net.read[host] == content(BYTES), "host {host}");
    }
    // The manifests have arrived, so that nothing is left of the flows but what they published.
    assert_eq!((net.hosts[0].held(), net.hosts[0].published()), (0, 2));
    net.run_for(Duration::from_secs(120));
    assert_eq!(net.hosts[0].published(), 0);
    let closed = |event: &Event| matches!(event, Event::Closed(..));
    assert!(!net.events[0].iter().any(closed), "nobody is there to be told");
}

#[test]
fn a_manifest_leaves_though_its_writer_has_gone_and_so_does_its_repetition() {
    let mut net = Net::new(&named(&[]), 2);
    let mut manifests = 0;
    net.rule = Box::new(move |seen, _| {
        manifests += usize::from(matches!(seen.header.kind, Kind::Manifest { .. }));
        let is_lost = matches!(seen.header.kind, Kind::Manifest { .. }) && manifests == 1;
        if is_lost { Vec::new() } else { once() }
    });
    ask(&mut net, 1, b"D");
    net.run_for(ms(30));
    answer_all(&mut net);
    net.run_for(Duration::from_secs(20));
    assert!(
        net.read[1] == content(BYTES),
        "the request came again, and found its answer"
    );
    assert_eq!(net.hosts[0].published(), 1);
}

/// What nobody takes is forgotten when its request cannot be retransmitted any more.
#[test]
fn a_writer_that_has_gone_leaves_nothing_behind_for_long() {
    let mut net = Net::new(&named(&[]), 2);
    net.rule = Box::new(|seen, _| if seen.from == 0 { Vec::new() } else { once() });
    ask(&mut net, 1, b"D");
    net.run_for(ms(30));
    answer_all(&mut net);
    assert_eq!(net.hosts[0].held(), 1);
    net.run_for(Duration::from_secs(70));
    assert_eq!(net.hosts[0].held(), 0);
}

/// Twenty at once, with and without losses between producer and cache: the producer sends each chunk once, and again what was lost.
#[test]
fn all_consumers_behind_a_cache_ask_the_producer_once() {
    for (set, lost) in [(&[][..], 0), (&[("naming", "hash")], 0), (&[], 3)] {
        let mut net = Net::new(&named(set), 21);
        net.cache = Some(Cache::new(1 << 20));
        let mut count = 0;
        net.rule = Box::new(move |seen, _| {
            count += usize::from(seen.is_data() && seen.from == 0);
            let is_lost = seen.is_data() && seen.from == 0 && lost > 0 && [20, 50, 51].contains(&count);
            if is_lost { Vec::new() } else { once() }
        });
        (1..21).for_each(|host| ask(&mut net, host, b"D"));
        net.run_for(ms(30));
        answer_all(&mut net);
        net.run_for(Duration::from_secs(30));
        for host in 1..21 {
            assert!(net.read[host] == content(BYTES), "host {host}");
        }
        let from_producer = net.count(|seen| seen.is_data() && seen.from == 0);
        let counters = net.cache.as_ref().map(Cache::counters).expect("a cache");
        let most = CHUNKS + 5 + lost;
        assert!(
            (CHUNKS..=most).contains(&from_producer),
            "{from_producer} of {CHUNKS}: {counters:?}"
        );
        assert!(counters.merged > 0, "{counters:?}");
    }
}

/// A cache keeps nothing that nobody asked for: who is off the way cannot fill it.
#[test]
fn data_that_nobody_asked_for_is_not_kept() {
    let mut net = Net::new(&itp(&[]), 2);
    let seen: Rc<RefCell<Vec<_>>> = Rc::default();
    let copies = seen.clone();
    net.rule = Box::new(move |seen, datagram| {
        if seen.is_data() {
            copies.borrow_mut().push(datagram.clone());
        }
        once()
    });
    net.send(0, 1, &content(BYTES));
    net.run_for(Duration::from_secs(5));
    let (mut cache, mut answers) = (Cache::new(1 << 20), Vec::new());
    for datagram in seen.borrow().iter() {
        assert!(cache.on_passing(net.now, datagram, &mut answers), "it goes on");
    }
    assert!(answers.is_empty() && !seen.borrow().is_empty());
    let mut second = Net::new(&itp(&[]), 3);
    second.cache = Some(cache);
    second.send(0, 1, &content(BYTES));
    second.run_for(Duration::from_secs(5));
    assert_eq!(second.cache.map(|cache| cache.counters().hits), Some(0));
}

/// A manifest that nobody asked for leaves again until it is heard; the last of them may arrive when all is over.
#[test]
fn a_late_manifest_begins_no_second_retrieval() {
    let mut net = Net::new(&itp(&[]), 2);
    let manifest: Rc<RefCell<Option<_>>> = Rc::default();
    let kept = manifest.clone();
    net.rule = Box::new(move |seen, datagram| {
        if matches!(seen.header.kind, Kind::Manifest { .. }) {
            *kept.borrow_mut() = Some(datagram.clone());
        }
        once()
    });
    net.send(0, 1, &content(BYTES));
    net.run_for(Duration::from_secs(5));
    let flow = net.accepted(1).expect("a manifest has come");
    assert_eq!(net.closed(1), Some(&CloseReason::Finished));
    net.hosts[1].release(net.now, flow);
    let mut late = manifest.borrow().clone().expect("one has left");
    late.path = late.path.reversed();
    let accepted = |net: &Net| {
        let accepted = |event: &&Event| matches!(event, Event::Accepted(_));
        net.events[1].iter().filter(accepted).count()
    };
    let mut copy = late.clone();
    net.hosts[1].handle(net.now, Input::Datagram(&mut copy));
    net.run_for(Duration::from_secs(5));
    assert_eq!(
        (accepted(&net), net.hosts[1].held(), net.read[1].len()),
        (1, 0, BYTES)
    );
    // Beyond the life of an announcement it is one of its own.
    net.run_for(Duration::from_secs(60));
    net.hosts[1].handle(net.now, Input::Datagram(&mut late));
    net.run_for(Duration::from_secs(5));
    assert_eq!((accepted(&net), net.read[1].len()), (2, 2 * BYTES));
}
