//! Claims about the share that one alternative saves of another, `1 - of / over`, from one value of an axis to the next.

use super::rows::Row;
use super::{Check, Gain, Verdict};
use crate::checker::coordinate;
use crate::scenario::Coordinates;

/// The share saved at one value of the axis it changes along.
struct Step {
    at: f64,
    saved: f64,
}

/// Those of one row; none where one of them is not known, which may be the one that goes against the claim.
type Steps = Option<Vec<Step>>;

impl Check {
    /// `rows` are pairs: all else equal, `of` and `over`. The step that goes most against the claim is the one reported.
    pub(super) fn gain(&self, gain: &Gain, rows: &[Row<'_>]) -> Vec<Verdict> {
        let mut all: Vec<(Coordinates, Steps)> = Vec::new();
        for row in rows {
            let at = row.rest.get(&gain.along.key).and_then(coordinate);
            let mut rest = row.rest.clone();
            rest.retain(|key, _| !gain.along.together.contains(key));
            let index = all
                .iter()
                .position(|(known, _)| *known == rest)
                .unwrap_or_else(|| {
                    all.push((rest, Some(Vec::new())));
                    all.len() - 1
                });
            let step = at
                .zip(self.saved(gain, row))
                .map(|(at, saved)| Step { at, saved });
            let steps = all[index].1.take().zip(step);
            all[index].1 = steps.map(|(mut steps, step)| {
                steps.push(step);
                steps
            });
        }
        all.into_iter()
            .map(|(rest, steps)| self.course(gain, rest, steps.unwrap_or_default()))
            .collect()
    }

    fn saved(&self, gain: &Gain, row: &Row<'_>) -> Option<f64> {
        let (of, over) = (
            self.of_side(&gain.of, row)?.mean,
            self.of_side(&gain.over, row)?.mean,
        );
        (over != 0.0).then(|| 1.0 - of / over)
    }

    fn course(&self, gain: &Gain, rest: Coordinates, mut steps: Vec<Step>) -> Verdict {
        steps.sort_by(|a, b| a.at.total_cmp(&b.at));
        let (word, sign) = (gain.direction.verb(), gain.direction.sign());
        let onward = |pair: &[Step]| sign * (pair[1].saved - pair[0].saved);
        let worst = steps.windows(2).min_by(|a, b| onward(a).total_cmp(&onward(b)));
        let (of, over) = (&gain.of, &gain.over);
        let claim = format!(
            "{}: what {of} saves of {over} {word} with {}",
            self.metric(),
            gain.along.key
        );
        Verdict {
            expected: worst.map(|pair| pair[0].saved),
            measured: worst.map(|pair| pair[1].saved),
            held: worst.map(|pair| onward(pair) >= 0.0),
            ..self.open(rest, claim)
        }
    }
}
