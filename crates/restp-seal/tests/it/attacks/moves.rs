//! Who carries copies of packets, and what is sent to him, is not where the peer is.

use crate::common::*;
use restp_base::flow::Flow;
use restp_base::machine::{Datagram, Machine, PathAddress};
use restp_base::time::Duration;
use restp_proto::Endpoint;
use restp_seal::Sealed;
use restp_seal::packet::OVERHEAD;

const CARRIER: u8 = 66;

fn as_seen_from_the(side: usize) -> PathAddress {
    PathAddress {
        local: path(side).local,
        remote: address(CARRIER),
    }
}

/// He is ahead of each packet of the client with a copy from his own address, and carries what is sent there to the client.
#[test]
fn a_client_answers_challenges_only_where_its_server_is() {
    let mut pair = Pair::new("default", &[]);
    let flows = pair.connect();
    pair.rule = Box::new(|seen| {
        if seen.path.remote == address(CARRIER) {
            Verdict::Drop // he has it, and decides himself
        } else {
            Verdict::Pass
        }
    });
    for round in 0..20 {
        let before = pair.log.len();
        pair.write(0, flows.0, b"tell me");
        pair.run_for(ms(1));
        let sent: Vec<Seen> = pair.log[before..].to_vec();
        for seen in sent.iter().filter(|seen| seen.from == 0) {
            pair.inject(1, as_seen_from_the(1), &seen.bytes);
        }
        let asked: Vec<Seen> = pair.log[before..].to_vec();
        for seen in asked
            .iter()
            .filter(|seen| seen.from == 1 && seen.path.remote == address(CARRIER))
        {
            let before = pair.log.len();
            pair.inject(0, as_seen_from_the(0), &seen.bytes);
            let answered: Vec<Seen> = pair.log[before..].to_vec();
            for seen in answered
                .iter()
                .filter(|seen| seen.path.remote == address(CARRIER))
            {
                pair.inject(1, as_seen_from_the(1), &seen.bytes);
            }
        }
        pair.run_for(ms(60 + round));
    }
    let stats = [pair.ends[0].seal_stats(), pair.ends[1].seal_stats()];
    assert_eq!(stats[1].moved, 0, "the path is where the client is");
    assert!(stats[0].misplaced > 0 && stats[1].elsewhere > 0, "{stats:?}");
    pair.log.clear();
    assert!(pair.transfer(1, flows, &noise(50_000), Duration::from_secs(10)));
    assert!(pair.log.iter().all(|seen| seen.path.remote != address(CARRIER)));
}

/// A copy of the request comes first, from elsewhere: who asked is answered as well, and what it sends then says where it is.
#[test]
fn a_copy_of_a_request_that_is_ahead_of_it_does_not_take_the_set_up_away() {
    for (known, preset) in [
        (true, "3wh-arq"),
        (false, "3wh-arq"),
        (true, "default"),
        (true, "unrel"),
    ] {
        let mut pair = Pair::of(preset, &[], seal(1), seal(2));
        if known {
            pair.know();
        }
        let flow = pair.open();
        if preset == "unrel" {
            pair.write(0, flow, b"one");
        }
        pair.rule = Box::new(|seen| {
            if seen.path.remote == address(CARRIER) {
                Verdict::Drop
            } else {
                Verdict::Pass
            }
        });
        pair.run_for(ms(1));
        let request = pair.log[0].bytes.clone();
        pair.inject(1, as_seen_from_the(1), &request);
        pair.run_for(ms(500));
        let accepted = pair.accepted().expect("the first valid packet decides");
        assert_eq!(pair.ends[1].flow_key(accepted), Some(secret(1).public()));
        assert_eq!(pair.ends[1].peer_key(address(CARRIER)), None);
        // The answer is that to the copy: it must not let the client prove where that came from.
        let (_, token) = pair.ends[0].tokens().next().expect("a token");
        assert_eq!(token.address, [0; 16]);
        let to_carrier = pair
            .log
            .iter()
            .filter(|seen| seen.path.remote == address(CARRIER));
        let bytes: usize = to_carrier.map(|seen| seen.bytes.len()).sum();
        assert!(bytes <= 3 * request.len(), "{bytes} for {}", request.len());
        assert!(
            pair.transfer(0, (flow, accepted), &noise(1_000), Duration::from_secs(5)) || preset == "unrel"
        );
    }
}

/// However many places a request comes from: each gets three times what came from there, and few are answered at all.
#[test]
fn a_request_that_comes_from_everywhere_is_answered_at_few_places() {
    let mut pair = Pair::new("3wh-arq", &[]);
    pair.rule = Box::new(|_| Verdict::Drop);
    pair.open();
    pair.run_for(ms(1));
    let request = pair.log[0].bytes.clone();
    pair.log.clear();
    for host in 20..120 {
        let mut from = as_seen_from_the(1);
        from.remote = address(host);
        (0..3).for_each(|_| pair.inject(1, from, &request));
    }
    pair.run_for(Duration::from_secs(100));
    let got = |host: u8| -> usize {
        let to = pair.log.iter().filter(|seen| seen.path.remote == address(host));
        to.map(|seen| seen.bytes.len()).sum()
    };
    let all: Vec<usize> = (20..120).map(got).filter(|bytes| *bytes > 0).collect();
    assert_eq!(all.len(), 4);
    assert!(all.iter().all(|bytes| *bytes <= 9 * request.len()), "{all:?}");
}

/// A host is known where it was heard, not where somebody says that it is as well.
#[test]
fn an_address_of_a_path_has_a_key_when_the_host_has_answered_there() {
    let mut pair = Pair::new(
        "default",
        &[("paths", "spreading"), ("scheduling", "fastest-rtt")],
    );
    let (flow, _) = pair.connect();
    let second = PathAddress {
        remote: address(9),
        ..path(0)
    };
    pair.rule = Box::new(|seen| {
        if seen.path.remote == address(9) {
            Verdict::Drop
        } else {
            Verdict::Pass
        }
    });
    pair.ends[0]
        .add_path(pair.now, flow, second, false)
        .expect("a path");
    pair.run_for(Duration::from_secs(1));
    assert_eq!(pair.ends[0].peer_key(address(9)), None);
    assert_eq!(pair.ends[0].peer_key(address(2)), Some(secret(2).public()));
    // Nor where it is only said that what came from there is the host's.
    pair.inject(0, second, &[&[DATA][..], &[7; 100]].concat());
    assert_eq!(pair.ends[0].peer_key(address(9)), None);
    pair.rule = Box::new(|_| Verdict::Pass);
    pair.run_for(Duration::from_secs(10));
    assert_eq!(pair.ends[0].peer_key(address(9)), Some(secret(2).public()));
}

/// All that is outstanding has arrived, so the client has nothing but retransmissions to show where it is.
#[test]
fn a_client_is_followed_whose_acknowledgements_went_to_its_old_address() {
    let mut pair = Pair::new("default", &[]);
    let flows = pair.connect();
    assert!(pair.transfer(0, flows, &noise(100_000), Duration::from_secs(5)));
    pair.run_for(ms(500));
    pair.write(0, flows.0, &noise(10_000));
    pair.run_for(ms(1));
    pair.rebind_to(9);
    pair.run_for(ms(1000));
    assert_eq!(pair.read_all(1, flows.1).len(), 10_000);
    assert!(pair.transfer(0, flows, &noise(100_000), Duration::from_secs(1)));
}

/// An acknowledgement is all that the client says from its new address, and the challenge, or its response, is lost.
#[test]
fn a_client_that_says_nothing_more_is_followed_though_its_challenge_is_lost() {
    const CONTROL_BYTES: usize = 9;
    for side in [1, 0] {
        let mut pair = Pair::new("default", &[]);
        let flows = pair.connect();
        assert!(pair.transfer(1, flows, &noise(100_000), Duration::from_secs(5)));
        pair.run_for(ms(500));
        pair.write(1, flows.1, b"read this");
        pair.run_for(ms(11)); // it is there
        pair.rebind_to(9);
        let mut is_lost = false;
        pair.rule = Box::new(move |seen| {
            if !is_lost && seen.from == side && seen.bytes.len() == OVERHEAD + CONTROL_BYTES {
                is_lost = true;
                return Verdict::Drop;
            }
            Verdict::Pass
        });
        pair.run_for(ms(200));
        assert_eq!(pair.ends[1].seal_stats().moved, 0, "lost");
        pair.read_all(0, flows.0);
        assert!(pair.transfer(1, flows, &noise(1_000), Duration::from_secs(2)));
        assert_eq!(pair.ends[1].seal_stats().moved, 1);
    }
}

/// A byte of the key is changed, which a client that does not know its server sends in the clear: the connection that this opens is
/// confirmed by the client, and is the client's from then on, wherever it goes.
#[test]
fn a_connection_of_a_request_with_a_changed_key_follows_who_confirms_it() {
    const KEY: usize = 1 + 8 + 16 + 32; // behind type, connection id, token and one-time key
    let mut pair = Pair::of("3wh-arq", &[], seal(1), seal(2));
    let flow = pair.open();
    pair.run_for(ms(1));
    let mut changed = pair.log[0].bytes.clone();
    changed[KEY] ^= 1;
    pair.inject(1, path(1), &changed);
    pair.run_for(ms(5_000));
    let accepted = pair.accepted().expect("the client confirms it");
    assert_eq!(pair.ends[1].flow_key(accepted), Some(secret(1).public()));
    pair.rebind_to(9);
    assert!(pair.transfer(0, (flow, accepted), &noise(50_000), Duration::from_secs(10)));
    assert_eq!(pair.ends[1].seal_stats().moved, 1);
}

/// Somebody says that he is at an address, and the server that the client dialled sends its packets from there.
#[test]
fn a_server_that_was_dialled_moves_nothing_to_where_somebody_is() {
    let mut pair = Pair::of("3wh-arq", &[], seal(1), seal(2));
    pair.ends[0] = serving("3wh-arq", seal(1));
    let flows = pair.connect();
    pair.inject(0, as_seen_from_the(0), &first_word("3wh-arq", 1));
    pair.write(1, flows.1, b"from elsewhere");
    pair.rule = silent(1);
    pair.run_for(ms(1));
    let packet = pair
        .log
        .iter()
        .rev()
        .find(|seen| seen.from == 1 && seen.kind() == DATA);
    let packet = packet.expect("a packet").bytes.clone();
    pair.log.clear();
    pair.inject(0, as_seen_from_the(0), &packet);
    pair.rule = Box::new(|_| Verdict::Pass);
    assert!(pair.transfer(0, flows, &noise(50_000), Duration::from_secs(10)));
    let moved = |seen: &Seen| seen.path.remote == address(CARRIER) && seen.kind() == DATA;
    assert!(!pair.log.iter().any(moved));
}

/// Somebody with a session asks for a path at the address of a client that has not proved who it is.
#[test]
fn who_asks_for_a_path_does_not_put_out_who_asked_for_a_session_there() {
    let mut pair = Pair::of("opt-arq", &[], seal(3), seal(2));
    pair.rebind_to(9);
    pair.connect();
    let cookie = pair.ends[0].inner().cookies(pair.now).next().expect("a cookie");
    pair.restart("opt-arq", 77);
    pair.rebind_to(1);
    let several = [("paths", "spreading"), ("scheduling", "fastest-rtt")];
    pair.ends[0] = Sealed::new(Endpoint::new(config("default", &several)), seal(1));
    pair.events = [Vec::new(), Vec::new()];
    let (his, _) = pair.connect();

    let mut client = Sealed::new(Endpoint::new(config("opt-arq", &[])), seal(3));
    client.inner_mut().keep_cookie(pair.now, cookie);
    client.open(pair.now, path(0), PORT).expect("a port");
    let mut request = Datagram::empty();
    assert!(client.poll_transmit(pair.now, &mut request));
    let elsewhere = PathAddress {
        remote: address(9),
        ..path(1)
    };
    let before = pair.accepted();
    pair.inject(1, elsewhere, &request.to_vec());
    assert_ne!(pair.accepted(), before, "with a cookie it is a flow at once");

    let second = PathAddress {
        local: address(5),
        ..path(0)
    };
    pair.rebind_to(9);
    pair.ends[0]
        .add_path(pair.now, his, second, false)
        .expect("a path");
    pair.run_for(ms(15));
    assert_eq!(pair.closed(1), None);
    assert!(pair.ends[1].seal_stats().elsewhere > 0, "it is asked");
}

/// Who has left an address could say for ever that he is there; and bytes that come again would tell who asks.
#[test]
fn no_answer_brings_a_proof_of_an_address() {
    let mut pair = Pair::new("3wh-arq", &[]);
    pair.know();
    let given = pair.ends[1].token_for(pair.now, address(1), secret(1).public());
    pair.ends[0].keep_token(secret(2).public(), given);
    pair.connect();
    assert_eq!(pair.ends[1].seal_stats().computed_unproved, 0);
    let (_, token) = pair.ends[0].tokens().next().expect("a token");
    assert_eq!(token.address, [0; 16]);
}
