//! `vectors/sealed.json`: handshakes and packets byte for byte. They were made by another implementation of the same
//! specifications.

use crate::common::*;
use restp_base::machine::Datagram;
use restp_seal::packet::{DataHeader, OVERHEAD};
use restp_seal::schedule::{Keys, PACKETS_PER_KEY, Suite, space_secret};
use serde_json::Value;

fn vectors() -> Value {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../vectors/sealed.json");
    serde_json::from_str(&std::fs::read_to_string(path).expect("the file")).expect("JSON")
}

fn hex(value: &Value) -> Vec<u8> {
    let text: String = value.as_str().expect("text").split_whitespace().collect();
    data_encoding::HEXLOWER_PERMISSIVE
        .decode(text.as_bytes())
        .expect("hex")
}

fn text(bytes: &[u8]) -> String {
    data_encoding::HEXLOWER.encode(bytes)
}

#[test]
fn packets_are_sealed_and_opened_as_written() {
    let vectors = vectors();
    let packets = vectors["packets"].as_array().expect("packets");
    assert!(packets.len() >= 4);
    for vector in packets {
        let number = |name: &str| vector[name].as_u64().expect("a number");
        let suite = Suite::from_code(number("suite") as u8).expect("a suite");
        let secret: [u8; 32] = hex(&vector["secret"]).try_into().expect("32 bytes");
        let header = DataHeader {
            to: hex(&vector["to"]).try_into().expect("8 bytes"),
            early: vector["early"].as_bool().expect("a flag"),
            space: number("path") as u8,
            number: number("number"),
        };
        let keys = || Keys::new(suite, space_secret(&secret, header.space)).expect("keys");
        let mut bytes = hex(&vector["pdu"]);
        let tag = keys()
            .seal(header.number, &header.emit(), &mut bytes)
            .expect("sealed");
        let sealed = [&header.emit()[..], &bytes, &tag].concat();
        assert_eq!(text(&sealed), text(&hex(&vector["sealed"])), "{}", vector["name"]);
        let mut receiver = keys();
        for generation in 1..header.number / PACKETS_PER_KEY {
            let number = generation * PACKETS_PER_KEY;
            let tag = keys().seal(number, b"", &mut []).expect("sealed");
            assert!(receiver.open(number, b"", &tag, &mut []));
        }
        let mut opened = vec![0; bytes.len()];
        assert!(receiver.open(
            header.number,
            &header.emit(),
            &[&bytes[..], &tag].concat(),
            &mut opened
        ));
        assert_eq!(opened, hex(&vector["pdu"]));
    }
}

#[test]
fn handshakes_are_those_written() {
    let vectors = vectors();
    let handshakes = vectors["handshakes"].as_array().expect("handshakes");
    assert_eq!(handshakes.len(), 3);
    for vector in handshakes {
        let mut pair = Pair::of("3wh-arq", &[], seal(1), seal(2));
        match vector["pattern"].as_str().expect("a name") {
            "IX" => {}
            "IK" => pair.know(),
            _ => {
                pair.know();
                pair.connect();
                pair.come_again("3wh-arq", 9);
                let (_, token) = pair.ends[0].tokens().next().expect("a token");
                let resumption = token.resumption.expect("a ticket");
                assert_eq!(text(&resumption.ticket), text(&hex(&vector["ticket"])));
                assert_eq!(text(&resumption.secret[..]), text(&hex(&vector["ticket_secret"])));
            }
        }
        pair.open();
        pair.run_for(ms(15));
        let answer = pair.log.iter().find(|seen| seen.kind() == ANSWER);
        assert_eq!(text(&pair.log[0].bytes), text(&hex(&vector["hello"])));
        assert_eq!(
            text(&answer.expect("an answer").bytes),
            text(&hex(&vector["answer"]))
        );
        // A server with the same key that knows nothing says so of the session's name.
        let name = hex(&vector["server_id"]);
        let mut later = Pair::of("3wh-arq", &[], seal(1), seal(2));
        later.inject(1, path(1), &[&[DATA][..], &name, &[0; OVERHEAD - 9]].concat());
        let reset = [&[RESET][..], &name, &hex(&vector["reset"])].concat();
        assert_eq!(text(&later.log[0].bytes), text(&reset));
        // What was in the request was handed on as it was.
        let syn = Datagram {
            body: hex(&vector["pdu"]).into(),
            ..Datagram::empty()
        };
        assert!(restp_proto::wire::bare_request(&syn).is_some());
    }
}
