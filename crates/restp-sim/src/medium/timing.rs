//! How long frames take, and the pauses between them: tables of numbers (IEEE 802.11-1999 §9, §15; 802.11b-1999 §18;
//! 802.11g-2003 §19).
//! Everything here is a whole number of microseconds.

use restp_base::time::Duration;

/// One way of putting bits on the air.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Mode {
    /// Rate of the payload.
    pub kbps: u32,
    /// Preamble and PLCP header, before the payload.
    pub preamble: Duration,
    /// The payload is a whole number of symbols of this length.
    pub symbol: Duration,
    /// Twice the bits that a symbol carries: 5.5 Mb/s has eleven halves.
    pub half_bits: u32,
    /// Bits around the payload, in its first and last symbol.
    pub around_bits: u32,
    /// Silence behind the last symbol.
    pub extension: Duration,
    /// How much more power it needs than the slowest mode of its table, by the sensitivities that the standard asks of receivers.
    pub need: f64,
}

impl Mode {
    const fn dsss(kbps: u32, preamble_us: u64, need: f64) -> Mode {
        Mode {
            kbps,
            preamble: Duration::from_micros(preamble_us),
            symbol: Duration::from_micros(1),
            half_bits: kbps / 500,
            around_bits: 0,
            extension: Duration::ZERO,
            need,
        }
    }

    /// Short training, long training and the signal field; symbols of 4 µs; a service field and a tail.
    const fn ofdm(kbps: u32, need: f64) -> Mode {
        Mode {
            kbps,
            preamble: Duration::from_micros(20),
            symbol: Duration::from_micros(4),
            half_bits: kbps / 125,
            around_bits: 22,
            extension: Duration::from_micros(6),
            need,
        }
    }

    /// How long a frame of `bytes`, MAC header and check sum included, is on the air.
    pub const fn time(&self, bytes: u32) -> Duration {
        let half_bits = bytes as u64 * 16 + self.around_bits as u64 * 2;
        let symbols = half_bits.div_ceil(self.half_bits as u64);
        let around = self.preamble.as_nanos() + self.extension.as_nanos();
        Duration::from_nanos(around + self.symbol.as_nanos() * symbols)
    }
}

/// What 802.11b sends with: long preamble of 144 bits and a header of 48 at 1 Mb/s. Receivers manage 1 and 2 Mb/s at -80 dBm, 11 Mb/s
/// at -76 dBm.
pub static DSSS: [Mode; 4] = dsss(192);
/// The same with a short preamble: 72 bits at 1 Mb/s and a header of 48 at 2 Mb/s. Frames at 1 Mb/s have the long one (802.11b-1999 §18.2.2.2).
pub static DSSS_SHORT: [Mode; 4] = dsss(96);

const fn dsss(preamble_us: u64) -> [Mode; 4] {
    [
        Mode::dsss(1_000, 192, 1.0),
        Mode::dsss(2_000, preamble_us, 1.0),
        Mode::dsss(5_500, preamble_us, 1.584_893_192_461_113_5),
        Mode::dsss(11_000, preamble_us, 2.511_886_431_509_58),
    ]
}

/// What 802.11g sends with where nobody sends anything else. Receivers manage it from -82 dBm (6 Mb/s) to -65 dBm (54 Mb/s).
pub static OFDM: [Mode; 8] = [
    Mode::ofdm(6_000, 1.0),
    Mode::ofdm(9_000, 1.258_925_411_794_167_3),
    Mode::ofdm(12_000, 1.995_262_314_968_88),
    Mode::ofdm(18_000, 3.162_277_660_168_379_5),
    Mode::ofdm(24_000, 6.309_573_444_801_933),
    Mode::ofdm(36_000, 15.848_931_924_611_133),
    Mode::ofdm(48_000, 39.810_717_055_349_73),
    Mode::ofdm(54_000, 50.118_723_362_727_23),
];

/// Bytes of control frames, and of the header and check sum of a data frame (§7.2).
pub const RTS_BYTES: u32 = 20;
/// See [`RTS_BYTES`].
pub const CTS_BYTES: u32 = 14;
/// See [`RTS_BYTES`].
pub const ACK_BYTES: u32 = 14;
/// See [`RTS_BYTES`].
pub const DATA_HEADER_BYTES: u32 = 28;
/// What says that a data frame holds an IP packet (IEEE 802.2 LLC and SNAP, RFC 1042).
pub const LLC_BYTES: u32 = 8;

/// Most bytes of a packet (§6.2.1.1.2).
pub const MOST_BYTES: u32 = 2304;

/// The numbers of one standard, and the mode of control frames.
#[derive(Clone, Copy, Debug, PartialEq)]
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
    /// Of RTS, CTS and ACK.
    pub control: Mode,
    /// Bytes of a data frame around its packet.
    pub data_header: u32,
}

impl Timing {
    /// 802.11b.
    pub fn dsss(control: Mode) -> Timing {
        Timing::new(20, 31, &DSSS[0], control)
    }

    /// 802.11g with short slots.
    pub fn ofdm(control: Mode) -> Timing {
        Timing::new(9, 15, &OFDM[0], control)
    }

    fn new(slot_us: u64, cw_min: u32, slowest: &Mode, control: Mode) -> Timing {
        let (slot, sifs) = (Duration::from_micros(slot_us), Duration::from_micros(10));
        let difs = sifs + slot * 2;
        Timing {
            slot,
            sifs,
            difs,
            eifs: sifs + difs + slowest.time(ACK_BYTES),
            turnaround: Duration::from_micros(5),
            cw_min,
            cw_max: 1023,
            control,
            data_header: DATA_HEADER_BYTES,
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
    pub const fn data(&self, mode: &Mode, bytes: u32) -> Duration {
        mode.time(bytes + self.data_header)
    }

    /// The frame that confirms it.
    pub const fn ack(&self) -> Duration {
        self.control.time(ACK_BYTES)
    }

    /// A whole exchange with the mean backoff and without a collision.
    pub fn exchange(&self, mode: &Mode, bytes: u32) -> Duration {
        self.difs + self.slot * u64::from(self.cw_min) / 2 + self.rts() + self.after_rts(mode, bytes)
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
    pub fn after_cts(&self, mode: &Mode, bytes: u32) -> Duration {
        self.sifs + self.data(mode, bytes) + self.after_data()
    }

    /// From the end of an RTS to the end of the exchange.
    pub fn after_rts(&self, mode: &Mode, bytes: u32) -> Duration {
        self.sifs + self.cts() + self.after_cts(mode, bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn b() -> Timing {
        Timing::dsss(DSSS[1])
    }

    const SCTP_PACKET: u32 = 1048;
    const SACK_PACKET: u32 = 48;

    fn us(span: Duration) -> u64 {
        assert_eq!(span.as_nanos() % 1000, 0, "{span}");
        span.as_micros()
    }

    #[test]
    fn frames_and_pauses_of_802_11b_take_the_published_times() {
        assert_eq!([b().rts(), b().cts(), b().ack()].map(us), [272, 248, 248]);
        assert_eq!(us(b().data(&DSSS[1], SCTP_PACKET)), 4496);
        assert_eq!([b().difs, b().eifs].map(us), [50, 364]);
        assert_eq!(us(b().timeout()), 222);
        assert_eq!(us(Timing::dsss(DSSS[0]).rts()), 352);
    }

    #[test]
    fn a_short_preamble_halves_what_is_before_all_frames_but_those_at_1_mbps() {
        let (short, b) = (Timing::dsss(DSSS_SHORT[1]), b());
        assert_eq!([short.rts(), short.cts()].map(us), [176, 152]);
        assert_eq!([short.eifs, short.timeout()].map(us), [364, 126]);
        let shorter = [0, 1, 2, 3].map(|mode| us(DSSS[mode].time(1000)) - us(DSSS_SHORT[mode].time(1000)));
        assert_eq!(shorter, [0, 96, 96, 96]);
        assert_eq!(
            us(b.exchange(&DSSS[1], 1048)) - us(short.exchange(&DSSS_SHORT[1], 1048)),
            4 * 96
        );
    }

    #[test]
    fn a_header_of_llc_makes_data_frames_8_bytes_longer() {
        let llc = Timing {
            data_header: DATA_HEADER_BYTES + LLC_BYTES,
            ..b()
        };
        assert_eq!(us(llc.exchange(&DSSS[1], SCTP_PACKET)), 5654 + 32);
        assert_eq!(llc.ack(), b().ack());
    }

    #[test]
    fn an_exchange_takes_5654_us_and_one_hop_carries_1_415_and_1_234_mbps() {
        let exchange = |bytes| us(b().exchange(&DSSS[1], bytes));
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

    /// 802.11g-2003 §19.8.3 with the numbers of 802.11a-1999 §17: 24 bits per symbol at 6 Mb/s, 216 at 54.
    #[test]
    fn frames_and_pauses_of_802_11g_take_the_published_times() {
        let g = Timing::ofdm(OFDM[4]);
        assert_eq!([g.slot, g.sifs, g.difs, g.eifs].map(us), [9, 10, 28, 88]);
        assert_eq!([g.rts(), g.ack()].map(us), [34, 34]);
        assert_eq!(us(OFDM[0].time(ACK_BYTES)), 50);
        assert_eq!(us(g.data(&OFDM[7], 1500)), 254);
        let rates = OFDM.map(|mode| mode.half_bits / 2);
        assert_eq!(rates, [24, 36, 48, 72, 96, 144, 192, 216]);
    }

    /// Two-ray ground: power falls with the fourth power of the distance.
    #[test]
    fn fast_modes_reach_less_far() {
        let reach = |mode: &Mode| 370.0 / mode.need.sqrt().sqrt();
        assert_eq!(
            OFDM.each_ref().map(|mode| reach(mode) as u32),
            [370, 349, 311, 277, 233, 185, 147, 139]
        );
    }
}
