#!/usr/bin/env python3
"""An established transfer beside 100 000 requests a second from many addresses; writes docs/results/flood.md.

usage: bench/flood.py [--restp PROGRAM] [--flood PROGRAM] [--rate N] [--rounds N] [--megabytes N] [--seconds N]

A sealed transfer crosses an emulated path of 100 Mbit/s and 10 ms, so that it is the path and not the processor that
limits it when nothing else happens; the flood goes straight to the receiver's socket. Making a flood takes a
processor: the flooder is held to the last one, and one kind of round lets it send to a socket that nobody reads, which
shows what the machine has left for everybody. Rounds alternate between the kinds, so that the load of the machine meets
all alike. While a flood lasts a newcomer begins a small transfer; it may try on beyond the flood, so that the page tells
when it was served, or that it was not.
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
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
KINDS = {
    "none": "no flood",
    "beside": "Hello (IK) to a socket that nobody reads",
    "plain": "SYNs without a seal",
    "ik": "Hello for a key of nobody (IK)",
    "ix": "Hello that any bytes are (IX)",
}


NEWCOMER_BYTES = 100_000
# A newcomer tries for so long, far beyond the flood: one attempt after the other, none longer than `send` can be told.
PATIENCE_S, ATTEMPT_S = 120, 50
PINNED = ["taskset", "-c", str(os.cpu_count() - 1)]


def resident_kb(pid: int) -> int:
    """Resident memory now, in KiB."""
    return int(re.search(r"VmRSS:\s+(\d+)", Path(f"/proc/{pid}/status").read_text())[1])


def cpu_seconds(pid: int) -> float:
    """Processor time of the process so far."""
    fields = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


class Newcomer(threading.Thread):
    """A transfer begun while the flood lasts, repeated until it succeeds: when it ended, and how."""

    def __init__(self, command: list[str], said: dict):
        super().__init__(daemon=True)
        self.command, self.said = command, said
        self.process, self.attempts = None, 0
        self.came = time.monotonic()
        self.start()

    def run(self):
        while True:
            left = PATIENCE_S - (time.monotonic() - self.came)
            command = [*self.command, "--timeout", f"{max(1, min(ATTEMPT_S, round(left)))} s"]
            self.attempts += 1
            self.process = subprocess.Popen(command, **self.said, stderr=subprocess.PIPE)
            self.words = "".join(self.process.communicate())[-300:].strip()
            self.after = time.monotonic() - self.came
            # 2: it could not even begin; below 0: it was killed. What else fails is tried again.
            if self.process.returncode in (0, 2) or self.process.returncode < 0 or self.after >= PATIENCE_S:
                return
            time.sleep(0.2)

    def outcome(self, received: Path) -> dict:
        """Served after so many seconds, or not: the exit code tells, and the file that arrived."""
        self.join(PATIENCE_S + 2 * ATTEMPT_S)
        if self.is_alive() or self.process.returncode == 2:
            raise ValueError(f"the newcomer cannot be measured: {getattr(self, 'words', 'it does not end')}")
        file = received / "small"
        served = self.process.returncode == 0 and file.is_file() and file.stat().st_size == NEWCOMER_BYTES
        outcome = {"served": served, "after": self.after, "attempts": self.attempts, "exit": self.process.returncode}
        return outcome if served else {**outcome, "said": self.words}


def newcomers(samples: list[dict]) -> tuple[str, str]:
    """How many of them were served, and after how long; or within how long not."""
    served = [s["newcomer"]["after"] for s in samples if s["newcomer"]["served"]]
    not_served = [s["newcomer"]["after"] for s in samples if not s["newcomer"]["served"]]
    words = [f"{after:.1f}" for after in sorted(served)]
    words += [f"not within {after:.0f}" for after in sorted(not_served)]
    return f"{len(served)} of {len(samples)}", ", ".join(words)


def one_round(programs: argparse.Namespace, kind: str, folder: Path) -> dict:
    """One transfer, with or without a flood once it is established."""
    emulated = folder / "net.toml"
    (folder / "received").mkdir()
    environment = {**os.environ, "HOME": str(folder), "XDG_DATA_HOME": str(folder), "XDG_CACHE_HOME": str(folder)}
    receiver = subprocess.Popen(
        [programs.restp, "recv", "--json", "--listen", "127.0.0.1:0", "--dir", str(folder / "received")],
        stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, env=environment,
    )
    emulator = flood = newcomer = None
    unread = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    unread.bind(("127.0.0.1", 0))
    send, said = [programs.restp, "send", "--json"], {"stdout": subprocess.PIPE, "text": True, "env": environment}
    try:
        started = json.loads(receiver.stdout.readline())
        address = started["addresses"][0]
        emulated.write_text(
            f'[[path]]\nname = "a"\nlisten = "127.0.0.1:0"\nto = "{address}"\nrate = "100 Mbit/s"\ndelay = "10 ms"\n'
        )
        emulator = subprocess.Popen(
            [programs.restp, "emulate", "--json", "--control", str(emulated)],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
        )
        entry = json.loads(emulator.stdout.readline())["ready"][0]["listen"]
        before = resident_kb(receiver.pid)
        used, begin = cpu_seconds(receiver.pid), time.monotonic()
        peak, over = before, threading.Event()

        def watch():
            nonlocal peak
            while not over.wait(0.1):
                peak = max(peak, resident_kb(receiver.pid))

        watcher = threading.Thread(target=watch)
        watcher.start()
        try:
            to = [started["ticket"], "--address", entry]
            sender = subprocess.Popen([*send, str(folder / "file"), *to], **said)
            time.sleep(0.5)  # established
            if kind != "none":
                target = f"127.0.0.1:{unread.getsockname()[1]}" if kind == "beside" else address
                bytes_of = "ik" if kind == "beside" else kind
                flood = subprocess.Popen(
                    [*PINNED, programs.flood, target, str(programs.rate), str(programs.seconds), bytes_of],
                    stdout=subprocess.PIPE, text=True,
                )
                time.sleep(0.5)
            newcomer = Newcomer([*send, str(folder / "small"), *to], said)
            output, _ = sender.communicate(timeout=300)
        finally:
            seconds = time.monotonic() - begin
            over.set()
            watcher.join()
        result = json.loads(output.splitlines()[-1])
        arrived = newcomer.outcome(folder / "received")
        rate = json.loads(flood.communicate(timeout=60)[0])["per_second"] if flood else 0
        return {
            "rate": rate,
            "mbit": programs.megabytes * 8 / result["seconds"],
            "newcomer": arrived,
            "peak_kb": peak,
            "cpu": (cpu_seconds(receiver.pid) - used) / seconds,
        }
    finally:
        unread.close()
        for process in filter(None, (newcomer and newcomer.process, flood, emulator, receiver)):
            process.kill()
            process.wait()


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--restp", default=str(ROOT / "target/release/restp"))
    parser.add_argument("--flood", default=str(ROOT / "target/release/examples/flood"))
    parser.add_argument("--rate", type=int, default=100_000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--megabytes", type=int, default=60)
    parser.add_argument("--seconds", type=int, default=20, help="of a flood; the transfer is over before")
    parser.add_argument("--page", type=Path, default=ROOT / "docs/results/flood.md")
    programs = parser.parse_args()
    samples = {kind: [] for kind in KINDS}
    with tempfile.TemporaryDirectory() as name:
        for _ in range(programs.rounds):
            for kind in KINDS:
                folder = Path(name) / f"{kind}-{len(samples[kind])}"
                folder.mkdir()
                (folder / "file").write_bytes(os.urandom(1 << 20) * programs.megabytes)
                (folder / "small").write_bytes(os.urandom(NEWCOMER_BYTES))
                try:
                    sample = one_round(programs, kind, folder)
                except (subprocess.SubprocessError, OSError, ValueError, KeyError) as error:
                    sample = {"failure": str(error)}
                samples[kind].append(sample)
                print(kind, sample, file=sys.stderr)
    return report(programs, samples)


def report(programs: argparse.Namespace, samples: dict) -> int:
    """Writes the page; 1 when a transfer failed or kept less than 80 % of its goodput, or a newcomer without a flood was
    not served. Whether one is served during a flood is told, not asked for."""
    good = {kind: [s for s in all_ if "mbit" in s] for kind, all_ in samples.items()}
    if not all(good.values()):
        print("a kind has no sample", file=sys.stderr)
        return 1
    numbers = ("rate", "mbit", "peak_kb", "cpu")
    median = {kind: {key: statistics.median(s[key] for s in all_) for key in numbers} for kind, all_ in good.items()}
    base, beside = median["none"]["mbit"], median["beside"]["mbit"]
    rows, held = [], all(s["newcomer"]["served"] for s in good["none"])
    for kind, words in KINDS.items():
        row = median[kind]
        share, fair = row["mbit"] / base, row["mbit"] / beside
        failures = len(samples[kind]) - len(good[kind])
        count, after = newcomers(good[kind])
        held &= share >= 0.8 and failures == 0
        rows.append(
            f"| {words} | {row['rate']:.0f} | {row['mbit']:.1f} | {100 * share:.0f} % | {100 * fair:.0f} % "
            f"| {count} | {after} | {row['peak_kb'] / 1024:.1f} | {row['cpu']:.2f} | {failures} |"
        )
    page = f"""# Floods

```
cargo build --release -p restp-cli && cargo build --release -p restp --example flood
python3 bench/flood.py
```

A sealed transfer of {programs.megabytes} MB over an emulated path of 100 Mbit/s and 10 ms; once it is established,
requests from 500 addresses of 127.0.0.0/8 arrive at the receiver's socket for {programs.seconds} s, {programs.rate} a second if
the machine can make so many. {os.cpu_count()} processors for all; the flooder is held to the last one. To see what
that alone takes, one kind of round lets the flood go to a socket that nobody reads. Medians of {programs.rounds}
rounds.

| flood | requests a second | goodput, Mbit/s | of that without | of that with the flood beside | newcomers served | after, s | \
receiver's memory at most, MiB | receiver's processors | transfers failed |
|---|---|---|---|---|---|---|---|---|---|
{chr(10).join(rows)}

Half a second into each flood a newcomer begins a transfer of {NEWCOMER_BYTES // 1000} kB: how many rounds ended with the
whole file there and success told, and the time of each until then. It begins again when an
attempt of {ATTEMPT_S} s fails, and gives up after {PATIENCE_S} s; one served after more than the {programs.seconds} s of the flood was not served during it.
While strangers send more than 10 000 datagrams a second, the kernel drops a share of theirs before they take room in
the receiver's socket ([`screen.rs`](../../crates/restp/src/socket/screen.rs)); a newcomer repeats what was lost.

{"Asked for: at least 80 % of the goodput without a flood. Held." if held else "Asked for: at least 80 %. Missed."}
"""
    programs.page.write_text(page)
    print(page)
    return 0 if held else 1


if __name__ == "__main__":
    sys.exit(main())
