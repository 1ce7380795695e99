#!/usr/bin/env python3
"""200 connections of every kind for an hour, over paths that lose, flap and die, between processes that are killed.

usage: bench/soak.py [--minutes N] [--seed N] [--hurry X] [--restp PROGRAM] [--soak PROGRAM] [--page FILE]

Everything runs on loopback: two servers, eight clients, and one emulator that carries two paths to each server. Server
1 and four clients live as long as the soak, server 2 and the other four are killed and started again. What holds or
does not is at the end of the page, and the status is 1 when something does not.
"""

import argparse
import heapq
import json
import os
import random
import re
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
CONNECTIONS_EACH, LASTING_CLIENTS, CLIENTS = 25, 4, 8
SAMPLE_S = 5
PATHS = {"1a": ("20 ms", 1), "1b": ("35 ms", 1), "2a": ("20 ms", 2), "2b": ("35 ms", 2)}
LINK = """rate = "50 Mbit/s"
loss = { rate = 0.01, direction = "both" }
duplicate = { rate = 0.002, direction = "both" }
reorder = { rate = 0.01, delay = "8 ms", direction = "both" }
corrupt = { rate = 0.002, direction = "both" }
"""
# Mean seconds between faults of each kind; --hurry divides them.
EVERY_S = {"flap": 15, "outage": 90, "loss": 30, "kill client": 45, "kill server": 150}
MEMORY_MAY_DRIFT = 0.05
BOUNDS = """A stream that backs off by doubling tries about 8, 16, 32 and 64 s after the last answer; when flaps, outages and
losses take all of these, it is given up after the two minutes that the soak allows (`default` allows five), and says so."""


class Watched:
    """A process and those that follow it in its place: memory and descriptors by time, and what it says."""

    def __init__(self, name: str, command, lasting: bool):
        """`command` of a life, the first being 0."""
        self.name, self.command, self.lasting = name, command, lasting
        self.samples: list[tuple[float, int, int]] = []
        self.lives, self.cpu_s, self.wrong, self.broken = 0, 0.0, [], []
        self.past: dict[str, int] = {}
        self.now: dict[str, int] = {}
        self.process: subprocess.Popen | None = None
        self.ended_by_us = False

    def start(self) -> None:
        pipe = subprocess.PIPE
        command = self.command(self.lives)
        told = {"stdin": pipe, "stdout": pipe, "stderr": subprocess.DEVNULL, "text": True, "bufsize": 1}
        self.process = subprocess.Popen(command, **told)
        self.lives, self.ended_by_us = self.lives + 1, False
        threading.Thread(target=self.listen, args=(self.process,), daemon=True).start()

    def listen(self, process: subprocess.Popen) -> None:
        for line in process.stdout:
            said = json.loads(line)
            kind = said.pop("event", None)
            if kind == "counters":
                self.now = said
            elif kind:
                print(f"{self.name}: {line.strip()}", flush=True)
                (self.wrong if kind == "wrong" else self.broken).append(said)

    def kill(self) -> None:
        self.ended_by_us = True
        self.process.kill()
        self.process.wait()
        for key, value in self.now.items():
            self.past[key] = self.past.get(key, 0) + value
        self.now = {}

    def total(self, counter: str) -> int:
        return self.past.get(counter, 0) + self.now.get(counter, 0)

    def fell(self) -> bool:
        return self.process.poll() is not None and not self.ended_by_us

    def sample(self, at: float) -> None:
        proc = Path(f"/proc/{self.process.pid}")
        try:
            rss = int(re.search(r"VmRSS:\s+(\d+)", (proc / "status").read_text())[1])
            fields = (proc / "stat").read_text().rsplit(")", 1)[1].split()
            self.samples.append((at, rss, len(os.listdir(proc / "fd"))))
            self.cpu_s = (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
        except (OSError, TypeError):
            pass  # it was killed just now

    def memory(self, first: float, window: float, last: float) -> list[float]:
        """Median KiB of each whole window from `first` on."""
        windows = int((last - first) / window)
        inside = [[rss for at, rss, _ in self.samples if 0 <= at - first - n * window < window] for n in range(windows)]
        return [statistics.median(rss) for rss in inside if rss]

    def descriptors(self, first: float) -> list[int]:
        return [fds for at, _, fds in self.samples if at >= first]


class Soak:
    def __init__(self, wanted: argparse.Namespace, folder: Path):
        self.wanted, self.dice = wanted, random.Random(wanted.seed)
        port = wanted.port
        ends = {name: f"127.0.0.1:{port + n}" for n, name in enumerate(PATHS)}
        entries = {name: f"127.0.0.1:{port + 10 + n}" for n, name in enumerate(PATHS)}
        (folder / "net.toml").write_text(
            f"seed = {wanted.seed}\n"
            + "".join(
                f'[[path]]\nname = "{name}"\nlisten = "{entries[name]}"\nto = "{ends[name]}"\ndelay = "{delay}"\n{LINK}'
                for name, (delay, _) in PATHS.items()
            )
        )
        at = {server: [name for name, (_, of) in PATHS.items() if of == server] for server in (1, 2)}
        peers = [f"{server}@{','.join(entries[name] for name in names)}" for server, names in at.items()]
        emulate = [wanted.restp, "emulate", "--json", "--control", str(folder / "net.toml")]
        self.emulator = Watched("emulator", lambda _: emulate, True)
        self.servers = [self.server(server, [ends[name] for name in names]) for server, names in at.items()]
        self.clients = [self.client(n, port + 20 + 10 * n, peers) for n in range(1, CLIENTS + 1)]
        self.all = [self.emulator, *self.servers, *self.clients]
        self.faults = dict.fromkeys(EVERY_S, 0)
        self.down_until = dict.fromkeys(PATHS, 0.0)

    def server(self, number: int, listen: list[str]) -> Watched:
        return Watched(f"server {number}", lambda _: [self.wanted.soak, "server", str(number), *listen], number == 1)

    def client(self, number: int, port: int, peers: list[str]) -> Watched:
        def command(life: int) -> list[str]:
            seed = self.wanted.seed * 1_000_000 + 1000 * number + life
            print(f"client {number}: seed {seed}", flush=True)
            return [self.wanted.soak, "client", *map(str, (10 + number, port, seed, CONNECTIONS_EACH, 60)), *peers]

        return Watched(f"client {number}", command, number <= LASTING_CLIENTS)

    def tell(self, command: str) -> None:
        self.emulator.process.stdin.write(command + "\n")

    def down(self, path: str, now: float, span: float) -> None:
        self.down_until[path] = max(self.down_until[path], now + span)
        self.tell(f"down {path}")

    def kill(self, one: Watched, now: float, most_s: float) -> None:
        if not one.ended_by_us:
            print(f"{now:.0f} s: {one.name} is killed", flush=True)
            one.kill()
            heapq.heappush(self.restarts, (now + self.dice.uniform(0, most_s), one.name, one))

    def fault(self, kind: str, now: float) -> None:
        self.faults[kind] += 1
        dice = self.dice
        if kind == "flap":
            self.down(dice.choice(list(PATHS)), now, dice.uniform(1, 10))
        elif kind == "outage":
            server, span = dice.choice((1, 2)), dice.uniform(2, 8)
            for path in [name for name, (_, of) in PATHS.items() if of == server]:
                self.down(path, now, span)
        elif kind == "loss":
            path, back = dice.choice(list(PATHS)), dice.choice(("", "reverse_"))
            self.tell(f"set {path} {back}loss={dice.choice((0, 0.005, 0.02, 0.05))}")
        elif kind == "kill client":
            self.kill(dice.choice(self.clients[LASTING_CLIENTS:]), now, 5)
        else:
            self.kill(self.servers[1], now, 10)

    def mend(self, now: float) -> None:
        for path, until in self.down_until.items():
            if 0 < until <= now:
                self.down_until[path] = 0.0
                self.tell(f"up {path}")
        while self.restarts and self.restarts[0][0] <= now:
            heapq.heappop(self.restarts)[2].start()

    def run(self) -> None:
        """Faults until shortly before the end: what is left must then recover."""
        seconds = 60 * self.wanted.minutes
        calm = seconds - min(60, seconds / 4)
        self.restarts: list = []
        due = {kind: self.dice.expovariate(self.wanted.hurry / mean) for kind, mean in EVERY_S.items()}
        for one in self.all:
            one.start()
            time.sleep(0.3)
        begin, sampled = time.monotonic(), 0.0
        while (now := time.monotonic() - begin) < seconds:
            for kind in EVERY_S:
                if due[kind] <= now < calm:
                    self.fault(kind, now)
                    due[kind] = now + self.dice.expovariate(self.wanted.hurry / EVERY_S[kind])
            self.mend(now)
            if fallen := [one.name for one in self.all if one.fell()]:
                raise RuntimeError(f"{', '.join(fallen)} ended after {now:.0f} s")
            if now >= sampled:
                sampled += SAMPLE_S
                for one in self.all:
                    one.sample(now)
            time.sleep(0.25)
        self.stand_at_end = sum(one.now.get("live", 0) for one in self.clients)

    def end(self) -> None:
        for one in self.all:
            if one.process and one.process.poll() is None:
                one.kill()

    def page(self) -> tuple[str, bool]:
        minutes = self.wanted.minutes
        first = min(10.0, minutes / 3)
        window = first / 2
        laws, rows = {}, []
        laws["every process ended only when it was killed"] = all(not one.fell() for one in self.all)
        laws["no byte was lost, repeated or changed"] = not any(one.wrong for one in self.all)
        refused = [said for one in self.clients for said in one.broken if said["peer"] == 1]
        laws["no connection to the server that lives ever broke"] = not refused
        drifts, leaks = [], []
        for one in self.all:
            row = [one.name, str(one.lives), f"{max(rss for _, rss, _ in one.samples) / 1024:.1f}"]
            if one.lasting:
                medians = one.memory(60 * first, 60 * window, 60 * minutes)
                drift = max((abs(median / medians[0] - 1) for median in medians), default=1.0)
                held = one.descriptors(60 * first)
                drifts.append(drift)
                leaks.append(max(held) - held[0])
                row += [f"{kib / 1024:.1f}" for kib in (medians[0], medians[-1])]
                row += [f"{100 * drift:.1f} %", f"{held[0]} to {max(held)}"]
            else:
                row += ["", "", "", f"at most {max(one.descriptors(0))}"]
            rows.append(f"| {' | '.join(row)} |")
        laws["resident memory of those that live stayed within 5 %"] = max(drifts) <= MEMORY_MAY_DRIFT
        laws["none of them has more descriptors than at the beginning"] = max(leaks) == 0
        keys = ("opened", "finished", "broken", "stream_bytes", "sent", "received")
        total = {key: sum(one.total(key) for one in self.clients) for key in keys}
        laws["nine of ten connections stood again at the end"] = self.stand_at_end >= 0.9 * CONNECTIONS_EACH * CLIENTS
        cpu = sum(one.cpu_s for one in self.all if one.lasting) / (60 * minutes)
        held = all(laws.values())
        told = [f"{one.name}, {said['kind']}: {said['why']}" for one in self.clients for said in one.broken
                if said["peer"] == 1]
        broke = f"\nWhat broke although the server lived: {'; '.join(told)}. {BOUNDS}\n" if told else ""
        faults = ", ".join(f"{count} × {kind}" for kind, count in self.faults.items())
        return f"""# Soak

```
make soak SOAK="--minutes {minutes:g} --seed {self.wanted.seed} --hurry {self.wanted.hurry:g}"
```

{CONNECTIONS_EACH * CLIENTS} sealed connections at a time for {minutes:g} minutes over real sockets: streams (`default`,
`resilient`), streams over two paths (`multipath`), datagrams (`unrel`), voice in talk spurts (`par-arq`), a fifth each.
Each lives for a minute on average, ends in good order and is followed by another one. Two servers send everything back;
between them and eight clients the emulator carries two paths to each server, 50 Mbit/s, 20 and 35 ms, and loses,
delays, repeats and damages packets. Seed {self.wanted.seed}; those of the clients follow from it. Faults: {faults}.
Server 1 and clients 1 to {LASTING_CLIENTS} live all the time; server 2 and the others are killed (SIGKILL) and start
again at the same addresses with the same keys.

Every byte of a stream follows from the seed of its connection and its place; messages bear numbers. Servers and clients
check all they get. In sum: {total["opened"]} connections, {total["finished"]} ended in good order, {total["broken"]}
broke because an end was killed or not there; {total["stream_bytes"] / 1e6:.0f} MB of streams and {total["received"]} of
{total["sent"]} messages came back to the clients.

Memory is the resident set, in MiB, read every {SAMPLE_S} s: the median of windows of {window:g} minutes. From minute
{first:g} on each is compared with the first. Of processes that are killed only the greatest is shown. Those that live
took {100 * cpu:.0f} % of one processor together.

| process | lives | greatest | first window | last window | greatest change | descriptors |
|---|---|---|---|---|---|---|
{chr(10).join(rows)}

{chr(10).join(f"- {law}: {'yes' if holds else '**no**'}" for law, holds in laws.items())}
{broke}""", held


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--minutes", type=float, default=60)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--hurry", type=float, default=1, help="faults come so many times as often")
    parser.add_argument("--port", type=int, default=23000, help="first of 120 ports of 127.0.0.1")
    parser.add_argument("--restp", default=str(ROOT / "target/release/restp"))
    parser.add_argument("--soak", default=str(ROOT / "target/release/examples/soak"))
    parser.add_argument("--page", default=str(ROOT / "docs/results/soak.md"))
    wanted = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        soak = Soak(wanted, Path(folder))
        try:
            soak.run()
        finally:
            soak.end()
        page, held = soak.page()
    Path(wanted.page).write_text(page)
    print(page)
    return 0 if held else 1


if __name__ == "__main__":
    sys.exit(main())
