#!/usr/bin/env python3
"""Runs mutation tests with cargo-mutants (configuration: .cargo/mutants.toml) and writes docs/results/mutation.md.

    bench/mutants.py [--shard K/N] [--package NAME] [--file GLOB] [--report-only]

Every run adds to what earlier runs of the same revision found, so that shards 0/20, 1/20, ... add up to the whole.
A mutant that no test notices needs a reason in bench/mutants.toml. Exit code 0: every survivor has one; 1: some have
none, or cargo-mutants could not do its work.
"""

import argparse
import json
import re
import shutil
import subprocess
import sys
import tomllib
from collections import Counter, defaultdict
from collections.abc import Iterable
from pathlib import Path

from report import ROOT, table

KEPT = ROOT / "target/mutants"
PAGE = ROOT / "docs/results/mutation.md"
REASONS = ROOT / "bench/mutants.toml"

# What cargo-mutants exits with when it did its work: all caught, some missed, some without end.
WORKED = {0, 2, 3}

CAUGHT, MISSED, ENDLESS, UNVIABLE = "CaughtMutant", "MissedMutant", "Timeout", "Unviable"

INTRODUCTION = """\
Each mutant is the code with one small change: another operator, a function that returns at once, a guard that always \
holds. The unit and integration tests of its own crate run against it. One that no test notices is a rule that nobody \
watches, or a change that changes nothing; which of them it is stands in `bench/mutants.toml`. A mutant that runs into \
the time limit has been noticed; one that does not compile is not counted."""


def main() -> int:
    arguments = parse_arguments()
    revision = git("rev-parse", "--short", "HEAD") + ("" if clean() else " with changes")
    worked = arguments.report_only or run(arguments, revision)
    outcomes = kept(revision)
    listed = tomllib.loads(REASONS.read_text()).get("survivor", [])
    reasons = [(re.compile(entry["mutant"]), entry["why"]) for entry in listed]
    survivors = sorted(name for name, summary in outcomes.items() if summary == MISSED)
    unexplained = [name for name in survivors if explanation(name, reasons) is None]
    PAGE.write_text(page(revision, outcomes, survivors, reasons))
    print(f"{len(outcomes)} mutants, {len(survivors)} survivors, {len(unexplained)} of them without a reason: {PAGE}")
    for name in unexplained:
        print(f"  {name}")
    return 0 if worked and not unexplained else 1


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--shard", metavar="K/N", help="only the K-th of N parts, counted from 0: a sample")
    parser.add_argument("--package", action="append", default=[], help="only this crate; may be repeated")
    parser.add_argument("--file", action="append", default=[], help="only files like this; may be repeated")
    parser.add_argument("--report-only", action="store_true", help="only write the page of what was found before")
    return parser.parse_args()


def git(*words: str) -> str:
    return subprocess.run(["git", *words], cwd=ROOT, check=True, capture_output=True, text=True).stdout.strip()


def clean() -> bool:
    """Is the code what the revision says? Pages and these tools do not change it."""
    return git("status", "--porcelain", "--", "crates", "Cargo.lock") == ""


def run(arguments: argparse.Namespace, revision: str) -> bool:
    """Runs cargo-mutants and keeps what it found. Did it do its work?"""
    # Every N-th mutant, not N neighbours: a shard is a sample.
    selection = [("--shard", arguments.shard), ("--sharding", "round-robin")] if arguments.shard else []
    selection += [("--package", name) for name in arguments.package] + [("--file", glob) for glob in arguments.file]
    words = [word for pair in selection for word in pair]
    name = re.sub(r"[^\w.-]+", "-", " ".join(words)).strip("-") or "all"
    folder = KEPT / name
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    done = subprocess.run(["cargo", "mutants", "--output", str(folder), *words], cwd=ROOT)
    (folder / "revision").write_text(revision)
    return done.returncode in WORKED


def kept(revision: str) -> dict[str, str]:
    """What became of each mutant in the runs of `revision`, by its name."""
    outcomes = {}
    for file in KEPT.glob("*/mutants.out/outcomes.json"):
        if (file.parents[1] / "revision").read_text() != revision:
            continue
        for outcome in json.loads(file.read_text())["outcomes"]:
            if outcome["scenario"] != "Baseline":
                outcomes[outcome["scenario"]["Mutant"]["name"]] = outcome["summary"]
    return {name: summary for name, summary in outcomes.items() if summary != UNVIABLE}


def explanation(name: str, reasons: Iterable[tuple[re.Pattern[str], str]]) -> str | None:
    return next((why for pattern, why in reasons if pattern.search(name)), None)


def page(
    revision: str, outcomes: dict[str, str], survivors: list[str], reasons: list[tuple[re.Pattern[str], str]]
) -> str:
    folders: dict[str, Counter[str]] = defaultdict(Counter)
    for name, summary in outcomes.items():
        # crates/CRATE/src/FOLDER/... or crates/CRATE/src/FILE, as in the configuration.
        folders["/".join(Path(name.split(":")[0]).parts[1:4]).replace("/src", "")][summary] += 1
    rows = [counts(folder, folders[folder]) for folder in sorted(folders)]
    rows.append(counts("all", sum(folders.values(), Counter())))
    heads = ["Where", "Mutants", "Noticed", "Of them without end", "Survivors"]
    text = f"# Mutation tests\n\nRevision {revision}, by `make mutants`.\n\n{INTRODUCTION}\n\n{table(heads, rows)}\n"
    listed = [[f"`{name}`", explanation(name, reasons) or "**none**"] for name in survivors]
    return text + (f"\n## Survivors\n\n{table(['Mutant', 'Reason'], listed)}\n" if listed else "")


def counts(where: str, found: Counter[str]) -> list[str]:
    total = sum(found.values())
    noticed = found[CAUGHT] + found[ENDLESS]
    share = f"{noticed} ({100 * noticed / total:.1f} %)" if total else "0"
    return [where, str(total), share, str(found[ENDLESS]), str(found[MISSED])]


if __name__ == "__main__":
    sys.exit(main())
