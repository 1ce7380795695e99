//! Arbitrary bytes as a sealed datagram, and as what handshakes carry: parse, and what parses is what would be sent
//! (docs/protocol/sealed.md).

use restp_seal::PublicKey;
use restp_seal::packet::{
    DATA_HEADER, Grant, Packet, Pattern, Request, answer_header, foreign, hello_header, reset, retry, stale,
};
use restp_seal::replay::Window;

/// One input.
pub fn run(bytes: &[u8]) {
    if let Some(packet) = Packet::parse(bytes) {
        let again = emit(&packet);
        assert!(bytes.starts_with(&again), "{packet:?} is sent as it was read");
    }
    for pattern in [Pattern::Ik, Pattern::Ix, Pattern::Resumed] {
        if let Some((request, pdu)) = Request::parse(pattern, bytes) {
            let again = request.emit(pdu);
            let instead_of = request.instead_of.map_or(0, |key| key.len());
            let beside = request.beside.map_or(0, |name| name.len());
            let same = Request::bytes(pattern) + instead_of + beside;
            assert_eq!(again.len(), same + pdu.len());
            assert_eq!(Request::parse(pattern, &again), Some((request, pdu)));
        }
    }
    let client = PublicKey([7; 32]);
    if let Some(grant) = Grant::parse(bytes, &client) {
        assert_eq!(Grant::parse(&grant.emit(), &client), Some(grant));
    }
    // Numbers as a hostile sender chooses them: each is new once.
    let mut window = Window::default();
    for word in bytes.chunks_exact(2) {
        let number = u64::from(word[0]) << (word[1] % 40);
        if window.is_new(number) {
            window.note(number);
            assert!(!window.is_new(number));
        }
    }
}

/// As much of a packet as its fixed parts say.
fn emit(packet: &Packet<'_>) -> Vec<u8> {
    match packet {
        Packet::Hello(hello) => {
            let mut bytes = hello_header(hello.pattern, &hello.from, &hello.token);
            bytes.extend(hello.ticket.iter().flatten());
            bytes.extend_from_slice(hello.message);
            bytes
        }
        Packet::Answer { to, rest } => [&answer_header(to)[..], rest].concat(),
        Packet::Retry { to, token } => retry(to, token),
        Packet::Foreign { to, key } => foreign(to, key),
        Packet::Stale { to } => stale(to),
        Packet::Reset { of, token } => reset(of, token),
        Packet::Data(header) => {
            let bytes = header.emit();
            assert_eq!(bytes.len(), DATA_HEADER);
            bytes.to_vec()
        }
    }
}
