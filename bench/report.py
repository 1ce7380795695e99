"""The page: conditions, tables, and a verdict per target."""

import argparse
import datetime
import os
import platform
import re
import shlex
import subprocess
import sys
from pathlib import Path
from statistics import median

from simulator import Instructions, LONG_S, NS3, SHORT_S, Speed, TARGETS, goodput_bps, rate
from transfer import Comparison, Sample

ROOT = Path(__file__).resolve().parent.parent

WHAT = {
    "restp": "ResTP, one stream, sealed with AES-128-GCM",
    "restp-plain": "ResTP, one stream, without the seal",
    "quinn": "QUIC (quinn), one stream, TLS 1.3 with AES-128-GCM of ring, as shipped, CUBIC",
    "quinn-aws-lc": "the same with AES-128-GCM of aws-lc, which ResTP uses",
    "udp": "bare UDP, segmentation offload and coalescing, no protocol: the ceiling",
    "tcp": "kernel TCP, CUBIC, no encryption, segments of up to 64 KiB: for reference",
}


def page(transfers: Comparison, speeds: list[Speed], instructions: Instructions, arguments: argparse.Namespace) -> str:
    parts = [
        "# Performance\n\nWritten by `make bench`; not edited by hand. Ranges are minimum – **median** – maximum.",
        conditions(arguments),
        throughput(transfers),
        simulation(speeds, instructions),
        targets(transfers, speeds),
    ]
    return "\n\n".join(parts) + "\n"


def conditions(arguments: argparse.Namespace) -> str:
    rows = [
        ("command", f"`{shlex.join(['bench/run.py', *sys.argv[1:]])}`"),
        ("date", datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%d %H:%M UTC")),
        ("revision", output("git", "-C", str(ROOT), "describe", "--always", "--dirty")),
        ("machine", f"{cpu_model()}, {os.cpu_count()} cores, {platform.system()} {platform.release()}"),
        ("load average at the end", " ".join(f"{load:.1f}" for load in os.getloadavg())),
        ("compiler", output("rustc", "--version")),
        ("peers", f"quinn {locked('quinn')}, quinn-proto {locked('quinn-proto')}, rustls {locked('rustls')}"),
        ("repetitions", f"{arguments.repetitions}, contenders taking turns, {arguments.seconds:g} s each"),
    ]
    return "## Conditions\n\n" + table(["", ""], rows)


def throughput(transfers: Comparison) -> str:
    rows = []
    for name, samples in transfers.samples.items():
        if not samples:
            rows.append((name, WHAT[name], f"not measured: {transfers.failures[name]}", "", "", ""))
            continue
        rows.append(
            (
                name,
                WHAT[name],
                spread([s.goodput_bps / 1e9 for s in samples]),
                spread([s.cpu for s in samples]),
                f"{median(s.cpu_sender for s in samples):.2f} / {median(s.cpu_receiver for s in samples):.2f}",
                details(samples[-1]),
            )
        )
    head = ["", "what", "Gbit/s received", "CPU s/GB, both ends", "sender / receiver", "as the sender saw it"]
    text = (
        "One bulk transfer on loopback, two processes, receiver on core 0, sender on core 1. UDP payloads are at most "
        "1472 bytes, so packets fit 1500 bytes. CPU is user and system time of both processes and ksoftirqd per 10^9 "
        "bytes that arrived."
    )
    ratios = [ratio_row(transfers, "restp", other) for other in ("quinn", "quinn-aws-lc", "restp-plain", "udp", "tcp")]
    ratio_head = ["ratio, pair by pair in each round", "goodput", "CPU per byte"]
    return f"## Throughput\n\n{text}\n\n{table(head, rows)}\n\n{table(ratio_head, ratios)}"


def ratio_row(transfers: Comparison, one: str, other: str) -> tuple[str, str, str]:
    return (
        f"{one} / {other}",
        spread(transfers.ratios(one, other, goodput)),
        spread(transfers.ratios(one, other, cpu)),
    )


def simulation(speeds: list[Speed], instructions: Instructions) -> str:
    rows = []
    for speed in speeds:
        ns3 = NS3[speed.scenario]
        theirs = f"{ns3['wheel']} / {ns3['optimised']} / {ns3['best']}"
        if not speed.runs:
            rows.append((speed.scenario, f"not measured: {speed.failure}", theirs, "", "", ""))
            continue
        rates = f"{rate(speed.runs, 'events') / 1e6:.2f} M, {rate(speed.runs, 'packets') / 1e3:.0f} k"
        first = speed.runs[0]
        rows.append(
            (
                speed.scenario,
                spread(speed.walls, digits=3),
                theirs,
                f"{median(speed.walls) / ns3['best']:.2f}",
                rates,
                f"{first['sim_seconds']:g} s, {goodput_bps(first) / 1e6:.2f} Mbit/s",
            )
        )
    head = [
        "scenario",
        "wall s",
        "ns-3 wheel / optimised / best, s",
        "of best",
        "events/s, packets/s",
        "simulated, goodput",
    ]
    text = (
        "One run at a time, pinned to one core. ns-3 3.44 was measured with TCP NewReno on the same network, on a "
        "machine of this kind (2 cores, AMD EPYC, 24 GiB), not in this run: as installed by pip, optimised build, "
        f"best build and settings.\n\n{table(head, rows)}\n\n"
    )
    if instructions.per_packet is None:
        return f"## Simulator\n\n{text}Instructions per data packet: not measured: {instructions.failure}."
    count = f"{instructions.per_packet:,.0f}"
    how = f"`valgrind --tool=callgrind`, dumbbell-2, difference of {LONG_S} s and {SHORT_S} s simulated"
    return f"## Simulator\n\n{text}Instructions per data packet sent, the whole network included: **{count}** ({how})."


# What a transfer may be of quinn's: goodput at least, processor time per byte at most.
SHARES_OF_QUINN = [("sealed", "restp", 1.0, 0.8), ("without the seal", "restp-plain", 1.5, 0.6)]


def targets(transfers: Comparison, speeds: list[Speed]) -> str:
    rows = []
    for name, contender, least, most in SHARES_OF_QUINN:
        quicker, leaner = (transfers.ratios(contender, "quinn", value) for value in (goodput, cpu))
        form = "{:.2f} of quinn's"
        rows += [
            (
                f"{name}: goodput at least {least} of quinn's",
                *verdict(quicker, lambda ratio, least=least: ratio >= least, form),
            ),
            (
                f"{name}: CPU per byte at most {most} of quinn's",
                *verdict(leaner, lambda ratio, most=most: ratio <= most, form),
            ),
        ]
    for speed in speeds:
        limit = TARGETS[speed.scenario]
        best = NS3[speed.scenario]["best"]
        name = f"{speed.scenario} in at most {limit} s (best ns-3: {best} s)"
        if not speed.comparable:
            rows.append((name, "another time was simulated", "open"))
            continue
        rows.append((name, *verdict(speed.walls, lambda wall, limit=limit: wall <= limit, "{:.3f} s")))
    return "## Targets\n\n" + table(["target", "measured (median)", "verdict"], rows)


def verdict(values: list[float], met, form: str) -> tuple[str, str]:
    if not values:
        return "not measured", "open"
    return form.format(median(values)), "met" if met(median(values)) else "**missed**"


def goodput(sample: Sample) -> float:
    return sample.goodput_bps


def cpu(sample: Sample) -> float:
    return sample.cpu


def details(sample: Sample) -> str:
    common = {"name", "role", "bytes", "seconds", "goodput_bps", "cpu_seconds_sender", "cpu_seconds_receiver"}
    return ", ".join(f"{key} {value}" for key, value in sample.details.items() if key not in common)


def spread(values: list[float], digits: int = 2) -> str:
    if not values:
        return "–"
    return f"{min(values):.{digits}f} – **{median(values):.{digits}f}** – {max(values):.{digits}f}"


def table(head: list[str], rows: list[tuple[str, ...]]) -> str:
    lines = [head, ["---"] * len(head), *([cell.replace("|", "\\|") for cell in row] for row in rows)]
    return "\n".join(f"| {' | '.join(line)} |".replace("|  |", "| |") for line in lines)


def cpu_model() -> str:
    found = re.search(r"^model name\s*:\s*(.+)$", Path("/proc/cpuinfo").read_text(), re.MULTILINE)
    return found[1] if found else platform.machine()


def locked(package: str) -> str:
    lock = (ROOT / "bench/peers/Cargo.lock").read_text()
    found = re.search(rf'^name = "{package}"\nversion = "(.+)"$', lock, re.MULTILINE)
    return found[1] if found else "?"


def output(*command: str) -> str:
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    return done.stdout.strip() or "unknown"
