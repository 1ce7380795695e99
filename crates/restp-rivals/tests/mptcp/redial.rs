//! Paths that fail are dialled again, and a connection outlives its last subflow for a while.

use crate::network::{Net, Rule, Seen, is_join, line, noise};
use bytes::Bytes;
use restp_base::flow::{CloseReason, Flow};
use restp_base::time::{Duration, Time};
use restp_rivals::mptcp::options::Multipath;
use restp_rivals::tcp::wire::Flags;

const MS: fn(u64) -> Duration = Duration::from_millis;
const SECS: fn(u64) -> Duration = Duration::from_secs;

/// Every direction of `path` is dead from 1 s for `away`.
fn outage(path: usize, away: Duration) -> (Time, Rule) {
    let (from, until) = (Time::ZERO + SECS(1), Time::ZERO + SECS(1) + away);
    let rule = move |seen: &mut Seen| seen.path != path || !(from..until).contains(&seen.at);
    (until, Box::new(rule))
}

/// Six timeouts in a row kill the subflow after some 13 s; one of Linux's would live on, and has the same end below.
#[test]
fn a_path_that_is_away_for_60_s_is_used_again() {
    for (set, again) in [(&[("data-attempts", "6")][..], 1), (&[], 0)] {
        let mut net = Net::pair(set, &[line(5, 0), line(5, 1)]);
        let (back, rule) = outage(1, SECS(60));
        net.rule = rule;
        let flow = net.open(0);
        net.bulk(&[(0, flow)], SECS(130));
        let used = |from: Time, seen: &Seen| seen.at > from && seen.path == 1 && seen.is_data_of_opener();
        assert!(net.count(|seen| used(back + SECS(60), seen)) > 1000, "{set:?}");
        assert_eq!(
            net.count(|seen| is_join(seen) && seen.at > back),
            again,
            "{set:?}"
        );
        // The server has not noticed that the first subflow died, and lets it go when the second is there.
        let resets = net.count(|seen| seen.from == 1 && seen.has(Flags::RST));
        assert_eq!(resets, again, "{set:?}");
    }
}

#[test]
fn without_redial_a_path_that_fails_stays_away() {
    let mut net = Net::pair(
        &[("data-attempts", "6"), ("redial", "off")],
        &[line(5, 0), line(5, 1)],
    );
    net.rule = outage(1, SECS(60)).1;
    let flow = net.open(0);
    net.bulk(&[(0, flow)], SECS(130));
    assert_eq!(net.count(is_join), 1);
}

#[test]
fn a_subflow_that_is_reset_on_the_way_is_dialled_after_a_second() {
    let mut net = Net::pair(&[], &[line(20, 0), line(20, 1)]);
    let mut left = 1;
    let cut = Time::ZERO + MS(500);
    net.rule = Box::new(move |seen| {
        if left > 0 && seen.path == 1 && seen.from == 1 && seen.at > cut && !seen.is_data() {
            left -= 1;
            seen.header.flags = Flags::RST;
        }
        true
    });
    let flow = net.open(0);
    let data = noise(10_000_000);
    assert!(net.transfer(flow, &data, SECS(20)) == data);
    let joins: Vec<_> = net.log.iter().filter(|seen| is_join(seen)).collect();
    assert_eq!(joins.len(), 2);
    let pause = joins[1].at.since(cut);
    assert!(pause > SECS(1) && pause < MS(1100), "{pause:?}");
    assert_ne!(joins[0].header.source_port, joins[1].header.source_port);
}

/// Make after break: the only path goes silent for half a minute, its subflow dies, and the connection lives.
#[test]
fn the_only_path_comes_back_within_a_minute() {
    let mut net = Net::pair(&[("data-attempts", "5")], &[line(20, 0)]);
    net.rule = outage(0, SECS(30)).1;
    let flow = net.open(0);
    let data = noise(6_000_000);
    let got = net.transfer(flow, &data, SECS(90));
    assert!(got == data, "{} of {}", got.len(), data.len());
    // What had died with the first subflow leaves at once: less than 5 MB are left, which take 2.1 s.
    let proof = |seen: &&Seen| matches!(seen.option(), Some(Multipath::JoinProof(_)));
    let joined = net.log.iter().rfind(proof).expect("a second subflow").at;
    assert!(net.now.since(joined) < SECS(4), "{joined:?}, {:?}", net.now);
    assert!(net.closed(0).is_none() && net.closed(1).is_none());
}

#[test]
fn a_connection_whose_only_path_stays_away_ends_after_a_minute() {
    let mut net = Net::pair(&[("data-attempts", "5")], &[line(20, 0)]);
    net.rule = outage(0, SECS(1000)).1;
    let flow = net.open(0);
    net.bulk(&[(0, flow)], SECS(60));
    assert!(net.closed(0).is_none());
    net.run_for(SECS(20));
    assert!(
        matches!(net.closed(0), Some(CloseReason::TimedOut(_))),
        "{:?}",
        net.closed(0)
    );
    let end = net.log.len();
    net.run_for(SECS(300));
    assert_eq!(
        net.count(is_join),
        net.log[..end].iter().filter(|seen| is_join(seen)).count()
    );
    let refused = net.hosts[0].write(net.now, flow, Bytes::from_static(b"x"));
    assert!(refused.is_err());
}

/// Else it would be dialled for ever.
#[test]
fn a_path_that_waits_to_be_dialled_again_can_be_removed() {
    let mut net = Net::pair(&[("data-attempts", "5")], &[line(20, 0), line(20, 1)]);
    net.rule = outage(1, SECS(1000)).1;
    let flow = net.open(0);
    net.bulk(&[(0, flow)], SECS(60));
    let dialled = net.count(is_join);
    assert!(dialled > 1, "{dialled}");
    let removed = net.hosts[0].remove_path(net.now, flow, Net::path(1));
    removed.expect("it waits");
    net.bulk(&[(0, flow)], SECS(200));
    assert_eq!(net.count(is_join), dialled);
    let again = net.hosts[0].remove_path(net.now, flow, Net::path(1));
    assert!(again.is_err(), "it is not there any more");
}
