//! What strangers can make a host do, send and keep: a bounded number of computations, three times what they sent, and
//! bounded tables; and nothing secret is told to a log.

use crate::common::*;
use restp_base::flow::Flow;
use restp_base::machine::{Datagram, Input, Machine, PathAddress};
use restp_base::time::Duration;
use restp_proto::Endpoint;
use restp_seal::packet::{OVERHEAD, Pattern, hello_header, set_token};
use restp_seal::{SealConfig, Sealed};
use std::net::{Ipv4Addr, SocketAddr};

/// The server of `pair` as `host` sees it.
fn from(host: u32) -> PathAddress {
    PathAddress {
        local: SocketAddr::from((Ipv4Addr::from(host), 9)),
        remote: address(2),
    }
}

/// A genuine request of a new client at `host`.
fn hello(host: u32, number: u32) -> Vec<u8> {
    let mut seal = seal(7);
    seal.seed[..8].copy_from_slice(&(u64::from(host) << 32 | u64::from(number)).to_be_bytes());
    let mut client = Sealed::new(Endpoint::new(config("3wh-arq", &[])), seal);
    client.expect(address(2), secret(2).public());
    let now = restp_base::time::Time::ZERO;
    client.open(now, from(host), PORT).expect("a port");
    let mut out = Datagram::empty();
    assert!(client.poll_transmit(now, &mut out));
    out.to_vec()
}

/// Gives `bytes` to the server as if `host` had sent them; what it answers.
fn ask(pair: &mut Pair, host: u32, bytes: &[u8]) -> Vec<Vec<u8>> {
    let mut datagram = contiguous(from(host).reversed(), bytes.to_vec());
    pair.ends[1].handle(pair.now, Input::Datagram(&mut datagram));
    let mut out = Datagram::empty();
    let mut answers = Vec::new();
    while pair.ends[1].poll_transmit(pair.now, &mut out) {
        answers.push(out.to_vec());
    }
    let sent: usize = answers.iter().map(Vec::len).sum();
    assert!(sent <= 3 * bytes.len(), "{sent} for {}", bytes.len());
    answers
}

fn server(max_half_open: usize) -> Pair {
    let mut server: SealConfig = seal(2);
    server.max_half_open = max_half_open;
    let mut pair = Pair::of("3wh-arq", &[], seal(1), server);
    pair.know();
    pair
}

const NET: u32 = 0x0B00_0000;

#[test]
fn an_address_that_proves_nothing_gets_at_most_three_times_what_it_sent() {
    for known in [true, false] {
        let mut pair = Pair::of("opt-arq", &[], seal(1), seal(2));
        if known {
            pair.know();
        }
        // The victim never answers: its address was on the envelope.
        pair.rule = silent(1);
        pair.open();
        pair.run_for(Duration::from_secs(200));
        let bytes = |from: usize| -> usize {
            pair.log
                .iter()
                .filter(|seen| seen.from == from)
                .map(|seen| seen.bytes.len())
                .sum()
        };
        assert!(
            bytes(1) > 0 && bytes(1) <= 3 * bytes(0),
            "{} for {}",
            bytes(1),
            bytes(0)
        );
    }
}

#[test]
fn under_a_flood_nothing_is_kept_and_who_proves_the_address_gets_in() {
    let mut pair = server(64);
    let answers: usize = (0..500)
        .map(|n| ask(&mut pair, NET + n, &hello(NET + n, 0)).len())
        .sum();
    assert!(pair.ends[1].half_open() <= 32 && pair.ends[1].sessions() <= 32);
    assert!(pair.ends[1].seal_stats().retries >= 460 && answers >= 460);
    // An honest client pays one round trip.
    let flows = pair.connect();
    assert!(pair.log.iter().any(|seen| seen.kind() == RETRY));
    assert!(pair.transfer(0, flows, b"hello", ms(500)));
}

#[test]
fn requests_that_open_nothing_are_computed_with_a_bounded_number_of_times() {
    let mut pair = server(1024);
    let flows = pair.connect();
    // Of the right form, and for nobody: each would cost a multiplication on the curve.
    let mut rubbish = hello_header(Pattern::Ik, b"somebody", &[0; 16]);
    rubbish.extend((0..200).map(|n| n as u8));
    for n in 0..20_000_u32 {
        rubbish[25..29].copy_from_slice(&n.to_be_bytes());
        ask(&mut pair, NET + n, &rubbish);
        if n % 10 == 0 {
            pair.run_for(ms(1)); // 10 000 a second
        }
    }
    let stats = pair.ends[1].seal_stats();
    assert!((500..=1_600).contains(&stats.for_others), "{stats:?}");
    assert_eq!(stats.for_others + stats.retries, 20_000);
    assert_eq!((pair.ends[1].half_open(), pair.ends[1].sessions()), (0, 1));
    assert!(pair.transfer(0, flows, &noise(50_000), Duration::from_secs(5)));
}

/// Whoever had shown his address was computed with without end.
#[test]
fn who_shows_his_address_and_asks_in_vain_is_computed_with_seldom() {
    let mut pair = server(1024);
    let mut rubbish = hello_header(Pattern::Ik, b"somebody", &[0; 16]);
    rubbish.extend((0..200).map(|n| n as u8));
    let proofs: Vec<_> = (0..500_u32)
        .map(|n| {
            let source = std::net::SocketAddr::from((Ipv4Addr::from(NET + n), 9));
            let token = pair.ends[1].token_for(pair.now, source, secret(1).public());
            token.address
        })
        .collect();
    let mut computed = Vec::new();
    for sources in [1, 500_u32] {
        pair.run_for(Duration::from_secs(1));
        let before = pair.ends[1].seal_stats();
        for n in 0..20_000_u32 {
            set_token(&mut rubbish, &proofs[(n % sources) as usize]);
            rubbish[25..29].copy_from_slice(&n.to_be_bytes());
            ask(&mut pair, NET + n % sources, &rubbish);
            if n % 20 == 0 {
                pair.run_for(ms(1)); // 20 000 a second
            }
        }
        let stats = pair.ends[1].seal_stats();
        assert_eq!(
            (stats.retries, stats.for_others + stats.crowded - before.crowded),
            (0, 20_000 + before.for_others)
        );
        computed.push(stats.for_others - before.for_others);
        pair.open();
        pair.run_for(ms(100));
        let flow = pair.accepted().expect("others are served");
        pair.ends[1].abort(pair.now, flow);
        pair.events = [Vec::new(), Vec::new()];
    }
    assert!(
        computed[0] <= 2 * 16 && computed[1] <= 2 * 1_000,
        "{computed:?} in a second"
    );
}

#[test]
fn tickets_are_opened_at_any_rate_and_computed_with_at_a_bounded_one() {
    let mut pair = warm("3wh-arq");
    pair.rule = Box::new(|_| Verdict::Drop);
    pair.open();
    pair.run_for(Duration::from_secs(1));
    let asked = pair.sent(HELLO_RESUMED).remove(0);
    let before = pair.ends[1].seal_stats();
    let (sessions, answered) = (pair.ends[1].sessions(), before.retries);
    // A ticket that was seen on its way, with other messages, and tickets of nobody.
    for n in 0..20_000_u32 {
        let mut bytes = asked.clone();
        let place = if n % 2 == 0 { 90 } else { 30 };
        bytes[place..place + 4].copy_from_slice(&n.to_be_bytes());
        ask(&mut pair, NET + n, &bytes);
        if n % 10 == 0 {
            pair.run_for(ms(1)); // 10 000 a second
        }
    }
    let stats = pair.ends[1].seal_stats();
    assert_eq!(stats.stale_tickets - before.stale_tickets, 10_000);
    let computed = stats.forged - before.forged;
    assert!((4_000..=6_100).contains(&computed), "{stats:?}");
    assert_eq!(computed + stats.retries - answered, 10_000);
    assert_eq!(pair.ends[1].sessions(), sessions, "nothing is kept");
}

#[test]
fn a_flood_of_strangers_does_not_keep_out_who_has_a_ticket() {
    let mut pair = warm("3wh-arq");
    // Nobody has shown an address: the proof of it is left out.
    let (key, token) = pair.ends[0].tokens().next().expect("a token");
    let address = [0; 16];
    pair.ends[0].keep_token(key, restp_seal::Token { address, ..token });
    let mut rubbish = hello_header(Pattern::Ik, b"somebody", &[0; 16]);
    rubbish.extend((0..200).map(|n| n as u8));
    for n in 0..2_000_u32 {
        rubbish[25..29].copy_from_slice(&n.to_be_bytes());
        ask(&mut pair, NET + n, &rubbish);
    }
    assert!(pair.ends[1].seal_stats().retries > 1_000);
    pair.connect();
    assert_eq!(pair.log[0].kind(), HELLO_RESUMED);
    assert!(!pair.log.iter().any(|seen| seen.kind() == RETRY));
}

#[test]
fn one_source_cannot_take_the_place_of_others() {
    let mut pair = server(256);
    // It has the address and proves it.
    let mut token = None;
    for n in 0..400 {
        let mut asked = hello(NET, n);
        if let Some(token) = &token {
            set_token(&mut asked, token);
        }
        let answers = ask(&mut pair, NET, &asked);
        let first = answers.first().filter(|bytes| bytes[0] == RETRY);
        token = first.map_or(token, |bytes| bytes[9..].try_into().ok());
    }
    assert!(token.is_some());
    let stats = pair.ends[1].seal_stats();
    assert_eq!(
        pair.ends[1].half_open(),
        2 * 256 / 16,
        "before and after it had proved it"
    );
    assert!(stats.crowded > 300 && stats.retries > 0, "{stats:?}");
    // Others do not even notice.
    pair.connect();
    assert!(!pair.log.iter().any(|seen| seen.kind() == RETRY));
}

/// They were counted together, and whoever has the address was dropped when it had proved it.
#[test]
fn forged_requests_of_a_source_do_not_lock_it_out() {
    let mut pair = server(256);
    let victim = u32::from_be_bytes([10, 0, 0, 1]);
    let lock = |pair: &mut Pair| {
        for n in 0..100 {
            ask(pair, victim, &hello(victim, n));
        }
    };
    lock(&mut pair);
    assert_eq!(pair.ends[1].half_open(), 256 / 16);
    let flows = pair.connect();
    assert!(
        pair.log.iter().any(|seen| seen.kind() == RETRY),
        "it proves its address"
    );
    assert!(pair.transfer(0, flows, b"hello", ms(500)));
}

/// Nobody looked at what had expired before the share was judged, so a source with all of it stayed locked out.
#[test]
fn a_source_that_has_all_its_share_gets_it_back_when_that_expires() {
    let mut pair = server(256);
    let source = u32::from_be_bytes([10, 0, 0, 1]);
    let mut token = None;
    for n in 0..100 {
        let mut asked = hello(source, n);
        if let Some(token) = &token {
            set_token(&mut asked, token);
        }
        let answers = ask(&mut pair, source, &asked);
        let retry = answers.first().filter(|bytes| bytes[0] == RETRY);
        token = retry.map_or(token, |bytes| bytes[9..].try_into().ok());
    }
    assert!(pair.ends[1].seal_stats().crowded > 0);
    pair.run_for(Duration::from_secs(201));
    pair.connect();
    assert_eq!(pair.ends[1].half_open(), 0);
}

#[test]
fn a_source_with_a_sixteenth_of_all_sessions_leaves_room_to_others() {
    let mut server: SealConfig = seal(2);
    server.max_sessions = 64;
    let mut pair = Pair::of("3wh-arq", &[], seal(1), server);
    pair.know();
    for n in 0..200 {
        ask(&mut pair, NET, &hello(NET, n));
    }
    assert_eq!(
        pair.ends[1].sessions(),
        32,
        "half of all while nobody else wants any"
    );
    assert!(pair.ends[1].seal_stats().retries > 0);
    pair.connect();
}

/// A request of a new client that has the address of `host`, and proves it where it has to.
fn ask_from_its_own(pair: &mut Pair, host: u32) {
    let mut asked = hello(host, 0);
    let answers = ask(pair, host, &asked);
    if let Some(retry) = answers.first().filter(|bytes| bytes[0] == RETRY) {
        set_token(&mut asked, &retry[9..].try_into().expect("a token"));
        ask(pair, host, &asked);
    }
}

#[test]
fn tables_are_bounded_whoever_asks() {
    let mut pair = server(64);
    for n in 0..400 {
        ask_from_its_own(&mut pair, NET + n);
        assert!(pair.ends[1].half_open() <= 64);
    }
    assert!(pair.ends[1].sessions() <= 64);
    // Memory of the attack ends with it.
    pair.run_for(Duration::from_secs(201));
    let flows = pair.connect();
    assert_eq!((pair.ends[1].half_open(), pair.ends[1].sessions()), (0, 1));
    assert!(pair.transfer(0, flows, b"hello", ms(500)));
}

/// The server asked a client for another session whose handshake had made room for others. When the flow was over the client was
/// forgotten and its timer was not: the machine looked after it for ever.
#[test]
fn a_peer_that_is_forgotten_has_no_timer_any_more() {
    let mut server = seal(2);
    server.max_half_open = 8;
    let mut pair = warm_at("opt-arq", server);
    pair.run_for(Duration::from_secs(300));
    ask_from_its_own(&mut pair, NET + 100); // the session of its earlier visit is forgotten
    let flow = pair.open();
    pair.write(0, flow, b"early");
    pair.run_for(ms(10));
    let accepted = pair.accepted().expect("its first flight is early");
    pair.rule = Box::new(|_| Verdict::Drop); // the client is gone
    (0..8).for_each(|n| ask_from_its_own(&mut pair, NET + n));
    pair.log.clear();
    pair.write(1, accepted, b"for nobody");
    pair.run_for(Duration::from_secs(5));
    let asked = pair
        .log
        .iter()
        .any(|seen| seen.from == 1 && seen.kind() == HELLO_IK);
    assert!(asked, "the server has no session any more");
    pair.ends[1].abort(pair.now, accepted);
    pair.ends[1].release(pair.now, accepted);
    pair.run_for(Duration::from_secs(200));
    assert_eq!(pair.ends[1].next_deadline(), None);
}

#[test]
fn packets_that_overtake_an_answer_wait_up_to_a_bound() {
    let mut pair = Pair::new("3wh-arq", &[]);
    pair.rule = Box::new(|_| Verdict::Drop);
    pair.open();
    pair.run_for(ms(1));
    let name = pair.log[0].bytes[1..9].to_vec();
    let packet = [&[DATA][..], &name, &[0; OVERHEAD - 9]].concat();
    for _ in 0..100 {
        pair.inject(0, path(0), &packet);
    }
    assert_eq!(pair.ends[0].seal_stats().unknown, 100 - 32);
}

#[test]
fn datagrams_for_a_host_that_does_not_answer_wait_up_to_a_bound() {
    let mut pair = Pair::new("unrel", &[]);
    pair.rule = Box::new(|_| Verdict::Drop);
    let flow = pair.open();
    for _ in 0..200 {
        pair.write(0, flow, b"x");
        pair.run_for(ms(1));
    }
    assert_eq!(pair.ends[0].seal_stats().unsent, 200 - 64);
    pair.rule = Box::new(|_| Verdict::Pass);
    pair.run_for(Duration::from_secs(5));
    let accepted = pair.accepted().expect("known");
    assert_eq!(pair.read_all(1, accepted), [b'x'; 64]);
}

#[test]
fn who_says_again_and_again_that_a_proof_is_needed_is_followed_at_a_bounded_rate() {
    let mut pair = Pair::new("3wh-arq", &[]);
    pair.rule = Box::new(|_| Verdict::Drop);
    pair.open();
    pair.run_for(ms(1));
    let name = pair.log[0].bytes[1..9].to_vec();
    for n in 1..=200 {
        pair.inject(0, path(0), &[&[RETRY][..], &name, &[n; 16]].concat());
    }
    let tokens: Vec<u8> = pair.sent(HELLO_IK).iter().map(|hello| hello[9]).collect();
    assert_eq!(tokens, (0..=100).collect::<Vec<u8>>());
}

#[test]
fn nothing_secret_is_told_to_a_log() {
    let mut pair = warm("opt-arq");
    let flow = pair.open();
    pair.write(0, flow, b"early");
    pair.run_for(ms(100));
    let mut seal = seal(3);
    seal.seed = [123; 32].into();
    let text = format!(
        "{:?} {:?} {:?} {:?} {:?} {:?}",
        pair.ends,
        seal,
        secret(3),
        config("opt-arq", &[]),
        pair.ends[0].tokens().collect::<Vec<_>>(),
        restp_seal::schedule::Keys::new(restp_seal::schedule::Suite::Aes128Gcm, [123; 32]),
    );
    // Seeds, keys and secrets of these hosts would be sixteen equal bytes or more.
    for byte in [1_u8, 2, 3, 5, 6, 9, 123] {
        let run = vec![byte.to_string(); 16].join(", ");
        assert!(!text.contains(&run), "{byte} in {text}");
    }
    // And no other list of so many bytes is there either.
    let longest = text.split(['[', ']', '{', '}', '(', ')']).map(|list| {
        let numbers = list.split(',').map(str::trim);
        numbers.take_while(|word| word.parse::<u8>().is_ok()).count()
    });
    assert!(longest.max() < Some(16), "{text}");
}

#[test]
fn half_open_handshakes_are_forgotten() {
    let mut pair = Pair::new("3wh-arq", &[]);
    pair.rule = silent(1);
    pair.open();
    pair.run_for(ms(50));
    assert_eq!(pair.ends[1].half_open(), 1);
    pair.run_for(Duration::from_secs(400));
    pair.rule = Box::new(|_| Verdict::Pass);
    let flow = pair.open();
    pair.run_for(ms(100));
    assert!(pair.ends[0].stats(flow).is_some());
    assert_eq!((pair.ends[1].half_open(), pair.ends[1].sessions()), (0, 1));
}
