#!/usr/bin/env python3
"""Measures ResTP against its peers on this machine and writes docs/results/performance.md.

    bench/run.py [--repetitions 5] [--seconds 4] [--output FILE]

Python's standard library only. Exit code 0: everything was measured; 1: something could not be, and the page says what.
"""

import argparse
import json
import subprocess
import sys
from pathlib import Path

import report
import simulator
import transfer

ROOT = Path(__file__).resolve().parent.parent


def main() -> int:
    arguments = parse_arguments()
    print("building", file=sys.stderr)
    programs = build(ROOT / "bench/peers/Cargo.toml") | build(ROOT / "Cargo.toml", "--package", "restp-cli")
    contenders = {
        "restp": [programs["restp"], "bench"],
        "restp-plain": [programs["restp"], "bench", "--plain"],
        "quinn": [programs["quinn_bulk"]],
        "quinn-aws-lc": [programs["quinn_bulk"], "--aws-lc"],
        "udp": [programs["udp_bulk"]],
        "tcp": [programs["tcp_bulk"]],
    }
    transfers = transfer.compare(contenders, arguments.repetitions, arguments.seconds)
    speeds = simulator.measure_all(programs["restp"], arguments.repetitions)
    instructions = simulator.instructions_per_packet(programs["restp"])
    page = report.page(transfers, speeds, instructions, arguments)
    arguments.output.parent.mkdir(parents=True, exist_ok=True)
    arguments.output.write_text(page)
    print(page)
    failures = [*transfers.failures.values(), *(speed.failure for speed in speeds), instructions.failure]
    return 1 if any(failures) else 0


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repetitions", type=int, default=5, help="of everything that is timed (default 5)")
    parser.add_argument("--seconds", type=float, default=4.0, help="length of one bulk transfer (default 4)")
    parser.add_argument("--output", type=Path, default=ROOT / "docs/results/performance.md")
    arguments = parser.parse_args()
    if arguments.repetitions < 1 or arguments.seconds <= 0:
        parser.error("--repetitions and --seconds must be positive")
    return arguments


def build(manifest: Path, *options: str) -> dict[str, str]:
    """Builds in release and returns the path of each program by its name."""
    command = ["cargo", "build", "--release", "--locked", "--manifest-path", str(manifest), *options]
    messages = subprocess.run(
        [*command, "--message-format", "json-render-diagnostics"],
        check=True,
        stdout=subprocess.PIPE,
        text=True,
    ).stdout
    artifacts = (json.loads(line) for line in messages.splitlines())
    return {a["target"]["name"]: a["executable"] for a in artifacts if a.get("executable")}


if __name__ == "__main__":
    sys.exit(main())
