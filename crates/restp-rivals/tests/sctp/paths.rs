//! Several paths, one at a time (RFC 9260 §6.4, §8): confirmed by heartbeats, changed when the primary one fails, and back.

use super::network::*;
use restp_base::flow::{CloseReason, Flow, PathState};
use restp_base::machine::Event;
use restp_base::time::{Duration, Time};
use restp_rivals::sctp::chunk::Chunk;

fn seconds(n: u64) -> Time {
    Time::ZERO + Duration::from_secs(n)
}

fn dies(path: usize, span: std::ops::Range<u64>) -> Rule {
    Box::new(move |seen| {
        let down = seen.path == path && (seconds(span.start)..seconds(span.end)).contains(&seen.at);
        (!down).then_some(Duration::ZERO)
    })
}

#[test]
fn a_further_path_is_confirmed_by_both_ends_and_carries_nothing_while_the_primary_works() {
    let mut net = Net::new(sctp(&[]), &[deep(10, 10); 2]);
    let flow = net.open();
    assert!(net.bulk(flow, 1400, Duration::from_secs(3)) > 2_000_000);
    let Chunk::Init(init) = net.log[0].chunk() else {
        panic!("INIT is first")
    };
    assert_eq!(init.addresses.len(), 2);
    let on_second = |kind: fn(&Chunk) -> bool| net.count(|seen| seen.path == 1 && kind(seen.chunk()));
    assert_eq!(on_second(|chunk| matches!(chunk, Chunk::Heartbeat(_))), 2);
    assert_eq!(on_second(|chunk| matches!(chunk, Chunk::HeartbeatAck(_))), 2);
    assert_eq!(net.count(|seen| seen.path == 1), 4, "and nothing else");
    for host in [OPENER, SERVER] {
        let up = |event: &&Event| matches!(event, Event::Path(_, _, PathState::Up));
        assert_eq!(net.events[host].iter().filter(up).count(), 1);
    }
}

#[test]
fn when_the_primary_fails_data_goes_on_by_the_other_and_returns() {
    let mut net = Net::new(sctp(&[("heartbeat", "2 s")]), &[line(10, 10), line(10, 30)]);
    net.rule = dies(0, 5..130);
    let flow = net.open();
    net.bulk(flow, 1400, Duration::from_secs(75));
    let went_down = net.events[OPENER]
        .iter()
        .any(|event| matches!(event, Event::Path(_, path, PathState::Down) if *path == Net::path(0)));
    assert!(
        went_down,
        "six timeouts, the last after 1 + 2 + 4 + 8 + 16 + 32 s"
    );
    let at_least = 9_000_000 / 8 * 10;
    assert!(net.bulk(flow, 1400, Duration::from_secs(10)) > at_least);
    net.run_for(Duration::from_secs(60));
    let data = |net: &Net, path: usize, from: u64| {
        net.count(|seen| seen.is_data() && seen.path == path && seen.at >= seconds(from))
    };
    assert!(net.bulk(flow, 1400, Duration::from_secs(10)) > at_least);
    assert!(data(&net, 0, 146) > 5000, "{}", data(&net, 0, 146));
    assert_eq!(data(&net, 1, 150), 0);
    assert_eq!(net.closed(OPENER), None);
}

/// RFC 9260 §6.4.1: what has timed out is tried on another path.
#[test]
fn the_first_timeout_brings_data_by_the_other_path() {
    let mut net = Net::new(sctp(&[]), &[line(10, 10), line(10, 10)]);
    net.rule = dies(0, 2..100);
    let flow = net.open();
    net.bulk(flow, 1400, Duration::from_secs(4));
    assert!(net.stats(flow).timeouts >= 1);
    let by_other = net.count(|seen| seen.is_data() && seen.path == 1);
    assert!(by_other > 0, "{by_other}");
}

#[test]
fn when_all_paths_fail_the_association_is_given_up() {
    let mut net = Net::new(sctp(&[("data-attempts", "4")]), &[line(10, 10), line(10, 10)]);
    net.rule = Box::new(|seen| (seen.at < seconds(1)).then_some(Duration::ZERO));
    let flow = net.open();
    net.bulk(flow, 1400, Duration::from_secs(60));
    assert!(
        matches!(net.closed(OPENER), Some(CloseReason::TimedOut(_))),
        "{:?}",
        net.closed(OPENER)
    );
    assert_eq!(
        net.hosts[OPENER].write(net.now, flow, noise(1).into()),
        Err(restp_base::flow::WriteError::Closed)
    );
}

#[test]
fn an_idle_association_notices_that_its_peer_is_gone() {
    let mut net = Net::new(sctp(&[("heartbeat", "1 s"), ("data-attempts", "3")]), &[wide(10)]);
    net.rule = Box::new(|seen| (seen.at < seconds(10)).then_some(Duration::ZERO));
    net.open();
    net.run_for(Duration::from_secs(10));
    let beats = net.count(|seen| seen.from == OPENER && matches!(seen.chunk(), Chunk::Heartbeat(_)));
    assert!((4..=8).contains(&beats), "every 1.5 to 2.5 s: {beats}");
    net.run_for(Duration::from_secs(30));
    assert!(matches!(net.closed(OPENER), Some(CloseReason::TimedOut(_))));
}

#[test]
fn a_path_that_is_added_late_is_refused() {
    let mut net = Net::new(sctp(&[]), &[wide(10), wide(10)]);
    let flow = net.hosts[OPENER]
        .open(net.now, Net::path(0), PORT)
        .expect("a free port");
    net.run_for(ms(100));
    let late = net.hosts[OPENER].add_path(net.now, flow, Net::path(1), false);
    assert!(
        late.expect_err("refused")
            .to_string()
            .contains("after its set-up")
    );
}

/// RFC 9260 §5.4: not by heartbeats that nobody answers, however many, and whatever the other path does.
#[test]
fn a_path_that_never_answers_is_never_confirmed_and_carries_nothing() {
    for parameters in [
        sctp(&[("heartbeat", "1 s")]),
        cmt("cwnd", &[("heartbeat", "1 s")]),
    ] {
        let mut net = Net::new(parameters, &[line(10, 10); 2]);
        net.rule = Box::new(|seen| (seen.path == 0 || seen.from == OPENER).then_some(Duration::ZERO));
        let flow = net.open();
        net.bulk(flow, 1400, Duration::from_secs(20));
        let heartbeats = |seen: &Seen| seen.path == 1 && matches!(seen.chunk(), Chunk::Heartbeat(_));
        assert!(net.count(heartbeats) > 4);
        let others = |seen: &Seen| {
            seen.from == OPENER
                && seen.path == 1
                && !matches!(seen.chunk(), Chunk::Heartbeat(_) | Chunk::HeartbeatAck(_))
        };
        assert_eq!(net.count(others), 0);
        assert_eq!(net.events[OPENER].len(), 1, "{:?}", net.events[OPENER]);
        assert_eq!(net.closed(OPENER), None);
    }
}

/// The ports towards an address are taken by whoever has a path there, the first one or a further one.
#[test]
fn an_association_that_opens_by_the_further_path_of_another_is_another_one() {
    let mut net = Net::new(cmt("cwnd", &[]), &[line(10, 10); 2]);
    let first = net.open();
    net.run_for(ms(200));
    let second = net.hosts[OPENER]
        .open(net.now, Net::path(1), PORT)
        .expect("a free port");
    net.run_for(ms(200));
    let connected = |flow| net.events[OPENER].contains(&Event::Connected(flow));
    assert!(connected(first) && connected(second));
    assert_eq!((net.closed(OPENER), net.closed(SERVER)), (None, None));
}

/// RFC 9260 §5.4: as often as one that was confirmed is before it is given up, and then in the rhythm of idle paths.
#[test]
fn a_path_that_is_not_confirmed_yet_is_asked_again_soon_and_then_rarely() {
    let mut net = Net::new(cmt("cwnd", &[("path-attempts", "2")]), &[line(10, 10); 2]);
    net.rule = Box::new(|seen| (seen.path == 0).then_some(Duration::ZERO));
    net.open();
    let asked = |seen: &Seen| seen.from == OPENER && matches!(seen.chunk(), Chunk::Heartbeat(_));
    let by_second = |seen: &Seen| seen.path == 1 && asked(seen);
    net.run_for(Duration::from_secs(20));
    assert_eq!(net.count(by_second), 3);
    net.run_for(Duration::from_secs(15));
    assert_eq!(net.count(by_second), 4);
}

/// RFC 9260 §8.1: what is acknowledged by one path shows that the peer lives, however often another does not answer.
#[test]
fn a_path_that_stays_dead_does_not_end_the_association_while_another_works() {
    let set = [
        ("data-attempts", "4"),
        ("path-attempts", "2"),
        ("heartbeat", "1 s"),
        ("rto-ceiling", "2 s"),
    ];
    let mut net = Net::new(sctp(&set), &[line(1, 10); 2]);
    net.rule = dies(0, 2..1000);
    let flow = net.open();
    net.bulk(flow, 1400, Duration::from_secs(60));
    assert_eq!(net.closed(OPENER), None);
    let unanswered = net
        .count(|seen| seen.from == OPENER && seen.path == 0 && matches!(seen.chunk(), Chunk::Heartbeat(_)));
    assert!(unanswered > 8, "{unanswered}");
}
