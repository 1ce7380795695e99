//! Stories of the opportunistic set-up (ResTP §3.5.5; OP-11, OP-17, OP-31 to OP-33): the survival table of the
//! specification row by row, and what travels beside a SYN. A round trip is 20 ms.

use crate::common::web::*;
use crate::common::*;
use bytes::Bytes;
use restp_base::flow::{CloseReason, Flow};
use restp_base::machine::{Event, Machine};
use restp_base::time::{Duration, Time};
use restp_proto::composition::{Composition, Preset};
use restp_proto::wire::{Flags, Setup};
use restp_proto::{Acceptance, Cookie, CookieLength, CookieParameters, EndpointConfig, KeptCookie};

const SYN: Flags = Flags::SYN;

fn syn_ack() -> Flags {
    Flags::SYN | Flags::ACK
}

/// Request and response under `connection` with these losses: when the response began.
fn response_after(connection: &str, lost: [&'static [u64]; 2]) -> u64 {
    let mut pair = warm("opt-arq", &[("connection", connection)]);
    pair.rule = lose(lost);
    Web::open(pair, b"request", b"response").run(7_000).answered_at()
}

/// ResTP §8.4: what each loss costs, in milliseconds. Opportunistic: 1 is the SYN, 2 the request, 3 the final ACK; 1 is
/// the SYN-ACK, 2 the response. Three-way: 2 is the final ACK, 3 the request. Fast open: 1 is both of the client's.
#[test]
fn the_survival_table_holds_to_the_millisecond() {
    let (opportunistic, three_way, fast_open) = ("opportunistic", "three-way", "fast-open");
    let once = ROUND_TRIP;
    for (row, connection, lost, expected) in [
        ("nothing", opportunistic, [&[][..], &[][..]], once),
        ("nothing", three_way, [&[], &[]], 2 * once),
        ("nothing", fast_open, [&[], &[]], once),
        ("SYN", opportunistic, [&[1], &[]], once),
        ("SYN", three_way, [&[1], &[]], 3_000 + 2 * once),
        ("SYN", fast_open, [&[1], &[]], 3_000 + once),
        ("SYN-ACK", opportunistic, [&[], &[1]], once),
        ("SYN-ACK", three_way, [&[], &[1]], 3_000 + 2 * once),
        ("SYN-ACK", fast_open, [&[], &[1]], once),
        ("SYN and SYN-ACK", opportunistic, [&[1], &[1]], once),
        ("SYN and SYN-ACK", three_way, [&[1], &[1]], 6_000 + 2 * once),
        ("SYN and SYN-ACK", fast_open, [&[1], &[1]], 3_000 + once),
        // The first timer of data after a sample of 20 ms is the floor of 200 ms.
        ("first data", opportunistic, [&[2], &[]], once + 200 + once),
        ("first data", three_way, [&[3], &[]], once + 200 + once),
        ("final ACK", opportunistic, [&[3], &[]], once),
        ("final ACK", three_way, [&[2], &[]], 2 * once),
        ("SYN and first data", opportunistic, [&[1, 2], &[]], 3_000 + once),
        (
            "SYN-ACK and response",
            opportunistic,
            [&[], &[1, 2]],
            3_000 + once,
        ),
        ("SYN-ACK and response", fast_open, [&[], &[1, 2]], 3_000 + once),
    ] {
        assert_eq!(
            response_after(connection, lost),
            expected,
            "{row} lost, {connection}"
        );
    }
}

/// The packets of the exchange without loss (ResTP §8.4).
#[test]
fn six_steps_without_loss() {
    let web = Web::open(warm("opt-arq", &[]), b"request", b"response").run(100);
    let seen: Vec<_> = (web.pair.log.iter())
        .map(|seen| (seen.from, seen.at, seen.header.flags, seen.is_data()))
        .collect();
    assert_eq!(
        seen[..5],
        [
            (0, at(0), SYN, false),
            (0, at(0), SYN, true),
            (1, at(10), syn_ack(), false),
            (1, at(10), syn_ack(), true),
            (0, at(20), Flags::ACK, false),
        ]
    );
    assert!(web.sent(0).chain(web.sent(1)).all(|seen| {
        let opens = seen.from == 0 && seen.header.flags == SYN;
        seen.header.services.setup == Setup::Opportunistic
            && !seen.header.cookie_exchange
            && seen.header.cookie().is_some() == opens
    }));
    assert_eq!(
        web.pair.events[1][0],
        Event::Accepted(web.pair.accepted().unwrap())
    );
    let handshakes = [0, 1].map(|side| {
        let flow = [web.flow, web.pair.accepted().unwrap()][side];
        web.pair.ends[side].stats(flow).unwrap().handshake
    });
    assert_eq!(handshakes, [Some(ms(20)), Some(ms(20))]);
}

#[test]
fn later_data_of_the_server_waits_for_the_packet_that_places_it() {
    let mut pair = warm("opt-arq", &[]);
    pair.rule = lose([&[], &[1, 2]]);
    let response = noise(4 * 1400);
    // To this millisecond: one round trip after the retransmissions everything is there.
    let web = Web::open(pair, b"request", &response).run(3_000 + ROUND_TRIP);
    assert_eq!(web.answered_at(), 3_000 + ROUND_TRIP);
}

#[test]
fn a_lost_final_acknowledgement_is_made_good_by_the_next_packet() {
    let mut pair = warm("opt-arq", &[]);
    pair.rule = lose([&[3, 4], &[]]);
    let mut web = Web::open(pair, b"request", b"response").run(100);
    let accepted = web.pair.accepted().unwrap();
    assert_eq!(web.pair.ends[1].stats(accepted).unwrap().handshake, None);
    web.pair.write(0, web.flow, b"more");
    let web = web.run(30);
    assert!(web.pair.ends[1].stats(accepted).unwrap().handshake.is_some());
    assert_eq!(web.got[1], b"requestmore");
    let accepts = web.pair.events[1]
        .iter()
        .filter(|event| matches!(event, Event::Accepted(_)));
    assert_eq!(accepts.count(), 1);
}

#[test]
fn a_late_syn_after_the_request_is_answered_and_changes_nothing() {
    for late in [5, 15, 200] {
        let mut pair = warm("opt-arq", &[]);
        let mut first = true;
        pair.rule = Box::new(move |_| {
            if std::mem::take(&mut first) {
                Verdict::Late(ms(late))
            } else {
                Verdict::Pass
            }
        });
        let web = Web::open(pair, b"request", b"response").run(400);
        assert_eq!(web.answered_at(), ROUND_TRIP);
        assert_eq!(web.pair.ends[1].connections(), 1);
        let answer = web
            .sent(1)
            .find(|seen| seen.at == at(10 + late))
            .expect("re-acknowledged");
        assert!(
            answer.header.flags.has(Flags::ACK) && !answer.is_data(),
            "{answer:?}"
        );
        assert_eq!(web.pair.ends[1].endpoint_stats().early_discarded, 0);
    }
}

#[test]
fn more_data_than_the_syn_could_carry_leaves_at_once_up_to_ten_segments() {
    let early = |set: &[(&str, &str)]| {
        let web = Web::open(warm("opt-arq", set), &noise(30 * 1400), b"response").run(400);
        web.answered_at();
        web.sent(0)
            .filter(|seen| seen.is_data() && seen.at < at(20))
            .count()
    };
    assert_eq!(early(&[]), 10);
    assert_eq!(early(&[("initial-window", "4 segments")]), 4);
    assert_eq!(early(&[("congestion", "none")]), 10, "OP-33");
    assert_eq!(early(&[("connection", "fast-open")]), 1, "what fits the SYN");
    assert_eq!(early(&[("connection", "three-way")]), 0);
}

#[test]
fn the_first_data_packet_leaves_room_for_its_cookie() {
    let config = config("opt-arq", &[]);
    let mut sixteen = config.clone().listen(PORT, Acceptance::Any);
    sixteen.cookies.length = CookieLength::Sixteen;
    let mut pair = Pair::of(config, sixteen.clone());
    let cookie = cookie_of(&sixteen, &pair);
    keep(&mut pair, cookie);
    let web = Web::open(pair, &noise(5000), b"response").run(100);
    let sizes: Vec<_> = web
        .sent(0)
        .filter(|seen| seen.is_data())
        .map(|seen| seen.bytes().len())
        .collect();
    assert_eq!(
        sizes[0], sizes[1],
        "no larger than a full segment with a plain header"
    );
    assert_eq!(web.answered_at(), ROUND_TRIP);
}

#[test]
fn retransmissions_of_the_first_data_packet_open_until_the_server_is_heard() {
    let mut pair = warm("opt-arq", &[]);
    pair.rule = lose([&[1, 2, 3], &[]]);
    let web = Web::open(pair, b"request", b"response").run(4_000);
    let data: Vec<_> = web.sent(0).filter(|seen| seen.is_data()).collect();
    assert_eq!(data.len(), 2);
    assert!(
        data.iter()
            .all(|seen| seen.is(SYN) && seen.header.cookie().is_some()),
        "OP-31"
    );
    assert_eq!(data[0].bytes(), data[1].bytes());

    let mut pair = warm("opt-arq", &[]);
    pair.rule = lose([&[2], &[]]);
    let web = Web::open(pair, b"request", b"response").run(1_000);
    let again = web.sent(0).filter(|seen| seen.is_data()).nth(1).unwrap();
    assert!(
        again.is(Flags::ACK) && again.header.cookie().is_none(),
        "the server is heard"
    );
}

#[test]
fn early_data_without_its_syn_is_not_refused_but_waits_for_the_retransmission() {
    let mut pair = warm("opt-arq", &[]);
    pair.rule = lose([&[1, 2], &[]]);
    let request = noise(4 * 1400);
    let web = Web::open(pair, &request, b"response").run(4_000);
    assert_eq!(web.pair.closed(0), None, "no RST for what came too early");
    assert_eq!(web.got[1], request);
    assert_eq!(web.pair.ends[1].endpoint_stats().unserved, 4);
}

#[test]
fn first_flight_in_any_order() {
    // SYN, first data and second data arrive in every order, all within a millisecond.
    for order in [[0, 1, 2], [0, 2, 1], [1, 0, 2], [1, 2, 0], [2, 0, 1], [2, 1, 0]] {
        let mut pair = warm("opt-arq", &[]);
        let mut sent = 0;
        pair.rule = Box::new(move |seen| {
            if seen.from == 1 || sent >= 3 {
                return Verdict::Pass;
            }
            sent += 1;
            let rank = order.iter().position(|which| *which == sent - 1).unwrap();
            Verdict::Late(Duration::from_micros(100 * rank as u64))
        });
        let request = noise(2_000);
        let web = Web::open(pair, &request, b"response").run(1_000);
        assert_eq!(web.got[1], request, "{order:?}");
        assert_eq!(web.got[0], b"response", "{order:?}");
        assert_eq!(web.pair.ends[1].connections(), 1);
        let in_time = order[0] != 2; // the second data packet alone says nothing of where numbers begin
        assert_eq!(web.first_at[0].unwrap() < at(25), in_time, "{order:?}");
    }
}

#[test]
fn early_data_survives_a_duplicating_and_a_corrupting_path() {
    let mut pair = warm("opt-arq", &[("crc", "on")]);
    pair.rule = Box::new(|_| Verdict::Twice);
    let web = Web::open(pair, &noise(5_000), &noise(5_000)).run(300);
    assert_eq!(web.answered_at(), ROUND_TRIP);
    assert_eq!(web.pair.ends[1].connections(), 1);

    let mut pair = warm("opt-arq", &[("crc", "on")]);
    pair.damage_next = 1;
    let web = Web::open(pair, b"request", b"response").run(1_000);
    assert_eq!(
        web.answered_at(),
        ROUND_TRIP + 200 + ROUND_TRIP,
        "as if it were lost"
    );
}

#[test]
fn a_service_may_speak_first_as_soon_as_the_cookie_is_verified() {
    let mut pair = warm("opt-arq", &[]);
    let flow = pair.open();
    pair.run_for(ms(10));
    let accepted = pair.accepted().expect("at the SYN");
    pair.write(1, accepted, b"welcome");
    pair.run_for(ms(10));
    assert_eq!(pair.read_all(0, flow), [&b"welcome"[..]]);
}

#[test]
fn a_request_written_later_still_goes_before_the_answer() {
    let mut pair = warm("opt-arq", &[]);
    let flow = pair.open();
    pair.run_for(ms(5));
    pair.write(0, flow, b"late");
    pair.run_for(ms(10));
    let accepted = pair.accepted().unwrap();
    assert_eq!(
        pair.read_all(1, accepted),
        [&b"late"[..]],
        "half a round trip after it was written"
    );
}

#[test]
fn the_end_waits_for_the_set_up() {
    let mut pair = warm("opt-arq", &[]);
    let flow = pair.open();
    pair.write(0, flow, b"all there is");
    pair.ends[0].finish(pair.now, flow);
    pair.run_for(ms(15));
    let accepted = pair.accepted().unwrap();
    assert_eq!(pair.read_all(1, accepted), [&b"all there is"[..]]);
    pair.ends[1].finish(pair.now, accepted);
    pair.run_for(ms(100));
    assert_eq!(pair.closed(1), Some(&CloseReason::Finished));
    assert_eq!(pair.closed(0), Some(&CloseReason::Finished));
    let fin = pair
        .log
        .iter()
        .find(|seen| seen.header.flags.has(Flags::FIN))
        .unwrap();
    assert!(fin.at >= at(20));
}

#[test]
fn ecn_and_sack_are_agreed_on_by_whatever_packet_opens() {
    for lost in [[&[][..], &[][..]], [&[1], &[]], [&[], &[1]], [&[1], &[1]]] {
        let mut pair = warm("cubic", &[("connection", "opportunistic"), ("pacing", "off")]);
        pair.rule = lose(lost);
        let mut web = Web::open(pair, b"request", b"response").run(100);
        assert_eq!(web.answered_at(), ROUND_TRIP);
        web.pair.mark_next = 1; // asserts that the data may be marked
        web.pair.write(0, web.flow, b"more");
        let web = web.run(100);
        assert_eq!(web.got[1], b"requestmore");
    }
}

/// Messages of an unreliable flow may be lost with their cookie; a new set-up carries them on.
#[test]
fn an_unreliable_flow_with_a_window_opens_the_same_way() {
    let set = [
        ("reliability", "unreliable"),
        ("ordering", "unordered"),
        ("framing", "fixed"),
        ("recovery", "timer"),
    ];
    let web = Web::open(warm("opt-arq", &set), b"request", b"response").run(100);
    assert_eq!(web.answered_at(), ROUND_TRIP);
    let mut pair = warm("opt-arq", &set);
    pair.rule = lose([&[1, 2], &[]]);
    let mut web = Web::open(pair, b"request", b"response").run(3_100);
    assert_eq!(web.got[1], b"");
    web.request = Bytes::from_static(b"second");
    web.pair.write(0, web.flow, b"second");
    let web = web.run(300);
    assert_eq!(web.got[0], b"response");
}

/// ResTP §23, as the engine builds them.
#[test]
fn set_up_packets_are_those_of_the_vectors_byte_for_byte() {
    let config = |cookies: CookieParameters| {
        let mut composition: Composition = Preset::named("opt-arq").unwrap().composition();
        composition.set("window", "64 segments").unwrap();
        composition.set("framing", "fixed").unwrap();
        let mut config = EndpointConfig::new(composition.check().unwrap());
        config.cookies = cookies;
        config
    };
    let mut end = restp_proto::Endpoint::new(config(CookieParameters::default()));
    let path = restp_base::machine::PathAddress {
        local: "10.0.0.1:0".parse().unwrap(),
        remote: "10.0.0.2:0".parse().unwrap(),
    };
    let hex = |end: &mut restp_proto::Endpoint| {
        let mut out = restp_base::machine::Datagram::empty();
        let mut all = Vec::new();
        while end.poll_transmit(Time::ZERO, &mut out) {
            // The vectors of the specification know no eras; the bit that does is reserved there.
            assert_eq!(std::mem::take(&mut out.head[7]), 0x80);
            let head: String = out.head.iter().map(|byte| format!("{byte:02X}")).collect();
            // The vectors' source port is C350, ours the first free one.
            assert_eq!(&head[16..20], "C000", "{head}");
            all.push((head.replacen("C000", "C350", 1), out.body.clone()));
        }
        all
    };
    end.open(Time::ZERO, path, PORT).unwrap();
    assert_eq!(
        hex(&mut end),
        [(
            "060268400111 0000C350005000400000 0000000000000000".replace(' ', ""),
            Bytes::new()
        )],
        "cookie request"
    );

    let mut end = restp_proto::Endpoint::new(config(CookieParameters::default()));
    let cookie = Cookie::new(&[0xA0, 0xA1, 0xA2, 0xA3, 0xA4, 0xA5, 0xA6, 0xA7]).unwrap();
    let remaining = Duration::from_secs(60);
    let kept = KeptCookie {
        server: path.remote,
        port: PORT,
        cookie,
        remaining,
    };
    end.keep_cookie(Time::ZERO, kept);
    let flow = end.open(Time::ZERO, path, PORT).unwrap();
    end.write(Time::ZERO, flow, Bytes::from_static(b"GET")).unwrap();
    let opening = "0802484001110000C350005000400000A0A1A2A3A4A5A6A7";
    assert_eq!(
        hex(&mut end),
        [
            (format!("{opening}0000000000000000"), Bytes::new()),
            (format!("{opening}0000000100000000"), Bytes::from_static(b"GET")),
        ],
        "opportunistic SYN and first data packet"
    );
}

/// The FEC word of a SYN travels on whatever packet opens (OP-12).
#[test]
fn forward_error_correction_begins_with_the_first_flight() {
    for lost in [[&[][..], &[][..]], [&[1], &[]], [&[], &[1]]] {
        let mut pair = warm("opt-arq", &[("reliability", "harq")]);
        pair.rule = lose(lost);
        let web = Web::open(pair, &noise(5_000), &noise(5_000)).run(300);
        assert_eq!(web.answered_at(), ROUND_TRIP);
    }
    let mut pair = warm("opt-arq", &[("reliability", "harq")]);
    pair.rule = lose([&[3], &[]]);
    let web = Web::open(pair, &noise(5_000), b"response").run(300);
    assert_eq!(web.got[1], web.request);
    let repaired = web.pair.ends[1].stats(web.pair.accepted().unwrap()).unwrap();
    assert_eq!(
        repaired.repaired_packets, 1,
        "early data is encoded like any other"
    );
}

/// The duplicate of an acknowledgement has a timer that runs before the set-up is complete, too (OP-47).
#[test]
fn acknowledgements_of_early_data_are_duplicated_in_silence() {
    let mut pair = warm("opt-arq", &[("ack", "positive+repeat")]);
    pair.rule = silent(1);
    let web = Web::open(pair, b"request", b"response").run(2_900);
    assert_eq!(web.got[1], b"request");
    assert!(web.sent(1).filter(|seen| seen.is(syn_ack())).count() > 2);
}

/// Two SYN-ACKs (one for the SYN, one for the early data) are acknowledged twice. Taken for duplicates these would let
/// two segments more into the first round trip (limited transmit, RFC 3042) than the set-up of three steps does.
#[test]
fn acknowledgements_of_syn_acks_are_no_duplicates() {
    let windows = [("initial-window", "1 segment"), ("ack-every", "1 packet")];
    let web = Web::open(warm("opt-arq", &windows), b"GET", &noise(20_000)).run(200);
    let rounds: Vec<usize> = (0..4)
        .map(|round| {
            let from = at(ROUND_TRIP / 2 + round * ROUND_TRIP);
            let sent = web
                .pair
                .log
                .iter()
                .filter(|seen| seen.from == 1 && seen.is_data());
            sent.filter(|seen| (from..from + ms(ROUND_TRIP)).contains(&seen.at))
                .count()
        })
        .collect();
    assert_eq!(rounds, [1, 2, 4, 8]);
}
