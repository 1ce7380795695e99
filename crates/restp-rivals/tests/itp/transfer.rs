//! One producer, one consumer: what is read is what was written, whatever happens to datagrams.

use crate::network::{Net, content, host, itp, ms, once};
use bytes::Bytes;
use restp_base::flow::CloseReason;
use restp_base::random::Stream;
use restp_base::time::{Duration, Time};
use restp_rivals::itp::ItpParameters;
use restp_rivals::itp::wire::{Kind, flags};

const BYTES: usize = 300_000;

fn all() -> [ItpParameters; 3] {
    let ndn = ItpParameters::ndn_from_pairs(&[]).expect("the baseline");
    [itp(&[]), itp(&[("naming", "hash")]), ndn]
}

#[test]
fn an_object_arrives_as_it_was_written_and_is_asked_for_once() {
    for parameters in all() {
        let mut net = Net::new(&parameters, 2);
        net.send(0, 1, &content(BYTES));
        net.run_for(ms(5_000));
        assert!(net.read[1] == content(BYTES));
        assert_eq!(net.closed(1), Some(&CloseReason::Finished));
        let stats = net.stats(1);
        assert_eq!(
            (
                stats.retransmitted_packets,
                stats.duplicate_packets,
                stats.lost_packets
            ),
            (0, 0, 0)
        );
        assert_eq!(
            net.count(|seen| seen.is_interest()),
            net.count(|seen| seen.is_data())
        );
        assert_eq!(stats.srtt, Some(ms(40)));
    }
}

#[test]
fn losses_disorder_and_duplicates_change_no_byte() {
    for (seed, parameters) in (0..12).zip(all().into_iter().cycle()) {
        let mut net = Net::new(&parameters, 2);
        let mut chance = Stream::named(seed, "network");
        net.rule = Box::new(move |_, _| match chance.below(100) {
            0..3 => Vec::new(),
            3..6 => vec![Duration::ZERO, ms(chance.below(100))],
            6..12 => vec![ms(chance.below(40))],
            _ => once(),
        });
        net.send(0, 1, &content(BYTES));
        net.run_for(Duration::from_secs(120));
        assert!(net.read[1] == content(BYTES), "seed {seed}");
        assert_eq!(net.closed(1), Some(&CloseReason::Finished), "seed {seed}");
        assert!(net.stats(1).retransmitted_packets > 0, "seed {seed}");
    }
}

#[test]
fn no_interest_has_the_number_of_another() {
    let mut net = Net::new(&itp(&[]), 2);
    let mut chance = Stream::named(1, "network");
    net.rule = Box::new(move |_, _| if chance.below(20) == 0 { Vec::new() } else { once() });
    net.send(0, 1, &content(BYTES));
    net.run_for(Duration::from_secs(60));
    let interests = net.log.iter().filter(|seen| seen.is_interest());
    let numbers: Vec<u32> = interests.map(|seen| seen.header.pointer.sequence).collect();
    assert_eq!(numbers, (0..numbers.len() as u32).collect::<Vec<_>>());
}

/// Rule (b): the data of a later Interest tells within a round trip, and the window is halved, not shut.
#[test]
fn a_loss_is_repaired_by_later_data_and_ndn_waits_for_its_timer() {
    let first_retransmission = |parameters: &ItpParameters| {
        let mut net = Net::new(parameters, 2);
        let mut lost_at = None;
        net.rule = Box::new(move |seen, _| {
            let is_first = seen.is_data() && seen.header.pointer.chunk == 50 && lost_at.is_none();
            if is_first {
                lost_at = Some(seen.at);
                return Vec::new();
            }
            once()
        });
        net.send(0, 1, &content(BYTES));
        net.run_for(Duration::from_secs(20));
        assert!(net.read[1] == content(BYTES));
        let lost = net
            .log
            .iter()
            .find(|seen| seen.is_data() && seen.header.pointer.chunk == 50);
        let again = net
            .log
            .iter()
            .find(|seen| seen.header.flags & flags::REPEATED != 0);
        let (lost, again) = (lost.expect("it left"), again.expect("it is asked for again"));
        assert_eq!(again.header.pointer.chunk, 50);
        (again.at.since(lost.at), net.stats(1).timeouts)
    };
    let (delay, timeouts) = first_retransmission(&itp(&[]));
    assert!(delay <= ms(65) && timeouts == 0, "{delay:?}");
    let ndn = ItpParameters::ndn_from_pairs(&[]).expect("the baseline");
    let (delay, timeouts) = first_retransmission(&ndn);
    assert!(delay >= ms(160) && timeouts == 1, "{delay:?}");
}

#[test]
fn after_ten_seconds_of_silence_it_goes_on_without_being_asked() {
    let mut net = Net::new(&itp(&[]), 2);
    let down = Time::ZERO + ms(250)..Time::ZERO + ms(10_250);
    net.rule = Box::new(move |seen, _| {
        if down.contains(&seen.at) {
            Vec::new()
        } else {
            once()
        }
    });
    net.send(0, 1, &content(BYTES));
    net.run_for(Duration::from_secs(40));
    assert!(net.read[1] == content(BYTES));
    assert_eq!(net.count(|seen| matches!(seen.header.kind, Kind::Request)), 0);
    assert_eq!(
        net.count(|seen| matches!(seen.header.kind, Kind::Manifest { .. })),
        1
    );
}

#[test]
fn a_lost_manifest_is_announced_again_until_somebody_asks() {
    let mut net = Net::new(&itp(&[]), 2);
    let mut left = 3;
    net.rule = Box::new(move |seen, _| {
        let is_manifest = matches!(seen.header.kind, Kind::Manifest { .. });
        left -= u32::from(is_manifest && left > 0);
        if is_manifest && left > 0 {
            Vec::new()
        } else {
            once()
        }
    });
    net.send(0, 1, &content(5000));
    net.run_for(Duration::from_secs(30));
    assert!(net.read[1] == content(5000));
    assert_eq!(
        net.count(|seen| matches!(seen.header.kind, Kind::Manifest { .. })),
        3
    );
}

/// Names are of content, so a producer that has lost everything and publishes the same again is the same producer.
#[test]
fn a_producer_that_starts_again_is_not_noticed() {
    let parameters = itp(&[("naming", "hash")]);
    let mut net = Net::new(&parameters, 2);
    net.send(0, 1, &content(BYTES));
    net.run_for(ms(230));
    assert!(!net.read[1].is_empty() && net.read[1].len() < BYTES);
    net.hosts[0] = host(&parameters);
    let flow = net.write(0, 1, &content(BYTES));
    net.hosts[0]
        .publish(net.now, flow, Bytes::from_static(b"10.0.0.1:49152/0"))
        .expect("it was being written");
    net.run_for(Duration::from_secs(20));
    assert!(net.read[1] == content(BYTES));
}

#[test]
fn a_producer_that_knows_the_object_no_more_ends_the_retrieval() {
    let parameters = itp(&[]);
    let mut net = Net::new(&parameters, 2);
    net.send(0, 1, &content(BYTES));
    net.run_for(ms(230));
    net.hosts[0] = host(&parameters);
    net.run_for(Duration::from_secs(5));
    assert_eq!(net.closed(1), Some(&CloseReason::Refused));
}

#[test]
fn eight_timeouts_in_a_row_end_the_retrieval() {
    let mut net = Net::new(&itp(&[]), 2);
    net.rule = Box::new(|seen, _| {
        if seen.from == 0 && seen.is_data() {
            Vec::new()
        } else {
            once()
        }
    });
    net.send(0, 1, &content(BYTES));
    net.run_for(Duration::from_secs(400));
    assert!(
        matches!(net.closed(1), Some(CloseReason::TimedOut(_))),
        "{:?}",
        net.closed(1)
    );
    assert_eq!(net.stats(1).delivered_bytes, 0);
}

#[test]
fn the_nexus_ends_when_nobody_asks() {
    let mut net = Net::new(&itp(&[]), 2);
    net.send(0, 1, &content(BYTES));
    net.run_for(Duration::from_secs(100));
    assert_eq!((net.hosts[0].published(), net.closed(0)), (1, None));
    net.run_for(Duration::from_secs(30));
    assert_eq!(
        (net.hosts[0].published(), net.closed(0)),
        (0, Some(&CloseReason::Finished))
    );
}

#[test]
fn the_consumer_buffer_bounds_what_is_open() {
    let mut net = Net::new(&itp(&[("receive-buffer", "4 packets")]), 2);
    net.send(0, 1, &content(BYTES));
    for _ in 0..100 {
        net.run_for(ms(30));
        if net.accepted(1).is_some() {
            assert!(net.stats(1).in_flight_segments <= 4);
        }
    }
    assert!(net.read[1].len() == BYTES);
}
