#!/usr/bin/env python3
"""Counts instructions per data packet, sweeping rate, flows and paths, and writes docs/results/cost.md.

    bench/cost.py [--against PROGRAM REVISION] [--only CASE…] [--output FILE]

A count does not depend on what else the machine does. Needs valgrind and a tree without changes: the page names the
revision it was measured at. Exit code 0: every case was counted and no group grows by more than its bound; 1: otherwise.
"""

import argparse
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

import cost_cases
from cost_cases import Case
from report import output, table
from run import ROOT, build
from simulator import Instructions, instructions_per_packet

# What a packet may cost at most, in a group, as a multiple of what it costs in the group's first case.
MOST_GROWTH = 1.3


@dataclass
class Count:
    """One case, counted with the program of this tree and perhaps with another."""

    case: Case
    ours: Instructions
    theirs: Instructions | None


def main() -> int:
    arguments = parse_arguments()
    revision = output("git", "-C", str(ROOT), "describe", "--always", "--dirty")
    if revision.endswith("-dirty"):
        print("the tree has changes: commit them first, so that the page can name its revision", file=sys.stderr)
        return 2
    restp = build(ROOT / "Cargo.toml", "--package", "restp-cli")["restp"]
    other = arguments.against[0] if arguments.against else None
    with tempfile.TemporaryDirectory() as folder:
        counts = [count(case, Path(folder), restp, other) for case in arguments.only]
    arguments.output.write_text(page(counts, revision, arguments.against))
    failures = [one for one in counts if one.ours.failure or (one.theirs and one.theirs.failure)]
    return 1 if failures or any(grown(one, counts) for one in counts) else 0


def parse_arguments() -> argparse.Namespace:
    known = {case.name: case for case in cost_cases.ALL}
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--against", nargs=2, metavar=("PROGRAM", "REVISION"), help="a second program to compare with")
    parser.add_argument("--only", nargs="+", choices=known, default=list(known), metavar="CASE", help="some cases")
    parser.add_argument("--output", type=Path, default=ROOT / "docs/results/cost.md")
    arguments = parser.parse_args()
    arguments.only = [known[name] for name in arguments.only]
    return arguments


def count(case: Case, folder: Path, restp: str, other: str | None) -> Count:
    # A name that is a path stands for itself, whatever folder scenarios come from.
    scenario = case.write(folder)
    counted = [
        instructions_per_packet(program, scenario, case.seconds) if program else None for program in (restp, other)
    ]
    print(f"{case.name}: {shown(counted[0])}", file=sys.stderr)
    return Count(case, *counted)


def page(counts: list[Count], revision: str, compared: list[str] | None) -> str:
    head = ["case", "what", "instructions per data packet", "of the group's first"]
    against = ""
    if compared:
        head += ["before", "of before"]
        against = f", before: revision {compared[1]}"
    rows = [row(one, counts) for one in counts]
    return (
        "# Cost of a packet\n\n"
        "Written by `make bench-cost`; not edited by hand.\n\n"
        "Instructions of the whole simulated network (senders, links, receivers) per data packet sent, counted by\n"
        "`valgrind --tool=callgrind` as the difference of a long and a short run, so that start-up does not count.\n"
        f"Revision {revision}{against}. In a group a packet may cost {MOST_GROWTH} times what it costs in the\n"
        "first case.\n\n"
        f"{table(head, rows)}\n"
    )


def row(one: Count, counts: list[Count]) -> tuple[str, ...]:
    growth = ratio(one.ours, first_of(one, counts).ours)
    cells = (one.case.name, one.case.what, shown(one.ours), f"**{growth}: too much**" if grown(one, counts) else growth)
    if one.theirs is None:
        return cells
    return (*cells, shown(one.theirs), ratio(one.ours, one.theirs))


def first_of(one: Count, counts: list[Count]) -> Count:
    return next(other for other in counts if other.case.group == one.case.group)


def grown(one: Count, counts: list[Count]) -> bool:
    first = first_of(one, counts).ours.per_packet
    return bool(first and one.ours.per_packet and one.ours.per_packet > MOST_GROWTH * first)


def shown(counted: Instructions) -> str:
    return f"not counted: {counted.failure}" if counted.per_packet is None else f"{counted.per_packet:,.0f}"


def ratio(one: Instructions, other: Instructions) -> str:
    if one.per_packet is None or other.per_packet is None:
        return "–"
    return f"{one.per_packet / other.per_packet:.2f}"


if __name__ == "__main__":
    sys.exit(main())
