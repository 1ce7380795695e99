//! What a sender can have measured at most, from the acknowledgements that reach it: its shortest round trip, and the
//! bandwidth that Westwood estimates (MobiCom 2001; Grieco, Mascolo 2004). It errs upwards only.

use restp_base::time::{Duration, Time};

/// Upper bounds of what one sender has measured.
#[derive(Clone, Debug)]
pub struct Measured {
    began: Time,
    /// How far the sender's clock has leapt since.
    leapt: Duration,
    shortest: Option<Duration>,
    /// When acknowledgements came last, and the bytes they may stand for; and the same of the time before.
    instants: [Option<(Time, u64)>; 2],
    /// Bytes per second.
    fastest: f64,
    /// Bytes of one instant.
    most: u64,
}

impl Measured {
    /// A connection begins.
    pub fn new(began: Time) -> Self {
        Measured {
            began,
            leapt: Duration::ZERO,
            shortest: None,
            instants: [None; 2],
            fastest: 0.0,
            most: 0,
        }
    }

    /// The sender's clock leaps: nothing that it measures is longer than its connection has lasted by that clock.
    pub fn leap(&mut self, by: Duration) {
        self.leapt += by;
    }

    /// An acknowledgement stands for so many bytes at most. `rtt`: the longest round trip that it can have measured, where
    /// it surely measured one.
    pub fn on_ack(&mut self, at: Time, bytes: u64, rtt: Option<Duration>) {
        let lasted = at.since(self.began) + self.leapt;
        let known = self.shortest.unwrap_or(lasted);
        self.shortest = rtt.map(|rtt| rtt.min(known)).or(self.shortest);
        match &mut self.instants[0] {
            Some((last, here)) if *last == at => *here += bytes,
            last => {
                let before = last.replace((at, bytes));
                self.instants[1] = before;
            }
        }
        let [Some((_, here)), before] = self.instants else {
            return;
        };
        self.most = self.most.max(here);
        if let Some((since, earlier)) = before {
            // What comes at one moment is part of the sample before or of the one after.
            let rate = (earlier + here) as f64 * 1e9 / at.since(since).as_nanos().max(1) as f64;
            self.fastest = self.fastest.max(rate);
        }
    }

    /// The shortest round trip, at most.
    pub fn shortest(&self, at: Time) -> Duration {
        self.shortest.unwrap_or(at.since(self.began) + self.leapt)
    }

    /// Bandwidth times shortest round trip, at most: an estimate is a mean of samples, and no sample is faster than the
    /// fastest stretch between two acknowledgements, apart from what came at its first moment.
    pub fn product(&self, at: Time) -> u64 {
        let carried = self.fastest * self.shortest(at).as_nanos() as f64 / 1e9;
        (carried as u64).saturating_add(self.most)
    }
}
