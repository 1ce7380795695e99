#!/usr/bin/env python3
"""docs/results/adapt-sensitivity.md: regret and harm of the default with each of its constants halved and doubled.

    bench/sensitivity.py [--runs N] [--only REGEX] [--kept DIR]

In a checkout of the committed revision each named constant of the default becomes a value that a run may scale. What the
others carry, and what CUBIC has beside CUBIC, is taken from the pages of scenarios/adapt. `--kept` is where the checkout
and the results of earlier runs of the same revision are kept.
"""

import argparse
import json
import os
import re
import subprocess
from pathlib import Path
from statistics import mean

import adapt
from report import ROOT, table

PAGE = ROOT / "docs/results/adapt-sensitivity.md"
SERVICES = "crates/restp-services/src"
FOLDERS = ["congestion/adaptive", "loss_handling/causes"]
SCENARIOS = ["alone", "alone-slow", "alone-fast", "beside"]
# What is a shape, not an amount: the number of classes, and what is below the middle of them.
SHAPES = {"ratios::CLASSES", "ratios::LOWER"}
# How a pair is scaled: the distance of a fraction from one, and the segments of which one is believed lost.
PAIRS = {
    "neighbours::ALONE": "(40 - scaled(9.0) as u64, 40)",
    "ratios::PRIOR": "(1.0, scaled(200.0))",
}
# What one file lends to another.
SHARED = {"CLEAR_ROUNDS"}
CONSTANT = re.compile(r"^(?:pub\(super\) )?const ([A-Z_]+): ([^=]+) = (.+);$", re.MULTILINE)

KNOB = """
/// The factor of the constant of this name.
pub(crate) fn knob(name: &str) -> f64 {
    match std::env::var("RESTP_KNOB") {
        Ok(set) => set.split_once('=').filter(|(of, _)| *of == name).map_or(1.0, |(_, factor)| factor.parse().unwrap()),
        Err(_) => 1.0,
    }
}
"""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--runs", type=int, default=5, help="seeds of each environment (default: 5)")
    parser.add_argument("--only", default="", help="only constants of which this matches the name")
    parser.add_argument("--kept", type=Path, default=ROOT / "target/sensitivity")
    arguments = parser.parse_args()
    checkout = arguments.kept / "checkout"
    revision = check_out(checkout)
    names = [name for file in sources(checkout) for name in scalable(file)]
    build(checkout, arguments.kept / "target")
    write_scenarios(arguments.kept / "scenarios/adapt", arguments.runs)
    chosen = [name for name in names if re.search(arguments.only, name)]
    found = {"": outcome(arguments.kept, "", 1.0, revision, arguments.runs)}
    for name in chosen:
        for factor in (0.5, 2.0):
            key = f"{name}={factor}"
            found[key] = outcome(arguments.kept, name, factor, revision, arguments.runs)
            print(key, summary(found[key]), flush=True)
    PAGE.write_text(page(found, chosen, revision, arguments.runs))


def check_out(checkout: Path) -> str:
    """The committed revision, in a folder of its own, as it is."""
    revision = run("git", "-C", str(ROOT), "rev-parse", "--short", "HEAD").strip()
    if not checkout.exists():
        run("git", "clone", "--quiet", "--shared", str(ROOT), str(checkout))
    run("git", "-C", str(checkout), "fetch", "--quiet", "origin", "HEAD")
    run("git", "-C", str(checkout), "checkout", "--quiet", "--force", "FETCH_HEAD")
    return revision


def run(*command: str, **environment: str) -> str:
    done = subprocess.run(command, capture_output=True, text=True, env={**os.environ, **environment})
    if done.returncode:
        raise SystemExit(f"{' '.join(command)}: {done.stderr[-2000:]}")
    return done.stdout


def sources(checkout: Path) -> list[Path]:
    files = [file for folder in FOLDERS for file in sorted((checkout / SERVICES / folder).glob("*.rs"))]
    return [file for file in files if file.name != "tests.rs"]


def scalable(file: Path) -> list[str]:
    """Names of the constants of a file, each of which becomes a function of the same name."""
    module = file.parent.name if file.name == "mod.rs" else file.stem
    code, _, _ = file.read_text().partition("#[cfg(test)]\nmod tests {")  # unit tests are of the amounts as they are
    constants = [match for match in CONSTANT.finditer(code) if f"{module}::{match[1]}" not in SHAPES]
    names = {match[1] for match in constants}
    imported = {name for line in re.findall(r"(?m)^use .*$", code) for name in re.findall(r"\b[A-Z_]{4,}\b", line)}
    for match in constants:
        code = code.replace(match[0], f"@{match[1].lower()}@")
    called = re.compile(rf"\b({'|'.join(names | (imported & SHARED))})\b") if names else re.compile("(?!)()")
    lines = [line if line.startswith("use ") else called.sub(r"\1()", line) for line in code.splitlines(keepends=True)]
    code = "".join(lines)
    for match in constants:
        value = called.sub(r"\1()", match[3])
        code = code.replace(f"@{match[1].lower()}@", getter(f"{module}::{match[1]}", match[1], match[2], value))
    file.write_text(code)
    return [f"{module}::{match[1]}" for match in constants]


def getter(full: str, name: str, kind: str, value: str) -> str:
    if full in PAIRS:
        body = PAIRS[full]
    elif kind == "Duration":
        body = f"Duration::from_nanos(scaled({value}.as_nanos() as f64) as u64)"
    elif kind == "f64":
        body = f"scaled({value})"
    else:
        body = f"(scaled(({value}) as f64).round() as {kind}).max(1)"
    return f"""#[allow(non_snake_case)]
pub(super) fn {name}() -> {kind} {{
    static FACTOR: std::sync::OnceLock<f64> = std::sync::OnceLock::new();
    let scaled = |value: f64| value * FACTOR.get_or_init(|| crate::knob("{full}"));
    {body}
}}"""


def build(checkout: Path, target: Path) -> None:
    library = checkout / SERVICES / "lib.rs"
    library.write_text(library.read_text() + KNOB)
    manifest = str(checkout / "Cargo.toml")
    run("cargo", "build", "-q", "--release", "-p", "restp-cli", "--manifest-path", manifest, CARGO_TARGET_DIR=str(target))


def write_scenarios(folder: Path, runs: int) -> None:
    """The scenarios of the pages with the default alone, and without claims."""
    folder.mkdir(parents=True, exist_ok=True)
    for name in SCENARIOS:
        text = (ROOT / f"scenarios/adapt/{name}.toml").read_text()
        text = re.sub(r"(?m)^\"flow\.f\.transport\" = \[.*\]$", '"flow.f.transport" = ["restp:default"]', text)
        text = re.sub(r"(?m)^runs = \d+$", f"runs = {runs}", text)
        text = re.sub(r"(?ms)^\[\[check\]\].*?(?=^\[page\])", "", text)
        (folder / f"{name}.toml").write_text(text)


def outcome(kept: Path, name: str, factor: float, revision: str, runs: int) -> dict[str, dict[str, float]]:
    """Regret and harm of each environment, in percent."""
    file = kept / f"{revision}-{runs}-{name.replace('::', '-') or 'as-it-is'}-{factor}.json"
    if not file.exists():
        pages = kept / "pages"
        binary = str(kept / "target/release/restp")
        command = [binary, "reproduce", "adapt", "--scenarios", str(kept / "scenarios"), "--output", str(pages)]
        run(*command, RESTP_KNOB=f"{name}={factor}")
        file.write_text(json.dumps({"regret": regrets(pages), "harm": harms(pages)}))
    return json.loads(file.read_text())


def regrets(pages: Path) -> dict[str, float]:
    harm = adapt.harms(ROOT / "docs/results")
    found = {}
    for name in adapt.ALONE:
        headings, others = adapt.table(ROOT / f"docs/results/{name}.md")
        _, ours = adapt.table(pages / f"{name}.md")
        for environment, row in others.items():
            row = dict(zip(headings, row))
            best = row[adapt.best(environment, row, harm)]
            found[environment] = 100 * (1 - ours[environment][0] / max(best, ours[environment][0]))
    return found


def harms(pages: Path) -> dict[str, float]:
    _, others = adapt.table(ROOT / "docs/results/adapt-beside.md")
    _, ours = adapt.table(pages / "adapt-beside.md")
    return {environment: 100 * (1 - ours[environment][0] / row[0]) for environment, row in others.items()}


def summary(found: dict[str, dict[str, float]]) -> str:
    regret, harm = found["regret"], found["harm"]
    return " | ".join(
        [f"{mean(of.values()):.1f}, {max(of.values()):.0f} ({max(of, key=of.__getitem__)})" for of in (regret, harm)]
    )


def span(rows: list[list[str]], column: int) -> str:
    values = [float(row[column]) for row in rows]
    return f"{min(values):.1f} to {max(values):.1f}"


def page(found: dict[str, dict], names: list[str], revision: str, runs: int) -> str:
    as_it_is = found[""]
    rows = []
    for name in names:
        for factor, word in ((0.5, "halved"), (2.0, "doubled")):
            this = found[f"{name}={factor}"]
            cells = []
            for what in ("regret", "harm"):
                of, was = this[what], as_it_is[what]
                moved = max(of, key=lambda environment: abs(of[environment] - was[environment]))
                cells += [f"{mean(of.values()):.1f}", f"{max(of.values()):.0f}"]
                cells += [f"{of[moved] - was[moved]:+.0f}: {moved}"]
            rows.append([f"`{name}` {word}", *cells])
    heads = ["constant", "mean regret, %", "worst", "moved most", "mean harm, %", "worst", "moved most"]
    regret, harm = as_it_is["regret"], as_it_is["harm"]
    return "\n".join(
        [
            "# The constants of the default, halved and doubled",
            "",
            "What the default lacks alone of the best (*regret*) and takes from a CUBIC beside it (*harm*), as in [adapt](adapt.md),",
            "with one constant at a time that is half or twice what it is ([adaptation](../services/adaptation.md)). *Moved most* is the",
            "environment that changes most, by so many points. A pair is scaled by its distance from one (31/40) or by its second part",
            "(one in 200); a count is at least 1. Numbers within sentences of the model, such as three tenths, are not constants here.",
            "",
            "```",
            "bench/sensitivity.py" + (f" --runs {runs}" if runs != 5 else ""),
            "```",
            "",
            f"As it is: mean regret {mean(regret.values()):.1f} %, worst {max(regret.values()):.0f} %; mean harm "
            f"{mean(harm.values()):.1f} %, worst {max(harm.values()):.0f} %.",
            f"Of all rows: mean regret {span(rows, 1)} %, mean harm {span(rows, 4)} %.",
            f"{runs} seeds for each environment, revision {revision}.",
            "",
            table(heads, rows),
            "",
        ]
    )


if __name__ == "__main__":
    main()
