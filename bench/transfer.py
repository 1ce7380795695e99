"""Bulk transfers between two pinned processes on loopback, contenders taking turns.

A contender is started as `... --role server --listen 127.0.0.1:0` and prints {"listening": ADDR, "client_args":
[...]}; then as `... --role client --to ADDR --seconds S`, followed by those arguments. Each ends with one JSON
line; `bytes` and `seconds` of the server count. Processor time is that of both processes, as the kernel accounts
it, and of ksoftirqd.
"""

import json
import os
import select
import subprocess
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path

RECEIVER_CORE, SENDER_CORE = 0, 1
START_LIMIT_S = 10
# Beyond the transfer itself: handshake, draining, farewell.
SPARE_S = 20


@dataclass
class Sample:
    """One transfer: goodput in bit/s, processor seconds per 10^9 bytes that arrived."""

    goodput_bps: float
    cpu_sender: float
    cpu_receiver: float
    cpu_softirq: float
    details: dict

    @property
    def cpu(self) -> float:
        return self.cpu_sender + self.cpu_receiver + self.cpu_softirq


@dataclass
class Comparison:
    """Samples by contender, the i-th of each from the same round; why a contender is missing."""

    samples: dict[str, list[Sample]] = field(default_factory=dict)
    failures: dict[str, str] = field(default_factory=dict)

    def ratios(self, one: str, other: str, value) -> list[float]:
        """`value` of one over that of the other, pair by pair within each round."""
        pairs = zip(self.samples.get(one, []), self.samples.get(other, []))
        return [value(a) / value(b) for a, b in pairs]


def compare(contenders: dict[str, list[str]], rounds: int, seconds: float) -> Comparison:
    """Rounds of A B C, so that a change of the machine's load meets all alike. Who fails once is out."""
    comparison = Comparison({name: [] for name in contenders})
    for round_ in range(1, rounds + 1):
        for name, command in contenders.items():
            if name in comparison.failures:
                continue
            try:
                sample = transfer(command, seconds)
            except (RuntimeError, OSError, ValueError, KeyError, ZeroDivisionError) as error:
                comparison.failures[name] = f"{type(error).__name__}: {error}"
                comparison.samples[name] = []
                print(f"{name}: {error}", file=sys.stderr)
                continue
            comparison.samples[name].append(sample)
            figures = f"{sample.goodput_bps / 1e9:.2f} Gbit/s, {sample.cpu:.2f} s/GB"
            print(f"round {round_}/{rounds}: {name} {figures}", file=sys.stderr)
    return comparison


def transfer(command: list[str], seconds: float) -> Sample:
    """One transfer.

    Raises RuntimeError when a side does not start, does not end in time, or ends badly.
    """
    softirq_before = softirq_seconds()
    server = start([*command, "--role", "server", "--listen", "127.0.0.1:0"], RECEIVER_CORE)
    client = None
    try:
        ready = announcement(server)
        to = ["--to", ready["listening"], "--seconds", str(seconds)]
        client = start([*command, "--role", "client", *to, *ready["client_args"]], SENDER_CORE)
        deadline = time.monotonic() + seconds + SPARE_S
        sent, cpu_sender = finish(client, deadline)
        received, cpu_receiver = finish(server, deadline)
    finally:
        for process in filter(None, (server, client)):
            if process.returncode is None:
                process.kill()
                process.wait()
            process.stdout.close()
            process.stderr.close()
    gigabytes = received["bytes"] / 1e9
    return Sample(
        goodput_bps=received["bytes"] * 8 / received["seconds"],
        cpu_sender=cpu_sender / gigabytes,
        cpu_receiver=cpu_receiver / gigabytes,
        cpu_softirq=(softirq_seconds() - softirq_before) / gigabytes,
        details=sent,
    )


def start(command: list[str], core: int) -> subprocess.Popen:
    return subprocess.Popen(
        command,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=lambda: os.sched_setaffinity(0, {core}),
    )


def announcement(server: subprocess.Popen) -> dict:
    if not select.select([server.stdout], [], [], START_LIMIT_S)[0]:
        raise RuntimeError(f"no listening line within {START_LIMIT_S} s")
    line = server.stdout.readline()
    if not line:
        raise RuntimeError(f"server did not start: {first_line(server.stderr.read())}")
    ready = json.loads(line)
    if "listening" not in ready:
        raise RuntimeError(f'the first line has no "listening": {line.strip()}')
    return {"client_args": [], **ready}


def finish(process: subprocess.Popen, deadline: float) -> tuple[dict, float]:
    """Waits; returns the last JSON line and the processor seconds of the process, user and system."""
    while True:
        pid, status, usage = os.wait4(process.pid, os.WNOHANG)
        if pid:
            break
        if time.monotonic() > deadline:
            raise RuntimeError("did not end in time")
        time.sleep(0.01)
    process.returncode = os.waitstatus_to_exitcode(status)
    lines = process.stdout.read().strip().splitlines()
    if process.returncode != 0 or not lines:
        raise RuntimeError(f"exit code {process.returncode}: {first_line(process.stderr.read())}")
    return json.loads(lines[-1]), usage.ru_utime + usage.ru_stime


def softirq_seconds() -> float:
    """Processor seconds of the kernel's packet threads since boot."""
    total = 0
    for comm in Path("/proc").glob("[0-9]*/comm"):
        try:
            if comm.read_text().startswith("ksoftirqd"):
                total += int((comm.parent / "schedstat").read_text().split()[0])
        except OSError:
            continue  # the process ended between the listing and the reading
    return total / 1e9


def first_line(text: str) -> str:
    return next(iter(text.strip().splitlines()), "no message")
