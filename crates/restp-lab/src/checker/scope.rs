//! What a claim may speak of: axes, and values on them that a point has.

use super::rows::{Filter, plain, same};
use super::{Axis, Formula, Side, json};
use crate::scenario::{Axes, Fault, Point};
use crate::unknown::unknown;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use toml::Spanned;

/// The axes and points of a scenario.
pub(super) struct Scope<'a> {
    pub axes: &'a Axes,
    pub points: Vec<&'a Point>,
    /// These are all points of the file.
    pub all: bool,
}

impl Scope<'_> {
    fn keys(&self) -> impl Iterator<Item = &str> {
        self.axes.iter().flatten().map(String::as_str)
    }

    fn known(&self, written: &Spanned<String>) -> Result<String, Fault> {
        match self.keys().any(|key| key == written.get_ref()) {
            true => Ok(written.get_ref().clone()),
            false => Err(Fault::at(
                written,
                unknown("axis", written.get_ref(), self.keys()),
            )),
        }
    }

    /// The same for a claim that speaks of these points only.
    pub fn within(&self, filter: &Filter) -> Self {
        let points = self
            .points
            .iter()
            .filter(|point| filter.admits(&point.coordinates));
        Scope {
            axes: self.axes,
            points: points.copied().collect(),
            all: self.all,
        }
    }

    /// An axis on which every point has a value: one without would not be judged.
    pub fn axis(&self, written: &Spanned<String>) -> Result<Axis, Fault> {
        let axis = self.keys_of(written)?;
        let has_none = |point: &&&Point| !point.coordinates.contains_key(&axis.key);
        let without = self.points.iter().filter(has_none).count();
        if self.all && without > 0 {
            let message = format!(
                "{without} of the {} points have no value of \"{}\" and would not be judged; name the others in `where`",
                self.points.len(),
                axis.key
            );
            return Err(Fault::at(written, message));
        }
        Ok(axis)
    }

    /// Several keys may change together; all of them differ along the axis.
    pub fn keys_of(&self, written: &Spanned<String>) -> Result<Axis, Fault> {
        let key = self.known(written)?;
        let axis = self.axes.iter().find(|axis| axis.contains(&key));
        let together = axis.cloned().unwrap_or_default();
        Ok(Axis { key, together })
    }

    pub fn formula(&self, written: &Spanned<String>) -> Result<Formula, Fault> {
        Formula::over(written, &self.keys().collect::<Vec<_>>())
    }

    /// A claim about what no point has would hold whatever happens.
    fn check_point(&self, axis: &Spanned<String>, value: &Value) -> Result<(), Fault> {
        let points = self.points.iter();
        let values = points.filter_map(|point| point.coordinates.get(axis.get_ref()));
        if !self.all || values.clone().any(|known| same(value, known)) {
            return Ok(());
        }
        let known: BTreeSet<String> = values.map(plain).collect();
        let known = known.iter().map(String::as_str);
        let message = unknown("point with the value", &plain(value), known);
        Err(Fault::at(axis, message))
    }

    /// Values that lie on different points are those of none.
    pub fn check_some(
        &self,
        written: &BTreeMap<Spanned<String>, Vec<toml::Value>>,
        filter: &Filter,
    ) -> Result<(), Fault> {
        let mut points = self.points.iter();
        let is_some = !self.all || points.any(|point| filter.admits(&point.coordinates));
        match written.keys().next().filter(|_| !is_some) {
            Some(key) => Err(Fault::at(
                key,
                "no point has all of these at once; name values that lie together",
            )),
            None => Ok(()),
        }
    }

    /// Values of an axis.
    pub fn values(&self, axis: &Spanned<String>, written: &[toml::Value]) -> Result<Vec<Value>, Fault> {
        let values: Vec<Value> = written.iter().map(json).collect();
        values
            .iter()
            .try_for_each(|value| self.check_point(axis, value))?;
        Ok(values)
    }

    pub fn side(&self, axis: &Spanned<String>, written: &toml::Value) -> Result<Side, Fault> {
        let side = Side::new(written);
        side.values()
            .try_for_each(|value| self.check_point(axis, value))?;
        Ok(side)
    }

    /// Two that differ: what is compared with itself comes out as it must.
    pub fn sides(
        &self,
        axis: &Spanned<String>,
        one: &toml::Value,
        other: &toml::Value,
    ) -> Result<(Side, Side), Fault> {
        let (one, other) = (self.side(axis, one)?, self.side(axis, other)?);
        if one == other {
            return Err(Fault::at(
                axis,
                format!("{one} is compared with itself; name two values"),
            ));
        }
        Ok((one, other))
    }

    pub fn filter(&self, written: &BTreeMap<Spanned<String>, Vec<toml::Value>>) -> Result<Filter, Fault> {
        let one = |(axis, values): (&Spanned<String>, &Vec<toml::Value>)| match &values[..] {
            [] => Err(Fault::at(axis, "no point has one of no values; name some")),
            values => Ok((self.known(axis)?, self.values(axis, values)?)),
        };
        written
            .iter()
            .map(one)
            .collect::<Result<Vec<_>, Fault>>()
            .map(Filter)
    }
}
