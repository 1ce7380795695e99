#!/usr/bin/env python3
"""Holds the simulator's current TCP against the kernel's on the same links and writes docs/results/kernel-parity.md.

    bench/parity.py [--rounds 5] [--cases NAME,...] [--output FILE]

Each network is one link, described once: `restp emulate --tun` carries kernel TCP over it, `restp sim` the TCP of the
simulator. Needs Linux, root, /dev/net/tun and the `ip` tool; without them it says so and measures nothing. Python's
standard library only. Exit code 0: everything was measured; 1: something could not be, and the page says what; 2: nothing
could. That a goodput differs is a result, not a failure.
"""

import argparse
import json
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from statistics import median

import rounds
import sections
from job import Job, Programs, arrivals, sample
from network import Network
from report import spread, table
from sections import failures, values

SECONDS = 25
# Beyond the run itself: set-up, and what the emulator holds.
SPARE_S = 30
# How far goodput and queueing delay may be apart (median of the rounds).
GOODPUT, DELAY = 0.10, 0.15
# Networks measured at a time: together no more than the emulator is trusted with (docs/emulator.md).
AT_A_TIME = 4
# The simulator's name of what the kernel calls so.
CONTROLS = {"cubic": "tcp:cubic", "bbr": "tcp:bbr1"}


def link(rate: str, delay: str, queue: str, more: str = "") -> str:
    """`delay` one way; `queue` a table of a link's key."""
    return f'rate = "{rate}"\ndelay = "{delay}"\nqueue = {queue}\n{more}'


def packets(count: int) -> str:
    return f'{{ drop_tail = "{count} packets" }}'


BURSTS = "loss = { gilbert_elliott = { good_to_bad = 0.002, bad_to_good = 0.4 } }"
NETWORKS = {
    "1 Mbit/s · 100 ms · 2 BDP": link("1 Mbit/s", "50 ms", packets(17)),
    "5 Mbit/s · 300 ms · 1 BDP": link("5 Mbit/s", "150 ms", packets(125)),
    "10 Mbit/s · 20 ms · 1 BDP": link("10 Mbit/s", "10 ms", packets(17)),
    "20 Mbit/s · 50 ms · 0.2 BDP": link("20 Mbit/s", "25 ms", packets(17)),
    "20 Mbit/s · 50 ms · 1 BDP": link("20 Mbit/s", "25 ms", packets(84)),
    "20 Mbit/s · 50 ms · 10 BDP": link("20 Mbit/s", "25 ms", packets(840)),
    "50 Mbit/s · 100 ms · CoDel": link("50 Mbit/s", "50 ms", "{ codel = { ecn = false } }"),
    "100 Mbit/s · 40 ms · 1 BDP": link("100 Mbit/s", "20 ms", packets(334)),
    "200 Mbit/s · 10 ms · 2 BDP": link("200 Mbit/s", "5 ms", packets(334)),
    "20 Mbit/s · 50 ms · 0.1 % lost": link("20 Mbit/s", "25 ms", packets(84), "loss = { rate = 0.001 }"),
    "20 Mbit/s · 50 ms · 1 % lost": link("20 Mbit/s", "25 ms", packets(84), "loss = { rate = 0.01 }"),
    "20 Mbit/s · 50 ms · 5 % lost": link("20 Mbit/s", "25 ms", packets(84), "loss = { rate = 0.05 }"),
    "20 Mbit/s · 50 ms · bursts": link("20 Mbit/s", "25 ms", packets(84), BURSTS),
    "20 Mbit/s · 50 ms · outage of 3 s": link("20 Mbit/s", "25 ms", packets(84), 'outage = ["12 s..15 s"]'),
    "20 Mbit/s · 50 ms · thin reverse path": link("20 Mbit/s", "25 ms", packets(84), 'reverse_rate = "300 kbit/s"'),
}


def measure(programs: Programs, cases: set[str], round_: int) -> list[dict]:
    """A round: each network with each congestion control, in the kernel and in the simulator."""
    chosen = [(name, control) for name in NETWORKS if name in cases for control in CONTROLS]

    def both(numbered: tuple[int, tuple[str, str]]) -> list[dict]:
        number, (name, control) = numbered
        job = Job(name, f"kernel {control}", {"p": NETWORKS[name]}, kernel(programs, control))
        return [sample(programs, str(number), job, round_), simulated(programs, name, control, round_)]

    with ThreadPoolExecutor(AT_A_TIME) as threads:
        return [found for pair in threads.map(both, enumerate(chosen)) for found in pair]


def kernel(programs: Programs, control: str):
    """Bytes that the receiving application got within SECONDS from the first one, and the queue they met."""

    def run(network: Network) -> dict:
        program, options = programs.at("bulk", ["tcp", "--congestion", control])
        server, found = network.server(program, "--seconds", str(SECONDS), *options)
        network.client(program, *found, *options)
        tenths = arrivals(server, SECONDS + SPARE_S)["tenths"]
        queue = network.counters()[0]["forward"]["queue_mean_ms"]
        return {"mbps": round(sum(tenths) * 8 / SECONDS / 1e6, 3), "queue_ms": round(queue, 2)}

    return run


def simulated(programs: Programs, name: str, control: str, round_: int) -> dict:
    """The same of one run of the simulator, with segments as large as the kernel's."""
    scenario = f"""
id = "parity"
title = "one link"
duration = "{SECONDS} s"
[[link]]
name = "p"
between = ["a", "b"]
{NETWORKS[name]}
[[flow]]
name = "f"
from = "a"
to = "b"
transport = "{CONTROLS[control]}"
set = {{ segment = "1448 B" }}
traffic = {{ bulk = {{}} }}
"""
    with tempfile.TemporaryDirectory(prefix="restp-parity-") as folder:
        file = Path(folder) / "parity.toml"
        file.write_text(scenario)
        command = [programs.restp, "sim", str(file), "--json", "--runs", "1", "--seed", str(round_)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    common = {"case": name, "contender": f"simulated {control}", "round": round_}
    if done.returncode != 0:
        return {**common, "failure": done.stderr.strip()}
    result = json.loads(done.stdout.splitlines()[0])
    goodput = result["flows"][0]["goodput_bps"] / 1e6
    return {**common, "mbps": round(goodput, 3), "queue_ms": round(result["links"][0]["queue_mean_ms"], 2)}


def page(samples: list[dict], arguments: argparse.Namespace) -> str:
    text = (
        "One flow over one link for 25 s, described once and carried twice: kernel TCP through `restp emulate --tun` in real "
        "time, the simulator's TCP through `restp sim`. Both use the same model of the link, which also measures the mean "
        "time that packets wait in its queue. A round is a seed. Default settings of the kernel; segments of 1448 bytes."
    )
    parts = [
        "# Kernel parity\n\nWritten by `bench/parity.py`; not edited by hand. Ranges are minimum – **median** – maximum over the "
        f"rounds. Apart by more than {GOODPUT:.0%} of goodput, or {DELAY:.0%} and 2 ms of queueing delay: marked.",
        sections.conditions(samples, arguments, text, "kernel TCP"),
    ]
    for control, transport in CONTROLS.items():
        rows = [row(samples, name, control) for name in NETWORKS if name in arguments.cases]
        parts.append(f"## Kernel `{control}` and `{transport}`\n\n" + table(HEAD, rows))
    parts.append(failures(samples))
    return "\n\n".join(part for part in parts if part) + "\n"


HEAD = ["network", "kernel, Mbit/s", "simulated", "ratio", "kernel, ms queued", "simulated", "ratio"]


def row(samples: list[dict], name: str, control: str) -> tuple[str, ...]:
    def found(who: str, value: str) -> list[float]:
        return values(samples, name, f"{who} {control}", value)

    cells = [name]
    for value, digits, bound, least in (("mbps", 2, GOODPUT, 0), ("queue_ms", 1, DELAY, 2)):
        real, ours = found("kernel", value), found("simulated", value)
        cells += [spread(real, digits), spread(ours, digits), ratio(real, ours, bound, least)]
    return tuple(cells)


def ratio(real: list[float], ours: list[float], bound: float, least: float) -> str:
    """Of the medians; marked when they are apart by more than the bound and `least`."""
    if not real or not ours or median(real) == 0:
        return "–"
    apart = abs(median(ours) - median(real))
    text = f"{median(ours) / median(real):.2f}"
    return f"**{text}**" if apart > bound * median(real) and apart > least else text


if __name__ == "__main__":
    names = tuple(NETWORKS)
    sys.exit(rounds.main(__doc__.splitlines()[0], names, "kernel-parity.md", measure, page))
