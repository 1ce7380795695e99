#!/usr/bin/env python3
"""Times chains of 802.11b stations in the simulator beside ns-3's figures, and writes docs/results/air.md.

    bench/air.py [--restp PROGRAM] [--rounds 5] [--output FILE]

Python's standard library only; a few seconds once the program is built.
"""

import argparse
import json
import os
import sys
from pathlib import Path

from ns3_speed import timed
from report import cpu_model, output, spread, table
from run import ROOT, build

# The same network in ns-3 3.44, measured apart from this on a machine of the same kind (2 cores, AMD EPYC): wall seconds of its best
# build (link-time optimised, static, native instructions, a priority queue for its events) without start-up, IP packets
# handed to the two hosts, and IP packets given to a MAC.
NS3 = {4: (4.628, 20_253, 81_657), 16: (19.881, 13_886, 224_359)}
TARGET = 20


def main() -> int:
    arguments = parse_arguments()
    restp = arguments.restp or build(ROOT / "Cargo.toml", "--package", "restp-cli")["restp"]
    rows = [row(hops, restp, arguments.rounds) for hops in NS3]
    arguments.output.write_text(page(rows, arguments))
    return 0


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--restp", help="the program to run; built when absent")
    parser.add_argument("--rounds", type=int, default=5, help="runs of each (default 5)")
    parser.add_argument("--output", type=Path, default=ROOT / "docs/results/air.md")
    return parser.parse_args()


def row(hops: int, restp: str, rounds: int) -> tuple[str, ...]:
    scenario = str(ROOT / f"scenarios/air/chain-{hops}.toml")
    seconds, runs = [], set()
    for _ in range(rounds):
        here, results = timed([restp, "sim", scenario, "--json"])
        run = next(run for run in map(json.loads, results.splitlines()) if "seed" in run)
        offered = sum(link["packets"] for link in run["links"])
        seconds.append(here)
        runs.add((run["packets"], offered, run["events"], run["flows"][0]["delivered_bytes"]))
        print(f"{hops} hops: {here:.2f} s", file=sys.stderr)
    if len(runs) != 1:
        sys.exit(f"{hops} hops: runs of one seed differ: {runs}")
    (packets, offered, events, _) = runs.pop()
    wall, delivered, handed = NS3[hops]
    return (
        str(hops),
        spread(seconds),
        f"{wall:.2f}",
        spread([wall / here for here in seconds], 0),
        f"{packets:,} / {delivered:,}",
        f"{offered:,} / {handed:,}",
        f"{events:,}",
    )


def page(rows: list[tuple[str, ...]], arguments: argparse.Namespace) -> str:
    head = [
        "hops",
        "here, s",
        "ns-3, s",
        "ns-3 against here, times",
        "packets that arrived, here / ns-3",
        "packets offered to a station, here / ns-3",
        "events here",
    ]
    return (
        "# Chains of 802.11b, beside ns-3\n\n"
        "Written by `make bench-air`; not edited by hand. Ranges are minimum – **median** – maximum.\n\n"
        "One TCP flow (NewReno, SACK, segments of 1448 bytes) for 420 s over stations 300 m apart: 2 Mb/s, control frames at\n"
        "1 Mb/s, RTS and CTS always, a queue of 50 packets, frames received up to 370 m and sensed up to 520 m, two-ray ground, 10 dB of\n"
        "capture (`scenarios/air/chain-4.toml`, `chain-16.toml`).\n\n"
        f"{table(head, rows)}\n\n"
        f"Processor seconds of one core, start-up included, on {cpu_model()}, revision\n"
        f"{output('git', '-C', str(ROOT), 'describe', '--always', '--dirty')}, load {os.getloadavg()[0]:.1f}; every round of a chain\n"
        "gave the same result. ns-3 is version 3.44 in the best build that was found (link-time optimised, static, native\n"
        "instructions, priority queue), its start-up not counted, on a machine of the same kind but not in the same run. The target was a\n"
        f"factor of {TARGET}. The models share no code: ns-3 adds 8 bytes of LLC to every packet, models noise, and has another TCP, so that the\n"
        "counts of packets are near each other and not equal.\n"
    )


if __name__ == "__main__":
    sys.exit(main())
