//! What a current TCP does beyond the classic: RFC 8985, RFC 9937, RFC 5682, RFC 3168, as Linux has them.

use crate::network::{Pair, Seen, Verdict, noise};
use restp_base::flow::Flow;
use restp_base::machine::{Ecn, Event};
use restp_base::time::{Duration, Time};
use restp_rivals::tcp::TcpParameters;
use restp_rivals::tcp::wire::Flags;

fn ms(n: u64) -> Duration {
    Duration::from_millis(n)
}

/// Drops the data segments of side 0 with these ordinals, counted from 1, retransmissions included.
fn drop_data(ordinals: &'static [u64]) -> Box<dyn FnMut(&Seen) -> Verdict> {
    let mut count = 0;
    Box::new(move |seen| {
        count += u64::from(seen.from == 0 && seen.is_data());
        if seen.from == 0 && seen.is_data() && ordinals.contains(&count) {
            Verdict::Drop
        } else {
            Verdict::Pass
        }
    })
}

#[test]
fn the_syns_agree_on_sack_timestamps_and_scale() {
    let mut pair = Pair::current("cubic", &[]);
    pair.connect();
    for seen in &pair.log[..2] {
        let options = &seen.header.options;
        assert!(options.sack_permitted && options.timestamps.is_some() && options.window_scale.is_some());
        assert!(!seen.has(Flags::ECE), "marks only on request");
    }
}

#[test]
fn the_first_segments_are_acknowledged_one_by_one() {
    let mut pair = Pair::current("cubic", &[]);
    let flows = pair.connect();
    pair.transfer(flows, &noise(10 * 1388), ms(40));
    assert_eq!(pair.count(1, Seen::is_bare_ack), 10);
}

/// The last three of eight are lost: a probe after two round trips shows it, and the rest follows, all before the 220 ms of
/// a timeout.
#[test]
fn a_lost_tail_costs_no_timeout() {
    let mut pair = Pair::current("cubic", &[]);
    let flows = pair.connect();
    pair.rule = drop_data(&[6, 7, 8]);
    let began = pair.now;
    let data = noise(8 * 1388);
    assert_eq!(pair.transfer(flows, &data, ms(200)), data);
    assert!(pair.now.since(began) < ms(150));
    assert_eq!(pair.ends[0].stats(flows.0).unwrap().timeouts, 0);
    let mut classic = Pair::new(&[("ack", "positive+sack"), ("recovery", "pipe")]);
    let flows = classic.connect();
    classic.rule = drop_data(&[6, 7, 8]);
    assert_ne!(classic.transfer(flows, &data, ms(200)), data);
}

/// 15 ms of reordering, less than the round trip: nothing is retransmitted once the first is known to have been late.
#[test]
fn what_comes_late_again_and_again_is_not_retransmitted() {
    let mut pair = Pair::current("cubic", &[]);
    let flows = pair.connect();
    let mut count = 0;
    pair.rule = Box::new(move |seen| {
        count += u64::from(seen.from == 0 && seen.is_data());
        let late = seen.from == 0 && seen.is_data() && count % 20 == 10;
        if late { Verdict::Late(ms(4)) } else { Verdict::Pass }
    });
    let data = noise(500_000);
    assert_eq!(pair.transfer(flows, &data, Duration::from_secs(5)), data);
    let stats = pair.ends[0].stats(flows.0).unwrap();
    assert!(
        stats.retransmitted_packets <= 3,
        "{}",
        stats.retransmitted_packets
    );
    assert_eq!(stats.timeouts, 0);
}

/// The path pauses for a second: the timer fires, and the first acknowledgement echoes a clock from before. Little leaves
/// again, and the window is what it was.
#[test]
fn a_needless_timeout_is_taken_back() {
    let mut pair = Pair::current("cubic", &[]);
    let flows = pair.connect();
    let data = noise(200_000);
    pair.transfer(flows, &data[..100_000], ms(500));
    let before = pair.ends[0].stats(flows.0).unwrap();
    let until = pair.now + ms(1000);
    pair.rule = Box::new(move |seen| {
        if seen.from == 0 && seen.at < until {
            Verdict::Late(until.since(seen.at))
        } else {
            Verdict::Pass
        }
    });
    assert_eq!(
        pair.transfer(flows, &data[100_000..], Duration::from_secs(5)),
        &data[100_000..]
    );
    let after = pair.ends[0].stats(flows.0).unwrap();
    assert!(after.timeouts > before.timeouts);
    // The probe, and the first segment at each timeout.
    let again = after.retransmitted_packets - before.retransmitted_packets;
    assert!(again <= after.timeouts - before.timeouts + 1, "{again}");
    assert!(after.congestion_window_bytes >= before.congestion_window_bytes);
}

fn is_new_data(seen: &Seen) -> bool {
    seen.from == 0 && seen.is_data()
}

#[test]
fn a_mark_is_echoed_until_the_sender_says_that_it_slowed_down() {
    let mut pair = Pair::current("cubic", &[("ecn", "on")]);
    let flows = pair.connect();
    assert!(pair.log[0].has(Flags::ECE | Flags::CWR));
    assert!(pair.log[1].has(Flags::ECE) && !pair.log[1].has(Flags::CWR));
    pair.transfer(flows, &noise(100_000), ms(500));
    let before = pair.ends[0].stats(flows.0).unwrap().congestion_window_bytes;
    let mut marked = false;
    pair.rule = Box::new(move |seen| {
        if is_new_data(seen) && !std::mem::replace(&mut marked, true) {
            Verdict::Mark
        } else {
            Verdict::Pass
        }
    });
    let from = pair.log.len();
    pair.transfer(flows, &noise(100_000), ms(500));
    let said = |flag| pair.log[from..].iter().filter(move |seen| seen.has(flag));
    assert!(said(Flags::ECE).next().is_some_and(|seen| seen.from == 1));
    assert_eq!(said(Flags::CWR).count(), 1, "one reaction to one mark");
    let answered = said(Flags::CWR).next().map(|seen| seen.at + ms(10));
    assert!(said(Flags::ECE).all(|seen| Some(seen.at) <= answered));
    let stats = pair.ends[0].stats(flows.0).unwrap();
    assert_eq!(stats.retransmitted_packets, 0);
    assert!(stats.congestion_window_bytes < before);
}

#[test]
fn only_new_data_can_be_marked_and_only_where_both_want_it() {
    let mut pair = Pair::current("cubic", &[("ecn", "on")]);
    let flows = pair.connect();
    pair.rule = drop_data(&[3]);
    let data = noise(40_000);
    assert_eq!(pair.transfer(flows, &data, Duration::from_secs(2)), data);
    let mut highest = None;
    for seen in pair.log.iter().filter(|seen| seen.from == 0) {
        let end = seen.header.sequence.wrapping_add(seen.payload.len() as u32);
        let new = seen.is_data() && highest.is_none_or(|highest: u32| end.wrapping_sub(highest) as i32 > 0);
        assert_eq!(seen.ecn == Ecn::Ect0, new);
        if new {
            highest = Some(end);
        }
    }
    let mut alone = Pair::current("cubic", &[("ecn", "on")]);
    alone.replace_server(TcpParameters::from_pairs("cubic", &[]).unwrap());
    let flows = alone.connect();
    alone.transfer(flows, &data, Duration::from_secs(2));
    assert!(alone.log.iter().all(|seen| seen.ecn == Ecn::NotEct));
}

/// Of a peer without SACK nothing is asked: duplicates have to do.
#[test]
fn a_classic_peer_is_understood() {
    for swap in [false, true] {
        let mut pair = if swap {
            Pair::new(&[])
        } else {
            Pair::current("cubic", &[])
        };
        let other = if swap {
            TcpParameters::from_pairs("cubic", &[])
        } else {
            TcpParameters::classic_from_pairs("newreno", &[])
        };
        pair.replace_server(other.unwrap());
        let flows = pair.connect();
        pair.rule = drop_data(&[5, 30, 31, 60]);
        let data = noise(200_000);
        assert_eq!(pair.transfer(flows, &data, Duration::from_secs(10)), data);
    }
}

#[test]
fn a_writer_is_woken_when_what_is_in_flight_has_left_the_send_buffer() {
    let mut pair = Pair::current("cubic", &[("send-buffer", "20 KiB")]);
    let (client, _) = pair.connect();
    while pair.ends[0]
        .write(pair.now, client, bytes::Bytes::from(noise(1000)))
        .is_ok()
    {}
    pair.run_for(ms(5));
    pair.events[0].clear();
    pair.run_for(ms(200));
    assert!(
        pair.events[0].contains(&Event::Writable(client)),
        "nothing waits to be sent"
    );
}

/// The send buffer holds what is not acknowledged: with 20 KiB of it no more than that flies.
#[test]
fn the_send_buffer_bounds_the_flight() {
    let mut pair = Pair::current("cubic", &[("send-buffer", "20 KiB")]);
    let flows = pair.connect();
    let mut most = 0;
    let data = noise(400_000);
    let mut sent = 0;
    for _ in 0..400 {
        while sent < data.len()
            && pair.ends[0]
                .write(
                    pair.now,
                    flows.0,
                    bytes::Bytes::copy_from_slice(&data[sent..sent + 1000]),
                )
                .is_ok()
        {
            sent += 1000;
        }
        pair.run_for(ms(1));
        pair.read_all(1, flows.1);
        let flight = pair.ends[0].stats(flows.0).unwrap().in_flight_segments;
        most = most.max(flight);
    }
    assert!((10..=21).contains(&most), "{most} segments of 1000 to 1388 bytes");
    assert!(pair.now > Time::ZERO);
}
