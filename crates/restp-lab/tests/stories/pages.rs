//! Pages of experiments: the same results give the same bytes, and what stands on them is what was measured.

use crate::common::lines;
use restp_lab::page::File;
use restp_lab::{Line, Options, Scenario};

const SCENARIO: &str = r#"
id = "page"
title = "A page"
duration = "1 s"
runs = 3
[[link]]
name = "wire"
between = ["a", "b"]
rate = "10 Mbit/s"
delay = "1 ms"
loss = { rate = 0.1, unit = "packet" }
[[flow]]
name = "cbr"
from = "a"
to = "b"
transport = "udp"
traffic = { cbr = { interval = "10 ms", bytes = 1000 } }
[sweep]
"link.wire.loss.rate" = [0, 0.01, 0.5]
"link.wire.delay" = ["1 ms", "2 ms"]
[[check]]
id = "1"
text = "All arrive"
published = "100"
explained = "Half of them are lost."
explains = [{ where = { "link.wire.loss.rate" = [0.5] }, between = [20, 80] }]
metric = "flow.cbr.delivered_messages"
where = { "link.wire.loss.rate" = [0, 0.5] }
expect = { bound = { relation = "at_least", value = "100" } }
[page]
introduction = "Words."
remarks = "More words."
columns = [{ heading = "delivered", metric = "flow.cbr.delivered_messages", digits = 1 }]
[page.only]
"link.wire.delay" = ["1 ms"]
[[page.figure]]
name = "delivered"
caption = "Delivered & lost"
x = "link.wire.loss.rate"
series = "link.wire.delay"
metric = "flow.cbr.delivered_messages"
x_label = "loss"
y_label = "messages"
x_logarithmic = true
"#;

fn files() -> Vec<File> {
    files_of(SCENARIO)
}

fn files_of(scenario: &str) -> Vec<File> {
    let scenario = Scenario::parse(scenario).unwrap_or_else(|error| panic!("{error}"));
    let (mut summaries, mut verdicts) = (Vec::new(), Vec::new());
    for line in lines(&scenario, &Options::DEFAULT) {
        match line {
            Line::Run(_) => {}
            Line::Summary(summary) => summaries.push(summary),
            Line::Verdict(verdict) => verdicts.push(verdict),
        }
    }
    let page = scenario.page().expect("a page");
    page.files("page", "restp reproduce page", &summaries, &verdicts)
}

#[test]
fn a_page_has_claims_results_and_figures() {
    let files = files();
    let names: Vec<&str> = files.iter().map(|file| file.name.as_str()).collect();
    assert_eq!(names, ["page.md", "page-delivered.svg"]);
    let page = &files[0].text;
    for part in [
        "# PAGE\n\nWords.\n",
        "```\nrestp reproduce page\n```",
        "![Delivered & lost](page-delivered.svg)",
        "| claim | at | says | published | expected | measured | verdict |",
        "| 1 | 0, 1 ms | All arrive | 100 | 100 | 100 | holds |",
        "**fails** |",
        "**1 does not hold.** Half of them are lost.",
        "## Remarks\n\nMore words.",
        "Of 6 points 3 are shown.",
        "| 0 | 1 ms | 100.0 ± 0.0 | 3 |",
    ] {
        assert!(page.contains(part), "no {part:?} in:\n{page}");
    }
    assert_eq!(page.matches("does not hold").count(), 1, "each reason once");
}

#[test]
fn a_figure_over_time_has_a_curve_for_each_flow_of_each_value() {
    let over_time = |bins: &str| {
        let text = SCENARIO
            .replacen("x = \"link.wire.loss.rate\"", "x = \"time\"", 1)
            .replacen(
                "metric = \"flow.cbr.delivered_messages\"\nx_label",
                "metric = \"flow.*.bins_bps\"\nx_label",
                1,
            )
            .replacen("x_logarithmic = true", "", 1)
            .replacen("transport = \"udp\"", &format!("transport = \"udp\"\n{bins}"), 1);
        Scenario::parse(&text).map(|_| text)
    };
    let text = over_time("bins = \"100 ms\"").unwrap_or_else(|error| panic!("{error}"));
    let svg = &files_of(&text)[1].text;
    assert_eq!(
        svg.matches("<polyline").count(),
        6,
        "a curve for each point of the sweep"
    );
    assert_eq!(svg.matches("<circle").count(), 60, "ten bins each");
    assert!(svg.contains(">cbr, 1 ms<"), "{svg}");
    let error = over_time("").expect_err("there are none").to_string();
    assert!(error.contains("only bins lie along time"), "{error}");
}

/// The curves of the figure of `SCENARIO` with `more` for its metric, and how many points each has.
fn curves(more: &str, along: &str) -> Vec<(String, usize)> {
    let text = SCENARIO
        .replacen(
            "metric = \"flow.cbr.delivered_messages\"\nx_label",
            &format!("{more}\nx_label"),
            1,
        )
        .replacen(
            "x = \"link.wire.loss.rate\"\nseries = \"link.wire.delay\"",
            along,
            1,
        )
        .replacen("x_logarithmic = true", "", 1);
    let svg = &files_of(&text)[1].text;
    let legend = svg.lines().filter(|line| line.starts_with("<text x=\"617.0\""));
    let name = |line: &str| line.split(['<', '>']).nth(2).map(str::to_owned);
    let names: Vec<String> = legend.filter_map(name).collect();
    let dots = svg
        .split("<polyline")
        .skip(1)
        .map(|curve| curve.matches("<circle").count());
    names.into_iter().zip(dots).collect()
}

#[test]
fn a_figure_has_a_curve_for_each_flow_and_each_formula_and_means_over_other_axes() {
    let formula = "formulas = { expected = \"100 * (1 - {link.wire.loss.rate})\" }";
    let found = curves(
        &format!("metric = \"flow.*.delivered_messages\"\n{formula}"),
        "x = \"link.wire.loss.rate\"\nseries = \"link.wire.delay\"",
    );
    let expected = [("cbr, 1 ms", 3), ("cbr, 2 ms", 3), ("expected", 3)];
    assert_eq!(found, expected.map(|(name, dots)| (name.to_owned(), dots)));
    let over_itself = "x = \"link.wire.delay\"\nseries = \"link.wire.delay\"";
    let found = curves("metric = \"flow.cbr.delivered_messages\"", over_itself);
    assert_eq!(
        found,
        [("1 ms".to_owned(), 1), ("2 ms".to_owned(), 1)],
        "one point for three rates of loss"
    );
    let error = Scenario::parse(&SCENARIO.replacen(
        "x_logarithmic = true",
        "formulas = { expected = \"{link.wire.rate}\" }",
        1,
    ));
    let error = error.expect_err("no axis").to_string();
    assert!(error.contains("there is no axis \"link.wire.rate\""), "{error}");
}

#[test]
fn a_figure_is_well_formed_and_leaves_out_what_has_no_place() {
    let svg = &files()[1].text;
    assert!(svg.starts_with("<svg ") && svg.ends_with("</svg>\n"));
    assert!(svg.contains("<title>Delivered &amp; lost</title>"));
    assert_eq!(svg.matches("<polyline").count(), 2, "a curve for each delay");
    assert_eq!(
        svg.matches("<circle").count(),
        4,
        "zero has no place on a logarithmic axis"
    );
    for element in ["line", "polyline", "circle", "rect"] {
        let opened = svg.matches(&format!("<{element} ")).count();
        let closed = svg
            .lines()
            .filter(|line| line.starts_with(&format!("<{element} ")));
        assert_eq!(
            opened,
            closed.filter(|line| line.ends_with("/>")).count(),
            "{element}"
        );
    }
}

#[test]
fn values_of_one_axis_may_stand_beside_each_other() {
    let across = "axes = [\"link.wire.loss.rate\"]\nacross = \"link.wire.delay\"\n";
    let all = SCENARIO.replace("[page.only]\n\"link.wire.delay\" = [\"1 ms\"]\n", across);
    let page = &files_of(&all)[0].text;
    for row in [
        "| rate | delivered, 1 ms | delivered, 2 ms | runs |",
        "| 0 | 100.0 ± 0.0 | 100.0 ± 0.0 | 3 |",
    ] {
        assert!(page.contains(row), "no {row:?} in:\n{page}");
    }
    let (_, results) = page.split_once("## Results").expect("results");
    assert_eq!(
        results.matches("\n|").count(),
        2 + 3,
        "a row for each rate:\n{results}"
    );
}

#[test]
fn the_same_results_give_the_same_bytes() {
    assert_eq!(files(), files());
}

#[test]
fn a_page_that_names_what_does_not_exist_is_refused() {
    let refused = |from: &str, to: &str| {
        Scenario::parse(&SCENARIO.replacen(from, to, 1))
            .expect_err("refused")
            .to_string()
    };
    let error = refused("x = \"link.wire.loss.rate\"", "x = \"link.wire.los.rate\"");
    assert!(
        error.contains("axis") && error.contains("link.wire.loss.rate"),
        "{error}"
    );
    let error = refused(
        "metric = \"flow.cbr.delivered_messages\", digits",
        "metric = \"flow.x.goodput_bps\", digits",
    );
    assert!(error.contains("flow") && error.contains("cbr"), "{error}");
    let error = refused("introduction", "introdution");
    assert!(error.contains("introdution"), "{error}");
}
