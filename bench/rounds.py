"""The command of a comparison across emulated paths: its line, its rounds, and what it writes."""

import argparse
import json
import os
import re
import sys
from collections.abc import Callable
from pathlib import Path

import network
from job import Programs
from report import output
from run import ROOT, build


def main(
    description: str,
    cases: tuple[str, ...],
    page_name: str,
    measure: Callable[[Programs, set[str], int], list[dict]],
    page: Callable[[list[dict], argparse.Namespace], str],
    rest: tuple[str, Callable[[Programs, set[str], int], list[dict]]] | None = None,
) -> int:
    """Measures `cases` round by round; `page_name` lies in docs/results, and every sample beside it as JSON.

    With a `rest`, `--keep` takes from that JSON what the contenders have whose names begin so, and measures the rest.
    """
    arguments = parse_arguments(description, cases, ROOT / "docs/results" / page_name, rest and rest[0])
    if arguments.keep:
        measure = keeping(arguments, *rest)
    elif reason := network.missing():
        print(f"SKIPPED: nothing was measured: {reason}", file=sys.stderr)
        return 2
    print("building", file=sys.stderr)
    built = build(ROOT / "bench/peers/Cargo.toml") | build(ROOT / "Cargo.toml", "--package", "restp-cli")
    programs = Programs(built["restp"], built["path_end"])
    arguments.load = os.getloadavg()[0]
    # Of what is measured: others may commit while it is.
    arguments.revision = output("git", "-C", str(ROOT), "describe", "--always", "--dirty")
    samples = []
    for round_ in range(1, arguments.rounds + 1):
        for sample in measure(programs, set(arguments.cases), round_):
            print(json.dumps(sample), file=sys.stderr)
            samples.append(sample)
    arguments.output.parent.mkdir(parents=True, exist_ok=True)
    lines = ",\n".join(json.dumps(sample) for sample in samples)
    arguments.output.with_suffix(".json").write_text(f"[\n{lines}\n]\n")
    arguments.output.write_text(page(samples, arguments))
    return 1 if any("failure" in sample for sample in samples) else 0


def keeping(
    arguments: argparse.Namespace, prefix: str, rest: Callable[[Programs, set[str], int], list[dict]]
) -> Callable[[Programs, set[str], int], list[dict]]:
    """What was measured of some contenders when the page was written, and the others anew."""
    before = json.loads(arguments.output.with_suffix(".json").read_text())
    kept = [sample for sample in before if sample["contender"].startswith(prefix)]
    arguments.rounds = max(sample["round"] for sample in kept)
    rows = dict(re.findall(r"^\| ([^|]+) \| ([^|]+) \|$", arguments.output.read_text(), re.MULTILINE))
    known = f"{prefix}, measured"
    arguments.kept = (known, rows.get(known) or ", ".join(rows[what] for what in ("date", "revision", "machine")))

    def measure(programs: Programs, cases: set[str], round_: int) -> list[dict]:
        wanted = [sample for sample in kept if sample["round"] == round_ and sample["case"] in cases]
        return wanted + rest(programs, cases, round_)

    return measure


def parse_arguments(
    description: str, cases: tuple[str, ...], output: Path, keep: str | None = None
) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--rounds", type=int, default=5, help="of everything (default 5)")
    parser.add_argument("--cases", type=lambda text: text.split(","), default=cases, help="some of them, by commas")
    parser.add_argument("--output", type=Path, default=output)
    parser.set_defaults(keep=False, kept=None)
    if keep:
        parser.add_argument("--keep", action="store_true", help=f"measure the {keep} not again, only the others")
    arguments = parser.parse_args()
    if arguments.rounds < 1:
        parser.error("--rounds must be positive")
    if arguments.keep and not (arguments.output.exists() and set(arguments.cases) == set(cases)):
        parser.error("--keep is for all cases of a page that is there")
    if unknown := set(arguments.cases) - set(cases):
        parser.error(f"no case {', '.join(sorted(unknown))}; there are {', '.join(cases)}")
    return arguments
