#!/usr/bin/env python3
"""An established transfer beside 100 000 requests a second from many addresses; writes docs/results/flood.md.

usage: bench/flood.py [--restp PROGRAM] [--flood PROGRAM] [--rate N] [--rounds N] [--megabytes N]

A sealed transfer crosses an emulated path of 100 Mbit/s and 10 ms, so that it is the path and not the processor that
limits it when nothing else happens; the flood goes straight to the receiver's socket. Rounds alternate between no flood
and each kind of flood, so that the load of the machine meets all alike.
"""

import argparse
import json
import os
import re
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
    "plain": "SYNs without a seal",
    "ik": "Hello for a key of nobody (IK)",
    "ix": "Hello that any bytes are (IX)",
}


# A flood lasts so long, the transfer about as long.
FLOOD_S = 6


def resident_kb(pid: int) -> int:
    """Resident memory now, in KiB."""
    return int(re.search(r"VmRSS:\s+(\d+)", Path(f"/proc/{pid}/status").read_text())[1])


def cpu_seconds(pid: int) -> float:
    """Processor time of the process so far."""
    fields = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def one_round(programs: argparse.Namespace, kind: str, folder: Path) -> dict:
    """One transfer, with or without a flood once it is established."""
    emulated = folder / "net.toml"
    (folder / "received").mkdir()
    environment = {**os.environ, "HOME": str(folder), "XDG_DATA_HOME": str(folder), "XDG_CACHE_HOME": str(folder)}
    receiver = subprocess.Popen(
        [programs.restp, "recv", "--json", "--listen", "127.0.0.1:0", "--dir", str(folder / "received")],
        stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, env=environment,
    )
    emulator = flood = None
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
            sender = subprocess.Popen(
                [programs.restp, "send", "--json", str(folder / "file"), started["ticket"], "--address", entry],
                stdout=subprocess.PIPE, text=True, env=environment,
            )
            time.sleep(0.5)  # established
            if kind != "none":
                flood = subprocess.Popen(
                    [programs.flood, address, str(programs.rate), str(FLOOD_S), kind], stdout=subprocess.PIPE, text=True
                )
            output, _ = sender.communicate(timeout=300)
        finally:
            seconds = time.monotonic() - begin
            over.set()
            watcher.join()
        result = json.loads(output.splitlines()[-1])
        rate = json.loads(flood.communicate(timeout=60)[0])["per_second"] if flood else 0
        return {
            "rate": rate,
            "mbit": programs.megabytes * 8 / result["seconds"],
            "peak_kb": peak,
            "cpu": (cpu_seconds(receiver.pid) - used) / seconds,
        }
    finally:
        for process in filter(None, (flood, emulator, receiver)):
            process.kill()
            process.wait()


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--restp", default=str(ROOT / "target/release/restp"))
    parser.add_argument("--flood", default=str(ROOT / "target/release/examples/flood"))
    parser.add_argument("--rate", type=int, default=100_000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--megabytes", type=int, default=60)
    programs = parser.parse_args()
    samples = {kind: [] for kind in KINDS}
    with tempfile.TemporaryDirectory() as name:
        for _ in range(programs.rounds):
            for kind in KINDS:
                folder = Path(name) / f"{kind}-{len(samples[kind])}"
                folder.mkdir()
                (folder / "file").write_bytes(os.urandom(1 << 20) * programs.megabytes)
                try:
                    sample = one_round(programs, kind, folder)
                except (subprocess.SubprocessError, OSError, ValueError, KeyError) as error:
                    sample = {"failure": str(error)}
                samples[kind].append(sample)
                print(kind, sample, file=sys.stderr)
    return report(programs, samples)


def report(programs: argparse.Namespace, samples: dict) -> int:
    """Writes the page; 1 when a transfer failed or kept less than 80 % of its goodput."""
    good = {kind: [s for s in all_ if "mbit" in s] for kind, all_ in samples.items()}
    if not all(good.values()):
        print("a kind has no sample", file=sys.stderr)
        return 1
    median = {kind: {key: statistics.median(s[key] for s in all_) for key in all_[0]} for kind, all_ in good.items()}
    base = median["none"]
    rows, held = [], True
    for kind, words in KINDS.items():
        row = median[kind]
        share = row["mbit"] / base["mbit"]
        failures = len(samples[kind]) - len(good[kind])
        held &= share >= 0.8 and failures == 0
        rows.append(
            f"| {words} | {row['rate']:.0f} | {row['mbit']:.1f} | {100 * share:.0f} % | {row['peak_kb'] / 1024:.1f} | {row['cpu']:.2f} "
            f"| {failures} |"
        )
    cpus = os.cpu_count()
    page = f"""# Floods

```
cargo build --release -p restp-cli && cargo build --release -p restp --example flood
python3 bench/flood.py
```

A sealed transfer of {programs.megabytes} MB over an emulated path of 100 Mbit/s and 10 ms; once it is established, requests from 500
addresses of 127.0.0.0/8 arrive at the receiver's socket, {programs.rate} a second if the machine can make so many. Medians of {programs.rounds} rounds, {cpus} processors for receiver, sender,
emulator and flood together.

| flood | requests a second | goodput, Mbit/s | of that without | receiver's memory at most, MiB | receiver's processors | failed |
|---|---|---|---|---|---|---|
{chr(10).join(rows)}

{"Asked for: at least 80 %, and memory that stays flat. Both hold." if held else "Asked for: at least 80 %. Missed."}
"""
    (ROOT / "docs/results/flood.md").write_text(page)
    print(page)
    return 0 if held else 1


if __name__ == "__main__":
    sys.exit(main())
