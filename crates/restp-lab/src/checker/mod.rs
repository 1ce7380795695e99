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
mod series;
mod side;

pub use judge::{Verdict, judge};

use crate::scenario::{Axes, Fault, Plan};
use crate::unknown::unknown;
use explanation::Explanation;
use formula::Formula;
pub(crate) use formula::coordinate;
use metric::Metric;
pub(crate) use raw::RawCheck;
use raw::{Direction, Each, Place, RawExpect, Relation};
use rows::Filter;
use serde_json::Value;
use side::Side;
use std::collections::BTreeMap;
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
    /// Validates the claims of a scenario with these axes, of which `plan` is one point.
    pub(crate) fn all(raw: Vec<RawCheck>, axes: &Axes, plan: &Plan) -> Result<Vec<Check>, Fault> {
        raw.into_iter()
            .map(|check| Check::new(check, axes, plan))
            .collect()
    }

    fn new(raw: RawCheck, axes: &Axes, plan: &Plan) -> Result<Check, Fault> {
        let keys = || axes.iter().flatten().map(String::as_str);
        let known = |written: &Spanned<String>| match keys().any(|key| key == written.get_ref()) {
            true => Ok(written.get_ref().clone()),
            false => Err(Fault::at(written, unknown("axis", written.get_ref(), keys()))),
        };
        // Several keys may change together; all of them differ along the axis.
        let axis = |written: &Spanned<String>| {
            let key = known(written)?;
            let together = axes
                .iter()
                .find(|axis| axis.contains(&key))
                .cloned()
                .unwrap_or_default();
            Ok::<_, Fault>(Axis { key, together })
        };
        let formula = |written: &Spanned<String>| {
            let formula = Formula::parse(written.get_ref()).map_err(|error| Fault::at(written, error))?;
            let stranger = formula.names().find(|name| keys().all(|key| key != *name));
            if let Some(name) = stranger {
                return Err(Fault::at(written, unknown("axis", name, keys())));
            }
            Ok(formula)
        };
        let or_zero = |written: &Option<_>| written.as_ref().map_or(Ok(Formula::Number(0.0)), formula);
        let metric =
            Metric::parse(raw.metric.get_ref(), plan).map_err(|message| Fault::at(&raw.metric, message))?;
        let filter = |written: &BTreeMap<Spanned<String>, Vec<toml::Value>>| {
            let one = |(axis, values): (&Spanned<String>, &Vec<toml::Value>)| match &values[..] {
                [] => Err(Fault::at(axis, "no point has one of no values; name some")),
                values => Ok((known(axis)?, values.iter().map(json).collect())),
            };
            written
                .iter()
                .map(one)
                .collect::<Result<Vec<_>, Fault>>()
                .map(Filter)
        };
        let mut pooled = Vec::new();
        for written in &raw.pool {
            pooled.extend(axis(written)?.together);
        }
        let expect = match raw.expect {
            RawExpect::Near(near) => Expect::Near(Near {
                formula: formula(&near.value)?,
                within: share(Some(&near.within))?,
            }),
            RawExpect::Compare(compare) => Expect::Compare(Box::new(Compare {
                axis: axis(&compare.axis)?,
                left: Side::new(&compare.left),
                relation: compare.relation,
                right: Side::new(&compare.right),
                factor: compare.factor.unwrap_or(1.0),
                plus: or_zero(&compare.plus)?,
                within: share(compare.within.as_ref())?,
                tolerance: or_zero(&compare.tolerance)?,
                each: compare.each,
                average: compare.average,
                beyond_chance: compare.beyond_chance,
            })),
            RawExpect::Premium(premium) => Expect::Premium(Box::new(Premium {
                axis: axis(&premium.axis)?,
                pair: Pair {
                    of: Side::new(&premium.of),
                    over: Side::new(&premium.over),
                },
                formula: formula(&premium.value)?,
                points: premium.points,
            })),
            RawExpect::Premiums(premiums) => Expect::Premiums(Box::new(Premiums {
                axis: axis(&premiums.axis)?,
                larger: Pair::new(&premiums.larger),
                smaller: Pair::new(&premiums.smaller),
            })),
            RawExpect::Trend(trend) => Expect::Trend(Trend {
                along: axis(&trend.along)?,
                direction: trend.direction,
                within: share(trend.within.as_ref())?,
                beyond_chance: trend.beyond_chance,
            }),
            RawExpect::Rank(rank) => Expect::Rank(Rank {
                axis: axis(&rank.axis)?,
                are: rank.are.iter().map(json).collect(),
                place: rank.place,
                average: rank.average,
                beyond_chance: rank.beyond_chance,
            }),
            RawExpect::Spread(spread) => Expect::Spread(Spread {
                axis: axis(&spread.axis)?,
                within: share(Some(&spread.within))?,
            }),
            RawExpect::Steady(steady) => Expect::Steady(share(Some(&steady.within))?),
            RawExpect::Gain(gain) => {
                let (pair, along) = (axis(&gain.axis)?, axis(&gain.along)?);
                if pair.together.contains(&along.key) {
                    let message = format!("\"{}\" is compared along itself; name another axis", along.key);
                    return Err(Fault::at(&gain.along, message));
                }
                let (of, over) = (Side::new(&gain.of), Side::new(&gain.over));
                Expect::Gain(Box::new(Gain {
                    axis: pair,
                    of,
                    over,
                    along,
                    direction: gain.direction,
                }))
            }
            RawExpect::Bound(bound) => Expect::Bound(Bound {
                relation: bound.relation,
                formula: formula(&bound.value)?,
                each: bound.each,
            }),
        };
        let is_merged = |key: &str| expect.merges(key) || pooled.iter().any(|pooled| pooled == key);
        let explanation = Explanation::read(raw.explained, &raw.explains, filter, is_merged)?;
        Ok(Check {
            id: raw.id,
            text: raw.text,
            published: raw.published,
            explanation,
            metric,
            filter: filter(&raw.filter)?,
            pooled,
            expect,
        })
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
