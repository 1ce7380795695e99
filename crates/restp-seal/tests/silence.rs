//! Peers that say nothing for long, are not there yet, or have forgotten everything (docs/protocol/sealed.md).

mod common;

use common::*;
use restp_base::flow::{CloseReason, FlowId};
use restp_base::time::{Duration, Time};

/// Drops what the client sends between two times.
fn deaf(from: Duration, until: Duration) -> Rule {
    Box::new(move |seen| {
        let at = seen.at.since(Time::ZERO);
        let lost = seen.from == 0 && (from..until).contains(&at);
        if lost { Verdict::Drop } else { Verdict::Pass }
    })
}

fn secs(n: u64) -> Duration {
    Duration::from_secs(n)
}

/// The server has started again: it knows neither flow nor session.
fn forget(pair: &mut Pair, preset: &str, set: &[(&str, &str)]) {
    let mut later = seal(2);
    later.seed = [77; 32];
    let config = config(preset, set).listen(PORT, restp_proto::Acceptance::Any);
    pair.ends[1] = restp_seal::Sealed::new(restp_proto::Endpoint::new(config), later);
    pair.events = [Vec::new(), Vec::new()];
}

/// Something every second.
fn news(pair: &mut Pair, flow: FlowId, seconds: u64) {
    for _ in 0..seconds {
        pair.write(0, flow, b"news");
        pair.run_for(secs(1));
    }
}

#[test]
fn a_peer_that_was_silent_until_it_was_forgotten_is_heard_again() {
    let set = [("idle-timeout", "60 s")];
    let mut pair = Pair::new("unrel", &set);
    let flow = pair.open();
    pair.write(0, flow, b"one");
    pair.run_for(secs(2));
    forget(&mut pair, "unrel", &set); // and a connectionless flow is told nothing
    news(&mut pair, flow, 70);
    let accepted = pair.accepted().expect("asked for anew within a minute");
    assert!(!pair.read_all(1, accepted).is_empty());
}

#[test]
fn a_question_whether_the_peer_is_still_there_is_repeated_when_it_is_lost() {
    let set = [("idle-timeout", "60 s")];
    for lost_for in [10, 200] {
        let mut pair = Pair::new("unrel", &set);
        pair.rule = deaf(secs(60), secs(60 + lost_for));
        let flow = pair.open();
        pair.write(0, flow, b"one");
        pair.run_for(secs(2));
        forget(&mut pair, "unrel", &set);
        news(&mut pair, flow, 58 + lost_for + 33);
        let accepted = pair.accepted().expect("asked once more");
        assert!(!pair.read_all(1, accepted).is_empty());
    }
}

#[test]
fn a_connection_of_a_server_that_has_forgotten_it_ends_although_the_first_question_is_lost() {
    let mut pair = Pair::new("3wh-arq", &[]);
    // A timer that doubles tries after 51 s, and after 102 with the question, which is lost; then after 162.
    pair.rule = deaf(secs(60), secs(105));
    let (flow, _) = pair.connect();
    forget(&mut pair, "3wh-arq", &[]);
    pair.write(0, flow, b"for nobody");
    pair.run_for(secs(170));
    assert_eq!(pair.closed(0), Some(&CloseReason::Reset));
}

#[test]
fn datagrams_reach_a_server_that_starts_minutes_after_its_clients() {
    for known in [false, true] {
        let mut pair = Pair::new("unrel", &[]);
        if known {
            pair.know();
        }
        pair.rule = deaf(Duration::ZERO, secs(200));
        let flow = pair.open();
        news(&mut pair, flow, 235);
        let accepted = pair.accepted().expect("asked as long as something is sent");
        let got = pair.read_all(1, accepted).len();
        assert!(got < 80 * b"news".len(), "nothing from minutes ago: {got} bytes");
        let asked = pair.log.iter().filter(|seen| seen.from == 0).count();
        assert!(asked < 330, "{asked} datagrams of 235");
    }
}
