//! Lists of values become points: the cartesian product, each point a whole scenario of its own.

use super::document::{Document, Source, Value};
use super::error::ScenarioError;
use super::plan::Plan;
use restp_sim::config::Fault;
use serde_json::Map;
use std::collections::BTreeSet;
use std::path::Path;
use toml::Spanned;
use toml::de::DeValue;

/// Where a point lies: dotted key to value, in the order of the axes.
pub type Coordinates = Map<String, serde_json::Value>;

/// One point of a sweep.
#[derive(Clone, Debug)]
pub struct Point {
    /// Where it lies.
    pub coordinates: Coordinates,
    /// What runs there.
    pub plan: Plan,
}

/// One key and the values it takes.
struct Axis<'t> {
    key: Spanned<String>,
    values: Vec<Value<'t>>,
}

/// The most points of one sweep.
const MOST_POINTS: usize = 10_000;

/// The coordinates of each axis: one key, or several where its values are tables.
pub(crate) type Axes = Vec<Vec<String>>;

pub(crate) fn points(source: Source<'_>, dir: &Path) -> Result<(Vec<Point>, Axes), ScenarioError> {
    let mut base = source.parse()?;
    let axes = match base.check_top().and_then(|()| axes(&mut base, source)) {
        Ok(axes) => axes,
        Err(fault) => return Err(base.explain(fault)),
    };
    let mut open = vec![(base, Coordinates::new())];
    for axis in &axes {
        let mut next = Vec::with_capacity(open.len() * axis.values.len());
        for (document, coordinates) in &open {
            for value in &axis.values {
                let mut document = document.clone();
                if let Err(fault) = document.replace(&axis.key, value) {
                    return Err(document.explain(fault));
                }
                let mut coordinates = coordinates.clone();
                place(&mut coordinates, axis.key.get_ref(), value);
                next.push((document, coordinates));
            }
        }
        open = next;
    }
    // What a setting has taken the place of makes no further points.
    let mut seen = BTreeSet::new();
    open.retain(|(_, coordinates)| seen.insert(serde_json::Value::from(coordinates.clone()).to_string()));
    let plan = |(document, coordinates): (Document<'_>, Coordinates)| match Plan::new(&document, dir) {
        Ok(plan) => Ok(Point { coordinates, plan }),
        Err(fault) => Err(document.explain(fault)),
    };
    let points = open.into_iter().map(plan).collect::<Result<_, _>>()?;
    Ok((points, axes.iter().map(Axis::coordinates).collect()))
}

impl Axis<'_> {
    fn element(&self) -> impl Iterator<Item = &str> {
        self.key.get_ref().split('.').take(2)
    }

    fn coordinates(&self) -> Vec<String> {
        let mut all = Coordinates::new();
        self.values
            .iter()
            .for_each(|value| place(&mut all, self.key.get_ref(), value));
        all.keys().cloned().collect()
    }
}

/// The axes in the order written, then the settings; a setting takes the place of an axis with its key.
fn axes<'t>(base: &mut Document<'t>, source: Source<'t>) -> Result<Vec<Axis<'t>>, Fault> {
    let mut axes: Vec<Axis<'t>> = Vec::new();
    if let Some(sweep) = base.take("sweep") {
        flatten(&sweep, String::new(), &mut axes)?;
        axes.sort_by_key(|axis| axis.key.span().start);
    }
    for i in 0..source.settings.len() {
        let (key, value) = source.setting(i);
        let values = match value.get_ref() {
            DeValue::Array(values) => values.iter().cloned().collect(),
            _ => vec![value],
        };
        axes.retain(|axis| axis.key.get_ref() != key.get_ref());
        axes.push(Axis { key, values });
    }
    check_independent(base, &axes, source.settings.len())?;
    let mut count = 1usize;
    for axis in &axes {
        count = count.saturating_mul(axis.values.len());
        if axis.values.is_empty() {
            return Err(Fault::at(
                &axis.key,
                "an axis without values leaves no point; write at least one",
            ));
        }
        if count > MOST_POINTS {
            let sentence =
                format!("the sweep has {count} points or more; at most {MOST_POINTS} are possible");
            return Err(Fault::at(&axis.key, sentence));
        }
        let values: Vec<serde_json::Value> = axis.values.iter().map(json).collect();
        if let Some(i) = (1..values.len()).find(|i| values[..*i].contains(&values[*i])) {
            return Err(Fault::at(
                &axis.values[i],
                "this value of the axis is there already: two points would be one",
            ));
        }
    }
    Ok(axes)
}

/// Of two axes that write the same key the later one wins at every point, and points of the other differ in name only. A setting, one of
/// the last `settings`, may do that to an axis of the same element: it takes the place in the names as well.
fn check_independent<'t>(base: &Document<'t>, axes: &[Axis<'t>], settings: usize) -> Result<(), Fault> {
    let written = |axis: &Axis<'t>| base.written(axis.key.get_ref(), &axis.values);
    let written: Vec<_> = axes.iter().map(written).collect();
    let same = |a: &Vec<String>, b: &Vec<String>| a.starts_with(b) || b.starts_with(a);
    for (i, later) in axes.iter().enumerate() {
        let is_setting = i >= axes.len() - settings;
        for (earlier, keys) in axes.iter().zip(&written[..i]) {
            let gives_way = is_setting && earlier.element().eq(later.element());
            let both = written[i]
                .iter()
                .find(|key| keys.iter().any(|other| same(key, other)));
            if let Some(key) = both.filter(|_| earlier.values.len() > 1 && !gives_way) {
                let message = format!(
                    "this would set \"{}\" at every point, and so does the sweep over \"{}\"; leave it to one of them",
                    key.join("."),
                    earlier.key.get_ref()
                );
                return Err(Fault::at(&later.key, message));
            }
        }
    }
    Ok(())
}

/// Finds the lists below `[sweep]`; keys may be written with quotes ("link.a.rate") or without (link.a.rate).
fn flatten<'t>(value: &Value<'t>, path: String, axes: &mut Vec<Axis<'t>>) -> Result<(), Fault> {
    let DeValue::Table(table) = value.get_ref() else {
        return Err(Fault::at(
            value,
            "[sweep] is a table of lists, such as \"flow.a.transport\" = [\"udp\"]",
        ));
    };
    for (key, value) in table {
        let path = if path.is_empty() {
            key.get_ref().to_string()
        } else {
            format!("{path}.{}", key.get_ref())
        };
        match value.get_ref() {
            DeValue::Array(values) => {
                axes.push(Axis {
                    key: Spanned::new(key.span(), path),
                    values: values.iter().cloned().collect(),
                });
            }
            DeValue::Table(_) => flatten(value, path, axes)?,
            _ => {
                return Err(Fault::at(
                    value,
                    "an axis is a list of values; write [ ] around it",
                ));
            }
        }
    }
    Ok(())
}

/// Notes where the point lies; a table sets several keys at once, each a coordinate.
fn place(coordinates: &mut Coordinates, key: &str, value: &Value<'_>) {
    match value.get_ref() {
        DeValue::Table(fields) => {
            for (name, field) in fields {
                place(coordinates, &format!("{key}.{}", name.get_ref()), field);
            }
        }
        _ => {
            coordinates.insert(key.to_owned(), json(value));
        }
    }
}

fn json(value: &Value<'_>) -> serde_json::Value {
    match value.get_ref() {
        DeValue::String(text) => text.as_ref().into(),
        DeValue::Boolean(flag) => (*flag).into(),
        DeValue::Array(elements) => elements.iter().map(json).collect(),
        DeValue::Table(fields) => {
            let fields = fields
                .iter()
                .map(|(key, value)| (key.get_ref().to_string(), json(value)));
            serde_json::Value::Object(fields.collect())
        }
        DeValue::Integer(number) => match i64::from_str_radix(number.as_str(), number.radix()) {
            Ok(number) => number.into(),
            Err(_) => number.to_string().into(),
        },
        DeValue::Float(number) => match number.as_str().parse::<f64>() {
            Ok(number) => number.into(),
            Err(_) => number.as_str().into(),
        },
        DeValue::Datetime(stamp) => stamp.to_string().into(),
    }
}
