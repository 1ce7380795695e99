#!/usr/bin/env python3
"""A receiver beside floods: established peers, new peers, what it costs; writes docs/results/flood.md.

usage: bench/flood.py [--restp PROGRAM] [--flood PROGRAM] [--rounds N] [--tries N] [--megabytes N] [--page FILE]

Established: a sealed transfer crosses an emulated path of 100 Mbit/s and 10 ms, so that it is the path and not the
processor that limits it when nothing else happens; the flood goes straight to the receiver's socket. Making a flood takes a
processor: the flooder is held to the last one, and one kind of round lets it send to a socket that nobody reads, which
shows what the machine has left for everybody. Rounds alternate between the kinds, so that the load of the machine meets
all alike. New peers: while a flood goes on, one small transfer after the other, each by a sender with a new key that was
never there. Forged packets carry the connection id of the transfer, which is read off the wire: that takes root.
"""

import argparse
import json
import os
import re
import socket
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from contextlib import ExitStack
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
REQUESTS, FORGED = 100_000, 30_000
# Name, what the flooder is told (kind, sources), rate.
KINDS = {
    "no flood": None,
    "Hello (IK) to a socket that nobody reads": ("ik", 0, REQUESTS),
    "SYNs without a seal": ("plain", 0, REQUESTS),
    "Hello for a key of nobody (IK)": ("ik", 0, REQUESTS),
    "Hello that any bytes are (IX)": ("ix", 0, REQUESTS),
    "the same (IX) from 500 sources": ("ix", 500, REQUESTS),
    "Hello (IK) of one source with its proof": ("tagged", 1, REQUESTS),
    "Hello (IK) of 500 sources with their proofs": ("tagged", 500, REQUESTS),
    "any bytes": ("junk", 0, REQUESTS),
}
BESIDE = "Hello (IK) to a socket that nobody reads"
NEW_PEERS = ["no flood", *list(KINDS)[2:8]]
SPOOFED = list(KINDS)[2:5]
PACKETS = {
    "none": None,
    "packets to a socket that nobody reads": ("forged", 1, FORGED),
    "packets with a seen connection id": ("forged", 1, FORGED),
    "packets of an unknown session": ("forged", 1, FORGED),
    "SYNs without a seal, which the kernel drops": ("plain", 0, FORGED),
}
UNREAD, SEEN = list(PACKETS)[1:3]
NEW_PEER_BYTES, IN_TIME_S, TIMEOUT_S = 100_000, 3.0, 20
PINNED = ["taskset", "-c", str(os.cpu_count() - 1)]


def resident_kb(pid: int) -> int:
    """Resident memory now, in KiB."""
    return int(re.search(r"VmRSS:\s+(\d+)", Path(f"/proc/{pid}/status").read_text())[1])


def cpu_seconds(pid: int) -> float:
    """Processor time of the process so far, in user space and in the kernel on its behalf."""
    threads = Path(f"/proc/{pid}/task").iterdir()
    return sum(int((thread / "schedstat").read_text().split()[0]) for thread in threads) / 1e9


class Process:
    """One that ends with its round."""

    def __init__(self, command: list[str], folder: Path):
        home = {"HOME": str(folder), "XDG_DATA_HOME": str(folder), "XDG_CACHE_HOME": str(folder)}
        self.child = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
            env={**os.environ, **home},
        )

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.child.kill()
        self.child.communicate()

    def line(self) -> dict:
        return json.loads(self.child.stdout.readline())


class Flood(Process):
    """The flooder; it says each second how many it has sent in the mean."""

    def __init__(self, program: str, target: str, words: tuple, folder: Path, connection: str = ""):
        kind, sources, rate = words
        super().__init__([*PINNED, program, target, str(rate), kind, str(sources), *filter(None, [connection])], folder)
        self.rate = 0
        threading.Thread(target=self.listen, daemon=True).start()

    def listen(self):
        for line in self.child.stdout:
            self.rate = json.loads(line)["per_second"]


class Watch(threading.Thread):
    """Most memory of a process while it is watched."""

    def __init__(self, pid: int):
        super().__init__(daemon=True)
        self.pid, self.peak_kb, self.over = pid, 0, threading.Event()
        self.start()

    def run(self):
        while not self.over.wait(0.1):
            self.peak_kb = max(self.peak_kb, resident_kb(self.pid))


def connection_id(port: int) -> str:
    """The id in a packet to `port`, as anybody beside the path sees it."""
    with socket.socket(socket.AF_PACKET, socket.SOCK_DGRAM, socket.htons(0x0800)) as wire:
        wire.bind(("lo", 0))
        wire.settimeout(5)
        while True:
            packet = wire.recv(2048)
            udp = packet[4 * (packet[0] & 15):]
            if packet[9] == 17 and int.from_bytes(udp[2:4]) == port and udp[8] & 0xF0 == 0xC0:
                return udp[9:17].hex()


def established(options: argparse.Namespace, kind: str, words: tuple | None, folder: Path) -> dict:
    """One transfer, with or without a flood once it is established."""
    (folder / "received").mkdir()
    (folder / "file").write_bytes(os.urandom(1 << 20) * options.megabytes)
    with ExitStack() as stack:
        unread = stack.enter_context(socket.socket(socket.AF_INET, socket.SOCK_DGRAM))
        unread.bind(("127.0.0.1", 0))
        receiver = stack.enter_context(Process(receive(options, folder), folder))
        started = receiver.line()
        address, pid = started["addresses"][0], receiver.child.pid
        (folder / "net.toml").write_text(
            f'[[path]]\nname = "a"\nlisten = "127.0.0.1:0"\nto = "{address}"\nrate = "100 Mbit/s"\ndelay = "10 ms"\n'
        )
        command = [options.restp, "emulate", "--json", "--control", str(folder / "net.toml")]
        entry = stack.enter_context(Process(command, folder)).line()["ready"][0]["listen"]
        to = [started["ticket"], "--address", entry]
        sender = stack.enter_context(Process([options.restp, "send", "--json", str(folder / "file"), *to], folder))
        time.sleep(0.5)
        seen = connection_id(int(address.rsplit(":", 1)[1])) if words and words[0] == "forged" else ""
        if "unknown" in kind:
            seen = "0123456789abcdef"
        flood = None
        if words:
            target = f"127.0.0.1:{unread.getsockname()[1]}" if "nobody reads" in kind else address
            flood = stack.enter_context(Flood(options.flood, target, words, folder, seen))
        time.sleep(0.3)
        watch, used, begin = Watch(pid), cpu_seconds(pid), time.monotonic()
        output, said = sender.child.communicate(timeout=300)
        seconds, used = time.monotonic() - begin, cpu_seconds(pid) - used
        watch.over.set()
        if sender.child.returncode:
            raise ValueError(said[-300:])
        return {
            "rate": flood.rate if flood else 0,
            "mbit": options.megabytes * 8 / json.loads(output.splitlines()[-1])["seconds"],
            "peak_kb": watch.peak_kb,
            "cpu": used / seconds,
        }


def receive(options: argparse.Namespace, folder: Path) -> list[str]:
    return [options.restp, "recv", "--json", "--listen", "127.0.0.1:0", "--dir", str(folder / "received")]


def new_peers(options: argparse.Namespace, kind: str, folder: Path) -> dict:
    """Small transfers during one flood: how long each took from the start of its program to success told."""
    (folder / "received").mkdir()
    with ExitStack() as stack:
        receiver = stack.enter_context(Process(receive(options, folder), folder))
        started = receiver.line()
        flood = None
        if KINDS[kind]:
            flood = stack.enter_context(Flood(options.flood, started["addresses"][0], KINDS[kind], folder))
        time.sleep(2)
        watch, after = Watch(receiver.child.pid), []
        for number in range(options.tries):
            home = folder / str(number)
            home.mkdir()
            (home / f"small-{number}").write_bytes(os.urandom(NEW_PEER_BYTES))
            begin = time.monotonic()
            command = [options.restp, "send", "--json", "--timeout", f"{TIMEOUT_S} s", str(home / f"small-{number}")]
            with Process([*command, started["ticket"]], home) as sender:
                sender.child.communicate(timeout=3 * TIMEOUT_S)
                seconds = time.monotonic() - begin
                file = folder / "received" / f"small-{number}"
                served = sender.child.returncode == 0 and file.stat().st_size == NEW_PEER_BYTES
            after.append(seconds if served else float("inf"))
        watch.over.set()
        return {"rate": flood.rate if flood else 0, "after": sorted(after), "peak_kb": watch.peak_kb}


def paired(options: argparse.Namespace, kinds: dict, rounds: int, top: Path) -> dict[str, list[dict]]:
    """Rounds of all kinds in turn."""
    samples = {kind: [] for kind in kinds}
    for number in range(rounds):
        for kind, words in kinds.items():
            folder = top / f"{len(kinds)}-{number}-{len(samples[kind])}-{list(kinds).index(kind)}"
            folder.mkdir()
            try:
                sample = established(options, kind, words, folder)
            except (subprocess.SubprocessError, OSError, ValueError, KeyError) as error:
                sample = {"failure": str(error)}
            samples[kind].append(sample)
            print(kind, sample, f"load {os.getloadavg()[0]:.1f}", file=sys.stderr)
    return samples


def ratios(samples: dict[str, list[dict]], kind: str, other: str, figure: str) -> float:
    """The median over rounds of the figure with `kind` over that with `other` in the same round."""
    both = zip(samples[kind], samples[other])
    return statistics.median(one[figure] / two[figure] for one, two in both if not {"failure"} & {*one, *two})


def medians(samples: list[dict]) -> dict:
    """Of each figure; how many rounds failed."""
    good = [sample for sample in samples if "failure" not in sample]
    found = {key: statistics.median(sample[key] for sample in good) for key in good[0]}
    return {**found, "failures": len(samples) - len(good)}


def report(options: argparse.Namespace, flooded: dict, forged: dict, new: dict, load: tuple) -> int:
    """Writes the page; 1 when something that is asked for is missed."""
    rows, row = [], {kind: medians(samples) for kind, samples in flooded.items()}
    base, beside = row["no flood"]["mbit"], row[BESIDE]["mbit"]
    for kind, found in row.items():
        rows.append(
            f"| {kind} | {found['rate']:.0f} | {found['mbit']:.1f} | {100 * found['mbit'] / base:.0f} % "
            f"| {100 * found['mbit'] / beside:.0f} % | {found['peak_kb'] / 1024:.1f} | {found['cpu']:.2f} "
            f"| {found['failures']} |"
        )
    goodput = all(found["mbit"] >= 0.8 * base and not found["failures"] for found in row.values())
    comers = []
    for kind, found in new.items():
        in_time = sum(seconds <= IN_TIME_S for seconds in found["after"])
        quantile = found["after"][int(0.95 * (options.tries - 1))]
        comers.append(
            f"| {kind} | {found['rate']:.0f} | {in_time} of {options.tries} | {statistics.median(found['after']):.2f} "
            f"| {quantile:.2f} | {found['after'][-1]:.2f} | {found['peak_kb'] / 1024:.1f} |"
        )
    served = all(sum(s <= IN_TIME_S for s in new[kind]["after"]) >= 0.95 * options.tries for kind in SPOOFED)
    packets, row = [], {kind: medians(samples) for kind, samples in forged.items()}
    for kind, found in row.items():
        packets.append(
            f"| {kind} | {found['rate']:.0f} | {found['mbit']:.1f} | {100 * ratios(forged, kind, UNREAD, 'mbit'):.1f} % "
            f"| {found['cpu']:.3f} | {ratios(forged, kind, 'none', 'cpu'):.2f} | {ratios(forged, kind, UNREAD, 'cpu'):.2f} |"
        )
    kept, cheap = ratios(forged, SEEN, UNREAD, "mbit") >= 0.97, ratios(forged, SEEN, UNREAD, "cpu") <= 1.2
    said = {True: "held", False: "missed"}
    options.page.write_text(PAGE.format(
        options=options, processors=os.cpu_count(), load=load, busy=BUSY if max(load) > 2 * os.cpu_count() else "", rows="\n".join(rows), comers="\n".join(comers),
        packets="\n".join(packets), goodput=said[goodput], served=said[served], kept=said[kept], cheap=said[cheap],
    ))
    print(options.page.read_text())
    return 0 if goodput and served and kept and cheap else 1


BUSY = (
    ", by work of others: where the flooder did not keep its rate and the transfer without a flood did not fill its path,\n"
    "goodput and processors tell of that work, and are to be measured again"
)
PAGE = """# Floods

```
cargo build --release -p restp-cli && cargo build --release -p restp --example flood
sudo python3 bench/flood.py
```

{processors} processors for all; the flooder is held to the last one. The load of the machine was {load[0]:.1f} at the begin and
{load[1]:.1f} at the end{busy}. Floods come from another address of 127.0.0.0/8 with each datagram, where nothing else is said.

## Established peers

A sealed transfer of {options.megabytes} MB over an emulated path of 100 Mbit/s and 10 ms; once it is established, the flood
arrives at the receiver's socket until it ends, {requests} a second if the machine can make so many. To see what that alone
takes, one kind of round lets the flood go to a socket that nobody reads. Medians of {options.rounds} rounds.

| flood | datagrams a second | goodput, Mbit/s | of that without | of that with the flood beside | \
receiver's memory at most, MiB | receiver's processors | transfers failed |
|---|---|---|---|---|---|---|---|
{rows}

Asked for: at least 80 % of the goodput without a flood: {goodput}.

## New peers

During a flood one transfer of 100 kB after the other, {options.tries} in all, each by a sender with a new key that was never
there: seconds from the start of its program until it says that all has arrived.

| flood | datagrams a second | served within 3 s | median, s | 95 of 100, s | longest, s | receiver's memory at most, MiB |
|---|---|---|---|---|---|---|
{comers}

Asked for: 95 % within 3 s, of each of the three kinds of invented requests: {served}. While unknown peers send more than 16 000
datagrams a second they take turns of a quarter of a second, and those with a proof of their address among themselves
([`ring.rs`](../../crates/restp/src/socket/screen/ring.rs)); a sender repeats its request often enough to meet its turn, and the kernel
drops what else comes ([`program.rs`](../../crates/restp/src/socket/screen/program.rs)).

## Forged packets

The same transfer, and {forged} packets of 32 bytes a second that nobody sealed, of all paths and two generations of keys.
Processor time is that of the receiver's threads (`schedstat`), from the begin of the flood to the end of the transfer;
rounds with and without alternate, and ratios are medians of those within a round.

| packets | a second | goodput, Mbit/s | of that with the packets beside | receiver's processors | of that without | \
of that with the packets beside |
|---|---|---|---|---|---|---|
{packets}

Asked for: at least 97 % of the goodput: {kept}; at most 1.2 times the processor: {cheap}.
""".replace("{requests}", str(REQUESTS)).replace("{forged}", str(FORGED))


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--restp", default=str(ROOT / "target/release/restp"))
    parser.add_argument("--flood", default=str(ROOT / "target/release/examples/flood"))
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--tries", type=int, default=50)
    parser.add_argument("--megabytes", type=int, default=60)
    parser.add_argument("--page", type=Path, default=ROOT / "docs/results/flood.md")
    options = parser.parse_args()
    load = os.getloadavg()[0]
    with tempfile.TemporaryDirectory() as name:
        top = Path(name)
        new = {}
        for number, kind in enumerate(NEW_PEERS):
            (top / f"new-{number}").mkdir()
            new[kind] = new_peers(options, kind, top / f"new-{number}")
            print(kind, new[kind], f"load {os.getloadavg()[0]:.1f}", file=sys.stderr)
        forged = paired(options, PACKETS, 2 * options.rounds, top)
        flooded = paired(options, KINDS, options.rounds, top)
    return report(options, flooded, forged, new, (load, os.getloadavg()[0]))


if __name__ == "__main__":
    sys.exit(main())
