//! The published bytes mean what `vectors/` says, and the meaning gives the bytes (ResTP specification,
//! sections 3.4, 4, 11 and 23).

#![allow(clippy::unwrap_used, reason = "in a test a failed unwrap is a failed test")]

use restp_base::machine::Head;
use restp_base::ranges::Ranges;
use restp_proto::wire::*;
use restp_services::ordering::Arrived;
use serde_json::Value;
use std::ops::Range;

#[test]
fn every_header_reads_as_its_meaning_and_its_meaning_gives_the_bytes() {
    for case in vectors("headers.json") {
        let name = case["name"].as_str().unwrap();
        check_header(
            name,
            &bytes(&case["header"]),
            &bytes(&case["payload"]),
            &header(&case["meaning"]),
        );
    }
}

#[test]
fn the_multipath_handshake_carries_the_values_of_section_23() {
    let document = document("join.json");
    let value = |name: &str| hex(&bytes(&document[name]));
    let mut wire = String::new();
    for packet in document["packets"].as_array().unwrap() {
        let (name, packet_bytes) = (packet["name"].as_str().unwrap(), bytes(&packet["header"]));
        check_header(name, &packet_bytes, &[], &header(&packet["meaning"]));
        wire += &hex(&packet_bytes);
    }
    for name in [
        "key_a",
        "key_b",
        "random_a",
        "random_b",
        "token_b",
        "hmac_a",
        "hmac_b_truncated",
    ] {
        assert!(wire.contains(&value(name)), "{name}");
    }
}

#[test]
fn each_fec_header_announces_its_group() {
    let document = document("fec.json");
    for group in document["groups"].as_array().unwrap() {
        let name = group["name"].as_str().unwrap();
        let (wire, payload) = (bytes(&group["header"]), bytes(&group["encoded"]));
        let (read, _) = Header::parse(&wire, wire.len() + payload.len()).unwrap();
        check_header(name, &wire, &payload, &read);
        let fec = read.fec.unwrap();
        let step = if fec.kind == codes::FEC_INTERLEAVED { 2 } else { 1 };
        let first = u64::from(read.sequence.unwrap());
        let covered: Vec<_> = (0..u64::from(fec.range)).map(|i| first + step * i).collect();
        assert_eq!(covered, numbers(&group["covered"]), "{name}");
        assert!(read.services.error.has(ErrorControl::ENC), "{name}");
    }
    for report in document["reports"].as_array().unwrap() {
        let name = report["name"].as_str().unwrap();
        let wire = bytes(&report["header"]);
        let (read, _) = Header::parse(&wire, wire.len()).unwrap();
        check_header(name, &wire, &[], &read);
        assert_eq!(
            read.acknowledgement.map(Value::from),
            Some(report["ack"].clone()),
            "{name}"
        );
        assert_eq!(
            read.fec.map(|fec| Value::from(fec.range)),
            Some(report["range"].clone()),
            "{name}"
        );
    }
}

#[test]
fn the_receive_states_of_section_4_give_its_reports() {
    for case in vectors("reports.json") {
        let arrival = case["arrival"].as_u64().unwrap();
        let next = case["ack"].as_u64().unwrap();
        let mut arrived = Arrived::default();
        let earlier = numbers(&case["received"]).into_iter().filter(|n| *n != arrival);
        earlier
            .chain([arrival])
            .for_each(|n| _ = arrived.insert(n..n + 1));

        let blocks = sack::blocks(&arrived, 4);
        let edges: Vec<u32> = blocks.iter().flat_map(|(left, right)| [*left, *right]).collect();
        assert_eq!(edges, words(&case["sack"]), "SACK at arrival of {arrival}");
        let snack = snack::from_ranges(next, arrived.ranges()).unwrap();
        let hole = u32::from(snack.offset) << 16 | u32::from(snack.size);
        let written: Vec<u32> = std::iter::once(hole)
            .chain(snack.vector.iter().copied())
            .collect();
        assert_eq!(written, words(&case["snack"]), "SNACK at arrival of {arrival}");
        let names: Vec<_> = case["snack_flags"]
            .as_array()
            .unwrap()
            .iter()
            .map(|f| f.as_str().unwrap())
            .collect();
        assert_eq!(
            names.contains(&"SAK"),
            !snack.vector.is_empty(),
            "SAK at arrival of {arrival}"
        );

        let holes: Vec<Range<u64>> = arrived.ranges().holes(next).collect();
        assert_eq!(snack.missing(next).collect::<Vec<_>>(), holes);
        let mut told = Ranges::new();
        sack::ranges(&blocks, next).for_each(|range| _ = told.insert(range));
        assert_eq!(&told, arrived.ranges());
    }
}

#[test]
fn every_malformed_header_is_refused_at_the_byte_that_breaks_the_rule() {
    for case in vectors("malformed.json") {
        let name = case["name"].as_str().unwrap();
        let pdu = bytes(&case["pdu"]);
        let error = Header::parse(&pdu, pdu.len()).expect_err(name);
        assert_eq!(Value::from(error.offset), case["offset"], "{name}: {error}");
        assert_eq!(Value::from(error.expected), case["expected"], "{name}: {error}");
        assert_eq!(
            Value::from(error.found.to_string()),
            case["found"],
            "{name}: {error}"
        );
    }
}

#[test]
fn what_a_receiver_ignores_reads_as_if_it_were_zero() {
    for case in vectors("ignored.json") {
        let name = case["name"].as_str().unwrap();
        let (pdu, canonical) = (bytes(&case["pdu"]), bytes(&case["canonical"]));
        let (read, _) = Header::parse(&pdu, pdu.len()).unwrap_or_else(|e| panic!("{name}: {e}"));
        check_header(name, &canonical, &[], &read);
    }
}

fn check_header(name: &str, wire: &[u8], payload: &[u8], meaning: &Header) {
    let pdu = [wire, payload].concat();
    let (read, length) = Header::parse(wire, pdu.len()).unwrap_or_else(|e| panic!("{name}: {e}"));
    assert_eq!(length, wire.len(), "{name}");
    assert_eq!(&read, meaning, "{name}");
    let mut head = Head::new();
    meaning
        .emit(payload, &mut head)
        .unwrap_or_else(|e| panic!("{name}: {e}"));
    assert_eq!(hex(&head), hex(wire), "{name}");
    assert!(!head.spilled(), "{name}: a common header fits without allocation");
    assert!(verify_header(wire) && verify_payload(wire, payload), "{name}");
    check_description(name, &pdu);
}

/// The fields of a description cover the PDU without gap or overlap.
fn check_description(name: &str, pdu: &[u8]) {
    let mut at = 0;
    for field in describe(pdu).unwrap_or_else(|e| panic!("{name}: {e}")) {
        assert_eq!(field.offset, at, "{name}: {}", field.name);
        assert!(
            !field.meaning.is_empty() && !field.meaning.contains("BAD"),
            "{name}: {field:?}"
        );
        at += field.length;
    }
    assert_eq!(at, 8 * pdu.len(), "{name}");
}

/// The header that a vector describes; what it leaves out is absent, zero or the client's.
fn header(meaning: &Value) -> Header {
    let word = |key: &str| meaning[key].as_u64().unwrap_or(0);
    let text = |key: &str| meaning[key].as_str();
    let scheduler = match text("scheduler") {
        None => Scheduler::Undeclared,
        Some("round-robin") => Scheduler::RoundRobin,
        Some("fastest-rtt") => Scheduler::FastestRtt,
        Some(other) => panic!("scheduler {other}"),
    };
    let services = Services {
        order: match text("order") {
            None => Order::Unordered,
            Some("partial") => Order::Partial,
            Some("full") => Order::Full,
            Some(other) => panic!("order {other}"),
        },
        setup: match text("setup") {
            None => Setup::Connectionless,
            Some("three-way") => Setup::ThreeWay,
            Some("opportunistic") => Setup::Opportunistic,
            Some(other) => panic!("setup {other}"),
        },
        error: names(&meaning["error"], ErrorControl::TABLE, ErrorControl::with),
        paths: match text("paths") {
            None => Paths::Single,
            Some("hot-standby") => Paths::HotStandby,
            Some("spreading") => Paths::Spreading(scheduler),
            Some(other) => panic!("paths {other}"),
        },
        shared_numbers: meaning["shared_numbers"] == true,
        congestion: word("congestion") as u8,
        flow_control: word("flow_control") as u8,
        framing: if meaning["coalesce"] == true {
            Framing::Coalesce
        } else {
            Framing::Fixed
        },
    };
    let port = |key: &str, client: u16| meaning[key].as_u64().map_or(client, |port| port as u16);
    Header {
        flags: names(&meaning["flags"], Flags::TABLE, Flags::with),
        cookie_exchange: meaning["cookie_exchange"] == true,
        probe: meaning["probe"] == true,
        era: meaning["era"] == true,
        about_eras: meaning["about_eras"] == true,
        k: meaning["k"].as_u64().unwrap_or(1) as u8,
        window: meaning["window"].as_u64().map(|w| w as u16),
        mp: multipath(meaning),
        dss: meaning.get("dss").map(dss),
        fec: meaning.get("fec").map(|f| Fec {
            kind: f["type"].as_u64().unwrap() as u8,
            range: f["range"].as_u64().unwrap() as u32,
        }),
        sequence: number(&meaning["sequence"]),
        acknowledgement: number(&meaning["acknowledgement"]),
        tail: tail(meaning),
        ..Header::new(services, port("source", 50_000), port("destination", 80))
    }
}

fn multipath(meaning: &Value) -> Option<MpSetup> {
    let key = |value: &Value| -> Option<Key> { value.as_str().map(|_| bytes(value).try_into().unwrap()) };
    let capable = meaning.get("mp_capable").map(|c| {
        let keys = match (key(&c["initiator"]), key(&c["responder"])) {
            (Some(initiator), Some(responder)) => Keys::Both { initiator, responder },
            (Some(initiator), None) => Keys::Initiator(initiator),
            (None, responder) => Keys::Responder(responder.unwrap()),
        };
        MpSetup::Capable(MpCapable {
            flags: c["flags"].as_u64().unwrap() as u8,
            address_id: c["address_id"].as_u64().unwrap_or(0) as u8,
            keys,
        })
    });
    let join = meaning.get("mp_join").map(|j| {
        let backup = j["backup"] == true;
        let address_id = j["address_id"].as_u64().unwrap_or(0) as u8;
        let random = || bytes(&j["random"]).try_into().unwrap();
        MpSetup::Join(match (j.get("token"), bytes(&j["hmac"]).len()) {
            (Some(token), _) => MpJoin::Syn {
                backup,
                address_id,
                token: bytes(token).try_into().unwrap(),
                random: random(),
            },
            (None, 8) => MpJoin::SynAck {
                backup,
                address_id,
                hmac: bytes(&j["hmac"]).try_into().unwrap(),
                random: random(),
            },
            (None, _) => MpJoin::Ack {
                hmac: bytes(&j["hmac"]).try_into().unwrap(),
            },
        })
    });
    capable.or(join)
}

fn dss(value: &Value) -> Dss {
    Dss {
        fin: value["fin"] == true,
        data_ack: number(&value["data_ack"]),
        mapping: value.get("mapping").map(|m| Mapping {
            dsn: number(&m["dsn"]).unwrap(),
            ssn: number(&m["ssn"]).unwrap(),
            length: m["length"].as_u64().unwrap() as u16,
            payload_crc: number(&m["payload_crc"]),
        }),
    }
}

fn tail(meaning: &Value) -> Tail {
    if let Some(cookie) = meaning.get("cookie") {
        return Tail::Cookie(Cookie::new(&bytes(cookie)).unwrap());
    }
    if let Some(blocks) = meaning.get("sack") {
        let edges = |block: &Value| (number(&block[0]).unwrap(), number(&block[1]).unwrap());
        return Tail::Sack(blocks.as_array().unwrap().iter().map(edges).collect());
    }
    meaning.get("snack").map_or(Tail::None, |snack| {
        Tail::Snack(Snack {
            offset: snack["offset"].as_u64().unwrap() as u16,
            size: snack["size"].as_u64().unwrap() as u16,
            vector: words(&snack["vector"]).into_iter().collect(),
        })
    })
}

fn names<T: Copy + Default>(list: &Value, table: &[(T, &str)], with: fn(T, T) -> T) -> T {
    list.as_array()
        .into_iter()
        .flatten()
        .fold(T::default(), |set, name| {
            let (bit, _) = table
                .iter()
                .find(|(_, known)| name == known)
                .unwrap_or_else(|| panic!("bit {name}"));
            with(set, *bit)
        })
}

fn number(value: &Value) -> Option<u32> {
    value.as_u64().map(|n| n.try_into().unwrap())
}

fn numbers(list: &Value) -> Vec<u64> {
    list.as_array()
        .unwrap()
        .iter()
        .map(|n| n.as_u64().unwrap())
        .collect()
}

/// Hex with spaces anywhere; nothing when the vector leaves it out.
fn bytes(value: &Value) -> Vec<u8> {
    let digits: String = value.as_str().unwrap_or("").split_whitespace().collect();
    (0..digits.len())
        .step_by(2)
        .map(|at| u8::from_str_radix(&digits[at..at + 2], 16).unwrap())
        .collect()
}

fn words(value: &Value) -> Vec<u32> {
    bytes(value)
        .chunks_exact(4)
        .map(|word| u32::from_be_bytes(word.try_into().unwrap()))
        .collect()
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02X}")).collect()
}

fn vectors(file: &str) -> Vec<Value> {
    document(file).as_array().unwrap().clone()
}

fn document(file: &str) -> Value {
    let path = format!("{}/../../vectors/{file}", env!("CARGO_MANIFEST_DIR"));
    let text = std::fs::read_to_string(&path).unwrap_or_else(|e| panic!("{path}: {e}"));
    serde_json::from_str(&text).unwrap_or_else(|e| panic!("{path}: {e}"))
}
