//! Senders that seal where the receiver does not, or the other way round: they get no answer, by design, so it is the receiver
//! that must say it.

use restp::Endpoint;

/// What senders on the other side of `--plain` send.
#[derive(Clone, Copy)]
pub enum Mismatch {
    /// This end seals.
    Plain,
    /// It does not.
    Sealed,
}

impl Mismatch {
    /// What `endpoint` would not understand.
    pub fn of(endpoint: &Endpoint) -> Self {
        match endpoint.public_key() {
            Some(_) => Mismatch::Plain,
            None => Mismatch::Sealed,
        }
    }

    /// What to say, if such datagrams came.
    pub fn sentence(self, endpoint: &Endpoint) -> Option<&'static str> {
        let (dropped, sentence) = match self {
            Mismatch::Plain => (
                endpoint.seal_stats().plain,
                "datagrams came that are not encrypted, as from `restp send --plain`, and were dropped; leave --plain out there, \
                 or start this receiver with it as well",
            ),
            Mismatch::Sealed => (
                endpoint.endpoint_stats().malformed,
                "datagrams came that are not plain ResTP, as from `restp send` without --plain, and were dropped; say --plain \
                 there as well, or start this receiver without it",
            ),
        };
        (dropped > 0).then_some(sentence)
    }
}
