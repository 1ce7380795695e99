//! Every number of the wire in one table (ResTP §3.1.1; bit positions are OP-1 to OP-6, OP-10, OP-18).

/// The only protocol version; the top nibble of byte 0.
pub const VERSION: u8 = 0;
/// Words of the base PDU.
pub const BASE_WORDS: usize = 3;
/// Most words HLX and HL can count (OP-7).
pub const MAX_WORDS: usize = 255;

/// FC: a TCP-like window (OP-5).
pub const FC_WINDOW: u8 = 1;
/// FC: the same, and the payload is frames of streams, each with a window of its own (docs/protocol/streams.md).
pub const FC_STREAMS: u8 = 2;

/// Cong, any path mode: no congestion control.
pub const CONG_NONE: u8 = 0;
/// Cong: NewReno, or an algorithm without a code of its own; under MP? = 1 one independent window per subflow.
pub const CONG_NEW_RENO: u8 = 1;

/// Byte 2, Ord: partially ordered.
pub const ORD_PAR: u8 = 0x80;
/// Byte 2, Ord: fully ordered.
pub const ORD_FUL: u8 = 0x40;
/// Byte 2, Flow: cookie request or response.
pub const FLOW_CKI: u8 = 0x20;
/// Byte 2, Flow: three-way set-up.
pub const FLOW_CON: u8 = 0x10;
/// Byte 2, Flow: opportunistic set-up.
pub const FLOW_OPT: u8 = 0x08;
/// Byte 2, Flow: custody transfer; sent 0, ignored on receipt (OP-28).
pub const FLOW_CXF: u8 = 0x04;

/// Byte 2, a reserved bit of Flow: the payload is a message about eras (docs/adr/0007). Sent only to a peer that has said that it
/// knows them.
pub const FLOW_ERA: u8 = 0x01;

/// Byte 2, the other reserved bit of Flow: all paths share one space of numbers, and no packet has a mapping. Beside the SYN it
/// asks for that; a peer that ignores it answers without it, and then each path has numbers of its own.
pub const FLOW_SHARED: u8 = 0x02;

/// Byte 4, P: multipath.
pub const P_MP: u8 = 0x80;
/// Byte 4, P: spreading, as opposed to hot-standby.
pub const P_MPM: u8 = 0x40;
/// Byte 4, Sched: round robin (OP-3).
pub const SCHED_RRS: u8 = 0x20;
/// Byte 4, Sched: fastest round-trip time (OP-3).
pub const SCHED_FRS: u8 = 0x10;

/// Byte 6, MPX: MP_CAPABLE in this PDU (OP-10).
pub const MPX_CAPABLE: u8 = 1;
/// Byte 6, MPX: MP_JOIN in this PDU (OP-10).
pub const MPX_JOIN: u8 = 2;
/// Byte 6: a DSS extension in this PDU (OP-10).
pub const DSS: u8 = 0x02;
/// Byte 6, framing: coalesce (OP-18).
pub const FRM: u8 = 0x01;

/// Byte 7, one of the reserved bits: the payload asks for, or confirms, a size (RFC 8899). A peer that ignores the bit takes
/// the packet for a retransmission of what it has.
pub const RESERVED_PROBE: u8 = 0x01;

/// Byte 7, three of the reserved bits: the ratio of acknowledgements that is asked for (RFC 5690). A peer that ignores them
/// acknowledges as often as it would anyway.
pub const RESERVED_RATIO: u8 = 0x0E;

/// Byte 7, three more: how many segments were rebuilt so far, modulo [`REPAIRED_WRAPS`] (RFC 9265 §4). A peer that ignores them
/// does not slow down for what it need not retransmit.
pub const RESERVED_REPAIRED: u8 = 0x70;
/// Where the count of rebuilt segments begins again.
pub const REPAIRED_WRAPS: u64 = 8;

/// Byte 7, the last one: beside SYN, its sender knows eras; in every other packet, the lowest bit of the number of the packet's era. A
/// peer that ignores it has one era.
pub const RESERVED_ERA: u8 = 0x80;

/// FEC Type: XOR of all consecutive packets, up to 16 (ResTP §3.1.5).
pub const FEC_BASIC: u8 = 1;
/// FEC Type: XOR of every other packet, up to 8 (ResTP §3.1.5).
pub const FEC_INTERLEAVED: u8 = 2;
/// FEC Type: a sliding window over GF(2^8) (RFC 8681). Where the payload is encoded, its FEC Range says what it combines: a key
/// of 12 bits, the distance of two packets less 1 in 4, and their number less 1 in 8.
pub const FEC_RLC: u8 = 3;
/// FEC Range is a 24-bit field.
pub const FEC_RANGE_MAX: u32 = 0x00FF_FFFF;

/// MP_CAPABLE flag A: integrity checks for header and payload required (ResTP §3.1.11).
pub const CAPABLE_INTEGRITY: u8 = 0x80;
/// MP_CAPABLE flags C..H: the crypto algorithms; without one of them the extension is ignored.
pub const CAPABLE_CRYPTO: u8 = 0x3F;
/// MP_CAPABLE flag H: HMAC-SHA1, the one defined algorithm.
pub const CAPABLE_HMAC_SHA1: u8 = 0x01;
/// MP_CAPABLE flag G: HMAC-SHA256 (OP-23).
pub const CAPABLE_HMAC_SHA256: u8 = 0x02;
/// MP_JOIN flag B: this subflow is a backup only (ResTP §3.1.12).
pub const JOIN_BACKUP: u8 = 0x01;

/// DSS first word: DATA_FIN (ResTP §3.1.13).
pub const DSS_FIN: u32 = 1 << 31;
/// DSS first word: a mapping is present.
pub const DSS_MAPPING: u32 = 1 << 30;
/// DSS first word: a Data ACK is present.
pub const DSS_ACK: u32 = 1 << 29;
/// DSS first word: a payload CRC-32 is present (OP-21).
pub const DSS_CRC: u32 = 1 << 28;

/// A byte of named bits; bits without a name cannot be stored.
macro_rules! bits {
    ($(#[$doc:meta])* $name:ident { $($(#[$bit_doc:meta])* $bit:ident = $value:literal,)+ }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Default, PartialEq, Eq, Hash)]
        pub struct $name(u8);

        impl $name {
            /// No bit set.
            pub const NONE: $name = $name(0);
            $($(#[$bit_doc])* pub const $bit: $name = $name($value);)+
            const NAMED: u8 = $($value)|+;

            /// The named bits of `byte`; the others are dropped.
            pub const fn from_bits(byte: u8) -> Self {
                $name(byte & Self::NAMED)
            }
            /// The bits as they travel.
            pub const fn bits(self) -> u8 {
                self.0
            }
            /// True when every bit of `all` is set.
            pub const fn has(self, all: Self) -> bool {
                self.0 & all.0 == all.0
            }
            /// Both sets of bits.
            pub const fn with(self, more: Self) -> Self {
                $name(self.0 | more.0)
            }
            /// This set less the bits of `fewer`.
            pub const fn without(self, fewer: Self) -> Self {
                $name(self.0 & !fewer.0)
            }
            /// Every bit that has a name, with its name, from the top.
            pub const TABLE: &'static [($name, &'static str)] = &[$(($name($value), stringify!($bit))),+];

            /// The names of the bits that are set, from the top.
            pub fn names(self) -> impl Iterator<Item = &'static str> {
                Self::TABLE.iter().filter(move |(bit, _)| self.has(*bit)).map(|(_, name)| *name)
            }
        }

        impl std::ops::BitOr for $name {
            type Output = Self;
            fn bitor(self, more: Self) -> Self {
                self.with(more)
            }
        }

        impl std::fmt::Debug for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.debug_set().entries(self.names()).finish()
            }
        }
    };
}

bits! {
    /// Byte 1: two ECN bits and the six TCP bits, with TCP's meanings (ResTP §3.1.1).
    Flags {
        /// Congestion window reduced (RFC 3168).
        CWR = 0x80,
        /// ECN echo (RFC 3168).
        ECE = 0x40,
        /// Urgent; sent 0, ignored (OP-19).
        URG = 0x20,
        /// The acknowledgement number is valid.
        ACK = 0x10,
        /// Push; advisory (OP-19).
        PSH = 0x08,
        /// Reset.
        RST = 0x04,
        /// Synchronise: opens an association.
        SYN = 0x02,
        /// No more data from the sender.
        FIN = 0x01,
    }
}

bits! {
    /// Byte 3: error control (ResTP §3.1.1, OP-2).
    ErrorControl {
        /// The payload is FEC-encoded.
        ENC = 0x80,
        /// Automatic repeat request.
        ARQ = 0x40,
        /// CRC-16 over the header, CRC-32 over the payload.
        CRC = 0x20,
        /// Forward error correction.
        FEC = 0x10,
        /// Negative acknowledgement; with SAK: SNACK.
        NAK = 0x08,
        /// Selective acknowledgement; with NAK: SNACK with bit vector.
        SAK = 0x04,
        /// Delayed acknowledgement.
        DEL = 0x02,
    }
}

/// Ordering service (Ord; both bits at once are invalid, OP-4).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Order {
    /// Deliver on arrival.
    #[default]
    Unordered,
    /// PAR: in order, holes may be skipped.
    Partial,
    /// FUL: in order, without holes.
    Full,
}

/// Set-up scheme (CON and OPT; both at once are invalid).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Setup {
    /// No exchange.
    #[default]
    Connectionless,
    /// CON: SYN, SYN-ACK, ACK before data.
    ThreeWay,
    /// OPT: data beside the SYN.
    Opportunistic,
}

/// Path mode (P) and, where it has a meaning, the scheduler (Sched, OP-57).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Paths {
    /// MP? = 0.
    #[default]
    Single,
    /// MP? = 1, MPM = 0: one path works, the others wait.
    HotStandby,
    /// MP? = 1, MPM = 1: all paths work.
    Spreading(Scheduler),
}

/// Scheduler of the spreading mode (Sched; both bits at once are invalid).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Scheduler {
    /// Neither bit: not declared.
    #[default]
    Undeclared,
    /// RRS: round robin.
    RoundRobin,
    /// FRS: least smoothed round-trip time.
    FastestRtt,
}

/// Framing mode (FRM, OP-18).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Framing {
    /// One application frame is one segment.
    #[default]
    Fixed,
    /// A byte stream.
    Coalesce,
}
