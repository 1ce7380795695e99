//! Beginning and end (RFC 9293 §3.5, §3.6).

use crate::network::{PORT, Pair, Verdict};
use bytes::Bytes;
use restp_base::flow::{CloseReason, Flow, Read, WriteError};
use restp_base::machine::Event;
use restp_base::time::{Duration, Time};
use restp_rivals::tcp::wire::{Flags, Header};

#[test]
fn three_segments_open_and_settle_the_options() {
    let mut pair = Pair::new(&[("ack", "positive+sack"), ("timestamps", "on")]);
    let (flow, _) = pair.connect();
    let flags: Vec<_> = pair.log.iter().map(|seen| seen.header.flags).collect();
    assert_eq!(flags, [Flags::SYN, Flags::SYN | Flags::ACK, Flags::ACK]);
    for syn in &pair.log[..2] {
        let options = &syn.header.options;
        assert_eq!((options.mss, options.window_scale), (Some(1412), Some(8)));
        assert!(options.sack_permitted && options.timestamps.is_some());
    }
    assert_eq!(pair.log[0].header.sequence, u32::MAX - 5000);
    assert_eq!(pair.log[1].header.acknowledgement, u32::MAX - 4999);
    assert_eq!(pair.log[1].header.sequence, u32::MAX);
    assert_eq!(
        pair.log[2].header.acknowledgement, 0,
        "the SYN took the last number"
    );
    assert_eq!(u64::from(pair.log[2].header.window), 8192 * 1400 / 256);
    let stats = pair.ends[0].stats(flow).unwrap();
    assert_eq!(stats.handshake, Some(Duration::from_millis(20)));
    assert_eq!(stats.srtt, stats.handshake);
}

#[test]
fn an_option_that_one_side_lacks_is_not_used() {
    let mut pair = Pair::new(&[("window-scaling", "off")]);
    pair.connect();
    assert_eq!(pair.log[1].header.options.window_scale, None);
    assert_eq!(pair.log[2].header.window, 0xffff);
}

#[test]
fn lost_set_up_segments_are_retransmitted_after_3_s() {
    for lost in [Flags::SYN, Flags::SYN | Flags::ACK] {
        let mut pair = Pair::new(&[]);
        let mut left = 1;
        pair.rule = Box::new(move |seen| {
            if seen.header.flags == lost && left > 0 {
                left -= 1;
                return Verdict::Drop;
            }
            Verdict::Pass
        });
        let flow = pair.open();
        pair.run_for(Duration::from_millis(3015));
        assert!(pair.events[0].is_empty(), "{lost:?}");
        pair.run_for(Duration::from_millis(20));
        assert_eq!(pair.events[0], [Event::Connected(flow)], "{lost:?}");
        assert_eq!(pair.ends[0].stats(flow).unwrap().srtt, None, "Karn's rule");
    }
}

#[test]
fn data_completes_an_exchange_whose_last_segment_was_lost() {
    let mut pair = Pair::new(&[]);
    pair.rule = Box::new(|seen| {
        if seen.is_bare_ack() && seen.from == 0 {
            Verdict::Drop
        } else {
            Verdict::Pass
        }
    });
    let flow = pair.open();
    pair.run_for(Duration::from_millis(30));
    assert_eq!(pair.accepted(), None);
    pair.write(0, flow, b"hello");
    pair.run_for(Duration::from_millis(30));
    let accepted = pair.accepted().expect("accepted");
    assert_eq!(pair.read_all(1, accepted), b"hello");
}

#[test]
fn silence_ends_an_attempt_after_six_syns() {
    let mut pair = Pair::new(&[]);
    pair.rule = Box::new(|_| Verdict::Drop);
    pair.open();
    pair.run_for(Duration::from_secs(200));
    assert_eq!(pair.log.len(), 6);
    assert_eq!(
        pair.closed(0),
        Some(&CloseReason::TimedOut(Duration::from_secs(
            3 + 6 + 12 + 24 + 48 + 96
        )))
    );
}

#[test]
fn a_port_that_nobody_serves_answers_with_rst() {
    let mut pair = Pair::new(&[]);
    pair.ends[0].open(Time::ZERO, Pair::path(0), PORT + 1).unwrap();
    pair.run_for(Duration::from_millis(30));
    assert_eq!(pair.closed(0), Some(&CloseReason::Refused));
    assert_eq!(pair.log[1].header.flags, Flags::RST | Flags::ACK);
    assert_eq!(
        (pair.ends[1].connections(), pair.ends[1].dropped_segments()),
        (0, 1)
    );
}

#[test]
fn each_direction_ends_on_its_own_and_who_ended_first_lingers() {
    let mut pair = Pair::new(&[]);
    let (client, server) = pair.connect();
    pair.write(0, client, b"question");
    pair.ends[0].finish(pair.now, client);
    assert_eq!(
        pair.ends[0].write(pair.now, client, Bytes::from_static(b"more")),
        Err(WriteError::Closed)
    );
    pair.run_for(Duration::from_millis(100));
    assert_eq!(pair.read_all(1, server), b"question");
    assert_eq!(pair.ends[1].read(pair.now, server), Read::End);
    assert_eq!((pair.closed(0), pair.closed(1)), (None, None));

    pair.write(1, server, b"answer");
    pair.ends[1].finish(pair.now, server);
    pair.run_for(Duration::from_millis(100));
    assert_eq!(pair.read_all(0, client), b"answer");
    for side in 0..2 {
        assert_eq!(pair.closed(side), Some(&CloseReason::Finished), "side {side}");
        assert_eq!(pair.count(side, |seen| seen.has(Flags::FIN)), 1);
    }
    pair.ends[0].release(pair.now, client);
    pair.ends[1].release(pair.now, server);
    pair.run_for(Duration::from_secs(59));
    assert_eq!([pair.ends[0].connections(), pair.ends[1].connections()], [1, 0]);
    pair.run_for(Duration::from_secs(2));
    assert_eq!(pair.ends[0].connections(), 0);
}

#[test]
fn a_lost_last_acknowledgement_is_given_again_by_who_lingers() {
    let mut pair = Pair::new(&[]);
    let (client, server) = pair.connect();
    pair.ends[0].finish(pair.now, client);
    pair.run_for(Duration::from_millis(30));
    let mut left = 1;
    pair.rule = Box::new(move |seen| {
        if seen.from == 0 && left > 0 {
            left -= 1;
            return Verdict::Drop;
        }
        Verdict::Pass
    });
    pair.ends[1].finish(pair.now, server);
    pair.run_for(Duration::from_secs(2));
    assert_eq!(pair.count(1, |seen| seen.has(Flags::FIN)), 2);
    assert_eq!(pair.closed(1), Some(&CloseReason::Finished));
}

#[test]
fn fins_that_cross_end_both_sides() {
    let mut pair = Pair::new(&[]);
    let (client, server) = pair.connect();
    pair.ends[0].finish(pair.now, client);
    pair.ends[1].finish(pair.now, server);
    pair.run_for(Duration::from_millis(100));
    assert_eq!(
        (pair.closed(0), pair.closed(1)),
        (Some(&CloseReason::Finished), Some(&CloseReason::Finished))
    );
}

#[test]
fn an_end_that_nobody_holds_waits_one_minute_for_the_peer_to_finish() {
    let mut pair = Pair::new(&[]);
    let (client, _) = pair.connect();
    pair.ends[0].release(pair.now, client);
    pair.run_for(Duration::from_secs(59));
    assert_eq!(pair.ends[0].connections(), 1);
    pair.run_for(Duration::from_secs(2));
    assert_eq!(pair.ends[0].connections(), 0);
}

#[test]
fn breaking_off_tells_the_peer_at_once() {
    let mut pair = Pair::new(&[]);
    let (client, server) = pair.connect();
    pair.ends[0].abort(pair.now, client);
    pair.run_for(Duration::from_millis(30));
    assert_eq!(pair.closed(0), Some(&CloseReason::Aborted));
    assert_eq!(pair.closed(1), Some(&CloseReason::Reset));
    pair.ends[1]
        .write(pair.now, server, Bytes::from_static(b"x"))
        .unwrap_err();
}

#[test]
fn a_segment_of_a_connection_that_is_gone_is_answered_with_rst() {
    let mut pair = Pair::new(&[]);
    let (client, server) = pair.connect();
    pair.rule = Box::new(|seen| {
        if seen.has(Flags::RST) && seen.from == 0 {
            Verdict::Drop
        } else {
            Verdict::Pass
        }
    });
    pair.ends[0].abort(pair.now, client);
    pair.run_for(Duration::from_millis(30));
    assert_eq!(pair.closed(1), None, "its RST was lost");
    pair.rule = Box::new(|_| Verdict::Pass);
    pair.write(1, server, b"are you there?");
    pair.run_for(Duration::from_millis(30));
    assert_eq!(pair.closed(1), Some(&CloseReason::Reset));
}

#[test]
fn a_peer_that_answers_nothing_is_given_up_after_the_allowed_attempts() {
    let mut pair = Pair::new(&[("data-attempts", "4")]);
    let (client, _) = pair.connect();
    pair.rule = Box::new(|_| Verdict::Drop);
    pair.write(0, client, b"hello");
    pair.run_for(Duration::from_secs(60));
    assert!(matches!(pair.closed(0), Some(CloseReason::TimedOut(_))));
    assert_eq!(pair.count(0, |seen| seen.is_data()), 5);
    assert_eq!(pair.ends[0].stats(client).unwrap().timeouts, 4);
}

/// RFC 5961 §3.2: the exact number resets, one within the window is asked to prove itself, others are dropped.
#[test]
fn a_reset_counts_only_with_the_number_expected_next() {
    let mut pair = Pair::new(&[]);
    pair.connect();
    let last = pair.log[2].header.clone();
    let reset = |sequence: u32| Header {
        sequence,
        flags: Flags::RST,
        ..last.clone()
    };
    pair.forge(0, &reset(last.sequence.wrapping_sub(1)), b"");
    pair.run_for(Duration::from_millis(30));
    assert_eq!(
        (pair.closed(1), pair.count(1, |seen| seen.is_bare_ack())),
        (None, 0)
    );
    pair.forge(0, &reset(last.sequence.wrapping_add(1000)), b"");
    pair.run_for(Duration::from_millis(30));
    assert_eq!(
        (pair.closed(1), pair.count(1, |seen| seen.is_bare_ack())),
        (None, 1)
    );
    pair.forge(0, &reset(last.sequence), b"");
    pair.run_for(Duration::from_millis(30));
    assert_eq!(pair.closed(1), Some(&CloseReason::Reset));
}
