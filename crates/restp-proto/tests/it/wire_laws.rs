//! Laws of the codec over every legal header and over arbitrary bytes (ResTP §3.1, §3.2).

#![allow(clippy::unwrap_used, reason = "in a test a failed unwrap is a failed test")]

use proptest::collection::vec;
use proptest::prelude::*;
use restp_base::machine::Head;
use restp_proto::wire::*;
use restp_services::ack::AckRatio;

proptest! {
    #![proptest_config(ProptestConfig { cases: 4096, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_header_read_back_is_the_header_sent(header in any_header(), payload in vec(any::<u8>(), 0..40)) {
        let pdu = emit(&header, &payload);
        let (read, length) = Header::parse(&pdu, pdu.len()).unwrap();
        prop_assert_eq!(&read, &header);
        prop_assert_eq!(&pdu[length..], &payload[..]);
        prop_assert_eq!(length, 4 * header.words(!payload.is_empty()).unwrap());
        prop_assert!(verify_header(&pdu) && verify_payload(&pdu, &payload));
    }

    #[test]
    fn what_parses_is_sent_as_the_same_bytes_with_ignored_bits_zero(pdu in nearly_a_pdu()) {
        if let Ok((header, length)) = Header::parse(&pdu, pdu.len()) {
            let sent = emit(&header, &pdu[length..]);
            prop_assert_eq!(sent, canonical(&pdu, &header, length));
        }
    }

    #[test]
    fn a_description_covers_what_parses_and_nothing_else_is_described(pdu in nearly_a_pdu()) {
        match (Header::parse(&pdu, pdu.len()), describe(&pdu)) {
            (Ok(_), Ok(fields)) => {
                let mut at = 0;
                for field in fields {
                    prop_assert_eq!(field.offset, at);
                    at += field.length;
                }
                prop_assert_eq!(at, 8 * pdu.len());
            }
            (Err(refused), Err(same)) => prop_assert_eq!(refused, same),
            (parsed, described) => prop_assert!(false, "{parsed:?} but {described:?}"),
        }
    }

    #[test]
    fn no_bytes_and_no_claimed_length_make_the_codec_panic(head in vec(any::<u8>(), 0..64), len in 0usize..2000) {
        let _ = Header::parse(&head, len);
        let _ = describe(&head);
        let _ = (verify_header(&head), verify_payload(&head, &head));
    }

    #[test]
    fn one_extension_too_many_or_too_few_is_refused(header in any_header(), which in 0..5) {
        let mut header = header;
        match which {
            0 => header.window = header.window.xor(Some(1)),
            1 => header.fec = header.fec.xor(Some(Fec::default())),
            2 => header.sequence = header.sequence.xor(Some(1)),
            3 => header.acknowledgement = header.acknowledgement.xor(Some(1)),
            _ => {
                header.tail = match header.tail {
                    Tail::Cookie(_) => Tail::None,
                    _ => Tail::Cookie(Cookie::new(&[1; 8]).unwrap()),
                }
            }
        }
        let refused = matches!(
            header.emit(&[], &mut Head::new()),
            Err(EmitError::Missing { .. } | EmitError::Unannounced { .. })
        );
        prop_assert!(refused, "{header:?}");
    }

    #[test]
    fn a_corrupted_header_with_crc_is_noticed(header in any_header(), bit in any::<prop::sample::Index>()) {
        let mut header = header;
        header.services.error = header.services.error | ErrorControl::CRC;
        if let Ok(words) = header.words(false) {
            let mut pdu = emit(&header, &[]);
            let bit = bit.index(32 * words);
            let crc_flag_or_length = matches!(bit, 4..8 | 26 | 48..52);
            prop_assume!(!crc_flag_or_length);
            pdu[bit / 8] ^= 0x80 >> (bit % 8);
            prop_assert!(!verify_header(&pdu));
        }
    }
}

#[test]
fn the_strategy_reaches_every_extension_and_every_flag() {
    use proptest::strategy::ValueTree;
    use proptest::test_runner::{Config, RngAlgorithm, TestRng, TestRunner};
    let rng = TestRng::from_seed(RngAlgorithm::ChaCha, &[7; 32]);
    let mut runner = TestRunner::new_with_rng(Config::default(), rng);
    let (mut seen, mut flags, mut error) = (std::collections::BTreeSet::new(), [false; 256], 0);
    for _ in 0..20_000 {
        let header = any_header().new_tree(&mut runner).unwrap().current();
        flags[usize::from(header.flags.bits())] = true;
        error |= header.services.error.bits();
        let crc = header.services.error.has(ErrorControl::CRC);
        let harq = header.fec.is_some() && header.services.error.has(ErrorControl::ARQ);
        let arq = header.services.error.has(ErrorControl::ARQ) || header.acknowledgement.is_some();
        seen.extend([
            crc.then_some("CRC"),
            header.window.map(|_| "flow control"),
            header.cookie().map(|_| "cookie"),
            header.mp.as_ref().map(|mp| match mp {
                MpSetup::Capable(_) => "MP_CAPABLE",
                MpSetup::Join(_) => "MP_JOIN",
            }),
            header.dss.map(|_| "DSS"),
            header.fec.map(|_| "FEC"),
            harq.then_some("HARQ"),
            header
                .sequence
                .map(|_| if arq { "ARQ" } else { "sequence number" }),
            match &header.tail {
                Tail::Sack(_) => Some("SACK"),
                Tail::Snack(snack) if snack.vector.is_empty() => Some("SNACK, one hole"),
                Tail::Snack(_) => Some("SNACK, vector"),
                _ => None,
            },
        ]);
    }
    seen.remove(&None);
    assert_eq!(seen.len(), 13, "{seen:?}");
    assert!(flags.iter().all(|seen| *seen));
    assert_eq!(error, 0xFE);
}

/// Every header that [`Header::emit`] accepts, up to the length of lists.
fn any_header() -> impl Strategy<Value = Header> {
    let packet = (
        any::<u8>(),
        any::<[bool; 4]>(),
        1u8..=15,
        any::<u16>(),
        any::<u16>(),
    );
    let numbers = (
        any::<u16>(),
        any::<u32>(),
        any::<u32>(),
        any::<u8>(),
        0u32..1 << 24,
    );
    let extensions = (
        any_mp(),
        prop::option::of(any_dss()),
        any_cookie(),
        any_sack(),
        any_snack(),
    );
    (any_services(), packet, numbers, extensions).prop_map(|(services, packet, numbers, extensions)| {
        let (flags, [cki, probe, era, about_eras], k, source, destination) = packet;
        let (window, sequence, acknowledgement, kind, range) = numbers;
        let (mp, dss, cookie, sack, snack) = extensions;
        let flags = Flags::from_bits(flags);
        let (syn, ack) = (flags.has(Flags::SYN), flags.has(Flags::ACK));
        let error = services.error;
        let opportunistic = services.setup == Setup::Opportunistic;
        let cookie_exchange = cki && opportunistic;
        let with_cookie = opportunistic && syn && ack == cookie_exchange;
        let numbered = error.has(ErrorControl::ARQ) || services.numbered();
        let multipath = services.multipath();
        let mut mp = mp.into_iter().find(|mp| multipath && form(mp) == (syn, ack));
        if let Some(MpSetup::Capable(capable)) = &mut mp
            && (ack || !services.shared_numbers)
        {
            capable.address_id = 0;
        }
        let dss = dss.filter(|_| multipath).map(|dss| match dss {
            _ if !with_cookie => dss,
            Dss { fin, mapping, .. } => Dss {
                fin,
                data_ack: None,
                mapping: Some(Mapping {
                    payload_crc: None,
                    ..mapping.unwrap_or_default()
                }),
            },
        });
        let tail = match (
            with_cookie,
            error.has(ErrorControl::NAK),
            error.has(ErrorControl::SAK),
        ) {
            (true, _, _) => Tail::Cookie(cookie),
            (_, false, true) => sack.map_or(Tail::None, Tail::Sack),
            (_, true, true) => snack.map_or(Tail::None, Tail::Snack),
            (_, true, false) => snack.map_or(Tail::None, |snack| {
                Tail::Snack(Snack {
                    vector: Default::default(),
                    ..snack
                })
            }),
            (_, false, false) => Tail::None,
        };
        let with_fec = error.has(ErrorControl::FEC) && (syn || ack || error.has(ErrorControl::ENC));
        Header {
            flags,
            cookie_exchange,
            probe,
            era,
            about_eras,
            ack_ratio: AckRatio::from_code(k),
            repaired: k % 8,
            k: if multipath { k } else { 1 },
            window: (services.flow_control != 0).then_some(window),
            mp,
            dss,
            fec: with_fec.then_some(Fec { kind, range }),
            sequence: numbered.then_some(sequence),
            acknowledgement: (numbered && ack).then_some(acknowledgement),
            tail,
            ..Header::new(services, source, destination)
        }
    })
}

fn any_services() -> impl Strategy<Value = Services> {
    let order = prop::sample::select(vec![Order::Unordered, Order::Partial, Order::Full]);
    let setup = prop::sample::select(vec![Setup::Connectionless, Setup::ThreeWay, Setup::Opportunistic]);
    let paths = prop::sample::select(vec![
        Paths::Single,
        Paths::HotStandby,
        Paths::Spreading(Scheduler::Undeclared),
        Paths::Spreading(Scheduler::RoundRobin),
        Paths::Spreading(Scheduler::FastestRtt),
    ]);
    let framing = prop::sample::select(vec![Framing::Fixed, Framing::Coalesce]);
    let code = || prop_oneof![Just(0u8), 0u8..16];
    let paths = (paths, any::<bool>());
    (order, setup, any::<u8>(), paths, code(), code(), framing).prop_map(
        |(order, setup, error, (paths, shared), congestion, flow_control, framing)| Services {
            order,
            setup,
            error: ErrorControl::from_bits(error),
            shared_numbers: shared && paths != Paths::Single,
            paths,
            congestion,
            flow_control,
            framing,
        },
    )
}

/// One set-up extension of each kind and form: the header takes one that fits its flags.
fn any_mp() -> impl Strategy<Value = Vec<MpSetup>> {
    let bytes = (
        any::<Key>(),
        any::<Key>(),
        any::<[u8; 4]>(),
        any::<[u8; 4]>(),
        any::<[u8; 20]>(),
    );
    (any::<u8>(), any::<bool>(), any::<u8>(), bytes)
        .prop_map(
            |(flags, backup, address_id, (initiator, responder, token, random, hmac))| {
                let capable = |keys| {
                    MpSetup::Capable(MpCapable {
                        flags,
                        address_id,
                        keys,
                    })
                };
                vec![
                    capable(Keys::Initiator(initiator)),
                    capable(Keys::Responder(responder)),
                    capable(Keys::Both { initiator, responder }),
                    MpSetup::Join(MpJoin::Syn {
                        backup,
                        address_id,
                        token,
                        random,
                    }),
                    MpSetup::Join(MpJoin::SynAck {
                        backup,
                        address_id,
                        hmac: initiator,
                        random,
                    }),
                    MpSetup::Join(MpJoin::Ack { hmac }),
                ]
            },
        )
        .prop_shuffle()
        .prop_flat_map(|all| (0..=all.len()).prop_map(move |count| all[..count].to_vec()))
}

fn form(mp: &MpSetup) -> (bool, bool) {
    match mp {
        MpSetup::Capable(MpCapable {
            keys: Keys::Initiator(_),
            ..
        })
        | MpSetup::Join(MpJoin::Syn { .. }) => (true, false),
        MpSetup::Capable(MpCapable {
            keys: Keys::Responder(_),
            ..
        })
        | MpSetup::Join(MpJoin::SynAck { .. }) => (true, true),
        MpSetup::Capable(_) | MpSetup::Join(_) => (false, true),
    }
}

fn any_dss() -> impl Strategy<Value = Dss> {
    let mapping = (any::<u32>(), any::<u32>(), any::<u16>(), any::<Option<u32>>()).prop_map(
        |(dsn, ssn, length, payload_crc)| Mapping {
            dsn,
            ssn,
            length,
            payload_crc,
        },
    );
    (any::<bool>(), any::<Option<u32>>(), prop::option::of(mapping)).prop_map(|(fin, data_ack, mapping)| {
        Dss {
            fin,
            data_ack,
            mapping,
        }
    })
}

fn any_cookie() -> impl Strategy<Value = Cookie> {
    (1usize..=4, any::<[u8; 16]>()).prop_map(|(words, mut bytes)| {
        bytes[0] |= 1;
        Cookie::new(&bytes[..4 * words]).unwrap()
    })
}

fn any_sack() -> impl Strategy<Value = Option<Blocks>> {
    prop::option::of(vec(any::<(u32, u32)>(), 1..12).prop_map(Blocks::from_vec))
}

fn any_snack() -> impl Strategy<Value = Option<Snack>> {
    let vector = vec(any::<u32>(), 0..40).prop_map(|words| words.into_iter().collect());
    let snack = (any::<u16>(), any::<u16>(), vector);
    prop::option::of(snack.prop_map(|(offset, size, vector)| Snack { offset, size, vector }))
}

/// Bytes that often parse: a legal PDU with a few bits flipped, or a legal-looking start and noise.
fn nearly_a_pdu() -> impl Strategy<Value = Vec<u8>> {
    let flipped = (
        any_header(),
        vec(any::<u8>(), 0..20),
        vec(any::<prop::sample::Index>(), 0..3),
    )
        .prop_map(|(header, payload, flips)| {
            let mut pdu = emit(&header, &payload);
            for flip in flips {
                let bit = flip.index(8 * pdu.len());
                pdu[bit / 8] ^= 0x80 >> (bit % 8);
            }
            pdu
        });
    let noise = vec(any::<u8>(), 12..200).prop_map(|mut pdu| {
        pdu[0] &= 0x0F;
        pdu[6] &= 0x0F;
        pdu
    });
    prop_oneof![4 => flipped, 1 => noise]
}

fn emit(header: &Header, payload: &[u8]) -> Vec<u8> {
    let mut head = Head::new();
    header
        .emit(payload, &mut head)
        .unwrap_or_else(|error| panic!("{error}: {header:?}"));
    [&head[..], payload].concat()
}

/// `pdu`, which reads as `header`, with all that a receiver ignores set to zero and its CRCs made right.
/// Walks the extensions by their sizes alone, apart from the codec.
fn canonical(pdu: &[u8], header: &Header, length: usize) -> Vec<u8> {
    let mut bytes = pdu.to_vec();
    bytes[2] &= !0x04;
    if bytes[4] & 0x80 == 0 {
        bytes[2] &= !0x02; // who has one path has one space of numbers
    }
    bytes[3] &= !0x01;
    if bytes[4] & 0xC0 == 0x80 {
        bytes[4] &= !0x30;
    }
    let mut at = 12;
    let crc = bytes[3] & 0x20 != 0;
    if crc {
        bytes[14..16].fill(0);
        at += if pdu.len() > length { 8 } else { 4 };
    }
    if header.window.is_some() {
        bytes[at + 2..at + 4].fill(0);
        at += 4;
    }
    at += header.cookie().map_or(0, |cookie| cookie.as_bytes().len());
    match header.mp {
        Some(MpSetup::Capable(capable)) => {
            let names_address = header.services.shared_numbers && matches!(capable.keys, Keys::Initiator(_));
            bytes[at + 1..at + if names_address { 3 } else { 4 }].fill(0);
            at += if matches!(capable.keys, Keys::Both { .. }) {
                20
            } else {
                12
            };
        }
        Some(MpSetup::Join(MpJoin::Ack { .. })) => at += 20,
        Some(MpSetup::Join(join)) => {
            bytes[at..at + 2].fill(0);
            bytes[at + 2] &= 0x01;
            at += if matches!(join, MpJoin::Syn { .. }) {
                12
            } else {
                16
            };
        }
        None => {}
    }
    if let Some(dss) = header.dss {
        bytes[at] &= 0xF0;
        bytes[at + 1] = 0;
        match dss.mapping {
            None => bytes[at + 2..at + 4].fill(0),
            Some(mapping) => at += if mapping.payload_crc.is_some() { 12 } else { 8 },
        }
        at += if dss.data_ack.is_some() { 8 } else { 4 };
    }
    at += if header.fec.is_some() { 4 } else { 0 };
    if bytes[1] & 0x10 == 0 && bytes[3] & 0x40 != 0 {
        bytes[at + 4..at + 8].fill(0);
    }
    if crc {
        let payload = crc32fast::hash(&bytes[length..]).to_be_bytes();
        if length < bytes.len() {
            bytes[16..20].copy_from_slice(&payload);
        }
        bytes[12..14].fill(0);
        let hec = ::crc::Crc::<u16>::new(&::crc::CRC_16_IBM_3740).checksum(&bytes[..length]);
        bytes[12..14].copy_from_slice(&hec.to_be_bytes());
    }
    bytes
}
