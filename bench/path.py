#!/usr/bin/env python3
"""Measures ResTP, kernel TCP and quinn side by side on one emulated path and writes docs/results/paths.md.

    bench/path.py [--rounds 5] [--cases loss,share,outage,voice,first] [--output FILE]

Needs Linux, root, /dev/net/tun and the `ip` tool; without them it says so and measures nothing. Python's standard
library only. Beside the page it writes every sample as JSON. Exit code 0: everything was measured; 1: something could
not be, and the page says what; 2: nothing could.
"""

import argparse
import json
import os
import sys
from pathlib import Path

import network
import path_report
from path_cases import Programs, jobs, run
from run import ROOT, build

CASES = ("loss", "share", "outage", "voice", "first")


def main() -> int:
    arguments = parse_arguments()
    if reason := network.missing():
        print(f"SKIPPED: nothing was measured: {reason}", file=sys.stderr)
        return 2
    print("building", file=sys.stderr)
    built = build(ROOT / "bench/peers/Cargo.toml") | build(ROOT / "Cargo.toml", "--package", "restp-cli")
    programs = Programs(built["restp"], built["path_end"])
    arguments.load = os.getloadavg()[0]
    samples = []
    for round_ in range(1, arguments.rounds + 1):
        for sample in run(programs, jobs(programs, set(arguments.cases)), round_):
            print(json.dumps(sample), file=sys.stderr)
            samples.append(sample)
    arguments.output.parent.mkdir(parents=True, exist_ok=True)
    lines = ",\n".join(json.dumps(sample) for sample in samples)
    arguments.output.with_suffix(".json").write_text(f"[\n{lines}\n]\n")
    arguments.output.write_text(path_report.page(samples, arguments))
    return 1 if any("failure" in sample for sample in samples) else 0


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=5, help="of everything (default 5)")
    parser.add_argument("--cases", type=lambda text: text.split(","), default=CASES, help="some of them, by commas")
    parser.add_argument("--output", type=Path, default=ROOT / "docs/results/paths.md")
    arguments = parser.parse_args()
    if arguments.rounds < 1:
        parser.error("--rounds must be positive")
    if unknown := set(arguments.cases) - set(CASES):
        parser.error(f"no case {', '.join(sorted(unknown))}; there are {', '.join(CASES)}")
    return arguments


if __name__ == "__main__":
    sys.exit(main())
