//! One object, from one source or several.

use super::network::*;
use restp_base::time::Duration;
use restp_base::units::Rate;
use restp_rivals::itp::node::{Complaint, Item};
use restp_rivals::itp::wire::{Kind, Refusal};

const LONG: Duration = Duration::from_secs(600);

#[test]
fn an_object_arrives_whole_with_its_manifests_and_every_chunk_once() {
    let mut net = Net::new(2);
    let data = content(150_500);
    let object = published(&data);
    let wanted = object.wanted();
    net.nodes[1].publish(object);
    let flow = net.fetch(0, wanted, &[1]);
    net.run(LONG, &Shelf::default(), |net| net.is_complete(0, flow));
    assert_eq!(net.bytes(0, flow), data);
    let manifests = net.got[&(0, flow)]
        .keys()
        .filter(|item| matches!(item, Item::Manifest(_)))
        .count();
    assert_eq!(
        (net.data_from(1), manifests),
        (151 + 6, 6),
        "a tree of two levels, and nothing twice"
    );
    let root = net.nodes[0].root(flow).expect("known");
    assert_eq!((root.length, &root.name[..]), (150_500, &b"thing"[..]));
    let report = &net.nodes[0].sources(flow)[0];
    assert!(report.serves && report.refused == 0 && report.bytes > 150_500);
}

#[test]
fn an_empty_object_and_one_of_one_chunk_arrive_too() {
    for size in [0, 1, 1000, 1001] {
        let mut net = Net::new(2);
        let data = content(size);
        let object = published(&data);
        let wanted = object.wanted();
        net.nodes[1].publish(object);
        let flow = net.fetch(0, wanted, &[1]);
        net.run(LONG, &Shelf::default(), |net| net.is_complete(0, flow));
        assert!(net.is_complete(0, flow), "{size}");
        if size > 0 {
            assert_eq!(net.bytes(0, flow), data);
        }
    }
}

/// What leaves to an address before somebody has shown that he receives there is shorter than what asked for it.
#[test]
fn nobody_is_answered_at_length_before_he_has_shown_where_he_is() {
    let mut net = Net::new(2);
    let object = published(&content(20_000));
    let wanted = object.wanted();
    net.nodes[1].publish(object);
    let flow = net.fetch(0, wanted, &[1]);
    net.run(LONG, &Shelf::default(), |net| net.is_complete(0, flow));
    let first = &net.log[0];
    let answer = net.log.iter().find(|seen| seen.from == 1).expect("an answer");
    assert!(matches!(
        answer.header.kind,
        Kind::Nack {
            code: Refusal::Unproved,
            ..
        }
    ));
    assert!(
        answer.bytes < first.bytes,
        "{} bytes for {}",
        answer.bytes,
        first.bytes
    );
    let unproved = net
        .log
        .iter()
        .filter(|seen| matches!(seen.header.kind, Kind::Nack { .. }))
        .count();
    assert_eq!(unproved, 1, "once shown, it is known");
}

/// The published rule for two paths is the same: what both links carry, less the headers and the manifests.
#[test]
fn losses_by_chance_do_not_empty_the_window() {
    let mut net = Net::new(2);
    let data = content(40_000_000);
    let object = published(&data);
    let wanted = object.wanted();
    net.nodes[1].publish(object);
    net.rates[1] = Some(Rate::from_bps(100_000_000));
    let mut lost = dice(1);
    net.rule = Box::new(move |_, _| !lost(100));
    let flow = net.fetch(0, wanted, &[1]);
    net.run(LONG, &Shelf::default(), |net| net.is_complete(0, flow));
    assert!(net.is_complete(0, flow));
    let rate = Rate::of(data.len() as u64, net.now.since(restp_base::time::Time::ZERO)).as_bps();
    // Chunks of 1000 bytes cost 48 of headers and 35 of manifests: 92 Mbit/s are there.
    assert!(rate > 80_000_000, "{rate}");
}

#[test]
fn two_sources_give_what_both_links_carry() {
    let mut net = Net::new(3);
    let data = content(60_000_000);
    for node in [1, 2] {
        net.nodes[node].publish(published(&data));
        net.rates[node] = Some(Rate::from_bps(50_000_000));
    }
    let flow = net.fetch(0, published(&data).wanted(), &[1, 2]);
    net.run(LONG, &Shelf::default(), |net| net.is_complete(0, flow));
    assert_eq!(net.bytes(0, flow).len(), data.len());
    let rate = Rate::of(data.len() as u64, net.now.since(restp_base::time::Time::ZERO)).as_bps();
    assert!(rate > 80_000_000, "{rate}");
    let sent = net.data_from(1) + net.data_from(2);
    let needed = 60_000 + 2148;
    assert!(sent < needed * 102 / 100, "{sent} data packets for {needed}");
}

#[test]
fn a_source_that_dies_holds_nothing_back_and_may_come_back() {
    let mut net = Net::new(3);
    let data = content(4_000_000);
    for node in [1, 2] {
        net.nodes[node].publish(published(&data));
        net.rates[node] = Some(Rate::from_bps(20_000_000));
    }
    let flow = net.fetch(0, published(&data).wanted(), &[1, 2]);
    net.run(Duration::from_millis(400), &Shelf::default(), |_| false);
    net.rule = Box::new(|seen, _| seen.from != 2 && seen.to != 2);
    let before = net.nodes[0].sources(flow)[0].bytes;
    net.run(Duration::from_millis(200), &Shelf::default(), |_| false);
    let after = net.nodes[0].sources(flow)[0].bytes;
    assert!(after - before > 300_000, "the other goes on: {}", after - before);
    net.run(Duration::from_secs(2), &Shelf::default(), |net| {
        net.is_complete(0, flow)
    });
    assert!(net.is_complete(0, flow));
    assert_eq!(net.bytes(0, flow), data);
}

#[test]
fn an_outage_ends_nothing() {
    let mut net = Net::new(2);
    let data = content(3_000_000);
    net.nodes[1].publish(published(&data));
    net.rates[1] = Some(Rate::from_bps(20_000_000));
    let flow = net.fetch(0, published(&data).wanted(), &[1]);
    net.run(Duration::from_millis(500), &Shelf::default(), |_| false);
    net.rule = Box::new(|_, _| false);
    let sent = net.log.len();
    net.run(Duration::from_secs(10), &Shelf::default(), |_| false);
    let asked = net.log.len() - sent;
    assert!(asked < 3000, "nothing is gained by asking a dead link: {asked}");
    net.rule = Box::new(|_, _| true);
    let healed = net.now;
    net.run(LONG, &Shelf::default(), |net| net.is_complete(0, flow));
    assert_eq!(net.bytes(0, flow), data);
    let took = net.now.since(healed);
    assert!(took < Duration::from_secs(4), "{took:?} for what takes 1.2 s");
}

#[test]
fn what_is_there_from_before_is_not_asked_for_and_what_is_damaged_is() {
    let mut net = Net::new(2);
    let data = content(2_000_000);
    net.nodes[1].publish(published(&data));
    let wanted = published(&data).wanted();
    let flow = net.fetch(0, wanted, &[1]);
    net.run(LONG, &Shelf::default(), |net| net.is_complete(0, flow));
    let shelf = Shelf::default();
    let mut kept = net.got.remove(&(0, flow)).expect("all of it");
    net.release(0, flow);
    kept.insert(Item::Chunk(77), bytes::Bytes::from_static(b"damaged"));
    kept.remove(&Item::Chunk(1500));
    *shelf.0.lock().unwrap() = kept;
    let before = net.data_from(1);
    let flow = net.fetch(0, wanted, &[1]);
    net.run(LONG, &shelf, |net| net.is_complete(0, flow));
    assert!(net.is_complete(0, flow));
    assert_eq!(net.data_from(1) - before, 2);
    let got: Vec<_> = net.got[&(0, flow)].keys().copied().collect();
    assert_eq!(
        got,
        [Item::Chunk(77), Item::Chunk(1500)],
        "only what its reader does not have"
    );
}

#[test]
fn a_source_without_the_object_says_so_and_is_asked_again_later() {
    let mut net = Net::new(2);
    let data = content(10_000);
    let flow = net.fetch(0, published(&data).wanted(), &[1]);
    net.run(Duration::from_secs(3), &Shelf::default(), |_| false);
    assert_eq!(net.nodes[0].sources(flow)[0].complaint, Some(Complaint::HasNot));
    net.nodes[1].publish(published(&data));
    net.run(Duration::from_secs(10), &Shelf::default(), |net| {
        net.is_complete(0, flow)
    });
    assert_eq!(net.bytes(0, flow), data);
}

/// 600 seconds make a cookie old, and two of these make it none.
#[test]
fn a_cookie_that_has_grown_old_costs_one_more_question() {
    let mut net = Net::new(2);
    let data = content(1_000_000);
    net.nodes[1].publish(published(&data));
    net.rates[1] = Some(Rate::from_bps(10_000_000));
    let flow = net.fetch(0, published(&data).wanted(), &[1]);
    net.run(Duration::from_millis(400), &Shelf::default(), |_| false);
    assert!(!net.is_complete(0, flow) && net.nodes[1].counters().unproved == 1);
    net.rule = Box::new(|_, _| false);
    net.run(Duration::from_secs(1300), &Shelf::default(), |_| false);
    net.rule = Box::new(|_, _| true);
    net.run(LONG, &Shelf::default(), |net| net.is_complete(0, flow));
    assert_eq!(net.bytes(0, flow), data);
    assert!(net.nodes[1].counters().unproved >= 2);
}
