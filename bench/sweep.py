#!/usr/bin/env python3
"""What a sweep costs on a local Dask cluster of two workers over the same sweep in one process, whether it survives a
worker that is killed, and how fast replications are. Writes docs/results/sweep.md.

    python bench/sweep.py [--points 10000] [--rounds 3] [--output docs/results/sweep.md]

Run by a Python that has the package with all its extras, built with optimisation: pip install '.[all]'.
"""

import argparse
import os
import platform
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from statistics import median
from typing import Any

import restp
from distributed import Client, LocalCluster
from measured import Cost, measured
from restp import sweeps

ROOT = Path(__file__).resolve().parent.parent
SCENARIO = ROOT / "scenarios/restp/e8.toml"
#: One transport over many rates of loss around 1 %, one seed each.
TRANSPORT = {"flow.bulk": [{"transport": "restp:3wh-arq"}]}
#: What a sweep on the cluster may cost at most, over the sweep in one process.
MOST = 0.15
REPLICATIONS, REPLICATIONS_S = 1000, 60
#: How long a cluster is watched doing nothing.
IDLE_S = 10


@contextmanager
def cluster() -> Iterator[Client]:
    with LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None) as local, Client(local) as client:
        client.run(lambda: __import__("restp").__version__)  # workers are up, and have loaded what they need
        yield client


def grid(points: int) -> dict[str, list[Any]]:
    rates = [0.005 + 0.01 * i / points for i in range(points)]
    # Short runs: the shorter they are, the more a cluster costs.
    return TRANSPORT | {"duration": ["20 s"], "link.bottleneck.loss.rate": rates}


def sweep(points: int, client: Client | None = None) -> Any:
    return restp.sweep(SCENARIO, grid(points), client, runs=1, threads=2, progress=False)


def with_a_killed_worker(points: int) -> tuple[Any, int]:
    """The frame, and how many runs were finished when the worker was killed."""
    with cluster() as client:
        victim = next(iter(client.run(os.getpid).values()))
        killed_at = []

        class Bar(sweeps.tqdm):
            seen = 0

            def update(self, n: float | None = 1) -> bool | None:
                self.seen += int(n or 0)
                if not killed_at and self.seen >= points // 3:
                    killed_at.append(self.seen)
                    os.kill(victim, signal.SIGKILL)
                return super().update(n)

        own, sweeps.tqdm = sweeps.tqdm, Bar
        try:
            return sweep(points, client), killed_at[0]
        finally:
            sweeps.tqdm = own


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--points", type=int, default=10_000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--build", default="release", help="how the package was built, for the page")
    parser.add_argument("--output", type=Path, default=ROOT / "docs/results/sweep.md")
    given = parser.parse_args()

    here, there = [], []
    with cluster() as client:
        idle = measured(lambda: time.sleep(IDLE_S))
        for _ in range(given.rounds):
            here.append(measured(lambda: sweep(given.points)))
            there.append(measured(lambda: sweep(given.points, client)))
    same = all(one.frame.equals(here[0].frame) for one in here + there)
    survived, killed_at = with_a_killed_worker(given.points)
    whole = survived.equals(here[0].frame)
    fast = measured(
        lambda: restp.run(SCENARIO, **TRANSPORT, runs=REPLICATIONS, threads=2, link__bottleneck__loss__rate=0.01)
    )

    walls = [cluster.wall / alone.wall - 1 for alone, cluster in zip(here, there, strict=True)]
    cpus = [cluster.cpu / alone.cpu - 1 for alone, cluster in zip(here, there, strict=True)]
    claims = [
        (
            f"a sweep on the cluster costs under {MOST:.0%} over one process (processor time, pair by pair, median)",
            median(cpus) < MOST,
        ),
        ("it gives the same frame, value by value", same),
        (f"it loses no point when a worker is killed ({killed_at} runs in)", whole),
        (
            f"{REPLICATIONS} replications of E8 at 1 % loss need under {REPLICATIONS_S} s of two cores",
            fast.cpu / 2 < REPLICATIONS_S,
        ),
    ]
    given.output.write_text(page(given, here, there, walls, cpus, idle, fast, claims))
    print(given.output)
    return 0 if all(held for _, held in claims) else 1


def page(
    given: Any, here: list[Cost], there: list[Cost], walls: Any, cpus: Any, idle: Cost, fast: Cost, claims: Any
) -> str:
    def spread(values: list[float], digits: str) -> str:
        return f"{min(values):{digits}} – **{median(values):{digits}}** – {max(values):{digits}}"

    revision = subprocess.run(
        ["git", "describe", "--always", "--dirty"], cwd=ROOT, capture_output=True, text=True, check=False
    ).stdout.strip()
    load = " ".join(f"{one:.1f}" for one in os.getloadavg())
    verdicts = "\n".join(f"| {text} | {'holds' if held else '**does not hold**'} |" for text, held in claims)
    each = fast.cpu / REPLICATIONS * 1e3
    point = median(one.cpu for one in here) / given.points * 1e3
    return f"""# Sweeps

Written by `bench/sweep.py`; not edited by hand. Ranges are minimum – **median** – maximum.

| | |
| --- | --- |
| revision | {revision} |
| machine | {platform.machine()}, {os.cpu_count()} cores, Python {platform.python_version()} |
| load average at the end | {load} |
| build of the package | {given.build} |
| sweep | {given.points} points of E8 (20 s simulated, loss 0.5 % to 1.5 %), one run each |
| cluster | two worker processes of one thread on this machine, with scheduler and client in a third |
| rounds | {given.rounds}, each the sweep in one process with two threads, then on the cluster |

| claim | |
| --- | --- |
{verdicts}

| | one process | cluster | more, pair by pair |
| --- | --- | --- | --- |
| processor time, s | {spread([one.cpu for one in here], ".1f")} | {spread([one.cpu for one in there], ".1f")} \
| {spread(cpus, "+.1%")} |
| wall time, s | {spread([one.wall for one in here], ".1f")} | {spread([one.wall for one in there], ".1f")} \
| {spread(walls, "+.1%")} |

{REPLICATIONS} replications of 100 s took {fast.wall:.1f} s and {fast.cpu:.1f} s of processors, {each:.1f} ms each.

Processor time is that of all processes; where others use the machine, wall times say little, and the comparison of
processor times is the one to look at. What the cluster costs is its own work: batches and results cross process
borders, the scenario's points are validated by each worker. And it lives: its processes used {idle.cpu / idle.wall:.1%} of
a processor while they did nothing for {idle.wall:.0f} s, for heartbeats and profiles. It stands beside the sweep in one
process as well, so both pay that, and the one that takes longer, because others use the machine, pays more. One sweep
in one process took {point:.2f} ms of processors per point.
"""


if __name__ == "__main__":
    sys.exit(main())
