//! Claims of a scenario, `[[check]]`, held against its results after the last run.
//!
//! | `expect` | Claims about the metric | Verdicts |
//! |---|---|---|
//! | `near` | at each point its mean lies within a tolerance of a formula over the point's coordinates | one per point |
//! | `compare` | for two values of one axis, all else equal, one is at least, at most or equal to the other | one per pair |
//! | `bound` | at each point it is at least, at most or equal to a formula | one per point |
//! | `trend` | its mean rises or falls along one axis, all else equal | one per row |
//! | `rank` | for some values of one axis it is above or below that for all others, all else equal | one per row, or one |
//! | `spread` | over one axis it differs by no more than a share, all else equal | one per row |
//! | `steady` | at each point its runs deviate from their mean by a share of it at most | one per point |
//! | `premium` | one value of an axis has so many percent more than another, all else equal | one per pair |
//! | `premiums` | so does one pair in comparison with another | one per set of both pairs |
//! | `gain` | the share that one value of an axis saves of another rises or falls along a second axis, all else equal | one per row |

mod explanation;
mod formula;
mod gain;
mod judge;
mod metric;
mod order;
mod premium;
mod raw;
mod rows;
mod scope;
mod series;
mod side;

pub use judge::{Outcome, Tally, Verdict, judge};

use crate::scenario::{Axes, Fault, Point};
use explanation::Explanation;
pub(crate) use formula::{Formula, coordinate};
use metric::Metric;
pub(crate) use raw::RawCheck;
use raw::{Direction, Each, Place, RawCompare, RawExpect, RawGain, RawPair, Relation};
use rows::Filter;
use scope::Scope;
use serde_json::Value;
use side::Side;
use toml::Spanned;

/// One claim.
#[derive(Clone, Debug)]
pub struct Check {
    /// Short name, such as `E7.1`.
    pub id: String,
    /// The claim in words.
    pub text: String,
    /// What was published, in words.
    published: Option<String>,
    /// Why it does not hold at some points, where that is known.
    explanation: Option<Explanation>,
    metric: Metric,
    /// Which points it speaks of.
    filter: Filter,
    /// Keys of axes that do not tell points apart.
    pooled: Vec<String>,
    expect: Expect,
}

#[derive(Clone, Debug)]
enum Expect {
    Near(Near),
    Compare(Box<Compare>),
    Trend(Trend),
    Bound(Bound),
    Rank(Rank),
    Spread(Spread),
    Premium(Box<Premium>),
    Premiums(Box<Premiums>),
    Gain(Box<Gain>),
    /// The standard deviation over runs, as a share of the mean.
    Steady(f64),
}

impl Expect {
    /// Does a verdict put points together that differ in `key`?
    fn merges(&self, key: &str) -> bool {
        let axes: &[&Axis] = match self {
            Expect::Near(_) | Expect::Bound(_) | Expect::Steady(_) => &[],
            Expect::Compare(compare) => &[&compare.axis],
            Expect::Trend(trend) => &[&trend.along],
            Expect::Rank(rank) => &[&rank.axis],
            Expect::Spread(spread) => &[&spread.axis],
            Expect::Premium(premium) => &[&premium.axis],
            Expect::Premiums(premiums) => &[&premiums.axis],
            Expect::Gain(gain) => &[&gain.axis, &gain.along],
        };
        axes.iter().any(|axis| axis.together.iter().any(|own| own == key))
    }
}

#[derive(Clone, Debug)]
struct Near {
    formula: Formula,
    within: f64,
}

#[derive(Clone, Debug)]
struct Compare {
    axis: Axis,
    left: Side,
    relation: Relation,
    right: Side,
    factor: f64,
    /// Added to the right side.
    plus: Formula,
    /// How far the right side may be off: a share of it, and an amount.
    within: f64,
    tolerance: Formula,
    each: Each,
    /// Over all points at once.
    average: bool,
    /// What chance explains does not count.
    beyond_chance: bool,
}

#[derive(Clone, Debug)]
struct Bound {
    relation: Relation,
    formula: Formula,
    each: Each,
}

#[derive(Clone, Debug)]
struct Trend {
    along: Axis,
    direction: Direction,
    within: f64,
    /// Steps the other way that chance explains do not count.
    beyond_chance: bool,
}

#[derive(Clone, Debug)]
struct Rank {
    axis: Axis,
    /// The values that claim the place.
    are: Vec<Value>,
    place: Place,
    /// Over all points at once, instead of row by row.
    average: bool,
    /// The distance to the next must be more than chance explains.
    beyond_chance: bool,
}

#[derive(Clone, Debug)]
struct Spread {
    axis: Axis,
    within: f64,
}

/// `of / over - 1` in percent.
#[derive(Clone, Debug)]
struct Pair {
    of: Side,
    over: Side,
}

/// What it is for values of `axis`, and by how many points it may be off.
#[derive(Clone, Debug)]
struct Premium {
    axis: Axis,
    pair: Pair,
    formula: Formula,
    points: f64,
}

/// That of one pair is at least that of another, all of them values of `axis`.
#[derive(Clone, Debug)]
struct Premiums {
    axis: Axis,
    larger: Pair,
    smaller: Pair,
}

/// `1 - of / over`, both values of `axis`.
#[derive(Clone, Debug)]
struct Gain {
    axis: Axis,
    of: Side,
    over: Side,
    along: Axis,
    direction: Direction,
}

/// One axis by one of its keys.
#[derive(Clone, Debug)]
struct Axis {
    key: String,
    /// All keys that change with it, its own among them.
    together: Vec<String>,
}

impl Check {
    /// Validates the claims of a scenario with these axes and points. Where they are `all` points of the file, each value that a
    /// claim names has to be one of theirs; where settings took some of them away, a claim may speak of those.
    pub(crate) fn all(
        raw: Vec<RawCheck>,
        axes: &Axes,
        points: &[Point],
        all: bool,
    ) -> Result<Vec<Check>, Fault> {
        let points = points.iter().collect();
        let scope = Scope { axes, points, all };
        raw.into_iter().map(|check| Check::new(check, &scope)).collect()
    }

    fn new(raw: RawCheck, scope: &Scope<'_>) -> Result<Check, Fault> {
        let metric = Metric::parse(raw.metric.get_ref(), &scope.points[0].plan)
            .map_err(|message| Fault::at(&raw.metric, message))?;
        let mut pooled = Vec::new();
        for written in &raw.pool {
            pooled.extend(scope.keys_of(written)?.together);
        }
        let concerned = scope.filter(&raw.filter)?;
        scope.check_some(&raw.filter, &concerned)?;
        let scope = &scope.within(&concerned);
        let expect = Expect::new(raw.expect, scope)?;
        let is_merged = |key: &str| expect.merges(key) || pooled.iter().any(|pooled| pooled == key);
        let filter = |written: &_| match scope.filter(written) {
            Err(_) if !scope.all => Ok(None), // settings took an axis away, or values of it
            other => other.map(Some),
        };
        let explanation = Explanation::read(raw.explained, &raw.explains, filter, is_merged)?;
        Ok(Check {
            id: raw.id,
            text: raw.text,
            published: raw.published,
            explanation,
            metric,
            filter: concerned,
            pooled,
            expect,
        })
    }
}

impl Expect {
    fn new(raw: RawExpect, scope: &Scope<'_>) -> Result<Self, Fault> {
        Ok(match raw {
            RawExpect::Near(near) => Expect::Near(Near {
                formula: scope.formula(&near.value)?,
                within: share(Some(&near.within))?,
            }),
            RawExpect::Compare(compare) => Expect::Compare(Box::new(Compare::new(&compare, scope)?)),
            RawExpect::Premium(premium) => Expect::Premium(Box::new(Premium {
                axis: scope.axis(&premium.axis)?,
                pair: Pair::new(&premium.axis, &premium.of, &premium.over, scope)?,
                formula: scope.formula(&premium.value)?,
                points: premium.points,
            })),
            RawExpect::Premiums(premiums) => {
                let pair = |pair: &RawPair| Pair::new(&premiums.axis, &pair.of, &pair.over, scope);
                Expect::Premiums(Box::new(Premiums {
                    axis: scope.axis(&premiums.axis)?,
                    larger: pair(&premiums.larger)?,
                    smaller: pair(&premiums.smaller)?,
                }))
            }
            RawExpect::Trend(trend) => Expect::Trend(Trend {
                along: scope.axis(&trend.along)?,
                direction: trend.direction,
                within: share(trend.within.as_ref())?,
                beyond_chance: trend.beyond_chance,
            }),
            RawExpect::Rank(rank) => Expect::Rank(Rank {
                axis: scope.axis(&rank.axis)?,
                are: scope.values(&rank.axis, &rank.are)?,
                place: rank.place,
                average: rank.average,
                beyond_chance: rank.beyond_chance,
            }),
            RawExpect::Spread(spread) => Expect::Spread(Spread {
                axis: scope.axis(&spread.axis)?,
                within: share(Some(&spread.within))?,
            }),
            RawExpect::Steady(steady) => Expect::Steady(share(Some(&steady.within))?),
            RawExpect::Gain(gain) => Expect::Gain(Box::new(Gain::new(&gain, scope)?)),
            RawExpect::Bound(bound) => Expect::Bound(Bound {
                relation: bound.relation,
                formula: scope.formula(&bound.value)?,
                each: bound.each,
            }),
        })
    }
}

impl Compare {
    fn new(raw: &RawCompare, scope: &Scope<'_>) -> Result<Self, Fault> {
        let or_zero = |written: &Option<_>| {
            let written = written.as_ref();
            written.map_or(Ok(Formula::Number(0.0)), |written| scope.formula(written))
        };
        let factor = raw.factor.unwrap_or(1.0);
        let (left, right) = if factor == 1.0 && raw.plus.is_none() {
            scope.sides(&raw.axis, &raw.left, &raw.right)?
        } else {
            (
                scope.side(&raw.axis, &raw.left)?,
                scope.side(&raw.axis, &raw.right)?,
            )
        };
        Ok(Compare {
            axis: scope.axis(&raw.axis)?,
            left,
            relation: raw.relation,
            right,
            factor,
            plus: or_zero(&raw.plus)?,
            within: share(raw.within.as_ref())?,
            tolerance: or_zero(&raw.tolerance)?,
            each: raw.each,
            average: raw.average,
            beyond_chance: raw.beyond_chance,
        })
    }
}

impl Gain {
    fn new(raw: &RawGain, scope: &Scope<'_>) -> Result<Self, Fault> {
        let (axis, along) = (scope.axis(&raw.axis)?, scope.axis(&raw.along)?);
        if axis.together.contains(&along.key) {
            let message = format!("\"{}\" is compared along itself; name another axis", along.key);
            return Err(Fault::at(&raw.along, message));
        }
        let (of, over) = scope.sides(&raw.axis, &raw.of, &raw.over)?;
        Ok(Gain {
            axis,
            of,
            over,
            along,
            direction: raw.direction,
        })
    }
}

impl Pair {
    fn new(
        axis: &Spanned<String>,
        of: &toml::Value,
        over: &toml::Value,
        scope: &Scope<'_>,
    ) -> Result<Self, Fault> {
        let (of, over) = scope.sides(axis, of, over)?;
        Ok(Pair { of, over })
    }
}

/// Reads `"1 %"`; absent is zero.
fn share(written: Option<&Spanned<String>>) -> Result<f64, Fault> {
    let Some(written) = written else { return Ok(0.0) };
    let text = written.get_ref();
    let number = text
        .strip_suffix('%')
        .and_then(|number| number.trim().parse::<f64>().ok());
    match number.filter(|number| (0.0..=1000.0).contains(number)) {
        Some(number) => Ok(number / 100.0),
        None => Err(Fault::at(
            written,
            format!("\"{text}\" is not a tolerance; write a share such as \"1 %\""),
        )),
    }
}

fn json(value: &toml::Value) -> Value {
    serde_json::to_value(value).unwrap_or(Value::Null)
}
