//! Packets of a known association whose numbers, blocks and windows lie.

use super::WINDOW;
use crate::common::*;
use restp_base::flow::{CloseReason, Flow, Read};
use restp_base::time::Duration;
use restp_proto::wire::{Blocks, Flags, Header, Tail};

fn secs(n: u64) -> Duration {
    Duration::from_secs(n)
}

/// An established connection, and how often the acceptor has refused something.
fn established(set: &[(&str, &str)]) -> (Pair, restp_base::flow::FlowId, restp_base::flow::FlowId) {
    let mut pair = Pair::new("3wh-arq", set);
    let (flow, accepted) = pair.connect();
    (pair, flow, accepted)
}

/// What the acceptor counts as refused after a forged packet of the opener.
fn refused(payload: &[u8], change: impl FnOnce(&mut Header)) -> u64 {
    let (mut pair, flow, accepted) = established(&[]);
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
    refused
}

fn shifted(number: Option<u32>, by: u32) -> Option<u32> {
    number.map(|number| number.wrapping_add(by))
}

#[test]
fn lies_about_numbers_are_counted_and_change_nothing() {
    assert_eq!(
        refused(b"x", |h| h.flags = Flags::ACK | Flags::FIN),
        1,
        "FIN with payload"
    );
    assert_eq!(
        refused(b"", |h| h.acknowledgement = shifted(h.acknowledgement, 1)),
        1,
        "ACK of the unsent"
    );
    assert_eq!(
        refused(b"", |h| h.acknowledgement = shifted(h.acknowledgement, 1 << 31)),
        0,
        "ACK of long ago"
    );
    assert_eq!(
        refused(b"x", |h| h.sequence = shifted(h.sequence, WINDOW)),
        1,
        "just outside the window"
    );
    assert_eq!(
        refused(b"x", |h| h.sequence = shifted(h.sequence, 0x7FFF_FFFF)),
        1,
        "far outside"
    );
    assert_eq!(
        refused(b"x", |h| h.sequence = shifted(h.sequence, u32::MAX)),
        0,
        "before the window: a duplicate"
    );
    assert_eq!(
        refused(b"", |h| (h.flags, h.acknowledgement) = (Flags::SYN, None)),
        0,
        "a SYN again is answered, no more"
    );
    assert_eq!(refused(b"", |h| h.flags = Flags::SYN | Flags::ACK), 0);
}

#[test]
fn each_service_bit_that_changes_makes_a_packet_a_strangers() {
    use restp_proto::wire::{Framing, Order};
    let change = |change: fn(&mut Header)| {
        assert_eq!(refused(b"x", change), 1);
    };
    change(|h| h.services.framing = Framing::Fixed);
    change(|h| h.services.order = Order::Unordered);
    change(|h| h.services.order = Order::Partial);
    change(|h| h.services.congestion = 3);
    change(|h| (h.services.flow_control, h.window) = (0, None));
    change(|h| h.services.error = h.services.error | restp_proto::wire::ErrorControl::CRC);
    change(|h| h.services.error = h.services.error | restp_proto::wire::ErrorControl::SAK);
}

#[test]
fn nothing_follows_a_fin_and_nothing_replaces_it() {
    let (mut pair, flow, accepted) = established(&[]);
    pair.write(0, flow, b"first");
    pair.run_for(secs(1));
    // A FIN with one segment missing before it, then what must not be.
    pair.forge(0, b"", |h| {
        (h.flags, h.sequence) = (Flags::ACK | Flags::FIN, shifted(h.sequence, 1))
    });
    for beyond in [1, 2, 3] {
        pair.forge(0, b"beyond", |h| h.sequence = shifted(h.sequence, beyond));
    }
    for other in [0, 2, 3] {
        pair.forge(0, b"", |h| {
            (h.flags, h.sequence) = (Flags::ACK | Flags::FIN, shifted(h.sequence, other))
        });
    }
    assert_eq!(pair.ends[1].stats(accepted).unwrap().rejected_packets, 6);
    pair.forge(0, b"last", |_| {});
    assert_eq!(pair.read_all(1, accepted), [&b"first"[..], b"last"]);
    assert_eq!(pair.ends[1].read(pair.now, accepted), Read::End);
}

#[test]
fn reports_that_make_no_sense_are_refused_or_say_nothing() {
    let (mut pair, flow, accepted) = established(&[("ack", "positive+sack"), ("recovery", "pipe")]);
    pair.rule = silent(0);
    pair.write(0, flow, &noise(1400 * 8));
    pair.run_for(Duration::from_millis(1));
    assert_eq!(pair.ends[0].stats(flow).unwrap().in_flight_segments, 8);
    let mut report = |blocks: &[(u32, u32)]| {
        pair.forge(1, b"", |header| {
            let first = header.acknowledgement.unwrap();
            let edges = blocks
                .iter()
                .map(|(l, r)| (first.wrapping_add(*l), first.wrapping_add(*r)));
            header.tail = Tail::Sack(edges.collect::<Blocks>());
        });
        let stats = pair.ends[0].stats(flow).unwrap();
        (
            stats.in_flight_segments,
            stats.lost_packets,
            stats.rejected_packets,
        )
    };
    assert_eq!(report(&[(5, 2)]), (8, 0, 0), "inverted");
    assert_eq!(
        report(&[(u32::MAX - 9, u32::MAX - 2)]),
        (8, 0, 0),
        "below the pointer"
    );
    assert_eq!(report(&[(2, 8)]), (8, 0, 1), "beyond what was sent");
    assert_eq!(
        report(&[(2, 4), (1 << 30, 1 << 30)]),
        (8, 0, 2),
        "one of two beyond"
    );
    assert_eq!(
        report(&[(u32::MAX - 9, 0)]),
        (8, 0, 3),
        "over the pointer, which says that it was not received"
    );
    assert_eq!(report(&[(6, 7), (6, 7), (7, 7)]), (6, 0, 3), "overlapping");
    assert_eq!(
        report(&[(3, 3); 30]),
        (3, 3, 3),
        "thirty times the same: three have three later ones reported, one leaves again"
    );
    pair.rule = Box::new(|_| Verdict::Pass);
    pair.run_for(secs(60));
    assert!(
        pair.closed(0)
            .is_none_or(|reason| *reason != CloseReason::Finished)
    );
    let got: usize = pair.read_all(1, accepted).iter().map(|data| data.len()).sum();
    assert!(got < 1400 * 8, "what the peer claimed to have is not sent again");
}

#[test]
fn a_shut_window_with_nothing_to_send_sends_nothing() {
    let (mut pair, flow, accepted) = established(&[("window", "4 segments")]);
    pair.write(0, flow, &noise(4 * 1400));
    pair.run_for(secs(20));
    assert_eq!(
        pair.log
            .iter()
            .filter(|seen| seen.header.flags.has(Flags::FIN))
            .count(),
        0
    );
    assert_eq!(pair.log.iter().filter(|seen| seen.is_data()).count(), 4);
    pair.rule = silent(1);
    let read = pair.read_all(1, accepted); // the news of the free window are lost
    pair.run_for(secs(5));
    pair.rule = Box::new(|_| Verdict::Pass);
    pair.write(0, flow, b"more");
    pair.run_for(secs(5));
    assert_eq!(read.concat(), noise(4 * 1400));
    assert_eq!(
        pair.read_all(1, accepted),
        [&b"more"[..]],
        "the first segment tries the window"
    );
}

#[test]
fn a_window_that_shrinks_holds_new_data_back_and_kills_nothing() {
    let (mut pair, flow, accepted) = established(&[]);
    pair.write(0, flow, &noise(200_000));
    pair.run_for(Duration::from_millis(15));
    for window in [100, 3, 0, 1, 0] {
        pair.forge(1, b"", |header| header.window = Some(window));
    }
    pair.run_for(secs(20));
    let got = pair.read_all(1, accepted).concat();
    assert_eq!(got, noise(200_000));
}

#[test]
fn what_both_ends_believe_of_each_other_may_differ_without_a_storm() {
    let (mut pair, flow, accepted) = established(&[]);
    // Each end has taken a segment that the other never sent: every acknowledgement is of the unsent.
    pair.forge(0, b"never sent", |_| {});
    pair.forge(1, b"never sent", |_| {});
    let before = pair.log.len();
    pair.run_for(secs(60));
    let storm = pair.log.len() - before;
    assert!(storm < 700, "{storm} packets in a minute");
    let _ = (flow, accepted);
}

#[test]
fn large_segments_take_no_more_memory_than_a_window_of_ours() {
    let window = 64;
    let (mut pair, _, accepted) = established(&[("window", "64 segments")]);
    for index in 1..window {
        pair.forge(0, &noise(60_000), |h| h.sequence = shifted(h.sequence, index));
    }
    let memory = pair.ends[1].stats(accepted).unwrap().memory_bytes;
    assert!(memory < 3 * 64 * 1400, "{memory} bytes");
    pair.forge(0, b"the missing one", |_| {});
    assert_eq!(
        pair.ends[1].read(pair.now, accepted),
        Read::Data((&b"the missing one"[..]).into())
    );
}

#[test]
fn without_retransmissions_a_window_lost_as_a_whole_does_not_stop_the_flow() {
    let set = [
        ("connection", "three-way"),
        ("flow-control", "window"),
        ("ack", "positive"),
        ("window", "4 segments"),
    ];
    let mut pair = Pair::new("unrel", &set);
    let (flow, accepted) = pair.connect();
    pair.rule = Box::new(|_| Verdict::Drop);
    for _ in 0..8 {
        pair.write(0, flow, b"lost");
    }
    pair.run_for(secs(3));
    pair.rule = Box::new(|_| Verdict::Pass);
    for index in 0..20u8 {
        pair.write(0, flow, &[index]);
    }
    let mut last = None;
    for _ in 0..300 {
        pair.run_for(Duration::from_millis(100));
        last = pair.read_all(1, accepted).pop().or(last);
    }
    assert_eq!(last.unwrap()[..], [19]);
    pair.run_for(secs(600));
    assert_eq!((pair.closed(0), pair.closed(1)), (None, None), "idle is not dead");
}
