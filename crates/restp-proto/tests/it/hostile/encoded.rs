//! Encoded packets and loss reports that lie (ResTP §3.1.5, §3.5.8): refused and counted, nothing of them is delivered.

use super::WINDOW;
use crate::common::*;
use restp_base::flow::{Flow, Read};
use restp_base::machine::Event;
use restp_base::time::Duration;
use restp_proto::wire::{ErrorControl, Fec, Flags, Header};

fn secs(n: u64) -> Duration {
    Duration::from_secs(n)
}

/// What the acceptor counts as refused after a forged packet of the opener, with HARQ.
fn refused(payload: &[u8], change: impl FnOnce(&mut Header)) -> u64 {
    let mut pair = Pair::new("3wh-harq", &[]);
    let (flow, accepted) = pair.connect();
    pair.forge(0, payload, change);
    let refused = pair.ends[1].stats(accepted).expect("a flow").rejected_packets;
    assert_eq!(
        pair.ends[1].read(pair.now, accepted),
        Read::Empty,
        "nothing of it is delivered"
    );
    assert!(
        pair.transfer(0, (flow, accepted), &noise(20_000), secs(5)),
        "the connection goes on"
    );
    assert_eq!(
        pair.ends[1]
            .stats(accepted)
            .expect("a flow")
            .retransmitted_packets,
        0
    );
    refused
}

/// Makes an encoded packet of a header, `ahead` numbers ahead.
fn encoded(kind: u8, range: u32, ahead: u32) -> impl FnOnce(&mut Header) {
    move |header| {
        header.flags = Flags::NONE;
        header.acknowledgement = None;
        header.services.error = header.services.error | ErrorControl::ENC;
        header.fec = Some(Fec { kind, range });
        header.sequence = header.sequence.map(|number| number.wrapping_add(ahead));
    }
}

#[test]
fn a_range_of_no_packets_or_of_too_many_is_refused() {
    for range in [0, 17, 0xFFFF, 0x00FF_FFFF] {
        assert_eq!(refused(b"\x00\x01a", encoded(1, range, 0)), 1, "{range}");
    }
}

#[test]
fn a_type_that_was_not_agreed_on_is_refused() {
    for kind in [0, 2, 3, 255] {
        assert_eq!(refused(b"\x00\x01a", encoded(kind, 1, 0)), 1, "{kind}");
    }
}

#[test]
fn numbers_outside_the_window_are_refused() {
    for ahead in [WINDOW, WINDOW - 15, 1 << 30, 1 << 31] {
        let before = ahead == 1 << 31; // before the first number: nothing of it is missing
        assert_eq!(
            refused(b"\x00\x01a", encoded(1, 16, ahead)),
            u64::from(!before),
            "{ahead}"
        );
    }
}

#[test]
fn lengths_that_cannot_be_are_refused() {
    for payload in [&b"\x00"[..], b"\x00\x02a", b"\xFF\xFFa", b"\x00\x01ab"] {
        assert_eq!(refused(payload, encoded(1, 1, 0)), 1, "{payload:?}");
    }
}

#[test]
fn a_flood_of_groups_that_nobody_sent_takes_no_memory() {
    let mut pair = Pair::new("3wh-harq", &[]);
    let (_, accepted) = pair.connect();
    let before = pair.ends[1].stats(accepted).expect("a flow").memory_bytes;
    for ahead in 0..8000 {
        pair.forge(0, &[0; 1400], encoded(1, 16, ahead));
    }
    let after = pair.ends[1].stats(accepted).expect("a flow").memory_bytes;
    assert_eq!(after, before);
}

#[test]
fn an_encoded_packet_where_nobody_encodes_is_refused() {
    let mut pair = Pair::new("3wh-arq", &[]);
    let (_, accepted) = pair.connect();
    pair.forge(0, b"\x00\x01a", |header| {
        header.services.error = header.services.error | ErrorControl::ENC;
    });
    assert_eq!(pair.ends[1].stats(accepted).expect("a flow").rejected_packets, 1);
    assert_eq!(pair.ends[1].read(pair.now, accepted), Read::Empty);
}

#[test]
fn a_report_of_losses_that_were_never_sent_is_refused() {
    for range in [1, 0x00FF_FFFF] {
        let change = |header: &mut Header| header.fec = Some(Fec { kind: 1, range });
        assert_eq!(refused(b"", change), 1, "{range}");
    }
}

#[test]
fn a_set_up_with_an_unknown_code_is_refused() {
    for kind in [0, 3, 4, 255] {
        let mut pair = Pair::new("3wh-harq", &[]);
        let flow = pair.open();
        let mut unknown = false;
        pair.rule = Box::new(move |seen| {
            let first = seen.is(Flags::SYN) && !std::mem::replace(&mut unknown, true);
            if first { Verdict::Drop } else { Verdict::Pass }
        });
        pair.run_for(Duration::from_millis(1));
        pair.forge(0, b"", |header| {
            header.flags = Flags::SYN;
            header.acknowledgement = None;
            header.sequence = header.sequence.map(|number| number.wrapping_sub(1));
            header.fec = Some(Fec { kind, range: 0 });
        });
        pair.run_for(Duration::from_millis(100));
        assert_eq!(pair.ends[1].endpoint_stats().refused, 1, "{kind}");
        let closed = |event: &Event| matches!(event, Event::Closed(id, _) if *id == flow);
        assert!(pair.events[0].iter().any(closed), "{kind}");
    }
}
