#!/usr/bin/env python3
"""Runs the published experiments in the simulator and writes their pages under docs/results/.

    bench/experiments.py [e7 e8 response] [--output DIR]

Python's standard library only; results depend on the scenario files and their seeds alone. Exit code 0: every claim
holds; 1: one does not, and its page says which.
"""

import argparse
import json
import subprocess
import sys
from pathlib import Path

import figure
from report import table
from run import ROOT, build

INTRODUCTIONS = {
    "e7": (
        "Constant bit rate over a lossy bottleneck (ResTP §A.3.2): an unreliable ResTP flow is the base header and "
        "nothing else, so it must lose the same packets as UDP under the same seed and deliver 1.12 · (1 − PER) Mbit/s."
    ),
    "e8": (
        "Bulk transfer over a lossy bottleneck (ResTP §A.3.3): TCP NewReno, ResTP with NewReno, and ResTP with the "
        "congestion module unplugged, whose flight is one bandwidth-delay product and one queue (32 segments), spread "
        "over a round trip."
    ),
    "response": (
        "Goodput of `restp:3wh-arq` (NewReno, an acknowledgement per two segments, window growth counted in bytes) "
        "against C · MSS / (RTT · √p) on a 10 Mbit/s, 45 ms link. The derivation of C = √(3/2) for this acknowledgement "
        "and growth rule is in the scenario file. The other congestion controls stand beside it without a claim."
    ),
}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("experiments", nargs="*", help="all when absent", default=[])
    parser.add_argument("--output", type=Path, default=ROOT / "docs/results")
    arguments = parser.parse_args()
    chosen = arguments.experiments or list(INTRODUCTIONS)
    if unknown := set(chosen) - set(INTRODUCTIONS):
        parser.error(f"no experiment {', '.join(sorted(unknown))}; there are {', '.join(INTRODUCTIONS)}")
    restp = build(ROOT / "Cargo.toml", "--package", "restp-cli")["restp"]
    arguments.output.mkdir(parents=True, exist_ok=True)
    failed = False
    for name in chosen:
        summaries, verdicts = run(restp, name)
        (arguments.output / f"{name}.md").write_text(page(name, summaries, verdicts))
        if name == "e8":
            (arguments.output / "e8.svg").write_text(figure.goodput_against_loss(summaries))
        held = sum(verdict["held"] is True for verdict in verdicts)
        failed |= held < len(verdicts)
        print(f"{name}: {held} of {len(verdicts)} claims hold", file=sys.stderr)
    return 1 if failed else 0


def run(restp: str, name: str) -> tuple[list[dict], list[dict]]:
    """Summaries and verdicts of one scenario. Exit code 1 of the program means that a claim failed: the page says so."""
    command = [restp, "sim", str(ROOT / f"scenarios/restp/{name}.toml"), "--json", "--check"]
    done = subprocess.run(command, check=False, capture_output=True, text=True)
    if done.returncode not in (0, 1):
        raise SystemExit(f"{' '.join(command)}: {done.stderr}")
    lines = [json.loads(line) for line in done.stdout.splitlines()]
    return [line for line in lines if "summary" in line], [line for line in lines if "claim" in line]


def page(name: str, summaries: list[dict], verdicts: list[dict]) -> str:
    axes = list(summaries[0]["point"])
    rows = [
        (
            *(str(summary["point"].get(axis, "")) for axis in axes),
            interval(flow["goodput_bps"]),
            f"{flow['timeouts']['mean']:.2f}" if flow["timeouts"] else "–",
            str(summary["summary"]["runs"]),
        )
        for summary in summaries
        for flow in summary["summary"]["flows"]
    ]
    judged = [
        (
            verdict["check"],
            ", ".join(f"{value}" for value in verdict["point"].values()),
            verdict["text"],
            number(verdict["expected"]),
            number(verdict["measured"]),
            {True: "holds", False: "**fails**", None: "no data"}[verdict["held"]],
        )
        for verdict in verdicts
    ]
    short = [axis.rsplit(".", 1)[-1] for axis in axes]
    picture = "![Goodput against packet error rate](e8.svg)\n\n" if name == "e8" else ""
    return (
        f"# {name.upper() if name != 'response' else 'Response of NewReno to random loss'}\n\n"
        f"{INTRODUCTIONS[name]}\n\n"
        f"```\nrestp sim scenarios/restp/{name}.toml --check\n```\n\n{picture}"
        f"## Claims\n\n{table(['claim', 'at', 'says', 'expected', 'measured', 'verdict'], judged)}\n\n"
        f"## Results\n\nMean and 95 % interval over the seeds.\n\n"
        f"{table([*short, 'goodput, Mbit/s', 'timeouts', 'runs'], rows)}\n"
    )


def interval(values: dict) -> str:
    mean, low, high = (values[key] for key in ("mean", "low", "high"))
    if low is None:
        return f"{mean / 1e6:.4f}"
    return f"{mean / 1e6:.4f} ± {(high - low) / 2e6:.4f}"


def number(value) -> str:
    return f"{value:,.0f}" if isinstance(value, (int, float)) else str(value)


if __name__ == "__main__":
    sys.exit(main())
