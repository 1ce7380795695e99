//! Peers that say nothing for long, are not there yet, or have forgotten everything (docs/protocol/sealed.md).

use crate::common::*;
use restp_base::flow::{CloseReason, FlowId};
use restp_base::time::{Duration, Time};

/// Drops what the client sends between two times.
fn silent(from: Duration, until: Duration) -> Rule {
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
    later.seed = [77; 32].into();
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
        pair.rule = silent(secs(60), secs(60 + lost_for));
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
    pair.rule = silent(secs(60), secs(105));
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
        pair.rule = silent(Duration::ZERO, secs(200));
        let flow = pair.open();
        news(&mut pair, flow, 235);
        let accepted = pair.accepted().expect("asked as long as something is sent");
        let got = pair.read_all(1, accepted).len();
        assert!(got < 80 * b"news".len(), "nothing from minutes ago: {got} bytes");
        let asked = pair.log.iter().filter(|seen| seen.from == 0).count();
        assert!(asked < 330, "{asked} datagrams of 235");
    }
}

/// Round trips of 20 ms: what is sent is answered by a reset, the request by a session; in that one the first repeat of what was
/// sent is refused.
#[test]
fn a_server_that_started_again_is_noticed_in_one_round_trip_and_asked_in_the_next() {
    for preset in ["3wh-arq", "default"] {
        let mut pair = Pair::new(preset, &[]);
        let (flow, _) = pair.connect();
        pair.restart(preset, 77);
        (pair.log, pair.events) = (Vec::new(), [Vec::new(), Vec::new()]);
        pair.write(0, flow, b"for nobody");
        pair.run_for(ms(20));
        assert_eq!(pair.ends[0].seal_stats().resets, 1);
        pair.run_for(ms(20));
        assert_eq!(pair.ends[0].sessions(), 2, "beside the old one");
        assert_eq!(pair.closed(0), None);
        pair.run_for(secs(1));
        assert_eq!(pair.closed(0), Some(&CloseReason::Reset), "{preset}");
        let flows = pair.connect();
        assert!(pair.transfer(0, flows, b"again", ms(500)));
    }
}

#[test]
fn a_server_that_forgot_the_session_alone_goes_on_with_its_flows() {
    let mut pair = Pair::new("default", &[]);
    let (flow, accepted) = pair.connect();
    // Somebody else's idle server forgets; here the name of the session is changed on its way instead.
    let mut spoilt = 0;
    pair.rule = Box::new(move |seen| {
        if seen.from == 0 && seen.kind() == DATA && spoilt < 3 {
            spoilt += 1;
            let mut bytes = seen.bytes.clone();
            bytes[1] ^= 1;
            return Verdict::As(bytes);
        }
        Verdict::Pass
    });
    assert!(pair.transfer(0, (flow, accepted), &noise(50_000), secs(5)));
    assert_eq!(pair.ends[0].seal_stats().resets, 0, "that was of another name");
    assert!(pair.log.iter().any(|seen| seen.kind() == RESET));
}

#[test]
fn a_server_that_started_again_without_a_word_is_asked_after_fifteen_seconds() {
    let set = [("idle-timeout", "60 s")];
    let mut pair = Pair::new("unrel", &set);
    pair.rule = Box::new(|seen| match seen.kind() {
        RESET => Verdict::Drop,
        _ => Verdict::Pass,
    });
    let flow = pair.open();
    pair.write(0, flow, b"one");
    pair.run_for(secs(2));
    forget(&mut pair, "unrel", &set);
    pair.log.clear();
    news(&mut pair, flow, 18);
    let asked = pair
        .log
        .iter()
        .find(|seen| [HELLO_IK, HELLO_RESUMED].contains(&seen.kind()));
    let after = asked.expect("asked").at.since(Time::ZERO + secs(2));
    assert!(after >= secs(13) && after <= secs(16), "{after:?}");
    let accepted = pair.accepted().expect("asked for anew");
    assert!(!pair.read_all(1, accepted).is_empty());
}

/// A new exchange every two minutes, although the peer answers; nothing is lost, nothing comes twice, and old keys go.
#[test]
fn keys_that_have_served_for_two_minutes_are_replaced_by_a_new_exchange() {
    let mut pair = Pair::new("default", &[]);
    let (flow, accepted) = pair.connect();
    let mut got = Vec::new();
    for _ in 0..1_000 {
        pair.write(0, flow, b"news");
        pair.run_for(secs(1));
        got.extend(pair.read_all(1, accepted));
        assert!(pair.ends.iter().all(|end| end.sessions() <= 3));
    }
    assert_eq!(got, b"news".repeat(1_000));
    let asked = pair.sent(HELLO_RESUMED);
    assert!((7..=9).contains(&asked.len()), "{} in 1000 s", asked.len());
    let one_time_keys: std::collections::BTreeSet<_> =
        asked.iter().map(|hello| hello[85..117].to_vec()).collect();
    assert_eq!(one_time_keys.len(), asked.len(), "each with a key of its own");
    let names: std::collections::BTreeSet<_> = pair
        .sent(DATA)
        .iter()
        .map(|packet| packet[1..9].to_vec())
        .collect();
    assert_eq!(names.len(), asked.len() + 1);
}

/// A host in a flood hears each source for a quarter of a second now and then.
#[test]
fn a_request_is_repeated_often_enough_to_meet_a_turn_and_is_little_all_together() {
    for known in [true, false] {
        for turn in 0..11 {
            let (from, to) = (ms(250 * turn), ms(250 * (turn + 1)));
            let mut pair = Pair::of("3wh-arq", &[("handshake-rto", "3 s")], seal(1), seal(2));
            if known {
                pair.know();
            }
            let begin = pair.now;
            pair.rule = Box::new(move |seen| {
                let after = seen.at.since(begin);
                let is_request = matches!(seen.kind(), HELLO_IK | HELLO_IX);
                if is_request && (after < from || after >= to) {
                    Verdict::Drop
                } else {
                    Verdict::Pass
                }
            });
            pair.open();
            pair.run_for(to + ms(50));
            // The first half second has one.
            assert_eq!(pair.accepted().is_some(), turn != 1, "turn {turn}");
        }
        let mut pair = Pair::of("3wh-arq", &[], seal(1), seal(2));
        pair.rule = Box::new(|_| Verdict::Drop);
        pair.open();
        pair.run_for(Duration::from_secs(4));
        let bytes: usize = pair.log.iter().map(|seen| seen.bytes.len()).sum();
        assert!(bytes <= 14_600, "an initial window: {bytes}");
        let sent = pair.log.len();
        pair.run_for(Duration::from_secs(30));
        assert!(pair.log.len() <= sent + 4, "then as the machine repeats it");
    }
}
