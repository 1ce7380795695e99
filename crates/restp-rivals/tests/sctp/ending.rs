//! How associations end (RFC 9260 §9): gracefully from either side, with any of the three packets lost, or at once.

use super::network::*;
use restp_base::flow::{CloseReason, Flow, Read};
use restp_base::machine::Machine;
use restp_base::time::Duration;
use restp_rivals::sctp::chunk::{Chunk, Data, Fragment};

fn is_of_the_end(seen: &Seen) -> bool {
    matches!(
        seen.chunk(),
        Chunk::Shutdown { .. } | Chunk::ShutdownAck | Chunk::ShutdownComplete { .. }
    )
}

#[test]
fn three_packets_end_an_association_after_all_data() {
    let mut net = Net::new(sctp(&[]), &[line(10, 10)]);
    let sent = messages(100, 1400);
    let flow = net.transfer(&sent, Duration::from_secs(10));
    assert_eq!(net.read, sent);
    assert_eq!(net.count(is_of_the_end), 3);
    let accepted = net.accepted().expect("accepted");
    net.run_for(ms(50));
    assert_eq!(net.hosts[SERVER].read(net.now, accepted), Read::End);
    net.hosts[OPENER].release(net.now, flow);
    net.hosts[SERVER].release(net.now, accepted);
    net.run_for(ms(50));
    assert_eq!([OPENER, SERVER].map(|host| net.hosts[host].held()), [0, 0]);
}

#[test]
fn every_packet_of_the_end_may_be_lost() {
    for lost in 0..3 {
        let mut net = Net::new(sctp(&[]), &[wide(10)]);
        let mut count = 0;
        net.rule = Box::new(move |seen| {
            count += usize::from(is_of_the_end(seen));
            (!is_of_the_end(seen) || count != lost + 1).then_some(Duration::ZERO)
        });
        net.transfer(&messages(10, 1400), Duration::from_secs(10));
        net.run_for(Duration::from_secs(10));
        for host in [OPENER, SERVER] {
            assert_eq!(
                net.closed(host),
                Some(&CloseReason::Finished),
                "packet {lost}, host {host}"
            );
        }
    }
}

#[test]
fn the_server_may_end_it_and_both_may_at_once() {
    for both in [false, true] {
        let mut net = Net::new(sctp(&[]), &[wide(10)]);
        let flow = net.open();
        net.run_for(ms(100));
        let accepted = net.accepted().expect("accepted");
        net.hosts[SERVER].finish(net.now, accepted);
        if both {
            net.hosts[OPENER].finish(net.now, flow);
        }
        net.run_for(ms(200));
        for host in [OPENER, SERVER] {
            assert_eq!(net.closed(host), Some(&CloseReason::Finished), "{both} {host}");
        }
        assert_eq!(net.hosts[OPENER].read(net.now, flow), Read::End);
    }
}

/// What the other end has queued still travels after it has heard SHUTDOWN.
#[test]
fn who_hears_of_the_end_sends_what_it_has() {
    let mut net = Net::new(sctp(&[]), &[line(10, 10)]);
    let flow = net.open();
    net.run_for(ms(100));
    let accepted = net.accepted().expect("accepted");
    let answer = noise(1400);
    for _ in 0..100 {
        net.hosts[SERVER]
            .write(net.now, accepted, answer.clone().into())
            .expect("room");
    }
    net.hosts[OPENER].finish(net.now, flow);
    net.run_for(Duration::from_secs(3));
    let mut read = 0;
    while let Read::Data(data) = net.hosts[OPENER].read(net.now, flow) {
        read += data.len();
    }
    assert_eq!(read, 140_000);
    assert_eq!(net.closed(SERVER), Some(&CloseReason::Finished));
}

/// SHUTDOWN names no gaps, and takes back none that a SACK has named.
#[test]
fn what_the_peer_holds_beyond_a_gap_stays_acknowledged_when_it_ends() {
    let mut net = Net::new(sctp(&[]), &[wide(10)]);
    let flow = net.open();
    net.run_for(ms(100));
    let accepted = net.accepted().expect("accepted");
    let mut gone = false;
    net.rule = Box::new(move |seen| {
        let lost = !gone && seen.from == SERVER && seen.tsn() == Some(1);
        gone |= lost;
        (!lost).then_some(Duration::ZERO)
    });
    for _ in 0..3 {
        let message = noise(1000).into();
        net.hosts[SERVER].write(net.now, accepted, message).expect("room");
    }
    net.run_for(ms(25));
    net.hosts[OPENER].finish(net.now, flow);
    net.run_for(ms(15));
    let stats = net.hosts[SERVER].stats(accepted).expect("open");
    assert_eq!(stats.in_flight_segments, 1, "the one that was lost");
    net.run_for(Duration::from_secs(5));
    let times = |tsn| net.count(|seen| seen.from == SERVER && seen.tsn() == Some(tsn));
    assert_eq!([0, 1, 2].map(times), [1, 2, 1]);
    assert_eq!(net.closed(SERVER), Some(&CloseReason::Finished));
}

#[test]
fn an_abort_is_heard() {
    let mut net = Net::new(sctp(&[]), &[wide(10)]);
    let flow = net.open();
    net.run_for(ms(100));
    net.hosts[OPENER].abort(net.now, flow);
    net.run_for(ms(20));
    assert_eq!(net.closed(OPENER), Some(&CloseReason::Aborted));
    assert_eq!(net.closed(SERVER), Some(&CloseReason::Reset));
}

/// The chunk `tsn` of the opener, from 0.
fn data(tsn: u32) -> Chunk {
    let fragment = Fragment {
        tsn: FIRST_TSN.wrapping_add(tsn),
        is_first: true,
        is_last: true,
        ..Fragment::default()
    };
    let payload = noise(100).into();
    Chunk::Data(Data { fragment, payload })
}

/// RFC 9260 §9.2. Beyond a gap SHUTDOWN alone would not do.
#[test]
fn data_that_come_after_shutdown_are_answered_with_shutdown_and_a_report() {
    let (mut net, packet) = standing();
    let accepted = net.accepted().expect("accepted");
    net.hosts[SERVER].finish(net.now, accepted);
    assert_eq!(net.says(SERVER).len(), 1);
    for (tsn, cumulative) in [(0, 0), (2, 0), (1, 2)] {
        net.server_hears(&packet, data(tsn));
        let said = net.says(SERVER);
        let cumulative = FIRST_TSN.wrapping_add(cumulative);
        assert_eq!(said[0].chunks[..], [Chunk::Shutdown { cumulative }]);
        match &said[1].chunks[..] {
            [Chunk::Sack(sack)] => assert_eq!(
                (sack.cumulative, sack.blocks.len()),
                (cumulative, (tsn / 2) as usize)
            ),
            other => panic!("{other:?}"),
        }
        assert_eq!(said.len(), 2);
    }
}

/// So long as data come, the peer is not gone: SHUTDOWN is waited for anew (RFC 9260 §9.2).
#[test]
fn who_has_much_to_send_when_it_hears_of_the_end_is_not_given_up() {
    let slow = Line {
        rate: 100_000,
        ..deep(1, 10)
    };
    let mut net = Net::new(sctp(&[("handshake-attempts", "3")]), &[slow]);
    let flow = net.open();
    net.run_for(ms(200));
    let accepted = net.accepted().expect("accepted");
    for _ in 0..100 {
        net.hosts[SERVER]
            .write(net.now, accepted, noise(1400).into())
            .expect("room");
    }
    net.hosts[OPENER].finish(net.now, flow);
    net.run_for(Duration::from_secs(9));
    assert_eq!(net.closed(OPENER), None, "three attempts take 7 s");
    net.run_for(Duration::from_secs(20));
    let mut read = 0;
    while let Read::Data(data) = net.hosts[OPENER].read(net.now, flow) {
        read += data.len();
    }
    assert_eq!(read, 140_000);
    for host in [OPENER, SERVER] {
        assert_eq!(net.closed(host), Some(&CloseReason::Finished), "{host}");
    }
}

/// T5-shutdown-guard (RFC 9260 §9.2): five times the longest timeout.
#[test]
fn who_never_stops_sending_after_shutdown_is_given_up() {
    let mut net = Net::new(sctp(&[("rto-ceiling", "2 s")]), &[wide(10)]);
    net.open();
    net.run_for(ms(100));
    let packet = net.seen(|chunk| matches!(chunk, Chunk::CookieEcho(_)));
    let accepted = net.accepted().expect("accepted");
    net.rule = Box::new(|_| None);
    net.hosts[SERVER].finish(net.now, accepted);
    for tsn in 0..20 {
        assert_eq!(net.closed(SERVER), None, "{tsn}");
        net.server_hears(&packet, data(tsn));
        net.run_for(ms(500));
    }
    assert!(matches!(net.closed(SERVER), Some(CloseReason::TimedOut(_))));
    let last = net.log.iter().rfind(|seen| seen.from == SERVER).expect("sent");
    assert!(matches!(last.chunk(), Chunk::Abort { .. }), "{last:?}");
}

/// RFC 9260 §9.2: and not only once the timer says so.
#[test]
fn every_shutdown_is_answered_at_once() {
    let (mut net, packet) = standing();
    let cumulative = FIRST_TSN.wrapping_sub(1);
    for _ in 0..3 {
        net.server_hears(&packet, Chunk::Shutdown { cumulative });
        let said = net.says(SERVER);
        assert!(
            matches!(&said[..], [answer] if answer.chunks[..] == [Chunk::ShutdownAck]),
            "{said:?}"
        );
    }
}
