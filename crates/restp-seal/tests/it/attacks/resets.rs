//! Who says that a session is not known any more, and how often a host says it.

use crate::common::*;
use restp_base::time::Duration;
use restp_seal::packet::OVERHEAD;

/// A connection whose server has just started again, and the reset that says so.
fn forgotten() -> (Pair, Vec<u8>) {
    let mut pair = Pair::new("default", &[]);
    let (flow, _) = pair.connect();
    pair.restart("default", 77);
    pair.write(0, flow, b"for nobody");
    pair.run_for(ms(15));
    let reset = pair.log.iter().find(|seen| seen.kind() == RESET);
    let bytes = reset.expect("said").bytes.clone();
    (pair, bytes)
}

#[test]
fn a_reset_needs_the_token_of_the_session_and_the_address_of_its_server() {
    let mut pair = Pair::new("default", &[]);
    let flows = pair.connect();
    let name = pair.sent(DATA)[0][1..9].to_vec();
    pair.log.clear();
    let mut elsewhere = path(0);
    elsewhere.remote = address(66);
    for n in 0..=255_u8 {
        pair.inject(0, path(0), &[&[RESET][..], &name, &[n; 16]].concat());
        pair.inject(0, elsewhere, &[&[RESET][..], &name, &[n; 16]].concat());
        pair.inject(0, path(0), &[&[RESET][..], &[n; 24]].concat());
    }
    assert_eq!(pair.ends[0].seal_stats().resets, 0);
    assert!(pair.log.is_empty(), "{:?}", pair.log);
    assert!(pair.transfer(0, flows, &noise(20_000), Duration::from_secs(5)));

    let (mut pair, genuine) = forgotten();
    for bit in 0..genuine.len() * 8 {
        let mut bytes = genuine.clone();
        bytes[bit / 8] ^= 0x80 >> (bit % 8);
        pair.inject(0, path(0), &bytes);
    }
    pair.inject(0, elsewhere, &genuine);
    assert_eq!(pair.ends[0].seal_stats().resets, 0);
    pair.inject(0, path(0), &genuine);
    assert_eq!(pair.ends[0].seal_stats().resets, 1);
}

#[test]
fn a_reset_that_is_played_again_makes_a_client_ask_once_a_second() {
    let (mut pair, genuine) = forgotten();
    pair.rule = Box::new(|_| Verdict::Drop);
    pair.log.clear();
    for _ in 0..3_000 {
        pair.inject(0, path(0), &genuine);
        pair.run_for(ms(1));
    }
    let asked = pair.sent(HELLO_IK).len() + pair.sent(HELLO_RESUMED).len();
    assert!((1..=7).contains(&asked), "{asked}");
}

#[test]
fn packets_of_unknown_sessions_are_answered_shorter_and_at_a_bounded_rate() {
    for serves in [true, false] {
        let mut server = seal(2);
        server.serves = serves;
        let mut pair = Pair::of("default", &[], seal(1), server);
        for n in 0..1_000_u16 {
            let mut packet = vec![7; OVERHEAD];
            packet[0] = DATA;
            packet[1..3].copy_from_slice(&n.to_be_bytes());
            pair.inject(1, path(1), &packet);
        }
        assert_eq!(pair.log.len(), if serves { 100 } else { 0 });
        assert!(
            pair.log
                .iter()
                .all(|seen| seen.bytes.len() < OVERHEAD && seen.kind() == RESET)
        );
        let tokens: std::collections::BTreeSet<_> =
            pair.log.iter().map(|seen| seen.bytes[9..].to_vec()).collect();
        assert_eq!(tokens.len(), pair.log.len());
    }
}

/// Whatever the kind of a packet: only who has lost the session says that it is lost, and who asks for it is not told how.
#[test]
fn nobody_is_told_the_token_of_a_session_that_goes_on() {
    let mut pair = Pair::new("default", &[]);
    let flows = pair.connect();
    let name = pair.sent(DATA)[0][1..9].to_vec();
    pair.log.clear();
    for from in [address(1), address(66)] {
        let mut away = path(1);
        away.remote = from;
        for kind in DATA..=u8::MAX {
            pair.inject(1, away, &[&[kind][..], &name, &[7; 100]].concat());
        }
    }
    assert!(pair.log.is_empty(), "{:?}", pair.log);
    assert!(pair.transfer(0, flows, &noise(20_000), Duration::from_secs(5)));
}

/// The token follows from the key: another host with the same one tells it of sessions that it never had.
#[test]
fn a_reset_of_another_host_with_the_same_key_ends_nothing() {
    let mut pair = Pair::new("default", &[]);
    let flows = pair.connect();
    let name = pair.sent(DATA)[0][1..9].to_vec();
    let mut other = Pair::of("default", &[], seal(1), seal(2));
    other.inject(1, path(1), &[&[DATA][..], &name, &[7; 100]].concat());
    let reset = other.log[0].bytes.clone();
    assert_eq!(reset[0], RESET);
    for _ in 0..10 {
        pair.inject(0, path(0), &reset);
        pair.run_for(Duration::from_secs(1));
        assert!(pair.transfer(0, flows, &noise(20_000), Duration::from_secs(5)));
        assert!(pair.transfer(1, flows, &noise(20_000), Duration::from_secs(5)));
    }
    assert!(pair.ends[0].seal_stats().resets > 0);
    assert_eq!((pair.closed(0), pair.closed(1)), (None, None));
}
