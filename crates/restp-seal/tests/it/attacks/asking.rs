//! What a host tells who asks: its key only where somebody receives, and nothing of its list before a key is proved.

use crate::common::*;
use restp_seal::Clients;
use restp_seal::packet::{Pattern, hello_header, set_token};

#[test]
fn a_key_is_told_to_who_receives_at_his_address_and_to_nobody_else() {
    let mut pair = Pair::of("3wh-arq", &[], seal(1), seal(2));
    let mut junk = hello_header(Pattern::Ik, b"somebody", &[0; 16]);
    junk.resize(162, 7);
    pair.inject(1, path(1), &junk);
    assert_eq!((pair.log.len(), pair.log[0].kind()), (1, RETRY));
    let token = pair.log[0].bytes[9..].try_into().expect("a token");
    set_token(&mut junk, &token);
    // From another address it proves nothing.
    let mut elsewhere = path(1);
    elsewhere.remote = address(66);
    pair.inject(1, elsewhere, &junk);
    assert_eq!((pair.log.len(), pair.log[1].kind()), (2, RETRY));
    pair.inject(1, path(1), &junk);
    assert_eq!((pair.log.len(), pair.log[2].kind()), (3, FOREIGN));
    let key = secret(2).public().0;
    let told = |seen: &Seen| seen.bytes.windows(32).any(|bytes| bytes == key);
    assert_eq!(pair.log.iter().filter(|seen| told(seen)).count(), 1);
}

/// Answers were longer and came again for who was on the list.
#[test]
fn who_asks_in_the_name_of_somebody_does_not_learn_whether_he_is_on_the_list() {
    let asked = first_word("3wh-arq", 0);
    let outcome = |name: u8| {
        let mut server = seal(2);
        server.clients = Clients::Only([secret(1).public(), secret(3).public()].into());
        let mut pair = Pair::of("3wh-arq", &[], seal(1), server);
        let request = in_the_name_of(secret(name).public(), &asked);
        for wait in [1, 2_000, 5_000, 250_000] {
            pair.inject(1, path(1), &request);
            pair.run_for(ms(wait));
        }
        let seen = pair
            .log
            .iter()
            .map(|seen| (seen.at, seen.kind(), seen.bytes.len()));
        let same: Vec<bool> = pair
            .log
            .iter()
            .map(|seen| seen.bytes == pair.log[0].bytes)
            .collect();
        let state = (pair.ends[1].sessions(), pair.ends[1].half_open());
        (seen.collect::<Vec<_>>(), same, state)
    };
    let listed = outcome(1);
    assert!(listed.0.len() > 3, "{listed:?}");
    assert_eq!(listed, outcome(3));
    assert_eq!(listed, outcome(5), "not on the list");
}
