#!/usr/bin/env python3
"""How soon two hosts behind translators (NAT) that met at a relay reach each other directly, and what the relay's end does to them.

    bench/relay.py [--tries 20] [--restp target/release/restp] [--output docs/results/relay.md]

Each host lies behind a translator of nftables that drops what nobody asked for; between each translator and the relay lies a path of
`restp emulate --tun`. Needs root, /dev/net/tun, `ip` and `nft`. Exit code 1 when a target is missed, 2 when nothing can be measured.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path
from statistics import median
from typing import NamedTuple

from network import EMULATOR, END, START_LIMIT_S, ip, missing, next_line, start
from report import ROOT, output

DELAY_MS = 20
LINK = f'rate = "50 Mbit/s"\ndelay = "{DELAY_MS} ms"\nqueue = {{ drop_tail = "bdp" }}'
RELAY = "10.9.1.1:7071"
# What the rule of a translator says beside `masquerade`: Linux keeps a port where it can, or draws one for each destination.
KEEPS, DRAWS = "", "fully-random"
KINDS = [
    ("both keep ports", (KEEPS, KEEPS), 0, True),
    ("both keep ports, 2 % lost", (KEEPS, KEEPS), 0.02, True),
    ("the sender's draws ports", (DRAWS, KEEPS), 0, False),
    ("the receiver's draws ports", (KEEPS, DRAWS), 0, False),
    ("both draw ports", (DRAWS, DRAWS), 0, False),
]
# Data goes on as long as this, beside the relay and after its end; without a direct path by then there is none.
BEFORE_S, AFTER_S = 3, 3
DIRECT_S, STALL_MS = 2, 300


class Try(NamedTuple):
    """Seconds from the start of `send` to the relayed path, unless it never came up, and to the direct one, and the longest pause of the data."""

    relayed: float | None
    direct: float | None
    stall_ms: float
    whole: bool


class Internet:
    """left - translator - path - relay - path - translator - right, each in a namespace of its own."""

    def __init__(self, restp: str, rules: tuple[str, str], loss: float, seed: int):
        self.restp, self.rules, self.loss, self.seed = restp, rules, loss, seed
        self.names = {part: f"restp-{os.getpid()}-{part}" for part in ("wan", "left", "lnat", "right", "rnat")}
        self.folder = tempfile.TemporaryDirectory(prefix="restp-relay-")
        self.processes: list[subprocess.Popen] = []

    def __enter__(self) -> "Internet":
        try:
            for name in self.names.values():
                ip("netns", "add", name)
                ip("-n", name, "link", "set", "lo", "up")
            for number, (host, rule) in enumerate(zip(("left", "right"), self.rules, strict=True), 1):
                self.side(number, host, f"{host[0]}nat", rule)
            self.run("wan", "sh", "-c", "echo 1 > /proc/sys/net/ipv4/ip_forward")
        except BaseException:
            self.__exit__()
            raise
        return self

    def side(self, number: int, host: str, nat: str, rule: str) -> None:
        loss = f"loss = {{ rate = {self.loss} }}" if self.loss else ""
        text = f'seed = {self.seed + number}\n[tun]\nnamespaces = ["{self.names[nat]}", "{self.names["wan"]}"]\n[[path]]\nname = "{host}"\n'
        description = Path(self.folder.name) / f"{host}.toml"
        description.write_text(f'{text}addresses = ["10.9.{number}.2/24", "10.9.{number}.1/24"]\n{LINK}\n{loss}\n')
        emulator = start([*EMULATOR, self.restp, "emulate", "--tun", "--control", "--json", str(description)])
        self.processes.append(emulator)
        next_line(emulator, START_LIMIT_S)
        out = f"t{host}"
        ip("-n", self.names[nat], "route", "add", "default", "dev", out)
        ip("-n", self.names[nat], "link", "add", "in", "type", "veth", "peer", "name", "eth", "netns", self.names[host])
        for namespace, device, address in ((nat, "in", 1), (host, "eth", 2)):
            ip("-n", self.names[namespace], "addr", "add", f"10.{number}.0.{address}/24", "dev", device)
            ip("-n", self.names[namespace], "link", "set", device, "up")
        ip("-n", self.names[host], "route", "add", "default", "via", f"10.{number}.0.1")
        self.run(nat, "sh", "-c", "echo 1 > /proc/sys/net/ipv4/ip_forward")
        self.run(
            nat,
            "nft",
            f"""table ip nat {{ chain post {{ type nat hook postrouting priority 100; oifname {out} masquerade {rule}; }}; }}
            table ip guard {{
                chain on {{ type filter hook forward priority 0; iifname {out} ct state new drop; }}
                chain own {{ type filter hook input priority 0; iifname {out} ct state new drop; }}
            }}""",
        )

    def run(self, part: str, *command: str) -> None:
        ip("netns", "exec", self.names[part], *command)

    def inside(self, part: str, *words: str) -> subprocess.Popen:
        process = start(["ip", "netns", "exec", self.names[part], *END, self.restp, "--json", *words])
        self.processes.append(process)
        return process

    def __exit__(self, *_) -> None:
        for process in reversed(self.processes):
            if process.poll() is None:
                process.kill()
            process.wait()
        for name in self.names.values():
            subprocess.run(["ip", "netns", "delete", name], check=False, capture_output=True)
        self.folder.cleanup()


def cross(internet: Internet) -> Try:
    """Standard input is sent, as fast as it goes; after three seconds the relay dies if there is a direct path."""
    folder = Path(internet.folder.name)
    os.environ["XDG_DATA_HOME"] = os.environ["XDG_CONFIG_HOME"] = str(folder)
    relay = internet.inside("wan", "relay", "--listen", RELAY, "--limit", "1Gbit/s")
    next_line(relay, START_LIMIT_S)
    receiver = internet.inside("right", "recv", "--once", "--open", "--relay", RELAY, "--dir", str(folder / "in"))
    told = next_line(receiver, START_LIMIT_S)
    relayed_at = told["addresses"][-1]
    began = time.monotonic()
    sender = internet.inside("left", "send", "-", told["ticket"], "--address", relayed_at)
    came, last = {}, {}
    reader = threading.Thread(target=read, args=(sender, relayed_at, came, last))
    reader.start()
    data, fed = os.urandom(1 << 16), 0
    deadline = began + BEFORE_S
    while time.monotonic() < deadline:
        fed += feed(sender, data)
    is_direct = "direct" in came
    if is_direct:
        relay.kill()
    deadline = time.monotonic() + AFTER_S
    while time.monotonic() < deadline:
        fed += feed(sender, data)
    sender.stdin.close()
    reader.join(timeout=60)
    if "bytes" not in last:
        sender.kill()
        raise RuntimeError(f"the transfer did not end: {sender.stderr.read().strip()}")
    received = (folder / "in" / "stdin").stat().st_size
    taken = json.loads(receiver.communicate(timeout=60)[0].splitlines()[-1])  # only a receiver knows how long nothing came
    direct = came["direct"] - began if is_direct else None
    relayed = came["relayed"] - began if "relayed" in came else None
    return Try(relayed, direct, float(taken["longest_stall_ms"]), received == fed == last["bytes"])


def feed(sender: subprocess.Popen, data: bytes) -> int:
    sender.stdin.buffer.write(data)
    sender.stdin.buffer.flush()
    return len(data)


def read(sender: subprocess.Popen, relayed_at: str, came: dict, last: dict) -> None:
    """When which path was up, and the result."""
    for line in sender.stdout:
        news = json.loads(line)
        if news.get("event") == "path" and news["state"] == "up":
            came.setdefault("relayed" if news["remote"] == relayed_at else "direct", time.monotonic())
        if "longest_stall_ms" in news:
            last |= news


def tries(restp: str, kind: tuple, count: int) -> list[Try | None]:
    name, rules, loss, _ = kind
    found = []
    for number in range(count):
        try:
            with Internet(restp, rules, loss, 10 * number) as internet:
                found.append(cross(internet))
        except (RuntimeError, OSError, KeyError, TypeError) as error:
            print(f"{name}: {error!r}", file=sys.stderr)
            found.append(None)
        print(name, found[-1], file=sys.stderr)
    return found


def row(kind: tuple, found: list[Try | None]) -> tuple[str, bool]:
    name, _, _, can_meet = kind
    done = [one for one in found if one]
    relayed = [one.relayed for one in done if one.relayed is not None]
    direct = [one.direct for one in done if one.direct is not None]
    stalls = [one.stall_ms for one in done]
    held = len(done) == len(found) and all(one.whole for one in done)
    if can_meet:
        held = held and len(direct) == len(found) and max(direct) <= DIRECT_S and max(stalls) <= STALL_MS
    cells = [
        name,
        f"{median(relayed):.2f}" if relayed else "–",
        f"{len(direct)} of {len(found)}",
        f"{median(direct):.2f} ({max(direct):.2f})" if direct else "–",
        f"{median(stalls):.0f} ({max(stalls):.0f})" if stalls else "",
        f"{sum(one.whole for one in done)} of {len(found)}",
        "held" if held else "**missed**",
    ]
    return f"| {' | '.join(cells)} |", held


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--tries", type=int, default=20)
    parser.add_argument("--restp", default=str(ROOT / "target/release/restp"), help="the program to measure")
    parser.add_argument("--output", type=Path, default=ROOT / "docs/results/relay.md")
    arguments = parser.parse_args()
    if why := missing("nft"):
        print(why, file=sys.stderr)
        return 2
    rows = [row(kind, tries(arguments.restp, kind, arguments.tries)) for kind in KINDS]
    revision = output("git", "-C", str(ROOT), "describe", "--always", "--dirty")
    text = f"""# Through a relay, and past it

```
python3 bench/relay.py {" ".join(sys.argv[1:])}
```

Revision {revision}. A receiver and a sender behind a translator (NAT) each, which drops what nobody asked for, and 50 Mbit/s and {2 * DELAY_MS} ms of
round trip between each and the relay. Ports are kept by a translator, or drawn anew for each destination. `send -` sends what it reads as
fast as it goes for {BEFORE_S} s, then the relay is killed if there is a direct path, and it goes on for {AFTER_S} s more. Times are
from the start of `send`; medians, and in brackets the worst. Asked for, where both keep ports: a direct path in all tries within {DIRECT_S} s,
and no pause of more than {STALL_MS} ms; everywhere, that all that was read arrives.

| translators | relayed path after, s | direct path in | after, s | longest pause, ms | whole | |
|---|---|---|---|---|---|---|
{chr(10).join(text for text, _ in rows)}
"""
    arguments.output.write_text(text)
    print(text)
    return 0 if all(held for _, held in rows) else 1


if __name__ == "__main__":
    sys.exit(main())
