//! A figure as SVG: a curve with 95 % intervals for each value of an axis, over another axis.

use super::axis::Axis;
use super::results::plain;
use super::value::Measured;
use super::{Along, Figure, is_shown};
use crate::checker::coordinate;
use crate::run::Summary;
use serde_json::Value;
use std::fmt::Write;

const WIDTH: f64 = 760.0;
const HEIGHT: f64 = 420.0;
const LEFT: f64 = 70.0;
const RIGHT: f64 = 190.0;
const TOP: f64 = 20.0;
const BOTTOM: f64 = 54.0;
/// Told apart by people with any colour vision (Okabe, Ito 2008).
const COLOURS: [&str; 8] = [
    "#0072b2", "#d55e00", "#009e73", "#cc79a7", "#000000", "#e69f00", "#56b4e9", "#999999",
];
/// After the colours have run out, and so that curves that lie on each other are seen.
const DASHES: [&str; 3] = ["", "7 4", "2 3"];

/// A curve of more points is a line alone.
const MOST_DOTS: usize = 60;

/// One curve: its name, and points by x.
type Curve = (String, Vec<(f64, Measured)>);

impl Figure {
    /// The picture. Points without a number have no place in it.
    pub(super) fn svg(&self, summaries: &[Summary]) -> String {
        let curves = self.curves(summaries);
        let points = || curves.iter().flat_map(|(_, points)| points);
        let ends = |of: &Measured| [of.mean, of.mean + of.half.unwrap_or(0.0)];
        let x = Axis::over(
            &points().map(|(x, _)| *x).collect::<Vec<f64>>(),
            self.x_logarithmic,
        );
        let y = Axis::over(
            &points().flat_map(|(_, of)| ends(of)).collect::<Vec<f64>>(),
            self.y_logarithmic,
        );
        let mut svg = format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {HEIGHT}\" font-family=\"sans-serif\" \
             font-size=\"12\">\n<title>{}</title>\n<rect width=\"{WIDTH}\" height=\"{HEIGHT}\" fill=\"white\"/>\n",
            escaped(&self.caption)
        );
        self.frame(&mut svg, &x, &y);
        for (index, (name, points)) in curves.iter().enumerate() {
            draw(&mut svg, &Style::of(index), points, &x, &y);
            legend(&mut svg, &Style::of(index), index, name);
        }
        svg.push_str("</svg>\n");
        svg
    }

    fn curves(&self, summaries: &[Summary]) -> Vec<Curve> {
        match &self.x {
            Along::Axis(axis) => self.along(axis, summaries),
            Along::Time(bin_s) => self.over_time(*bin_s, summaries),
        }
    }

    /// A curve for each flow of each value of the series; bins lie at their middle.
    fn over_time(&self, bin_s: f64, summaries: &[Summary]) -> Vec<Curve> {
        let mut curves: Vec<Curve> = Vec::new();
        for summary in summaries.iter().filter(|summary| is_shown(&self.only, summary)) {
            let series = summary.point.get(&self.series).map_or_else(String::new, plain);
            for (flow, bins) in self.source.bins(summary) {
                let point = |(bin, mean): (usize, &f64)| {
                    let at = (bin as f64 + 0.5) * bin_s * self.x_scale;
                    let mean = mean * self.y_scale;
                    (at, Measured { mean, half: None })
                };
                let points = bins.iter().enumerate().map(point).collect();
                curves.push((format!("{flow}, {series}"), points));
            }
        }
        curves
    }

    /// Curves of what was measured, then those of formulas. Points of a curve at the same place, of further axes, are one: their mean.
    /// Values that are no numbers stand at 1, 2 and so on, in the order of the points.
    fn along(&self, axis: &String, summaries: &[Summary]) -> Vec<Curve> {
        let mut curves = Curves::default();
        let shown = || summaries.iter().filter(|summary| is_shown(&self.only, summary));
        let mut names = Vec::new();
        for value in shown().filter_map(|summary| summary.point.get(axis)) {
            if !names.contains(&value) {
                names.push(value);
            }
        }
        let place = |value: &Value| {
            let position = || Some(names.iter().position(|known| *known == value)? as f64 + 1.0);
            coordinate(value).or_else(position)
        };
        for summary in shown() {
            let at = |axis: &String| summary.point.get(axis);
            let (Some(x), Some(series)) = (at(axis).and_then(place), at(&self.series)) else {
                continue;
            };
            for (flow, of) in self.source.each(summary) {
                let name = flow.map_or_else(|| plain(series), |flow| format!("{flow}, {}", plain(series)));
                curves.add(name, x * self.x_scale, of.times(self.y_scale));
            }
        }
        for summary in shown() {
            let Some(x) = summary.point.get(axis).and_then(place) else {
                continue;
            };
            for (name, formula) in &self.formulas {
                if let Some(mean) = formula.at(&summary.point) {
                    let of = Measured { mean, half: None };
                    curves.add(name.clone(), x * self.x_scale, of.times(self.y_scale));
                }
            }
        }
        curves.means()
    }

    fn frame(&self, svg: &mut String, x: &Axis, y: &Axis) {
        let (bottom, right) = (HEIGHT - BOTTOM, WIDTH - RIGHT);
        for mark in &x.marks {
            let at = across(x, *mark);
            line(svg, [at, TOP, at, bottom], "stroke=\"#dddddd\"");
            text(
                svg,
                [at, bottom + 18.0],
                "text-anchor=\"middle\"",
                &x.label(*mark),
            );
        }
        for mark in &y.marks {
            let at = up(y, *mark);
            line(svg, [LEFT, at, right, at], "stroke=\"#dddddd\"");
            text(
                svg,
                [LEFT - 8.0, at + 4.0],
                "text-anchor=\"end\"",
                &y.label(*mark),
            );
        }
        line(svg, [LEFT, bottom, right, bottom], "stroke=\"black\"");
        line(svg, [LEFT, TOP, LEFT, bottom], "stroke=\"black\"");
        let middle = [(LEFT + right) / 2.0, HEIGHT - 12.0];
        text(svg, middle, "text-anchor=\"middle\"", &self.x_label);
        let half = (TOP + bottom) / 2.0;
        let turned = format!("text-anchor=\"middle\" transform=\"rotate(-90 16 {half:.1})\"");
        text(svg, [16.0, half], &turned, &self.y_label);
    }
}

/// All that was measured at each place of a curve.
type Places = Vec<(f64, Vec<Measured>)>;

/// Curves in the order in which their names come.
#[derive(Default)]
struct Curves(Vec<(String, Places)>);

impl Curves {
    fn add(&mut self, name: String, x: f64, of: Measured) {
        let known = self.0.iter().position(|(known, _)| *known == name);
        let curve = known.unwrap_or_else(|| {
            self.0.push((name, Vec::new()));
            self.0.len() - 1
        });
        let points = &mut self.0[curve].1;
        match points.iter_mut().find(|(at, _)| *at == x) {
            Some((_, here)) => here.push(of),
            None => points.push((x, vec![of])),
        }
    }

    fn means(self) -> Vec<Curve> {
        let curve = |(name, points): (String, Places)| {
            let means = points.into_iter().map(|(x, here)| (x, Measured::mean_of(&here)));
            (name, means.collect())
        };
        self.0.into_iter().map(curve).collect()
    }
}

struct Style {
    colour: &'static str,
    dash: String,
}

impl Style {
    fn of(index: usize) -> Style {
        let dash = DASHES[index % DASHES.len()];
        Style {
            colour: COLOURS[index % COLOURS.len()],
            dash: if dash.is_empty() {
                String::new()
            } else {
                format!(" stroke-dasharray=\"{dash}\"")
            },
        }
    }
}

fn draw(svg: &mut String, style: &Style, points: &[(f64, Measured)], x: &Axis, y: &Axis) {
    let placed: Vec<&(f64, Measured)> = points
        .iter()
        .filter(|(at, of)| x.holds(*at) && y.holds(of.mean))
        .collect();
    let path: Vec<String> = placed
        .iter()
        .map(|(at, of)| format!("{:.1},{:.1}", across(x, *at), up(y, of.mean)))
        .collect();
    let Style { colour, dash } = style;
    // Writing into a string cannot fail.
    let _ = writeln!(
        svg,
        "<polyline points=\"{}\" fill=\"none\" stroke=\"{colour}\" stroke-width=\"1.8\"{dash}/>",
        path.join(" ")
    );
    if placed.len() > MOST_DOTS {
        return;
    }
    for (at, of) in placed {
        let at = across(x, *at);
        if let Some(half) = of.half {
            let (low, high) = (up(y, of.mean - half), up(y, of.mean + half));
            line(svg, [at, low, at, high], &format!("stroke=\"{colour}\""));
        }
        let _ = writeln!(
            svg,
            "<circle cx=\"{at:.1}\" cy=\"{:.1}\" r=\"3\" fill=\"{colour}\"/>",
            up(y, of.mean)
        );
    }
}

fn legend(svg: &mut String, style: &Style, index: usize, name: &str) {
    let (left, at) = (WIDTH - RIGHT + 14.0, TOP + 10.0 + 20.0 * index as f64);
    let stroke = format!("stroke=\"{}\" stroke-width=\"1.8\"{}", style.colour, style.dash);
    line(svg, [left, at, left + 26.0, at], &stroke);
    text(svg, [left + 33.0, at + 4.0], "", name);
}

fn across(axis: &Axis, value: f64) -> f64 {
    LEFT + axis.place(value) * (WIDTH - LEFT - RIGHT)
}

fn up(axis: &Axis, value: f64) -> f64 {
    HEIGHT - BOTTOM - axis.place(value) * (HEIGHT - TOP - BOTTOM)
}

fn line(svg: &mut String, [x1, y1, x2, y2]: [f64; 4], stroke: &str) {
    let _ = writeln!(
        svg,
        "<line x1=\"{x1:.1}\" y1=\"{y1:.1}\" x2=\"{x2:.1}\" y2=\"{y2:.1}\" {stroke}/>"
    );
}

fn text(svg: &mut String, [x, y]: [f64; 2], how: &str, words: &str) {
    let _ = writeln!(
        svg,
        "<text x=\"{x:.1}\" y=\"{y:.1}\" {how}>{}</text>",
        escaped(words)
    );
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
}
