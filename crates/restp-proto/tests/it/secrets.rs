//! `Debug` of a live endpoint, as it gets into logs and messages of panics, holds no secret.

use crate::common::lines::*;
use crate::common::web::{cookie_of, keep};
use crate::common::*;
use restp_base::flow::Flow;
use restp_proto::wire::{Keys, MpSetup, Tail};
use restp_proto::{Acceptance, EndpointConfig, InitialNumbers};
use std::fmt::Debug;

const COOKIE_KEY: [u8; 16] = *b"\xA1\xB2\xC3\xD4\xE5\xF6\x17\x28\x39\x4A\x5B\x6C\x7D\x8E\x9F\x90";
const NUMBERS_KEY: [u8; 16] = *b"\x91\x82\x73\x64\x55\x46\x37\x28\x19\xFA\xEB\xDC\xCD\xBE\xAF\xA0";

fn with_secrets(mut config: EndpointConfig) -> EndpointConfig {
    config.cookies.key = COOKIE_KEY;
    config.initial_numbers = InitialNumbers::Keyed(NUMBERS_KEY);
    config
}

/// All of `secret` in decimal or hexadecimal, upper or lower, with commas or nothing between.
fn forms(secret: &[u8]) -> [String; 4] {
    let lower: Vec<String> = secret.iter().map(|byte| format!("{byte:02x}")).collect();
    let decimal: Vec<String> = secret.iter().map(u8::to_string).collect();
    [
        lower.concat(),
        lower.join(","),
        decimal.join(","),
        decimal.concat(),
    ]
}

fn tells(shown: &str, secret: &[u8]) -> bool {
    let bare: String = shown.to_lowercase().split_whitespace().collect();
    forms(secret).iter().any(|form| bare.contains(form.as_str()))
}

fn shown(value: &impl Debug) -> String {
    format!("{value:?} {value:#?} {value:02x?} {value:02X?}")
}

/// Whole keys, and any half of one.
fn assert_hidden(what: &str, text: &str, secret: &[u8]) {
    for part in secret.chunks(secret.len() / 2) {
        assert!(!tells(text, part), "Debug of {what} tells {part:02x?}");
    }
}

#[test]
fn an_endpoint_with_several_paths_tells_no_key() {
    let config = with_secrets(config("geo-spread", SPREAD));
    let mut pair = Pair::of(config.clone(), config.listen(PORT, Acceptance::Any));
    let (first, second) = (line(&pair, 1), line(&pair, 2));
    let flow = pair.ends[0].open(pair.now, first, PORT).expect("a free port");
    pair.ends[0]
        .add_path(pair.now, flow, second, false)
        .expect("several paths");
    both_up(&mut pair);
    let exchanged = pair.log.iter().filter_map(|seen| match seen.header.mp? {
        MpSetup::Capable(capable) => Some(match capable.keys {
            Keys::Initiator(key) | Keys::Responder(key) => vec![key],
            Keys::Both { initiator, responder } => vec![initiator, responder],
        }),
        MpSetup::Join(_) => None,
    });
    let keys: Vec<_> = exchanged.flatten().collect();
    assert!(keys.len() >= 4, "keys were exchanged: {}", keys.len());
    let ends = shown(&pair.ends);
    let packets = shown(&pair.log.iter().map(|seen| seen.header.mp).collect::<Vec<_>>());
    for key in keys {
        assert_hidden("an endpoint", &ends, &key);
        assert_hidden("a packet", &packets, &key);
    }
    assert_hidden("an endpoint", &ends, &COOKIE_KEY);
    assert_hidden("an endpoint", &ends, &NUMBERS_KEY);
}

#[test]
fn an_endpoint_that_keeps_and_shows_cookies_tells_none() {
    let config = with_secrets(config("opt-arq", &[]));
    let mut pair = Pair::of(config.clone(), config.clone().listen(PORT, Acceptance::Any));
    let cookie = cookie_of(&config, &pair);
    keep(&mut pair, cookie);
    let flow = pair.open();
    pair.write(0, flow, b"request");
    pair.run_for(restp_base::time::Duration::from_millis(5)); // on its way
    let under_way = shown(&pair.ends);
    pair.run_for(restp_base::time::Duration::from_millis(200));
    let sent = pair
        .log
        .iter()
        .any(|seen| seen.header.tail == Tail::Cookie(cookie));
    assert!(sent, "it was shown to the server");
    for text in [&under_way, &shown(&pair.ends), &shown(&cookie), &shown(&config)] {
        assert_hidden("an endpoint", text, cookie.as_bytes());
        assert_hidden("an endpoint", text, &COOKIE_KEY);
    }
}

#[test]
fn the_search_would_find_each_form() {
    let secret = [0xAB, 0x0C, 0xDE, 0x01];
    for form in [
        "[171, 12, 222, 1]",
        "AB0CDE01",
        "ab0cde01",
        "[\n AB,\n 0C,\n DE,\n 01,\n]",
    ] {
        assert!(tells(form, &secret), "{form}");
    }
    assert!(!tells("[171, 12, 222, 2]", &secret));
}
