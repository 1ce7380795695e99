"""What the pages about emulated paths have in common: conditions, tables of samples, verdicts."""

import argparse
import datetime
import os
import platform
from collections.abc import Callable
from statistics import median
from typing import NamedTuple

from report import cpu_model, spread, table


class Target(NamedTuple):
    """What has to hold for the median of a value, and how that reads."""

    case: str
    contender: str
    name: str
    met: Callable[[float], bool]
    text: str


def conditions(samples: list[dict], arguments: argparse.Namespace, text: str, peers: str) -> str:
    lateness = [sample["lateness_us"] for sample in samples if "lateness_us" in sample]
    rows = [
        ("date", datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%d %H:%M UTC")),
        ("revision", arguments.revision),
        *([arguments.kept] if arguments.kept else []),
        ("machine", f"{cpu_model()}, {os.cpu_count()} cores, {platform.system()} {platform.release()}"),
        ("load average at start and end", f"{arguments.load:.1f}, {os.getloadavg()[0]:.1f}"),
        ("peers", peers),
        ("rounds", str(arguments.rounds)),
        ("emulator, mean lateness of a packet in its worst direction", f"{spread(lateness, 0)} µs"),
    ]
    return f"## Conditions\n\n{text}\n\n{table(['', ''], rows)}"


def targets(samples: list[dict], wanted: list[Target]) -> str:
    rows = []
    for case, contender, name, met, text in wanted:
        measured = values(samples, case, contender, name)
        verdict = "not measured" if not measured else "met" if met(median(measured)) else "**missed**"
        rows.append((text, spread(measured, digits(name)), verdict))
    return "## Targets\n\n" + table(["target", "measured", "verdict"], rows)


def values(samples: list[dict], case: str, contender: str, name: str) -> list[float]:
    """One per round in which it could be measured."""
    return [s[name] for s in samples if (s["case"], s["contender"]) == (case, contender) and name in s]


def digits(name: str) -> int:
    return {"share": 3, "jain": 3, "on_time": 4, "ms": 1, "alone_ms": 1, "extra_ms": 1}.get(name, 2)


def grid(samples: list[dict], contenders: list[str], columns: dict[str, tuple[str, str]]) -> str:
    """A row per contender; a column is a case and the name of a value."""
    rows = [
        (name, *(spread(values(samples, case, name, value), digits(value)) for case, value in columns.values()))
        for name in contenders
    ]
    return table(["", *columns], rows)


def failures(samples: list[dict]) -> str:
    failed = [
        (sample["case"], sample["contender"], str(sample["round"]), sample["failure"])
        for sample in samples
        if "failure" in sample
    ]
    return "## Not measured\n\n" + table(["case", "contender", "round", "why"], failed) if failed else ""
