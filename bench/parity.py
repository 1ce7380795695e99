#!/usr/bin/env python3
"""Holds the simulator's current TCP against the kernel's on the same links and writes docs/results/kernel-parity.md.

    bench/parity.py [--rounds 5] [--cases NAME,...] [--keep] [--output FILE]

`--keep` simulates anew, beside what the kernel did when the page was written. Each network is one link, described once: `restp emulate --tun` carries kernel TCP over it, `restp sim` the TCP of the
simulator. Needs Linux, root, /dev/net/tun and the `ip` tool; without them it says so and measures nothing. Python's
standard library only. Exit code 0: everything was measured; 1: something could not be, and the page says what; 2: nothing
could. That a goodput differs is a result, not a failure.
"""

import argparse
import json
import re
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from statistics import median

import rounds
import sections
from job import Job, Programs, arrivals, sample
from network import PORT, Network
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
    "20 Mbit/s · 50 ms · 1 % come 8 ms late": link(
        "20 Mbit/s", "25 ms", packets(84), 'reorder = { rate = 0.01, delay = "8 ms" }'
    ),
    "20 Mbit/s · 50 ms · 3 ms of jitter, reordered": link(
        "20 Mbit/s", "25 ms", packets(84), 'jitter = { delay = "3 ms", reorder = true }'
    ),
    "20 Mbit/s · 50 ms · outage of 3 s": link("20 Mbit/s", "25 ms", packets(84), 'outage = ["12 s..15 s"]'),
    "20 Mbit/s · 50 ms · thin reverse path": link("20 Mbit/s", "25 ms", packets(84), 'reverse_rate = "300 kbit/s"'),
}

# Two flows beside each other: the second comes so many seconds later, and their shares are those of the time in between.
LATER_S, FROM_S, TO_S = 2, 10, 40
# A round starts the second one this much later than the round before: a queue that drops the last may favour one phase.
PHASE_S = 0.037
SHARED = (
    "10 Mbit/s · 20 ms · 1 BDP",
    "20 Mbit/s · 50 ms · 1 BDP",
    "20 Mbit/s · 50 ms · 10 BDP",
    "100 Mbit/s · 40 ms · 1 BDP",
)
PAIRS = (("cubic", "cubic"), ("cubic", "bbr"), ("bbr", "bbr"))
# The clocks of a host are late by some of this; a simulated one never is. So is every packet here, none overtaking another.
LATE = ("50 us", "200 us", "500 us", "1 ms")
# How many points of share the simulator's may be away from the kernel's.
POINTS = 7


def chosen(cases: set[str]) -> list[tuple[str, tuple[str, ...]]]:
    """Each network with each congestion control, and pairs of them."""
    alone = [(name, (control,)) for name in NETWORKS if name in cases for control in CONTROLS]
    return alone + [(name, pair) for name in SHARED if name in cases for pair in PAIRS]


def measure(programs: Programs, cases: set[str], round_: int) -> list[dict]:
    """A round, in the kernel and in the simulator."""

    def real(numbered: tuple[int, tuple[str, tuple[str, ...]]]) -> dict:
        number, (name, controls) = numbered
        run = alone if len(controls) == 1 else beside
        job = Job(name, contender("kernel", controls), {"p": NETWORKS[name]}, run(programs, controls, round_))
        return sample(programs, str(number), job, round_, tries=3)

    # One after the other: a simulation would hold up the emulator.
    with ThreadPoolExecutor(AT_A_TIME) as threads:
        found = list(threads.map(real, enumerate(chosen(cases))))
    return found + simulations(programs, cases, round_)


def simulations(programs: Programs, cases: set[str], round_: int) -> list[dict]:
    """A round in the simulator."""
    runs = [
        (name, controls, late)
        for name, controls in chosen(cases)
        for late in ("", *LATE)
        if may_be_late(name, controls, late)
    ]
    with ThreadPoolExecutor() as threads:
        return list(threads.map(lambda run: simulated(programs, *run, round_), runs))


def may_be_late(name: str, controls: tuple[str, ...], late: str) -> bool:
    return not late or (len(controls) == 1 and "jitter" not in NETWORKS[name])


def contender(home: str, controls: tuple[str, ...]) -> str:
    return f"{home} {' beside '.join(controls)}"


def alone(programs: Programs, controls: tuple[str, ...], _: int):
    """Bytes that the receiving application got within SECONDS from the first one, and the queue they met."""

    def run(network: Network) -> dict:
        server = begin(programs, network, controls[0], SECONDS)
        tenths = arrivals(server, SECONDS + SPARE_S)["tenths"]
        directions = network.counters()[0]
        waits = [directions[way]["queue_median_ms"] for way in ("forward", "reverse")]
        return {"mbps": round(sum(tenths) * 8 / SECONDS / 1e6, 3), "queue_ms": round(max(waits), 2)}

    return run


def beside(programs: Programs, controls: tuple[str, ...], round_: int):
    """The share of the first of two flows."""

    def run(network: Network) -> dict:
        later = LATER_S + PHASE_S * round_
        first = begin(programs, network, controls[0], TO_S)
        time.sleep(later)
        second = begin(programs, network, controls[1], TO_S - later, port=PORT + 1)
        logs = [arrivals(server, TO_S + SPARE_S) for server in (first, second)]
        begun = logs[0]["first"]
        got = [within(log, begun + FROM_S * 1e9, begun + TO_S * 1e9) for log in logs]
        return {"share": round(got[0] / sum(got), 4)}

    return run


def begin(programs: Programs, network: Network, control: str, seconds: float, port: int = PORT):
    """Starts one flow; returns its receiver."""
    program, options = programs.at("bulk", ["tcp", "--congestion", control])
    server, found = network.server(program, "--seconds", str(seconds), *options, port=port)
    network.client(program, *found, *options)
    return server


def within(log: dict, from_ns: float, to_ns: float) -> int:
    """Bytes of the tenths of a second that begin in that time."""
    moments = (log["first"] + tenth * 1e8 for tenth in range(len(log["tenths"])))
    return sum(got for at, got in zip(moments, log["tenths"], strict=True) if from_ns <= at < to_ns)


def simulated(programs: Programs, name: str, controls: tuple[str, ...], late: str, round_: int) -> dict:
    """The same of one run of the simulator, with segments as large as the kernel's."""
    pair = len(controls) > 1
    # One flow is measured from its first byte on: that comes with the third flight.
    begun = float(re.search(r'delay = "(\d+) ms"', NETWORKS[name])[1]) * 3 / 1e3
    measured = (FROM_S, TO_S) if pair else (begun, begun + SECONDS)
    flows = "".join(
        f"""
[[flow]]
name = "f{number}"
from = "a"
to = "b"
start = "{(LATER_S + PHASE_S * round_) * number:.3f} s"
transport = "{CONTROLS[control]}"
set = {{ segment = "1448 B" }}
traffic = {{ bulk = {{}} }}
"""
        for number, control in enumerate(controls)
    )
    scenario = f"""
id = "parity"
title = "one link"
duration = "{measured[1]:.3f} s"
[measure]
from = "{measured[0]:.3f} s"
[[link]]
name = "p"
between = ["a", "b"]
{NETWORKS[name]}
{f'jitter = {{ delay = "{late}", direction = "both" }}' if late else ""}
{flows}
"""
    with tempfile.TemporaryDirectory(prefix="restp-parity-") as folder:
        file = Path(folder) / "parity.toml"
        file.write_text(scenario)
        command = [programs.restp, "sim", str(file), "--json", "--runs", "1", "--seed", str(round_)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    common = {"case": name, "contender": contender(f"simulated{late and f', {late} late'}", controls), "round": round_}
    if done.returncode != 0:
        return {**common, "failure": done.stderr.strip()}
    result = json.loads(done.stdout.splitlines()[0])
    goodputs = [flow["goodput_bps"] for flow in result["flows"]]
    if pair:
        return {**common, "share": round(goodputs[0] / sum(goodputs), 4)}
    waits = result["links"][0]["queue_median_ms"]
    return {**common, "mbps": round(goodputs[0] / 1e6, 3), "queue_ms": round(waits, 2)}


def page(samples: list[dict], arguments: argparse.Namespace) -> str:
    text = (
        f"One flow over one link for {SECONDS} s, described once and carried twice: kernel TCP through `restp emulate --tun` in "
        "real time, the simulator's TCP through `restp sim`. Both use the same model of the link, which also measures the median "
        "time that packets wait in its queue, in the direction where that is longer. A round is a seed. Default settings of the "
        "kernel; segments of 1448 bytes. Seconds count from the first byte that arrives. A median wait is known within 4 %."
    )
    parts = [
        "# Kernel parity\n\nWritten by `bench/parity.py`; not edited by hand. Ranges are minimum – **median** – maximum over the "
        f"rounds. Apart by more than {GOODPUT:.0%} of goodput, or {DELAY:.0%} of queueing delay: marked.",
        sections.conditions(samples, arguments, text, "kernel TCP"),
    ]
    for control, transport in CONTROLS.items():
        rows = [row(samples, name, control) for name in NETWORKS if name in arguments.cases]
        parts.append(f"## Kernel `{control}` and `{transport}`\n\n" + table(HEAD, rows))
    rows = [lateness(samples, name, control) for control in CONTROLS for name in NETWORKS if name in arguments.cases]
    parts.append(
        "## What late clocks could do\n\nThe kernel's timers and processors are late by fractions of a millisecond, the simulator's never; by how much "
        "a host is late is not measured here, only that of the emulator is (above). Milliseconds queued (median) when every packet of the "
        "simulated link comes up to so much later, both ways, in order. *Could be*: the kernel's figure lies between these, or within the "
        "bound of one of them. Networks that are marked above and have no jitter of their own; a wait that is shorter than the time of one "
        "packet is no queue.\n\n" + table(LATE_HEAD, [row for row in rows if row])
    )
    rows = [shares(samples, name, pair) for name in SHARED if name in arguments.cases for pair in PAIRS]
    parts.append(
        f"## Two flows\n\nThe second begins {LATER_S} s later; the share of the first from {FROM_S} to {TO_S} s. Apart by more "
        f"than {POINTS} points: marked.\n\n" + table(SHARES_HEAD, rows)
    )
    parts.append(failures(samples))
    return "\n\n".join(part for part in parts if part) + "\n"


HEAD = ["network", "kernel, Mbit/s", "simulated", "ratio", "kernel, ms queued", "simulated", "ratio"]
LATE_HEAD = ["network", "control", "kernel", "not late", *LATE, "could be"]
SHARES_HEAD = ["network", "flows", "kernel, %", "simulated", "points apart"]


def row(samples: list[dict], name: str, control: str) -> tuple[str, ...]:
    cells = [name]
    for value, digits, bound in (("mbps", 2, GOODPUT), ("queue_ms", 1, DELAY)):
        real, ours = (values(samples, name, contender(home, (control,)), value) for home in ("kernel", "simulated"))
        cells += [spread(real, digits), spread(ours, digits), ratio(real, ours, bound)]
    return tuple(cells)


def ratio(real: list[float], ours: list[float], bound: float) -> str:
    """Of the medians; marked when they are apart by more than the bound."""
    if not real or not ours:
        return "–"
    if median(real) == 0:
        return "–" if median(ours) == 0 else "**no queue**"
    apart = abs(median(ours) - median(real))
    text = f"{median(ours) / median(real):.2f}"
    return f"**{text}**" if apart > bound * median(real) else text


def lateness(samples: list[dict], name: str, control: str) -> tuple[str, ...] | None:
    """Of a network that is marked for its delay."""
    at = [
        values(samples, name, contender(f"simulated{late and f', {late} late'}", (control,)), "queue_ms")
        for late in ("", *LATE)
    ]
    real = values(samples, name, contender("kernel", (control,)), "queue_ms")
    if not real or not all(at) or "**" not in ratio(real, at[0], DELAY):
        return None
    wanted, found = median(real), [median(waits) for waits in at]
    is_within = min(found) * (1 - DELAY) <= wanted <= max(found) * (1 + DELAY)
    is_tiny = max(wanted, found[0]) < 1500 * 8 / 1e3 / float(name.split()[0])
    word = "less than a packet" if is_tiny else "yes" if is_within else "**no**"
    return name, control, f"{wanted:.1f}", *(f"{wait:.1f}" for wait in found), word


def shares(samples: list[dict], name: str, pair: tuple[str, ...]) -> tuple[str, ...]:
    real, ours = (
        [100 * share for share in values(samples, name, contender(home, pair), "share")]
        for home in ("kernel", "simulated")
    )
    if not real or not ours:
        apart = "–"
    else:
        points = abs(median(ours) - median(real))
        apart = f"**{points:.1f}**" if points > POINTS else f"{points:.1f}"
    return name, contender("", pair).strip(), spread(real, 0), spread(ours, 0), apart


if __name__ == "__main__":
    names = tuple(NETWORKS)
    rest = ("kernel", simulations)
    sys.exit(rounds.main(__doc__.splitlines()[0], names, "kernel-parity.md", measure, page, rest))
