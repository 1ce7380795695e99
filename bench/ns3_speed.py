#!/usr/bin/env python3
"""Times the simulator and ns-3 on the same dumbbells, taking turns, and writes docs/results/ns3-speed.md.

    bench/ns3_speed.py --ns3 FOLDER [--restp PROGRAM] [--rounds 3] [--output FILE]

FOLDER is the installed Python package `ns3`, as for bench/ns3.py. Both programs run on one core; what counts is
their processor time, start-up included. Python's standard library and a C++ compiler only; three minutes.
"""

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
from pathlib import Path

from ns3 import compile_program
from report import cpu_model, output, spread, table
from run import ROOT, build
from transfer import SENDER_CORE

# The scenario here, and the same network there.
NETWORKS = {
    "dumbbell-2": [],
    "dumbbell-64": [
        "--flows=64",
        "--accessRate=1Gbps",
        "--accessDelay=1ms",
        "--rate=1Gbps",
        "--delay=8ms",
        "--queue=1667p",
        "--seconds=10",
        "--spread=0.1",
    ],
}


def main() -> int:
    arguments = parse_arguments()
    restp = arguments.restp or build(ROOT / "Cargo.toml", "--package", "restp-cli")["restp"]
    with tempfile.TemporaryDirectory() as folder:
        program = compile_program(arguments.ns3, Path(folder), "dumbbell")
        rows = [row(name, options, restp, program, arguments.rounds) for name, options in NETWORKS.items()]
    arguments.output.write_text(page(rows, arguments))
    return 0


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--ns3", type=Path, required=True, help="folder of the installed Python package ns3")
    parser.add_argument("--restp", help="the program to run; built when absent")
    parser.add_argument("--rounds", type=int, default=3, help="runs of each, taking turns (default 3)")
    parser.add_argument("--output", type=Path, default=ROOT / "docs/results/ns3-speed.md")
    return parser.parse_args()


def row(name: str, options: list[str], restp: str, program: Path, rounds: int) -> tuple[str, ...]:
    scenario = str(ROOT / f"scenarios/restp/{name}.toml")
    ours, theirs, ratios, rates = [], [], [], ("", "")
    for _ in range(rounds):
        here, results = timed([restp, "sim", scenario, "--runs", "1", "--json"])
        there, rate = timed([str(program), *options])
        run = next(run for run in map(json.loads, results.splitlines()) if "seed" in run)
        carried = sum(flow["goodput_bps"] for flow in run["flows"])
        ours, theirs, ratios = [*ours, here], [*theirs, there], [*ratios, there / here]
        rates = (f"{carried / 1e6:.2f}", f"{float(rate) / 1e6:.2f}")
        print(f"{name}: {here:.2f} s, ns-3 {there:.2f} s", file=sys.stderr)
    return name, spread(ours), spread(theirs), spread(ratios, 0), *rates


def timed(command: list[str]) -> tuple[float, str]:
    """Processor seconds of one run on one core, and what it printed."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    pin = lambda: os.sched_setaffinity(0, {SENDER_CORE})  # noqa: E731
    done = subprocess.run(command, check=True, capture_output=True, text=True, preexec_fn=pin)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime, done.stdout


def page(rows: list[tuple[str, ...]], arguments: argparse.Namespace) -> str:
    head = [
        "network",
        "here, s",
        "ns-3, s",
        "ns-3 against here, times",
        "here, Mbit/s",
        "ns-3, Mbit/s",
    ]
    return (
        "# How fast, beside ns-3\n\n"
        "Written by `bench/ns3_speed.py`; not edited by hand. Ranges are minimum – **median** – maximum.\n\n"
        "```\npip install ns3\n"
        f"bench/ns3_speed.py --ns3 FOLDER-OF-THE-PACKAGE --rounds {arguments.rounds}\n```\n\n"
        f"Processor seconds of one core, start-up included, on {cpu_model()}, revision\n"
        f"{output('git', '-C', str(ROOT), 'describe', '--always', '--dirty')}, load {os.getloadavg()[0]:.1f}. ns-3 is the\n"
        "package as `pip install ns3` brings it, with its assertions; built by oneself and optimised it needs a half to a\n"
        "third of that (measured on a machine of this kind: 3.65 s and 11.2 s; [performance](performance.md)). Both carry NewReno\n"
        "over the same network: the rates are those of all flows together.\n\n"
        f"{table(head, rows)}\n"
    )


if __name__ == "__main__":
    sys.exit(main())
