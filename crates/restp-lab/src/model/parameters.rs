use serde::Serialize;
use thiserror::Error;

/// How a sender tells losses.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Scheme {
    /// Late packets are not retransmitted: they hold the receive buffer until they come.
    Cmt,
    /// Late packets are retransmitted after three reports.
    Mfr,
    /// Late packets are retransmitted after three to five reports: more where more of the receive buffer is free.
    Amfr,
}

impl Scheme {
    /// Each of them.
    pub const ALL: [Scheme; 3] = [Scheme::Cmt, Scheme::Mfr, Scheme::Amfr];
}

/// One path and one association. [`Default`] is the published experiment (SMT §5.7, table 5.2) without losses.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Parameters {
    /// Chance that a packet is missing, `0 ..< 1`.
    pub missing: f64,
    /// Share of the missing packets that are late rather than lost, `0 ..= 1`.
    pub late: f64,
    /// Chance that a late packet is still missing after one more report, `0 ..= 1`.
    pub still_late: f64,
    /// Rounds that a late packet which is not retransmitted holds the buffer, on average, `1 ..= 1000`.
    pub blocked_rounds: f64,
    /// Propagation delay that each round has, seconds, `0 ..= 60`.
    pub delay: f64,
    /// Bits per second, `1e3 ..= 1e12`.
    pub rate: f64,
    /// Receive buffer, packets, `4 ..= 64`.
    pub buffer: u32,
}

impl Default for Parameters {
    fn default() -> Self {
        Parameters {
            missing: 0.0,
            late: 0.9,
            still_late: 0.5,
            blocked_rounds: 10.0,
            delay: 0.045,
            rate: 1e6,
            buffer: 65_536 / 1_500,
        }
    }
}

/// A parameter outside its range.
#[derive(Clone, Copy, Debug, PartialEq, Error)]
#[error("{name} is {value}, and must be {range}")]
pub struct Invalid {
    name: &'static str,
    value: f64,
    range: &'static str,
}

impl Parameters {
    /// # Errors
    /// The first parameter outside its range; none of them may be NaN.
    pub fn check(&self) -> Result<(), Invalid> {
        let unit = 0.0..=1.0;
        let checks = [
            (
                "missing",
                self.missing,
                (0.0..1.0).contains(&self.missing),
                "from 0 to less than 1",
            ),
            ("late", self.late, unit.contains(&self.late), "from 0 to 1"),
            (
                "still-late",
                self.still_late,
                unit.contains(&self.still_late),
                "from 0 to 1",
            ),
            (
                "blocked-rounds",
                self.blocked_rounds,
                (1.0..=1e3).contains(&self.blocked_rounds),
                "from 1 to 1000",
            ),
            (
                "delay",
                self.delay,
                (0.0..=60.0).contains(&self.delay),
                "from 0 to 60 s",
            ),
            (
                "rate",
                self.rate,
                (1e3..=1e12).contains(&self.rate),
                "from 1 kbit/s to 1 Tbit/s",
            ),
            (
                "buffer",
                f64::from(self.buffer),
                (4..=64).contains(&self.buffer),
                "from 4 to 64 packets",
            ),
        ];
        match checks.into_iter().find(|(_, _, holds, _)| !holds) {
            Some((name, value, _, range)) => Err(Invalid { name, value, range }),
            None => Ok(()),
        }
    }
}
