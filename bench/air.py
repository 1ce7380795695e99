#!/usr/bin/env python3
"""Times chains of 802.11b stations in the simulator and in ns-3, taking turns, and writes docs/results/air.md.

    bench/air.py [--ns3 FOLDER] [--restp PROGRAM] [--rounds 3] [--output FILE]

FOLDER is the installed Python package `ns3`, as for bench/ns3.py. Where it is not named the package is installed into
a folder that is removed afterwards (`pip install ns3`, 69 MB); where that or a C++ compiler cannot be had, the page says
so and has the figures that were measured before. Python's standard library only; some five minutes.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import ns3
from ns3_speed import timed
from report import cpu_model, output, spread, table
from run import ROOT, build

# The package has 69 MB: a network that needs longer than this is as good as none.
FETCH_S = 600

# The libraries that bench/ns3/chain.cc needs.
LIBRARIES = [
    "core",
    "network",
    "internet",
    "applications",
    "mobility",
    "propagation",
    "traffic-control",
    "spectrum",
    "wifi",
]

# The same network in ns-3 3.44, measured apart from this on a machine of the same kind (2 cores, AMD EPYC): wall seconds of its best
# build (link-time optimised, static, native instructions, a priority queue for its events) without start-up, IP packets
# handed to the two hosts, and IP packets given to a MAC.
NS3 = {4: (4.628, 20_253, 81_657), 16: (19.881, 13_886, 224_359)}
# The package of pip on that machine, so that its time in this run says what the best build would take here.
PACKAGE_S = {4: 7.608, 16: 29.127}
TARGET = 20


def main() -> int:
    arguments = parse_arguments()
    restp = arguments.restp or build(ROOT / "Cargo.toml", "--package", "restp-cli")["restp"]
    with tempfile.TemporaryDirectory() as folder:
        program, why_not = chain(arguments.ns3, Path(folder))
        rows = [row(hops, restp, program, arguments.rounds) for hops in NS3]
    arguments.output.write_text(page(rows, why_not))
    return 0


def chain(package: Path | None, folder: Path) -> tuple[Path | None, str]:
    """The chain as a program of ns-3, or why there is none."""
    try:
        package = package or install(folder / "packages")
        return ns3.compile_program(package, folder, "chain", LIBRARIES), ""
    except (OSError, subprocess.SubprocessError, SystemExit) as error:
        print(f"without ns-3 in the same run: {error}", file=sys.stderr)
        return None, str(error).splitlines()[0]


def install(folder: Path) -> Path:
    options = ["--quiet", "--only-binary", ":all:", "--target", str(folder)]
    subprocess.run([sys.executable, "-m", "pip", "install", *options, "ns3"], check=True, timeout=FETCH_S)
    return folder / "ns3"


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--ns3", type=Path, help="folder of the installed package ns3; installed for once when absent")
    parser.add_argument("--restp", help="the program to run; built when absent")
    parser.add_argument("--rounds", type=int, default=3, help="runs of each, taking turns (default 3)")
    parser.add_argument("--output", type=Path, default=ROOT / "docs/results/air.md")
    return parser.parse_args()


def row(hops: int, restp: str, program: Path | None, rounds: int) -> tuple[str, ...]:
    scenario = str(ROOT / f"scenarios/air/chain-{hops}.toml")
    seconds, there, ratios, runs = [], [], [], set()
    for _ in range(rounds):
        here, results = timed([restp, "sim", scenario, "--json"])
        run = next(run for run in map(json.loads, results.splitlines()) if "seed" in run)
        offered = sum(link["packets"] for link in run["links"])
        seconds.append(here)
        runs.add((run["packets"], offered, run["events"], run["flows"][0]["delivered_bytes"]))
        if program is not None:
            took, _ = timed([str(program), f"--hops={hops}"])
            there, ratios = [*there, took], [*ratios, took / here]
        print(f"{hops} hops: {here:.2f} s, ns-3 {there[-1:] or 'not run'}", file=sys.stderr)
    if len(runs) != 1:
        sys.exit(f"{hops} hops: runs of one seed differ: {runs}")
    (packets, offered, events, _) = runs.pop()
    wall, delivered, handed = NS3[hops]
    gain = PACKAGE_S[hops] / wall
    best = [ratio / gain for ratio in ratios] or [wall / here for here in seconds]
    return (
        str(hops),
        spread(seconds),
        spread(there) if there else "–",
        spread(ratios, 0) if ratios else "–",
        spread(best, 0),
        f"{packets:,} / {delivered:,}",
        f"{offered:,} / {handed:,}",
        f"{events:,}",
    )


def page(rows: list[tuple[str, ...]], why_not: str) -> str:
    head = [
        "hops",
        "here, s",
        "ns-3 in the same run, s",
        "against here, times",
        "its best build against here, times",
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
        f"gave the same result. {same_run(why_not)} Its best build is version 3.44, link-time optimised, static, native\n"
        f"instructions, priority queue, its start-up not counted: {both(NS3[4][0], NS3[16][0])} where the package took\n"
        f"{both(PACKAGE_S[4], PACKAGE_S[16])} on a machine of the same kind. {reckoned(why_not)} The target was a\n"
        f"factor of {TARGET}. The models share no code: ns-3 adds 8 bytes of LLC to every packet, models noise, and has another TCP, so that the\n"
        "counts of packets are near each other and not equal.\n"
    )


def both(short: float, long: float) -> str:
    return f"{short:.2f} s and {long:.2f} s"


def reckoned(why_not: str) -> str:
    if why_not:
        return "The factor is that of these times."
    return (
        "The factor is that of the package in this run, divided by what the best build is faster. Where the package takes several times as\n"
        "long here as there, the best build need not be slower by as much."
    )


def same_run(why_not: str) -> str:
    if why_not:
        return f"ns-3 could not be had in this run ({why_not})."
    return "ns-3 in the same run is the package of pip, with `bench/ns3/chain.cc` built against it, taking turns."


if __name__ == "__main__":
    sys.exit(main())
