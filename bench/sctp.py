#!/usr/bin/env python3
"""Our SCTP with CMT and DAC beside usrsctp's, each against itself and the other, over two emulated paths.

    bench/sctp.py [--mb 40] [--rounds 3] [--only WORDS] [--output PAGE]

Both run over UDP (RFC 6951) in network namespaces, `crates/restp/examples/sctp.rs` and `bench/usrsctp.c`, which are built first. The paths
are those of `restp emulate --tun`. What arrives is compared with what was sent by SHA-256. Needs root, `ip`, a C compiler and
libusrsctp-dev. Exit code 1 when a target is missed, 2 when nothing can be measured.
"""

import argparse
import hashlib
import json
import os
import platform
import shlex
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

import network
from report import ROOT, cpu_model, output, spread, table
from run import build

SEGMENT = 1444  # what an Ethernet packet leaves beside IP, UDP, SCTP and the chunk's header
TARGET = 0.95
LIMIT_S = 120
# By which path our sender retransmits: the one that it was on first, or the one with the largest window, as usrsctp does.
OURS, BY_WINDOW, THEIRS = "ours, same path", "ours, largest window", "usrsctp"
BDP = 'queue = { drop_tail = "bdp" }'


def link(rate: int, delay: int, more: str = "") -> str:
    return f'rate = "{rate} Mbit/s"\ndelay = "{delay} ms"\n{BDP}\n{more}'


LOSS = "loss = { rate = 0.01, direction = \"forward\" }\n"
NETWORKS = {
    "20 + 20 Mbit/s, 40 ms": (link(20, 20), link(20, 20)),
    "20 + 5 Mbit/s, 20 and 80 ms": (link(20, 10), link(5, 40)),
    "20 + 20 Mbit/s, 40 ms, 1 % lost on both": (link(20, 20, LOSS), link(20, 20, LOSS)),
}
PAIRS = [(THEIRS, THEIRS), (OURS, THEIRS), (BY_WINDOW, THEIRS), (THEIRS, OURS), (OURS, OURS)]


def built(folder: Path) -> dict[str, str]:
    theirs = folder / "usrsctp"
    source = str(ROOT / "bench/usrsctp.c")
    subprocess.run(["cc", "-O2", "-o", str(theirs), source, "-lusrsctp", "-lpthread"], check=True)
    ours = build(ROOT / "Cargo.toml", "--package", "restp", "--example", "sctp")["sctp"]
    restp = build(ROOT / "Cargo.toml", "--package", "restp-cli")["restp"]
    return {OURS: ours, BY_WINDOW: ours, THEIRS: str(theirs), "restp": restp}


def digest(file: Path) -> str:
    with file.open("rb") as opened:
        return hashlib.file_digest(opened, "sha256").hexdigest()


def addresses(side: int) -> str:
    return ",".join(network.address(side, path) for path in (0, 1))


def transfer(programs: dict[str, str], pair: tuple[str, str], net: network.Network, file: Path, arrived: Path) -> float:
    """Mbit/s from the first message that arrives to the last."""
    sender, receiver = pair
    keys = [f"segment={SEGMENT} B", "receive-buffer=4 MiB", "send-buffer=4 MiB"]
    of_sender = {OURS: [*keys, "scheme=same"], BY_WINDOW: [*keys, "scheme=cwnd"], THEIRS: [str(SEGMENT)]}
    receive = [programs[receiver], "recv", addresses(1), *(keys if receiver == OURS else [])]
    send = [programs[sender], "send", addresses(0), addresses(1), *of_sender[sender]]
    receiving = net.inside(1, ["sh", "-c", f"exec {shlex.join(receive)} > {shlex.quote(str(arrived))}"])
    if "ready" not in receiving.stderr.readline():
        raise RuntimeError(f"{receiver} does not listen")
    sending = net.inside(0, ["sh", "-c", f"exec {shlex.join(send)} < {shlex.quote(str(file))}"])
    complaint = sending.communicate(timeout=LIMIT_S)[1]
    if sending.returncode:
        raise RuntimeError(f"{sender}, which sends: {complaint}")
    said = receiving.communicate(timeout=LIMIT_S)[1]
    if receiving.returncode:
        raise RuntimeError(f"{receiver}, which receives: {said}")
    if digest(arrived) != digest(file):
        raise RuntimeError(f"{sender} to {receiver}: what arrived is not what was sent")
    result = json.loads(said.strip().splitlines()[-1])
    return result["bytes"] * 8 / result["seconds"] / 1e6


def measure(options: argparse.Namespace, folder: Path) -> dict[tuple[str, tuple[str, str]], list[float]]:
    programs = built(folder)
    file, arrived = folder / "file", folder / "arrived"
    file.write_bytes(os.urandom(options.mb * 1_000_000))
    rates = {}
    for turn in range(options.rounds):
        for name, links in NETWORKS.items():
            if options.only and options.only not in name:
                continue
            for pair in PAIRS:
                with network.Network(programs["restp"], "sctp", dict(zip("AB", links)), turn + 1) as net:
                    rate = transfer(programs, pair, net, file, arrived)
                rates.setdefault((name, pair), []).append(rate)
                print(f"{name}, {pair[0]} to {pair[1]}: {rate:.2f} Mbit/s", file=sys.stderr)
    return rates


def verdicts(rates) -> list[tuple[str, tuple[str, str], float]]:
    """Of each pair with one of ours, its median over that of usrsctp with itself."""
    medians = {key: statistics.median(values) for key, values in rates.items()}
    return [
        (name, pair, median / medians[name, (THEIRS, THEIRS)])
        for (name, pair), median in medians.items()
        if pair != (THEIRS, THEIRS)
    ]


def page(rates, options: argparse.Namespace, loads: tuple[float, float]) -> str:
    shown = [(name, *pair, spread(values, 1)) for (name, pair), values in rates.items()]
    judged = [
        (f"{name}: {pair[0]} to {pair[1]}", f"{share:.1%}", "met" if share >= TARGET else "**missed**")
        for name, pair, share in verdicts(rates)
        if THEIRS in pair
    ]
    conditions = [
        ("revision", output("git", "-C", str(ROOT), "describe", "--always", "--dirty")),
        ("machine", f"{cpu_model()}, {os.cpu_count()} cores, {platform.system()} {platform.release()}"),
        ("load average at start and end", f"{loads[0]:.1f}, {loads[1]:.1f}"),
        ("transfers", f"{options.rounds} of each, in turns, {options.mb} MB"),
        ("usrsctp", output("dpkg-query", "--show", "--showformat", "${Version}", "libusrsctp2")),
    ]
    return f"""# Our SCTP and usrsctp

One association over two paths, with CMT and its delayed acknowledgements (DAC) at both ends: this project's SCTP over UDP sockets
([`sctp.rs`](../../crates/restp/examples/sctp.rs)) and usrsctp ([`usrsctp.c`](../../bench/usrsctp.c)), each with itself and with the other. Every byte
that arrived was the one that was sent, by SHA-256. Command: `{shlex.join(["python3", "bench/sctp.py", *sys.argv[1:]])}`.

{table(["paths", "sender", "receiver", "Mbit/s: least – median – most"], shown)}

| ≥ {TARGET:.0%} of usrsctp with itself | measured | verdict |
| --- | --- | --- |
{chr(10).join(f"| {' | '.join(row)} |" for row in judged)}

Chunks carry {SEGMENT} bytes, buffers have 4 MiB. Queues hold a bandwidth-delay product. A retransmission by the largest window (RTX-CWND) is what usrsctp
does as well: where both queues have dropped it moves all that is missing to one path, whose queue is still full. What is lost twice waits for
the retransmission timer of a second, and after it for the other path's, when that has the largest window and counts as full.

{table(["", ""], conditions)}
"""


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--mb", type=int, default=40)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--only")
    parser.add_argument("--output", type=Path, default=ROOT / "docs/results/sctp-usrsctp.md")
    options = parser.parse_args()
    why = network.missing("cc")
    if why is None and not Path("/usr/include/usrsctp.h").exists():
        why = "not installed: libusrsctp-dev"
    if why:
        print(why, file=sys.stderr)
        return 2
    load = os.getloadavg()[0]
    with tempfile.TemporaryDirectory(prefix="restp-sctp-") as folder:
        rates = measure(options, Path(folder))
    options.output.write_text(page(rates, options, (load, os.getloadavg()[0])))
    print(options.output)
    return int(any(share < TARGET for _, pair, share in verdicts(rates) if THEIRS in pair))


if __name__ == "__main__":
    sys.exit(main())
