//! The option of TCP Fast Open (RFC 7413 §4.1.1, kind 34): a request for a cookie, or a cookie.

use restp_base::machine::Head;
use restp_services::connection_management::{Cookie, Exchange};

/// Kind of the option.
pub(super) const KIND: u8 = 34;

/// What a SYN, or the answer to one, says of cookies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FastOpen {
    /// The opener has none, and asks.
    Request,
    /// The opener's proof, or what the server gives.
    Cookie(Cookie),
}

impl FastOpen {
    /// What the set-up segments of `exchange` say.
    pub(super) fn of(exchange: Option<Exchange>) -> Option<Self> {
        let exchange = exchange?;
        let request = (exchange == Exchange::Ask).then_some(FastOpen::Request);
        exchange.cookie().map(FastOpen::Cookie).or(request)
    }

    /// Reads what stands behind kind and length. Cookies of other lengths than ours say nothing.
    pub(super) fn parse(value: &[u8]) -> Option<Self> {
        match value {
            [] => Some(FastOpen::Request),
            bytes => Cookie::new(bytes).map(FastOpen::Cookie),
        }
    }

    /// Bytes of the option, without padding.
    pub(super) fn bytes(&self) -> usize {
        2 + match self {
            FastOpen::Request => 0,
            FastOpen::Cookie(cookie) => cookie.as_bytes().len(),
        }
    }

    /// Appends the option, without padding.
    pub(super) fn emit(&self, out: &mut Head) {
        out.extend_from_slice(&[KIND, self.bytes() as u8]);
        if let FastOpen::Cookie(cookie) = self {
            out.extend_from_slice(cookie.as_bytes());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn request_and_cookie_byte_by_byte() {
        let cookie = Cookie::new(&[1, 2, 3, 4, 5, 6, 7, 8]).map(FastOpen::Cookie);
        for (option, bytes) in [
            (Some(FastOpen::Request), &[34, 2][..]),
            (cookie, &[34, 10, 1, 2, 3, 4, 5, 6, 7, 8]),
        ] {
            let mut out = Head::new();
            option.expect("a legal cookie").emit(&mut out);
            assert_eq!(out[..], *bytes);
            assert_eq!(FastOpen::parse(&bytes[2..]), option);
        }
        for other in [&[0; 8][..], &[1; 3], &[1; 6], &[1; 18]] {
            assert_eq!(FastOpen::parse(other), None, "{other:?}");
        }
    }
}
