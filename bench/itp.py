#!/usr/bin/env python3
"""Measures `restp publish`, `fetch` and `cache`: over emulated paths, with two sources, after a kill, and from a warm cache.

    bench/itp.py [--bytes 1073741824] [--loopback-bytes 1073741824] [--restp target/release/restp] [--output docs/results/itp-real.md]

Exit code 1 when something did not arrive, 2 when nothing can be measured. Rates are stated, not judged: the machine may be busy.
"""

import argparse
import datetime
import json
import os
import platform
import resource
import selectors
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path
from types import TracebackType
from typing import NamedTuple

from report import ROOT, cpu_model, output, table

OUTAGE_S = 10
CHUNK = 1384
TARGETS = {
    "one": "≥ 85",
    "outage": "≥ 85 outside of the outage",
    "kill": "≤ 1 % fetched twice",
    "two": "≥ 92",
    "dies": "no data for ≤ 0.2 s",
    "lies": "refused, named, whole file",
    "warm": "≥ 8000",
    "wide": "≥ 8000",
}


class Row(NamedTuple):
    name: str
    what: str
    rate_mbps: float
    target: str
    cpu: str
    note: str


class Watch:
    """Passes datagrams on, and knows the longest time in which nothing came back; may damage what does, after a while."""

    def __init__(self, to: str, *, lies_after: float = float("inf")) -> None:
        host, port = to.rsplit(":", 1)
        self.front = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self.front.bind(("127.0.0.1", 0))
        self.back = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self.back.connect((host, int(port)))
        for one in (self.front, self.back):
            one.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4 << 20)
        self.address = f"127.0.0.1:{self.front.getsockname()[1]}"
        self.since = time.monotonic()
        self.lies_at = self.since + lies_after
        self.last = self.since
        self.longest = 0.0
        self.seen: set[int] = set()
        self.twice = 0
        self.ended = threading.Event()
        self.thread = threading.Thread(target=self.run)

    def run(self) -> None:
        peer = None
        with selectors.DefaultSelector() as ready:
            ready.register(self.front, selectors.EVENT_READ)
            ready.register(self.back, selectors.EVENT_READ)
            while not self.ended.is_set():
                for key, _ in ready.select(0.1):
                    if key.fileobj is self.front:
                        data, peer = self.front.recvfrom(65536)
                        self.back.send(data)
                    elif peer:
                        self.answer(self.back.recv(65536), peer)

    def answer(self, data: bytes, peer: tuple[str, int]) -> None:
        now = time.monotonic()
        self.longest = max(self.longest, now - max(self.last, self.since))
        self.last = now
        if len(data) > CHUNK:
            self.count(hash(data[-1000:]))
        if now > self.lies_at and len(data) > CHUNK:
            data = data[:-1] + bytes([data[-1] ^ 1])
        self.front.sendto(data, peer)

    def count(self, chunk: int) -> None:
        self.twice += chunk in self.seen
        self.seen.add(chunk)

    def watch(self) -> None:
        """From now on."""
        self.since, self.longest = time.monotonic(), 0.0

    def __enter__(self) -> "Watch":
        self.thread.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.ended.set()
        self.thread.join()
        self.front.close()
        self.back.close()


class Bench:
    def __init__(self, arguments: argparse.Namespace, folder: Path) -> None:
        self.restp = str(Path(arguments.restp).resolve())
        self.folder = folder
        self.running: list[subprocess.Popen[str]] = []

    def start(self, *words: str) -> tuple[subprocess.Popen[str], dict]:
        process = subprocess.Popen(
            [self.restp, *words],
            stdout=subprocess.PIPE,
            stdin=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            text=True,
            env={**os.environ, "XDG_DATA_HOME": str(self.folder / "data")},
        )
        self.running.append(process)
        assert process.stdout
        return process, json.loads(process.stdout.readline())

    def end(self, process: subprocess.Popen[str]) -> dict:
        process.send_signal(signal.SIGINT)
        out, _ = process.communicate(timeout=60)
        self.running.remove(process)
        lines = out.strip().splitlines()
        return json.loads(lines[-1]) if lines else {}

    def publish(self, file: Path, *more: str) -> tuple[subprocess.Popen[str], str, str]:
        process, said = self.start("publish", "--json", "--listen", "127.0.0.1:0", *more, str(file))
        return process, said["ticket"], said["addresses"][0]

    def emulate(self, to: str, keys: str) -> str:
        net = self.folder / f"net-{len(self.running)}.toml"
        net.write_text(f'[[path]]\nname = "p"\nlisten = "127.0.0.1:0"\nto = "{to}"\n{keys}\n')
        _, said = self.start("emulate", "--json", str(net))
        return said["ready"][0]["listen"]

    def at(self, seconds: float, action: Callable[[], object]) -> None:
        timer = threading.Timer(seconds, action)
        timer.daemon = True
        timer.start()

    def fetch(self, ticket: str, *sources: str, kill_after: float | None = None) -> tuple[dict, float]:
        """The result, and the processor time of the command in seconds."""
        into = tempfile.mkdtemp(dir=self.folder)
        words = [self.restp, "fetch", "--json", ticket, "--dir", into, "--timeout", "5m"]
        words += [word for source in sources for word in ("--from", source)]
        if kill_after is not None:
            process = subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            time.sleep(kill_after)
            process.kill()
            process.wait()
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        done = subprocess.run(words, capture_output=True, text=True, check=False)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        if done.returncode:
            raise RuntimeError(done.stderr.strip())
        subprocess.run(["rm", "-rf", into], check=True)
        cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
        return json.loads(done.stdout.strip().splitlines()[-1]), cpu

    def stop(self) -> None:
        for process in self.running:
            process.kill()
            process.wait()


def processor_s(process: subprocess.Popen[str]) -> float:
    fields = Path(f"/proc/{process.pid}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def link(rate: int, more: str = "") -> str:
    return f'rate = "{rate} Mbit/s"\ndelay = "20 ms"\nqueue = {{ drop_tail = "bdp" }}\n{more}'


def cost(seconds: float, size: int) -> str:
    return f"{seconds / size * 1e9:.2f}"


def measure(bench: Bench, arguments: argparse.Namespace) -> list[Row]:
    file = bench.folder / "file"
    make(file, arguments.bytes)
    size = arguments.bytes
    loss = 'loss = { rate = 0.01, unit = "packet", direction = "both" }\n'
    rows = []

    publisher, ticket, address = bench.publish(file)
    said, cpu = bench.fetch(ticket, bench.emulate(address, link(100, loss)))
    note = f"{said['seconds']:.1f} s"
    rows.append(Row("one", "100 Mbit/s, 40 ms, 1 % loss each way", said["goodput_bps"] / 1e6, TARGETS["one"], cost(cpu, size), note))

    seconds = said["seconds"]
    start = max(2, int(seconds / 3))
    outage = f'outage = ["{start} s..{start + OUTAGE_S} s"]\n'
    said, cpu = bench.fetch(ticket, bench.emulate(address, link(100, loss + outage)))
    outside = size * 8 / max(said["seconds"] - OUTAGE_S, 1e-9) / 1e6
    rows.append(Row("outage", f"the same, {OUTAGE_S} s without a link", outside, TARGETS["outage"], cost(cpu, size), f"{said['seconds']:.1f} s"))

    with Watch(bench.emulate(address, link(100))) as watch:
        said, cpu = bench.fetch(ticket, watch.address, kill_after=max(1.0, seconds / 2))
    twice = watch.twice / len(watch.seen)
    note = f"{said['fetched_bytes'] / size * 100:.1f} % came after the kill, {twice * 100:.2f} % twice"
    rows.append(Row("kill", "100 Mbit/s, 40 ms; `kill -9` and again", said["goodput_bps"] / 1e6, TARGETS["kill"], cost(cpu, size), note))

    second, _, other = bench.publish(file)
    said, cpu = bench.fetch(ticket, bench.emulate(address, link(50)), bench.emulate(other, link(50)))
    rows.append(Row("two", "two sources of 50 Mbit/s, 40 ms", said["goodput_bps"] / 1e6, TARGETS["two"], cost(cpu, size), shares(said, size)))

    with Watch(bench.emulate(address, link(50))) as watch:
        bench.at(seconds / 3, lambda: (watch.watch(), second.kill()))
        said, cpu = bench.fetch(ticket, watch.address, bench.emulate(other, link(50)))
    note = f"no data for {watch.longest:.2f} s at most after that; {shares(said, size)}"
    rows.append(Row("dies", "the same; one is killed after a third", said["goodput_bps"] / 1e6, TARGETS["dies"], cost(cpu, size), note))

    with Watch(bench.emulate(address, link(50)), lies_after=seconds / 3) as liar:
        said, cpu = bench.fetch(ticket, liar.address, bench.emulate(address, link(100)))
    complaint = next((source["complaint"] for source in said["sources"] if source.get("complaint")), "nobody named")
    note = f"{said['refused_chunks']} refused; {complaint}"
    rows.append(Row("lies", "one of two sources, of 50 and 100 Mbit/s, sends something else after a while", said["goodput_bps"] / 1e6, TARGETS["lies"], cost(cpu, size), note))
    bench.end(publisher)

    make(file, arguments.loopback_bytes)
    for name, what, chunk in (("warm", "from a warm cache, loopback, chunks of 1384 B", "1384 B"), ("wide", "the same, chunks of 32 kB", "32000 B")):
        rows.append(warm(bench, file, arguments.loopback_bytes, name, what, chunk))
    return rows


def shares(said: dict, size: int) -> str:
    return " and ".join(f"{source['bytes'] / size * 100:.0f} %" for source in said["sources"])


def warm(bench: Bench, file: Path, size: int, name: str, what: str, chunk: str) -> Row:
    publisher, ticket, address = bench.publish(file, "--chunk", chunk)
    store = tempfile.mkdtemp(dir=bench.folder)
    cache, said = bench.start("cache", "--json", "--listen", "127.0.0.1:0", "--dir", store, "--upstream", address)
    here = said["addresses"][0]
    bench.fetch(ticket, here)
    before = processor_s(cache)
    said, cpu = bench.fetch(ticket, here)
    served = processor_s(cache) - before
    bench.end(cache)
    bench.end(publisher)
    subprocess.run(["rm", "-rf", store], check=True)
    return Row(name, what, said["goodput_bps"] / 1e6, TARGETS[name], cost(cpu, size), f"cache: {cost(served, size)} s/GB")


def make(file: Path, size: int) -> None:
    with file.open("wb") as out:
        for number in range(0, size, 1 << 20):
            out.write(os.urandom(min(1 << 20, size - number)))


def page(rows: list[Row], arguments: argparse.Namespace, loads: tuple[str, str]) -> str:
    conditions = [
        ("command", f"`bench/itp.py {' '.join(sys.argv[1:])}`".replace(" `", "`")),
        ("date", datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%d %H:%M UTC")),
        ("revision", output("git", "-C", str(ROOT), "describe", "--always", "--dirty")),
        ("machine", f"{cpu_model()}, {os.cpu_count()} cores, {platform.system()} {platform.release()}"),
        ("load average before and after", " and ".join(loads)),
        ("object", f"{arguments.bytes:,} bytes over paths, {arguments.loopback_bytes:,} bytes from the cache; chunks of 1384 bytes unless said otherwise"),
    ]
    head = ["", "what", "Mbit/s of the file", "target", "`fetch`: CPU s/GB", ""]
    cells = [(row.name, row.what, f"{row.rate_mbps:.1f}", row.target, row.cpu, row.note) for row in rows]
    text = (
        "Paths are those of `restp emulate`, on the same machine: publisher, emulator and `fetch` share its cores with whatever else runs, so "
        "rates are lower bounds, and processor time says what a transfer costs. Every chunk is verified by `fetch`; time is from its first "
        "question until the file has its name."
        " Digests are SHA-256 of chunks up to 4096 bytes and BLAKE3 of longer ones, which is what is faster in hardware. Nothing is pinned: a side that takes less than "
        "1.00 s of processor for a GB carries 8 Gbit/s on one core. Chunks of 1384 bytes are 722,000 packets a GB, and take 3 to 4 µs each: digest, system calls, and "
        "the sender of Interests."
    )
    return f"# Content by name on real sockets\n\nWritten by `bench/itp.py`; not edited by hand.\n\n{table(['', ''], conditions)}\n\n{text}\n\n{table(head, cells)}\n"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bytes", type=int, default=1 << 30)
    parser.add_argument("--loopback-bytes", type=int, default=1 << 30)
    parser.add_argument("--restp", default=str(ROOT / "target/release/restp"))
    parser.add_argument("--output", type=Path, default=ROOT / "docs/results/itp-real.md")
    arguments = parser.parse_args()
    if not Path(arguments.restp).exists():
        print(f"{arguments.restp} is missing; cargo build --release -p restp-cli", file=sys.stderr)
        return 2
    before = f"{os.getloadavg()[0]:.1f}"
    with tempfile.TemporaryDirectory(prefix="restp-itp-") as folder:
        bench = Bench(arguments, Path(folder))
        try:
            rows = measure(bench, arguments)
        except RuntimeError as error:
            print(error, file=sys.stderr)
            return 1
        finally:
            bench.stop()
    text = page(rows, arguments, (before, f"{os.getloadavg()[0]:.1f}"))
    arguments.output.write_text(text)
    print(text)
    return 0


if __name__ == "__main__":
    sys.exit(main())
