//! Several producers of one object at once (ITP §III.A), each behind a link of its own.

use crate::hostile::{changed, whole_on};
use crate::network::{Net, content, itp, ms, once};
use bytes::Bytes;
use restp_base::machine::{Datagram, Input, Machine};
use restp_base::time::{Duration, Time};
use restp_rivals::itp::wire::{Header, Kind};
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;

/// Chunks of an object: two seconds of one link.
const CHUNKS: usize = 2000;
const BYTES: usize = CHUNKS * 1452;
/// What a link queues at most; more is lost.
const QUEUE: Duration = Duration::from_millis(100);

/// What a producer does from some moment on.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Fate {
    Serves,
    DiesAt(u64),
    /// It is not heard in this time.
    Silent(u64, u64),
    /// What it sends in this time comes so much later.
    Late(u64, u64, u64),
    Lies,
}

/// Interests that were sent to each host, and when data of each arrived last and at all.
#[derive(Default)]
struct Watched {
    asked: BTreeMap<u8, usize>,
    arrivals: Vec<(Time, usize)>,
}

/// Links of a chunk in a millisecond from each producer to the others.
fn links(fates: Vec<Fate>) -> (crate::network::Rule, Rc<RefCell<Watched>>) {
    let watched = Rc::new(RefCell::new(Watched::default()));
    let shared = watched.clone();
    let mut free_at = vec![Time::ZERO; fates.len()];
    let rule = Box::new(move |seen: &crate::network::Seen, datagram: &mut Datagram| {
        if seen.is_interest()
            && let std::net::IpAddr::V4(to) = datagram.path.remote.ip()
        {
            *shared.borrow_mut().asked.entry(to.octets()[3] - 1).or_default() += 1;
        }
        let Some(fate) = fates.get(seen.from) else {
            return once();
        };
        let within = |from: u64, to: u64| (Time::ZERO + ms(from)..Time::ZERO + ms(to)).contains(&seen.at);
        let mut extra = Duration::ZERO;
        match *fate {
            Fate::DiesAt(at) if within(at, u64::from(u32::MAX)) => return Vec::new(),
            Fate::Silent(from, to) if within(from, to) => return Vec::new(),
            Fate::Late(from, to, by) if within(from, to) => extra = ms(by),
            Fate::Lies if seen.is_data() => *datagram = changed(datagram),
            _ => {}
        }
        let starts = free_at[seen.from].max(seen.at);
        if starts > seen.at + QUEUE {
            return Vec::new();
        }
        if seen.is_data() {
            free_at[seen.from] = starts + ms(1);
            shared.borrow_mut().arrivals.push((starts + ms(21), seen.from));
        }
        vec![starts.since(seen.at) + extra]
    });
    (rule, watched)
}

/// The last host fetches from all others; when it had everything, and what was seen.
fn fetch(naming: &str, fates: &[Fate]) -> (Time, Rc<RefCell<Watched>>, Net) {
    let mut net = Net::new(&itp(&[("naming", naming)]), fates.len() + 1);
    let (rule, watched) = links(fates.to_vec());
    net.rule = rule;
    for producer in 0..fates.len() {
        publish(&mut net, producer, fates.len());
    }
    while net.closed(fates.len()).is_none() && net.now < Time::ZERO + ms(60_000) {
        net.run_for(ms(10));
    }
    assert!(net.read[fates.len()] == content(BYTES), "every byte, in order");
    (net.now, watched, net)
}

fn publish(net: &mut Net, producer: usize, consumer: usize) {
    let flow = net.write(producer, consumer, &content(BYTES));
    net.hosts[producer]
        .publish(net.now, flow, Bytes::from_static(b"all have it"))
        .expect("it was being written");
}

#[test]
fn two_producers_give_what_both_links_carry() {
    for naming in ["sequence", "hash"] {
        let (alone, ..) = fetch(naming, &[Fate::Serves]);
        let (both, watched, _) = fetch(naming, &[Fate::Serves; 2]);
        assert!(alone >= Time::ZERO + ms(2000), "a link carries no more");
        assert!(
            both <= Time::ZERO + ms(1300),
            "{both:?}, where the links take 1 s"
        );
        let asked = &watched.borrow().asked;
        assert!(asked[&0] > CHUNKS / 3 && asked[&1] > CHUNKS / 3, "{asked:?}");
    }
}

/// Also when hardly anything else is left to ask for.
#[test]
fn a_producer_that_dies_holds_nothing_back() {
    let (alone, ..) = fetch("sequence", &[Fate::Serves]);
    for (at, other) in [(300, 1), (300, 0), (700, 1), (950, 1), (950, 0), (1000, 1)] {
        let mut fates = [Fate::DiesAt(at); 2];
        fates[other] = Fate::Serves;
        let (end, watched, _) = fetch("sequence", &fates);
        // The other link does the rest, after the first timer at the latest.
        let rest = ms(2000 - at).max(ms(0));
        assert!(
            end <= Time::ZERO + ms(at) + rest + ms(500),
            "died at {at}: {end:?}"
        );
        assert!(end < alone + ms(500));
        let arrivals = &watched.borrow().arrivals;
        let from_other: Vec<Time> = (arrivals.iter().filter(|(_, from)| *from == other))
            .map(|(at, _)| *at)
            .collect();
        let gaps = from_other.windows(2).map(|pair| pair[1].since(pair[0]));
        let longest = gaps.max().expect("it serves");
        assert!(longest <= ms(400), "died at {at}: nothing for {longest:?}");
    }
}

#[test]
fn a_producer_that_lies_is_asked_no_more_and_does_no_harm() {
    let (end, watched, net) = fetch("hash", &[Fate::Lies, Fate::Serves]);
    let asked = watched.borrow().asked[&0];
    assert!((8..100).contains(&asked), "{asked}");
    assert!(net.corrupted(2) >= 8);
    assert!(end < Time::ZERO + ms(3000));
}

#[test]
fn sixteen_producers_are_asked_and_no_more() {
    let (_, watched, _) = fetch("sequence", &[Fate::Serves; 17]);
    assert_eq!(watched.borrow().asked.len(), 16);
}

#[test]
fn a_producer_that_was_given_up_is_asked_again_when_it_says_that_it_is_there() {
    let mut net = Net::new(&itp(&[("naming", "hash"), ("data-attempts", "2")]), 3);
    let (rule, watched) = links(vec![Fate::DiesAt(300), Fate::Serves]);
    net.rule = rule;
    publish(&mut net, 0, 2);
    publish(&mut net, 1, 2);
    net.run_for(ms(1500));
    assert!(net.stats(2).timeouts >= 2, "what was counted stays");
    let before = watched.borrow().asked[&0];
    let (rule, watched) = links(vec![Fate::Serves; 2]);
    net.rule = rule;
    publish(&mut net, 0, 2);
    net.run_for(ms(5000));
    assert!(
        before > 0 && watched.borrow().asked[&0] > 10,
        "the counters are new"
    );
    assert!(net.read[2] == content(BYTES));
}

/// Where chunks have no digests, who answers is all there is to go by.
#[test]
fn data_from_somebody_who_was_not_asked_is_dropped() {
    let mut net = Net::new(&itp(&[]), 3);
    publish(&mut net, 0, 1);
    net.run_for(ms(45)); // an Interest is on its way
    let open = net.log.iter().rfind(|seen| seen.is_interest()).expect("it asks");
    let header = Header {
        kind: Kind::Data,
        flags: 0,
        pointer: open.header.pointer,
    };
    let mut forged = whole_on(Net::path(1, 2), &header, &[7; 1452], 49_152);
    net.hosts[1].handle(net.now, Input::Datagram(&mut forged));
    assert_eq!(net.stats(1).rejected_packets, 1);
    net.run_for(ms(10_000));
    assert!(net.read[1] == content(BYTES));
}

/// A probe that others are asked for too is for the silent alone.
#[test]
fn a_producer_that_was_silent_for_a_while_is_then_asked_as_any_other() {
    let (_, watched, net) = fetch("sequence", &[Fate::Silent(200, 500), Fate::Serves]);
    let asked: usize = watched.borrow().asked.values().sum();
    let lost = net.stats(2).lost_packets as usize;
    assert!(
        asked <= CHUNKS + lost + 10,
        "{asked} Interests, {lost} of them lost"
    );
}

/// Numbers of a lane that has ended are not those of the next one to the same producer.
#[test]
fn data_of_a_producer_that_was_given_up_is_still_good_when_it_is_asked_again() {
    let mut net = Net::new(&itp(&[("data-attempts", "2")]), 3);
    let (rule, _) = links(vec![Fate::Late(300, 1000, 1000), Fate::Serves]);
    net.rule = rule;
    publish(&mut net, 0, 2);
    publish(&mut net, 1, 2);
    net.run_for(ms(1000));
    publish(&mut net, 0, 2);
    net.run_for(ms(5000));
    assert!(net.read[2] == content(BYTES));
    let stats = net.stats(2);
    assert_eq!(stats.rejected_packets, 0);
    assert!(stats.duplicate_packets > 0, "the late data");
}

#[test]
fn a_small_buffer_is_shared_and_bounds_what_all_are_asked_for() {
    let mut net = Net::new(&itp(&[("receive-buffer", "4 packets")]), 3);
    let (rule, watched) = links(vec![Fate::Serves; 2]);
    net.rule = rule;
    publish(&mut net, 0, 2);
    publish(&mut net, 1, 2);
    let mut most = 0;
    for _ in 0..3000 {
        net.run_for(ms(7));
        most = net
            .accepted(2)
            .map_or(0, |_| net.stats(2).in_flight_segments)
            .max(most);
    }
    assert_eq!(most, 4);
    assert!(net.read[2] == content(BYTES));
    let asked = &watched.borrow().asked;
    assert!(asked[&0] > CHUNKS / 3 && asked[&1] > CHUNKS / 3, "{asked:?}");
}
