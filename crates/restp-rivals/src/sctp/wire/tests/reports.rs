//! What is not known, what was wrong, and how peers are told of it (RFC 9260 §3.2, §3.3.10).

use super::super::super::chunk::MOST_REPORTED_BYTES;
use super::*;

/// RFC 9260 §3.2: the second bit of a type asks for a report, the first one for what follows.
#[test]
fn what_is_not_known_is_skipped_or_ends_the_packet_and_is_told_of_as_its_type_says() {
    let with = |kind: u8| {
        let mut bytes = emitted(&packet([Chunk::CookieAck])).to_vec();
        bytes.extend([kind, 5, 0, 6, 1, 2, 0, 0]);
        bytes.extend([8, 0, 0, 4]);
        parsed(bytes).expect("possible").chunks
    };
    let whole = |kind: u8| Chunk::Unrecognized(vec![kind, 5, 0, 6, 1, 2].into());
    assert_eq!(with(0x3F)[..], [Chunk::CookieAck]);
    assert_eq!(with(0x7F)[..], [Chunk::CookieAck, whole(0x7F)]);
    assert_eq!(with(0x80)[..], [Chunk::CookieAck, Chunk::ShutdownAck]);
    assert_eq!(
        with(0xC1)[..],
        [Chunk::CookieAck, whole(0xC1), Chunk::ShutdownAck]
    );
}

/// An INIT whose parameters are these bytes.
fn init_with(parameters: &[u8]) -> Init {
    let mut bytes = emitted(&packet([])).to_vec();
    bytes.extend([1, 0, 0, 20 + parameters.len() as u8]);
    bytes.extend([0, 0, 0, 7, 0, 0, 5, 220, 0, 1, 0, 1, 0, 0, 0, 9]);
    bytes.extend(parameters);
    match &parsed(bytes).expect("possible").chunks[..] {
        [Chunk::Init(init)] => init.clone(),
        other => panic!("{other:?}"),
    }
}

/// RFC 9260 §3.2.1: the same two bits of a parameter's type. What is told of is the whole parameter.
#[test]
fn parameters_that_are_not_known_are_skipped_or_end_the_chunk_and_are_told_of_as_their_types_say() {
    let with = |kind: u16| {
        let [high, low] = kind.to_be_bytes();
        let init = init_with(&[high, low, 0, 6, 1, 2, 0, 0, 0, 5, 0, 8, 10, 0, 0, 9]);
        (init.unrecognized.to_vec(), init.addresses.len())
    };
    let whole = |kind: u16| {
        let [high, low] = kind.to_be_bytes();
        vec![Bytes::from(vec![high, low, 0, 6, 1, 2])]
    };
    assert_eq!(with(0x0004), (vec![], 0));
    assert_eq!(with(0x4004), (whole(0x4004), 0));
    assert_eq!(with(0x8008), (vec![], 1));
    assert_eq!(with(0xC000), (whole(0xC000), 1));
    for known in [8, 9, 12] {
        assert_eq!(with(known), (vec![], 1));
    }
}

#[test]
fn an_init_without_streams_or_window_or_with_a_name_opens_nothing() {
    let possible = Init {
        tag: 1,
        window: 1500,
        streams_out: 1,
        streams_in: 1,
        ..Init::default()
    };
    assert_eq!(possible.refusal(), None);
    for change in [
        |init: &mut Init| init.window = 1499,
        |init: &mut Init| init.streams_in = 0,
        |init: &mut Init| init.streams_out = 0,
    ] {
        let mut init = possible.clone();
        change(&mut init);
        assert_eq!(init.refusal(), Some(Cause::invalid_parameter()));
    }
    let name = [0, 11, 0, 8, b'a', b'.', b'b', 0];
    let named = init_with(&name);
    let cause = Cause::unresolvable_address(Bytes::copy_from_slice(&name));
    assert_eq!(named.refusal(), Some(cause));
}

/// RFC 9260 §3.3.10.1 to 3.3.10.13, one by one.
#[test]
fn causes_have_the_bytes_of_the_standard() {
    let addresses = [IpAddr::from([10, 0, 0, 1]), IpAddr::from([0u8; 16])];
    let all = [
        (Cause::invalid_stream(0x0102), vec![0, 1, 0, 8, 1, 2, 0, 0]),
        (Cause::missing_parameter(7), vec![0, 2, 0, 10, 0, 0, 0, 1, 0, 7]),
        (Cause::stale_cookie(0x0102_0304), vec![0, 3, 0, 8, 1, 2, 3, 4]),
        (
            Cause::unresolvable_address(Bytes::from_static(&[0, 11, 0, 5, b'x'])),
            vec![0, 5, 0, 9, 0, 11, 0, 5, b'x'],
        ),
        (
            Cause::unrecognized_chunk(&Bytes::from_static(&[0xC0, 1, 0, 5, 7])),
            vec![0, 6, 0, 9, 0xC0, 1, 0, 5, 7],
        ),
        (Cause::invalid_parameter(), vec![0, 7, 0, 4]),
        (
            Cause::unrecognized_parameters(&[
                Bytes::from_static(&[0xC0, 0, 0, 5, 7]),
                Bytes::from_static(&[0xC0, 1, 0, 4]),
            ]),
            vec![0, 8, 0, 16, 0xC0, 0, 0, 5, 7, 0, 0, 0, 0xC0, 1, 0, 4],
        ),
        (Cause::no_user_data(0x0102_0304), vec![0, 9, 0, 8, 1, 2, 3, 4]),
        (Cause::cookie_in_shutdown(), vec![0, 10, 0, 4]),
        (
            Cause::new_addresses(&addresses),
            [
                &[0, 11, 0, 32, 0, 5, 0, 8, 10, 0, 0, 1, 0, 6, 0, 20][..],
                &[0; 16],
            ]
            .concat(),
        ),
        (Cause::protocol_violation("no"), vec![0, 13, 0, 6, b'n', b'o']),
    ];
    for (cause, bytes) in all {
        let chunk = Chunk::Error(smallvec![cause.clone()]);
        let whole = emitted(&packet([chunk])).to_vec();
        let mut expected = vec![9, 0, 0, 4 + bytes.len() as u8];
        expected.extend(bytes);
        expected.resize(padded(expected.len()), 0);
        assert_eq!(whole[HEADER_BYTES..], expected, "{cause:?}");
    }
}

#[test]
fn what_goes_back_to_a_peer_fits_into_a_packet() {
    let chunk = Bytes::from(vec![0xC0; 60_000]);
    assert_eq!(Cause::unrecognized_chunk(&chunk).value.len(), MOST_REPORTED_BYTES);
    let mut parameters = Vec::new();
    for _ in 0..20 {
        parameters.extend([0xC0, 7, 0, 8, 1, 2, 3, 4]);
    }
    assert_eq!(init_with(&parameters).unrecognized.len(), 20);
    let mut init = Init {
        tag: 1,
        unrecognized: std::iter::repeat_n(Bytes::from([0xC0, 0, 0, 100].repeat(25)), 20).collect(),
        ..Init::default()
    };
    let mut out = emitted(&packet([Chunk::Init(init.clone())]));
    let parsed = Packet::parse(&mut out).expect("possible");
    init.unrecognized.truncate(MOST_REPORTED_BYTES / 104);
    assert_eq!(parsed.chunks[..], [Chunk::Init(init)]);
}

#[test]
fn causes_beyond_a_bound_and_those_that_are_not_whole_are_forgotten_and_an_abort_counts() {
    let parsed_abort = |causes: &[u8]| {
        let mut bytes = emitted(&packet([])).to_vec();
        bytes.extend([6, 0, 0, 4 + causes.len() as u8]);
        bytes.extend(causes);
        match &parsed(bytes).expect("possible").chunks[..] {
            [Chunk::Abort { causes, .. }] => causes.len(),
            other => panic!("{other:?}"),
        }
    };
    assert_eq!(parsed_abort(&[0, 7, 0, 4].repeat(40)), MOST_CAUSES);
    assert_eq!(parsed_abort(&[0, 7, 0, 4, 0, 13, 0, 9, 1, 2, 3, 4]), 1);
    assert_eq!(parsed_abort(&[0, 7, 0, 3]), 0);
    assert_eq!(parsed_abort(&[0]), 0);
}

/// RFC 9260 §3.2: a chunk's length counts the padding of all its parameters but the last.
#[test]
fn the_padding_behind_the_last_parameter_is_not_in_the_length() {
    let init = Init {
        tag: 1,
        cookie: Some(Bytes::from_static(&[1, 2, 3, 4, 5])),
        ..Init::default()
    };
    let bytes = emitted(&packet([Chunk::InitAck(init)])).to_vec();
    assert_eq!((bytes.len(), bytes[15]), (12 + 32, 29));
}

/// CMT §2.5 has the count of DAC in the low bits of the flags, the stacks of BSD in the high ones: both are said, and either is heard.
#[test]
fn a_sack_counts_arrivals_where_either_kind_of_stack_looks_for_them() {
    let sack = Sack {
        arrivals: 2,
        ..Sack::default()
    };
    let bytes = emitted(&packet([Chunk::Sack(sack)])).to_vec();
    assert_eq!(bytes[HEADER_BYTES + 1], 0b1000_0010);
    for (flags, arrivals) in [
        (0b10, 2),
        (0b1000_0000, 2),
        (0b0100_0000, 1),
        (0b1100_0011, 3),
        (0, 0),
    ] {
        let mut plain = emitted(&packet([])).to_vec();
        plain.extend([3, flags, 0, 16]);
        plain.extend([0; 12]);
        match &parsed(plain).expect("possible").chunks[..] {
            [Chunk::Sack(sack)] => assert_eq!(sack.arrivals, arrivals, "{flags:08b}"),
            other => panic!("{other:?}"),
        }
    }
}
