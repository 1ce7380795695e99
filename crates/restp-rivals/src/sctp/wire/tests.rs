//! Bytes and meaning, against numbers of RFC 9260 and CMT §1.2.

mod reports;

use super::super::chunk::{
    CHUNK_HEADER_BYTES, Cause, Causes, Data, Fragment, Init, MOST_BLOCKS, MOST_CAUSES, Sack,
};
use super::*;
use proptest::collection::vec;
use proptest::prelude::*;
use smallvec::smallvec;
use std::net::IpAddr;

const HEADER: Header = Header {
    source_port: 5000,
    destination_port: 9,
    tag: 0x0102_0304,
};

fn packet(chunks: impl IntoIterator<Item = Chunk>) -> Packet {
    Packet {
        header: HEADER,
        chunks: chunks.into_iter().collect(),
    }
}

fn emitted(packet: &Packet) -> Datagram {
    let mut out = Datagram::empty();
    packet.emit(&mut out);
    out
}

/// As it comes from a socket: in one piece.
fn received(bytes: Vec<u8>) -> Datagram {
    Datagram {
        body: bytes.into(),
        ..Datagram::empty()
    }
}

fn data(payload: &[u8]) -> Chunk {
    Chunk::Data(Data {
        fragment: Fragment {
            tsn: 0xAABB_CCDD,
            stream: 1,
            ssn: 2,
            protocol: 3,
            is_first: true,
            is_last: true,
            ..Fragment::default()
        },
        payload: Bytes::copy_from_slice(payload),
    })
}

fn sack(cumulative: u32, blocks: &[(u16, u16)]) -> Sack {
    Sack {
        cumulative,
        window: 65_536,
        blocks: SmallVec::from_slice(blocks),
        ..Sack::default()
    }
}

/// RFC 3720 §B.4, as RFC 9260 appendix A counts.
#[test]
fn the_check_sum_is_that_of_the_published_vectors() {
    for (bytes, expected) in [
        (vec![0u8; 32], 0x8A91_36AA),
        (vec![0xFF; 32], 0x62A8_AB43),
        ((0..32).collect(), 0x46DD_794E),
    ] {
        assert_eq!(CRC32C.checksum(&bytes), expected);
    }
}

#[test]
fn a_data_chunk_has_the_bytes_of_the_standard() {
    let bytes = emitted(&packet([data(b"abcde")])).to_vec();
    let (header, chunk) = bytes.split_at(HEADER_BYTES);
    assert_eq!(header[..8], [0x13, 0x88, 0, 9, 1, 2, 3, 4]);
    let expected = [
        &[0, 0b11, 0, 21][..],
        &[0xAA, 0xBB, 0xCC, 0xDD, 0, 1, 0, 2, 0, 0, 0, 3],
        b"abcde\0\0\0",
    ];
    assert_eq!(chunk, expected.concat());
}

/// Received 1 to 13, 15, 16, 19 (CMT §1.2).
#[test]
fn blocks_are_offsets_from_the_cumulative_number() {
    let bytes = emitted(&packet([Chunk::Sack(sack(13, &[(2, 3), (6, 6)]))])).to_vec();
    let expected = [
        3, 0, 0, 24, 0, 0, 0, 13, 0, 1, 0, 0, 0, 2, 0, 0, 0, 2, 0, 3, 0, 6, 0, 6,
    ];
    assert_eq!(bytes[HEADER_BYTES..], expected);
}

/// The sizes of CMT §1.2: 28 bytes before a message, 28 + 4 N of a SACK.
#[test]
fn headers_are_as_large_as_the_experiments_count() {
    assert_eq!(emitted(&packet([data(&[0; 1200])])).len(), 1228);
    let pure = |blocks: &[(u16, u16)]| emitted(&packet([Chunk::Sack(sack(0, blocks))])).len();
    assert_eq!((pure(&[]), pure(&[(2, 3), (5, 9)])), (28, 36));
    let most: Vec<_> = (1..=MOST_BLOCKS as u16).map(|n| (2 * n, 2 * n)).collect();
    assert!((1477..=1480).contains(&pure(&most)), "beside 20 bytes of IP");
}

#[test]
fn payload_is_shared_and_not_copied() {
    let payload = Bytes::from(vec![7; 1200]);
    let chunk = Chunk::Data(Data {
        payload: payload.clone(),
        ..Data::default()
    });
    let mut out = emitted(&packet([chunk]));
    assert_eq!(out.body.as_ptr(), payload.as_ptr());
    let parsed = Packet::parse(&mut out).expect("its own form");
    let [Chunk::Data(data)] = &parsed.chunks[..] else {
        panic!("{parsed:?}")
    };
    assert_eq!(data.payload.as_ptr(), payload.as_ptr());
}

/// The packet of these bytes, its sum set right.
fn parsed(mut bytes: Vec<u8>) -> Result<Packet, WireError> {
    let sum = sum(&bytes, &[]).to_le_bytes();
    bytes[SUM].copy_from_slice(&sum);
    Packet::parse(&mut received(bytes))
}

#[test]
fn what_cannot_be_is_refused() {
    let refused = |chunk: Chunk, change: fn(&mut Vec<u8>)| {
        let mut bytes = emitted(&packet([chunk])).to_vec();
        change(&mut bytes);
        match parsed(bytes).expect_err("refused") {
            WireError::Chunk { header, error } => {
                assert_eq!(header, HEADER);
                error
            }
            other => panic!("{other:?}"),
        }
    };
    for short in [3, 4, 15, 16, 40] {
        let mut bytes = emitted(&packet([data(b"x")])).to_vec();
        bytes[15] = short;
        let found = parsed(bytes);
        let is_short = matches!(
            found,
            Err(WireError::Chunk {
                error: ChunkError::Short { .. },
                ..
            })
        );
        assert!(is_short, "{short}: {found:?}");
    }
    let blocks = |blocks: &[(u16, u16)]| refused(Chunk::Sack(sack(9, blocks)), |_| {});
    for wrong in [&[(1, 4)][..], &[(5, 4)], &[(4, 9), (9, 12)], &[(0, 0)]] {
        assert!(matches!(blocks(wrong), ChunkError::Block { .. }), "{wrong:?}");
    }
    let claims_more = refused(Chunk::Sack(sack(9, &[(2, 3)])), |bytes| bytes[25] = 200);
    assert!(matches!(claims_more, ChunkError::Short { .. }));
    assert_eq!(refused(Chunk::Init(Init::default()), |_| {}), ChunkError::Zero);
    let bytes = emitted(&packet([
        Chunk::CookieAck,
        Chunk::ShutdownComplete { reflects_tag: true },
    ]));
    let alone = Packet::parse(&mut received(bytes.to_vec())).expect_err("refused");
    assert_eq!(alone, WireError::Company);
    // RFC 9260 §6.2: an association ends for DATA without data, so it has to be seen.
    let empty = emitted(&packet([data(b"")]));
    let seen = Packet::parse(&mut received(empty.to_vec())).expect("possible");
    assert_eq!(seen, packet([data(b"")]));
    let mut damaged = emitted(&packet([data(b"damaged")])).to_vec();
    damaged[30] ^= 1;
    let damaged = Packet::parse(&mut received(damaged)).expect_err("refused");
    assert!(matches!(damaged, WireError::Sum { .. }));
}

fn addresses() -> impl Strategy<Value = SmallVec<[IpAddr; 2]>> {
    vec(any::<IpAddr>(), 0..4).prop_map(|mut all| {
        all.sort();
        all.dedup();
        SmallVec::from_vec(all)
    })
}

/// Parameters of types that nobody knows and that are to be told of.
fn unrecognized() -> impl Strategy<Value = SmallVec<[Bytes; 1]>> {
    let one = (0xC000..=0xFFFFu16, vec(any::<u8>(), 0..60)).prop_map(|(kind, value)| {
        let length = 4 + value.len() as u16;
        let whole = [&kind.to_be_bytes()[..], &length.to_be_bytes(), &value].concat();
        Bytes::from(whole)
    });
    vec(one, 0..4).prop_map(SmallVec::from_vec)
}

fn causes() -> impl Strategy<Value = Causes> {
    let one = (any::<u16>(), vec(any::<u8>(), 0..60)).prop_map(|(code, value)| Cause {
        code,
        value: value.into(),
    });
    vec(one, 0..=MOST_CAUSES).prop_map(SmallVec::from_vec)
}

fn init() -> impl Strategy<Value = Init> {
    let numbers = (
        1..=u32::MAX,
        any::<u32>(),
        1..=u16::MAX,
        1..=u16::MAX,
        any::<u32>(),
    );
    let cookie = proptest::option::of(vec(any::<u8>(), 0..300));
    (numbers, addresses(), cookie, [unrecognized(), unrecognized()]).prop_map(
        |((tag, window, streams_out, streams_in, first_tsn), addresses, cookie, [unrecognized, reported])| {
            Init {
                tag,
                window,
                streams_out,
                streams_in,
                first_tsn,
                addresses,
                cookie: cookie.map(Bytes::from),
                unrecognized,
                reported,
                host_name: None,
            }
        },
    )
}

fn any_sack() -> impl Strategy<Value = Sack> {
    let blocks = vec((1..20u16, 0..20u16), 0..MOST_BLOCKS);
    let duplicates = vec(any::<u32>(), 0..5);
    (any::<u32>(), any::<u32>(), blocks, duplicates, 0..4u8).prop_map(
        |(cumulative, window, steps, duplicates, arrivals)| {
            let mut end = 1;
            let blocks = steps.into_iter().map(|(gap, length)| {
                let start = end + gap;
                end = start + length;
                (start, end)
            });
            Sack {
                cumulative,
                window,
                blocks: blocks.collect(),
                duplicates: duplicates.into(),
                arrivals,
            }
        },
    )
}

fn any_data() -> impl Strategy<Value = Chunk> {
    let numbers = (any::<u32>(), any::<u16>(), any::<u16>(), any::<u32>());
    let bits = any::<[bool; 4]>();
    (numbers, bits, vec(any::<u8>(), 1..1500)).prop_map(|((tsn, stream, ssn, protocol), bits, payload)| {
        let [is_first, is_last, is_unordered, asks_at_once] = bits;
        let fragment = Fragment {
            tsn,
            stream,
            ssn,
            protocol,
            is_first,
            is_last,
            is_unordered,
            asks_at_once,
        };
        Chunk::Data(Data {
            fragment,
            payload: payload.into(),
        })
    })
}

fn opaque() -> impl Strategy<Value = Bytes> {
    vec(any::<u8>(), 0..200).prop_map(Bytes::from)
}

/// Chunks that may share a packet.
fn company() -> impl Strategy<Value = Chunk> {
    prop_oneof![
        any_data(),
        any_sack().prop_map(Chunk::Sack),
        opaque().prop_map(Chunk::Heartbeat),
        opaque().prop_map(Chunk::HeartbeatAck),
        opaque().prop_map(Chunk::CookieEcho),
        (any::<bool>(), causes()).prop_map(|(reflects_tag, causes)| Chunk::Abort { reflects_tag, causes }),
        any::<u32>().prop_map(|cumulative| Chunk::Shutdown { cumulative }),
        Just(Chunk::ShutdownAck),
        Just(Chunk::CookieAck),
        causes().prop_map(Chunk::Error),
    ]
}

fn any_packet() -> impl Strategy<Value = Packet> {
    let alone = prop_oneof![
        init().prop_map(Chunk::Init),
        init().prop_map(Chunk::InitAck),
        any::<bool>().prop_map(|reflects_tag| Chunk::ShutdownComplete { reflects_tag }),
    ];
    let chunks = prop_oneof![alone.prop_map(|chunk| vec![chunk]), vec(company(), 1..6)];
    (any::<(u16, u16, u32)>(), chunks).prop_map(|((source_port, destination_port, tag), chunks)| Packet {
        header: Header {
            source_port,
            destination_port,
            tag,
        },
        chunks: chunks.into(),
    })
}

proptest! {
    #[test]
    fn what_is_emitted_parses_again_in_either_form(packet in any_packet()) {
        let mut out = emitted(&packet);
        prop_assert_eq!(out.len() % 4, 0);
        let mut whole = received(out.to_vec());
        prop_assert_eq!(&Packet::parse(&mut whole).expect("in one piece"), &packet);
        prop_assert_eq!(&Packet::parse(&mut out).expect("in two"), &packet);
    }

    /// The check sum is set right, so that the bytes behind it are looked at.
    #[test]
    fn any_bytes_are_parsed_or_refused(mut bytes in vec(any::<u8>(), 0..600), known in 0..15u8, cut in 0..30usize) {
        if let Some(kind) = bytes.get_mut(HEADER_BYTES) {
            *kind = known;
        }
        if bytes.len() >= HEADER_BYTES + CHUNK_HEADER_BYTES {
            bytes[14..16].copy_from_slice(&((known as u16 * 40).to_be_bytes()));
            let sum = sum(&bytes, &[]).to_le_bytes();
            bytes[SUM].copy_from_slice(&sum);
        }
        let _ = Packet::parse(&mut received(bytes.clone()));
        let at = cut.min(bytes.len());
        let mut two = Datagram { head: SmallVec::from_slice(&bytes[..at]), body: bytes.split_off(at).into(), ..Datagram::empty() };
        let _ = Packet::parse(&mut two);
    }

    #[test]
    fn a_changed_packet_parses_or_is_refused(packet in any_packet(), at in any::<prop::sample::Index>(), bit in 0..8u8) {
        let mut bytes = emitted(&packet).to_vec();
        let at = at.index(bytes.len());
        bytes[at] ^= 1 << bit;
        if !SUM.contains(&at) {
            let damaged = Packet::parse(&mut received(bytes.clone()));
            let is_found = matches!(damaged, Err(WireError::Sum { .. }));
            prop_assert!(is_found);
        }
        let sum = sum(&bytes, &[]).to_le_bytes();
        bytes[SUM].copy_from_slice(&sum);
        let _ = Packet::parse(&mut received(bytes));
    }
}

#[test]
fn addresses_beyond_a_bound_are_forgotten() {
    let many: SmallVec<[IpAddr; 2]> = (0..40u8).map(|n| IpAddr::from([10, 0, 0, n])).collect();
    let init = Init {
        tag: 1,
        streams_out: 1,
        streams_in: 1,
        addresses: many,
        ..Init::default()
    };
    let mut out = emitted(&packet(smallvec![Chunk::Init(init)] as SmallVec<[Chunk; 1]>));
    let parsed = Packet::parse(&mut out).expect("possible");
    let [Chunk::Init(init)] = &parsed.chunks[..] else {
        panic!("{parsed:?}")
    };
    assert_eq!(init.addresses.len(), super::super::chunk::MOST_ADDRESSES);
}
