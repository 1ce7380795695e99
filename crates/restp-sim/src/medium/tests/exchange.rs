//! Two or three stations: the published numbers, ranges, retries, queues, flipped bits.

use super::super::timing::{DSSS, OFDM, Timing};
use super::*;
use crate::medium::{MediumError, Rates};

/// CMT §4.3: an exchange takes 5654 µs with the mean backoff, so one hop carries 1.415 Mb/s. Propagation comes on top:
/// four times a nanosecond here.
#[test]
fn one_hop_carries_1_415_mbps() {
    let spec = line(&[0.0, 0.3]);
    let end = seconds(60);
    let tally = &saturate(&spec, &[vec![hop(&spec, 0, 1)]], (2, end), 1)[0];
    let measured = mbps(tally, end);
    assert!((measured / 1.415 - 1.0).abs() < 0.003, "{measured}");
    assert_eq!(tally.dropped, []);
}

/// CMT §4.3: with a SACK for every two packets 1.234 Mb/s, were there one backoff after the other. They run at the same
/// time here, and sometimes out together, so a few per cent more.
#[test]
fn one_hop_with_acknowledgements_carries_1_234_mbps_and_a_little_more() {
    let spec = line(&[0.0, 300.0]);
    let (there, back) = (hop(&spec, 0, 1), hop(&spec, 1, 0));
    let (mut medium, end, mut delivered) = (Medium::new(&spec, 1), seconds(60), 0u64);
    for _ in 0..10 {
        medium.offer(Time::ZERO, there, parcel(0, PACKET)).expect("room");
    }
    while let Some(now) = medium.next().filter(|now| *now < end) {
        match medium.advance(now) {
            Some(Outcome::Delivered { hop, .. }) if hop == there => {
                delivered += 1;
                medium.offer(now, there, parcel(0, PACKET)).expect("room");
                if delivered.is_multiple_of(2) {
                    medium.offer(now, back, parcel(0, 48)).expect("room");
                }
            }
            Some(Outcome::Dropped { .. }) => panic!("two stations in range drop nothing"),
            _ => {}
        }
    }
    let measured = delivered as f64 * 8000.0 / 1e6 / end.as_secs_f64();
    assert!((1.234..1.234 * 1.03).contains(&measured), "{measured}");
}

#[test]
fn control_frames_at_1_mbps_take_their_time() {
    let mut spec = line(&[0.0, 0.3]);
    spec.timing = Timing::dsss(DSSS[0]);
    let end = seconds(60);
    let measured = mbps(&saturate(&spec, &[vec![0]], (2, end), 1)[0], end);
    let exchange = 50.0 + 310.0 + 352.0 + 3.0 * 10.0 + 2.0 * 304.0 + 4496.0;
    assert!((measured * exchange / 8000.0 - 1.0).abs() < 0.003, "{measured}");
}

/// CMT §4.2: frames reach 370 m.
#[test]
fn there_is_a_link_of_369_m_and_none_of_371_m() {
    assert_eq!(line(&[0.0, 369.0]).pairs().len(), 1);
    let far = line(&[0.0, 371.0]);
    assert_eq!(far.pairs(), []);
    let error = far.check().expect_err("no link");
    assert!(matches!(error, MediumError::Alone { .. }), "{error}");
    let end = seconds(1);
    assert!(saturate(&line(&[0.0, 369.0]), &[vec![0]], (2, end), 1)[0].delivered > 170);
}

/// The far end is drowned by a neighbour that never stops, and does not hear the sender.
#[test]
fn what_is_never_answered_is_dropped_after_seven_requests_with_its_cause() {
    // 0 → 1; 2 and 3 are hidden from 0, and their frames spoil what 1 receives.
    let spec = line(&[0.0, 300.0, 1050.0, 1060.0]);
    let (mut medium, mut now) = (Medium::new(&spec, 1), Time::ZERO);
    let noise = hop(&spec, 2, 3);
    for _ in 0..2 {
        medium.offer(now, noise, parcel(9, 2304)).expect("room");
    }
    medium.offer(now, 0, parcel(1, PACKET)).expect("room");
    let mut dropped = None;
    while dropped.is_none() && now < seconds(1) {
        now = medium.next().expect("somebody always sends");
        match medium.advance(now) {
            Some(Outcome::Delivered { hop, .. }) if hop == noise => {
                medium.offer(now, noise, parcel(9, 2304)).expect("room");
            }
            Some(outcome) => dropped = Some(outcome),
            None => {}
        }
    }
    let reason = DropReason::Collision;
    let expected = Outcome::Dropped {
        packet: 1,
        hop: 0,
        reason,
    };
    assert_eq!(dropped, Some(expected));
    assert_eq!(medium.counters(0).dropped_collision, 1);
    let requests = medium.counters(0).busy.as_nanos() / spec.timing.rts().as_nanos();
    assert_eq!(requests, 7);
}

#[test]
fn fifty_packets_wait_and_no_more_whoever_they_are_for() {
    let spec = chain(2);
    let mut medium = Medium::new(&spec, 1);
    let ends = [hop(&spec, 1, 0), hop(&spec, 1, 2)];
    let taken = (0..60).filter(|n| {
        medium
            .offer(Time::ZERO, ends[n % 2], parcel(*n as u64, PACKET))
            .is_ok()
    });
    assert_eq!(taken.count(), 51, "one is being sent");
    let drops = ends.map(|hop| medium.counters(hop).dropped_queue);
    assert_eq!(drops, [4, 5]);
    let (waiting, _) = medium.waiting(ends[0]);
    assert_eq!(waiting + medium.waiting(ends[1]).0, 50);
    let long = medium.offer(Time::ZERO, ends[0], parcel(0, 2305));
    assert_eq!(long, Err(DropReason::Length));
}

/// One bit in a hundred thousand: of the data frames (1076 B) 8.2 % are hit, of the others 0.1 to 0.2 %.
#[test]
fn flipped_bits_cost_attempts_and_are_told_from_collisions() {
    let mut spec = line(&[0.0, 300.0]);
    let end = seconds(120);
    spec.bit_error_rate = 1e-5;
    let some = saturate(&spec, &[vec![0]], (2, end), 1).remove(0);
    assert_eq!(some.drops(DropReason::Collision), 0);
    let share = mbps(&some, end) / 1.414;
    // An attempt that fails costs as much as one that does not, and a longer backoff.
    assert!((0.88..0.93).contains(&share), "{share}");
    spec.bit_error_rate = 1e-4;
    let many = saturate(&spec, &[vec![0]], (2, end), 1).remove(0);
    let tried = many.delivered + many.drops(DropReason::Error);
    // 57.7 % of the data frames; four attempts, of which an ACK or CTS may fail too.
    let dropped = many.drops(DropReason::Error) as f64 / tried as f64;
    assert!(
        (0.577f64.powi(4) - 0.03..0.577f64.powi(4) + 0.03).contains(&dropped),
        "{dropped}"
    );
}

/// A receiver that has the packet is not handed it again when its ACK was hit, and a sender that gives up has not lost it.
#[test]
fn a_lost_acknowledgement_neither_doubles_nor_drops_a_packet() {
    let mut spec = line(&[0.0, 300.0]);
    spec.bit_error_rate = 3e-3;
    let mut medium = Medium::new(&spec, 1);
    let (mut fates, mut now) = (vec![0; 400], Time::ZERO);
    let mut sent = 0;
    while now < seconds(30) {
        if sent < 400 && medium.offer(now, 0, parcel(sent, 10)).is_ok() {
            sent += 1;
        }
        let Some(at) = medium.next() else { break };
        now = at;
        if let Some(Outcome::Delivered { packet, .. } | Outcome::Dropped { packet, .. }) = medium.advance(now)
        {
            fates[packet as usize] += 1;
        }
    }
    assert!(fates.iter().all(|&fate| fate == 1), "{fates:?}");
    let counters = medium.counters(0);
    assert_eq!(counters.delivered + counters.dropped_error, 400);
    assert!(
        counters.dropped_error > 10 && counters.delivered > 100,
        "{counters:?}"
    );
}

/// A packet that is passed on comes while its own ACK keeps the medium busy, so it waits for a backoff of its own.
#[test]
fn a_station_that_passes_a_packet_on_backs_off_first() {
    let spec = chain(2);
    let hops = [hop(&spec, 0, 1), hop(&spec, 1, 2)];
    let between = |seed: u64| {
        let mut medium = Medium::new(&spec, seed);
        medium
            .offer(Time::ZERO, hops[0], parcel(0, PACKET))
            .expect("room");
        let mut delivered = Vec::new();
        while let Some(now) = medium.next() {
            if let Some(Outcome::Delivered { hop, .. }) = medium.advance(now) {
                delivered.push(now);
                if hop == hops[0] {
                    medium.offer(now, hops[1], parcel(0, PACKET)).expect("room");
                }
            }
        }
        delivered[1].since(delivered[0]).as_micros()
    };
    let spans: Vec<u64> = (0..200).map(between).collect();
    // The ACK, DIFS, the exchange up to the end of the data, and propagation; then 0 to 31 slots.
    let least = 10 + 248 + 50 + 272 + 10 + 248 + 10 + 4496;
    let slots: Vec<u64> = spans.iter().map(|us| (us - least) / 20).collect();
    assert_eq!(
        (slots.iter().min(), slots.iter().max()),
        (Some(&0), Some(&31)),
        "{slots:?}"
    );
    let mean = slots.iter().sum::<u64>() as f64 / 200.0;
    assert!((mean - 15.5).abs() < 2.0, "{mean}");
}

/// Far apart, data may reach a station that waits for an answer, or whose own answer is still on its way.
#[test]
fn nobody_waits_for_ever_for_an_answer_that_was_interrupted() {
    let mut spec = line(&[0.0, 20_000.0, 39_000.0]);
    (spec.ranges.decode, spec.ranges.sense, spec.ranges.interfere) = (30_000.0, 30_000.0, 30_000.0);
    spec.timing = Timing::ofdm(OFDM[4]);
    (spec.rates, spec.rts_threshold) = (Rates::Fixed(OFDM[7]), 3000);
    let hops = [hop(&spec, 0, 1), hop(&spec, 2, 1), hop(&spec, 1, 0)];
    let (mut medium, mut fates, end) = (Medium::new(&spec, 1), [0; 3], seconds(5));
    let offer = |medium: &mut Medium, now, flow: usize| {
        let packet = parcel(flow as u64, 60);
        medium.offer(now, hops[flow], packet).expect("room");
    };
    (0..3).for_each(|flow| offer(&mut medium, Time::ZERO, flow));
    while let Some(now) = medium.next().filter(|now| *now < end) {
        if let Some(Outcome::Delivered { packet, .. } | Outcome::Dropped { packet, .. }) = medium.advance(now)
        {
            fates[packet as usize] += 1;
            offer(&mut medium, now, packet as usize);
        }
    }
    assert!(fates.iter().all(|&fates| fates > 100), "{fates:?}");
}

#[test]
fn a_seed_is_a_run() {
    let spec = chain(4);
    let flow: Vec<u32> = (0..4).map(|n| hop(&spec, n, n + 1)).collect();
    let run = |seed| saturate(&spec, std::slice::from_ref(&flow), (2, seconds(20)), seed);
    assert_eq!(run(1), run(1));
    assert_ne!(run(1), run(2));
}

#[test]
fn impossible_media_are_refused_by_name() {
    let refused = |change: fn(&mut MediumSpec)| {
        let mut spec = chain(2);
        change(&mut spec);
        spec.check().expect_err("impossible").to_string()
    };
    assert!(
        refused(|s| s.stations[1].place = Place::new(0.001, 0.0)).contains("\"n1\" stands where \"n0\" does")
    );
    assert!(
        refused(|s| s.stations[1].place = Place::new(f64::NAN, 0.0)).contains("cannot stand at (NaN, 0)")
    );
    assert!(refused(|s| s.stations[1].place = Place::new(0.0, 2e5)).contains("from -100000 to 100000"));
    assert!(
        refused(|s| s.stations[2].place = Place::new(900.0, 0.0))
            .contains("\"n1\" comes no nearer than 600.0 m and frames reach 370 m")
    );
    assert!(refused(|s| s.stations.truncate(1)).contains("nobody else is on its channel"));
    assert!(refused(|s| s.stations[1].node = "n0".into()).contains("two radios"));
    assert!(refused(|s| s.ranges.sense = 100.0).contains("at least as far as decode"));
    assert!(refused(|s| s.bit_error_rate = 2.0).contains("2 is no share of the bits"));
    assert!(refused(|s| s.queue_packets = 0).contains("a queue of 0 packets"));
    let twice = vec![
        (seconds(2), Place::new(9.0, 0.0)),
        (seconds(2), Place::new(8.0, 0.0)),
    ];
    let mut spec = chain(2);
    spec.stations[1].waypoints = twice;
    let sentence = spec.check().expect_err("impossible").to_string();
    assert!(
        sentence.contains("\"n1\" cannot be anywhere at 2 s"),
        "{sentence}"
    );
    assert_eq!(chain(16).check(), Ok(()));
}
