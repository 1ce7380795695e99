//! Somebody who sees a request and cannot stop it: what he says in the server's name before the server does.

use crate::common::*;
use restp_base::machine::PathAddress;
use restp_base::time::Duration;

fn asked() -> (Pair, Vec<u8>) {
    let mut busy = seal(2);
    busy.max_unproved_per_second = 0;
    let mut pair = Pair::of("3wh-arq", &[], seal(1), busy);
    pair.know();
    pair.open();
    pair.run_for(ms(1));
    let name = pair.log[0].bytes[1..9].to_vec();
    (pair, name)
}

#[test]
fn forged_wishes_for_a_proof_do_not_stop_a_set_up() {
    for for_how_long in [1, 3_000] {
        let (mut pair, name) = asked();
        for n in 0..for_how_long {
            for k in 0..3_u8 {
                pair.inject(0, path(0), &[&[RETRY][..], &name, &[n as u8; 15], &[k]].concat());
            }
            pair.run_for(ms(1));
        }
        pair.run_for(Duration::from_secs(5));
        assert!(pair.accepted().is_some(), "{for_how_long} ms");
    }
}

#[test]
fn a_forged_other_key_does_not_stop_a_set_up_however_far_the_server_is() {
    for delay in [10, 700, 2_000] {
        let mut pair = Pair::new("3wh-arq", &[]);
        pair.delay = ms(delay);
        pair.open();
        pair.run_for(ms(1));
        let name = pair.log[0].bytes[1..9].to_vec();
        let lie = [&[FOREIGN][..], &name, &secret(66).public().0].concat();
        pair.inject(0, path(0), &lie);
        pair.run_for(Duration::from_secs(20));
        assert_eq!((pair.closed(0), pair.ends[0].fault(address(2))), (None, None));
        assert!(pair.accepted().is_some(), "{delay} ms away");
    }
}

#[test]
fn what_is_said_from_elsewhere_in_the_name_of_the_server_is_not_heard() {
    let (mut pair, name) = asked();
    let mut elsewhere = path(0);
    elsewhere.remote = address(66);
    let token = [&[RETRY][..], &name, &[1; 16]].concat();
    let other = [&[FOREIGN][..], &name, &secret(66).public().0].concat();
    let stale = [&[STALE][..], &name].concat();
    for lie in [token, other, stale] {
        pair.inject(0, elsewhere, &lie);
    }
    assert_eq!(pair.ends[0].seal_stats().unknown, 3);
    assert_eq!(pair.ends[0].fault(address(2)), None);
    pair.run_for(ms(100));
    assert!(pair.accepted().is_some());
}

/// Who is beside the path sends a genuine answer from an address of his own, and the packet behind it.
#[test]
fn an_answer_that_comes_from_elsewhere_takes_no_address() {
    let mut pair = Pair::new("3wh-arq", &[]);
    pair.rule = silent(1);
    pair.open();
    pair.run_for(ms(50));
    let answer = pair
        .log
        .iter()
        .find(|seen| seen.kind() == ANSWER)
        .expect("an answer");
    let bytes = answer.bytes.clone();
    let elsewhere = PathAddress {
        local: address(1),
        remote: address(9),
    };
    pair.inject(0, elsewhere, &bytes);
    let stats = pair.ends[0].seal_stats();
    assert_eq!(
        (stats.misplaced, stats.opened),
        (1, 0),
        "the packet behind it is nobody's"
    );
    assert_eq!(pair.ends[0].peer_key(address(9)), None);
}
