//! Arbitrary text as what `restp send` and `restp recv` read from users, files and each other.

use restp::{KnownHosts, PublicKey, SecretKey};
use restp_cli::cookies;
use restp_cli::keys::parse_list;
use restp_cli::transfer::{Answer, Manifest, Offer, Record, Ticket};

/// The clock of the cookies, in seconds of Unix time.
const NOW: u64 = 1_000_000;

/// One input.
pub fn run(bytes: &[u8]) {
    messages(bytes);
    let text = String::from_utf8_lossy(bytes);
    match text.parse::<Ticket>() {
        Ok(ticket) => {
            assert!((1..=Ticket::MAX_ADDRESSES).contains(&ticket.addresses().len()));
            let again: Ticket = ticket.to_string().parse().expect("a ticket reads back");
            assert_eq!(again.to_string(), ticket.to_string());
            assert_eq!(
                (again.key(), again.has_paths()),
                (ticket.key(), ticket.has_paths())
            );
            // Zones are of this host.
            let travels = |ticket: &Ticket| -> Vec<_> {
                let addresses = ticket.addresses().iter();
                addresses.map(|address| (address.ip(), address.port())).collect()
            };
            assert_eq!(travels(&again), travels(&ticket));
        }
        Err(refused) => assert!(!refused.to_string().is_empty()),
    }
    if let Ok(key) = text.parse::<PublicKey>() {
        assert_eq!(key.to_string().parse(), Ok(key));
    }
    if let Ok(secret) = text.parse::<SecretKey>() {
        assert_eq!(secret.to_text().parse(), Ok(secret));
    }
    let kept = cookies::parse_all(&text, NOW);
    assert!((kept.cookies.values()).all(|cookie| cookie.remaining.as_nanos() > 0));
    assert!(kept.tokens.len() <= 1024 && kept.cookies.len() + kept.damaged.len() <= text.lines().count());
    if let Err(refused) = KnownHosts::parse("known_peers".into(), bytes) {
        assert!(refused.to_string().contains("known_peers, line"));
    }
    if let Err(refused) = parse_list("keys", &text) {
        assert!(refused.message().contains("keys, line"));
    }
}

/// What the other end of a transfer says first.
fn messages(bytes: &[u8]) {
    if let Some((preface, rest)) = bytes.split_first_chunk()
        && Offer::check_preface(*preface).is_ok()
        && let Some((head, _)) = rest.split_first_chunk()
        && let Ok(offer) = Offer::decode(head)
    {
        assert_eq!(
            Offer::decode(offer.encode().last_chunk().expect("long")),
            Ok(offer)
        );
    }
    if let Ok(manifest) = Manifest::decode(bytes) {
        let names = manifest.entries().iter().map(|entry| &entry.name);
        for name in names {
            assert!(!name.contains(['/', '\\']) && !name.chars().any(char::is_control));
        }
        assert_eq!(
            Manifest::decode(&manifest.encode().expect("as long")),
            Ok(manifest)
        );
    }
    if let Some(head) = bytes.first_chunk()
        && let Ok(record) = Record::decode(*head)
    {
        assert_eq!(Record::decode(record.encode()), Ok(record));
    }
    if let Some((head, rest)) = bytes.split_first_chunk()
        && let Ok((kind, length)) = Answer::head(*head)
        && let Some(body) = rest.get(..length)
        && let Ok(answer) = Answer::body(kind, body)
        && let Answer::Refused(sentence) | Answer::Failed(sentence) = answer
    {
        assert!(!sentence.chars().any(char::is_control), "it steers no terminal");
    }
}
