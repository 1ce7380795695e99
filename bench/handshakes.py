#!/usr/bin/env python3
"""Counts handshakes that one core does in a second, ResTP's beside quinn's, and writes docs/results/handshakes.md.

    bench/handshakes.py [--rounds 9] [--batches 20] [--output FILE]

Python's standard library only. Exit code 0: everything was measured; 1: something could not be, and the page says what.
"""

import argparse
import datetime
import json
import os
import platform
import re
import shutil
import subprocess
import sys
from pathlib import Path
from statistics import median

from report import ROOT, cpu_model, locked, output, spread, table
from run import build

TARGETS = {"restp ik": 5_000, "restp resumed": 20_000}

# What is counted: one turn of an end, with all that it calls.
ENDS = {"server": "handshakes::server_turn", "client": "handshakes::client_turn"}

INTRODUCTION = """\
Both ends of a handshake are machines in one thread, without sockets, and the processor time in \
which each is called is that end's (`CLOCK_THREAD_CPUTIME_ID`; 60 clients go through their \
handshakes together). It ends when both ends know that it stands, and every server has given a \
ticket that it need not remember.

- **restp**: preset `3wh-arq`, sealed; `ik` the server's key is known, `ix` it is learnt, `resumed` \
with a ticket. Clients always prove a key of their own, and come from an address where nobody was \
before.
- **quic**: quinn-proto with rustls, TLS 1.3, X25519, as shipped but for probes of larger datagrams, \
with the cryptography of ring (quinn's default) or of aws-lc, which ResTP uses. The server has a \
self-signed certificate, ECDSA P-256 or Ed25519, which clients check; \
**clients have none**, so they are not authenticated. `resumed` is with a ticket and a new X25519 \
(psk_dhe_ke)."""


def main() -> int:
    arguments = parse_arguments()
    program = build(ROOT / "bench/peers/Cargo.toml", "--bin", "handshakes")["handshakes"]
    cases = output(program, "list").splitlines()
    samples: dict[str, list[dict]] = {case: [] for case in cases}
    failures = []
    # Contenders take turns, so that what slows the machine slows all of them.
    for _ in range(arguments.rounds):
        for case in cases:
            try:
                samples[case].append(measure([program, case, str(arguments.batches)]))
            except (subprocess.SubprocessError, ValueError) as error:
                failures.append(f"{case}: {error}")
    counts = {case: {end: instructions(program, case, name) for end, name in ENDS.items()} for case in cases}
    page = report(samples, counts, failures, arguments)
    arguments.output.write_text(page)
    print(page)
    return 1 if failures or any(count is None for ends in counts.values() for count in ends.values()) else 0


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=9, help="of everything that is timed (default 9)")
    parser.add_argument("--batches", type=int, default=20, help="of 60 handshakes in each round (default 20)")
    parser.add_argument("--output", type=Path, default=ROOT / "docs/results/handshakes.md")
    arguments = parser.parse_args()
    if arguments.rounds < 1 or arguments.batches < 1:
        parser.error("--rounds and --batches must be positive")
    return arguments


def measure(command: list[str]) -> dict:
    done = subprocess.run(command, check=True, capture_output=True, text=True, timeout=120)
    return json.loads(done.stdout)


def instructions(program: str, case: str, function: str) -> float | None:
    """Per handshake, of one end; None where they cannot be counted."""
    if not shutil.which("valgrind"):
        return None
    counter = ["valgrind", "--tool=callgrind", "--callgrind-out-file=/dev/null", f"--toggle-collect={function}*"]
    done = subprocess.run([*counter, program, case, "1"], check=False, capture_output=True, text=True, timeout=600)
    count = re.search(r"Collected\s*:\s*(\d+)", done.stderr)
    if done.returncode or not count:
        print(done.stderr, file=sys.stderr)
        return None
    return int(count[1]) / json.loads(done.stdout)["count"]


def report(samples: dict, counts: dict, failures: list[str], arguments: argparse.Namespace) -> str:
    rates = {case: [1e6 / sample["server_us"] for sample in taken] for case, taken in samples.items()}
    rows = []
    for case, taken in samples.items():
        thousand = [f"{count / 1e3:.0f}" if count else "–" for count in counts[case].values()]
        rows.append(
            (
                case,
                spread(rates[case], 0),
                spread([sample["server_us"] for sample in taken], 1),
                spread([sample["client_us"] for sample in taken], 1),
                *thousand,
                f"{median(s['up'] for s in taken):.0f} / {median(s['down'] for s in taken):.0f}" if taken else "–",
            )
        )
    head = ["", "a second, server core", "server µs", "client µs"]
    head += ["server k instr.", "client k instr.", "bytes up / down"]
    verdicts = [
        (
            f"{case}: at least {target} a second",
            spread(rates[case], 0),
            "not measured" if not rates[case] else "met" if median(rates[case]) >= target else "**missed**",
        )
        for case, target in TARGETS.items()
    ]
    facts = [
        ("date", datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%d %H:%M UTC")),
        ("revision", output("git", "-C", str(ROOT), "describe", "--always", "--dirty")),
        ("machine", f"{cpu_model()}, {os.cpu_count()} cores, {platform.system()} {platform.release()}"),
        ("load average at the end", " ".join(f"{load:.1f}" for load in os.getloadavg())),
        ("peers", f"quinn-proto {locked('quinn-proto')}, rustls {locked('rustls')}"),
        ("rounds", f"{arguments.rounds}, contenders taking turns, {arguments.batches * 60} handshakes each"),
    ]
    parts = [
        "# Handshakes a second",
        "Written by `make bench-handshakes`; not edited by hand. Ranges: minimum – **median** – maximum of rounds.",
        "## Conditions",
        INTRODUCTION,
        table(["", ""], facts),
        "## Targets",
        table(["target", "measured", "verdict"], verdicts),
        "## Handshakes",
        table(head, rows),
        "Instructions: `valgrind --tool=callgrind`, inside the calls alone. Its processor has no SHA instructions, "
        "so that hashing takes more of them than on this machine; they compare changes of one protocol better than "
        "protocols. A resumed handshake of QUIC sends its ticket after the handshake, ResTP within it.",
    ]
    if failures:
        parts += ["## Not measured", "\n".join(f"- {failure}" for failure in failures)]
    return "\n\n".join(parts) + "\n"


if __name__ == "__main__":
    sys.exit(main())
