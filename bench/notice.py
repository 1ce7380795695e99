#!/usr/bin/env python3
"""Measures how soon a transfer goes on after its sender's address is replaced, and after its receiver starts again.

    bench/notice.py [--tries 20] [--restp target/release/restp] [--output docs/results/notice.md]

Needs root, /dev/net/tun and the `ip` tool. Exit code 1 when a target is missed, 2 when nothing can be measured.
"""

import argparse
import os
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median
from typing import NamedTuple

from network import Network, address, missing
from report import ROOT, output

DELAY_MS = 20
LINK = f'rate = "20 Mbit/s"\ndelay = "{DELAY_MS} ms"\nqueue = {{ drop_tail = "bdp" }}'
DEVICE = "tA"
NEXT = "10.77.0.9"
BYTES = 200_000_000
# More than the retransmissions that show a new address, and a window that has opened again.
DATA_BYTES, WINDOW_BYTES = 5_000, 20_000
LIMIT_S = 30
# Tells of each datagram that arrives at the receiver's device: when, from where, what kind, for which session, how long.
LOOKER = f"""
import socket, time
packets = socket.socket(socket.AF_PACKET, socket.SOCK_DGRAM, socket.htons(0x0800))
packets.bind(("{DEVICE}", 0))
while True:
    packet, (_, _, kind, *_) = packets.recvfrom(2048)
    udp = packet[(packet[0] & 15) * 4:]
    if kind != socket.PACKET_OUTGOING and packet[9] == 17:
        print(time.monotonic(), socket.inet_ntoa(packet[12:16]), udp[8], udp[9:17].hex(), len(udp), flush=True)
"""
# Seconds to data from a new address, and round trips to a request for a new session after the first packet to a new receiver.
WITHIN_S, ROUND_TRIPS = 0.3, 2


class Datagram(NamedTuple):
    at: float
    source: str
    kind: int
    session: str
    length: int

    def asks(self) -> bool:
        """Is it a Hello? (docs/protocol/sealed.md)"""
        return self.kind in (0x80, 0x81, 0x85)


class Arrivals:
    """Datagrams at the receiver's device."""

    def __init__(self, network: Network):
        self.all: list[Datagram] = []
        process = network.inside(1, ["python3", "-c", LOOKER])
        threading.Thread(target=self.follow, args=(process.stdout,), daemon=True).start()

    def follow(self, lines) -> None:
        for line in lines:
            at, source, kind, session, length = line.split()
            self.all.append(Datagram(float(at), source, int(kind), session, int(length)))

    def until(self, moment: float, wanted: Callable[[Datagram], bool], data: int = 1) -> float:
        """When `data` bytes in datagrams that are wanted have come after `moment`."""
        deadline = time.monotonic() + LIMIT_S
        while time.monotonic() < deadline:
            count = 0
            for datagram in list(self.all):
                if datagram.at > moment and wanted(datagram):
                    count += datagram.length
                    if count >= data:
                        return datagram.at
            time.sleep(0.02)
        raise RuntimeError(f"not within {LIMIT_S} s")


def transfer(network: Network, restp: str, folder: Path, file: Path):
    """A receiver and a sender in the middle."""
    port, key = 9001, folder / "key"
    receiver = receive(network, restp, folder, key, port)
    sender = network.inside(0, [restp, "send", str(file), f"{address(1)}:{port}", *keep(folder)])
    arrivals = Arrivals(network)
    arrivals.until(0, lambda _: True, 500_000)
    return receiver, sender, arrivals


def keep(folder: Path) -> list[str]:
    return ["--key", str(folder / "own")]


def receive(network: Network, restp: str, folder: Path, key: Path, port: int):
    listen = ["--listen", f"{address(1)}:{port}", "--open", "--overwrite", "--key", str(key), "--dir", str(folder / "in")]
    process = network.inside(1, [restp, "--json", "recv", *listen])
    if not process.stdout.readline():
        raise RuntimeError(process.stderr.read())
    return process


def replaced(network: Network, restp: str, folder: Path, file: Path, pause_s: float) -> tuple[float, float]:
    """The sender's address goes, and another comes after a pause: until data from there, and more of it."""
    _, _, arrivals = transfer(network, restp, folder, file)
    network.ip(0, "address", "del", f"{address(0)}/24", "dev", DEVICE)
    time.sleep(pause_s)
    moment = time.monotonic()
    network.ip(0, "address", "add", f"{NEXT}/24", "dev", DEVICE)
    from_next = [arrivals.until(moment, lambda one: one.source == NEXT, data) for data in (DATA_BYTES, WINDOW_BYTES)]
    return from_next[0] - moment, from_next[1] - moment


def restarted(network: Network, restp: str, folder: Path, file: Path) -> tuple[float, float]:
    """The receiver is killed and starts again at its port: from the first packet that reaches it until the request for a new
    session, and until data in one."""
    receiver, _, arrivals = transfer(network, restp, folder, file)
    receiver.kill()
    receiver.wait()
    receive(network, restp, folder, folder / "key", 9001)
    moment = time.monotonic()
    before = {datagram.session for datagram in arrivals.all}
    first = arrivals.until(moment, lambda _: True)
    asked = arrivals.until(moment, Datagram.asks)
    data = arrivals.until(asked, lambda datagram: datagram.session not in before and not datagram.asks(), DATA_BYTES)
    return asked - first, data - first


PAUSES_S = (0, 0.5, 5)


def one(case, restp: str, number: int, *rest):
    with tempfile.TemporaryDirectory() as name, Network(restp, "notice", {"A": LINK}, number) as network:
        folder = Path(name)
        (folder / "in").mkdir()
        for key in ("key", "own"):
            network.run(network.namespaces[0], restp, "keygen", str(folder / key))
        file = folder / "file"
        with file.open("wb") as zeros:
            zeros.truncate(BYTES)
        os.environ["XDG_DATA_HOME"] = name
        return case(network, restp, folder, file, *rest)


def tries(count: int, *what) -> tuple[list, int]:
    """Results, and how many tries had none."""
    results = []
    for number in range(count):
        try:
            results.append(one(what[0], what[1], number, *what[2:]))
        except (RuntimeError, OSError) as error:
            print(error, file=sys.stderr)
        print(what[0].__name__, what[2:], results[-1:], file=sys.stderr)
    return results, count - len(results)


def row(name: str, times: list[float], failed: int, most: float | None) -> tuple[str, bool]:
    if not times:
        return f"| {name} | | | 0 | {failed} | **missed** |", False
    held = failed == 0 and (most is None or max(times) <= most)
    verdict = "" if most is None else f"{most:g}: " + ("held" if held else "**missed**")
    return f"| {name} | {median(times):.3f} | {max(times):.3f} | {len(times)} | {failed} | {verdict} |", held


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--tries", type=int, default=20)
    parser.add_argument("--restp", default=str(ROOT / "target/release/restp"), help="the program to measure")
    parser.add_argument("--output", type=Path, default=ROOT / "docs/results/notice.md")
    arguments = parser.parse_args()
    if why := missing():
        print(why, file=sys.stderr)
        return 2
    rows = []
    for pause in PAUSES_S:
        both, failed = tries(arguments.tries, replaced, arguments.restp, pause)
        for place, (data, most) in enumerate(((DATA_BYTES, WITHIN_S), (WINDOW_BYTES, None))):
            name = f"address replaced, {pause} s without one: {data // 1000} kB"
            rows.append(row(name, [times[place] for times in both], failed, most))
    both, failed = tries(arguments.tries, restarted, arguments.restp)
    asked, data = ([times[place] for times in both] for place in (0, 1))
    trip_s = 2 * DELAY_MS / 1000
    rows.append(row("receiver started again: asked for a new session", asked, failed, ROUND_TRIPS * trip_s))
    rows.append(row("receiver started again: data of the file, from its beginning", data, failed, WITHIN_S))
    page(arguments, [text for text, _ in rows])
    return 0 if all(held for _, held in rows) else 1


def page(arguments: argparse.Namespace, rows: list[str]) -> None:
    revision = output("git", "-C", str(ROOT), "describe", "--always", "--dirty")
    text = f"""# How soon a change is noticed

```
python3 bench/notice.py {" ".join(sys.argv[1:])}
```

Revision {revision}. `restp send` of {BYTES // 1_000_000} MB without further options, over an emulated path of 20 Mbit/s and a round trip of
{2 * DELAY_MS} ms, between two network namespaces. In the middle of it the only address of the sender is deleted and another one
added, at once or after a pause in which nothing can be sent; or the receiver is killed and starts again at its port with its key, and
`send` begins the file again by itself. Seconds from the new address, or from the first packet that reaches the new receiver, until
{DATA_BYTES // 1000} and {WINDOW_BYTES // 1000} kB from the new address, or {DATA_BYTES // 1000} kB in a new session, have come to the receiver's device, or the request for that session.

| case | median, s | maximum, s | tries | failed | asked for, s |
|---|---|---|---|---|---|
{chr(10).join(rows)}
"""
    arguments.output.write_text(text)
    print(text)


if __name__ == "__main__":
    sys.exit(main())
