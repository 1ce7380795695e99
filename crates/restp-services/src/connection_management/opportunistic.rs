//! Opportunistic set-up (ResTP §3.5.5): data travels beside the SYN, and request and response stand in for set-up
//! packets that are lost. This file decides what a client may send before it is answered and what a server makes of
//! it; who numbers, retransmits and delivers is the connection's matter. Fast open is the same on the wire, with the first
//! data inside the SYN instead of beside it (RFC 7413): it is here to be compared with.

use super::{Cookie, Establishment};

/// Segments a client may send before the server has said what it takes (OP-33).
pub const EARLY_SEGMENTS: u64 = 10;

/// How far one end of an opportunistic exchange goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Exchange {
    /// Client without a cookie: it asks for one, and completes an ordinary three-way exchange (OP-30).
    Ask,
    /// Client with a cookie: its first flight leaves with the SYN.
    Prove {
        /// Proof of its address.
        cookie: Cookie,
        /// The first data goes inside the SYN, and nothing else with it.
        inside: bool,
    },
    /// Server that has verified a cookie: takes data, and may answer, before the exchange is complete.
    Trust,
    /// Server that gives a cookie and takes no data before the exchange is complete (OP-30).
    Grant(Cookie),
}

/// What a SYN shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Proof {
    /// It asks for a cookie.
    Asked,
    /// A cookie that is ours, on a flight that was not here before.
    Valid,
    /// A cookie that is not ours or too old, or a flight that was here before.
    Refused,
}

impl Exchange {
    /// How a client opens with the cookie it has kept; `None` where the scheme knows no early data.
    pub fn open(establishment: Establishment, kept: Option<Cookie>) -> Option<Exchange> {
        if !establishment.is_opportunistic() {
            return None;
        }
        Some(kept.map_or(Exchange::Ask, |cookie| Exchange::Prove {
            cookie,
            inside: establishment == Establishment::FastOpen,
        }))
    }

    /// How a server answers. `opted_in`: the service takes early data; `room`: so does the host, at present. `None` is
    /// an ordinary three-way exchange; a client whose early data is not taken hears so by a fresh cookie.
    pub fn answer(proof: Proof, opted_in: bool, room: bool, fresh: Cookie) -> Option<Exchange> {
        match proof {
            Proof::Valid if opted_in && room => Some(Exchange::Trust),
            Proof::Asked if !opted_in => None,
            Proof::Asked | Proof::Valid | Proof::Refused => Some(Exchange::Grant(fresh)),
        }
    }

    /// May data leave now, `sent` segments after the first number? `with_syn`: the SYN is due at this moment.
    pub fn may_send(&self, sent: u64, with_syn: bool) -> bool {
        match self {
            Exchange::Ask | Exchange::Grant(_) => false,
            Exchange::Prove { inside: true, .. } => with_syn && sent == 0,
            Exchange::Prove { inside: false, .. } => sent < EARLY_SEGMENTS,
            Exchange::Trust => true,
        }
    }

    /// Does data that is due take the place of the SYN?
    pub fn sends_inside(&self) -> bool {
        matches!(self, Exchange::Prove { inside: true, .. })
    }

    /// Is data of the peer taken before the exchange is complete, `ahead` segments beyond the one expected next? An
    /// honest client stops at the same limit, so what a flood can make a server hold is bounded.
    pub fn takes(&self, ahead: u64) -> bool {
        *self == Exchange::Trust && ahead < EARLY_SEGMENTS
    }

    /// The cookie in the set-up packets, with the packets of a server being those that grant it.
    pub fn cookie(&self) -> Option<Cookie> {
        match self {
            Exchange::Prove { cookie, .. } | Exchange::Grant(cookie) => Some(*cookie),
            Exchange::Ask | Exchange::Trust => None,
        }
    }

    /// Do set-up packets carry CKI, the sign of a cookie request or response?
    pub fn is_about_cookies(&self) -> bool {
        matches!(self, Exchange::Ask | Exchange::Grant(_))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cookie() -> Cookie {
        Cookie::new(&[1; 8]).expect("a cookie")
    }

    #[test]
    fn a_client_asks_once_and_proves_afterwards() {
        use Establishment::{FastOpen, Opportunistic, ThreeWay};
        assert_eq!(Exchange::open(ThreeWay, Some(cookie())), None);
        assert_eq!(Exchange::open(Opportunistic, None), Some(Exchange::Ask));
        let beside = Exchange::open(Opportunistic, Some(cookie())).unwrap();
        let inside = Exchange::open(FastOpen, Some(cookie())).unwrap();
        assert!(!beside.sends_inside() && inside.sends_inside());
        assert_eq!(beside.cookie(), inside.cookie());
        assert!(Exchange::Ask.is_about_cookies() && !beside.is_about_cookies());
    }

    /// OP-33, and RFC 7413 §4.2: what fits the SYN.
    #[test]
    fn ten_segments_leave_beside_the_syn_and_one_inside_it() {
        let beside = Exchange::open(Establishment::Opportunistic, Some(cookie())).unwrap();
        assert!((0..10).all(|sent| beside.may_send(sent, false)) && !beside.may_send(10, false));
        let inside = Exchange::open(Establishment::FastOpen, Some(cookie())).unwrap();
        assert!(inside.may_send(0, true) && !inside.may_send(0, false) && !inside.may_send(1, true));
        assert!(!Exchange::Ask.may_send(0, true));
    }

    #[test]
    fn only_a_valid_cookie_at_a_willing_server_with_room_is_trusted() {
        let fresh = cookie();
        for proof in [Proof::Asked, Proof::Valid, Proof::Refused] {
            for (opted_in, room) in [(false, false), (false, true), (true, false), (true, true)] {
                let answer = Exchange::answer(proof, opted_in, room, fresh);
                let trusted = proof == Proof::Valid && opted_in && room;
                assert_eq!(answer == Some(Exchange::Trust), trusted);
                assert_eq!(answer.is_none(), proof == Proof::Asked && !opted_in);
                let takes = answer.is_some_and(|exchange| exchange.takes(0));
                assert_eq!(takes, trusted);
            }
        }
        assert!(Exchange::Trust.takes(9) && !Exchange::Trust.takes(10));
    }
}
