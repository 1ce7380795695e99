//! How long frames take, and the pauses between them: tables of numbers (IEEE 802.11-1999 §9, §15; 802.11b-1999 §18).
//! Everything here is a whole number of microseconds.

use restp_base::time::Duration;

/// One way of putting bits on the air.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mode {
    /// Rate of the payload.
    pub kbps: u32,
    /// Preamble and PLCP header, before the payload.
    pub preamble: Duration,
    /// The payload is a whole number of symbols of this length.
    pub symbol: Duration,
    /// Twice the bits that a symbol carries: 5.5 Mb/s has eleven halves.
    pub half_bits: u32,
}

impl Mode {
    const fn dsss(kbps: u32) -> Mode {
        Mode {
            kbps,
            preamble: Duration::from_micros(192),
            symbol: Duration::from_micros(1),
            half_bits: kbps / 500,
        }
    }

    /// How long a frame of `bytes`, MAC header and check sum included, is on the air.
    pub const fn time(&self, bytes: u32) -> Duration {
        let half_bits = bytes as u64 * 16;
        let symbols = half_bits.div_ceil(self.half_bits as u64);
        Duration::from_nanos(self.preamble.as_nanos() + self.symbol.as_nanos() * symbols)
    }
}

/// What 802.11b sends with: long preamble of 144 bits and a header of 48 at 1 Mb/s.
pub const DSSS: [Mode; 4] = [
    Mode::dsss(1_000),
    Mode::dsss(2_000),
    Mode::dsss(5_500),
    Mode::dsss(11_000),
];

/// Bytes of control frames, and of the header and check sum of a data frame (§7.2).
pub const RTS_BYTES: u32 = 20;
/// See [`RTS_BYTES`].
pub const CTS_BYTES: u32 = 14;
/// See [`RTS_BYTES`].
pub const ACK_BYTES: u32 = 14;
/// See [`RTS_BYTES`].
pub const DATA_HEADER_BYTES: u32 = 28;

/// Most bytes of a packet (§6.2.1.1.2).
pub const MOST_BYTES: u32 = 2304;

/// The numbers of one standard, and the modes that stations of one medium use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Timing {
    /// Slot of the backoff.
    pub slot: Duration,
    /// Before an answer.
    pub sifs: Duration,
    /// Before the backoff, once the medium is idle.
    pub difs: Duration,
    /// The same after a frame that could not be decoded: an answer to it may follow.
    pub eifs: Duration,
    /// A station that begins to transmit within this time does not notice a carrier any more (aRxTxTurnaroundTime).
    pub turnaround: Duration,
    /// Smallest contention window.
    pub cw_min: u32,
    /// Largest contention window.
    pub cw_max: u32,
    /// Of data frames.
    pub data: Mode,
    /// Of RTS, CTS and ACK.
    pub control: Mode,
}

impl Timing {
    /// 802.11b with these modes.
    pub const fn dsss(data: Mode, control: Mode) -> Timing {
        let (slot, sifs) = (Duration::from_micros(20), Duration::from_micros(10));
        let difs = Duration::from_micros(50);
        let ack = DSSS[0].time(ACK_BYTES);
        Timing {
            slot,
            sifs,
            difs,
            eifs: Duration::from_nanos(sifs.as_nanos() + difs.as_nanos() + ack.as_nanos()),
            turnaround: Duration::from_micros(5),
            cw_min: 31,
            cw_max: 1023,
            data,
            control,
        }
    }

    /// The frame that asks for the medium.
    pub const fn rts(&self) -> Duration {
        self.control.time(RTS_BYTES)
    }

    /// The frame that grants it.
    pub const fn cts(&self) -> Duration {
        self.control.time(CTS_BYTES)
    }

    /// A data frame around an IP packet of `bytes`.
    pub const fn data(&self, bytes: u32) -> Duration {
        self.data.time(bytes + DATA_HEADER_BYTES)
    }

    /// The frame that confirms it.
    pub const fn ack(&self) -> Duration {
        self.control.time(ACK_BYTES)
    }

    /// A whole exchange with the mean backoff and without a collision.
    pub fn exchange(&self, bytes: u32) -> Duration {
        self.difs + self.slot * u64::from(self.cw_min) / 2 + self.rts() + self.after_rts(bytes)
    }

    /// From the end of a frame to when the start of an answer is missed (§9.2.8).
    pub fn timeout(&self) -> Duration {
        self.sifs + self.slot + self.control.preamble
    }

    /// From the end of a data frame to the end of its answer.
    pub fn after_data(&self) -> Duration {
        self.sifs + self.ack()
    }

    /// From the end of a CTS to the end of the exchange.
    pub fn after_cts(&self, bytes: u32) -> Duration {
        self.sifs + self.data(bytes) + self.after_data()
    }

    /// From the end of an RTS to the end of the exchange.
    pub fn after_rts(&self, bytes: u32) -> Duration {
        self.sifs + self.cts() + self.after_cts(bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const B: Timing = Timing::dsss(DSSS[1], DSSS[1]);
    const SCTP_PACKET: u32 = 1048;
    const SACK_PACKET: u32 = 48;

    fn us(span: Duration) -> u64 {
        assert_eq!(span.as_nanos() % 1000, 0, "{span}");
        span.as_micros()
    }

    #[test]
    fn frames_and_pauses_of_802_11b_take_the_published_times() {
        assert_eq!([B.rts(), B.cts(), B.ack()].map(us), [272, 248, 248]);
        assert_eq!(us(B.data(SCTP_PACKET)), 4496);
        assert_eq!([B.difs, B.eifs].map(us), [50, 364]);
        assert_eq!(us(B.timeout()), 222);
        assert_eq!(us(Timing::dsss(DSSS[1], DSSS[0]).rts()), 352);
    }

    #[test]
    fn an_exchange_takes_5654_us_and_one_hop_carries_1_415_and_1_234_mbps() {
        let exchange = |bytes| us(B.exchange(bytes));
        assert_eq!([SCTP_PACKET, SACK_PACKET].map(exchange), [5654, 1654]);
        let mbps = |us: u64, bytes: u64| bytes as f64 * 8.0 / us as f64;
        assert_eq!(format!("{:.3}", mbps(exchange(SCTP_PACKET), 1000)), "1.415");
        let with_sack = 2 * exchange(SCTP_PACKET) + exchange(SACK_PACKET);
        assert_eq!(format!("{:.3}", mbps(with_sack, 2000)), "1.234");
    }

    /// 802.11b-1999 §18.3.4: the length field holds microseconds, rounded up.
    #[test]
    fn payloads_end_with_a_whole_microsecond() {
        assert_eq!(us(DSSS[2].time(1)), 194);
        assert_eq!(us(DSSS[3].time(14)), 203);
        assert_eq!(us(DSSS[3].time(1500)), 192 + 1091);
    }
}
