//! The base PDU: three words that every packet starts with (ResTP §3.1.1; layout OP-1, OP-7).
//!
//! ```text
//!         bit 31      24 23      16 15 14 13      8 7        0
//! word 0  |Ver 4|HL 4 |  Flags 8  |Ord 2|  Flow 6 | Error 8  |
//! word 1  |P 2|Sched 2|Cong 4|FC 4|k 4|HLX 4|MPX 2|DSS 1|FRM 1|Reserved 8|
//! word 2  |      Source port 16   |    Destination port 16    |
//! ```
//!
//! Of the reserved bits of byte 7 all are ours: the lowest marks a probe of the path's largest packet (RFC 8899), the next three ask
//! for a ratio of acknowledgements (RFC 5690): 0 for the receiver's own, n up to 6 for one per 2^(n+1) segments, 7 for the receiver's
//! own while nothing hurries; three count the segments that were rebuilt from encoded packets, modulo 8 (RFC 9265 §4); the highest says
//! the era, and the lowest of Flow that the payload is about eras (docs/adr/0007). Flow's other reserved bit says, where MP? = 1, that
//! all paths share one space of numbers; it is a service bit, and no other one may be left out by the answer to a SYN.
//!
//! Receiver checks: Version = 0; total words >= 3 and <= PDU length / 4; Ord not 11; not both CON and OPT;
//! CKI only with OPT; not both RRS and FRS; MPM, Sched, MPX and DSS zero when MP? = 0; k >= 1, and k = 1
//! when MP? = 0. The other reserved bits, CXF (OP-28) and Sched outside spreading (OP-57) are sent 0 and ignored.

use super::Header;
use super::codes::*;
use super::cursor::Writer;
use super::error::{EmitError, Found, ParseError};
use restp_services::ack::AckRatio;

/// The service bits, constant for an association and repeated in each of its packets (ResTP §3.2). Two bits
/// of [`ErrorControl`] vary: ENC, and SAK on a SNACK connection (see [`Services::agree`]).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Services {
    /// Ord.
    pub order: Order,
    /// CON and OPT.
    pub setup: Setup,
    /// Error control and acknowledgement technique.
    pub error: ErrorControl,
    /// P and Sched.
    pub paths: Paths,
    /// All paths share one space of numbers; only where there are several.
    pub shared_numbers: bool,
    /// Cong, 0..=15; code space by path mode (`codes::CONG_*`).
    pub congestion: u8,
    /// FC, 0..=15 (`codes::FC_WINDOW`).
    pub flow_control: u8,
    /// FRM.
    pub framing: Framing,
}

impl Services {
    /// True when both are the services of one association: all bits equal but those that may vary per packet.
    pub fn agree(&self, other: &Services) -> bool {
        let varying = if self.error.has(ErrorControl::NAK) {
            ErrorControl::ENC | ErrorControl::SAK
        } else {
            ErrorControl::ENC
        };
        let Services {
            order,
            setup,
            error,
            paths,
            shared_numbers,
            congestion,
            flow_control,
            framing,
        } = *self;
        error.without(varying) == other.error.without(varying)
            && (order, setup) == (other.order, other.setup)
            && (congestion, flow_control) == (other.congestion, other.flow_control)
            && (paths, shared_numbers, framing) == (other.paths, other.shared_numbers, other.framing)
    }
    /// SEQ: some service needs packet numbers even where ARQ is off (OP-14).
    #[inline]
    pub fn numbered(&self) -> bool {
        self.error.has(ErrorControl::FEC)
            || self.order != Order::Unordered
            || self.congestion != CONG_NONE
            || self.flow_control != 0
    }
    /// MP? = 1.
    #[inline]
    pub fn multipath(&self) -> bool {
        self.paths != Paths::Single
    }
    /// What a request falls back to where several paths cannot be had: one, three-way (ResTP §3.5.5). Of all services only
    /// this one degrades (OP-27).
    pub fn on_one_path(self) -> Self {
        Services {
            paths: Paths::Single,
            shared_numbers: false,
            setup: Setup::ThreeWay,
            ..self
        }
    }
    /// What a request for shared numbers falls back to where the peer knows none: each path has its own.
    pub fn numbered_per_path(self) -> Self {
        Services {
            shared_numbers: false,
            ..self
        }
    }
}

/// The fields of the base PDU that announce extensions.
#[derive(Clone, Copy)]
pub(super) struct Base {
    pub(super) flags: Flags,
    pub(super) services: Services,
    pub(super) cookie_exchange: bool,
}

/// What else the base PDU says: of this packet, and of the rest of its header.
pub(super) struct Shape {
    pub(super) probe: bool,
    pub(super) era: bool,
    pub(super) about_eras: bool,
    pub(super) ack_ratio: AckRatio,
    pub(super) repaired: u8,
    pub(super) k: u8,
    pub(super) source: u16,
    pub(super) destination: u16,
    pub(super) words: usize,
    pub(super) mpx: u8,
    pub(super) dss: bool,
}

/// Words of the header that starts with `base`, as it says itself.
#[inline]
pub(super) fn words(base: &[u8; 12]) -> usize {
    words_of(base[0], base[6])
}

#[inline]
fn words_of(b0: u8, b6: u8) -> usize {
    usize::from(b6 & 0xF0 | b0 & 0x0F)
}

/// Reads the base PDU.
#[inline]
pub(super) fn parse(head: &[u8], pdu_len: usize) -> Result<(Base, Shape), ParseError> {
    let Some(&[b0, b1, b2, b3, b4, b5, b6, b7, s1, s0, d1, d0]) = head.first_chunk() else {
        return Err(ParseError::new(
            0,
            "a base PDU of 12 bytes",
            Found::Bytes(head.len()),
        ));
    };
    if b0 >> 4 != VERSION {
        return Err(ParseError::new(0, "Version 0", Found::Value((b0 >> 4).into())));
    }
    let words = words_of(b0, b6);
    if words < BASE_WORDS {
        return Err(ParseError::new(
            0,
            "a header of at least 3 words",
            Found::Words(words),
        ));
    }
    if words * 4 > pdu_len {
        return Err(ParseError::new(0, "a header within the PDU", Found::Words(words)));
    }
    let order = match b2 & (ORD_PAR | ORD_FUL) {
        0 => Order::Unordered,
        ORD_PAR => Order::Partial,
        ORD_FUL => Order::Full,
        both => {
            return Err(ParseError::new(
                2,
                "at most one of PAR and FUL",
                Found::Value(both.into()),
            ));
        }
    };
    let setup = match b2 & (FLOW_CON | FLOW_OPT) {
        0 => Setup::Connectionless,
        FLOW_CON => Setup::ThreeWay,
        FLOW_OPT => Setup::Opportunistic,
        both => {
            return Err(ParseError::new(
                2,
                "at most one of CON and OPT",
                Found::Value(both.into()),
            ));
        }
    };
    let cookie_exchange = b2 & FLOW_CKI != 0;
    if cookie_exchange && setup != Setup::Opportunistic {
        return Err(ParseError::new(2, "CKI only with OPT", Found::Value(b2.into())));
    }
    let scheduler = match b4 & (SCHED_RRS | SCHED_FRS) {
        0 => Scheduler::Undeclared,
        SCHED_RRS => Scheduler::RoundRobin,
        SCHED_FRS => Scheduler::FastestRtt,
        both => {
            return Err(ParseError::new(
                4,
                "at most one of RRS and FRS",
                Found::Value(both.into()),
            ));
        }
    };
    let (k, mpx, dss) = (b5 & 0x0F, b6 >> 2 & 0b11, b6 & DSS != 0);
    if k == 0 {
        return Err(ParseError::new(5, "k of at least 1", Found::Value(0)));
    }
    let paths = match b4 & (P_MP | P_MPM) {
        P_MP => Paths::HotStandby,
        P_MPM => return Err(ParseError::new(4, "MPM only with MP?", Found::Value(b4.into()))),
        0 => {
            if scheduler != Scheduler::Undeclared {
                return Err(ParseError::new(
                    4,
                    "Sched 0 on a single path",
                    Found::Value(b4.into()),
                ));
            }
            if mpx != 0 || dss {
                return Err(ParseError::new(
                    6,
                    "MPX and DSS 0 on a single path",
                    Found::Value(b6.into()),
                ));
            }
            if k != 1 {
                return Err(ParseError::new(
                    5,
                    "k = 1 on a single path",
                    Found::Value(k.into()),
                ));
            }
            Paths::Single
        }
        _ => Paths::Spreading(scheduler),
    };
    let services = Services {
        order,
        setup,
        error: ErrorControl::from_bits(b3),
        shared_numbers: b2 & FLOW_SHARED != 0 && paths != Paths::Single,
        paths,
        congestion: b4 & 0x0F,
        flow_control: b5 >> 4,
        framing: if b6 & FRM != 0 {
            Framing::Coalesce
        } else {
            Framing::Fixed
        },
    };
    let base = Base {
        flags: Flags::from_bits(b1),
        services,
        cookie_exchange,
    };
    let shape = Shape {
        probe: b7 & RESERVED_PROBE != 0,
        era: b7 & RESERVED_ERA != 0,
        about_eras: b2 & FLOW_ERA != 0,
        ack_ratio: AckRatio::from_code((b7 & RESERVED_RATIO) >> 1),
        repaired: (b7 & RESERVED_REPAIRED) >> 4,
        k,
        source: u16::from_be_bytes([s1, s0]),
        destination: u16::from_be_bytes([d1, d0]),
        words,
        mpx,
        dss,
    };
    Ok((base, shape))
}

/// Refuses base fields that no receiver would accept.
#[inline]
pub(super) fn check(header: &Header) -> Result<(), EmitError> {
    let Header { services, k, .. } = header;
    let forbid = |field, found: u8, rule| {
        Err(EmitError::Forbidden {
            field,
            found: found.into(),
            rule,
        })
    };
    if header.cookie_exchange && services.setup != Setup::Opportunistic {
        return forbid("CKI", 1, "it belongs to the opportunistic set-up");
    }
    if services.congestion > 15 {
        return forbid("Cong", services.congestion, "the field has 4 bits");
    }
    if services.flow_control > 15 {
        return forbid("FC", services.flow_control, "the field has 4 bits");
    }
    if *k == 0 || *k > 15 {
        return forbid("k", *k, "between 1 and 15 paths");
    }
    if !services.multipath() {
        if services.shared_numbers {
            return forbid(
                "SHN",
                1,
                "a single-path connection has one space of numbers anyway",
            );
        }
        if *k != 1 {
            return forbid("k", *k, "a single-path connection has 1");
        }
        if let Some(mp) = &header.mp {
            return forbid(
                "MPX",
                mp.code(),
                "a single-path connection has no multipath set-up",
            );
        }
        if header.dss.is_some() {
            return forbid("DSS", 1, "a single-path connection has no mapping");
        }
    }
    Ok(())
}

/// Writes the base PDU of a header that is `words` long in all.
#[inline]
pub(super) fn emit(header: &Header, words: usize, out: &mut Writer<'_>) {
    let services = &header.services;
    let order = match services.order {
        Order::Unordered => 0,
        Order::Partial => ORD_PAR,
        Order::Full => ORD_FUL,
    };
    let setup = match services.setup {
        Setup::Connectionless => 0,
        Setup::ThreeWay => FLOW_CON,
        Setup::Opportunistic => FLOW_OPT,
    };
    let paths = match services.paths {
        Paths::Single => 0,
        Paths::HotStandby => P_MP,
        Paths::Spreading(Scheduler::Undeclared) => P_MP | P_MPM,
        Paths::Spreading(Scheduler::RoundRobin) => P_MP | P_MPM | SCHED_RRS,
        Paths::Spreading(Scheduler::FastestRtt) => P_MP | P_MPM | SCHED_FRS,
    };
    let cookie_exchange = if header.cookie_exchange { FLOW_CKI } else { 0 };
    let mpx = header.mp.as_ref().map_or(0, |mp| mp.code() << 2);
    let dss = if header.dss.is_some() { DSS } else { 0 };
    let framing = if services.framing == Framing::Coalesce {
        FRM
    } else {
        0
    };
    let about_eras = if header.about_eras { FLOW_ERA } else { 0 };
    let shared = if services.shared_numbers { FLOW_SHARED } else { 0 };
    let [s1, s0] = header.source.to_be_bytes();
    let [d1, d0] = header.destination.to_be_bytes();
    out.put(&[
        VERSION << 4 | words as u8 & 0x0F,
        header.flags.bits(),
        order | setup | cookie_exchange | shared | about_eras,
        services.error.bits(),
        paths | services.congestion,
        services.flow_control << 4 | header.k,
        words as u8 & 0xF0 | mpx | dss | framing,
        if header.probe { RESERVED_PROBE } else { 0 }
            | if header.era { RESERVED_ERA } else { 0 }
            | header.ack_ratio.code() << 1
            | header.repaired << 4 & RESERVED_REPAIRED,
        s1,
        s0,
        d1,
        d0,
    ]);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packets_of_one_association_differ_in_enc_and_on_snack_in_sak() {
        let with = |error| Services {
            order: Order::Full,
            error,
            ..Services::default()
        };
        let (arq, sak, nak) = (ErrorControl::ARQ, ErrorControl::SAK, ErrorControl::NAK);
        assert!(with(arq).agree(&with(arq | ErrorControl::ENC)));
        assert!(with(arq | nak).agree(&with(arq | nak | sak)));
        assert!(!with(arq).agree(&with(arq | sak)));
        assert!(!with(arq | sak).agree(&with(arq | sak | nak)));
        assert!(!with(arq).agree(&with(arq | ErrorControl::CRC)));
        assert!(!with(arq).agree(&Services {
            order: Order::Partial,
            ..with(arq)
        }));
    }
}
