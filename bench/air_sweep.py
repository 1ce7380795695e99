#!/usr/bin/env python3
"""W1 as its study ran it, thirty seeds of every cell, on a local Dask cluster: what it costs, whether the frame is that
of one process, and what CMT gains. Writes docs/results/air-sweep.md.

    python bench/air_sweep.py [--workers 2] [--seeds 30] [--compared 3] [--output docs/results/air-sweep.md]

Run by a Python that has the package with all its extras, built with optimisation: pip install '.[all]'.
"""

import argparse
import os
import platform
import subprocess
import sys
from pathlib import Path
from typing import Any

import restp
from distributed import Client, LocalCluster
from measured import Cost, measured

ROOT = Path(__file__).resolve().parent.parent
SCENARIO = ROOT / "scenarios/air/air-w1.toml"
HOPS = [4, 8, 16]
PACKETS = {0: "1000 s", 8: "125 ms", 24: "41667 us"}
SCHEMES = [
    {"label": "CMT SAME", "transport": "cmt:same"},
    {"label": "CMT CWND", "transport": "cmt:cwnd"},
    {"label": "CMT SSTHRESH", "transport": "cmt:ssthresh"},
    {"label": "AwareApp", "transport": "sctp", "paths": [["one"]]},
    {"label": "UnawareApp", "transport": "sctp", "paths": [["two"]]},
]
#: CMT Table 2.1, percent, by hops and packets a second beside the second channel.
PUBLISHED = {
    (4, 0): 4.20, (4, 8): 5.31, (4, 24): 10.55,
    (8, 0): 6.55, (8, 8): 9.48, (8, 24): 17.88,
    (16, 0): 9.61, (16, 8): 14.91, (16, 24): 28.44,
}  # fmt: skip
#: Runs of the study, and minutes of one core that they may cost.
RUNS, MOST_MINUTES = 1350, 30
#: Student's t by the number of seeds, two-sided 95 %; of other numbers the interval is left out.
T_95 = {3: 4.303, 5: 2.776, 10: 2.262, 30: 2.045}


def sweep(seeds: int, client: Client | None = None) -> Any:
    grid = {
        "medium.*": [{"label": "disk"}],
        "station.*.count": [hops + 1 for hops in HOPS],
        "flow.bg.traffic.cbr.interval": list(PACKETS.values()),
        "flow.a": SCHEMES,
    }
    frame = restp.sweep(SCENARIO, grid, client, runs=seeds, threads=1, progress=False)
    return frame[frame["flow"] == "a"].reset_index(drop=True)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--seeds", type=int, default=30)
    parser.add_argument("--compared", type=int, default=3, help="seeds that one process runs as well")
    parser.add_argument("--build", default="release", help="how the package was built, for the page")
    parser.add_argument("--output", type=Path, default=ROOT / "docs/results/air-sweep.md")
    given = parser.parse_args()
    with (
        LocalCluster(n_workers=given.workers, threads_per_worker=1, dashboard_address=None) as local,
        Client(local) as client,
    ):
        client.run(lambda: __import__("restp").__version__)  # workers are up, and have loaded what they need
        there = measured(lambda: sweep(given.seeds, client))
    here = measured(lambda: sweep(given.compared))
    # Numbers of points and seeds are the same in both.
    seeds = set(here.frame["seed"])
    shared = there.frame[there.frame["seed"].isin(seeds)].reset_index(drop=True)
    claims = [
        (
            f"{RUNS:,} runs of 420 s on the cluster cost at most {MOST_MINUTES} minutes of one core, "
            f"by {len(there.frame):,} of them",
            there.cpu / len(there.frame) * RUNS <= MOST_MINUTES * 60,
        ),
        (f"one process gives the same frame, value by value ({len(shared)} runs)", shared.equals(here.frame)),
    ]
    given.output.write_text(page(given, here, there, claims))
    print(given.output)
    return 0 if all(held for _, held in claims) else 1


def gains(frame: Any) -> str:
    rows = []
    for hops in HOPS:
        for packets, interval in PACKETS.items():
            cell = frame[(frame["station.*.count"] == hops + 1) & (frame["flow.bg.traffic.cbr.interval"] == interval)]
            of = {label: runs["goodput_bps"] / 1e3 for label, runs in cell.groupby("flow.a.label")}
            striped = of["AwareApp"].mean() + of["UnawareApp"].mean()
            gain = [f"{100 * (of[name].mean() / striped - 1):.1f}" for name in ("CMT SAME", "CMT CWND", "CMT SSTHRESH")]
            goodput = [interval_of(of[scheme["label"]]) for scheme in SCHEMES]
            rows.append([str(hops), str(packets), *goodput, *gain, f"{PUBLISHED[hops, packets]:.1f}"])
    return "\n".join(f"| {' | '.join(row)} |" for row in rows)


def interval_of(values: Any) -> str:
    student = T_95.get(len(values))
    half = f" ± {student * values.std() / len(values) ** 0.5:.1f}" if student else ""
    return f"{values.mean():.1f}{half}"


def page(given: argparse.Namespace, here: Cost, there: Cost, claims: list[tuple[str, bool]]) -> str:
    revision = subprocess.run(
        ["git", "describe", "--always", "--dirty"], cwd=ROOT, capture_output=True, text=True, check=False
    ).stdout.strip()
    load = " ".join(f"{one:.1f}" for one in os.getloadavg())
    verdicts = "\n".join(f"| {text} | {'holds' if held else '**does not hold**'} |" for text, held in claims)
    head = ["hops", "packets/s beside", *(f"{scheme['label']}, kbit/s" for scheme in SCHEMES)]
    head += ["gain of SAME, %", "CWND, %", "SSTHRESH, %", "CWND as published, %"]
    return f"""# W1 with its seeds, on a cluster

Written by `bench/air_sweep.py`; not edited by hand.

The sweep of [air-w1](air-w1.md) as its study ran it, under the disk model: {len(HOPS)} lengths of the chain,
{len(PACKETS)} rates of the traffic beside it, {len(SCHEMES)} schemes, {given.seeds} seeds.

| | |
| --- | --- |
| revision | {revision} |
| machine | {platform.machine()}, {os.cpu_count()} cores, Python {platform.python_version()} |
| load average at the end | {load} |
| build of the package | {given.build} |
| cluster | {given.workers} worker processes of one thread on this machine, with scheduler and client in one more |

| claim | |
| --- | --- |
{verdicts}

| | runs | processor time, min | wall time, min | of a run, ms of a processor |
| --- | --- | --- | --- | --- |
| cluster | {row(there)} |
| one process | {row(here)} |

Processor time is that of all processes; wall times say little where others use the machine.

## Gain over striping

Mean and half the 95 % interval over the seeds; gains are over AwareApp and UnawareApp together. Why they are not the
published ones is in [air-w1](air-w1.md) and [air-w1-capture](air-w1-capture.md).

| {" | ".join(head)} |
|{" --- |" * len(head)}
{gains(there.frame)}
"""


def row(cost: Cost) -> str:
    runs = len(cost.frame)
    return f"{runs:,} | {cost.cpu / 60:.1f} | {cost.wall / 60:.1f} | {cost.cpu / runs * 1e3:.0f}"


if __name__ == "__main__":
    sys.exit(main())
