//! Data in the SYN (RFC 7413): what it saves, and what happens where it is not taken. One way takes 10 ms.

use crate::network::{PORT, Pair, Verdict, noise};
use restp_base::flow::{Flow, FlowId};
use restp_base::machine::Event;
use restp_base::time::{Duration, Time};
use restp_rivals::tcp::TcpParameters;
use restp_rivals::tcp::fast_open::FastOpen;
use restp_rivals::tcp::wire::Flags;
use restp_services::connection_management::{Cookie, CookieMint, CookieParameters, KeptCookie};

const ON: &[(&str, &str)] = &[("fast-open", "on")];
const MS: fn(u64) -> Duration = Duration::from_millis;

/// A cookie of the server for the opener.
fn cookie() -> Cookie {
    CookieMint::new(CookieParameters::default()).mint(Time::ZERO, Pair::path(0).local.ip())
}

fn knowing(cookie: Cookie, set: &[(&str, &str)]) -> Pair {
    let mut pair = Pair::new(set);
    let kept = KeptCookie {
        server: Pair::path(0).remote,
        port: PORT,
        cookie,
        remaining: Duration::from_secs(3600),
    };
    pair.ends[0].keep_cookie(pair.now, kept);
    pair
}

/// Opens, writes at once, and says after how many milliseconds everything was read.
fn asks(pair: &mut Pair, request: &[u8]) -> (FlowId, FlowId, u64) {
    let (began, known) = (pair.now, pair.events[1].len());
    let flow = pair.open();
    pair.write(0, flow, request);
    let mut got = Vec::new();
    for ms in 1..10_000 {
        pair.run_for(MS(1));
        let accepted = pair.events[1][known..].iter().find_map(|event| match event {
            Event::Accepted(flow) => Some(*flow),
            _ => None,
        });
        if let Some(accepted) = accepted {
            got.extend(pair.read_all(1, accepted));
            if got.len() >= request.len() {
                assert!(got == request);
                assert_eq!(pair.now.since(began), MS(ms));
                return (flow, accepted, ms);
            }
        }
    }
    panic!("nothing arrived")
}

#[test]
fn with_a_cookie_the_first_byte_comes_after_half_a_round_trip_else_after_one_and_a_half() {
    let (.., plain) = asks(&mut Pair::new(&[]), b"request");
    let (.., asking) = asks(&mut Pair::new(ON), b"request");
    let mut pair = knowing(cookie(), ON);
    let (client, server, early) = asks(&mut pair, b"request");
    assert_eq!((plain, asking, early), (30, 30, 10));
    assert_eq!(pair.log[0].payload, b"request"[..]);
    assert_eq!(
        pair.log[0].header.options.fast_open,
        Some(FastOpen::Cookie(cookie()))
    );
    // And the answer follows the SYN-ACK: it is there after one round trip.
    pair.write(1, server, b"answer");
    pair.run_for(MS(10));
    assert_eq!(pair.read_all(0, client), b"answer");
    let syn_ack = pair.log[1].clone();
    assert_eq!(
        syn_ack.header.acknowledgement,
        pair.log[0].header.sequence.wrapping_add(8)
    );
    for (end, flow) in [(0, client), (1, server)] {
        let stats = pair.ends[end].stats(flow).unwrap();
        assert_eq!(
            (stats.early_segments, stats.retransmitted_packets),
            (1, 0),
            "end {end}"
        );
    }
}

#[test]
fn a_cookie_is_asked_for_given_and_kept() {
    let mut pair = Pair::new(ON);
    let (.., first) = asks(&mut pair, b"one");
    assert_eq!(pair.log[0].header.options.fast_open, Some(FastOpen::Request));
    assert_eq!(
        pair.log[1].header.options.fast_open,
        Some(FastOpen::Cookie(cookie()))
    );
    assert!(pair.log[0].payload.is_empty());
    let (.., second) = asks(&mut pair, b"two");
    assert_eq!((first, second), (30, 10));
}

#[test]
fn what_is_more_than_a_syn_may_carry_follows_with_the_exchange() {
    let request = noise(5000);
    let mut pair = knowing(cookie(), ON);
    let (.., ms) = asks(&mut pair, &request);
    assert_eq!((ms, pair.log[0].payload.len()), (30, 536));
    assert_eq!(pair.count(0, |seen| seen.payload.len() == 1400), 3);
}

#[test]
fn data_that_the_server_does_not_take_leave_again_with_the_third_segment() {
    let foreign = Cookie::new(&[7; 8]).unwrap();
    let mut refused = knowing(foreign, ON);
    let (client, _, ms) = asks(&mut refused, b"request");
    assert_eq!(ms, 30, "as without a cookie");
    assert_eq!(refused.ends[0].stats(client).unwrap().retransmitted_packets, 1);
    assert_eq!(
        refused.log[1].header.options.fast_open,
        Some(FastOpen::Cookie(cookie()))
    );
    assert_eq!(asks(&mut refused, b"again").2, 10, "the fresh one serves");

    let mut unknown = knowing(cookie(), ON);
    unknown.replace_server(TcpParameters::classic_from_pairs("newreno", &[]).unwrap());
    assert_eq!(
        asks(&mut unknown, b"request").2,
        30,
        "a server that knows no Fast Open"
    );
    assert_eq!(unknown.log[1].header.options.fast_open, None);
}

#[test]
fn a_lost_syn_is_retransmitted_without_data_as_tcp_does() {
    let mut pair = knowing(cookie(), ON);
    let mut left = 1;
    pair.rule = Box::new(move |_| {
        left -= 1;
        if left == 0 { Verdict::Drop } else { Verdict::Pass }
    });
    let (.., ms) = asks(&mut pair, b"request");
    assert_eq!(ms, 3030);
    let syns: Vec<_> = pair
        .log
        .iter()
        .filter(|seen| seen.header.flags == Flags::SYN)
        .collect();
    assert_eq!((syns.len(), syns[1].payload.len()), (2, 0));
    assert_eq!(syns[1].header.options.fast_open, None);
}

#[test]
fn a_lost_answer_costs_its_timer_and_no_byte_comes_twice() {
    let mut pair = knowing(cookie(), ON);
    let mut seen_answers = 0;
    pair.rule = Box::new(move |seen| {
        seen_answers += i32::from(seen.has(Flags::SYN | Flags::ACK));
        if seen_answers == 1 && seen.has(Flags::SYN | Flags::ACK) {
            Verdict::Drop
        } else {
            Verdict::Pass
        }
    });
    let (client, server, ms) = asks(&mut pair, b"request");
    assert_eq!(ms, 10);
    pair.run_for(MS(3100));
    assert!(pair.read_all(1, server).is_empty());
    assert!(pair.events[0].contains(&Event::Connected(client)));
    pair.write(0, client, b"more");
    pair.run_for(MS(50));
    assert_eq!(pair.read_all(1, server), b"more");
}
