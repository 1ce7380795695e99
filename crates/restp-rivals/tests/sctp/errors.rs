//! What was wrong is said (RFC 9260 §3.3.10): in ERROR where the association lives, in ABORT where it does not.

use super::network::*;
use bytes::Bytes;
use restp_base::flow::{CloseReason, Flow, FlowId};
use restp_base::machine::{Datagram, Event, Input, Machine};
use restp_base::time::Duration;
use restp_rivals::sctp::chunk::{Cause, Chunk, Data, Fragment, Init, Sack};
use restp_rivals::sctp::wire::Packet;
use smallvec::smallvec;

/// The causes that a host tells of now.
fn told(net: &mut Net, host: usize) -> Vec<Cause> {
    let chunks = net.says(host).into_iter().flat_map(|packet| packet.chunks);
    let causes = chunks.filter_map(|chunk| match chunk {
        Chunk::Error(causes) | Chunk::Abort { causes, .. } => Some(causes),
        _ => None,
    });
    causes.flatten().collect()
}

fn unknown(kind: u8) -> Chunk {
    Chunk::Unrecognized(vec![kind, 0, 0, 7, 1, 2, 3].into())
}

fn data(tsn: u32, stream: u16, payload: &'static [u8]) -> Chunk {
    let fragment = Fragment {
        tsn: FIRST_TSN.wrapping_add(tsn),
        stream,
        is_first: true,
        is_last: true,
        ..Fragment::default()
    };
    let payload = Bytes::from_static(payload);
    Chunk::Data(Data { fragment, payload })
}

#[test]
fn a_chunk_that_is_not_known_is_told_of_if_its_type_asks_for_it() {
    let (mut net, packet) = standing();
    for (kind, is_told) in [(0x3F, false), (0x7F, true), (0xBF, false), (0xFF, true)] {
        net.hears(SERVER, &packet, [unknown(kind)]);
        let expected = is_told.then(|| Cause::unrecognized_chunk(&vec![kind, 0, 0, 7, 1, 2, 3].into()));
        assert_eq!(told(&mut net, SERVER), Vec::from_iter(expected), "{kind}");
    }
    net.hears(SERVER, &packet, std::iter::repeat_n(unknown(0xFF), 200));
    assert!(told(&mut net, SERVER).len() <= 16);
    assert_eq!(net.closed(SERVER), None);
}

/// RFC 9260 §6.5: it is acknowledged, told of, and never read.
#[test]
fn data_of_a_stream_that_was_not_agreed_on_are_acknowledged_and_dropped() {
    let (mut net, packet) = standing();
    net.hears(SERVER, &packet, [data(0, 1, b"nobody's")]);
    net.hears(SERVER, &packet, [data(1, 0, b"ours")]);
    let said = net.says(SERVER);
    let chunks: Vec<_> = said.iter().flat_map(|packet| packet.chunks.iter()).collect();
    let cause = Cause::invalid_stream(1);
    assert!(chunks.contains(&&Chunk::Error(smallvec![cause])), "{chunks:?}");
    let is_sack = |chunk: &&Chunk| match chunk {
        Chunk::Sack(sack) => sack.cumulative == FIRST_TSN.wrapping_add(1),
        _ => false,
    };
    assert!(chunks.iter().any(is_sack), "{chunks:?}");
    net.run_for(ms(1));
    assert_eq!(net.read, [&b"ours"[..]]);
}

/// RFC 9260 §6.2.
#[test]
fn data_without_data_end_the_association() {
    let (mut net, packet) = standing();
    net.hears(SERVER, &packet, [data(3, 0, b"")]);
    net.run_for(ms(50));
    let abort = net.seen(|chunk| matches!(chunk, Chunk::Abort { .. }));
    let causes = smallvec![Cause::no_user_data(FIRST_TSN.wrapping_add(3))];
    let reflects_tag = false;
    assert_eq!(abort.chunks[..], [Chunk::Abort { reflects_tag, causes }]);
    assert_eq!(net.closed(SERVER), Some(&CloseReason::Aborted));
    assert_eq!(net.closed(OPENER), Some(&CloseReason::Reset));
}

/// The server hears a SACK of `packet`'s association that claims more blocks than it has, from `host` in the opener's network.
fn hears_a_short_sack(net: &mut Net, packet: &Packet, host: u8) {
    let packet = Packet {
        chunks: smallvec![Chunk::Sack(Sack::default())],
        ..packet.clone()
    };
    let mut path = Net::path(0).reversed();
    path.remote = ([10, 0, 0, host], 0).into();
    let mut bytes = datagram(&packet, path).to_vec();
    bytes[25] = 9;
    bytes[8..12].fill(0);
    let crc = crc::Crc::<u32>::new(&crc::CRC_32_ISCSI).checksum(&bytes);
    bytes[8..12].copy_from_slice(&crc.to_le_bytes());
    let mut short = Datagram {
        body: bytes.into(),
        path,
        ..Datagram::empty()
    };
    net.hosts[SERVER].handle(net.now, Input::Datagram(&mut short));
}

/// RFC 9260 §3.3.10.13. Whoever does not know the tag, or comes from elsewhere, ends nothing by it.
#[test]
fn lengths_that_contradict_the_packet_end_the_association_of_their_tag() {
    let (mut net, packet) = standing();
    let dropped = net.hosts[SERVER].dropped_packets();
    let mut guessed = packet.clone();
    guessed.header.tag ^= 1;
    hears_a_short_sack(&mut net, &guessed, 1);
    hears_a_short_sack(&mut net, &packet, 7);
    assert_eq!(net.says(SERVER), []);
    net.run_for(ms(50));
    assert_eq!(net.closed(SERVER), None);
    hears_a_short_sack(&mut net, &packet, 1);
    let told = told(&mut net, SERVER);
    assert_eq!(told.len(), 1);
    assert_eq!(told[0].code, Cause::PROTOCOL_VIOLATION);
    let said = String::from_utf8_lossy(&told[0].value).into_owned();
    assert!(said.contains("bytes"), "{said}");
    net.run_for(ms(50));
    assert_eq!(net.closed(SERVER), Some(&CloseReason::Aborted));
    assert_eq!(net.hosts[SERVER].dropped_packets(), dropped + 3);
}

fn parameter() -> Bytes {
    Bytes::from_static(&[0xC0, 0, 0, 6, 1, 2])
}

#[test]
fn parameters_of_an_init_that_are_not_known_come_back_with_its_answer() {
    let (mut net, packet) = standing();
    let init = Init {
        tag: 7,
        window: 1500,
        streams_out: 1,
        streams_in: 1,
        unrecognized: smallvec![parameter()],
        ..Init::default()
    };
    let mut stranger = packet;
    (stranger.header.tag, stranger.header.source_port) = (0, 99);
    net.server_hears(&stranger, Chunk::Init(init));
    match &net.says(SERVER)[..] {
        [answer] => match &answer.chunks[..] {
            [Chunk::InitAck(answer)] => {
                assert_eq!(answer.reported[..], [parameter()]);
                assert_eq!(answer.streams_out, 1, "§5.1.1: no more than the peer takes");
            }
            other => panic!("{other:?}"),
        },
        other => panic!("{other:?}"),
    }
}

/// A network in which the server's INIT ACK has come, but for the change that the opener sees.
fn answered(set: &[(&str, &str)], change: impl FnOnce(&mut Init)) -> Net {
    let mut net = Net::new(sctp(set), &[wide(10)]);
    net.rule = Box::new(|seen| (!matches!(seen.chunk(), Chunk::InitAck(_))).then_some(Duration::ZERO));
    net.open();
    net.run_for(ms(50));
    net.rule = Box::new(|_| Some(Duration::ZERO));
    let packet = net.seen(|chunk| matches!(chunk, Chunk::InitAck(_)));
    let Chunk::InitAck(mut init) = packet.chunks[0].clone() else {
        panic!("{packet:?}")
    };
    change(&mut init);
    net.hears(OPENER, &packet, [Chunk::InitAck(init)]);
    net
}

/// RFC 9260 §3.2.2: behind COOKIE ACK, where it is not bundled with COOKIE ECHO.
#[test]
fn parameters_of_an_init_ack_that_are_not_known_are_told_of_once_the_association_stands() {
    let mut net = answered(&[], |init| init.unrecognized.push(parameter()));
    net.run_for(ms(100));
    assert_eq!(net.closed(OPENER), None);
    let sent: Vec<_> = net.log.iter().filter(|seen| seen.from == OPENER).collect();
    let told = Chunk::Error(smallvec![Cause::unrecognized_parameters(&[parameter()])]);
    let last = sent.last().expect("sent");
    assert_eq!((last.chunk(), sent.len()), (&told, 3), "INIT, COOKIE ECHO, ERROR");
    assert_eq!(net.closed(SERVER), None);
}

#[test]
fn an_init_ack_that_cannot_be_is_refused_with_the_reason() {
    let changes = [
        |init: &mut Init| init.cookie = None,
        |init: &mut Init| init.streams_out = 0,
        |init: &mut Init| init.window = 1,
    ];
    let impossible = Cause::invalid_parameter();
    let causes = [Init::without_cookie(), impossible.clone(), impossible];
    for (change, cause) in changes.into_iter().zip(causes) {
        let mut net = answered(&[], change);
        assert_eq!(told(&mut net, OPENER), [cause]);
        net.run_for(ms(50));
        assert_eq!(net.closed(OPENER), Some(&CloseReason::Refused));
    }
}

/// RFC 9260 §3.3.2: and what stands is not touched.
#[test]
fn an_init_that_cannot_be_is_refused_beside_an_association_as_without_one() {
    let (mut net, mut packet) = standing();
    packet.header.tag = 0;
    for port in [packet.header.source_port, 99] {
        packet.header.source_port = port;
        let init = Init {
            tag: 7,
            streams_out: 1,
            streams_in: 1,
            window: 1499,
            ..Init::default()
        };
        net.server_hears(&packet, Chunk::Init(init));
        let said = net.says(SERVER);
        assert_eq!(said[0].header.tag, 7);
        let causes = smallvec![Cause::invalid_parameter()];
        let reflects_tag = false;
        assert_eq!(said[0].chunks[..], [Chunk::Abort { reflects_tag, causes }]);
    }
    assert_eq!(net.closed(SERVER), None);
}

/// RFC 9260 §5.2.6: the server says how late the cookie is, and the opener asks for another.
#[test]
fn a_cookie_that_came_too_late_is_told_of_and_the_next_one_opens_the_association() {
    let set = [("handshake-rto", "20 s"), ("handshake-attempts", "6")];
    let mut net = Net::new(sctp(&set), &[wide(10)]);
    net.rule = Box::new(|seen| {
        let passes = !matches!(seen.chunk(), Chunk::CookieEcho(_)) || seen.at.as_nanos() > 61_000_000_000;
        passes.then_some(Duration::ZERO)
    });
    let flow = net.open();
    net.run_for(Duration::from_secs(150));
    let error = net.seen(|chunk| matches!(chunk, Chunk::Error(_)));
    let Chunk::Error(causes) = &error.chunks[0] else {
        panic!("{error:?}")
    };
    assert_eq!(causes[0].code, Cause::STALE_COOKIE);
    let late_us = u32::from_be_bytes(causes[0].value[..].try_into().expect("four bytes"));
    assert_eq!(late_us, 80_020_000, "made at 10 ms, back after 20 + 40 + 80 s");
    assert_eq!(net.count(|seen| matches!(seen.chunk(), Chunk::Init(_))), 2);
    assert_eq!(net.events[OPENER], [Event::Connected(flow)]);
    assert!(net.accepted().is_some());
}

#[test]
fn a_server_that_calls_every_cookie_too_old_is_given_up() {
    let mut net = Net::new(sctp(&[("handshake-attempts", "3")]), &[wide(10)]);
    net.rule = Box::new(|seen| (!matches!(seen.chunk(), Chunk::CookieEcho(_))).then_some(Duration::ZERO));
    net.open();
    net.run_for(ms(30));
    let answer = net.seen(|chunk| matches!(chunk, Chunk::InitAck(_)));
    for round in 0..3 {
        assert_eq!(net.closed(OPENER), None, "{round}");
        net.hears(OPENER, &answer, [Chunk::Error(smallvec![Cause::stale_cookie(1)])]);
        net.run_for(ms(30));
    }
    assert_eq!(net.closed(OPENER), Some(&CloseReason::Refused));
    assert_eq!(net.count(|seen| matches!(seen.chunk(), Chunk::Init(_))), 3);
}

/// Neither the tag nor what was to be told about it: the next answer has others.
#[test]
fn nothing_is_left_of_the_answer_whose_cookie_was_too_old() {
    for aborts in [false, true] {
        let mut net = answered(&[], |init| init.unrecognized.push(parameter()));
        let answer = net.seen(|chunk| matches!(chunk, Chunk::InitAck(_)));
        net.says(OPENER);
        net.hears(OPENER, &answer, [Chunk::Error(smallvec![Cause::stale_cookie(1)])]);
        if aborts {
            net.hosts[OPENER].abort(net.now, FlowId(0));
            assert_eq!(net.says(OPENER), []);
            continue;
        }
        net.run_for(ms(100));
        assert!(net.accepted().is_some());
        assert_eq!(net.count(|seen| matches!(seen.chunk(), Chunk::Error(_))), 0);
    }
}

/// A cookie that was changed is nobody's, and says nothing of its maker.
#[test]
fn only_a_cookie_of_its_own_is_called_too_old() {
    let mut net = Net::new(sctp(&[]), &[wide(10)]);
    net.rule = Box::new(|seen| (!matches!(seen.chunk(), Chunk::CookieEcho(_))).then_some(Duration::ZERO));
    net.open();
    net.run_for(ms(50));
    let echo = net.seen(|chunk| matches!(chunk, Chunk::CookieEcho(_)));
    let Chunk::CookieEcho(cookie) = &echo.chunks[0] else {
        panic!("{echo:?}")
    };
    net.now += Duration::from_secs(100);
    let mut forged = cookie.to_vec();
    forged[0] ^= 1;
    net.server_hears(&echo, Chunk::CookieEcho(forged.into()));
    assert_eq!(net.says(SERVER), []);
    net.server_hears(&echo, Chunk::CookieEcho(cookie.clone()));
    assert_eq!(told(&mut net, SERVER).len(), 1);
    assert_eq!(net.hosts[SERVER].held(), 0);
}

/// Nobody answers what says that something was wrong, or two hosts would never stop.
#[test]
fn an_error_changes_nothing_and_is_not_answered() {
    let (mut net, packet) = standing();
    let flow = net.accepted().expect("accepted");
    for code in 0..20 {
        let cause = Cause {
            code,
            value: Bytes::from_static(&[1, 2, 3]),
        };
        net.server_hears(&packet, Chunk::Error(smallvec![cause]));
    }
    assert_eq!(net.says(SERVER), []);
    assert_eq!(net.closed(SERVER), None);
    assert!(net.hosts[SERVER].stats(flow).is_some());
}

/// RFC 9260 §3.3.3: and there is no tag to say it to.
#[test]
fn an_init_ack_with_the_tag_0_ends_the_set_up_at_once() {
    let mut net = answered(&[], |init| init.tag = 0);
    assert_eq!(net.says(OPENER), []);
    net.run_for(ms(1));
    assert_eq!(net.closed(OPENER), Some(&CloseReason::Refused));
}

/// RFC 9260 §5.1.1: who opens takes no more streams than INIT ACK offers.
#[test]
fn a_stream_that_an_init_ack_did_not_offer_is_not_agreed_on() {
    let mut net = answered(&[], |init| init.streams_out = 2);
    net.run_for(ms(100));
    let answer = net.seen(|chunk| matches!(chunk, Chunk::CookieAck));
    net.hears(OPENER, &answer, [data(0, 1, b"ours"), data(1, 2, b"nobody's")]);
    assert_eq!(told(&mut net, OPENER), [Cause::invalid_stream(2)]);
}
