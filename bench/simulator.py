"""Speed of the simulator: wall time of the dumbbells, instructions per data packet."""

import json
import os
import re
import shutil
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median

from transfer import SENDER_CORE, first_line

ROOT = Path(__file__).resolve().parent.parent
SCENARIOS = ROOT / "scenarios/restp"
RUN_LIMIT_S = 600
FAILURES = (RuntimeError, OSError, ValueError, KeyError, subprocess.TimeoutExpired)

# Wall seconds of ns-3 3.44 for the same network and simulated time, on a machine of this kind (2 cores, AMD EPYC,
# 24 GiB): as installed by pip; built by oneself and optimised; the best build and settings found.
NS3 = {
    "dumbbell-2": {"simulated_s": 600, "wheel": 9.05, "optimised": 5.33, "best": 3.65},
    "dumbbell-64": {"simulated_s": 10, "wheel": 34.8, "optimised": 19.1, "best": 11.2},
}

# Wall seconds that the simulator is to need at most, one core, serialisation included.
TARGETS = {"dumbbell-2": 0.4, "dumbbell-64": 1.2}

# Simulated seconds of the two runs whose difference leaves start-up out.
SHORT_S, LONG_S = 2, 6


@dataclass
class Speed:
    """Runs of one scenario: the simulator's own result objects."""

    scenario: str
    runs: list[dict] = field(default_factory=list)
    failure: str = ""

    @property
    def walls(self) -> list[float]:
        return [run["wall_seconds"] for run in self.runs]

    @property
    def comparable(self) -> bool:
        """Whether the same time was simulated as with ns-3."""
        return all(run["sim_seconds"] == NS3[self.scenario]["simulated_s"] for run in self.runs)


@dataclass
class Instructions:
    """Instructions per data packet sent, or why there is no such number."""

    per_packet: float | None = None
    failure: str = ""


def measure_all(restp: str, repetitions: int) -> list[Speed]:
    return [measure(restp, scenario, repetitions) for scenario in NS3]


def measure(restp: str, scenario: str, repetitions: int) -> Speed:
    speed = Speed(scenario)
    try:
        for _ in range(repetitions):
            run, _ = simulate([], restp, scenario)
            speed.runs.append(run)
            print(f"{scenario}: {run['wall_seconds']:.3f} s", file=sys.stderr)
        if len({(run["events"], run["packets"]) for run in speed.runs}) != 1:
            raise RuntimeError("the same seed gave different runs")
    except FAILURES as error:
        speed.runs, speed.failure = [], f"{type(error).__name__}: {error}"
        print(f"{scenario}: {error}", file=sys.stderr)
    return speed


def instructions_per_packet(
    restp: str, scenario: str = "dumbbell-2", lengths: tuple[float, float] = (SHORT_S, LONG_S)
) -> Instructions:
    """Counts two runs of different length; the difference belongs to the packets alone."""
    if not shutil.which("valgrind"):
        return Instructions(failure="valgrind is not installed")
    counter = ["valgrind", "--tool=callgrind", "--callgrind-out-file=/dev/null"]
    try:
        counts = []
        for seconds in lengths:
            run, messages = simulate(counter, restp, scenario, "--set", f"duration={seconds} s")
            found = re.search(r"Collected\s*:\s*(\d+)", messages)
            if not found:
                raise RuntimeError("valgrind gave no count")
            counts.append((int(found[1]), data_packets(run)))
        (few, few_packets), (many, many_packets) = counts
        if many_packets <= few_packets:
            raise RuntimeError("the longer run sent no more packets")
        return Instructions((many - few) / (many_packets - few_packets))
    except FAILURES as error:
        print(f"instructions: {error}", file=sys.stderr)
        return Instructions(failure=f"{type(error).__name__}: {error}")


def simulate(prefix: list[str], restp: str, scenario: str, *options: str) -> tuple[dict, str]:
    """One run of a scenario; its result object and what was said on standard error."""
    command = [*prefix, restp, "sim", str(SCENARIOS / f"{scenario}.toml"), "--runs", "1", "--json", *options]
    done = subprocess.run(
        command,
        check=False,
        capture_output=True,
        text=True,
        timeout=RUN_LIMIT_S,
        preexec_fn=lambda: os.sched_setaffinity(0, {SENDER_CORE}),
    )
    if done.returncode != 0:
        raise RuntimeError(f"exit code {done.returncode}: {first_line(done.stderr)}")
    results = [json.loads(line) for line in done.stdout.splitlines()]
    runs = [result for result in results if "wall_seconds" in result and "seed" in result]
    if len(runs) != 1:
        raise RuntimeError(f"one run was asked for, {len(runs)} results came")
    return runs[0], done.stderr


def data_packets(run: dict) -> int:
    return sum(flow["sent_packets"] for flow in run["flows"])


def goodput_bps(run: dict) -> float:
    return sum(flow["goodput_bps"] or 0 for flow in run["flows"])


def rate(runs: list[dict], key: str) -> float:
    """Median of a count per wall second."""
    return median(run[key] / run["wall_seconds"] for run in runs)
