//! Arbitrary bytes as a PDU: parse, describe, send again, compare (ResTP §3.1, §3.2).

use restp_base::machine::Head;
use restp_base::sequence::ORIGIN;
use restp_proto::wire::{Header, Tail, describe, sack, verify_header, verify_payload};

/// One input.
pub fn run(pdu: &[u8]) {
    let (header, length) = match Header::parse(pdu, pdu.len()) {
        Ok(parsed) => parsed,
        Err(refused) => {
            assert_eq!(describe(pdu), Err(refused), "both readers refuse for one reason");
            let _ = verify_header(pdu);
            return;
        }
    };
    let (head, payload) = pdu.split_at(length);
    let _ = (verify_header(head), verify_payload(head, payload));
    describe_covers(pdu);
    read_reports(&header);

    let sent = emit(&header, payload);
    assert_eq!(sent.len(), length, "a header keeps its length");
    assert!(verify_header(&sent) && verify_payload(&sent, payload));
    let (again, _) = Header::parse(&sent, pdu.len()).expect("what we send parses");
    assert_eq!(again, header, "what we send means the same");
    assert_eq!(emit(&again, payload), sent, "what we send is canonical");
}

fn emit(header: &Header, payload: &[u8]) -> Head {
    let mut head = Head::new();
    header.emit(payload, &mut head).expect("what parses can be sent");
    head
}

fn describe_covers(pdu: &[u8]) {
    let end = describe(pdu)
        .expect("what parses can be described")
        .iter()
        .fold(0, |at, field| {
            assert_eq!(field.offset, at, "no gap before {}", field.name);
            at + field.length
        });
    assert_eq!(end, 8 * pdu.len());
}

/// Reports of a peer give ordered ranges, whatever they say.
fn read_reports(header: &Header) {
    match &header.tail {
        Tail::Sack(blocks) => assert!(sack::ranges(blocks, ORIGIN).all(|range| range.start < range.end)),
        Tail::Snack(snack) => {
            let (missing, received) = (snack.missing(ORIGIN), snack.received(ORIGIN));
            let mut all: Vec<_> = missing.chain(received).collect();
            all.sort_by_key(|range| range.start);
            assert!(all.iter().all(|range| range.start < range.end));
            assert!(
                all.windows(2).all(|pair| pair[0].end <= pair[1].start),
                "missing or received, not both"
            );
        }
        Tail::None | Tail::Cookie(_) => {}
    }
}
