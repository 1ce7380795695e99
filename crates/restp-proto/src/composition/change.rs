//! What it takes to go from one composition to another while a connection runs (docs/adr/0007): nothing, this end alone, or
//! both ends. A function of two values.

use super::{Composition, KEYS, Refusal, ValidComposition, accept};
use crate::wire::Services;
use restp_base::flow::{Change, ChangeError};
use restp_services::ordering::Ordering;
use restp_services::reliability::FecCode;

/// What the set-up settles: how the connection begins, how data become numbered segments and how these are checked, and
/// what was negotiated once with the path.
const SETTLED: [&str; 15] = [
    "connection",
    "framing",
    "flow-control",
    "ecn",
    "mtu-discovery",
    "crc",
    "mapping-crc",
    "paths",
    "numbering",
    "segment",
    "window",
    "stream-window",
    "streams",
    "handshake-rto",
    "handshake-attempts",
];

/// What both ends have to know of the services, beside what the set-up settles.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Terms {
    /// Service bits of the header (ResTP §3.1.1).
    pub(crate) services: Services,
    /// Where packets are encoded.
    pub(crate) code: Option<FecCode>,
}

impl Terms {
    /// Those of `composition` on a connection that was set up with `services`. Congestion control is local once both ends know
    /// that there are numbers: the header goes on to say what it said.
    pub(crate) fn of(composition: &Composition, services: Services) -> Self {
        let of = Services::of(composition);
        let services = Services {
            order: of.order,
            error: of.error,
            ..services
        };
        Terms::at_first(composition, services)
    }

    /// Those of the set-up, which says `services`.
    pub(crate) fn at_first(composition: &Composition, services: Services) -> Self {
        Terms {
            services,
            code: composition.reliability.encodes().then_some(composition.fec.code),
        }
    }
}

/// What an application relies on, and a peer does not take away unasked. That segments are acknowledged is no part of it: what
/// retransmits always is, and connections stay so.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Strength {
    /// None, partial, full.
    order: u8,
    is_full: bool,
}

impl Strength {
    pub(crate) fn of(composition: &Composition) -> Self {
        Strength {
            order: match composition.ordering {
                Ordering::Unordered => 0,
                Ordering::Partial => 1,
                Ordering::Ordered => 2,
            },
            is_full: composition.reliability.is_full(),
        }
    }

    /// The same, of which the application has just `asked` for the named.
    pub(crate) fn asked(self, asked: Strength, names_order: bool, names_reliability: bool) -> Self {
        Strength {
            order: if names_order { asked.order } else { self.order },
            is_full: if names_reliability {
                asked.is_full
            } else {
                self.is_full
            },
        }
    }

    /// What both have.
    pub(crate) fn least(self, other: Strength) -> Self {
        Strength {
            order: self.order.min(other.order),
            is_full: self.is_full && other.is_full,
        }
    }

    /// `to` is as good in each respect.
    pub(crate) fn is_kept_by(self, to: Strength) -> bool {
        to.order >= self.order && to.is_full >= self.is_full
    }
}

/// What an end with the services of `local` makes of `terms`, as of a request (OP-27); what is local stays.
///
/// # Errors
/// When they name no services, or break a rule.
pub(crate) fn under(terms: Terms, local: &Composition) -> Result<ValidComposition, Refusal> {
    let mut own = local.clone();
    if let Some(code) = terms.code {
        own.fec.code = code;
    }
    let bits = Services {
        congestion: Services::of(local).congestion,
        ..terms.services
    };
    accept(bits, &own)
}

/// What it takes to go from `from` to `to`, which are both valid.
///
/// # Errors
/// When the set-up has settled what differs: the first key of that.
pub fn change(from: &Composition, to: &Composition) -> Result<Change, ChangeError> {
    let differing = || KEYS.iter().filter(|key| key.read(from) != key.read(to));
    let keeps_numbers = from.reliability.retransmits() && to.reliability.retransmits();
    let is_settled = |name: &str| SETTLED.contains(&name) || (name == "reliability" && !keeps_numbers);
    if let Some(key) = differing().find(|key| is_settled(key.name)) {
        let read = |composition| key.read(composition).unwrap_or_else(|| "none".into());
        return Err(ChangeError::Settled {
            key: key.name,
            from: read(from),
            to: read(to),
        });
    }
    if from == to {
        return Ok(Change::Nothing);
    }
    Ok(match agreed_key(from, to) {
        None => Change::Local,
        Some(_) => Change::Agreed,
    })
}

/// The first key that both ends have to agree on.
pub(crate) fn agreed_key(from: &Composition, to: &Composition) -> Option<&'static str> {
    let terms = |composition| Terms::of(composition, Services::default());
    let (before, after) = (terms(from), terms(to));
    if before == after {
        return None;
    }
    let agreed = ["ordering", "reliability", "ack", "fec"];
    let mut keys = KEYS.iter().filter(|key| agreed.contains(&key.name));
    let differing = keys.find(|key| key.read(from) != key.read(to));
    Some(differing.map_or("reliability", |key| key.name))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::composition::{PRESETS, Preset};

    fn preset(name: &str) -> Composition {
        Preset::named(name).unwrap().composition()
    }

    fn with(set: &[(&str, &str)]) -> Composition {
        Composition::from_pairs(preset("default"), set.iter().copied()).unwrap()
    }

    fn to(set: &[(&str, &str)]) -> Result<Change, ChangeError> {
        change(&preset("default"), &with(set))
    }

    #[test]
    fn what_one_end_decides_takes_one_end() {
        assert_eq!(to(&[]), Ok(Change::Nothing));
        for set in [
            [("congestion", "cubic")],
            [("congestion", "none")],
            [("loss", "corruption")],
            [("recovery", "duplicate-ack")],
            [("pacing", "off")],
            [("reordering", "rack")],
            [("ack-every", "4 packets")],
            [("ack", "positive+sack+repeat")],
            [("send-buffer", "1 MiB")],
            [("rto-floor", "300 ms")],
            [("outage-timeout", "10 s")],
        ] {
            assert_eq!(to(&set), Ok(Change::Local), "{set:?}");
        }
        let voice = preset("voice");
        let redundant = Composition::from_pairs(voice.clone(), [("fec-redundancy", "20")]).unwrap();
        assert_eq!(change(&voice, &redundant), Ok(Change::Local));
    }

    #[test]
    fn what_the_header_says_takes_both() {
        for set in [
            vec![("ack", "positive+snack")],
            vec![("ack", "positive"), ("recovery", "duplicate-ack")],
            vec![("ack", "delayed+snack")],
            vec![("reliability", "harq")],
            vec![("ordering", "unordered")],
            vec![("reliability", "partial"), ("ordering", "partial")],
            vec![("ordering", "partial"), ("reliability", "partial+fec")],
        ] {
            assert_eq!(to(&set), Ok(Change::Agreed), "{set:?}");
        }
        let (basic, other) = (with(&[("reliability", "harq")]), [("fec", "interleaved")]);
        let other = Composition::from_pairs(basic.clone(), other).unwrap();
        assert_eq!(change(&basic, &other), Ok(Change::Agreed));
        assert_eq!(agreed_key(&basic, &other), Some("fec"));
    }

    #[test]
    fn what_the_set_up_settles_is_refused_by_name() {
        for (key, value) in [
            ("connection", "opportunistic"),
            ("framing", "fixed"),
            ("flow-control", "none"),
            ("window", "100 segments"),
            ("ecn", "off"),
            ("mtu-discovery", "off"),
            ("crc", "on"),
            ("mapping-crc", "on"),
            ("paths", "spreading"),
            ("segment", "1000 B"),
            ("reliability", "unreliable"),
            ("reliability", "quasi"),
            ("handshake-rto", "2 s"),
            ("handshake-attempts", "3"),
        ] {
            let refused = to(&[(key, value), ("congestion", "cubic")]);
            let named = matches!(&refused, Err(ChangeError::Settled { key: named, .. }) if *named == key);
            assert!(named, "{key}: {refused:?}");
        }
        assert!(
            SETTLED
                .iter()
                .all(|name| KEYS.iter().any(|key| key.name == *name))
        );
    }

    #[test]
    fn less_order_or_less_than_full_reliability_is_weaker() {
        let of = |ordering, reliability| {
            Strength::of(&with(&[("ordering", ordering), ("reliability", reliability)]))
        };
        let orders = ["unordered", "partial", "ordered"];
        for (i, from) in orders.into_iter().enumerate() {
            for (j, to) in orders.into_iter().enumerate() {
                assert_eq!(
                    of(from, "arq").is_kept_by(of(to, "arq")),
                    j >= i,
                    "{from} to {to}"
                );
            }
        }
        let from = of("partial", "arq");
        assert!(from.is_kept_by(of("partial", "harq")));
        assert!(!from.is_kept_by(of("partial", "partial")));
        assert!(!from.is_kept_by(of("ordered", "partial+fec")));
        assert!(of("partial", "partial").is_kept_by(from));
    }

    /// Whatever two compositions are, going there and back takes the same.
    #[test]
    fn the_way_back_takes_what_the_way_there_took() {
        for one in PRESETS {
            for other in PRESETS {
                let (one, other) = (one.composition(), other.composition());
                match (change(&one, &other), change(&other, &one)) {
                    (Ok(there), Ok(back)) => assert_eq!(there, back),
                    (Err(_), Err(_)) => {}
                    (there, back) => panic!("{there:?}, {back:?}"),
                }
            }
        }
    }
}
