//! A random network, the same for the same seed: loss alone and in bursts, reordering, repeats, damage that the CRC
//! must find, outages, black holes in one direction, and delays that jump.

use super::super::common::{Rule, Verdict};
use super::BROKEN;
use restp_base::random::Stream;
use restp_base::time::{Duration, Time};

struct Direction {
    loss: f64,
    burst: f64,
    in_burst: bool,
    late: f64,
    late_us: u64,
    twice: f64,
    damage: f64,
    /// From, to: nothing passes.
    holes: Vec<(Time, Time)>,
    /// From then on everything takes this much longer.
    jump: (Time, Duration),
}

/// Judges by `seed`; damages only what a CRC protects.
pub fn rule(seed: u64, crc: bool) -> Rule {
    let mut draw = Stream::named(seed, "network");
    let both = holes(&mut draw);
    let mut directions = [0, 1].map(|_| Direction::draw(&mut draw, crc, &both));
    Box::new(move |seen| {
        let bits = 8 * seen.bytes().len() as u64;
        directions[seen.from].judge(&mut draw, seen.at, bits)
    })
}

fn some(draw: &mut Stream, most: f64) -> f64 {
    if draw.chance(0.5) { most * draw.unit() } else { 0.0 }
}

fn holes(draw: &mut Stream) -> Vec<(Time, Time)> {
    (0..draw.below(3))
        .map(|_| {
            let from = Time::ZERO + Duration::from_nanos(draw.below(BROKEN.as_nanos()));
            (from, from + Duration::from_millis(draw.below(4000)))
        })
        .collect()
}

impl Direction {
    fn draw(draw: &mut Stream, crc: bool, both: &[(Time, Time)]) -> Self {
        let mut holes = holes(draw);
        holes.extend_from_slice(both);
        Direction {
            loss: some(draw, 0.3),
            burst: some(draw, 0.05),
            in_burst: false,
            late: some(draw, 0.3),
            late_us: 1 + draw.below(200_000),
            twice: some(draw, 0.2),
            damage: if crc { some(draw, 0.2) } else { 0.0 },
            holes,
            jump: (
                Time::ZERO + Duration::from_millis(draw.below(20_000)),
                Duration::from_millis(draw.below(500)),
            ),
        }
    }

    fn judge(&mut self, draw: &mut Stream, now: Time, bits: u64) -> Verdict {
        self.in_burst = draw.chance(if self.in_burst { 0.8 } else { self.burst });
        let cut = self.holes.iter().any(|(from, to)| (*from..*to).contains(&now));
        if cut || self.in_burst || draw.chance(self.loss) {
            Verdict::Drop
        } else if draw.chance(self.damage) {
            Verdict::Flip(draw.below(bits) as usize)
        } else if draw.chance(self.twice) {
            Verdict::Twice
        } else if draw.chance(self.late) {
            Verdict::Late(Duration::from_micros(draw.below(self.late_us)))
        } else if now >= self.jump.0 {
            Verdict::Late(self.jump.1)
        } else {
            Verdict::Pass
        }
    }
}
